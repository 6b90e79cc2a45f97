#!/usr/bin/env python3
"""bench.py list|check|profile|time [CASE...]: attention kernels in Triton and what they measure (see kernels.py).

list     a JSON object a case; needs neither torch nor triton
check    every distinct kernel configuration on a small problem against a float32 reference
profile  each case once between cudaProfilerStart and cudaProfilerStop, compiled before
time     each case's median of 15 runs in microseconds, each after 256 MiB were written
"""

import json
import math
import sys

LOG2E = 1.4426950408889634


class Case:
    """params: what `list` prints; kind: of BUILDERS; triton_stages: Triton's own number; sizes that `check` takes in
    place of the real ones; extra: what the kernel takes besides."""

    def __init__(self, kind, params, triton_stages, small, **extra):
        self.kind, self.params, self.triton_stages, self.small, self.extra = kind, params, triton_stages, small, extra

    def configuration(self):
        """What makes a compiled kernel of its own: all but the sizes."""
        rest = {k: v for k, v in self.params.items() if k not in self.small and k != "launches"}
        return json.dumps([self.kind, rest, self.triton_stages, self.extra], sort_keys=True)

    def of_size(self, small):
        return Sized(self, dict(self.params, **self.small) if small else self.params)


class Sized:
    def __init__(self, case, params):
        self.kind, self.triton_stages, self.extra = case.kind, case.triton_stages, case.extra
        self.p = params


# ---------------------------------------------------------------- cases


def uses_wgmma(rows, num_warps):
    """Whether Triton takes wgmma for a tile of that many rows on compute capability 9.0."""
    return rows % 64 == 0 and num_warps % 4 == 0


def stages_of(triton_stages, wgmma):
    """Buffers of K and of V: with mma.sync Triton has one less than its num_stages says."""
    return triton_stages if wgmma else triton_stages - 1


def forward_case(batch, heads, seqlen, head_dim, dtype, causal, copy, block_m, block_n, num_warps, triton_stages):
    wgmma = uses_wgmma(block_m, num_warps)
    params = dict(workload="flash2_fwd", batch=batch, heads=heads, kv_heads=heads, seqlen=seqlen, head_dim=head_dim,
                  dtype=dtype, causal=causal, block_m=block_m, block_n=block_n, num_warps=num_warps,
                  num_stages=stages_of(triton_stages, wgmma), schedule="stages", copy=copy,
                  mma="wgmma" if wgmma else "mma", layout="bhsd", tile_order="m_first", tile_reverse=False, launches=1)
    small = dict(batch=1, heads=2, kv_heads=2, seqlen=512)
    return Case("descriptors" if copy == "tma" else "pointers", params, triton_stages, small)


def grouped_case(batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim, dtype, causal, layout, block_m, block_n,
                 num_warps, triton_stages, small_q, small_kv, window=0, head_first=False, reverse=False):
    wgmma = uses_wgmma(block_m, num_warps)
    params = dict(workload="flash2_fwd", batch=batch, heads=heads, kv_heads=kv_heads, seqlen_q=seqlen_q,
                  seqlen_kv=seqlen_kv, head_dim=head_dim, dtype=dtype, causal=causal)
    if window:
        params["window"] = window
    params.update(block_m=block_m, block_n=block_n, num_warps=num_warps, num_stages=stages_of(triton_stages, wgmma),
                  schedule="stages", copy="cp_async", mma="wgmma" if wgmma else "mma", layout=layout,
                  tile_order="head_first" if head_first else "m_first", tile_reverse=reverse, launches=1)
    group = heads // kv_heads
    small = dict(batch=2, heads=2 * group, kv_heads=2, seqlen_q=small_q, seqlen_kv=small_kv)
    return Case("grouped", params, triton_stages, small, group=group)


