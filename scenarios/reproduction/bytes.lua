-- HBM bytes of profiled kernels.

local ask = require "reproduction.ask".ask
local tables = require "reproduction.tables"
local markdown, error_pct, signed, mean = tables.markdown, tables.error_pct, tables.signed, tables.mean

local function print_bytes()
  local prefill = { arch = "h100_sxm", workload = "flash2_fwd", batch = 4, heads = 32, seqlen = 4096, head_dim = 128, dtype = "bf16",
                    block_m = 128, block_n = 64, num_warps = 4, schedule = "interleaved", mma = "mma", code = "buffered" }
  local split = { arch = "h100_sxm", workload = "flash_decode", heads = 32, seqlen_q = 1, seqlen_kv = 32768, head_dim = 128, dtype = "bf16" }
  local gqa = { arch = "h200", workload = "flash3_fwd", heads = 32, kv_heads = 8, seqlen = 4096, head_dim = 128, causal = true,
                block_n = 128, persistent = true }
  local lab, tileops = "tfan2437/flash-attention-lab, ncu", "TileOPs #871, ncu"
  local cases = {
    { "FlashAttention-2, 128 x 64, H100", "read", 406.6, prefill, "hbm_read", lab },
    { "FlashAttention-2, 128 x 64, H100", "written", 193.1, prefill, "hbm_write", lab },
    { "FlashAttention-2 split-KV, 32 x 32768, H100", "both", 540, split, "hbm", lab },
    { "persistent GQA forward, causal, H200", "read", 57.7, gqa, "hbm_read", tileops },
    { "persistent GQA forward, causal, H200", "written", 21.0, gqa, "hbm_write", tileops },
  }
  local lines, errors = {}, {}
  for _, case in ipairs(cases) do
    local mb = ask(case[4])[case[5]] / 1e6
    errors[#errors + 1] = math.abs(error_pct(mb, case[3]))
    lines[#lines + 1] = { case[1], case[2], case[3], ("%.1f"):format(mb), signed(error_pct(mb, case[3])), case[6] }
  end
  print("### HBM bytes")
  print()
  print(("Mean absolute error %.1f %%."):format(mean(errors, function(e) return e end)))
  print()
  markdown({ "kernel", "bytes", "published, MB", "simulated", "error", "source" }, lines)
end

return print_bytes
