"""The other attention kernels of this project: unfused, decoding, softmax, pages, trees, FlashAttention-1, quantised caches; and one small
case of every kernel."""
from lists.own_kernels import (
    MID_128, REQUESTS, backward_case, case, decode, flash1_case, paged_case, pingpong, quantized_case, softmax_case, tree_case, unfused, wgmma)


def other():
    rows = []
    for shape in ((2, 8, 8, 1024, 64, 0), (2, 8, 4, 1024, 128, 1), (1, 16, 16, 2048, 128, 0), (1, 16, 16, 2048, 128, 1),
                  (1, 16, 16, 4096, 128, 0), (1, 8, 8, 8192, 128, 0), (1, 32, 32, 2048, 64, 1),
                  (4, 16, 16, 1024, 64, 0)):
        for kind in ("safe", "online"):
            rows.append(unfused(shape, 128, 128, 8, kind))
        rows.append(unfused(shape, 64, 64, 4, "safe"))
    for batch, heads, kv_heads, seqlen, head_dim in ((1, 32, 8, 8192, 128), (1, 32, 8, 65536, 128), (16, 32, 8, 4096, 128),
                                                     (64, 32, 8, 2048, 128), (8, 32, 32, 4096, 128), (1, 16, 1, 32768, 128),
                                                     (8, 32, 4, 16384, 64)):
        for splits in (1, 4, 16):
            for block_n, stages in ((64, 3), (128, 2)):
                rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, block_n, stages, splits))
    return rows


def other_more():
    """More shapes of decoding and of unfused attention, short and long, head_dim 64 and 128."""
    rows = []
    for shape in ((1, 8, 8, 512, 64, 0), (16, 16, 16, 512, 128, 0), (8, 32, 32, 512, 64, 1), (2, 16, 16, 2048, 64, 0),
                  (1, 32, 8, 4096, 128, 1), (1, 4, 4, 8192, 64, 1), (1, 4, 4, 8192, 128, 1),
                  (8, 16, 16, 1024, 128, 1), (1, 12, 12, 6144, 64, 0), (1, 2, 2, 16384, 64, 0), (1, 20, 5, 3072, 128, 0)):
        for kind in ("safe", "online"):
            rows.append(unfused(shape, 128, 128, 8, kind))
        rows.append(unfused(shape, 64, 64, 4, "safe"))
    for batch, heads, kv_heads, seqlen in ((1, 8, 8, 512), (4, 32, 8, 1024), (64, 32, 4, 1024), (1, 32, 8, 131072), (32, 16, 16, 2048),
                                           (2, 16, 2, 24576)):
        for head_dim in (64, 128):
            for splits in (1, 2, 8) if seqlen < 16384 else (8, 32):
                rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, 64, 3, splits))
            rows.append(decode(batch, heads, kv_heads, seqlen, head_dim, 128, 2, 8))
    return rows


def softmax():
    rows = []
    for num_rows, columns in ((65536, 1024), (4096, 1024), (32768, 2048), (16384, 4096), (1024, 4096), (16384, 5000), (8192, 8192),
                              (4096, 16384), (528, 16384), (2048, 32768), (1024, 65536),
                              (132, 65536), (16, 65536), (4096, 1000), (2640, 12288)):
        for kind in ("safe", "online"):
            for block_m in (1, 4):
                rows.append(softmax_case(kind, num_rows, columns, block_m, 4))
        for block_m, held in ((1, 4096), (1, 16384), (4, 1024), (4, 4096)):
            if columns <= held <= 8 * columns:
                rows.append(softmax_case("online", num_rows, columns, block_m, 4, held))
        if columns <= 4096:
            rows.append(softmax_case("safe", num_rows, columns, 1, 4, 4096))
    return rows


def paged():
    """Decoding over pages: sequences as long as each other, requests of all lengths, few long ones."""
    rows = []
    for shape, lengths, splits in (((16, 32, 8, 4096, 128), "4096x16", (1, 2, 4)), ((16, 40, 40, 2005, 128), REQUESTS, (1, 4)),
                                   ((64, 32, 8, 1500, 64), "1500x64", (1, 2)), ((2, 32, 8, 32768, 128), "32768x2", (8, 16))):
        for number_of_splits in splits:
            for config, page_size, page_layout in (((64, 3), 16, "scattered"), ((64, 3), 256, "contiguous"), ((128, 2), 64, "scattered")):
                rows.append(paged_case(shape, lengths, config, page_size, page_layout, number_of_splits))
    rows += [paged_case((16, 32, 8, 4096, 128), "4096x16", (64, 3), page_size, "scattered", 2, layout)
             for page_size, layout in ((16, "bhsd"), (64, "bhsd"), (4, "bshd"))]
    return rows


def tree():
    """Verification of trees of 16 to 64 tokens, of few and of many branches."""
    rows = []
    for shape, branches, splits in (((1, 32, 8, 16, 8192, 128), 3, (1, 8)), ((4, 32, 8, 64, 4096, 128), 4, (1, 4)),
                                    ((1, 32, 32, 64, 8192, 128), 2, (2, 8)), ((8, 32, 4, 32, 2048, 64), 1, (1, 2)),
                                    ((1, 64, 8, 26, 32768, 128), 5, (16,))):
        for number_of_splits in splits:
            for config in ((64, 64, 4, 3), (128, 64, 8, 3)):
                rows.append(tree_case(shape, branches, config, number_of_splits))
    return rows


