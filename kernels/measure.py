#!/usr/bin/env python3
"""Builds, checks, times and profiles this folder's kernels and writes CSV with provenance.

    measure.py measure [CASES.csv ...]        what `foretile measure` runs: looks whether everything is there, builds what the cases need, then
                                              `attention`, `product` or `foreign` for each file (default: cases/smoke.csv)
    measure.py check [CASES.csv ...]          only reads the case files (default: all of cases/); no GPU, no nvcc
    measure.py build                          cmake and ninja into build/
    measure.py micro [NAME ...]               microbenchmarks -> OUT/micro_NAME.csv
    measure.py attention CASES.csv ...        own kernels     -> OUT/attention_CASES_{stream,ncu}.csv
    measure.py product CASES.csv ...          own products    -> OUT/product_CASES_{stream,ncu}.csv
    measure.py foreign CASES.csv ...          Triton, PyTorch, cuBLAS -> OUT/foreign_CASES_{stream,ncu}.csv
    measure.py opcodes CASES.csv ...          executed warp instructions by opcode -> OUT/opcodes_CASES.csv
    measure.py ports CASES.csv                how busy the ports of L2's slices are, and with what -> OUT/CASES_ncu.csv
    measure.py timeline CASES.csv ...         when PyTorch's kernels run, one call after another -> OUT/eager_timeline.csv
    measure.py tiles CASES.csv                in which order foreign kernels finish their output tiles -> OUT/CASES.csv
    measure.py trace [ctas] [products]        ctas: SM, start and end of each CTA of some cases -> OUT/cta_trace.csv; how far those of a wave drift -> OUT/cta_drift.csv, and those of many -> OUT/cta_spread.csv;
                                              the clocks of the GPCs meanwhile -> OUT/cta_clocks.csv;
                                              how those that share an SM get out of step -> OUT/cta_age.csv;
                                              products: where a CTA of a product is when -> OUT/trace_product_{stream,ncu}.csv
    measure.py sass                           disassembly of the microbenchmarks and some kernels -> OUT/sass/

OUT is measurements/ or what --out names; the build folder is build/ or what --build names.  --no-ncu, --no-stream and --repeat N (ncu only)
choose what is done.  Clocks are never set.  Exit status: 0 done, 1 a case failed, 2 something is missing or a case file cannot be used."""
import argparse
import csv
import functools
import os
import pathlib
import re
import subprocess
import sys
import time

import case_files
import cta_age
import tools
from tools import output_of, provenance, tool

csv.field_size_limit(1 << 30)  # instanced metrics are long
HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE / "build"
ROW_HEADER = "benchmark,variant,parameter,x,metric,value,unit\n"
TILES_KEPT = 160  # of each launch that `tiles` watches
MICRO = ("device", "launch", "sides", "chase", "dram_bandwidth", "dram_mixture", "loaded_latency", "latency_tail", "fabric", "l2_capacity", "alu", "shared_memory", "shared_mix", "shared_latency", "mma", "wgmma", "async_copy", "sm_clock",
         "pipes", "power_parts", "barriers", "barrier_defer", "issue_queues", "ldmatrix_queue", "instruction_cache", "instruction_fetch", "occupancy", "store_bandwidth", "store_burst", "store_credit", "store_requests", "store_spread", "store_turns", "local_memory", "drift", "gpc_drift", "coalescer_latency",
         "branch", "diverge", "pending_lines", "narrow_loads", "fill_rate", "l1_replacement", "operand_ports", "dispatch_beside", "wgmma_beside", "wgmma_beside_copy", "wgmma_beside_memory", "wgmma_issue", "special_queue", "loads_per_warp", "wgmma_turns", "wgmma_ping_pong", "scheduler", "cold_start", "cta_exit", "warp_order",
         "cluster_signal", "copy_beside", "copy_burst", "copy_pipe", "copy_release", "store_release", "stream_pairs", "tma_first", "tma_issue", "tma_pending", "tma_store", "mma_beside_shared", "mma_turns", "tile_merge", "gpc_clocks", "product_epilogue", "read_behind_stores", "fill_sides", "fabric_writes", "few_clocks", "grid_placement", "write_beside_read")
