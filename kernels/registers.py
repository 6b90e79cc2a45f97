#!/usr/bin/env python3
"""Registers and spills of the attention kernels' template instances, as ptxas reports them for each architecture. Needs nvcc, no GPU.

    registers.py OUT.csv [--arch 80 86 89 90a]

mma.sync kernels with cp.async need compute capability 8.0, wgmma kernels 9.0a. CUDA 13 cannot compile for Volta; Turing has neither cp.async nor
m16n8k16, so there is nothing here for it."""
import argparse
import csv
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ("arch", "cuda", "kernel", "block_m", "block_n", "num_warps", "num_stages", "head_dim", "causal", "variant", "registers", "stack_bytes", "spill_store_bytes",
           "spill_load_bytes", "barriers")
NAME = re.compile(r"_ZN\d+(flash2_mma|flash2_wgmma|flash3)7forwardI.*?ShapeILi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELb([01])E(?:LNS_\d+\w+?E([01])E|Lb[01]E)?E")
VARIANTS = {"flash2_mma": ("stages", "interleaved"), "flash2_wgmma": ("cp_async", "tma")}


def nvcc():
    path = pathlib.Path("/usr/local/cuda/bin/nvcc")
    return str(path) if path.exists() else "nvcc"


def instances(arch):
    for (block_m, warps), block_n, head_dim, causal in itertools.product(((64, 4), (128, 4), (128, 8)), (32, 64, 128), (64, 128, 256), ("false", "true")):
        for stages, schedule in ((1, "stages"), (2, "stages"), (3, "stages"), (1, "interleaved")):
            yield "flash2_mma", f"{block_m}, {block_n}, {warps}, {stages}, {head_dim}, {causal}, flash2_mma::Schedule::{schedule}"
        if arch != "90a" or (head_dim == 256 and (block_m, warps) == (128, 4)):  # that one's output alone would fill the register file
            continue
        for stages, copy in itertools.product((2, 3), ("cp_async", "tma")):
            yield "flash2_wgmma", f"{block_m}, {block_n}, {warps}, {stages}, {head_dim}, {causal}, flash2_wgmma::Copy::{copy}"
        if (block_m, warps) == (128, 8):
            yield "flash3", f"{block_m}, {block_n}, {warps}, 2, {head_dim}, {causal}"
            if head_dim < 256:  # three consumer warpgroups have too few registers for it
                yield "flash3", f"192, {block_n}, 12, 2, {head_dim}, {causal}"


def compile_part(arch, part, folder, generated):
    text = "".join(f'#include "{h}.h"\n' for h in sorted({n for n, _ in part}))
    for name, shape in part:
        arguments = "TileParams" if name == "flash2_mma" else "TileParams, const __grid_constant__ wgmma_tiles::Maps"
        text += f"template __global__ void {name}::forward<{name}::Shape<{shape}>>({arguments});\n"
    source = pathlib.Path(folder) / "part.cu"
    source.write_text(text)
    result = subprocess.run([nvcc(), "-std=c++17", "-O3", f"-I{HERE}/attention", f"-I{HERE}/common", f"-I{generated}", "-cubin", f"-gencode=arch=compute_{arch},code=sm_{arch}",
                             "-Xptxas", "-v", "-o", str(source.with_suffix(".cubin")), str(source)], capture_output=True, text=True)
    if result.returncode == 0:
        return result.stderr
    if len(part) == 1:
        print(f"sm_{arch}: {part[0]} does not compile: {result.stderr.strip().splitlines()[0][:160]}", file=sys.stderr)
        return ""
    half = len(part) // 2
    return compile_part(arch, part[:half], folder, generated) + compile_part(arch, part[half:], folder, generated)


def rows_of(arch, cuda, report):
    for block in report.split("Compiling entry function")[1:]:
        name = NAME.search(block)
        used = re.search(r"Used (\d+) registers(?:, used (\d+) barriers)?", block)
        stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", block)
        if not name or not used or not stack:
            continue
        kernel, *numbers, variant = name.groups()
        yield dict(zip(COLUMNS, ("sm_" + arch, cuda, kernel, *numbers, VARIANTS[kernel][int(variant)] if kernel in VARIANTS else "pingpong", used.group(1), *stack.groups(),
                                 used.group(2) or 0)))


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", nargs="+", default=["80", "86", "89", "90a"])
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    release = re.search(r"release ([\d.]+)", subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        generated = pathlib.Path(folder)
        subprocess.run([sys.executable, str(HERE / "common" / "gen_wgmma.py"), str(generated / "wgmma_ops.h")], check=True)
        for arch in args.arch:
            wanted = list(instances(arch))
            for at in range(0, len(wanted), 24):
                rows += rows_of(arch, release.group(1) if release else "", compile_part(arch, wanted[at:at + 24], folder, generated))
                write(args.out, rows)
            print(f"sm_{arch}: {len(wanted)} instances, {len(rows)} rows so far", file=sys.stderr, flush=True)


os.nice(5)
main()
