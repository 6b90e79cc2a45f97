#!/usr/bin/env python3
"""In which order kernels that this project did not write finish their output tiles (tile_order.cu says how that is seen).

    tile_order.py LIBRARY.so CASES.csv [FIRST] > result.csv

Cases are those of foreign_bench.py.  A row is a launch: `tiles` lists the first FIRST tiles (all without it) in the order in which they were finished, batch and
head as one number, then row and column of the tile, as `head.row.column@microseconds`.  `sms` is how many SMs the kernel had: those of one cluster, where CTAs (or
clusters) run one after another, or `all` but one."""
import ctypes
import csv
import itertools
import re
import sys

import torch
from calls import make_call
from foreign_bench import kernels_of, read_cases
from problems import PRODUCTS, make_inputs

SENTINELS = {torch.float16: 0x7E00, torch.bfloat16: 0x7FC0}
CUBLAS = re.compile(r"nvjet_sm90_[a-z]+_(\d+)x(\d+)_\d+x\d+_(\d+)x(\d+)_(?!.*splitK)")
CUDNN = re.compile(r"sm90_flash_fprop_wgmma_f16_knob_\d+_(\d+)x")
FLASH = re.compile(r"Flash_fwd_kernel_traits<\d+, (\d+),")
MOST_TILES = 27000
MHZ = 1980  # only the scale of the times


def tiling(case, kernel, out):
    """(rows and columns of a tile, CTAs of a cluster); None: not known."""
    if match := CUBLAS.search(kernel):
        columns, rows, along_n, along_m = map(int, match.groups())
        return rows, columns, along_n * along_m
    if match := CUDNN.search(kernel):
        return 2 * int(match[1]), out.shape[-1], 1
    if match := FLASH.search(kernel):
        return int(match[1]), out.shape[-1], 1
    if case["block_m"]:
        return int(case["block_m"]), int(case["block_n"]) if case["source"] in PRODUCTS else out.shape[-1], 1
    return None


def last_elements(out, rows, columns):
    """Tiles as (head, row, column) and the address of the last element of each."""
    tiles, addresses = [], []
    for i, index in enumerate(itertools.product(*map(range, out.shape[:-2]))):
        matrix = out[index]
        for m in range(0, matrix.shape[0], rows):
            for n in range(0, matrix.shape[1], columns):
                last_m, last_n = min(m + rows, matrix.shape[0]) - 1, min(n + columns, matrix.shape[1]) - 1
                tiles.append((i, m // rows, n // columns))
                addresses.append(matrix.data_ptr() + (last_m * matrix.stride(0) + last_n * matrix.stride(1)) * matrix.element_size())
    return tiles, addresses


def watch(library, call, tile, sms):
    """The tiles in the order of their times: [(cycles, tile)]; raises if a tile was not seen."""
    out = call()
    torch.cuda.synchronize()
    out.fill_(float("nan"))
    torch.cuda.synchronize()
    tiles, addresses = last_elements(out, *tile)
    where, sentinel = out.data_ptr(), SENTINELS[out.dtype]
    del out  # the next call gets the same memory
    status = library.tile_order_begin((ctypes.c_uint64 * len(addresses))(*addresses), len(addresses), sentinel, (ctypes.c_uint32 * max(1, len(sms)))(*sms), len(sms))
    if status:
        raise RuntimeError(f"tile_order_begin: {status}")
    again = call()
    cycles = (ctypes.c_uint64 * len(tiles))()
    status = library.tile_order_end(cycles, len(tiles))
    torch.cuda.synchronize()
    if status or again.data_ptr() != where or not all(cycles):
        raise RuntimeError(f"tile_order_end: {status}, moved: {again.data_ptr() != where}, tiles not seen: {sum(c == 0 for c in cycles)} of {len(tiles)}")
    return sorted(zip(cycles, tiles))


def main():
    library, cases = ctypes.CDLL(sys.argv[1]), read_cases(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else None
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*cases[0], "kernel", "tile_rows", "tile_columns", "cluster_ctas", "sms", "num_tiles", "tiles"])
    num_failed = 0
    for case in cases:
        try:
            call = make_call(case, *make_inputs(case))
            kernel = next((name for name in kernels_of(call) if not name.startswith("void at::")), "")
            out = call()
            tile = tiling(case, kernel, out)
            num_tiles = out.numel() // (out.shape[-1] * out.shape[-2]) * -(-out.shape[-2] // tile[0]) * -(-out.shape[-1] // tile[1]) if tile else 0
            del out
            if not 0 < num_tiles <= MOST_TILES:
                print(f"{case}: {kernel}: {num_tiles} tiles", file=sys.stderr)
                continue
            cluster = (ctypes.c_uint32 * tile[2])()
            if library.tile_order_cluster_sms(tile[2], cluster):
                raise RuntimeError("tile_order_cluster_sms")
            for name, sms in ((str(tile[2]), list(cluster)), ("all", [])):
                order = watch(library, call, tile[:2], sms)
                begin = order[0][0]
                writer.writerow([*case.values(), kernel[:120], *tile, name, num_tiles, " ".join(f"{h}.{m}.{n}@{(cycles - begin) / MHZ:.0f}" for cycles, (h, m, n) in order[:first])])
                sys.stdout.flush()
        except Exception as error:
            num_failed += 1
            print(f"{case}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            if num_failed == 4:
                sys.exit("too many failures")
    if num_failed:
        sys.exit(f"{num_failed} of {len(cases)} cases failed")


if __name__ == "__main__":
    main()
