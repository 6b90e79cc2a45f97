-- Published times and rates.
--
-- Points: { batch, heads, tokens, figure }, or { batch, tokens, figure } where `heads` is the series'. `queries` is left
-- out where there are as many as keys. Figures are ms, TFLOP/s, or the percentage of `peak_gbps` that K and V take.

local with = require "reproduction.ask".with

local FA1 = "arXiv:2205.14135, tables 9 to 20"
local FA2 = "arXiv:2307.08691, figures 4 and 7"
local FA3 = "arXiv:2407.08608, figure 5"
local SAGE = "thu-ml/SageAttention, assets"
local T4 = "yashpatil582/fused-attention-cuda"
local FLASHINFER = "flashinfer.ai, 2024-01"
local CUDNN = "NVIDIA/cudnn-frontend, 9.19.1"

local a100_fa1 = { source = FA1, arch = "a100_40", heads = 8, head_dim = 64, unit = "ms" }
local a100_fa2 = { source = FA2, arch = "a100_80", unit = "TFLOP/s", pass = "both" }
local h100_fa2 = { source = FA2, arch = "h100_sxm", unit = "TFLOP/s", pass = "both" }
local h100_fa3 = { source = FA3, arch = "h100_sxm", unit = "TFLOP/s", pass = "fwd", clock_mhz = 1830 }
local a100_sage = { source = SAGE, arch = "a100_80", unit = "TFLOP/s", pass = "fwd", kernel = "FlashAttention-2", heads = 32 }
local rtx3090 = with(a100_sage, { arch = "rtx3090" })
local rtx4090 = with(a100_sage, { arch = "rtx4090" })
local t4 = { source = T4, arch = "t4", unit = "ms", pass = "fwd", clock_mhz = 585 }
local h200 = { source = CUDNN, arch = "h200", unit = "ms", pass = "fwd", kernel = "cuDNN", heads = 64, kv_heads = 8, head_dim = 128 }
local gqa_h100 = { source = "tfan2437/flash-attention-lab", arch = "h100_sxm", unit = "ms", pass = "fwd", heads = 32,
                   head_dim = 128, queries = 1, kernel = "Flash-Decoding", dtype = "bf16" }
local llama = { source = FLASHINFER, unit = "% of HBM", pass = "fwd", heads = 32, head_dim = 128, queries = 1, kernel = "Flash-Decoding" }

