/* What a load takes whose line another SM of the GPC asked for `lag` SM cycles before: is it answered with the first
 * one's data, sooner than a hit of its own would be? Two readers of 32 threads read the same 4 lines in slots of a
 * common clock (the GPC's own counter: gpc_map.h), the second `lag` later; `x` is the lag, negative: the second comes
 * first. Median over the slots of the time until the data are there. `hit`: another SM of the GPC has read all before;
 * `miss`: nobody has, and 256 MiB were written in between. `alone`: no first reader. */
#include "gpc_map.h"
using namespace bench;

constexpr int num_slots = 192, slot_bytes = 8192, slot_cycles = 8192;

struct Pair {
  int first_sm, second_sm; /* first: -1 for none */
  int64_t first_offset, second_offset;
  int lag;
};

__global__ __launch_bounds__(32) void read_late(const char *buffer, Pair pair, uint64_t begin, uint32_t *waits,
                                                uint32_t *sink) {
  int sm = (int)sm_id();
  bool second = sm == pair.second_sm;
  if (sm != pair.first_sm && !second) return;
  int64_t origin = (int64_t)begin + (second ? pair.second_offset + pair.lag : pair.first_offset);
  for (int slot = 0; slot < num_slots; slot++) {
    while ((int64_t)cycles64() < origin + (int64_t)slot * slot_cycles)
      ;
    uint32_t start = clock32();
    uint4 v = __ldcg((const uint4 *)(buffer + (size_t)slot * slot_bytes) + threadIdx.x);
    if ((v.x ^ v.y ^ v.z ^ v.w) == 0x12345678) *sink = v.x;
    uint32_t wait = clock32() - start;
    if (second && threadIdx.x == 0) waits[slot] = wait;
  }
}

__global__ void read_all(const char *buffer, int sm, uint64_t *now, uint32_t *sink) {
  if ((int)sm_id() != sm) return;
  uint32_t sum = 0;
  for (int slot = 0; slot < num_slots; slot++) {
    uint4 v = __ldcg((const uint4 *)(buffer + (size_t)slot * slot_bytes) + threadIdx.x);
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678) *sink = sum;
  if (threadIdx.x == 0) *now = cycles64();
}

__global__ void tell_time(int sm, uint64_t *now) {
  if ((int)sm_id() == sm && threadIdx.x == 0) *now = cycles64();
}

static void measure(const char *place, const GpcMap &map, int first_sm, int second_sm, bool hit) {
  static char *buffer = device_alloc<char>((size_t)num_slots * slot_bytes);
  static char *flush = device_alloc<char>((size_t)256 << 20);
  static uint64_t *now = device_alloc<uint64_t>(1);
  static uint32_t *waits = device_alloc<uint32_t>(num_slots), *sink = device_alloc<uint32_t>(1);
  int clock_sm = second_sm;
  char variant[64];
  snprintf(variant, sizeof variant, "%s_%s", place, hit ? "hit" : "miss");
  for (int lag = -512; lag <= 1024; lag += lag >= 256 || lag < -128 ? 64 : 16) {
    CUDA_CHECK(cudaMemset(flush, 1, (size_t)256 << 20));
    if (hit) read_all<<<num_sms(), 32, whole_sm_bytes>>>(buffer, second_sm, now, sink);
    tell_time<<<num_sms(), 32, whole_sm_bytes>>>(clock_sm, now);
    uint64_t at = to_host(now, 1)[0];
    double base = map.offset_of((uint32_t)clock_sm);
    Pair pair = {first_sm, second_sm, 0, 0, lag};
    pair.first_offset = first_sm >= 0 ? (int64_t)(map.offset_of((uint32_t)first_sm) - base) : 0;
    /* A launch from the host comes some 20 us later; the counter of the second reader rules. */
    read_late<<<num_sms(), 32, whole_sm_bytes>>>(buffer, pair, at + 200000, waits, sink);
    finish();
    std::vector<uint32_t> w = to_host(waits, (size_t)num_slots);
    row("coalescer_latency", variant, "lag_cycles", lag, "wait_p25", percentile(w, 0.25), "cycles");
    row("coalescer_latency", variant, "lag_cycles", lag, "wait_p50", percentile(w, 0.5), "cycles");
    row("coalescer_latency", variant, "lag_cycles", lag, "wait_p75", percentile(w, 0.75), "cycles");
  }
}

int main() {
  for (auto kernel : {(const void *)read_late, (const void *)read_all, (const void *)tell_time})
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, whole_sm_bytes));
  GpcMap map;
  int first = 0, partner = 1, other = -1;
  for (int sm = 2; sm < num_sms() && other < 0; sm++)
    if (map.gpc_of((uint32_t)sm) == map.gpc_of(0)) other = sm;
  for (bool hit : {true, false}) {
    measure("alone", map, -1, first, hit);
    measure("tpc", map, partner, first, hit);
    if (other >= 0) measure("gpc", map, other, first, hit);
  }
  return 0;
}
