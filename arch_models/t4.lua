-- Tesla T4.
local page = "fpsbench.com, Tesla T4 (vendor specifications)"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 1250000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical GDDR6 timing"

return product "t4" : on "tu104" {
  chip = {
    num_sms = datasheet(40, page),
    num_gpcs = guess(5, "20 TPCs on a die of 6 GPCs of 4: five whole GPCs"),
  },
  clock = {
    sm_max_khz = datasheet(1590000, page .. ": boost clock"),
    sm_tensor_max_khz = guess(1590000, "no figure found; no loss assumed"),
    dram_khz = datasheet(dram_khz, page .. ": 10 Gbit/s a pin, 320 GB/s"),
  },
  power = {
    limit_mw = datasheet(70000, "NVIDIA T4 datasheet"),
    burst_limit_mw = guess(70000, "as sustained; not measured"),
  },
  l2 = {
    size_bytes = datasheet(4 * 1024 * 1024, page),
    num_slices = guess(32, "four for each of the 8 memory controllers with 512 KiB, as GA102"),
  },
  dram = {
    kind = datasheet("gddr6", page),
    size_bytes = datasheet(16 * 1024 * 1024 * 1024, page),
    num_channels = datasheet(16, "256 bits in channels of 16"),
    burst_bytes = datasheet(32, "GDDR6: burst of 16 on 16 bits, eight a command clock"),
    burst_cycles = datasheet(2, "GDDR6: burst of 16 on 16 bits, eight a command clock"),
    num_bank_groups = guess(4, "GDDR6: four groups of four banks"),
    banks_per_group = guess(4, "GDDR6: four groups of four banks"),
    row_bytes = guess(2048, "GDDR6: 2 KiB a channel"),
    chunk_bytes = guess(512, "between the 256 of GPGPU-Sim's partitions and a row"),
    trcd_cycles = guess(cycles(14), jedec),
    trp_cycles = guess(cycles(14), jedec),
    tras_cycles = guess(cycles(31), jedec),
    tcl_cycles = guess(cycles(14), jedec),
    tccd_long_cycles = guess(4, "twice the burst: two bank groups in turn keep the bus full"),
    trrd_cycles = guess(cycles(4.6), jedec),
    twtr_cycles = guess(cycles(5), jedec),
    trtw_cycles = guess(cycles(5), "bus turnaround of a few ns; sets the loss of mixed reads and writes, measured as 10 to 15 %"),
    trefi_cycles = guess(cycles(1900), "GDDR6: a refresh every 1.9 us"),
    trfc_cycles = guess(cycles(25), "the part that other banks do not hide: streaming reads reach 98 % of the bus on A40 and L40 (gpu-benches)"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    most_bypasses = guess(32, "no source: large against the bursts of a row, small against a queue's worth of time"),
    controller_cycles = guess(260, "no figure found: with 236 to L2 and ACT and RD it gives about 540 cycles, between V100 and A40"),
    ecc_inline_milli = guess(62, "ECC takes 1/16 of the memory on T4 (15360 of 16384 MiB shown); that it takes as much bandwidth is a guess"),
  },
}
