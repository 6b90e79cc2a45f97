"""The third set that nobody has seen: kernels of others at shapes, head counts and blocks that no other file has, and for the first time
windows, dropout, sequences of several lengths, block masks, pages, bf16 and transposed products.  Chosen before anything was measured
(measurements/HELDOUT.md)."""
from lists.foreign_kernels import BACKWARD, FOREIGN_COLUMNS, foreign_case, foreign_paged, foreign_product, of_lengths

FOREIGN_COLUMNS_OF = {
    "triton": FOREIGN_COLUMNS,
    "flex": [*FOREIGN_COLUMNS, "window", "mask", "mask_width", "lengths"],
    "flash": [*FOREIGN_COLUMNS, "window", "dropout_p", "lengths"],
    "library": [*FOREIGN_COLUMNS, "dtype", "transpose_b"],
    "decode": [*FOREIGN_COLUMNS, "lengths", "page_size", "page_layout", "splits", "layout"],
}
RAGGED = "137:1411:905:2310:64:3001:777:1866"
FEW_LONG = "640x6:4480x2"
ONE_LONG = "23:5000:350:350:350:1200"
MANY_SHORT = "300x24"
DOCUMENTS = "1152:384:2560:128:640:1792"  # whole blocks of 128, as flex's mask lists them
EVEN_DOCUMENTS = "512x10:2048"


def triton():
    for shape in ((3, 14, 14, 1152, 128, 1), (1, 36, 12, 4352, 128, 0), (2, 22, 22, 2304, 64, 0), (1, 18, 6, 9216, 64, 1),
                  (5, 10, 10, 1664, 128, 0)):
        for config in ((64, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 32, 4, 4), (64, 128, 4, 2), (32, 64, 4, 2), (32, 32, 2, 3),
                       (256, 64, 8, 2)):
            if shape[3] % config[0] == 0 and shape[3] % config[1] == 0:
                yield foreign_case("triton", shape, config)


def flex():
    for shape, window in (((2, 14, 14, 3456, 128, 1), 384), ((1, 36, 6, 6656, 128, 0), 1024), ((3, 10, 10, 2304, 64, 1), 1000)):
        for config in ((64, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 2), (64, 128, 4, 2)):
            yield foreign_case("flex", shape, config, window=window)
    for causal in (0, 1):
        for config in ((64, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 2)):
            yield of_lengths("flex", DOCUMENTS, 18, 6, 128, causal, config)
    for config in ((64, 64, 4, 3), (128, 128, 8, 2)):
        yield of_lengths("flex", EVEN_DOCUMENTS, 10, 10, 64, 1, config)
    for mask, width, causal in (("strided", 4, 0), ("strided", 5, 1), ("local_global", 3, 0), ("butterfly", "", 0)):
        for config in ((64, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 2)):
            yield foreign_case("flex", (2, 12, 12, 4352, 128, causal), config, mask=mask, mask_width=width)
    for shape in ((2, 22, 22, 2304, 128, 1), (1, 26, 26, 5632, 64, 0)):
        for config in ((64, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 32, 4, 3)):
            yield foreign_case("flex", shape, config)


def flash():
    """FlashAttention-2's kernels in PyTorch, called without scaled_dot_product_attention, which knows no window."""
    for batch, heads, kv_heads, seqlen, head_dim in ((2, 18, 18, 4352, 128), (1, 36, 6, 9216, 128), (3, 14, 14, 2304, 64),
                                                     (1, 10, 2, 18432, 128)):
        for window, causal in ((384, 1), (384, 0), (1536, 1)):
            yield foreign_case("aten_flash", (batch, heads, kv_heads, seqlen, head_dim, causal), window=window)
    for batch, heads, kv_heads, seqlen, head_dim, dropout_p in ((2, 18, 18, 2304, 128, 0.1), (3, 14, 14, 4352, 64, 0.25),
                                                                (1, 26, 26, 5632, 128, 0.1), (1, 36, 6, 3456, 128, 0.5),
                                                                (7, 10, 10, 1152, 64, 0.1)):
        for causal in (0, 1):
            yield foreign_case("aten_flash", (batch, heads, kv_heads, seqlen, head_dim, causal), dropout_p=dropout_p)
    for lengths, heads, kv_heads, head_dim in ((RAGGED, 18, 18, 128), (FEW_LONG, 36, 6, 128), (ONE_LONG, 14, 14, 64),
                                               (MANY_SHORT, 10, 2, 128)):
        for causal in (0, 1):
            yield of_lengths("aten_flash", lengths, heads, kv_heads, head_dim, causal)
    for lengths, heads in ((RAGGED, 18), (FEW_LONG, 12)):
        yield of_lengths("aten_flash", lengths, heads, heads, 128, 1, window=256)
    for batch, heads, kv_heads, seqlen, head_dim in ((2, 44, 4, 3456, 128), (1, 22, 2, 11264, 64), (6, 10, 5, 1664, 128)):
        for causal in (0, 1):
            yield foreign_case("aten_flash", (batch, heads, kv_heads, seqlen, head_dim, causal))


