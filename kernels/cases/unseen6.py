"""The sixth set that nobody has seen: shapes, head counts and blocks that no other file has.  Chosen before anything was measured (measurements/HELDOUT.md); the cases of this
project's own kernels are in make_cases.py."""
from unseen3 import case, paged, product
from unseen4 import COLUMNS as COLUMNS_BEFORE

COLUMNS = {name.replace("unseen4", "unseen6"): columns for name, columns in COLUMNS_BEFORE.items()}
# batch, heads, kv_heads, seqlen, head_dim, causal
SHAPES = ((2, 19, 19, 3968, 128, 1), (1, 44, 11, 2944, 128, 0), (7, 6, 6, 2176, 64, 1), (1, 12, 4, 9728, 64, 0))


def triton():
    for shape in SHAPES:
        for config in ((64, 64, 4, 3), (64, 128, 8, 2), (128, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 2), (64, 32, 4, 4)):
            yield case("triton", shape, config)


def flex():
    for shape in ((2, 19, 19, 3968, 128, 1), (7, 6, 6, 2176, 64, 0)):
        for config in ((64, 64, 4, 2), (128, 64, 8, 2), (128, 128, 8, 2), (64, 32, 4, 3)):
            yield case("flex", shape, config)


def library():
    for shape in (*(shape[:5] for shape in SHAPES), (2, 5, 5, 3200, 256), (40, 24, 8, 448, 128)):
        for causal in (0, 1):
            yield case("sdpa_flash", (*shape, causal))
            yield case("sdpa_cudnn", (*shape, causal))
    for batch, heads, seqlen, head_dim in ((2, 19, 1984, 128), (7, 6, 2176, 64)):
        yield case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, 1), **{"pass": "bwd"})
    for sizes in ((1, 3840, 3840, 3840), (1, 1920, 7680, 5120), (1, 12800, 1280, 2560), (16, 1152, 1152, 64)):
        yield product(*sizes)
    yield product(1, 3840, 3840, 3840, dtype="bf16", transpose_b=1)


def decode():
    for lengths, heads, kv_heads, head_dim, splits in (("5200x9", 48, 8, 128, 3), ("21000:450x14:3100x5", 32, 8, 128, 8)):
        for config, page_size, page_layout in (((64, 4, 3), 32, "scattered"), ((128, 4, 2), 16, "contiguous")):
            yield paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits)


def rows():
    """Products and softmaxes."""
    for batch, m, n, k in ((1, 3584, 2560, 2560), (7, 1280, 1280, 640)):
        for config in ((128, 128, 64, 8, 3), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3), (64, 128, 32, 4, 4)):
            block_m, block_n, block_k, num_warps, num_stages = config
            yield case("triton_product", (batch, 1, 1, m, k, 0), (block_m, block_n, num_warps, num_stages), seqlen_kv=n, block_k=block_k)
    for num_rows, columns in ((17000, 1536), (5000, 4096), (700, 14000)):
        for num_warps in (4, 8):
            block_n = 1 << (columns - 1).bit_length()
            yield case("triton_softmax", (1, 1, 1, num_rows, 1, 0), ("", block_n, num_warps, ""), seqlen_kv=columns, block_k="")


FILES = {"unseen6_triton.csv": triton, "unseen6_flex.csv": flex, "unseen6_library.csv": library, "unseen6_decode.csv": decode, "unseen6_rows.csv": rows}
