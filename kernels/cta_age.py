"""How CTAs that share an SM get out of step: of each wave of a trace (attention/cta_trace.cu), how long after the CTA in the SM's first place those in the other places
start, and by how much longer they take.  A wave has one CTA of each place; means over the SMs that have one in every place."""
import collections
import statistics


def case_of(row):
    tile = f"{row['block_m']}x{row['block_n']}w{row['num_warps']}s{row['num_stages']}d{row['head_dim']}"
    return f"{tile}_{row['schedule']}_{row['heads']}_heads_{row['seqlen']}_keys"


def waves_of(rows):
    """Of each SM, and each wave on it, the CTAs by place."""
    ctas = collections.defaultdict(list)
    for row in rows:
        ctas[int(row["sm"]), int(row["slot"])].append({key: int(row[key]) for key in ("start_ns", "stop_ns", "cycles")})
    num_slots = 1 + max(slot for _, slot in ctas)
    for sm in sorted({sm for sm, _ in ctas}):
        places = [sorted(ctas[sm, slot], key=lambda cta: cta["start_ns"]) for slot in range(num_slots)]
        yield from enumerate(zip(*places))


def ages(trace):
    """Rows of a trace -> rows of a benchmark."""
    by_case, out = collections.defaultdict(list), []
    for row in trace:
        by_case[case_of(row)].append(row)
    for case, rows in by_case.items():
        found = collections.defaultdict(list)
        for wave, (first, *others) in waves_of(rows):
            for slot, cta in enumerate(others, 1):
                after = (cta["start_ns"] - first["start_ns"]) / (first["stop_ns"] - first["start_ns"])
                found[slot, wave].append((100 * after, 100 * (cta["cycles"] / first["cycles"] - 1)))
        for (slot, wave), pairs in sorted(found.items()):
            means = [statistics.mean(values) for values in zip(*pairs)]
            for metric, value, unit in (("sms", len(pairs), "SMs"), ("starts_after", means[0], "% of the first's time"), ("longer", means[1], "%")):
                out.append({"benchmark": "cta_age", "variant": f"{case}_slot_{slot}", "parameter": "wave", "x": wave, "metric": metric, "value": f"{value:.6g}", "unit": unit})
    return out
