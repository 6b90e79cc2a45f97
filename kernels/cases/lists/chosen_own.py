"""The fifth, sixth and seventh set that nobody has seen: this project's own kernels, at blocks and shapes that no other file has."""
import typing

from lists.own_kernels import case, decode, flash1_case, paged_case, pingpong, softmax_case, tree_case, unfused, wgmma
from lists.products import product


class Chosen(typing.NamedTuple):
    """Shapes are (batch, heads, kv_heads, seqlen, head_dim, causal)."""
    shapes: tuple  # of FlashAttention-2 by mma.sync, each with each config that its keys divide by
    configs: tuple
    has_whole_tiles: bool  # queries divide by the config too
    wgmma_shapes: tuple
    both_copies: tuple  # a config by cp.async and by TMA
    one_copy: tuple  # (config, copy)
    pingpong: tuple  # (shape, config, persistent)
    special: tuple  # (shape, config, what it has besides)
    decode: tuple  # (batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits)
    paged: tuple
    tree: tuple
    unfused_shapes: tuple
    softmax: tuple
    flash1_shapes: tuple
    products: tuple
    product_configs: tuple
    glu: tuple


CHOSEN = {
    5: Chosen(
        shapes=((2, 26, 26, 4032, 128, 0), (1, 28, 7, 5040, 128, 1), (6, 9, 9, 2016, 64, 0), (1, 10, 2, 12096, 64, 1)),
        configs=((64, 112, 4, 2, "stages"), (128, 112, 8, 2, "stages"), (64, 144, 4, 1, "interleaved"), (64, 96, 4, 3, "stages"),
                 (128, 32, 4, 3, "stages")),
        has_whole_tiles=False,
        wgmma_shapes=((2, 26, 26, 4032, 128, 0), (1, 28, 7, 5376, 128, 1), (6, 9, 9, 2688, 64, 0)),
        both_copies=(64, 112, 4, 2, "stages"),
        one_copy=(((128, 96, 8, 2, "stages"), "tma"), ((64, 64, 4, 2, "stages"), "cp_async")),
        pingpong=(((2, 26, 26, 2816, 128, 0), (128, 176, 8, 2), 0), ((2, 26, 26, 2816, 128, 0), (128, 176, 8, 2), 1),
                  ((1, 28, 7, 5376, 128, 1), (128, 112, 8, 2), 0),
                  ((6, 9, 9, 2688, 64, 0), (192, 112, 12, 2), 0), ((1, 10, 2, 11520, 64, 1), (128, 144, 8, 3), 0)),
        special=(((4, 12, 12, 1777, 128, 1), (64, 64, 4, 2, "stages"), {}),
                 ((2, 14, 14, 2944, 64, 1), (128, 64, 8, 2, "stages"), {"window": 500}),
                 ((2, 10, 10, 2560, 128, 0), (64, 64, 4, 2, "stages"), {"dropout_p": 0.2})),
        decode=((4, 40, 8, 14336, 128, 64, 3, 4), (56, 28, 4, 1536, 128, 64, 2, 1), (1, 24, 8, 40960, 128, 128, 2, 20),
                (11, 16, 16, 2816, 64, 128, 2, 2)),
        paged=((12, 40, 8, 3300, 128), "3300x12", (64, 3), 32, "scattered", 3),
        tree=((2, 40, 8, 40, 6144, 128), 3, (64, 64, 4, 3), 6),
        unfused_shapes=((2, 14, 14, 1792, 64, 0), (1, 20, 5, 3072, 128, 1)),
        softmax=(("safe", 9000, 2048, 1, 4), ("online", 9000, 2048, 1, 8), ("safe", 2500, 6000, 1, 4), ("online", 150, 30000, 1, 8),
                 ("safe", 9000, 2048, 1, 4, 2048),
                 ("online", 20000, 900, 4, 4, 1024)),
        flash1_shapes=((5, 20, 20, 1536, 64, 0), (3, 18, 18, 2304, 128, 1)),
        products=((1, 3072, 3072, 3072), (1, 6144, 1024, 2048), (10, 768, 768, 768)),
        product_configs=((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3)),
        glu=((1, 1024, 7168, 2048), (1, 3072, 4096, 1536))),
    6: Chosen(
        shapes=((2, 19, 19, 3840, 128, 0), (1, 32, 4, 5760, 128, 1), (5, 11, 11, 1920, 64, 0), (1, 14, 2, 9600, 64, 1)),
        configs=((64, 48, 4, 3, "stages"), (64, 80, 4, 2, "stages"), (128, 80, 4, 2, "stages"), (128, 48, 8, 3, "stages"),
                 (64, 160, 4, 1, "interleaved")),
        has_whole_tiles=False,
        wgmma_shapes=((2, 19, 19, 3840, 128, 0), (1, 32, 4, 5760, 128, 1), (5, 11, 11, 1920, 64, 0)),
        both_copies=(64, 80, 4, 2, "stages"),
        one_copy=(((128, 160, 8, 2, "stages"), "tma"), ((128, 48, 8, 3, "stages"), "tma")),
        pingpong=(((2, 19, 19, 3840, 128, 0), (128, 160, 8, 2), 0), ((1, 32, 4, 5760, 128, 1), (128, 80, 8, 3), 0),
                  ((1, 32, 4, 5760, 128, 1), (128, 80, 8, 3), 1),
                  ((5, 11, 11, 1920, 64, 0), (192, 80, 12, 2), 0), ((1, 14, 2, 9600, 64, 1), (128, 160, 8, 2), 0)),
        special=(((3, 11, 11, 2345, 128, 1), (64, 64, 4, 2, "stages"), {}),
                 ((2, 18, 6, 3456, 128, 1), (128, 64, 8, 2, "stages"), {"window": 700}),
                 ((2, 12, 12, 2304, 64, 0), (128, 64, 4, 2, "stages"), {"dropout_p": 0.1})),
        decode=((6, 48, 8, 10240, 128, 64, 3, 3), (40, 32, 8, 2304, 128, 128, 2, 1), (1, 16, 4, 53248, 128, 64, 2, 24),
                (9, 24, 24, 3584, 64, 64, 3, 2)),
        paged=((9, 48, 8, 5200, 128), "5200x9", (64, 3), 16, "scattered", 3),
        tree=((3, 32, 8, 48, 5120, 128), 2, (64, 64, 4, 3), 4),
        unfused_shapes=((3, 10, 10, 1536, 64, 1), (1, 24, 6, 2560, 128, 0)),
        softmax=(("safe", 17000, 1536, 1, 4), ("online", 5000, 4096, 1, 8), ("online", 700, 14000, 1, 4),
                 ("safe", 30000, 1200, 4, 4, 2048)),
        flash1_shapes=((4, 18, 18, 1792, 64, 0), (2, 20, 20, 2560, 128, 1)),
        products=((1, 3584, 2560, 2560), (7, 1280, 1280, 640)),
        product_configs=((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3)),
        glu=((1, 2048, 5120, 1280),)),
    7: Chosen(
        shapes=((3, 13, 13, 4032, 128, 1), (1, 42, 14, 2688, 128, 0), (5, 18, 6, 2304, 64, 1), (1, 9, 9, 10752, 64, 0)),
        configs=((64, 96, 4, 2, "stages"), (128, 96, 8, 3, "stages"), (128, 112, 4, 2, "stages"), (64, 192, 4, 1, "interleaved"),
                 (128, 64, 4, 3, "stages"),
                 (64, 64, 4, 2, "interleaved")),
        has_whole_tiles=True,
        wgmma_shapes=((3, 13, 13, 4032, 128, 1), (1, 42, 14, 2688, 128, 0), (5, 18, 6, 2304, 64, 1)),
        both_copies=(64, 96, 4, 2, "stages"),
        one_copy=(((128, 192, 8, 1, "stages"), "tma"), ((128, 64, 8, 3, "stages"), "tma")),
        pingpong=(((3, 13, 13, 3840, 128, 1), (128, 96, 8, 2), 0), ((1, 42, 14, 2688, 128, 0), (128, 128, 8, 2), 0),
                  ((1, 42, 14, 2688, 128, 0), (128, 128, 8, 2), 1),
                  ((5, 18, 6, 2304, 64, 1), (192, 96, 12, 2), 0), ((1, 9, 9, 10752, 64, 0), (128, 192, 8, 2), 0)),
        special=(((2, 15, 15, 2601, 64, 1), (64, 64, 4, 2, "stages"), {}),
                 ((1, 26, 13, 4224, 128, 1), (128, 64, 8, 2, "stages"), {"window": 1000}),
                 ((2, 9, 9, 2688, 128, 1), (64, 64, 4, 2, "stages"), {"dropout_p": 0.15})),
        decode=((7, 56, 8, 6144, 128, 64, 2, 2), (24, 40, 8, 4608, 128, 128, 2, 1), (1, 48, 8, 30720, 128, 64, 3, 16),
                (14, 18, 18, 2304, 64, 64, 2, 1)),
        paged=((20, 40, 8, 2700, 128), "2700x20", (64, 3), 32, "scattered", 2),
        tree=((4, 28, 4, 32, 3584, 128), 3, (64, 64, 4, 3), 3),
        unfused_shapes=((2, 12, 12, 1920, 64, 0), (1, 16, 8, 3328, 128, 1)),
        softmax=(("safe", 26000, 1024, 1, 4), ("online", 3500, 7000, 1, 8), ("online", 400, 25000, 1, 4),
                 ("safe", 11000, 1800, 4, 4, 2048)),
        flash1_shapes=((6, 14, 14, 1280, 64, 1), (2, 16, 16, 2048, 128, 0)),
        products=((1, 4608, 2304, 3072), (5, 1536, 1024, 768)),
        product_configs=((128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (128, 64, 64, 8, 2)),
        glu=((1, 1536, 6144, 2560),)),
}


def is_forward_case(chosen, shape, config):
    """Whether tiles divide the sequence and each thread copies as much of one."""
    block_m, block_n, num_warps, *_ = config
    seqlen, head_dim = shape[3:5]
    return seqlen % block_n == 0 and (seqlen % block_m == 0
                                      or not chosen.has_whole_tiles) and block_n * head_dim // 8 % (32 * num_warps) == 0


def own(chosen):
    rows = [case(shape, config) for shape in chosen.shapes for config in chosen.configs if is_forward_case(chosen, shape, config)]
    for shape in chosen.wgmma_shapes:
        rows += [wgmma(shape, chosen.both_copies, copy) for copy in ("cp_async", "tma")]
        rows += [wgmma(shape, config, copy) for config, copy in chosen.one_copy]
    rows += [pingpong(shape, config, persistent=persistent) for shape, config, persistent in chosen.pingpong]
    rows += [case(shape, config, **more) for shape, config, more in chosen.special]
    rows += [decode(*one) for one in chosen.decode]
    rows += [paged_case(*chosen.paged), tree_case(*chosen.tree)]
    rows += [unfused(shape, 128, 128, 8, kind) for shape in chosen.unfused_shapes for kind in ("safe", "online")]
    rows += [softmax_case(*one) for one in chosen.softmax]
    return rows + [flash1_case(shape, (128, 4, 2)) for shape in chosen.flash1_shapes]


def products(chosen):
    rows = [product("matmul_tiled", sizes, config) for sizes in chosen.products for config in chosen.product_configs]
    return rows + [product("glu", sizes, (128, 64, 64, 8, 3)) for sizes in chosen.glu]