PROFILED_MICRO = ("l2_capacity", "l2_replacement", "l2_side_reuse", "coalescer", "coalescer_window", "dirty_residue", "dispatch_stall", "fill_granule", "gpc_drift", "kernel_overhead", "local_memory", "store_merge", "tile_merge", "tma_columns")
MICRO_METRICS = ("gpu__time_duration.sum,sm__cycles_elapsed.max,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum,"
                 "lts__t_sectors_srcunit_tex.sum,lts__t_sectors_srcunit_tex_lookup_hit.sum,lts__t_sectors_srcunit_tex_lookup_miss.sum,"
                 "lts__t_sectors_srcunit_ltcfabric.sum,lts__t_sectors_srcunit_ltcfabric_lookup_hit.sum,lts__t_sectors_srcunit_ltcfabric_lookup_miss.sum,"
                 "lts__t_requests_srcunit_tex.sum,lts__t_sector_hit_rate.pct,l1tex__m_xbar2l1tex_read_bytes.sum,l1tex__m_xbar2l1tex_read_sectors.sum,"
                 "lts__t_sectors_srcunit_tex.avg,dram__bytes_read.avg,lts__lts2xbar_bytes.sum,lts__xbar2lts_bytes.sum,"
                 "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum,"
                 "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum,l1tex__t_sectors_pipe_lsu_mem_local_op_st_lookup_hit.sum,l1tex__m_l1tex2xbar_write_bytes.sum,"
                 "lts__t_sectors_srcunit_tex_op_read.sum,lts__t_sectors_srcunit_tex_op_write.sum,lts__t_requests_srcunit_tex_op_write.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,"
                 "sm__cycles_elapsed.avg.per_second,lts__cycles_elapsed.avg.per_second,l1tex__cycles_elapsed.avg.per_second,dram__cycles_elapsed.avg.per_second").split(",")

STALLS = ("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard", "math_pipe_throttle", "mio_throttle", "no_instruction",
          "not_selected", "selected", "short_scoreboard", "wait")
STALL_METRICS = [*(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in STALLS), "smsp__issue_active.avg", "smsp__cycles_active.avg", "smsp__inst_executed.avg"]


def log(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def build(cases=()):
    """Every microbenchmark, and the kernel instances of the named case files, or of all own ones."""
    of_attention = [str(pathlib.Path(c).resolve()) for c in cases if case_files.kind_of(c) == "attention"]
    chosen = [f"-DFORETILE_KERNEL_CASES={';'.join(of_attention)}"] if of_attention else ["-UFORETILE_KERNEL_CASES"]
    target = ["--target", *dict.fromkeys(f"{case_files.kind_of(c)}_bench" for c in cases)] if cases else []
    subprocess.run(["cmake", "-S", str(HERE), "-B", str(BUILD), "-G", "Ninja", *chosen], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD), *target], check=True, stdout=sys.stderr)


@functools.cache
def listed_metrics():
    listed = set(re.findall(r"^(\w+__\w+)", output_of(tool("ncu"), "--query-metrics", "--chip", "gh100"), re.M))
    return listed | set(re.findall(r"^(\w+__\w+)", output_of(tool("ncu"), "--query-metrics", "--chip", "gh100", "--query-metrics-collection", "launch"), re.M))


def known_metrics(wanted):
    listed = listed_metrics()
    if not listed:
        return wanted
    known = [m for m in wanted if m.split(".")[0] in listed or m.startswith("launch__")]
    for m in wanted:
        if m not in known:
            log(f"ncu does not know {m}: left out")
    return known


def read_ncu(path, metrics):
    """Kernel name and the wanted metrics of each row of the raw page; the units row is dropped, values keep their text but for thousands
    commas."""
    with open(path) as file:
        lines = [line for line in file if line.startswith('"')]
    if not lines:
        return []
    rows = list(csv.reader(lines))
    header, kept = rows[0], {"Kernel Name", *metrics}
    return [{h: v.replace(",", "") if re.fullmatch(r"-?[\d,]+(\.\d+)?", v) else v for h, v in zip(header, row) if h in kept} for row in rows[2:]]


def profile(command, metrics, work, name, extra=()):
    """Runs the command under ncu; returns (the command's own CSV text, ncu's rows)."""
    work.mkdir(parents=True, exist_ok=True)
    log_file, program_file = work / f"{name}.ncu.csv", work / f"{name}.program.csv"
    with open(program_file, "w") as out:
        status = subprocess.run([tool("ncu"), "--clock-control", "none", "--cache-control", "all", "--csv", "--page", "raw", "--print-units", "base",
                                 "--metrics", ",".join(metrics), "--log-file", str(log_file), *extra, *command], stdout=out, cwd=HERE).returncode
    if status:
        log(f"{name}: ncu ended with status {status}")
        print("\n".join(log_file.read_text().split("\n")[-5:]) if log_file.exists() else "", file=sys.stderr)
    return program_file.read_text(), read_ncu(log_file, metrics) if log_file.exists() else []


