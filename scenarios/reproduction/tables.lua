-- Tables, and errors as they stand in them.

-- A Markdown table: `columns` are titles, each row a list of cells.
local function markdown(columns, rows)
  print("| " .. table.concat(columns, " | ") .. " |")
  print("|" .. ("---|"):rep(#columns))
  for _, row in ipairs(rows) do print("| " .. table.concat(row, " | ") .. " |") end
  print()
end

local function error_pct(simulated, published) return 100 * (simulated - published) / published end

local function signed(pct) return ("%+.1f %%"):format(pct) end

local function mean(list, of)
  local sum = 0
  for _, item in ipairs(list) do sum = sum + of(item) end
  return sum / #list
end

return { markdown = markdown, error_pct = error_pct, signed = signed, mean = mean }
