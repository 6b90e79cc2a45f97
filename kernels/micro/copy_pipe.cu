/* When a cp.async takes the shared-memory pipe from ldmatrix: as the LSU takes the instruction, or as its data arrive.
 *
 * Four warps, one a sub-core, chain LDSM.x4 (`chain` side by side, then the next whose address hangs on the last), and
 * note the cycle of each. `copying` others, on the first sub-cores, issue `copies` cp.async of 512 adjacent bytes each,
 * data from L2, 400 cycles in. x is the time from the first copy's issue, in bins of 32 cycles; latency is the mean
 * time of a link of the chain that began in the bin, over all launches, of warps whose sub-core has a warp that copies
 * (`same`) and of the others (`other`). first_arrival, last_arrival: when a warp's copies have been waited for, the
 * soonest and the last of those that copy. */
#include "bench.h"
using namespace bench;

constexpr int num_links = 40, num_bins = 40, bin_cycles = 32, before = 400, launches = 400;

struct Times {
  uint32_t link[4][num_links], begin[4], arrived[4];
};

template <int chain>
__device__ __forceinline__ uint32_t load(uint32_t at) {
  uint32_t r[chain][4], all = 0;
#pragma unroll
  for (int i = 0; i < chain; i++)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[i][0]), "=r"(r[i][1]), "=r"(r[i][2]), "=r"(r[i][3])
                 : "r"(at + (uint32_t)i * 512));
#pragma unroll
  for (int i = 0; i < chain; i++) all |= r[i][0];
  return at + all;
}

template <int chain, int copying, int copies>
__global__ void run(const uint8_t *from, Times *times) {
  extern __shared__ __align__(128) uint8_t shared[];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, base = shared_address(shared);
  for (uint32_t i = threadIdx.x; i < 65536 / 4; i += blockDim.x) ((uint32_t *)shared)[i] = 0;
  __syncthreads();
  if (warp < 4) {
    uint32_t at = base + warp * 4096 + lane * 16, cycle[num_links];
#pragma unroll
    for (int i = 0; i < num_links; i++) {
      at = load<chain>(at);
      cycle[i] = (uint32_t)cycles64();
    }
    if (at == 1) cycle[0] = 0;
    if (lane == 0)
      for (int i = 0; i < num_links; i++) times->link[warp][i] = cycle[i];
  } else if (warp < 4 + copying) {
    uint32_t to = base + 32768 + (warp - 4) * 8192 + lane * 16;
    const uint8_t *source = from + (warp - 4) * 8192 + lane * 16;
    uint32_t start = (uint32_t)cycles64();
    while ((uint32_t)cycles64() - start < before)
      ;
    uint32_t begin = (uint32_t)cycles64();
#pragma unroll
    for (int i = 0; i < copies; i++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (uint32_t)i * 512), "l"(source + i * 512)
                   : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    uint32_t arrived = (uint32_t)cycles64();
    if (lane == 0) times->begin[warp - 4] = begin, times->arrived[warp - 4] = arrived;
  }
}

template <int chain, int copying, int copies>
static void measure() {
  static uint8_t *from = device_alloc<uint8_t>(65536);
  static Times *times = device_alloc<Times>(1);
  allow_shared(run<chain, copying, copies>, 65536);
  double sum[2][num_bins] = {}, count[2][num_bins] = {}, first = 0, last = 0;
  for (int i = -4; i < launches; i++) {
    run<chain, copying, copies><<<1, 256, 65536>>>(from, times);
    finish();
    if (i < 0) continue;
    Times t = to_host(times, 1)[0];
    uint32_t begin = t.begin[0], soonest = ~0u, latest = 0;
    for (int w = 1; w < copying; w++) begin = std::min(begin, t.begin[w]);
    for (int w = 0; w < copying; w++)
      soonest = std::min(soonest, t.arrived[w] - begin), latest = std::max(latest, t.arrived[w] - begin);
    first += soonest, last += latest;
    for (int w = 0; w < 4; w++)
      for (int n = 0; n + 1 < num_links; n++) {
        const uint32_t *links = t.link[w];
        int64_t after = (int32_t)(links[n] - begin);
        if (after < -4 * bin_cycles || after >= (num_bins - 4) * bin_cycles) continue;
        int64_t bin = (after + 4 * bin_cycles) / bin_cycles;
        sum[w >= copying][bin] += links[n + 1] - links[n], count[w >= copying][bin] += 1;
      }
  }
  char variant[48];
  snprintf(variant, sizeof variant, "%d_a_link_%d_by_%d_warps", chain, copies, copying);
  for (int other = 0; other < 2; other++)
    for (int bin = 0; bin < num_bins; bin++)
      if (count[other][bin] > 0)
        row("copy_pipe", variant, "cycles_after", (bin - 4) * bin_cycles, other ? "other" : "same",
            sum[other][bin] / count[other][bin], "cycles");
  if (copies == 0) return;
  row("copy_pipe", variant, "copies", copies, "first_arrival", first / launches, "cycles");
  row("copy_pipe", variant, "copies", copies, "last_arrival", last / launches, "cycles");
}

template <int chain>
static void measure_all() {
  measure<chain, 4, 0>();
  measure<chain, 4, 4>();
  measure<chain, 4, 8>();
  measure<chain, 4, 16>();
  measure<chain, 2, 16>();
  measure<chain, 1, 8>();
  measure<chain, 1, 16>();
}

int main() {
  measure_all<1>();
  measure_all<2>();
  measure_all<3>();
}
