"""What runs a case: a function without arguments that launches its kernels and gives the output, [batch][heads][tokens][head_dim] (cuBLAS: the product).
Backward it gives gradients by the inputs, and `gradient` of the function is the one of the output."""
import itertools
import math

import torch
import torch._inductor.codecache
import torch._inductor.config
import torch.nn.functional as F
from eager_attention import eager_call
from gradients import gradient_call
from problems import lengths_of, number, visible
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"sdpa_flash": SDPBackend.FLASH_ATTENTION, "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION, "sdpa_efficient": SDPBackend.EFFICIENT_ATTENTION}


def triton_call(case, q, k, v):
    from triton_attention import triton_attention_forward
    o = torch.full_like(q, float("nan"))
    lse = torch.empty(q.shape[:3], device="cuda", dtype=torch.float32)
    block_m, head_dim = int(case["block_m"]), q.shape[3]
    grid = (q.shape[2] // block_m, q.shape[0] * q.shape[1])

    def call():
        call.compiled = triton_attention_forward[grid](
            q, k, v, o, lse, 1.4426950408889634 / math.sqrt(head_dim), q.shape[1], q.shape[1] // k.shape[1], q.shape[2], k.shape[2],
            CAUSAL=case["causal"] == "1", BLOCK_M=block_m, BLOCK_N=int(case["block_n"]), HEAD_DIM=head_dim,
            num_warps=int(case["num_warps"]), num_stages=int(case["num_stages"]))
        return o
    return call


def triton_descriptors_call(case, q, k, v):
    from triton_descriptors import descriptors_call
    return descriptors_call(case, q, k, v)


def triton_backward_call(case, q, k, v):
    from triton_backward import backward_call
    return backward_call(case, q, k, v)


def triton_paged_call(case, q, k, v):
    from triton_paged import paged_call
    return paged_call(case, q, k, v)


def triton_product_call(case, a, b, _):
    from triton_product import product_call
    return product_call(case, a, b)


def triton_softmax_call(case, x, _, __):
    from triton_softmax import softmax_call
    return softmax_call(case, x)


def flex_call(case, q, k, v):
    """PyTorch's own template, compiled anew for each case, with the block sizes that the case names, if any."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    torch._dynamo.reset()
    for name in ("use_static_cuda_launcher", "use_static_triton_launcher"):  # which forgets PTX and metadata
        if hasattr(torch._inductor.config, name):
            setattr(torch._inductor.config, name, False)
    torch._inductor.codecache.PyCodeCache.cache_clear()
    columns = {"BLOCK_M": "block_m", "BLOCK_N": "block_n", "num_warps": "num_warps", "num_stages": "num_stages"}
    options = {name: int(case[column]) for name, column in columns.items() if case[column]} or None
    sees = visible(case, q.shape[2], k.shape[2])
    mask = create_block_mask(lambda b, h, i, j: sees(i, j), None, None, q.shape[2], k.shape[2], device="cuda")  # without any mask two more kernels run
    compiled, gqa = torch.compile(flex_attention, dynamic=False, fullgraph=True), q.shape[1] != k.shape[1]

    def call():
        with torch.no_grad():
            return compiled(q, k, v, block_mask=mask, enable_gqa=gqa, kernel_options=options)
    call()
    call.compiled = flex_kernel()
    return call


def flex_kernel():
    """The Triton kernel that the last flex_attention became, or None."""
    for module in torch._inductor.codecache.PyCodeCache.modules:
        for name, value in vars(module).items():
            if name.startswith("triton_tem") and getattr(value, "compile_results", None):
                return value.compile_results[0].kernel
    return None


def aten_flash_call(case, q, k, v):
    """The operator behind the flash backend, which takes windows and packed sequences too: [batch][tokens][heads][head_dim], packed [tokens][heads][head_dim]."""
    lengths, window, causal = lengths_of(case), number(case, "window"), case["causal"] == "1"
    tensors, begins, longest = [x.transpose(1, 2) for x in (q, k, v)], None, (q.shape[2], k.shape[2])
    if lengths:
        tensors, longest = [x[0] for x in tensors], (max(lengths), max(lengths))
        begins = torch.tensor([0, *itertools.accumulate(lengths)], device="cuda", dtype=torch.int32)
    sides = dict(window_size_left=window - 1, window_size_right=0 if causal else window - 1) if window else {}

    def call():
        o = torch.ops.aten._flash_attention_forward(*tensors, begins, begins, *longest, float(case.get("dropout_p") or 0), causal and not window, False, **sides)[0]
        return (o[None] if lengths else o).transpose(1, 2)
    return call


def cublas_call(case, a, b, _):
    if a.dtype == torch.float8_e4m3fn:  # sums as the tensor cores keep them: fp32 sums of every few products are another kernel
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a[0], b[0], scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)[None]
    if a.dtype == torch.int8:
        return lambda: torch._int_mm(a[0], b[0])[None]
    out = torch.empty(a.shape[0], a.shape[1], b.shape[2], device="cuda", dtype=a.dtype)
    return lambda: torch.bmm(a, b, out=out)


def sdpa_call(case, q, k, v):
    backend, causal, gqa = BACKENDS[case["source"]], case["causal"] == "1", q.shape[1] != k.shape[1]

    def forward():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=gqa)
    if case["pass"] == "fwd":
        return forward
    for t in (q, k, v):
        t.requires_grad_(True)
    o = forward()
    return gradient_call(o, (q, k, v))


CALLS = {"triton": triton_call, "triton_descriptors": triton_descriptors_call, "triton_backward": triton_backward_call, "triton_paged": triton_paged_call, "triton_product": triton_product_call, "triton_softmax": triton_softmax_call, "flex": flex_call, "flex_decode": flex_call, "aten_flash": aten_flash_call, "cublas": cublas_call,
         "sdpa_flash": sdpa_call, "sdpa_cudnn": sdpa_call, "sdpa_efficient": sdpa_call, "eager_einsum": eager_call, "eager_baddbmm": eager_call}


def make_call(case, q, k, v):
    return CALLS[case["source"]](case, q, k, v)
