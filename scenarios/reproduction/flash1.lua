-- FlashAttention-1's table.

local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local tables = require "reproduction.tables"
local markdown, error_pct, signed = tables.markdown, tables.error_pct, tables.signed
local standard = require "reproduction.kernels".standard

-- Figure 2 (left) in two versions of arXiv:2205.14135: A100 40 GB, forward and backward.
local FIGURE_2 = { arch = "a100_40", batch = 64, heads = 16, seqlen = 1024, head_dim = 64 }

-- As the library's kernels are (reproduction/kernels.lua); 384 keys a block are none of its instances.
local LIBRARY = { layout = "bshd", copy = "ldg" }
local LIBRARY_FWD = with(LIBRARY, { workload = "flash1_fwd", kv_operand = "registers" })
local LIBRARY_BWD = with(LIBRARY, { workload = "flash1_bwd" })

local function whole()
  local lengths = {}
  for i = 1, FIGURE_2.batch do lengths[i] = FIGURE_2.seqlen end
  return table.concat(lengths, ":")
end

-- A padding mask as the library has it: the padding taken out (bert_padding.py), sequences of up to 20 tokens less, as its
-- benchmark draws them (benchmarks/benchmark_flash_attention.py of version 0.2).
local function unpadded()
  local lengths = {}
  for i = 1, FIGURE_2.batch do lengths[i] = FIGURE_2.seqlen - 1 - 7 * i % 20 end
  return table.concat(lengths, ":")
end

-- Sequences with lengths of their own have no other.
local function figure(kernel)
  local question = with(FIGURE_2, kernel)
  if kernel.lengths then question.seqlen = nil end
  return question
end

-- HBM bytes in GB and time in ms of both passes, or nil where one cannot run.
local function both_passes(fwd, bwd)
  local a, b = ask(figure(fwd)), ask(figure(bwd))
  if not (a.feasible and b.feasible) then return nil end
  return (a.hbm + b.hbm) / 1e9, a.time_ms + b.time_ms
end

local function print_flash1()
  local unfused = standard("fwd")({ arch = FIGURE_2.arch, head_dim = 64 })
  local cases = {
    { "standard, padding mask, dropout 0.1", 40.3, 41.7, with(unfused, { padding_mask = 1, dropout_p = 0.1 }),
      with(unfused, { pass = "bwd", padding_mask = 1, dropout_p = 0.1 }) },
    { "standard, padding mask", 35.3, 35.1, with(unfused, { padding_mask = 1 }), with(unfused, { pass = "bwd", padding_mask = 1 }) },
  }
  -- As PyTorch runs a program that adds its mask, as the library's SelfAttention (flash_attn/modules/mha.py) and the
  -- program of baddbmm do. Neither version's program is told.
  local eager = with(unfused, { elementwise = "eager_baddbmm", layout = "bshd" })
  for _, case in ipairs { { "padding mask, dropout 0.1", 40.3, 41.7, { padding_mask = 1, dropout_p = 0.1 } },
                          { "dropout 0.1, no mask", 40.3, 41.7, { dropout_p = 0.1 } },
                          { "padding mask", 35.3, 35.1, { padding_mask = 1 } } } do
    local fwd = with(eager, case[4])
    cases[#cases + 1] = { "standard as PyTorch launches it, " .. case[1], case[2], case[3], fwd, with(fwd, { pass = "bwd" }) }
  end
  for _, block_n in ipairs { 256, 384 } do
    local fwd, bwd = with(LIBRARY_FWD, { block_n = block_n }), with(LIBRARY_BWD, { block_n = block_n })
    local name = ("FlashAttention-1, block_n %d"):format(block_n)
    local dropped = { dropout_p = 0.1, lengths = whole() }
    cases[#cases + 1] = { name .. ", dropout 0.1", 4.4, 7.3, with(fwd, dropped), with(bwd, dropped) }
    local packed = { lengths = unpadded() }
    cases[#cases + 1] = { name .. ", padding mask", 4.4, 11.7, with(fwd, packed), with(bwd, packed) }
  end
  local lines = {}
  for _, case in ipairs(cases) do
    local gb, ms = both_passes(case[4], case[5])
    lines[#lines + 1] = gb and { case[1], case[2], ("%.1f"):format(gb), signed(error_pct(gb, case[2])), case[3], ("%.1f"):format(ms),
                                 signed(error_pct(ms, case[3])) } or { case[1], case[2], "infeasible", "", case[3], "infeasible", "" }
  end
  print("### FlashAttention-1, figure 2")
  print()
  print("A100 40 GB, batch 64, 16 heads, 1024 tokens, head_dim 64, fp16, forward and backward. FlashAttention-1 has its padding taken out (`lengths`).")
  print()
  markdown({ "kernel", "HBM published, GB", "simulated", "error", "published, ms", "simulated", "error" }, lines)
end

return print_flash1
