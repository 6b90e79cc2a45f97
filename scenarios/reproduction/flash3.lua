-- FlashAttention-3 and its parts.

local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local tables = require "reproduction.tables"
local markdown, error_pct, signed = tables.markdown, tables.error_pct, tables.signed
local question = require "reproduction.rows".question

local function print_flash3()
  local long = { arch = "h100_sxm", kernel = "FlashAttention-3", batch = 1, heads = 16, queries = 16384, keys = 16384, head_dim = 128 }
  local ablation = with(long, { batch = 4, queries = 8448, keys = 8448 })
  local whole = question(ablation, "fwd")
  local without_overlap, without_roles = with(whole, { overlap = false }), with(whole, { schedule = "stages", producer = false })
  local held = { clock_mhz = 1830 }
  local neither = { arch = "h100_sxm", workload = "flash2_fwd", batch = 4, heads = 16, seqlen = 8448, head_dim = 128, conditions = "stream",
                    clock_mhz = 1830, mma = "wgmma", block_m = 128, block_n = 128, num_warps = 8 }
  local cases = {
    { "16384 tokens, 1830 MHz", 648, with(question(long, "fwd"), { clock_mhz = 1830 }) },
    { "16384 tokens, the clock that the power limit allows", 648, question(long, "fwd") },
    { "4 x 8448 tokens, whole, 1830 MHz", 661, with(whole, held) },
    { "without overlap of products and softmax", 582, with(without_overlap, held) },
    { "without warp specialisation", 570, with(without_roles, held) },
    { "neither: `flash2_fwd` with wgmma and TMA, 128 x 128", nil, neither },
    { "4 x 8448 tokens, whole, the clock that the power limit allows", 661, whole },
    { "without overlap of products and softmax", 582, without_overlap },
    { "without warp specialisation", 570, without_roles },
  }
  local lines = {}
  for _, case in ipairs(cases) do
    local r = ask(case[3])
    local line = { case[1], case[2] or "", r.reason or ("%.0f"):format(r.tflops), "", "" }
    if r.feasible then
      line[4], line[5] = case[2] and signed(error_pct(r.tflops, case[2])) or "", ("%.0f"):format(r.sm_clock)
    end
    lines[#lines + 1] = line
  end
  print("### FlashAttention-3 on the H100")
  print()
  print("arXiv:2407.08608, figure 5 and table 2: head_dim 128, 16 heads, fp16, forward, no mask. cuDNN on the H200 is among the times below.")
  print()
  markdown({ "kernel", "published, TFLOP/s", "simulated", "error", "SM clock, MHz" }, lines)
end

return print_flash3
