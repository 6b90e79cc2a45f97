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
    measure.py independent FAMILY ...       independent/FAMILY -> OUT/independent_FAMILY_{stream,ncu}.csv
    measure.py opcodes CASES.csv ...          executed warp instructions by opcode -> OUT/opcodes_CASES.csv
    measure.py ports CASES.csv                how busy the ports of L2's slices are, and with what -> OUT/CASES_ncu.csv
    measure.py timeline CASES.csv ...         when PyTorch's kernels run, one call after another -> OUT/eager_timeline.csv
    measure.py tiles CASES.csv                in which order foreign kernels finish their output tiles -> OUT/CASES.csv
    measure.py trace [ctas] [products]        ctas: SM, start and end of each CTA of some cases -> OUT/cta_trace.csv; how far those of a wave drift -> OUT/cta_drift.csv, and those of many -> OUT/cta_spread.csv, cta_spread_wgmma.csv;
                                              the clocks of the GPCs meanwhile -> OUT/cta_clocks.csv;
                                              how those that share an SM get out of step -> OUT/cta_age.csv;
                                              products: where a CTA of a product is when -> OUT/trace_product_{stream,ncu}.csv
    measure.py sass                           disassembly of the microbenchmarks and some kernels -> OUT/sass/

OUT is measurements/ or what --out names; the build folder is build/ or what --build names.  --no-ncu, --no-stream and --repeat N (ncu only)
choose what is done.  Clocks are never set.  A file of results is replaced when its whole run ended well, else an earlier run's stays; what the programs
wrote is in OUT/raw or beside it as .partial.  Exit status: 0 done, 1 a case, a program or a profile failed (the others are done all the same), 2 something
is missing or a case file cannot be used."""
import argparse
import contextlib
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
import independent_rows
import tools
from tools import output_of, provenance, tool

csv.field_size_limit(1 << 30)  # instanced metrics are long
HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE / "build"
ROW_HEADER = "benchmark,variant,parameter,x,metric,value,unit\n"
TILES_KEPT = 160  # of each launch that `tiles` watches
MICRO_SECONDS = 240
RAN = ("ok", "unchecked")  # of a case's program; `unchecked`: nothing says whether what it computed is right
MICRO = ("device", "launch", "sides", "chase", "dram_bandwidth", "dram_mixture", "loaded_latency", "latency_tail", "fabric", "l2_capacity", "alu", "shared_memory", "shared_mix", "shared_latency", "mma", "wgmma", "async_copy", "sm_clock", "clock_onset",
         "pipes", "power_parts", "barriers", "barrier_defer", "issue_queues", "ldmatrix_queue", "instruction_cache", "instruction_fetch", "occupancy", "red_patterns", "store_bandwidth", "store_burst", "store_credit", "store_requests", "store_spread", "store_turns", "local_memory", "drift", "gpc_drift", "coalescer_latency",
         "branch", "diverge", "pending_lines", "narrow_loads", "fill_rate", "l1_allocation", "l1_replacement", "operand_ports", "dispatch_beside", "wgmma_beside", "wgmma_beside_copy", "wgmma_beside_memory", "wgmma_issue", "special_queue", "loads_per_warp", "wgmma_turns", "wgmma_ping_pong", "wgmma_settle", "scheduler", "cold_start", "cta_exit", "warp_order",
         "cluster_signal", "copy_beside", "copy_burst", "copy_pipe", "copy_release", "store_release", "stream_pairs", "suspended_wait", "tma_first", "tma_issue", "tma_pending", "tma_store", "mma_beside_shared", "mma_turns", "tile_merge", "gpc_clocks", "product_epilogue", "read_behind_stores", "fill_sides", "fabric_writes", "few_clocks", "grid_placement", "write_beside_read")
PROFILED_MICRO = ("clock_onset", "l2_capacity", "l2_replacement", "l2_side_reuse", "coalescer", "coalescer_window", "dirty_residue", "dispatch_stall", "fill_granule", "gpc_drift", "half_lines", "kernel_overhead", "l1_passes", "local_memory", "store_merge", "tile_merge", "tma_columns")
MICRO_KERNELS = "passes|sweep|dirty|mix|steps"  # parts of the names of those that are profiled
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


def unusable(text):
    print(f"foretile: {text}", file=sys.stderr)
    return 2


class RunFailed(Exception):
    """One line: what failed. Its file of results stays as it was."""


def log(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def build(cases=()):
    """Every microbenchmark, and the kernel instances of the named case files, or of all own ones."""
    of_attention = [str(pathlib.Path(c).resolve()) for c in cases if case_files.kind_of(c) == "attention"]
    chosen = [f"-DFORETILE_KERNEL_CASES={';'.join(of_attention)}"] if of_attention else ["-UFORETILE_KERNEL_CASES"]
    target = ["--target", *dict.fromkeys(f"{case_files.kind_of(c)}_bench" for c in cases)] if cases else []
    try:
        subprocess.run(["cmake", "-S", str(HERE), "-B", str(BUILD), "-G", "Ninja", *chosen], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", str(BUILD), *target], check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"foretile: building the kernels failed with status {error.returncode}; its messages are above", file=sys.stderr)
        return 1
    return 0


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
    """Runs the command under ncu; gives (the command's own CSV text, ncu's rows)."""
    work.mkdir(parents=True, exist_ok=True)
    log_file, program_file = work / f"{name}.ncu.csv", work / f"{name}.program.csv"
    log_file.unlink(missing_ok=True)
    with open(program_file, "w") as out:
        status = subprocess.run([tool("ncu"), "--clock-control", "none", "--cache-control", "all", "--csv", "--page", "raw", "--print-units", "base",
                                 "--metrics", ",".join(metrics), "--log-file", str(log_file), *extra, *command], stdout=out, cwd=HERE).returncode
    if status or not log_file.exists():
        print("\n".join(log_file.read_text().split("\n")[-5:]) if log_file.exists() else "", file=sys.stderr)
        raise RunFailed(f"{name}: ncu ended with status {status}")
    return program_file.read_text(), read_ncu(log_file, metrics)


def paired(name, rows, launches):
    """Rows of a program and the launches that are theirs: nothing but their order tells."""
    if len(rows) != len(launches):
        raise RunFailed(f"{name}: {len(launches)} launches profiled, {len(rows)} expected")
    return zip(rows, launches)


def output_to(path, command):
    """What the command wrote on standard output, which `path` keeps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        status = subprocess.run(command, stdout=file, cwd=HERE).returncode
    return status, path.read_text()


