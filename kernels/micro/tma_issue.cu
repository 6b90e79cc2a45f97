/* TMA copies that one thread issues one behind the other, as the producers of our kernels do: cycles that the thread
 * takes to issue n boxes of one mbarrier, and until all are there, from L2. `moved`: coordinates and addresses are in
 * the thread's registers, as a tile's place that divisions give; the compiler moves them to uniform registers in a loop
 * that elects a thread, once a box, and may not write them again before the copy has read them. `uniform`: they are
 * there from the start. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int num_rounds = 64, max_boxes = 8, max_box_rows = 64, box_row_bytes = 128;

template <int num_boxes, bool moved>
__global__ void issue(const __grid_constant__ CUtensorMap map, int box_rows, uint32_t *issued, uint32_t *there) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile);
  if (threadIdx.x != 0) return;
  hopper::mbarrier_init(bar, 1);
  hopper::mbarrier_init_fence();
  int column = 0;
  if (moved) { /* not uniform to the compiler */
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(column));
    bar += (uint32_t)column;
    to += (uint32_t)column;
  }
  for (int i = 0; i < num_rounds; i++) {
    uint32_t start = clock32();
    hopper::mbarrier_expect(bar, (uint32_t)(num_boxes * box_rows * box_row_bytes));
#pragma unroll
    for (int box = 0; box < num_boxes; box++)
      hopper::tensor_load_3d(to + (uint32_t)(box * box_rows * box_row_bytes), &map, column,
                             (i * num_boxes + box) * box_rows + column, column, bar);
    uint32_t end = clock32();
    hopper::mbarrier_wait(bar, (uint32_t)i & 1);
    there[i] = clock32() - start;
    issued[i] = end - start;
  }
}

template <int num_boxes, bool moved>
static void measure_boxes(const char *region, size_t region_bytes, uint32_t *issued, uint32_t *there) {
  for (int box_rows : {8, max_box_rows}) {
    CUtensorMap map = hopper::tensor_map(region, 64, region_bytes / box_row_bytes, 1, (uint32_t)box_rows);
    allow_shared(issue<num_boxes, moved>, max_boxes * max_box_rows * box_row_bytes);
    for (int run = 0; run < 2; run++) /* the second finds it in L2 */
      issue<num_boxes, moved><<<1, 32, max_boxes * max_box_rows * box_row_bytes>>>(map, box_rows, issued, there);
    char variant[32];
    snprintf(variant, sizeof variant, "%s_%d_rows", moved ? "moved" : "uniform", box_rows);
    row("tma_issue", variant, "boxes", num_boxes, "issued_p50", median(to_host(issued, num_rounds)), "cycles");
    row("tma_issue", variant, "boxes", num_boxes, "there_p50", median(to_host(there, num_rounds)), "cycles");
  }
  finish();
}

template <int num_boxes>
static void measure(const char *region, size_t region_bytes, uint32_t *issued, uint32_t *there) {
  measure_boxes<num_boxes, false>(region, region_bytes, issued, there);
  measure_boxes<num_boxes, true>(region, region_bytes, issued, there);
}

int main() {
  const size_t region_bytes = (size_t)num_rounds * max_boxes * max_box_rows * box_row_bytes;
  char *region = device_alloc<char>(region_bytes);
  uint32_t *issued = device_alloc<uint32_t>(num_rounds), *there = device_alloc<uint32_t>(num_rounds);
  measure<1>(region, region_bytes, issued, there);
  measure<2>(region, region_bytes, issued, there);
  measure<3>(region, region_bytes, issued, there);
  measure<4>(region, region_bytes, issued, there);
  measure<5>(region, region_bytes, issued, there);
  measure<8>(region, region_bytes, issued, there);
  return 0;
}
