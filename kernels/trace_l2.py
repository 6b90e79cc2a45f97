#!/usr/bin/env python3
"""What LRU would miss of K and V, had every CTA of a trace (attention/cta_trace.cu) gone through its keys evenly between the start and the stop that were measured:

    trace_l2.py [measurements/cta_trace.csv]

Two sides of 29.375 MiB each. Half of every tile has its home on either; a read from the other side keeps a replica on its own. Q is read as a CTA begins and O written
as it ends, at home and through the same LRU. Which side an SM is on the trace does not say: here those of odd numbers are on one; the first half of them against the
second changes bytes by less than 1 %. No sets: full association. Causal cases are left out."""
import collections
import csv
import pathlib
import sys

SIDE_BYTES = 94 * 640 * 1024 // 2  # arch_models/h200.lua
ELEMENT_BYTES = 2
TRACE = pathlib.Path(__file__).parent / "measurements" / "cta_trace.csv"


class Side:
    """The least recently used go, as whole pieces."""

    def __init__(self):
        self.pieces, self.free_bytes = collections.OrderedDict(), SIDE_BYTES

    def hits(self, piece, size):
        if piece in self.pieces:
            self.pieces.move_to_end(piece)
            return True
        self.pieces[piece] = size
        self.free_bytes -= size
        while self.free_bytes < 0:
            self.free_bytes += self.pieces.popitem(last=False)[1]
        return False


def accesses(rows):
    """(time, side, tile, bytes, writes) of all CTAs of a case, in order of time."""
    found = []
    for row in rows:
        heads, keys, block_m, block_n, head_dim, cta = (int(row[k]) for k in ("heads", "seqlen", "block_m", "block_n", "head_dim", "cta"))
        head = cta % heads if row["tile_order"] == "head_first" else cta // (keys // block_m)
        start, stop, side, steps = float(row["start_ns"]), float(row["stop_ns"]), int(row["sm"]) % 2, keys // block_n
        found.append((start, side, ("q", cta), block_m * head_dim * ELEMENT_BYTES, False))
        for step in range(steps):
            time = start + (stop - start) * step / steps
            found += [(time, side, (tensor, head, step), block_n * head_dim * ELEMENT_BYTES, False) for tensor in "kv"]
        found.append((stop, side, ("o", cta), block_m * head_dim * ELEMENT_BYTES, True))
    return sorted(found, key=lambda access: access[0])


def bytes_missed(rows):
    sides, missed = (Side(), Side()), 0
    for _, side, tile, size, writes in accesses(rows):
        for home in range(2):
            if home != side and sides[side].hits(("replica", tile), size // 2):
                continue
            if not sides[home].hits((home, tile), size // 2) and not writes:
                missed += size // 2
    return missed


def main():
    cases = collections.defaultdict(list)
    with open(sys.argv[1] if len(sys.argv) > 1 else TRACE) as trace:
        for row in csv.DictReader(line for line in trace if not line.startswith("#")):
            if row["causal"] == "0":
                cases[tuple(row[k] for k in ("heads", "seqlen", "block_m", "block_n", "tile_order"))].append(row)
    print("heads,seqlen,block_m,block_n,tile_order,read_mb")
    for case, rows in cases.items():
        print(*case, f"{bytes_missed(rows) / 1e6:.1f}", sep=",")


if __name__ == "__main__":
    main()
