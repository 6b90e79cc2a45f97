-- H200 SXM 141 GB.
local sheet = "NVIDIA H200 datasheet, SXM 141 GB"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 3201000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM3 timing, as Accel-Sim 2.0's SM90_H100 (@01f6fc4: tRCD 19, tRAS 45, tRP 19, CL 19, tRRD 6 at 1310 MHz)"

return product "h200" : on "gh100" {
  chip = {
    num_sms = datasheet(132, sheet),
    num_single_tpcs = measured(4, "kernels/measurements/micro_launch.csv: 66 clusters of 2 fit, 15 of 8 and 7 of 16; SMs 124 to 131 take part in those of 2 only"),
  },
  clock = {
    sm_max_khz = measured(1980000, "kernels/measurements/micro_device.csv: sm_clock_max; the 989 TFLOP/s are at 1830 MHz"),
    sm_tensor_max_khz = measured(1810000, "kernels/measurements/micro_sm_clock.csv: 1802 to 1815 MHz as soon as a tenth of the cycles is tensor work, with operands of zeros too"),
    dram_khz = measured(dram_khz, "kernels/measurements/micro_device.csv: memory_clock_max; 4814 GB/s over 6016 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(700000, sheet),
    burst_limit_mw = measured(818000, "kernels/measurements/micro_sm_clock.csv, micro_power_parts.csv: wgmma on random operands for less than 30 ms, by the energies of the die: 1632 MHz at 821 TFLOP/s, 1641 at 871 on another card; 803 to 830 W on four"),
    static_mw = guess(90000, "of the 132 W that a kernel draws that only spins (kernels/measurements/micro_sm_clock.csv); the split from the cycles of 132 SMs is a guess"),
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
    trtw_cycles = measured(cycles(50), "kernels/measurements/micro_dram_bandwidth.csv: copies of 8 GiB reach 0.825 of the bus; all that a turn to writes costs beyond tWTR"),
    trefi_cycles = guess(cycles(3900), "HBM3: a refresh every 3.9 us"),
    trfc_cycles = measured(cycles(180), "kernels/measurements/micro_dram_bandwidth.csv: reads of 8 GiB reach 0.949 of the bus; the part that other banks do not hide"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    most_bypasses = guess(32, "no source: large against the bursts of a row, small against a queue's worth of time"),
    controller_cycles = guess(187, "kernels/measurements/micro_sides.csv: near miss 560, near hit 288 SM cycles at 1980 MHz: 137 ns = 187 L2 cycles + 31 ns for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "HBM keeps ECC beside the data"),
  },
}