def decode_case(kind, batch, heads, kv_heads, seqlen_kv, head_dim, dtype, layout, splits, block_n, num_warps,
                triton_stages):
    """kind: decode_grouped, or decode_vector (pipelined through shared memory if triton_stages > 0)."""
    group = heads // kv_heads
    params = dict(workload="flash_decode", batch=batch, heads=heads, kv_heads=kv_heads, seqlen_q=1,
                  seqlen_kv=seqlen_kv, head_dim=head_dim, dtype=dtype, causal=False, splits=splits)
    if kind == "decode_grouped":
        params.update(block_m=16)
    params.update(block_n=block_n, num_warps=num_warps, num_stages=max(1, triton_stages - 1))
    if triton_stages > 0:
        params.update(schedule="stages", copy="cp_async")
    else:
        params.update(copy="ldg")
    if kind == "decode_grouped":
        params.update(mma="mma")
    params.update(layout=layout, launches=2)
    small = dict(batch=2, heads=2 * group, kv_heads=2, seqlen_kv=1056)
    return Case(kind, params, triton_stages, small, group=group)


def softmax_case(kind, workload, batch, heads, seqlen_q, seqlen_kv, dtype, block_n, num_warps, small_kv):
    params = dict(workload=workload, batch=batch, heads=heads, seqlen_q=seqlen_q, seqlen_kv=seqlen_kv, dtype=dtype,
                  block_m=1, block_n=block_n, num_warps=num_warps, num_stages=1, copy="ldg", launches=1)
    return Case(kind, params, 1, dict(batch=1, heads=2, seqlen_q=40, seqlen_kv=small_kv))


def matmul_case(m, n, k, dtype, block_m, block_n, num_warps, triton_stages, block_k=64):
    """m, n and k by the names of Q K^T: seqlen_q, seqlen_kv, head_dim."""
    wgmma = uses_wgmma(block_m, num_warps)
    params = dict(workload="matmul_tiled", batch=1, heads=1, seqlen_q=m, seqlen_kv=n, head_dim=k, dtype=dtype,
                  block_m=block_m, block_n=block_n, num_warps=num_warps, num_stages=stages_of(triton_stages, wgmma),
                  schedule="stages", copy="cp_async", mma="wgmma" if wgmma else "mma", launches=1)
    return Case("matmul", params, triton_stages, dict(seqlen_q=1280, seqlen_kv=768, head_dim=256), block_k=block_k)


def backward_case(batch, heads, seqlen, head_dim, dtype, causal, block_m, block_n, num_warps, triton_stages):
    """Both big kernels have the same tile; the rows of their products are block_n (dK, dV) and block_m (dQ)."""
    wgmma = uses_wgmma(min(block_m, block_n), num_warps)
    params = dict(workload="flash2_bwd", batch=batch, heads=heads, kv_heads=heads, seqlen=seqlen,
                  head_dim=head_dim, dtype=dtype, causal=causal, block_m=block_m, block_n=block_n,
                  num_warps=num_warps, num_stages=stages_of(triton_stages, wgmma), schedule="stages", copy="cp_async",
                  mma="wgmma" if wgmma else "mma", layout="bhsd", tile_order="m_first", tile_reverse=False, launches=3)
    return Case("backward", params, triton_stages, dict(batch=1, heads=2, kv_heads=2, seqlen=512))


