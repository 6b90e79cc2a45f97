"""Attention kernels in Triton: forward (pointers or tensor descriptors), GQA and sliding window, split-KV decoding,
row softmax, matmul, backward. Scores are kept in base 2 (the softmax scale times log2 e is folded into one factor);
LSE is written as a natural logarithm."""

import triton
import triton.language as tl


# ---------------------------------------------------------------- forward, two spans when causal


@triton.jit
def _softmax_step(acc, l_i, m_i, s, qk_scale, rows, cols, DIAGONAL: tl.constexpr):
    """Rescales what was gathered and returns the probabilities of this block of keys with it."""
    if DIAGONAL:
        s = tl.where(rows[:, None] >= cols[None, :], s * qk_scale, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
    else:
        m_new = tl.maximum(m_i, tl.max(s, 1) * qk_scale)
        p = tl.exp2(s * qk_scale - m_new[:, None])
    alpha = tl.exp2(m_i - m_new)
    l_i = l_i * alpha + tl.sum(p, 1)
    acc = acc * alpha[:, None]
    return acc, l_i, m_new, p


@triton.jit
def _forward_span(acc, l_i, m_i, q, k_head, v_head, rows, lo, hi, qk_scale,
                  HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, DIAGONAL: tl.constexpr):
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        k = tl.load(k_head + cols[:, None] * HEAD_DIM + offs_d[None, :])
        s = tl.dot(q, tl.trans(k))
        acc, l_i, m_i, p = _softmax_step(acc, l_i, m_i, s, qk_scale, rows, cols, DIAGONAL)
        v = tl.load(v_head + cols[:, None] * HEAD_DIM + offs_d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
    return acc, l_i, m_i


@triton.jit
def forward_pointers(Q, K, V, O, LSE, seqlen, qk_scale,
                     HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Grid (tiles of queries, batch * heads); tensors contiguous [batch, heads, seqlen, HEAD_DIM]."""
    tile = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    first = head * seqlen * HEAD_DIM
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(Q + first + rows[:, None] * HEAD_DIM + offs_d[None, :])
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    if CAUSAL:
        acc, l_i, m_i = _forward_span(acc, l_i, m_i, q, K + first, V + first, rows, 0, tile * BLOCK_M, qk_scale,
                                      HEAD_DIM, BLOCK_N, False)
        acc, l_i, m_i = _forward_span(acc, l_i, m_i, q, K + first, V + first, rows, tile * BLOCK_M,
                                      (tile + 1) * BLOCK_M, qk_scale, HEAD_DIM, BLOCK_N, True)
    else:
        acc, l_i, m_i = _forward_span(acc, l_i, m_i, q, K + first, V + first, rows, 0, seqlen, qk_scale,
                                      HEAD_DIM, BLOCK_N, False)
    acc = acc / l_i[:, None]
    tl.store(O + first + rows[:, None] * HEAD_DIM + offs_d[None, :], acc.to(O.dtype.element_ty))
    tl.store(LSE + head * seqlen + rows, (m_i + tl.log2(l_i)) * 0.6931471805599453)


@triton.jit
def _forward_span_descriptors(acc, l_i, m_i, q, desc_k, desc_v, first_row, rows, lo, hi, qk_scale,
                              BLOCK_N: tl.constexpr, DIAGONAL: tl.constexpr):
    offs_n = tl.arange(0, BLOCK_N)
    for start in range(lo, hi, BLOCK_N):
        k = desc_k.load([first_row + start, 0])
        s = tl.dot(q, tl.trans(k))
        acc, l_i, m_i, p = _softmax_step(acc, l_i, m_i, s, qk_scale, rows, start + offs_n, DIAGONAL)
        v = desc_v.load([first_row + start, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
    return acc, l_i, m_i


@triton.jit
def forward_descriptors(desc_q, desc_k, desc_v, desc_o, LSE, seqlen, qk_scale,
                        HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
                        BF16: tl.constexpr):
    """Grid (tiles of queries, batch * heads); descriptors of [batch * heads * seqlen, HEAD_DIM]."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    first_row = head * seqlen
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    q = desc_q.load([first_row + tile * BLOCK_M, 0])
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    if CAUSAL:
        acc, l_i, m_i = _forward_span_descriptors(acc, l_i, m_i, q, desc_k, desc_v, first_row, rows, 0,
                                                  tile * BLOCK_M, qk_scale, BLOCK_N, False)
        acc, l_i, m_i = _forward_span_descriptors(acc, l_i, m_i, q, desc_k, desc_v, first_row, rows, tile * BLOCK_M,
                                                  (tile + 1) * BLOCK_M, qk_scale, BLOCK_N, True)
    else:
        acc, l_i, m_i = _forward_span_descriptors(acc, l_i, m_i, q, desc_k, desc_v, first_row, rows, 0, seqlen,
                                                  qk_scale, BLOCK_N, False)
    acc = acc / l_i[:, None]
    if BF16:
        desc_o.store([first_row + tile * BLOCK_M, 0], acc.to(tl.bfloat16))
    else:
        desc_o.store([first_row + tile * BLOCK_M, 0], acc.to(tl.float16))
    tl.store(LSE + first_row + rows, (m_i + tl.log2(l_i)) * 0.6931471805599453)


# ---------------------------------------------------------------- GQA, sliding window, chunked prefill, any length


@triton.jit
def _grouped_span(acc, l_i, m_i, q, k_head, v_head, stride_kn, position, lo, hi, seqlen_kv, qk_scale,
                  HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, WINDOW: tl.constexpr,
                  TAIL: tl.constexpr, CAUSAL: tl.constexpr, LEFT: tl.constexpr):
    """TAIL: the last keys, which may be cut by the diagonal and by the end; LEFT: cut by the window."""
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        where_k = cols[:, None] * stride_kn + offs_d[None, :]
        if TAIL:
            k = tl.load(k_head + where_k, mask=cols[:, None] < seqlen_kv, other=0.0)
        else:
            k = tl.load(k_head + where_k)
        s = tl.dot(q, tl.trans(k)) * qk_scale
        if TAIL:
            seen = cols[None, :] < seqlen_kv
            if CAUSAL:
                seen = seen & (cols[None, :] <= position[:, None])
            s = tl.where(seen, s, float("-inf"))
        if LEFT:
            s = tl.where(cols[None, :] > position[:, None] - WINDOW, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        # A row may not have seen a key yet.
        pivot = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp2(s - pivot[:, None])
        alpha = tl.exp2(m_i - pivot)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        m_i = m_new
        if TAIL:
            v = tl.load(v_head + where_k, mask=cols[:, None] < seqlen_kv, other=0.0)
        else:
            v = tl.load(v_head + where_k)
        acc = tl.dot(p.to(v.dtype), v, acc)
    return acc, l_i, m_i


@triton.jit
def forward_grouped(Q, K, V, O, LSE, heads, seqlen_q, seqlen_kv, qk_scale,
                    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
                    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
                    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, HEAD_FIRST: tl.constexpr, REVERSE: tl.constexpr):
    """Grid (tiles, batch * heads), or the other way round if HEAD_FIRST. The mask is aligned to the bottom right; with
    WINDOW > 0 a query sees its own key and the WINDOW - 1 before it."""
    if HEAD_FIRST:
        sequence_head = tl.program_id(0)
        tile = tl.program_id(1)
        tiles = tl.num_programs(1)
    else:
        tile = tl.program_id(0)
        sequence_head = tl.program_id(1)
        tiles = tl.num_programs(0)
    if REVERSE:
        tile = tiles - 1 - tile
    sequence = (sequence_head // heads).to(tl.int64)
    head = sequence_head % heads
    q_first = sequence * stride_qb + head * stride_qh
    k_first = sequence * stride_kb + (head // GROUP) * stride_kh
    k_head = K + k_first
    v_head = V + k_first

    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q_offsets = rows[:, None] * stride_qm + offs_d[None, :]
    q = tl.load(Q + q_first + q_offsets, mask=rows[:, None] < seqlen_q, other=0.0)
    first_position = tile * BLOCK_M + seqlen_kv - seqlen_q
    position = first_position + tl.arange(0, BLOCK_M)

    if CAUSAL:
        whole_end = (first_position + 1) // BLOCK_N * BLOCK_N
        end = tl.minimum(first_position + BLOCK_M, seqlen_kv)
    else:
        whole_end = seqlen_kv // BLOCK_N * BLOCK_N
        end = seqlen_kv

    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    if WINDOW > 0:
        begin = tl.maximum(first_position - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
        whole_begin = tl.cdiv(tl.maximum(first_position + BLOCK_M - WINDOW, 0), BLOCK_N) * BLOCK_N
        whole_begin = tl.minimum(whole_begin, whole_end)
        acc, l_i, m_i = _grouped_span(acc, l_i, m_i, q, k_head, v_head, stride_kn, position, begin, whole_begin,
                                      seqlen_kv, qk_scale, HEAD_DIM, BLOCK_N, WINDOW, False, CAUSAL, True)
        acc, l_i, m_i = _grouped_span(acc, l_i, m_i, q, k_head, v_head, stride_kn, position, whole_begin, whole_end,
                                      seqlen_kv, qk_scale, HEAD_DIM, BLOCK_N, WINDOW, False, CAUSAL, False)
        acc, l_i, m_i = _grouped_span(acc, l_i, m_i, q, k_head, v_head, stride_kn, position, whole_end, end,
                                      seqlen_kv, qk_scale, HEAD_DIM, BLOCK_N, WINDOW, True, CAUSAL, True)
    else:
        acc, l_i, m_i = _grouped_span(acc, l_i, m_i, q, k_head, v_head, stride_kn, position, 0, whole_end,
                                      seqlen_kv, qk_scale, HEAD_DIM, BLOCK_N, WINDOW, False, CAUSAL, False)
        acc, l_i, m_i = _grouped_span(acc, l_i, m_i, q, k_head, v_head, stride_kn, position, whole_end, end,
                                      seqlen_kv, qk_scale, HEAD_DIM, BLOCK_N, WINDOW, True, CAUSAL, False)
    acc = acc / l_i[:, None]
    tl.store(O + q_first + q_offsets, acc.to(O.dtype.element_ty), mask=rows[:, None] < seqlen_q)
    tl.store(LSE + sequence_head.to(tl.int64) * seqlen_q + rows, (m_i + tl.log2(l_i)) * 0.6931471805599453,
             mask=rows < seqlen_q)


# ---------------------------------------------------------------- split-KV decoding


@triton.jit
def decode_vector(Q, K, V, PART, PART_LSE, heads, seqlen, splits, qk_scale, stride_kb, stride_kh, stride_kn,
                  HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr, STAGES: tl.constexpr):
    """One query head and one range of keys, products on the CUDA cores. Grid (heads, splits, batch). STAGES > 0: the
    loop is pipelined through shared memory."""
    head = tl.program_id(0)
    split = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    keys = tl.cdiv(tl.cdiv(seqlen, BLOCK_N), splits) * BLOCK_N
    lo = split * keys
    hi = tl.minimum(lo + keys, seqlen)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    row = sequence * heads + head
    q = tl.load(Q + row * HEAD_DIM + offs_d).to(tl.float32) * qk_scale
    k_first = sequence * stride_kb + (head // GROUP) * stride_kh
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([HEAD_DIM], tl.float32)
    if STAGES > 0:
        for start in tl.range(lo, hi, BLOCK_N, num_stages=STAGES):
            cols = start + offs_n
            offsets = k_first + cols[:, None] * stride_kn + offs_d[None, :]
            k = tl.load(K + offsets, mask=cols[:, None] < hi, other=0.0)
            v = tl.load(V + offsets, mask=cols[:, None] < hi, other=0.0)
            s = tl.sum(q[None, :] * k.to(tl.float32), 1)
            s = tl.where(cols < hi, s, float("-inf"))
            m_new = tl.maximum(m_i, tl.max(s, 0))
            alpha = tl.exp2(m_i - m_new)
            p = tl.exp2(s - m_new)
            acc = acc * alpha + tl.sum(p[:, None] * v.to(tl.float32), 0)
            l_i = l_i * alpha + tl.sum(p, 0)
            m_i = m_new
    else:
        for start in range(lo, hi, BLOCK_N):
            cols = start + offs_n
            offsets = k_first + cols[:, None] * stride_kn + offs_d[None, :]
            k = tl.load(K + offsets, mask=cols[:, None] < hi, other=0.0)
            s = tl.sum(q[None, :] * k.to(tl.float32), 1)
            s = tl.where(cols < hi, s, float("-inf"))
            m_new = tl.maximum(m_i, tl.max(s, 0))
            alpha = tl.exp2(m_i - m_new)
            p = tl.exp2(s - m_new)
            v = tl.load(V + offsets, mask=cols[:, None] < hi, other=0.0)
            acc = acc * alpha + tl.sum(p[:, None] * v.to(tl.float32), 0)
            l_i = l_i * alpha + tl.sum(p, 0)
            m_i = m_new
    part = row * splits + split
    divisor = tl.where(l_i > 0.0, l_i, 1.0)
    tl.store(PART + part * HEAD_DIM + offs_d, acc / divisor)
    tl.store(PART_LSE + part, tl.where(l_i > 0.0, m_i + tl.log2(divisor), float("-inf")))


@triton.jit
def decode_grouped(Q, K, V, PART, PART_LSE, heads, seqlen, splits, qk_scale, stride_kb, stride_kh, stride_kn,
                   HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr, BLOCK_H: tl.constexpr):
    """The query heads of one KV head, padded to BLOCK_H rows, and one range of keys, on the tensor cores. Grid
    (kv_heads, splits, batch)."""
    kv_head = tl.program_id(0)
    split = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    keys = tl.cdiv(tl.cdiv(seqlen, BLOCK_N), splits) * BLOCK_N
    lo = split * keys
    hi = tl.minimum(lo + keys, seqlen)
    offs_h = tl.arange(0, BLOCK_H)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    row = sequence * heads + kv_head * GROUP + offs_h
    real = offs_h < GROUP
    q = tl.load(Q + row[:, None] * HEAD_DIM + offs_d[None, :], mask=real[:, None], other=0.0)
    k_first = sequence * stride_kb + kv_head * stride_kh
    m_i = tl.full([BLOCK_H], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, HEAD_DIM], tl.float32)
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        offsets = k_first + cols[:, None] * stride_kn + offs_d[None, :]
        k = tl.load(K + offsets, mask=cols[:, None] < hi, other=0.0)
        s = tl.dot(q, tl.trans(k)) * qk_scale
        s = tl.where(cols[None, :] < hi, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.exp2(m_i - m_new)
        p = tl.exp2(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(V + offsets, mask=cols[:, None] < hi, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
    part = row * splits + split
    divisor = tl.where(l_i > 0.0, l_i, 1.0)
    acc = acc / divisor[:, None]
    tl.store(PART + part[:, None] * HEAD_DIM + offs_d[None, :], acc, mask=real[:, None])
    tl.store(PART_LSE + part, tl.where(l_i > 0.0, m_i + tl.log2(divisor), float("-inf")), mask=real)


@triton.jit
def decode_combine(PART, PART_LSE, O, LSE, splits, HEAD_DIM: tl.constexpr, BLOCK_S: tl.constexpr):
    """Grid (batch * heads,); BLOCK_S: a power of two that is not below splits."""
    row = tl.program_id(0).to(tl.int64)
    offs_s = tl.arange(0, BLOCK_S)
    offs_d = tl.arange(0, HEAD_DIM)
    real = offs_s < splits
    part_lse = tl.load(PART_LSE + row * splits + offs_s, mask=real, other=float("-inf"))
    top = tl.max(part_lse, 0)
    weight = tl.exp2(part_lse - top)
    total = tl.sum(weight, 0)
    part = tl.load(PART + (row * splits + offs_s)[:, None] * HEAD_DIM + offs_d[None, :], mask=real[:, None], other=0.0)
    o = tl.sum(part * weight[:, None], 0) / total
    tl.store(O + row * HEAD_DIM + offs_d, o.to(O.dtype.element_ty))
    tl.store(LSE + row, (top + tl.log2(total)) * 0.6931471805599453)


# ---------------------------------------------------------------- softmax of rows: one program a row


@triton.jit
def softmax_row(X, Y, columns, BLOCK_N: tl.constexpr):
    """The row in registers."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    x = tl.load(X + row * columns + cols, mask=cols < columns, other=float("-inf")).to(tl.float32)
    x = tl.exp2((x - tl.max(x, 0)) * 1.4426950408889634)
    y = x / tl.sum(x, 0)
    tl.store(Y + row * columns + cols, y.to(Y.dtype.element_ty), mask=cols < columns)


@triton.jit
def softmax_three_passes(X, Y, columns, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_N)
    x_row = X + row * columns
    top = -float("inf")
    for start in range(0, columns, BLOCK_N):
        x = tl.load(x_row + start + offs, mask=start + offs < columns, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, tl.max(x, 0))
    total = 0.0
    for start in range(0, columns, BLOCK_N):
        x = tl.load(x_row + start + offs, mask=start + offs < columns, other=float("-inf")).to(tl.float32)
        total += tl.sum(tl.exp2((x - top) * 1.4426950408889634), 0)
    factor = 1.0 / total
    for start in range(0, columns, BLOCK_N):
        x = tl.load(x_row + start + offs, mask=start + offs < columns, other=float("-inf")).to(tl.float32)
        y = tl.exp2((x - top) * 1.4426950408889634) * factor
        tl.store(Y + row * columns + start + offs, y.to(Y.dtype.element_ty), mask=start + offs < columns)


@triton.jit
def softmax_two_passes(X, Y, columns, BLOCK_N: tl.constexpr):
    """Maximum and sum in one pass, the sum rescaled as the maximum grows."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_N)
    x_row = X + row * columns
    top = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK_N):
        x = tl.load(x_row + start + offs, mask=start + offs < columns, other=float("-inf")).to(tl.float32)
        x = x * 1.4426950408889634
        new_top = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp2(top - new_top) + tl.sum(tl.exp2(x - new_top), 0)
        top = new_top
    factor = 1.0 / total
    for start in range(0, columns, BLOCK_N):
        x = tl.load(x_row + start + offs, mask=start + offs < columns, other=float("-inf")).to(tl.float32)
        y = tl.exp2(x * 1.4426950408889634 - top) * factor
        tl.store(Y + row * columns + start + offs, y.to(Y.dtype.element_ty), mask=start + offs < columns)


# ---------------------------------------------------------------- matmul


@triton.jit
def matmul(A, B, C, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP_M: tl.constexpr):
    """C[m][n] = A[m][k] B[k][n], sizes multiples of the tile; GROUP_M rows of tiles walk the columns together."""
    program = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    in_group = GROUP_M * tiles_n
    group = program // in_group
    first_m = group * GROUP_M
    group_rows = tl.minimum(tiles_m - first_m, GROUP_M)
    tile_m = first_m + (program % in_group) % group_rows
    tile_n = (program % in_group) // group_rows
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_at = A + rows[:, None] * k + offs_k[None, :]
    b_at = B + offs_k[:, None] * n + cols[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_at)
        b = tl.load(b_at)
        acc = tl.dot(a, b, acc)
        a_at += BLOCK_K
        b_at += BLOCK_K * n
    tl.store(C + rows[:, None] * n + cols[None, :], acc.to(C.dtype.element_ty))


# ---------------------------------------------------------------- backward


@triton.jit
def backward_delta(O, DO, DELTA, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr):
    """Sums of O dO. Grid (batch * heads * seqlen / BLOCK_M,)."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    o = tl.load(O + rows[:, None] * HEAD_DIM + offs_d[None, :]).to(tl.float32)
    do = tl.load(DO + rows[:, None] * HEAD_DIM + offs_d[None, :]).to(tl.float32)
    tl.store(DELTA + rows, tl.sum(o * do, 1))


@triton.jit
def _dkdv_span(dk, dv, k, v, q_head, do_head, lse_head, delta_head, keys, lo, hi, qk_scale,
               HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, DIAGONAL: tl.constexpr):
    offs_m = tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    for start in range(lo, hi, BLOCK_M):
        rows = start + offs_m
        q = tl.load(q_head + rows[:, None] * HEAD_DIM + offs_d[None, :])
        lse = tl.load(lse_head + rows) * 1.4426950408889634
        s_t = tl.dot(k, tl.trans(q))
        p_t = tl.exp2(s_t * qk_scale - lse[None, :])
        if DIAGONAL:
            p_t = tl.where(rows[None, :] >= keys[:, None], p_t, 0.0)
        do = tl.load(do_head + rows[:, None] * HEAD_DIM + offs_d[None, :])
        dv = tl.dot(p_t.to(do.dtype), do, dv)
        delta = tl.load(delta_head + rows)
        dp_t = tl.dot(v, tl.trans(do))
        ds_t = p_t * (dp_t - delta[None, :])
        dk = tl.dot(ds_t.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def backward_dkdv(Q, K, V, DO, LSE, DELTA, DK, DV, seqlen, qk_scale, sm_scale,
                  HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Grid (tiles of keys, batch * heads): BLOCK_N keys stay, blocks of BLOCK_M queries pass."""
    tile = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    first = head * seqlen * HEAD_DIM
    keys = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    offsets = first + keys[:, None] * HEAD_DIM + offs_d[None, :]
    k = tl.load(K + offsets)
    v = tl.load(V + offsets)
    dk = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    lse_head = LSE + head * seqlen
    delta_head = DELTA + head * seqlen
    if CAUSAL:
        lo = tile * BLOCK_N // BLOCK_M * BLOCK_M
        middle = tl.cdiv((tile + 1) * BLOCK_N, BLOCK_M) * BLOCK_M
        dk, dv = _dkdv_span(dk, dv, k, v, Q + first, DO + first, lse_head, delta_head, keys, lo, middle, qk_scale,
                            HEAD_DIM, BLOCK_M, True)
        dk, dv = _dkdv_span(dk, dv, k, v, Q + first, DO + first, lse_head, delta_head, keys, middle, seqlen, qk_scale,
                            HEAD_DIM, BLOCK_M, False)
    else:
        dk, dv = _dkdv_span(dk, dv, k, v, Q + first, DO + first, lse_head, delta_head, keys, 0, seqlen, qk_scale,
                            HEAD_DIM, BLOCK_M, False)
    tl.store(DV + offsets, dv.to(DV.dtype.element_ty))
    tl.store(DK + offsets, (dk * sm_scale).to(DK.dtype.element_ty))


@triton.jit
def _dq_span(dq, q, do, lse, delta, k_head, v_head, rows, lo, hi, qk_scale,
             HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, DIAGONAL: tl.constexpr):
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        k = tl.load(k_head + cols[:, None] * HEAD_DIM + offs_d[None, :])
        v = tl.load(v_head + cols[:, None] * HEAD_DIM + offs_d[None, :])
        s = tl.dot(q, tl.trans(k))
        p = tl.exp2(s * qk_scale - lse[:, None])
        if DIAGONAL:
            p = tl.where(rows[:, None] >= cols[None, :], p, 0.0)
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def backward_dq(Q, K, V, DO, LSE, DELTA, DQ, seqlen, qk_scale, sm_scale,
                HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Grid (tiles of queries, batch * heads): BLOCK_M queries stay, blocks of BLOCK_N keys pass."""
    tile = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    first = head * seqlen * HEAD_DIM
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    offsets = first + rows[:, None] * HEAD_DIM + offs_d[None, :]
    q = tl.load(Q + offsets)
    do = tl.load(DO + offsets)
    lse = tl.load(LSE + head * seqlen + rows) * 1.4426950408889634
    delta = tl.load(DELTA + head * seqlen + rows)
    dq = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    if CAUSAL:
        middle = tile * BLOCK_M // BLOCK_N * BLOCK_N
        dq = _dq_span(dq, q, do, lse, delta, K + first, V + first, rows, 0, middle, qk_scale, HEAD_DIM, BLOCK_N, False)
        dq = _dq_span(dq, q, do, lse, delta, K + first, V + first, rows, middle, (tile + 1) * BLOCK_M, qk_scale,
                      HEAD_DIM, BLOCK_N, True)
    else:
        dq = _dq_span(dq, q, do, lse, delta, K + first, V + first, rows, 0, seqlen, qk_scale, HEAD_DIM, BLOCK_N, False)
    tl.store(DQ + offsets, (dq * sm_scale).to(DQ.dtype.element_ty))
