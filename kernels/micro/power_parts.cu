/* What the parts of a kernel cost. Two warpgroups a SM issue wgmma on normally distributed operands, four warps beside
 * them do one other thing for `x` percent of the time (of wgmma alone: the wgmmas).
 * - power_*: 3 s each, the power that the driver reports at the end (an average over about a second), at the SM clock
 *   reported beside it. Only loads within the sustained limit say what they cost.
 * - burst_*: 30 ms after a pause, where the SM clock shows what the limit for bursts leaves.
 * - train_launch_N: when the limit for sustained load sets in: launches of `x` us, each behind a fill of 256 MiB, as
 *   launches are timed in a stream.
 * - onset_N: the clock up to `x` us after the start of such a launch, with wgmma for N percent of the time. */
#include <chrono>
#include <cmath>
#include <thread>

#include "bench.h"
#include "hopper.h"
#include "nvml.h"
using namespace bench;

struct Sample {
  uint64_t cycle, ns;
};

constexpr int max_samples = 4096, train_launches = 21;
constexpr int tensor_threads = 256, beside_threads = 128;
constexpr uint32_t operand_bytes = 49152, copy_bytes = 16384, num_copies = 4;
constexpr int shared_bytes = (int)(operand_bytes + num_copies * copy_bytes);

enum class Tensor { none, ss128, ss256, rs128 };
enum class Beside { none, l2_loads, l2_async, l2_copies, dram_copies, shared, ffma, alu, mufu };

__device__ __forceinline__ void rest(uint64_t busy_cycles, int percent) {
  uint64_t begin = cycles64(), idle = busy_cycles * (uint64_t)(100 - percent) / (uint64_t)percent;
  while (cycles64() < begin + idle) __nanosleep(64);
}

/* One thread asks the time for its warpgroup: wgmma needs all 128 threads to agree. */
__device__ __forceinline__ bool group_goes_on(volatile bool *going_on, uint32_t group, uint64_t deadline) {
  if (threadIdx.x % 128 == 0) going_on[group] = global_ns() < deadline;
  hopper::named_sync((int)group + 1, 128);
  bool result = going_on[group];
  hopper::named_sync((int)group + 1, 128);
  return result;
}

/* Counts products of 64 x 128 x 16. */
template <Tensor tensor>
__device__ __forceinline__ void multiply(const uint8_t *tiles, const uint4 *operands, volatile bool *going_on,
                                         int percent, uint64_t deadline, unsigned long long *work, uint32_t *sink) {
  constexpr int n = tensor == Tensor::ss256 ? 256 : 128;
  float d[n / 2];
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  uint4 x = operands[threadIdx.x];
  uint32_t fragment[4] = {x.x, x.y, x.z, x.w};
  uint32_t base = hopper::smem(tiles);
  uint64_t a = hopper::descriptor(base + threadIdx.x / 128 * 8192, 16, 1024),
           b = hopper::descriptor(base + 16384, 16, 1024);
  unsigned long long count = 0;
  while (group_goes_on(going_on, threadIdx.x / 128, deadline)) {
    uint64_t begin = cycles64();
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 32 * 128 / n; k++) {
      if constexpr (tensor == Tensor::rs128)
        Wgmma<n>::template rs<0>(d, fragment, b + (uint64_t)(k % 4 * 2), k != 0);
      else
        Wgmma<n>::template ss<0>(d, a + (uint64_t)(k % 4 * 2), b + (uint64_t)(k % 4 * 2), k != 0);
    }
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
    count += 32;
    if (percent < 100) rest(cycles64() - begin, percent);
    __syncwarp();
  }
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = __float_as_uint(sum);
  if (threadIdx.x % 128 == 0) atomicAdd(&work[0], count);
}

