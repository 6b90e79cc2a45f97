/* Does a store pay for the way to the other side of L2? All SMs store lines whose home is on their own side, on the
 * other, or on both in turn, and so do the SMs of one side alone: bytes a cycle and SM.
 *
 * The home of a 4 KiB granule: SM 0 reads a line of it from DRAM, then an SM of the other side does, which finds it in
 * its own side where that is the home (a replica is only on SM 0's) and else waits for the crossing. An SM's side: it
 * reads lines that SM 0 has read, as fast as SM 0 where they share one. */
#include "probe_load.h"
using namespace bench;

constexpr int num_granules = 16, granule_bytes = 4096, num_rounds = 48, tested = 256;

/* Cycles of a load of a line of each granule by `target_sm`; the n-th time of another line. */
__global__ void look(const char *buffer, int count, int line, uint32_t target_sm, uint16_t *latency) {
  __shared__ volatile uint32_t sink;
  if (sm_id() != target_sm || threadIdx.x != 0) return;
  for (int i = 0; i < count; i++) latency[i] = cycles_of_load(buffer + (size_t)i * granule_bytes + line * 128, sink);
}

__global__ __launch_bounds__(1024) void store(char *buffer, const uint32_t *granules, const uint8_t *writes,
                                              uint64_t *span) {
  if (!writes[sm_id()]) return;
  const uint32_t *own = granules + sm_id() * num_granules;
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  __syncthreads();
  uint64_t start = cycles64();
  for (int round = 0; round < num_rounds; round++) {
    char *to = buffer + (size_t)own[warp / 2] * granule_bytes + warp % 2 * 2048 + lane * 16;
#pragma unroll
    for (int i = 0; i < 4; i++)
      asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(to + i * 512), "r"(round) : "memory");
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) span[sm_id()] = cycles64() - start;
}

int main() {
  const int sms = num_sms(), count = 2 * sms * num_granules * 5 / 4;
  const size_t flush_count = ((size_t)256 << 20) / 16;
  char *buffer = device_alloc<char>((size_t)count * granule_bytes);
  uint4 *flush = device_alloc<uint4>(flush_count);
  uint16_t *latency = device_alloc<uint16_t>((size_t)count);
  allow_shared(look, whole_sm_bytes);
  allow_shared(store, whole_sm_bytes);
  auto looked = [&](int n, int line, int sm) {
    look<<<sms, 32, whole_sm_bytes>>>(buffer, n, line, (uint32_t)sm, latency);
    return to_host(latency, (size_t)n);
  };
  /* Sides of SMs: on the other side half of what SM 0 has read is a crossing away. */
  std::vector<int> side((size_t)sms);
  int other = -1;
  for (int sm = 1; sm < sms; sm++) {
    fill<<<sms * 4, 512>>>(flush, flush_count);
    looked(tested, 0, 0);
    side[(size_t)sm] = percentile(looked(tested, 0, sm), 0.75) > 370;
    if (side[(size_t)sm]) other = sm;
  }
  row("fabric_writes", "sms_on_other_side", "sm", 0, "sms", (double)std::count(side.begin(), side.end(), 1), "1");
  if (other < 0) return 0;
  fill<<<sms * 4, 512>>>(flush, flush_count);
  looked(count, 1, 0);
  std::vector<uint16_t> by_other = looked(count, 1, other);
  std::vector<uint32_t> homes[2];
  for (int i = 0; i < count; i++) homes[by_other[(size_t)i] <= 370].push_back((uint32_t)i);
  for (int s = 0; s < 2; s++) row("fabric_writes", "granules", "side", s, "granules", (double)homes[s].size(), "1");

  uint32_t *granules = device_alloc<uint32_t>((size_t)sms * num_granules);
  uint8_t *on = device_alloc<uint8_t>((size_t)sms);
  uint64_t *span = device_alloc<uint64_t>((size_t)sms);
  const char *names[3] = {"to_own_side", "to_other_side", "to_both_sides"};
  for (int who = 0; who < 3; who++)
    for (int to = 0; to < 3; to++) {
      std::vector<uint8_t> writes((size_t)sms);
      std::vector<uint32_t> chosen((size_t)sms * num_granules);
      size_t next[2] = {0, 0};
      int writers = 0;
      for (size_t sm = 0; sm < (size_t)sms; sm++) {
        writes[sm] = who == 0 || side[sm] == who - 1;
        if (!writes[sm]) continue;
        writers++;
        for (size_t g = 0; g < num_granules; g++) {
          int home = to == 2 ? (int)(g % 2) : side[sm] ^ to;
          chosen[sm * num_granules + g] = homes[home][next[home]++ % homes[home].size()];
        }
      }
      CUDA_CHECK(cudaMemcpy(granules, chosen.data(), chosen.size() * 4, cudaMemcpyHostToDevice));
      CUDA_CHECK(cudaMemcpy(on, writes.data(), writes.size(), cudaMemcpyHostToDevice));
      for (int warm = 0; warm < 3; warm++) store<<<sms, 1024, whole_sm_bytes>>>(buffer, granules, on, span);
      std::vector<uint64_t> all = to_host(span, (size_t)sms), cycles;
      for (size_t sm = 0; sm < (size_t)sms; sm++)
        if (writes[sm]) cycles.push_back(all[sm]);
      double bytes = (double)num_granules * granule_bytes * num_rounds;
      const char *whose = who == 0 ? "all_sms" : who == 1 ? "sms_of_side_0" : "sms_of_side_1";
      char variant[64];
      snprintf(variant, sizeof variant, "%s_%s", whose, names[to]);
      row("fabric_writes", variant, "sms", writers, "rate", bytes / (double)median(cycles), "bytes/cycle/sm");
    }
  finish();
  return 0;
}
