/* mma.sync: latency of a dependent chain, issue interval with independent accumulators in one warp, rate over warps of
 * one SM. Rate in dense FMA per SM cycle. */
#include "bench.h"
using namespace bench;

constexpr int num_steps = 512;

struct M16n8k16F16 {
  static constexpr int fma = 16 * 8 * 16;
  static __device__ __forceinline__ void apply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct M16n8k16Bf16 {
  static constexpr int fma = 16 * 8 * 16;
  static __device__ __forceinline__ void apply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct M16n8k8F16 {
  static constexpr int fma = 16 * 8 * 8;
  static __device__ __forceinline__ void apply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
};
struct M16n8k8Tf32 {
  static constexpr int fma = 16 * 8 * 8;
  static __device__ __forceinline__ void apply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

struct M16n8k16AccumulateF16 {
  static constexpr int fma = 16 * 8 * 16;
  static __device__ __forceinline__ void apply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "{ .reg .b32 d0, d1; mov.b32 d0, %0; mov.b32 d1, %1;"
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {d0, d1}, {%2,%3,%4,%5}, {%6,%7}, {d0, d1};"
        "mov.b32 %0, d0; mov.b32 %1, d1; }"
        : "+f"(d[0]), "+f"(d[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

template <typename Mma, int chains>
__global__ void run(uint64_t *span, float *sink) {
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  float d[chains][4] = {};
  uint32_t a[4], b[2];
  for (int i = 0; i < 4; i++) a[i] = threadIdx.x * 1103515245u % 1000 + (unsigned)i;
  for (int i = 0; i < 2; i++) b[i] = threadIdx.x * 134775813u % 1000 + (unsigned)i;
  __syncthreads();
  uint64_t start = cycles64();
  for (int i = 0; i < num_steps / 8; i++) {
#pragma unroll
    for (int u = 0; u < 8; u++) {
#pragma unroll
      for (int k = 0; k < chains; k++) Mma::apply(d[k], a, b);
    }
  }
  float sum = 0;
  for (int k = 0; k < chains; k++) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
  sink[threadIdx.x] = sum;
  uint64_t stop = cycles64();
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <typename Mma, int chains>
static double cycles(int warps) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static float *sink = device_alloc<float>(1024);
  for (int warm = 0; warm < 2; warm++) run<Mma, chains><<<1, warps * 32>>>(span, sink);
  return (double)to_host(span, 1)[0] / num_steps;
}

template <typename Mma>
static void measure(const char *name) {
  row("mma", name, "warps", 1, "latency", cycles<Mma, 1>(1), "cycles");
  row("mma", name, "chains_in_one_warp", 2, "issue_interval", cycles<Mma, 2>(1) / 2, "cycles");
  row("mma", name, "chains_in_one_warp", 4, "issue_interval", cycles<Mma, 4>(1) / 4, "cycles");
  row("mma", name, "chains_in_one_warp", 8, "issue_interval", cycles<Mma, 8>(1) / 8, "cycles");
  row("mma", name, "chains_in_one_warp", 16, "issue_interval", cycles<Mma, 16>(1) / 16, "cycles");
  for (int warps : {1, 2, 4, 8, 12, 16})
    row("mma", name, "warps", warps, "rate", Mma::fma * 8. * warps / cycles<Mma, 8>(warps), "fma/cycle/sm");
  for (int warps : {4, 8, 16})
    row("mma", name, "warps_one_chain", warps, "rate", Mma::fma * 1. * warps / cycles<Mma, 1>(warps), "fma/cycle/sm");
  finish();
}

int main() {
  measure<M16n8k16F16>("m16n8k16.f32.f16");
  measure<M16n8k16AccumulateF16>("m16n8k16.f16.f16");
  measure<M16n8k16Bf16>("m16n8k16.f32.bf16");
  measure<M16n8k8F16>("m16n8k8.f32.f16");
  measure<M16n8k8Tf32>("m16n8k8.f32.tf32");
  return 0;
}
