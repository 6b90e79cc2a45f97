"""How loads merge while CTAs of a head drift apart: in a loop, and from wave to wave."""
from lists.foreign_kernels import foreign_case
from lists.own_kernels import pingpong, wgmma

# heads of 12 tiles of 128 rows in one wave of 132 CTAs, with more and more keys, and in more waves; one head of 132 tiles
WAVES = [*((11, 1536, keys) for keys in (512, 1024, 2048, 4096, 8192, 16384)), *((heads, 1536, 2048) for heads in (22, 44, 88)),
         (1, 16896, 2048), (1, 16896, 8192)]


def own():
    rows = []
    for heads, queries, keys in WAVES:
        shape, lengths = (1, heads, heads, queries, 128, 0), dict(seqlen_kv=keys)
        rows += [pingpong(shape, (128, 128, 8, 2), **lengths, persistent=persistent)
                 for persistent in ((0, 1) if heads in (22, 44, 88) else (0,))]
        rows.append(dict(wgmma(shape, (128, 128, 8, 2, "stages"), "tma"), **lengths))
    return rows


def library():
    rows = []
    for head_dim in (128, 64, 96, 256):
        for heads, queries, keys in WAVES if head_dim == 128 else [wave for wave in WAVES if wave[0] > 1 and wave[2] not in (1024, 16384)]:
            rows.append(dict(foreign_case("sdpa_cudnn", (1, heads, heads, queries, head_dim, 0)), seqlen_kv=keys))
    return rows
