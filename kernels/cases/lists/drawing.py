"""Shapes and blocks from a random generator."""
import math

WIDEST_HEAD = 128


def draw_shape(draw, head_dim, causal, multiple, queries=(800, 14000)):
    """(batch, heads, kv_heads, seqlen, head_dim, causal): seqlen a multiple of `multiple`; 4 x batch x heads x seqlen^2 x head_dim
    operations are 0.1 to 0.6 T, half of a millisecond or so."""
    seqlen = int(math.exp(draw.uniform(*map(math.log, queries)))) // multiple * multiple
    rows = draw.uniform(1e11, 6e11) / (4 * seqlen * seqlen * head_dim)
    kv_heads = draw.randint(1, min(12, math.ceil(rows)))
    group = draw.choice((1, 1, 2, 4, 5))
    batch = max(1, round(rows / (kv_heads * group)))
    return batch, kv_heads * group, kv_heads, seqlen, head_dim, causal


def draw_distinct(draw, how_many, draw_one):
    """`how_many` different values of draw_one(), in the order they come."""
    found = []
    while len(found) < how_many:
        one = draw_one()
        if one not in found:
            found.append(one)
    return found


def draw_block(draw, most_held):
    """(block_m, block_n, num_warps, num_stages) of a kernel in Triton: at least 16 rows a warp and no more than 512 elements of the scores
    a lane, nor `most_held` of them and of the output of a head of 128."""
    while True:
        block_m, block_n = draw.choice((32, 64, 128, 256)), draw.choice((16, 32, 64, 128))
        num_warps, num_stages = draw.choice((2, 4, 8)), draw.randint(2, 4)
        num_lanes, num_scores = 32 * num_warps, block_m * block_n
        fits_lanes = num_scores <= 512 * num_lanes and num_scores + block_m * WIDEST_HEAD <= most_held * num_lanes
        if block_m // num_warps >= 16 and num_scores >= 1024 and fits_lanes:
            return block_m, block_n, num_warps, num_stages