/* Reads 16 bytes a thread, 16 times: bytes of a thread. */
__device__ __forceinline__ int load_l2(const uint4 *region, size_t count, size_t &at, uint32_t &sum) {
  uint4 v[16];
#pragma unroll
  for (int k = 0; k < 16; k++) v[k] = __ldcg(region + at + (size_t)(k * beside_threads));
#pragma unroll
  for (int k = 0; k < 16; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  at += (size_t)gridDim.x * beside_threads * 16;
  if (at + (size_t)(16 * beside_threads) >= count)
    at = blockIdx.x * (size_t)beside_threads * 16 + threadIdx.x % beside_threads;
  return 256;
}

/* Copies 16 bytes a thread into shared memory, 16 times: bytes of a thread. */
__device__ __forceinline__ int copy_l2(const uint4 *region, size_t count, size_t &at, uint32_t to) {
#pragma unroll
  for (int k = 0; k < 16; k++)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (uint32_t)(k * beside_threads * 16)),
                 "l"(region + at + (size_t)(k * beside_threads)));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 1;" ::: "memory");
  at += (size_t)gridDim.x * beside_threads * 16;
  if (at + (size_t)(16 * beside_threads) >= count)
    at = blockIdx.x * (size_t)beside_threads * 16 + threadIdx.x % beside_threads;
  return 256;
}

/* One thread keeps num_copies bulk copies of 16 KB on their way. */
__device__ __forceinline__ void copy_all(const uint4 *region, size_t count, uint32_t ring, uint32_t bars, int percent,
                                         uint64_t deadline, unsigned long long *work) {
  const uint8_t *bytes = (const uint8_t *)region;
  size_t total = count * 16, at = (size_t)blockIdx.x * copy_bytes;
  unsigned long long copied = 0;
  for (uint32_t round = 0; global_ns() < deadline; round++) {
    uint64_t begin = cycles64();
    for (uint32_t i = 0; i < num_copies; i++) {
      if (round > 0) hopper::mbarrier_wait(bars + i * 8, (round - 1) & 1);
      hopper::mbarrier_expect(bars + i * 8, copy_bytes);
      hopper::bulk_load(ring + i * copy_bytes, bytes + at, copy_bytes, bars + i * 8);
      at += (size_t)gridDim.x * copy_bytes;
      if (at + copy_bytes > total) at = (size_t)blockIdx.x * copy_bytes;
      copied += copy_bytes;
    }
    if (percent < 100) rest(cycles64() - begin, percent);
  }
  __nanosleep(20000); /* what is on its way arrives */
  atomicAdd(&work[1], copied);
}

/* Counts bytes, or operations of a thread. */
template <Beside beside>
__device__ __forceinline__ void work_beside(const uint4 *region, size_t count, const uint8_t *tiles, uint32_t bars,
                                            const uint4 *operands, int percent, uint64_t deadline,
                                            unsigned long long *work, uint32_t *sink) {
  if constexpr (beside == Beside::none) return;
  if constexpr (beside == Beside::l2_copies || beside == Beside::dram_copies) {
    if (threadIdx.x == tensor_threads)
      copy_all(region, count, hopper::smem(tiles) + operand_bytes, bars, percent, deadline, work);
    return;
  }
  uint32_t sum = 0, from = hopper::smem(tiles) + operand_bytes + threadIdx.x % beside_threads * 16;
  size_t at = blockIdx.x * (size_t)beside_threads * 16 + threadIdx.x % beside_threads;
  unsigned long long done = 0;
  uint4 x = operands[threadIdx.x];
  float f[16];
  uint32_t words[16];
  for (int i = 0; i < 16; i++) {
    words[i] = ((const uint32_t *)operands)[threadIdx.x % beside_threads * 16 + i];
    f[i] = __uint_as_float(words[i] & 0xbfffffff);
  }
  while (global_ns() < deadline) {
    uint64_t begin = cycles64();
    for (int repeat = 0; repeat < 8; repeat++) {
      if constexpr (beside == Beside::l2_loads) done += (unsigned)load_l2(region, count, at, sum);
      if constexpr (beside == Beside::l2_async)
        done += (unsigned)copy_l2(region, count, at, from + (uint32_t)(repeat % 2 * 32768));
      if constexpr (beside == Beside::shared) {
#pragma unroll
        for (int k = 0; k < 16; k++) {
          uint32_t v[4];
          asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                       : "r"(from + (uint32_t)(k * beside_threads * 16)));
          sum ^= v[0] ^ v[1] ^ v[2] ^ v[3];
        }
        done += 256;
      }
#pragma unroll
      for (int k = 0; k < 64; k++) {
        if constexpr (beside == Beside::ffma)
          asm volatile("fma.rn.f32 %0, %0, %1, %2;"
                       : "+f"(f[k % 16])
                       : "f"(__uint_as_float(x.x & 0xbf7fffff)), "f"(__uint_as_float(x.y & 0xbfffffff)));
        if constexpr (beside == Beside::alu)
          asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;"
                       : "+r"(words[k % 16])
                       : "r"(x.x + 0u), "r"(words[(k + 5) % 16]));
        if constexpr (beside == Beside::mufu)
          if (k % 8 == 0) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(f[k / 8]) : "f"(f[k / 8]));
      }
      if constexpr (beside == Beside::ffma || beside == Beside::alu) done += 64;
      if constexpr (beside == Beside::mufu) done += 8;
    }
    if (percent < 100) rest(cycles64() - begin, percent);
  }
  for (int i = 0; i < 16; i++) sum ^= __float_as_uint(f[i]) ^ words[i];
  asm volatile("cp.async.wait_all;" ::: "memory");
  sink[threadIdx.x] = sum;
  atomicAdd(&work[1], done);
}