def all_cases():
    cases = []
    # Sweeps: block_m, block_n, num_warps, Triton's num_stages.
    for tile in [(64, 32, 4, 2), (64, 32, 4, 3), (64, 64, 4, 2), (64, 64, 4, 3), (64, 64, 4, 4), (128, 32, 4, 3),
                 (128, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 2)]:
        cases.append(forward_case(4, 16, 2048, 64, "fp16", True, "cp_async", *tile))
    for tile in [(64, 32, 4, 3), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2), (128, 32, 4, 4), (128, 64, 8, 2),
                 (128, 64, 8, 3), (128, 128, 8, 2)]:
        cases.append(forward_case(2, 16, 4096, 128, "bf16", False, "cp_async", *tile))
    for tile in [(64, 32, 4, 4), (64, 64, 4, 2), (64, 64, 4, 3), (128, 32, 8, 3), (128, 64, 4, 3), (128, 64, 8, 2),
                 (128, 64, 8, 4), (128, 128, 8, 2)]:
        cases.append(forward_case(2, 16, 4096, 128, "fp16", True, "tma", *tile))
    # Two warps: mma.sync.
    cases.append(forward_case(4, 16, 2048, 64, "fp16", True, "cp_async", 64, 64, 2, 3))
    cases.append(forward_case(4, 16, 2048, 64, "bf16", False, "cp_async", 64, 32, 2, 4))

    cases.append(grouped_case(1, 32, 8, 4096, 4096, 128, "fp16", True, "bshd", 128, 64, 8, 3, 512, 512))
    cases.append(grouped_case(1, 32, 8, 4096, 4096, 128, "fp16", True, "bshd", 128, 64, 8, 3, 512, 512,
                              head_first=True, reverse=True))
    cases.append(grouped_case(2, 32, 4, 2048, 2048, 128, "bf16", True, "bhsd", 64, 64, 4, 2, 512, 512))
    cases.append(grouped_case(1, 16, 4, 8192, 8192, 128, "bf16", True, "bshd", 128, 64, 8, 3, 1536, 1536, window=1024))
    cases.append(grouped_case(2, 16, 16, 8192, 8192, 64, "fp16", True, "bhsd", 64, 64, 4, 3, 1024, 1024, window=512))
    cases.append(grouped_case(1, 32, 8, 1024, 8192, 128, "bf16", True, "bshd", 128, 64, 8, 2, 256, 768))
    cases.append(grouped_case(4, 16, 1, 3000, 3000, 64, "fp16", False, "bshd", 64, 64, 4, 3, 424, 424))

    cases.append(decode_case("decode_vector", 4, 32, 32, 8192, 128, "fp16", "bshd", 8, 64, 4, 0))
    cases.append(decode_case("decode_vector", 8, 16, 16, 4096, 64, "bf16", "bhsd", 4, 128, 4, 0))
    cases.append(decode_case("decode_vector", 4, 32, 32, 8192, 128, "fp16", "bhsd", 8, 32, 4, 3))
    cases.append(decode_case("decode_grouped", 16, 32, 8, 8192, 128, "fp16", "bshd", 8, 64, 4, 3))
    cases.append(decode_case("decode_grouped", 4, 64, 8, 16384, 128, "bf16", "bhsd", 16, 32, 2, 3))
    cases.append(decode_case("decode_grouped", 1, 32, 8, 65536, 128, "bf16", "bshd", 32, 64, 4, 4))
    cases.append(decode_case("decode_grouped", 16, 32, 2, 16384, 64, "fp16", "bhsd", 16, 32, 1, 3))

    cases.append(softmax_case("softmax_row", "softmax_safe", 1, 16, 1024, 4096, "fp16", 4096, 8, 4096))
    cases.append(softmax_case("softmax_row", "softmax_safe", 4, 16, 1024, 1536, "bf16", 2048, 4, 1536))
    cases.append(softmax_case("softmax_three_passes", "softmax_safe", 1, 8, 2048, 8192, "fp16", 2048, 8, 4608))
    cases.append(softmax_case("softmax_two_passes", "softmax_online", 1, 8, 2048, 8192, "fp16", 2048, 8, 4608))
    cases.append(softmax_case("softmax_two_passes", "softmax_online", 1, 4, 1024, 32768, "bf16", 4096, 8, 8704))

    cases.append(matmul_case(4096, 4096, 4096, "fp16", 128, 256, 8, 3))
    cases.append(matmul_case(4096, 4096, 4096, "fp16", 128, 128, 4, 4))
    cases.append(matmul_case(4096, 4096, 4096, "fp16", 128, 128, 8, 3))
    cases.append(matmul_case(2048, 8192, 1024, "bf16", 64, 128, 4, 4))
    cases.append(matmul_case(2048, 2048, 2048, "fp16", 64, 64, 2, 4))

    cases.append(backward_case(4, 16, 2048, 64, "fp16", True, 64, 64, 4, 2))
    cases.append(backward_case(4, 16, 2048, 64, "fp16", True, 64, 64, 4, 3))
    cases.append(backward_case(4, 16, 2048, 64, "fp16", True, 64, 128, 4, 2))
    cases.append(backward_case(4, 16, 2048, 64, "fp16", True, 128, 64, 4, 2))
    cases.append(backward_case(4, 16, 2048, 64, "fp16", True, 128, 128, 8, 2))
    cases.append(backward_case(2, 16, 2048, 128, "bf16", False, 64, 64, 4, 2))
    cases.append(backward_case(2, 16, 2048, 128, "fp16", True, 128, 128, 8, 2))
    return cases


# ---------------------------------------------------------------- problems


