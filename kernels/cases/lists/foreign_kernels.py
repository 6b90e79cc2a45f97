"""Cases of kernels that this project did not write; docs of the columns: foreign/foreign_bench.py."""

FOREIGN_COLUMNS = "source,pass,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,num_warps,num_stages".split(",")
MORE_COLUMNS = ("window", "dropout_p", "mask", "mask_width", "lengths", "dtype", "transpose_b", "page_size", "page_layout", "splits",
                "layout")
BACKWARD = {"pass": "bwd"}


def foreign_case(source, shape, config=("", "", "", ""), **more):
    batch, heads, kv_heads, seqlen, head_dim, causal = shape
    block_m, block_n, num_warps, num_stages = config
    row = dict.fromkeys(MORE_COLUMNS)
    row.update({"source": source, "pass": "fwd", "batch": batch, "heads": heads, "kv_heads": kv_heads, "seqlen_q": seqlen,
                "seqlen_kv": seqlen, "head_dim": head_dim, "causal": causal,
                "block_m": block_m, "block_n": block_n, "num_warps": num_warps, "num_stages": num_stages})
    row.update(more)
    return row


def numbers(lengths):
    """"300x2:64" is 300, 300, 64."""
    for part in lengths.split(":"):
        value, _, times = part.partition("x")
        yield from [int(value)] * int(times or 1)


def of_lengths(source, lengths, heads, kv_heads, head_dim, causal, config=("", "", "", ""), **more):
    all_lengths = list(numbers(lengths))
    return foreign_case(source, (len(all_lengths), heads, kv_heads, max(all_lengths), head_dim, causal), config, lengths=lengths, **more)


def foreign_product(batch, m, n, k, **more):
    return foreign_case("cublas", (batch, 1, 1, m, k, 0), seqlen_kv=n, **more)


def foreign_paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits):
    return of_lengths("triton_paged", lengths, heads, kv_heads, head_dim, 0, (16, *config), seqlen_q=1, page_size=page_size,
                      page_layout=page_layout, splits=splits, layout="bshd")


def triton_product(sizes, config):
    batch, m, n, k = sizes
    block_m, block_n, block_k, num_warps, num_stages = config
    return foreign_case("triton_product", (batch, 1, 1, m, k, 0), (block_m, block_n, num_warps, num_stages), seqlen_kv=n, block_k=block_k)


def triton_softmax(num_rows, columns, num_warps):
    """A row stays in registers: a block is the next power of two of its columns."""
    block_n = 1 << (columns - 1).bit_length()
    return foreign_case("triton_softmax", (1, 1, 1, num_rows, 1, 0), ("", block_n, num_warps, ""), seqlen_kv=columns, block_k="")
