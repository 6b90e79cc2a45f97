-- Shares of the A100's peak.

local ask = require "reproduction.ask".ask
local markdown = require "reproduction.tables".markdown
local rows = require "reproduction.rows"
local flops, question, PASSES = rows.flops, rows.question, rows.PASSES

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

return print_peak
