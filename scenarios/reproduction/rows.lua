-- A row of published times: what it says, and what is predicted for it.

local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local KERNELS = require "reproduction.kernels".KERNELS

local function flops(row, pass)
  local of_pass = ({ fwd = 1, bwd = 2.5, both = 3.5 })[pass]
  return of_pass * 4 * row.batch * row.heads * row.queries * row.keys * row.head_dim * (row.causal and 0.5 or 1)
end

local function published_ms(row)
  if row.unit == "TFLOP/s" then return flops(row, row.pass) / row.figure / 1e9 end
  if row.unit == "% of HBM" then
    local cache_bytes = 4 * row.batch * (row.kv_heads or row.heads) * row.keys * row.head_dim
    return cache_bytes / (row.peak_gbps * row.figure / 100) / 1e6
  end
  return row.figure
end

local function rows_of(series)
  local rows = {}
  for _, point in ipairs(series.points) do
    local row = with(series, { batch = point[1], heads = #point == 4 and point[2] or series.heads, keys = point[#point - 1],
                               figure = point[#point] })
    row.points, row.queries = nil, series.queries or row.keys
    row.published_ms = published_ms(row)
    rows[#rows + 1] = row
  end
  return rows
end

-- The question about a pass of a row.
local function question(row, pass)
  return with(KERNELS[row.kernel][pass](row), {
    arch = row.arch, batch = row.batch, heads = row.heads, kv_heads = row.kv_heads, seqlen_q = row.queries, seqlen_kv = row.keys,
    head_dim = row.head_dim, dtype = row.dtype, clock_mhz = row.clock_mhz, conditions = "stream", cache = row.cache,
    causal = row.queries > 1 and row.causal or nil,
  })
end

-- Time in ms of what a row measured, or nil and the reason.
local function simulated_ms(row)
  local sum = 0
  for _, pass in ipairs(row.pass == "both" and { "fwd", "bwd" } or { row.pass }) do
    local r = ask(question(row, pass))
    if not r.feasible then return nil, r.reason end
    sum = sum + r.time_ms
  end
  return sum
end

local PASSES = { fwd = "forward", bwd = "backward", both = "both" }

local function kernel_name(row)
  return row.kernel .. (row.padding and ", padding" or "") .. (row.dropout and ", dropout" or "") ..
         (row.dtype == "fp8_e4m3" and ", fp8" or "")
end

local function shape(row)
  local heads = row.kv_heads and row.kv_heads ~= row.heads and row.heads .. "/" .. row.kv_heads or row.heads
  local tokens = row.queries == row.keys and row.keys or row.queries .. " x " .. row.keys
  return ("%d x %s, %s, d %d%s"):format(row.batch, heads, tokens, row.head_dim, row.causal and ", causal" or "")
end

return { flops = flops, rows_of = rows_of, question = question, simulated_ms = simulated_ms, PASSES = PASSES, kernel_name = kernel_name, shape = shape }
