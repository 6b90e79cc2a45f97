#!/usr/bin/env python3
"""Checks, times and (with --profile, under ncu) launches kernels that this project did not write: a Triton fused attention, PyTorch's
scaled_dot_product_attention with its flash and cuDNN backends, its flex_attention (a Triton template, any block sizes), cuBLAS products.

    foreign_bench.py [--profile | --compile I/N] CASES.csv > result.csv

Columns of a case: source,pass,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,num_warps,num_stages.  A cublas
case is `batch` products of seqlen_q x head_dim by head_dim x seqlen_kv.  The n-th ok row of a --profile run belongs to the next `launches`
profiled launches.  Timing: CUDA events around one call, 256 MiB written before each, median."""
import csv
import math
import sys

import torch
import torch._inductor.codecache
import torch._inductor.config
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

OUT = ("status", "mma", "copy", "registers", "spills", "shared_bytes", "launches", "kernel_names", "o_error", "time_median_us", "time_min_us",
       "time_p10_us", "time_p90_us", "repeats")
BACKENDS = {"sdpa_flash": SDPBackend.FLASH_ATTENTION, "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION}


def read_cases(path):
    with open(path) as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def make_inputs(case):
    n = {k: int(case[k]) for k in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_kv", "head_dim")}
    torch.manual_seed(1)
    half = dict(device="cuda", dtype=torch.float16)
    if case["source"] == "cublas":
        return (torch.randn(n["batch"], n["seqlen_q"], n["head_dim"], **half), torch.randn(n["batch"], n["head_dim"], n["seqlen_kv"], **half), None)
    q = torch.randn(n["batch"], n["heads"], n["seqlen_q"], n["head_dim"], **half)
    k = torch.randn(n["batch"], n["kv_heads"], n["seqlen_kv"], n["head_dim"], **half)
    v = torch.randn(n["batch"], n["kv_heads"], n["seqlen_kv"], n["head_dim"], **half)
    return q, k, v


def triton_call(case, q, k, v):
    from triton_attention import triton_attention_forward
    o = torch.full_like(q, float("nan"))
    lse = torch.empty(q.shape[:3], device="cuda", dtype=torch.float32)
    block_m, head_dim = int(case["block_m"]), q.shape[3]
    grid = (q.shape[2] // block_m, q.shape[0] * q.shape[1])

    def call():
        call.compiled = triton_attention_forward[grid](
            q, k, v, o, lse, 1.4426950408889634 / math.sqrt(head_dim), q.shape[1], q.shape[1] // k.shape[1], q.shape[2], k.shape[2],
            CAUSAL=case["causal"] == "1", BLOCK_M=block_m, BLOCK_N=int(case["block_n"]), HEAD_DIM=head_dim,
            num_warps=int(case["num_warps"]), num_stages=int(case["num_stages"]))
        return o
    return call


def flex_call(case, q, k, v):
    """PyTorch's own template, compiled anew for each case, with the block sizes that the case names."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    torch._dynamo.reset()
    for name in ("use_static_cuda_launcher", "use_static_triton_launcher"):  # which forgets PTX and metadata
        if hasattr(torch._inductor.config, name):
            setattr(torch._inductor.config, name, False)
    torch._inductor.codecache.PyCodeCache.cache_clear()
    options = dict(BLOCK_M=int(case["block_m"]), BLOCK_N=int(case["block_n"]), num_warps=int(case["num_warps"]), num_stages=int(case["num_stages"]))
    seen = (lambda b, h, i, j: i >= j) if case["causal"] == "1" else (lambda b, h, i, j: i >= 0)  # without any mask two more kernels run
    mask = create_block_mask(seen, None, None, q.shape[2], k.shape[2], device="cuda")
    compiled, gqa = torch.compile(flex_attention, dynamic=False, fullgraph=True), q.shape[1] != k.shape[1]

    def call():
        with torch.no_grad():
            return compiled(q, k, v, block_mask=mask, enable_gqa=gqa, kernel_options=options)
    call()
    call.compiled = flex_kernel()
    return call


def flex_kernel():
    """The Triton kernel that the last flex_attention became, or None."""
    for module in torch._inductor.codecache.PyCodeCache.modules:
        for name, value in vars(module).items():
            if name.startswith("triton_tem") and getattr(value, "compile_results", None):
                return value.compile_results[0].kernel
    return None


def make_call(case, q, k, v):
    source = case["source"]
    if source == "triton":
        return triton_call(case, q, k, v)
    if source == "flex":
        return flex_call(case, q, k, v)
    if source == "cublas":
        out = torch.empty(q.shape[0], q.shape[1], k.shape[2], device="cuda", dtype=torch.float16)
        return lambda: torch.bmm(q, k, out=out)
    backend, causal, gqa = BACKENDS[source], case["causal"] == "1", q.shape[1] != k.shape[1]

    def forward():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=gqa)
    if case["pass"] == "fwd":
        return forward
    for t in (q, k, v):
        t.requires_grad_(True)
    o = forward()
    gradient = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v), gradient, retain_graph=True)


def error_of(case, out, q, k, v):
    """Against float64 on sampled heads and rows."""
    with torch.no_grad():
        if case["source"] == "cublas":
            rows = torch.randint(0, q.shape[1], (64,), device="cuda")
            expect = q[0, rows].double() @ k[0].double()
            return float((out[0, rows].double() - expect).norm() / expect.norm())
        if case["pass"] != "fwd":
            return float("nan")
        worst = 0.0
        for sample in range(4):
            b, h = sample % q.shape[0], (sample * 5 + 1) % q.shape[1]
            kv = h // (q.shape[1] // k.shape[1])
            rows = torch.randint(0, q.shape[2], (64,), device="cuda")
            s = q[b, h, rows].double() @ k[b, kv].double().T / math.sqrt(q.shape[3])
            if case["causal"] == "1":
                hidden = torch.arange(k.shape[2], device="cuda")[None, :] > (rows + k.shape[2] - q.shape[2])[:, None]
                s.masked_fill_(hidden, float("-inf"))
            expect = s.softmax(-1) @ v[b, kv].double()
            error = float((out[b, h, rows].double() - expect).norm() / expect.norm())
            worst = error if not error <= worst else worst
        return worst


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


def compile_only(cases, index, count):
    for case in [c for c in cases if c["source"] in ("triton", "flex")][index::count]:
        try:
            small = dict(case, batch="1", heads="2", kv_heads="2", seqlen_q="512", seqlen_kv="512") if case["source"] == "triton" else case
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
                result["status"] = "ok"
            else:
                error = error_of(case, out, q, k, v)
                names = kernels_of(call)
                times = time_us(call, flush)
                result.update(status="ok" if error < 3e-3 or case["pass"] != "fwd" else "wrong", launches=len(names), kernel_names="|".join(n[:120] for n in names),
                              o_error=f"{error:.3g}", time_median_us=f"{times[len(times) // 2]:.3f}", time_min_us=f"{times[0]:.3f}",
                              time_p10_us=f"{times[len(times) // 10]:.3f}", time_p90_us=f"{times[-1 - len(times) // 10]:.3f}", repeats=len(times))
            result.update(zip(("mma", "copy", "registers", "spills", "shared_bytes"), triton_facts(call)))
        except Exception as error:
            result["status"] = type(error).__name__
            print(f"{case}: {str(error)[:200]}", file=sys.stderr)
        writer.writerow(list(case.values()) + [result[c] for c in OUT])
        sys.stdout.flush()


main()
