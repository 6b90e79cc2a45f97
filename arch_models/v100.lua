-- Tesla V100 SXM2 16 GB.
local datasheet_v100 = "NVIDIA V100 datasheet, SXM2 16 GB"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 877000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM2 timing, as Accel-Sim's SM7_QV100 (@667834c: tRCD 12, tRAS 28, tRP 12, CL 12, tRRD 3 at 850 MHz)"

return product "v100" : on "gv100" {
  chip = { num_sms = datasheet(80, datasheet_v100) },
  clock = {
    sm_max_khz = datasheet(1530000, datasheet_v100 .. ": boost clock"),
    sm_tensor_max_khz = guess(1530000, "no figure found; no loss assumed"),
    dram_khz = guess(dram_khz, "877 MHz as nvidia-smi shows, from memory; 898 GB/s, where the datasheet says 900"),
  },
  power = {
    limit_mw = datasheet(300000, datasheet_v100),
    burst_limit_mw = guess(300000, "as sustained; not measured"),
  },
  dram = {
    kind = datasheet("hbm2", datasheet_v100),
    size_bytes = datasheet(16 * 1024 * 1024 * 1024, datasheet_v100),
    num_channels = datasheet(64, "4 HBM2 stacks of 16 pseudo channels of 64 bits"),
    burst_bytes = datasheet(32, "HBM2: burst of 4 on 64 bits, two a clock"),
    burst_cycles = datasheet(2, "HBM2: burst of 4 on 64 bits, two a clock"),
    num_bank_groups = guess(4, "HBM2: four groups of four banks"),
    banks_per_group = guess(4, "HBM2: four groups of four banks"),
    row_bytes = guess(1024, "HBM2: 1 KiB a pseudo channel"),
    chunk_bytes = guess(512, "between the 256 of GPGPU-Sim's partitions and a row"),
    trcd_cycles = guess(cycles(14.1), jedec),
    trp_cycles = guess(cycles(14.1), jedec),
    tras_cycles = guess(cycles(33), jedec),
    tcl_cycles = guess(cycles(14.1), jedec),
    tccd_long_cycles = guess(4, "twice the burst: two bank groups in turn keep the bus full"),
    trrd_cycles = guess(cycles(3.6), jedec),
    twtr_cycles = guess(cycles(6), jedec),
    trtw_cycles = measured(cycles(50), "gpu-benches, V100: scaled reaches 809 of 900 GB/s; all that a turn to writes costs beyond tWTR"),
    trefi_cycles = guess(cycles(3900), "HBM2: a refresh every 3.9 us"),
    trfc_cycles = guess(cycles(80), "the part that other banks do not hide: streaming reads reach 96 % of the bus"),
    queue_entries = guess(64, "Accel-Sim: FR-FCFS over 64 requests"),
    most_bypasses = guess(32, "no source: large against the bursts of a row, small against a queue's worth of time"),
    controller_cycles = guess(173, "DRAM latency of gpu-benches, V100 PCIe at 1380 MHz: 425 to 434, here 428 = 212 to L2 + 173 + 41 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "HBM2 keeps ECC beside the data"),
  },
}
