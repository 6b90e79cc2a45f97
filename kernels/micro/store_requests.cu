/* Bytes a cycle that x SMs store by requests of 1, 2 or 4 sectors of a line, whole ones or parts: an instruction stores
 * 8 sectors in rows of 1, 2 or 4, all of each (`whole_*`) or 16 bytes (`half_*`), or 16 sectors, 8 bytes of each
 * (`words`). All first parts of a round's sectors, then all second ones: none is made whole on its way, no two rows
 * share a line.
 * `pairs_*`: a sector's two halves one after the other, as epilogues of mma.sync store, by so many warps an SM. The
 * lines stay in L2. One CTA an SM, on the SMs 0 to x - 1. */
#include "bench.h"
using namespace bench;

constexpr int num_rows = 512, row_bytes = 256, region_bytes = num_rows * row_bytes, num_rounds = 12;

template <typename Word>
__device__ __forceinline__ void store(char *to, Word value) {
  *(volatile Word *)to = value;
}

template <typename Body>
__device__ __forceinline__ void timed(int num_writers, uint64_t *span, Body body) {
  if ((int)sm_id() >= num_writers) return;
  __syncthreads();
  uint64_t start = cycles64();
  for (int round = 0; round < num_rounds; round++) body(round);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) span[sm_id()] = cycles64() - start;
}

/* 4 lanes a sector; the rows of an instruction are as far apart as there are rows in a block. */
template <typename Word, int sectors>
__global__ __launch_bounds__(1024) void by_sectors(char *to, int num_writers, uint64_t *span) {
  constexpr int piece = 4 * (int)sizeof(Word), blocks = num_rows / (8 / sectors), columns = row_bytes / 32 / sectors;
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, num_warps = (int)blockDim.x / 32;
  char *own = to + (size_t)sm_id() * region_bytes + lane / (4 * sectors) * blocks * row_bytes +
              lane % (4 * sectors) / 4 * 32 + lane % 4 * (int)sizeof(Word);
  timed(num_writers, span, [&](int round) {
    for (int part = 0; part < 32; part += piece)
      for (int column = 0; column < columns; column++)
#pragma unroll 4
        for (int block = warp; block < blocks; block += num_warps)
          store<Word>(own + block * row_bytes + column * 32 * sectors + part, (Word)round);
  });
}

/* 4 bytes of every 16, as a 16-byte store that is split. */
__global__ __launch_bounds__(1024) void by_words(char *to, int num_writers, uint64_t *span) {
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, num_warps = (int)blockDim.x / 32;
  char *own = to + (size_t)sm_id() * region_bytes + lane * 16;
  timed(num_writers, span, [&](int round) {
    for (int part = 0; part < 16; part += 4)
#pragma unroll 4
      for (int block = warp; block < region_bytes / 512; block += num_warps)
        store<uint32_t>(own + block * 512 + part, (uint32_t)round);
  });
}

/* A warp stores 8 rows of a tile, both halves of a sector in a row, the whole line before the next rows. */
__global__ __launch_bounds__(1024) void by_pairs(char *to, int num_writers, uint64_t *span) {
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, num_warps = (int)blockDim.x / 32;
  char *own = to + (size_t)sm_id() * region_bytes + lane / 4 * row_bytes + lane % 4 * 4;
  timed(num_writers, span, [&](int round) {
    for (int block = warp; block < num_rows / 8; block += num_warps)
#pragma unroll
      for (int at = 0; at < row_bytes; at += 16) store<uint32_t>(own + block * 8 * row_bytes + at, (uint32_t)round);
  });
}

template <typename Kernel>
static void measure(const char *name, Kernel kernel, int warps) {
  const int sms = num_sms();
  static char *to = device_alloc<char>((size_t)sms * region_bytes);
  static uint64_t *span = device_alloc<uint64_t>((size_t)sms);
  allow_shared(kernel, whole_sm_bytes);
  for (int writers : {1, 8, 32, 66, 132}) {
    if (writers > sms) continue;
    for (int warm = 0; warm < 2; warm++) kernel<<<sms, warps * 32, whole_sm_bytes>>>(to, writers, span);
    finish();
    std::vector<uint64_t> cycles = to_host(span, (size_t)writers);
    row("store_requests", name, "sms", writers, "rate", (double)region_bytes * num_rounds / (double)median(cycles),
        "bytes/cycle/sm");
  }
}

int main() {
  measure("whole_1", by_sectors<uint64_t, 1>, 32);
  measure("whole_2", by_sectors<uint64_t, 2>, 32);
  measure("whole_4", by_sectors<uint64_t, 4>, 32);
  measure("half_1", by_sectors<uint32_t, 1>, 32);
  measure("half_2", by_sectors<uint32_t, 2>, 32);
  measure("half_4", by_sectors<uint32_t, 4>, 32);
  measure("words", by_words, 32);
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    char name[32];
    snprintf(name, sizeof name, "pairs_%d", warps);
    measure(name, by_pairs, warps);
  }
  return 0;
}