def output_of_run(name, out, command):
    status, text = output_to(out / "raw" / f"{name}.program.csv", command)
    if status:
        raise RunFailed(f"{name}: ended with status {status}")
    return text


def worst_of(runs):
    """Does all of them, and gives the worst of their exit statuses."""
    worst = 0
    for run in runs:
        try:
            worst = max(worst, run() or 0)
        except RunFailed as error:
            log(str(error))
            worst = max(worst, 1)
        except (case_files.BadCases, OSError) as error:
            worst = max(worst, unusable(str(error)))
    return worst


@contextlib.contextmanager
def replacing(path):
    """A file to write that takes the place of `path` when all of it is there."""
    partial = path.with_name(f"{path.name}.partial")
    with open(partial, "w", newline="") as file:
        yield file
    os.replace(partial, path)


def write_facts(file, facts):
    for key, value in facts.items():
        file.write(f"# {key}: {value}\n")


def write_rows(path, rows, facts):
    if not rows:
        raise RunFailed(f"{path.name}: no rows")
    columns = list(rows[0])
    with replacing(path) as out:
        write_facts(out, facts)
        writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore", restval="")
        writer.writeheader()
        writer.writerows(rows)
    log(f"{path}: {len(rows)} rows")


def write_output(path, command, facts, head, seconds=None):
    """The command writes the rows itself."""
    started = time.time()
    with replacing(path) as file:
        write_facts(file, facts)
        file.write(head)
        file.flush()
        size = os.fstat(file.fileno()).st_size
        try:
            status = subprocess.run(command, stdout=file, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{path.stem}: not done after {seconds} s")
        if status:
            raise RunFailed(f"{path.stem}: ended with status {status}")
        if os.fstat(file.fileno()).st_size == size:
            raise RunFailed(f"{path.stem}: no rows")
    log(f"{path.stem}: {time.time() - started:.1f} s")


def micro_stream(name, out, facts):
    write_output(out / f"micro_{name}.csv", [str(BUILD / "bin" / f"micro_{name}")], dict(facts, condition="stream", clocks="as found"), ROW_HEADER, MICRO_SECONDS)


def micro_ncu(name, out, facts):
    started = time.time()
    metrics = STALL_METRICS if name == "dispatch_stall" else MICRO_METRICS
    text, launches = profile([str(BUILD / "bin" / f"micro_{name}"), "--profile"], known_metrics(metrics), out / "raw", f"micro_{name}",
                             ("--kernel-name", f"regex:{MICRO_KERNELS}"))
    rows = []
    for line, launch in paired(f"micro_{name}", text.splitlines(), launches):
        benchmark, variant, parameter, x, metric, value, unit = line.split(",")
        rows.append({"benchmark": benchmark, "variant": variant, "parameter": parameter, "x": x, metric: value,
                     **{k: v for k, v in launch.items() if "__" in k}})
    write_rows(out / f"micro_{name}_ncu.csv", rows, dict(facts, condition="ncu", cache_control="all", clock_control="none"))
    log(f"micro_{name} under ncu: {len(launches)} launches, {time.time() - started:.1f} s")


def micro(names, out, args):
    for name in names:
        if name not in MICRO + PROFILED_MICRO:
            return unusable(f"there is no microbenchmark {name}")
    facts, runs = provenance(), []
    for name in names or dict.fromkeys(MICRO + PROFILED_MICRO):
        if name in MICRO and not (names and args.no_stream):
            runs.append(functools.partial(micro_stream, name, out, facts))
        if name in PROFILED_MICRO and not args.no_ncu:
            runs.append(functools.partial(micro_ncu, name, out, facts))
    return worst_of(runs)


def read_result(text):
    return list(csv.DictReader(text.strip().split("\n")))


def stamped(case, facts, **more):
    return {**case, **more, **facts}


def command_of(kind):
    return [sys.executable, str(HERE / "foreign" / "foreign_bench.py")] if kind == "foreign" else [str(BUILD / "bin" / f"{kind}_bench")]


def num_with(rows, statuses):
    return sum(row["status"] in statuses for row in rows)


def stream_rows(command, path, stem, out, facts):
    """Runs the cases of a file and writes a row for each; gives the program's rows."""
    started, num_cases = time.time(), case_files.check(path)
    status, text = output_to(out / "raw" / f"{stem}_stream.program.csv", [*command, path])
    rows = read_result(text)
    num_ok = num_with(rows, ("ok",))
    log(f"{stem} stream: status {status}, {num_ok} of {len(rows)} ok, {time.time() - started:.1f} s")
    if len(rows) != num_cases or any(None in row.values() for row in rows):  # the last one may lack its end
        raise RunFailed(f"{stem} stream: ended with status {status} in row {len(rows)} of {num_cases}")
    if status and num_ok == num_cases:
        raise RunFailed(f"{stem} stream: ended with status {status}, though every case is ok")
    write_rows(out / f"{stem}_stream.csv", [stamped(r, facts, condition="stream", cache_control="256 MiB fill before each") for r in rows], {})
    return rows


STREAM_ONLY = ("time_", "o_error", "lse_error", "repeats", "sm_mhz", "nvml_mhz", "watts", "launches", "kernel_names")


def launches_of(row, timed):
    """How many launches are a row's of a profiled run; `timed`: the case's row of the stream run, or {}."""
    return int(row.get("launches") or timed.get("launches") or 1) if row["status"] in RAN else 0


def ncu_rows(rows, timed_rows, launches, stem, facts, repeat):
    """A row for each launch of one profiled run. That checks nothing: what the stream run found of a case holds."""
    owners = []
    for row, timed in zip(rows, timed_rows or [{}] * len(rows), strict=True):
        kept = {k: v for k, v in row.items() if not k.startswith(STREAM_ONLY)}
        if row["status"] == "ok" and timed:
            kept["status"] = timed["status"]
        owners += [kept] * launches_of(row, timed)
    return [stamped(owner, facts, condition="ncu", cache_control="all", clock_control="none", repeat=repeat, kernel=launch["Kernel Name"][:100],
                    **{k: v for k, v in launch.items() if "__" in k}) for owner, launch in paired(stem, owners, launches)]


def profile_cases(command, path, stem, timed_rows, out, facts, repeats):
    """Profiles the cases of a file and writes a row for each launch; gives the program's rows of each repeat."""
    num_cases, joined, found = case_files.check(path), [], []
    metrics = metrics_of_cases()
    for repeat in range(repeats):
        started = time.time()
        text, launches = profile([*command, "--profile", path], metrics, out / "raw", f"{stem}_{repeat}", ("--profile-from-start", "off"))
        found.append(read_result(text))
        if len(found[-1]) != num_cases:
            raise RunFailed(f"{stem}: {len(found[-1])} of {num_cases} cases profiled")
        joined += ncu_rows(found[-1], timed_rows, launches, stem, facts, repeat)
        log(f"{stem} ncu repeat {repeat}: {len(launches)} launches, {time.time() - started:.1f} s")
    write_rows(out / f"{stem}_ncu.csv", joined, {})
    return found


def cases_run(kind, path, out, args):
    """Gives the number of cases, of those that failed (at least 1 if a run as a whole did), and of those that nothing checked."""
    command, facts, stem, num_cases, found = command_of(kind), provenance(), f"{kind}_{pathlib.Path(path).stem}", case_files.check(path), []

    def stream():
        found.append(stream_rows(command, path, stem, out, facts))

    def ncu():
        found.extend(profile_cases(command, path, stem, found[0] if found else [], out, facts, args.repeat))

    if args.no_stream and kind == "foreign" and not args.no_ncu:
        log("foreign cases with several kernels need the stream run, which counts them")
    has_failed = worst_of(run for run, is_left_out in ((stream, args.no_stream), (ncu, args.no_ncu)) if not is_left_out)
    num_bad = max([int(has_failed > 0), *(num_cases - num_with(rows, RAN) for rows in found)])
    return num_cases, num_bad, max([0, *(num_with(rows, ("unchecked",)) for rows in found)])


def cases_status(kind, path, out, args):
    """As cases_run, told in a line; gives the exit status."""
    num_cases, num_bad, num_unchecked = cases_run(kind, str(pathlib.Path(path).resolve()), out, args)
    unchecked = f"{num_unchecked} unchecked, " if num_unchecked else ""
    print(f"{path}: {num_cases} cases, {num_bad} failed, {unchecked}results in {out}")
    return int(num_bad > 0)


def metrics_of_cases():
    return known_metrics([m for m in (HERE / "metrics.txt").read_text().split("\n") if m and not m.startswith("#")])


def independent_stream(command, family, cases, out):
    times = independent_rows.lines_of(output_of_run(f"independent_{family}_time", out, [*command, "time"]))
    if len(times) != len(cases):
        raise RunFailed(f"independent_{family}: {len(times)} of {len(cases)} cases timed")
    write_rows(out / f"independent_{family}_stream.csv", independent_rows.stream_rows(family, cases, times, provenance()), {})


def independent_ncu(command, family, cases, out):
    stem = f"independent_{family}"
    launches = profile([*command, "profile"], metrics_of_cases(), out / "raw", stem, ("--profile-from-start", "off"))[1]
    try:
        rows = independent_rows.ncu_rows(family, cases, launches, provenance())
    except ValueError as error:
        raise RunFailed(f"{stem}: {error}") from None
    write_rows(out / f"{stem}_ncu.csv", rows, {})


def independent(family, out, args):
    """All kernels of a family against their references first: of one that is wrong nothing is written."""
    script = HERE / "independent" / family / "bench.py"
    command = [sys.executable, str(script)] if script.exists() else [str(BUILD / "bin" / f"independent_{family}")]
    cases = independent_rows.lines_of(output_of_run(f"independent_{family}_list", out, [*command, "list"]))
    output_of_run(f"independent_{family}_check", out, [*command, "check"])
    runs = ((independent_stream, args.no_stream), (independent_ncu, args.no_ncu))
    return worst_of(functools.partial(run, command, family, cases, out) for run, is_left_out in runs if not is_left_out)


def some_failed(stem, rows):
    """The exit status of a run of cases."""
    num_bad = len(rows) - num_with(rows, RAN)
    if num_bad:
        log(f"{stem}: {num_bad} of {len(rows)} cases failed")
    return int(num_bad > 0)


def owners_of(rows):
    """The case of each launch of own kernels."""
    return [{k: case[k] for k in list(case)[:list(case).index("status")]} for case in rows if case["status"] in RAN for _ in range(int(case["launches"]))]


def opcodes(path, out):
    """A row a launch, opcodes as NAME=count separated by blanks. Foreign cases may launch several kernels; their rows carry the launch's number instead of the case."""
    kind = case_files.kind_of(path)
    facts, stem, metric = provenance(), f"opcodes_{pathlib.Path(path).stem}", "sass__inst_executed_per_opcode"
    text, launches = profile([*command_of(kind), "--profile", path], [metric], out / "raw", stem, ("--profile-from-start", "off", "--print-metric-instances", "details"))
    cases, rows = read_result(text), []
    owners = [{"launch": i} for i in range(len(launches))] if kind == "foreign" else owners_of(cases)
    for owner, launch in paired(stem, owners, launches):
        counts = re.findall(r"(\w[\w.]*): ([\d,]+)", launch.get(metric, ""))
        rows.append({**owner, "kernel": launch["Kernel Name"][:100], "opcodes": " ".join(f"{name}={count.replace(',', '')}" for name, count in counts)})
    write_rows(out / f"{stem}.csv", rows, dict(facts, condition="ncu", metric=metric))
    return some_failed(stem, cases)


PORT_METRICS = ("sm__cycles_elapsed.max", "lts__cycles_elapsed.sum", "lts__lts2xbar_cycles_active.sum", "lts__xbar2lts_cycles_active.sum",
                "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_requests_srcunit_tex_op_read.sum",
                "lts__t_requests_srcunit_tex_op_write.sum", "lts__t_sectors_srcunit_ltcfabric.sum", "l1tex__m_xbar2l1tex_read_sectors.sum")


def ports(path, out):
    """A row a launch of own kernels."""
    kind, stem = case_files.kind_of(path), pathlib.Path(path).stem
    text, launches = profile([*command_of(kind), "--profile", path], known_metrics(PORT_METRICS), out / "raw", stem, ("--profile-from-start", "off"))
    cases = read_result(text)
    rows = [{**owner, "kernel": launch["Kernel Name"][:100], **{k: v for k, v in launch.items() if "__" in k}} for owner, launch in paired(stem, owners_of(cases), launches)]
    write_rows(out / f"{stem}_ncu.csv", rows, dict(provenance(), condition="ncu", cache_control="all", clock_control="none"))
    return some_failed(stem, cases)


def torch_facts():
    return dict(provenance(), torch=output_of(sys.executable, "-c", "import torch; print(torch.__version__)"), condition="stream", clocks="as found")


def timeline(paths, out):
    rows = []
    for path in paths:
        path = pathlib.Path(path).resolve()
        rows += read_result(output_of_run(f"eager_timeline_{path.stem}", out, [sys.executable, str(HERE / "foreign" / "eager_timeline.py"), str(path)]))
    write_rows(out / "eager_timeline.csv", rows, torch_facts())


def tiles(path, out):
    command = [sys.executable, str(HERE / "foreign" / "tile_order.py"), str(BUILD / "libtile_order.so"), path, str(TILES_KEPT)]
    write_rows(out / pathlib.Path(path).name, read_result(output_of_run(pathlib.Path(path).stem, out, command)), torch_facts())


def sass_of(path, folder):
    text = output_of(tool("cuobjdump"), "--dump-sass", str(path))
    if not text:
        raise RunFailed(f"{path.name}: cuobjdump gave nothing")
    with replacing(folder / f"{path.name}.sass") as file:
        file.write(text)


def sass(out):
    folder = out / "sass"
    folder.mkdir(parents=True, exist_ok=True)
    return worst_of(functools.partial(sass_of, path, folder) for path in sorted((BUILD / "bin").glob("micro_*")) if path.is_file() and os.access(path, os.X_OK))


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
    if own and build(own):
        return 1
    out.mkdir(parents=True, exist_ok=True)
    return max(cases_status(case_files.kind_of(path), path, out, args) for path in paths)


def cta_ages(out, facts):
    rows = read_result(output_of_run("cta_age", out, [str(BUILD / "bin" / "cta_trace"), "ages"]))
    write_rows(out / "cta_age.csv", cta_age.ages(rows), dict(facts, cache_control="256 MiB fill before", by="cta_age.py from a run of cta_trace ages"))


def trace_ctas(out):
    facts = dict(provenance(), condition="stream")
    programs = (("cta_trace", "256 MiB fill before", ""), ("cta_drift", "as the variant says", ROW_HEADER), ("cta_spread", "256 MiB fill before", ROW_HEADER), ("cta_spread_wgmma", "256 MiB fill before", ROW_HEADER), ("cta_clocks", "none", ROW_HEADER))
    runs = [functools.partial(write_output, out / f"{name}.csv", [str(BUILD / "bin" / name)], dict(facts, cache_control=cache), head) for name, cache, head in programs]
    return worst_of([*runs, functools.partial(cta_ages, out, facts)])


def write_product_trace(condition, cache, text, out):
    rows = read_result("".join(line for line in text.splitlines(True) if not line.startswith("==")))
    write_rows(out / f"trace_product_{condition}.csv", rows, dict(provenance(), condition=condition, cache_control=cache))


def trace_product_stream(out):
    write_product_trace("stream", "256 MiB fill before", output_of_run("trace_product", out, [str(BUILD / "bin" / "product_trace")]), out)


def trace_product_ncu(out):
    """In one pass: the launch before would warm the caches of the next."""
    command = [str(BUILD / "bin" / "product_trace"), "--profile"]
    write_product_trace("ncu", "all", profile(command, ["sm__cycles_elapsed.max"], out / "raw", "product_trace", ("--profile-from-start", "off"))[0], out)


def trace_products(out):
    return worst_of(functools.partial(run, out) for run in (trace_product_stream, trace_product_ncu))


def trace(names, out):
    return worst_of(functools.partial(run, out) for name, run in (("ctas", trace_ctas), ("products", trace_products)) if not names or name in names)


def run_command(args, out):
    """Gives the exit status."""
    what, names = args.what, args.names
    if what == "check":
        return check(names)
    if what == "measure":
        return measure(names, out, args)
    out.mkdir(parents=True, exist_ok=True)
    if what == "build":
        return build(names)
    if what == "micro":
        return micro(names, out, args)
    if what == "timeline":
        return worst_of([functools.partial(timeline, names, out)])
    if what == "trace":
        return trace(names, out)
    if what == "sass":
        return sass(out)
    if what in ("attention", "product", "foreign"):
        return worst_of(functools.partial(cases_status, what, path, out, args) for path in names)
    if what == "independent":
        return worst_of(functools.partial(independent, family, out, args) for family in names)
    run = {"opcodes": opcodes, "ports": ports, "tiles": tiles}[what]
    return worst_of(functools.partial(run, str(pathlib.Path(path).resolve()), out) for path in names)


def main():
    global BUILD
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "check", "build", "micro", "attention", "product", "foreign", "independent", "opcodes", "ports", "timeline", "tiles", "trace", "sass"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "measurements")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--no-ncu", action="store_true")
    parser.add_argument("--no-stream", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    out, BUILD = args.out.resolve(), args.build.resolve()
    try:
        return run_command(args, out)
    except (case_files.BadCases, OSError) as error:
        return unusable(str(error))


if __name__ == "__main__":
    sys.exit(main())
