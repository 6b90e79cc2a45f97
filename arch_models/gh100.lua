-- GH100 (Hopper): the die of H100 and H200. L2 cycles count clock.l2_khz; other cycles are the SM's.
local guide = "CUDA C++ Programming Guide, technical specifications per compute capability"
local rates = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
local whitepaper = "NVIDIA H100 Tensor Core GPU Architecture whitepaper"
local mt4g = "caps-tum/mt4g @4cc5566, sample results, H100"
local luo = "Luo et al., arXiv 2501.12084, H800 PCIe"
local flashgpu = "FlashGPU-Sim @1769662, configuration of SM90 calibrated on an H200 NVL"
local validation = "H100 PCIe microbenchmark validation report"
local huerta = "Huerta et al., MICRO 2025 (GA102; taken for Hopper)"
-- Ours, on an H200.
local measurements = "kernels/measurements/"
local sm = measurements .. "micro_shared_memory.csv: "
local cold = measurements .. "micro_cold_start.csv: "
local alu = measurements .. "micro_alu.csv: "
local queues = measurements .. "micro_issue_queues.csv: "
local stalls = "stall counts of ptxas 13.0 in sm_90a code of kernels/attention: "
local copies = measurements .. "micro_async_copy.csv: "
local near_hit = measurements .. "micro_chase.csv: near L2 hit 288 with 8 cycles of address arithmetic at 1980 MHz = 141 ns, H800 PCIe 258 at 1755 = 147 ns (Luo et al.); here 242 cycles of 1708 MHz = 142 ns, split 77 + 88 + 77; the middle agrees with micro_coalescer_window_ncu.csv, where a hit holds the coalescer for 64 to 128 SM cycles, near and far"

