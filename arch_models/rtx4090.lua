-- GeForce RTX 4090 (reference clocks).
local whitepaper = "NVIDIA Ada GPU Architecture whitepaper, RTX 4090"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 2625000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical GDDR6 timing, taken for GDDR6X"

return product "rtx4090" : on "ad102" {
  chip = {
    num_sms = datasheet(128, whitepaper),
    num_gpcs = datasheet(11, whitepaper),
  },
  clock = {
    sm_max_khz = datasheet(2520000, whitepaper .. ": boost clock"),
    sm_tensor_max_khz = guess(2520000, "no figure found; no loss assumed"),
    dram_khz = datasheet(dram_khz, whitepaper .. ": 21 Gbit/s a pin, 1008 GB/s; here the clock that moves 8 bits a pin"),
  },
  power = {
    limit_mw = datasheet(450000, whitepaper),
    burst_limit_mw = guess(450000, "as sustained; not measured"),
  },
  tensor = {
    -- GeForce: half the rate when accumulating in fp32.
    mma_fp32_interval_cycles = datasheet(32, whitepaper .. ": 165.2 TFLOP/s = 256 multiply-adds a cycle and SM; 163.5 reached (smallscientist1/cuda_microbenchmark)"),
    mma_latency_cycles = guess(33, "measured on GA102 with fp32 accumulation at the same rate (Huerta et al., MICRO 2025)"),
    mma_half_latency_cycles = guess(26, "seven less than m16n8k16, as on GH100 and GA100"),
    peak_fma_per_cycle = datasheet(256, whitepaper .. ": 165.2 TFLOP/s with fp32 accumulation"),
    bf16_fma_per_cycle = datasheet(256, whitepaper .. ": 165.2 TFLOP/s"),
    tf32_fma_per_cycle = datasheet(128, whitepaper .. ": 82.6 TFLOP/s"),
    fp8_fma_per_cycle = datasheet(512, whitepaper .. ": 330.3 TFLOP/s with fp32 accumulation"),
  },
  l1 = { hit_latency_cycles = measured(36, "HPMLL/NVIDIA-Hopper-Benchmark, RTX 4090") },
  l2 = {
    size_bytes = datasheet(72 * 1024 * 1024, whitepaper),
    persisting_max_bytes = guess(47185920, "62.5 % of L2, as measured on A100 (caps-tum/mt4g)"),
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
    controller_cycles = guess(211, "HPMLL/NVIDIA-Hopper-Benchmark, RTX 4090: 560 to 570 cycles, here 565 of 2520 MHz = 558 of L2 = 279 to L2 + 211 + 68 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "GeForce cards: no inline ECC"),
  },
}
