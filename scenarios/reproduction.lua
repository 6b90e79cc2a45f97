-- What others published about attention kernels, and what Foretile predicts for it: the tables of docs/reproduction.md.
--
--   foretile run --quiet scenarios/reproduction.lua                         (all: some minutes, the second time at once)
--   foretile run scenarios/reproduction.lua -- flash1 decode pages          (these sections alone)
--
-- Published figures stand here with their source; every other figure comes from a prediction. Nothing in the model was
-- chosen by them.

local ft = require "foretile"

-- --- asking and writing ---

local answers = {}

-- The prediction for `question`, kept: sections ask about the same kernels.
local function ask(question)
  local words = {}
  for key, value in pairs(question) do words[#words + 1] = key .. "=" .. tostring(value) end
  table.sort(words)
  local name = table.concat(words, " ")
  answers[name] = answers[name] or ft.predict(question)
  return answers[name]
end

-- A copy of `question` with what `more` says.
local function with(question, more)
  local both = {}
  for key, value in pairs(question) do both[key] = value end
  for key, value in pairs(more) do both[key] = value end
  return both
end

-- A Markdown table: `columns` are titles, each row a list of cells.
local function markdown(columns, rows)
  print("| " .. table.concat(columns, " | ") .. " |")
  print("|" .. ("---|"):rep(#columns))
  for _, row in ipairs(rows) do print("| " .. table.concat(row, " | ") .. " |") end
  print()
end

local function error_pct(simulated, published) return 100 * (simulated - published) / published end

local function signed(pct) return ("%+.1f %%"):format(pct) end

local function mean(list, of)
  local sum = 0
  for _, item in ipairs(list) do sum = sum + of(item) end
  return sum / #list
end

-- --- kernels as their authors launch them ---

local SM86_OR_89 = { rtx3090 = true, rtx4090 = true, l40s = true }

-- Tiles of FlashAttention-2: csrc/flash_attn/src/flash_fwd_launch_template.h and flash_bwd_launch_template.h.
local function flash2_fwd(row)
  local tile = { 128, 128, 4 }
  if row.head_dim == 128 then
    tile = not SM86_OR_89[row.arch] and { 128, 64, 4 } or row.causal and { 64, 64, 4 } or { 128, 32, 4 }
  elseif row.head_dim == 256 then
    tile = row.arch == "a100_80" and { 128, 64, 8 } or { 64, 64, 4 }
  end
  return { workload = "flash2_fwd", block_m = tile[1], block_n = tile[2], num_warps = tile[3], schedule = "interleaved",
           mma = "mma", copy = "auto" }
end

local function flash2_bwd(row)
  return { workload = "flash2_bwd", dq = "atomics", block_m = row.head_dim == 64 and 128 or 64, block_n = 128,
           num_warps = 8, mma = "mma" }
end

-- FlashAttention-3 as of its paper: hopper/flash_fwd_launch_template.h. Three consumers of 64 rows for head_dim 64, else
-- two; causal tiles are handed out by a counter.
local function flash3_fwd(row)
  local tile = ({ [64] = { 192, 128, 12 }, [128] = { 128, row.causal and 128 or 176, 8 }, [256] = { 128, 80, 8 } })[row.head_dim]
  return { workload = "flash3_fwd", block_m = tile[1], block_n = tile[2], num_warps = tile[3], persistent = true,
           tile_scheduler = row.causal and "dynamic" or "static" }
end

-- cuDNN's forward kernel for Hopper, as far as its launch tells (sim/results/measured_case.c).
local function cudnn_fwd() return { workload = "flash3_fwd", block_n = 128, num_stages = 3, persistent = true } end

-- PyTorch's memory-efficient attention (CUTLASS, cutlassF_f16_aligned_64x64_rf_sm75 and 32x128): K and V share a buffer.
local function efficient_fwd(row)
  local narrow = row.head_dim == 64
  return { workload = "flash2_fwd", block_m = narrow and 64 or 32, block_n = narrow and 64 or 128, num_warps = narrow and 4 or 2,
           num_stages = 1 }
end

local function standard(pass)
  return function(row)
    local small = row.arch == "t4"
    return { workload = "standard_attention", pass = pass, block_m = small and 64 or 128, block_n = small and 64 or 128,
             num_warps = row.head_dim == 64 and 4 or small and 4 or 8, padding_mask = row.padding and 1 or 0, dropout_p = row.dropout or 0 }
  end
end

local function plain(workload) return function() return { workload = workload } end end

-- A port of FlashAttention-2 to Volta, whose tiles its authors do not tell.
local function flash2_volta() return { workload = "flash2_fwd", block_m = 64, block_n = 64, num_warps = 4 } end

-- `nearest`: the program that was measured is not known, or does what no workload does; the workload that comes nearest.
local KERNELS = {
  ["FlashAttention-1"] = { fwd = plain "flash1_fwd", bwd = plain "flash1_bwd" },
  ["FlashAttention-2"] = { fwd = flash2_fwd, bwd = flash2_bwd },
  ["FlashAttention-2 for Volta"] = { fwd = flash2_volta, nearest = true },
  ["FlashAttention-3"] = { fwd = flash3_fwd },
  ["Flash-Decoding"] = { fwd = plain "flash_decode" },
  ["cuDNN"] = { fwd = cudnn_fwd },
  ["memory-efficient"] = { fwd = efficient_fwd, nearest = true },
  ["standard"] = { fwd = standard "fwd", bwd = standard "bwd", nearest = true },
}

-- --- published times ---

-- Points: { batch, heads, tokens, figure }, or { batch, tokens, figure } where `heads` is the series'. `queries` is left
-- out where there are as many as keys. Figures are ms, TFLOP/s, or the percentage of `peak_gbps` that K and V take.
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

local SERIES = {
  with(a100_fa1, { kernel = "FlashAttention-1", pass = "fwd", points = {
    { 16, 128, 0.08 }, { 16, 256, 0.09 }, { 16, 512, 0.17 }, { 16, 1024, 0.68 }, { 16, 2048, 2.28 } } }),
  with(a100_fa1, { kernel = "FlashAttention-1", pass = "bwd", points = {
    { 16, 128, 0.11 }, { 16, 256, 0.16 }, { 16, 512, 0.52 }, { 16, 1024, 1.62 }, { 16, 2048, 5.77 } } }),
  with(a100_fa1, { kernel = "FlashAttention-1", pass = "both", points = { { 16, 512, 0.73 }, { 16, 1024, 2.29 } } }),
  with(a100_fa1, { kernel = "standard", pass = "fwd", points = { { 16, 128, 0.21 }, { 16, 256, 0.22 } } }),
  with(a100_fa1, { kernel = "standard", pass = "bwd", points = {
    { 16, 128, 0.26 }, { 16, 256, 0.29 }, { 16, 512, 0.78 }, { 16, 1024, 2.44 } } }),
  with(a100_fa1, { kernel = "standard", pass = "both", points = { { 16, 512, 1.18 }, { 16, 1024, 3.67 }, { 16, 4096, 50.44 } } }),
  with(a100_fa1, { kernel = "standard", pass = "fwd", padding = true, points = {
    { 16, 512, 0.63 }, { 16, 1024, 1.93 }, { 16, 2048, 7.08 }, { 16, 4096, 27.45 }, { 16, 8192, 112.9 } } }),
  with(a100_fa1, { kernel = "standard", pass = "both", padding = true, points = {
    { 16, 256, 0.81 }, { 16, 1024, 7.23 }, { 16, 2048, 27.51 }, { 16, 4096, 107.58 } } }),
  with(a100_fa1, { kernel = "standard", pass = "fwd", dropout = 0.1, points = {
    { 16, 128, 0.26 }, { 16, 1024, 1.8 }, { 16, 2048, 6.56 }, { 16, 4096, 25.34 } } }),
  with(a100_fa1, { kernel = "standard", pass = "both", dropout = 0.1, points = {
    { 16, 256, 0.67 }, { 16, 1024, 4.82 }, { 16, 2048, 17.47 } } }),
  with(a100_fa1, { kernel = "standard", pass = "fwd", padding = true, dropout = 0.1, points = {
    { 16, 128, 0.36 }, { 16, 256, 0.34 }, { 16, 512, 0.78 }, { 16, 2048, 9.33 }, { 16, 4096, 36.33 } } }),
  with(a100_fa1, { kernel = "standard", pass = "both", padding = true, dropout = 0.1, points = {
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
  with(a100_fa2, { kernel = "standard", heads = 32, head_dim = 64, points = { { 8, 2048, 43 }, { 2, 8192, 46 } } }),
  with(a100_fa2, { kernel = "standard", heads = 16, head_dim = 128, points = {
    { 32, 512, 53 }, { 4, 4096, 79 }, { 2, 8192, 86 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, points = { { 32, 512, 215 }, { 2, 8192, 294 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, points = {
    { 32, 512, 248 }, { 16, 1024, 294 }, { 4, 4096, 326 }, { 2, 8192, 335 }, { 1, 16384, 338 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 32, head_dim = 64, causal = true, points = {
    { 16, 1024, 192 }, { 8, 2048, 232 }, { 4, 4096, 257 }, { 2, 8192, 273 } } }),
  with(h100_fa2, { kernel = "FlashAttention-2", heads = 16, head_dim = 128, causal = true, points = {
    { 32, 512, 163 }, { 8, 2048, 265 }, { 1, 16384, 328 } } }),
  with(h100_fa2, { kernel = "standard", heads = 32, head_dim = 64, points = { { 32, 512, 62 }, { 2, 8192, 87 } } }),
  with(h100_fa2, { kernel = "standard", heads = 16, head_dim = 128, points = {
    { 32, 512, 93 }, { 16, 1024, 120 }, { 4, 4096, 160 }, { 2, 8192, 167 } } }),

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
  with(h100_fa3, { kernel = "standard", heads = 32, head_dim = 64, points = {
    { 32, 512, 52 }, { 16, 1024, 63 }, { 8, 2048, 67 }, { 4, 4096, 72 }, { 2, 8192, 73 } } }),
  with(h100_fa3, { kernel = "standard", heads = 16, head_dim = 128, points = {
    { 32, 512, 74 }, { 16, 1024, 100 }, { 8, 2048, 119 }, { 4, 4096, 133 } } }),

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
  with(t4, { kernel = "standard", head_dim = 64, points = {
    { 1, 8, 128, 0.056 }, { 8, 32, 128, 0.413 }, { 8, 32, 256, 1.291 }, { 1, 8, 512, 0.192 }, { 8, 32, 512, 4.663 },
    { 2, 8, 2048, 4.815 }, { 1, 8, 4096, 13.717 } } }),
  with(t4, { kernel = "standard", head_dim = 128, points = {
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

-- --- published against simulated ---

local function flops(row, pass)
  local of_pass = ({ fwd = 1, bwd = 2.5, both = 3.5 })[pass]
  return of_pass * 4 * row.batch * row.heads * row.queries * row.keys * row.head_dim * (row.causal and 0.5 or 1)
end

local function published_ms(row)
  if row.unit == "TFLOP/s" then return flops(row, row.pass) / row.figure / 1e9 end
  if row.unit == "% of HBM" then
    local cache_bytes = 4 * row.batch * (row.kv_heads or row.heads) * row.keys * row.head_dim
    return cache_bytes / (row.peak_gbps * row.figure / 100) / 1e6
  end
  return row.figure
end

local function rows_of(series)
  local rows = {}
  for _, point in ipairs(series.points) do
    local row = with(series, { batch = point[1], heads = #point == 4 and point[2] or series.heads, keys = point[#point - 1],
                               figure = point[#point] })
    row.points, row.queries = nil, series.queries or row.keys
    row.published_ms = published_ms(row)
    rows[#rows + 1] = row
  end
  return rows
end

-- The question about a pass of a row.
local function question(row, pass)
  return with(KERNELS[row.kernel][pass](row), {
    arch = row.arch, batch = row.batch, heads = row.heads, kv_heads = row.kv_heads, seqlen_q = row.queries, seqlen_kv = row.keys,
    head_dim = row.head_dim, dtype = row.dtype, clock_mhz = row.clock_mhz, conditions = "stream", cache = row.cache,
    causal = row.queries > 1 and row.causal or nil,
  })
end

-- Time in ms of what a row measured, or nil and the reason.
local function simulated_ms(row)
  local sum = 0
  for _, pass in ipairs(row.pass == "both" and { "fwd", "bwd" } or { row.pass }) do
    local r = ask(question(row, pass))
    if not r.feasible then return nil, r.reason end
    sum = sum + r.time_ms
  end
  return sum
end

local PASSES = { fwd = "forward", bwd = "backward", both = "both" }

local function kernel_name(row)
  return row.kernel .. (row.padding and ", padding" or "") .. (row.dropout and ", dropout" or "") ..
         (row.dtype == "fp8_e4m3" and ", fp8" or "")
end

local function shape(row)
  local heads = row.kv_heads and row.kv_heads ~= row.heads and row.heads .. "/" .. row.kv_heads or row.heads
  local tokens = row.queries == row.keys and row.keys or row.queries .. " x " .. row.keys
  return ("%d x %s, %s, d %d%s"):format(row.batch, heads, tokens, row.head_dim, row.causal and ", causal" or "")
end

-- Errors by kernel and GPU.
local function print_summary(rows)
  local groups, order = {}, {}
  for _, row in ipairs(rows) do
    local name = row.kernel .. " | " .. row.arch .. " | " .. PASSES[row.pass]
    if not groups[name] then
      groups[name] = {}
      order[#order + 1] = name
    end
    table.insert(groups[name], row)
  end
  table.sort(order)
  local lines = {}
  for _, name in ipairs(order) do
    local group = groups[name]
    lines[#lines + 1] = { name, #group, ("%.1f %%"):format(mean(group, function(r) return math.abs(r.error) end)),
                          signed(mean(group, function(r) return r.error end)) }
  end
  markdown({ "kernel", "GPU", "pass", "rows", "mean absolute error", "mean error" }, lines)
end

local function print_mean(title, rows, counts)
  local chosen = {}
  for _, row in ipairs(rows) do
    if counts(row) then chosen[#chosen + 1] = math.abs(row.error) end
  end
  print(("- %s: %d rows, mean absolute error %.1f %%."):format(title, #chosen, mean(chosen, function(e) return e end)))
end

local function print_times()
  local rows, missing = {}, {}
  for _, series in ipairs(SERIES) do
    for _, row in ipairs(rows_of(series)) do
      local ms, reason = simulated_ms(row)
      row.simulated_ms = ms
      if ms then
        row.error = error_pct(ms, row.published_ms)
        rows[#rows + 1] = row
      else
        missing[#missing + 1] = ("%s, %s, %s: %s"):format(kernel_name(row), row.arch, shape(row), reason)
      end
    end
  end
  print("### Times")
  print()
  print_mean("All rows", rows, function() return true end)
  print_mean("Kernels whose program is known (FlashAttention, Flash-Decoding, cuDNN)", rows,
             function(row) return not KERNELS[row.kernel].nearest end)
  print_mean("Of these, with 512 keys or more", rows,
             function(row) return not KERNELS[row.kernel].nearest and row.keys >= 512 end)
  print_mean("Kernels of PyTorch and ports to older GPUs, by the workload that comes nearest", rows,
             function(row) return KERNELS[row.kernel].nearest end)
  print()
  print_summary(rows)
  table.sort(rows, function(a, b) return math.abs(a.error) > math.abs(b.error) end)
  local lines = {}
  for _, row in ipairs(rows) do
    lines[#lines + 1] = { signed(row.error), kernel_name(row), row.arch, PASSES[row.pass], shape(row), ("%.3g"):format(row.published_ms),
                          ("%.3g"):format(row.simulated_ms), row.source }
  end
  print("All rows, worst first. Shape: batch x heads (query/KV), tokens, head_dim.")
  print()
  markdown({ "error", "kernel", "GPU", "pass", "shape", "published, ms", "simulated, ms", "source" }, lines)
  for _, line in ipairs(missing) do print("Not simulated: " .. line) end
end

-- --- FlashAttention-1's table ---

-- Figure 2 (left) in two versions of arXiv:2205.14135: A100 40 GB, forward and backward.
local FIGURE_2 = { arch = "a100_40", batch = 64, heads = 16, seqlen = 1024, head_dim = 64 }

-- HBM bytes in GB and time in ms of both passes, or nil where one cannot run.
local function both_passes(fwd, bwd)
  local a, b = ask(with(FIGURE_2, fwd)), ask(with(FIGURE_2, bwd))
  if not (a.feasible and b.feasible) then return nil end
  return (a.hbm + b.hbm) / 1e9, a.time_ms + b.time_ms
end

local function print_flash1()
  local unfused = standard("fwd")({ arch = FIGURE_2.arch, head_dim = 64 })
  local cases = {
    { "standard, padding mask, dropout 0.1", 40.3, 41.7, with(unfused, { padding_mask = 1, dropout_p = 0.1 }),
      with(unfused, { pass = "bwd", padding_mask = 1, dropout_p = 0.1 }) },
    { "standard, padding mask", 35.3, 35.1, with(unfused, { padding_mask = 1 }), with(unfused, { pass = "bwd", padding_mask = 1 }) },
  }
  for _, block_n in ipairs { 256, 384 } do
    local fwd, bwd = { workload = "flash1_fwd", block_n = block_n }, { workload = "flash1_bwd", block_n = block_n }
    local name = ("FlashAttention-1, block_n %d"):format(block_n)
    cases[#cases + 1] = { name .. ", against the version with dropout", 4.4, 7.3, fwd, bwd }
    cases[#cases + 1] = { name .. ", against the version with a padding mask", 4.4, 11.7, fwd, bwd }
  end
  local lines = {}
  for _, case in ipairs(cases) do
    local gb, ms = both_passes(case[4], case[5])
    lines[#lines + 1] = gb and { case[1], case[2], ("%.1f"):format(gb), signed(error_pct(gb, case[2])), case[3], ("%.1f"):format(ms),
                                 signed(error_pct(ms, case[3])) } or { case[1], case[2], "infeasible", "", case[3], "infeasible", "" }
  end
  print("### FlashAttention-1, figure 2")
  print()
  print("A100 40 GB, batch 64, 16 heads, 1024 tokens, head_dim 64, fp16, forward and backward. `flash1_*` has neither mask nor dropout.")
  print()
  markdown({ "kernel", "HBM published, GB", "simulated", "error", "published, ms", "simulated", "error" }, lines)
end

-- --- HBM bytes ---

local function print_bytes()
  local prefill = { arch = "h100_sxm", workload = "flash2_fwd", batch = 4, heads = 32, seqlen = 4096, head_dim = 128, dtype = "bf16",
                    block_m = 128, block_n = 64, num_warps = 4, schedule = "interleaved", mma = "mma" }
  local split = { arch = "h100_sxm", workload = "flash_decode", heads = 32, seqlen_q = 1, seqlen_kv = 32768, head_dim = 128, dtype = "bf16" }
  local gqa = { arch = "h200", workload = "flash3_fwd", heads = 32, kv_heads = 8, seqlen = 4096, head_dim = 128, causal = true,
                block_n = 128, persistent = true }
  local lab, tileops = "tfan2437/flash-attention-lab, ncu", "TileOPs #871, ncu"
  local cases = {
    { "FlashAttention-2, 128 x 64, H100", "read", 406.6, prefill, "hbm_read", lab },
    { "FlashAttention-2, 128 x 64, H100", "written", 193.1, prefill, "hbm_write", lab },
    { "FlashAttention-2 split-KV, 32 x 32768, H100", "both", 540, split, "hbm", lab },
    { "persistent GQA forward, causal, H200", "read", 57.7, gqa, "hbm_read", tileops },
    { "persistent GQA forward, causal, H200", "written", 21.0, gqa, "hbm_write", tileops },
  }
  local lines, errors = {}, {}
  for _, case in ipairs(cases) do
    local mb = ask(case[4])[case[5]] / 1e6
    errors[#errors + 1] = math.abs(error_pct(mb, case[3]))
    lines[#lines + 1] = { case[1], case[2], case[3], ("%.1f"):format(mb), signed(error_pct(mb, case[3])), case[6] }
  end
  print("### HBM bytes")
  print()
  print(("Mean absolute error %.1f %%."):format(mean(errors, function(e) return e end)))
  print()
  markdown({ "kernel", "bytes", "published, MB", "simulated", "error", "source" }, lines)
end

-- --- shares of the peak ---

local A100_PEAK_TFLOPS = 312

-- The lowest and the highest rate over head_dim 64 and 128 and lengths of `lengths`, 16384 tokens and 2048 columns in all.
local function range_of_peak(kernel, pass, lengths)
  local low, high = math.huge, 0
  for head_dim, tokens in pairs(lengths) do
    for _, length in ipairs(tokens) do
      local row = { arch = "a100_80", kernel = kernel, batch = 16384 // length, heads = 2048 // head_dim, queries = length, keys = length,
                    head_dim = head_dim }
      local r = ask(question(row, pass))
      local pct = 100 * flops(row, pass) / r.time_ms / 1e9 / A100_PEAK_TFLOPS
      low, high = math.min(low, pct), math.max(high, pct)
    end
  end
  return low, high
end

local function print_peak()
  local all = { [64] = { 512, 1024, 2048, 4096, 8192, 16384 }, [128] = { 512, 1024, 2048, 4096, 8192, 16384 } }
  local eight_blocks = { [64] = { 512, 1024, 2048 }, [128] = { 512, 1024 } }
  local lines = {}
  for _, case in ipairs {
    { "FlashAttention-2", "fwd", "73 at best", all }, { "FlashAttention-2", "bwd", "63 at best", all },
    { "FlashAttention-1", "fwd", "30 to 50", eight_blocks }, { "FlashAttention-1", "bwd", "25 to 35", eight_blocks },
  } do
    local low, high = range_of_peak(case[1], case[2], case[4])
    lines[#lines + 1] = { case[1], PASSES[case[2]], case[3], ("%.0f to %.0f"):format(low, high) }
  end
  print("### Shares of the A100's 312 TFLOP/s")
  print()
  print("arXiv:2307.08691; simulated over 16384 tokens in sequences of 512 and more, head_dim 64 and 128, no mask.")
  print()
  markdown({ "kernel", "pass", "published, %", "simulated, %" }, lines)
end

-- --- FlashAttention-3 and its parts ---

local function print_flash3()
  local long = { arch = "h100_sxm", kernel = "FlashAttention-3", batch = 1, heads = 16, queries = 16384, keys = 16384, head_dim = 128 }
  local ablation = with(long, { batch = 4, queries = 8448, keys = 8448 })
  local whole = question(ablation, "fwd")
  local without_overlap, without_roles = with(whole, { overlap = false }), with(whole, { schedule = "stages" })
  local held = { clock_mhz = 1830 }
  local neither = { arch = "h100_sxm", workload = "flash2_fwd", batch = 4, heads = 16, seqlen = 8448, head_dim = 128, conditions = "stream",
                    clock_mhz = 1830, mma = "wgmma", block_m = 128, block_n = 128, num_warps = 8 }
  local cases = {
    { "16384 tokens, 1830 MHz", 648, with(question(long, "fwd"), { clock_mhz = 1830 }) },
    { "16384 tokens, the clock that the power limit allows", 648, question(long, "fwd") },
    { "4 x 8448 tokens, whole, 1830 MHz", 661, with(whole, held) },
    { "without overlap of products and softmax", 582, with(without_overlap, held) },
    { "without warp specialisation", 570, with(without_roles, held) },
    { "neither: `flash2_fwd` with wgmma and TMA, 128 x 128", nil, neither },
    { "4 x 8448 tokens, whole, the clock that the power limit allows", 661, whole },
    { "without overlap of products and softmax", 582, without_overlap },
    { "without warp specialisation", 570, without_roles },
  }
  local lines = {}
  for _, case in ipairs(cases) do
    local r = ask(case[3])
    local line = { case[1], case[2] or "", r.reason or ("%.0f"):format(r.tflops), "", "" }
    if r.feasible then
      line[4], line[5] = case[2] and signed(error_pct(r.tflops, case[2])) or "", ("%.0f"):format(r.sm_clock)
    end
    lines[#lines + 1] = line
  end
  print("### FlashAttention-3 on the H100")
  print()
  print("arXiv:2407.08608, figure 5 and table 2: head_dim 128, 16 heads, fp16, forward, no mask. cuDNN on the H200 is among the times below.")
  print()
  markdown({ "kernel", "published, TFLOP/s", "simulated", "error", "SM clock, MHz" }, lines)
end

-- --- decoding ---

local function print_decode()
  local shapes = { -- batch, keys, published us: unsplit, split
    { 256, 256, 390.5, 63.4 }, { 128, 512, 366.3, 67.7 }, { 64, 1024, 364.8, 77.7 }, { 32, 2048, 352.0, 58.5 },
    { 16, 4096, 401.7, 57.0 }, { 8, 8192, 529.2, 56.4 }, { 2, 32768, 1156.1, 60.3 }, { 1, 131072, 4592.2, 106.6 },
  }
  local lines = {}
  local unsplit_tile = { workload = "flash2_fwd", block_m = 128, block_n = 64, num_warps = 4, schedule = "interleaved" }
  for _, s in ipairs(shapes) do
    local point = { arch = "a100_40", batch = s[1], heads = 16, kv_heads = 2, head_dim = 128, seqlen_q = 1, seqlen_kv = s[2],
                    conditions = "stream", cache = "warm" }
    local unsplit, split = ask(with(point, unsplit_tile)), ask(with(point, { workload = "flash_decode" }))
    lines[#lines + 1] = { ("%d x %d"):format(s[1], s[2]), s[4], ("%.1f"):format(split.time_us), signed(error_pct(split.time_us, s[4])),
                          s[3], ("%.1f"):format(unsplit.time_us), signed(error_pct(unsplit.time_us, s[3])), ("%.1f"):format(s[3] / s[4]),
                          ("%.1f"):format(unsplit.time_us / split.time_us) }
  end
  local one = ask(with(unsplit_tile, { arch = "a100_40", heads = 1, head_dim = 128, seqlen_q = 1, seqlen_kv = 131072 }))
  print("### Flash-Decoding")
  print()
  print("pytorch.org, 2023: A100, 16 query and 2 KV heads, head_dim 128, 67 MB of keys and values in each row (the last 134).")
  print()
  markdown({ "batch x keys", "split, us: published", "simulated", "error", "unsplit, us: published", "simulated", "error",
             "times slower: published", "simulated" }, lines)
  print(("Without a split, one sequence and one head keep %.0f of %d SMs busy: %.1f %% of the GPU (published: under 1 %%), and HBM is used at %.1f %%.")
    :format(one.grid, ft.arch("a100_40")["chip.num_sms"], 100 * one["sm__cycles_active.avg"] / one["sm__cycles_elapsed.max"],
            one["dram__throughput.avg.pct_of_peak_sustained_elapsed"]))
  print()
end

local function print_sparq()
  local lines = {}
  -- batch, keys, published ms: dense (vanilla torch), SparQ (Triton, both copies of K).
  for _, s in ipairs { { 64, 4096, 3.13245, 1.03762 }, { 64, 2048, 1.59519, 0.78434 }, { 1, 16384, 0.25671, 0.68397 },
                       { 1, 2048, 0.09454, 0.56973 } } do
    local point = { arch = "a100_40", batch = s[1], heads = 32, head_dim = 128, seqlen_kv = s[2], conditions = "stream", cache = "warm" }
    local dense = ask(with(point, { workload = "flash_decode", seqlen_q = 1 }))
    local sparq = ask(with(point, { workload = "sparq_decode", sparq_r = 32, sparq_k = 128 }))
    lines[#lines + 1] = { ("%d x %d"):format(s[1], s[2]), s[3], ("%.3f"):format(dense.time_ms), s[4], ("%.3f"):format(sparq.time_ms),
                          ("%.2f"):format(s[3] / s[4]), ("%.2f"):format(dense.time_ms / sparq.time_ms) }
  end
  print("### SparQ attention, r 32, k 128")
  print()
  print("graphcore-research/llm-inference-research, A100 40 GB, 32 heads, head_dim 128, fp16. Published times are calls from Python, which cost 10 to 20 us and each launch more.")
  print()
  markdown({ "batch x keys", "dense, ms: published", "simulated", "SparQ, ms: published", "simulated", "gain: published", "simulated" }, lines)
end

-- --- memory of a cache in pages ---

local OPT_13B = { layers = 40, heads = 40, head_dim = 128 }

local function pages(more)
  return ask(with({ arch = "a100_40", workload = "paged_decode", heads = OPT_13B.heads, head_dim = OPT_13B.head_dim, seqlen_q = 1,
                    page_size = 16, page_layout = "scattered", layout = "bshd" }, more))
end

local function print_pages()
  local requests = {
    "37:1290:412:2005:188:733:96:1544:301:64:878:1170:523:240:1821:660",
    "64:96:133:178:221:264:310:362:415:471:534:605:689:795:945:1902",
  }
  local lines = {}
  for _, lengths in ipairs(requests) do
    local r = pages { lengths = lengths, seqlen_kv = 2048 }
    local used = 2048 * (1 - r["foretile__kv_cache_contiguous_waste"] / 100)
    lines[#lines + 1] = { ("a buffer of 2048 tokens a request; 16 requests, %.0f tokens in the mean"):format(used), "60 to 80 %",
                          ("%.1f %%"):format(r["foretile__kv_cache_contiguous_waste"]) }
    lines[#lines + 1] = { "pages of 16 tokens, the same", "under 4 %", ("%.1f %%"):format(r["foretile__kv_cache_waste"]) }
  end
  local own = pages { lengths = "78x6" }["foretile__kv_cache_bytes"]
  for _, prefix in ipairs { 19, 39, 52, 65 } do
    local shared = pages { lengths = "78x6", page_layout = "shared_prefix", prefix = prefix }["foretile__kv_cache_bytes"]
    lines[#lines + 1] = { ("saved by sharing: six beams of 78 tokens, the first %d in common"):format(prefix), "55 % at best",
                          ("%.1f %%"):format(100 * (own - shared) / own) }
  end
  local token = pages { lengths = "1600" }["foretile__kv_cache_bytes"] / 1600 * OPT_13B.layers
  lines[#lines + 1] = { "bytes of a token, 40 layers of 40 heads of 128 (13 to 14 billion parameters), fp16", "0.7 to 1 MB",
                        ("%.2f MB"):format(token / 1e6) }
  print("### PagedAttention")
  print()
  print("arXiv:2309.06180. 19 and 78 tokens are the mean prompt and the mean prompt with its answer of the paper's Alpaca trace.")
  print()
  markdown({ "", "published", "simulated" }, lines)
end

-- --- reuse in L2 ---

local function print_reuse()
  local lines = {}
  for _, case in ipairs { { 2, 50.2 }, { 8, 87.0 }, { 32, 96.6 } } do
    local requests, line = case[1], { case[1], ("%.1f"):format(100 * (case[1] - 1) / case[1]), case[2] }
    for _, arch in ipairs { "rtx4090", "a100_80", "h200" } do
      local r = ask { arch = arch, workload = "paged_decode", heads = 16, kv_heads = 8, head_dim = 128, seqlen_q = 1, page_size = 16,
                      lengths = "8192x" .. requests, page_layout = "shared_prefix", prefix = 8191 }
      line[#line + 1] = ("%.1f"):format(r.kernels[1].metrics["lts__t_sector_hit_rate.pct"])
    end
    lines[#lines + 1] = line
  end
  print("### Hit rate of L2 where R requests read one cache")
  print()
  print("Published: FlashInfer on an RTX 5060 Ti, which has no model here. 16 query and 8 KV heads, 8192 tokens, cold.")
  print()
  markdown({ "R", "(R - 1) / R, %", "published", "rtx4090", "a100_80", "h200" }, lines)
end

-- --- rooflines ---

local CHIPS = { "v100", "t4", "rtx2080ti", "a100_40", "a100_80", "rtx3090", "rtx4090", "l40s", "h100_pcie", "h100_sxm", "h200" }

local prefill = { heads = 16, seqlen = 4096, head_dim = 128 }
local flash1 = { batch = 8, heads = 16, seqlen = 1024, head_dim = 64 }
local step = { batch = 8, heads = 32, kv_heads = 8, seqlen_kv = 8192, head_dim = 128 }
local product = { m = 4096, n = 4096, k = 4096 }
-- A question, and tiles for chips on which the default ones do not fit.
local WORKLOADS = {
  { "standard_attention", with(prefill, { block_m = 64, block_n = 64 }), {} },
  { "flash1_fwd", flash1, { block_n = 128 } }, { "flash1_bwd", flash1, { block_n = 128, num_warps = 4 } },
  { "flash2_fwd", prefill, { block_m = 64, num_stages = 1 } }, { "flash2_bwd", prefill, { block_n = 64, num_stages = 1 } },
  { "flash3_fwd", prefill, {} }, { "flash_decode", with(step, { seqlen_q = 1 }), { block_n = 32, num_warps = 2 } },
  { "paged_decode", with(step, { seqlen_q = 1, page_size = 16 }), { block_n = 32, num_warps = 2 } },
  { "tree_decode", with(step, { tree = "medusa" }), { block_n = 32, num_warps = 2 } }, { "sparq_decode", step, { num_warps = 2 } },
  { "matmul_tiled", product, {} }, { "glu", product, {} },
}

local function peak_tflops(gpu)
  return 2 * gpu["tensor.peak_fma_per_cycle"] * gpu["chip.num_sms"] * gpu["clock.sm_max_khz"] / 1e9
end

local function peak_gbps(gpu)
  return gpu["dram.num_channels"] * gpu["dram.burst_bytes"] / gpu["dram.burst_cycles"] * gpu["clock.dram_khz"] / 1e6
end

-- The answer for a chip, with the default tiles where they fit.
local function fitting(case, chip)
  local question = with(case[2], { arch = chip, workload = case[1] })
  local r = ask(question)
  return r.feasible and r or ask(with(question, case[3]))
end

-- The roofline with the least bytes: tensors once, or what was read where that is less (SparQ reads a part of them).
local function attainable_tflops(gpu, r)
  local bytes = math.min(r.least_read, r.hbm_read) + r.least_write
  return math.min(peak_tflops(gpu), r["foretile__model_flops.sum"] / bytes * peak_gbps(gpu) / 1000)
end

local function print_roofline()
  local columns, lines, reasons = { "workload" }, { { "ridge point, FLOP a byte" } }, {}
  for _, chip in ipairs(CHIPS) do
    local gpu = ft.arch(chip)
    columns[#columns + 1] = chip
    table.insert(lines[1], ("%.0f"):format(1000 * peak_tflops(gpu) / peak_gbps(gpu)))
  end
  for _, case in ipairs(WORKLOADS) do
    local line = { "`" .. case[1] .. "`" }
    for _, chip in ipairs(CHIPS) do
      local r = fitting(case, chip)
      line[#line + 1] = r.feasible and ("%.3g (%.3g)"):format(attainable_tflops(ft.arch(chip), r), r.tflops) or "-"
      if not r.feasible then reasons[#reasons + 1] = ("`%s` on %s: %s."):format(case[1], chip, r.reason) end
    end
    lines[#lines + 1] = line
  end
  print("### Rooflines")
  print()
  print("Attainable TFLOP/s, and simulated in brackets, with the default tiles or smaller ones where they do not fit.")
  print("Not run (-):")
  print()
  for _, reason in ipairs(reasons) do print("- " .. reason) end
  print()
  markdown(columns, lines)
end

-- --- all of it ---

local SECTIONS = {
  { "flash1", print_flash1 }, { "bytes", print_bytes }, { "peak", print_peak }, { "flash3", print_flash3 }, { "decode", print_decode },
  { "sparq", print_sparq }, { "pages", print_pages }, { "reuse", print_reuse }, { "roofline", print_roofline }, { "times", print_times },
}

local wanted, known = {}, {}
for _, section in ipairs(SECTIONS) do known[#known + 1] = section[1] end
for _, name in ipairs(arg) do wanted[name] = true end
for _, name in ipairs(arg) do
  if not (" " .. table.concat(known, " ") .. " "):find(" " .. name .. " ", 1, true) then
    error(("section %s: there are %s"):format(name, table.concat(known, ", ")))
  end
end
for _, section in ipairs(SECTIONS) do
  if #arg == 0 or wanted[section[1]] then section[2]() end
end
