-- L40S.
local l40s = "NVIDIA L40S datasheet"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 2250000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical GDDR6 timing"

return product "l40s" : on "ad102" {
  chip = { num_sms = datasheet(142, "NVIDIA Ada GPU Architecture whitepaper, L40 class: 142 SMs") },
  clock = {
    sm_max_khz = guess(2520000, "boost clock from memory; 362 TFLOP/s needs 2490 MHz"),
    sm_tensor_max_khz = guess(2520000, "no figure found; no loss assumed"),
    dram_khz = datasheet(dram_khz, l40s .. ": 864 GB/s over 384 bits"),
  },
  power = {
    limit_mw = datasheet(350000, l40s),
    burst_limit_mw = guess(350000, "as sustained; not measured"),
  },
  tensor = { int4_fma_per_cycle = guess(1024, "the datasheet gives int4 the 733 TOPS of int8, from memory; the die has twice that on RTX 4090") },
  dram = {
    kind = datasheet("gddr6", l40s),
    size_bytes = datasheet(48 * 1024 * 1024 * 1024, l40s),
    num_channels = datasheet(24, "384 bits in channels of 16"),
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
    controller_cycles = guess(261, "gpu-benches, L40 at 2490 MHz: 600 to 624 cycles, here 612 = 279 to L2 + 261 + 72 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "an L40 reads at 98 % of the bus (gpu-benches), so inline ECC was off or free"),
  },
}
