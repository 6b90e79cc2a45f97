#!/usr/bin/env python3
"""Writes one source file for every kernel instance that the case files need.  gen_instances.py OUT_DIR CASES.csv ..."""
import csv
import pathlib
import sys

KEYS = ("workload", "mma", "copy", "schedule", "block_m", "block_n", "num_warps", "num_stages", "head_dim", "causal", "persistent")


def source(key):
    workload, mma, copy, schedule, block_m, block_n, num_warps, num_stages, head_dim, causal, persistent = key
    causal = "true" if causal == "1" else "false"
    shape = f"{block_m}, {block_n}, {num_warps}, {num_stages}, {head_dim}, {causal}"
    if workload == "flash2_fwd" and mma == "mma":
        return "flash2_mma", f"Shape<{shape}, Schedule::{schedule}>"
    if workload == "flash2_fwd" and mma == "wgmma":
        return "flash2_wgmma", f"Shape<{shape}, Copy::{copy}>"
    if workload == "flash3_fwd":
        return "flash3", f"Shape<{shape}{', true' if persistent == '1' else ''}>"
    if workload == "standard_attention":
        return "standard_mma", f"Tiles<{block_m}, {block_n}, {num_warps}, {head_dim}, {causal}>, standard_mma::Softmax::{schedule}"
    if workload == "flash_decode":
        return "decode_mma", f"Shape<{block_n}, {num_warps}, {num_stages}, {head_dim}>"
    return None


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    keys = set()
    for path in sys.argv[2:]:
        with open(path) as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                keys.add(tuple(row.get(k) or "0" for k in KEYS))
    wanted = {}
    for key in sorted(keys):
        made = source(key)
        if made:
            header, shape = made
            text = f'#include "{header}.h"\n\nstatic Registration registration({header}::instance<{header}::{shape.replace("Schedule::", header + "::Schedule::").replace("Copy::", header + "::Copy::")}>());\n'
            wanted["_".join((header,) + key[2:]) + ".cu"] = text
    for old in out.glob("*.cu"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = out / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


main()
