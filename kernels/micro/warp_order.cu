/* Which of the warps of a sub-core issues first where all can: they run the same FFMAs, of eight chains each, without
 * barriers or loads, and together more of them than the sub-core can issue.
 *
 * Variant warps_W_ctas_C: C CTAs of W warps an SM, all started together. Metric time: cycles from the first start on
 * the SM until the warp that is in place x of its sub-core (CTAs in the order of their indices on the SM, and within a
 * CTA warps in the order of theirs) has ended its work; the mean over the SMs and sub-cores. Variant ..._short_S: two
 * CTAs of which S has an eighth of the work; x = 2 is the one that takes its place, with half of the work. */
#include <map>
#include <utility>

#include "bench.h"
using namespace bench;

constexpr int num_chains = 8, num_rounds = 4096;

struct Note {
  uint64_t start, stop;
  uint32_t sm, cta;
};

__global__ void work(int rounds, int short_from, int short_until, int half_from, Note *notes, float *sink) {
  float x[num_chains];
#pragma unroll
  for (int k = 0; k < num_chains; k++) x[k] = (float)(threadIdx.x + (unsigned)k);
  if ((int)blockIdx.x >= short_from && (int)blockIdx.x < short_until) rounds /= 8;
  if ((int)blockIdx.x >= half_from) rounds /= 2;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 4
  for (int i = 0; i < rounds; i++)
#pragma unroll
    for (int k = 0; k < num_chains; k++) x[k] = fmaf(x[k], 1.0001f, 0.5f);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < num_chains; k++) sum += x[k];
  sink[threadIdx.x] = sum;
  uint64_t stop = cycles64();
  if (threadIdx.x % 32 == 0)
    notes[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32] = {start, stop, sm_id(), blockIdx.x};
}

static std::vector<Note> run(int grid, int warps, int ctas_per_sm, int short_from, int short_until, int half_from) {
  static Note *notes = device_alloc<Note>(1 << 16);
  static float *sink = device_alloc<float>(1024);
  int shared = ctas_per_sm == 1 ? whole_sm_bytes : whole_sm_bytes / ctas_per_sm;
  allow_shared(work, shared);
  for (int warm = 0; warm < 2; warm++)
    work<<<grid, warps * 32, shared>>>(num_rounds, short_from, short_until, half_from, notes, sink);
  finish();
  return to_host(notes, (size_t)(grid * warps));
}

static void measure_together(int warps, int ctas_per_sm) {
  std::vector<Note> notes = run(num_sms() * ctas_per_sm, warps, ctas_per_sm, 0, 0, num_sms() * ctas_per_sm);
  int places = warps * ctas_per_sm / 4;
  std::vector<double> sum((size_t)places);
  int sms = 0;
  for (int sm = 0; sm < num_sms(); sm++) {
    std::vector<Note> here;
    for (const Note &note : notes)
      if ((int)note.sm == sm) here.push_back(note);
    if ((int)here.size() != warps * ctas_per_sm) continue;
    uint64_t first = here[0].start;
    for (const Note &note : here) first = std::min(first, note.start);
    for (size_t i = 0; i < here.size(); i++) sum[i / 4] += (double)(here[i].stop - first) / 4;
    sms++;
  }
  char name[64];
  snprintf(name, sizeof name, "warps_%d_ctas_%d", warps, ctas_per_sm);
  for (int place = 0; place < places; place++)
    row("warp_order", name, "place", place, "time", sum[(size_t)place] / sms, "cycles");
}

/* The CTA in place `short_cta` of the two that an SM begins with has an eighth of the work, and the one that takes its
 * place half: when each begins to work and ends, from the SM's first cycle on. */
static void measure_late(int warps, int short_cta) {
  int n = num_sms();
  std::vector<Note> notes = run(3 * n, warps, 2, short_cta * n, (short_cta + 1) * n, 2 * n);
  std::vector<double> began[3], ended[3];
  for (int sm = 0; sm < n; sm++) {
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> ctas; /* by index, in the order in which they came to the SM */
    for (const Note &note : notes) {
      if ((int)note.sm != sm) continue;
      auto at = ctas.emplace(note.cta, std::make_pair(note.start, note.stop)).first;
      at->second = {std::min(at->second.first, note.start), std::max(at->second.second, note.stop)};
    }
    std::vector<uint32_t> indices;
    for (const auto &cta : ctas) indices.push_back(cta.first);
    if (indices.size() != 3 || (int)indices[0] >= n || (int)indices[1] / n != 1 || (int)indices[2] < 2 * n) continue;
    uint64_t first = UINT64_MAX;
    for (const auto &cta : ctas) first = std::min(first, cta.second.first);
    for (int i = 0; i < 3; i++) {
      began[i].push_back((double)(ctas[indices[(size_t)i]].first - first));
      ended[i].push_back((double)(ctas[indices[(size_t)i]].second - first));
    }
  }
  char name[64];
  snprintf(name, sizeof name, "warps_%d_ctas_2_short_%d", warps, short_cta);
  for (int i = 0; i < 3; i++) {
    row("warp_order", name, "cta", i, "begins", median(began[i]), "cycles");
    row("warp_order", name, "cta", i, "ends", median(ended[i]), "cycles");
  }
  row("warp_order", name, "cta", 0, "sms", (double)began[0].size(), "SMs");
}

int main() {
  for (int warps : {4, 8, 16})
    for (int ctas : {1, 2, 4})
      if (warps * ctas <= 32) measure_together(warps, ctas);
  measure_late(16, 0);
  measure_late(16, 1);
  return 0;
}
