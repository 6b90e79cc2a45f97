-- A kernel of one's own: block-sparse attention, which is not built in.
--
--   foretile run scenarios/block_sparse.lua                  (h200 and a100_80)
--   foretile run scenarios/block_sparse.lua -- l40s          (that GPU alone)
--
-- Which blocks of keys a block of queries sees is known before the launch: here BigBird's pattern (M. Zaheer et al.,
-- "Big Bird: Transformers for Longer Sequences", arXiv:2007.14062), a window around the diagonal, a few global blocks and a
-- few random ones. The blocks that are kept are listed, and the kernel walks the list of its query tile: two tables in
-- HBM, where the list of each tile begins and the key tiles, read as a kernel would read them. The rest is
-- FlashAttention-2 (arXiv:2307.08691).

local ft = require "foretile"

local LOG2_E = 1.4426950408889634
local BLOCK_Q, BLOCK_K = 128, 64 -- tokens of a block of the pattern
local DEFAULTS = { heads = 16, seqlen = 8192, head_dim = 64, block_m = 128, block_n = 64, warps = 4, stages = 2,
                   window = 3, global = 2, random = 3 }

-- --- the pattern ---

-- Whether block `i` of queries sees block `j` of keys.
local function pattern(p)
  local blocks_k, kept = p.seqlen // BLOCK_K, {}
  for i = 0, p.seqlen // BLOCK_Q - 1 do
    local row, centre = {}, i * BLOCK_Q // BLOCK_K
    for j = 0, p.global - 1 do row[j] = true end
    for j = math.max(0, centre - p.window), math.min(blocks_k - 1, centre + 1 + p.window) do row[j] = true end
    for n = 1, p.random do row[(i * 2654435761 + n * 40503) % 4294967291 % blocks_k] = true end
    kept[i] = row
  end
  return function(i, j) return kept[i][j] or false end
end

