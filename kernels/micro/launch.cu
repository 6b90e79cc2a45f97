/* Launches: which SM gets which CTA and when, how long an SM stays empty between two CTAs, what a launch and the gap
 * between two kernels of a stream cost, and which SMs share a GPC (clusters never cross one). */
#include "bench.h"
using namespace bench;

struct CtaRecord {
  uint64_t start_ns, stop_ns, start_cycle, stop_cycle;
  uint32_t sm, warp_slot;
};

__global__ void record(CtaRecord *records, int work_cycles) {
  extern __shared__ uint32_t unused[];
  uint64_t cycle = cycles64(), ns = global_ns();
  if (threadIdx.x == 0) {
    while (cycles64() < cycle + (uint64_t)work_cycles)
      ;
    uint32_t slot;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(slot));
    CtaRecord r = {ns, 0, cycle, 0, sm_id(), slot};
    r.stop_ns = global_ns();
    r.stop_cycle = cycles64();
    records[blockIdx.x] = r;
  }
}

__global__ void cluster_map(uint32_t *sm_of_cta) {
  extern __shared__ uint32_t unused[];
  if (threadIdx.x == 0) sm_of_cta[blockIdx.x] = sm_id();
  uint64_t begin = cycles64();
  while (cycles64() < begin + 20000)
    ;
}

__global__ void empty() {}

static void placement(int ctas_per_sm) {
  int shared_bytes = ctas_per_sm == 1 ? whole_sm_bytes : whole_sm_bytes / ctas_per_sm - 2048;
  int grid = num_sms() * ctas_per_sm * 3;
  CtaRecord *records = device_alloc<CtaRecord>((size_t)grid);
  allow_shared(record, shared_bytes);
  for (int repeat = 0; repeat < 2; repeat++) record<<<grid, 128, shared_bytes>>>(records, 40000);
  std::vector<CtaRecord> r = to_host(records, (size_t)grid);
  uint64_t first_ns = ~0ull;
  for (const CtaRecord &c : r) first_ns = std::min(first_ns, c.start_ns);
  char variant[64];
  snprintf(variant, sizeof variant, "placement_%d_per_sm", ctas_per_sm);
  for (int i = 0; i < grid; i++) {
    row("launch", variant, "cta", i, "sm", r[(size_t)i].sm, "1");
    row("launch", variant, "cta", i, "start", (double)(r[(size_t)i].start_ns - first_ns), "ns");
  }
  CUDA_CHECK(cudaFree(records));
}

/* CTAs of fixed length, `per_sm` at a time on an SM; the refill delay is the time from the end of one to the first
 * instruction of the next in the same slot. With per_sm = 1 the slot is the SM. */
static void refill(int threads, int shared_bytes, int work_cycles) {
  int grid = num_sms() * 12;
  CtaRecord *records = device_alloc<CtaRecord>((size_t)grid);
  allow_shared(record, shared_bytes);
  for (int repeat = 0; repeat < 2; repeat++) record<<<grid, threads, shared_bytes>>>(records, work_cycles);
  std::vector<CtaRecord> r = to_host(records, (size_t)grid);
  std::sort(r.begin(), r.end(), [](const CtaRecord &a, const CtaRecord &b) {
    return a.sm != b.sm ? a.sm < b.sm : a.start_cycle < b.start_cycle;
  });
  std::vector<double> gaps;
  for (size_t i = 1; i < r.size(); i++)
    if (r[i].sm == r[i - 1].sm && r[i].start_cycle > r[i - 1].stop_cycle)
      gaps.push_back((double)(r[i].start_cycle - r[i - 1].stop_cycle));
  char variant[96];
  snprintf(variant, sizeof variant, "refill_threads%d_shared%dKiB", threads, shared_bytes / 1024);
  row("launch", variant, "work_cycles", work_cycles, "gap_p10", percentile(gaps, 0.1), "cycles");
  row("launch", variant, "work_cycles", work_cycles, "gap_p50", percentile(gaps, 0.5), "cycles");
  row("launch", variant, "work_cycles", work_cycles, "gap_p90", percentile(gaps, 0.9), "cycles");
  CUDA_CHECK(cudaFree(records));
}

static void rate() {
  EventTimer timer;
  for (int threads : {32, 128, 256, 512, 1024}) {
    float small_ms = 1e9f, large_ms = 1e9f;
    for (int i = 0; i < 5; i++) {
      timer.start();
      empty<<<20000, threads>>>();
      small_ms = std::min(small_ms, timer.stop_ms());
      timer.start();
      empty<<<220000, threads>>>();
      large_ms = std::min(large_ms, timer.stop_ms());
    }
    row("launch", "empty_cta_rate", "threads", threads, "rate", 200000 / (large_ms - small_ms) * 1e-6, "CTA/ns");
  }
}

