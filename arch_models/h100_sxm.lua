-- H100 SXM5 80 GB.
local sheet = "NVIDIA H100 datasheet, SXM5 80 GB"
-- Ours, on an H100 SXM.
local here = "kernels/measurements/h100/"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 2619000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM3 timing, as Accel-Sim 2.0's SM90_H100 (@01f6fc4: tRCD 19, tRAS 45, tRP 19, CL 19, tRRD 6 at 1310 MHz)"

return product "h100_sxm" : on "gh100" {
  chip = {
    num_sms = datasheet(132, sheet),
    num_single_tpcs = measured(4, here .. "micro_launch.csv: 66 clusters of 2 fit, 15 of 8 and 7 of 16, as on the H200"),
  },
  clock = {
    sm_max_khz = measured(1980000, here .. "micro_device.csv: sm_clock_max; the 989 TFLOP/s are at 1830 MHz"),
    sm_tensor_max_khz = measured(1800000, here .. "micro_sm_clock.csv: 1788 to 1805 MHz from 1 to 10 ms on where 10 to 30 % of the cycles are tensor work"),
    dram_khz = measured(dram_khz, here .. "micro_device.csv: memory_clock_max; 3352 GB/s over 5120 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(700000, sheet),
    burst_limit_mw = measured(802000, here .. "micro_power_parts.csv: wgmma on random operands for less than 30 ms, by the energies of the die: 794, 803 and 808 W at 1613, 1621 and 1626 MHz"),
    static_mw = measured(92000, here .. "micro_sm_clock.csv: a kernel that only spins draws 133.6 W, less the die's cycles of 132 SMs"),
  },
  launch = {
    overhead_ns = measured(2340, here .. "micro_kernel_overhead_ncu.csv: gpu__time_duration less the time from the first CTA's start to the end of spinning, 132_ctas from 1000 ns on; 1760 on the H200"),
    gap_ns = measured(1790, here .. "micro_launch.csv: from the end of the last CTA to the first instruction of the next kernel; 1540 on the H200"),
  },
  noc = {
    gpc_read_bytes_per_cycle = measured(1225, here .. "micro_l2_capacity.csv: 16.2 to 17.3 TB/s when all SMs read the same data, over 8 GPCs"),
    far_bytes_per_cycle = measured(647, here .. "micro_fabric_writes.csv: all SMs store 8.45 B a SM cycle each to lines of the other side, as do the SMs of one side alone: 558 of 66 SMs at 1980 MHz"),
  },
  l2 = {
    num_slices = measured(80, here .. "micro_l2_capacity_ncu.csv: lts sums are 80.0 times the averages"),
    hit_cycles = measured(84, here .. "micro_chase.csv: a near hit takes 283.3 SM cycles where the H200 takes 288.2, four cycles of L2 less"),
    persisting_max_bytes = measured(32768000, here .. "micro_device.csv: persisting_l2_bytes_max"),
    max_dirty_milli = measured(471, here .. "micro_dirty_residue_ncu.csv: 21.3 of 50 MiB stay dirty, and 2.3 MiB that the profiler left before the kernel"),
  },
  dram = {
    kind = datasheet("hbm3", sheet),
    size_bytes = measured(85017500000, here .. "micro_device.csv: memory_bytes"),
    num_channels = datasheet(160, "5 stacks of 32 pseudo channels of 32 bits"),
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
    trtw_cycles = measured(cycles(34), here .. "micro_dram_bandwidth.csv: copies of 8 GiB reach 0.841 of the bus; all that a turn to writes costs beyond tWTR"),
    trefi_cycles = measured(cycles(3000), here .. "micro_dram_bandwidth.csv: reads of 8 GiB reach 0.923 of the bus; what other banks do not hide of the refreshes (JEDEC: one of a bank every 3.9 us)"),
    trfc_cycles = measured(cycles(222), here .. "micro_sides.csv: single reads of an idle DRAM come up to 440 SM cycles of 1980 MHz later than the others (a_cold histograms)"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    most_bypasses = guess(32, "no source: large against the bursts of a row, small against a queue's worth of time"),
    controller_cycles = guess(198, here .. "micro_sides.csv: a near miss takes 13 SM cycles more above a near hit than on the H200, 6.6 ns"),
    ecc_inline_milli = guess(0, "HBM keeps ECC beside the data"),
  },
}
