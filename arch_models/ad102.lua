-- AD102 (Ada Lovelace): the die of RTX 4090 and L40S. L2 latencies were measured on an L40, the same die.
local guide = "CUDA C++ Programming Guide, technical specifications per compute capability"
local rates = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
local whitepaper = "NVIDIA Ada GPU Architecture whitepaper"
local benches = "RRZE-HPC/gpu-benches @1038c5d, L40 at 2490 MHz"
local huerta = "Huerta et al., MICRO 2025 (GA102; taken for AD102)"
local near_hit = benches .. ": L2 hit 274 to 285 cycles, here 279, split 89 + 101 + 89 by guess"
local unused = "not used: the die has no such unit"

return die "ad102" {
  chip = {
    compute_capability = datasheet(89, guide),
    sms_per_tpc = datasheet(2, whitepaper .. ": 12 GPCs of 6 TPCs of 2 SMs"),
    num_gpcs = datasheet(12, whitepaper),
  },
  clock = {
    sm_step_khz = guess(15000, "nvidia-smi lists steps of 15 MHz"),
    sm_min_khz = guess(210000, "lowest clock that nvidia-smi lists"),
    l2_khz = guess(2490000, "no figure found; the SM clock at which the latencies below were measured"),
  },
  power = {
    static_mw = guess(58000, "idle with GDDR6 or GDDR6X and leakage at load; not measured"),
    sm_cycle_fj = guess(350000, "chosen so that dense HMMA holds about 2.0 GHz on an L40S at 350 W and the boost clock on an RTX 4090; not measured"),
    inst_fj = guess(170000, "about 5 pJ a lane in 5 nm; not measured"),
    tensor_mac_fj = guess(1450, "chosen so that dense HMMA holds about 2.0 GHz on an L40S at 350 W and the boost clock on an RTX 4090; not measured"),
    shared_byte_fj = guess(1000, "order of magnitude of an SRAM access and 32 banks' crossbar in 5 nm"),
    l2_sector_fj = guess(300000, "about 1.2 pJ a bit over the die; not measured"),
    dram_byte_fj = guess(60000, "GDDR6 and GDDR6X: about 7 to 8 pJ a bit"),
    voltage_exponent_milli = guess(1400, "energy as V^2 with V as f^0.7 near the top of the curve"),
  },
  launch = {
    overhead_ns = guess(900, "of the 1.60 us between back-to-back kernels (gpu-benches, L40): what Nsight Compute shows for an empty kernel"),
    gap_ns = guess(700, "the rest of the 1.60 us"),
    cta_interval_cycles = guess(4, "as measured on H200"),
    cta_start_cycles = guess(374, "as measured on H200"),
  },
  sm = {
    num_subcores = datasheet(4, whitepaper),
    max_warps = datasheet(48, guide),
    max_ctas = datasheet(24, guide),
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
    has_tma = datasheet(0, "PTX ISA, cp.async.bulk: from sm_90"),
    has_wgmma = datasheet(0, "PTX ISA, wgmma: from sm_90a"),
  },
  fp32 = {
    interval_cycles = datasheet(1, whitepaper .. ": 32 FP32 lanes a sub-core, 16 of them shared with INT32"),
    latency_cycles = guess(4, huerta),
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
    interval_cycles = datasheet(2, rates .. ": 128 fp16 multiply-adds a cycle and SM"),
    latency_cycles = guess(5, huerta .. ": HADD2"),
  },
  cvt = {
    interval_cycles = guess(2, "as measured on H200: half rate"),
    latency_cycles = guess(4, "as measured on H200 (4.2)"),
    pipe = guess("alu", "F2FP.PACK_AB does not use the XU; the pipe is a guess"),
  },
  sfu = {
    interval_cycles = datasheet(8, rates .. ": 16 results a cycle and SM"),
    latency_cycles = guess(17, "measured on sm_86 (Huerta et al.)"),
  },
  branch = {
    redirect_cycles = guess(12, "FlashGPU-Sim @1769662, configuration of SM90"),
  },
  uniform = {
    latency_cycles = guess(4, "as GH100; lowering has uniform instructions for wgmma and TMA only"),
    move_latency_cycles = guess(13, "as GH100; lowering has R2UR for wgmma only"),
  },
  tensor = {
    mma_m = datasheet(16, "PTX ISA, mma.m16n8k16: from sm_80"),
    mma_n = datasheet(8, "PTX ISA, mma.m16n8k16"),
    mma_k = datasheet(16, "PTX ISA, mma.m16n8k16"),
    mma_fp32_interval_cycles = guess(16, "the die's rate of 512 an SM: 362 TFLOP/s on L40S from memory; GeForce products halve it"),
    mma_fp16_interval_cycles = guess(16, "512 multiply-adds a cycle and SM, as GA102; 2048 / 128 a sub-core"),
    mma_latency_cycles = guess(25, "A100's, whose unit also takes no second pass for fp32 accumulation; not measured"),
    mma_num_insts = datasheet(1, "CUDA Binary Utilities: HMMA.16816 is one instruction"),
    peak_fma_per_cycle = guess(512, "the die's rate with fp32 accumulation; GeForce products halve it"),
    wgmma_fma_per_cycle = datasheet(0, "no wgmma before sm_90a"),
    wgmma_issue_cycles = guess(0, unused),
    wgmma_rs_issue_cycles = guess(0, unused),
    wgmma_tail_cycles = guess(0, unused),
    wgmma_queue_depth = guess(0, unused),
  },
  shared = {
    bytes_per_sm = datasheet(100 * 1024, guide),
    max_bytes_per_cta = datasheet(99 * 1024, guide),
    reserved_bytes_per_cta = datasheet(1024, guide),
    unit_bytes = datasheet(128, "cuda_occupancy.h of the CUDA Toolkit"),
    bytes_per_cycle = datasheet(128, whitepaper),
    load_latency_cycles = guess(24, "measured on GA102 (Huerta et al., MICRO 2025)"),
    ldmatrix_latency_cycles = guess(29, "x4: as measured on H200 (29.3)"),
    shuffle_latency_cycles = guess(24, "as measured on H200 (24.1)"),
    shuffle_interval_cycles = datasheet(1, rates .. ": 32 threads a cycle and SM"),
    barrier_latency_cycles = guess(13, "as measured on H200 (13 + 2 cycles a warp)"),
    mbarrier_latency_cycles = guess(38, "32 to 43 in FlashGPU-Sim @1769662, configuration of SM90"),
    barrier_interval_cycles = guess(2, "as measured on H200 (13 + 2 cycles a warp)"),
  },
  mio = {
    queue_entries = guess(5, huerta .. ": 4 entries and a latch"),
    issue_interval_cycles = guess(4, huerta .. ": the address unit takes one in 4 cycles"),
    warp_interval_cycles = guess(4, "as GA100 and GH100"),
    lsu_interval_cycles = guess(2, huerta .. ": one in 2 cycles and SM"),
  },
  l1 = {
    unified_bytes = datasheet(128 * 1024, guide),
    line_bytes = datasheet(128, guide),
    sector_bytes = guess(32, "measured on V100, A100 and H100 (caps-tum/mt4g)"),
    ways = guess(16, "no figure found; so many that conflicts are rare"),
    hit_latency_cycles = measured(34, benches),
    bytes_per_cycle = measured(64, benches .. " (128 in the whitepaper)"),
    max_pending_lines = guess(256, "no figure found; 256 in flight for cp.async in FlashGPU-Sim's SM90 configuration"),
    fill_bytes_per_cycle = guess(64, "as measured on H200: 60 by cp.async"),
  },
  tma = {
    issue_cycles = guess(0, unused),
    latency_cycles = guess(0, unused),
    lines_per_cycle_milli = guess(0, unused),
    max_pending_lines = guess(0, unused),
  },
  noc = {
    -- request + l2.hit + reply = 279 L2 cycles: the whole latency of a load that misses L1.
    request_cycles = guess(89, near_hit),
    reply_cycles = guess(89, near_hit),
    far_cycles = measured(0, "caps-tum/mt4g: one L2 partition"),
    sm_read_bytes_per_cycle = guess(64, "two sectors a cycle; what single-SM bandwidth tests reach from memory"),
    sm_write_bytes_per_cycle = guess(32, "one sector a cycle"),
    gpc_read_bytes_per_cycle = guess(384, "above the 2290 B/cycle over 12 GPCs that gpu-benches reads from L2"),
    far_bytes_per_cycle = measured(0, "caps-tum/mt4g: one L2 partition"),
  },
  l2 = {
    size_bytes = datasheet(96 * 1024 * 1024, whitepaper),
    num_sides = measured(1, "caps-tum/mt4g: one L2 partition"),
    num_slices = guess(48, "four for each of the 12 memory controllers, as GA102"),
    ways = guess(16, "no figure found; as GA102"),
    replacement = guess("lru", "cyclic sweeps thrash as LRU does (gpu-benches, L40: 285 cycles at 91 MiB, 613 at 119 MiB)"),
    slice_bytes_per_cycle = guess(48, benches .. ": 2090 to 2290 B/cycle over 48 slices is 44 to 48, 1.5 sectors as on A100"),
    hit_cycles = guess(101, near_hit),
    side_hash_granule_bytes = guess(4096, "not used: one side"),
    fill_sectors = guess(2, "default of cudaLimitMaxL2FetchGranularity observed as 64 B on CC 8.6 (forums.developer.nvidia.com 286508)"),
    coalescer_merges = guess(1, "measured as 1 on V100 and A100"),
    coalescer_window_cycles = guess(0, "no request coalescer"),
    persisting_max_bytes = guess(62914560, "62.5 % of L2, as measured on A100 (caps-tum/mt4g)"),
    max_dirty_milli = guess(475, "as measured on H200"),
    busy_dirty_milli = guess(562, "as measured on H200"),
  },
}
