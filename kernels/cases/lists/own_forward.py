"""Forward kernels of this project: FlashAttention-2 and 3, by mma.sync and wgmma."""
import math
import random

from lists.own_kernels import CORE, GQA_128, MID_64, MID_128, MID_256, SHORT_64, case, fits, pingpong, wgmma


def sweep(head_dim):
    blocks_n = (32, 64) if head_dim == 256 else (32, 64, 128)
    for block_m, warps in ((64, 4), (128, 4), (128, 8)):
        for block_n in blocks_n:
            for stages, schedule in ((1, "stages"), (2, "stages"), (3, "stages"), (1, "interleaved")):
                yield block_m, block_n, warps, stages, schedule


def flash2():
    rows = []
    for shape in (SHORT_64, MID_128, GQA_128, MID_64, MID_256):
        rows += [case(shape, config) for config in sweep(shape[4])]
    for heads_dim in (64, 128, 256):
        heads = 2048 // heads_dim
        for batch, seqlen in ((32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384)):
            for causal in (0, 1):
                for config in CORE[:4] if heads_dim < 256 else [(64, 64, 4, 1, "interleaved"), (128, 32, 8, 1, "interleaved")]:
                    rows.append(case((batch, heads, heads, seqlen, heads_dim, causal), config))
    # Few CTAs, uneven last waves.
    for batch, heads, seqlen in ((1, 1, 512), (1, 2, 1024), (1, 4, 2048), (1, 8, 2048), (1, 17, 1024), (1, 9, 2048), (3, 11, 512)):
        for causal in (0, 1):
            for config in CORE[:2]:
                rows.append(case((batch, heads, heads, seqlen, 128, causal), config))
    # Grouped queries.
    for kv_heads in (1, 2, 4, 16, 32):
        for causal in (0, 1):
            rows.append(case((1, 32, kv_heads, 4096, 128, causal), CORE[0]))
    return rows


def long():
    """K and V of the heads in flight exceed L2: one long head, or many heads at once."""
    rows = []
    for seqlen, heads in ((16384, 8), (32768, 8), (65536, 4), (131072, 2)):
        for causal in (0, 1):
            for config in (CORE[0], CORE[2], CORE[3]):
                rows.append(case((1, heads, heads, seqlen, 128, causal), config))
    for batch, heads, seqlen, head_dim in ((1, 16, 8192, 128), (1, 32, 8192, 128), (1, 32, 4096, 128), (1, 64, 4096, 128),
                                           (1, 128, 2048, 128), (1, 64, 8192, 64), (4, 32, 2048, 128),
                                           (1, 16, 16384, 128), (1, 8, 16384, 256)):
        for causal in (0, 1):
            for config in (CORE[0], CORE[2]) if head_dim < 256 else ((64, 64, 4, 1, "interleaved"), (128, 32, 8, 1, "interleaved")):
                rows.append(case((batch, heads, heads, seqlen, head_dim, causal), config, tile_order="head_first"))
    for kv_heads in (4, 8):
        rows.append(case((1, 64, kv_heads, 8192, 128, 0), CORE[0], tile_order="head_first"))
    for causal, reverse in ((1, 1), (0, 1)):
        for seqlen, heads in ((8192, 16), (32768, 4)):
            rows.append(case((1, heads, heads, seqlen, 128, causal), CORE[0], tile_reverse=reverse))
    return rows


def smoke():
    rows = []
    for head_dim in (64, 128, 256):
        for causal in (0, 1):
            for config in ((64, 32, 4, 1, "interleaved"), (64, 64, 4, 1, "stages"), (128, 32, 4, 2, "stages"), (128, 32, 8, 1, "stages")):
                rows.append(case((1, 4, 2, 1024, head_dim, causal), config))
    for config in CORE + [(128, 64, 4, 3, "stages")]:
        rows.append(case(MID_128, config))
    rows.append(case((1, 32, 32, 4096, 128, 0), CORE[0], tile_order="head_first"))
    return rows