-- Key tiles that each query tile visits, one list after another, and where each begins.
local function lists(p)
  local keep, first, tiles = pattern(p), { 0 }, {}
  for m = 0, p.seqlen // p.block_m - 1 do
    for n = 0, p.seqlen // p.block_n - 1 do
      if keep(m * p.block_m // BLOCK_Q, n * p.block_n // BLOCK_K) then tiles[#tiles + 1] = n end
    end
    first[#first + 1] = #tiles
  end
  return first, tiles
end

-- --- the kernel ---

local sparse = ft.kernel("block_sparse", DEFAULTS, function(k, p)
  local d, bm, bn = p.head_dim, p.block_m, p.block_n
  if BLOCK_Q % bm ~= 0 or BLOCK_K % bn ~= 0 then
    return k:infeasible(("block_m=%d block_n=%d: a tile must lie in one block of %d x %d tokens")
      :format(bm, bn, BLOCK_Q, BLOCK_K))
  end
  local function tensor(declare, name) return declare(k, name, "fp16", { p.heads, p.seqlen, d }) end
  local q, key, v, o = tensor(k.input, "q"), tensor(k.input, "k"), tensor(k.input, "v"), tensor(k.output, "o")
  local first_of, tiles_of = lists(p)
  local first, list = k:table("first", first_of), k:table("list", tiles_of)

  local tiles = p.seqlen // bm
  k:grid(p.heads * tiles)
  k:flops(4 * d * bm * bn * #tiles_of * p.heads)
  local m, head = k.cta % tiles, k.cta // tiles
  local begin, count = first[m], first[m + 1] - first[m]
  local scale = LOG2_E / math.sqrt(d)

  k:role("main", p.warps)
  local ring_q = k:ring("q", "fp16", bm, d, 1)
  local ring_k, ring_v = k:ring("k", "fp16", bn, d, p.stages), k:ring("v", "fp16", bn, d, p.stages)
  local s, probs, out = k:tile("s", "fp32", bm, bn), k:tile("p", "fp16", bm, bn), k:tile("o", "fp32", bm, d)
  local max, previous, shift = k:rows("max", bm), k:rows("previous_max", bm), k:rows("shift", bm)
  local correction, sum = k:rows("correction", bm), k:rows("sum", bm)

  local function prefetch(n)
    local row = list[begin + n] * bn
    ring_k:fill(key(head, row, { present = count - n }))
    ring_v:fill(v(head, row, { present = count - n }))
  end

  ring_q:fill(q(head, m * bm))
  for n = 0, p.stages - 2 do prefetch(n) end
  out:set(0)
  max:set(-math.huge)
  sum:set(0)
  ring_q:wait()
  for n in k:range(0, count) do
    prefetch(n + p.stages - 1)
    ring_k:wait()
    s:set(0):mma(ring_q, ring_k.T)
    ring_k:release()
    previous:set(max)
    max:reduce("max", s):reduce_lanes("max")
    shift:set(max * -scale)
    correction:set(k:exp2(previous * scale + shift))
    s:set(k:exp2(s * scale + shift))
    sum:set(sum * correction):reduce("sum", s)
    probs:convert(s)
    out:set(out * correction)
    ring_v:wait()
    out:mma(probs, ring_v)
    ring_v:release()
  end
  ring_q:release()
  sum:reduce_lanes("sum")
  correction:set(k:recip(sum))
  out:set(out * correction)
  out:store(o(head, m * bm), { through = ring_q })
end)

-- 1. Is it right? Against attention over the visible tokens in double precision.
local small = { heads = 2, seqlen = 512, head_dim = 32, block_m = 64, block_n = 32, window = 1, global = 1, random = 1 }
local visible = pattern(small)

local function reference(t, head, row)
  local query, weights, sum, out = t.q:row(head, row), {}, 0, {}
  for j = 0, small.seqlen - 1 do
    if visible(row // BLOCK_Q, j // BLOCK_K) then
      local key, dot = t.k:row(head, j), 0
      for c = 1, #query do dot = dot + query[c] * key[c] end
      weights[j] = math.exp(dot / math.sqrt(#query))
      sum = sum + weights[j]
    end
  end
  for c = 1, #query do out[c] = 0 end
  for j, weight in pairs(weights) do
    local value = t.v:row(head, j)
    for c = 1, #query do out[c] = out[c] + weight / sum * value[c] end
  end
  return out
end

local question = { reference = { o = reference }, tolerance = 1e-3 }
for name, value in pairs(small) do question[name] = value end
print(sparse:check(question))

-- 2. What does sparsity save, against dense attention of the same size?
local gpus = arg[1] and { arg[1] } or { "h200", "a100_80" }
local _, kept = lists(DEFAULTS)
local density = #kept * DEFAULTS.block_m * DEFAULTS.block_n / DEFAULTS.seqlen ^ 2
print(("%.1f %% of the blocks are kept"):format(100 * density))
for _, gpu in ipairs(gpus) do
  local some = ft.predict { arch = gpu, workload = sparse }
  local all = ft.predict { arch = gpu, workload = "flash2_fwd", heads = DEFAULTS.heads, seqlen = DEFAULTS.seqlen,
                           head_dim = DEFAULTS.head_dim, block_m = DEFAULTS.block_m, block_n = DEFAULTS.block_n,
                           num_warps = DEFAULTS.warps, num_stages = DEFAULTS.stages }
  print(("%s: %.1f us, %.1f MB from HBM; dense %.1f us, %.1f MB: %.1f times as fast"):format(
    gpu, some.time_us, some.hbm_read / 1e6, all.time_us, all.hbm_read / 1e6, all.time_us / some.time_us))
end

-- 3. Which tiles?
local results = ft.explore {
  arch = gpus, workload = sparse,
  block_m = { 64, 128 }, block_n = { 32, 64, 128 }, warps = { 4, 8 }, stages = { 2, 3 },
}
for _, gpu in ipairs(gpus) do
  local ranked = results:filter(function(r) return r.arch == gpu end):rank("time")
  print()
  print(gpu)
  print(ranked:feasible():top(5):table { "block_m", "block_n", "warps", "stages", "mma", "time_us", "tflops", "hbm_read" })
  print("Why: " .. ranked:feasible():why())
end
print()
for _, r in results:infeasible():each() do
  print(("infeasible on %s: block_m=%d block_n=%d warps=%d stages=%d: %s"):format(r.arch, r.block_m, r.block_n, r.warps,
                                                                                 r.stages, r.reason))
end
