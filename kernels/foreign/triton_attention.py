"""Fused attention forward in Triton, after the well-known tutorial: one program a block of BLOCK_M query rows, online softmax, plain pointers."""
import triton
import triton.language as tl


@triton.jit
def _steps(acc, row_max, row_sum, q, k_base, v_base, rows, row_offset, scale_log2, begin, end,
           MASKED: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    for start in range(begin, end, BLOCK_N):
        k = tl.load(k_base + (start + columns)[None, :] * HEAD_DIM + dims[:, None])
        s = tl.dot(q, k) * scale_log2
        if MASKED:
            s = tl.where((start + columns)[None, :] <= (rows + row_offset)[:, None], s, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(s, 1))
        p = tl.math.exp2(s - new_max[:, None])
        correction = tl.math.exp2(row_max - new_max)
        row_sum = row_sum * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v = tl.load(v_base + (start + columns)[:, None] * HEAD_DIM + dims[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc)
        row_max = new_max
    return acc, row_max, row_sum


@triton.jit
def triton_attention_forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale_log2, heads, group, seqlen_q, seqlen_kv,
                             CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1)
    kv_head = (head // heads) * (heads // group) + (head % heads) // group
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    q_offset = head.to(tl.int64) * seqlen_q * HEAD_DIM
    k_base = k_ptr + kv_head.to(tl.int64) * seqlen_kv * HEAD_DIM
    v_base = v_ptr + kv_head.to(tl.int64) * seqlen_kv * HEAD_DIM
    q = tl.load(q_ptr + q_offset + rows[:, None] * HEAD_DIM + dims[None, :])
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    row_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    row_sum = tl.zeros([BLOCK_M], tl.float32)
    row_offset = seqlen_kv - seqlen_q
    if CAUSAL:
        unmasked = (block * BLOCK_M + row_offset + 1) // BLOCK_N * BLOCK_N
        end = tl.minimum((block + 1) * BLOCK_M + row_offset, seqlen_kv)
        acc, row_max, row_sum = _steps(acc, row_max, row_sum, q, k_base, v_base, rows, row_offset, scale_log2, 0, unmasked,
                                       False, BLOCK_N, HEAD_DIM)
        acc, row_max, row_sum = _steps(acc, row_max, row_sum, q, k_base, v_base, rows, row_offset, scale_log2, unmasked, end,
                                       True, BLOCK_N, HEAD_DIM)
    else:
        acc, row_max, row_sum = _steps(acc, row_max, row_sum, q, k_base, v_base, rows, row_offset, scale_log2, 0, seqlen_kv,
                                       False, BLOCK_N, HEAD_DIM)
    acc = acc / row_sum[:, None]
    tl.store(lse_ptr + head.to(tl.int64) * seqlen_q + rows, (row_max + tl.math.log2(row_sum)) * 0.6931471805599453)
    tl.store(o_ptr + q_offset + rows[:, None] * HEAD_DIM + dims[None, :], acc.to(tl.float16))
