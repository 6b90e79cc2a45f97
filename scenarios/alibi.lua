-- A kernel of one's own: attention with linear biases (ALiBi), which is not built in.
--
--   foretile run scenarios/alibi.lua                  (h200 and a100_80)
--   foretile run scenarios/alibi.lua -- rtx4090       (that GPU alone)
--
-- Source: O. Press et al., "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation",
-- arXiv:2108.12409: softmax(q_i k_j / sqrt(d) - slope_h * (i - j)), causal, slope_h = 2^(-8 h / heads) for h = 1 .. heads.
-- A softmax is the same whatever is added to a whole row, so the bias slope_h * j, a number a key, does: as the paper's
-- authors implement it. The kernel is FlashAttention-2's (arXiv:2307.08691) with one FMA more a score.

local ft = require "foretile"

local LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
local DEFAULTS = { batch = 1, heads = 16, seqlen = 4096, head_dim = 64, block_m = 128, block_n = 64, warps = 4, stages = 2 }

-- The online softmax of one tile of scores, in the exp2 domain: running maximum and sum of each row, and what the output
-- so far must be multiplied by.
local function online_softmax(k, rows, scale)
  local m, previous = k:rows("max", rows), k:rows("previous_max", rows)
  local shift, correction, sum = k:rows("shift", rows), k:rows("correction", rows), k:rows("sum", rows)
  local s = { correction = correction, sum = sum, max = m }
  function s.start()
    m:set(-math.huge)
    sum:set(0)
  end
  function s.step(scores)
    previous:set(m)
    m:reduce("max", scores):reduce_lanes("max")
    shift:set(m * (-scale * LOG2_E))
    correction:set(k:exp2(previous * (scale * LOG2_E) + shift))
    scores:set(k:exp2(scores * (scale * LOG2_E) + shift))
    sum:set(sum * correction)
    sum:reduce("sum", scores)
  end
  return s
end

local alibi = ft.kernel("alibi", DEFAULTS, function(k, p)
  local d, bm, bn = p.head_dim, p.block_m, p.block_n
  if p.seqlen % bm ~= 0 or p.seqlen % bn ~= 0 then
    return k:infeasible(("seqlen=%d: this sketch takes whole tiles of %d and %d rows"):format(p.seqlen, bm, bn))
  end
  local q = k:input("q", "fp16", { p.batch, p.heads, p.seqlen, d })
  local key = k:input("k", "fp16", { p.batch, p.heads, p.seqlen, d })
  local v = k:input("v", "fp16", { p.batch, p.heads, p.seqlen, d })
  local bias = k:input("bias", "fp32", { p.heads, p.seqlen, 1 }) -- slope_h * j * sqrt(d): it is added before the scale
  local o = k:output("o", "fp16", { p.batch, p.heads, p.seqlen, d })

  -- A CTA keeps block_m queries of one head and walks the keys that they see.
  local tiles = p.seqlen // bm
  k:grid(p.batch * p.heads * tiles)
  k:flops(2 * p.batch * p.heads * p.seqlen * (p.seqlen + 1) * d)
  local head, batch = k.cta // tiles % p.heads, k.cta // (tiles * p.heads)
  local row = k.cta % tiles * bm
  local unmasked, last = row // bn, (row + bm + bn - 1) // bn

  k:role("main", p.warps)
  local ring_q = k:ring("q", "fp16", bm, d, 1)
  local ring_k, ring_v = k:ring("k", "fp16", bn, d, p.stages), k:ring("v", "fp16", bn, d, p.stages)
  local s, probs = k:tile("s", "fp32", bm, bn), k:tile("p", "fp16", bm, bn)
  local out, b = k:tile("o", "fp32", bm, d), k:columns("bias", bn)
  local softmax = online_softmax(k, bm, 1 / math.sqrt(d))

  local function prefetch(j)
    ring_k:fill(key(batch, head, j * bn, { present = last - j }))
    ring_v:fill(v(batch, head, j * bn, { present = last - j }))
  end

  local function step(j, masked)
    prefetch(j + p.stages - 1)
    ring_k:wait()
    s:set(0):mma(ring_q, ring_k.T)
    ring_k:release()
    b:load(bias(head, j * bn))
    s:set(s + b)
    if masked then s:mask { row = row, column = j * bn, diagonal = 0, limit = p.seqlen } end
    softmax.step(s)
    probs:convert(s)
    out:set(out * softmax.correction)
    ring_v:wait()
    out:mma(probs, ring_v)
    ring_v:release()
  end

  ring_q:fill(q(batch, head, row))
  for j = 0, p.stages - 2 do prefetch(j) end
  softmax.start()
  out:set(0)
  ring_q:wait()
  for j in k:range(0, unmasked) do step(j, false) end
  for j in k:range(unmasked, last) do step(j, true) end
  ring_q:release()
  softmax.sum:reduce_lanes("sum")
  softmax.correction:set(k:recip(softmax.sum))
  out:set(out * softmax.correction)
  out:store(o(batch, head, row), { through = ring_q })
end)

