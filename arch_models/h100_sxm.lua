-- H100 SXM5 80 GB.
local sheet = "NVIDIA H100 datasheet, SXM5 80 GB"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 2619000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM3 timing, as Accel-Sim 2.0's SM90_H100 (@01f6fc4: tRCD 19, tRAS 45, tRP 19, CL 19, tRRD 6 at 1310 MHz)"

return product "h100_sxm" : on "gh100" {
  chip = {
    num_sms = datasheet(132, sheet),
    num_single_tpcs = guess(4, "as on H200, of the same die and as many SMs; on an H100 clusters of 8 reach 120 of 132 SMs too (accel-sim/gpu-app-collection, sm_gpc_mapping)"),
  },
  clock = {
    sm_max_khz = measured(1980000, "thamada/nvidia-smi, deviceQuery of H100 SXM: 1980 MHz; the 989 TFLOP/s are at 1830 MHz"),
    sm_tensor_max_khz = guess(1810000, "as on H200 (kernels/measurements/micro_sm_clock.csv), of the same die"),
    dram_khz = measured(dram_khz, "thamada/nvidia-smi, deviceQuery of H100 SXM: 2619 MHz; 3352 GB/s over 5120 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(700000, sheet),
    burst_limit_mw = guess(800000, "the share above the sustained limit that H200 shows (kernels/measurements/micro_sm_clock.csv)"),
    static_mw = guess(110000, "idle with HBM and leakage at load; not measured"),
  },
  dram = {
    kind = datasheet("hbm3", sheet),
    size_bytes = datasheet(80 * 1024 * 1024 * 1024, sheet),
    num_channels = datasheet(160, "5 stacks of 32 pseudo channels of 32 bits"),
    burst_bytes = datasheet(32, "HBM3: burst of 8 on 32 bits, two a clock"),
    burst_cycles = datasheet(4, "HBM3: burst of 8 on 32 bits, two a clock"),
    num_bank_groups = guess(4, "HBM3: four groups of four banks"),
    banks_per_group = guess(4, "HBM3: four groups of four banks"),
    row_bytes = guess(1024, "HBM3: 1 KiB a pseudo channel"),
    trcd_cycles = guess(cycles(14.5), jedec),
    trp_cycles = guess(cycles(14.5), jedec),
    tras_cycles = guess(cycles(34.3), jedec),
    tcl_cycles = guess(cycles(14.5), jedec),
    tccd_long_cycles = guess(8, "twice the burst: two bank groups in turn keep the bus full"),
    trrd_cycles = guess(cycles(4.6), jedec),
    twtr_cycles = guess(cycles(6.1), jedec),
    trtw_cycles = guess(cycles(6), "bus turnaround of a few ns; sets the loss of mixed reads and writes, measured as 10 to 15 %"),
    trefi_cycles = guess(cycles(3900), "HBM3: a refresh every 3.9 us"),
    trfc_cycles = guess(cycles(120), "the part that other banks do not hide: read-only streams reach 95 % of the bus (BabelStream Dot)"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    controller_cycles = guess(187, "measured on H200 (kernels/measurements/micro_sides.csv), HBM3 too"),
    ecc_inline_milli = guess(0, "HBM keeps ECC beside the data"),
  },
}
