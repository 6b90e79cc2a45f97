/* Shared memory instructions: latency of dependent chains and throughput over warps, by width and by bank-conflict
 * degree; ldmatrix; bar.sync and mbarrier round trips. Throughput in warp instructions per SM cycle; x is the number of
 * warps unless named. */
#include "bench.h"
using namespace bench;

constexpr int num_steps = 512;

struct Timing {
  uint64_t *span;
  uint32_t *sink;
};

struct SpanClock {
  unsigned long long first, last;
};

__device__ __forceinline__ void span_begin(SpanClock *c) {
  if (threadIdx.x == 0) c->first = ~0ull, c->last = 0;
  __syncthreads();
}

__device__ __forceinline__ void span_end(SpanClock *c, uint64_t start, Timing t) {
  uint64_t stop = cycles64();
  atomicMin(&c->first, (unsigned long long)start);
  atomicMax(&c->last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) *t.span = c->last - c->first;
}

__device__ __forceinline__ uint32_t zeroed_base() {
  extern __shared__ __align__(128) uint32_t words[];
  for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x) words[i] = 0;
  __syncthreads();
  return shared_address(words);
}

enum class Op { lds32, lds64, lds128, sts32, sts128, ldsm1, ldsm2, ldsm4, ldsm1t, ldsm4t, stsm4 };

template <Op op>
__device__ __forceinline__ uint32_t access(uint32_t address, uint32_t data) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  switch (op) {
    case Op::lds32:
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(address));
      break;
    case Op::lds64:
      asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(address));
      break;
    case Op::lds128:
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address));
      break;
    case Op::sts32:
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(data) : "memory");
      break;
    case Op::sts128:
      asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(address), "r"(data) : "memory");
      break;
    case Op::ldsm1:
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(address));
      break;
    case Op::ldsm2:
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(address));
      break;
    case Op::ldsm4:
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "r"(address));
      break;
    case Op::ldsm1t:
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(address));
      break;
    case Op::ldsm4t:
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "r"(address));
      break;
    case Op::stsm4:
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%1,%1,%1};" ::"r"(address), "r"(data)
                   : "memory");
      break;
  }
  return a;
}

/* Memory holds zeros, so adding the loaded value makes a chain without moving the address: one IADD a step, and for v4
 * the last register does not matter because all arrive together. */
template <Op op>
__global__ void latency(uint32_t lane_stride_bytes, Timing t) {
  __shared__ SpanClock c;
  uint32_t address = zeroed_base() + threadIdx.x % 32 * lane_stride_bytes;
  span_begin(&c);
  uint64_t start = cycles64();
#pragma unroll 16
  for (int i = 0; i < num_steps; i++) address += access<op>(address, 0);
  t.sink[threadIdx.x] = address;
  span_end(&c, start, t);
}

template <Op op>
__global__ void throughput(uint32_t lane_stride_bytes, Timing t) {
  __shared__ SpanClock c;
  uint32_t base = zeroed_base() + threadIdx.x % 32 * lane_stride_bytes, sum = 0;
  span_begin(&c);
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < num_steps / 8; i++) {
    /* Eight different addresses, others in the next round, so that no access repeats the one before. */
    uint32_t v[8], address = base + (uint32_t)i % 2 * 16384;
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = access<op>(address + (uint32_t)k * 1024, 0);
#pragma unroll
    for (int k = 0; k < 8; k++) sum ^= v[k];
  }
  t.sink[threadIdx.x] = sum;
  span_end(&c, start, t);
}

template <Op op>
static void measure(const char *name, uint32_t lane_stride, bool is_load, Timing t) {
  if (is_load) {
    for (int warm = 0; warm < 2; warm++) latency<op><<<1, 32, 32768>>>(lane_stride, t);
    row("shared_memory", name, "warps", 1, "latency_with_iadd", (double)to_host(t.span, 1)[0] / num_steps, "cycles");
  }
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    for (int warm = 0; warm < 2; warm++) throughput<op><<<1, warps * 32, 32768>>>(lane_stride, t);
    row("shared_memory", name, "warps", warps, "throughput", (double)num_steps * warps / (double)to_host(t.span, 1)[0],
        "warp_instr/cycle");
  }
}

__global__ void chase(Timing t) {
  extern __shared__ uint32_t words[];
  for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = shared_address(&words[(i + 32) % 1024]);
  __syncthreads();
  uint32_t at = shared_address(&words[threadIdx.x]);
  uint64_t start = cycles64();
#pragma unroll 16
  for (int i = 0; i < num_steps; i++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at));
  t.sink[threadIdx.x] = at;
  if (threadIdx.x == 0) *t.span = cycles64() - start;
}