def write_rows(path, rows, facts):
    if not rows:
        log(f"{path.name}: no rows")
        return
    columns = list(rows[0])
    with open(path, "w", newline="") as out:
        for key, value in facts.items():
            out.write(f"# {key}: {value}\n")
        writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore", restval="")
        writer.writeheader()
        writer.writerows(rows)
    log(f"{path}: {len(rows)} rows")


def micro(names, out, args):
    facts = provenance()
    for name in names or dict.fromkeys(MICRO + PROFILED_MICRO):
        if name in MICRO and not (names and args.no_stream):
            started = time.time()
            path = out / f"micro_{name}.csv"
            with open(path, "w") as file:
                for key, value in dict(facts, condition="stream", clocks="as found").items():
                    file.write(f"# {key}: {value}\n")
                file.write(ROW_HEADER)
                file.flush()
                try:
                    status = subprocess.run([str(BUILD / "bin" / f"micro_{name}")], stdout=file, timeout=240).returncode
                except subprocess.TimeoutExpired:
                    status = "timeout"
            log(f"micro_{name}: status {status}, {time.time() - started:.1f} s")
        if name in PROFILED_MICRO and not args.no_ncu:
            started = time.time()
            metrics = STALL_METRICS if name == "dispatch_stall" else MICRO_METRICS
            text, launches = profile([str(BUILD / "bin" / f"micro_{name}"), "--profile"], known_metrics(metrics), out / "raw", f"micro_{name}",
                                     ("--kernel-name", "regex:passes|sweep|dirty|mix"))
            rows = []
            for line, launch in zip(text.strip().split("\n"), launches):
                benchmark, variant, parameter, x, metric, value, unit = line.split(",")
                rows.append({"benchmark": benchmark, "variant": variant, "parameter": parameter, "x": x, metric: value,
                             **{k: v for k, v in launch.items() if "__" in k}})
            write_rows(out / f"micro_{name}_ncu.csv", rows, dict(facts, condition="ncu", cache_control="all", clock_control="none"))
            log(f"micro_{name} under ncu: {len(launches)} launches, {time.time() - started:.1f} s")


def read_result(text):
    return list(csv.DictReader(text.strip().split("\n")))


def stamped(case, facts, **more):
    return {**case, **more, **facts}


def command_of(kind):
    return [sys.executable, str(HERE / "foreign" / "foreign_bench.py")] if kind == "foreign" else [str(BUILD / "bin" / f"{kind}_bench")]


def cases_run(kind, path, out, args):
    """Gives the number of cases and of those that did not end with `ok`."""
    command = command_of(kind)
    facts, stem = provenance(), f"{kind}_{pathlib.Path(path).stem}"
    launches_of, num_cases, num_bad = None, case_files.check(path), 0
    if args.no_stream and kind == "foreign" and not args.no_ncu:
        log("foreign cases with several kernels need the stream run, which counts them: their rows would be shifted")
    if not args.no_stream:
        started = time.time()
        with open(out / f"{stem}.program.csv", "w") as file:
            status = subprocess.run([*command, path], stdout=file, cwd=HERE).returncode
        rows = read_result((out / f"{stem}.program.csv").read_text())
        (out / f"{stem}.program.csv").unlink()
        launches_of = [int(r.get("launches") or 1) if r["status"] == "ok" else 0 for r in rows]
        num_bad = num_cases - sum(r["status"] == "ok" for r in rows)
        write_rows(out / f"{stem}_stream.csv", [stamped(r, facts, condition="stream", cache_control="256 MiB fill before each") for r in rows], {})
        log(f"{stem} stream: status {status}, {sum(r['status'] == 'ok' for r in rows)} of {len(rows)} ok, {time.time() - started:.1f} s")
    if args.no_ncu:
        return num_cases, num_bad
    metrics = known_metrics([m for m in (HERE / "metrics.txt").read_text().split("\n") if m and not m.startswith("#")])
    joined = []
    for repeat in range(args.repeat):
        started = time.time()
        text, launches = profile([*command, "--profile", path], metrics, out / "raw", f"{stem}_{repeat}", ("--profile-from-start", "off"))
        rows, at = read_result(text), 0
        num_bad = max(num_bad, num_cases - sum(r["status"] == "ok" for r in rows))
        for index, row in enumerate(rows):
            if row["status"] != "ok":
                continue
            count = int(row.get("launches") or (launches_of and launches_of[index]) or 1)
            for launch in launches[at:at + count]:
                kept = {k: v for k, v in row.items() if not k.startswith(("time_", "o_error", "lse_error", "repeats", "sm_mhz", "nvml_mhz", "watts", "launches", "kernel_names"))}
                joined.append(stamped(kept, facts, condition="ncu", cache_control="all", clock_control="none", repeat=repeat, kernel=launch["Kernel Name"][:100],
                                      **{k: v for k, v in launch.items() if "__" in k}))
            at += count
        if at != len(launches):
            log(f"{stem}: {len(launches)} launches profiled, {at} expected; rows may be shifted")
            num_bad = max(num_bad, 1)
        log(f"{stem} ncu repeat {repeat}: {len(launches)} launches, {time.time() - started:.1f} s")
    write_rows(out / f"{stem}_ncu.csv", joined, {})
    return num_cases, num_bad


