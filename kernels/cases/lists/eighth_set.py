"""The eighth set that nobody has seen.  Shapes are drawn from a generator with a fixed seed, so that each row has its own, and only the
blocks of a shape are listed by hand.  Drawn before anything was measured (measurements/HELDOUT.md); the cases of this project's own
kernels are drawn in the same way in eighth_own.py."""
import random

from lists.drawing import draw_shape
from lists.foreign_kernels import BACKWARD, foreign_case, foreign_paged, foreign_product, triton_product, triton_softmax


def triton():
    draw = random.Random(801)
    configs = ((64, 64, 4, 3), (64, 128, 8, 2), (128, 32, 4, 4), (128, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 3), (256, 64, 8, 3),
               (64, 32, 4, 2))
    for head_dim, causal in ((128, 0), (128, 1), (64, 0)):
        shape = draw_shape(draw, head_dim, causal, 256)
        for config in configs:
            yield foreign_case("triton", shape, config)
    for config in configs:
        yield foreign_case("triton", draw_shape(draw, draw.choice((64, 128)), draw.randint(0, 1), 256), config)


def flex():
    draw = random.Random(802)
    for config in ((64, 128, 4, 2), (128, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 2), (128, 32, 8, 2), (64, 64, 4, 3), (128, 128, 8, 3)):
        yield foreign_case("flex", draw_shape(draw, draw.choice((64, 128)), draw.randint(0, 1), 128), config)


def library():
    draw = random.Random(803)
    for head_dim in (128, 64, 128, 64, 96, 256):
        for causal in (0, 1):
            shape = draw_shape(draw, head_dim, causal, 64)
            yield foreign_case("sdpa_flash", shape)
            yield foreign_case("sdpa_cudnn", shape)
    for head_dim in (128, 64):
        batch, heads, _, seqlen, _, causal = draw_shape(draw, head_dim, 1, 128, (1000, 4000))
        yield foreign_case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, causal), **BACKWARD)
    for _ in range(5):
        m, n, k = (draw.randrange(6, 40) * 256 for _ in range(3))
        yield foreign_product(1, m, n, k, **draw.choice(({}, {"dtype": "bf16", "transpose_b": 1})))
    yield foreign_product(draw.randrange(4, 24), *(draw.randrange(2, 16) * 128 for _ in range(3)))


def decode():
    draw = random.Random(804)
    for splits, config, page_size, page_layout in ((1, (64, 4, 2), 16, "scattered"), (3, (32, 4, 4), 32, "contiguous"),
                                                   (6, (64, 4, 3), 64, "scattered"), (4, (64, 4, 2), 16, "scattered")):
        kv_heads = draw.randint(2, 8)
        lengths = ":".join(f"{draw.randrange(300, 12000)}x{draw.randint(1, 12)}" for _ in range(draw.randint(1, 4)))
        yield foreign_paged(lengths, kv_heads * draw.choice((4, 7, 8)), kv_heads, 128, config, page_size, page_layout, splits)


def rows():
    """Products and softmaxes."""
    draw = random.Random(805)
    for config in ((128, 256, 64, 8, 3), (128, 128, 32, 4, 4), (64, 128, 64, 4, 3), (128, 64, 32, 4, 4), (128, 128, 64, 8, 3),
                   (256, 128, 64, 8, 3)):
        m, n, k = (draw.randrange(3, 24) * 256 for _ in range(3))
        yield triton_product((1, m, n, k), config)
    for num_warps in (4, 8, 4, 8):
        columns = draw.randrange(500, 16000)
        yield triton_softmax(draw.randrange(200, 30000), columns, num_warps)


FOREIGN = {"triton": triton, "flex": flex, "library": library, "decode": decode, "rows": rows}
