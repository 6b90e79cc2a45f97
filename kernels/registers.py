#!/usr/bin/env python3
"""Registers and spills of this folder's kernels, as ptxas reports them for each architecture. Needs nvcc, no GPU.

    registers.py OUT.csv [--arch 75 80 86 89 90a] [--jobs N]

Instances that OUT.csv has already are kept; the others are added, so that a run can be broken off and goes on. mma.sync kernels with cp.async
need compute capability 8.0, wgmma kernels 9.0a; for Turing there are the softmax kernels. CUDA 13 cannot compile for Volta."""
import argparse
import concurrent.futures
import csv
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tools

HERE = pathlib.Path(__file__).resolve().parent
KEYS = ("arch", "cuda", "kernel", "block_m", "block_n", "num_warps", "num_stages", "head_dim", "causal", "variant")
COLUMNS = KEYS + ("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", "barriers")
TILES = "TileParams"
MAPS = "TileParams, const __grid_constant__ wgmma_tiles::Maps"


def flash2_mma():
    for (block_m, warps), block_n, head_dim, causal in itertools.product(((64, 4), (128, 4), (128, 8)), (32, 64, 128), (64, 128, 256), (0, 1)):
        for stages, schedule in ((1, "stages"), (2, "stages"), (3, "stages"), (1, "interleaved")):
            yield (block_m, block_n, warps, stages, head_dim, causal, schedule), f"{schedule}"
    for (block_m, block_n, warps, stages, schedule), head_dim, causal in itertools.product(
            ((128, 64, 4, 2, "stages"), (64, 64, 4, 2, "stages"), (128, 128, 8, 1, "interleaved")), (64, 128), (0, 1)):
        yield (block_m, block_n, warps, stages, head_dim, causal, schedule), f"{schedule} ragged"
    for (block_m, warps), head_dim, causal in itertools.product(((64, 4), (128, 4), (128, 8)), (64, 128), (0, 1)):
        for stages, schedule in ((2, "stages"), (3, "stages"), (1, "interleaved")):
            yield (block_m, 96, warps, stages, head_dim, causal, schedule), f"{schedule}"


def flash2_wgmma():
    for (block_m, warps), block_n, head_dim, causal in itertools.product(((64, 4), (128, 4), (128, 8)), (32, 64, 128), (64, 128, 256), (0, 1)):
        if head_dim == 256 and (block_m, warps) == (128, 4):
            continue  # its output alone would fill the register file
        for stages, copy in itertools.product((1, 2, 3), ("cp_async", "tma")):
            yield (block_m, block_n, warps, stages, head_dim, causal, copy), copy


def flash2_wgmma_wide():
    """Tiles whose columns are no power of two."""
    for (block_m, warps), block_n, head_dim, causal in itertools.product(((64, 4), (128, 4), (128, 8)), (96, 160), (64, 128), (0, 1)):
        if block_m // (warps // 4) // 64 * (block_n + head_dim) // 2 > 230:
            continue  # accumulators alone would fill the register file
        for stages, copy in itertools.product((1, 2), ("cp_async", "tma")):
            yield (block_m, block_n, warps, stages, head_dim, causal, copy), copy


def flash3():
    for block_n, head_dim, causal in itertools.product((32, 64, 128), (64, 128, 256), (0, 1)):
        yield (128, block_n, 8, 2, head_dim, causal, ""), "pingpong"
        if head_dim < 256:  # three consumer warpgroups have too few registers for it
            yield (192, block_n, 12, 2, head_dim, causal, ""), "pingpong"


def boolean(flag):
    return "true" if flag else "false"


