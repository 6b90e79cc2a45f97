"""The problem of a case: its inputs, which keys a query sees, and float64 attention of sampled rows from the definition.

q, k, v are [batch][heads][tokens][head_dim]; sequences of several lengths are one batch of all their tokens."""
import math

import torch

MASK_BLOCK = 128
DTYPES = {"": torch.float16, "fp16": torch.float16, "bf16": torch.bfloat16, "fp8_e4m3": torch.float8_e4m3fn, "int8": torch.int8}
PRODUCTS = ("cublas", "triton_product")
NOISE_WITHIN = 0.2  # how far the noise of dropout may be from what its probability says
MANY_KEYS, DROPOUT_ROWS = 128, 256


def number(case, column, otherwise=0):
    return int(case.get(column) or otherwise)


def numbers(text):
    """"300x2:64" is [300, 300, 64]."""
    parts = [part.partition("x") for part in text.split(":")] if text else []
    return [int(value) for value, _, times in parts for _ in range(int(times or 1))]


def lengths_of(case):
    return numbers(case.get("lengths") or "")


def is_packed(case):
    """Sequences of several lengths one after another; else they are the first tokens of a batch's."""
    return bool(lengths_of(case)) and case["source"] != "triton_paged"


def random_factor(dtype, *shape):
    if dtype == torch.int8:
        return torch.randint(-8, 8, shape, device="cuda", dtype=dtype)
    return torch.randn(*shape, device="cuda").to(dtype) if dtype == torch.float8_e4m3fn else torch.randn(*shape, device="cuda", dtype=dtype)


def make_inputs(case):
    n = {k: int(case[k]) for k in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_kv", "head_dim")}
    torch.manual_seed(1)
    to = dict(device="cuda", dtype=DTYPES[case.get("dtype") or ""])
    if case["source"] == "triton_softmax":
        return torch.randn(n["batch"], n["heads"], n["seqlen_q"], n["seqlen_kv"], **to), None, None
    if case["source"] in PRODUCTS:
        dtype = to["dtype"]
        b = random_factor(dtype, n["batch"], n["seqlen_kv"], n["head_dim"]).transpose(1, 2) if case.get("transpose_b") == "1" else random_factor(dtype, n["batch"], n["head_dim"], n["seqlen_kv"])
        return random_factor(dtype, n["batch"], n["seqlen_q"], n["head_dim"]), b, None
    tokens_first = case["source"] == "aten_flash"  # its tensors are [batch][tokens][heads][head_dim]
    if is_packed(case):
        n.update(batch=1, seqlen_q=sum(lengths_of(case)), seqlen_kv=sum(lengths_of(case)))

    def tensor(heads, tokens):
        if tokens_first:
            return torch.randn(n["batch"], tokens, heads, n["head_dim"], **to).transpose(1, 2)
        return torch.randn(n["batch"], heads, tokens, n["head_dim"], **to)
    return tensor(n["heads"], n["seqlen_q"]), tensor(n["kv_heads"], n["seqlen_kv"]), tensor(n["kv_heads"], n["seqlen_kv"])


def sequence_of_token(case):
    """Of packed sequences, which one a token belongs to."""
    lengths = torch.tensor(lengths_of(case), device="cuda")
    return torch.repeat_interleave(torch.arange(len(lengths_of(case)), device="cuda"), lengths)


def seen_by_mask(mask, width, row, column):
    """Block masks as docs/masks.md defines them."""
    distance = abs(row - column)
    if mask == "strided":
        return (distance < width) | (distance % width == 0)
    if mask == "local_global":
        return (distance < width) | (row == 0) | (column == 0)
    if mask == "butterfly":
        return ((row ^ column) & ((row ^ column) - 1)) == 0
    return distance >= 0


def visible(case, seqlen_q, seqlen_kv):
    """Gives a function of indices of queries and keys (tensors), true where the query sees the key."""
    offset, window, causal = seqlen_kv - seqlen_q, number(case, "window"), case["causal"] == "1"
    mask, width = case.get("mask") or "none", number(case, "mask_width", 4)
    sequence = sequence_of_token(case) if is_packed(case) else None

    def sees(i, j):
        seen = j <= i + offset if causal else j >= 0
        if window:
            seen = seen & (j > i + offset - window)
            if not causal:
                seen = seen & (j < i + offset + window)
        if mask != "none":
            seen = seen & seen_by_mask(mask, width, (i + offset) // MASK_BLOCK, j // MASK_BLOCK)
        if sequence is not None:
            seen = seen & (sequence[i] == sequence[j])
        return seen
    return sees


def expected_rows(case, q, k, v, b, h, rows):
    kv = h // (q.shape[1] // k.shape[1])
    num_keys = lengths_of(case)[b] if lengths_of(case) and not is_packed(case) else k.shape[2]
    s = q[b, h, rows].double() @ k[b, kv, :num_keys].double().T / math.sqrt(q.shape[3])
    sees = visible(case, q.shape[2], num_keys)(rows[:, None], torch.arange(num_keys, device=q.device)[None, :])
    return s.masked_fill_(~sees, float("-inf")).softmax(-1) @ v[b, kv, :num_keys].double()


def dropout_error(out, expect, p):
    """Dropout leaves the expectation of a row alone and adds noise of sqrt(p / (1 - p)) of its size, if it sees many keys: the error of the first; NaN if the second is
    not so."""
    size = (expect * expect).sum(-1)
    noise = float((((out - expect) ** 2).sum(-1) / size).mean().sqrt())
    if abs(noise / math.sqrt(p / (1 - p)) - 1) > NOISE_WITHIN:
        return float("nan")
    return abs(float(((out * expect).sum(-1) / size).mean()) - 1)


def worst_error(errors):
    """NaN is the worst."""
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error)


def error_of(case, out, q, k, v):
    """Of a forward case, against float64 on sampled heads and rows: ||out - expected|| / ||expected||, the worst; NaN: wrong."""
    with torch.no_grad():
        if case["source"] == "triton_softmax":
            rows = torch.randint(0, q.shape[2], (64,), device=out.device)
            expect = q[0, 0, rows].double().softmax(-1)
            return float((out[0, 0, rows].double() - expect).norm() / expect.norm())
        if case["source"] in PRODUCTS:
            rows = torch.randint(0, q.shape[1], (64,), device=out.device)
            last = q.shape[0] - 1
            expect = q[last].to(torch.float32)[rows].double() @ k[last].to(torch.float32).double()
            return float((out[last, rows].double() - expect).norm() / expect.norm())
        errors, p = [], float(case.get("dropout_p") or 0)
        for sample in range(4):
            b, h = sample % q.shape[0], (sample * 5 + 1) % q.shape[1]
            rows = torch.randint(min(MANY_KEYS, q.shape[2] - 1) if p else 0, q.shape[2], (DROPOUT_ROWS if p else 64,), device=out.device)
            expect, got = expected_rows(case, q, k, v, b, h, rows), out[b, h, rows].double()
            errors.append(dropout_error(got, expect, p) if p else float((got - expect).norm() / expect.norm()))
        return worst_error(errors)


def most_error(case):
    """f16 outputs and P. Of dropout: the mean of 256 rows, each of which has a few hundred keys that weigh; without the factor 1 / (1 - p) it would be p."""
    p = float(case.get("dropout_p") or 0)
    return 0.1 * math.sqrt(p / (1 - p)) if p else 3e-3
