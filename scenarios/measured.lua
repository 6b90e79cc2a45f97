-- How far off are the predictions? A few kernels that Nsight Compute measured on an H200, predicted and compared.
--
--   foretile run scenarios/measured.lua
--   foretile run scenarios/measured.lua -- 64                   (another head_dim)
--   foretile run --allow-io scenarios/measured.lua -- 128 my.csv      (rows of your own; docs/commands.md says how)
--
-- `foretile validate` compares every measured row; a scenario can pick some and go on with them.

local ft = require "foretile"

local cases = ft.measurements {
  files = arg[2] or "attention_flash2_ncu.csv", -- of kernels/measurements; without `files`, all of them
  workload = "flash2_fwd", conditions = "ncu",
  head_dim = arg[1] or 128, seqlen = { 512, 1024 }, causal = true,
}
if #cases == 0 then
  print("no measured kernel of flash2_fwd has that head_dim, 512 or 1024 tokens and a causal mask")
  return
end

-- Each case knows what was measured, and the parameters that ft.predict needs to predict it.
local predicted = cases:predict()
print(predicted:table { "shape", "block_m", "block_n", "num_warps", "num_stages", "hbm", "time" })

local errors = predicted:summary()
for _, name in ipairs { "hbm", "time" } do
  local e = errors[name]
  if e then
    print(string.format("%-4s mean error %.1f %% of %d cases, largest %.1f %%, bias %+.1f %%", name, e.mape, e.cases,
                        e.max, e.bias))
  end
end

-- Would the predicted best block sizes have been the right ones?
local choices = predicted:choices()
for _, choice in ipairs(choices) do
  print(string.format("%d configurations of %d tokens: Spearman's rho %s; the predicted best reaches %.1f %% of the best time",
                      choice.cases, choice.case.seqlen_q, choice.rho and string.format("%.2f", choice.rho) or "none",
                      choice.best_pct))
end

-- The one that is most wrong in time, and what else is off in it.
local worst = predicted:worst("time")[1]
local off = worst:compare()
print(string.format("\nmost wrong: %s, %s of %s", worst.place, worst.provenance.gpu, worst.provenance.date or "no date"))
for _, name in ipairs { "time", "insts", "l2_sectors", "l2_hit", "registers" } do
  local row = off[name]
  if row and row.error then
    print(string.format("%-10s measured %14.1f, predicted %14.1f, error %+.1f %s", name, row.measured, row.predicted,
                        row.error, row.unit))
  end
end

-- From here on it is a prediction like any other: would one more buffer of K and V have helped?
local params = worst.params
params.num_stages = worst.num_stages + 1
local more = ft.predict(params)
print(string.format("\nwith %d buffers: %s", params.num_stages, more.reason or
                    string.format("%.1f us for %.1f", more.time_us, worst.predicted.time_us)))
