/* What TMA asks of L2 for a box that reaches past the tensor's last column: boxes of 128 rows by 64 columns of halves,
 * one at column 0 and one at column 64 of a tensor of `columns` columns (x; head_dim 96 in a kernel for 128), every row
 * of it once. `box_32`: the second has 32 columns. Run under ncu with --profile: sectors that the SM took in
 * (l1tex__m_xbar2l1tex_read_bytes / 32) and L2 lookups (lts__t_sectors_srcunit_tex_op_read) over the rows. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int box_rows = 128, num_tiles = 64, num_rows = box_rows * num_tiles, box_bytes = box_rows * 128;

__global__ void sweep_boxes(const __grid_constant__ CUtensorMap first, const __grid_constant__ CUtensorMap second,
                            int second_bytes) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile);
  if (threadIdx.x != 0) return;
  hopper::mbarrier_init(bar, 1);
  hopper::mbarrier_init_fence();
  for (int i = 0; i < num_tiles; i++) {
    hopper::mbarrier_expect(bar, (uint32_t)(box_bytes + second_bytes));
    hopper::tensor_load_3d(to, &first, 0, i * box_rows, 0, bar);
    if (second_bytes > 0) hopper::tensor_load_3d(to + box_bytes, &second, 64, i * box_rows, 0, bar);
    hopper::mbarrier_wait(bar, (uint32_t)i & 1);
  }
}

static void measure(const char *name, const char *region, uint64_t columns, uint32_t second_columns,
                    CUtensorMapL2promotion promotion) {
  CUtensorMap first = hopper::tensor_map(region, columns, num_rows, 1, box_rows, 64, promotion);
  CUtensorMap second =
      second_columns == 32 ? hopper::tensor_map(region, columns, num_rows, 1, box_rows, 32, promotion) : first;
  sweep_boxes<<<1, 32, 2 * box_bytes>>>(first, second, (int)second_columns * 2 * box_rows);
  finish();
  row("tma_columns", name, "columns", (double)columns, "rows", num_rows, "1");
}

int main() {
  char *region = device_alloc<char>((size_t)num_rows * 128 * 2);
  allow_shared(sweep_boxes, 2 * box_bytes);
  for (uint64_t columns : {72, 80, 96, 112, 128}) {
    measure("promotion_none", region, columns, 64, CU_TENSOR_MAP_L2_PROMOTION_NONE);
    measure("promotion_64", region, columns, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
    measure("promotion_128", region, columns, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
    measure("promotion_256", region, columns, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  }
  measure("box_32", region, 96, 32, CU_TENSOR_MAP_L2_PROMOTION_NONE);
  measure("box_32_promotion_128", region, 96, 32, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  measure("first_alone", region, 96, 0, CU_TENSOR_MAP_L2_PROMOTION_NONE);
  measure("first_alone_promotion_128", region, 96, 0, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  return 0;
}
