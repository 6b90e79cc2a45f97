/* Bandwidth between the two sides of L2. SMs are first sorted by side (single loads after SM 0 has read the lines: a
 * near median means the same side). Then, inside one kernel, one side reads a buffer; the other side reads it (lines
 * whose home is over there cross the fabric) and reads it again (replicas). x is the buffer size; `first` and `second`
 * are the other side's two passes. */
#include "probe_load.h"
using namespace bench;

constexpr int num_lines = 512;

__global__ void probe(const char *buffer, uint32_t target_sm, uint16_t *latency) {
  __shared__ volatile uint32_t sink;
  if (sm_id() != target_sm || threadIdx.x != 0) return;
  for (int i = 0; i < num_lines; i++) latency[i] = cycles_of_load(buffer + (size_t)i * 4096, sink);
}

__device__ uint32_t arrivals[8];

__device__ __forceinline__ void all_meet(int which) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrivals[which], 1);
    while (*(volatile uint32_t *)&arrivals[which] < gridDim.x)
      ;
  }
  __syncthreads();
}

struct Span {
  unsigned long long first, last;
};

__device__ __forceinline__ uint32_t pass(const uint4 *buffer, size_t count, uint32_t rank, uint32_t num_ranks) {
  uint32_t sum = 0;
#pragma unroll 8
  for (size_t i = (size_t)rank * blockDim.x + threadIdx.x; i < count; i += (size_t)num_ranks * blockDim.x) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(buffer + i));
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  return sum;
}

/* rank[sm]: index of the SM inside its side, side in the top bit. */
__global__ __launch_bounds__(1024) void cross(const uint4 *buffer, size_t count, const uint32_t *rank, uint32_t ranks_a,
                                              uint32_t ranks_b, int readers_b, Span *spans, uint32_t *sink) {
  uint32_t mine = rank[sm_id()] & 0x7fffffff, sum = 0;
  bool side_b = rank[sm_id()] >> 31;
  if (!side_b) sum ^= pass(buffer, count, mine, ranks_a);
  for (int i = 0; i < 3; i++) {
    all_meet(i);
    if (!side_b || (int)mine >= readers_b) continue;
    unsigned long long start = global_ns();
    sum ^= pass(buffer, count, mine, (uint32_t)min((int)ranks_b, readers_b));
    if (sum == 0x12345678) *sink = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicMin(&spans[i].first, start);
      atomicMax(&spans[i].last, (unsigned long long)global_ns());
    }
  }
}

int main() {
  const int sms = num_sms();
  const size_t flush_count = ((size_t)256 << 20) / 16, max_bytes = (size_t)64 << 20;
  uint4 *buffer = device_alloc<uint4>(max_bytes / 16), *flush = device_alloc<uint4>(flush_count);
  uint16_t *latency = device_alloc<uint16_t>(num_lines);
  Span *spans = device_alloc<Span>(3);
  uint32_t *sink = device_alloc<uint32_t>(1), *device_rank = device_alloc<uint32_t>((size_t)sms);
  allow_shared(probe, whole_sm_bytes);
  std::vector<uint32_t> rank((size_t)sms, 0);
  uint32_t ranks_a = 1, ranks_b = 0;
  for (int b = 1; b < sms; b++) {
    fill<<<sms * 4, 512>>>(flush, flush_count);
    probe<<<sms, 32, whole_sm_bytes>>>((const char *)buffer, 0, latency);
    probe<<<sms, 32, whole_sm_bytes>>>((const char *)buffer, (uint32_t)b, latency);
    bool far = percentile(to_host(latency, num_lines), 0.75) > 370;
    rank[(size_t)b] = far ? 0x80000000u | ranks_b++ : ranks_a++;
  }
  row("fabric", "sms_on_other_side", "sm", 0, "sms", ranks_b, "1");
  CUDA_CHECK(cudaMemcpy(device_rank, rank.data(), rank.size() * 4, cudaMemcpyHostToDevice));
  if (ranks_b == 0) return 0;
  allow_shared(cross, whole_sm_bytes);
  for (int readers : {1, 4, 16, 33, (int)ranks_b})
    for (double mib : {4., 8., 16., 24., 28.}) {
      if (readers < 33 && mib > 4) continue;
      size_t bytes = (size_t)(mib * 1048576);
      std::vector<double> gbps[3];
      for (int repeat = 0; repeat < 7; repeat++) {
        fill<<<sms * 4, 512>>>(flush, flush_count);
        std::vector<Span> clear(3, {~0ull, 0});
        std::vector<uint32_t> zeros(8, 0);
        CUDA_CHECK(cudaMemcpy(spans, clear.data(), sizeof(Span) * 3, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpyToSymbol(arrivals, zeros.data(), 32));
        cross<<<sms, 1024, whole_sm_bytes>>>(buffer, bytes / 16, device_rank, ranks_a, ranks_b, readers, spans, sink);
        std::vector<Span> s = to_host(spans, 3);
        for (int i = 0; i < 3; i++) gbps[i].push_back((double)bytes / (double)(s[(size_t)i].last - s[(size_t)i].first));
      }
      char variant[32];
      snprintf(variant, sizeof variant, "readers%d", readers);
      row("fabric", variant, "buffer_bytes", (double)bytes, "first", median(gbps[0]), "GB/s");
      row("fabric", variant, "buffer_bytes", (double)bytes, "second", median(gbps[1]), "GB/s");
      row("fabric", variant, "buffer_bytes", (double)bytes, "third", median(gbps[2]), "GB/s");
    }
  finish();
  return 0;
}
