"""Case files: which there are, whether their rows can be used, and that every row of an own kernel has an instance."""
import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "attention"))
import gen_instances  # noqa: E402

OWN = ("workload", "batch", "heads", "kv_heads", "seqlen_q", "seqlen_kv", "head_dim", "causal", "block_m", "block_n", "num_warps", "num_stages", "schedule", "mma", "copy", "tile_order",
       "tile_reverse")
PRODUCT = ("workload", "batch", "m", "n", "k", "block_m", "block_n", "block_k", "num_warps", "num_stages", "mma", "copy", "tile_order", "splits")
FOREIGN = ("source", "pass", "batch", "heads", "kv_heads", "seqlen_q", "seqlen_kv", "head_dim", "causal")
SOURCES = ("triton", "triton_descriptors", "triton_backward", "triton_paged", "triton_product", "triton_softmax", "flex", "flex_decode", "sdpa_flash", "aten_flash", "sdpa_cudnn", "sdpa_efficient", "cublas", "eager_einsum", "eager_baddbmm")
TEXTS = ("workload", "schedule", "mma", "copy", "tile_order", "source", "pass", "part", "lengths", "parents", "mask", "page_layout", "layout", "dtype", "kv_dtype", "store", "dq")
REALS = ("dropout_p",)
AT_LEAST_ONE = ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_kv", "m", "n", "k")
PRODUCTS = ("matmul_tiled", "glu")
COLUMNS = {"attention": OWN, "product": PRODUCT, "foreign": FOREIGN}


class BadCases(Exception):
    """One line: file, line, what is wrong, what is allowed."""


def kind_of(path):
    """Whose program runs the cases: "foreign", "product" or "attention"."""
    header = header_of(path)
    return "foreign" if "source" in header else "product" if "block_k" in header else "attention"


def is_foreign(path):
    return kind_of(path) == "foreign"


def header_of(path):
    for line in open_text(path):
        if line.strip() and not line.startswith("#"):
            return line.strip().split(",")
    raise BadCases(f"{path}:1: no header row")


def open_text(path):
    try:
        return pathlib.Path(path).read_text().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCases(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}")


def check(path):
    """The number of cases. Raises BadCases."""
    header, kind = header_of(path), kind_of(path)
    for column in COLUMNS[kind]:
        if column not in header:
            raise BadCases(f"{path}:1: no column {column}; a file of cases has {','.join(COLUMNS[kind])}")
    count, seen_header = 0, False
    for number, line in enumerate(open_text(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not seen_header:
            seen_header = True
            continue
        cells = next(csv.reader([line]))
        if len(cells) != len(header):
            raise BadCases(f"{path}:{number}: {len(cells)} cells, the header has {len(header)}")
        check_row(f"{path}:{number}", dict(zip(header, cells)), kind)
        count += 1
    if count == 0:
        raise BadCases(f"{path}:1: no cases below the header")
    return count


def check_real(place, text):
    try:
        fits = 0 <= float(text) < 1
    except ValueError:
        fits = False
    if not fits:
        raise BadCases(f"{place}: allowed is a number from 0, below 1")


def check_row(place, row, kind):
    for column, text in row.items():
        if column in TEXTS or (text == "" and column not in AT_LEAST_ONE):
            continue
        if column in REALS:
            check_real(f"{place}: {column}={text}", text)
        elif not text.isdigit() or (column in AT_LEAST_ONE and int(text) < 1):
            raise BadCases(f"{place}: {column}={text}: allowed is a whole number{' from 1' if column in AT_LEAST_ONE else ''}")
    if kind == "foreign":
        if row["source"] not in SOURCES:
            raise BadCases(f"{place}: source={row['source']}: there are {', '.join(SOURCES)}")
        return
    if kind == "product":
        if row["workload"] not in PRODUCTS:
            raise BadCases(f"{place}: workload={row['workload']}: products are {', '.join(PRODUCTS)}")
        return
    if int(row["block_m"] or 0) < 1 or int(row["block_n"] or 0) < 1:
        raise BadCases(f"{place}: block_m={row['block_m']} block_n={row['block_n']}: allowed is a whole number from 1")
    if gen_instances.source(gen_instances.key_of(row)) is None:
        raise BadCases(f"{place}: no kernel for workload={row['workload']} mma={row['mma']}")
