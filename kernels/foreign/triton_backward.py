"""Attention backward in Triton, divided into kernels as the well-known tutorial was: delta = rowsum(dO * O); dK and dV of BLOCK_N keys a program, on transposed
scores; dQ of BLOCK_N queries a program. Both walk BLOCK_M rows a step."""
import math

import torch
import triton
import triton.language as tl

DELTA_ROWS = 128


@triton.jit
def flash2_bwd_delta(o_ptr, do_ptr, delta_ptr, BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None].to(tl.int64) * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    products = tl.load(o_ptr + at).to(tl.float32) * tl.load(do_ptr + at).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(products, 1))


@triton.jit
def _dk_dv_steps(dk, dv, k, v, q_base, do_base, lse_base, delta_base, keys, scale_log2, begin, end,
                 MASKED: tl.constexpr, BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr):
    queries = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    for start in range(begin, end, BLOCK_M):
        q_transposed = tl.load(q_base + (start + queries)[None, :] * HEAD_DIM + dims[:, None])
        lse = tl.load(lse_base + start + queries)
        p = tl.math.exp2(tl.dot(k, q_transposed) * scale_log2 - (lse * 1.4426950408889634)[None, :])
        if MASKED:
            p = tl.where(keys[:, None] <= (start + queries)[None, :], p, 0.0)
        do = tl.load(do_base + (start + queries)[:, None] * HEAD_DIM + dims[None, :])
        dv = tl.dot(p.to(tl.float16), do, dv)
        delta = tl.load(delta_base + start + queries)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk = tl.dot(ds.to(tl.float16), tl.trans(q_transposed), dk)
    return dk, dv


@triton.jit
def flash2_bwd_dk_dv(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale_log2, scale, seqlen,
                     CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    keys = block * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    base = head * seqlen * HEAD_DIM
    at = base + keys[:, None] * HEAD_DIM + dims[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    dk = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    whole = 0
    if CAUSAL:
        first = block * BLOCK_N // BLOCK_M * BLOCK_M
        whole = ((block + 1) * BLOCK_N + BLOCK_M - 1) // BLOCK_M * BLOCK_M
        dk, dv = _dk_dv_steps(dk, dv, k, v, q_ptr + base, do_ptr + base, lse_ptr + head * seqlen, delta_ptr + head * seqlen, keys,
                              scale_log2, first, tl.minimum(whole, seqlen), True, BLOCK_M, HEAD_DIM)
    dk, dv = _dk_dv_steps(dk, dv, k, v, q_ptr + base, do_ptr + base, lse_ptr + head * seqlen, delta_ptr + head * seqlen, keys,
                          scale_log2, whole, seqlen, False, BLOCK_M, HEAD_DIM)
    tl.store(dv_ptr + at, dv.to(tl.float16))
    tl.store(dk_ptr + at, (dk * scale).to(tl.float16))


@triton.jit
def _dq_steps(dq, q, do, lse, delta, k_base, v_base, queries, scale_log2, begin, end,
              MASKED: tl.constexpr, BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr):
    keys = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    for start in range(begin, end, BLOCK_M):
        at = (start + keys)[None, :] * HEAD_DIM + dims[:, None]
        k_transposed = tl.load(k_base + at)
        v_transposed = tl.load(v_base + at)
        p = tl.math.exp2(tl.dot(q, k_transposed) * scale_log2 - lse[:, None])
        if MASKED:
            p = tl.where((start + keys)[None, :] <= queries[:, None], p, 0.0)
        ds = p * (tl.dot(do, v_transposed) - delta[:, None])
        dq = tl.dot(ds.to(tl.float16), tl.trans(k_transposed), dq)
    return dq


@triton.jit
def flash2_bwd_dq(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale_log2, scale, seqlen,
                  CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    queries = block * BLOCK_N + tl.arange(0, BLOCK_N)
    base = head * seqlen * HEAD_DIM
    at = base + queries[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    q = tl.load(q_ptr + at)
    do = tl.load(do_ptr + at)
    lse = tl.load(lse_ptr + head * seqlen + queries) * 1.4426950408889634
    delta = tl.load(delta_ptr + head * seqlen + queries)
    dq = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    end = seqlen
    if CAUSAL:
        whole = block * BLOCK_N // BLOCK_M * BLOCK_M
        end = tl.minimum((block + 1) * BLOCK_N, seqlen)
        dq = _dq_steps(dq, q, do, lse, delta, k_ptr + base, v_ptr + base, queries, scale_log2, 0, whole, False, BLOCK_M, HEAD_DIM)
        dq = _dq_steps(dq, q, do, lse, delta, k_ptr + base, v_ptr + base, queries, scale_log2, whole, end, True, BLOCK_M, HEAD_DIM)
    else:
        dq = _dq_steps(dq, q, do, lse, delta, k_ptr + base, v_ptr + base, queries, scale_log2, 0, end, False, BLOCK_M, HEAD_DIM)
    tl.store(dq_ptr + at, (dq * scale).to(tl.float16))


def forward(q, k, v, causal, scale):
    """O in fp16 and LSE in fp32, a head at a time."""
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device, dtype=torch.float32)
    later = torch.ones(q.shape[2], k.shape[2], device=q.device, dtype=torch.bool).triu(1) if causal else None
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = (q[b, h].float() @ k[b, h].float().T) * scale
            if causal:
                scores.masked_fill_(later, float("-inf"))
            lse[b, h] = scores.logsumexp(-1)
            o[b, h] = (scores.softmax(-1) @ v[b, h].float()).to(q.dtype)
    return o, lse


def backward_call(case, q, k, v):
    block_m, block_n, num_warps, num_stages = (int(case[name]) for name in ("block_m", "block_n", "num_warps", "num_stages"))
    batch, heads, seqlen, head_dim = q.shape
    if q.shape != k.shape or seqlen % block_n or seqlen % block_m or q.dtype != torch.float16:
        raise ValueError("triton_backward takes fp16, as many queries as keys, heads of their own and whole tiles")
    causal, scale = case["causal"] == "1", 1 / math.sqrt(head_dim)
    o, lse = forward(q, k, v, causal, scale)
    gradient = torch.randn_like(o)
    delta = torch.empty_like(lse)
    dq, dk, dv = (torch.full_like(x, float("nan")) for x in (q, k, v))
    grid = (seqlen // block_n, batch * heads)
    tile = dict(CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=num_warps, num_stages=num_stages)

    def call():
        flash2_bwd_delta[(batch * heads * seqlen // DELTA_ROWS,)](o, gradient, delta, BLOCK=DELTA_ROWS, HEAD_DIM=head_dim, num_warps=num_warps)
        call.compiled = flash2_bwd_dk_dv[grid](q, k, v, gradient, lse, delta, dk, dv, scale * 1.4426950408889634, scale, seqlen, **tile)
        call.compiled_dq = flash2_bwd_dq[grid](q, k, v, gradient, lse, delta, dq, scale * 1.4426950408889634, scale, seqlen, **tile)
        return dq, dk, dv
    call.gradient = gradient
    return call
