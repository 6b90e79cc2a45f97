-- Which block sizes should a FlashAttention-2 kernel use for the prefill attention of Llama-3-8B?
-- 32 query heads share 8 key/value heads, head_dim 128, causal, 8192 tokens, one sequence.
--
--   ./run                                     runs this file
--   foretile run scenarios/quickstart.lua     the same, once built
--
-- scenarios/block_sizes.lua is a simpler one to copy.

local ft = require "foretile"

-- What is asked on every GPU.
local attention = {
  workload = "flash2_fwd",
  batch = 1, heads = 32, kv_heads = 8, seqlen = 8192, head_dim = 128,
  dtype = "fp16", causal = true,
}

-- What is tried on each GPU: what its shared memory and its instructions suggest.
local candidates = {
  { arch = "h200",    mma = { "wgmma", "mma" }, block_m = { 64, 128 }, block_n = { 64, 128 }, num_warps = { 4, 8 } },
  { arch = "a100_80", num_stages = { 1, 2 },    block_m = { 64, 128 }, block_n = { 64, 128 }, num_warps = { 4, 8 } },
  { arch = "rtx4090", num_stages = { 1, 2 },    block_m = { 64, 128 }, block_n = { 32, 64 },  num_warps = { 4, 8 } },
  { arch = "v100",    num_stages = { 1, 2 },    block_m = { 64, 128 }, block_n = { 32, 64 },  num_warps = { 4, 8 } },
}

-- A warp computes at least 16 rows of the tile; there is no need to ask about fewer.
local function has_rows_for_each_warp(p) return p.block_m // p.num_warps >= 16 end

local columns = {
  "block_m", "block_n", "num_warps", "num_stages", "mma", "copy",
  "time_us", "tflops", "hbm_read", "hbm_write", "l2_hit", "occupancy", "bottleneck",
}

for _, try in ipairs(candidates) do
  local question = { where = has_rows_for_each_warp }
  for key, value in pairs(attention) do question[key] = value end
  for key, value in pairs(try) do question[key] = value end

  local results = ft.explore(question)
  local gpu = ft.arch(try.arch)
  print(string.format("%s (%s, %d SMs): %d block sizes, %d feasible", gpu.name, gpu.die, gpu["chip.num_sms"],
                      #results, #results:feasible()))
  print(results:feasible():rank("time"):table(columns))
  for _, r in results:infeasible():each() do
    print(string.format("infeasible: block_m=%d block_n=%d num_warps=%d num_stages=%d: %s", r.block_m, r.block_n,
                        r.num_warps, r.num_stages, r.reason))
  end
  print("Why: " .. results:why())
  print()
end
