/* How C of a product leaves a SM, as products/product_wgmma.h has it, without the product: tiles of 64 rows a group of
 * four warps, tile after tile, one CTA a SM; the SMs below `writers`.
 *
 * `direct_<groups>_<columns>`: from registers in the fragments of wgmma, 4 bytes a lane, 16 bytes of each of 8 rows a
 * store. `rate`: bytes that leave in a SM cycle.
 *
 * `staged_<groups>_<what>`: in pieces of 32 columns by stmatrix and TMA, two pieces under way; `piece`: cycles of a
 * piece. What is left out: `full` nothing; `no_fence` the proxy fence; `no_store` the TMA stores; `no_either` both;
 * `no_words` the stmatrix; `one_buffer` has one piece under way; `fence_alone` and `barriers` neither words nor
 * stores; `copy` and `copy_no_fence` no stores, and a cp.async that is waited for instead of words; `barriers_alone`,
 * `wait_alone` (the four of a round, which the compiler puts behind one branch) and `store_alone` (with its wait) have
 * nothing else.
 * `at_<place>`: what thread 0 takes to come so far from the place before, in a `full` whose clock it reads at each:
 * wait (of buffers), barrier, words, fence, barrier2, store. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int rounds = 64, rows_of_c = 64 * 2, columns_of_c = 4096;
enum What {
  full,
  no_fence,
  no_store,
  no_either,
  no_words,
  one_buffer,
  fence_alone,
  barriers,
  copy,
  copy_no_fence,
  barriers_alone,
  wait_alone,
  store_alone
};
const char *const names[] = {"full",           "no_fence",    "no_store",   "no_either", "no_words",
                             "one_buffer",     "fence_alone", "barriers",   "copy",      "copy_no_fence",
                             "barriers_alone", "wait_alone",  "store_alone"};
__host__ __device__ constexpr bool writes_words(What w) { return w <= no_either || w == one_buffer; }
__host__ __device__ constexpr bool fences(What w) {
  return w != no_fence && w != no_either && w != barriers && w != copy_no_fence && w < barriers_alone;
}
__host__ __device__ constexpr bool stores(What w) {
  return w == full || w == no_fence || w == no_words || w == one_buffer || w == store_alone;
}
__host__ __device__ constexpr bool waits(What w) { return w < barriers_alone || w == wait_alone || w == store_alone; }
__host__ __device__ constexpr bool meets(What w) { return w <= barriers_alone; }
__host__ __device__ constexpr bool copies(What w) { return w == copy || w == copy_no_fence; }
enum Place { wait, barrier, words, fence, barrier2, store, num_places };
const char *const places[] = {"at_wait", "at_barrier", "at_words", "at_fence", "at_barrier2", "at_store"};

__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

/* Sums that no compiler can see through, different in each round. */
template <int count>
__device__ __forceinline__ void make(float (&sums)[count], int round) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("mov.b32 %0, %1;" : "=f"(sums[i]) : "r"(round * 64 + i));
}

template <int groups, int columns>
__global__ __launch_bounds__(groups * 128, 1) void direct(uint16_t *c, int num_writers, uint64_t *span) {
  if ((int)sm_id() >= num_writers) return;
  int lane = (int)threadIdx.x % 32, first_row = (int)threadIdx.x / 128 * 64 + (int)threadIdx.x % 128 / 32 * 16;
  uint16_t *own = c + (size_t)sm_id() * rows_of_c * columns_of_c;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    float sums[columns / 2];
    make(sums, round);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint16_t *to = own + (size_t)(first_row + half * 8 + lane / 4) * columns_of_c + round * columns % columns_of_c +
                     lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < columns / 8; n++)
        *(uint32_t *)(to + n * 8) = pack(sums[n * 4 + half * 2], sums[n * 4 + half * 2 + 1]);
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) span[sm_id()] = cycles64() - start;
}

