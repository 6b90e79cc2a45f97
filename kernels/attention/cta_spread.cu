/* How much CTAs of a FlashAttention-2 forward that do the same differ in time (cta_spread.h): launches of many heads
 * and waves, 256 MiB written before. cta_drift.cu has one wave alone, in which the last place ends with its SM's work:
 * what one CTA loses there the others have gained. */
#include "cta_spread.h"
#include "flash2_mma.h"

using namespace flash2_mma;
using cta_spread::CtaRecord;

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward_timed(TileParams p, CtaRecord *records) {
  uint64_t start_cycle = bench::cycles64(), start_ns = bench::global_ns();
  forward_tile<S>(p, (int)blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) records[blockIdx.x] = {start_cycle, bench::cycles64(), start_ns, bench::sm_id()};
}

template <class S>
static void measure(const char *name, const bench::GpcMap &map, int heads, int keys) {
  size_t count = (size_t)heads * (size_t)keys * S::head_dim;
  __half *q = bench::device_alloc<__half>(count), *k = bench::device_alloc<__half>(count),
         *v = bench::device_alloc<__half>(count), *o = bench::device_alloc<__half>(count);
  float *lse = bench::device_alloc<float>((size_t)heads * (size_t)keys);
  char *flush = bench::device_alloc<char>((size_t)256 << 20);
  Problem problem = {1, heads, heads, keys, keys, S::head_dim, S::causal, false, false, q, k, v, o, lse};
  Launch l = plan<S>(problem);
  CtaRecord *records = bench::device_alloc<CtaRecord>(l.grid);
  bench::allow_shared(forward_timed<S>, (int)l.shared_bytes);
  for (int repeat = 0; repeat < 2; repeat++) {
    CUDA_CHECK(cudaMemset(flush, repeat, (size_t)256 << 20));
    forward_timed<S><<<l.grid, l.block, l.shared_bytes>>>(tile_params(problem, S::block_m), records);
  }
  int ctas_per_sm = 0;
  CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_per_sm, forward_timed<S>, (int)l.block, l.shared_bytes));
  char variant[96];
  snprintf(variant, sizeof variant, "%s_%d_ctas_an_sm_%d_keys", name, ctas_per_sm, keys);
  std::vector<std::vector<CtaRecord>> sms = cta_spread::by_sm(bench::to_host(records, l.grid));
  cta_spread::report("cta_spread", variant, map, sms, ctas_per_sm, keys / S::block_n);
  cta_spread::report_clocks("cta_spread", variant, sms, keys);
  for (void *x : {(void *)q, (void *)k, (void *)v, (void *)o, (void *)lse, (void *)flush, (void *)records})
    CUDA_CHECK(cudaFree(x));
}

int main() {
  bench::GpcMap map;
  for (int keys : {1024, 2048, 4096}) {
    int heads = 512 * 1024 / keys;
    measure<Shape<64, 64, 4, 2, 64, false, Schedule::stages>>("64x64w4s2d64", map, heads, keys);
    measure<Shape<64, 32, 4, 2, 64, false, Schedule::stages>>("64x32w4s2d64", map, heads, keys);
    measure<Shape<128, 32, 4, 2, 64, false, Schedule::stages>>("128x32w4s2d64", map, heads, keys);
    measure<Shape<128, 32, 8, 2, 64, false, Schedule::stages>>("128x32w8s2d64", map, heads, keys);
    measure<Shape<64, 64, 4, 2, 128, false, Schedule::stages>>("64x64w4s2", map, heads, keys);
    measure<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>("128x64w4s2", map, heads, keys);
    measure<Shape<128, 64, 8, 2, 128, false, Schedule::stages>>("128x64w8s2", map, heads, keys);
    measure<Shape<128, 64, 8, 2, 64, false, Schedule::stages>>("128x64w8s2d64", map, heads, keys);
    measure<Shape<64, 32, 4, 1, 64, false, Schedule::stages>>("64x32w4s1d64", map, heads, keys);
    measure<Shape<64, 64, 4, 1, 64, false, Schedule::stages>>("64x64w4s1d64", map, heads, keys);
    measure<Shape<128, 64, 4, 1, 128, false, Schedule::stages>>("128x64w4s1", map, heads, keys);
  }
  bench::finish();
  return 0;
}
