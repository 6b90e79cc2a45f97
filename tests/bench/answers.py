#!/usr/bin/env python3
"""How long the longest answers of `sampled` take: tests/bench/answers.py FORETILE [--only REGEX]

Predicts large and odd problems, one at a time on one thread, and prints CPU seconds and memory of each as Markdown.
Asserts nothing.
"""

import argparse
import os
import re
import subprocess

EAGER = "standard_attention heads=16 seqlen=4096 head_dim=64 elementwise="
DECODE = "heads=32 kv_heads=8 seqlen_q=1 head_dim=128 "

# GPU, workload and parameters.
CASES = [
    ("h200", "flash2_fwd heads=16 seqlen=512 head_dim=128 num_warps=8 code=plain"),
    ("h200", "flash2_fwd heads=8 seqlen=4096 head_dim=128 num_warps=8 code=plain"),
    ("h200", "flash2_fwd heads=8 seqlen=131072 head_dim=128 num_warps=8 code=plain"),
    ("h200", "flash2_fwd heads=32 seqlen=131072 head_dim=128 num_warps=8 code=plain causal=true"),
    ("h200", "flash2_fwd heads=1 seqlen=1048576 head_dim=128 num_warps=8 code=plain"),
    ("h200", "flash2_fwd batch=256 heads=32 kv_heads=8 seqlen=4096 head_dim=128 block_n=64 schedule=interleaved causal=true"),
    ("h200", "flash3_fwd heads=32 batch=4 seqlen=16384 head_dim=128 block_n=128 persistent=true causal=true"),
    ("h200", "flash2_bwd heads=16 seqlen=65536 head_dim=128"),
    ("h200", "flash1_fwd heads=8 seqlen=32768 head_dim=64"),
    ("h200", "flash1_bwd heads=8 seqlen=16384 head_dim=64"),
    ("h200", "glu m=16384 n=28672 k=8192"),
    ("h200", "matmul_tiled m=65536 n=8 k=65536"),
    ("h200", "matmul_tiled m=16384 n=16384 k=16384"),
    ("h200", EAGER + "epilogue"),
    ("h200", EAGER + "eager_baddbmm causal=true"),
    ("h200", EAGER + "eager_einsum causal=true"),
    ("h200", EAGER + "separate causal=true padding_mask=true dropout_p=0.1"),
    ("h200", EAGER + "eager_baddbmm padding_mask=true dropout_p=0.1"),
    ("h200", EAGER + "eager_baddbmm causal=true conditions=stream"),
    ("a100_80", EAGER + "eager_baddbmm causal=true"),
    ("h200", EAGER + "eager_baddbmm pass=bwd causal=true"),
    ("h200", "softmax_safe heads=64 seqlen_q=4096 seqlen_kv=16384"),
    ("h200", "softmax_online heads=64 seqlen_q=4096 seqlen_kv=16384"),
    ("a100_80", "softmax_safe heads=64 seqlen_q=1024 seqlen_kv=16384"),
    ("t4", "softmax_online heads=16 seqlen_q=2048 seqlen_kv=2048"),
    ("h200", "paged_decode batch=64 seqlen_kv=131072 " + DECODE),
    ("h200", "paged_decode batch=64 seqlen_kv=8192 page_size=1 page_layout=scattered " + DECODE),
    ("h200", "flash_decode batch=64 seqlen_kv=131072 " + DECODE),
]


def measure(foretile, arch, words):
    command = [foretile, "predict", "--json", "--quiet", "--jobs=1", f"--arch={arch}", f"--workload={words[0]}"]
    child = subprocess.Popen(command + words[1:], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{arch} {' '.join(words)}: failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("foretile")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose parameters match")
    options = parser.parse_args()
    print("| GPU | question | CPU s | max RSS |\n|---|---|---|---|")
    for arch, parameters in CASES:
        if re.search(options.only, parameters):
            seconds, megabytes = measure(options.foretile, arch, parameters.split())
            print(f"| {arch} | `{parameters}` | {seconds:.2f} | {megabytes} MB |", flush=True)


if __name__ == "__main__":
    main()