/* The first thread of a warp of its own. */
template <Beside beside>
constexpr int sampling_thread = beside == Beside::none ? tensor_threads : tensor_threads + beside_threads;

template <Tensor tensor, Beside beside>
__global__ __launch_bounds__(sampling_thread<beside> + 32) void load(const uint4 *operands, const uint4 *region,
                                                                     size_t region_count, int percent, uint64_t run_ns,
                                                                     Sample *samples, int *num_samples,
                                                                     unsigned long long *work, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ volatile bool going_on[2];
  __shared__ uint64_t bars[num_copies];
  for (uint32_t i = threadIdx.x; i < (uint32_t)shared_bytes / 16; i += blockDim.x)
    ((uint4 *)tiles)[i] = operands[i % (operand_bytes / 16)];
  if (threadIdx.x < num_copies) hopper::mbarrier_init(hopper::smem(bars + threadIdx.x), 1);
  hopper::mbarrier_init_fence();
  hopper::proxy_fence();
  __syncthreads();
  uint64_t deadline = global_ns() + run_ns;
  if (threadIdx.x < tensor_threads) {
    if constexpr (tensor != Tensor::none)
      multiply<tensor>(tiles, operands, going_on, beside == Beside::none ? percent : 100, deadline, work, sink);
  } else if (threadIdx.x < sampling_thread<beside>) {
    work_beside<beside>(region, region_count, tiles, hopper::smem(bars), operands, percent, deadline, work, sink);
  } else if (blockIdx.x == 0 && threadIdx.x == sampling_thread<beside>) {
    int count = 0;
    for (uint64_t now = global_ns(); now < deadline && count < max_samples; now = global_ns()) {
      samples[count++] = {cycles64(), now};
      while (global_ns() < now + (run_ns > 60000000 ? run_ns / 3000 : run_ns > 1000000 ? 20000 : 5000))
        __nanosleep(200);
    }
    *num_samples = count;
  }
}

static uint16_t half_bits(float f) {
  __half h = __float2half(f);
  uint16_t bits;
  memcpy(&bits, &h, 2);
  return bits;
}

static std::vector<uint16_t> normal_halves(size_t count) {
  Random random;
  std::vector<uint16_t> v(count);
  for (size_t i = 0; i < count; i++) {
    double u = ((double)(random.next() >> 11) + 1) / 9007199254740993.0,
           w = (double)(random.next() >> 11) / 9007199254740992.0;
    v[i] = half_bits((float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * w)));
  }
  return v;
}

static double mhz_between(const std::vector<Sample> &s, uint64_t from_ns, uint64_t to_ns) {
  size_t a = 0, b = 0;
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i].ns - s[0].ns <= from_ns) a = i;
    if (s[i].ns - s[0].ns <= to_ns) b = i;
  }
  return b > a ? (double)(s[b].cycle - s[a].cycle) * 1e3 / (double)(s[b].ns - s[a].ns) : -1;
}