def hopper_smoke():
    rows = []
    for head_dim in (64, 128, 256):
        for causal in (0, 1):
            for copy in ("cp_async", "tma"):
                for config in ((64, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (128, 32, 4, 3, "stages")):
                    if head_dim < 256 or config[:3] != (128, 32, 4):
                        rows.append(wgmma((1, 4, 2, 1024, head_dim, causal), config, copy))
            if head_dim < 256:
                rows.append(pingpong((1, 4, 2, 1024, head_dim, causal), (128, 128, 8, 2)))
                rows.append(pingpong((1, 4, 2, 1536, head_dim, causal), (192, 64, 12, 2)))
    rows += [wgmma(MID_128, (128, 128, 8, 2, "stages"), copy) for copy in ("cp_async", "tma")]
    rows += [wgmma(MID_128, (128, 64, 4, 2, "stages"), copy) for copy in ("cp_async", "tma")]
    rows += [pingpong(MID_128, (128, 128, 8, 2)), pingpong(GQA_128, (128, 128, 8, 2)),
             pingpong((4, 16, 16, 3072, 128, 0), (192, 128, 12, 2))]
    return rows


def hopper():
    rows = []
    for shape in (MID_128, GQA_128, SHORT_64, MID_64, MID_256):
        for copy in ("cp_async", "tma"):
            for block_m, warps in ((64, 4), (128, 4), (128, 8)):
                for block_n in ((32, 64) if shape[4] == 256 else (64, 128)):
                    for stages in (2, 3):
                        if shape[4] < 256 or (block_m, warps) != (128, 4):
                            rows.append(wgmma(shape, (block_m, block_n, warps, stages, "stages"), copy))
    for heads_dim in (64, 128):
        heads = 2048 // heads_dim
        for batch, seqlen in ((32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384)):
            for causal in (0, 1):
                shape = (batch, heads, heads, seqlen, heads_dim, causal)
                rows.append(wgmma(shape, (128, 128, 8, 2, "stages"), "tma"))
                rows.append(pingpong(shape, (128, 128, 8, 2)))
    for shape in (MID_128, GQA_128, MID_64):
        for block_n, stages in ((64, 2), (64, 3), (64, 4), (128, 2), (128, 3)):
            rows.append(pingpong(shape, (128, block_n, 8, stages)))
    for head_dim, heads in ((64, 32), (128, 16)):
        for causal in (0, 1):
            for block_n in (64, 128):
                rows.append(pingpong((4, heads, heads, 3072, head_dim, causal), (192, block_n, 12, 2)))
    return rows


def hopper_long():
    rows = []
    for seqlen, heads in ((32768, 8), (65536, 4), (131072, 2)):
        for causal in (0, 1):
            rows.append(pingpong((1, heads, heads, seqlen, 128, causal), (128, 128, 8, 2)))
            rows.append(wgmma((1, heads, heads, seqlen, 128, causal), (128, 128, 8, 2, "stages"), "tma"))
    for heads, seqlen in ((16, 8192), (64, 4096), (128, 2048)):
        for causal in (0, 1):
            rows.append(pingpong((1, heads, heads, seqlen, 128, causal), (128, 128, 8, 2), tile_order="head_first"))
    return rows


def persistent():
    rows = []
    for head_dim in (64, 128):
        for causal in (0, 1):
            rows.append(pingpong((1, 4, 2, 1024, head_dim, causal), (128, 128, 8, 2), persistent=1))
            rows.append(pingpong((2, 17, 17, 1536, head_dim, causal), (128, 128, 8, 2), persistent=1))
            heads = 2048 // head_dim
            for batch, seqlen in ((32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384)):
                rows.append(pingpong((batch, heads, heads, seqlen, head_dim, causal), (128, 128, 8, 2), persistent=1))
    for shape in (GQA_128, (1, 64, 64, 4096, 128, 1), (1, 8, 8, 32768, 128, 0)):
        for reverse in (0, 1):
            rows.append(pingpong(shape, (128, 128, 8, 2), persistent=1, tile_reverse=reverse))
            rows.append(pingpong(shape, (128, 128, 8, 2), persistent=1, tile_order="head_first", tile_reverse=reverse))
    return rows


def repeat():
    """Profiled five times, for the spread of every counter."""
    rows = [case(shape, CORE[0]) for shape in ((1, 1, 1, 512, 128, 0), (1, 8, 8, 2048, 128, 1), MID_128, GQA_128,
                                               (1, 16, 16, 16384, 128, 0), (1, 8, 8, 32768, 128, 0), (16, 16, 16, 1024, 128, 1))]
    rows += [case(shape, CORE[0], tile_order="head_first") for shape in ((1, 64, 64, 4096, 128, 0), (1, 16, 16, 16384, 128, 0))]
    rows += [case(SHORT_64, CORE[2]), case(MID_64, CORE[1]), case(MID_256, (64, 64, 4, 1, "interleaved"))]
    return rows


def ragged():
    rows = []
    for batch, heads, kv_heads, seqlen_q, seqlen_kv in ((16, 16, 16, 577, 577), (4, 16, 16, 1000, 1000), (8, 16, 16, 2047, 2047),
                                                        (2, 16, 4, 4097, 4097), (1, 8, 8, 8190, 8190), (2, 32, 8, 1000, 3001)):
        for head_dim in (64, 128):
            for causal in (0, 1):
                for config in CORE:
                    rows.append(case((batch, heads, kv_heads, seqlen_q, head_dim, causal), config, seqlen_kv=seqlen_kv))
    return rows


def single_buffer():
    """wgmma with one buffer that K and V take in turn."""
    rows = []
    for shape in (MID_128, GQA_128, SHORT_64, MID_64, (1, 8, 8, 2048, 128, 0), (1, 8, 8, 2048, 64, 1), (1, 4, 4, 32768, 128, 0)):
        for copy in ("cp_async", "tma"):
            for block_m, block_n, warps in ((64, 64, 4), (128, 64, 8), (128, 128, 8), (64, 128, 4)):
                rows.append(wgmma(shape, (block_m, block_n, warps, 1, "stages"), copy))
    return rows


def window_dropout():
    """Sliding windows, dropout, and both."""
    rows = []
    for shape, window in (((4, 16, 16, 4096, 128, 1), 256), ((4, 16, 16, 4096, 128, 1), 1024), ((2, 32, 8, 4096, 128, 1), 512),
                          ((1, 32, 32, 8192, 64, 1), 1000), ((2, 16, 16, 4096, 128, 0), 512)):
        for config in (CORE[0], CORE[2], CORE[3]):
            rows.append(case(shape, config, window=window))
    for heads, head_dim, p in ((16, 128, 0.1), (32, 64, 0.25)):
        for causal in (0, 1):
            for config in (CORE[0], CORE[1], CORE[3]):
                rows.append(case((4, heads, heads, 2048, head_dim, causal), config, dropout_p=p))
    rows += [case((2, 16, 16, 4096, 128, 1), config, window=512, dropout_p=0.1) for config in (CORE[0], CORE[3])]
    return rows


def values():
    """Values narrower than keys, and wider; of each shape every second kernel is held back, the others of the next shape."""
    tiles, rows = ((64, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (64, 64, 4, 1, "stages"), (128, 64, 4, 1, "interleaved")), []
    shapes = [(*shape[:4], head_dim, shape[4], head_dim_v) for head_dim, head_dim_v in ((192, 128), (96, 64), (128, 64), (64, 128))
              for shape in ((4, 16, 16, 4096, 0), (2, 32, 8, 4096, 1))]
    for i, (*shape, head_dim_v) in enumerate(shapes):
        kernels = [case(shape, config) for config in tiles]
        if shape[4] % 64 == 0:  # whole panels
            kernels += [wgmma(shape, config, copy) for copy in ("cp_async", "tma") for config in (*tiles[:2], (128, 128, 8, 1, "stages"))]
            kernels += [pingpong(shape, (128, 128, 8, 2), persistent=persistent) for persistent in (0, 1)]
        rows += [dict(kernel, head_dim_v=head_dim_v, part="held_out" if (i + j) % 2 else "calibration") for j, kernel in enumerate(kernels)]
    return rows


def few_keys():
    """Many queries on few keys, as in cross-attention: what a CTA begins with is much of it.  Kernels and lengths of the second half are held back."""
    rows = []
    for seqlen_kv in (64, 128, 192, 256, 512, 1024, 2048):
        for heads, warps in ((1, 4), (1, 8), (33, 8)):
            rows.append(case((1, heads, heads, 512, 128, 0), (128, 64, warps, 2, "stages"), seqlen_kv=seqlen_kv))
    for seqlen_kv in (64, 128, 256, 512, 1024, 4096):
        rows.append(case((8, 32, 32, 1024, 64, 0), (64, 64, 4, 2, "stages"), seqlen_kv=seqlen_kv))
        rows.append(case((4, 32, 32, 2048, 64, 0), (128, 64, 8, 2, "stages"), seqlen_kv=seqlen_kv))
        for heads in (1, 33):
            rows.append(wgmma((1, heads, heads, 512, 128, 0), (128, 64, 8, 2, "stages"), "tma") | dict(seqlen_kv=seqlen_kv))
    back = []
    for shape in ((2, 24, 24, 4096, 128, 0), (16, 20, 5, 640, 64, 0)):
        for seqlen_kv in (77, 160, 384, 832):
            back += [case(shape, config, seqlen_kv=seqlen_kv) for config in (CORE[0], CORE[3], (64, 64, 4, 1, "stages"), (64, 32, 4, 2, "stages"))]
            back += [wgmma(shape, config, copy) | dict(seqlen_kv=seqlen_kv) for config, copy in (((64, 64, 4, 2, "stages"), "cp_async"), ((128, 128, 8, 2, "stages"), "tma"))]
    return [dict(row, part="calibration") for row in rows] + [dict(row, part="held_out") for row in back]


# block_m and num_warps
WIDE_TILES = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 4), (128, 2), (128, 4), (128, 8), (192, 12), (256, 8), (256, 16))
WIDE_BLOCKS_N = (16, 32, 48, 64, 96, 128)


