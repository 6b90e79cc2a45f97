/* How much CTAs of forward kernels with wgmma that do the same differ in time (cta_spread.h), by how many warpgroups
 * share the tensor cores and whether they take turns: flash2_wgmma.h with K and V by TMA, flash3.h with a producer and
 * ping-pong. Launches of many heads and waves, 256 MiB written before. */
#include "cta_spread.h"
#include "flash2_wgmma.h"
#include "flash3.h"

using namespace wgmma_tiles;
using cta_spread::CtaRecord;

template <class S>
struct Stages {
  using Shape = S;
  static Launch plan(const Problem &p) { return flash2_wgmma::plan<S>(p); }
  __device__ static void run(const TileParams &p, const Maps &maps) { flash2_wgmma::forward_cta<S>(p, maps); }
};

template <class S>
struct PingPong {
  using Shape = S;
  static Launch plan(const Problem &p) { return flash3::plan<S>(p); }
  __device__ static void run(const TileParams &p, const Maps &maps) { flash3::forward_cta<S>(p, maps); }
};

/* Its last warp takes the times: the others may be waiting for it with fewer registers. */
template <class K>
__global__ __launch_bounds__(K::Shape::num_threads, 1) void forward_timed(TileParams p,
                                                                          const __grid_constant__ Maps maps,
                                                                          CtaRecord *records) {
  uint64_t start_cycle = bench::cycles64(), start_ns = bench::global_ns();
  K::run(p, maps);
  __syncthreads();
  if (threadIdx.x == K::Shape::num_threads - 1)
    records[blockIdx.x] = {start_cycle, bench::cycles64(), start_ns, bench::sm_id()};
}

template <class K>
static void measure(const char *name, const bench::GpcMap &map, int heads, int keys) {
  using S = typename K::Shape;
  size_t count = (size_t)heads * (size_t)keys * S::head_dim;
  __half *q = bench::device_alloc<__half>(count), *k = bench::device_alloc<__half>(count),
         *v = bench::device_alloc<__half>(count), *o = bench::device_alloc<__half>(count);
  float *lse = bench::device_alloc<float>((size_t)heads * (size_t)keys);
  char *flush = bench::device_alloc<char>((size_t)256 << 20);
  Problem problem = {1, heads, heads, keys, keys, S::head_dim, S::causal, false, false, q, k, v, o, lse};
  Launch l = K::plan(problem);
  CtaRecord *records = bench::device_alloc<CtaRecord>(l.grid);
  bench::allow_shared(forward_timed<K>, (int)l.shared_bytes);
  for (int repeat = 0; repeat < 2; repeat++) {
    CUDA_CHECK(cudaMemset(flush, repeat, (size_t)256 << 20));
    forward_timed<K><<<l.grid, l.block, l.shared_bytes>>>(tile_params(problem, S::block_m),
                                                          make_maps(problem, S::block_m, S::block_n), records);
  }
  int ctas_per_sm = 0;
  CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_per_sm, forward_timed<K>, (int)l.block, l.shared_bytes));
  char variant[96];
  snprintf(variant, sizeof variant, "%s_%d_ctas_an_sm_%d_keys", name, ctas_per_sm, keys);
  auto sms = cta_spread::by_sm(bench::to_host(records, l.grid));
  cta_spread::report("cta_spread_wgmma", variant, map, sms, ctas_per_sm, keys / S::block_n);
  cta_spread::report_clocks("cta_spread_wgmma", variant, sms, keys);
  for (void *x : {(void *)q, (void *)k, (void *)v, (void *)o, (void *)lse, (void *)flush, (void *)records})
    CUDA_CHECK(cudaFree(x));
}

template <int block_m, int block_n, int num_warps, int num_stages, int head_dim>
using Tma =
    Stages<flash2_wgmma::Shape<block_m, block_n, num_warps, num_stages, head_dim, false, flash2_wgmma::Copy::tma>>;
template <int block_m, int block_n, int num_warps, int num_stages, int head_dim>
using Turns = PingPong<flash3::Shape<block_m, block_n, num_warps, num_stages, head_dim, false>>;

int main() {
  bench::GpcMap map;
  for (int keys : {1536, 3072, 6144}) {
    int heads = 512 * 1536 / keys;
    measure<Tma<64, 128, 4, 2, 128>>("64x128w4s2", map, heads, keys);
    measure<Tma<64, 128, 4, 3, 128>>("64x128w4s3", map, heads, keys);
    measure<Tma<128, 128, 4, 2, 64>>("128x128w4s2d64", map, heads, keys);
    measure<Tma<128, 128, 8, 2, 128>>("128x128w8s2", map, heads, keys);
    measure<Tma<128, 64, 8, 2, 128>>("128x64w8s2", map, heads, keys);
    measure<Tma<128, 128, 8, 2, 64>>("128x128w8s2d64", map, heads, keys);
    measure<Tma<192, 128, 12, 2, 64>>("192x128w12s2d64", map, heads, keys);
    measure<Tma<192, 64, 12, 2, 128>>("192x64w12s2", map, heads, keys);
    measure<Turns<128, 128, 8, 2, 128>>("128x128w8s2_turns", map, heads, keys);
    measure<Turns<128, 128, 8, 2, 64>>("128x128w8s2d64_turns", map, heads, keys);
    measure<Turns<192, 128, 12, 2, 64>>("192x128w12s2d64_turns", map, heads, keys);
  }
  bench::finish();
  return 0;
}
