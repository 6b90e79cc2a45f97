-- Does warp specialisation pay, and with which tiles? FlashAttention-2 with wgmma beside FlashAttention-3 on Hopper.
--
--   foretile run scenarios/flash3.lua
--   foretile run scenarios/flash3.lua -- h100_sxm 8192

local ft = require "foretile"
local gpu, length = arg[1] or "h200", arg[2] or 4096

local function explore(workload, tiles)
  tiles.arch, tiles.workload = gpu, workload
  tiles.batch, tiles.heads, tiles.seqlen, tiles.head_dim, tiles.causal = 4, 16, length, 128, true
  return ft.explore(tiles)
end

-- Three consumers of 64 rows and 128 keys need more registers than they have: their products are issued one by one.
-- Persistent CTAs walk tiles with a stride of 132 (H200); 4096 rows in tiles of 192 are 22 tiles a head, which divides
-- 132: each CTA then always meets the same row of the causal triangle, and the last row's CTAs work longest.
local flash3 = explore("flash3_fwd", {
  num_warps = { 8, 12 }, block_m = { 128, 192 }, block_n = { 64, 128 }, persistent = { false, true },
  where = function(p) return p.block_m == 16 * p.num_warps end,
})
local flash2 = explore("flash2_fwd", { num_warps = { 4, 8 }, block_m = { 64, 128 }, block_n = { 64, 128 },
                                       where = function(p) return p.block_m == 16 * p.num_warps end })

local columns = { "block_m", "block_n", "num_warps", "persistent", "time_us", "tflops", "hbm_read", "registers" }
print("flash3_fwd on " .. gpu)
print(flash3:feasible():rank("time"):table(columns))
print("flash2_fwd on " .. gpu)
print(flash2:feasible():rank("time"):table(columns))