def wide():
    """Heads of other widths than 64, 128 and 256, few warps and many, narrow tiles, four stages: drawn, every second one held back."""
    draw, rows = random.Random(38), []
    while len(rows) < 84:
        head_dim = draw.choice((32, 32, 64, 96, 96, 128, 160, 192))
        block_m, warps = draw.choice(WIDE_TILES)
        block_n, stages = draw.choice(WIDE_BLOCKS_N), draw.choice((1, 2, 2, 3, 4))
        schedule = "interleaved" if stages == 1 and draw.random() < 0.5 else "stages"
        seqlen = math.lcm(block_m, block_n) * draw.randint(2, 24)
        while seqlen < 768:
            seqlen *= 2
        heads = draw.choice((2, 5, 8, 12, 16, 24, 32))
        batch = max(1, round(draw.uniform(0.4, 2) * 2 ** 15 / seqlen / heads * 64 / head_dim))
        row = case((batch, heads, heads // draw.choice((1, 1, 2)) if heads % 2 == 0 else heads, seqlen, head_dim, draw.choice((0, 0, 1))),
                   (block_m, block_n, warps, stages, schedule))
        accumulators = block_m // warps * (head_dim + block_n) // 32
        has_whole_copies = block_n * head_dim // 8 % (32 * warps) == 0 and block_m * head_dim // 8 % (32 * warps) == 0
        if seqlen <= 8192 and accumulators <= 192 and has_whole_copies and fits(row):
            rows.append(row)
    return rows


def forms():
    """K and V through registers; persistent CTAs by mma.sync; caps of registers below what the compiler would take: all of those spill."""
    rows = []
    for shape in ((2, 16, 16, 2048, 64, 0), (2, 16, 16, 2048, 128, 1), (1, 24, 8, 3072, 64, 1), (8, 10, 10, 1024, 128, 0), (4, 16, 4, 4096, 128, 1)):
        for config in ((64, 64, 4, 1), (64, 64, 4, 2), (128, 64, 8, 2), (128, 32, 4, 2), (64, 32, 4, 2), (128, 64, 8, 1)):
            rows.append(case(shape, (*config, "stages"), copy="ldg"))
        for config, order in (((64, 64, 4, 2, "stages"), "m_first"), ((128, 64, 8, 2, "stages"), "head_first"), ((128, 64, 4, 2, "stages"), "m_first"),
                              ((128, 128, 8, 1, "interleaved"), "m_first")):
            rows.append(case(shape, config, persistent=1, tile_order=order))
        for config, caps in (((128, 64, 4, 2, "stages"), (128, 168)), ((64, 64, 4, 2, "stages"), (96, 128)), ((128, 64, 8, 2, "stages"), (96, 128))):
            rows += [case(shape, config, max_registers=cap) for cap in caps]
    return rows
