"""Backward passes: gradients of attention as a call gives them, against those of its definition in float64 (problems.py) on sampled heads."""
import torch
from problems import expected_rows, lengths_of, worst_error

ROWS_AT_ONCE = 2048  # whose float64 scores are in memory
SAMPLES = 2


def gradient_call(o, inputs):
    """Gives the gradients by `inputs` of o, whose own is random."""
    gradient = torch.randn_like(o)

    def call():
        return torch.autograd.grad(o, inputs, gradient, retain_graph=True)
    call.gradient = gradient
    return call


def expected_gradients(case, q, k, v, gradient, b, kv):
    """By the queries of the heads that share a head of keys, by its keys and by its values."""
    group = q.shape[1] // k.shape[1]
    sharing = slice(kv * group, (kv + 1) * group)
    inputs = [x.detach()[b:b + 1, heads].to(torch.float64, copy=True).requires_grad_() for x, heads in ((q, sharing), (k, slice(kv, kv + 1)), (v, slice(kv, kv + 1)))]
    with torch.enable_grad():
        for h in range(group):
            for rows in torch.arange(q.shape[2], device=q.device).split(ROWS_AT_ONCE):
                expected_rows(case, *inputs, 0, h, rows).backward(gradient[b, sharing][h, rows].double())
    return [x.grad[0] for x in inputs]


def is_checkable(case):
    """Which elements a library dropped nobody knows, and gradients have no mean to compare instead."""
    return case["pass"] == "fwd" or not (float(case.get("dropout_p") or 0) or lengths_of(case))


def by_heads(x):
    return x.transpose(1, 2)


def gradient_error(case, gradients, gradient, q, k, v):
    """Against float64 on sampled heads: the worst ||got - expected|| / ||expected|| of dQ, dK and dV."""
    if len(gradients) == 1:  # of [batch][tokens][3][heads][head_dim]
        gradients, gradient = [by_heads(x) for x in gradients[0].unbind(2)], by_heads(gradient)
    errors, group = [], q.shape[1] // k.shape[1]
    for b, kv in {(sample % q.shape[0], (sample * 5 + 1) % k.shape[1]) for sample in range(SAMPLES)}:
        dq, dk, dv = gradients
        got = dq[b, kv * group:(kv + 1) * group], dk[b, kv:kv + 1], dv[b, kv:kv + 1]
        for one, expect in zip(got, expected_gradients(case, q, k, v, gradient, b, kv)):
            errors.append(float((one.double() - expect).norm() / expect.norm()))
    return worst_error(errors)