/* Word t of matrix 0 is the row address that thread t hands in, so the next ldmatrix can use it directly. */
__global__ void chase_ldmatrix(Timing t) {
  extern __shared__ __align__(128) uint32_t words[];
  for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = shared_address(words) + i % 32 * 16;
  __syncthreads();
  uint32_t at = shared_address(words) + threadIdx.x * 16, b, c, d;
  uint64_t start = cycles64();
#pragma unroll 16
  for (int i = 0; i < num_steps; i++)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%0];" : "+r"(at), "=r"(b), "=r"(c), "=r"(d));
  t.sink[threadIdx.x] = at ^ b ^ c ^ d;
  if (threadIdx.x == 0) *t.span = cycles64() - start;
}

__global__ void bar_sync(Timing t) {
  uint64_t start = cycles64();
#pragma unroll 16
  for (int i = 0; i < num_steps; i++) asm volatile("bar.sync 0;" ::: "memory");
  if (threadIdx.x == 0) *t.span = cycles64() - start;
}

__global__ void bar_named_pairs(Timing t) {
  uint32_t id = 1 + threadIdx.x / 128;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 16
  for (int i = 0; i < num_steps; i++) asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
  if (threadIdx.x == 0) *t.span = cycles64() - start;
}

/* All threads wait for a phase that one elected thread a warp arrives at. */
__global__ void mbarrier(Timing t) {
  __shared__ __align__(8) uint64_t bar;
  uint32_t address = shared_address(&bar);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(blockDim.x / 32));
  __syncthreads();
  uint64_t start = cycles64();
  for (int i = 0; i < num_steps; i++) {
    if (threadIdx.x % 32 == 0)
      asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address) : "memory");
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }" ::"r"(address),
        "r"(i & 1)
        : "memory");
    __syncwarp();
  }
  if (threadIdx.x == 0) *t.span = cycles64() - start;
}

__global__ void mbarrier_try_ready(Timing t) {
  __shared__ __align__(8) uint64_t bar;
  uint32_t address = shared_address(&bar);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(1));
  __syncthreads();
  uint64_t start = cycles64();
  uint32_t sum = 0;
  for (int i = 0; i < num_steps; i++) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(address)
                 : "memory");
    sum += done;
    if (!done) break;
  }
  t.sink[0] = sum;
  *t.span = cycles64() - start;
}

template <typename Kernel>
static double cycles_per_step(Kernel kernel, int warps, Timing t) {
  for (int warm = 0; warm < 2; warm++) kernel<<<1, warps * 32, 4096>>>(t);
  return (double)to_host(t.span, 1)[0] / num_steps;
}

int main() {
  Timing t = {device_alloc<uint64_t>(1), device_alloc<uint32_t>(1024)};
  row("shared_memory", "LDS.32_chase", "warps", 1, "latency", cycles_per_step(chase, 1, t), "cycles");
  row("shared_memory", "LDSM.x4_chase", "warps", 1, "latency", cycles_per_step(chase_ldmatrix, 1, t), "cycles");
  measure<Op::lds32>("LDS.32", 4, true, t);
  measure<Op::lds64>("LDS.64", 8, true, t);
  measure<Op::lds128>("LDS.128", 16, true, t);
  measure<Op::lds32>("LDS.32_conflict2", 8, true, t);
  measure<Op::lds32>("LDS.32_conflict4", 16, true, t);
  measure<Op::lds32>("LDS.32_conflict8", 32, true, t);
  measure<Op::lds32>("LDS.32_conflict16", 64, true, t);
  measure<Op::lds32>("LDS.32_conflict32", 128, true, t);
  measure<Op::sts32>("STS.32", 4, false, t);
  measure<Op::sts128>("STS.128", 16, false, t);
  measure<Op::sts32>("STS.32_conflict8", 32, false, t);
  measure<Op::ldsm1>("LDSM.x1", 16, true, t);
  measure<Op::ldsm2>("LDSM.x2", 16, true, t);
  measure<Op::ldsm4>("LDSM.x4", 16, true, t);
  measure<Op::ldsm1t>("LDSM.x1.T", 16, true, t);
  measure<Op::ldsm4t>("LDSM.x4.T", 16, true, t);
  measure<Op::ldsm4>("LDSM.x4_conflict2", 32, true, t);
  measure<Op::ldsm4>("LDSM.x4_conflict8", 128, true, t);
  measure<Op::stsm4>("STSM.x4", 16, false, t);
  for (int warps : {1, 2, 4, 8, 12, 16, 24, 32})
    row("shared_memory", "BAR.SYNC", "warps", warps, "round_trip", cycles_per_step(bar_sync, warps, t), "cycles");
  for (int warps : {4, 8, 16, 32})
    row("shared_memory", "BAR.SYNC_named_128", "warps", warps, "round_trip", cycles_per_step(bar_named_pairs, warps, t),
        "cycles");
  for (int warps : {1, 2, 4, 8, 12, 16})
    row("shared_memory", "mbarrier_arrive_wait", "warps", warps, "round_trip", cycles_per_step(mbarrier, warps, t),
        "cycles");
  row("shared_memory", "mbarrier_try_wait_ready", "warps", 1, "latency", cycles_per_step(mbarrier_try_ready, 1, t),
      "cycles");
  finish();
  return 0;
}