-- 1. Is it right? A small problem, run on the CPU with fp16 rounding where the GPU rounds, against attention as it is
-- defined, in double precision.
local function slope(head, heads) return 2 ^ (-8 * (head + 1) / heads) end

local small = { heads = 2, seqlen = 192, head_dim = 32, block_m = 64, block_n = 32 }
local function reference(t, head, row)
  local query, scores, max, sum, out = t.q:row(head, row), {}, -math.huge, 0, {}
  for j = 0, row do
    local key, dot = t.k:row(head, j), 0
    for c = 1, #query do dot = dot + query[c] * key[c] end
    scores[j] = dot / math.sqrt(#query) - slope(head, small.heads) * (row - j)
    max = math.max(max, scores[j])
  end
  for c = 1, #query do out[c] = 0 end
  for j = 0, row do
    local weight, value = math.exp(scores[j] - max), t.v:row(head, j)
    sum = sum + weight
    for c = 1, #query do out[c] = out[c] + weight * value[c] end
  end
  for c = 1, #query do out[c] = out[c] / sum end
  return out
end

print(alibi:check {
  heads = small.heads, seqlen = small.seqlen, head_dim = small.head_dim,
  block_m = small.block_m, block_n = small.block_n,
  inputs = { bias = function(head, j) return slope(head, small.heads) * j * math.sqrt(small.head_dim) end },
  reference = { o = reference },
  tolerance = 2e-3, -- two roundings to fp16 (probabilities, output) of numbers below 1: 2 * 2^-11, and the inputs' noise
})

-- 2. How fast would it be, against the same attention without the bias?
local gpus = arg[1] and { arg[1] } or { "h200", "a100_80" }
for _, gpu in ipairs(gpus) do
  local with = ft.predict { arch = gpu, workload = alibi }
  local without = ft.predict { arch = gpu, workload = "flash2_fwd", heads = DEFAULTS.heads, seqlen = DEFAULTS.seqlen,
                               head_dim = DEFAULTS.head_dim, causal = true, block_m = DEFAULTS.block_m,
                               block_n = DEFAULTS.block_n, num_warps = DEFAULTS.warps, num_stages = DEFAULTS.stages,
                               q_operand = "shared" }
  print(("%s: %.1f us with ALiBi, %.1f us without"):format(gpu, with.time_us, without.time_us))
end

-- 3. Which tiles? Every combination on every GPU; what cannot run says why.
local results = ft.explore {
  arch = gpus, workload = alibi,
  block_m = { 64, 128, 192 }, block_n = { 32, 64, 128 }, warps = { 4, 8 },
}
for _, gpu in ipairs(gpus) do
  local ranked = results:filter(function(r) return r.arch == gpu end):rank("time")
  print()
  print(gpu)
  print(ranked:feasible():top(5):table { "block_m", "block_n", "warps", "mma", "time_us", "tflops", "hbm_read", "registers" })
  print("Why: " .. ranked:feasible():why())
  for _, r in ranked:infeasible():each() do
    print(("infeasible: block_m=%d block_n=%d warps=%d: %s"):format(r.block_m, r.block_n, r.warps, r.reason))
  end
end
