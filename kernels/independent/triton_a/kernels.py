"""Triton kernels: attention forward in four forms, split and paged decoding, softmax, matrix product."""
import triton
import triton.language as tl


@triton.jit
def fwd_blockptr(Q, K, V, Out, Lse, qk_scale, n_q, n_kv,
                 HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
                 BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Forward through block pointers, exp2 with the scale folded in, one loop, causal by mask; bhsd, whole tiles.
    Grid (query tiles, batch * heads)."""
    pid_m = tl.program_id(0)
    bh = tl.program_id(1)
    q_base = Q + bh.to(tl.int64) * n_q * HEAD_DIM
    k_base = K + bh.to(tl.int64) * n_kv * HEAD_DIM
    v_base = V + bh.to(tl.int64) * n_kv * HEAD_DIM
    o_base = Out + bh.to(tl.int64) * n_q * HEAD_DIM

    q_bp = tl.make_block_ptr(base=q_base, shape=(n_q, HEAD_DIM), strides=(HEAD_DIM, 1),
                             offsets=(pid_m * BLOCK_M, 0), block_shape=(BLOCK_M, HEAD_DIM), order=(1, 0))
    k_bp = tl.make_block_ptr(base=k_base, shape=(HEAD_DIM, n_kv), strides=(1, HEAD_DIM),
                             offsets=(0, 0), block_shape=(HEAD_DIM, BLOCK_N), order=(0, 1))
    v_bp = tl.make_block_ptr(base=v_base, shape=(n_kv, HEAD_DIM), strides=(HEAD_DIM, 1),
                             offsets=(0, 0), block_shape=(BLOCK_N, HEAD_DIM), order=(1, 0))
    o_bp = tl.make_block_ptr(base=o_base, shape=(n_q, HEAD_DIM), strides=(HEAD_DIM, 1),
                             offsets=(pid_m * BLOCK_M, 0), block_shape=(BLOCK_M, HEAD_DIM), order=(1, 0))

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) + float("-inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    q = tl.load(q_bp)
    hi = n_kv
    if CAUSAL:
        hi = tl.minimum((pid_m + 1) * BLOCK_M, n_kv)

    for start_n in range(0, hi, BLOCK_N):
        k = tl.load(k_bp)
        qk = tl.dot(q, k)
        if CAUSAL:
            keep = offs_m[:, None] >= (start_n + offs_n)[None, :]
            qk = tl.where(keep, qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
        p = tl.exp2(qk * qk_scale - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_bp)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
        k_bp = tl.advance(k_bp, (0, BLOCK_N))
        v_bp = tl.advance(v_bp, (BLOCK_N, 0))

    acc = acc / l_i[:, None]
    tl.store(Lse + bh * n_q + offs_m, (m_i + tl.log2(l_i)) * 0.6931471805599453)
    tl.store(o_bp, acc.to(Out.dtype.element_ty))


@triton.jit
def fwd_strided(Q, K, V, Out, Lse, sm_scale,
                stride_qb, stride_qh, stride_qm,
                stride_kb, stride_kh, stride_kn,
                stride_vb, stride_vh, stride_vn,
                stride_ob, stride_oh, stride_om,
                n_heads, n_q, n_kv,
                HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Forward through pointers and strides, lengths of any size, natural exponent, scale in the loop.
    Grid (query tiles, heads, batch)."""
    pid_m = tl.program_id(0)
    h = tl.program_id(1)
    b = tl.program_id(2)

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)

    q_ptrs = Q + b * stride_qb + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :]
    k_ptrs = K + b * stride_kb + h * stride_kh + offs_n[:, None] * stride_kn + offs_d[None, :]
    v_ptrs = V + b * stride_vb + h * stride_vh + offs_n[:, None] * stride_vn + offs_d[None, :]

    q = tl.load(q_ptrs, mask=offs_m[:, None] < n_q, other=0.0)

    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    end = n_kv
    if CAUSAL:
        end = tl.minimum((pid_m + 1) * BLOCK_M, n_kv)

    for start in range(0, end, BLOCK_N):
        cols = start + offs_n
        k = tl.load(k_ptrs, mask=cols[:, None] < n_kv, other=0.0)
        s = tl.dot(q, tl.trans(k)) * sm_scale
        valid = (cols < n_kv)[None, :]
        if CAUSAL:
            s = tl.where(valid & (offs_m[:, None] >= cols[None, :]), s, float("-inf"))
        else:
            s = tl.where(valid, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(s - m_new[:, None])
        v = tl.load(v_ptrs, mask=cols[:, None] < n_kv, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        m_i = m_new
        k_ptrs += BLOCK_N * stride_kn
        v_ptrs += BLOCK_N * stride_vn

    out = acc / l_i[:, None]
    o_ptrs = Out + b * stride_ob + h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    tl.store(o_ptrs, out.to(Out.dtype.element_ty), mask=offs_m[:, None] < n_q)
    tl.store(Lse + (b * n_heads + h) * n_q + offs_m, m_i + tl.log(l_i), mask=offs_m < n_q)


@triton.jit
def _tiles(q, acc, m_i, l_i, k_ptrs, v_ptrs, lo, hi, offs_m, offs_n, qk_scale,
           HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    """Keys [lo, hi); K is read transposed through pointers."""
    for start_n in range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        kt = tl.load(k_ptrs + start_n * HEAD_DIM)
        qk = tl.dot(q, kt) * qk_scale
        if MASKED:
            qk = tl.where(offs_m[:, None] >= start_n + offs_n[None, :], qk, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs + start_n * HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    return acc, m_i, l_i


@triton.jit
def fwd_two_stage(Q, K, V, Out, Lse, qk_scale, n_ctx,
                  HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Causal forward in two loops: tiles left of the diagonal without mask, then those on it; grouped queries.
    Grid (batch * heads, query tiles), longest tiles first."""
    bh = tl.program_id(0)
    pid_m = tl.num_programs(1) - 1 - tl.program_id(1)
    b = bh // HEADS
    h = bh % HEADS
    kvh = b * KV_HEADS + h // (HEADS // KV_HEADS)

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)

    q = tl.load(Q + bh * n_ctx * HEAD_DIM + offs_m[:, None] * HEAD_DIM + offs_d[None, :])
    k_ptrs = K + kvh * n_ctx * HEAD_DIM + offs_n[None, :] * HEAD_DIM + offs_d[:, None]
    v_ptrs = V + kvh * n_ctx * HEAD_DIM + offs_n[:, None] * HEAD_DIM + offs_d[None, :]

    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    diag = pid_m * BLOCK_M
    acc, m_i, l_i = _tiles(q, acc, m_i, l_i, k_ptrs, v_ptrs, 0, diag, offs_m, offs_n, qk_scale,
                           HEAD_DIM, BLOCK_N, False)
    acc, m_i, l_i = _tiles(q, acc, m_i, l_i, k_ptrs, v_ptrs, diag, diag + BLOCK_M, offs_m, offs_n, qk_scale,
                           HEAD_DIM, BLOCK_N, True)

    inv = 1.0 / l_i
    acc = acc * inv[:, None]
    tl.store(Out + bh * n_ctx * HEAD_DIM + offs_m[:, None] * HEAD_DIM + offs_d[None, :],
             acc.to(Out.dtype.element_ty))
    tl.store(Lse + bh * n_ctx + offs_m, (m_i + tl.log2(l_i)) * 0.6931471805599453)


@triton.jit
def fwd_prescaled(Q, K, V, Out, Lse, qk_scale, n_q, n_kv, n_heads,
                  HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, LAZY: tl.constexpr,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """bf16 forward, scale folded into q once. LAZY: the running maximum moves only when a row grew by more than 2^8, and the sums are
    rescaled only if some row of the tile moved. Grid (query tiles, heads, batch)."""
    tile = tl.program_id(0)
    bh = tl.program_id(2) * n_heads + tl.program_id(1)
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)

    q_off = bh * n_q * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :]
    kv_off = bh * n_kv * HEAD_DIM + keys[:, None] * HEAD_DIM + dims[None, :]
    k_ptrs = K + kv_off
    v_ptrs = V + kv_off

    q = tl.load(Q + q_off)
    q = (q.to(tl.float32) * qk_scale).to(tl.bfloat16)

    row_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    end = n_kv
    if CAUSAL:
        end = (tile + 1) * BLOCK_M

    for j in range(0, end, BLOCK_N):
        k = tl.load(k_ptrs)
        v = tl.load(v_ptrs)
        s = tl.dot(q, tl.trans(k))
        if CAUSAL:
            s = tl.where(rows[:, None] >= (j + keys)[None, :], s, float("-inf"))
        tile_max = tl.max(s, 1)
        if LAZY:
            new_max = tl.where(tile_max > row_max + 8.0, tile_max, row_max)
        else:
            new_max = tl.maximum(row_max, tile_max)
        corr = tl.exp2(row_max - new_max)
        p = tl.exp2(s - new_max[:, None])
        row_sum = row_sum * corr + tl.sum(p, 1)
        if LAZY:
            moved = tl.max(new_max - row_max, 0)
            if moved > 0.0:
                acc = acc * corr[:, None]
        else:
            acc = acc * corr[:, None]
        acc = tl.dot(p.to(tl.bfloat16), v, acc)
        row_max = new_max
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM

    acc = acc / row_sum[:, None]
    tl.store(Out + q_off, acc.to(tl.bfloat16))
    tl.store(Lse + bh * n_q + rows, (row_max + tl.log2(row_sum)) * 0.6931471805599453)


@triton.jit
def decode_split(Q, K, V, PartO, PartL, qk_scale, n_kv, per_split,
                 HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr,
                 BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr):
    """Split-KV decoding: the query heads of a KV head are the rows, padded to BLOCK_H. PartO fp32 [b][h][split][d], PartL fp32
    [b][h][split], logarithms to base 2. Grid (splits, kv heads, batch)."""
    split = tl.program_id(0)
    kvh = tl.program_id(1)
    b = tl.program_id(2)
    GROUP: tl.constexpr = HEADS // KV_HEADS

    offs_g = tl.arange(0, BLOCK_H)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    live = offs_g < GROUP
    row = b * HEADS + kvh * GROUP + offs_g

    q = tl.load(Q + row[:, None] * HEAD_DIM + offs_d[None, :], mask=live[:, None], other=0.0)
    base = (b * KV_HEADS + kvh).to(tl.int64) * n_kv * HEAD_DIM

    m_i = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, HEAD_DIM], dtype=tl.float32)

    lo = split * per_split
    hi = tl.minimum(lo + per_split, n_kv)
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        inside = cols < hi
        k = tl.load(K + base + cols[None, :] * HEAD_DIM + offs_d[:, None], mask=inside[None, :], other=0.0)
        s = tl.dot(q, k) * qk_scale
        s = tl.where(inside[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + base + cols[:, None] * HEAD_DIM + offs_d[None, :], mask=inside[:, None], other=0.0)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    part = row * SPLITS + split
    tl.store(PartO + part[:, None] * HEAD_DIM + offs_d[None, :], acc / l_i[:, None], mask=live[:, None])
    tl.store(PartL + part, m_i + tl.log2(l_i), mask=live)


@triton.jit
def decode_combine(PartO, PartL, Out, Lse,
                   HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr, SPLITS_POW2: tl.constexpr):
    """Grid (batch * heads,)."""
    row = tl.program_id(0)
    offs_s = tl.arange(0, SPLITS_POW2)
    offs_d = tl.arange(0, HEAD_DIM)
    ok = offs_s < SPLITS
    lse = tl.load(PartL + row * SPLITS + offs_s, mask=ok, other=float("-inf"))
    top = tl.max(lse, 0)
    w = tl.exp2(lse - top)
    total = tl.sum(w, 0)
    o = tl.load(PartO + (row * SPLITS + offs_s)[:, None] * HEAD_DIM + offs_d[None, :],
                mask=ok[:, None], other=0.0)
    out = tl.sum(o * w[:, None], 0) / total
    tl.store(Out + row * HEAD_DIM + offs_d, out.to(Out.dtype.element_ty))
    tl.store(Lse + row, (top + tl.log2(total)) * 0.6931471805599453)


@triton.jit
def softmax_row(X, Y, stride_x, stride_y, n_cols, BLOCK: tl.constexpr):
    """One row a program."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(X + row * stride_x + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    y = e / tl.sum(e, axis=0)
    tl.store(Y + row * stride_y + cols, y.to(Y.dtype.element_ty), mask=cols < n_cols)


@triton.jit
def matmul(A, B, C, M, N, K, stride_am, stride_bk, stride_cm,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """C[M,N] = A[M,K] B[K,N], tiles launched in groups of GROUP_M rows."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    group = pid // in_group
    first_m = group * GROUP_M
    group_rows = tl.minimum(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % group_rows
    pid_n = (pid % in_group) // group_rows

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = A + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = B + offs_k[:, None] * stride_bk + offs_n[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    tl.store(C + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(C.dtype.element_ty))


@triton.jit
def paged_decode(Q, KCache, VCache, Table, Lens, Out, Lse, PartO, PartL, qk_scale, table_stride, per_split,
                 HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE: tl.constexpr,
                 BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr):
    """Paged decoding; caches [page][kv head][token in page][d], the block table is read in the loop. SPLITS == 1 writes the result, else
    parts for decode_combine. Grid (splits, kv heads, batch)."""
    split = tl.program_id(0)
    kvh = tl.program_id(1)
    b = tl.program_id(2)
    GROUP: tl.constexpr = HEADS // KV_HEADS
    PAGE_ELEMS: tl.constexpr = KV_HEADS * PAGE * HEAD_DIM

    length = tl.load(Lens + b)
    offs_g = tl.arange(0, BLOCK_H)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    live = offs_g < GROUP
    row = b * HEADS + kvh * GROUP + offs_g
    q = tl.load(Q + row[:, None] * HEAD_DIM + offs_d[None, :], mask=live[:, None], other=0.0)

    m_i = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, HEAD_DIM], dtype=tl.float32)

    lo = split * per_split
    hi = tl.minimum(lo + per_split, length)
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        inside = cols < hi
        if BLOCK_N == PAGE:
            # one page a step
            page = tl.load(Table + b * table_stride + start // PAGE).to(tl.int64)
            tok = page * PAGE_ELEMS + kvh * (PAGE * HEAD_DIM) + offs_n * HEAD_DIM
        else:
            # several pages a step (or a part of one): look every token's page up
            page = tl.load(Table + b * table_stride + cols // PAGE, mask=inside, other=0).to(tl.int64)
            tok = page * PAGE_ELEMS + kvh * (PAGE * HEAD_DIM) + (cols % PAGE) * HEAD_DIM
        k = tl.load(KCache + tok[None, :] + offs_d[:, None], mask=inside[None, :], other=0.0)
        s = tl.dot(q, k) * qk_scale
        s = tl.where(inside[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.exp2(m_i - m_new)
        p = tl.exp2(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(VCache + tok[:, None] + offs_d[None, :], mask=inside[:, None], other=0.0)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    acc = acc / l_i[:, None]
    lse = m_i + tl.log2(l_i)
    if SPLITS == 1:
        tl.store(Out + row[:, None] * HEAD_DIM + offs_d[None, :], acc.to(Out.dtype.element_ty), mask=live[:, None])
        tl.store(Lse + row, lse * 0.6931471805599453, mask=live)
    else:
        part = row * SPLITS + split
        tl.store(PartO + part[:, None] * HEAD_DIM + offs_d[None, :], acc, mask=live[:, None])
        tl.store(PartL + part, lse, mask=live)
