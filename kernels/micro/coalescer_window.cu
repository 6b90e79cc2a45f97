/* How late a second reader's request still becomes one with the first's, in fine steps. Readers on chosen SMs sweep
 * one buffer, 8 KiB every 4096 ns slot of a common clock; reader i issues its step i * lag SM cycles into the slot (x).
 * Run under ncu: SM sectors (l1tex__m_xbar2l1tex_read_bytes / 32) over L2 lookups (lts__t_sectors_srcunit_tex) is 1
 * where nothing merges and 2 (or 4) where all does. ncu invalidates L2 first: in `miss` every line comes from DRAM; in
 * `hit` another SM of the first reader's GPC has read all once before (that reader's 1.5 MiB are to be taken off both
 * counts). */
#include "bench.h"
using namespace bench;

constexpr size_t footprint_bytes = (size_t)2 << 20;
constexpr int num_sweep_steps = 192;

struct Readers {
  int sm[4], count;
};

__device__ uint32_t arrived;

/* A CTA of 512 threads reads 8 KiB a step. */
__global__ __launch_bounds__(512) void sweep_lag(const char *buffer, Readers readers, int lag_cycles, int warm_sm,
                                                 uint32_t goal, uint32_t *sink) {
  __shared__ uint64_t start_ns;
  int reader = -1;
  for (int i = 0; i < readers.count; i++) reader = (int)sm_id() == readers.sm[i] ? i : reader;
  uint32_t sum = 0;
  if ((int)sm_id() == warm_sm)
    for (size_t at = threadIdx.x * 16; at < (size_t)num_sweep_steps * 8192; at += 8192) {
      uint4 v = __ldcg((const uint4 *)(buffer + at));
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  if (sum == 0x12345678) *sink = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&arrived, 1);
    while (*(volatile uint32_t *)&arrived < goal)
      ;
    start_ns = global_ns() / 4096 * 4096 + 8192;
  }
  __syncthreads();
  if (reader < 0) return;
  for (int step = 0; step < num_sweep_steps; step++) {
    while (global_ns() < start_ns + (uint64_t)step * 4096)
      ;
    uint32_t slot = clock32();
    while (clock32() - slot < (uint32_t)(reader * lag_cycles))
      ;
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(buffer + (size_t)step * 8192 + threadIdx.x * 16)
                 : "memory");
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
    __syncthreads();
  }
  if (sum == 0x12345678) *sink = sum;
}

int main() {
  const int sms = num_sms();
  char *buffer = device_alloc<char>(footprint_bytes);
  uint32_t *sink = device_alloc<uint32_t>(1), zero = 0;
  allow_shared(sweep_lag, whole_sm_bytes);
  /* SMs 0, 1 share a TPC; 0, 16, 32, 48 a GPC; 0 and 2 are of different GPCs on the H200 that was measured. */
  const struct {
    const char *name;
    Readers readers;
  } places[] = {
      {"tpc", {{0, 1}, 2}}, {"gpc", {{0, 16}, 2}}, {"four_of_a_gpc", {{0, 16, 32, 48}, 4}}, {"two_gpcs", {{0, 2}, 2}}};
  for (int warm_sm : {-1, 33})
    for (const auto &place : places)
      for (int lag : {0,   32,  64,  96,  128, 160, 192, 224, 256,  288,  320,
                      384, 448, 512, 576, 640, 704, 768, 896, 1024, 2048, 4096}) {
        if (place.readers.count > 2 && lag * 3 > 6000) continue;
        char variant[64];
        snprintf(variant, sizeof variant, "%s_%s", place.name, warm_sm < 0 ? "miss" : "hit");
        CUDA_CHECK(cudaMemcpyToSymbol(arrived, &zero, 4));
        sweep_lag<<<sms, 512, whole_sm_bytes>>>(buffer, place.readers, lag, warm_sm, (uint32_t)sms, sink);
        finish();
        row("coalescer_window", variant, "lag_cycles", lag, "readers", place.readers.count, "1");
      }
  return 0;
}
