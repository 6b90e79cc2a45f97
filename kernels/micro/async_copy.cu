/* cp.async and TMA (linear bulk and 3-D tiled with 128-byte swizzle): latency from issue to visible data, and bandwidth
 * of the whole GPU against bytes in flight a SM. Sources: `l2` (a 16 MiB region read before) and `dram` (each byte
 * once, 4 GiB). */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int max_tile_bytes = 65536;

enum class Engine { cp_async, bulk, tiled };

__device__ __forceinline__ void cp_async_16(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* One copy at a time, `count` of them, at consecutive addresses; the median is taken on the host. */
template <Engine engine>
__global__ void latency(const char *from, const __grid_constant__ CUtensorMap map, int bytes, int count,
                        uint32_t *cycles) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile);
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init_fence();
  }
  __syncthreads();
  for (int i = 0; i < count; i++) {
    __syncthreads();
    uint32_t start = clock32();
    if (engine == Engine::cp_async) {
      for (int at = (int)threadIdx.x * 16; at < bytes; at += (int)blockDim.x * 16)
        cp_async_16(to + (uint32_t)at, from + (size_t)i * (size_t)bytes + at);
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
    } else {
      if (threadIdx.x == 0) {
        hopper::mbarrier_expect(bar, (uint32_t)bytes);
        if (engine == Engine::bulk)
          hopper::bulk_load(to, from + (size_t)i * (size_t)bytes, (uint32_t)bytes, bar);
        else
          hopper::tensor_load_3d(to, &map, 0, i * (bytes / 128), 0, bar);
      }
      hopper::mbarrier_wait(bar, (uint32_t)i & 1);
    }
    uint32_t stop = clock32();
    if (threadIdx.x == 0) cycles[i] = stop - start;
  }
}

