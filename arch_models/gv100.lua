-- GV100 (Volta): the die of V100. Latencies are in cycles of the clock that the source names; L2 cycles count clock.l2_khz.
local guide = "CUDA C++ Programming Guide, technical specifications per compute capability"
local rates = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
local whitepaper = "NVIDIA Tesla V100 GPU Architecture whitepaper"
local isa = "NMSU-PEARL/GPUs-ISA-Latencies, Volta table"
local mt4g = "caps-tum/mt4g @4cc5566, sample results, V100"
local benches = "RRZE-HPC/gpu-benches @1038c5d, V100 at 1380 MHz"
local huerta = "Huerta et al., MICRO 2025 (Turing and Ampere; taken for Volta)"
local no_cp_async = "not used: the die has no such unit"

return die "gv100" {
  chip = {
    compute_capability = datasheet(70, guide),
    sms_per_tpc = datasheet(2, whitepaper .. ": 6 GPCs of 7 TPCs of 2 SMs"),
    num_gpcs = datasheet(6, whitepaper),
  },
  clock = {
    sm_step_khz = guess(7500, "nvidia-smi lists 1530, 1522, 1515 MHz on V100: steps of 7.5 MHz"),
    sm_min_khz = guess(135000, "lowest clock that nvidia-smi lists"),
    l2_khz = guess(1380000, "no figure found; the SM clock at which the latencies below were measured"),
  },
  power = {
    static_mw = guess(55000, "idle with HBM2 and leakage at load; not measured"),
    sm_cycle_fj = guess(760000, "chosen so that dense HMMA at 300 W holds about 1.35 GHz; not measured"),
    inst_fj = guess(400000, "about 12 pJ a lane in 12 nm; not measured"),
    tensor_mac_fj = guess(2800, "chosen so that dense HMMA at 300 W holds about 1.35 GHz; not measured"),
    shared_byte_fj = guess(2000, "order of magnitude of an SRAM access and 32 banks' crossbar in 12 nm"),
    l2_sector_fj = guess(450000, "about 1.8 pJ a bit over the die; not measured"),
    dram_byte_fj = guess(45000, "HBM2: about 4 to 6 pJ a bit with the PHY"),
    voltage_exponent_milli = guess(1400, "energy as V^2 with V as f^0.7 near the top of the curve"),
  },
  launch = {
    overhead_ns = guess(1500, "Nsight Compute shows 1 to 2 us for an empty kernel"),
    gap_ns = guess(1100, "back-to-back kernels take 2.6 us on A100 (RRZE-HPC/gpu-benches), of which 1.5 are the kernel's own"),
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
    scheduler = guess("gty", "measured on Turing and Ampere (Huerta et al., MICRO 2025); Volta taken as alike"),
    has_bf16 = datasheet(0, "PTX ISA, mma: bf16 from sm_80"),
    has_ldmatrix = datasheet(0, "PTX ISA, ldmatrix: from sm_75"),
    has_cp_async = datasheet(0, "PTX ISA, cp.async: from sm_80"),
    has_tma = datasheet(0, "PTX ISA, cp.async.bulk: from sm_90"),
    has_wgmma = datasheet(0, "PTX ISA, wgmma: from sm_90a"),
  },
  fp32 = {
    interval_cycles = datasheet(2, whitepaper .. ": 16 FP32 lanes a sub-core"),
    latency_cycles = measured(4, isa),
  },
  alu = {
    interval_cycles = datasheet(2, whitepaper .. ": 16 INT32 lanes a sub-core"),
    latency_cycles = measured(4, isa),
  },
  imad = {
    interval_cycles = datasheet(2, rates .. ": 64 a cycle and SM"),
    latency_cycles = measured(4, isa),
    pipe = guess("fp32", "IMAD issues to the FMA pipe on Volta and later; from memory"),
  },
  half = {
    interval_cycles = datasheet(2, rates .. ": 128 fp16 multiply-adds a cycle and SM"),
    latency_cycles = measured(6, isa),
  },
  cvt = {
    interval_cycles = guess(16, "two F2F at 16 a cycle and SM (CUDA C++ Programming Guide, type conversion); no packed form on Volta"),
    latency_cycles = guess(26, "a second F2F starts 8 cycles after the first; latency as other XU operations"),
    pipe = guess("sfu", "F2F runs on the XU, as MUFU does"),
  },
  sfu = {
    interval_cycles = datasheet(8, rates .. ": 16 results a cycle and SM"),
    latency_cycles = guess(17, "17 measured on sm_86 (Huerta et al.); 16 for the whole ex2.approx sequence in NMSU-PEARL's Volta table"),
  },
  branch = {
    redirect_cycles = guess(12, "FlashGPU-Sim @1769662, configuration of SM90"),
  },
  uniform = {
    latency_cycles = guess(4, "as GH100; lowering has uniform instructions for wgmma and TMA only"),
    move_latency_cycles = guess(13, "as GH100; lowering has R2UR for wgmma only"),
  },
  tensor = {
    mma_m = datasheet(8, "PTX ISA, mma.m8n8k4: one for each quad pair, four in a warp"),
    mma_n = datasheet(8, "PTX ISA, mma.m8n8k4"),
    mma_k = datasheet(4, "PTX ISA, mma.m8n8k4"),
    mma_fp32_interval_cycles = datasheet(8, whitepaper .. ": 8 tensor cores of 64 multiply-adds an SM; 4 x 8x8x4 = 1024 a warp / 128 a sub-core"),
    mma_fp16_interval_cycles = datasheet(8, whitepaper .. ": the same rate with fp16 accumulation"),
    mma_latency_cycles = guess(18, "four HMMA.884 steps two cycles apart, the last about 10 to 12 after issue; from memory of published microbenchmarks"),
    mma_num_insts = guess(4, "HMMA.884.F32 STEP0 to STEP3; from memory of disassembly"),
    peak_fma_per_cycle = datasheet(512, whitepaper .. ": 8 tensor cores x 64"),
    wgmma_fma_per_cycle = datasheet(0, "no wgmma before sm_90a"),
    wgmma_issue_cycles = guess(0, no_cp_async),
    wgmma_rs_issue_cycles = guess(0, no_cp_async),
    wgmma_tail_cycles = guess(0, no_cp_async),
    wgmma_queue_depth = guess(0, no_cp_async),
  },
  shared = {
    bytes_per_sm = datasheet(96 * 1024, guide),
    max_bytes_per_cta = datasheet(96 * 1024, guide),
    reserved_bytes_per_cta = measured(0, mt4g),
    unit_bytes = guess(256, "cuda_occupancy.h from memory"),
    bytes_per_cycle = datasheet(128, whitepaper),
    load_latency_cycles = measured(23, mt4g),
    ldmatrix_latency_cycles = guess(33, no_cp_async),
    shuffle_latency_cycles = guess(24, "as measured on H200 (24.1)"),
    shuffle_interval_cycles = datasheet(1, rates .. ": 32 threads a cycle and SM"),
    barrier_latency_cycles = guess(13, "as measured on H200 (13 + 2 cycles a warp)"),
    mbarrier_latency_cycles = guess(38, no_cp_async),
    barrier_interval_cycles = guess(2, "as measured on H200 (13 + 2 cycles a warp)"),
  },
  mio = {
    queue_entries = guess(5, huerta .. ": 4 entries and a latch"),
    issue_interval_cycles = guess(2, "8 load/store lanes a sub-core, twice those of the chips on which Huerta et al. measured 4"),
    warp_interval_cycles = guess(4, "as GA100 and GH100"),
    lsu_interval_cycles = guess(1, "32 load/store lanes an SM, twice those of the chips on which Huerta et al. measured 2"),
  },
  l1 = {
    unified_bytes = datasheet(128 * 1024, guide),
    line_bytes = measured(128, mt4g),
    sector_bytes = measured(32, mt4g),
    ways = guess(16, "no figure found; so many that conflicts are rare, as the full usable size in capacity sweeps shows"),
    hit_latency_cycles = measured(28, benches .. ": 27.9"),
    bytes_per_cycle = datasheet(128, whitepaper),
    max_pending_lines = guess(256, "no figure found; 256 in flight for cp.async in FlashGPU-Sim's SM90 configuration"),
    fill_bytes_per_cycle = guess(64, "as measured on H200: 60 by cp.async"),
  },
  tma = {
    issue_cycles = guess(0, no_cp_async),
    latency_cycles = guess(0, no_cp_async),
    lines_per_cycle_milli = guess(0, no_cp_async),
    max_pending_lines = guess(0, no_cp_async),
  },
  noc = {
    -- request + l2.hit + reply = 212 L2 cycles: the whole latency of a load that misses L1, measured as 212 at 1380 MHz.
    request_cycles = guess(64, benches .. ": near L2 hit 212 cycles, split 64 + 84 + 64 by guess"),
    reply_cycles = guess(64, benches .. ": near L2 hit 212 cycles, split 64 + 84 + 64 by guess"),
    far_cycles = measured(0, mt4g .. ": one L2 partition"),
    sm_read_bytes_per_cycle = guess(64, "two sectors a cycle; what single-SM bandwidth tests reach from memory"),
    sm_write_bytes_per_cycle = guess(32, "one sector a cycle"),
    gpc_read_bytes_per_cycle = guess(384, "above the 1775 B/cycle over 6 GPCs that gpu-benches reads from L2"),
    far_bytes_per_cycle = measured(0, mt4g .. ": one L2 partition"),
  },
  l2 = {
    size_bytes = datasheet(6 * 1024 * 1024, whitepaper),
    num_sides = measured(1, mt4g),
    num_slices = datasheet(64, whitepaper .. ": 64 slices of 96 KiB"),
    ways = guess(24, "Accel-Sim @667834c, configuration SM7_QV100"),
    replacement = guess("lru", "cyclic sweeps thrash as LRU does (gpu-benches: 0 DRAM reads a line at 5.5 MB, 1.0 at 7.6 MB)"),
    slice_bytes_per_cycle = datasheet(32, whitepaper .. ": 2048 B/cycle from 64 slices"),
    hit_cycles = guess(84, benches .. ": near L2 hit 212 cycles, split 64 + 84 + 64 by guess"),
    side_hash_granule_bytes = guess(4096, "not used: one side"),
    fill_sectors = guess(2, "default of cudaLimitMaxL2FetchGranularity observed as 64 B on CC 8.6 (forums.developer.nvidia.com 286508)"),
    coalescer_merges = measured(1, "RRZE-HPC/gpu-benches: L2 reads equal SM reads on V100"),
    coalescer_window_cycles = guess(0, "no request coalescer"),
    persisting_max_bytes = measured(0, mt4g),
    max_dirty_milli = guess(475, "as measured on H200"),
    busy_dirty_milli = guess(562, "as measured on H200"),
  },
}
