-- How far off is each workload, by part and by whose kernel it is? The table of docs/accuracy.md, in Markdown.
--
--   foretile run --no-db --max-memory-mb 3000 scenarios/accuracy_by_workload.lua      (all that `validate` compares)
--   foretile run --no-db scenarios/accuracy_by_workload.lua -- h200 40                (of one GPU, one case of 40)

local ft = require "foretile"

local arch, every = arg[1] or "h200", tonumber(arg[2]) or arg[2] or 1

local COLUMNS = { "hbm_read", "l2_sectors", "insts", "registers", "cycles", "stream_time" }

-- Rows of the table: workload, part and, of kernels that this project did not write, their source.
local function rows_of(cases)
  local rows, by_name = {}, {}
  for _, c in cases:each() do
    local name = c.workload .. (c.source == "own" and "" or " (" .. c.source .. ")")
    local key = c.part .. "|" .. name
    if not by_name[key] then
      by_name[key] = { name = name, part = c.part, workload = c.workload, source = c.source }
      rows[#rows + 1] = by_name[key]
    end
  end
  table.sort(rows, function(a, b)
    if a.part ~= b.part then return a.part < b.part end
    return a.name < b.name
  end)
  return rows
end

local function cell(summary, name)
  local e = summary[name]
  return e and string.format("%.1f (%.1f)", e.mean, e.median) or "-"
end

local all = ft.measurements { arch = arch, every = every }
if #all == 0 then
  print("no kernel was measured on " .. arch)
  return
end
print("| workload | part | cases | HBM read | L2 sectors | instructions | registers | cycles | stream time |")
print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
for _, row in ipairs(rows_of(all)) do
  local cases = all:filter(function(c)
    return c.part == row.part and c.workload == row.workload and c.source == row.source
  end)
  local summary, cells = cases:predict():summary(), {}
  for i, name in ipairs(COLUMNS) do cells[i] = cell(summary, name) end
  print(string.format("| %s | %s | %d | %s |", row.name, row.part, #cases, table.concat(cells, " | ")))
end