def library():
    for batch, heads, kv_heads, seqlen, head_dim in ((3, 14, 14, 1152, 128), (1, 36, 12, 4352, 128), (2, 22, 22, 2304, 64),
                                                     (1, 18, 6, 9216, 64), (5, 10, 10, 1664, 128), (1, 26, 26, 5632, 128),
                                                     (2, 6, 6, 3456, 256),
                                                     (9, 12, 12, 640, 96)):
        for causal in (0, 1):
            yield foreign_case("sdpa_flash", (batch, heads, kv_heads, seqlen, head_dim, causal))
        yield foreign_case("sdpa_cudnn", (batch, heads, kv_heads, seqlen, head_dim, 0))
    for batch, heads, seqlen, head_dim in ((3, 14, 1152, 128), (2, 22, 2304, 64), (1, 26, 5632, 128), (5, 10, 1664, 128), (1, 6, 9216, 64)):
        for causal in (0, 1):
            yield foreign_case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, causal), **BACKWARD)
    for sizes in ((1, 3584, 3584, 3584), (1, 11008, 4096, 4096), (1, 1536, 6144, 1536), (1, 768, 768, 12288), (1, 9216, 2304, 2304),
                  (20, 1152, 1152, 128), (20, 1152, 128, 1152), (14, 4352, 4352, 64), (6, 3328, 3328, 3328),
                  (1, 18432, 1792, 7168)):
        yield foreign_product(*sizes)
    for sizes in ((1, 3584, 3584, 3584), (1, 2816, 11264, 2816), (1, 9216, 4608, 1152), (20, 1152, 1152, 128)):
        yield foreign_product(*sizes, dtype="bf16")
    for sizes in ((1, 3584, 3584, 3584), (1, 11264, 2816, 2816), (20, 1152, 1152, 128)):
        for dtype in ("fp16", "bf16"):
            yield foreign_product(*sizes, dtype=dtype, transpose_b=1)


def decode():
    for lengths, heads, kv_heads, head_dim, splits in (("2905x16", 36, 6, 128, 4),
                                                       ("137:1411:905:2310:64:3001:777:1866:4400:512x7", 28, 7, 128, 6),
                                                       ("11264x3", 48, 12, 64, 8), ("700x96", 20, 20, 128, 1)):
        for config, page_size, page_layout in (((64, 4, 3), 16, "scattered"), ((64, 4, 3), 64, "scattered"), ((32, 4, 4), 16, "contiguous"),
                                               ((128, 4, 3), 256, "scattered")):
            yield foreign_paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits)
    for batch, heads, kv_heads, seqlen, head_dim in ((3, 36, 6, 11264, 128), (24, 28, 7, 2304, 64)):
        yield foreign_case("flex_decode", (batch, heads, kv_heads, seqlen, head_dim, 0), seqlen_q=1)
    for batch, heads, kv_heads, seqlen, head_dim in ((3, 36, 6, 11264, 128), (1, 28, 28, 18432, 128), (24, 28, 7, 2304, 64),
                                                     (60, 20, 20, 1664, 128)):
        yield foreign_case("aten_flash", (batch, heads, kv_heads, seqlen, head_dim, 0), seqlen_q=1, layout="bshd")


FOREIGN = {"triton": triton, "flex": flex, "flash": flash, "library": library, "decode": decode}
