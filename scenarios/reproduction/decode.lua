-- Flash-Decoding, split and not.

local ft = require "foretile"
local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local tables = require "reproduction.tables"
local markdown, error_pct, signed = tables.markdown, tables.error_pct, tables.signed

local function print_decode()
  local shapes = { -- batch, keys, published us: unsplit, split
    { 256, 256, 390.5, 63.4 }, { 128, 512, 366.3, 67.7 }, { 64, 1024, 364.8, 77.7 }, { 32, 2048, 352.0, 58.5 },
    { 16, 4096, 401.7, 57.0 }, { 8, 8192, 529.2, 56.4 }, { 2, 32768, 1156.1, 60.3 }, { 1, 131072, 4592.2, 106.6 },
  }
  local lines = {}
  local unsplit_tile = { workload = "flash2_fwd", block_m = 128, block_n = 64, num_warps = 4, schedule = "interleaved",
                         scaling = "exponent", exp2 = "ftz" }
  for _, s in ipairs(shapes) do
    local point = { arch = "a100_40", batch = s[1], heads = 16, kv_heads = 2, head_dim = 128, seqlen_q = 1, seqlen_kv = s[2],
                    conditions = "stream", cache = "warm" }
    local unsplit, split = ask(with(point, unsplit_tile)), ask(with(point, { workload = "flash_decode" }))
    lines[#lines + 1] = { ("%d x %d"):format(s[1], s[2]), s[4], ("%.1f"):format(split.time_us), signed(error_pct(split.time_us, s[4])),
                          s[3], ("%.1f"):format(unsplit.time_us), signed(error_pct(unsplit.time_us, s[3])), ("%.1f"):format(s[3] / s[4]),
                          ("%.1f"):format(unsplit.time_us / split.time_us) }
  end
  local one = ask(with(unsplit_tile, { arch = "a100_40", heads = 1, head_dim = 128, seqlen_q = 1, seqlen_kv = 131072 }))
  print("### Flash-Decoding")
  print()
  print("pytorch.org, 2023: A100, 16 query and 2 KV heads, head_dim 128, 67 MB of keys and values in each row (the last 134).")
  print()
  markdown({ "batch x keys", "split, us: published", "simulated", "error", "unsplit, us: published", "simulated", "error",
             "times slower: published", "simulated" }, lines)
  print(("Without a split, one sequence and one head keep %.0f of %d SMs busy: %.1f %% of the GPU (published: under 1 %%), and HBM is used at %.1f %%.")
    :format(one.grid, ft.arch("a100_40")["chip.num_sms"], 100 * one["sm__cycles_active.avg"] / one["sm__cycles_elapsed.max"],
            one["dram__throughput.avg.pct_of_peak_sustained_elapsed"]))
  print()
end

return print_decode
