/* What the first copies by TMA of a launch wait for: cycles of one thread from its copy of 1 KiB that no cache has to
 * the data in shared memory, one copy at a time: with a tensor map that the launch has not used yet (`first`), with the
 * same one again (`second`, `third`), with another one (`other_first`, `other_second`), then of data that are in L2
 * (`again`); `load`: of a plain load before them. `prefetched_...`: the maps were asked for 4000 cycles before. Each
 * CTA copies rows of its own, and what L2 had was overwritten before. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

enum Step { load, first, second, third, other_first, other_second, again, num_steps };
static const char *const names[] = {"load", "first", "second", "third", "other_first", "other_second", "again"};
constexpr int copy_rows = 8, copy_bytes = copy_rows * 128, rows_apart = 64, copies = 8;

__global__ void run(const __grid_constant__ CUtensorMap one, const __grid_constant__ CUtensorMap other,
                    const uint32_t *table, int is_prefetched, uint32_t *took, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  if (threadIdx.x > 0) return;
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile), phase = 0;
  hopper::mbarrier_init(bar, 1);
  hopper::mbarrier_init_fence();
  int row = (int)blockIdx.x * copies * rows_apart;
  if (is_prefetched) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&one) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&other) : "memory");
    for (uint32_t start = clock32(); clock32() - start < 4000;) continue;
  }
  uint32_t time[num_steps];
  uint32_t start = clock32(), value;
  asm volatile("ld.global.cg.u32 %0, [%1];"
               : "=r"(value)
               : "l"(table + (size_t)(row + 7 * rows_apart) * 32)
               : "memory");
  if (value == 0x12345677) sink[0] = value;
  time[load] = clock32() - start;
  auto copy = [&](const CUtensorMap &map, int slot) {
    uint32_t begin = clock32();
    hopper::mbarrier_expect(bar, copy_bytes);
    hopper::tensor_load_3d(to, &map, 0, row + slot * rows_apart, 0, bar);
    hopper::mbarrier_wait(bar, phase);
    phase ^= 1;
    return clock32() - begin;
  };
  time[first] = copy(one, 0);
  time[second] = copy(one, 1);
  time[third] = copy(one, 2);
  time[other_first] = copy(other, 3);
  time[other_second] = copy(other, 4);
  time[again] = copy(one, 0);
  for (int i = 0; i < num_steps; i++) took[blockIdx.x * num_steps + i] = time[i];
}

int main() {
  constexpr size_t most_ctas = 132, table_rows = most_ctas * copies * rows_apart, flush_bytes = (size_t)256 << 20;
  uint8_t *table = device_alloc<uint8_t>(table_rows * 128), *flush = device_alloc<uint8_t>(flush_bytes);
  uint32_t *took = device_alloc<uint32_t>(most_ctas * num_steps), *sink = device_alloc<uint32_t>(1);
  CUtensorMap one = hopper::tensor_map(table, 64, table_rows, 1, copy_rows), other = one;
  for (int prefetched = 0; prefetched < 2; prefetched++)
    for (int grid : {1, 132}) {
      CUDA_CHECK(cudaMemset(flush, grid, flush_bytes));
      run<<<grid, 32, 16 * 1024>>>(one, other, (const uint32_t *)table, prefetched, took, sink);
      finish();
      std::vector<uint32_t> all = to_host(took, (size_t)grid * num_steps);
      for (int step = 0; step < num_steps; step++) {
        std::vector<uint32_t> of_step;
        for (int cta = 0; cta < grid; cta++) of_step.push_back(all[(size_t)(cta * num_steps + step)]);
        char variant[64];
        snprintf(variant, sizeof variant, "%s%s", prefetched ? "prefetched_" : "", names[step]);
        row("tma_first", variant, "ctas", grid, "latency", median(of_step), "cycles");
      }
    }
  return 0;
}
