/* How far CTAs that do the same work at the same time drift apart. One CTA of 128 threads an SM steps through the same
 * tiles of 16 KiB (cp.async, double-buffered, FFMA between, a barrier a step), and notes when it begins step x.
 * Variants: from L2 (a 16 MiB buffer read before) and from DRAM (every byte once); compute alone (no loads). The spread
 * of those times over the CTAs, after each CTA's own start is taken off, in ns and in steps. */
#include "bench.h"
using namespace bench;

constexpr int tile_bytes = 16384, num_steps = 512, num_notes = 16;

enum class Load { none, shared_by_all, own };

__device__ __forceinline__ void fetch(uint32_t to, const char *from) {
#pragma unroll
  for (int i = 0; i < tile_bytes / 16 / 128; i++)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (threadIdx.x + (uint32_t)i * 128) * 16),
                 "l"(from + (threadIdx.x + (size_t)i * 128) * 16)
                 : "memory");
}

template <Load load>
__global__ __launch_bounds__(128) void steps(const char *buffer, size_t bytes, int ffma, uint64_t *notes, float *sink) {
  extern __shared__ __align__(16) uint8_t tiles[];
  float x[8];
  for (int k = 0; k < 8; k++) x[k] = (float)(threadIdx.x + (unsigned)k);
  const char *from = buffer + (load == Load::own ? blockIdx.x * (bytes / gridDim.x / tile_bytes * tile_bytes) : 0);
  size_t span = load == Load::own ? bytes / gridDim.x / tile_bytes * tile_bytes : bytes;
  if (load != Load::none) fetch(shared_address(tiles), from);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int step = 0; step < num_steps; step++) {
    if (threadIdx.x == 0 && step % (num_steps / num_notes) == 0)
      notes[blockIdx.x * num_notes + step / (num_steps / num_notes)] = global_ns();
    if (load != Load::none)
      fetch(shared_address(tiles) + (uint32_t)((step + 1) % 2) * tile_bytes,
            from + (size_t)(step + 1) * tile_bytes % span);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < ffma; i++)
#pragma unroll
      for (int k = 0; k < 8; k++) x[k] = fmaf(x[k], 1.0001f, 0.5f);
    __syncthreads();
  }
  sink[threadIdx.x] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

template <Load load>
static void measure(const char *name, const char *buffer, size_t bytes, int ffma, int ctas_per_sm) {
  static uint64_t *notes = device_alloc<uint64_t>(132 * 8 * num_notes);
  static float *sink = device_alloc<float>(128);
  int grid = num_sms() * ctas_per_sm, shared = ctas_per_sm == 1 ? whole_sm_bytes : 2 * tile_bytes;
  allow_shared(steps<load>, shared);
  for (int warm = 0; warm < 2; warm++) steps<load><<<grid, 128, shared>>>(buffer, bytes, ffma, notes, sink);
  std::vector<uint64_t> t = to_host(notes, (size_t)grid * num_notes);
  std::vector<double> step_ns;
  for (int note = 1; note < num_notes; note++) {
    std::vector<double> since;
    for (int cta = 0; cta < grid; cta++)
      since.push_back((double)(t[(size_t)(cta * num_notes + note)] - t[(size_t)(cta * num_notes)]));
    double ns = median(since) / (note * (num_steps / num_notes));
    double spread = percentile(since, 0.95) - percentile(since, 0.05);
    row("drift", name, "step", note * (num_steps / num_notes), "spread_p5_p95", spread, "ns");
    if (ctas_per_sm > 1) {
      /* CTAs i, i + num_sms, ... share an SM: the first came before the second there. */
      std::vector<double> first, last;
      for (int cta = 0; cta < grid; cta++) {
        if (cta < num_sms()) first.push_back(since[(size_t)cta]);
        if (cta >= grid - num_sms()) last.push_back(since[(size_t)cta]);
      }
      row("drift", name, "step", note * (num_steps / num_notes), "first_cta_of_sm", median(first), "ns");
      row("drift", name, "step", note * (num_steps / num_notes), "last_cta_of_sm", median(last), "ns");
    }
    if (note == num_notes - 1) {
      row("drift", name, "step", note * (num_steps / num_notes), "step_time", ns, "ns");
      row("drift", name, "step", note * (num_steps / num_notes), "spread_in_steps", spread / ns, "1");
    }
  }
  finish();
}

int main() {
  const size_t dram_bytes = (size_t)4 << 30, l2_bytes = (size_t)16 << 20;
  char *buffer = device_alloc<char>(dram_bytes + tile_bytes);
  for (int ctas_per_sm : {1, 2, 4}) {
    char name[64];
    const struct {
      const char *name;
      int ffma;
    } works[] = {{"light", 16}, {"heavy", 256}};
    for (const auto &work : works) {
      snprintf(name, sizeof name, "compute_%s_%d_ctas", work.name, ctas_per_sm);
      measure<Load::none>(name, buffer, l2_bytes, work.ffma, ctas_per_sm);
      snprintf(name, sizeof name, "l2_shared_%s_%d_ctas", work.name, ctas_per_sm);
      measure<Load::shared_by_all>(name, buffer, l2_bytes, work.ffma, ctas_per_sm);
      snprintf(name, sizeof name, "dram_own_%s_%d_ctas", work.name, ctas_per_sm);
      measure<Load::own>(name, buffer, dram_bytes, work.ffma, ctas_per_sm);
    }
  }
  return 0;
}
