"""Kernels that this project did not write: Triton's, PyTorch's attention, cuBLAS."""
from lists.foreign_kernels import BACKWARD, foreign_case
from lists.own_kernels import GQA_128, MID_64, MID_128


def triton():
    rows = []
    for shape in ((4, 16, 16, 4096, 128, 0), (2, 32, 8, 4096, 128, 1), (16, 32, 32, 1024, 64, 0), (2, 32, 32, 8192, 64, 1)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3, 4):
                    rows.append(foreign_case("triton", shape, (block_m, block_n, warps, stages)))
    best = ((128, 64, 4, 3), (128, 128, 8, 2), (64, 64, 4, 3))
    for shape in ((1, 8, 8, 32768, 128, 0), (1, 4, 4, 65536, 128, 1), (1, 4, 4, 65536, 128, 0), (32, 16, 16, 512, 128, 0),
                  (1, 32, 4, 16384, 128, 1), (1, 8, 8, 2048, 128, 0),
                  (8, 8, 8, 2048, 256, 0)):
        for config in best:
            rows.append(foreign_case("triton", shape, config))
    return rows


def triton_more():
    rows = []
    for shape in ((1, 16, 16, 16384, 128, 1), (32, 16, 16, 512, 128, 1), (8, 32, 4, 2048, 128, 0), (1, 12, 12, 6144, 64, 0),
                  (3, 20, 5, 3072, 128, 1)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3):
                    rows.append(foreign_case("triton", shape, (block_m, block_n, warps, stages)))
    for shape in ((1, 32, 32, 8192, 128, 0), (1, 128, 128, 2048, 128, 1), (2, 8, 8, 8192, 256, 1), (1, 2, 2, 131072, 128, 1)):
        for config in ((64, 32, 4, 2), (64, 64, 4, 2), (128, 32, 8, 2), (128, 64, 8, 2)):
            rows.append(foreign_case("triton", shape, config))
    return rows


def descriptors():
    """Triton's attention with tensor descriptors; O of 128 x 128 tiles on four warps would fill the register file."""
    rows = []
    for shape in ((2, 16, 16, 2048, 128, 0), (4, 32, 8, 4096, 128, 1), (8, 16, 16, 1024, 64, 0), (1, 24, 6, 8192, 64, 1),
                  (32, 16, 16, 512, 128, 1), (3, 10, 5, 3072, 128, 0)):
        for config in ((64, 32, 4, 2), (64, 32, 4, 4), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2), (128, 32, 8, 3),
                       (128, 64, 4, 2), (128, 64, 8, 2), (128, 64, 8, 3), (128, 128, 8, 2), (128, 128, 8, 3)):
            rows.append(foreign_case("triton_descriptors", shape, config))
    return rows


def backward():
    """Triton's backward kernels: block_m rows a step, block_n kept; narrow and wide steps, one warpgroup and two."""
    rows = []
    for shape in ((4, 16, 16, 2048, 64, 0), (4, 16, 16, 2048, 64, 1), (2, 16, 16, 4096, 128, 0), (1, 24, 24, 3072, 128, 1),
                  (16, 8, 8, 768, 64, 1), (8, 12, 12, 1536, 128, 0)):
        for config in ((32, 128, 4, 2), (32, 128, 4, 4), (32, 64, 4, 3), (64, 64, 4, 2), (64, 128, 4, 1), (64, 128, 8, 2),
                       (64, 128, 8, 3), (128, 128, 8, 2), (16, 128, 4, 3)):
            rows.append(foreign_case("triton_backward", shape, config, **BACKWARD))
    return rows


def library():
    rows = []
    for heads_dim in (64, 128):
        heads = 2048 // heads_dim
        for batch, seqlen in ((32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384)):
            for causal in (0, 1):
                for source in ("sdpa_flash", "sdpa_cudnn"):
                    rows.append(foreign_case(source, (batch, heads, heads, seqlen, heads_dim, causal)))
    for seqlen, heads in ((32768, 8), (65536, 4), (131072, 2)):
        for causal in (0, 1):
            for source in ("sdpa_flash", "sdpa_cudnn"):
                rows.append(foreign_case(source, (1, heads, heads, seqlen, 128, causal)))
    for source in ("sdpa_flash", "sdpa_cudnn"):
        for kv_heads in (4, 8):
            rows.append(foreign_case(source, (2, 32, kv_heads, 4096, 128, 1)))
        for batch, seqlen in ((4, 2048), (1, 8192)):
            rows.append(foreign_case(source, (batch, 16, 16, seqlen, 128, 0), **BACKWARD))
            rows.append(foreign_case(source, (batch, 16, 16, seqlen, 128, 1), **BACKWARD))
        rows.append(foreign_case(source, (4, 8, 8, 4096, 256, 0)))
    for batch, m, n, k in ((1, 4096, 4096, 4096), (1, 8192, 8192, 8192), (1, 8192, 8192, 128), (64, 2048, 2048, 128), (64, 2048, 128, 2048),
                           (16, 4096, 4096, 64), (1, 16384, 1024, 4096)):
        rows.append(dict(foreign_case("cublas", (batch, 1, 1, m, k, 0)), seqlen_kv=n))
    return rows


