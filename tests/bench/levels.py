#!/usr/bin/env python3
"""`sampled` against `full`: tests/bench/levels.py FORETILE [--only REGEX] [--random N] [--jobs N]

Predicts small cases at both levels of detail and prints, as Markdown, how far cycles and HBM reads of `sampled` lie from
those of `full`, whether the bounds that `sampled` states hold, and a summary a group of cases. With --random so many
questions at random instead (questions.py; --workload: of one workload, --stream: back to back in a stream), of which
those are compared that are possible and small. Asserts nothing.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

import questions

CYCLES = "sm__cycles_elapsed.max"
READS = "dram__bytes_read.sum"
WRITES = "dram__bytes_write.sum"
INSTS = "smsp__inst_executed.sum"
MOST_INSTS = 25e6  # of a question at random: `full` takes two or three seconds for so many
WORST = 20  # rows of them that are printed

D128 = "flash2_fwd heads=16 seqlen=512 head_dim=128"
D64C = "flash2_fwd heads=8 seqlen=1024 head_dim=64 causal=true"
GQA = "flash2_fwd heads=16 kv_heads=4 seqlen_q=700 seqlen_kv=900 head_dim=128 causal=true"
DECODE = "flash_decode batch=2 heads=16 kv_heads=4 seqlen_q=1 seqlen_kv=4096 head_dim=128"
PAGED = "paged_decode heads=16 kv_heads=4 seqlen_q=1 lengths=4096:300:1500x3 head_dim=128"
WAVES = "flash2_fwd heads=32 seqlen=1024 head_dim=128"
LONG = "flash2_fwd heads=8 seqlen=2048 head_dim=128"

# Group, GPU, workload and parameters, what-ifs.
CASES = [
    # One or two waves of every kind of program.
    ("short", "v100", f"{D128} block_m=64 block_n=64 num_warps=4 num_stages=1", ""),
    ("short", "v100", f"{D64C} block_m=128 block_n=32 num_warps=8", ""),
    ("short", "t4", f"{D128} block_m=64 block_n=32 num_warps=4 num_stages=1", ""),
    ("short", "a100_80", f"{D128} block_m=128 block_n=64 num_warps=8", ""),
    ("short", "a100_80", f"{D64C} block_m=128 block_n=64 num_warps=4 schedule=interleaved", ""),
    ("short", "a100_80", f"{GQA} block_m=64 block_n=64 num_warps=4", ""),
    ("short", "rtx3090", f"{D128} block_m=128 block_n=32 num_warps=4", ""),
    ("short", "rtx4090", f"{D64C} block_m=128 block_n=64 num_warps=8", ""),
    ("short", "rtx4090", f"{GQA} block_m=128 block_n=64 num_warps=4 num_stages=1", ""),
    ("short", "l40s", f"{D64C} block_m=64 block_n=64 num_warps=4", ""),
    ("short", "h100_sxm", f"{D128} block_m=128 block_n=64 num_warps=8", ""),
    ("short", "h200", f"{D128} block_m=128 block_n=128 num_warps=8", ""),
    ("short", "h200", f"{GQA} block_m=128 block_n=64 num_warps=4", ""),
    ("short", "h200", f"{D64C} block_m=64 block_n=32 num_warps=4 mma=mma layout=bshd", ""),
    ("short", "h200", "flash3_fwd heads=16 seqlen=512 head_dim=128 block_n=128", ""),
    ("short", "h200", "flash3_fwd heads=50 seqlen=512 head_dim=64 block_n=128 persistent=true", ""),
    ("short", "a100_80", "flash2_bwd dq=atomics heads=16 seqlen=512 head_dim=128", ""),
    ("short", "v100", f"{DECODE} splits=4", ""),
    ("short", "a100_80", f"{DECODE} splits=16 num_stages=3", ""),
    ("short", "h200", f"{DECODE} splits=24 block_n=128", ""),
    ("short", "h200", f"{PAGED} splits=4 page_size=1 page_layout=scattered num_stages=3", ""),
    # Several waves of longer loops: what CTAs that share an SM do to each other repeats.
    ("waves", "h200", f"{WAVES} block_m=128 block_n=64 num_warps=8", ""),
    ("waves", "h200", f"{WAVES} block_m=64 block_n=64 num_warps=4", ""),
    ("waves", "h200", f"{WAVES} block_m=64 block_n=64 num_warps=4 mma=mma copy=cp_async", ""),
    ("waves", "h200", f"{WAVES} causal=true block_m=128 block_n=64 num_warps=8", ""),
    ("waves", "h200", f"{LONG} block_m=128 block_n=64 num_warps=4", ""),
    ("waves", "h200", f"{LONG} block_m=128 block_n=128 num_warps=8", ""),
    ("waves", "h200", "flash2_fwd heads=32 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4", ""),
    ("waves", "h200", "flash3_fwd heads=16 seqlen=2048 head_dim=128 block_n=128", ""),
    ("waves", "h100_sxm", f"{WAVES} block_m=64 block_n=64 num_warps=4 num_stages=1", ""),
    ("waves", "a100_80", f"{WAVES} block_m=128 block_n=64 num_warps=8", ""),
    ("waves", "a100_80", f"{WAVES} block_m=64 block_n=64 num_warps=4", ""),
    ("waves", "a100_80", f"{LONG} causal=true block_m=64 block_n=64 num_warps=4 schedule=interleaved", ""),
    ("waves", "rtx4090", f"{LONG} block_m=64 block_n=64 num_warps=4 num_stages=1", ""),
    ("waves", "rtx4090", f"{LONG} block_m=128 block_n=32 num_warps=8 num_stages=1", ""),
    ("waves", "v100", f"{LONG} block_m=64 block_n=64 num_warps=4 num_stages=1", ""),
    # K and V of the heads in flight exceed L2.
    ("thrash", "h200", f"{LONG} block_m=128 block_n=64 num_warps=8", "l2.persisting_max_bytes=0 l2.size_bytes=7700480"),
    ("thrash", "h200", f"{LONG} block_m=64 block_n=64 num_warps=4", "l2.persisting_max_bytes=0 l2.size_bytes=7700480"),
    ("thrash", "h200", f"{LONG} causal=true block_m=64 block_n=64 num_warps=4", "l2.persisting_max_bytes=0 l2.size_bytes=3850240"),
    ("thrash", "h200", f"{WAVES} block_m=128 block_n=64 num_warps=8", "l2.persisting_max_bytes=0 l2.size_bytes=3850240"),
    ("thrash", "h200", f"{WAVES} tile_order=head_first block_m=128 block_n=64 num_warps=8", "l2.persisting_max_bytes=0 l2.size_bytes=7700480"),
    ("thrash", "h200", "flash2_fwd heads=2 seqlen=8192 head_dim=64 block_m=128 block_n=128 num_warps=8", "l2.persisting_max_bytes=0 l2.size_bytes=1925120"),
    ("thrash", "a100_80", f"{LONG} block_m=128 block_n=64 num_warps=8", "l2.persisting_max_bytes=0 l2.size_bytes=5242880"),
    ("thrash", "a100_80", f"{WAVES} causal=true block_m=64 block_n=64 num_warps=4", "l2.persisting_max_bytes=0 l2.size_bytes=2621440"),
    ("thrash", "rtx4090", f"{LONG} block_m=64 block_n=64 num_warps=4 num_stages=1", "l2.persisting_max_bytes=0 l2.size_bytes=4718592"),
    ("thrash", "v100", f"{WAVES} block_m=64 block_n=64 num_warps=4 num_stages=1", "l2.persisting_max_bytes=0 l2.size_bytes=1572864"),
]
# One kernel at neighbouring clocks: a phase that CTAs of an SM keep at one and lose at the next.
for mhz in range(1200, 1800, 60):
    CASES.append(("clocks", "h200", f"{WAVES} block_m=128 block_n=64 num_warps=4 clock_mhz={mhz}", ""))
    CASES.append(("clocks", "a100_80", f"{WAVES} block_m=64 block_n=64 num_warps=4 clock_mhz={mhz - 200}", ""))


def value_of(text):
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"\d+", text) else text


def request_of(case, detail):
    _, arch, kernel, _ = case
    workload, *pairs = kernel.split()
    parameters = {key: value_of(text) for key, text in (pair.split("=", 1) for pair in pairs)}
    return {"arch": arch, "workload": workload, "clock_mhz": 1200, **parameters, "detail": detail}


def answers_of(foretile, jobs, requests, what_if=""):
    command = [foretile, "predict", "--json", "--quiet", "--jobs", str(jobs), "--batch", "-"]
    for change in what_if.split():
        command += ["--set", change]
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(requests):
        sys.exit(f"levels.py: {done.stderr.strip()}")
    return answers


def predict(foretile, jobs, requests, what_if):
    answers = answers_of(foretile, jobs, requests, what_if)
    for request, answer in zip(requests, answers):
        if not answer.get("feasible"):
            sys.exit(f"levels.py: {request}: {answer.get('error') or answer.get('reason')}")
    return answers


def predict_once(known, foretile, jobs, requests, what_if):
    """As predict, but answers that `known` has are not asked for again."""
    keys = [json.dumps([r, what_if]) for r in requests]
    missing = [r for r, key in zip(requests, keys) if key not in known]
    for request, answer in zip(missing, predict(foretile, jobs, missing, what_if) if missing else []):
        known[json.dumps([request, what_if])] = answer
    return [known[key] for key in keys]


def compulsory_bytes(answer):
    """Q, K and V once; None for workloads that read other tensors too."""
    p = answer["params"]
    if answer["workload"] not in ("flash2_fwd", "flash3_fwd"):
        return None
    rows = p["batch"] * (p["heads"] * p["seqlen_q"] + 2 * p["kv_heads"] * p["seqlen_kv"])
    return rows * p["head_dim"] * 2


def gap_pct(sampled, full, metric):
    return 100 * (sampled["metrics"][metric] / full["metrics"][metric] - 1) if full["metrics"][metric] else 0


class Row:
    def __init__(self, case, sampled, full):
        self.group, self.arch, self.kernel, self.what_if = case
        self.cycles_pct, self.reads_pct = gap_pct(sampled, full, CYCLES), gap_pct(sampled, full, READS)
        self.bounds = sampled["error_bound_pct"]
        once = compulsory_bytes(full)
        self.again = full["metrics"][READS] / once if once else None
        self.seconds = (sampled["wall_s"], full["wall_s"])

    def holds(self):
        return abs(self.cycles_pct) <= self.bounds["cycles"] and abs(self.reads_pct) <= self.bounds["hbm_bytes"]

    def text(self):
        again = f"{self.again:.2f}" if self.again else ""
        name = f"{self.kernel} {self.what_if.split()[-1] if self.what_if else ''}".replace("flash2_fwd ", "").replace("head_dim", "d").strip()
        return (
            f"| {self.group} | {self.arch} | {name} | {self.cycles_pct:+.2f} | {self.bounds['cycles']:.1f} | {again} "
            f"| {self.reads_pct:+.2f} | {self.bounds['hbm_bytes']:.1f} | {'yes' if self.holds() else 'NO'} |"
        )


def print_summary(rows):
    print("\n| cases | number | cycles: mean | largest | within 1 % | HBM reads: mean | largest | within 0.5 or 1.5 % | bounds hold |")
    print("|---|---|---|---|---|---|---|---|---|")
    for group in list(dict.fromkeys(r.group for r in rows)) + ["all"]:
        of = [r for r in rows if group in (r.group, "all")]
        cycles, reads = [abs(r.cycles_pct) for r in of], [abs(r.reads_pct) for r in of]
        near = sum(abs(r.reads_pct) <= (1.5 if r.again and r.again >= 1.1 else 0.5) for r in of)
        print(
            f"| {group} | {len(of)} | {sum(cycles) / len(of):.2f} | {max(cycles):.2f} | {sum(c <= 1 for c in cycles)} "
            f"| {sum(reads) / len(of):.2f} | {max(reads):.2f} | {near} | {sum(r.holds() for r in of)} |"
        )


def hbm_gap_pct(sampled, full):
    of_sampled, of_full = (a["metrics"][READS] + a["metrics"][WRITES] for a in (sampled, full))
    return 100 * (of_sampled / of_full - 1) if of_full else 0


def compare_at_random(foretile, jobs, count, seed, workload, stream):
    asked = questions.questions(seed, count, workload)
    if stream:
        asked = [{**q, "conditions": "stream"} for q in asked]
    pairs = [(q, a) for q, a in zip(asked, answers_of(foretile, jobs, asked)) if a.get("feasible") and a["metrics"][INSTS] <= MOST_INSTS]
    fulls = answers_of(foretile, jobs, [{**q, "detail": "full"} for q, _ in pairs])
    rows = []
    hbm_gaps = sorted(abs(hbm_gap_pct(sampled, full)) for (_, sampled), full in zip(pairs, fulls))
    for (q, sampled), full in zip(pairs, fulls):
        kernel = " ".join(f"{key}={str(value).lower()}" for key, value in q.items() if key not in ("arch", "workload"))
        rows.append(Row(("random", q["arch"], f"{q['workload']} {kernel}", ""), sampled, full))
    rows.sort(key=lambda row: -abs(row.cycles_pct))
    for row in rows[:WORST]:
        print(row.text())
    gaps = sorted(abs(row.cycles_pct) for row in rows)
    print(f"\nOf {count} questions {len(rows)} are possible and small. Cycles: {statistics.mean(gaps):.1f} % in the mean, "
          f"{statistics.median(gaps):.1f} in the median, one in twenty above {gaps[len(gaps) * 19 // 20]:.0f}; "
          f"beyond their bound {sum(abs(row.cycles_pct) > row.bounds['cycles'] for row in rows)}.")
    print(f"HBM bytes: {statistics.mean(hbm_gaps):.1f} % in the mean, {statistics.median(hbm_gaps):.1f} in the median, "
          f"{hbm_gaps[-1]:.0f} at most.")
    print("\n| workload | compared | cycles: mean | mean, signed | beyond the bound |\n|---|---|---|---|---|")
    for name in sorted({row.kernel.split()[0] for row in rows}):
        of = [row for row in rows if row.kernel.split()[0] == name]
        print(f"| {name} | {len(of)} | {statistics.mean(abs(row.cycles_pct) for row in of):.1f} | {statistics.mean(row.cycles_pct for row in of):+.1f} "
              f"| {sum(abs(row.cycles_pct) > row.bounds['cycles'] for row in of)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("foretile")
    parser.add_argument("--only", default="", help="cases that match this expression")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--full", help="keep answers of `full` in this file, and take them from there")
    parser.add_argument("--random", type=int, metavar="N", help="compare N questions at random")
    parser.add_argument("--seed", type=int, default=1, help="of those")
    parser.add_argument("--workload", help="of those, of one workload")
    parser.add_argument("--stream", action="store_true", help="of those, launches back to back in a stream")
    arguments = parser.parse_args()
    cases = [c for c in CASES if re.search(arguments.only, " ".join(c))]
    print("| | GPU | case | cycles: % off | bound | reads / compulsory | reads: % off | bound | hold |")
    print("|---|---|---|---|---|---|---|---|---|")
    if arguments.random:
        return compare_at_random(arguments.foretile, arguments.jobs, arguments.random, arguments.seed, arguments.workload,
                                 arguments.stream)
    rows, known = [], {}
    if arguments.full and os.path.exists(arguments.full):
        with open(arguments.full) as file:
            known = json.load(file)
    for what_if in dict.fromkeys(c[3] for c in cases):
        of = [c for c in cases if c[3] == what_if]
        tool = (arguments.foretile, arguments.jobs)
        sampled = predict(*tool, [request_of(c, "sampled") for c in of], what_if)
        full = predict_once(known, *tool, [request_of(c, "full") for c in of], what_if)
        for row in (Row(*three) for three in zip(of, sampled, full)):
            rows.append(row)
            print(row.text(), flush=True)
    if arguments.full:
        with open(arguments.full, "w") as file:
            json.dump(known, file)
    print_summary(rows)


if __name__ == "__main__":
    main()
