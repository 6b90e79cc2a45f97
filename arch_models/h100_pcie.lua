-- H100 PCIe 80 GB.
local sheet = "NVIDIA H100 datasheet, PCIe 80 GB"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 1593000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM2 timing, as Accel-Sim's SM80_A100 (@9f767fb: tRCD 22, tRAS 50, tRP 22, CL 22, tRRD 7 at 1512 MHz)"

return product "h100_pcie" : on "gh100" {
  chip = {
    num_sms = datasheet(114, sheet),
    num_single_tpcs = guess(0, "not known: which TPCs are enabled differs from chip to chip"),
  },
  clock = {
    sm_max_khz = datasheet(1755000, "NVIDIA H100 datasheet: highest clock of the PCIe card; the 756 TFLOP/s are at 1620 MHz"),
    sm_tensor_max_khz = guess(1755000, "as on H200 (kernels/measurements/micro_sm_clock.csv), of the same die"),
    dram_khz = datasheet(dram_khz, "RRZE-HPC/gpu-benches: 1593 MHz; 2039 GB/s over 5120 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(350000, sheet),
    tensor_mac_fj = guess(980, "so that 350 W hold about the 1410 MHz at which wgmma on random data reaches the 660 TFLOP/s of Luo et al., arXiv 2501.12084 (H800 PCIe)"),
    burst_limit_mw = guess(400000, "the share above the sustained limit that H200 shows (kernels/measurements/micro_sm_clock.csv)"),
    static_mw = guess(80000, "idle with HBM and leakage at load; not measured"),
  },
  dram = {
    kind = datasheet("hbm2e", sheet),
    size_bytes = datasheet(80 * 1024 * 1024 * 1024, sheet),
    num_channels = datasheet(80, "5 stacks of 16 pseudo channels of 64 bits"),
    burst_bytes = datasheet(32, "HBM2: burst of 4 on 64 bits, two a clock"),
    burst_cycles = datasheet(2, "HBM2: burst of 4 on 64 bits, two a clock"),
    num_bank_groups = guess(4, "HBM2: four groups of four banks"),
    banks_per_group = guess(4, "HBM2: four groups of four banks"),
    row_bytes = guess(1024, "HBM2: 1 KiB a pseudo channel"),
    chunk_bytes = guess(512, "between the 256 of GPGPU-Sim's partitions and a row"),
    trcd_cycles = guess(cycles(14.5), jedec),
    trp_cycles = guess(cycles(14.5), jedec),
    tras_cycles = guess(cycles(33), jedec),
    tcl_cycles = guess(cycles(14.5), jedec),
    tccd_long_cycles = guess(4, "twice the burst: two bank groups in turn keep the bus full"),
    trrd_cycles = guess(cycles(4.6), jedec),
    twtr_cycles = guess(cycles(6), jedec),
    trtw_cycles = guess(cycles(6), "bus turnaround of a few ns; sets the loss of mixed reads and writes, measured as 10 to 15 %"),
    trefi_cycles = guess(cycles(3900), "HBM2: a refresh every 3.9 us"),
    trfc_cycles = guess(cycles(80), "the part that other banks do not hide: streaming reads reach 96 % of the bus"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    most_bypasses = guess(32, "no source: large against the bursts of a row, small against a queue's worth of time"),
    controller_cycles = guess(244, "Luo et al., arXiv 2501.12084, H800 PCIe: near miss 555, near hit 258: 297 = 244 + 53 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "HBM keeps ECC beside the data"),
  },
}