/* A ring of `stages` tiles a CTA; CTA i reads tiles i, i + grid, ... of a region, `passes` times over. */
template <Engine engine>
__global__ void stream(const char *from, const __grid_constant__ CUtensorMap map, int bytes, int stages, int num_tiles,
                       int num_steps) {
  extern __shared__ __align__(1024) uint8_t ring[];
  __shared__ __align__(8) uint64_t bars[32];
  uint32_t to = hopper::smem(ring), bar = hopper::smem(bars);
  if constexpr (engine != Engine::cp_async) {
    if (threadIdx.x != 0) return;
    for (int s = 0; s < stages; s++) hopper::mbarrier_init(bar + (uint32_t)s * 8, 1);
    hopper::mbarrier_init_fence();
    int slot = 0, tile = (int)blockIdx.x;
    uint32_t parity = 1;
    for (int i = 0; i < num_steps + stages; i++) {
      if (i >= stages) hopper::mbarrier_wait(bar + (uint32_t)slot * 8, parity);
      if (i < num_steps) {
        hopper::mbarrier_expect(bar + (uint32_t)slot * 8, (uint32_t)bytes);
        if (engine == Engine::bulk)
          hopper::bulk_load(to + (uint32_t)(slot * bytes), from + (size_t)tile * (size_t)bytes, (uint32_t)bytes,
                            bar + (uint32_t)slot * 8);
        else
          hopper::tensor_load_3d(to + (uint32_t)(slot * bytes), &map, 0, tile * (bytes / 128), 0,
                                 bar + (uint32_t)slot * 8);
      }
      tile += (int)gridDim.x;
      if (tile >= num_tiles) tile -= num_tiles;
      if (++slot == stages) {
        slot = 0;
        parity ^= 1;
      }
    }
  } else {
    /* Every thread keeps its own ring; wait_group takes constants, so stages is 4 here and bytes vary. */
    for (int i = 0; i < num_steps; i++) {
      int tile = (int)((blockIdx.x + (unsigned)i * gridDim.x) % (unsigned)num_tiles);
      for (int at = (int)threadIdx.x * 16; at < bytes; at += (int)blockDim.x * 16)
        cp_async_16(to + (uint32_t)(i % 4 * bytes + at), from + (size_t)tile * (size_t)bytes + at);
      asm volatile("cp.async.commit_group;" ::: "memory");
      asm volatile("cp.async.wait_group 3;" ::: "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
}

__global__ void touch(const uint4 *from, size_t count, uint32_t *sink) {
  uint32_t sum = 0;
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) sum ^= __ldcg(from + i).x;
  if (sum == 0x12345678) *sink = sum;
}

template <Engine engine>
static void measure_latency(const char *name, const char *region, size_t region_bytes, uint32_t *cycles) {
  const int count = 64;
  for (int bytes : {128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
    if (bytes > 128 * 256 && engine == Engine::tiled) continue; /* a box has at most 256 rows of 128 bytes */
    CUtensorMap map = hopper::tensor_map(region, 64, region_bytes / 128, 1, (uint32_t)std::min(bytes / 128, 256));
    allow_shared(latency<engine>, max_tile_bytes);
    for (int from_l2 = 0; from_l2 < 2; from_l2++) {
      /* Flush by reading 256 MiB elsewhere, then warm if wanted. */
      touch<<<num_sms(), 1024>>>((const uint4 *)(region + region_bytes / 2), ((size_t)256 << 20) / 16, cycles);
      if (from_l2) touch<<<num_sms(), 1024>>>((const uint4 *)region, (size_t)bytes * count / 16, cycles);
      latency<engine><<<1, 128, max_tile_bytes>>>(region, map, bytes, count, cycles);
      char variant[64];
      snprintf(variant, sizeof variant, "%s_latency_%s", name, from_l2 ? "l2" : "dram");
      row("async_copy", variant, "bytes", bytes, "latency_p50", median(to_host(cycles, count)), "cycles");
      row("async_copy", variant, "bytes", bytes, "latency_p90", percentile(to_host(cycles, count), 0.9), "cycles");
    }
  }
  finish();
}

template <Engine engine>
static void measure_stream(const char *name, const char *region, size_t region_bytes) {
  EventTimer timer;
  allow_shared(stream<engine>, 224 * 1024 - 1024);
  for (int from_l2 = 0; from_l2 < 2; from_l2++) {
    for (int bytes : {1024, 2048, 4096, 8192, 16384, 32768}) {
      for (int stages : {1, 2, 4, 6}) {
        if (bytes * stages > 192 * 1024 || (engine == Engine::cp_async && stages != 4)) continue;
        CUtensorMap map = hopper::tensor_map(region, 64, region_bytes / 128, 1, (uint32_t)(bytes / 128));
        size_t read_bytes = from_l2 ? (size_t)16 << 20 : region_bytes;
        int num_tiles = (int)(read_bytes / (size_t)bytes);
        size_t total = std::min<size_t>((size_t)2 << 30, region_bytes);
        int num_steps = (int)(total / (size_t)bytes / (size_t)num_sms());
        int threads = engine == Engine::cp_async ? 256 : 32;
        float ms = 0;
        for (int i = 0; i < 2; i++) {
          timer.start();
          stream<engine><<<num_sms(), threads, bytes * stages>>>(region, map, bytes, stages, num_tiles, num_steps);
          ms = timer.stop_ms();
        }
        char variant[64];
        snprintf(variant, sizeof variant, "%s_stream_%s_stages%d", name, from_l2 ? "l2" : "dram", stages);
        row("async_copy", variant, "tile_bytes", bytes, "bandwidth", (double)num_steps * bytes * num_sms() / ms * 1e-6,
            "GB/s");
      }
    }
  }
  finish();
}

int main() {
  const size_t region_bytes = (size_t)4 << 30;
  char *region = device_alloc<char>(region_bytes);
  uint32_t *cycles = device_alloc<uint32_t>(64);
  measure_latency<Engine::cp_async>("cp_async", region, region_bytes, cycles);
  measure_latency<Engine::bulk>("tma_bulk", region, region_bytes, cycles);
  measure_latency<Engine::tiled>("tma_tiled", region, region_bytes, cycles);
  measure_stream<Engine::cp_async>("cp_async", region, region_bytes);
  measure_stream<Engine::bulk>("tma_bulk", region, region_bytes);
  measure_stream<Engine::tiled>("tma_tiled", region, region_bytes);
  return 0;
}
