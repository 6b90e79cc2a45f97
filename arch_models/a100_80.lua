-- A100 SXM4 80 GB.
local a100 = "NVIDIA A100 datasheet, 80 GB SXM4"
-- DRAM timings are given in ns and rounded up to cycles of the command clock.
local dram_khz = 1593000
local function cycles(ns) return math.ceil(ns * dram_khz / 1000000) end
local jedec = "JEDEC-typical HBM2 timing, as Accel-Sim's SM80_A100 (@9f767fb: tRCD 22, tRAS 50, tRP 22, CL 22, tRRD 7 at 1512 MHz)"

return product "a100_80" : on "ga100" {
  chip = { num_sms = datasheet(108, a100) },
  clock = {
    sm_max_khz = datasheet(1410000, a100 .. ": boost clock"),
    sm_tensor_max_khz = guess(1410000, "no figure found; no loss assumed"),
    dram_khz = datasheet(dram_khz, a100 .. ": 2039 GB/s over 5120 bits, two a clock"),
  },
  power = {
    limit_mw = datasheet(400000, a100),
    burst_limit_mw = guess(400000, "as sustained; not measured"),
  },
  dram = {
    kind = datasheet("hbm2e", a100),
    size_bytes = datasheet(80 * 1024 * 1024 * 1024, a100),
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
    controller_cycles = guess(262, "gpu-benches at 1410 MHz: DRAM plateau 569 (40 GB) and 540 to 552 (80 GB) cycles, half of the lines on the far side: 208 to L2 + 48 + 262 + 43 for ACT, RD and the burst"),
    ecc_inline_milli = guess(0, "HBM2 keeps ECC beside the data"),
  },
}
