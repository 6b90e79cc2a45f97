/* In how many iterations CTAs that share an SM, multiply by wgmma and fetch ahead come to any phase of an iteration.
 *
 * A CTA is one warpgroup. Each iteration waits for a tile of n x 64, multiplies by it (8 x m64nNk16), waits for the
 * products and reads the accumulators in a chain of dependent FFMA and EX2, of so many steps that the tensor cores
 * would be busy for 50, 70 or 90 % of the time if no CTA waited for another. Two stages, filled by cp.async or by bulk
 * copies, before the products (`early`: the next tile, into the stage that the iteration before has left) or behind
 * them (`late`: the tile after next, into their own). CTAs have 16 KiB of L2 each (`own`), or sixteen that are launched
 * one after another walk through the same 256 KiB (`shared`). Four waves; six launches, taken together.
 *
 * x: the iteration before whose wait warp 0 reads the SM's clock. A CTA's place is the order in which the CTAs of its
 * SM start, in each wave of as many as fit. `begin_inside`: deviation of when CTAs of a place begin the iteration,
 * inside a GPC; `begin_share`: that in permille of an iteration; `neighbours_phase`: of how long after the CTA of place
 * p the one of place p + 1 begins it, as a phase of an iteration, from the mean of these places, round the circle. Of
 * any phase it is 289 (1000 / sqrt(12)), and stays; begin_share goes on where CTAs walk. `iteration_took`,
 * `tensor_busy` (N / 2 cycles a product): of all that is recorded. */
#include "bench.h"
#include "gpc_map.h"
#include "hopper.h"
using namespace bench;

constexpr int threads = 128, recorded = 48, iterations = 96, waves = 4, launches = 6, k_steps = 8, num_stages = 2;
constexpr int a_bytes = 64 * 128, own_bytes = 16 * 1024, max_ctas = 5;

enum class Copy { cp_async, bulk };

struct Trace {
  uint64_t start, begin[recorded];
  uint32_t sm;
};

/* Whatever lies in a tile: nothing is gathered or swizzled on the way. */
template <Copy copy, int tile_bytes>
__device__ __forceinline__ void fetch(int j, uint32_t stages, uint32_t bars, const uint8_t *region, int region_bytes) {
  uint32_t to = stages + (uint32_t)(j % num_stages * tile_bytes), bar = bars + (uint32_t)(j % num_stages * 8);
  const uint8_t *from = region + (j * tile_bytes & (region_bytes - 1)); /* a power of two */
  if constexpr (copy == Copy::bulk) {
    if (threadIdx.x != 0 || j >= iterations) return;
    hopper::mbarrier_expect(bar, tile_bytes);
    hopper::bulk_load(to, from, tile_bytes, bar);
  } else {
#pragma unroll
    for (int i = 0; i < tile_bytes / 16 / threads; i++) {
      uint32_t at = (threadIdx.x + (uint32_t)(i * threads)) * 16;
      if (j < iterations)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + at), "l"(from + at) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
}

template <Copy copy, bool late>
__device__ __forceinline__ void wait_for(int j, uint32_t bars) {
  if constexpr (copy == Copy::bulk) {
    hopper::mbarrier_wait(bars + (uint32_t)(j % num_stages * 8), (uint32_t)(j / num_stages) & 1);
  } else {
    asm volatile("cp.async.wait_group %0;" ::"n"(late ? 1 : 0) : "memory");
    hopper::proxy_fence();
  }
  __syncthreads();
}

template <int n>
__device__ __forceinline__ void multiply(float (&d)[n / 2], uint32_t a, uint32_t b) {
  uint64_t a_desc = hopper::descriptor(a, 16, 1024), b_desc = hopper::descriptor(b, 16, 1024);
  hopper::wgmma_fence();
#pragma unroll
  for (int k = 0; k < k_steps; k++)
    Wgmma<n>::template ss<0>(d, a_desc + (uint64_t)(k % 4 * 2), b_desc + (uint64_t)(k % 4 * 2), k > 0);
  hopper::wgmma_commit();
  hopper::wgmma_wait<0>();
  hopper::keep(d);
}

template <int n, Copy copy, bool late>
__global__ __launch_bounds__(threads, max_ctas) void loop(const uint8_t *buffer, int num_regions, int sharers,
                                                          int steps, Trace *traces, float *sink) {
  constexpr int tile_bytes = n * 128;
  extern __shared__ __align__(1024) uint8_t shared[];
  Trace *trace = traces + blockIdx.x;
  if (threadIdx.x == 0) trace->start = cycles64(), trace->sm = sm_id();
  uint32_t a = hopper::smem(shared), stages = a + a_bytes, bars = stages + num_stages * tile_bytes;
  uint64_t *begins = (uint64_t *)(shared + a_bytes + num_stages * tile_bytes) + num_stages;
  int region_bytes = sharers * own_bytes;
  const uint8_t *region =
      buffer + (size_t)(blockIdx.x / (uint32_t)sharers % (uint32_t)num_regions) * (size_t)region_bytes;
  for (uint32_t i = threadIdx.x; i < a_bytes / 4; i += threads)
    ((uint32_t *)shared)[i] = 0x2C002C00 + (i * 2654435761u >> 24);
  hopper::proxy_fence();
  if (threadIdx.x < num_stages) hopper::mbarrier_init(bars + threadIdx.x * 8, 1);
  if (threadIdx.x < num_stages) hopper::mbarrier_init_fence();
  __syncthreads();
  for (int j = 0; j < (late ? 2 : 1); j++) fetch<copy, tile_bytes>(j, stages, bars, region, region_bytes);
  float d[n / 2], x = 0;
#pragma unroll 1
  for (int j = 0; j < iterations; j++) {
    if (threadIdx.x == 0 && j < recorded) begins[j] = cycles64();
    wait_for<copy, late>(j, bars);
    if (!late) fetch<copy, tile_bytes>(j + 1, stages, bars, region, region_bytes);
    multiply<n>(d, a, stages + (uint32_t)(j % num_stages * tile_bytes));
    if (late) __syncthreads();
    if (late) fetch<copy, tile_bytes>(j + 2, stages, bars, region, region_bytes);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
#pragma unroll
      for (int i = 0; i < 8; i++) x = fmaf(x, d[i * (n / 16)], 0.5f);
      asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    }
  }
  __syncthreads();
  for (int j = (int)threadIdx.x; j < recorded; j += threads) trace->begin[j] = begins[j];
  sink[threadIdx.x] = x + d[0];
}

