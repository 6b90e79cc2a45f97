-- TU102 (Turing): the die of RTX 2080 Ti. Latencies are in cycles of the clock that the source names.
local guide = "CUDA C++ Programming Guide, technical specifications per compute capability"
local rates = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
local whitepaper = "NVIDIA Turing GPU Architecture whitepaper"
local isa = "NMSU-PEARL/GPUs-ISA-Latencies, Turing table"
local mt4g = "caps-tum/mt4g @4cc5566, sample results, RTX 2080 Ti"
local rtx2070 = "sjfeng1999/gpu-arch-microbenchmark, RTX 2070 (TU106)"
local huerta = "Huerta et al., MICRO 2025, RTX 2080 Ti"
local unused = "not used: the die has no such unit"

return die "tu102" {
  chip = {
    compute_capability = datasheet(75, guide),
    sms_per_tpc = datasheet(2, whitepaper .. ": 6 GPCs of 6 TPCs of 2 SMs"),
    num_gpcs = datasheet(6, whitepaper),
  },
  clock = {
    sm_step_khz = guess(15000, "nvidia-smi lists steps of 15 MHz"),
    sm_min_khz = guess(300000, "lowest clock that nvidia-smi lists"),
    l2_khz = guess(1545000, "no figure found; taken as the SM's boost clock"),
  },
  power = {
    static_mw = guess(45000, "idle with GDDR6 and leakage at load; not measured"),
    sm_cycle_fj = guess(500000, "chosen so that dense HMMA with fp32 accumulation stays at the boost clock; not measured"),
    inst_fj = guess(400000, "about 12 pJ a lane in 12 nm; not measured"),
    tensor_mac_fj = guess(2800, "as GV100: the same process; not measured"),
    shared_byte_fj = guess(2000, "order of magnitude of an SRAM access and 32 banks' crossbar in 12 nm"),
    l2_sector_fj = guess(400000, "about 1.6 pJ a bit over the die; not measured"),
    dram_byte_fj = guess(60000, "GDDR6: about 7 to 8 pJ a bit"),
    voltage_exponent_milli = guess(1400, "energy as V^2 with V as f^0.7 near the top of the curve"),
  },
  launch = {
    overhead_ns = guess(1300, "Nsight Compute shows 1 to 2 us for an empty kernel"),
    gap_ns = guess(900, "back-to-back kernels take 2.0 us on A40 (RRZE-HPC/gpu-benches)"),
    cta_interval_cycles = guess(4, "as measured on H200"),
    cta_start_cycles = guess(374, "as measured on H200"),
  },
  sm = {
    num_subcores = datasheet(4, whitepaper),
    max_warps = datasheet(32, guide),
    max_ctas = datasheet(16, guide),
    max_threads_per_cta = datasheet(1024, guide),
    num_registers = datasheet(65536, guide),
    max_registers_per_thread = datasheet(255, guide),
    register_unit = datasheet(256, "cuda_occupancy.h of the CUDA Toolkit"),
    warp_unit = guess(4, "cuda_occupancy.h from memory: allocation granularity of four warps, one a sub-core"),
    num_barriers = datasheet(16, "PTX ISA, bar: barriers 0 to 15"),
    drift_ns = guess(12, "as measured on H200"),
    scheduler = measured("gty", huerta),
    has_bf16 = datasheet(0, "PTX ISA, mma: bf16 from sm_80"),
    has_ldmatrix = datasheet(1, "PTX ISA, ldmatrix: from sm_75"),
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
    interval_cycles = guess(2, "F2FP.PACK_AB at half rate; from memory of disassembly, rate not measured"),
    latency_cycles = guess(5, "as other two-cycle ALU operations"),
    pipe = guess("alu", "F2FP.PACK_AB does not use the XU; the pipe is a guess"),
  },
  sfu = {
    interval_cycles = datasheet(8, rates .. ": 16 results a cycle and SM"),
    latency_cycles = guess(17, "17 measured on sm_86 (Huerta et al.); 16 for the whole ex2.approx sequence in NMSU-PEARL's Turing table"),
  },
  branch = {
    redirect_cycles = guess(12, "FlashGPU-Sim @1769662, configuration of SM90"),
  },
  uniform = {
    latency_cycles = guess(4, "as GH100; lowering has uniform instructions for wgmma and TMA only"),
    move_latency_cycles = guess(13, "as GH100; lowering has R2UR for wgmma only"),
  },
  tensor = {
    mma_m = datasheet(16, "PTX ISA, mma.m16n8k8 with fp16: from sm_75"),
    mma_n = datasheet(8, "PTX ISA, mma.m16n8k8"),
    mma_k = datasheet(8, "PTX ISA, mma.m16n8k8"),
    mma_fp32_interval_cycles = datasheet(8, whitepaper .. ": 8 tensor cores of 64 multiply-adds an SM; 1024 / 128 a sub-core (GeForce products halve it)"),
    mma_fp16_interval_cycles = datasheet(8, whitepaper .. ": 1024 / 128 a sub-core"),
    mma_latency_cycles = guess(18, "17 to 18 for m16n8k8 from memory of published microbenchmarks"),
    mma_num_insts = datasheet(1, "CUDA Binary Utilities: HMMA.1688 is one instruction"),
    peak_fma_per_cycle = datasheet(512, whitepaper .. ": 8 tensor cores x 64"),
    wgmma_fma_per_cycle = datasheet(0, "no wgmma before sm_90a"),
    wgmma_issue_cycles = guess(0, unused),
    wgmma_rs_issue_cycles = guess(0, unused),
    wgmma_tail_cycles = guess(0, unused),
    wgmma_queue_depth = guess(0, unused),
  },
  shared = {
    bytes_per_sm = datasheet(64 * 1024, guide),
    max_bytes_per_cta = datasheet(64 * 1024, guide),
    reserved_bytes_per_cta = measured(0, mt4g),
    unit_bytes = guess(256, "cuda_occupancy.h from memory"),
    bytes_per_cycle = datasheet(64, whitepaper .. ": 64 B a cycle and SM"),
    load_latency_cycles = measured(24, huerta .. ": LDS to a dependent instruction; 23 on RTX 2070"),
    ldmatrix_latency_cycles = guess(29, "x4: as measured on H200 (29.3)"),
    shuffle_latency_cycles = guess(24, "as measured on H200 (24.1)"),
    shuffle_interval_cycles = datasheet(1, rates .. ": 32 threads a cycle and SM"),
    barrier_latency_cycles = guess(13, "as measured on H200 (13 + 2 cycles a warp)"),
    mbarrier_latency_cycles = guess(38, unused),
    barrier_interval_cycles = guess(2, "as measured on H200 (13 + 2 cycles a warp)"),
  },
  mio = {
    queue_entries = measured(5, huerta .. ": 4 entries and a latch"),
    issue_interval_cycles = measured(4, huerta .. ": the address unit takes one in 4 cycles"),
    warp_interval_cycles = guess(4, "as GA100 and GH100"),
    lsu_interval_cycles = measured(2, huerta .. ": one in 2 cycles and SM"),
  },
  l1 = {
    unified_bytes = datasheet(96 * 1024, guide),
    line_bytes = measured(128, mt4g),
    sector_bytes = measured(32, mt4g),
    ways = guess(16, "no figure found; so many that conflicts are rare"),
    hit_latency_cycles = measured(32, huerta .. ": 32 for a 32-bit LDG; 32 on RTX 2070 too (sjfeng1999/gpu-arch-microbenchmark)"),
    bytes_per_cycle = datasheet(64, whitepaper .. ": 64 B a cycle and SM"),
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
    -- request + l2.hit + reply = 236 L2 cycles: the whole latency of a load that misses L1.
    request_cycles = guess(72, rtx2070 .. ": L2 hit 236 cycles, split 72 + 92 + 72 by guess"),
    reply_cycles = guess(72, rtx2070 .. ": L2 hit 236 cycles, split 72 + 92 + 72 by guess"),
    far_cycles = measured(0, mt4g .. ": one L2 partition"),
    sm_read_bytes_per_cycle = guess(64, "two sectors a cycle; what single-SM bandwidth tests reach from memory"),
    sm_write_bytes_per_cycle = guess(32, "one sector a cycle"),
    gpc_read_bytes_per_cycle = guess(384, "as GV100"),
    far_bytes_per_cycle = measured(0, mt4g .. ": one L2 partition"),
  },
  l2 = {
    num_sides = measured(1, mt4g),
    ways = guess(16, "Accel-Sim @667834c, configuration SM75_RTX2060"),
    replacement = guess("lru", "V100 and A40, before and after it, thrash on cyclic sweeps as LRU does (gpu-benches)"),
    slice_bytes_per_cycle = guess(32, "one sector a cycle, as GV100; mt4g reads 1252 GB/s"),
    hit_cycles = guess(92, rtx2070 .. ": L2 hit 236 cycles, split 72 + 92 + 72 by guess"),
    side_hash_granule_bytes = guess(4096, "not used: one side"),
    fill_sectors = guess(2, "default of cudaLimitMaxL2FetchGranularity observed as 64 B on CC 8.6 (forums.developer.nvidia.com 286508)"),
    coalescer_merges = guess(1, "measured as 1 on V100 and A100; taken for Turing"),
    coalescer_window_cycles = guess(0, "no request coalescer"),
    persisting_max_bytes = measured(0, mt4g),
    max_dirty_milli = guess(475, "as measured on H200"),
    busy_dirty_milli = guess(562, "as measured on H200"),
  },
}
