-- GeForce RTX 3090 (reference clocks).
local whitepaper = "NVIDIA Ampere GA102 GPU Architecture whitepaper, RTX 3090"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 2437500
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical GDDR6 timing, taken for GDDR6X"

return product "rtx3090" : on "ga102" {
  chip = { num_sms = datasheet(82, whitepaper) },
  clock = {
    sm_max_khz = datasheet(1695000, whitepaper .. ": reference boost clock"),
    sm_tensor_max_khz = guess(1695000, "no figure found; no loss assumed"),
    dram_khz = datasheet(dram_khz, whitepaper .. ": 19.5 Gbit/s a pin, 936 GB/s; here the clock that moves 8 bits a pin"),
  },
  power = {
    limit_mw = datasheet(350000, whitepaper),
    burst_limit_mw = guess(350000, "as sustained; not measured"),
  },
  tensor = {
    -- GeForce: half the rate when accumulating in fp32.
    mma_fp32_interval_cycles = datasheet(32, whitepaper .. ": 71 TFLOP/s with fp32 accumulation, 142 with fp16"),
    peak_fma_per_cycle = datasheet(256, whitepaper .. ": 71 TFLOP/s with fp32 accumulation"),
    bf16_fma_per_cycle = datasheet(256, whitepaper .. ": 71 TFLOP/s"),
    tf32_fma_per_cycle = datasheet(128, whitepaper .. ": 35.6 TFLOP/s"),
  },
  dram = {
    kind = datasheet("gddr6x", whitepaper),
    size_bytes = datasheet(24 * 1024 * 1024 * 1024, whitepaper),
    num_channels = datasheet(24, "384 bits in channels of 16"),
    burst_bytes = datasheet(32, "GDDR6X: 32 bytes on 16 bits, eight bits a pin and cycle of this clock"),
    burst_cycles = datasheet(2, "GDDR6X: 32 bytes on 16 bits, eight bits a pin and cycle of this clock"),
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
    controller_cycles = guess(250, "gpu-benches, A40 (GDDR6) at 1740 MHz: 546 to 556 cycles, here 550 = 250 to L2 + 250 + 50 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "GeForce cards: no inline ECC"),
  },
}