struct Buffers {
  uint8_t *tiles;
  Trace *traces;
  float *sink;
};

/* The CTAs of one wave of one launch: [place][SM]. */
typedef std::vector<std::vector<Trace>> Wave;

template <int n, Copy copy, bool late>
static std::vector<Trace> launch(const Buffers &buffers, int ctas, int sharers, int steps) {
  const int num_regions = max_ctas * num_sms() / sharers, grid = num_sms() * ctas * waves;
  int shared = (228 / ctas - 1) * 1024, fit = 0;
  allow_shared(loop<n, copy, late>, shared);
  CUDA_CHECK(cudaFuncSetAttribute(loop<n, copy, late>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, loop<n, copy, late>, threads, (size_t)shared));
  if (fit != ctas) {
    fprintf(stderr, "wgmma_settle: %d CTAs an SM instead of %d\n", fit, ctas);
    exit(1);
  }
  loop<n, copy, late>
      <<<grid, threads, shared>>>(buffers.tiles, num_regions, sharers, steps, buffers.traces, buffers.sink);
  finish();
  return to_host(buffers.traces, (size_t)grid);
}

static Wave wave_of(const std::vector<Trace> &traces, int ctas, int wave) {
  std::vector<std::vector<Trace>> by_sm((size_t)num_sms());
  for (const Trace &trace : traces) by_sm[trace.sm].push_back(trace);
  Wave places((size_t)ctas);
  for (auto &of_sm : by_sm) {
    std::sort(of_sm.begin(), of_sm.end(), [](const Trace &a, const Trace &b) { return a.start < b.start; });
    if (of_sm.size() < (size_t)((wave + 1) * ctas)) continue;
    for (int place = 0; place < ctas; place++) places[(size_t)place].push_back(of_sm[(size_t)(wave * ctas + place)]);
  }
  return places;
}

static double iteration_of(const std::vector<Wave> &all) {
  std::vector<double> took;
  for (const Wave &wave : all)
    for (const auto &place : wave)
      for (const Trace &t : place) took.push_back((double)(t.begin[recorded - 1] - t.begin[0]) / (recorded - 1));
  return mean(took);
}

static double begin_inside(const GpcMap &map, const std::vector<Wave> &all, int iteration) {
  double squares = 0, count = 0;
  for (const Wave &wave : all)
    for (const auto &place : wave) {
      std::vector<uint32_t> sms;
      std::vector<double> when;
      for (const Trace &t : place) {
        sms.push_back(t.sm);
        when.push_back((double)(int64_t)(t.begin[iteration] - place[0].start) - map.offset_of(t.sm));
      }
      double inside = spread_by_gpc(map, sms, when).inside;
      squares += inside * inside, count++;
    }
  return sqrt(squares / count);
}