return die "gh100" {
  chip = {
    compute_capability = datasheet(90, guide),
    sms_per_tpc = datasheet(2, whitepaper .. ": 8 GPCs of 9 TPCs of 2 SMs"),
    num_gpcs = datasheet(8, whitepaper),
  },
  clock = {
    sm_step_khz = guess(15000, "nvidia-smi lists steps of 15 MHz"),
    sm_min_khz = guess(345000, "lowest clock that nvidia-smi lists"),
    l2_khz = measured(1708000, measurements .. "micro_kernel_overhead_ncu.csv and _coalescer_window_ncu.csv, H200: lts__cycles_elapsed.avg.per_second, whatever the SM clock"),
  },
  power = {
    sm_cycle_fj = guess(160000, "42 W over 132 SMs at 1980 MHz: a spinning kernel draws 132 W (kernels/measurements/micro_sm_clock.csv), 90 W of it taken as static"),
    inst_fj = guess(150000, "about 5 pJ a lane in 4 nm; not measured"),
    tensor_mac_fj = measured(2140, "kernels/measurements/micro_sm_clock.csv: wgmma on random operands, operands from shared memory included: 684 W at 1511 MHz and 757 TFLOP/s, 132 W off"),
    shared_byte_fj = guess(300, "an SRAM access; that of wgmma operands is in tensor_mac_fj"),
    l2_sector_fj = guess(600000, "19 of the 89 pJ a byte that reading DRAM adds (dram_byte_fj); the split is a guess"),
    dram_byte_fj = measured(70000, "kernels/measurements/micro_sm_clock.csv: 3 to 4 TB/s beside wgmma cost the clock as much as 71 to 88 TFLOP/s for each TB/s: 89 pJ a byte, l2_sector_fj included"),
    voltage_exponent_milli = measured(1400, "kernels/measurements/micro_sm_clock.csv: TFLOP/s times (f/1980 MHz)^1.4 is 620 to 633 at all five points between 1632 and 1773 MHz where wgmma is limited"),
  },
  launch = {
    overhead_ns = measured(1760, measurements .. "micro_kernel_overhead_ncu.csv: gpu__time_duration less the time from the first CTA's start to the end of spinning, 132_ctas from 1000 ns on; 1600 for one CTA, 2300 for eight an SM"),
    gap_ns = measured(1540, measurements .. "micro_launch.csv: from the end of the last CTA to the first instruction of the next kernel"),
    cta_interval_cycles = measured(4, measurements .. "micro_launch.csv: the first CTA of all 132 SMs starts within 32 ns"),
    cta_start_cycles = measured(374, measurements .. "micro_launch.csv: median, with one store"),
  },
  sm = {
    num_subcores = datasheet(4, whitepaper .. "; micro_occupancy.csv: warps fit by sub-core, 4 x floor(16384 / registers of a warp)"),
    max_warps = datasheet(64, guide),
    max_ctas = datasheet(32, guide),
    max_threads_per_cta = datasheet(1024, guide),
    num_registers = datasheet(65536, guide),
    max_registers_per_thread = datasheet(255, guide),
    register_unit = datasheet(256, "cuda_occupancy.h of the CUDA Toolkit"),
    num_barriers = datasheet(16, "PTX ISA, bar: barriers 0 to 15"),
    code_cache_bytes = measured(32768, measurements .. "micro_instruction_cache.csv: 1.0 to 1.1 cycles an instruction up to 32 KiB, 2.2 from 40 KiB on"),
    code_miss_cycles = measured(9, measurements .. "micro_instruction_cache.csv: 2.2 less 1.04 cycles an instruction of 16 bytes from 40 to 112 KiB; the first pass over up to 64 KiB as long"),
    drift_ns = measured(12, measurements .. "micro_drift.csv: compute_heavy_1_ctas, l2_shared_heavy_1_ctas; spread over 3.29 sqrt(us)"),
    shared_drift_permille = measured(37, measurements .. "cta_spread.csv: mean over six attention kernels that fetch ahead, 2 to 4 CTAs an SM, at 1024 to 4096 keys, of the median over the waves (23 to 52; 38, 37 and 36 at 1024, 2048 and 4096 keys), for want of a microbenchmark"),
    waiting_drift_permille = measured(20, measurements .. "cta_drift.csv: mean of ten attention kernels with 2 to 4 CTAs an SM, warm and cold: deviation of the time of CTAs in the last place, inside GPCs, over the square root of their iterations; those that wait are 15 to 50"),
    age_spread_permille = measured(70, measurements .. "cta_drift.csv: mean of the same at their longest, 0 to 290: times of the last slot, whose CTAs come last, over those of slot 0, where all places are taken"),
    store_spread_permille = measured(141, measurements .. "micro_store_spread.csv: took_inside over took of words_132 and halves_132, mean of waves 0 to 4 (90 to 167)"),
    gpc_clock_spread_ppm = measured(1600, measurements .. "cta_trace.csv: cycles over ns of the CTAs of each SM, which are alike inside a GPC; standard deviation 0.9 to 2.1 permille in six of the seven launches"),
    gpc_limited_clock_spread_ppm = measured(5500, measurements .. "cta_clocks.csv: mean of the ping-pong kernels at head_dim 128, 4.2 to 6.7 at clocks of 1510 to 1658 MHz; the others, which run at 1763 to 1799, have 0.4 to 4.8"),
    scheduler = measured("gol", measurements .. "micro_stream_pairs.csv, micro_scheduler.csv: a warp goes on over one cycle, and over two but for every sixth; else the CTA that came first, of its warps the longest waiting"),
    has_ldmatrix = datasheet(1, "PTX ISA, ldmatrix: from sm_75"),
    has_cp_async = datasheet(1, "PTX ISA, cp.async: from sm_80"),
    has_tma = datasheet(1, "PTX ISA, cp.async.bulk: from sm_90"),
    has_wgmma = datasheet(1, "PTX ISA, wgmma: from sm_90a"),
  },
  fp32 = {
    interval_cycles = datasheet(1, whitepaper .. ": 32 FP32 lanes a sub-core"),
    latency_cycles = measured(4, alu .. "4.2 with the loop"),
  },
  alu = {
    interval_cycles = measured(2, alu .. "2 warp instructions a cycle and SM"),
    latency_cycles = measured(4, alu .. "IADD3, LOP3, FMNMX 4.2 with the loop"),
  },
  imad = {
    interval_cycles = measured(2, alu .. "2 warp instructions a cycle and SM"),
    latency_cycles = measured(4, alu .. "4.2 with the loop"),
    pipe = measured("fp32", measurements .. "micro_pipes.csv: IMAD+FMNMX and IMAD+F2FP 2.1 cycles, as IMAD alone; IMAD+HFMA2 3.1. FFMA+IMAD is 2.1 too: FFMA has a half of the pipe that IMAD has not"),
  },
  half = {
    interval_cycles = datasheet(1, rates .. ": 256 fp16 multiply-adds a cycle and SM"),
    latency_cycles = measured(8, alu .. "8.2 with the loop"),
  },
  cvt = {
    interval_cycles = measured(2, alu .. "F2FP 2 warp instructions a cycle and SM"),
    latency_cycles = measured(4, alu .. "F2FP 4.2 with the loop"),
    pipe = measured("alu", measurements .. "micro_pipes.csv: FMNMX+F2FP 4.1 cycles, FMNMX and F2FP alone 2.1, IMAD+F2FP 2.1"),
  },
  sfu = {
    interval_cycles = datasheet(8, rates .. ": 16 results a cycle and SM"),
    latency_cycles = measured(18, measurements .. "micro_stream_pairs.csv: rounds of FFMA_to_MUFU take a third of the latency and 7 cycles an exponential, 8.5 without the loop; micro_alu.csv has 17.1 from one MUFU to the next"),
  },
  constant = {
    launch_miss_cycles = measured(228, cold .. "parameters 16 bytes apart: the first of a launch takes 221 to 237 cycles under ncu (137 to 199 in a stream), less 8 once it is there"),
    line_miss_cycles = measured(119, cold .. "of every 64 bytes the first takes 127, less 8"),
    cta_miss_cycles = measured(44, cold .. "the others, and all of an SM's later CTA, take 49 and 56 in turns, less 8"),
  },
  branch = {
    redirect_cycles = measured(9, measurements .. "micro_branch.csv: an iteration takes 11 cycles beyond the unrolled one, 11.7 with the sixteenth of a branch in that; less IADD3, ISETP and BRA"),
    not_taken_cycles = measured(4, stalls .. "a forward branch 5 or more (of 1161; 831 times 5, 266 times 6)"),
    predicate_latency_cycles = measured(13, stalls .. "ISETP and the BRA that it decides 13 or more apart (of 685 pairs, 548 times 13; forward branches in four of five cases, loops' ends in one of four)"),
  },
  uniform = {
    latency_cycles = measured(4, "stall counts of ptxas 13.0 in sm_90a code of kernels/attention: dependent ULOP3, USHF, UIADD3 stand 4 cycles apart"),
    move_latency_cycles = measured(13, "the same: the last R2UR stands 13 cycles or more ahead of its HGMMA"),
  },
  tensor = {
    mma_m = datasheet(16, "PTX ISA, mma.m16n8k16: from sm_80"),
    mma_n = datasheet(8, "PTX ISA, mma.m16n8k16"),
    mma_k = datasheet(16, "PTX ISA, mma.m16n8k16"),
    mma_fp32_interval_cycles = measured(6, measurements .. "micro_mma.csv: 6.2 in one warp, 1354 multiply-adds a cycle and SM from four"),
    mma_place_cycles = measured(3, measurements .. "micro_stream_pairs.csv: beside HMMAs of the CTA that came first FMNMX and F2FP take 3.0 cycles, LOP3 3.4, two chains of FMUL 3.3; MUFU 10.8 for 8.2"),
    mma_dispatch_cycles = measured(6, measurements .. "micro_operand_ports.csv: mma_FMUL1: an mma.sync and k multiplications take 6 + k cycles, also with four warps"),
    mma_latency_cycles = measured(24, measurements .. "micro_mma.csv: 24.5"),
    mma_num_insts = datasheet(1, "CUDA Binary Utilities: HMMA.16816 is one instruction"),
    mma_int_m = datasheet(16, "PTX ISA, mma.m16n8k32 with s8: from sm_80"),
    mma_has_fp8 = measured(0, luo .. ": compiled to conversions and HMMA"),
    peak_fma_per_cycle = datasheet(2048, whitepaper .. ": 4 tensor cores x 512"),
    fp16_fp16_fma_per_cycle = datasheet(2048, whitepaper .. ": the same rate with fp16 accumulation"),
    bf16_fma_per_cycle = datasheet(2048, whitepaper .. ": as fp16"),
    tf32_fma_per_cycle = datasheet(1024, whitepaper .. ": 4 tensor cores x 256"),
    fp64_fma_per_cycle = datasheet(128, whitepaper .. ": 4 tensor cores x 32"),
    fp8_fma_per_cycle = datasheet(4096, whitepaper .. ": 4 tensor cores x 1024"),
    fp8_fp16_fma_per_cycle = datasheet(4096, whitepaper .. ": the same rate with fp16 accumulation"),
    int8_fma_per_cycle = datasheet(4096, whitepaper .. ": 4 tensor cores x 1024"),
    int4_fma_per_cycle = datasheet(0, whitepaper .. ": no int4; mma with s4 is compiled to other instructions"),
    int1_fma_per_cycle = datasheet(0, whitepaper .. ": no rate of binary products"),
    sparse_speedup = datasheet(2, whitepaper .. ": sparse rates are twice the dense ones"),
    wgmma_fma_per_cycle = measured(2048, measurements .. "micro_wgmma.csv: m64n256k16 2043 with two warpgroups"),
    wgmma_issue_cycles = measured(4, queues .. "wgmma_m64n64k16_ss and n8: 4 from one to the next; 12 for n128, 28 for n256"),
    wgmma_rs_issue_cycles = measured(10, queues .. "wgmma_m64n64k16_rs: 8 to 11 from one to the next; 20 for n128, 36 for n256"),
    wgmma_tail_cycles = measured(55, measurements .. "micro_wgmma.csv: issue to wait 55 + N/2 from shared memory, 11.5 less from registers"),
    wgmma_wavefront_cycles = measured(3, measurements .. "micro_wgmma_beside.csv: a SHFL every 2.5 to 3.5 cycles of the SM beside m64n128k16 and m64n256k16, from one or two warps a sub-core, 1.0 to 1.1 alone; 2.9 to 4.8 beside m64n64k16"),
    wgmma_window_cycles = measured(96, measurements .. "micro_wgmma_beside_memory.csv: a SHFL beside m64n64k16 from shared memory comes 44 cycles later in the mean, 90 in the 90th percentile"),
    wgmma_copy_bytes_per_cycle = measured(64, measurements .. "micro_wgmma_beside_copy.csv: 63.6 to 64.0 by TMA and by cp.async beside m64n128k16 and m64n256k16, 48 to 53 beside m64n64k16; without wgmmas 124 (micro_fill_rate.csv)"),
    wgmma_dispatch_cycles = measured(3, measurements .. "micro_wgmma_beside.csv: 3.2 cycles an FADD from two warps of two chains each, where 1.1 are enough alone; micro_scheduler.csv: softmax 4.0, 3.1 and 2.8 cycles an instruction from one, two and three warps, FMUL chains 3.5 from three, FMNMX and F2FP 4.1, MUFU 10.4"),
    wgmma_queue_depth = measured(6, queues .. "wgmma_m64n256k16_ss: the ninth is held until the second has ended, so one runs and six wait; five with A from registers"),
  },
  shared = {
    bytes_per_sm = datasheet(228 * 1024, guide),
    max_bytes_per_cta = datasheet(227 * 1024, guide),
    reserved_bytes_per_cta = datasheet(1024, guide),
    unit_bytes = datasheet(128, "cuda_occupancy.h of the CUDA Toolkit"),
    bytes_per_cycle = measured(128, luo .. ": 127.4 to 127.9"),
    load_latency_cycles = measured(23, sm .. "23.3"),
    ldmatrix_latency_cycles = measured(29, sm .. "x4: 29.3"),
    shuffle_latency_cycles = measured(24, alu .. "SHFL.BFLY 24.1"),
    shuffle_interval_cycles = datasheet(1, rates .. ": 32 threads a cycle and SM"),
    barrier_latency_cycles = measured(13, sm .. "bar.sync: 13 + 2 cycles a warp"),
    mbarrier_latency_cycles = guess(42, sm .. "arrive and wait 48 together, of which 6 are the arrive (FlashGPU-Sim)"),
    proxy_fence_cycles = measured(32, measurements .. "micro_product_epilogue.csv: with a fence two barriers take 30 and 33 cycles more (one and two warpgroups), behind copies by cp.async 33, with stmatrix 26 and 59, and a TMA store 34 and 41"),
    barrier_interval_cycles = measured(2, sm .. "bar.sync: 13 + 2 cycles a warp"),
  },
  mio = {
    queue_entries = measured(9, measurements .. "micro_ldmatrix_queue.csv: SHFL and LDSM.x1, a cycle of data each: bursts of all sub-cores are held as by 9 entries, 1.8 cycles off in the mean; 8 entries 3.1; with 8 or 10 those of LDSM.x4 fit with 23 and 16 in the LSU"),
    lg_queue_entries = measured(11, measurements .. "micro_pending_lines.csv: the 68th load of 32 lines is the first that waits; 22 are at L1 (700 lines): 45 in four queues"),
    lsu_queue_entries = measured(20, measurements .. "micro_ldmatrix_queue.csv: LDS.128 and LDSM.x4, 4 cycles of data each: bursts of all sub-cores are held as by 20 beside those in the sub-cores' queues, 2.8 cycles off in the mean; 18 entries 4.0, 22 entries 4.7, none 40"),
    issue_interval_cycles = measured(2, queues .. "LDS.32_4_warps_of_a_subcore: 96 instructions in 191 cycles; one warp alone issues every 4"),
    warp_interval_cycles = measured(4, queues .. "one warp alone issues every 4; so do the stall counts of ptxas between any two of LDSM, LDS, STS, SHFL, LDGSTS, STG"),
    lsu_interval_cycles = guess(1, "32 load/store lanes an SM, twice those of the chips on which Huerta et al. measured 2"),
  },
  l1 = {
    unified_bytes = datasheet(256 * 1024, guide),
    line_bytes = measured(128, mt4g),
    sector_bytes = measured(32, mt4g),
    ways = guess(16, "no figure found; so many that conflicts are rare"),
    protected_bytes = measured(128 * 1024, measurements .. "micro_l1_replacement.csv: of 1024 to 1792 lines read twice the last 1024 outlive any number of others, in 224 and 240 KiB of L1"),
    once_used_bytes = measured(96 * 1024, measurements .. "micro_l1_replacement.csv: 477 lines are kept in 156 KiB of L1, 233 in 124, 71 in 92 and none in 60: what is left of 96 KiB, in lines 480, 224, 0 and 0"),
    hit_latency_cycles = measured(32, measurements .. "micro_chase.csv: 40.1 with 8 cycles of address arithmetic; gpu-benches: 32 on GH200, 34 on H100 PCIe"),
    bytes_per_cycle = measured(128, "gpu-benches: 126 to 128"),
    max_pending_lines = measured(450, measurements .. "micro_pending_lines.csv: 450 lines by cp.async, a sector or all of each (640 whole lines are asked for before the first comes, at most 176 of them in the queues); 600 or more by loads"),
    fill_bytes_per_cycle = measured(84, measurements .. "micro_fill_rate.csv: whole lines by loads every 1.49 cycles to 16 warps, 1.64 to 8"),
    store_bytes_per_cycle = measured(32, measurements .. "micro_store_bandwidth.csv: 31.2 B a SM cycle from one SM, by 4 and by 16 bytes a thread"),
    byte_mask_sectors = measured(1, measurements .. "micro_store_requests.csv: requests of 1, 2 and 4 halves of sectors leave one SM every 2.01, 3.03 and 5.04 cycles, of 4 sectors with 8 bytes of each 5.03, of 2 and 4 whole ones 2.04 and 4.12"),
    store_merge_lines = measured(16, measurements .. "micro_store_merge_ncu.csv: sectors stored in halves or quarters by 1 to 4 warps in turn are sent once where 16 lines are begun together, as often as they are stored to where 32 are"),
    store_merge_cycles = measured(18, measurements .. "micro_store_merge_ncu.csv: of stores 25 cycles apart, those that take 8 of them, a line each, are merged, those that take 4 are not; of stores 15 apart both"),
    operand_release_cycles = measured(14, measurements .. "micro_copy_release.csv: the addresses of one copy may be written 14 cycles after its issue, those of more 4 cycles later each; micro_store_release.csv: the data of one store of 4 bytes a lane 13, of 16 bytes 19 cycles after its issue"),
    copy_latency_cycles = measured(80, copies .. "128 bytes from L2 are there for all of a CTA after 404 cycles, of which 288 are those of a load (micro_chase), 21 of bar.sync, some 15 of addresses and clocks"),
  },
  tma = {
    issue_cycles = guess(33, flashgpu .. ": 32 to 33 for elect and issue"),
    release_cycles = measured(12, measurements .. "micro_tma_issue.csv: 68 to 70 cycles a copy that has its coordinates moved, of which its stall counts make 58, two of them behind the copy"),
    latency_cycles = guess(37, copies .. "128 bytes of L2 are visible 367 cycles after issue: less 288 of a load and 42 of the mbarrier"),
    lines_per_cycle_milli = measured(850, copies .. "107 to 109 B a cycle into one SM"),
    max_pending_lines = guess(384, flashgpu .. ": 384 requests of 128 B an SM"),
    peer_latency_cycles = guess(100, "one way: half of the 181 to 213 cycles of a load from another SM's shared memory, of which 180 are published (Luo et al.)"),
  },
  noc = {
    -- request + l2.hit + reply = 242 L2 cycles: the whole latency of a load that misses L1 and hits the near side.
    request_cycles = guess(77, near_hit),
    reply_cycles = guess(77, near_hit),
    far_cycles = measured(73, measurements .. "micro_sides.csv: far hit 170 SM cycles above near at 1980 MHz = 86 ns; 89 ns on H800 PCIe (Luo et al.): two crossings"),
    far_gpcs = measured(0x8E, measurements .. "micro_fill_sides.csv and micro_sides.csv, H200: GPCs 1, 2, 3 and 7 read from one side, 0, 4, 5 and 6 from the other, 66 SMs each"),
    sm_read_bytes_per_cycle = measured(144, measurements .. "micro_fill_rate.csv: 1.03 SM cycles of 1980 MHz a line by cp.async from one SM, 124 B"),
    sm_write_bytes_per_cycle = measured(36, measurements .. "micro_store_bandwidth.csv: 31.2 B a SM cycle at 1980 MHz from one SM; 19.7 from each of all"),
    gpc_read_bytes_per_cycle = measured(1325, measurements .. "micro_l2_capacity.csv: 17.6 to 18.6 TB/s when all SMs read the same data, over 8 GPCs"),
    far_bytes_per_cycle = measured(770, measurements .. "micro_fabric_writes.csv, H200: all SMs store 10.1 B a SM cycle each to lines of the other side, as do the SMs of one side alone: 667 of 66 SMs at 1980 MHz, 770 an L2 cycle; kernels that read DRAM at its limit cross at 672 (eager_ncu.csv)"),
  },
  l2 = {
    size_bytes = datasheet(50 * 1024 * 1024, whitepaper),
    num_sides = datasheet(2, whitepaper .. ": two partitions"),
    num_slices = guess(80, "Accel-Sim 2.0 @01f6fc4, configuration SM90_H100: 80 slices of 640 KiB"),
    ways = guess(20, "Accel-Sim 2.0 @01f6fc4, configuration SM90_H100"),
    replacement = measured("lru", measurements .. "micro_l2_replacement_ncu.csv (H200): the share given up in 64 patterns of reads is met to 0.015 in the mean, by NRU to 0.12, at random to 0.21; micro_l2_capacity_ncu.csv: data shared by all SMs misses nowhere to 28 MiB and everywhere from 34 MiB"),
    slice_bytes_per_cycle = measured(54, measurements .. "micro_l2_capacity.csv: 8.5 to 8.8 TB/s of distinct data over 94 slices; H800 PCIe 4472 B/cycle over 80 is 56 (Luo et al.)"),
    hit_cycles = guess(88, near_hit),
    side_hash_granule_bytes = measured(4096, "ademeure/cuda-side-boost, H100"),
    fill_sectors = measured(2, measurements .. "micro_fill_granule_ncu.csv: one missing sector of a line reads 64 bytes, two of a pair as well"),
    coalescer_merges = measured(4, measurements .. "micro_coalescer_ncu.csv: up to 4.0, among the SMs of a GPC"),
    coalescer_window_cycles = measured(72, measurements .. "micro_coalescer_window_ncu.csv: of reads that hit, those merge whose lag is 84 SM cycles at 1980 MHz in the mean (all at 0, half at 90, none at 160)"),
    persisting_max_bytes = measured(39321600, mt4g),
    max_dirty_milli = measured(475, "kernels/measurements/micro_dirty_residue_ncu.csv: 25.6 of 58.75 MiB stay dirty, and 2.3 MiB that the profiler left before the kernel (micro_l2_capacity_ncu.csv)"),
    busy_dirty_milli = measured(562, "kernels/measurements/micro_dirty_residue_ncu.csv: three passes of writes over 32 to 56 MiB send to DRAM what random replacement in 9/16 of the ways would lose"),
  },
}
