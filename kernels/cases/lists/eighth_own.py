"""The eighth set that nobody has seen: this project's own kernels, each row at a shape of its own, drawn as in eighth_set.py."""
import random

from lists.drawing import draw_shape
from lists.own_kernels import case, decode, flash1_case, paged_case, pingpong, softmax_case, tree_case, unfused, wgmma
from lists.products import product, wgmma_product


def own():
    draw = random.Random(806)
    rows = []

    def shape(multiple, head_dim=None, causal=None):
        return draw_shape(draw, head_dim or draw.choice((64, 128)), draw.randint(0, 1) if causal is None else causal, multiple)

    for config in ((64, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (128, 64, 4, 2, "stages"), (64, 128, 4, 1, "interleaved"),
                   (128, 32, 8, 3, "stages"), (128, 128, 8, 1, "interleaved"),
                   (64, 32, 4, 3, "stages"), (128, 128, 8, 1, "stages")):
        for head_dim in (64, 128):
            rows.append(case(shape(128, head_dim), config))
    for config in ((64, 64, 4, 2, "stages"), (128, 64, 8, 3, "stages"), (128, 128, 8, 2, "stages"), (64, 128, 4, 2, "stages"),
                   (128, 128, 8, 1, "stages")):
        for copy in ("cp_async", "tma"):
            rows.append(wgmma(shape(128), config, copy))
    rows += [pingpong(shape(384, 128), (128, 128, 8, 2)), pingpong(shape(384, 128, 1), (128, 96, 8, 2)),
             pingpong(shape(384, 64), (192, 128, 12, 2)), pingpong(shape(384), (128, 64, 8, 3), persistent=1),
             pingpong(shape(384, 64), (128, 128, 8, 3))]
    rows += [case(shape(128, causal=1), (128, 64, 8, 2, "stages"), window=draw.randrange(100, 2000)),
             case(shape(128, 64), (64, 64, 4, 2, "stages"), dropout_p=0.1)]
    for block_n, stages, splits in ((64, 3, 2), (128, 2, 1), (64, 2, 8), (64, 3, 5)):
        kv_heads = draw.randint(1, 8)
        rows.append(decode(draw.randint(1, 40), kv_heads * draw.choice((1, 4, 6, 8)), kv_heads, draw.randrange(8, 160) * 128,
                           draw.choice((64, 128)), block_n, stages, splits))
    for block_n, stages, page_size, splits in ((64, 3, 16, 2), (128, 2, 64, 1)):
        batch, length, kv_heads = draw.randint(4, 40), draw.randrange(1000, 9000), draw.randint(2, 8)
        rows.append(paged_case((batch, 4 * kv_heads, kv_heads, length, 128), f"{length}x{batch}", (block_n, stages), page_size, "scattered",
                               splits))
    rows += [tree_case((draw.randint(1, 6), 32, 8, tokens, draw.randrange(16, 64) * 128, 128), 2, (64, 64, 4, 3), splits)
             for tokens, splits in ((24, 2), (64, 4))]
    for kind in ("safe", "online"):
        rows.append(unfused((draw.randint(1, 3), draw.randint(6, 20), 0, draw.randrange(8, 28) * 128, draw.choice((64, 128)),
                             draw.randint(0, 1)), 128, 128, 8, kind))
        rows[-1]["kv_heads"] = rows[-1]["heads"]
    rows += [softmax_case(draw.choice(("safe", "online")), draw.randrange(500, 30000), draw.randrange(8, 160) * 104, block_m, 4)
             for block_m in (1, 4, 1)]
    rows = [row for row in rows if not row["workload"].startswith("softmax") or row["seqlen_q"] % row["block_m"] == 0]
    for head_dim, causal in ((64, 0), (128, 1)):
        batch, heads = draw.randint(2, 6), draw.randint(8, 24)
        rows.append(flash1_case((batch, heads, heads, draw.randrange(8, 20) * 128, head_dim, causal), (128, 4, 2)))
    return rows


def products():
    draw = random.Random(807)
    rows = [product("matmul_tiled", (1, *(draw.randrange(4, 20) * 256 for _ in range(3))), config)
            for config in ((128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (128, 64, 64, 4, 4))]
    return rows + [product("glu", (1, *(draw.randrange(4, 24) * 256 for _ in range(3))), (128, 64, 64, 8, 3))]


def wgmma_products():
    draw = random.Random(808)
    rows = []
    for config in ((0, 128, 128, 8, 4, 0, "direct"), (0, 128, 256, 8, 3, 1, "staged"), (1, 128, 128, 8, 4, 0, "staged"),
                   (1, 64, 256, 4, 3, 1, "staged"), (1, 256, 128, 8, 4, 1, "staged"), (0, 64, 128, 4, 4, 0, "direct")):
        m, n, k = draw.randrange(4, 32) * 256, draw.randrange(4, 24) * 256, draw.randrange(2, 32) * 128
        rows.append(wgmma_product((1, m, n, k), config))
    return rows
