"""How a list of cases becomes a file of this folder, and which part of it is held out."""
import csv
import io
import pathlib
import sys

from lists.own_kernels import COLUMNS, fits

FOLDER = pathlib.Path(__file__).resolve().parents[1]


def every_other(index):
    """The same for files that came later: half of them."""
    return "held_out" if index % 2 == 1 else "calibration"


def every_third(index):
    """Which part of a new file is held out: settled before anything was measured (measurements/HELDOUT.md)."""
    return "held_out" if index % 3 == 2 else "calibration"


def as_in_their_files(index):
    """The one row of repeat_more that is held out in the file that it repeats a case of."""
    return "held_out" if index == 3 else "calibration"


def unseen(index):
    return "unseen"


def none_to_calibrate(index):
    return "held_out"


def anything(row):
    return True


def write(name, rows, columns=COLUMNS, keep=fits, part=None):
    """Writes the rows that `keep` lets through, each once; `part`: which part the n-th of them is of."""
    seen, unique = set(), []
    for row in rows:
        key = tuple(row[c] for c in columns)
        if key not in seen and keep(row):
            seen.add(key)
            unique.append(row)
    if part:
        columns = [*columns, "part"]
        unique = [dict(row, part=part(index)) for index, row in enumerate(unique)]
    path = FOLDER / name
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(unique)
    if "--check" not in sys.argv:
        path.write_text(text.getvalue())
        print(f"{path.name}: {len(unique)}")
    elif not path.exists() or path.read_text() != text.getvalue():
        sys.exit(f"{path.name}: not what make_cases.py writes; run it again")
