-- A scenario to copy: which block sizes for MY attention on MY GPU?
--
--   foretile run scenarios/block_sizes.lua
--   foretile run scenarios/block_sizes.lua -- a100_80      (what stands behind -- is in the table `arg`)
--
-- `foretile workload show flash2_fwd` lists every parameter, `foretile arch list` every GPU.

local ft = require "foretile"

-- 1. The GPU. A name, a file of your own ("my_gpu.lua"), or a changed one:
--      local gpu = ft.arch("h200"){ l2 = { size_bytes = 123207680 } }     -- twice the L2
local gpu = ft.arch(arg[1] or "h200")

-- 2. The question. A parameter with a list is tried with every value of the list; ft.explore tries all combinations.
--    What is not named keeps its default. `where` leaves out combinations before any work is done on them.
local results = ft.explore {
  arch = gpu,
  workload = "flash2_fwd",
  heads = 16, seqlen = 4096, head_dim = 64, causal = true,
  block_m = { 64, 128 },
  block_n = { 64, 128 },
  num_warps = { 4, 8 },
  where = function(p) return p.block_m // p.num_warps >= 16 end,
}

-- 3. The answer. A result set can be ranked ("time", "hbm", or any metric), cut, filtered, and shown.
local ranked = results:feasible():rank("time")
print(ranked:table { "block_m", "block_n", "num_warps", "mma", "time_us", "tflops", "hbm_read", "l2_hit", "occupancy" })
print(ranked:plot { y = "tflops", width = 40 })
print("Why: " .. ranked:why())

-- 4. One result has every metric, by Nsight Compute's name or by a short one.
local best = ranked[1]
if best then
  print(string.format("best: block_m=%d block_n=%d, %.1f us, %d bytes read from HBM", best.block_m, best.block_n,
                      best.time_us, best["dram__bytes_read.sum"]))
end

-- 5. What the GPU cannot run says why.
for _, r in results:infeasible():each() do
  print(string.format("infeasible: block_m=%d block_n=%d: %s", r.block_m, r.block_n, r.reason))
end

-- 6. One more question about the best: would it gain from more stages?
if best then
  local deeper = ft.predict {
    arch = gpu, workload = "flash2_fwd",
    heads = 16, seqlen = 4096, head_dim = 64, causal = true,
    block_m = best.block_m, block_n = best.block_n, num_warps = best.num_warps, num_stages = 3,
  }
  print(deeper.feasible and string.format("with 3 stages: %.1f us", deeper.time_us) or deeper.reason)
end
