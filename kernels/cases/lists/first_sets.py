"""The first two sets that nobody had seen: shapes that no other file has."""
from lists.foreign_kernels import BACKWARD, foreign_case
from lists.own_kernels import CORE, case, decode, pingpong, softmax_case, unfused, wgmma


def unseen_own():
    """Kernels of this project at blocks and shapes that no other file has."""
    rows = []
    shapes = ((3, 16, 16, 768, 64, 0), (2, 32, 4, 3072, 128, 1), (1, 24, 24, 3072, 64, 1), (1, 8, 1, 12288, 128, 0),
              (5, 12, 12, 768, 128, 0))
    for shape in shapes:
        for config in ((64, 96, 4, 2, "stages"), (128, 96, 8, 2, "stages"), (128, 48, 4, 2, "stages")):
            rows.append(case(shape, config))
    for shape in ((2, 32, 4, 3072, 128, 1), (1, 8, 1, 12288, 128, 0), (5, 12, 12, 768, 128, 0)):
        for copy in ("cp_async", "tma"):
            rows.append(wgmma(shape, (128, 96, 8, 2, "stages"), copy))
        rows.append(wgmma(shape, (64, 192, 4, 1, "stages"), "tma"))
        rows.append(pingpong(shape, (128, 96, 8, 2)))
        rows.append(pingpong(shape, (128, 64, 8, 3), persistent=1))
    for shape in ((2, 20, 20, 1280, 128, 0), (1, 16, 2, 5120, 128, 1)):
        for config in CORE[:2]:
            rows.append(case(shape, config))
    rows += [case((3, 16, 4, 1300, 64, 1), CORE[0], seqlen_kv=1300), case((1, 24, 24, 3333, 128, 0), CORE[1], seqlen_kv=3333),
             case((2, 16, 16, 700, 128, 1), CORE[0], seqlen_kv=5000)]
    rows += [decode(*one) for one in ((3, 64, 8, 12288, 128, 64, 3, 4), (24, 32, 8, 3072, 128, 64, 3, 2),
                                      (1, 40, 8, 49152, 128, 128, 2, 24), (7, 16, 16, 768, 64, 64, 3, 1),
                                      (2, 32, 4, 20480, 64, 128, 2, 12), (96, 32, 8, 640, 128, 64, 3, 1))]
    for shape in ((3, 12, 12, 768, 64, 0), (1, 24, 3, 3072, 128, 1), (2, 10, 10, 1536, 128, 0)):
        for kind in ("safe", "online"):
            rows.append(unfused(shape, 128, 128, 8, kind))
    for num_rows, columns in ((20000, 1536), (6144, 6144), (700, 49152), (264, 24576)):
        rows += [softmax_case("safe", num_rows, columns, 1, 4), softmax_case("online", num_rows, columns, 1, 8),
                 softmax_case("online", num_rows, columns, 4, 4)]
    return rows


def unseen_triton():
    rows = []
    for shape in ((6, 16, 16, 768, 128, 0), (2, 32, 4, 3072, 128, 1), (1, 16, 2, 12288, 64, 0), (4, 24, 24, 3072, 64, 1),
                  (1, 12, 12, 12288, 128, 1), (1, 20, 20, 6144, 128, 0), (3, 40, 5, 1536, 64, 0)):
        for config in ((128, 64, 4, 3), (256, 64, 8, 3), (64, 128, 8, 2), (128, 16, 4, 4), (256, 128, 8, 2), (256, 32, 8, 2)):
            rows.append(foreign_case("triton", shape, config))
    return rows


def unseen_library():
    rows = []
    for source in ("sdpa_flash", "sdpa_cudnn"):
        for batch, heads, kv_heads, seqlen, head_dim in ((6, 16, 16, 768, 128), (2, 32, 4, 3072, 64), (1, 16, 2, 12288, 128),
                                                         (2, 16, 16, 3072, 96), (5, 7, 7, 1920, 64)):
            for causal in (0, 1):
                rows.append(foreign_case(source, (batch, heads, kv_heads, seqlen, head_dim, causal)))
    return rows


def unseen2_triton():
    """The second set that nobody had seen: shapes that no other file has, over the tuning space."""
    rows = []
    for shape in ((2, 24, 24, 2560, 128, 1), (1, 48, 6, 4608, 128, 0), (12, 8, 8, 896, 128, 0), (1, 10, 10, 20480, 128, 0),
                  (4, 40, 8, 1280, 64, 1), (2, 6, 6, 10240, 64, 0)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3):
                    rows.append(foreign_case("triton", shape, (block_m, block_n, warps, stages)))
    return rows


def unseen2_flex():
    rows = []
    for shape in ((2, 16, 16, 3584, 128, 0), (1, 28, 4, 7168, 128, 1), (4, 14, 2, 2560, 64, 1), (1, 8, 8, 24576, 128, 0),
                  (1, 32, 8, 10240, 64, 0)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3):
                    rows.append(foreign_case("flex", shape, (block_m, block_n, warps, stages)))
    return rows


def unseen2_library():
    rows = []
    shapes = ((2, 24, 24, 2560, 128), (1, 48, 6, 4608, 128), (12, 8, 8, 896, 128), (1, 10, 10, 20480, 128), (4, 40, 8, 1280, 64),
              (2, 6, 6, 10240, 64), (1, 28, 4, 7168, 128), (4, 14, 2, 2560, 64),
              (32, 32, 32, 384, 64), (1, 3, 3, 14336, 128), (2, 9, 9, 4000, 128), (1, 16, 16, 2600, 64), (3, 8, 8, 1792, 256),
              (1, 64, 64, 1536, 128))
    for batch, heads, kv_heads, seqlen, head_dim in shapes:
        for causal in (0, 1):
            rows.append(foreign_case("sdpa_flash", (batch, heads, kv_heads, seqlen, head_dim, causal)))
        rows.append(foreign_case("sdpa_cudnn", (batch, heads, kv_heads, seqlen, head_dim, 0)))
    for batch, heads, kv_heads, seqlen, head_dim in shapes[:6]:
        for causal in (0, 1):
            rows.append(foreign_case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, causal), **BACKWARD))
    for batch, m, n, k in ((1, 3072, 3072, 3072), (1, 6144, 6144, 6144), (1, 5120, 5120, 1280), (1, 10240, 2560, 2560),
                           (1, 2560, 10240, 2560), (1, 7168, 7168, 512), (1, 8192, 1024, 8192), (1, 4096, 14336, 4096),
                           (1, 4096, 4096, 14336), (1, 20480, 4096, 1024), (24, 2560, 2560, 128), (24, 2560, 128, 2560),
                           (48, 1280, 1280, 64), (48, 1280, 64, 1280), (10, 10240, 10240, 128), (10, 10240, 128, 10240),
                           (4, 4096, 4096, 4096), (8, 2048, 2048, 512), (96, 896, 896, 128), (96, 896, 128, 896)):
        rows.append(dict(foreign_case("cublas", (batch, 1, 1, m, k, 0)), seqlen_kv=n))
    return rows
