#!/usr/bin/env python3
"""Writes the case lists of this folder: which kernels at which shapes.  Everything here is chosen, nothing is measured.

    make_cases.py [--check]       --check writes nothing and fails if a list is not what this script would write"""
import csv
import io
import math
import pathlib
import random
import sys

import unseen3 as third_unseen
import unseen4 as fourth_unseen
import unseen5 as fifth_unseen
import unseen6 as sixth_unseen
import unseen7 as seventh_unseen
import unseen8 as eighth_unseen
import unseen9 as drawn_unseen

COLUMNS = ("workload,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,num_warps,num_stages,"
           "schedule,mma,copy,tile_order,tile_reverse,splits,persistent").split(",")
WINDOW_COLUMNS = [*COLUMNS, "window", "dropout_p"]
PAGED_COLUMNS = [*COLUMNS, "lengths", "page_size", "page_layout", "layout"]
TREE_COLUMNS = [*COLUMNS, "parents"]
QUANTIZED_COLUMNS = [*COLUMNS, "kv_dtype", "kv_group_size"]
VALUE_COLUMNS = [*COLUMNS, "head_dim_v", "part"]
COMPILED_COLUMNS = [*WINDOW_COLUMNS, *PAGED_COLUMNS[len(COLUMNS):], "parents", *QUANTIZED_COLUMNS[len(COLUMNS):], "head_dim_v"]
SHARED_LIMIT = 227 * 1024


def case(shape, config, **more):
    batch, heads, kv_heads, seqlen, head_dim, causal = shape
    block_m, block_n, warps, stages, schedule = config
    row = dict(workload="flash2_fwd", batch=batch, heads=heads, kv_heads=kv_heads, seqlen_q=seqlen, seqlen_kv=seqlen, head_dim=head_dim, causal=causal,
               block_m=block_m, block_n=block_n, num_warps=warps, num_stages=stages, schedule=schedule, mma="mma", copy="cp_async",
               tile_order="m_first", tile_reverse=0, splits=1, persistent=0, window=0, dropout_p=0,
               lengths="", parents="", page_size="", page_layout="", layout="", kv_dtype="", kv_group_size="", head_dim_v="")
    row.update(more)
    return row


def fits(row):
    if row["workload"] in ("standard_attention", "flash_decode") or row["workload"].startswith("softmax"):
        return True
    return fits_shared_memory(row) and row["seqlen_q"] % row["block_m"] == 0 and row["seqlen_kv"] % row["block_n"] == 0


def fits_shared_memory(row):
    head_dim, head_dim_v = row["head_dim"], row["head_dim_v"] or row["head_dim"]
    is_single = row["workload"] != "flash3_fwd" and row["schedule"] == "stages" and row["num_stages"] == 1
    buffers = row["block_n"] * (max(head_dim, head_dim_v) if is_single else row["num_stages"] * (head_dim + head_dim_v))
    outputs = row["block_m"] * head_dim_v if row["workload"] == "flash3_fwd" and head_dim_v > head_dim else 0
    return (row["block_m"] * head_dim + buffers + outputs) * 2 <= SHARED_LIMIT - 1024


def every_other(index):
    """The same for files that came later: half of them."""
    return "held_out" if index % 2 == 1 else "calibration"


def every_third(index):
    """Which part of a new file is held out: settled before anything was measured (measurements/HELDOUT.md)."""
    return "held_out" if index % 3 == 2 else "calibration"


def as_in_their_files(index):
    """The one row of repeat_more that is held out in the file that it repeats a case of."""
    return "held_out" if index == 3 else "calibration"


def unseen(index):
    return "unseen"


def none_to_calibrate(index):
    return "held_out"


def write(name, rows, columns=COLUMNS, keep=fits, part=None):
    seen, unique = set(), []
    for row in rows:
        key = tuple(row[c] for c in columns)
        if key not in seen and keep(row):
            seen.add(key)
            unique.append(row)
    if part:
        columns = [*columns, "part"]
        unique = [dict(row, part=part(index)) for index, row in enumerate(unique)]
    path = pathlib.Path(__file__).with_name(name)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(unique)
    if "--check" not in sys.argv:
        path.write_text(text.getvalue())
        print(f"{path.name}: {len(unique)}")
    elif not path.exists() or path.read_text() != text.getvalue():
        sys.exit(f"{path.name}: not what make_cases.py writes; run it again")


# batch, heads, kv_heads, seqlen, head_dim, causal
SHORT_64 = (16, 32, 32, 1024, 64, 0)
MID_128 = (4, 16, 16, 4096, 128, 0)
GQA_128 = (2, 32, 8, 4096, 128, 1)
MID_64 = (4, 32, 32, 4096, 64, 1)
MID_256 = (4, 8, 8, 4096, 256, 0)

CORE = [(128, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (64, 64, 4, 2, "stages"), (128, 128, 8, 1, "interleaved")]


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
    for batch, heads, seqlen, head_dim in ((1, 16, 8192, 128), (1, 32, 8192, 128), (1, 32, 4096, 128), (1, 64, 4096, 128), (1, 128, 2048, 128), (1, 64, 8192, 64), (4, 32, 2048, 128),
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


def wgmma(shape, config, copy):
    return case(shape, config, mma="wgmma", copy=copy)


def pingpong(shape, config, **more):
    return case(shape, (*config, "pingpong"), workload="flash3_fwd", mma="wgmma", copy="tma", **more)


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
    rows += [pingpong(MID_128, (128, 128, 8, 2)), pingpong(GQA_128, (128, 128, 8, 2)), pingpong((4, 16, 16, 3072, 128, 0), (192, 128, 12, 2))]
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


def unfused(shape, block_m, block_n, warps, kind):
    return case(shape, (block_m, block_n, warps, 2, kind), workload="standard_attention")


def decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits):
    return case((batch, heads, kv_heads, seqlen, head_dim, 0), (16, block_n, 4, stages, "stages"), workload="flash_decode", seqlen_q=1, splits=splits)


def other():
    rows = []
    for shape in ((2, 8, 8, 1024, 64, 0), (2, 8, 4, 1024, 128, 1), (1, 16, 16, 2048, 128, 0), (1, 16, 16, 2048, 128, 1), (1, 16, 16, 4096, 128, 0), (1, 8, 8, 8192, 128, 0), (1, 32, 32, 2048, 64, 1),
                  (4, 16, 16, 1024, 64, 0)):
        for kind in ("safe", "online"):
            rows.append(unfused(shape, 128, 128, 8, kind))
        rows.append(unfused(shape, 64, 64, 4, "safe"))
    for batch, heads, kv_heads, seqlen, head_dim in ((1, 32, 8, 8192, 128), (1, 32, 8, 65536, 128), (16, 32, 8, 4096, 128), (64, 32, 8, 2048, 128), (8, 32, 32, 4096, 128), (1, 16, 1, 32768, 128),
                                                     (8, 32, 4, 16384, 64)):
        for splits in (1, 4, 16):
            for block_n, stages in ((64, 3), (128, 2)):
                rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
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
    rows = [case(shape, CORE[0]) for shape in ((1, 1, 1, 512, 128, 0), (1, 8, 8, 2048, 128, 1), MID_128, GQA_128, (1, 16, 16, 16384, 128, 0), (1, 8, 8, 32768, 128, 0), (16, 16, 16, 1024, 128, 1))]
    rows += [case(shape, CORE[0], tile_order="head_first") for shape in ((1, 64, 64, 4096, 128, 0), (1, 16, 16, 16384, 128, 0))]
    rows += [case(SHORT_64, CORE[2]), case(MID_64, CORE[1]), case(MID_256, (64, 64, 4, 1, "interleaved"))]
    return rows


def other_more():
    """More shapes of decoding and of unfused attention, short and long, head_dim 64 and 128."""
    rows = []
    for shape in ((1, 8, 8, 512, 64, 0), (16, 16, 16, 512, 128, 0), (8, 32, 32, 512, 64, 1), (2, 16, 16, 2048, 64, 0), (1, 32, 8, 4096, 128, 1), (1, 4, 4, 8192, 64, 1), (1, 4, 4, 8192, 128, 1),
                  (8, 16, 16, 1024, 128, 1), (1, 12, 12, 6144, 64, 0), (1, 2, 2, 16384, 64, 0), (1, 20, 5, 3072, 128, 0)):
        for kind in ("safe", "online"):
            rows.append(unfused(shape, 128, 128, 8, kind))
        rows.append(unfused(shape, 64, 64, 4, "safe"))
    for batch, heads, kv_heads, seqlen in ((1, 8, 8, 512), (4, 32, 8, 1024), (64, 32, 4, 1024), (1, 32, 8, 131072), (32, 16, 16, 2048), (2, 16, 2, 24576)):
        for head_dim in (64, 128):
            for splits in (1, 2, 8) if seqlen < 16384 else (8, 32):
                rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, 64, 3, splits))
            rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, 128, 2, 8))
    return rows


