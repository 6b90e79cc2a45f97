"""Unfused attention as the benchmarks of FlashAttention's papers write it in PyTorch, on qkv [batch][tokens][3][heads][head_dim].

einsum   benchmarks/benchmark_flash_attention.py of FlashAttention 0.1 and 0.2 (arXiv:2205.14135)
baddbmm  attention_pytorch in benchmarks/benchmark_flash_attention.py of FlashAttention 2 (arXiv:2307.08691; 3 has it too)"""
import math

import torch
import torch.nn.functional as F
from gradients import gradient_call


def weighted_values(scores, dropout_p, v):
    return torch.einsum("bhts,bshd->bthd", F.dropout(torch.softmax(scores, dim=-1), dropout_p), v)


def einsum(qkv, causal, padding, dropout_p):
    """`padding`: None, or [batch][tokens], true where there is a key."""
    q, k, v = qkv.unbind(dim=2)
    scores = torch.einsum("bthd,bshd->bhts", q, k / math.sqrt(q.shape[3]))
    if padding is not None:
        scores.masked_fill_(~padding[:, None, None, :], float("-inf"))
    if causal:
        hidden = torch.triu(torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device), 1)
        scores.masked_fill_(hidden, float("-inf"))
    return weighted_values(scores, dropout_p, v)


def baddbmm(qkv, causal, padding, dropout_p):
    batch, tokens, _, heads, head_dim = qkv.shape
    q, k, v = qkv.unbind(dim=2)
    q = q.transpose(1, 2).reshape(batch * heads, tokens, head_dim)
    k = k.permute(0, 2, 3, 1).reshape(batch * heads, head_dim, tokens)
    scores = torch.empty(batch * heads, tokens, tokens, dtype=q.dtype, device=q.device)
    scores = torch.baddbmm(scores, q, k, beta=0, alpha=1 / math.sqrt(head_dim)).reshape(batch, heads, tokens, tokens)
    if causal:
        hidden = torch.triu(torch.full((tokens, tokens), -10000.0, device=q.device), 1)
        scores = scores + hidden.to(dtype=q.dtype)
    return weighted_values(scores, dropout_p, v)


PROGRAMS = {"eager_einsum": einsum, "eager_baddbmm": baddbmm}


def eager_call(case, q, k, v):
    """A padding mask hides nothing here: what it costs does not depend on what it says."""
    qkv = torch.stack([x.transpose(1, 2) for x in (q, k, v)], dim=2).requires_grad_(True)
    padding = torch.ones(q.shape[0], q.shape[2], dtype=torch.bool, device="cuda") if case.get("padding_mask") == "1" else None
    program, causal, dropout_p = PROGRAMS[case["source"]], case["causal"] == "1", float(case.get("dropout_p") or 0)
    if case["pass"] == "fwd":
        return lambda: program(qkv, causal, padding, dropout_p).transpose(1, 2)
    return gradient_call(program(qkv, causal, padding, dropout_p), (qkv,))