struct Memory {
  uint4 *region, *operands, *fill;
  Sample *samples;
  int *num_samples;
  unsigned long long *work;
  uint32_t *sink;
};

static const size_t fill_bytes = (size_t)256 << 20;
static const size_t region_count = ((size_t)4 << 30) / 16, l2_count = ((size_t)8 << 20) / 16;

template <Tensor tensor, Beside beside>
static void launch(const Memory &m, int index, int percent, uint64_t run_ns) {
  allow_shared(load<tensor, beside>, whole_sm_bytes);
  load<tensor, beside><<<num_sms(), sampling_thread<beside> + 32, whole_sm_bytes>>>(
      m.operands, m.region, beside == Beside::dram_copies ? region_count : l2_count, percent, run_ns,
      m.samples + index * max_samples, m.num_samples + index, m.work, m.sink);
}

enum class Reading { power, burst };

template <Tensor tensor, Beside beside>
static void measure(const Memory &m, const Nvml &nvml, Reading reading, const char *name, const char *unit,
                    std::vector<int> percents) {
  const uint64_t ms = 1000000, run_ns = (reading == Reading::power ? 3000 : 30) * ms;
  char variant[64];
  snprintf(variant, sizeof variant, "%s_%s", reading == Reading::power ? "power" : "burst", name);
  for (int percent : percents) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    CUDA_CHECK(cudaMemset(m.work, 0, 16));
    launch<tensor, beside>(m, 0, percent, run_ns);
    double watts = 0;
    if (reading == Reading::power) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2400));
      for (int i = 0; i < 5; i++) {
        watts += nvml.watts() / 5;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
    double celsius = nvml.celsius();
    finish();
    int n = to_host(m.num_samples, 1)[0];
    std::vector<Sample> s = to_host(m.samples, (size_t)n);
    std::vector<unsigned long long> done = to_host(m.work, 2);
    row("power_parts", variant, "percent", percent, "clock",
        reading == Reading::power ? mhz_between(s, 1400 * ms, 2900 * ms) : mhz_between(s, ms, 30 * ms), "MHz");
    row("power_parts", variant, "percent", percent, "products",
        (double)done[0] * 64 * 128 * 16 * 2 / (double)run_ns * 1e-3, "TFLOP/s");
    if (beside != Beside::none)
      row("power_parts", variant, "percent", percent, "beside", (double)done[1] / (double)run_ns, unit);
    if (reading == Reading::power) row("power_parts", variant, "percent", percent, "power", watts, "W");
    row("power_parts", variant, "percent", percent, "temperature", celsius, "C");
  }
}

static void trains(const Memory &m) {
  for (int us : {500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 5000, 6000, 8000}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    for (int i = 0; i < train_launches; i++) {
      CUDA_CHECK(cudaMemsetAsync(m.fill, 1, fill_bytes));
      launch<Tensor::ss128, Beside::none>(m, i, 100, (uint64_t)us * 1000);
    }
    finish();
    std::vector<int> counts = to_host(m.num_samples, train_launches);
    for (int i = 0; i < train_launches; i++) {
      std::vector<Sample> s = to_host(m.samples + i * max_samples, (size_t)counts[i]);
      char name[32];
      snprintf(name, sizeof name, "train_launch_%d", i);
      row("power_parts", name, "us", us, "clock", mhz_between(s, 0, (uint64_t)us * 1000), "MHz");
    }
  }
}

/* 21 launches of 1 ms: the median clock of each window. */
static void onset(const Memory &m) {
  const uint64_t ends_us[] = {0, 50, 100, 200, 400, 1000};
  for (int percent : {20, 30, 40, 50, 60}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    for (int i = 0; i < train_launches; i++) {
      CUDA_CHECK(cudaMemsetAsync(m.fill, 1, fill_bytes));
      launch<Tensor::ss128, Beside::none>(m, i, percent, 1000000);
    }
    finish();
    std::vector<int> counts = to_host(m.num_samples, train_launches);
    char name[32];
    snprintf(name, sizeof name, "onset_%d", percent);
    for (int w = 1; w < 6; w++) {
      std::vector<double> clocks;
      for (int i = 0; i < train_launches; i++) {
        std::vector<Sample> s = to_host(m.samples + i * max_samples, (size_t)counts[i]);
        clocks.push_back(mhz_between(s, ends_us[w - 1] * 1000, ends_us[w] * 1000));
      }
      row("power_parts", name, "us", (double)ends_us[w], "clock", median(clocks), "MHz");
    }
  }
}

