/* How late the latest of many loads is: one warp on SM 0 chases a random chain while all other SMs read, copy or write
 * 4 GiB at a chosen rate, in bursts of 32 KiB an SM (as CTAs that load a tile, compute and store it do), or half of them
 * read while the others write (apart). x is the bandwidth that the others reach, bytes read and written. A CTA that
 * needs n lines waits about as long as the latest of n: the mean, and what 1 load in 2, 10, 100 and 400 exceeds. */
#include "bench.h"
using namespace bench;

enum { NUM_TIMED = 20000, BIN_CYCLES = 8, NUM_BINS = 1024 };
enum traffic { READS, COPIES, WRITES, APART };

__device__ uint32_t finished;

__device__ void chase(const uint32_t *chain, uint32_t *bins, uint64_t *span_ns, uint32_t *sink) {
  __shared__ uint32_t counts[NUM_BINS];
  __shared__ volatile uint32_t arrived;
  for (int i = 0; i < NUM_BINS; i++) counts[i] = 0;
  uint64_t settle = global_ns() + 100000, start_ns = settle - 100000;
  while (global_ns() < settle) {
  }
  uint32_t at = 0;
  for (int i = 0; i < NUM_TIMED; i++) {
    uint32_t begin = clock32();
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    arrived = at;  // what comes behind it waits for the load
    uint32_t took = clock32() - begin;
    counts[min(took / BIN_CYCLES, NUM_BINS - 1)]++;
  }
  *sink = at;
  *span_ns = global_ns() - start_ns;
  *(volatile uint32_t *)&finished = 1;
  for (int i = 0; i < NUM_BINS; i++) bins[i] = counts[i];
}

template <traffic kind>
__global__ __launch_bounds__(512) void load_and_chase(const uint4 *region, uint4 *copy, size_t region_count,
                                                      const uint32_t *chain, int rest_cycles, uint32_t *bins,
                                                      unsigned long long *bytes, uint64_t *span_ns, uint32_t *sink) {
  if (sm_id() == 0) {
    if (threadIdx.x == 0) chase(chain, bins, span_ns, sink);
    return;
  }
  uint32_t sum = 0;
  size_t step = (size_t)(gridDim.x - 1) * blockDim.x * 4,
         from = (size_t)(blockIdx.x % (gridDim.x - 1)) * blockDim.x * 4 + threadIdx.x, at = from;
  unsigned long long done = 0;
  bool reads = kind == READS || kind == COPIES || (kind == APART && blockIdx.x % 2 == 0);
  bool writes = kind == WRITES || kind == COPIES || (kind == APART && blockIdx.x % 2 == 1);
  while (*(volatile uint32_t *)&finished == 0) {
    uint4 v[4] = {};
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (reads) v[k] = __ldcg(region + at + (size_t)k * blockDim.x);
#pragma unroll
    for (int k = 0; k < 4; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (writes) copy[at + (size_t)k * blockDim.x] = make_uint4(v[k].x, v[k].y, sum, 1);
    at += step;
    if (at + 4 * blockDim.x >= region_count) at = from;
    done += kind == COPIES ? 128 : 64;
    uint64_t begin = cycles64();
    while (cycles64() < begin + (uint64_t)rest_cycles) {
    }
  }
  if (sum == 0x12345678) *sink = sum;
  atomicAdd(bytes, done);
}

static uint32_t *bins, *sink, *chain;
static uint64_t *span;
static unsigned long long *bytes;
static uint4 *region, *copy;
static const size_t region_bytes = (size_t)4 << 30, chain_bytes = (size_t)1 << 30;

/* Cycles that one load in `one_in` exceeds. */
static double tail_of(const std::vector<uint32_t> &counts, double one_in) {
  double left = (double)NUM_TIMED / one_in;
  for (int i = NUM_BINS - 1; i >= 0; i--) {
    left -= counts[i];
    if (left < 0) return (i + 0.5) * BIN_CYCLES;
  }
  return 0;
}

template <traffic kind>
static void measure(const char *variant) {
  allow_shared(load_and_chase<kind>, whole_sm_bytes - 8192);
  for (int rest : {200000, 16000, 8000, 4000, 2000, 1000, 500, 150, 0}) {
    uint32_t zero = 0;
    CUDA_CHECK(cudaMemcpyToSymbol(finished, &zero, 4));
    CUDA_CHECK(cudaMemset(bytes, 0, 8));
    load_and_chase<kind><<<num_sms(), 512, whole_sm_bytes - 8192>>>(region, copy, region_bytes / 16, chain, rest, bins,
                                                                    bytes, span, sink);
    std::vector<uint32_t> counts = to_host(bins, NUM_BINS);
    double gbps = (double)to_host(bytes, 1)[0] / (double)to_host(span, 1)[0], sum = 0;
    for (int i = 0; i < NUM_BINS; i++) sum += (i + 0.5) * BIN_CYCLES * counts[i];
    row("latency_tail", variant, "others_GBps", gbps, "mean", sum / NUM_TIMED, "cycles");
    for (int one_in : {2, 10, 100, 400}) {
      char metric[32];
      snprintf(metric, sizeof metric, "1_in_%d", one_in);
      row("latency_tail", variant, "others_GBps", gbps, metric, tail_of(counts, one_in), "cycles");
    }
  }
  finish();
}

int main() {
  size_t num_lines = chain_bytes / 128;
  region = device_alloc<uint4>(region_bytes / 16);
  copy = device_alloc<uint4>(region_bytes / 16);
  chain = device_alloc<uint32_t>(chain_bytes / 4);
  bins = device_alloc<uint32_t>(NUM_BINS);
  sink = device_alloc<uint32_t>(1);
  span = device_alloc<uint64_t>(1);
  bytes = device_alloc<unsigned long long>(1);
  std::vector<uint32_t> order(num_lines), words(chain_bytes / 4, 0);
  Random random;
  for (size_t i = 0; i < num_lines; i++) order[i] = (uint32_t)i;
  for (size_t i = num_lines - 1; i > 0; i--) std::swap(order[i], order[random.below(i)]);
  for (size_t i = 0; i < num_lines; i++) words[i * 32] = order[i] * 32;
  CUDA_CHECK(cudaMemcpy(chain, words.data(), chain_bytes, cudaMemcpyHostToDevice));
  measure<READS>("reads");
  measure<COPIES>("copies");
  measure<WRITES>("writes");
  measure<APART>("apart");
  return 0;
}
