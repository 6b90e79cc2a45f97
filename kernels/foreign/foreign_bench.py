#!/usr/bin/env python3
"""Checks, times and (with --profile, under ncu) launches kernels that this project did not write: Triton's fused attention, matrix product and softmax, PyTorch's
scaled_dot_product_attention with its flash and cuDNN backends and the flash operator itself, its flex_attention (a Triton template, any block
sizes), cuBLAS products.

    foreign_bench.py [--profile | --compile I/N] CASES.csv > result.csv

Columns of a case: source,pass,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,num_warps,num_stages, and as far as its source
takes them window,dropout_p,mask,mask_width,lengths,page_size,page_layout,splits,dtype,transpose_b,block_k (named as Foretile's parameters).  A cublas or
triton_product case is `batch` products of seqlen_q x head_dim by head_dim x seqlen_kv, a triton_softmax one batch * heads * seqlen_q rows of seqlen_kv columns.  The n-th ok row of a --profile run belongs to the next `launches`
profiled launches.  Timing: CUDA events around one call, 256 MiB written before each, median.  `status`: ok; wrong; unchecked (backward with dropout: nobody
knows what was dropped); or the exception that kept the case from running.  `o_error`: of the output, or backward the worst of dQ, dK and dV."""
import csv
import sys

import torch
from calls import make_call
from gradients import gradient_error, is_checkable
from problems import error_of, make_inputs, most_error

OUT = ("status", "mma", "copy", "registers", "spills", "shared_bytes", "launches", "kernel_names", "o_error", "time_median_us", "time_min_us",
       "time_p10_us", "time_p90_us", "repeats")


def read_cases(path):
    with open(path) as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def kernels_of(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    return [e.name for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith("Mem")]


def time_us(call, flush):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(2):
        start.record()
        call()
        stop.record()
        stop.synchronize()
    repeats = int(min(21, max(5, 150 / start.elapsed_time(stop))))
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for begin, end in pairs:
        flush.fill_(1)
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return sorted(begin.elapsed_time(end) * 1e3 for begin, end in pairs)


def triton_facts(call):
    compiled = getattr(call, "compiled", None)
    if compiled is None:
        return "", "", "", "", ""
    ptx = compiled.asm.get("ptx", "")
    return ("wgmma" if "wgmma" in ptx else "mma", "tma" if "cp.async.bulk.tensor" in ptx else "cp_async" if "cp.async" in ptx else "ldg",
            getattr(compiled, "n_regs", ""), getattr(compiled, "n_spills", ""), compiled.metadata.shared)


def checked(case, call, out, q, k, v):
    """(status, error)"""
    if not is_checkable(case):
        return "unchecked", float("nan")
    error = error_of(case, out, q, k, v) if case["pass"] == "fwd" else gradient_error(case, out, call.gradient, q, k, v)
    return "ok" if error < most_error(case) else "wrong", error


def compile_only(cases, index, count):
    for case in [c for c in cases if c["source"].startswith(("triton", "flex"))][index::count]:
        try:
            small = dict(case, batch="1", heads="2", kv_heads="2", seqlen_q="512", seqlen_kv="512") if case["source"] in ("triton", "triton_descriptors", "triton_backward") else case
            make_call(small, *make_inputs(small))()
        except Exception as error:  # a configuration that does not fit says so again, and for the record, in the main run
            print(f"{case}: {type(error).__name__}", file=sys.stderr)


def main():
    cases = read_cases(sys.argv[-1])
    if "--compile" in sys.argv:
        index, count = sys.argv[sys.argv.index("--compile") + 1].split("/")
        compile_only(cases, int(index), int(count))
        return
    profile = "--profile" in sys.argv
    flush = torch.empty(256 << 20, device="cuda", dtype=torch.uint8)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(list(cases[0]) + list(OUT))
    for case in cases:
        result = dict.fromkeys(OUT, "")
        try:
            q, k, v = make_inputs(case)
            call = make_call(case, q, k, v)
            out = call()
            torch.cuda.synchronize()
            if profile:
                torch.cuda.cudart().cudaProfilerStart()
                call()
                torch.cuda.synchronize()
                torch.cuda.cudart().cudaProfilerStop()
                result["status"] = "ok" if is_checkable(case) else "unchecked"
            else:
                status, error = checked(case, call, out, q, k, v)
                names = kernels_of(call)
                times = time_us(call, flush)
                result.update(status=status, launches=len(names), kernel_names="|".join(n[:120] for n in names),
                              o_error=f"{error:.3g}", time_median_us=f"{times[len(times) // 2]:.3f}", time_min_us=f"{times[0]:.3f}",
                              time_p10_us=f"{times[len(times) // 10]:.3f}", time_p90_us=f"{times[-1 - len(times) // 10]:.3f}", repeats=len(times))
            result.update(zip(("mma", "copy", "registers", "spills", "shared_bytes"), triton_facts(call)))
        except Exception as error:
            result["status"] = type(error).__name__
            print(f"{case}: {str(error)[:200]}", file=sys.stderr)
        writer.writerow(list(case.values()) + [result[c] for c in OUT])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