return {
  with(a100_fa1, { kernel = "FlashAttention-1", pass = "fwd", points = {
    { 16, 128, 0.08 }, { 16, 256, 0.09 }, { 16, 512, 0.17 }, { 16, 1024, 0.68 }, { 16, 2048, 2.28 } } }),
  with(a100_fa1, { kernel = "FlashAttention-1", pass = "bwd", points = {
    { 16, 128, 0.11 }, { 16, 256, 0.16 }, { 16, 512, 0.52 }, { 16, 1024, 1.62 }, { 16, 2048, 5.77 } } }),
  with(a100_fa1, { kernel = "FlashAttention-1", pass = "both", points = { { 16, 512, 0.73 }, { 16, 1024, 2.29 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "fwd", points = { { 16, 128, 0.21 }, { 16, 256, 0.22 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "bwd", points = {
    { 16, 128, 0.26 }, { 16, 256, 0.29 }, { 16, 512, 0.78 }, { 16, 1024, 2.44 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "both", points = { { 16, 512, 1.18 }, { 16, 1024, 3.67 }, { 16, 4096, 50.44 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "fwd", padding = true, points = {
    { 16, 512, 0.63 }, { 16, 1024, 1.93 }, { 16, 2048, 7.08 }, { 16, 4096, 27.45 }, { 16, 8192, 112.9 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "both", padding = true, points = {
    { 16, 256, 0.81 }, { 16, 1024, 7.23 }, { 16, 2048, 27.51 }, { 16, 4096, 107.58 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "fwd", dropout = 0.1, points = {
    { 16, 128, 0.26 }, { 16, 1024, 1.8 }, { 16, 2048, 6.56 }, { 16, 4096, 25.34 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "both", dropout = 0.1, points = {
    { 16, 256, 0.67 }, { 16, 1024, 4.82 }, { 16, 2048, 17.47 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "fwd", padding = true, dropout = 0.1, points = {
    { 16, 128, 0.36 }, { 16, 256, 0.34 }, { 16, 512, 0.78 }, { 16, 2048, 9.33 }, { 16, 4096, 36.33 } } }),
  with(a100_fa1, { kernel = "PyTorch, einsum", pass = "both", padding = true, dropout = 0.1, points = {
    { 16, 512, 2.35 }, { 16, 1024, 8.29 }, { 16, 4096, 124.19 } } }),

  with(a100_fa2, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, points = { { 8, 2048, 162 }, { 2, 8192, 175 } } }),
  with(a100_fa2, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, points = {
    { 32, 512, 151 }, { 4, 4096, 196 }, { 2, 8192, 201 } } }),
  with(a100_fa2, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, causal = true, points = {
    { 32, 512, 88 }, { 4, 4096, 156 }, { 1, 16384, 171 } } }),
  with(a100_fa2, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, causal = true, points = {
    { 16, 1024, 133 }, { 8, 2048, 155 } } }),
  with(a100_fa2, { kernel = "FlashAttention-1", heads = 32, head_dim = 64, points = { { 8, 2048, 104 } } }),
  with(a100_fa2, { kernel = "FlashAttention-1", heads = 16, head_dim = 128, points = { { 32, 512, 76 } } }),
  with(a100_fa2, { kernel = "FlashAttention-1", heads = 32, head_dim = 64, causal = true, points = { { 32, 512, 58 } } }),
  with(a100_fa2, { kernel = "FlashAttention-1", heads = 16, head_dim = 128, causal = true, points = { { 16, 1024, 62 } } }),
  with(a100_fa2, { kernel = "PyTorch, baddbmm", heads = 32, head_dim = 64, points = { { 8, 2048, 43 }, { 2, 8192, 46 } } }),
  with(a100_fa2, { kernel = "PyTorch, baddbmm", heads = 16, head_dim = 128, points = {
    { 32, 512, 53 }, { 4, 4096, 79 }, { 2, 8192, 86 } } }),
  with(a100_fa2, { kernel = "PyTorch, baddbmm", heads = 32, head_dim = 64, causal = true, points = { { 32, 512, 15 }, { 4, 4096, 18 } } }),
  with(a100_fa2, { kernel = "PyTorch, baddbmm", heads = 16, head_dim = 128, causal = true, points = { { 16, 1024, 28 }, { 8, 2048, 32 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, points = { { 32, 512, 215 }, { 2, 8192, 294 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, points = {
    { 32, 512, 248 }, { 16, 1024, 294 }, { 4, 4096, 326 }, { 2, 8192, 335 }, { 1, 16384, 338 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, causal = true, points = {
    { 16, 1024, 192 }, { 8, 2048, 232 }, { 4, 4096, 257 }, { 2, 8192, 273 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, causal = true, points = {
    { 32, 512, 163 }, { 8, 2048, 265 }, { 1, 16384, 328 } } }),
  with(h100_fa2, { kernel = "PyTorch, baddbmm", heads = 32, head_dim = 64, points = { { 32, 512, 62 }, { 2, 8192, 87 } } }),
  with(h100_fa2, { kernel = "PyTorch, baddbmm", heads = 16, head_dim = 128, points = {
    { 32, 512, 93 }, { 16, 1024, 120 }, { 4, 4096, 160 }, { 2, 8192, 167 } } }),
  with(h100_fa2, { kernel = "PyTorch, baddbmm", heads = 32, head_dim = 64, causal = true, points = {
    { 16, 1024, 29 }, { 8, 2048, 31 }, { 4, 4096, 32 }, { 2, 8192, 32 } } }),
  with(h100_fa2, { kernel = "PyTorch, baddbmm", heads = 16, head_dim = 128, causal = true, points = { { 32, 512, 40 }, { 8, 2048, 57 } } }),

  with(h100_fa3, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, points = {
    { 32, 512, 282 }, { 16, 1024, 306 }, { 8, 2048, 318 }, { 4, 4096, 321 }, { 2, 8192, 322 }, { 1, 16384, 324 } } }),
  with(h100_fa3, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, causal = true, points = {
    { 32, 512, 180 }, { 16, 1024, 229 }, { 8, 2048, 262 }, { 4, 4096, 284 }, { 2, 8192, 295 }, { 1, 16384, 299 } } }),
  with(h100_fa3, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, points = {
    { 32, 512, 309 }, { 16, 1024, 350 }, { 8, 2048, 362 }, { 4, 4096, 368 }, { 1, 16384, 370 } } }),
  with(h100_fa3, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, causal = true, points = {
    { 16, 1024, 260 }, { 4, 4096, 319 }, { 1, 16384, 335 } } }),
  with(h100_fa3, { kernel = "FlashAttention-2", heads = 8, head_dim = 256, points = {
    { 32, 512, 275 }, { 8, 2048, 321 }, { 2, 8192, 324 } } }),
  with(h100_fa3, { kernel = "FlashAttention-2", heads = 8, head_dim = 256, causal = true, points = {
    { 32, 512, 208 }, { 8, 2048, 278 }, { 1, 16384, 298 } } }),
  with(h100_fa3, { kernel = "FlashAttention-3", heads = 32, head_dim = 64, points = {
    { 32, 512, 333 }, { 16, 1024, 392 }, { 8, 2048, 460 }, { 4, 4096, 476 }, { 2, 8192, 496 }, { 1, 16384, 497 } } }),
  with(h100_fa3, { kernel = "FlashAttention-3", heads = 32, head_dim = 64, causal = true, points = {
    { 32, 512, 197 }, { 16, 1024, 265 }, { 8, 2048, 371 }, { 4, 4096, 420 }, { 2, 8192, 460 }, { 1, 16384, 473 } } }),
  with(h100_fa3, { kernel = "FlashAttention-3", heads = 16, head_dim = 128, points = {
    { 32, 512, 467 }, { 16, 1024, 565 }, { 8, 2048, 625 }, { 4, 4096, 638 }, { 1, 16384, 648 } } }),
  with(h100_fa3, { kernel = "FlashAttention-3", heads = 16, head_dim = 128, causal = true, points = {
    { 16, 1024, 423 }, { 4, 4096, 579 }, { 1, 16384, 616 } } }),
  with(h100_fa3, { kernel = "FlashAttention-3", heads = 8, head_dim = 256, points = {
    { 32, 512, 482 }, { 8, 2048, 707 }, { 2, 8192, 746 } } }),
  with(h100_fa3, { kernel = "FlashAttention-3", heads = 8, head_dim = 256, causal = true, points = {
    { 32, 512, 286 }, { 8, 2048, 537 }, { 1, 16384, 642 } } }),
  with(h100_fa3, { kernel = "PyTorch, baddbmm", heads = 32, head_dim = 64, points = {
    { 32, 512, 52 }, { 16, 1024, 63 }, { 8, 2048, 67 }, { 4, 4096, 72 }, { 2, 8192, 73 } } }),
  with(h100_fa3, { kernel = "PyTorch, baddbmm", heads = 16, head_dim = 128, points = {
    { 32, 512, 74 }, { 16, 1024, 100 }, { 8, 2048, 119 }, { 4, 4096, 133 } } }),
  with(h100_fa3, { kernel = "PyTorch, baddbmm", heads = 32, head_dim = 64, causal = true, points = {
    { 32, 512, 16 }, { 16, 1024, 18 }, { 8, 2048, 18 }, { 4, 4096, 18 }, { 2, 8192, 18 } } }),
  with(h100_fa3, { kernel = "PyTorch, baddbmm", heads = 16, head_dim = 128, causal = true, points = { { 16, 1024, 31 }, { 4, 4096, 35 } } }),
  with(h100_fa3, { kernel = "PyTorch, baddbmm", source = "arXiv:2407.08608, figure 6", pass = "bwd", heads = 32, head_dim = 64, points = {
    { 32, 512, 68 }, { 4, 4096, 92 } } }),
  with(h100_fa3, { kernel = "PyTorch, baddbmm", source = "arXiv:2407.08608, figure 6", pass = "bwd", heads = 16, head_dim = 128, points = {
    { 16, 1024, 131 }, { 8, 2048, 159 }, { 4, 4096, 174 } } }),

  with(a100_sage, { head_dim = 128, points = { { 4, 1024, 160 }, { 4, 4096, 203 }, { 4, 8192, 204 } } }),
  with(a100_sage, { head_dim = 128, causal = true, points = { { 4, 4096, 181 }, { 4, 16384, 193 } } }),
  with(rtx3090, { head_dim = 128, points = { { 4, 8192, 71 }, { 4, 16384, 70 }, { 4, 32768, 68 } } }),
  with(rtx3090, { head_dim = 128, causal = true, points = { { 4, 2048, 60 }, { 4, 8192, 63 }, { 4, 16384, 62 }, { 4, 32768, 60 } } }),
  with(rtx3090, { head_dim = 64, points = { { 4, 1024, 62 }, { 4, 2048, 67 }, { 4, 8192, 69 }, { 4, 16384, 68 } } }),
  with(rtx3090, { head_dim = 64, causal = true, points = { { 4, 4096, 62 }, { 4, 8192, 62 }, { 4, 16384, 63 } } }),
  with(rtx4090, { head_dim = 128, points = {
    { 4, 1024, 145 }, { 4, 2048, 151 }, { 4, 4096, 161 }, { 4, 8192, 164 }, { 4, 32768, 164 } } }),
  with(rtx4090, { head_dim = 128, causal = true, points = { { 4, 4096, 155 } } }),
  with(rtx4090, { head_dim = 64, points = { { 4, 2048, 153 }, { 4, 16384, 167 }, { 4, 32768, 167 } } }),
  with(rtx4090, { head_dim = 64, causal = true, points = {
    { 4, 1024, 94 }, { 4, 2048, 124 }, { 4, 4096, 150 }, { 4, 8192, 159 }, { 4, 16384, 162 }, { 4, 32768, 164 } } }),
  with(t4, { kernel = "memory-efficient", head_dim = 64, points = {
    { 1, 8, 128, 0.036 }, { 8, 32, 128, 0.216 }, { 8, 32, 256, 0.675 }, { 1, 8, 512, 0.128 }, { 8, 32, 512, 2.483 },
    { 2, 8, 2048, 2.485 }, { 8, 32, 2048, 37.201 }, { 1, 8, 4096, 4.907 } } }),
  with(t4, { kernel = "memory-efficient", head_dim = 64, causal = true, points = {
    { 1, 8, 1024, 0.264 }, { 8, 32, 1024, 5.237 }, { 8, 32, 2048, 19.577 }, { 1, 8, 4096, 2.776 }, { 8, 32, 4096, 75.594 } } }),
  with(t4, { kernel = "memory-efficient", head_dim = 128, points = {
    { 8, 32, 256, 1.444 }, { 1, 8, 512, 0.219 }, { 1, 8, 1024, 0.776 }, { 8, 32, 1024, 19.807 }, { 1, 8, 2048, 2.668 },
    { 8, 32, 2048, 77.55 }, { 1, 8, 4096, 9.864 } } }),
  with(t4, { kernel = "memory-efficient", head_dim = 128, causal = true, points = {
    { 8, 32, 512, 3.101 }, { 1, 8, 2048, 1.46 }, { 1, 8, 4096, 5.281 } } }),
  with(t4, { kernel = "PyTorch, matmul", head_dim = 64, points = {
    { 1, 8, 128, 0.056 }, { 8, 32, 128, 0.413 }, { 8, 32, 256, 1.291 }, { 1, 8, 512, 0.192 }, { 8, 32, 512, 4.663 },
    { 2, 8, 2048, 4.815 }, { 1, 8, 4096, 13.717 } } }),
  with(t4, { kernel = "PyTorch, matmul", head_dim = 128, points = {
    { 8, 32, 256, 1.444 }, { 1, 8, 512, 0.214 }, { 1, 8, 1024, 0.709 }, { 8, 32, 1024, 20.077 }, { 1, 8, 2048, 2.742 },
    { 1, 8, 4096, 14.608 } } }),
  { source = "zhinianqin/flash-attention-v100", arch = "v100", kernel = "FlashAttention-2 for Volta", pass = "fwd", unit = "ms",
    heads = 32, kv_heads = 8, head_dim = 128, causal = true, points = { { 1, 1024, 0.938 }, { 1, 4096, 7.673 }, { 1, 8192, 27.459 } } },
  { source = "zhinianqin/flash-attention-v100", arch = "v100", kernel = "FlashAttention-2 for Volta", pass = "fwd", unit = "ms",
    heads = 32, kv_heads = 8, head_dim = 128, causal = true, queries = 128, points = { { 1, 2048, 0.454 }, { 1, 4096, 0.806 } } },
  with(h200, { dtype = "bf16", points = { { 1, 2048, 0.217 }, { 1, 4096, 0.819 }, { 1, 8192, 3.182 } } }),
  with(h200, { dtype = "fp8_e4m3", points = { { 1, 2048, 0.158 }, { 1, 4096, 0.565 }, { 1, 8192, 2.149 } } }),

  { source = "pytorch.org, Flash-Decoding, 2023", arch = "a100_40", kernel = "Flash-Decoding", pass = "fwd", unit = "ms", heads = 16,
    kv_heads = 2, head_dim = 128, queries = 1, cache = "warm", points = {
      { 256, 256, 0.0634 }, { 128, 512, 0.0677 }, { 64, 1024, 0.0777 }, { 32, 2048, 0.0585 }, { 16, 4096, 0.057 },
      { 8, 8192, 0.0564 }, { 2, 32768, 0.0603 }, { 1, 131072, 0.1066 } } },
  with(gqa_h100, { kv_heads = 32, points = { { 1, 2048, 0.029 }, { 8, 512, 0.04 }, { 8, 8192, 0.395 } } }),
  with(gqa_h100, { kv_heads = 8, points = {
    { 1, 512, 0.014 }, { 1, 2048, 0.019 }, { 1, 32768, 0.072 }, { 8, 2048, 0.043 }, { 4, 2048, 0.029 }, { 16, 2048, 0.066 },
    { 64, 2048, 0.206 } } }),
  with(llama, { arch = "h100_sxm", peak_gbps = 3352, points = {
    { 1, 2048, 33.9 }, { 1, 4096, 45 }, { 1, 8192, 59 }, { 1, 16384, 71 }, { 1, 32768, 79.3 }, { 1, 65536, 84.5 } } }),
  with(llama, { arch = "h100_sxm", peak_gbps = 3352, kv_heads = 4, points = {
    { 1, 4096, 11 }, { 1, 16384, 28.4 }, { 1, 32768, 39.3 }, { 1, 65536, 53.3 } } }),
  with(llama, { arch = "rtx4090", peak_gbps = 1008, points = { { 1, 4096, 58.8 }, { 1, 8192, 61.5 }, { 1, 32768, 77.5 } } }),
}