static void overhead() {
  EventTimer timer;
  std::vector<float> alone;
  for (int i = 0; i < 50; i++) {
    timer.start();
    empty<<<1, 32>>>();
    alone.push_back(timer.stop_ms());
  }
  row("launch", "events_around_empty_kernel", "ctas", 1, "time", median(alone) * 1e3, "us");
  for (int grid : {1, num_sms(), num_sms() * 8}) {
    const int count = 2000;
    empty<<<grid, 128>>>();
    timer.start();
    for (int i = 0; i < count; i++) empty<<<grid, 128>>>();
    row("launch", "back_to_back_empty", "ctas", grid, "time_per_kernel", timer.stop_ms() * 1e3 / count, "us");
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 200; i++) empty<<<grid, 128, 0, stream>>>();
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&instance, graph, 0));
    CUDA_CHECK(cudaGraphLaunch(instance, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    cudaEvent_t a, b;
    CUDA_CHECK(cudaEventCreate(&a));
    CUDA_CHECK(cudaEventCreate(&b));
    CUDA_CHECK(cudaEventRecord(a, stream));
    CUDA_CHECK(cudaGraphLaunch(instance, stream));
    CUDA_CHECK(cudaEventRecord(b, stream));
    CUDA_CHECK(cudaEventSynchronize(b));
    float ms;
    CUDA_CHECK(cudaEventElapsedTime(&ms, a, b));
    row("launch", "graph_empty", "ctas", grid, "time_per_kernel", ms * 1e3 / 200, "us");
  }
  /* Gap: last CTA's end of one kernel to the first CTA's start of the next, both queued long before. */
  int grid = num_sms();
  const int count = 20;
  CtaRecord *records = device_alloc<CtaRecord>((size_t)(grid * count));
  for (int repeat = 0; repeat < 2; repeat++)
    for (int k = 0; k < count; k++) record<<<grid, 128, whole_sm_bytes>>>(records + k * grid, 100000);
  std::vector<CtaRecord> r = to_host(records, (size_t)(grid * count));
  std::vector<double> gaps, spreads;
  for (int k = 0; k < count; k++) {
    uint64_t stop = 0, start = ~0ull, start_last = 0, stop_before = 0;
    for (int i = 0; i < grid; i++) {
      const CtaRecord &c = r[(size_t)(k * grid + i)];
      start = std::min(start, c.start_ns);
      start_last = std::max(start_last, c.start_ns);
      stop = std::max(stop, c.stop_ns);
      if (k > 0) stop_before = std::max(stop_before, r[(size_t)((k - 1) * grid + i)].stop_ns);
    }
    spreads.push_back((double)(start_last - start));
    if (k > 0) gaps.push_back((double)start - (double)stop_before);
  }
  row("launch", "stream_gap_end_to_first_instruction", "ctas", grid, "gap", median(gaps), "ns");
  row("launch", "first_wave_start_spread", "ctas", grid, "spread", median(spreads), "ns");
}

static void gpcs(int cluster_size) {
  const int grid = num_sms() / cluster_size * cluster_size * 8;
  uint32_t *sm_of_cta = device_alloc<uint32_t>((size_t)grid);
  allow_shared(cluster_map, whole_sm_bytes);
  CUDA_CHECK(cudaFuncSetAttribute(cluster_map, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)grid);
  config.blockDim = dim3(32);
  config.dynamicSmemBytes = whole_sm_bytes;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)cluster_size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int fit = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&fit, cluster_map, &config));
  row("launch", "clusters_that_fit", "cluster_size", cluster_size, "clusters", fit, "1");
  CUDA_CHECK(cudaLaunchKernelEx(&config, cluster_map, sm_of_cta));
  std::vector<uint32_t> sm = to_host(sm_of_cta, (size_t)grid);
  std::vector<int> group(1024);
  for (int i = 0; i < 1024; i++) group[(size_t)i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < grid; i++) {
      int &a = group[sm[(size_t)i]], &b = group[sm[(size_t)(i / cluster_size * cluster_size)]];
      if (a != b) {
        a = b = std::min(a, b);
        changed = true;
      }
    }
  }
  std::vector<bool> seen(1024, false);
  for (uint32_t s : sm) seen[s] = true;
  char variant[64];
  snprintf(variant, sizeof variant, "gpc_by_clusters_of_%d", cluster_size);
  for (int i = 0; i < 1024; i++)
    if (seen[(size_t)i]) row("launch", variant, "sm", i, "lowest_sm_of_group", group[(size_t)i], "1");
  CUDA_CHECK(cudaFree(sm_of_cta));
}

int main() {
  placement(1);
  placement(2);
  for (int shared_bytes : {whole_sm_bytes, 120 * 1024})
    for (int threads : {128, 256, 512, 1024}) refill(threads, shared_bytes, 20000);
  refill(128, whole_sm_bytes, 2000);
  refill(128, whole_sm_bytes, 200000);
  rate();
  overhead();
  gpcs(2);
  gpcs(8);
  gpcs(16);
  finish();
  return 0;
}
