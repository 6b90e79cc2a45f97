/* What do reads wait for beside stores: those of their own SM, or those of all? On x SMs 16 warps store over and over,
 * each SM to its own 64 KiB, over 100000 cycles; one more warp of eight SMs reads lines that lie in L2, one after the
 * other. `same`: these eight store too; `apart`: they do not. Cycles a read: `load` a lane's ld.global.cg, `bulk` TMA's
 * copy of a line, `tile` of 64. `lines`: stores of whole lines; `parts`: 8 rows of 16 bytes as MMA
 * fragments lie, all first halves of sectors ahead of the second, so that none is made whole. The wait for TMA polls. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int region_bytes = 65536, num_probes = 8, num_storing_warps = 16, tile_lines = 64;
constexpr int num_threads = (num_storing_warps + 1) * 32;
constexpr uint64_t pause_cycles = 20000, span_cycles = 100000;

enum Probe { LOAD, BULK, TILE };

struct Counts {
  uint64_t stored;          /* instructions of the SM's warps inside the span */
  uint64_t reads, waited;   /* of the probe: how many, and their cycles together */
  uint64_t longest;
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

/* Every eighth SM or so probes, spread over the chip: the first of those that store, or of those that do not. */
__device__ bool is_probe(int sm, int from, int count) {
  if (sm < from || sm >= from + count) return false;
  int step = count / num_probes > 0 ? count / num_probes : 1;
  return (sm - from) % step == 0 && (sm - from) / step < num_probes;
}

__device__ void probe(Probe kind, char *own, uint8_t *tile, uint32_t bar, Counts *out) {
  uint64_t begin = cycles64() + pause_cycles, last = 0, reads = 0, waited = 0, longest = 0;
  uint32_t parity = 0, zero = 0;
  int bytes = kind == TILE ? tile_lines * 128 : 128;
  for (int round = 0;; round++) {
    uint64_t now = cycles64();
    if (last >= begin) {
      reads++;
      waited += now - last;
      if (now - last > longest) longest = now - last;
    }
    if (now > begin + span_cycles) break;
    last = now;
    const char *from = own + (size_t)round * (size_t)bytes % region_bytes;
    if (kind == LOAD) {
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(zero) : "l"(from + zero) : "memory");
    } else {
      hopper::mbarrier_expect(bar, (uint32_t)bytes);
      hopper::bulk_load(hopper::smem(tile), from, (uint32_t)bytes, bar);
      hopper::mbarrier_poll(bar, parity);
      parity ^= 1;
    }
  }
  out->reads = reads;
  out->waited = waited;
  out->longest = longest + zero;
}

template <bool parts>
__global__ __launch_bounds__(num_threads) void pass(char *buffer, int num_storing, bool apart, Probe kind,
                                                    Counts *counts) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  __shared__ unsigned long long done;
  int sm = (int)sm_id(), warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, sms = (int)gridDim.x;
  bool probes = apart ? is_probe(sm, num_storing, sms - num_storing) : is_probe(sm, 0, num_storing);
  uint32_t bar = hopper::smem(&bar_storage);
  if (threadIdx.x == 0) {
    done = 0;
    counts[sm] = {};
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init_fence();
  }
  __syncthreads();
  char *own = buffer + (size_t)sm * 2 * region_bytes;
  uint64_t begin = cycles64() + pause_cycles, num = 0;
  if (warp == num_storing_warps) {
    if (probes && lane == 0) probe(kind, own + region_bytes, tile, bar, &counts[sm]);
  } else if (sm < num_storing) {
    for (int round = warp;; round += num_storing_warps) {
      uint64_t now = cycles64();
      if (now > begin + span_cycles) break;
      parts ? store_parts(own, round, lane) : store_lines(own, round, lane);
      num += now >= begin ? 8 : 0;
    }
    if (lane == 0) atomicAdd(&done, num);
  }
  __syncthreads();
  if (threadIdx.x == 0) counts[sm].stored = done;
}

template <bool parts>
static void measure(const char *kind) {
  const int sms = num_sms();
  const char *names[] = {"load", "bulk", "tile"};
  static char *buffer = device_alloc<char>((size_t)sms * 2 * region_bytes);
  static Counts *counts = device_alloc<Counts>((size_t)sms);
  allow_shared(pass<parts>, whole_sm_bytes);
  for (int p = LOAD; p <= TILE; p++)
    for (int apart = 0; apart < 2; apart++)
      for (int storing : {0, 1, 33, 66, 99, 116, 124, 132}) {
        if (apart ? storing == sms : storing == 0) continue;
        for (int warm = 0; warm < 2; warm++)
          pass<parts><<<sms, num_threads, whole_sm_bytes>>>(buffer, storing, apart, (Probe)p, counts);
        double stored = 0, reads = 0, waited = 0, longest = 0;
        for (const Counts &c : to_host(counts, (size_t)sms)) {
          stored += (double)c.stored * (parts ? 128 : 512);
          reads += (double)c.reads;
          waited += (double)c.waited;
          longest = std::max(longest, (double)c.longest);
        }
        char variant[64];
        snprintf(variant, sizeof variant, "%s_%s_%s", kind, apart ? "apart" : "same", names[p]);
        row("read_behind_stores", variant, "storing_sms", storing, "mean", waited / reads, "cycles");
        row("read_behind_stores", variant, "storing_sms", storing, "longest", longest, "cycles");
        if (storing > 0)
          row("read_behind_stores", variant, "storing_sms", storing, "stored",
              stored / ((double)span_cycles * storing), "bytes/cycle/sm");
      }
}

int main() {
  measure<false>("lines");
  measure<true>("parts");
  finish();
  return 0;
}