def torch_dtype(name):
    import torch
    return {"fp16": torch.float16, "bf16": torch.bfloat16}[name]


def normal(shape, dtype):
    import torch
    return torch.randn(shape, device="cuda", dtype=dtype)


def blank(shape, dtype):
    """NaN, so that what is not written shows."""
    import torch
    return torch.full(shape, float("nan"), device="cuda", dtype=dtype)


def heads_first(x, layout):
    return x if layout == "bhsd" else x.transpose(1, 2)


def shape_of(layout, batch, heads, rows, head_dim):
    return (batch, heads, rows, head_dim) if layout == "bhsd" else (batch, rows, heads, head_dim)


def strides_of(x, layout):
    """Of batch, head and row."""
    s = x.stride()
    return (s[0], s[1], s[2]) if layout == "bhsd" else (s[0], s[2], s[1])


def reference_attention(q, k, v, causal, window=0):
    """O and LSE in float32 of tensors [batch, heads, rows, head_dim]; kv heads may be fewer."""
    import torch
    group = q.shape[1] // k.shape[1]
    q = q.float()
    k = k.float().repeat_interleave(group, dim=1)
    v = v.float().repeat_interleave(group, dim=1)
    s = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    position = torch.arange(q.shape[2], device="cuda")[:, None] + (k.shape[2] - q.shape[2])
    key = torch.arange(k.shape[2], device="cuda")[None, :]
    if causal:
        s = s.masked_fill(key > position, float("-inf"))
    if window:
        s = s.masked_fill(key <= position - window, float("-inf"))
    return torch.matmul(torch.softmax(s, dim=-1), v), torch.logsumexp(s, dim=-1)


def scaled_error(x, reference):
    worst = ((x.float() - reference).abs() / (1 + reference.abs())).max().item()
    return worst if math.isfinite(worst) else math.inf


def rms_error(x, reference):
    error = ((x.float() - reference).square().sum() / reference.square().sum()).sqrt().item()
    return error if math.isfinite(error) else math.inf


class Problem:
    """launch(): the kernels of the case and nothing else. errors(): after it, [(what, error, tolerance)]."""

    def __init__(self, sized):
        self.p, self.triton_stages, self.extra = sized.p, sized.triton_stages, sized.extra
        self.dtype = torch_dtype(self.p["dtype"])
        self.is_bf16 = self.p["dtype"] == "bf16"
        if "head_dim" in self.p:
            self.sm_scale = 1.0 / math.sqrt(self.p["head_dim"])
            self.qk_scale = self.sm_scale * LOG2E

    def options(self):
        return dict(num_warps=self.p["num_warps"], num_stages=max(1, self.triton_stages))

    def forward_errors(self, o, lse):
        return [("O", scaled_error(self.o_heads_first(), o), 1e-2 if self.is_bf16 else 2e-3),
                ("LSE", scaled_error(self.lse, lse), 1e-3)]

    def o_heads_first(self):
        return heads_first(self.o, self.p.get("layout", "bhsd"))