static double neighbours_phase(const std::vector<Wave> &all, int iteration, double took) {
  const double turn = 2 * 3.14159265358979323846;
  double squares = 0, count = 0;
  for (size_t place = 0; place + 1 < all[0].size(); place++) {
    std::vector<double> angles;
    double x = 0, y = 0;
    for (const Wave &wave : all)
      for (size_t sm = 0; sm < wave[place].size(); sm++) {
        int64_t apart = (int64_t)(wave[place + 1][sm].begin[iteration] - wave[place][sm].begin[iteration]);
        angles.push_back((double)apart / took * turn);
        x += cos(angles.back()), y += sin(angles.back());
      }
    for (double angle : angles) {
      double from_mean = remainder(angle - atan2(y, x), turn) / turn;
      squares += from_mean * from_mean, count++;
    }
  }
  return sqrt(squares / count);
}

static void report(const GpcMap &map, const char *name, const std::vector<Wave> &all, int busy_cycles,
                   const std::vector<int> &listed) {
  double took = iteration_of(all);
  row("wgmma_settle", name, "iteration", recorded, "iteration_took", took, "cycles");
  row("wgmma_settle", name, "iteration", recorded, "tensor_busy", busy_cycles / took * 1000, "permille");
  for (int iteration : listed) {
    double inside = begin_inside(map, all, iteration), phase = neighbours_phase(all, iteration, took);
    row("wgmma_settle", name, "iteration", iteration, "begin_inside", inside, "cycles");
    row("wgmma_settle", name, "iteration", iteration, "begin_share", inside / took * 1000, "permille");
    row("wgmma_settle", name, "iteration", iteration, "neighbours_phase", phase * 1000, "permille");
  }
}

template <int n, Copy copy, bool late>
static void measure(const GpcMap &map, const Buffers &buffers) {
  const int products = k_steps * n / 2, few = 8, many = 40;
  auto run = launch<n, copy, late>;
  auto alone = [&](int steps) { return iteration_of({wave_of(run(buffers, 1, 16, steps), 1, 1)}); };
  alone(few); /* fetches code and tiles */
  double few_took = alone(few), a_step = (alone(many) - few_took) / (many - few);
  for (int ctas = 2; ctas <= max_ctas; ctas++)
    for (int busy : {50, 70, 90})
      for (int sharers : {16, 1}) {
        if (sharers == 1 && (busy != 70 || n != 64)) continue;
        int steps = std::max(0, few + (int)lround((ctas * products * 100.0 / busy - few_took) / a_step));
        std::vector<Wave> first, third;
        for (int i = 0; i <= launches; i++) {
          std::vector<Trace> traces = run(buffers, ctas, sharers, steps);
          if (i == 0) continue;
          first.push_back(wave_of(traces, ctas, 0));
          third.push_back(wave_of(traces, ctas, 2));
        }
        char name[96];
        snprintf(name, sizeof name, "%s_%s_n%d_%d_ctas_busy_%d_%s", copy == Copy::bulk ? "bulk" : "cp_async",
                 late ? "late" : "early", n, ctas, busy, sharers == 1 ? "own" : "shared");
        row("wgmma_settle", name, "iteration", recorded, "steps", steps, "1");
        report(map, name, first, ctas * products, {0, 1, 2, 4, 6, 8, 12, 16, 24, recorded - 1});
        strcat(name, "_third_wave");
        report(map, name, third, ctas * products, {0, 8, recorded - 1});
      }
}

template <int n>
static void measure_all(const GpcMap &map, const Buffers &buffers) {
  measure<n, Copy::cp_async, false>(map, buffers);
  measure<n, Copy::cp_async, true>(map, buffers);
  measure<n, Copy::bulk, false>(map, buffers);
  measure<n, Copy::bulk, true>(map, buffers);
}

int main() {
  GpcMap map;
  size_t ctas = (size_t)(num_sms() * max_ctas);
  Buffers buffers = {device_alloc<uint8_t>(ctas * own_bytes), device_alloc<Trace>(ctas * waves),
                     device_alloc<float>(threads)};
  CUDA_CHECK(cudaMemset(buffers.tiles, 0x2C, ctas * own_bytes));
  measure_all<64>(map, buffers);
  measure_all<128>(map, buffers);
  return 0;
}
