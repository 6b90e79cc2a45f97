-- Rooflines of all workloads on all chips.

local ft = require "foretile"
local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local markdown = require "reproduction.tables".markdown

local CHIPS = { "v100", "t4", "rtx2080ti", "a100_40", "a100_80", "rtx3090", "rtx4090", "l40s", "h100_pcie", "h100_sxm", "h200" }

local prefill = { heads = 16, seqlen = 4096, head_dim = 128 }
local flash1 = { batch = 8, heads = 16, seqlen = 1024, head_dim = 64 }
local step = { batch = 8, heads = 32, kv_heads = 8, seqlen_kv = 8192, head_dim = 128 }
local product = { m = 4096, n = 4096, k = 4096 }
-- A question, and tiles for chips on which the default ones do not fit.
local WORKLOADS = {
  { "standard_attention", with(prefill, { block_m = 64, block_n = 64 }), {} },
  { "flash1_fwd", flash1, { block_n = 128 } }, { "flash1_bwd", flash1, { block_n = 128, num_warps = 4 } },
  { "flash2_fwd", prefill, { block_m = 64, num_stages = 1 } }, { "flash2_bwd", prefill, { block_m = 32, block_n = 64, num_stages = 1 } },
  { "flash3_fwd", prefill, {} }, { "flash_decode", with(step, { seqlen_q = 1 }), { block_n = 32, num_warps = 2 } },
  { "paged_decode", with(step, { seqlen_q = 1, page_size = 16 }), { block_n = 32, num_warps = 2 } },
  { "tree_decode", with(step, { tree = "medusa" }), { block_n = 32, num_warps = 2 } }, { "sparq_decode", step, { num_warps = 2 } },
  { "matmul_tiled", product, {} }, { "glu", product, {} },
}

local function peak_tflops(gpu)
  return 2 * gpu["tensor.peak_fma_per_cycle"] * gpu["chip.num_sms"] * gpu["clock.sm_max_khz"] / 1e9
end

local function peak_gbps(gpu)
  return gpu["dram.num_channels"] * gpu["dram.burst_bytes"] / gpu["dram.burst_cycles"] * gpu["clock.dram_khz"] / 1e6
end

-- The answer for a chip, with the default tiles where they fit.
local function fitting(case, chip)
  local question = with(case[2], { arch = chip, workload = case[1] })
  local r = ask(question)
  return r.feasible and r or ask(with(question, case[3]))
end

-- The roofline with the least bytes: tensors once, or what was read where that is less (SparQ reads a part of them).
local function attainable_tflops(gpu, r)
  local bytes = math.min(r.least_read, r.hbm_read) + r.least_write
  return math.min(peak_tflops(gpu), r["foretile__model_flops.sum"] / bytes * peak_gbps(gpu) / 1000)
end

local function print_roofline()
  local columns, lines, reasons = { "workload" }, { { "ridge point, FLOP a byte" } }, {}
  for _, chip in ipairs(CHIPS) do
    local gpu = ft.arch(chip)
    columns[#columns + 1] = chip
    table.insert(lines[1], ("%.0f"):format(1000 * peak_tflops(gpu) / peak_gbps(gpu)))
  end
  for _, case in ipairs(WORKLOADS) do
    local line = { "`" .. case[1] .. "`" }
    for _, chip in ipairs(CHIPS) do
      local r = fitting(case, chip)
      line[#line + 1] = r.feasible and ("%.3g (%.3g)"):format(attainable_tflops(ft.arch(chip), r), r.tflops) or "-"
      if not r.feasible then reasons[#reasons + 1] = ("`%s` on %s: %s."):format(case[1], chip, r.reason) end
    end
    lines[#lines + 1] = line
  end
  print("### Rooflines")
  print()
  print("Attainable TFLOP/s, and simulated in brackets, with the default tiles or smaller ones where they do not fit.")
  print("Not run (-):")
  print()
  for _, reason in ipairs(reasons) do print("- " .. reason) end
  print()
  markdown(columns, lines)
end

return print_roofline
