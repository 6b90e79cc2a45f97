-- Speculative decoding: what verifying a tree of guesses costs in attention, by method.
--
--   foretile run scenarios/speculation.lua
--   foretile run scenarios/speculation.lua -- h200 32768      (another GPU, longer sequences)
--
-- Every method guesses several tokens and verifies them in one step; what it guesses is a tree, whose token 0 is the last
-- accepted one. One layer's attention of Llama-3 8B (32 query and 8 KV heads of 128), 8 sequences, against one token.

local ft = require "foretile"
local gpu, keys = arg[1] or "a100_80", arg[2] or 8192
local step = { arch = gpu, batch = 8, heads = 32, kv_heads = 8, head_dim = 128, seqlen_kv = keys }

local function predict(workload, more)
  local point = { workload = workload }
  for name, value in pairs(step) do point[name] = value end
  for name, value in pairs(more) do point[name] = value end
  return ft.predict(point)
end

-- ---- trees as data: of each token after the first, the one that it follows ----

-- A chain of guesses, one after another.
local function chain(count)
  local parents = {}
  for token = 1, count do parents[token] = token - 1 end
  return parents
end

-- `count` chains that begin with token 0.
local function chains(count, length)
  local parents = {}
  for token = 1, count * length do parents[token] = token % length == 1 and 0 or token - 1 end
  return parents
end

-- Level by level: every token of a level is followed by so many of the next.
local function expansion(widths)
  local parents, level, next_token = {}, { 0 }, 1
  for _, width in ipairs(widths) do
    local below = {}
    for _, token in ipairs(level) do
      for _ = 1, width do
        parents[next_token], below[#below + 1], next_token = token, next_token, next_token + 1
      end
    end
    level = below
  end
  return parents
end

-- Paths from token 0, as Medusa's and EAGLE's sources list them: "02" is the best guess, then the third best.
local function paths(list)
  local parents, token_of = {}, { [""] = 0 }
  for path in list:gmatch "%d+" do
    parents[#parents + 1] = token_of[path:sub(1, -2)]
    token_of[path] = #parents
  end
  return parents
end

local methods = { -- preset, its tree, what it is
  { "blockwise", chain(7), "blockwise parallel decoding, arXiv:1811.03115: blocks of 8" },
  { "llma", chain(15), "LLMA, arXiv:2304.04487: a span of 15 tokens of a reference" },
  { "specinfer", expansion { 1, 1, 3, 1, 1, 1, 1, 1 }, "SpecInfer, arXiv:2305.09781: expansion <1,1,3,1,1,1,1,1>" },
  { "eagle", paths "0 1 2 3 00 01 02 10 11 20 21 30 000 001 002 010 011 020 021 100 0000 0001 0002 00000 00001",
    "EAGLE, arXiv:2401.15077: its static tree" },
  { "lookahead", chains(15, 4), "lookahead decoding, arXiv:2402.02057: 15 n-grams of 5" },
  { "medusa", paths [[0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 20 21 22 30 31 40 50 60 70 80 90
      000 001 002 003 004 005 006 007 008 009 010 011 012 020 021 030 040 050 060 070 100 101 200 0000 0001]],
    "Medusa, arXiv:2401.10774: four heads, mc_sim_7b_63" },
}

local function most_accepted(parents)
  local depth, most = { [0] = 1 }, 1
  for token, parent in ipairs(parents) do
    depth[token] = depth[parent] + 1
    most = math.max(most, depth[token])
  end
  return most
end

-- ---- what a step costs ----

local one = predict("flash_decode", { seqlen_q = 1 })
print(string.format("one token on %s, %s keys: %.1f us, %.1f MB from HBM", gpu, keys, one.time_us, one.hbm_read / 1e6))
print()
print("method     tokens  most accepted  step us  of one token's  HBM read MB")
for _, method in ipairs(methods) do
  local name, parents = method[1], method[2]
  local preset, own = predict("tree_decode", { tree = name }), predict("tree_decode", { parents = table.concat(parents, ":") })
  assert(preset.time_us == own.time_us, name .. ": the preset is another tree")
  print(string.format("%-10s %6d %14d %8.1f %14.2fx %12.1f   %s", name, #parents + 1, most_accepted(parents),
                      preset.time_us, preset.time_us / one.time_us, preset.hbm_read / 1e6, method[3]))
end

-- Attention's part of a step pays where more tokens are accepted than it costs tokens. A window and a quantised cache take
-- bytes from both sides, and leave the products.
print()
print("cache                     one token us  blockwise us  medusa us")
for _, cache in ipairs {
  { "fp16", {} }, { "int8", { kv_dtype = "int8" } }, { "fp16, a window of 1024", { window = 1024 } },
} do
  local label, more = cache[1], cache[2]
  local function with(own)
    for name, value in pairs(more) do own[name] = value end
    return own
  end
  print(string.format("%-24s %13.1f %13.1f %10.1f", label, predict("flash_decode", with { causal = 1 }).time_us,
                      predict("tree_decode", with { tree = "blockwise" }).time_us,
                      predict("tree_decode", with { tree = "medusa" }).time_us))
end
