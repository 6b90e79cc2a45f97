/* The SM clock in the first millisecond of a load, in which most launches begin and end. Without --profile: SM cycles
 * over wall time in windows from the kernel's start, the median of launches of 1 ms: of nine, each after a pause of 2
 * or 50 ms, or of a train of 21, each behind a fill of 256 MiB (train200us: launches of 0.2 ms). With --profile:
 * launches of x us, one at a time, whose cycles over time are those of a profiled kernel. The load is clock_load.h's;
 * `l2` reads 16 MiB again and again. */
#include <chrono>
#include <string>
#include <thread>

#include "clock_load.h"
#include "probe_load.h"
using namespace clock_load;

constexpr size_t region_bytes = (size_t)1 << 30, l2_bytes = (size_t)16 << 20, fill_bytes = (size_t)256 << 20;
constexpr int operand_bytes = 49152, repeats = 9, profiled_repeats = 3, train_launches = 21;

struct Load {
  Math math;
  int math_pct, memory_pct;
  bool from_l2;
};

static const char *const names[] = {"wgmma", "mma", "ffma", "mufu"};

static std::vector<Load> loads() {
  std::vector<Load> all;
  for (int memory_pct : {0, 50, 100})
    for (int pct : {10, 20, 30, 40, 50, 60, 100}) all.push_back({Math::wgmma, pct, memory_pct, false});
  for (int pct : {10, 25, 50, 75, 100}) all.push_back({Math::mma, pct, 0, false});
  for (int pct : {25, 50, 75}) all.push_back({Math::mma, pct, 100, false});
  for (int memory_pct : {25, 50, 60, 70, 80, 100}) all.push_back({Math::wgmma, 0, memory_pct, false});
  all.push_back({Math::ffma, 100, 0, false});
  all.push_back({Math::mufu, 100, 0, false});
  all.push_back({Math::wgmma, 0, 100, true});
  all.push_back({Math::mma, 25, 100, true});
  return all;
}

struct Memory {
  uint4 *operands, *region, *fill;
  Sample *samples;
  int *num_samples;
  unsigned long long *work;
  uint32_t *sink;
};

/* Its samples are those of `place`. */
static void launch(const Memory &m, const Load &l, uint64_t run_ns, int place) {
  auto kernel = l.math == Math::wgmma  ? mixed_load<Math::wgmma>
                : l.math == Math::mma  ? mixed_load<Math::mma>
                : l.math == Math::ffma ? mixed_load<Math::ffma>
                                       : mixed_load<Math::mufu>;
  allow_shared(kernel, whole_sm_bytes);
  kernel<<<num_sms(), tensor_threads + memory_threads + 32, whole_sm_bytes>>>(
      m.operands, m.region, (l.from_l2 ? l2_bytes : region_bytes) / 16, l.math_pct, l.memory_pct, run_ns,
      m.samples + (size_t)place * max_samples, m.num_samples + place, m.work, m.sink);
}

static std::string name_of(const Load &l) {
  char text[64];
  snprintf(text, sizeof text, "%s%d_%s%d", names[(int)l.math], l.math_pct, l.from_l2 ? "l2_" : "memory", l.memory_pct);
  return text;
}

static void profile(const Memory &m) {
  for (const Load &l : loads())
    for (int us : {50, 100, 200, 400, 1000})
      for (int i = 0; i < profiled_repeats; i++) {
        launch(m, l, (uint64_t)us * 1000, 0);
        row("clock_onset", name_of(l).c_str(), "us", us, "repeat", i, "1");
        finish();
      }
}

constexpr int num_windows = 10;
constexpr uint64_t ends_us[num_windows + 1] = {0, 20, 40, 60, 80, 100, 150, 200, 300, 500, 1000};

struct Clocks {
  std::vector<double> of_window[num_windows];
  void take(const Memory &m, int launch) {
    std::vector<Sample> s =
        to_host(m.samples + (size_t)launch * max_samples, (size_t)to_host(m.num_samples + launch, 1)[0]);
    for (int w = 0; w < num_windows; w++)
      of_window[w].push_back(mhz_between(s, ends_us[w] * 1000, ends_us[w + 1] * 1000));
  }
  /* The windows of launches of `us`. */
  void print(const Load &l, uint64_t us, const char *condition) const {
    std::string variant = name_of(l) + "_" + condition;
    for (int w = 0; w < num_windows && ends_us[w + 1] <= us; w++)
      row("clock_onset", variant.c_str(), "until_us", (double)ends_us[w + 1], "clock", median(of_window[w]), "MHz");
  }
};

static void after_pauses(const Memory &m, const Load &l, int pause_ms, const char *condition) {
  Clocks clocks;
  for (int i = 0; i < repeats; i++) {
    finish();
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    launch(m, l, 1000000, 0);
    finish();
    clocks.take(m, 0);
  }
  clocks.print(l, 1000, condition);
}

static void train(const Memory &m, const Load &l, uint64_t us, const char *condition) {
  for (int i = 0; i < train_launches; i++) {
    fill<<<num_sms() * 4, 256>>>(m.fill, fill_bytes / 16);
    launch(m, l, us * 1000, i);
  }
  finish();
  Clocks clocks;
  for (int i = 0; i < train_launches; i++) clocks.take(m, i);
  clocks.print(l, us, condition);
}

int main(int argc, char **argv) {
  Memory m = {device_alloc<uint4>(operand_bytes / 16),
              device_alloc<uint4>(region_bytes / 16),
              device_alloc<uint4>(fill_bytes / 16),
              device_alloc<Sample>((size_t)max_samples * train_launches),
              device_alloc<int>(train_launches),
              device_alloc<unsigned long long>(2),
              device_alloc<uint32_t>(1024)};
  std::vector<uint16_t> halves = normal_halves((size_t)4 << 20);
  CUDA_CHECK(cudaMemcpy(m.operands, halves.data(), operand_bytes, cudaMemcpyHostToDevice));
  for (size_t at = 0; at < region_bytes; at += halves.size() * 2)
    CUDA_CHECK(cudaMemcpy((char *)m.region + at, halves.data(), halves.size() * 2, cudaMemcpyHostToDevice));
  if (has_flag(argc, argv, "--profile")) {
    profile(m);
    return 0;
  }
  for (const Load &l : loads()) {
    after_pauses(m, l, 2, "pause2ms");
    after_pauses(m, l, 50, "pause50ms");
    train(m, l, 1000, "train");
    train(m, l, 200, "train200us");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    finish();
    CUDA_CHECK(cudaMemset(m.work, 0, 16));
    launch(m, l, 1000000, 0);
    std::vector<unsigned long long> done = to_host(m.work, 2);
    bool counts_exponentials = l.math == Math::mufu;
    row("clock_onset", name_of(l).c_str(), "us", 1000, counts_exponentials ? "exponentials" : "math_rate",
        (double)done[0] * operations_per_count(l.math) / 1e9, counts_exponentials ? "T/s" : "TFLOP/s");
    row("clock_onset", name_of(l).c_str(), "us", 1000, "memory_rate", (double)done[1] / 1e6, "GB/s");
  }
  return 0;
}
