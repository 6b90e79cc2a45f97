"""Rows of measurements of independent/: each program says what its cases are, what of them is right, and how long they take.

    PROGRAM list       a line of JSON a case: `case`, its number; `launches`, how many kernels it launches; all else names and values of parameters
    PROGRAM check      every kernel against a reference; exit status 1 where one is wrong
    PROGRAM profile    launches each case once, between cudaProfilerStart and cudaProfilerStop
    PROGRAM time       a line of JSON a case: `case`, `us`, the median of several runs after a fill of 256 MiB
"""
import json

NOT_A_PARAMETER = ("case", "launches", "note", "workload")


def lines_of(text):
    return [json.loads(line) for line in text.split("\n") if line.startswith("{")]


def text_of(value):
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def heads_of(family, cases):
    """What a row says of a case: all parameters that some case of the family names, in the order of the cases."""
    names = list(dict.fromkeys(name for case in cases for name in case if name not in NOT_A_PARAMETER))
    return [{"source": "independent", "family": family, "workload": case["workload"], **{name: text_of(case.get(name)) for name in names}, "status": "ok"} for case in cases]


def ncu_rows(family, cases, launches, facts):
    """A row a launch; `launches`: of the profiled run, in its order."""
    owners = [head for head, case in zip(heads_of(family, cases), cases) for _ in range(case["launches"])]
    if len(owners) != len(launches):
        raise ValueError(f"{len(launches)} launches profiled, {len(owners)} expected")
    return [{**owner, "condition": "ncu", "cache_control": "all", "clock_control": "none", "repeat": 0, "kernel": launch["Kernel Name"][:100],
             **{name: value for name, value in launch.items() if "__" in name}, **facts} for owner, launch in zip(owners, launches)]


def stream_rows(family, cases, times, facts):
    """A row a case; `times`: the lines of `time`."""
    median_us = {line["case"]: line["us"] for line in times}
    return [{**head, "launches": case["launches"], "time_median_us": f"{median_us[case['case']]:.3f}", "condition": "stream", "cache_control": "256 MiB fill before each", **facts}
            for head, case in zip(heads_of(family, cases), cases) if case["case"] in median_us]
