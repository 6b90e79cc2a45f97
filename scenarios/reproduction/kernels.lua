-- Kernels as their authors launch them.

local with = require "reproduction.ask".with

local SM86_OR_89 = { rtx3090 = true, rtx4090 = true, l40s = true }

-- FlashAttention-1's library: csrc/flash_attn/src/fmha_fprop_kernel_1xN.h, fmha_fprop_fp16_kernel.sm80.cu and, of version
-- 1.0, fmha_fwd_launch_template.h. Its kernels have packed sequences alone (cu_seqlens), so that every step masks, in
-- tensors of tokens before heads; tiles come through registers.
local function flash1(row, kernel)
  local lengths = {}
  for i = 1, row.batch do lengths[i] = row.keys end
  return with(kernel, { block_n = row.head_dim == 64 and row.keys >= 256 and 256 or 128, lengths = table.concat(lengths, ":"),
                        layout = "bshd", copy = "ldg" })
end

-- num_splits_heuristic_fwd of version 1.0, which the authors of FlashAttention-2 compare with: the fewest CTAs a head whose
-- waves are filled to 95 % of the best number's, at most 30; two fit on an SM.
local function flash1_splits(row)
  if row.arch ~= "a100_80" then return 1 end
  local SLOTS, MOST, ENOUGH = 2 * 108, 30, 0.95
  local function filled(splits)
    local waves = row.batch * row.heads * splits / SLOTS
    return waves / math.ceil(waves)
  end
  local best = 0
  for splits = 1, MOST do best = math.max(best, filled(splits)) end
  for splits = 1, MOST do
    if filled(splits) > ENOUGH * best then return splits end
  end
end

local function flash1_fwd(row)
  return flash1(row, { workload = "flash1_fwd", kv_operand = "registers", splits = flash1_splits(row) })
end

local function flash1_bwd(row) return flash1(row, { workload = "flash1_bwd" }) end

-- Tiles of FlashAttention-2: csrc/flash_attn/src/flash_fwd_launch_template.h and flash_bwd_launch_template.h; softmax.h looks
-- for rows without a key in every step (scale_apply_exp2), gemm and gemm_rs of utils.h have two sets of fragments; setup.py
-- passes --use_fast_math.
local function flash2_fwd(row)
  local tile = { 128, 128, 4 }
  if row.head_dim == 128 then
    tile = not SM86_OR_89[row.arch] and { 128, 64, 4 } or row.causal and { 64, 64, 4 } or { 128, 32, 4 }
  elseif row.head_dim == 256 then
    tile = row.arch == "a100_80" and { 128, 64, 8 } or { 64, 64, 4 }
  end
  return { workload = "flash2_fwd", block_m = tile[1], block_n = tile[2], num_warps = tile[3], schedule = "interleaved",
           mma = "mma", copy = "auto", code = "buffered", scaling = "exponent", exp2 = "ftz" }
end

local function flash2_bwd(row)
  return { workload = "flash2_bwd", dq = "atomics", block_m = row.head_dim == 64 and 128 or 64, block_n = 128,
           num_warps = 8, mma = "mma", code = "lean", scaling = "exponent", exp2 = "ftz" }
end

-- FlashAttention-3 as of its paper: hopper/flash_fwd_launch_template.h. Three consumers of 64 rows for head_dim 64, else
-- two; causal tiles are handed out by a counter; softmax.h is FlashAttention-2's.
local function flash3_fwd(row)
  local tile = ({ [64] = { 192, 128, 12 }, [128] = { 128, row.causal and 128 or 176, 8 }, [256] = { 128, 80, 8 } })[row.head_dim]
  return { workload = "flash3_fwd", block_m = tile[1], block_n = tile[2], num_warps = tile[3], persistent = true,
           tile_scheduler = row.causal and "dynamic" or "static", code = "lean", scaling = "exponent", row_sums = "end",
           guard = "always" }
end

-- cuDNN's forward kernel for Hopper, as its SASS tells (docs/workload_flash3_fwd.md); that of fp8 was not read.
local function cudnn_fwd(row)
  if row.dtype == "fp8_e4m3" then
    return { workload = "flash3_fwd", block_n = 128, num_stages = 3, persistent = true, tile_scheduler = "dynamic_late", code = "lean",
             scaling = "exponent", row_sums = "end" }
  end
  return { workload = "flash3_fwd", block_n = 128, num_stages = 2, q_stages = 2, turns = "softmax", code = "lean", scaling = "apart",
           row_sums = "end", guard = "always", persistent = true, tile_scheduler = "dynamic_late" }
end

-- PyTorch's memory-efficient attention: cutlassF_f16_aligned_64x64_rf_sm75 and 32x128
-- (aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernels/cutlassF.h).
local function efficient_fwd(row)
  local narrow = row.head_dim == 64
  return { workload = "flash2_fwd", block_m = narrow and 64 or 32, block_n = narrow and 64 or 128, schedule = "back_to_back" }
end

local function standard(pass)
  return function(row)
    local small = row.arch == "t4"
    return { workload = "standard_attention", pass = pass, block_m = small and 64 or 128, block_n = small and 64 or 128,
             num_warps = row.head_dim == 64 and 4 or small and 4 or 8, padding_mask = row.padding and 1 or 0, dropout_p = row.dropout or 0 }
  end
end

-- The programs that FlashAttention's benchmarks time as PyTorch's (benchmarks/benchmark_flash_attention.py of its versions
-- 0.2 and 2), on packed tensors: tokens before heads.
local function eager(program)
  local function of_pass(pass)
    return function(row)
      return with(standard(pass)(row), { elementwise = program, layout = "bshd" })
    end
  end
  return { fwd = of_pass "fwd", bwd = of_pass "bwd", framework = true }
end

-- softmax(scale * (q @ k.T)) @ v of PyTorch 2.11: torch_unfused of that repository's bench/bench.py.
local function matmul(row) return with(standard "fwd"(row), { elementwise = "eager_matmul" }) end

local function plain(workload) return function() return { workload = workload } end end

-- A port of FlashAttention-2 to Volta as vLLM calls it with a paged cache: run_mha_fwd_splitkv_dispatch of its
-- flash_fwd_launch_template.h (a later version has 128 queries and 8 warps), softmax.h as FlashAttention-2's. It reads
-- fragments from shared memory element by element, which no workload does (docs/reproduction.md).
local function flash2_volta()
  return { workload = "flash2_fwd", block_m = 64, block_n = 64, num_warps = 4, schedule = "interleaved", copy = "ldg", layout = "bshd",
           scaling = "exponent", exp2 = "ftz", guard = "always" }
end

-- `nearest`: the program that was measured is not known, or does what no workload does; the workload that comes nearest.
-- `framework`: launches from Python, of which the kernels were watched in a later version of PyTorch.
local KERNELS = {
  ["FlashAttention-1"] = { fwd = flash1_fwd, bwd = flash1_bwd },
  ["FlashAttention-2"] = { fwd = flash2_fwd, bwd = flash2_bwd },
  ["FlashAttention-2 for Volta"] = { fwd = flash2_volta, nearest = true },
  ["FlashAttention-3"] = { fwd = flash3_fwd },
  ["Flash-Decoding"] = { fwd = plain "flash_decode" },
  ["cuDNN"] = { fwd = cudnn_fwd },
  ["memory-efficient"] = { fwd = efficient_fwd },
  ["PyTorch, einsum"] = eager "eager_einsum",
  ["PyTorch, baddbmm"] = eager "eager_baddbmm",
  ["PyTorch, matmul"] = { fwd = matmul, framework = true },
}

return { KERNELS = KERNELS, standard = standard }
