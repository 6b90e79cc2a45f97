/* The two sides of L2: latency of single loads, each from its own 4 KiB granule, after a chosen history.
 * SM a reads 2048 lines cold, then again; SM b reads them twice; then a once more. b runs over every SM, a over two.
 * If b sits on a's side its first read costs what a's second did; if not, lines whose home is a's side show the far-hit
 * latency once, and b's second read shows the replica. The timed region includes the issue of one store that waits for
 * the load (a few cycles). */
#include "probe_load.h"
using namespace bench;

constexpr int num_lines = 2048;
constexpr size_t granule_bytes = 4096;

__global__ void probe(const char *buffer, const uint32_t *offsets, uint32_t target_sm, uint16_t *latency) {
  __shared__ volatile uint32_t sink;
  if (sm_id() != target_sm || threadIdx.x != 0) return;
  for (int i = 0; i < num_lines; i++) latency[i] = cycles_of_load(buffer + offsets[i], sink);
}

static const char *phase_names[5] = {"a_cold", "a_again", "b_first", "b_second", "a_last"};

int main() {
  const int sms = num_sms();
  const size_t flush_count = ((size_t)256 << 20) / 16;
  char *buffer = device_alloc<char>(num_lines * granule_bytes);
  uint4 *flush = device_alloc<uint4>(flush_count);
  uint16_t *latency = device_alloc<uint16_t>(num_lines);
  std::vector<uint32_t> offsets(num_lines);
  Random random;
  for (int i = 0; i < num_lines; i++)
    offsets[i] = (uint32_t)(i * granule_bytes + random.below(granule_bytes / 128) * 128);
  for (int i = num_lines - 1; i > 0; i--) std::swap(offsets[i], offsets[random.below((uint64_t)i + 1)]);
  uint32_t *device_offsets = device_alloc<uint32_t>(num_lines);
  CUDA_CHECK(cudaMemcpy(device_offsets, offsets.data(), num_lines * 4, cudaMemcpyHostToDevice));
  allow_shared(probe, whole_sm_bytes);

  for (int a : {0, sms / 2 + 1}) {
    std::vector<uint16_t> far_lines;
    for (int b = 0; b < sms; b++) {
      if (b == a) continue;
      fill<<<sms * 4, 512>>>(flush, flush_count);
      std::vector<uint16_t> phases[5];
      for (int phase = 0; phase < 5; phase++) {
        int target = phase == 2 || phase == 3 ? b : a;
        probe<<<sms, 32, whole_sm_bytes>>>(buffer, device_offsets, (uint32_t)target, latency);
        phases[phase] = to_host(latency, num_lines);
        char variant[64];
        snprintf(variant, sizeof variant, "a%d_%s", a, phase_names[phase]);
        row("sides", variant, "sm_b", b, "p10", percentile(phases[phase], 0.1), "cycles");
        row("sides", variant, "sm_b", b, "p25", percentile(phases[phase], 0.25), "cycles");
        row("sides", variant, "sm_b", b, "p50", percentile(phases[phase], 0.5), "cycles");
        row("sides", variant, "sm_b", b, "p75", percentile(phases[phase], 0.75), "cycles");
        row("sides", variant, "sm_b", b, "p90", percentile(phases[phase], 0.9), "cycles");
      }
      if (b % 16 != 2) continue;
      for (int phase = 0; phase < 5; phase++) {
        std::vector<int> histogram(200, 0);
        for (uint16_t cycles : phases[phase]) histogram[std::min(cycles / 8, 199)]++;
        char variant[64];
        snprintf(variant, sizeof variant, "histogram_a%d_b%d_%s", a, b, phase_names[phase]);
        for (int bin = 0; bin < 200; bin++)
          if (histogram[bin]) row("sides", variant, "from_cycles", bin * 8, "lines", histogram[bin], "1");
      }
    }
  }
  finish();
  return 0;
}
