"""The ninth set that nobody has seen and all later ones: this project's own kernels.  Blocks, warps and stages are drawn too, as in
drawn_sets.py."""
import math

from lists.drawing import draw_shape
from lists.own_kernels import case, decode, flash1_case, paged_case, pingpong, softmax_case, tree_case, unfused, fits_shared_memory
from lists.products import COMPILED_WGMMA_PRODUCTS, product, wgmma_product


def own(draw):

    def shape(config, head_dim, causal):
        return draw_shape(draw, head_dim, causal, math.lcm(128, *config[:2]))

    def forward(mma, copies, num_warps, rows_of_a_warp, columns, how_many):
        """That many forward cases whose tiles fit in shared memory and whose scores and output take at most 160 registers of a lane."""
        found = []
        while len(found) < how_many:
            warps, stages, head_dim = draw.choice(num_warps), draw.randint(1, 3), draw.choice((64, 128))
            block_m, block_n = warps * draw.choice(rows_of_a_warp), draw.choice(columns)
            config = (block_m, block_n, warps, stages, draw.choice(("stages", "interleaved")) if mma == "mma" and stages == 1 else "stages")
            copied_evenly = all(rows * head_dim // 8 % (32 * warps) == 0 for rows in (block_m, block_n))
            if copied_evenly and block_m * (block_n + head_dim) <= 160 * 32 * warps and math.lcm(128, block_m, block_n) <= 1024:
                row = case(shape(config, head_dim, draw.randint(0, 1)), config, mma=mma, copy=draw.choice(copies))
                found += [row] if fits_shared_memory(row) else []
        return found

    rows = forward("mma", ("cp_async",), (4, 8), (16, 32), (32, 48, 64, 80, 96, 128), 16)
    rows += forward("wgmma", ("cp_async", "tma"), (4, 8), (16,), (32, 64, 96, 128, 160, 192), 10)
    rows += [pingpong(shape(config, head_dim, draw.randint(0, 1)), config, persistent=draw.randint(0, 1))
             for head_dim, config in ((128, (128, 64, 8, 2)), (128, (128, 96, 8, 2)), (64, (128, 160, 8, 2)), (64, (192, 64, 12, 3)),
                                      (64, (192, 128, 12, 2)))]
    for block_n, stages in ((64, 2), (128, 2), (64, 3), (128, 3)):
        kv_heads = draw.randint(1, 8)
        rows.append(decode(draw.randint(1, 40), kv_heads * draw.choice((1, 4, 6, 8)), kv_heads, draw.randrange(8, 160) * 128,
                           draw.choice((64, 128)), block_n, stages, draw.randint(1, 8)))
    for block_n, stages, page_size in ((64, 2, 32), (128, 2, 16)):
        batch, length, kv_heads = draw.randint(4, 40), draw.randrange(1000, 9000), draw.randint(2, 8)
        rows.append(paged_case((batch, 4 * kv_heads, kv_heads, length, 128), f"{length}x{batch}", (block_n, stages), page_size, "scattered",
                               draw.randint(1, 4)))
    rows += [tree_case((draw.randint(1, 6), 32, 8, tokens, draw.randrange(16, 64) * 128, 128), 2, (64, 64, 4, 3), draw.randint(1, 6))
             for tokens in (16, 40)]
    for kind in ("safe", "online"):
        heads = draw.randint(6, 20)
        rows.append(unfused((draw.randint(1, 3), heads, heads, draw.randrange(8, 28) * 128, draw.choice((64, 128)), draw.randint(0, 1)),
                            128, 128, 8, kind))
    rows += [softmax_case(draw.choice(("safe", "online")), draw.randrange(64, 3000) * 8, draw.randrange(8, 160) * 104, block_m, 4)
             for block_m in (1, 4, 1)]
    for head_dim, causal in ((64, 1), (128, 0)):
        batch, heads = draw.randint(2, 6), draw.randint(8, 24)
        rows.append(flash1_case((batch, heads, heads, draw.randrange(8, 20) * 128, head_dim, causal), (128, 4, 2)))
    return rows


def products(draw):
    rows = [product("matmul_tiled", (1, *(draw.randrange(4, 20) * 256 for _ in range(3))), config)
            for config in ((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (128, 64, 64, 8, 3))]
    return rows + [product("glu", (1, *(draw.randrange(4, 24) * 256 for _ in range(3))), (128, 64, 64, 8, 3))]


def wgmma_products(draw):
    rows = []
    for config in ((0, 128, 128, 8, 4), (0, 128, 256, 8, 3), (1, 128, 128, 8, 4), (1, 64, 256, 4, 3), (1, 256, 128, 8, 4),
                   (0, 64, 128, 4, 4)):
        m, n, k = draw.randrange(4, 32) * 256, draw.randrange(4, 24) * 256, draw.randrange(2, 32) * 128
        persistent = draw.randint(0, 1)
        store = "staged" if persistent else draw.choice(("direct", "staged"))
        rows.append(wgmma_product((1, m, n, k), (*config, persistent, store)))
    return rows


def compiled_wgmma_products(draw):
    """As wgmma_products, but only kernels that products/product_bench.cu has: of the tenth set five of six had none."""
    rows = []
    for config in draw.sample(COMPILED_WGMMA_PRODUCTS, 7):
        m, n, k = draw.randrange(4, 32) * 256, draw.randrange(4, 24) * (192 if config[2] == 192 else 256), draw.randrange(2, 32) * 128
        rows.append(wgmma_product((1, m, n, k), config))
    return rows