def opcodes(path, out):
    """A row a launch, opcodes as NAME=count separated by blanks. Foreign cases may launch several kernels; their rows carry the launch's number instead of the case."""
    kind = case_files.kind_of(path)
    foreign, command = kind == "foreign", command_of(kind)
    facts, stem, metric = provenance(), f"opcodes_{pathlib.Path(path).stem}", "sass__inst_executed_per_opcode"
    text, launches = profile([*command, "--profile", path], [metric], out / "raw", stem, ("--profile-from-start", "off", "--print-metric-instances", "details"))
    owners = [{"launch": i} for i in range(len(launches))]
    if not foreign:
        owners = [{k: case[k] for k in list(case)[:list(case).index("status")]} for case in read_result(text) if case["status"] == "ok" for _ in range(int(case["launches"]))]
    rows = []
    for owner, launch in zip(owners, launches):
        counts = re.findall(r"(\w[\w.]*): ([\d,]+)", launch.get(metric, ""))
        rows.append({**owner, "kernel": launch["Kernel Name"][:100], "opcodes": " ".join(f"{name}={count.replace(',', '')}" for name, count in counts)})
    write_rows(out / f"{stem}.csv", rows, dict(facts, condition="ncu", metric=metric))


PORT_METRICS = ("sm__cycles_elapsed.max", "lts__cycles_elapsed.sum", "lts__lts2xbar_cycles_active.sum", "lts__xbar2lts_cycles_active.sum",
                "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_requests_srcunit_tex_op_read.sum",
                "lts__t_requests_srcunit_tex_op_write.sum", "lts__t_sectors_srcunit_ltcfabric.sum", "l1tex__m_xbar2l1tex_read_sectors.sum")


def ports(path, out):
    """A row a launch of own kernels."""
    kind, stem = case_files.kind_of(path), pathlib.Path(path).stem
    text, launches = profile([*command_of(kind), "--profile", path], known_metrics(PORT_METRICS), out / "raw", stem, ("--profile-from-start", "off"))
    cases = [{k: case[k] for k in list(case)[:list(case).index("status")]} for case in read_result(text) if case["status"] == "ok" for _ in range(int(case["launches"]))]
    rows = [{**case, "kernel": launch["Kernel Name"][:100], **{k: v for k, v in launch.items() if "__" in k}} for case, launch in zip(cases, launches)]
    write_rows(out / f"{stem}_ncu.csv", rows, dict(provenance(), condition="ncu", cache_control="all", clock_control="none"))


def torch_facts():
    return dict(provenance(), torch=output_of(sys.executable, "-c", "import torch; print(torch.__version__)"), condition="stream", clocks="as found")


def timeline(paths, out):
    rows = []
    for path in paths:
        command = [sys.executable, str(HERE / "foreign" / "eager_timeline.py"), str(pathlib.Path(path).resolve())]
        rows += read_result(subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout)
    write_rows(out / "eager_timeline.csv", rows, torch_facts())


def tiles(path, out):
    facts = torch_facts()
    command = [sys.executable, str(HERE / "foreign" / "tile_order.py"), str(BUILD / "libtile_order.so"), path, str(TILES_KEPT)]
    rows = read_result(subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout)
    write_rows(out / pathlib.Path(path).name, rows, facts)


