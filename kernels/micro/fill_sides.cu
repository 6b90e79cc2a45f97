/* Which side of L2 the CTAs of a grid that fills the GPU once read from, in the order of their index, launch after
 * launch (the GPC that is filled first after the single TPCs is the process's): `side` is 1 where a CTA's SM is not on
 * SM 0's side; `gpc` names its GPC by its first SM.
 *
 * An SM's side: it reads lines that SM 0 has read, as fast as SM 0 where they share one; on the other side half of them
 * are a crossing away. */
#include "gpc_map.h"
#include "probe_load.h"
using namespace bench;

constexpr int granule_bytes = 4096, tested = 256, launches = 2;

/* Cycles of a load of a line of each granule by `target_sm`. */
__global__ void look(const char *buffer, uint32_t target_sm, uint16_t *latency) {
  __shared__ volatile uint32_t sink;
  if (sm_id() != target_sm || threadIdx.x != 0) return;
  for (int i = 0; i < tested; i++) latency[i] = cycles_of_load(buffer + (size_t)i * granule_bytes, sink);
}

__global__ void where(uint32_t *sms) {
  if (threadIdx.x == 0) sms[blockIdx.x] = sm_id();
  for (uint64_t begin = cycles64(); cycles64() - begin < 30000;)
    ;
}

int main() {
  GpcMap map;
  const int sms = num_sms();
  const size_t flush_count = ((size_t)256 << 20) / 16;
  char *buffer = device_alloc<char>((size_t)tested * granule_bytes);
  uint4 *flush = device_alloc<uint4>(flush_count);
  uint16_t *latency = device_alloc<uint16_t>(tested);
  uint32_t *placed = device_alloc<uint32_t>((size_t)sms);
  allow_shared(look, whole_sm_bytes);
  allow_shared(where, whole_sm_bytes);
  auto looked = [&](int sm) {
    look<<<sms, 32, whole_sm_bytes>>>(buffer, (uint32_t)sm, latency);
    return to_host(latency, (size_t)tested);
  };
  std::vector<int> side((size_t)sms);
  for (int sm = 1; sm < sms; sm++) {
    fill<<<sms * 4, 512>>>(flush, flush_count);
    looked(0);
    side[(size_t)sm] = percentile(looked(sm), 0.75) > 370;
  }
  for (int launch = 0; launch < launches; launch++) {
    where<<<sms, 128, whole_sm_bytes>>>(placed);
    std::vector<uint32_t> of_cta = to_host(placed, (size_t)sms);
    char variant[32];
    snprintf(variant, sizeof variant, "launch%d", launch);
    for (int cta = 0; cta < sms; cta++) {
      uint32_t sm = of_cta[(size_t)cta], first = 0;
      while (map.gpc_of(first) != map.gpc_of(sm)) first++;
      row("fill_sides", variant, "cta", cta, "sm", sm, "1");
      row("fill_sides", variant, "cta", cta, "gpc", first, "1");
      row("fill_sides", variant, "cta", cta, "side", side[sm], "1");
    }
  }
  finish();
  return 0;
}
