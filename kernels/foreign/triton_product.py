"""Matrix product in Triton, after the well-known tutorial: one program a tile of C, tiles of rows first, plain pointers, fp16 with fp32 sums."""
import torch
import triton
import triton.language as tl


@triton.jit
def triton_product(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    of_batch = tl.program_id(2).to(tl.int64)
    a = a_ptr + of_batch * m * k + rows[:, None] * k + depth[None, :]
    b = b_ptr + of_batch * k * n + depth[:, None] * n + columns[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for _ in range(0, k, BLOCK_K):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += BLOCK_K
        b += BLOCK_K * n
    tl.store(c_ptr + of_batch * m * n + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def product_call(case, a, b):
    (batch, m, k), n = a.shape, b.shape[2]
    block_m, block_n, block_k = (int(case[name]) for name in ("block_m", "block_n", "block_k"))
    if m % block_m or n % block_n or k % block_k or a.dtype != torch.float16:
        raise ValueError("triton_product takes fp16 and whole tiles")
    c = torch.full((batch, m, n), float("nan"), device="cuda", dtype=torch.float16)

    def call():
        call.compiled = triton_product[(m // block_m, n // block_n, batch)](a, b, c, m, n, k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=int(case["num_warps"]),
                                                                           num_stages=int(case["num_stages"]))
        return c
    return call
