-- GeForce RTX 2080 Ti (reference clocks).
local whitepaper = "NVIDIA Turing GPU Architecture whitepaper, RTX 2080 Ti"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 1750000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical GDDR6 timing"

return product "rtx2080ti" : on "tu102" {
  chip = { num_sms = datasheet(68, whitepaper) },
  clock = {
    sm_max_khz = datasheet(1545000, whitepaper .. ": reference boost clock"),
    sm_tensor_max_khz = guess(1545000, "no figure found; no loss assumed"),
    dram_khz = datasheet(dram_khz, whitepaper .. ": 14 Gbit/s a pin, 616 GB/s"),
  },
  power = {
    limit_mw = datasheet(250000, whitepaper),
    burst_limit_mw = guess(250000, "as sustained; not measured"),
  },
  tensor = {
    -- GeForce: half the rate when accumulating in fp32.
    mma_fp32_interval_cycles = datasheet(16, whitepaper .. ": 53.8 TFLOP/s with fp32 accumulation, 107.6 with fp16"),
    mma_latency_cycles = guess(26, "eight cycles more than at full rate, as on GA102 (33 with fp32, 24 with fp16 accumulation)"),
    peak_fma_per_cycle = datasheet(256, whitepaper .. ": 53.8 TFLOP/s with fp32 accumulation"),
  },
  l2 = {
    size_bytes = datasheet(5632 * 1024, whitepaper .. ": 11 memory controllers with 512 KiB"),
    num_slices = guess(44, "four for each of the 11 memory controllers, as GA102"),
  },
  dram = {
    kind = datasheet("gddr6", whitepaper),
    size_bytes = datasheet(11 * 1024 * 1024 * 1024, whitepaper),
    num_channels = datasheet(22, "352 bits in channels of 16"),
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
    ecc_inline_milli = guess(0, "GeForce cards have no ECC"),
  },
}
