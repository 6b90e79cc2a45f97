#!/usr/bin/env python3
"""How ptxas orders the main loop of some kernels in attention/: facts read from SASS, for tests/reference/sass_order.

    sass_order.py [OUT.csv]     default measurements/sass_order.csv; needs nvcc, no GPU and no disassembler

The sum of the stall counts is what a lone warp needs when no scoreboard holds it.

No time of these kernels was known when the scheduler's rules were written."""
import csv
import pathlib
import subprocess
import sys
import tempfile

import sass

HERE = pathlib.Path(__file__).resolve().parent
HMMA, HGMMA, MUFU, LDSM = 0x03C, 0x1F0, 0x108, 0x03B

# mma, schedule, block_m, block_n, num_warps, num_stages, head_dim
MMA_KERNELS = [
    ("mma", "stages", 64, 96, 4, 2, 64),
    ("mma", "stages", 128, 96, 8, 2, 64),
    ("mma", "stages", 64, 48, 4, 2, 128),
    ("mma", "stages", 64, 32, 4, 3, 96),
    ("mma", "interleaved", 64, 96, 4, 1, 64),
    ("mma", "interleaved", 128, 48, 8, 1, 128),
    ("mma", "stages", 128, 32, 4, 2, 96),
]
WGMMA_KERNELS = [
    ("wgmma", "stages", 64, 96, 4, 2, 64),
    ("wgmma", "stages", 128, 96, 8, 2, 128),
    ("wgmma", "stages", 64, 96, 4, 3, 128),
]
# of each the architecture first
KERNELS = [(arch, *kernel) for arch in ("sm_90a", "sm_80", "sm_86", "sm_89") for kernel in MMA_KERNELS]
KERNELS += [("sm_90a", *kernel) for kernel in WGMMA_KERNELS]


def source(kernel):
    _, mma, schedule, block_m, block_n, num_warps, num_stages, head_dim = kernel
    shape = f"{block_m}, {block_n}, {num_warps}, {num_stages}, {head_dim}, false"
    header, last = ("flash2_mma", f"flash2_mma::Schedule::{schedule}") if mma == "mma" else ("flash2_wgmma", "flash2_wgmma::Copy::cp_async")
    return (f'#include "{header}.h"\nstd::vector<Instance> &instances() {{ static std::vector<Instance> all; return all; }}\n'
            f"static Registration registration({header}::instance<{header}::Shape<{shape}, {last}>>());\n")


def compiled(kernel, folder):
    (folder / "kernel.cu").write_text(source(kernel))
    subprocess.run([sys.executable, HERE / "common" / "gen_wgmma.py", folder / "wgmma_ops.h"], check=True)
    subprocess.run(["nvcc", "-std=c++17", "-O3", f"-arch={kernel[0]}", f"-I{HERE / 'attention'}", f"-I{HERE / 'common'}", f"-I{folder}",
                    "-cubin", "-o", folder / "kernel.cubin", folder / "kernel.cu"], check=True)
    return (folder / "kernel.cubin").read_bytes()


def main_loop(insts):
    """The shortest loop with the most products: from the target of a backward branch to the branch."""
    place = {inst.pc: i for i, inst in enumerate(insts)}
    best = []
    for i, inst in enumerate(insts):
        if inst.target is None or inst.target >= inst.pc or inst.target not in place:
            continue
        body = insts[place[inst.target]:i + 1]
        products = [sum(x.opcode in (HMMA, HGMMA) for x in loop) for loop in (body, best)]
        if products[0] > products[1] or (products[0] == products[1] and len(body) < len(best)):
            best = body
    return best


def fragment_distances(body):
    """Stall cycles from each ldmatrix to the first HMMA that reads what it loaded."""
    loaded, distances, cycle = {}, [], 0
    for inst in body:
        if inst.opcode == LDSM:
            loaded.update({inst.destination + i: (inst.pc, cycle) for i in range(4)})
        elif inst.opcode == HMMA:
            for register in (inst.sources[0], inst.sources[1]):
                if register in loaded:
                    pc, since = loaded[register]
                    distances.append(cycle - since)
                    loaded = {r: v for r, v in loaded.items() if v[0] != pc}
        cycle += inst.stall
    return sorted(distances)


def facts(kernel, body):
    _, mma, _, block_m, _, num_warps, _, head_dim = kernel
    products = [i for i, inst in enumerate(body) if inst.opcode in (HMMA, HGMMA)]
    slabs = block_m // num_warps // 16 if mma == "mma" else block_m // (num_warps // 4) // 64
    first_pv = products[len(products) // 2] if mma == "mma" else products[slabs * (head_dim // 16)]
    mufus = [i for i, inst in enumerate(body) if inst.opcode == MUFU]
    distances = fragment_distances(body)
    return {
        "insts": len(body),
        "products": len(products),
        "mufu": len(mufus),
        "ldmatrix": sum(inst.opcode == LDSM for inst in body),
        "stall_cycles": sum(inst.stall for inst in body),
        "mufu_before_pv_pct": round(100 * sum(i < first_pv for i in mufus) / len(mufus)),
        "ldmatrix_to_product_cycles": distances[len(distances) // 2] if distances else "",
    }


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "measurements" / "sass_order.csv"
    keys = ("sass_arch", "mma", "schedule", "block_m", "block_n", "num_warps", "num_stages", "head_dim")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kernel in KERNELS:
            insts = sass.insts_of(compiled(kernel, pathlib.Path(folder)), kernel[0])
            rows.append({**dict(zip(keys, kernel)), **facts(kernel, main_loop(insts))})
            print(rows[-1], file=sys.stderr, flush=True)
    with open(out, "w", newline="") as file:
        file.write(f"# cuda: {sass.cuda_version()}\n# by: kernels/sass_order.py\n")
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


main()
