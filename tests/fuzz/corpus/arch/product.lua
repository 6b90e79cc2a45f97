-- H200 SXM 141 GB.
local sheet = "NVIDIA H200 datasheet, SXM 141 GB"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 3201000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM3 timing, as Accel-Sim 2.0's SM90_H100 (@01f6fc4: tRCD 19, tRAS 45, tRP 19, CL 19, tRRD 6 at 1310 MHz)"

return product "h200" : on "gh100" {
  chip = { num_sms = datasheet(132, sheet) },
  clock = {
    sm_max_khz = measured(1980000, "kernels/measurements/micro_device.csv: sm_clock_max; the 989 TFLOP/s are at 1830 MHz"),
    dram_khz = measured(dram_khz, "kernels/measurements/micro_device.csv: memory_clock_max; 4814 GB/s over 6016 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(700000, sheet),
    static_mw = guess(120000, "below the 150 W that an idle H200 draws at 1980 MHz (kernels/measurements/micro_device.csv), of which part is the SMs' clock"),
  },
  l2 = {
    size_bytes = measured(94 * 640 * 1024, "kernels/measurements/micro_l2_capacity_ncu.csv: 94 slices; the driver reports 60 MiB, the curves show 58.75"),
    num_slices = measured(94, "kernels/measurements/micro_l2_capacity_ncu.csv: lts sums are 94.0 times the averages"),
    persisting_max_bytes = measured(39321600, "kernels/measurements/micro_device.csv: persisting_l2_bytes_max"),
  },
  dram = {
    kind = datasheet("hbm3e", sheet),
    size_bytes = measured(150110000000, "kernels/measurements/micro_device.csv: memory_bytes"),
    num_channels = measured(188, "kernels/measurements/micro_device.csv: memory_bus_width 6016, in pseudo channels of 32"),
    burst_bytes = datasheet(32, "HBM3: burst of 8 on 32 bits, two a clock"),
    burst_cycles = datasheet(4, "HBM3: burst of 8 on 32 bits, two a clock"),
    num_bank_groups = guess(4, "HBM3: four groups of four banks"),
    banks_per_group = guess(4, "HBM3: four groups of four banks"),
    row_bytes = guess(1024, "HBM3: 1 KiB a pseudo channel"),
    chunk_bytes = guess(512, "between the 256 of GPGPU-Sim's partitions and a row"),
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
    most_bypasses = guess(32, "no source: large against the bursts of a row, small against a queue's worth of time"),
    controller_cycles = guess(187, "kernels/measurements/micro_sides.csv: near miss 560, near hit 288 SM cycles at 1980 MHz: 137 ns = 187 L2 cycles + 31 ns for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "HBM keeps ECC beside the data"),
  },
}