def library_more():
    rows = []
    for source in ("sdpa_flash", "sdpa_cudnn"):
        for batch, heads, kv_heads, seqlen, head_dim in ((3, 20, 20, 3072, 128), (1, 12, 12, 6144, 64), (2, 32, 4, 2048, 128),
                                                         (1, 64, 8, 8192, 128), (8, 8, 8, 1024, 256), (1, 8, 8, 16384, 256),
                                                         (64, 16, 16, 256, 128), (1, 1, 1, 8192, 128), (1, 5, 5, 4096, 128),
                                                         (1, 40, 8, 32768, 128), (2, 24, 24, 1536, 64)):
            for causal in (0, 1):
                rows.append(foreign_case(source, (batch, heads, kv_heads, seqlen, head_dim, causal)))
    for batch, m, n, k in ((1, 2048, 2048, 2048), (1, 4096, 16384, 1024), (1, 1024, 1024, 16384), (32, 1024, 1024, 64),
                           (32, 1024, 64, 1024), (16, 4096, 128, 4096), (8, 8192, 8192, 128), (1, 16384, 16384, 4096),
                           (1, 12288, 4096, 4096), (128, 512, 512, 128)):
        rows.append(dict(foreign_case("cublas", (batch, 1, 1, m, k, 0)), seqlen_kv=n))
    return rows


PRODUCT_SIZES = ((4096, 4096, 4096), (8192, 4096, 4096), (2048, 2048, 8192), (8192, 8192, 2048), (1024, 4096, 1024), (4096, 14336, 4096),
                 (16384, 2048, 512), (512, 8192, 4096))


def types():
    """Products of numbers of one byte: the library picks its kernels."""
    sizes = [*(("fp8_e4m3", size) for size in PRODUCT_SIZES), *(("int8", size) for size in PRODUCT_SIZES[:6])]
    return [dict(foreign_case("cublas", (1, 1, 1, m, k, 0)), seqlen_kv=n, dtype=dtype, transpose_b=1) for dtype, (m, n, k) in sizes]


def triton_wide():
    """Products in Triton whose tiles have fewer rows than its warpgroups: these lie side by side."""
    tiles = ((64, 128, 64, 8, 3), (64, 256, 64, 8, 3), (64, 128, 32, 8, 4), (128, 256, 64, 16, 3), (128, 128, 64, 16, 3),
             (64, 256, 32, 16, 4))
    sizes = ((4096, 4096, 1024), (2048, 1024, 4096))
    return [dict(foreign_case("triton_product", (1, 1, 1, m, k, 0), (block_m, block_n, warps, stages)), seqlen_kv=n, block_k=block_k)
            for block_m, block_n, block_k, warps, stages in tiles for m, n, k in sizes]


def efficient():
    """PyTorch's memory-efficient attention (CUTLASS): heads of 64 and less, of 128 and less, and of more, whose sums go through memory."""
    rows = []
    for head_dim in (32, 64, 96, 128, 256):
        heads = 2048 // head_dim
        for batch, seqlen in ((16, 512), (8, 1024), (2, 4096)):
            for causal in (0, 1):
                rows.append(foreign_case("sdpa_efficient", (batch, heads, heads, seqlen, head_dim, causal)))
    for batch, heads, seqlen, head_dim in ((1, 33, 256, 64), (1, 16, 2600, 64), (3, 7, 1000, 128), (1, 8, 16384, 64), (1, 4, 16384, 128),
                                           (1, 132, 64, 128), (1, 132, 64, 64), (24, 12, 384, 80)):
        for causal in (0, 1):
            rows.append(foreign_case("sdpa_efficient", (batch, heads, heads, seqlen, head_dim, causal)))
    for heads, queries, keys, head_dim in ((132, 64, 2048, 64), (264, 64, 2048, 64), (528, 64, 2048, 64), (132, 64, 2048, 128),
                                           (264, 64, 2048, 128), (20, 512, 4096, 128)):
        rows.append(dict(foreign_case("sdpa_efficient", (1, heads, heads, queries, head_dim, 0)), seqlen_kv=keys))
    return rows


def splits():
    """FlashAttention-2's split kernels in PyTorch: few queries against many keys."""
    rows = []
    for source in ("sdpa_flash", "aten_flash"):
        for batch, heads, kv_heads, queries, keys, head_dim in (
                (1, 32, 32, 1, 4096, 128), (1, 32, 8, 1, 8192, 128), (1, 32, 8, 1, 65536, 128), (4, 32, 8, 1, 8192, 128),
                (1, 16, 2, 1, 32768, 128), (2, 64, 8, 1, 16384, 128),
                (1, 12, 12, 1, 16384, 64), (1, 24, 8, 1, 5000, 64), (3, 16, 16, 1, 3000, 64), (1, 8, 1, 1, 131072, 128),
                (1, 10, 10, 1, 2048, 256), (1, 16, 4, 1, 12288, 96),
                (1, 32, 32, 4, 8192, 128), (1, 16, 16, 16, 16384, 128), (2, 8, 8, 64, 8192, 64), (1, 4, 4, 128, 32768, 128)):
            rows.append(dict(foreign_case(source, (batch, heads, kv_heads, queries, head_dim, 0)), seqlen_kv=keys))
    return rows


def foreign_smoke():
    return [foreign_case("triton", MID_128, (128, 64, 4, 3)), foreign_case("triton", GQA_128, (128, 64, 8, 2)),
            foreign_case("triton", MID_64, (64, 64, 4, 2)),
            foreign_case("sdpa_flash", MID_128), foreign_case("sdpa_cudnn", MID_128), foreign_case("sdpa_flash", GQA_128),
            foreign_case("sdpa_cudnn", GQA_128),
            foreign_case("sdpa_flash", MID_128, **BACKWARD), dict(foreign_case("cublas", (1, 1, 1, 4096, 4096, 0)))]
