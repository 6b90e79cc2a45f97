/* How much of what an SM stores may be on its way: its rate of stores while other SMs make L2 answer late. Eight SMs
 * store over and over by 16 warps, each to its own 64 KiB; x others load lines that lie in L2, 16 warps of 8 lines of 512
 * bytes each, and rest `pause` cycles between; four more SMs read a line at a time, which takes `latency` cycles. What is
 * on its way is the rate times what a store takes until it is acknowledged, which the latency of a read stands for.
 * `lines`: stores of whole lines; `parts`: 8 rows of 16 bytes as MMA fragments lie, none of which is made whole. */
#include "bench.h"
using namespace bench;

constexpr int region_bytes = 65536, num_storing = 8, num_probes = 4, num_warps = 16;
constexpr uint64_t pause_cycles = 30000, span_cycles = 100000;

struct Counts {
  uint64_t stored, loaded; /* instructions of the SM's warps inside the span */
  uint64_t reads, waited;  /* of a probe */
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

__device__ void probe(const char *own, Counts *out) {
  uint64_t begin = cycles64() + pause_cycles, last = 0, reads = 0, waited = 0;
  uint32_t zero = 0;
  for (int round = 0;; round++) {
    uint64_t now = cycles64();
    if (last >= begin) {
      reads++;
      waited += now - last;
    }
    if (now > begin + span_cycles) break;
    last = now;
    const char *from = own + round * 128 % region_bytes;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(zero) : "l"(from + zero) : "memory");
  }
  out->reads = reads + zero;
  out->waited = waited;
}

/* SMs by number, in turn: which of the first that many are stores, which probe, and which load. */
template <bool parts>
__global__ __launch_bounds__(num_warps * 32) void pass(char *buffer, int num_loading, int rest, Counts *counts,
                                                       uint32_t *sink) {
  __shared__ unsigned long long done[2];
  int sm = (int)sm_id(), warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, sms = (int)gridDim.x;
  int step = sms / (num_storing + num_probes), place = sm / step; /* storing and probing SMs lie apart */
  bool is_first = sm % step == 0 && place < num_storing + num_probes, stores = is_first && place < num_storing;
  int others_before = sm - (place < num_storing + num_probes ? place + (sm % step > 0) : num_storing + num_probes);
  bool loads = !is_first && others_before < num_loading;
  char *own = buffer + (size_t)sm * region_bytes;
  if (threadIdx.x < 2) done[threadIdx.x] = 0;
  if (threadIdx.x == 0) counts[sm] = {};
  __syncthreads();
  uint64_t begin = cycles64() + pause_cycles, num = 0;
  uint32_t sum = 0;
  if (is_first && !stores && threadIdx.x == 0) probe(own, &counts[sm]);
  if (stores || loads)
    for (int round = warp;; round += num_warps) {
      uint64_t now = cycles64();
      if (now > begin + span_cycles) break;
      if (loads)
        sum ^= load_lines(own, round, lane);
      else
        parts ? store_parts(own, round, lane) : store_lines(own, round, lane);
      num += now >= begin ? 8 : 0;
      if (loads && rest > 0)
        for (uint64_t until = cycles64() + (uint64_t)rest; cycles64() < until;)
          ;
    }
  if (sum == 0x12345678) *sink = sum;
  if (lane == 0) atomicAdd(&done[loads], num);
  __syncthreads();
  if (threadIdx.x == 0) counts[sm].stored = done[0], counts[sm].loaded = done[1];
}

template <bool parts>
static void measure(const char *kind) {
  const int sms = num_sms();
  char *buffer = device_alloc<char>((size_t)sms * region_bytes);
  Counts *counts = device_alloc<Counts>((size_t)sms);
  uint32_t *sink = device_alloc<uint32_t>(1);
  allow_shared(pass<parts>, whole_sm_bytes);
  for (int loading : {0, 30, 60, 80, 100, 120})
    for (int rest : {2000, 500, 0}) {
      if (loading == 0 && rest > 0) continue;
      for (int warm = 0; warm < 2; warm++)
        pass<parts><<<sms, num_warps * 32, whole_sm_bytes>>>(buffer, loading, rest, counts, sink);
      double stored = 0, loaded = 0, reads = 0, waited = 0;
      for (const Counts &c : to_host(counts, (size_t)sms)) {
        stored += (double)c.stored * (parts ? 128 : 512);
        loaded += (double)c.loaded * 512;
        reads += (double)c.reads;
        waited += (double)c.waited;
      }
      char variant[64];
      snprintf(variant, sizeof variant, "%s_rest_%d", kind, rest);
      double span = (double)span_cycles;
      row("store_credit", variant, "loading_sms", loading, "stored", stored / (span * num_storing), "bytes/cycle/sm");
      row("store_credit", variant, "loading_sms", loading, "latency", waited / reads, "cycles");
      if (loading > 0)
        row("store_credit", variant, "loading_sms", loading, "loaded", loaded / (span * loading), "bytes/cycle/sm");
    }
}

int main() {
  measure<false>("lines");
  measure<true>("parts");
  finish();
  return 0;
}
