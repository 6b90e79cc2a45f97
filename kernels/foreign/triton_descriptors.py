"""Fused attention forward in Triton with tensor descriptors, after the present form of the well-known tutorial: the hardware's tile copies (TMA) bring Q, K and V and
take O, the scale is applied within the exponent, a masked score is lowered by a million, and each step's row sums are added behind its second product."""
import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _steps(acc, row_max, row_sum, q, k_tiles, v_tiles, first_key, rows, row_offset, scale_log2, begin, end,
           MASKED: tl.constexpr, BLOCK_N: tl.constexpr):
    columns = tl.arange(0, BLOCK_N)
    for start in tl.range(begin, end, BLOCK_N):
        k = k_tiles.load([first_key + start, 0]).T
        s = tl.dot(q, k)
        if MASKED:
            s = s * scale_log2 + tl.where((start + columns)[None, :] <= (rows + row_offset)[:, None], 0, -1.0e6)
            new_max = tl.maximum(row_max, tl.max(s, 1))
            s -= new_max[:, None]
        else:
            new_max = tl.maximum(row_max, tl.max(s, 1) * scale_log2)
            s = s * scale_log2 - new_max[:, None]
        p = tl.math.exp2(s)
        correction = tl.math.exp2(row_max - new_max)
        step_sum = tl.sum(p, 1)
        acc = acc * correction[:, None]
        v = v_tiles.load([first_key + start, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
        row_sum = row_sum * correction + step_sum
        row_max = new_max
    return acc, row_max, row_sum


@triton.jit
def triton_descriptors_forward(q_tiles, k_tiles, v_tiles, o_tiles, lse_ptr, scale_log2, heads, group, seqlen_q, seqlen_kv,
                              CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1)
    kv_head = (head // heads) * (heads // group) + (head % heads) // group
    first_row = head * seqlen_q + block * BLOCK_M
    first_key = kv_head * seqlen_kv
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    row_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    row_sum = tl.full([BLOCK_M], 1.0, tl.float32)
    row_offset = seqlen_kv - seqlen_q
    q = q_tiles.load([first_row, 0])
    if CAUSAL:
        unmasked = (block * BLOCK_M + row_offset + 1) // BLOCK_N * BLOCK_N
        end = tl.minimum((block + 1) * BLOCK_M + row_offset, seqlen_kv)
        acc, row_max, row_sum = _steps(acc, row_max, row_sum, q, k_tiles, v_tiles, first_key, rows, row_offset, scale_log2, 0, unmasked,
                                       False, BLOCK_N)
        acc, row_max, row_sum = _steps(acc, row_max, row_sum, q, k_tiles, v_tiles, first_key, rows, row_offset, scale_log2, unmasked, end,
                                       True, BLOCK_N)
    else:
        acc, row_max, row_sum = _steps(acc, row_max, row_sum, q, k_tiles, v_tiles, first_key, rows, row_offset, scale_log2, 0, seqlen_kv,
                                       False, BLOCK_N)
    acc = acc / row_sum[:, None]
    tl.store(lse_ptr + first_row + tl.arange(0, BLOCK_M), row_max + tl.math.log2(row_sum))
    o_tiles.store([first_row, 0], acc.to(tl.float16))


def tiles_of(tensor, rows):
    """Tiles of `rows` tokens of a tensor [batch][heads][tokens][head_dim], as one matrix."""
    matrix = tensor.view(-1, tensor.shape[3])
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, matrix.shape[1]])


def descriptors_call(case, q, k, v):
    o = torch.full_like(q, float("nan"))
    lse = torch.empty(q.shape[:3], device="cuda", dtype=torch.float32)
    block_m, block_n = int(case["block_m"]), int(case["block_n"])
    head_dim = q.shape[3]
    grid = (q.shape[2] // block_m, q.shape[0] * q.shape[1])
    tiles = tiles_of(q, block_m), tiles_of(k, block_n), tiles_of(v, block_n), tiles_of(o, block_m)

    def call():
        call.compiled = triton_descriptors_forward[grid](
            *tiles, lse, 1.4426950408889634 / math.sqrt(head_dim), q.shape[1], q.shape[1] // k.shape[1], q.shape[2], k.shape[2],
            CAUSAL=case["causal"] == "1", BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim,
            num_warps=int(case["num_warps"]), num_stages=int(case["num_stages"]))
        return o
    return call
