"""The fourth set that nobody has seen: shapes, head counts and blocks that no other file has, of this project's kernels too, and two kinds
of kernel that were never measured before (products and softmaxes in Triton).  Chosen before anything was measured
(measurements/HELDOUT.md)."""
from lists.foreign_kernels import BACKWARD, FOREIGN_COLUMNS, foreign_case, foreign_paged, foreign_product, triton_product, triton_softmax

FOREIGN_COLUMNS_OF = {
    "triton": FOREIGN_COLUMNS,
    "flex": [*FOREIGN_COLUMNS, "window"],
    "library": [*FOREIGN_COLUMNS, "dtype", "transpose_b"],
    "decode": [*FOREIGN_COLUMNS, "lengths", "page_size", "page_layout", "splits", "layout"],
    "rows": [*FOREIGN_COLUMNS, "block_k"],
}


def triton():
    for shape in ((3, 18, 18, 2560, 128, 1), (1, 20, 10, 5632, 128, 0), (4, 14, 14, 1408, 64, 1), (1, 6, 2, 14336, 64, 0),
                  (11, 8, 8, 768, 128, 0)):
        for config in ((64, 64, 4, 2), (64, 32, 4, 3), (128, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 3), (128, 32, 8, 3), (64, 128, 4, 3),
                       (128, 128, 4, 2)):
            yield foreign_case("triton", shape, config)


def flex():
    for shape in ((2, 18, 18, 2560, 128, 1), (1, 22, 22, 3584, 64, 0)):
        for config in ((64, 64, 4, 2), (128, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 2), (64, 32, 4, 3)):
            yield foreign_case("flex", shape, config)
    for config in ((64, 64, 4, 2), (128, 128, 8, 2)):
        yield foreign_case("flex", (1, 20, 4, 7168, 128, 1), config, window=640)


def library():
    for batch, heads, kv_heads, seqlen, head_dim in ((3, 18, 18, 2560, 128), (1, 20, 10, 5632, 128), (4, 14, 14, 1408, 64),
                                                     (1, 6, 2, 14336, 64), (11, 8, 8, 768, 128), (2, 9, 9, 1920, 256)):
        for causal in (0, 1):
            yield foreign_case("sdpa_flash", (batch, heads, kv_heads, seqlen, head_dim, causal))
        yield foreign_case("sdpa_cudnn", (batch, heads, kv_heads, seqlen, head_dim, 0))
    for batch, heads, seqlen, head_dim in ((3, 18, 2560, 128), (4, 14, 1408, 64)):
        yield foreign_case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, 1), **BACKWARD)
    for sizes in ((1, 4608, 4608, 4608), (1, 5632, 2048, 2048), (1, 2560, 10240, 2560), (1, 14336, 1792, 3584), (24, 1408, 1408, 128)):
        yield foreign_product(*sizes)
    for sizes in ((1, 4608, 4608, 4608), (1, 2560, 10240, 2560)):
        yield foreign_product(*sizes, dtype="bf16", transpose_b=1)


def decode():
    for lengths, heads, kv_heads, head_dim, splits in (("1800x20", 32, 4, 128, 3), ("9000:300x9:2600x3", 24, 8, 128, 5)):
        for config, page_size, page_layout in (((64, 4, 3), 32, "scattered"), ((64, 4, 2), 16, "scattered"),
                                               ((128, 4, 3), 128, "contiguous")):
            yield foreign_paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits)


def rows():
    """Products and softmaxes."""
    for batch, m, n, k in ((1, 4096, 4096, 4096), (1, 2048, 8192, 1024), (6, 1024, 1024, 512), (1, 1024, 1536, 6144)):
        for config in ((128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (64, 64, 64, 4, 4), (128, 64, 32, 4, 4), (64, 128, 128, 4, 2),
                       (128, 128, 64, 4, 2)):
            yield triton_product((batch, m, n, k), config)
    for num_rows, columns in ((12288, 1024), (4096, 5000), (30000, 512), (2000, 16384), (150, 12000)):
        for num_warps in (4, 8):
            block_n = 1 << (columns - 1).bit_length()
            if block_n >= num_warps * 256:
                yield triton_softmax(num_rows, columns, num_warps)


FOREIGN = {"triton": triton, "flex": flex, "library": library, "decode": decode, "rows": rows}
