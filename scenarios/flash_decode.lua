-- Decoding one token: why the keys are split, and into how many parts.
--
--   foretile run scenarios/flash_decode.lua
--   foretile run scenarios/flash_decode.lua -- h200        (another GPU; the published times are of an A100)
--
-- 16 query heads, 2 KV heads, head_dim 128, fp16. Every row reads the same 67 MB of keys and values (the last 134 MB), so
-- a kernel that fills the GPU takes the same time in all of them. Published times: "Flash-Decoding for long-context
-- inference" (pytorch.org, 2023), FlashAttention 2.0.9 against Flash-Decoding on an A100; calls repeated back to back, so
-- that L2 holds what the call before left.

local ft = require "foretile"
local gpu = arg[1] or "a100_40"

local shapes = { -- batch, keys, published us: unsplit, split
  { 256, 256, 390.5, 63.4 }, { 64, 1024, 364.8, 77.7 }, { 16, 4096, 401.7, 57.0 },
  { 8, 8192, 529.2, 56.4 }, { 2, 32768, 1156.1, 60.3 }, { 1, 131072, 4592.2, 106.6 },
}

local function decode(batch, keys, workload, more)
  local point = {
    arch = gpu, workload = workload, batch = batch, heads = 16, kv_heads = 2, head_dim = 128,
    seqlen_q = 1, seqlen_kv = keys, conditions = "stream", cache = "warm",
  }
  for name, value in pairs(more) do point[name] = value end
  return ft.predict(point)
end

-- FlashAttention-2 gives a tile of 128 query rows, of which one is used, to each head: 16 * batch CTAs, and each KV head
-- is read by the eight query heads that share it.
local unsplit_tile = { block_m = 128, block_n = 64, num_warps = 4, schedule = "interleaved" }

print("batch    keys   unsplit us (published)    split us (published)  splits  HBM read MB")
for _, shape in ipairs(shapes) do
  local batch, keys = shape[1], shape[2]
  local unsplit = decode(batch, keys, "flash2_fwd", unsplit_tile)
  local split = decode(batch, keys, "flash_decode", {})
  print(string.format("%5d %7d %12.1f %11.1f %13.1f %11.1f %7d %12.1f", batch, keys, unsplit.time_us, shape[3], split.time_us,
                      shape[4], split.splits, split.hbm_read / 1e6))
end

-- How many splits? Too few leave SMs idle, too many write and read back partial results; FlashAttention-2's choice is
-- what splits = 0, the default, stands for.
local sweep = ft.explore {
  arch = gpu, workload = "flash_decode", batch = 2, heads = 16, kv_heads = 2, head_dim = 128,
  seqlen_q = 1, seqlen_kv = 32768, splits = { 1, 2, 4, 8, 16, 32, 64, 128 },
  conditions = "stream", cache = "warm",
}
print()
print("batch 2, 32768 keys, by splits:")
print(sweep:table { "splits", "time_us", "hbm_read", "hbm_write", "bottleneck" })
