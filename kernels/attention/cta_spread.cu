/* How much CTAs of a FlashAttention-2 forward that do the same differ in time while every place of every SM is taken:
 * launches of many heads and waves, 256 MiB written before. Of each SM's CTAs, in the order in which they start, so
 * many in a row as it holds are a wave (x), and have a place in it. took: mean time; took_inside: standard deviation
 * over the SMs of a GPC (micro/gpc_map.h), mean square over the places; drift: that of an iteration for each other CTA
 * on the SM, as a share, if all are independent: took_inside / took * sqrt(iterations / others).
 * clock_between: standard deviation over the SMs of cycles a nanosecond, from each one's first start to its last: GPCs
 * have clocks of their own under load, SMs of a GPC the same (x is the number of keys).
 * cta_drift.cu has one wave alone, in which the last place ends with its SM's work: what one CTA loses there the others
 * have gained. */
#include "flash2_mma.h"
#include "gpc_map.h"

using namespace flash2_mma;

struct CtaRecord {
  uint64_t start_cycle, stop_cycle, start_ns;
  uint32_t sm;
};

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward_timed(TileParams p, CtaRecord *records) {
  uint64_t start_cycle = bench::cycles64(), start_ns = bench::global_ns();
  forward_tile<S>(p, (int)blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) records[blockIdx.x] = {start_cycle, bench::cycles64(), start_ns, bench::sm_id()};
}

/* Per SM, in the order in which they start. */
static std::vector<std::vector<CtaRecord>> by_sm(const std::vector<CtaRecord> &all) {
  std::vector<std::vector<CtaRecord>> sms((size_t)bench::num_sms());
  for (const CtaRecord &r : all) sms[r.sm].push_back(r);
  for (std::vector<CtaRecord> &sm : sms)
    std::sort(sm.begin(), sm.end(),
              [](const CtaRecord &a, const CtaRecord &b) { return a.start_cycle < b.start_cycle; });
  return sms;
}

static void report_clocks(const char *variant, const std::vector<std::vector<CtaRecord>> &sms, int keys) {
  std::vector<double> cycles_a_ns;
  for (const std::vector<CtaRecord> &sm : sms)
    cycles_a_ns.push_back((double)(sm.back().start_cycle - sm.front().start_cycle) /
                          (double)(sm.back().start_ns - sm.front().start_ns));
  double mean = bench::mean(cycles_a_ns);
  bench::row("cta_spread", variant, "keys", keys, "clock", mean * 1000, "MHz");
  bench::row("cta_spread", variant, "keys", keys, "clock_between", 1e6 * bench::deviation(cycles_a_ns) / mean, "ppm");
}

static void report(const char *variant, const bench::GpcMap &map, const std::vector<std::vector<CtaRecord>> &sms,
                   int ctas_per_sm, int iterations) {
  size_t least = SIZE_MAX;
  for (const std::vector<CtaRecord> &sm : sms) least = std::min(least, sm.size());
  size_t per_sm = (size_t)ctas_per_sm, num_waves = least / per_sm;
  for (size_t wave = 0; wave + 1 < num_waves; wave++) { /* beside the last, places are empty */
    std::vector<double> means;
    double squares = 0;
    for (size_t place = 0; place < per_sm; place++) {
      std::vector<uint32_t> ids;
      std::vector<double> took;
      for (const std::vector<CtaRecord> &sm : sms) {
        const CtaRecord &r = sm[wave * per_sm + place];
        ids.push_back(r.sm);
        took.push_back((double)(r.stop_cycle - r.start_cycle));
      }
      means.push_back(bench::mean(took));
      double inside = bench::spread_by_gpc(map, ids, took).inside;
      squares += inside * inside / ctas_per_sm;
    }
    double took = bench::mean(means), inside = sqrt(squares);
    bench::row("cta_spread", variant, "wave", (double)wave, "took", took, "cycles");
    bench::row("cta_spread", variant, "wave", (double)wave, "took_inside", inside, "cycles");
    if (ctas_per_sm > 1)
      bench::row("cta_spread", variant, "wave", (double)wave, "drift",
                 1000 * inside / took * sqrt((double)iterations / (ctas_per_sm - 1)), "permille");
  }
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
  std::vector<std::vector<CtaRecord>> sms = by_sm(bench::to_host(records, l.grid));
  report(variant, map, sms, ctas_per_sm, keys / S::block_n);
  report_clocks(variant, sms, keys);
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
