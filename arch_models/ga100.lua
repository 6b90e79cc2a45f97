-- GA100 (Ampere): the die of A100. Latencies are in cycles at 1410 MHz, where they were measured.
local guide = "CUDA C++ Programming Guide, technical specifications per compute capability"
local rates = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
local whitepaper = "NVIDIA A100 Tensor Core GPU Architecture whitepaper"
local mt4g = "caps-tum/mt4g @4cc5566, sample results, A100"
local benches = "RRZE-HPC/gpu-benches @1038c5d, A100 at 1410 MHz"
local huerta = "Huerta et al., MICRO 2025 (GA102; taken for GA100)"
local luo = "Luo et al., arXiv 2402.13499, A100"
local near_hit = "gpu-benches, A100 at 1410 MHz: near L2 hit 205 (80 GB) and 212 (40 GB) cycles, here 208, split 66 + 76 + 66 by guess"
local unused = "not used: the die has no such unit"

return die "ga100" {
  chip = {
    compute_capability = datasheet(80, guide),
    sms_per_tpc = datasheet(2, whitepaper .. ": 8 GPCs of 8 TPCs of 2 SMs"),
    num_gpcs = guess(7, "the die has 8; products enable 7, from memory"),
  },
  clock = {
    sm_step_khz = guess(15000, "nvidia-smi lists steps of 15 MHz"),
    sm_min_khz = guess(210000, "lowest clock that nvidia-smi lists"),
    l2_khz = measured(1410000, "smallscientist1/cuda_microbenchmark: 5414 GB/s = 80 slices x 1.5 sectors x 1410 MHz, so L2 runs at the SM's clock"),
  },
  power = {
    static_mw = guess(72000, "idle with HBM2 and leakage at load; not measured"),
    sm_cycle_fj = guess(730000, "chosen so that dense HMMA at 400 W holds about 1.29 GHz; not measured"),
    inst_fj = guess(250000, "about 8 pJ a lane in 7 nm; not measured"),
    tensor_mac_fj = guess(1350, "chosen so that dense HMMA at 400 W holds about 1.29 GHz; not measured"),
    shared_byte_fj = guess(1500, "order of magnitude of an SRAM access and 32 banks' crossbar in 7 nm"),
    l2_sector_fj = guess(450000, "about 1.8 pJ a bit over the die; not measured"),
    dram_byte_fj = guess(45000, "HBM2: about 4 to 6 pJ a bit with the PHY"),
    voltage_exponent_milli = guess(1400, "energy as V^2 with V as f^0.7 near the top of the curve"),
  },
  launch = {
    overhead_ns = guess(1500, "of the 2.63 us between back-to-back kernels (gpu-benches, A100): what Nsight Compute shows for an empty kernel"),
    gap_ns = guess(1130, "the rest of the 2.63 us"),
    cta_interval_cycles = guess(4, "as measured on H200"),
    cta_start_cycles = guess(374, "as measured on H200"),
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
    drift_ns = guess(12, "as measured on H200"),
    scheduler = guess("gty", "measured on GA102 (Huerta et al., MICRO 2025)"),
    has_bf16 = datasheet(1, "PTX ISA, mma: bf16 from sm_80"),
    has_ldmatrix = datasheet(1, "PTX ISA, ldmatrix: from sm_75"),
    has_cp_async = datasheet(1, "PTX ISA, cp.async: from sm_80"),
    has_tma = datasheet(0, "PTX ISA, cp.async.bulk: from sm_90"),
    has_wgmma = datasheet(0, "PTX ISA, wgmma: from sm_90a"),
  },
  fp32 = {
    interval_cycles = datasheet(2, whitepaper .. ": 16 FP32 lanes a sub-core"),
    latency_cycles = guess(4, huerta),
  },
  alu = {
    interval_cycles = datasheet(2, whitepaper .. ": 16 INT32 lanes a sub-core"),
    latency_cycles = guess(4, huerta),
  },
  imad = {
    interval_cycles = datasheet(2, rates .. ": 64 a cycle and SM"),
    latency_cycles = guess(4, huerta),
    pipe = guess("fp32", "IMAD issues to the FMA pipe on Volta and later; from memory"),
  },
  half = {
    interval_cycles = datasheet(1, rates .. ": 256 fp16 multiply-adds a cycle and SM (Accel-Sim's authors measured 200)"),
    latency_cycles = guess(5, huerta .. ": HADD2"),
  },
  cvt = {
    interval_cycles = guess(2, "as measured on H200: half rate"),
    latency_cycles = guess(4, "as measured on H200 (4.2)"),
    pipe = guess("alu", "F2FP.PACK_AB does not use the XU; the pipe is a guess"),
  },
  sfu = {
    interval_cycles = datasheet(8, rates .. ": 16 results a cycle and SM"),
    latency_cycles = guess(17, "17 measured on sm_86 (Huerta et al.), 17.1 on H200; simulators use 23"),
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
    mma_fp32_interval_cycles = datasheet(8, whitepaper .. ": 4 tensor cores of 256 multiply-adds an SM; 2048 / 256 a sub-core"),
    mma_fp16_interval_cycles = datasheet(8, whitepaper .. ": the same rate with fp16 accumulation"),
    mma_latency_cycles = guess(25, "Accel-Sim @9f767fb, configuration SM80_A100; 24 to 33 from memory of published microbenchmarks"),
    mma_num_insts = datasheet(1, "CUDA Binary Utilities: HMMA.16816 is one instruction"),
    peak_fma_per_cycle = datasheet(1024, whitepaper .. ": 4 tensor cores x 256"),
    wgmma_fma_per_cycle = datasheet(0, "no wgmma before sm_90a"),
    wgmma_issue_cycles = guess(0, unused),
    wgmma_rs_issue_cycles = guess(0, unused),
    wgmma_tail_cycles = guess(0, unused),
    wgmma_queue_depth = guess(0, unused),
  },
  shared = {
    bytes_per_sm = datasheet(164 * 1024, guide),
    max_bytes_per_cta = datasheet(163 * 1024, guide),
    reserved_bytes_per_cta = datasheet(1024, guide),
    unit_bytes = datasheet(128, "cuda_occupancy.h of the CUDA Toolkit"),
    bytes_per_cycle = datasheet(128, whitepaper),
    load_latency_cycles = guess(23, "Luo et al. (arXiv 2402.13499) report 29 for A100 and H800 alike, where H200 shows 23.3 without address arithmetic"),
    ldmatrix_latency_cycles = guess(29, "x4: as measured on H200 (29.3)"),
    shuffle_latency_cycles = guess(24, "as measured on H200 (24.1)"),
    shuffle_interval_cycles = datasheet(1, rates .. ": 32 threads a cycle and SM"),
    barrier_latency_cycles = guess(13, "as measured on H200 (13 + 2 cycles a warp)"),
    mbarrier_latency_cycles = guess(38, "32 to 43 in FlashGPU-Sim @1769662, configuration of SM90"),
    barrier_interval_cycles = guess(2, "as measured on H200 (13 + 2 cycles a warp)"),
  },
  mio = {
    queue_entries = guess(5, huerta .. ": 4 entries and a latch"),
    issue_interval_cycles = guess(2, "8 load/store lanes a sub-core, twice those of the chips on which Huerta et al. measured 4"),
    warp_interval_cycles = measured(4, "stall counts of ptxas 13.0 in sm_80 code of kernels/attention"),
    lsu_interval_cycles = guess(1, "32 load/store lanes an SM, twice those of the chips on which Huerta et al. measured 2"),
  },
  l1 = {
    unified_bytes = datasheet(192 * 1024, guide),
    line_bytes = measured(128, mt4g),
    sector_bytes = measured(32, mt4g),
    ways = guess(16, "no figure found; so many that conflicts are rare"),
    hit_latency_cycles = measured(33, benches),
    bytes_per_cycle = datasheet(128, whitepaper .. "; 125 measured by gpu-benches"),
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
    -- request + l2.hit + reply = 208 L2 cycles: the whole latency of a load that misses L1 and hits the near side.
    request_cycles = guess(66, near_hit),
    reply_cycles = guess(66, near_hit),
    far_cycles = measured(48, "derived: far hit about 300 cycles, by algebra on the plateaus of gpu-benches and 311 from one-slice bandwidths (Jin 2024): two crossings of 48"),
    sm_read_bytes_per_cycle = guess(64, "two sectors a cycle; what single-SM bandwidth tests reach from memory"),
    sm_write_bytes_per_cycle = guess(32, "one sector a cycle"),
    gpc_read_bytes_per_cycle = guess(640, "above the 3850 B/cycle over 7 GPCs that gpu-benches reads from L2"),
    far_bytes_per_cycle = guess(1280, "half of what one side's slices deliver; enough for DRAM reads of which half cross; not measured"),
  },
  l2 = {
    size_bytes = datasheet(40 * 1024 * 1024, whitepaper),
    num_sides = datasheet(2, whitepaper .. ": two partitions"),
    num_slices = datasheet(80, whitepaper .. ": 80 slices of 512 KiB"),
    ways = guess(16, "Accel-Sim @9f767fb, configuration SM80_A100"),
    replacement = measured("lru", "gpu-cache counters: 0.01, 0.89 and 1.00 DRAM reads a line and pass at 19.5, 22.8 and 31 MB with LRU, where 0, 0.87 and 0.97 were counted; an NRU model fits the bandwidth curve of private data better (0.015 in miss rate)"),
    slice_bytes_per_cycle = measured(48, "smallscientist1/cuda_microbenchmark, A100: 1.5 sectors a cycle and slice (64 B by design)"),
    hit_cycles = guess(76, near_hit),
    side_hash_granule_bytes = guess(4096, "measured on H100 (ademeure/cuda-side-boost); taken for A100"),
    fill_sectors = guess(2, "default of cudaLimitMaxL2FetchGranularity observed as 64 B on CC 8.6 (forums.developer.nvidia.com 286508)"),
    coalescer_merges = measured(1, "te42kyfo/gpu-benches: L2 reads equal SM reads on A100"),
    coalescer_window_cycles = guess(0, "no request coalescer"),
    persisting_max_bytes = measured(26214400, mt4g),
    max_dirty_milli = guess(475, "as measured on H200"),
    busy_dirty_milli = guess(562, "as measured on H200"),
  },
}