__device__ __forceinline__ void stmatrix(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/* spent: of thread 0, by place; null in all but the variant that reads the clock. */
template <int groups, What what, bool noted>
__global__ __launch_bounds__(groups * 128, 1) void staged(const __grid_constant__ CUtensorMap map, const uint16_t *from,
                                                          int num_writers, uint64_t *span, uint32_t *spent) {
  extern __shared__ uint8_t raw[];
  if ((int)sm_id() >= num_writers) return;
  constexpr int columns = 128, buffers = what == one_buffer ? 1 : 2, piece_bytes = 64 * 64;
  uint32_t staging = (hopper::smem(raw) + 1023) / 1024 * 1024, lane = threadIdx.x % 32, group = threadIdx.x / 128;
  uint32_t row = threadIdx.x % 128 / 32 * 16 + lane % 16, before = 0, sum[num_places] = {};
  bool leads = threadIdx.x % 128 == 0;
  auto note = [&](int place) {
    if (!noted) return;
    uint32_t now = clock32();
    sum[place] += now - before;
    before = now;
  };
  __syncthreads();
  uint64_t start = cycles64();
  before = clock32();
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    float sums[columns / 2];
    make(sums, round);
#pragma unroll
    for (int piece = 0; piece < columns / 32; piece++) {
      uint32_t buffer = staging + (group * buffers + (uint32_t)(piece % buffers)) * piece_bytes;
      if (waits(what) && leads) hopper::tensor_store_wait<buffers - 1>();
      note(wait);
      if (meets(what)) hopper::named_sync(2 + (int)group, 128);
      note(barrier);
#pragma unroll
      for (int part = 0; part < (writes_words(what) ? 2 : 0); part++) {
        const float *s = &sums[(piece * 4 + part * 2) * 4];
        uint32_t chunk = (uint32_t)part * 2 + lane / 16;
        stmatrix(buffer + row * 64 + (chunk ^ (row / 2 & 3)) * 16, pack(s[0], s[1]), pack(s[2], s[3]), pack(s[4], s[5]),
                 pack(s[6], s[7]));
      }
      if (copies(what)) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(buffer + threadIdx.x % 128 * 16), "l"(from)
                     : "memory");
        asm volatile("cp.async.wait_all;" ::: "memory");
      }
      note(words);
      if (fences(what)) hopper::proxy_fence();
      note(fence);
      if (meets(what)) hopper::named_sync(2 + (int)group, 128);
      note(barrier2);
      if (leads && stores(what)) {
        hopper::tensor_store_3d(&map, round * columns % columns_of_c + piece * 32,
                                (int)sm_id() * rows_of_c + (int)group * 64, 0, buffer);
        hopper::tensor_store_commit();
      }
      note(store);
    }
  }
  if (leads) hopper::tensor_store_wait<0>();
  __syncthreads();
  if (threadIdx.x == 0) {
    span[sm_id()] = cycles64() - start;
    if (noted)
      for (int i = 0; i < num_places; i++) spent[sm_id() * num_places + i] = sum[i];
  }
}

static uint16_t *c;
static uint64_t *span;
static uint32_t *spent;
static bool profiled;

/* Launches twice, the first to warm up, but once under a profiler. */
template <typename Launch>
static double median_span(Launch launch, int writers) {
  for (int i = profiled ? 1 : 0; i < 2; i++) launch();
  finish();
  return (double)median(to_host(span, (size_t)writers));
}

template <int groups, int columns>
static void measure_direct() {
  char variant[48];
  snprintf(variant, sizeof variant, "direct_%d_%d", groups, columns);
  for (int writers : {1, 8, 66, 132}) {
    double cycles = median_span(
        [&] { direct<groups, columns><<<num_sms(), groups * 128, whole_sm_bytes>>>(c, writers, span); }, writers);
    row("product_epilogue", variant, "writers", writers, "rate", groups * 64.0 * columns * 2 * rounds / cycles,
        "bytes/cycle/sm");
  }
}

template <int groups, What what>
static void measure_staged() {
  CUtensorMap map = hopper::tensor_map(c, columns_of_c, (uint64_t)num_sms() * rows_of_c, 1, 64, 32);
  char variant[48];
  allow_shared(staged<groups, what, false>, whole_sm_bytes);
  snprintf(variant, sizeof variant, "staged_%d_%s", groups, names[what]);
  for (int writers : {1, 8, 66, 132}) {
    double cycles = median_span(
        [&] {
          staged<groups, what, false><<<num_sms(), groups * 128, whole_sm_bytes>>>(map, c, writers, span, nullptr);
        },
        writers);
    row("product_epilogue", variant, "writers", writers, "piece", cycles / (rounds * 4), "cycles");
  }
  if (what != full && what != no_store) return;
  allow_shared(staged<groups, what, true>, whole_sm_bytes);
  for (int writers : {1, 132}) {
    median_span(
        [&] { staged<groups, what, true><<<num_sms(), groups * 128, whole_sm_bytes>>>(map, c, writers, span, spent); },
        writers);
    std::vector<uint32_t> of_all = to_host(spent, (size_t)num_sms() * num_places);
    for (int place = 0; place < num_places; place++)
      row("product_epilogue", variant, "writers", writers, places[place], of_all[(size_t)place] / (rounds * 4.0),
          "cycles");
  }
}

template <int groups>
static void measure() {
  allow_shared(direct<groups, 64>, whole_sm_bytes), measure_direct<groups, 64>();
  allow_shared(direct<groups, 128>, whole_sm_bytes), measure_direct<groups, 128>();
  allow_shared(direct<groups, 256>, whole_sm_bytes), measure_direct<groups, 256>();
  if (profiled) return;
  measure_staged<groups, full>(), measure_staged<groups, no_fence>(), measure_staged<groups, no_store>();
  measure_staged<groups, no_either>(), measure_staged<groups, no_words>(), measure_staged<groups, one_buffer>();
  measure_staged<groups, fence_alone>(), measure_staged<groups, barriers>();
  measure_staged<groups, copy>(), measure_staged<groups, copy_no_fence>();
  measure_staged<groups, barriers_alone>(), measure_staged<groups, wait_alone>();
  measure_staged<groups, store_alone>();
}

int main(int argc, char **argv) {
  profiled = has_flag(argc, argv, "--profile");
  c = device_alloc<uint16_t>((size_t)num_sms() * rows_of_c * columns_of_c);
  span = device_alloc<uint64_t>((size_t)num_sms());
  spent = device_alloc<uint32_t>((size_t)num_sms() * num_places);
  measure<1>(), measure<2>();
  return 0;
}
