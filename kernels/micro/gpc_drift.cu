/* How far CTAs that do the same work drift apart inside a GPC, whose SMs share a clock, and between GPCs, which do not.
 * Every SM runs 1, 2 or 4 CTAs of 128 threads through the same tiles of 16 KiB (cp.async, FFMA between, a barrier a
 * step). `compute`: no tiles; `ahead`: the next tile is fetched during the work; `waits`: each step fetches its tile
 * and waits for it. CTAs note their clock counter at step x. `slot` is the CTA's place on its SM, by its first warp's.
 * Metrics, for each slot: the mean time to step x; its standard deviation inside the GPCs, in SM cycles, and that of
 * the GPCs' means; the deviation inside of when CTAs come to step x. With --profile: each configuration once, for the
 * merging of requests (SM sectors over L2 lookups). */
#include "gpc_map.h"
using namespace bench;

constexpr int tile_bytes = 16384, num_steps = 512, num_notes = 16, steps_a_note = num_steps / num_notes, threads = 128;

enum class Load { none, ahead, waits };

struct Notes {
  uint64_t cycle[num_notes];
  uint32_t sm, slot;
};

__device__ uint32_t arrived;

__device__ __forceinline__ void fetch(uint32_t to, const char *from) {
#pragma unroll
  for (int i = 0; i < tile_bytes / 16 / threads; i++)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (threadIdx.x + (uint32_t)i * threads) * 16),
                 "l"(from + (threadIdx.x + (size_t)i * threads) * 16)
                 : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
  __syncthreads();
}

template <Load load>
__global__ __launch_bounds__(threads) void steps(const char *buffer, int ffma, uint32_t goal, Notes *notes,
                                                 float *sink) {
  extern __shared__ __align__(16) uint8_t tiles[];
  float x[8];
  for (int k = 0; k < 8; k++) x[k] = (float)(threadIdx.x + (unsigned)k);
  uint32_t at = shared_address(tiles);
  Notes *own = &notes[blockIdx.x];
  if (threadIdx.x == 0) {
    uint32_t warp_slot;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp_slot));
    own->sm = sm_id();
    own->slot = warp_slot / (threads / 32);
    atomicAdd(&arrived, 1);
    while (*(volatile uint32_t *)&arrived < goal)
      ;
    uint64_t begin = global_ns() / 4096 * 4096 + 8192;
    while (global_ns() < begin)
      ;
  }
  __syncthreads();
  if (load == Load::ahead) fetch(at, buffer);
  for (int step = 0; step < num_steps; step++) {
    if (threadIdx.x == 0 && step % steps_a_note == 0) own->cycle[step / steps_a_note] = cycles64();
    if (load == Load::ahead) {
      fetch(at + (uint32_t)((step + 1) % 2) * tile_bytes, buffer + (size_t)(step + 1) * tile_bytes);
      wait_for_copies<1>();
    }
    if (load == Load::waits) {
      fetch(at, buffer + (size_t)step * tile_bytes);
      wait_for_copies<0>();
    }
    for (int i = 0; i < ffma; i++)
#pragma unroll
      for (int k = 0; k < 8; k++) x[k] = fmaf(x[k], 1.0001f, 0.5f);
    __syncthreads();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  sink[threadIdx.x] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

template <Load load>
static void launch(const char *buffer, int ffma, int ctas_per_sm, Notes *notes, float *sink) {
  int grid = num_sms() * ctas_per_sm, shared = ctas_per_sm == 1 ? whole_sm_bytes : 2 * tile_bytes;
  uint32_t zero = 0;
  allow_shared(steps<load>, shared);
  CUDA_CHECK(cudaMemcpyToSymbol(arrived, &zero, 4));
  steps<load><<<grid, threads, shared>>>(buffer, ffma, (uint32_t)grid, notes, sink);
  finish();
}

static void report(const char *name, const GpcMap &map, const std::vector<Notes> &notes, uint32_t slot, int note) {
  std::vector<uint32_t> sms;
  std::vector<double> took, when;
  for (const Notes &n : notes) {
    if (n.slot != slot) continue;
    sms.push_back(n.sm);
    took.push_back((double)(n.cycle[note] - n.cycle[0]));
    when.push_back((double)(int64_t)(n.cycle[note] - notes[0].cycle[0]) - map.offset_of(n.sm));
  }
  Spread spread = spread_by_gpc(map, sms, took);
  char variant[64];
  snprintf(variant, sizeof variant, "%s_slot_%u", name, slot);
  double x = note * steps_a_note;
  row("gpc_drift", variant, "step", x, "took", mean(took), "cycles");
  row("gpc_drift", variant, "step", x, "took_inside", spread.inside, "cycles");
  row("gpc_drift", variant, "step", x, "took_between", spread.between, "cycles");
  row("gpc_drift", variant, "step", x, "when_inside", spread_by_gpc(map, sms, when).inside, "cycles");
}

template <Load load>
static void measure(const char *kind, const GpcMap *map, const char *buffer, int ffma, int ctas_per_sm) {
  static Notes *notes = device_alloc<Notes>((size_t)num_sms() * 4);
  static float *sink = device_alloc<float>(threads);
  char name[64];
  snprintf(name, sizeof name, "%s_%d_%d_ctas", kind, ffma, ctas_per_sm);
  if (!map) {
    launch<load>(buffer, ffma, ctas_per_sm, notes, sink);
    row("gpc_drift", name, "ffma", ffma, "ctas_per_sm", ctas_per_sm, "1");
    return;
  }
  for (int repeat = 0; repeat < 3; repeat++) launch<load>(buffer, ffma, ctas_per_sm, notes, sink);
  std::vector<Notes> all = to_host(notes, (size_t)(num_sms() * ctas_per_sm));
  for (uint32_t slot = 0; slot < (uint32_t)ctas_per_sm; slot++)
    for (int note : {0, 1, 2, 4, 8, 15}) report(name, *map, all, slot, note);
}

int main(int argc, char **argv) {
  bool profile = has_flag(argc, argv, "--profile");
  char *buffer = device_alloc<char>((size_t)(num_steps + 1) * tile_bytes);
  const GpcMap *map = profile ? nullptr : new GpcMap;
  for (uint32_t sm = 0; map && sm < (uint32_t)num_sms(); sm++)
    row("gpc_drift", "map", "sm", sm, "gpc", map->gpc_of(sm), "1");
  for (int ctas_per_sm : {1, 2, 4})
    for (int ffma : {16, 64, 256}) {
      if (map) measure<Load::none>("compute", map, buffer, ffma, ctas_per_sm);
      measure<Load::ahead>("ahead", map, buffer, ffma, ctas_per_sm);
      measure<Load::waits>("waits", map, buffer, ffma, ctas_per_sm);
    }
  return 0;
}
