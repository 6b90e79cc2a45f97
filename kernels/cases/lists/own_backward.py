"""Cases of this project's backward kernels, with both forms of dQ; every second shape is held back."""
from lists.own_kernels import backward_case

# block_m, block_n, num_warps, num_stages by form and head_dim: what registers hold, or nearly.
TILES = {("atomics", 64): ((64, 128, 8, 2), (64, 64, 4, 2), (128, 128, 8, 2), (32, 64, 4, 1), (32, 128, 4, 2), (64, 128, 8, 1)),
         ("atomics", 128): ((64, 128, 8, 2), (64, 64, 4, 2), (32, 128, 8, 2), (128, 64, 8, 2), (64, 128, 8, 1), (64, 64, 8, 1)),
         ("kernel", 64): ((32, 128, 4, 2), (64, 64, 4, 2), (32, 64, 4, 3), (64, 128, 8, 2), (128, 128, 8, 1), (64, 64, 4, 1)),
         ("kernel", 128): ((32, 128, 8, 2), (64, 64, 4, 2), (32, 64, 4, 2), (64, 128, 8, 2), (64, 64, 4, 3), (64, 128, 8, 1))}
# batch, heads, kv_heads, seqlen, head_dim, causal
SHAPES = ((1, 8, 8, 1024, 64, 0), (2, 16, 16, 2048, 64, 1), (1, 8, 8, 1024, 128, 1), (2, 16, 16, 2048, 128, 0),
          (4, 16, 16, 4096, 64, 1), (1, 12, 12, 1920, 64, 0), (4, 16, 16, 4096, 128, 1), (1, 12, 12, 1920, 128, 1),
          (4, 16, 16, 2048, 64, 0), (3, 10, 10, 1152, 64, 1), (2, 16, 16, 4096, 128, 0))


def own():
    """Two tiles of each form a shape, in turn."""
    rows, turns = [], {}
    for i, shape in enumerate(SHAPES):
        head_dim = shape[4]
        turn = turns[head_dim] = turns.get(head_dim, -1) + 1
        for dq in ("atomics", "kernel"):
            tiles = TILES[dq, head_dim]
            rows += [dict(backward_case(shape, tiles[(2 * turn + j) % len(tiles)], dq), part="held_out" if i % 2 else "calibration")
                     for j in (0, 1)]
    return rows
