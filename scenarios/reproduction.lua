-- What others published about attention kernels, and what Foretile predicts for it: the tables of docs/reproduction.md.
--
--   foretile run --quiet scenarios/reproduction.lua                         (all: ten minutes, the second time at once)
--   foretile run scenarios/reproduction.lua -- flash1 decode pages          (these sections alone)
--
-- Published figures stand in the modules of reproduction/ with their source; every other figure comes from a prediction.
-- Nothing in the model was chosen by them.

local SECTIONS = { "flash1", "bytes", "peak", "flash3", "decode", "sparq", "pages", "reuse", "roofline", "times" }

local known, wanted = {}, {}
for _, section in ipairs(SECTIONS) do known[section] = true end
for _, section in ipairs(arg) do
  if not known[section] then error(("section %s: there are %s"):format(section, table.concat(SECTIONS, ", "))) end
  wanted[section] = true
end
for _, section in ipairs(SECTIONS) do
  if #arg == 0 or wanted[section] then require("reproduction." .. section)() end
end
