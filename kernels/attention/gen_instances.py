#!/usr/bin/env python3
"""Writes one source file for every kernel instance that the case files need.  gen_instances.py OUT_DIR CASES.csv ..."""
import csv
import pathlib
import sys

KEYS = ("workload", "mma", "copy", "schedule", "block_m", "block_n", "num_warps", "num_stages", "head_dim", "causal", "persistent")


def source(key):
    workload, mma, copy, schedule, block_m, block_n, num_warps, num_stages, head_dim, causal, persistent, ragged, windowed, drops, kv_dtype, kv_group_size, head_dim_v, dq, max_registers = key
    if (windowed or drops) and (workload, mma) != ("flash2_fwd", "mma"):
        return None
    if head_dim_v and workload not in ("flash2_fwd", "flash3_fwd"):
        return None
    causal = "true" if causal == "1" else "false"
    shape = f"{block_m}, {block_n}, {num_warps}, {num_stages}, {head_dim}, {causal}"
    of_values = f", {head_dim_v}" if head_dim_v else ""
    if workload == "flash2_fwd" and mma == "mma":
        others = [("false", "true")[flag] for flag in (copy == "ldg", persistent == "1")] + [max_registers or "0"]
        more = others if others != ["false", "false", "0"] else []
        flags = [("false", "true")[bool(flag)] for flag in (ragged, windowed, drops)] if ragged or windowed or drops or head_dim_v or more else []
        of_values = [head_dim_v or head_dim] if head_dim_v or more else []
        return "flash2_mma", f"Shape<{', '.join((shape, 'Schedule::' + schedule, *flags, *of_values, *more))}>"
    if workload == "flash2_fwd" and mma == "wgmma":
        return "flash2_wgmma", f"Shape<{shape}, Copy::{copy}{of_values}>"
    if workload == "flash3_fwd":
        return "flash3", f"Shape<{shape}{', true' if persistent == '1' else ', false' if head_dim_v else ''}{of_values}>"
    if workload == "standard_attention":
        return "standard_mma", f"Tiles<{block_m}, {block_n}, {num_warps}, {head_dim}, {causal}>, standard_mma::Softmax::{schedule}"
    if workload == "flash1_fwd":
        return "flash1_mma", f"Shape<{block_n}, {num_warps}, {num_stages}, {head_dim}, {causal}>"
    if workload == "flash2_bwd":
        headers = {"atomics": "flash2_bwd_atomics", "kernel": "flash2_bwd_products"}
        return (headers[dq], f"Shape<{shape}>") if mma == "mma" and copy == "cp_async" and schedule == "stages" and dq in headers else None
    if workload == "flash_decode" and kv_dtype:
        return "decode_quantized", f"Shape<KvFormat::{kv_dtype}, {kv_group_size}, {block_n}, {num_warps}, {num_stages}, {head_dim}>"
    if workload == "flash_decode":
        return "decode_mma", f"Shape<{block_n}, {num_warps}, {num_stages}, {head_dim}>"
    if workload == "paged_decode":
        return "paged_mma", f"Shape<{block_n}, {num_warps}, {num_stages}, {head_dim}>"
    if workload == "tree_decode":
        return "tree_mma", f"Shape<{block_m}, {block_n}, {num_warps}, {num_stages}, {head_dim}>"
    if workload in ("softmax_safe", "softmax_online"):
        return "softmax_rows", f"Shape<Softmax::{workload[8:]}, {block_m}, {num_warps}, {block_n if schedule == 'registers' else 0}>"
    return None


def key_of(row):
    """What names the instance that a case needs. Ragged ones, windows and dropout exist for the mma.sync flash2 kernel, quantised caches for decoding, values with
    columns of their own for flash2 and flash3; of backward passes `dq` says which kernels. Copies through registers, persistent CTAs and caps of registers exist for the mma.sync flash2 kernel."""
    ragged = row["workload"] == "flash2_fwd" and row["mma"] == "mma" and (int(row["seqlen_q"]) % int(row["block_m"]) or int(row["seqlen_kv"]) % int(row["block_n"]))
    flags = {"ragged": ragged, "windowed": float(row.get("window") or 0), "drops": float(row.get("dropout_p") or 0)}
    kv_dtype = row.get("kv_dtype") or "fp16"
    cache = ("", "") if kv_dtype == "fp16" else (kv_dtype, row["kv_group_size"])
    head_dim_v = row.get("head_dim_v") or row["head_dim"]
    values = (head_dim_v if head_dim_v != row["head_dim"] else "",)
    return tuple(row.get(k) or "0" for k in KEYS) + tuple(name if flag else "" for name, flag in flags.items()) + cache + values + (row.get("dq") or "", row.get("max_registers") or "")


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    keys = set()
    for path in sys.argv[2:]:
        with open(path) as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                keys.add(key_of(row))
    wanted = {}
    for key in sorted(keys):
        made = source(key)
        if made:
            header, shape = made
            for name in ("Schedule::", "Copy::", "Softmax::"):
                shape = shape.replace(name, f"{header}::{name}") if f"::{name}" not in shape else shape
            text = f'#include "{header}.h"\n\nstatic Registration registration({header}::instance<{header}::{shape}>());\n'
            wanted["_".join(part for part in (header, key[0], *key[2:]) if part) + ".cu"] = text
    for old in out.glob("*.cu"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = out / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
