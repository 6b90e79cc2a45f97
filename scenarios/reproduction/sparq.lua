-- SparQ attention.

local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local markdown = require "reproduction.tables".markdown

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

return print_sparq
