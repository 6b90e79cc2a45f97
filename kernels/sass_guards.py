#!/usr/bin/env python3
"""How far ptxas puts a compare ahead of what its predicate decides: stall cycles, counted in SASS of masked rows.

    sass_guards.py [OUT.csv]     default measurements/sass_guards.csv; needs nvcc, no GPU and no disassembler

A guarded instruction (@P) is issued or not; a selection, or another compare, reads a predicate like a register. The
least distance is what the hardware needs, most others are what else there was to do."""
import csv
import pathlib
import subprocess
import sys
import tempfile

import sass

HERE = pathlib.Path(__file__).resolve().parent
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a")
COUNTS = (4, 8, 16, 32)  # elements of a thread

# Exponentials that keep denormal numbers (FSETP, @P FMUL, MUFU, @P FMUL), masked loads and stores, a selection.
SOURCE = """
template <int n>
__device__ void row(float *y, const float *x, int columns) {
  float value[n], sum = 0;
  for (int i = 0; i < n; i++) {
    int column = threadIdx.x + i * 128;
    value[i] = -1e30f;
    if (column < columns) value[i] = x[blockIdx.x * columns + column];
  }
  for (int i = 0; i < n; i++) {
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(value[i]));
    value[i] = power > 0.5f ? power : value[i] + 1.0f;
    sum += value[i];
  }
  for (int i = 0; i < n; i++) {
    int column = threadIdx.x + i * 128;
    if (column < columns) y[blockIdx.x * columns + column] = value[i] * sum;
  }
}
"""


def source(count):
    return f'{SOURCE}extern "C" __global__ void rows(float *y, const float *x, int columns) {{ row<{count}>(y, x, columns); }}\n'


def compiled(arch, count, folder):
    (folder / "rows.cu").write_text(source(count))
    subprocess.run(["nvcc", "-std=c++17", "-O3", f"-arch={arch}", "-cubin", "-o", folder / "rows.cubin", folder / "rows.cu"], check=True)
    return (folder / "rows.cubin").read_bytes()


def distances(insts):
    """By what reads the predicate: stall cycles from each compare to its first reader in the same stretch of code."""
    found, since, cycle = {"guard": [], "branch": [], "operand": []}, {}, 0
    for inst in insts:
        use = "branch" if inst.opcode == sass.BRA else "guard"
        for kind, predicate in ((use, inst.guard), ("operand", inst.reads_predicate)):
            if predicate in since:
                found[kind].append(cycle - since.pop(predicate))
        if inst.opcode == sass.BRA:
            since = {}
        if inst.sets_predicate != sass.NO_PREDICATE:
            since[inst.sets_predicate] = cycle
        cycle += inst.stall
    return found


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "measurements" / "sass_guards.csv"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for arch in ARCHS:
            found = {}
            for count in COUNTS:
                for kind, some in distances(sass.insts_of(compiled(arch, count, pathlib.Path(folder)), arch)).items():
                    found.setdefault(kind, []).extend(some)
            for kind, some in found.items():
                if some:
                    rows.append({"sass_arch": arch, "reader": kind, "pairs": len(some), "least_cycles": min(some), "at_least": some.count(min(some))})
                    print(rows[-1], file=sys.stderr)
    with open(out, "w", newline="") as file:
        file.write(f"# cuda: {sass.cuda_version()}\n# by: kernels/sass_guards.py\n")
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


main()
