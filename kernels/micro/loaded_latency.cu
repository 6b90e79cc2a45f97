/* Latency of one dependent load at a time (one warp on SM 0, DRAM or L2) while all other SMs read at a chosen rate. x
 * is the bandwidth that the others reach. `dram`: others stream 4 GiB, the chase walks another 1 GiB. `l2`: others
 * re-read 16 MiB, the chase walks 8 MiB of it. */
#include "bench.h"
using namespace bench;

constexpr int num_timed = 4000;

__device__ uint32_t finished;

__global__ __launch_bounds__(512) void load_and_chase(const uint4 *region, size_t region_count, const uint32_t *chain,
                                                      int rest_cycles, uint64_t *chase_cycles,
                                                      unsigned long long *bytes, uint64_t *span_ns, uint32_t *sink) {
  if (sm_id() == 0) {
    if (threadIdx.x != 0) return;
    uint64_t settle = global_ns() + 100000;
    while (global_ns() < settle)
      ;
    uint32_t at = 0;
    uint64_t start = cycles64(), start_ns = global_ns();
    for (int i = 0; i < num_timed; i++)
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    *sink = at;
    chase_cycles[0] = cycles64() - start;
    *span_ns = global_ns() - start_ns + 100000;
    *(volatile uint32_t *)&finished = 1;
    return;
  }
  uint32_t sum = 0;
  size_t step = (size_t)(gridDim.x - 1) * blockDim.x * 4,
         at = (size_t)(blockIdx.x % (gridDim.x - 1)) * blockDim.x * 4 + threadIdx.x;
  unsigned long long done = 0;
  while (*(volatile uint32_t *)&finished == 0) {
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = __ldcg(region + at + (size_t)k * blockDim.x);
#pragma unroll
    for (int k = 0; k < 4; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    at += step;
    if (at + 4 * blockDim.x >= region_count) at = (size_t)(blockIdx.x % (gridDim.x - 1)) * blockDim.x * 4 + threadIdx.x;
    done += 64;
    uint64_t begin = cycles64();
    while (cycles64() < begin + (uint64_t)rest_cycles)
      ;
  }
  if (sum == 0x12345678) *sink = sum;
  atomicAdd(bytes, done);
}

__global__ void touch(const uint4 *from, size_t count, uint32_t *sink) {
  uint32_t sum = 0;
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) sum ^= __ldcg(from + i).x;
  if (sum == 0x12345678) *sink = sum;
}

int main() {
  const size_t region_bytes = (size_t)4 << 30, dram_chain_bytes = (size_t)1 << 30, l2_chain_bytes = (size_t)8 << 20,
               l2_region_bytes = (size_t)16 << 20;
  uint4 *region = device_alloc<uint4>(region_bytes / 16);
  uint32_t *dram_chain = device_alloc<uint32_t>(dram_chain_bytes / 4), *sink = device_alloc<uint32_t>(1);
  uint64_t *cycles = device_alloc<uint64_t>(1), *span = device_alloc<uint64_t>(1);
  unsigned long long *bytes = device_alloc<unsigned long long>(1);
  for (int in_l2 = 0; in_l2 < 2; in_l2++) {
    /* A random cycle through lines; the L2 chain lies in the region that the others read. */
    size_t chain_bytes = in_l2 ? l2_chain_bytes : dram_chain_bytes, num_lines = chain_bytes / 128;
    std::vector<uint32_t> order(num_lines), words(chain_bytes / 4, 0);
    Random random;
    for (size_t i = 0; i < num_lines; i++) order[i] = (uint32_t)i;
    for (size_t i = num_lines - 1; i > 0; i--) std::swap(order[i], order[random.below(i)]);
    for (size_t i = 0; i < num_lines; i++) words[i * 32] = order[i] * 32;
    uint32_t *chain = in_l2 ? (uint32_t *)region : dram_chain;
    CUDA_CHECK(cudaMemcpy(chain, words.data(), chain_bytes, cudaMemcpyHostToDevice));
    allow_shared(load_and_chase, whole_sm_bytes);
    for (int rest : {200000, 20000, 8000, 4000, 2000, 1500, 1000, 700, 500, 300, 150, 0}) {
      uint32_t zero = 0;
      CUDA_CHECK(cudaMemcpyToSymbol(finished, &zero, 4));
      CUDA_CHECK(cudaMemset(bytes, 0, 8));
      if (in_l2) touch<<<num_sms(), 1024>>>(region, l2_region_bytes / 16, sink);
      load_and_chase<<<num_sms(), 512, whole_sm_bytes>>>(region, (in_l2 ? l2_region_bytes : region_bytes) / 16, chain,
                                                         rest, cycles, bytes, span, sink);
      double gbps = (double)to_host(bytes, 1)[0] / (double)to_host(span, 1)[0];
      row("loaded_latency", in_l2 ? "l2" : "dram", "others_GBps", gbps, "latency",
          (double)to_host(cycles, 1)[0] / num_timed, "cycles");
    }
  }
  finish();
  return 0;
}
