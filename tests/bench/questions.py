"""Questions at random: workloads of any shape on any GPU, with tiles that may or may not be possible."""

import random

GPUS = "a100_40 a100_80 h100_pcie h100_sxm h200 l40s rtx2080ti rtx3090 rtx4090 t4 v100".split()
PREFILL = ["flash1_fwd", "flash1_bwd", "flash2_fwd", "flash2_bwd", "flash3_fwd", "standard_attention"]
DECODE = ["flash_decode", "tree_decode", "paged_decode"]
PRODUCTS = ["matmul_tiled", "glu"]
SOFTMAXES = ["softmax_safe", "softmax_online"]


def product_shape(r):
    return {"m": r.choice([64, 100, 512, 1024, 3000]), "n": r.choice([64, 136, 512, 2048]), "k": r.choice([32, 512, 1000, 4096])}


def softmax_shape(r):
    return {"heads": r.choice([1, 4, 16]), "seqlen_q": r.choice([33, 512, 2048]), "seqlen_kv": r.choice([64, 1000, 4096])}


def attention_shape(r, decodes):
    heads = r.choice([1, 2, 6, 8, 16, 32])
    shape = {"batch": r.choice([1, 2, 5]), "heads": heads, "head_dim": r.choice([32, 64, 72, 96, 128, 192, 256]),
             "kv_heads": r.choice([k for k in (1, 2, 4, heads) if heads % k == 0])}
    if decodes:
        return {**shape, "seqlen_kv": r.choice([1, 17, 512, 1000, 4096])}
    square = r.choice([64, 100, 512, 1000, 2048])
    shape |= r.choice([{"seqlen": square}, {"seqlen_q": r.choice([1, 37, 200, 512]), "seqlen_kv": r.choice([64, 777, 2048])}])
    return {**shape, "causal": r.choice([False, False, True])}


def question(r, workload):
    if workload is None:
        workload = r.choice(PREFILL + ["flash2_fwd"] + DECODE + PRODUCTS + SOFTMAXES)
    asked = {"arch": r.choice(GPUS), "workload": workload}
    if workload in PRODUCTS:
        asked |= product_shape(r)
    elif workload in SOFTMAXES:
        return asked | softmax_shape(r)
    else:
        asked |= attention_shape(r, workload in DECODE or workload == "sparq_decode")
        if workload == "sparq_decode":
            del asked["kv_heads"]
            asked |= {"sparq_r": r.choice([16, 32]), "sparq_k": r.choice([64, 128, 256])}
        if workload == "tree_decode":
            del asked["kv_heads"]
            asked["tree"] = "medusa"
    choices = {"block_m": [16, 32, 64, 128, 256], "block_n": [8, 16, 32, 64, 128, 256], "num_warps": [1, 2, 4, 8, 12],
               "num_stages": [1, 2, 3, 4], "code": ["lean", "plain", "buffered"]}
    if workload == "sparq_decode":
        del choices["block_m"], choices["code"]
    return asked | {key: r.choice(values) for key, values in choices.items() if r.random() < 0.4}


def questions(seed, count, workload=None):
    """Of all workloads but sparq_decode, or of one."""
    r = random.Random(seed)
    return [question(r, workload) for _ in range(count)]
