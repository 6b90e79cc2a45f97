#!/usr/bin/env python3
"""Registers and spills of independent/forward_a's kernel (mma.sync), as ptxas reports them for sm_90a. Needs nvcc, no GPU.

    registers_independent.py [OUT.csv]     default measurements/registers_independent.csv"""
import csv
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

import tools

HERE = pathlib.Path(__file__).resolve().parent
TILES = ((64, 32, 4), (64, 64, 4), (64, 128, 4), (128, 32, 4), (128, 64, 4), (128, 32, 8), (128, 64, 8), (128, 128, 8), (64, 48, 4), (128, 96, 8), (32, 64, 2), (256, 64, 8))
SINGLE_BUFFER_TILES = ((64, 64, 4), (128, 64, 4), (128, 64, 8), (128, 128, 8), (64, 32, 4), (128, 32, 8))
COLUMNS = ("head_dim", "block_m", "block_n", "num_warps", "num_stages", "schedule", "causal", "q_operand")
PART = 45  # instances of one file for nvcc


def instances():
    for head_dim in (64, 128):
        for tile, stages, causal, in_registers in itertools.product(TILES, (2, 3), (0, 1), (0, 1)):
            is_wanted = stages == 2 or not (causal or in_registers) or (tile[0] == 128 and tile[2] == 8 and head_dim == 64)
            if is_wanted:
                yield head_dim, *tile, stages, "stages", causal, in_registers
        for tile, causal, schedule in itertools.product(SINGLE_BUFFER_TILES, (0, 1), ("stages", "interleaved")):
            yield head_dim, *tile, 1, schedule, causal, int(head_dim == 64)


def template_of(instance):
    head_dim, block_m, block_n, warps, stages, schedule, causal, in_registers = instance
    return f"template __global__ void flash2_fwd<Cfg<__half, {head_dim}, {block_m}, {block_n}, {warps}, {stages}, {schedule.upper()}, {bool(causal)}, {bool(in_registers)}>>(const Params);\n".replace(
        "True", "true").replace("False", "false")


def reports_of(text):
    """What ptxas says of each kernel: template arguments and three numbers."""
    pattern = r"Compiling entry function '\S*Cfg\S*?((?:L[ib]\d+E)+)\S*'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers"
    for arguments, stores, loads, registers in re.findall(pattern, text, re.S):
        yield tuple(int(n) for n in re.findall(r"L[ib](\d+)E", arguments)), (registers, stores, loads)


def compiled(part):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "part.cu"
        source.write_text('#include "flash2.h"\n' + "".join(map(template_of, part)))
        done = subprocess.run([tools.tool("nvcc"), "-std=c++17", "-O3", "-arch=sm_90a", "-Xptxas", "-v", f"-I{HERE / 'independent' / 'forward_a'}", f"-I{HERE / 'independent' / 'common'}",
                               "-cubin", "-o", str(source.with_suffix(".cubin")), str(source)], check=True, capture_output=True, text=True)
    return dict(reports_of(done.stderr + done.stdout))


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "measurements" / "registers_independent.csv"
    every, found = list(instances()), {}
    for first in range(0, len(every), PART):
        found |= compiled(every[first:first + PART])
    with open(out, "w", newline="") as file:
        file.write(f"# cuda: {tools.provenance()['cuda']}\n# by: kernels/registers_independent.py, sm_90a\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*COLUMNS, "registers", "spill_store_bytes", "spill_load_bytes"))
        for instance in every:
            key = (*instance[:5], int(instance[5] == "interleaved"), *instance[6:])
            writer.writerow((*instance[:7], "registers" if instance[7] else "shared", *found[key]))


main()
