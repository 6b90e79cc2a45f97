/* Where and when each CTA of a FlashAttention-2 forward ran: SM, place on it, first and last wall-clock time
 * (globaltimer, steps of 32 ns), SM cycles. Shows waves, refill, and how far CTAs that share K and V drift apart; with
 * `ages`, how those that share an SM get out of step (cta_age.py). One launch after a warm-up, 256 MiB written before
 * it. cta_trace [ages] > trace.csv */
#include <cstdio>
#include <cstring>

#include "bench.h"
#include "flash2_mma.h"

using namespace flash2_mma;

struct CtaRecord {
  uint64_t start_ns, stop_ns, cycles;
  uint32_t sm, slot;
};

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward_traced(TileParams p, CtaRecord *trace) {
  uint64_t start_ns = bench::global_ns(), start_cycle = bench::cycles64();
  uint32_t warp_slot;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp_slot));
  forward_tile<S>(p, (int)blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0)
    trace[blockIdx.x] = {start_ns, bench::global_ns(), bench::cycles64() - start_cycle, bench::sm_id(),
                         warp_slot / (S::num_threads / 32)};
}

__global__ void fill(__half *to, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t x = (uint32_t)i * 2654435761u + 12345u, sum = 0;
    for (int k = 0; k < 4; k++) {
      x ^= x << 13, x ^= x >> 17, x ^= x << 5;
      sum += x >> 16;
    }
    to[i] = __float2half(((float)sum - 131070.0f) / 37837.0f); /* four uniforms: nearly normal, variance 1 */
  }
}

template <class S>
static void trace(int heads, int seqlen, bool head_first) {
  size_t count = (size_t)heads * (size_t)seqlen * S::head_dim;
  __half *q = bench::device_alloc<__half>(count), *k = bench::device_alloc<__half>(count),
         *v = bench::device_alloc<__half>(count), *o = bench::device_alloc<__half>(count);
  float *lse = bench::device_alloc<float>((size_t)heads * (size_t)seqlen);
  char *flush = bench::device_alloc<char>((size_t)256 << 20);
  for (__half *x : {q, k, v}) fill<<<1024, 256>>>(x, count);
  Problem problem = {1, heads, heads, seqlen, seqlen, S::head_dim, S::causal, head_first, false, q, k, v, o, lse};
  Launch l = plan<S>(problem);
  CtaRecord *records = bench::device_alloc<CtaRecord>(l.grid);
  bench::allow_shared(forward_traced<S>, (int)l.shared_bytes);
  for (int repeat = 0; repeat < 2; repeat++) {
    CUDA_CHECK(cudaMemset(flush, repeat, (size_t)256 << 20));
    forward_traced<S><<<l.grid, l.block, l.shared_bytes>>>(tile_params(problem, S::block_m), records);
  }
  std::vector<CtaRecord> r = bench::to_host(records, l.grid);
  uint64_t first = ~0ull;
  for (const CtaRecord &c : r) first = std::min(first, c.start_ns);
  for (size_t i = 0; i < r.size(); i++)
    printf("%d,%d,%d,%d,%d,%d,%d,%d,%s,%s,%zu,%u,%u,%llu,%llu,%llu\n", heads, seqlen, S::head_dim, S::causal,
           S::block_m, S::block_n, S::num_warps, S::num_stages,
           S::schedule == Schedule::stages ? "stages" : "interleaved", head_first ? "head_first" : "m_first", i,
           r[i].sm, r[i].slot, (unsigned long long)(r[i].start_ns - first), (unsigned long long)(r[i].stop_ns - first),
           (unsigned long long)r[i].cycles);
  for (void *x : {(void *)q, (void *)k, (void *)v, (void *)o, (void *)lse, (void *)flush, (void *)records})
    CUDA_CHECK(cudaFree(x));
}

static void trace_waves() {
  trace<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>(16, 4096, false);
  trace<Shape<128, 64, 4, 2, 128, true, Schedule::stages>>(16, 4096, false);
  trace<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>(4, 32768, false);
  trace<Shape<64, 64, 4, 2, 128, false, Schedule::stages>>(2, 65536, false);
  trace<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>(16, 8192, true);
  trace<Shape<128, 128, 8, 1, 128, false, Schedule::interleaved>>(32, 2048, false);
  trace<Shape<128, 128, 8, 1, 128, true, Schedule::interleaved>>(8, 8192, false);
}

/* Several CTAs an SM and many waves. */
static void trace_ages() {
  trace<Shape<64, 64, 4, 2, 64, false, Schedule::stages>>(512, 1024, false);
  trace<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>(128, 2048, false);
  trace<Shape<64, 32, 4, 1, 64, false, Schedule::stages>>(512, 1024, false);
  trace<Shape<64, 64, 4, 1, 128, false, Schedule::stages>>(64, 4096, false);
}

int main(int num_arguments, char **arguments) {
  printf(
      "heads,seqlen,head_dim,causal,block_m,block_n,num_warps,num_stages,schedule,tile_order,cta,sm,slot,start_ns,"
      "stop_ns,cycles\n");
  if (num_arguments > 1 && strcmp(arguments[1], "ages") == 0)
    trace_ages();
  else
    trace_waves();
  bench::finish();
  return 0;
}
