/* How far CTAs of a FlashAttention-2 forward that start together have come apart when they end: one wave, inside the
 * GPCs (whose SMs share a clock: micro/gpc_map.h) and between them, by the CTA's place on its SM. x is the number of
 * keys; `warm`: K, V and Q are in L2; `cold`: 256 MiB were written before. */
#include "flash2_mma.h"
#include "gpc_map.h"

using namespace flash2_mma;

struct CtaRecord {
  uint64_t start_cycle, stop_cycle;
  uint32_t sm, slot;
};

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward_timed(TileParams p, CtaRecord *records) {
  uint64_t start_cycle = bench::cycles64();
  uint32_t warp_slot;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp_slot));
  forward_tile<S>(p, (int)blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0)
    records[blockIdx.x] = {start_cycle, bench::cycles64(), bench::sm_id(), warp_slot / (S::num_threads / 32)};
}

static void report(const char *variant, const bench::GpcMap &map, const std::vector<CtaRecord> &all, uint32_t slot,
                   int keys) {
  std::vector<uint32_t> sms;
  std::vector<double> start, stop, took;
  for (const CtaRecord &r : all) {
    if (r.slot != slot) continue;
    sms.push_back(r.sm);
    start.push_back((double)(int64_t)(r.start_cycle - all[0].start_cycle) - map.offset_of(r.sm));
    stop.push_back((double)(int64_t)(r.stop_cycle - all[0].start_cycle) - map.offset_of(r.sm));
    took.push_back((double)(r.stop_cycle - r.start_cycle));
  }
  if (sms.empty()) return;
  char name[128];
  snprintf(name, sizeof name, "%s_slot_%u", variant, slot);
  bench::Spread spread = bench::spread_by_gpc(map, sms, took);
  bench::row("cta_drift", name, "keys", keys, "took", bench::mean(took), "cycles");
  bench::row("cta_drift", name, "keys", keys, "took_inside", spread.inside, "cycles");
  bench::row("cta_drift", name, "keys", keys, "took_between", spread.between, "cycles");
  bench::row("cta_drift", name, "keys", keys, "start_inside", bench::spread_by_gpc(map, sms, start).inside, "cycles");
  bench::row("cta_drift", name, "keys", keys, "stop_inside", bench::spread_by_gpc(map, sms, stop).inside, "cycles");
}

template <class S>
static void measure(const char *name, const bench::GpcMap &map, int num_ctas, int keys) {
  int heads = num_ctas * S::block_m / keys;
  size_t count = (size_t)heads * (size_t)keys * S::head_dim;
  __half *q = bench::device_alloc<__half>(count), *k = bench::device_alloc<__half>(count),
         *v = bench::device_alloc<__half>(count), *o = bench::device_alloc<__half>(count);
  float *lse = bench::device_alloc<float>((size_t)heads * (size_t)keys);
  char *flush = bench::device_alloc<char>((size_t)256 << 20);
  Problem problem = {1, heads, heads, keys, keys, S::head_dim, S::causal, false, false, q, k, v, o, lse};
  Launch l = plan<S>(problem);
  CtaRecord *records = bench::device_alloc<CtaRecord>(l.grid);
  bench::allow_shared(forward_timed<S>, (int)l.shared_bytes);
  for (bool cold : {false, true}) {
    char variant[96];
    snprintf(variant, sizeof variant, "%s_%u_ctas_%s", name, l.grid, cold ? "cold" : "warm");
    for (int repeat = 0; repeat < 2; repeat++) {
      if (cold) CUDA_CHECK(cudaMemset(flush, repeat, (size_t)256 << 20));
      forward_timed<S><<<l.grid, l.block, l.shared_bytes>>>(tile_params(problem, S::block_m), records);
    }
    for (uint32_t slot = 0; slot < 4; slot++) report(variant, map, bench::to_host(records, l.grid), slot, keys);
  }
  for (void *x : {(void *)q, (void *)k, (void *)v, (void *)o, (void *)lse, (void *)flush, (void *)records})
    CUDA_CHECK(cudaFree(x));
}

int main() {
  bench::GpcMap map;
  for (int keys : {512, 1024, 2048, 4096, 8192, 16384}) {
    measure<Shape<128, 64, 8, 2, 128, false, Schedule::stages>>("128x64w8s2", map, 128, keys);
    measure<Shape<128, 64, 8, 1, 128, false, Schedule::stages>>("128x64w8s1", map, 128, keys);
    measure<Shape<128, 128, 8, 1, 128, false, Schedule::interleaved>>("128x128w8i", map, 128, keys);
    measure<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>("128x64w4s2", map, 128, keys);
    measure<Shape<128, 64, 4, 2, 128, false, Schedule::stages>>("128x64w4s2", map, 256, keys);
    measure<Shape<64, 64, 4, 2, 128, false, Schedule::stages>>("64x64w4s2", map, 256, keys);
    measure<Shape<64, 64, 4, 2, 64, false, Schedule::stages>>("64x64w4s2d64", map, 256, keys);
    measure<Shape<128, 32, 4, 2, 64, false, Schedule::stages>>("128x32w4s2d64", map, 256, keys);
    measure<Shape<128, 32, 8, 2, 64, false, Schedule::stages>>("128x32w8s2d64", map, 256, keys);
    measure<Shape<128, 64, 4, 1, 128, false, Schedule::stages>>("128x64w4s1", map, 256, keys);
    if (keys > 8192) continue; /* whole heads */
    measure<Shape<64, 64, 4, 2, 64, false, Schedule::stages>>("64x64w4s2d64", map, 384, keys);
    measure<Shape<64, 64, 4, 1, 64, false, Schedule::stages>>("64x64w4s1d64", map, 384, keys);
    measure<Shape<64, 32, 4, 2, 64, false, Schedule::stages>>("64x32w4s2d64", map, 512, keys);
    measure<Shape<64, 32, 4, 1, 64, false, Schedule::stages>>("64x32w4s1d64", map, 512, keys);
  }
  bench::finish();
  return 0;
}
