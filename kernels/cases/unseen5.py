"""The fifth set that nobody has seen: shapes, head counts and blocks that no other file has.  Chosen before anything was measured (measurements/HELDOUT.md); the cases of this
project's own kernels are in make_cases.py."""
from unseen3 import case, paged, product
from unseen4 import COLUMNS as COLUMNS_BEFORE

COLUMNS = {name.replace("unseen4", "unseen5"): columns for name, columns in COLUMNS_BEFORE.items()}
# batch, heads, kv_heads, seqlen, head_dim, causal
SHAPES = ((2, 26, 26, 3328, 128, 0), (1, 28, 7, 4864, 128, 1), (6, 9, 9, 1664, 64, 0), (1, 10, 2, 11264, 64, 1), (1, 3, 3, 24576, 128, 0))


def triton():
    for shape in SHAPES:
        for config in ((64, 64, 4, 3), (64, 128, 4, 2), (128, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 2), (128, 32, 4, 3), (64, 32, 4, 2), (256, 64, 8, 3)):
            yield case("triton", shape, config)


def flex():
    for shape in ((2, 26, 26, 3328, 128, 0), (1, 28, 7, 4864, 128, 1)):
        for config in ((64, 64, 4, 3), (128, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 2), (64, 128, 4, 2)):
            yield case("flex", shape, config)
    for config in ((64, 64, 4, 3), (128, 128, 8, 2)):
        yield case("flex", (2, 15, 5, 4352, 64, 1), config, window=900)


def library():
    for shape in (*(shape[:5] for shape in SHAPES), (3, 7, 7, 2176, 256)):
        for causal in (0, 1):
            yield case("sdpa_flash", (*shape, causal))
            yield case("sdpa_cudnn", (*shape, causal))
    for batch, heads, seqlen, head_dim in ((2, 26, 1664, 128), (6, 9, 2304, 64)):
        yield case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, 0), **{"pass": "bwd"})
    for sizes in ((1, 3584, 3584, 7168), (1, 6656, 1536, 3072), (1, 1536, 12800, 2048), (1, 10752, 2688, 2688), (12, 1664, 1664, 128)):
        yield product(*sizes)
    for sizes in ((1, 3584, 3584, 7168), (1, 1536, 12800, 2048)):
        yield product(*sizes, dtype="bf16", transpose_b=1)


def decode():
    for lengths, heads, kv_heads, head_dim, splits in (("3300x12", 40, 8, 128, 4), ("14000:700x11:1900x4", 16, 4, 128, 6)):
        for config, page_size, page_layout in (((64, 4, 3), 16, "scattered"), ((64, 4, 2), 64, "contiguous"), ((128, 4, 2), 32, "scattered")):
            yield paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits)


def rows():
    """Products and softmaxes."""
    for batch, m, n, k in ((1, 3072, 3072, 3072), (1, 6144, 1024, 2048), (10, 768, 768, 768)):
        for config in ((128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3), (64, 128, 64, 4, 3), (128, 128, 32, 4, 4)):
            block_m, block_n, block_k, num_warps, num_stages = config
            yield case("triton_product", (batch, 1, 1, m, k, 0), (block_m, block_n, num_warps, num_stages), seqlen_kv=n, block_k=block_k)
    for num_rows, columns in ((9000, 2048), (25000, 768), (3000, 7000), (320, 20000)):
        for num_warps in (4, 8):
            block_n = 1 << (columns - 1).bit_length()
            if block_n >= num_warps * 256:
                yield case("triton_softmax", (1, 1, 1, num_rows, 1, 0), ("", block_n, num_warps, ""), seqlen_kv=columns, block_k="")


FILES = {"unseen5_triton.csv": triton, "unseen5_flex.csv": flex, "unseen5_library.csv": library, "unseen5_decode.csv": decode, "unseen5_rows.csv": rows}
