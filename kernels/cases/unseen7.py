"""The seventh set that nobody has seen: shapes, head counts and blocks that no other file has.  Chosen before anything was measured (measurements/HELDOUT.md); the cases of this
project's own kernels are in make_cases.py."""
from unseen3 import case, paged, product
from unseen4 import COLUMNS as COLUMNS_BEFORE

COLUMNS = {name.replace("unseen4", "unseen7"): columns for name, columns in COLUMNS_BEFORE.items()}
# batch, heads, kv_heads, seqlen, head_dim, causal
SHAPES = ((3, 13, 13, 3328, 128, 0), (1, 42, 14, 4736, 128, 1), (5, 18, 6, 1664, 64, 0), (1, 9, 9, 11264, 64, 1))


def triton():
    for shape in SHAPES:
        for config in ((64, 64, 4, 2), (64, 64, 8, 3), (128, 32, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (256, 64, 8, 2)):
            yield case("triton", shape, config)


def flex():
    for shape in ((3, 13, 13, 3328, 128, 0), (1, 9, 9, 11264, 64, 1)):
        for config in ((64, 128, 4, 2), (128, 64, 4, 2), (128, 64, 8, 3), (128, 32, 8, 2)):
            yield case("flex", shape, config)


def library():
    for shape in (*(shape[:5] for shape in SHAPES), (1, 7, 7, 4608, 256), (24, 20, 20, 576, 96)):
        for causal in (0, 1):
            yield case("sdpa_flash", (*shape, causal))
            yield case("sdpa_cudnn", (*shape, causal))
    for batch, heads, seqlen, head_dim in ((3, 13, 1664, 128), (5, 18, 1664, 64)):
        yield case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, 1), **{"pass": "bwd"})
    for sizes in ((1, 5632, 5632, 2816), (1, 1536, 9216, 4608), (1, 11264, 1408, 1408), (12, 1792, 128, 1792)):
        yield product(*sizes)
    yield product(1, 5632, 5632, 2816, dtype="bf16", transpose_b=1)


def decode():
    for lengths, heads, kv_heads, head_dim, splits in (("2700x20", 40, 8, 128, 2), ("35000:900x10:6100x3", 28, 4, 128, 10)):
        for config, page_size, page_layout in (((64, 4, 2), 16, "scattered"), ((32, 4, 4), 32, "contiguous")):
            yield paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits)


def rows():
    """Products and softmaxes."""
    for batch, m, n, k in ((1, 4608, 2304, 3072), (5, 1536, 1024, 768)):
        for config in ((128, 256, 64, 8, 3), (128, 128, 32, 4, 4), (64, 128, 64, 4, 3), (128, 64, 32, 4, 4)):
            block_m, block_n, block_k, num_warps, num_stages = config
            yield case("triton_product", (batch, 1, 1, m, k, 0), (block_m, block_n, num_warps, num_stages), seqlen_kv=n, block_k=block_k)
    for num_rows, columns in ((26000, 1024), (3500, 7000), (400, 25000)):
        for num_warps in (4, 8):
            block_n = 1 << (columns - 1).bit_length()
            yield case("triton_softmax", (1, 1, 1, num_rows, 1, 0), ("", block_n, num_warps, ""), seqlen_kv=columns, block_k="")


FILES = {"unseen7_triton.csv": triton, "unseen7_flex.csv": flex, "unseen7_library.csv": library, "unseen7_decode.csv": decode, "unseen7_rows.csv": rows}
