"""The ninth set that nobody has seen and all later ones: the same draws of other seeds.  Blocks, warps and stages are drawn too, among
those that a kernel can be compiled for; shapes as in eighth_set.py.  Drawn before anything was measured (measurements/HELDOUT.md); the
cases of this project's own kernels are drawn in the same way in drawn_own.py."""
import random

from lists import fourth_set, third_set
from lists.drawing import draw_block, draw_distinct, draw_shape
from lists.foreign_kernels import BACKWARD, foreign_case, foreign_paged, foreign_product, of_lengths, triton_product, triton_softmax

FOREIGN_COLUMNS_OF = fourth_set.FOREIGN_COLUMNS_OF | {
    "flash": third_set.FOREIGN_COLUMNS_OF["flash"], "descriptors": fourth_set.FOREIGN_COLUMNS_OF["triton"]}


def triton(draw, most_held):
    for head_dim, causal in ((64, 1), (128, 0), (128, 1)):
        shape = draw_shape(draw, head_dim, causal, 256)
        for config in draw_distinct(draw, 7, lambda: draw_block(draw, most_held)):
            yield foreign_case("triton", shape, config)
    for config in draw_distinct(draw, 9, lambda: draw_block(draw, most_held)):
        yield foreign_case("triton", draw_shape(draw, draw.choice((64, 128)), draw.randint(0, 1), 256), config)


def flex(draw):
    for config in draw_distinct(draw, 6, lambda: (draw.choice((64, 128)), draw.choice((32, 64, 128)), draw.choice((4, 8)),
                                                  draw.randint(2, 3))):
        yield foreign_case("flex", draw_shape(draw, draw.choice((64, 128)), draw.randint(0, 1), 128), config)
    yield foreign_case("flex", draw_shape(draw, 128, 1, 128), (128, 64, 8, 2), window=draw.randrange(2, 12) * 128)


def library(draw):
    for head_dim in (128, 64, 128, 64, 256, 96):
        for causal in (0, 1):
            shape = draw_shape(draw, head_dim, causal, 64)
            yield foreign_case("sdpa_flash", shape)
            yield foreign_case("sdpa_cudnn", shape)
    for head_dim in (64, 128):
        batch, heads, _, seqlen, _, causal = draw_shape(draw, head_dim, 0, 128, (1000, 4000))
        yield foreign_case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, causal), **BACKWARD)
    for _ in range(5):
        m, n, k = (draw.randrange(6, 40) * 256 for _ in range(3))
        yield foreign_product(1, m, n, k, **draw.choice(({}, {"dtype": "bf16", "transpose_b": 1})))
    yield foreign_product(draw.randrange(4, 24), *(draw.randrange(2, 16) * 128 for _ in range(3)))


def flash(draw):
    """PyTorch's flash operator: windows and packed sequences."""
    for _ in range(3):
        yield foreign_case("aten_flash", draw_shape(draw, draw.choice((64, 128)), 1, 64), window=draw.randrange(200, 3000))
    yield of_lengths("aten_flash", ":".join(str(draw.randrange(200, 6000)) for _ in range(6)), 16, 4, 128, 1)


def decode(draw):
    for config, page_size, page_layout in (((64, 4, 2), 16, "scattered"), ((128, 4, 2), 64, "contiguous"), ((32, 2, 3), 32, "scattered"),
                                           ((64, 4, 3), 128, "scattered")):
        kv_heads = draw.randint(2, 8)
        lengths = ":".join(f"{draw.randrange(300, 12000)}x{draw.randint(1, 12)}" for _ in range(draw.randint(1, 4)))
        yield foreign_paged(lengths, kv_heads * draw.choice((4, 7, 8)), kv_heads, 128, config, page_size, page_layout, draw.randint(1, 8))


def rows(draw):
    """Products and softmaxes."""
    for config in ((128, 256, 64, 8, 3), (128, 128, 64, 4, 3), (64, 256, 32, 4, 4), (256, 128, 32, 8, 3), (128, 64, 64, 4, 4)):
        m, n, k = (draw.randrange(3, 24) * 256 for _ in range(3))
        yield triton_product((1, m, n, k), config)
    for num_warps in (4, 8, 4, 8):
        columns = draw.randrange(60, 2000) * 8
        yield triton_softmax(draw.randrange(200, 30000), columns, num_warps)


def descriptors(draw):
    """Triton with tensor descriptors, from the thirty-fifth set on: what fits in shared memory and registers."""
    def config(head_dim):
        while True:
            (block_m, warps), block_n, stages = draw.choice(((64, 4), (128, 4), (128, 8))), draw.choice((32, 64, 128)), draw.randint(2, 4)
            held = block_m // (warps // 4) // 64 * (block_n + head_dim) // 2
            if held <= 192 and (block_m + 2 * stages * block_n) * head_dim * 2 <= 220 << 10:
                return block_m, block_n, warps, stages
    for head_dim, causal in ((64, 0), (64, 1), (128, 0), (128, 1)):
        for _ in range(4):
            yield foreign_case("triton_descriptors", draw_shape(draw, head_dim, causal, 128), config(head_dim))


SEEDS = {"triton": 1, "flex": 2, "library": 3, "flash": 6, "decode": 4, "rows": 5, "descriptors": 7}
ANY, AS_MANY_AS_REGISTERS = 1 << 20, 256  # elements that a lane holds, in the ninth set and since


def foreign(number):
    """{kind: cases} of that set."""
    found = {}
    for of in (triton, flex, library, flash, decode, rows, *([descriptors] if number >= 35 else [])):
        draw = random.Random(100 * number + SEEDS[of.__name__])
        more = [ANY if number == 9 else AS_MANY_AS_REGISTERS] if of == triton else []
        found[of.__name__] = of(draw, *more)
    return found