def flash1():
    """From few CTAs, one a head, to several waves of them; one block of keys to sixty-four."""
    small, halves, wide, large, single = (256, 4, 2), (128, 4, 2), (128, 4, 2), (256, 8, 2), (256, 4, 1)
    rows = []
    for batch, heads, kv_heads, seqlen, head_dim, causal, configs in (
            (8, 16, 16, 1024, 64, 0, (small, halves, single)), (4, 33, 33, 2048, 64, 0, (small, halves)),
            (64, 16, 16, 512, 64, 0, (small, single)), (1, 24, 24, 8192, 64, 0, (small,)),
            (16, 16, 16, 256, 64, 0, (small,)), (8, 32, 32, 1024, 64, 1, (small, halves)), (4, 16, 16, 4096, 64, 1, (small,)),
            (8, 16, 16, 1024, 128, 0, (wide, large)), (2, 24, 6, 4096, 128, 0, (wide, large)), (32, 16, 16, 512, 128, 0, (wide,)),
            (6, 40, 40, 2048, 128, 1, (wide,))):
        rows += [flash1_case((batch, heads, kv_heads, seqlen, head_dim, causal), config) for config in configs]
    return rows


def quantized():
    """Decoding over caches of 8 and 4 bits: one scale a token or several, few and many CTAs."""
    near, far = (64, 3), (128, 2)
    batched, long_one, many = (16, 32, 8, 8192, 128), (1, 32, 8, 65536, 128), (64, 32, 8, 2048, 128)
    few, grouped, narrow = (1, 8, 8, 8192, 128), (2, 16, 2, 32768, 128), (8, 32, 4, 16384, 64)
    return [quantized_case(batched, "int8", 128, near, 2), quantized_case(batched, "fp8", 128, near, 2),
            quantized_case(batched, "int4", 128, near, 2), quantized_case(batched, "int8", 32, near, 2),
            quantized_case(long_one, "fp8", 128, near, 32), quantized_case(long_one, "int4", 128, near, 32),
            quantized_case(many, "int8", 128, far, 1), quantized_case(many, "int8", 128, near, 1),
            quantized_case(many, "int4", 128, near, 1), quantized_case(few, "int8", 128, near, 16),
            quantized_case(few, "fp8", 128, near, 4), quantized_case(grouped, "int8", 128, far, 32),
            quantized_case(grouped, "int8", 32, near, 16), quantized_case(narrow, "fp8", 64, far, 4),
            quantized_case(narrow, "fp8", 64, far, 16), quantized_case(many, "fp8", 128, near, 4)]


def repeat_more():
    """As repeat(), for the kernels that came later."""
    rows = [softmax_case("safe", 16384, 4096, 1, 4), softmax_case("online", 16384, 4096, 4, 4), softmax_case("online", 1024, 65536, 1, 4),
            softmax_case("safe", 4096, 1024, 1, 4)]
    rows += [decode(1, 32, 8, 131072, 128, 64, 3, 32), decode(64, 32, 4, 1024, 128, 64, 3, 2), decode(1, 8, 8, 512, 64, 64, 3, 1),
             decode(32, 16, 16, 2048, 64, 64, 3, 2)]
    rows += [unfused((1, 12, 12, 6144, 64, 0), 128, 128, 8, "safe"), unfused((8, 32, 32, 512, 64, 1), 128, 128, 8, "online")]
    rows += [wgmma(MID_128, (64, 64, 4, 1, "stages"), "tma"), case((8, 16, 16, 2047, 64, 0), (64, 64, 4, 2, "stages"))]
    return rows


def compiled():
    """One small instance of each kernel: what a machine without a GPU compiles to see that everything does."""
    shape, odd = (1, 4, 2, 512, 64, 1), (1, 4, 2, 500, 64, 1)
    return [case(shape, (64, 32, 4, 2, "stages")), case(shape, (64, 32, 4, 1, "stages")), case(shape, (64, 32, 4, 1, "interleaved")),
            case(odd, (64, 32, 4, 2, "stages")),
            wgmma(shape, (64, 64, 4, 2, "stages"), "cp_async"), wgmma(shape, (64, 64, 4, 2, "stages"), "tma"),
            wgmma(shape, (64, 64, 4, 1, "stages"), "tma"),
            pingpong(shape, (128, 64, 8, 2)), pingpong(shape, (128, 64, 8, 2), persistent=1), unfused(shape, 64, 64, 4, "safe"),
            decode(1, 4, 2, 512, 64, 64, 2, 2),
            softmax_case("safe", 64, 1000, 1, 4), softmax_case("online", 64, 1000, 4, 4), softmax_case("online", 64, 1000, 4, 4, 1024),
            case(shape, (64, 32, 4, 2, "stages"), window=100), case(odd, (64, 32, 4, 1, "interleaved"), window=100, dropout_p=0.1),
            paged_case((2, 4, 2, 500, 64), "37:500", (64, 2), 16, "scattered", 2),
            tree_case((1, 4, 2, 20, 512, 64), 3, (64, 64, 4, 2), 2), flash1_case(shape, (128, 4, 2)),
            case((1, 4, 2, 512, 96, 1), (64, 32, 4, 2, "stages"), head_dim_v=64), case(shape, (64, 32, 4, 1, "stages"), head_dim_v=128),
            *(dict(wgmma(shape, (64, 64, 4, 2, "stages"), copy), head_dim_v=128) for copy in ("cp_async", "tma")),
            pingpong(shape, (128, 64, 8, 2), head_dim_v=128),
            *(quantized_case((1, 4, 2, 512, 64), kv_dtype, 32, (64, 2), 2) for kv_dtype in ("int8", "fp8", "int4")),
            backward_case((1, 4, 4, 512, 64, 1), (32, 64, 4, 2), "atomics"), backward_case((1, 4, 4, 512, 64, 1), (32, 64, 4, 2), "kernel")]