def sass(out):
    folder = out / "sass"
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((BUILD / "bin").glob("micro_*")):
        if path.is_file() and os.access(path, os.X_OK):
            (folder / f"{path.name}.sass").write_text(output_of(tool("cuobjdump"), "--dump-sass", str(path)))


def unusable(text):
    print(f"foretile: {text}", file=sys.stderr)
    return 2


def check(paths):
    for path in paths or sorted((HERE / "cases").glob("*.csv")):
        print(f"{path}: {case_files.check(path)} cases")
    return 0


def measure(paths, out, args):
    paths = paths or [str(HERE / "cases" / "smoke.csv")]
    for path in paths:
        case_files.check(path)
    own, foreign = ([p for p in paths if case_files.is_foreign(p) == wanted] for wanted in (False, True))
    missing = tools.what_is_missing(own, foreign, not args.no_ncu)
    if missing:
        return unusable(f"measure needs what this machine lacks: {'; '.join(missing)}")
    if own:
        try:
            build(own)
        except subprocess.CalledProcessError as error:
            print(f"foretile: building the kernels failed with status {error.returncode}; its messages are above", file=sys.stderr)
            return 1
    out.mkdir(parents=True, exist_ok=True)
    worst = 0
    for path in paths:
        num_cases, num_bad = cases_run(case_files.kind_of(path), str(pathlib.Path(path).resolve()), out, args)
        print(f"{path}: {num_cases} cases, {num_bad} failed, results in {out}")
        worst |= num_bad > 0
    return int(worst)


def trace_ctas(out):
    facts = dict(provenance(), condition="stream")
    for name, cache, head in (("cta_trace", "256 MiB fill before", ""), ("cta_drift", "as the variant says", ROW_HEADER), ("cta_spread", "256 MiB fill before", ROW_HEADER),
                              ("cta_clocks", "none", ROW_HEADER)):
        with open(out / f"{name}.csv", "w") as file:
            for key, value in dict(facts, cache_control=cache).items():
                file.write(f"# {key}: {value}\n")
            file.write(head)
            file.flush()
            subprocess.run([str(BUILD / "bin" / name)], stdout=file, check=True)
    rows = read_result(subprocess.run([str(BUILD / "bin" / "cta_trace"), "ages"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    write_rows(out / "cta_age.csv", cta_age.ages(rows), dict(facts, cache_control="256 MiB fill before", by="cta_age.py from a run of cta_trace ages"))


def trace_products(out):
    """Under ncu in one pass: the launch before would warm the caches of the next."""
    program = str(BUILD / "bin" / "product_trace")
    texts = {"stream": subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout,
             "ncu": profile([program, "--profile"], ["sm__cycles_elapsed.max"], out / "raw", "product_trace", ("--profile-from-start", "off"))[0]}
    for condition, cache in (("stream", "256 MiB fill before"), ("ncu", "all")):
        rows = read_result("".join(line for line in texts[condition].splitlines(True) if not line.startswith("==")))
        write_rows(out / f"trace_product_{condition}.csv", rows, dict(provenance(), condition=condition, cache_control=cache))


def trace(names, out):
    for name, run in (("ctas", trace_ctas), ("products", trace_products)):
        if not names or name in names:
            run(out)


def main():
    global BUILD
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "check", "build", "micro", "attention", "product", "foreign", "opcodes", "ports", "timeline", "tiles", "trace", "sass"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "measurements")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--no-ncu", action="store_true")
    parser.add_argument("--no-stream", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    out, BUILD = args.out.resolve(), args.build.resolve()
    try:
        if args.what == "check":
            return check(args.names)
        if args.what == "measure":
            return measure(args.names, out, args)
        out.mkdir(parents=True, exist_ok=True)
    except (case_files.BadCases, OSError) as error:
        return unusable(str(error))
    if args.what == "build":
        build(args.names)
    elif args.what == "micro":
        micro(args.names, out, args)
    elif args.what == "timeline":
        timeline(args.names, out)
    elif args.what == "trace":
        trace(args.names, out)
    elif args.what == "sass":
        sass(out)
    else:
        for path in args.names:
            if args.what == "opcodes":
                opcodes(str(pathlib.Path(path).resolve()), out)
            elif args.what == "ports":
                ports(str(pathlib.Path(path).resolve()), out)
            elif args.what == "tiles":
                tiles(str(pathlib.Path(path).resolve()), out)
            else:
                cases_run(args.what, str(pathlib.Path(path).resolve()), out, args)
    return 0


sys.exit(main())