def launch_forward_pointers(q, k, v, o, lse, qk_scale, causal, block_m, block_n, num_warps, num_stages):
    import kernels
    batch, heads, seqlen, head_dim = q.shape
    kernels.forward_pointers[(seqlen // block_m, batch * heads)](
        q, k, v, o, lse, seqlen, qk_scale, HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal,
        num_warps=num_warps, num_stages=num_stages)


class Forward(Problem):
    def __init__(self, sized):
        import torch
        super().__init__(sized)
        p = self.p
        shape = (p["batch"], p["heads"], p["seqlen"], p["head_dim"])
        self.q, self.k, self.v = [normal(shape, self.dtype) for _ in range(3)]
        self.o, self.lse = blank(shape, self.dtype), blank(shape[:3], torch.float32)

    def launch(self):
        p = self.p
        launch_forward_pointers(self.q, self.k, self.v, self.o, self.lse, self.qk_scale, p["causal"], p["block_m"],
                                p["block_n"], p["num_warps"], self.triton_stages)

    def errors(self):
        return self.forward_errors(*reference_attention(self.q, self.k, self.v, self.p["causal"]))


class ForwardDescriptors(Forward):
    def __init__(self, sized):
        super().__init__(sized)
        from triton.tools.tensor_descriptor import TensorDescriptor
        p = self.p
        rows, head_dim = p["batch"] * p["heads"] * p["seqlen"], p["head_dim"]

        def describe(x, block_rows):
            return TensorDescriptor(x, shape=[rows, head_dim], strides=[head_dim, 1],
                                    block_shape=[block_rows, head_dim])

        self.descriptors = [describe(self.q, p["block_m"]), describe(self.k, p["block_n"]),
                            describe(self.v, p["block_n"]), describe(self.o, p["block_m"])]

    def launch(self):
        import kernels
        p = self.p
        kernels.forward_descriptors[(p["seqlen"] // p["block_m"], p["batch"] * p["heads"])](
            *self.descriptors, self.lse, p["seqlen"], self.qk_scale, HEAD_DIM=p["head_dim"], BLOCK_M=p["block_m"],
            BLOCK_N=p["block_n"], CAUSAL=p["causal"], BF16=self.is_bf16, **self.options())


class ForwardGrouped(Problem):
    def __init__(self, sized):
        import torch
        super().__init__(sized)
        p = self.p
        q_shape = shape_of(p["layout"], p["batch"], p["heads"], p["seqlen_q"], p["head_dim"])
        kv_shape = shape_of(p["layout"], p["batch"], p["kv_heads"], p["seqlen_kv"], p["head_dim"])
        self.q, self.k, self.v = normal(q_shape, self.dtype), normal(kv_shape, self.dtype), normal(kv_shape, self.dtype)
        self.o = blank(q_shape, self.dtype)
        self.lse = blank((p["batch"], p["heads"], p["seqlen_q"]), torch.float32)

    def launch(self):
        import kernels
        p = self.p
        head_first = p["tile_order"] == "head_first"
        tiles, all_heads = -(-p["seqlen_q"] // p["block_m"]), p["batch"] * p["heads"]
        kernels.forward_grouped[(all_heads, tiles) if head_first else (tiles, all_heads)](
            self.q, self.k, self.v, self.o, self.lse, p["heads"], p["seqlen_q"], p["seqlen_kv"], self.qk_scale,
            *strides_of(self.q, p["layout"]), *strides_of(self.k, p["layout"]), HEAD_DIM=p["head_dim"],
            BLOCK_M=p["block_m"], BLOCK_N=p["block_n"], GROUP=self.extra["group"], CAUSAL=p["causal"],
            WINDOW=p.get("window", 0), HEAD_FIRST=head_first, REVERSE=p["tile_reverse"], **self.options())

    def errors(self):
        p = self.p
        q, k, v = [heads_first(x, p["layout"]) for x in (self.q, self.k, self.v)]
        return self.forward_errors(*reference_attention(q, k, v, p["causal"], p.get("window", 0)))


class Decode(Problem):
    def __init__(self, sized):
        import torch
        super().__init__(sized)
        self.vector = sized.kind == "decode_vector"
        p = self.p
        kv_shape = shape_of(p["layout"], p["batch"], p["kv_heads"], p["seqlen_kv"], p["head_dim"])
        self.k, self.v = normal(kv_shape, self.dtype), normal(kv_shape, self.dtype)
        rows = (p["batch"], p["heads"])
        self.q = normal(rows + (p["head_dim"],), self.dtype)
        self.o = blank(rows + (p["head_dim"],), self.dtype)
        self.lse = blank(rows, torch.float32)
        self.part = blank(rows + (p["splits"], p["head_dim"]), torch.float32)
        self.part_lse = blank(rows + (p["splits"],), torch.float32)

    def launch(self):
        import kernels
        p = self.p
        arguments = (self.q, self.k, self.v, self.part, self.part_lse, p["heads"], p["seqlen_kv"], p["splits"],
                     self.qk_scale) + strides_of(self.k, p["layout"])
        constants = dict(HEAD_DIM=p["head_dim"], BLOCK_N=p["block_n"], GROUP=self.extra["group"])
        if self.vector:
            kernels.decode_vector[(p["heads"], p["splits"], p["batch"])](
                *arguments, STAGES=self.triton_stages, **constants, **self.options())
        else:
            kernels.decode_grouped[(p["kv_heads"], p["splits"], p["batch"])](
                *arguments, BLOCK_H=16, **constants, **self.options())
        block_s = 1
        while block_s < p["splits"]:
            block_s *= 2
        kernels.decode_combine[(p["batch"] * p["heads"],)](
            self.part, self.part_lse, self.o, self.lse, p["splits"], HEAD_DIM=p["head_dim"], BLOCK_S=block_s,
            num_warps=4)

    def errors(self):
        p = self.p
        k, v = heads_first(self.k, p["layout"]), heads_first(self.v, p["layout"])
        o, lse = reference_attention(self.q[:, :, None, :], k, v, False)
        return [("O", scaled_error(self.o, o[:, :, 0, :]), 1e-2 if self.is_bf16 else 2e-3),
                ("LSE", scaled_error(self.lse, lse[:, :, 0]), 1e-3)]


class Softmax(Problem):
    def __init__(self, sized):
        super().__init__(sized)
        self.kernel_name = sized.kind
        p = self.p
        self.rows = p["batch"] * p["heads"] * p["seqlen_q"]
        self.x = normal((self.rows, p["seqlen_kv"]), self.dtype)
        self.y = blank((self.rows, p["seqlen_kv"]), self.dtype)

    def launch(self):
        import kernels
        getattr(kernels, self.kernel_name)[(self.rows,)](
            self.x, self.y, self.p["seqlen_kv"], BLOCK_N=self.p["block_n"], **self.options())

    def errors(self):
        import torch
        return [("Y", rms_error(self.y, torch.softmax(self.x.float(), dim=-1)), 8e-3 if self.is_bf16 else 2e-3)]


class Matmul(Problem):
    def __init__(self, sized):
        super().__init__(sized)
        p = self.p
        self.m, self.n, self.k = p["seqlen_q"], p["seqlen_kv"], p["head_dim"]
        self.a, self.b = normal((self.m, self.k), self.dtype), normal((self.k, self.n), self.dtype)
        self.c = blank((self.m, self.n), self.dtype)

    def launch(self):
        import kernels
        p = self.p
        kernels.matmul[((self.m // p["block_m"]) * (self.n // p["block_n"]),)](
            self.a, self.b, self.c, self.m, self.n, self.k, BLOCK_M=p["block_m"], BLOCK_N=p["block_n"],
            BLOCK_K=self.extra["block_k"], GROUP_M=8, **self.options())

    def errors(self):
        import torch
        return [("C", rms_error(self.c, torch.matmul(self.a.float(), self.b.float())), 8e-3 if self.is_bf16 else 2e-3)]


class Backward(Problem):
    def __init__(self, sized):
        import torch
        super().__init__(sized)
        p = self.p
        shape = (p["batch"], p["heads"], p["seqlen"], p["head_dim"])
        self.q, self.k, self.v, self.do = [normal(shape, self.dtype) for _ in range(4)]
        self.o, self.lse = blank(shape, self.dtype), blank(shape[:3], torch.float32)
        self.delta = blank(shape[:3], torch.float32)
        self.dq, self.dk, self.dv = [blank(shape, self.dtype) for _ in range(3)]
        launch_forward_pointers(self.q, self.k, self.v, self.o, self.lse, self.qk_scale, p["causal"], 64, 64, 4, 2)

    def launch(self):
        import kernels
        p = self.p
        all_heads, seqlen = p["batch"] * p["heads"], p["seqlen"]
        kernels.backward_delta[(all_heads * seqlen // 128,)](
            self.o, self.do, self.delta, HEAD_DIM=p["head_dim"], BLOCK_M=128, num_warps=4)
        constants = dict(HEAD_DIM=p["head_dim"], BLOCK_M=p["block_m"], BLOCK_N=p["block_n"], CAUSAL=p["causal"])
        kernels.backward_dkdv[(seqlen // p["block_n"], all_heads)](
            self.q, self.k, self.v, self.do, self.lse, self.delta, self.dk, self.dv, seqlen, self.qk_scale,
            self.sm_scale, **constants, **self.options())
        kernels.backward_dq[(seqlen // p["block_m"], all_heads)](
            self.q, self.k, self.v, self.do, self.lse, self.delta, self.dq, seqlen, self.qk_scale,
            self.sm_scale, **constants, **self.options())

    def errors(self):
        q, k, v = [x.float().requires_grad_(True) for x in (self.q, self.k, self.v)]
        o, _ = reference_attention(q, k, v, self.p["causal"])
        o.backward(self.do.float())
        tolerance = 2e-2 if self.is_bf16 else 5e-3
        return [("dQ", rms_error(self.dq, q.grad), tolerance), ("dK", rms_error(self.dk, k.grad), tolerance),
                ("dV", rms_error(self.dv, v.grad), tolerance)]


BUILDERS = {"pointers": Forward, "descriptors": ForwardDescriptors, "grouped": ForwardGrouped,
            "decode_vector": Decode, "decode_grouped": Decode, "softmax_row": Softmax,
            "softmax_three_passes": Softmax, "softmax_two_passes": Softmax, "matmul": Matmul, "backward": Backward}


def build(sized):
    import torch
    torch.manual_seed(1)
    problem = BUILDERS[sized.kind](sized)
    torch.cuda.synchronize()
    return problem


# ---------------------------------------------------------------- commands


def list_cases(chosen):
    for number, case in chosen:
        print(json.dumps(dict(case=number, **case.params)))
    return 0


def one_line(error):
    text = " ".join(str(error).split())
    return "%s: %s" % (type(error).__name__, text[:400])


def check(chosen):
    import torch
    torch.set_float32_matmul_precision("highest")
    done, failed = set(), 0
    for number, case in chosen:
        if case.configuration() in done:
            continue
        done.add(case.configuration())
        sized = case.of_size(small=True)
        ok, report, problem = False, "", None
        try:
            problem = build(sized)
            problem.launch()
            torch.cuda.synchronize()
            errors = problem.errors()
            ok = all(error <= tolerance for _, error, tolerance in errors)
            report = " ".join("%s err %.3e" % (what, error) for what, error, _ in errors)
        except Exception as error:
            report = one_line(error)
        name = ",".join("%s=%s" % item for item in sized.p.items())
        print("case %d %s %s: %s %s" % (number, case.kind, name, report, "ok" if ok else "FAIL"), flush=True)
        failed += not ok
        problem = None
    print("%d of %d failed" % (failed, len(done)))
    return 1 if failed else 0


def for_each_case(chosen, action):
    import torch
    failed = False
    for number, case in chosen:
        problem = None
        try:
            problem = build(case.of_size(small=False))
            action(number, problem)
        except Exception as error:
            print("case %d failed: %s" % (number, one_line(error)), file=sys.stderr, flush=True)
            failed = True
        problem = None
        try:
            torch.cuda.empty_cache()
        except Exception:
            pass
    return 1 if failed else 0


def profile(chosen):
    import torch

    def once(number, problem):
        problem.launch()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        try:
            problem.launch()
            torch.cuda.synchronize()
        finally:
            torch.cuda.cudart().cudaProfilerStop()

    return for_each_case(chosen, once)


def time(chosen):
    import torch
    flushed = torch.empty(64 << 20, dtype=torch.int32, device="cuda")  # 256 MiB

    def measure(number, problem):
        for _ in range(3):
            problem.launch()
        torch.cuda.synchronize()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        times = []
        for run in range(15):
            # The device waits about a millisecond, so that all launches are queued before the first begins.
            torch.cuda._sleep(2000000)
            flushed.fill_(run)
            start.record()
            problem.launch()
            stop.record()
            stop.synchronize()
            times.append(start.elapsed_time(stop) * 1000.0)
        times.sort()
        print('{"case":%d,"us":%.3f}' % (number, times[len(times) // 2]), flush=True)

    return for_each_case(chosen, measure)


def main(arguments):
    commands = {"list": list_cases, "check": check, "profile": profile, "time": time}
    cases = all_cases()
    if not arguments or arguments[0] not in commands:
        print("usage: bench.py list|check|profile|time [CASE...]", file=sys.stderr)
        return 2
    try:
        numbers = [int(text) for text in arguments[1:]] or range(len(cases))
        chosen = [(number, cases[number]) for number in numbers if number >= 0]
        if len(chosen) != len(numbers):
            raise IndexError
    except (ValueError, IndexError):
        print("bench.py: a case is a number from 0 to %d" % (len(cases) - 1), file=sys.stderr)
        return 2
    return commands[arguments[0]](chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
