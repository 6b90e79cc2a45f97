-- Times of all series, by kernel and row by row.

local tables = require "reproduction.tables"
local markdown, error_pct, signed, mean = tables.markdown, tables.error_pct, tables.signed, tables.mean
local KERNELS = require "reproduction.kernels".KERNELS
local rows = require "reproduction.rows"
local rows_of, simulated_ms, PASSES, kernel_name, shape = rows.rows_of, rows.simulated_ms, rows.PASSES, rows.kernel_name, rows.shape

local SERIES = require "reproduction.published_times"

-- Errors by kernel and GPU.
local function print_summary(rows)
  local groups, order = {}, {}
  for _, row in ipairs(rows) do
    local name = row.kernel .. " | " .. row.arch .. " | " .. PASSES[row.pass]
    if not groups[name] then
      groups[name] = {}
      order[#order + 1] = name
    end
    table.insert(groups[name], row)
  end
  table.sort(order)
  local lines = {}
  for _, name in ipairs(order) do
    local group = groups[name]
    lines[#lines + 1] = { name, #group, ("%.1f %%"):format(mean(group, function(r) return math.abs(r.error) end)),
                          signed(mean(group, function(r) return r.error end)) }
  end
  markdown({ "kernel", "GPU", "pass", "rows", "mean absolute error", "mean error" }, lines)
end

local function print_mean(title, rows, counts)
  local chosen = {}
  for _, row in ipairs(rows) do
    if counts(row) then chosen[#chosen + 1] = math.abs(row.error) end
  end
  print(("- %s: %d rows, mean absolute error %.1f %%."):format(title, #chosen, mean(chosen, function(e) return e end)))
end

local function is_known(row) return not KERNELS[row.kernel].nearest and not KERNELS[row.kernel].framework end

local function print_times()
  local rows, missing = {}, {}
  for _, series in ipairs(SERIES) do
    for _, row in ipairs(rows_of(series)) do
      local ms, reason = simulated_ms(row)
      row.simulated_ms = ms
      if ms then
        row.error = error_pct(ms, row.published_ms)
        rows[#rows + 1] = row
      else
        missing[#missing + 1] = ("%s, %s, %s: %s"):format(kernel_name(row), row.arch, shape(row), reason)
      end
    end
  end
  print("### Times")
  print()
  print_mean("All rows", rows, function() return true end)
  print_mean("Kernels whose program is known (FlashAttention, Flash-Decoding, cuDNN)", rows, is_known)
  print_mean("Of these, with 512 keys or more", rows, function(row) return is_known(row) and row.keys >= 512 end)
  print_mean("PyTorch's unfused attention, by its launches", rows, function(row) return KERNELS[row.kernel].framework end)
  print_mean("Of these, with 512 keys or more (below, the host decides)", rows,
             function(row) return KERNELS[row.kernel].framework and row.keys >= 512 end)
  print_mean("Kernels of older GPUs whose program no workload has, or is not told, by the workload that comes nearest", rows,
             function(row) return KERNELS[row.kernel].nearest end)
  print()
  print_summary(rows)
  table.sort(rows, function(a, b) return math.abs(a.error) > math.abs(b.error) end)
  local lines = {}
  for _, row in ipairs(rows) do
    lines[#lines + 1] = { signed(row.error), kernel_name(row), row.arch, PASSES[row.pass], shape(row), ("%.3g"):format(row.published_ms),
                          ("%.3g"):format(row.simulated_ms), row.source }
  end
  print("All rows, worst first. Shape: batch x heads (query/KV), tokens, head_dim.")
  print()
  markdown({ "error", "kernel", "GPU", "pass", "shape", "published, ms", "simulated, ms", "source" }, lines)
  for _, line in ipairs(missing) do print("Not simulated: " .. line) end
end

return print_times