def turing_softmaxes():
    """What Turing can be given of the kernels, over rows that share warps and over the steps that stay in registers (0: none)."""
    for kind, (block_m, warps), steps in itertools.product(("safe", "online"), ((1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (2, 2), (2, 4), (2, 8), (4, 4), (4, 8), (8, 8)),
                                                           (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)):
        held = steps * 256 * warps // block_m
        yield ("softmax_rows", (block_m, held, warps, 1, 0, 0, kind + (" registers" if held else " reread")), "softmax_rows",
               f"softmax_rows::rows<softmax_rows::Shape<softmax_rows::Softmax::{kind}, {block_m}, {warps}, {held}>>(const __half *, __half *, float *, int)")


def instances(arch):
    """(kernel, key columns from block_m on, header, explicit instantiation)."""
    for kind, (block_m, held, warps) in itertools.product(("safe", "online"), ((1, 0, 4), (4, 0, 4), (1, 0, 8), (1, 4096, 4), (1, 16384, 4), (4, 1024, 4), (4, 4096, 4))):
        yield ("softmax_rows", (block_m, held, warps, 1, 0, 0, kind + (" registers" if held else " reread")), "softmax_rows",
               f"softmax_rows::rows<softmax_rows::Shape<softmax_rows::Softmax::{kind}, {block_m}, {warps}, {held}>>(const __half *, __half *, float *, int)")
    if arch == "75":
        yield from turing_softmaxes()
        return
    for (m, n, warps, stages, d, causal, schedule), variant in flash2_mma():
        ragged = ", true" if "ragged" in variant else ""
        yield ("flash2_mma", (m, n, warps, stages, d, causal, variant), "flash2_mma",
               f"flash2_mma::forward<flash2_mma::Shape<{m}, {n}, {warps}, {stages}, {d}, {boolean(causal)}, flash2_mma::Schedule::{schedule}{ragged}>>({TILES})")
    for (m, n, warps), d, causal in itertools.product(((64, 64, 4), (128, 128, 8), (128, 64, 4)), (64, 128), (0, 1)):
        tiles = f"standard_mma::Tiles<{m}, {n}, {warps}, {d}, {boolean(causal)}>"
        yield "standard_mma", (m, n, warps, 1, d, causal, "scores"), "standard_mma", f"standard_mma::scores<{tiles}>({TILES}, __half *)"
        yield "standard_mma", (m, n, warps, 2, d, causal, "outputs"), "standard_mma", f"standard_mma::outputs<{tiles}>({TILES}, const __half *)"
    for n, stages, d in ((64, 2, 64), (64, 3, 64), (128, 2, 64), (64, 2, 128), (64, 3, 128), (128, 2, 128), (64, 4, 128)):
        yield "decode_mma", (16, n, 4, stages, d, 0, "split"), "decode_mma", f"decode_mma::split<decode_mma::Shape<{n}, 4, {stages}, {d}>>({TILES}, decode_mma::Partial)"
    for d in (64, 128, 256):
        yield "decode_mma", (1, 0, d // 32, 1, d, 0, "combine"), "decode_mma", f"decode_mma::combine<{d}>({TILES}, decode_mma::Partial)"
    if arch != "90a":
        return
    for (m, n, warps, stages, d, causal, copy), variant in itertools.chain(flash2_wgmma(), flash2_wgmma_wide()):
        yield ("flash2_wgmma", (m, n, warps, stages, d, causal, variant), "flash2_wgmma",
               f"flash2_wgmma::forward<flash2_wgmma::Shape<{m}, {n}, {warps}, {stages}, {d}, {boolean(causal)}, flash2_wgmma::Copy::{copy}>>({MAPS})")
    for (m, n, warps, stages, d, causal, _), variant in flash3():
        yield "flash3", (m, n, warps, stages, d, causal, variant), "flash3", f"flash3::forward<flash3::Shape<{m}, {n}, {warps}, {stages}, {d}, {boolean(causal)}>>({MAPS})"


def compile_one(arch, header, declaration, generated):
    """ptxas's report of the one kernel: registers, stack, spill stores, spill loads, barriers. None: it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "one.cu"
        source.write_text(f'#include "{header}.h"\ntemplate __global__ void {declaration};\n')
        result = subprocess.run([tools.tool("nvcc"), "-std=c++17", "-O3", f"-I{HERE}/attention", f"-I{HERE}/common", f"-I{generated}", "-cubin", f"-gencode=arch=compute_{arch},code=sm_{arch}",
                                 "-Xptxas", "-v", "-o", str(source.with_suffix(".cubin")), str(source)], capture_output=True, text=True)
    used = re.search(r"Used (\d+) registers(?:, used (\d+) barriers)?", result.stderr)
    stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", result.stderr)
    if result.returncode or not used or not stack:
        print(f"sm_{arch}: {declaration} does not compile: {(result.stderr.strip().splitlines() or [''])[0][:160]}", file=sys.stderr)
        return None
    return (used.group(1), *stack.groups(), used.group(2) or 0)


def read(path):
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {tuple(row[k] for k in KEYS if k != "cuda"): row for row in csv.DictReader(file)}


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows, key=lambda k: [(len(x), x) if x.isdigit() else (0, x) for x in k]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", nargs="+", default=["75", "80", "86", "89", "90a"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    if not tools.find("nvcc"):
        print("registers.py needs nvcc", file=sys.stderr)
        return 2
    os.nice(19)
    cuda, rows = tools.provenance()["cuda"], read(args.out)
    with tempfile.TemporaryDirectory() as generated, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        subprocess.run([sys.executable, str(HERE / "common" / "gen_wgmma.py"), f"{generated}/wgmma_ops.h"], check=True)
        pending = {}
        for arch in args.arch:
            for kernel, numbers, header, declaration in instances(arch):
                key = ("sm_" + arch, kernel, *map(str, numbers))
                if key not in rows:
                    pending[pool.submit(compile_one, arch, header, declaration, generated)] = key
        print(f"{len(rows)} rows kept, {len(pending)} to compile", file=sys.stderr, flush=True)
        for count, done in enumerate(concurrent.futures.as_completed(pending), 1):
            if done.result() is not None:
                key = pending[done]
                values = (key[0], cuda, *key[1:], *done.result())
                rows[key] = dict(zip(COLUMNS, values))
            if count % 20 == 0 or count == len(pending):
                write(args.out, rows)
    return 0


sys.exit(main())
