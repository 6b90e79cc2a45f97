-- H200 SXM 141 GB.
local sheet = "NVIDIA H200 datasheet, SXM 141 GB"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 3201000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM3 timing, as Accel-Sim 2.0's SM90_H100 (@01f6fc4: tRCD 19, tRAS 45, tRP 19, CL 19, tRRD 6 at 1310 MHz)"

return product "h200" : on "gh100" {
  chip = { num_sms = datasheet(132, sheet) },
  clock = {
    sm_max_khz = guess(1980000, "as H100 SXM, the same die at the same power; the 989 TFLOP/s are at 1830 MHz"),
    dram_khz = measured(dram_khz, "FlashGPU-Sim @1769662, H200 NVL: 3201 MHz; 4814 GB/s over 6016 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(700000, sheet),
    static_mw = guess(120000, "idle with HBM and leakage at load; not measured"),
  },
  l2 = {
    size_bytes = guess(60 * 1024 * 1024, "GH200-96GB and H100 NVL, with six stacks too, report 60 MiB; FlashGPU-Sim uses 58.75"),
    num_slices = guess(96, "Accel-Sim 2.0 @01f6fc4, configuration SM90_H200: 96 slices of 640 KiB"),
    persisting_max_bytes = guess(47185920, "75 % of L2, as measured on H100 (caps-tum/mt4g)"),
  },
  dram = {
    kind = datasheet("hbm3e", sheet),
    size_bytes = datasheet(141 * 1024 * 1024 * 1024, sheet),
    num_channels = measured(188, "6016 bits reported on H200 NVL (FlashGPU-Sim @1769662), in pseudo channels of 32"),
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
    trefi_cycles = guess(cycles(3900), "HBM3"),
    trfc_cycles = guess(cycles(120), "the part that other banks do not hide: read-only streams reach 95 % of the bus (BabelStream Dot)"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    controller_cycles = guess(244, "Luo et al., arXiv 2501.12084, H800 PCIe: near miss 555, near hit 258: 297 = 244 + 53 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "HBM keeps ECC beside the data"),
  },
}