int main() {
  Memory m = {device_alloc<uint4>(region_count),    device_alloc<uint4>(operand_bytes / 16),
              device_alloc<uint4>(fill_bytes / 16), device_alloc<Sample>(max_samples * train_launches),
              device_alloc<int>(train_launches),    device_alloc<unsigned long long>(2),
              device_alloc<uint32_t>(1024)};
  std::vector<uint16_t> halves = normal_halves((size_t)4 << 20);
  CUDA_CHECK(cudaMemcpy(m.operands, halves.data(), operand_bytes, cudaMemcpyHostToDevice));
  for (size_t at = 0; at < region_count * 16; at += halves.size() * 2)
    CUDA_CHECK(cudaMemcpy((char *)m.region + at, halves.data(), halves.size() * 2, cudaMemcpyHostToDevice));
  Nvml nvml;
  const std::vector<int> half = {50, 100}, all = {25, 50, 100};
  measure<Tensor::ss128, Beside::none>(m, nvml, Reading::burst, "ss128", "", {100});
  measure<Tensor::ss256, Beside::none>(m, nvml, Reading::burst, "ss256", "", {100});
  measure<Tensor::rs128, Beside::none>(m, nvml, Reading::burst, "rs128", "", {100});
  measure<Tensor::ss128, Beside::l2_loads>(m, nvml, Reading::burst, "ss128_l2_loads", "GB/s", all);
  measure<Tensor::ss128, Beside::l2_async>(m, nvml, Reading::burst, "ss128_l2_async", "GB/s", all);
  measure<Tensor::ss128, Beside::l2_copies>(m, nvml, Reading::burst, "ss128_l2_copies", "GB/s", all);
  measure<Tensor::ss128, Beside::dram_copies>(m, nvml, Reading::burst, "ss128_dram_copies", "GB/s", all);
  measure<Tensor::rs128, Beside::shared>(m, nvml, Reading::burst, "rs128_shared", "GB/s", all);
  measure<Tensor::rs128, Beside::ffma>(m, nvml, Reading::burst, "rs128_ffma", "G/s", all);
  measure<Tensor::rs128, Beside::alu>(m, nvml, Reading::burst, "rs128_alu", "G/s", all);
  measure<Tensor::rs128, Beside::mufu>(m, nvml, Reading::burst, "rs128_mufu", "G/s", all);
  trains(m);
  onset(m);
  measure<Tensor::ss128, Beside::none>(m, nvml, Reading::power, "ss128", "", {10, 20, 30, 40, 100});
  measure<Tensor::rs128, Beside::none>(m, nvml, Reading::power, "rs128", "", {30});
  measure<Tensor::none, Beside::none>(m, nvml, Reading::power, "idle", "", {100});
  measure<Tensor::none, Beside::l2_loads>(m, nvml, Reading::power, "l2_loads", "GB/s", half);
  measure<Tensor::none, Beside::l2_async>(m, nvml, Reading::power, "l2_async", "GB/s", half);
  measure<Tensor::none, Beside::l2_copies>(m, nvml, Reading::power, "l2_copies", "GB/s", half);
  measure<Tensor::none, Beside::dram_copies>(m, nvml, Reading::power, "dram_copies", "GB/s", {25, 100});
  measure<Tensor::none, Beside::shared>(m, nvml, Reading::power, "shared", "GB/s", half);
  measure<Tensor::none, Beside::ffma>(m, nvml, Reading::power, "ffma", "G/s", half);
  measure<Tensor::none, Beside::alu>(m, nvml, Reading::power, "alu", "G/s", half);
  measure<Tensor::none, Beside::mufu>(m, nvml, Reading::power, "mufu", "G/s", half);
  return 0;
}
