/* Does L2 see one request when several SMs read one line at the same time? Run under ncu:
 * lts__t_sectors_srcunit_tex.sum (what L2 looked up) against l1tex__m_xbar2l1tex_read_bytes.sum (what the SMs
 * received). num_sms readers sweep one 16 MiB buffer (fits one L2 side). paced_N: N bytes of each reader in flight,
 * then a wait until a slot of a common clock, so that all are in lock-step; drift: reader i starts i * drift ns late.
 */
#include "bench.h"
using namespace bench;

constexpr size_t footprint_bytes = (size_t)16 << 20;

struct Setup {
  int first_sm, sm_stride, num_readers;
  int slot_ns; /* 0: as fast as it goes */
  int drift_ns;
  size_t bytes = footprint_bytes;
};

__device__ uint32_t arrived;

/* A CTA of 512 threads reads 8 KiB a step. */
__global__ __launch_bounds__(512) void sweep(const char *buffer, Setup setup, uint32_t goal, uint32_t *sink) {
  __shared__ uint64_t start_ns;
  int reader = ((int)sm_id() - setup.first_sm) / setup.sm_stride;
  bool reads = (int)sm_id() >= setup.first_sm && ((int)sm_id() - setup.first_sm) % setup.sm_stride == 0 &&
               reader < setup.num_readers;
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    while (*(volatile uint32_t *)&arrived < goal)
      ;
    start_ns = global_ns() / 4096 * 4096 + 8192;
  }
  __syncthreads();
  if (!reads) return;
  uint64_t begin = start_ns + (uint64_t)(reader * setup.drift_ns);
  while (global_ns() < begin)
    ;
  uint32_t sum = 0;
  int step_index = 0;
  for (size_t at = threadIdx.x * 16; at < setup.bytes; at += 8192, step_index++) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(buffer + at));
    if (setup.slot_ns) {
      sum ^= v.x ^ v.y;
      if (sum == 0x12345678) *sink = sum;
      while (global_ns() < begin + (uint64_t)step_index * (uint64_t)setup.slot_ns)
        ;
      __syncthreads();
    }
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678) *sink = sum;
}

/* The same without any common start: what a plain kernel does. */
__global__ __launch_bounds__(512) void sweep_free(const char *buffer, uint32_t *sink) {
  uint32_t sum = 0;
#pragma unroll 4
  for (size_t at = threadIdx.x * 16; at < footprint_bytes; at += 8192) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(buffer + at));
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678) *sink = sum;
}

static void launch(const char *buffer, Setup setup, const char *variant, const char *parameter, double x,
                   uint32_t *sink) {
  uint32_t zero = 0;
  /* ncu replays the kernel; it restores `arrived` to this value before each pass. */
  CUDA_CHECK(cudaMemcpyToSymbol(arrived, &zero, 4));
  sweep<<<num_sms(), 512, whole_sm_bytes>>>(buffer, setup, (uint32_t)num_sms(), sink);
  finish();
  row("coalescer", variant, parameter, x, "readers", setup.num_readers, "1");
}

int main() {
  const int sms = num_sms();
  char *buffer = device_alloc<char>(footprint_bytes);
  uint32_t *sink = device_alloc<uint32_t>(1);
  allow_shared(sweep, whole_sm_bytes);
  for (int n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 66, 96, 132})
    if (n <= sms) launch(buffer, {0, 1, n, 0, 0}, "adjacent_free", "readers", n, sink);
  for (int n : {1, 2, 4, 8, 16, 32, 66, 132})
    if (n <= sms) launch(buffer, {0, 1, n, 512, 0}, "adjacent_paced512ns", "readers", n, sink);
  for (int n : {2, 4, 8, 16}) launch(buffer, {0, 8, n, 512, 0}, "stride8_paced512ns", "readers", n, sink);
  for (int stride : {1, 2, 4, 6, 8, 16, 18, 32, 64})
    launch(buffer, {0, stride, 2, 512, 0}, "two_paced512ns", "sm_stride", stride, sink);
  /* SMs 0, 16, 32, 48 share a GPC on the H200 that was measured. */
  for (int drift : {0, 32, 64, 96, 128, 192, 256, 320, 384, 448, 512, 768, 1024, 2048, 4096})
    launch(buffer, {0, 16, 4, 512, drift}, "four_of_a_gpc_paced512ns", "drift_ns", drift, sink);
  for (int drift : {0, 32, 64, 128, 256, 512, 1024, 2048, 4096})
    launch(buffer, {0, 1, 2, 512, drift}, "tpc_paced512ns", "drift_ns", drift, sink);
  /* How far behind a second reader may be: by time (paced slowly and quickly). */
  for (int slot : {512, 4096})
    for (int drift : {4096, 8192, 16384, 32768, 65536, 131072, 262144}) {
      char variant[64];
      snprintf(variant, sizeof variant, "tpc_paced%dns", slot);
      launch(buffer, {0, 1, 2, slot, drift, 2 << 20}, variant, "drift_ns", drift, sink);
    }
  /* Which SMs share a coalescer with SM 0, with SM 2 and with the last one. */
  for (int other : {1, 2, 16, 17, 32, 48, 64, 124, 131})
    launch(buffer, {0, other, 2, 0, 0, 1 << 20}, "pair_with_sm0", "other_sm", other, sink);
  for (int other : {3, 4, 18, 34, 50, 64, 78, 92, 106, 108, 120})
    launch(buffer, {2, other - 2, 2, 0, 0, 1 << 20}, "pair_with_sm2", "other_sm", other, sink);
  for (int other : {125, 126, 128, 131})
    launch(buffer, {124, other - 124, 2, 0, 0, 1 << 20}, "pair_with_sm124", "other_sm", other, sink);
  for (int drift : {0, 16, 32, 64, 128, 256, 512, 1024, 4096})
    launch(buffer, {0, 1, sms, 0, drift}, "all_free", "drift_ns", drift, sink);
  for (int per_sm : {1, 2, 4}) {
    sweep_free<<<sms * per_sm, 512>>>(buffer, sink);
    row("coalescer", "plain", "ctas_per_sm", per_sm, "readers", sms * per_sm, "1");
  }
  finish();
  return 0;
}
