#!/usr/bin/env python3
"""When the kernels of eager PyTorch run: one call after another as benchmarks time them, nothing in between.

    eager_timeline.py CASES.csv > timeline.csv

A row a kernel: when it started after the end of the one before (of the first: after the last call's last kernel), how long it ran. `call_us` is the wall time of a call, of 20."""
import csv
import sys
import time

import torch
from calls import make_call
from foreign_bench import read_cases
from problems import make_inputs

CALLS = 20


def run_us(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6 / CALLS


def timeline(call):
    """(name, start, end) in us of all that ran in three calls, in order."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    return sorted(((e.name, e.time_range.start, e.time_range.end) for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA), key=lambda e: e[1])


def main():
    cases = read_cases(sys.argv[-1])
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*cases[0], "call_us", "launch", "kernel", "gap_us", "time_us"])
    for case in cases:
        call = make_call(case, *make_inputs(case))
        for _ in range(3):
            call()
        call_us, events = run_us(call), timeline(call)
        launches = len(events) // 3
        for i, before in enumerate(events[2 * launches - 1:-1]):
            name, start, end = events[2 * launches + i]
            writer.writerow([*case.values(), f"{call_us:.2f}", i, name[:120], f"{start - before[2]:.3f}", f"{end - start:.3f}"])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
