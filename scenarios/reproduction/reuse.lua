-- Reuse in L2.

local ask = require "reproduction.ask".ask
local markdown = require "reproduction.tables".markdown

local function print_reuse()
  local lines = {}
  for _, case in ipairs { { 2, 50.2 }, { 8, 87.0 }, { 32, 96.6 } } do
    local requests, line = case[1], { case[1], ("%.1f"):format(100 * (case[1] - 1) / case[1]), case[2] }
    for _, arch in ipairs { "rtx4090", "a100_80", "h200" } do
      local r = ask { arch = arch, workload = "paged_decode", heads = 16, kv_heads = 8, head_dim = 128, seqlen_q = 1, page_size = 16,
                      lengths = "8192x" .. requests, page_layout = "shared_prefix", prefix = 8191 }
      line[#line + 1] = ("%.1f"):format(r.kernels[1].metrics["lts__t_sector_hit_rate.pct"])
    end
    lines[#lines + 1] = line
  end
  print("### Hit rate of L2 where R requests read one cache")
  print()
  print("Published: FlashInfer on an RTX 5060 Ti, which has no model here. 16 query and 8 KV heads, 8192 tokens, cold.")
  print()
  markdown({ "R", "(R - 1) / R, %", "published", "rtx4090", "a100_80", "h200" }, lines)
end

return print_reuse
