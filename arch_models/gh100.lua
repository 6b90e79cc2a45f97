-- GH100 (Hopper): the die of H100 and H200. L2 cycles count clock.l2_khz; other cycles are the SM's.
local guide = "CUDA C++ Programming Guide, technical specifications per compute capability"
local rates = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
local whitepaper = "NVIDIA H100 Tensor Core GPU Architecture whitepaper"
local mt4g = "caps-tum/mt4g @4cc5566, sample results, H100"
local luo = "Luo et al., arXiv 2501.12084, H800 PCIe"
local flashgpu = "FlashGPU-Sim @1769662, configuration of SM90 calibrated on an H200 NVL"
local validation = "H100 PCIe microbenchmark validation report"
local huerta = "Huerta et al., MICRO 2025 (GA102; taken for Hopper)"
local near_hit = "Luo et al., arXiv 2501.12084: near L2 hit 258; gpu-benches, H100 PCIe at 1755 MHz: 264 cycles; here 262, split 84 + 94 + 84 by guess"

return die "gh100" {
  chip = {
    compute_capability = datasheet(90, guide),
    sms_per_tpc = datasheet(2, whitepaper .. ": 8 GPCs of 9 TPCs of 2 SMs"),
    num_gpcs = datasheet(8, whitepaper),
  },
  clock = {
    sm_step_khz = guess(15000, "nvidia-smi lists steps of 15 MHz"),
    sm_min_khz = guess(345000, "lowest clock that nvidia-smi lists"),
    l2_khz = guess(1860000, "the clock at which the 262 L2 cycles of H100 PCIe take the 281 SM cycles that GH200 shows at 1980 MHz"),
  },
  power = {
    sm_cycle_fj = guess(900000, "chosen so that dense wgmma at 700 W holds about 1.7 GHz; not measured"),
    inst_fj = guess(150000, "about 5 pJ a lane in 4 nm; not measured"),
    tensor_mac_fj = guess(840, "chosen so that dense wgmma on random data at 700 W holds about 1.7 GHz; not measured"),
    shared_byte_fj = guess(1000, "order of magnitude of an SRAM access and 32 banks' crossbar in 4 nm"),
    l2_sector_fj = guess(400000, "about 1.6 pJ a bit over the die; H100 PCIe falls to 1395 MHz on L2 reads alone (Chips and Cheese)"),
    dram_byte_fj = guess(34000, "HBM3: about 4 pJ a bit with the PHY"),
    voltage_exponent_milli = guess(1400, "energy as V^2 with V as f^0.7 near the top of the curve"),
  },
  launch = {
    overhead_ns = guess(1400, "of the 2.45 us between back-to-back kernels (gpu-benches, GH200): what Nsight Compute shows for an empty kernel"),
    gap_ns = guess(1050, "the rest of the 2.45 us"),
    cta_interval_cycles = guess(4, "no figure found; simulators use 0"),
    cta_start_cycles = guess(200, "no figure found; simulators use 0"),
  },
  sm = {
    num_subcores = datasheet(4, whitepaper),
    max_warps = datasheet(64, guide),
    max_ctas = datasheet(32, guide),
    max_threads_per_cta = datasheet(1024, guide),
    num_registers = datasheet(65536, guide),
    max_registers_per_thread = datasheet(255, guide),
    register_unit = datasheet(256, "cuda_occupancy.h of the CUDA Toolkit"),
    warp_unit = guess(4, "cuda_occupancy.h from memory: allocation granularity of four warps, one a sub-core"),
    num_barriers = datasheet(16, "PTX ISA, bar: barriers 0 to 15"),
    scheduler = guess("gty", "measured on GA102 (Huerta et al., MICRO 2025)"),
    has_bf16 = datasheet(1, "PTX ISA, mma: bf16 from sm_80"),
    has_ldmatrix = datasheet(1, "PTX ISA, ldmatrix: from sm_75"),
    has_cp_async = datasheet(1, "PTX ISA, cp.async: from sm_80"),
    has_tma = datasheet(1, "PTX ISA, cp.async.bulk: from sm_90"),
    has_wgmma = datasheet(1, "PTX ISA, wgmma: from sm_90a"),
  },
  fp32 = {
    interval_cycles = datasheet(1, whitepaper .. ": 32 FP32 lanes a sub-core"),
    latency_cycles = measured(4, validation .. ": dependent FFMA 4.4 with the loop"),
  },
  alu = {
    interval_cycles = datasheet(2, whitepaper .. ": 16 INT32 lanes a sub-core"),
    latency_cycles = guess(4, huerta),
  },
  imad = {
    interval_cycles = guess(2, "64 a cycle and SM on CC 8.6 (CUDA C++ Programming Guide)"),
    latency_cycles = guess(4, huerta),
    pipe = guess("fp32", "IMAD issues to the FMA pipe on Volta and later; from memory"),
  },
  half = {
    interval_cycles = datasheet(1, rates .. ": 256 fp16 multiply-adds a cycle and SM"),
    latency_cycles = guess(5, huerta .. ": HADD2"),
  },
  cvt = {
    interval_cycles = guess(2, "F2FP.PACK_AB at half rate; rate not measured"),
    latency_cycles = guess(5, "as other two-cycle ALU operations"),
    pipe = guess("alu", "F2FP.PACK_AB does not use the XU; the pipe is a guess"),
  },
  sfu = {
    interval_cycles = datasheet(8, rates .. ": 16 results a cycle and SM"),
    latency_cycles = measured(19, validation .. ": dependent MUFU.EX2 18.91"),
  },
  branch = {
    redirect_cycles = guess(12, flashgpu),
  },
  tensor = {
    mma_m = datasheet(16, "PTX ISA, mma.m16n8k16: from sm_80"),
    mma_n = datasheet(8, "PTX ISA, mma.m16n8k16"),
    mma_k = datasheet(16, "PTX ISA, mma.m16n8k16"),
    mma_fp32_interval_cycles = guess(6, flashgpu .. "; mma.sync reaches 62.9 % of the peak (Luo et al.), which would be 6.4"),
    mma_fp16_interval_cycles = guess(6, "as with fp32 accumulation"),
    mma_latency_cycles = guess(22, flashgpu),
    mma_num_insts = datasheet(1, "CUDA Binary Utilities: HMMA.16816 is one instruction"),
    peak_fma_per_cycle = datasheet(2048, whitepaper .. ": 4 tensor cores x 512"),
    wgmma_fma_per_cycle = measured(2048, luo .. ": m64n256k16 in 128 cycles"),
    wgmma_issue_cycles = guess(4, flashgpu),
    wgmma_rs_issue_cycles = guess(10, flashgpu .. ": 9 to 10"),
    wgmma_tail_cycles = guess(54, flashgpu .. ": 47 to 75 from shared memory, 37 to 65 from registers, rising with N"),
    wgmma_queue_depth = guess(6, flashgpu .. ": 6 from shared memory, 5 from registers"),
  },
  shared = {
    bytes_per_sm = datasheet(228 * 1024, guide),
    max_bytes_per_cta = datasheet(227 * 1024, guide),
    reserved_bytes_per_cta = datasheet(1024, guide),
    unit_bytes = datasheet(128, "cuda_occupancy.h of the CUDA Toolkit"),
    bytes_per_cycle = measured(128, luo .. ": 127.4 to 127.9"),
    load_latency_cycles = measured(29, luo),
    ldmatrix_latency_cycles = guess(33, "x4: 29 to 33 from memory of published microbenchmarks"),
    shuffle_latency_cycles = guess(24, "23 to 25 from memory of published microbenchmarks"),
    shuffle_interval_cycles = datasheet(1, rates .. ": 32 threads a cycle and SM"),
    barrier_latency_cycles = guess(22, flashgpu .. ": 15 to 30 after the last arrival"),
    mbarrier_latency_cycles = guess(38, flashgpu .. ": 32 to 43"),
  },
  mio = {
    queue_entries = guess(5, huerta .. ": 4 entries and a latch"),
    issue_interval_cycles = guess(2, "8 load/store lanes a sub-core, twice those of the chips on which Huerta et al. measured 4"),
    lsu_interval_cycles = guess(1, "32 load/store lanes an SM, twice those of the chips on which Huerta et al. measured 2"),
  },
  l1 = {
    unified_bytes = datasheet(256 * 1024, guide),
    line_bytes = measured(128, mt4g),
    sector_bytes = measured(32, mt4g),
    ways = guess(16, "no figure found; so many that conflicts are rare"),
    hit_latency_cycles = measured(33, "gpu-benches: 34 on H100 PCIe, 32 on GH200"),
    bytes_per_cycle = measured(128, "gpu-benches: 126 to 128"),
    max_pending_lines = guess(256, flashgpu .. ": 256 cp.async in flight"),
  },
  tma = {
    issue_cycles = guess(33, flashgpu .. ": 32 to 33 for elect and issue"),
    latency_cycles = measured(100, "HPMLL/NVIDIA-Hopper-Benchmark: TMA near L2 366 cycles, a load 264"),
    lines_per_cycle_milli = guess(1000, "one 128-byte request a cycle; the port to L2 is slower than that"),
    max_pending_lines = guess(384, flashgpu .. ": 384 requests of 128 B an SM"),
  },
  noc = {
    -- request + l2.hit + reply = 262 L2 cycles: the whole latency of a load that misses L1 and hits the near side.
    request_cycles = guess(84, near_hit),
    reply_cycles = guess(84, near_hit),
    far_cycles = measured(78, luo .. ": far hit 414, near hit 258: two crossings of 78"),
    sm_read_bytes_per_cycle = guess(64, "two sectors a cycle; what single-SM bandwidth tests reach from memory"),
    sm_write_bytes_per_cycle = guess(32, "one sector a cycle"),
    gpc_read_bytes_per_cycle = guess(640, "reads of one buffer by all SMs, which the coalescer multiplies, stop at 8.2 to 8.4 TB/s on H100 PCIe (gpu-benches)"),
    far_bytes_per_cycle = guess(2048, "two thirds of what one side's slices deliver; enough for DRAM reads of which half cross; not measured"),
  },
  l2 = {
    size_bytes = datasheet(50 * 1024 * 1024, whitepaper),
    num_sides = datasheet(2, whitepaper .. ": two partitions"),
    num_slices = guess(80, "Accel-Sim 2.0 @01f6fc4, configuration SM90_H100: 80 slices of 640 KiB"),
    ways = guess(20, "Accel-Sim 2.0 @01f6fc4, configuration SM90_H100"),
    replacement = guess("nru", "a two-sided NRU model fits the bandwidth curves of gpu-benches to 0.07 (H100) and 0.05 (GH200) in miss rate, LRU to 0.20 and 0.11"),
    slice_bytes_per_cycle = measured(56, luo .. ": 4472 B/cycle over 80 slices"),
    hit_cycles = guess(94, near_hit),
    side_hash_granule_bytes = measured(4096, "ademeure/cuda-side-boost, H100"),
    fill_sectors = guess(2, "default of cudaLimitMaxL2FetchGranularity observed as 64 B on CC 8.6 (forums.developer.nvidia.com 286508)"),
    coalescer_merges = guess(4, "Accel-Sim 2.0 @01f6fc4: at most 4; gpu-benches, H100 PCIe: SM reads / L2 reads up to 3.7"),
    coalescer_window_cycles = guess(16, "no figure found"),
    persisting_max_bytes = measured(39321600, mt4g),
  },
}
