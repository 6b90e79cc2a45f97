/* How far the clocks of the GPCs are apart while attention runs: SM cycles (clock64) over wall time (globaltimer) of
 * each CTA, summed by SM. clock: mean over the SMs; between, inside: standard deviation of the means of the GPCs, and
 * of the SMs inside them (gpc_map.h), in millionths. Launches 0 to 3 of each kernel follow 100 ms of rest each, as
 * under a profiler; 4 to 7 follow each other. */
#include <chrono>
#include <thread>

#include "flash2_mma.h"
#include "flash3.h"
#include "gpc_map.h"

constexpr int launches = 8, rested = 4;

struct CtaClock {
  uint64_t cycles, ns;
  uint32_t sm;
};

template <class S>
__global__ __launch_bounds__(S::num_threads) void clocked(TileParams p, CtaClock *clocks) {
  uint64_t cycle = bench::cycles64(), ns = bench::global_ns();
  flash2_mma::forward_tile<S>(p, (int)blockIdx.x);
  if (threadIdx.x == 0) clocks[blockIdx.x] = {bench::cycles64() - cycle, bench::global_ns() - ns, bench::sm_id()};
}

template <class S>
__global__ __launch_bounds__(S::num_threads, 1) void clocked3(TileParams p, const __grid_constant__ flash3::Maps maps,
                                                              CtaClock *clocks) {
  uint64_t cycle = bench::cycles64(), ns = bench::global_ns();
  flash3::forward_cta<S>(p, maps);
  if (threadIdx.x == 0) clocks[blockIdx.x] = {bench::cycles64() - cycle, bench::global_ns() - ns, bench::sm_id()};
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

static void report(const char *name, const bench::GpcMap &map, int launch, const std::vector<CtaClock> &clocks) {
  std::vector<double> cycles((size_t)bench::num_sms()), ns(cycles.size()), clock;
  std::vector<uint32_t> sms;
  for (const CtaClock &c : clocks) cycles[c.sm] += (double)c.cycles, ns[c.sm] += (double)c.ns;
  for (size_t sm = 0; sm < cycles.size(); sm++)
    if (ns[sm] > 0) {
      sms.push_back((uint32_t)sm);
      clock.push_back(cycles[sm] / ns[sm] * 1000);
    }
  bench::Spread spread = bench::spread_by_gpc(map, sms, clock);
  double middle = bench::mean(clock);
  bench::row("cta_clocks", name, "launch", launch, "clock", middle, "MHz");
  bench::row("cta_clocks", name, "launch", launch, "between", spread.between / middle * 1e6, "1e-6");
  bench::row("cta_clocks", name, "launch", launch, "inside", spread.inside / middle * 1e6, "1e-6");
}

/* start(problem, launch, clocks) launches the kernel. */
template <class Start>
static void measure(const char *name, const bench::GpcMap &map, int batch, int heads, int seqlen, int head_dim,
                    bool causal, bool head_first, Launch (*plan)(const Problem &), Start start) {
  size_t rows = (size_t)batch * (size_t)heads * (size_t)seqlen, count = rows * (size_t)head_dim;
  __half *tensors[4];
  for (__half *&tensor : tensors) {
    tensor = bench::device_alloc<__half>(count);
    fill<<<1024, 256>>>(tensor, count);
  }
  float *lse = bench::device_alloc<float>(rows);
  Problem problem = {batch,      heads, heads,      seqlen,     seqlen,     head_dim,   causal,
                     head_first, false, tensors[0], tensors[1], tensors[2], tensors[3], lse};
  Launch launch = plan(problem);
  CtaClock *clocks = bench::device_alloc<CtaClock>(launch.grid);
  for (int i = 0; i < launches; i++) {
    CUDA_CHECK(cudaDeviceSynchronize());
    if (i < rested) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    start(problem, launch, clocks);
    report(name, map, i, bench::to_host(clocks, launch.grid));
  }
  for (__half *tensor : tensors) CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(lse));
  CUDA_CHECK(cudaFree(clocks));
}

template <class S>
static void flash2(const char *name, const bench::GpcMap &map, int heads, int seqlen, bool head_first) {
  bench::allow_shared(clocked<S>, (int)S::shared_bytes);
  measure(name, map, 1, heads, seqlen, S::head_dim, S::causal, head_first, flash2_mma::plan<S>,
          [](const Problem &p, const Launch &l, CtaClock *clocks) {
            clocked<S><<<l.grid, l.block, l.shared_bytes>>>(tile_params(p, S::block_m), clocks);
          });
}

template <class S>
static void ping_pong(const char *name, const bench::GpcMap &map, int batch, int heads, int seqlen, bool head_first) {
  bench::allow_shared(clocked3<S>, (int)S::shared_bytes);
  measure(name, map, batch, heads, seqlen, S::head_dim, S::causal, head_first, flash3::plan<S>,
          [](const Problem &p, const Launch &l, CtaClock *clocks) {
            clocked3<S><<<l.grid, l.block, l.shared_bytes>>>(tile_params(p, S::block_m),
                                                             flash3::make_maps(p, S::block_m, S::block_n), clocks);
          });
}

int main() {
  bench::GpcMap map;
  using flash2_mma::Schedule;
  ping_pong<flash3::Shape<128, 128, 8, 2, 128, false>>("ping_pong_64_heads_4096_keys", map, 1, 64, 4096, true);
  ping_pong<flash3::Shape<128, 128, 8, 2, 128, false, true>>("ping_pong_persistent_8_heads_32768_keys", map, 1, 8,
                                                             32768, true);
  ping_pong<flash3::Shape<128, 128, 8, 2, 128, true, true>>("ping_pong_persistent_32_heads_8192_keys_causal", map, 2,
                                                            16, 8192, false);
  ping_pong<flash3::Shape<128, 128, 8, 2, 64, false, true>>("ping_pong_persistent_32_heads_16384_keys_d64", map, 1, 32,
                                                            16384, false);
  flash2<flash2_mma::Shape<128, 64, 4, 2, 64, false, Schedule::stages>>("mma_64_heads_8192_keys_d64", map, 64, 8192,
                                                                        true);
  flash2<flash2_mma::Shape<64, 64, 4, 2, 128, false, Schedule::stages>>("mma_64_heads_4096_keys", map, 64, 4096, true);
  flash2<flash2_mma::Shape<128, 64, 4, 2, 128, true, Schedule::stages>>("mma_16_heads_8192_keys_causal", map, 16, 8192,
                                                                        true);
  flash2<flash2_mma::Shape<128, 128, 8, 1, 128, true, Schedule::interleaved>>("mma_6_heads_49152_keys_causal", map, 6,
                                                                              49152, false);
  bench::finish();
  return 0;
}