def softmax_case(kind, num_rows, columns, block_m, num_warps, held=0):
    """num_rows of `columns`; a row has num_warps / block_m warps; held: columns of a row that stay in registers."""
    return case((1, 1, 1, num_rows, "", 0), (block_m, held or 256 * num_warps // block_m, num_warps, 1, "registers" if held else "reread"), workload="softmax_" + kind,
                seqlen_kv=columns, mma="none", copy="ldg")


def softmax():
    rows = []
    for num_rows, columns in ((65536, 1024), (4096, 1024), (32768, 2048), (16384, 4096), (1024, 4096), (16384, 5000), (8192, 8192), (4096, 16384), (528, 16384), (2048, 32768), (1024, 65536),
                              (132, 65536), (16, 65536), (4096, 1000), (2640, 12288)):
        for kind in ("safe", "online"):
            for block_m in (1, 4):
                rows.append(softmax_case(kind, num_rows, columns, block_m, 4))
        for block_m, held in ((1, 4096), (1, 16384), (4, 1024), (4, 4096)):
            if columns <= held <= 8 * columns:
                rows.append(softmax_case("online", num_rows, columns, block_m, 4, held))
        if columns <= 4096:
            rows.append(softmax_case("safe", num_rows, columns, 1, 4, 4096))
    return rows


def ragged():
    rows = []
    for batch, heads, kv_heads, seqlen_q, seqlen_kv in ((16, 16, 16, 577, 577), (4, 16, 16, 1000, 1000), (8, 16, 16, 2047, 2047), (2, 16, 4, 4097, 4097), (1, 8, 8, 8190, 8190), (2, 32, 8, 1000, 3001)):
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
    for shape, window in (((4, 16, 16, 4096, 128, 1), 256), ((4, 16, 16, 4096, 128, 1), 1024), ((2, 32, 8, 4096, 128, 1), 512), ((1, 32, 32, 8192, 64, 1), 1000), ((2, 16, 16, 4096, 128, 0), 512)):
        for config in (CORE[0], CORE[2], CORE[3]):
            rows.append(case(shape, config, window=window))
    for heads, head_dim, p in ((16, 128, 0.1), (32, 64, 0.25)):
        for causal in (0, 1):
            for config in (CORE[0], CORE[1], CORE[3]):
                rows.append(case((4, heads, heads, 2048, head_dim, causal), config, dropout_p=p))
    rows += [case((2, 16, 16, 4096, 128, 1), config, window=512, dropout_p=0.1) for config in (CORE[0], CORE[3])]
    return rows


REQUESTS = "37:1290:412:2005:188:733:96:1544:301:64:878:1170:523:240:1821:660"


def paged_case(shape, lengths, config, page_size, page_layout, splits, layout="bshd"):
    block_n, stages = config
    return case((*shape, 0), (16, block_n, 4, stages, "stages"), workload="paged_decode", seqlen_q=1, splits=splits, lengths=lengths, page_size=page_size, page_layout=page_layout, layout=layout)


def paged():
    """Decoding over pages: sequences as long as each other, requests of all lengths, few long ones."""
    rows = []
    for shape, lengths, splits in (((16, 32, 8, 4096, 128), "4096x16", (1, 2, 4)), ((16, 40, 40, 2005, 128), REQUESTS, (1, 4)), ((64, 32, 8, 1500, 64), "1500x64", (1, 2)), ((2, 32, 8, 32768, 128), "32768x2", (8, 16))):
        for number_of_splits in splits:
            for config, page_size, page_layout in (((64, 3), 16, "scattered"), ((64, 3), 256, "contiguous"), ((128, 2), 64, "scattered")):
                rows.append(paged_case(shape, lengths, config, page_size, page_layout, number_of_splits))
    rows += [paged_case((16, 32, 8, 4096, 128), "4096x16", (64, 3), page_size, "scattered", 2, layout) for page_size, layout in ((16, "bhsd"), (64, "bhsd"), (4, "bshd"))]
    return rows


def tree_case(shape, branches, config, splits):
    """A tree in which token i has `branches` followers, as far as there are tokens; shape names their number."""
    batch, heads, kv_heads, tokens, seqlen, head_dim = shape
    parents = [i // branches for i in range(tokens - 1)]
    counts = [f"{parent}x{parents.count(parent)}" for parent in dict.fromkeys(parents)]
    return case((batch, heads, kv_heads, seqlen, head_dim, 0), (*config[:3], config[3], "stages"), workload="tree_decode", seqlen_q=tokens, splits=splits, parents=":".join(counts))


def tree():
    """Verification of trees of 16 to 64 tokens, of few and of many branches."""
    rows = []
    for shape, branches, splits in (((1, 32, 8, 16, 8192, 128), 3, (1, 8)), ((4, 32, 8, 64, 4096, 128), 4, (1, 4)), ((1, 32, 32, 64, 8192, 128), 2, (2, 8)), ((8, 32, 4, 32, 2048, 64), 1, (1, 2)),
                                    ((1, 64, 8, 26, 32768, 128), 5, (16,))):
        for number_of_splits in splits:
            for config in ((64, 64, 4, 3), (128, 64, 8, 3)):
                rows.append(tree_case(shape, branches, config, number_of_splits))
    return rows


def flash1_case(shape, config):
    return case(shape, (16, *config, "stages"), workload="flash1_fwd")


def flash1():
    """From few CTAs, one a head, to several waves of them; one block of keys to sixty-four."""
    small, halves, wide, large, single = (256, 4, 2), (128, 4, 2), (128, 4, 2), (256, 8, 2), (256, 4, 1)
    rows = []
    for batch, heads, kv_heads, seqlen, head_dim, causal, configs in (
            (8, 16, 16, 1024, 64, 0, (small, halves, single)), (4, 33, 33, 2048, 64, 0, (small, halves)), (64, 16, 16, 512, 64, 0, (small, single)), (1, 24, 24, 8192, 64, 0, (small,)),
            (16, 16, 16, 256, 64, 0, (small,)), (8, 32, 32, 1024, 64, 1, (small, halves)), (4, 16, 16, 4096, 64, 1, (small,)),
            (8, 16, 16, 1024, 128, 0, (wide, large)), (2, 24, 6, 4096, 128, 0, (wide, large)), (32, 16, 16, 512, 128, 0, (wide,)), (6, 40, 40, 2048, 128, 1, (wide,))):
        rows += [flash1_case((batch, heads, kv_heads, seqlen, head_dim, causal), config) for config in configs]
    return rows


def quantized_case(shape, kv_dtype, group, config, splits):
    return dict(decode(*shape, *config, splits), kv_dtype=kv_dtype, kv_group_size=group)


def quantized():
    """Decoding over caches of 8 and 4 bits: one scale a token or several, few and many CTAs."""
    near, far = (64, 3), (128, 2)
    batched, long_one, many, few, grouped, narrow = (16, 32, 8, 8192, 128), (1, 32, 8, 65536, 128), (64, 32, 8, 2048, 128), (1, 8, 8, 8192, 128), (2, 16, 2, 32768, 128), (8, 32, 4, 16384, 64)
    return [quantized_case(batched, "int8", 128, near, 2), quantized_case(batched, "fp8", 128, near, 2), quantized_case(batched, "int4", 128, near, 2), quantized_case(batched, "int8", 32, near, 2),
            quantized_case(long_one, "fp8", 128, near, 32), quantized_case(long_one, "int4", 128, near, 32), quantized_case(many, "int8", 128, far, 1), quantized_case(many, "int8", 128, near, 1),
            quantized_case(many, "int4", 128, near, 1), quantized_case(few, "int8", 128, near, 16), quantized_case(few, "fp8", 128, near, 4), quantized_case(grouped, "int8", 128, far, 32),
            quantized_case(grouped, "int8", 32, near, 16), quantized_case(narrow, "fp8", 64, far, 4), quantized_case(narrow, "fp8", 64, far, 16), quantized_case(many, "fp8", 128, near, 4)]


PRODUCT_COLUMNS = "workload,batch,m,n,k,block_m,block_n,block_k,num_warps,num_stages,mma,copy,tile_order,splits".split(",")


def product(workload, sizes, config, splits=1):
    batch, m, n, k = sizes
    block_m, block_n, block_k, warps, stages = config
    return dict(workload=workload, batch=batch, m=m, n=n, k=k, block_m=block_m, block_n=block_n, block_k=block_k, num_warps=warps, num_stages=stages, mma="mma", copy="cp_async", tile_order="m_first",
                splits=splits)


def products():
    """Matrix products, with K in one part and in several, and gated linear units."""
    rows = []
    for sizes, splits in (((1, 4096, 4096, 4096), (1,)), ((1, 512, 512, 16384), (1, 4, 16)), ((1, 128, 4096, 4096), (1, 2, 8)), ((1, 1024, 1024, 8192), (1, 4)), ((16, 1024, 1024, 128), (1,)),
                          ((1, 8192, 2048, 2048), (1,)), ((8, 256, 256, 4096), (1, 4))):
        for config in ((128, 128, 64, 8, 3), (128, 64, 64, 4, 4), (64, 128, 64, 4, 3)):
            rows += [product("matmul_tiled", sizes, config, number) for number in splits]
    for sizes in ((1, 2048, 5632, 2048), (1, 128, 11008, 4096), (1, 4096, 11008, 4096), (1, 8192, 2816, 1024), (1, 512, 14336, 4096)):
        for config in ((128, 64, 64, 8, 3), (64, 64, 64, 4, 3)):
            rows.append(product("glu", sizes, config))
    return rows


WGMMA_PRODUCT_COLUMNS = "workload,batch,m,n,k,transpose_b,block_m,block_n,block_k,num_warps,num_stages,mma,copy,persistent,store,tile_order,splits,part".split(",")


def wgmma_products():
    """Products by wgmma and TMA; of each shape every second kernel is held back, the others of the next shape."""
    configs = ((0, 128, 128, 8, 4, 0, "direct"), (0, 128, 128, 8, 4, 1, "staged"), (1, 128, 128, 8, 4, 0, "staged"), (0, 128, 128, 4, 3, 0, "direct"),
               (0, 128, 256, 8, 3, 1, "staged"), (0, 128, 256, 8, 2, 1, "direct"), (1, 256, 128, 8, 4, 1, "staged"), (0, 256, 128, 8, 3, 0, "direct"),
               (1, 128, 192, 8, 4, 1, "staged"), (0, 64, 128, 4, 4, 0, "direct"), (0, 64, 128, 4, 2, 0, "staged"), (1, 64, 256, 4, 3, 1, "staged"))
    shapes = ((1, 4096, 4096, 4096), (1, 8192, 2304, 1024), (1, 16384, 4608, 64), (8, 2048, 1536, 128), (1, 768, 768, 16384), (1, 3072, 3072, 512))
    rows = []
    for i, sizes in enumerate(shapes):
        turns = [(j, j, 1) for j in range(len(configs))]
        if sizes[3] == 16384:
            turns += [(j + more, j, splits) for j in range(len(configs)) if configs[j][5:] == (0, "direct") for more, splits in enumerate((3, 7))]
        for turn, j, splits in turns:
            transpose_b, block_m, block_n, warps, stages, persistent, store = configs[j]
            if sizes[2] % block_n:
                continue
            row = product("matmul_tiled", sizes, (block_m, block_n, 64, warps, stages), splits)
            row.update(transpose_b=transpose_b, mma="wgmma", copy="tma", persistent=persistent, store=store, part="held_out" if (i + turn) % 2 else "calibration")
            rows.append(row)
    return rows


def values():
    """Values narrower than keys, and wider; of each shape every second kernel is held back, the others of the next shape."""
    tiles, rows = ((64, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (64, 64, 4, 1, "stages"), (128, 64, 4, 1, "interleaved")), []
    shapes = [(*shape[:4], head_dim, shape[4], head_dim_v) for head_dim, head_dim_v in ((192, 128), (96, 64), (128, 64), (64, 128)) for shape in ((4, 16, 16, 4096, 0), (2, 32, 8, 4096, 1))]
    for i, (*shape, head_dim_v) in enumerate(shapes):
        kernels = [case(shape, config) for config in tiles]
        if shape[4] % 64 == 0:  # whole panels
            kernels += [wgmma(shape, config, copy) for copy in ("cp_async", "tma") for config in (*tiles[:2], (128, 128, 8, 1, "stages"))]
            kernels += [pingpong(shape, (128, 128, 8, 2), persistent=persistent) for persistent in (0, 1)]
        rows += [dict(kernel, head_dim_v=head_dim_v, part="held_out" if (i + j) % 2 else "calibration") for j, kernel in enumerate(kernels)]
    return rows


def compiled():
    """One small instance of each kernel: what a machine without a GPU compiles to see that everything does."""
    shape, odd = (1, 4, 2, 512, 64, 1), (1, 4, 2, 500, 64, 1)
    return [case(shape, (64, 32, 4, 2, "stages")), case(shape, (64, 32, 4, 1, "stages")), case(shape, (64, 32, 4, 1, "interleaved")), case(odd, (64, 32, 4, 2, "stages")),
            wgmma(shape, (64, 64, 4, 2, "stages"), "cp_async"), wgmma(shape, (64, 64, 4, 2, "stages"), "tma"), wgmma(shape, (64, 64, 4, 1, "stages"), "tma"),
            pingpong(shape, (128, 64, 8, 2)), pingpong(shape, (128, 64, 8, 2), persistent=1), unfused(shape, 64, 64, 4, "safe"), decode(1, 4, 2, 512, 64, 64, 2, 2),
            softmax_case("safe", 64, 1000, 1, 4), softmax_case("online", 64, 1000, 4, 4), softmax_case("online", 64, 1000, 4, 4, 1024),
            case(shape, (64, 32, 4, 2, "stages"), window=100), case(odd, (64, 32, 4, 1, "interleaved"), window=100, dropout_p=0.1),
            paged_case((2, 4, 2, 500, 64), "37:500", (64, 2), 16, "scattered", 2),
            tree_case((1, 4, 2, 20, 512, 64), 3, (64, 64, 4, 2), 2), flash1_case(shape, (128, 4, 2)),
            case((1, 4, 2, 512, 96, 1), (64, 32, 4, 2, "stages"), head_dim_v=64), case(shape, (64, 32, 4, 1, "stages"), head_dim_v=128),
            *(dict(wgmma(shape, (64, 64, 4, 2, "stages"), copy), head_dim_v=128) for copy in ("cp_async", "tma")), pingpong(shape, (128, 64, 8, 2), head_dim_v=128),
            *(quantized_case((1, 4, 2, 512, 64), kv_dtype, 32, (64, 2), 2) for kv_dtype in ("int8", "fp8", "int4"))]


def repeat_more():
    """As repeat(), for the kernels that came later."""
    rows = [softmax_case("safe", 16384, 4096, 1, 4), softmax_case("online", 16384, 4096, 4, 4), softmax_case("online", 1024, 65536, 1, 4), softmax_case("safe", 4096, 1024, 1, 4)]
    rows += [decode(1, 32, 8, 131072, 128, 64, 3, 32), decode(64, 32, 4, 1024, 128, 64, 3, 2), decode(1, 8, 8, 512, 64, 64, 3, 1), decode(32, 16, 16, 2048, 64, 64, 3, 2)]
    rows += [unfused((1, 12, 12, 6144, 64, 0), 128, 128, 8, "safe"), unfused((8, 32, 32, 512, 64, 1), 128, 128, 8, "online")]
    rows += [wgmma(MID_128, (64, 64, 4, 1, "stages"), "tma"), case((8, 16, 16, 2047, 64, 0), (64, 64, 4, 2, "stages"))]
    return rows


FOREIGN_COLUMNS = "source,pass,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,num_warps,num_stages".split(",")


def foreign_case(source, shape, config=("", "", "", ""), direction="fwd"):
    batch, heads, kv_heads, seqlen, head_dim, causal = shape
    block_m, block_n, warps, stages = config
    return {"source": source, "pass": direction, "batch": batch, "heads": heads, "kv_heads": kv_heads, "seqlen_q": seqlen, "seqlen_kv": seqlen,
            "head_dim": head_dim, "causal": causal, "block_m": block_m, "block_n": block_n, "num_warps": warps, "num_stages": stages}


def triton():
    rows = []
    for shape in ((4, 16, 16, 4096, 128, 0), (2, 32, 8, 4096, 128, 1), (16, 32, 32, 1024, 64, 0), (2, 32, 32, 8192, 64, 1)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3, 4):
                    rows.append(foreign_case("triton", shape, (block_m, block_n, warps, stages)))
    best = ((128, 64, 4, 3), (128, 128, 8, 2), (64, 64, 4, 3))
    for shape in ((1, 8, 8, 32768, 128, 0), (1, 4, 4, 65536, 128, 1), (1, 4, 4, 65536, 128, 0), (32, 16, 16, 512, 128, 0), (1, 32, 4, 16384, 128, 1), (1, 8, 8, 2048, 128, 0),
                  (8, 8, 8, 2048, 256, 0)):
        for config in best:
            rows.append(foreign_case("triton", shape, config))
    return rows


def triton_more():
    rows = []
    for shape in ((1, 16, 16, 16384, 128, 1), (32, 16, 16, 512, 128, 1), (8, 32, 4, 2048, 128, 0), (1, 12, 12, 6144, 64, 0), (3, 20, 5, 3072, 128, 1)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3):
                    rows.append(foreign_case("triton", shape, (block_m, block_n, warps, stages)))
    for shape in ((1, 32, 32, 8192, 128, 0), (1, 128, 128, 2048, 128, 1), (2, 8, 8, 8192, 256, 1), (1, 2, 2, 131072, 128, 1)):
        for config in ((64, 32, 4, 2), (64, 64, 4, 2), (128, 32, 8, 2), (128, 64, 8, 2)):
            rows.append(foreign_case("triton", shape, config))
    return rows


def library():
    rows = []
    for heads_dim in (64, 128):
        heads = 2048 // heads_dim
        for batch, seqlen in ((32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384)):
            for causal in (0, 1):
                for source in ("sdpa_flash", "sdpa_cudnn"):
                    rows.append(foreign_case(source, (batch, heads, heads, seqlen, heads_dim, causal)))
    for seqlen, heads in ((32768, 8), (65536, 4), (131072, 2)):
        for causal in (0, 1):
            for source in ("sdpa_flash", "sdpa_cudnn"):
                rows.append(foreign_case(source, (1, heads, heads, seqlen, 128, causal)))
    for source in ("sdpa_flash", "sdpa_cudnn"):
        for kv_heads in (4, 8):
            rows.append(foreign_case(source, (2, 32, kv_heads, 4096, 128, 1)))
        for batch, seqlen in ((4, 2048), (1, 8192)):
            rows.append(foreign_case(source, (batch, 16, 16, seqlen, 128, 0), direction="bwd"))
            rows.append(foreign_case(source, (batch, 16, 16, seqlen, 128, 1), direction="bwd"))
        rows.append(foreign_case(source, (4, 8, 8, 4096, 256, 0)))
    for batch, m, n, k in ((1, 4096, 4096, 4096), (1, 8192, 8192, 8192), (1, 8192, 8192, 128), (64, 2048, 2048, 128), (64, 2048, 128, 2048), (16, 4096, 4096, 64), (1, 16384, 1024, 4096)):
        rows.append(dict(foreign_case("cublas", (batch, 1, 1, m, k, 0)), seqlen_kv=n))
    return rows


def library_more():
    rows = []
    for source in ("sdpa_flash", "sdpa_cudnn"):
        for batch, heads, kv_heads, seqlen, head_dim in ((3, 20, 20, 3072, 128), (1, 12, 12, 6144, 64), (2, 32, 4, 2048, 128), (1, 64, 8, 8192, 128), (8, 8, 8, 1024, 256), (1, 8, 8, 16384, 256),
                                                         (64, 16, 16, 256, 128), (1, 1, 1, 8192, 128), (1, 5, 5, 4096, 128), (1, 40, 8, 32768, 128), (2, 24, 24, 1536, 64)):
            for causal in (0, 1):
                rows.append(foreign_case(source, (batch, heads, kv_heads, seqlen, head_dim, causal)))
    for batch, m, n, k in ((1, 2048, 2048, 2048), (1, 4096, 16384, 1024), (1, 1024, 1024, 16384), (32, 1024, 1024, 64), (32, 1024, 64, 1024), (16, 4096, 128, 4096), (8, 8192, 8192, 128), (1, 16384, 16384, 4096),
                           (1, 12288, 4096, 4096), (128, 512, 512, 128)):
        rows.append(dict(foreign_case("cublas", (batch, 1, 1, m, k, 0)), seqlen_kv=n))
    return rows


PRODUCT_SIZES = ((4096, 4096, 4096), (8192, 4096, 4096), (2048, 2048, 8192), (8192, 8192, 2048), (1024, 4096, 1024), (4096, 14336, 4096), (16384, 2048, 512), (512, 8192, 4096))


def types():
    """Products of numbers of one byte: the library picks its kernels."""
    sizes = [*(("fp8_e4m3", size) for size in PRODUCT_SIZES), *(("int8", size) for size in PRODUCT_SIZES[:6])]
    return [dict(foreign_case("cublas", (1, 1, 1, m, k, 0)), seqlen_kv=n, dtype=dtype, transpose_b=1) for dtype, (m, n, k) in sizes]


def triton_wide():
    """Products in Triton whose tiles have fewer rows than its warpgroups: these lie side by side."""
    tiles = ((64, 128, 64, 8, 3), (64, 256, 64, 8, 3), (64, 128, 32, 8, 4), (128, 256, 64, 16, 3), (128, 128, 64, 16, 3), (64, 256, 32, 16, 4))
    sizes = ((4096, 4096, 1024), (2048, 1024, 4096))
    return [dict(foreign_case("triton_product", (1, 1, 1, m, k, 0), (block_m, block_n, warps, stages)), seqlen_kv=n, block_k=block_k)
            for block_m, block_n, block_k, warps, stages in tiles for m, n, k in sizes]


# heads of 12 tiles of 128 rows in one wave of 132 CTAs, with more and more keys, and in more waves; one head of 132 tiles
WAVES = [*((11, 1536, keys) for keys in (512, 1024, 2048, 4096, 8192, 16384)), *((heads, 1536, 2048) for heads in (22, 44, 88)), (1, 16896, 2048), (1, 16896, 8192)]


def waves_own():
    """How loads merge while CTAs of a head drift apart: in a loop, and from wave to wave."""
    rows = []
    for heads, queries, keys in WAVES:
        shape, lengths = (1, heads, heads, queries, 128, 0), dict(seqlen_kv=keys)
        rows += [pingpong(shape, (128, 128, 8, 2), **lengths, persistent=persistent) for persistent in ((0, 1) if heads in (22, 44, 88) else (0,))]
        rows.append(dict(wgmma(shape, (128, 128, 8, 2, "stages"), "tma"), **lengths))
    return rows


def waves_library():
    rows = []
    for head_dim in (128, 64, 96, 256):
        for heads, queries, keys in WAVES if head_dim == 128 else [wave for wave in WAVES if wave[0] > 1 and wave[2] not in (1024, 16384)]:
            rows.append(dict(foreign_case("sdpa_cudnn", (1, heads, heads, queries, head_dim, 0)), seqlen_kv=keys))
    return rows


def chips(of, step):
    """What is measured on a second GPU too: every so many cases of a list that the first GPU has measured."""
    return of[::step]


def chips_own():
    kept = [row for row in flash2() if fits(row)]
    return chips(kept, 9) + chips([r for r in hopper() if fits(r)], 6) + chips([r for r in other() if fits(r)], 5) + chips([r for r in softmax() if fits(r)], 8) + chips([r for r in persistent() if fits(r)], 5)


def unseen_own():
    """Kernels of this project at blocks and shapes that no other file has."""
    rows = []
    shapes = ((3, 16, 16, 768, 64, 0), (2, 32, 4, 3072, 128, 1), (1, 24, 24, 3072, 64, 1), (1, 8, 1, 12288, 128, 0), (5, 12, 12, 768, 128, 0))
    for shape in shapes:
        for config in ((64, 96, 4, 2, "stages"), (128, 96, 8, 2, "stages"), (128, 48, 4, 2, "stages")):
            rows.append(case(shape, config))
    for shape in ((2, 32, 4, 3072, 128, 1), (1, 8, 1, 12288, 128, 0), (5, 12, 12, 768, 128, 0)):
        for copy in ("cp_async", "tma"):
            rows.append(wgmma(shape, (128, 96, 8, 2, "stages"), copy))
        rows.append(wgmma(shape, (64, 192, 4, 1, "stages"), "tma"))
        rows.append(pingpong(shape, (128, 96, 8, 2)))
        rows.append(pingpong(shape, (128, 64, 8, 3), persistent=1))
    for shape in ((2, 20, 20, 1280, 128, 0), (1, 16, 2, 5120, 128, 1)):
        for config in CORE[:2]:
            rows.append(case(shape, config))
    rows += [case((3, 16, 4, 1300, 64, 1), CORE[0], seqlen_kv=1300), case((1, 24, 24, 3333, 128, 0), CORE[1], seqlen_kv=3333), case((2, 16, 16, 700, 128, 1), CORE[0], seqlen_kv=5000)]
    for batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits in ((3, 64, 8, 12288, 128, 64, 3, 4), (24, 32, 8, 3072, 128, 64, 3, 2), (1, 40, 8, 49152, 128, 128, 2, 24), (7, 16, 16, 768, 64, 64, 3, 1),
                                                                             (2, 32, 4, 20480, 64, 128, 2, 12), (96, 32, 8, 640, 128, 64, 3, 1)):
        rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
    for shape in ((3, 12, 12, 768, 64, 0), (1, 24, 3, 3072, 128, 1), (2, 10, 10, 1536, 128, 0)):
        for kind in ("safe", "online"):
            rows.append(unfused(shape, 128, 128, 8, kind))
    for num_rows, columns in ((20000, 1536), (6144, 6144), (700, 49152), (264, 24576)):
        rows += [softmax_case("safe", num_rows, columns, 1, 4), softmax_case("online", num_rows, columns, 1, 8), softmax_case("online", num_rows, columns, 4, 4)]
    return rows


def unseen4_own():
    """The same again, for a later model."""
    rows = []
    for shape in ((3, 18, 18, 2560, 128, 1), (1, 20, 10, 5760, 128, 0), (4, 14, 14, 1920, 64, 1), (1, 6, 2, 15360, 64, 0), (11, 8, 8, 960, 128, 0)):
        for config in ((64, 80, 4, 2, "stages"), (128, 80, 8, 2, "stages"), (128, 160, 8, 1, "interleaved"), (64, 160, 4, 1, "stages"), (128, 48, 8, 3, "stages"), (64, 64, 4, 3, "stages")):
            if config[1] * shape[4] // 8 % (32 * config[2]) == 0:  # each thread copies as much of a tile
                rows.append(case(shape, config))
    for shape in ((3, 18, 18, 2560, 128, 1), (1, 20, 10, 5760, 128, 0), (11, 8, 8, 960, 128, 0)):
        for copy in ("cp_async", "tma"):
            rows += [wgmma(shape, (128, 80, 8, 2, "stages"), copy), wgmma(shape, (64, 80, 4, 3, "stages"), copy)]
        rows += [pingpong(shape, (128, 80, 8, 2)), pingpong(shape, (128, 160, 8, 2), persistent=1)]
    for batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits in ((5, 48, 8, 10240, 128, 64, 3, 3), (40, 24, 8, 2560, 128, 128, 2, 1), (1, 32, 4, 66560, 128, 64, 3, 32), (9, 20, 20, 1920, 64, 64, 3, 1)):
        rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
    for shape in ((3, 10, 10, 1280, 64, 1), (1, 12, 3, 2560, 128, 0)):
        rows += [unfused(shape, 128, 128, 8, kind) for kind in ("safe", "online")]
    for num_rows, columns in ((12288, 1280), (3000, 10240), (200, 40960)):
        rows += [softmax_case("safe", num_rows, columns, 1, 8), softmax_case("online", num_rows, columns, 1, 4), softmax_case("safe", num_rows, columns, 4, 4)]
    return rows


FIFTH_COLUMNS = [*WINDOW_COLUMNS, *PAGED_COLUMNS[len(COLUMNS):], "parents"]


def unseen5_own():
    """And again: blocks of 112, 144 and 176 keys, and one shape or two of every other kernel."""
    rows = []
    for shape in ((2, 26, 26, 4032, 128, 0), (1, 28, 7, 5040, 128, 1), (6, 9, 9, 2016, 64, 0), (1, 10, 2, 12096, 64, 1)):
        for config in ((64, 112, 4, 2, "stages"), (128, 112, 8, 2, "stages"), (64, 144, 4, 1, "interleaved"), (64, 96, 4, 3, "stages"), (128, 32, 4, 3, "stages")):
            if shape[3] % config[1] == 0 and config[1] * shape[4] // 8 % (32 * config[2]) == 0:
                rows.append(case(shape, config))
    for shape in ((2, 26, 26, 4032, 128, 0), (1, 28, 7, 5376, 128, 1), (6, 9, 9, 2688, 64, 0)):
        rows += [wgmma(shape, (64, 112, 4, 2, "stages"), copy) for copy in ("cp_async", "tma")]
        rows += [wgmma(shape, (128, 96, 8, 2, "stages"), "tma"), wgmma(shape, (64, 64, 4, 2, "stages"), "cp_async")]
    rows += [pingpong((2, 26, 26, 2816, 128, 0), (128, 176, 8, 2)), pingpong((2, 26, 26, 2816, 128, 0), (128, 176, 8, 2), persistent=1), pingpong((1, 28, 7, 5376, 128, 1), (128, 112, 8, 2)),
             pingpong((6, 9, 9, 2688, 64, 0), (192, 112, 12, 2)), pingpong((1, 10, 2, 11520, 64, 1), (128, 144, 8, 3))]
    rows += [case((4, 12, 12, 1777, 128, 1), (64, 64, 4, 2, "stages")), case((2, 14, 14, 2944, 64, 1), (128, 64, 8, 2, "stages"), window=500), case((2, 10, 10, 2560, 128, 0), (64, 64, 4, 2, "stages"), dropout_p=0.2)]
    for batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits in ((4, 40, 8, 14336, 128, 64, 3, 4), (56, 28, 4, 1536, 128, 64, 2, 1), (1, 24, 8, 40960, 128, 128, 2, 20), (11, 16, 16, 2816, 64, 128, 2, 2)):
        rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
    rows += [paged_case((12, 40, 8, 3300, 128), "3300x12", (64, 3), 32, "scattered", 3), tree_case((2, 40, 8, 40, 6144, 128), 3, (64, 64, 4, 3), 6)]
    for shape in ((2, 14, 14, 1792, 64, 0), (1, 20, 5, 3072, 128, 1)):
        rows += [unfused(shape, 128, 128, 8, kind) for kind in ("safe", "online")]
    rows += [softmax_case("safe", 9000, 2048, 1, 4), softmax_case("online", 9000, 2048, 1, 8), softmax_case("safe", 2500, 6000, 1, 4), softmax_case("online", 150, 30000, 1, 8),
             softmax_case("safe", 9000, 2048, 1, 4, 2048), softmax_case("online", 20000, 900, 4, 4, 1024)]
    rows += [flash1_case((5, 20, 20, 1536, 64, 0), (128, 4, 2)), flash1_case((3, 18, 18, 2304, 128, 1), (128, 4, 2))]
    return rows


def unseen5_products():
    rows = [product("matmul_tiled", sizes, config) for sizes in ((1, 3072, 3072, 3072), (1, 6144, 1024, 2048), (10, 768, 768, 768)) for config in ((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3))]
    return rows + [product("glu", sizes, (128, 64, 64, 8, 3)) for sizes in ((1, 1024, 7168, 2048), (1, 3072, 4096, 1536))]


def unseen6_own():
    """And again: blocks of 48, 80 and 160 keys, and a shape or two of every other kernel."""
    rows = []
    for shape in ((2, 19, 19, 3840, 128, 0), (1, 32, 4, 5760, 128, 1), (5, 11, 11, 1920, 64, 0), (1, 14, 2, 9600, 64, 1)):
        for config in ((64, 48, 4, 3, "stages"), (64, 80, 4, 2, "stages"), (128, 80, 4, 2, "stages"), (128, 48, 8, 3, "stages"), (64, 160, 4, 1, "interleaved")):
            if shape[3] % config[1] == 0 and config[1] * shape[4] // 8 % (32 * config[2]) == 0:
                rows.append(case(shape, config))
    for shape in ((2, 19, 19, 3840, 128, 0), (1, 32, 4, 5760, 128, 1), (5, 11, 11, 1920, 64, 0)):
        rows += [wgmma(shape, (64, 80, 4, 2, "stages"), copy) for copy in ("cp_async", "tma")]
        rows += [wgmma(shape, (128, 160, 8, 2, "stages"), "tma"), wgmma(shape, (128, 48, 8, 3, "stages"), "tma")]
    rows += [pingpong((2, 19, 19, 3840, 128, 0), (128, 160, 8, 2)), pingpong((1, 32, 4, 5760, 128, 1), (128, 80, 8, 3)), pingpong((1, 32, 4, 5760, 128, 1), (128, 80, 8, 3), persistent=1),
             pingpong((5, 11, 11, 1920, 64, 0), (192, 80, 12, 2)), pingpong((1, 14, 2, 9600, 64, 1), (128, 160, 8, 2))]
    rows += [case((3, 11, 11, 2345, 128, 1), (64, 64, 4, 2, "stages")), case((2, 18, 6, 3456, 128, 1), (128, 64, 8, 2, "stages"), window=700), case((2, 12, 12, 2304, 64, 0), (128, 64, 4, 2, "stages"), dropout_p=0.1)]
    for batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits in ((6, 48, 8, 10240, 128, 64, 3, 3), (40, 32, 8, 2304, 128, 128, 2, 1), (1, 16, 4, 53248, 128, 64, 2, 24), (9, 24, 24, 3584, 64, 64, 3, 2)):
        rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
    rows += [paged_case((9, 48, 8, 5200, 128), "5200x9", (64, 3), 16, "scattered", 3), tree_case((3, 32, 8, 48, 5120, 128), 2, (64, 64, 4, 3), 4)]
    for shape in ((3, 10, 10, 1536, 64, 1), (1, 24, 6, 2560, 128, 0)):
        rows += [unfused(shape, 128, 128, 8, kind) for kind in ("safe", "online")]
    rows += [softmax_case("safe", 17000, 1536, 1, 4), softmax_case("online", 5000, 4096, 1, 8), softmax_case("online", 700, 14000, 1, 4), softmax_case("safe", 30000, 1200, 4, 4, 2048)]
    return rows + [flash1_case((4, 18, 18, 1792, 64, 0), (128, 4, 2)), flash1_case((2, 20, 20, 2560, 128, 1), (128, 4, 2))]


def unseen6_products():
    rows = [product("matmul_tiled", sizes, config) for sizes in ((1, 3584, 2560, 2560), (7, 1280, 1280, 640)) for config in ((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3))]
    return rows + [product("glu", sizes, (128, 64, 64, 8, 3)) for sizes in ((1, 2048, 5120, 1280),)]


def unseen7_own():
    """And again: blocks of 96, 112 and 192 keys, and a shape or two of every other kernel."""
    rows = []
    for shape in ((3, 13, 13, 4032, 128, 1), (1, 42, 14, 2688, 128, 0), (5, 18, 6, 2304, 64, 1), (1, 9, 9, 10752, 64, 0)):
        for config in ((64, 96, 4, 2, "stages"), (128, 96, 8, 3, "stages"), (128, 112, 4, 2, "stages"), (64, 192, 4, 1, "interleaved"), (128, 64, 4, 3, "stages"), (64, 64, 4, 2, "interleaved")):
            if shape[3] % config[1] == 0 and shape[3] % config[0] == 0 and config[1] * shape[4] // 8 % (32 * config[2]) == 0:
                rows.append(case(shape, config))
    for shape in ((3, 13, 13, 4032, 128, 1), (1, 42, 14, 2688, 128, 0), (5, 18, 6, 2304, 64, 1)):
        rows += [wgmma(shape, (64, 96, 4, 2, "stages"), copy) for copy in ("cp_async", "tma")]
        rows += [wgmma(shape, (128, 192, 8, 1, "stages"), "tma"), wgmma(shape, (128, 64, 8, 3, "stages"), "tma")]
    rows += [pingpong((3, 13, 13, 3840, 128, 1), (128, 96, 8, 2)), pingpong((1, 42, 14, 2688, 128, 0), (128, 128, 8, 2)), pingpong((1, 42, 14, 2688, 128, 0), (128, 128, 8, 2), persistent=1),
             pingpong((5, 18, 6, 2304, 64, 1), (192, 96, 12, 2)), pingpong((1, 9, 9, 10752, 64, 0), (128, 192, 8, 2))]
    rows += [case((2, 15, 15, 2601, 64, 1), (64, 64, 4, 2, "stages")), case((1, 26, 13, 4224, 128, 1), (128, 64, 8, 2, "stages"), window=1000), case((2, 9, 9, 2688, 128, 1), (64, 64, 4, 2, "stages"), dropout_p=0.15)]
    for batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits in ((7, 56, 8, 6144, 128, 64, 2, 2), (24, 40, 8, 4608, 128, 128, 2, 1), (1, 48, 8, 30720, 128, 64, 3, 16), (14, 18, 18, 2304, 64, 64, 2, 1)):
        rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
    rows += [paged_case((20, 40, 8, 2700, 128), "2700x20", (64, 3), 32, "scattered", 2), tree_case((4, 28, 4, 32, 3584, 128), 3, (64, 64, 4, 3), 3)]
    for shape in ((2, 12, 12, 1920, 64, 0), (1, 16, 8, 3328, 128, 1)):
        rows += [unfused(shape, 128, 128, 8, kind) for kind in ("safe", "online")]
    rows += [softmax_case("safe", 26000, 1024, 1, 4), softmax_case("online", 3500, 7000, 1, 8), softmax_case("online", 400, 25000, 1, 4), softmax_case("safe", 11000, 1800, 4, 4, 2048)]
    return rows + [flash1_case((6, 14, 14, 1280, 64, 1), (128, 4, 2)), flash1_case((2, 16, 16, 2048, 128, 0), (128, 4, 2))]


def unseen7_products():
    rows = [product("matmul_tiled", sizes, config) for sizes in ((1, 4608, 2304, 3072), (5, 1536, 1024, 768)) for config in ((128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (128, 64, 64, 8, 2))]
    return rows + [product("glu", sizes, (128, 64, 64, 8, 3)) for sizes in ((1, 1536, 6144, 2560),)]


def unseen8_own():
    """Each row at a shape of its own, drawn as in unseen8.py."""
    draw = random.Random(806)
    rows = []

    def shape(multiple, head_dim=None, causal=None):
        return eighth_unseen.draw_shape(draw, head_dim or draw.choice((64, 128)), draw.randint(0, 1) if causal is None else causal, multiple)

    for config in ((64, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (128, 64, 4, 2, "stages"), (64, 128, 4, 1, "interleaved"), (128, 32, 8, 3, "stages"), (128, 128, 8, 1, "interleaved"),
                   (64, 32, 4, 3, "stages"), (128, 128, 8, 1, "stages")):
        for head_dim in (64, 128):
            rows.append(case(shape(128, head_dim), config))
    for config in ((64, 64, 4, 2, "stages"), (128, 64, 8, 3, "stages"), (128, 128, 8, 2, "stages"), (64, 128, 4, 2, "stages"), (128, 128, 8, 1, "stages")):
        for copy in ("cp_async", "tma"):
            rows.append(wgmma(shape(128), config, copy))
    rows += [pingpong(shape(384, 128), (128, 128, 8, 2)), pingpong(shape(384, 128, 1), (128, 96, 8, 2)), pingpong(shape(384, 64), (192, 128, 12, 2)), pingpong(shape(384), (128, 64, 8, 3), persistent=1),
             pingpong(shape(384, 64), (128, 128, 8, 3))]
    rows += [case(shape(128, causal=1), (128, 64, 8, 2, "stages"), window=draw.randrange(100, 2000)), case(shape(128, 64), (64, 64, 4, 2, "stages"), dropout_p=0.1)]
    for block_n, stages, splits in ((64, 3, 2), (128, 2, 1), (64, 2, 8), (64, 3, 5)):
        kv_heads = draw.randint(1, 8)
        rows.append(decode(draw.randint(1, 40), kv_heads * draw.choice((1, 4, 6, 8)), kv_heads, draw.randrange(8, 160) * 128, draw.choice((64, 128)), block_n, stages, splits))
    for block_n, stages, page_size, splits in ((64, 3, 16, 2), (128, 2, 64, 1)):
        batch, length, kv_heads = draw.randint(4, 40), draw.randrange(1000, 9000), draw.randint(2, 8)
        rows.append(paged_case((batch, 4 * kv_heads, kv_heads, length, 128), f"{length}x{batch}", (block_n, stages), page_size, "scattered", splits))
    rows += [tree_case((draw.randint(1, 6), 32, 8, tokens, draw.randrange(16, 64) * 128, 128), 2, (64, 64, 4, 3), splits) for tokens, splits in ((24, 2), (64, 4))]
    for kind in ("safe", "online"):
        rows.append(unfused((draw.randint(1, 3), draw.randint(6, 20), 0, draw.randrange(8, 28) * 128, draw.choice((64, 128)), draw.randint(0, 1)), 128, 128, 8, kind))
        rows[-1]["kv_heads"] = rows[-1]["heads"]
    rows += [softmax_case(draw.choice(("safe", "online")), draw.randrange(500, 30000), draw.randrange(8, 160) * 104, block_m, 4) for block_m in (1, 4, 1)]
    rows = [row for row in rows if not row["workload"].startswith("softmax") or row["seqlen_q"] % row["block_m"] == 0]
    for head_dim, causal in ((64, 0), (128, 1)):
        batch, heads = draw.randint(2, 6), draw.randint(8, 24)
        rows.append(flash1_case((batch, heads, heads, draw.randrange(8, 20) * 128, head_dim, causal), (128, 4, 2)))
    return rows


def unseen8_products():
    draw = random.Random(807)
    return [product("matmul_tiled", (1, *(draw.randrange(4, 20) * 256 for _ in range(3))), config) for config in ((128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (128, 64, 64, 4, 4))] + [
        product("glu", (1, *(draw.randrange(4, 24) * 256 for _ in range(3))), (128, 64, 64, 8, 3))]


def unseen8_wgmma_products():
    draw = random.Random(808)
    rows = []
    for transpose_b, block_m, block_n, warps, stages, persistent, store in ((0, 128, 128, 8, 4, 0, "direct"), (0, 128, 256, 8, 3, 1, "staged"), (1, 128, 128, 8, 4, 0, "staged"), (1, 64, 256, 4, 3, 1, "staged"),
                                                                            (1, 256, 128, 8, 4, 1, "staged"), (0, 64, 128, 4, 4, 0, "direct")):
        m, n, k = draw.randrange(4, 32) * 256, draw.randrange(4, 24) * 256, draw.randrange(2, 32) * 128
        rows.append(dict(product("matmul_tiled", (1, m, n, k), (block_m, block_n, 64, warps, stages)), transpose_b=transpose_b, mma="wgmma", copy="tma", persistent=persistent, store=store))
    return rows


def drawn_own(draw):
    """Blocks, warps and stages are drawn too, as in unseen9.py."""

    def shape(config, head_dim, causal):
        return eighth_unseen.draw_shape(draw, head_dim, causal, math.lcm(128, *config[:2]))

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

    rows = forward("mma", ("cp_async",), (4, 8), (16, 32), (32, 48, 64, 80, 96, 128), 16) + forward("wgmma", ("cp_async", "tma"), (4, 8), (16,), (32, 64, 96, 128, 160, 192), 10)
    rows += [pingpong(shape(config, head_dim, draw.randint(0, 1)), config, persistent=draw.randint(0, 1))
             for head_dim, config in ((128, (128, 64, 8, 2)), (128, (128, 96, 8, 2)), (64, (128, 160, 8, 2)), (64, (192, 64, 12, 3)), (64, (192, 128, 12, 2)))]
    for block_n, stages in ((64, 2), (128, 2), (64, 3), (128, 3)):
        kv_heads = draw.randint(1, 8)
        rows.append(decode(draw.randint(1, 40), kv_heads * draw.choice((1, 4, 6, 8)), kv_heads, draw.randrange(8, 160) * 128, draw.choice((64, 128)), block_n, stages, draw.randint(1, 8)))
    for block_n, stages, page_size in ((64, 2, 32), (128, 2, 16)):
        batch, length, kv_heads = draw.randint(4, 40), draw.randrange(1000, 9000), draw.randint(2, 8)
        rows.append(paged_case((batch, 4 * kv_heads, kv_heads, length, 128), f"{length}x{batch}", (block_n, stages), page_size, "scattered", draw.randint(1, 4)))
    rows += [tree_case((draw.randint(1, 6), 32, 8, tokens, draw.randrange(16, 64) * 128, 128), 2, (64, 64, 4, 3), draw.randint(1, 6)) for tokens in (16, 40)]
    for kind in ("safe", "online"):
        heads = draw.randint(6, 20)
        rows.append(unfused((draw.randint(1, 3), heads, heads, draw.randrange(8, 28) * 128, draw.choice((64, 128)), draw.randint(0, 1)), 128, 128, 8, kind))
    rows += [softmax_case(draw.choice(("safe", "online")), draw.randrange(64, 3000) * 8, draw.randrange(8, 160) * 104, block_m, 4) for block_m in (1, 4, 1)]
    for head_dim, causal in ((64, 1), (128, 0)):
        batch, heads = draw.randint(2, 6), draw.randint(8, 24)
        rows.append(flash1_case((batch, heads, heads, draw.randrange(8, 20) * 128, head_dim, causal), (128, 4, 2)))
    return rows


def drawn_products(draw):
    return [product("matmul_tiled", (1, *(draw.randrange(4, 20) * 256 for _ in range(3))), config) for config in ((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (128, 64, 64, 8, 3))] + [
        product("glu", (1, *(draw.randrange(4, 24) * 256 for _ in range(3))), (128, 64, 64, 8, 3))]


def drawn_wgmma_products(draw):
    rows = []
    for transpose_b, block_m, block_n, warps, stages in ((0, 128, 128, 8, 4), (0, 128, 256, 8, 3), (1, 128, 128, 8, 4), (1, 64, 256, 4, 3), (1, 256, 128, 8, 4), (0, 64, 128, 4, 4)):
        m, n, k = draw.randrange(4, 32) * 256, draw.randrange(4, 24) * 256, draw.randrange(2, 32) * 128
        persistent = draw.randint(0, 1)
        store = "staged" if persistent else draw.choice(("direct", "staged"))
        rows.append(dict(product("matmul_tiled", (1, m, n, k), (block_m, block_n, 64, warps, stages)), transpose_b=transpose_b, mma="wgmma", copy="tma", persistent=persistent, store=store))
    return rows


COMPILED_WGMMA_PRODUCTS = ((0, 128, 128, 8, 4, 0, "direct"), (0, 128, 128, 8, 4, 1, "staged"), (1, 128, 128, 8, 4, 0, "staged"), (0, 128, 128, 4, 3, 0, "direct"), (0, 128, 256, 8, 3, 1, "staged"),
                           (0, 128, 256, 8, 2, 1, "direct"), (1, 256, 128, 8, 4, 1, "staged"), (0, 256, 128, 8, 3, 0, "direct"), (1, 128, 192, 8, 4, 1, "staged"), (0, 64, 128, 4, 4, 0, "direct"),
                           (0, 64, 128, 4, 2, 0, "staged"), (1, 64, 256, 4, 3, 1, "staged"))


def drawn_compiled_wgmma_products(draw):
    """As drawn_wgmma_products, but only kernels that products/product_bench.cu has: of the tenth set five of six had none."""
    rows = []
    for transpose_b, block_m, block_n, warps, stages, persistent, store in draw.sample(COMPILED_WGMMA_PRODUCTS, 7):
        m, n, k = draw.randrange(4, 32) * 256, draw.randrange(4, 24) * (192 if block_n == 192 else 256), draw.randrange(2, 32) * 128
        rows.append(dict(product("matmul_tiled", (1, m, n, k), (block_m, block_n, 64, warps, stages)), transpose_b=transpose_b, mma="wgmma", copy="tma", persistent=persistent, store=store))
    return rows


def efficient():
    """PyTorch's memory-efficient attention (CUTLASS): heads of 64 and less, of 128 and less, and of more, whose sums go through memory."""
    rows = []
    for head_dim in (32, 64, 96, 128, 256):
        heads = 2048 // head_dim
        for batch, seqlen in ((16, 512), (8, 1024), (2, 4096)):
            for causal in (0, 1):
                rows.append(foreign_case("sdpa_efficient", (batch, heads, heads, seqlen, head_dim, causal)))
    for batch, heads, seqlen, head_dim in ((1, 33, 256, 64), (1, 16, 2600, 64), (3, 7, 1000, 128), (1, 8, 16384, 64), (1, 4, 16384, 128), (1, 132, 64, 128), (1, 132, 64, 64), (24, 12, 384, 80)):
        for causal in (0, 1):
            rows.append(foreign_case("sdpa_efficient", (batch, heads, heads, seqlen, head_dim, causal)))
    for heads, queries, keys, head_dim in ((132, 64, 2048, 64), (264, 64, 2048, 64), (528, 64, 2048, 64), (132, 64, 2048, 128), (264, 64, 2048, 128), (20, 512, 4096, 128)):
        rows.append(dict(foreign_case("sdpa_efficient", (1, heads, heads, queries, head_dim, 0)), seqlen_kv=keys))
    return rows


def splits():
    """FlashAttention-2's split kernels in PyTorch: few queries against many keys."""
    rows = []
    for source in ("sdpa_flash", "aten_flash"):
        for batch, heads, kv_heads, queries, keys, head_dim in (
                (1, 32, 32, 1, 4096, 128), (1, 32, 8, 1, 8192, 128), (1, 32, 8, 1, 65536, 128), (4, 32, 8, 1, 8192, 128), (1, 16, 2, 1, 32768, 128), (2, 64, 8, 1, 16384, 128),
                (1, 12, 12, 1, 16384, 64), (1, 24, 8, 1, 5000, 64), (3, 16, 16, 1, 3000, 64), (1, 8, 1, 1, 131072, 128), (1, 10, 10, 1, 2048, 256), (1, 16, 4, 1, 12288, 96),
                (1, 32, 32, 4, 8192, 128), (1, 16, 16, 16, 16384, 128), (2, 8, 8, 64, 8192, 64), (1, 4, 4, 128, 32768, 128)):
            rows.append(dict(foreign_case(source, (batch, heads, kv_heads, queries, head_dim, 0)), seqlen_kv=keys))
    return rows


def unseen_triton():
    rows = []
    for shape in ((6, 16, 16, 768, 128, 0), (2, 32, 4, 3072, 128, 1), (1, 16, 2, 12288, 64, 0), (4, 24, 24, 3072, 64, 1), (1, 12, 12, 12288, 128, 1), (1, 20, 20, 6144, 128, 0), (3, 40, 5, 1536, 64, 0)):
        for config in ((128, 64, 4, 3), (256, 64, 8, 3), (64, 128, 8, 2), (128, 16, 4, 4), (256, 128, 8, 2), (256, 32, 8, 2)):
            rows.append(foreign_case("triton", shape, config))
    return rows


def unseen_library():
    rows = []
    for source in ("sdpa_flash", "sdpa_cudnn"):
        for batch, heads, kv_heads, seqlen, head_dim in ((6, 16, 16, 768, 128), (2, 32, 4, 3072, 64), (1, 16, 2, 12288, 128), (2, 16, 16, 3072, 96), (5, 7, 7, 1920, 64)):
            for causal in (0, 1):
                rows.append(foreign_case(source, (batch, heads, kv_heads, seqlen, head_dim, causal)))
    return rows


def unseen2_triton():
    """The second set that nobody had seen: shapes that no other file has, over the tuning space."""
    rows = []
    for shape in ((2, 24, 24, 2560, 128, 1), (1, 48, 6, 4608, 128, 0), (12, 8, 8, 896, 128, 0), (1, 10, 10, 20480, 128, 0), (4, 40, 8, 1280, 64, 1), (2, 6, 6, 10240, 64, 0)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3):
                    rows.append(foreign_case("triton", shape, (block_m, block_n, warps, stages)))
    return rows


def unseen2_flex():
    rows = []
    for shape in ((2, 16, 16, 3584, 128, 0), (1, 28, 4, 7168, 128, 1), (4, 14, 2, 2560, 64, 1), (1, 8, 8, 24576, 128, 0), (1, 32, 8, 10240, 64, 0)):
        for block_m, warps in ((64, 4), (128, 4), (128, 8)):
            for block_n in (32, 64, 128):
                for stages in (2, 3):
                    rows.append(foreign_case("flex", shape, (block_m, block_n, warps, stages)))
    return rows


def unseen2_library():
    rows = []
    shapes = ((2, 24, 24, 2560, 128), (1, 48, 6, 4608, 128), (12, 8, 8, 896, 128), (1, 10, 10, 20480, 128), (4, 40, 8, 1280, 64), (2, 6, 6, 10240, 64), (1, 28, 4, 7168, 128), (4, 14, 2, 2560, 64),
              (32, 32, 32, 384, 64), (1, 3, 3, 14336, 128), (2, 9, 9, 4000, 128), (1, 16, 16, 2600, 64), (3, 8, 8, 1792, 256), (1, 64, 64, 1536, 128))
    for batch, heads, kv_heads, seqlen, head_dim in shapes:
        for causal in (0, 1):
            rows.append(foreign_case("sdpa_flash", (batch, heads, kv_heads, seqlen, head_dim, causal)))
        rows.append(foreign_case("sdpa_cudnn", (batch, heads, kv_heads, seqlen, head_dim, 0)))
    for batch, heads, kv_heads, seqlen, head_dim in shapes[:6]:
        for causal in (0, 1):
            rows.append(foreign_case("sdpa_flash", (batch, heads, heads, seqlen, head_dim, causal), direction="bwd"))
    for batch, m, n, k in ((1, 3072, 3072, 3072), (1, 6144, 6144, 6144), (1, 5120, 5120, 1280), (1, 10240, 2560, 2560), (1, 2560, 10240, 2560), (1, 7168, 7168, 512), (1, 8192, 1024, 8192), (1, 4096, 14336, 4096),
                           (1, 4096, 4096, 14336), (1, 20480, 4096, 1024), (24, 2560, 2560, 128), (24, 2560, 128, 2560), (48, 1280, 1280, 64), (48, 1280, 64, 1280), (10, 10240, 10240, 128), (10, 10240, 128, 10240),
                           (4, 4096, 4096, 4096), (8, 2048, 2048, 512), (96, 896, 896, 128), (96, 896, 128, 896)):
        rows.append(dict(foreign_case("cublas", (batch, 1, 1, m, k, 0)), seqlen_kv=n))
    return rows


def foreign_smoke():
    return [foreign_case("triton", MID_128, (128, 64, 4, 3)), foreign_case("triton", GQA_128, (128, 64, 8, 2)), foreign_case("triton", MID_64, (64, 64, 4, 2)),
            foreign_case("sdpa_flash", MID_128), foreign_case("sdpa_cudnn", MID_128), foreign_case("sdpa_flash", GQA_128), foreign_case("sdpa_cudnn", GQA_128),
            foreign_case("sdpa_flash", MID_128, direction="bwd"), dict(foreign_case("cublas", (1, 1, 1, 4096, 4096, 0)))]


def anything(row):
    return True


write("smoke.csv", smoke())
write("hopper_smoke.csv", hopper_smoke())
write("hopper.csv", hopper())
write("hopper_long.csv", hopper_long())
write("persistent.csv", persistent())
write("repeat.csv", repeat())
write("repeat_more.csv", repeat_more(), keep=anything, part=as_in_their_files)
write("other.csv", other())
write("other_more.csv", other_more(), part=every_third)
write("softmax.csv", softmax(), part=every_third)
write("ragged.csv", ragged(), keep=fits_shared_memory, part=every_third)
write("single_buffer.csv", single_buffer(), part=every_third)
write("window_dropout.csv", window_dropout(), WINDOW_COLUMNS, part=every_other)
write("paged.csv", paged(), PAGED_COLUMNS, anything, every_other)
write("tree.csv", tree(), TREE_COLUMNS, anything, every_other)
write("flash1.csv", flash1(), keep=anything, part=every_other)
write("quantized.csv", quantized(), QUANTIZED_COLUMNS, anything, every_other)
write("values.csv", values(), VALUE_COLUMNS)
write("products.csv", products(), PRODUCT_COLUMNS, anything, every_other)
write("wgmma_products.csv", wgmma_products(), WGMMA_PRODUCT_COLUMNS, anything)
write("unseen_own.csv", unseen_own(), keep=anything, part=unseen)
write("unseen_triton.csv", unseen_triton(), FOREIGN_COLUMNS, anything, unseen)
write("unseen_library.csv", unseen_library(), FOREIGN_COLUMNS, anything, unseen)
write("unseen2_triton.csv", unseen2_triton(), FOREIGN_COLUMNS, anything, unseen)
write("unseen2_flex.csv", unseen2_flex(), FOREIGN_COLUMNS, anything, unseen)
write("unseen2_library.csv", unseen2_library(), FOREIGN_COLUMNS, anything, unseen)
write("unseen4_own.csv", unseen4_own(), keep=anything, part=unseen)
write("unseen5_own.csv", unseen5_own(), FIFTH_COLUMNS, anything, unseen)
write("unseen5_products.csv", unseen5_products(), PRODUCT_COLUMNS, anything, unseen)
write("unseen6_own.csv", unseen6_own(), FIFTH_COLUMNS, anything, unseen)
write("unseen6_products.csv", unseen6_products(), PRODUCT_COLUMNS, anything, unseen)
write("unseen7_own.csv", unseen7_own(), FIFTH_COLUMNS, anything, unseen)
write("unseen7_products.csv", unseen7_products(), PRODUCT_COLUMNS, anything, unseen)
write("unseen8_own.csv", unseen8_own(), FIFTH_COLUMNS, anything, unseen)
write("unseen8_products.csv", unseen8_products(), PRODUCT_COLUMNS, anything, unseen)
write("unseen8_wgmma_products.csv", unseen8_wgmma_products(), WGMMA_PRODUCT_COLUMNS[:-1], anything, unseen)
for number in range(9, 35):
    write(f"unseen{number}_own.csv", drawn_own(random.Random(100 * number + 7)), FIFTH_COLUMNS, anything, unseen)
    write(f"unseen{number}_products.csv", drawn_products(random.Random(100 * number + 8)), PRODUCT_COLUMNS, anything, unseen)
    drawn = drawn_wgmma_products if number < 11 else drawn_compiled_wgmma_products
    write(f"unseen{number}_wgmma_products.csv", drawn(random.Random(100 * number + 9)), WGMMA_PRODUCT_COLUMNS[:-1], anything, unseen)
    for name, cases_of in drawn_unseen.files(number).items():
        write(name, cases_of, drawn_unseen.COLUMNS_OF[name.removeprefix(f"unseen{number}_")], anything, unseen)
for module in (third_unseen, fourth_unseen, fifth_unseen, sixth_unseen, seventh_unseen, eighth_unseen):
    for name, cases_of in module.FILES.items():
        write(name, cases_of(), module.COLUMNS[name], anything, unseen)
write("waves_own.csv", waves_own(), keep=anything, part=none_to_calibrate)
write("waves_library.csv", waves_library(), FOREIGN_COLUMNS, anything, none_to_calibrate)
write("chips_own.csv", chips_own(), keep=anything, part=none_to_calibrate)
write("chips_wgmma_products.csv", chips(wgmma_products(), 8), WGMMA_PRODUCT_COLUMNS[:-1], anything, none_to_calibrate)
write("chips_triton.csv", chips(triton(), 7), FOREIGN_COLUMNS, anything, none_to_calibrate)
write("chips_library.csv", chips(library(), 4), FOREIGN_COLUMNS, anything, none_to_calibrate)
write("compiled.csv", compiled(), COMPILED_COLUMNS, keep=anything)
write("foreign_smoke.csv", foreign_smoke(), FOREIGN_COLUMNS, anything)
write("triton.csv", triton(), FOREIGN_COLUMNS, anything)
write("triton_more.csv", triton_more(), FOREIGN_COLUMNS, anything)
write("library.csv", library(), FOREIGN_COLUMNS, anything)
write("library_more.csv", library_more(), FOREIGN_COLUMNS, anything)
write("efficient.csv", efficient(), FOREIGN_COLUMNS, anything)
write("splits.csv", splits(), FOREIGN_COLUMNS, anything)
write("types.csv", types(), [*FOREIGN_COLUMNS, "dtype", "transpose_b"], anything, none_to_calibrate)
write("triton_wide.csv", triton_wide(), [*FOREIGN_COLUMNS, "block_k"], anything, none_to_calibrate)
write("flash2.csv", flash2())
write("long.csv", long())
