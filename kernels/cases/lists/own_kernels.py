"""Cases of this project's attention kernels: a row of each kernel from what it can be asked for, and whether it fits on the GPU."""

COLUMNS = ("workload,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,num_warps,num_stages,"
           "schedule,mma,copy,tile_order,tile_reverse,splits,persistent").split(",")
WINDOW_COLUMNS = [*COLUMNS, "window", "dropout_p"]
PAGED_COLUMNS = [*COLUMNS, "lengths", "page_size", "page_layout", "layout"]
TREE_COLUMNS = [*COLUMNS, "parents"]
QUANTIZED_COLUMNS = [*COLUMNS, "kv_dtype", "kv_group_size"]
VALUE_COLUMNS = [*COLUMNS, "head_dim_v", "part"]
FORM_COLUMNS = [*COLUMNS, "max_registers"]
BACKWARD_COLUMNS = [*COLUMNS, "dq", "part"]
COMPILED_COLUMNS = [*WINDOW_COLUMNS, *PAGED_COLUMNS[len(COLUMNS):], "parents", *QUANTIZED_COLUMNS[len(COLUMNS):], "head_dim_v", "dq", "max_registers"]
SET_COLUMNS = [*WINDOW_COLUMNS, *PAGED_COLUMNS[len(COLUMNS):], "parents"]
SHARED_LIMIT = 227 * 1024


def case(shape, config, **more):
    batch, heads, kv_heads, seqlen, head_dim, causal = shape
    block_m, block_n, warps, stages, schedule = config
    row = dict(workload="flash2_fwd", batch=batch, heads=heads, kv_heads=kv_heads, seqlen_q=seqlen, seqlen_kv=seqlen, head_dim=head_dim,
               causal=causal,
               block_m=block_m, block_n=block_n, num_warps=warps, num_stages=stages, schedule=schedule, mma="mma", copy="cp_async",
               tile_order="m_first", tile_reverse=0, splits=1, persistent=0, window=0, dropout_p=0,
               lengths="", parents="", page_size="", page_layout="", layout="", kv_dtype="", kv_group_size="", head_dim_v="", dq="", max_registers="")
    row.update(more)
    return row


def fits(row):
    if row["workload"] in ("standard_attention", "flash_decode") or row["workload"].startswith("softmax"):
        return True
    return fits_shared_memory(row) and row["seqlen_q"] % row["block_m"] == 0 and row["seqlen_kv"] % row["block_n"] == 0


def fits_shared_memory(row):
    head_dim, head_dim_v = row["head_dim"], row["head_dim_v"] or row["head_dim"]
    is_single = row["workload"] != "flash3_fwd" and row["schedule"] == "stages" and row["num_stages"] == 1
    buffers = row["block_n"] * (max(head_dim, head_dim_v) if is_single else row["num_stages"] * (head_dim + head_dim_v))
    outputs = row["block_m"] * head_dim_v if row["workload"] == "flash3_fwd" and head_dim_v > head_dim else 0
    return (row["block_m"] * head_dim + buffers + outputs) * 2 <= SHARED_LIMIT - 1024


# batch, heads, kv_heads, seqlen, head_dim, causal
SHORT_64 = (16, 32, 32, 1024, 64, 0)
MID_128 = (4, 16, 16, 4096, 128, 0)
GQA_128 = (2, 32, 8, 4096, 128, 1)
MID_64 = (4, 32, 32, 4096, 64, 1)
MID_256 = (4, 8, 8, 4096, 256, 0)
CORE = [(128, 64, 4, 2, "stages"), (128, 64, 8, 2, "stages"), (64, 64, 4, 2, "stages"), (128, 128, 8, 1, "interleaved")]


def wgmma(shape, config, copy):
    return case(shape, config, mma="wgmma", copy=copy)


def pingpong(shape, config, **more):
    return case(shape, (*config, "pingpong"), workload="flash3_fwd", mma="wgmma", copy="tma", **more)


def unfused(shape, block_m, block_n, warps, kind):
    return case(shape, (block_m, block_n, warps, 2, kind), workload="standard_attention")


def decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits):
    return case((batch, heads, kv_heads, seqlen, head_dim, 0), (16, block_n, 4, stages, "stages"), workload="flash_decode", seqlen_q=1,
                splits=splits)


def softmax_case(kind, num_rows, columns, block_m, num_warps, held=0):
    """num_rows of `columns`; a row has num_warps / block_m warps; held: columns of a row that stay in registers."""
    return case((1, 1, 1, num_rows, "", 0), (block_m, held or 256 * num_warps // block_m, num_warps, 1, "registers" if held else "reread"),
                workload="softmax_" + kind,
                seqlen_kv=columns, mma="none", copy="ldg")


REQUESTS = "37:1290:412:2005:188:733:96:1544:301:64:878:1170:523:240:1821:660"


def paged_case(shape, lengths, config, page_size, page_layout, splits, layout="bshd"):
    block_n, stages = config
    return case((*shape, 0), (16, block_n, 4, stages, "stages"), workload="paged_decode", seqlen_q=1, splits=splits, lengths=lengths,
                page_size=page_size, page_layout=page_layout, layout=layout)


def tree_case(shape, branches, config, splits):
    """A tree in which token i has `branches` followers, as far as there are tokens; shape names their number."""
    batch, heads, kv_heads, tokens, seqlen, head_dim = shape
    parents = [i // branches for i in range(tokens - 1)]
    counts = [f"{parent}x{parents.count(parent)}" for parent in dict.fromkeys(parents)]
    return case((batch, heads, kv_heads, seqlen, head_dim, 0), (*config[:3], config[3], "stages"), workload="tree_decode", seqlen_q=tokens,
                splits=splits, parents=":".join(counts))


def flash1_case(shape, config):
    return case(shape, (16, *config, "stages"), workload="flash1_fwd")


def quantized_case(shape, kv_dtype, group, config, splits):
    return dict(decode(*shape, *config, splits), kv_dtype=kv_dtype, kv_group_size=group)


def backward_case(shape, config, dq):
    return case(shape, (*config, "stages"), workload="flash2_bwd", dq=dq)
