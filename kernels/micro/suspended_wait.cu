/* How late a thread goes on that waits for an mbarrier by mbarrier.try_wait with a time to be suspended for, as CUTLASS
 * and cuDNN do (10 ms: SYNCS.TRYWAIT, then NANOSLEEP.SYNCS), and by a loop without one. One warp waits; another arrives
 * x cycles after both have met at a barrier, or eight do, `apart` cycles after each other. `late`: cycles from the last
 * arrival until the waiting warp's next instruction, mean and deviation over all SMs and rounds, and the tenth and
 * ninetieth hundredth; `polls`: tries of a wait. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int num_rounds = 512;

struct Round {
  uint32_t late, polls;
};

template <bool suspended>
__device__ __forceinline__ uint32_t wait_for(uint32_t bar, uint32_t parity) {
  uint32_t polls = 0, done = 0;
  while (!done) {
    if (suspended)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(bar), "r"(parity), "r"(0x989680)
                   : "memory");
    else
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(bar), "r"(parity)
                   : "memory");
    polls++;
  }
  return polls;
}

template <bool suspended>
__global__ void meet(int after_cycles, int arrivals, int apart_cycles, Round *rounds) {
  __shared__ __align__(8) uint64_t bar_storage;
  __shared__ volatile uint32_t arrived;
  uint32_t bar = hopper::smem(&bar_storage);
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, arrivals);
    hopper::mbarrier_init_fence();
  }
  for (int round = 0; round < num_rounds; round++) {
    __syncthreads();
    uint32_t start = clock32();
    if (threadIdx.x == 0) {
      uint32_t polls = wait_for<suspended>(bar, (uint32_t)round & 1);
      uint32_t end = clock32();
      rounds[blockIdx.x * num_rounds + (uint32_t)round] = {end - arrived, polls};
    } else if (threadIdx.x % 32 == 0) {
      /* Not the same time in every round: what the wait does may have a rhythm. */
      int place = (int)threadIdx.x / 32 - 1;
      uint32_t wanted = (uint32_t)(after_cycles + place * apart_cycles + round * 37 % 256 + (int)blockIdx.x % 8 * 11);
      while (clock32() - start < wanted)
        ;
      if (place == arrivals - 1) arrived = clock32();
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
    }
  }
}

static void report(const char *name, int after_cycles, const std::vector<Round> &rounds) {
  std::vector<double> late;
  double mean = 0, square = 0, polls = 0;
  for (size_t i = 0; i < rounds.size(); i++) {
    if (i % num_rounds < 16) continue;
    late.push_back(rounds[i].late);
    mean += rounds[i].late;
    square += (double)rounds[i].late * rounds[i].late;
    polls += rounds[i].polls;
  }
  double n = (double)late.size();
  mean /= n;
  row("suspended_wait", name, "after_cycles", after_cycles, "late", mean, "cycles");
  row("suspended_wait", name, "after_cycles", after_cycles, "late_deviation", sqrt(square / n - mean * mean), "cycles");
  row("suspended_wait", name, "after_cycles", after_cycles, "late_p10", percentile(late, 0.1), "cycles");
  row("suspended_wait", name, "after_cycles", after_cycles, "late_median", percentile(late, 0.5), "cycles");
  row("suspended_wait", name, "after_cycles", after_cycles, "late_p90", percentile(late, 0.9), "cycles");
  row("suspended_wait", name, "after_cycles", after_cycles, "late_max", percentile(late, 1.0), "cycles");
  row("suspended_wait", name, "after_cycles", after_cycles, "polls", polls / n, "1");
}

int main() {
  const int sms = num_sms();
  Round *rounds = device_alloc<Round>((size_t)sms * num_rounds);
  const struct {
    const char *name;
    int arrivals, apart;
  } ways[] = {{"one", 1, 0},
              {"eight_apart_0", 8, 0},
              {"eight_apart_10", 8, 10},
              {"eight_apart_20", 8, 20},
              {"eight_apart_40", 8, 40},
              {"eight_apart_100", 8, 100}};
  for (const auto &way : ways)
    for (bool suspended : {false, true})
      for (int after : {200, 800, 3200, 12800}) {
        int threads = 32 * (way.arrivals + 1);
        if (suspended)
          meet<true><<<sms, threads>>>(after, way.arrivals, way.apart, rounds);
        else
          meet<false><<<sms, threads>>>(after, way.arrivals, way.apart, rounds);
        finish();
        char name[64];
        snprintf(name, sizeof name, "%s_%s", suspended ? "suspended" : "polled", way.name);
        report(name, after, to_host(rounds, (size_t)sms * num_rounds));
      }
  return 0;
}
