/* Where a CTA of our own warp-specialised products is, and when: SM cycles since it began, in the mean of all SMs, of
 * an SM's first tile and of its later ones. product_trace [--profile] > trace.csv; with --profile one launch of each,
 * for ncu, which empties the caches of data and of code; else one of each behind another, after 256 MiB are written.
 *
 * Rows of bench.h: variant <block_m>x<block_n>_<stages>_<store>; parameter `tile`, 0 the first, 1 the later ones;
 * metrics are places of product_wgmma::Mark. Of later tiles of a CTA times count from where C of the tile before has
 * left registers. */
#include <string>

#include <cuda_profiler_api.h>

#include "bench.h"
#include "product_wgmma.h"

using product_wgmma::Mark;

namespace {

constexpr int num_marks = 7, most_tiles = 8; /* of a CTA */
const char *const names[num_marks] = {"began", "met", "placed", "asked", "data", "looped", "stored"};

/* Clocks go where split sums would: what no kernel parameter points to would be one more load before the first copy. */
struct Clocks {
  uint32_t *to;
  __device__ __forceinline__ explicit Clocks(const product_mma::Product &p)
      : to((uint32_t *)p.sums + blockIdx.x * most_tiles * num_marks) {}
  __device__ __forceinline__ void at(Mark mark) {
    if (threadIdx.x == (mark <= Mark::asked ? 0 : 128)) to[(int)mark] = bench::clock32();
  }
  __device__ __forceinline__ void next_tile() { to += num_marks; }
};

/* Of the CTA that an SM begins with, the first tile; or what comes later. */
template <class S>
void print(const std::vector<uint32_t> &clocks, int num_ctas, bool later) {
  std::string variant = std::to_string(S::block_m) + "x" + std::to_string(S::block_n) + "_" +
                        std::to_string(S::num_stages) + (S::staged ? "_staged" : "_direct");
  double sums[num_marks] = {};
  int count = 0;
  for (int cta = 0; cta < num_ctas; cta++)
    for (int tile = 0; tile < most_tiles; tile++) {
      const uint32_t *at = clocks.data() + (cta * most_tiles + tile) * num_marks;
      bool is_later = tile > 0 || cta >= bench::num_sms(), is_there = at[(int)Mark::stored] != 0;
      if (!is_there || is_later != later) continue;
      uint32_t from = tile > 0 ? at[(int)Mark::stored - num_marks] : at[(int)Mark::began];
      for (int mark = 0; mark < num_marks; mark++) sums[mark] += (double)(int32_t)(at[mark] - from);
      count++;
    }
  bool has_began = !later || !S::persistent;
  for (int mark = (int)(has_began ? Mark::met : Mark::data); mark < num_marks; mark++)
    if (count > 0)
      bench::row("product_trace", variant.c_str(), "tile", later, names[mark], sums[mark] / count, "cycles");
}

template <class S>
void trace(int m, int n, int k, void *flush) {
  size_t elements[] = {(size_t)m * (size_t)k, (size_t)k * (size_t)n, (size_t)m * (size_t)n};
  __half *a = bench::device_alloc<__half>(elements[0]), *b = bench::device_alloc<__half>(elements[1]),
         *c = bench::device_alloc<__half>(elements[2]);
  product_mma::Product p = {1, m, n, k, 1, false, a, {b, nullptr}, c, nullptr};
  bench::allow_shared(product_wgmma::matmul<S, Clocks>, S::shared_bytes);
  unsigned num_ctas = product_wgmma::num_ctas<S, Clocks>(p);
  size_t num_clocks = (size_t)num_ctas * most_tiles * num_marks;
  p.sums = bench::device_alloc<float>(num_clocks);
  for (int launch = flush ? 0 : 1; launch < 2; launch++) {
    CUDA_CHECK(cudaMemset(p.sums, 0, num_clocks * sizeof(float)));
    if (flush) CUDA_CHECK(cudaMemset(flush, launch, (size_t)256 << 20));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (!flush) CUDA_CHECK(cudaProfilerStart());
    product_wgmma::matmul<S, Clocks><<<num_ctas, S::num_threads, S::shared_bytes>>>(p, product_wgmma::make_maps<S>(p));
    bench::finish();
    if (!flush) CUDA_CHECK(cudaProfilerStop());
  }
  for (bool later : {false, true}) print<S>(bench::to_host((const uint32_t *)p.sums, num_clocks), (int)num_ctas, later);
  for (void *x : {(void *)a, (void *)b, (void *)c, (void *)p.sums}) CUDA_CHECK(cudaFree(x));
}

}  // namespace

int main(int argc, char **argv) {
  using product_wgmma::Shape;
  void *flush = nullptr;
  if (!bench::has_flag(argc, argv, "--profile")) CUDA_CHECK(cudaMalloc(&flush, (size_t)256 << 20));
  printf("benchmark,variant,parameter,x,metric,value,unit\n");
  trace<Shape<128, 256, 64, 8, 3, false, true, true>>(3328, 4864, 1152, flush);
  trace<Shape<128, 256, 64, 8, 2, false, true, false>>(3328, 4864, 1152, flush);
  trace<Shape<128, 128, 64, 8, 4, false, true, true>>(3328, 4864, 1152, flush);
  trace<Shape<128, 128, 64, 8, 4, false, false, false>>(3328, 4864, 1152, flush);
  trace<Shape<64, 256, 64, 4, 3, true, true, true>>(2048, 4096, 2048, flush);
  return 0;
}
