/* Do writes and reads share the bandwidth of L2's slices? On x SMs 16 warps store, each SM to its own 64 KiB, while 16
 * others load another 64 KiB past L1, over and over; all lines stay in L2. Each alone (`stores`, `loads`) and both at
 * once, over 100000 cycles in which no warp ends: bytes a cycle and SM. `lines`: stores of whole lines; `parts`: 8 rows
 * of 16 bytes as MMA fragments lie, all first halves of sectors ahead of the second, so that none is made whole. */
#include "bench.h"
using namespace bench;

constexpr int region_bytes = 65536;
constexpr uint64_t pause_cycles = 20000, span_cycles = 100000;

struct Counts {
  uint64_t stored, loaded; /* instructions of the SM's warps inside the span */
};

__device__ __forceinline__ void store_lines(char *own, int round, int lane) {
  char *to = own + round % (region_bytes / 4096) * 4096 + lane * 16;
#pragma unroll
  for (int i = 0; i < 8; i++)
    asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(to + i * 512), "r"(round) : "memory");
}

__device__ __forceinline__ void store_parts(char *own, int round, int lane) {
  char *to = own + round % (region_bytes / 4096) * 4096 + lane / 4 * 512 + lane % 4 * 4;
#pragma unroll
  for (int i = 0; i < 8; i++)
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to + i % 4 * 128 + i / 4 * 16 + round / 16 % 4 * 32), "r"(round)
                 : "memory");
}

__device__ __forceinline__ uint32_t load_lines(const char *own, int round, int lane) {
  const char *from = own + round % (region_bytes / 4096) * 4096 + lane * 16;
  uint4 v[8];
#pragma unroll
  for (int i = 0; i < 8; i++)
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                 : "l"(from + i * 512));
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  return sum;
}

template <bool parts>
__global__ __launch_bounds__(1024) void pass(char *buffer, int num_sms_used, bool stores, bool loads, Counts *counts,
                                             uint32_t *sink) {
  if ((int)sm_id() >= num_sms_used) return;
  __shared__ unsigned long long done[2];
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  bool is_store = warp % 2 == 0;
  char *own = buffer + ((size_t)sm_id() * 2 + (is_store ? 0 : 1)) * region_bytes;
  if (threadIdx.x < 2) done[threadIdx.x] = 0;
  __syncthreads();
  uint64_t begin = cycles64() + pause_cycles;
  uint64_t num = 0;
  uint32_t sum = 0;
  if (is_store ? stores : loads)
    for (int round = warp;; round += 2) {
      uint64_t now = cycles64();
      if (now > begin + span_cycles) break;
      if (is_store)
        parts ? store_parts(own, round, lane) : store_lines(own, round, lane);
      else
        sum ^= load_lines(own, round, lane);
      num += now >= begin ? 8 : 0;
    }
  if (sum == 0x12345678) *sink = sum;
  if (lane == 0) atomicAdd(&done[is_store ? 0 : 1], num);
  __syncthreads();
  if (threadIdx.x == 0) counts[sm_id()] = {done[0], done[1]};
}

template <bool parts>
static void measure(const char *kind) {
  const int sms = num_sms();
  static char *buffer = device_alloc<char>((size_t)sms * 2 * region_bytes);
  static Counts *counts = device_alloc<Counts>((size_t)sms);
  static uint32_t *sink = device_alloc<uint32_t>(1);
  allow_shared(pass<parts>, whole_sm_bytes);
  for (int used : {1, sms / 2, sms})
    for (int what = 1; what < 4; what++) {
      for (int warm = 0; warm < 2; warm++)
        pass<parts><<<sms, 1024, whole_sm_bytes>>>(buffer, used, what & 1, what & 2, counts, sink);
      std::vector<Counts> of_sm = to_host(counts, (size_t)used);
      double stored = 0, loaded = 0;
      for (const Counts &c : of_sm) {
        stored += (double)c.stored * (parts ? 128 : 512);
        loaded += (double)c.loaded * 512;
      }
      char variant[64];
      snprintf(variant, sizeof variant, "%s_%s", kind, what == 1 ? "stores" : what == 2 ? "loads" : "both");
      double span = (double)span_cycles * used;
      if (what & 1) row("write_beside_read", variant, "sms", used, "stored", stored / span, "bytes/cycle/sm");
      if (what & 2) row("write_beside_read", variant, "sms", used, "loaded", loaded / span, "bytes/cycle/sm");
    }
}

int main() {
  measure<false>("lines");
  measure<true>("parts");
  finish();
  return 0;
}
