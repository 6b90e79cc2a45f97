/* Whether requests of SMs merge that ask for parts of lines. Clusters of eight CTAs, one an SM, so inside one GPC: a
 * barrier of the cluster, then each CTA asks for the cluster's tile of 16 KiB and waits for all of it; `apart` N: CTA r
 * of the cluster begins N r cycles later (x). As many clusters as fit, each with its own 512 KiB, which it has read
 * once before (16384 sectors a cluster, to be taken off both counts below).
 *
 * `ld_`, `cp_async_`: 16 bytes a thread, past L1; a warp's instruction asks for 4 whole lines (`whole`) or for halves
 * of 8: the first ones only (`first`), the second ones by the next instruction (`next`), or by one half a tile later
 * (`far`). `tma_`: boxes of 64 rows, promoted to nothing, 128 or 256 bytes: rows of 128 bytes at once (`whole`), their
 * halves one behind the other (`next`) or the first only (`first`), rows of 256 bytes by halves (`pair`), the first
 * only (`pair_first`), rows of 192 bytes as 128 and 64 (`192`).
 *
 * Run under ncu with --profile: sectors that the SMs took in (l1tex__m_xbar2l1tex_read_bytes / 32) over L2 lookups
 * (lts__t_sectors_srcunit_tex_op_read). */
#include <cooperative_groups.h>

#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int cluster_ctas = 8, num_steps = 256, num_warps = 8;
constexpr int tile_bytes = 16384, region_bytes = 512 * 1024, region_tiles = region_bytes / tile_bytes;

enum class Asks { whole, first, next, far };

/* Where lane `lane` of the warp's `i`-th instruction of a tile finds its 16 bytes; a warp has 2 KiB of it. */
__device__ __forceinline__ int place_of(Asks asks, int warp, int i, int lane) {
  int base = warp * (tile_bytes / num_warps);
  if (asks == Asks::whole) return base + i * 512 + lane * 16;
  int lines = 0, half = 0;
  switch (asks) {
    case Asks::first:
      lines = i, half = 0;
      break;
    case Asks::next:
      lines = i / 2, half = i % 2;
      break;
    default:
      lines = i % 2, half = i / 2;
      break;
  }
  return base + lines * 1024 + lane / 4 * 128 + half * 64 + lane % 4 * 16;
}

__device__ __forceinline__ void warm(const char *region, uint32_t rank, uint32_t *sink) {
  uint32_t seen = 0;
  for (int at = (int)(rank * blockDim.x + threadIdx.x) * 16; at < region_bytes;
       at += (int)blockDim.x * 16 * cluster_ctas) {
    uint4 v = __ldcg((const uint4 *)(region + at));
    seen ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (seen == 0x12345678) *sink = seen;
}

__device__ __forceinline__ void wait_until(uint32_t start, uint32_t cycles) {
  while (clock32() - start < cycles)
    ;
}

template <bool async>
__global__ __launch_bounds__(32 * num_warps) void sweep_by_threads(const char *buffer, Asks asks, int apart_cycles,
                                                                   uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tile[];
  namespace cg = cooperative_groups;
  cg::cluster_group cluster = cg::this_cluster();
  const char *region = buffer + (size_t)(blockIdx.x / cluster_ctas) * region_bytes;
  warm(region, cluster.block_rank(), sink);
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, count = asks == Asks::first ? 2 : 4;
  uint32_t sum = 0;
  for (int step = 0; step < num_steps; step++) {
    const char *from = region + (size_t)(step % region_tiles) * tile_bytes;
    cluster.sync();
    wait_until(clock32(), cluster.block_rank() * (uint32_t)apart_cycles);
    uint4 v[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i >= count) break;
      int at = place_of(asks, warp, i, lane);
      if (async)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(hopper::smem(tile + at)), "l"(from + at)
                     : "memory");
      else
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                     : "l"(from + at)
                     : "memory");
    }
    if (async) asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 4; i++) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    __syncthreads();
  }
  if (sum == 0x12345678) *sink = sum;
}

/* As hopper::tensor_load_3d, with an L2 cache policy. */
__device__ __forceinline__ void hinted_load_3d(uint32_t to, const CUtensorMap *map, int column, int row, uint32_t bar,
                                               uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(map), "r"(bar), "r"(column), "r"(row), "r"(0), "l"(policy)
      : "memory");
}

/* Boxes of 64 rows; every `boxes_a_row` of them lie side by side, 64 or 32 columns apart. */
struct Boxes {
  int count, a_row, columns_apart, bytes;
};

__global__ void sweep_by_boxes(const __grid_constant__ CUtensorMap map, Boxes boxes, int rows_a_region,
                               int apart_cycles, uint64_t policy, const char *buffer, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  namespace cg = cooperative_groups;
  cg::cluster_group cluster = cg::this_cluster();
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile);
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init_fence();
  }
  int region = (int)blockIdx.x / cluster_ctas;
  warm(buffer + (size_t)region * region_bytes, cluster.block_rank(), sink);
  int rows_a_step = boxes.count / boxes.a_row * 64;
  for (int step = 0; step < num_steps; step++) {
    cluster.sync();
    if (threadIdx.x != 0) continue;
    wait_until(clock32(), cluster.block_rank() * (uint32_t)apart_cycles);
    hopper::mbarrier_expect(bar, (uint32_t)(boxes.count * boxes.bytes));
    int row = region * rows_a_region + step * rows_a_step % (rows_a_region / rows_a_step * rows_a_step);
    for (int box = 0; box < boxes.count; box++) {
      uint32_t box_to = to + (uint32_t)(box * 8192);
      int column = box % boxes.a_row * boxes.columns_apart, box_row = row + box / boxes.a_row * 64;
      if (policy)
        hinted_load_3d(box_to, &map, column, box_row, bar, policy);
      else
        hopper::tensor_load_3d(box_to, &map, column, box_row, 0, bar);
    }
    hopper::mbarrier_wait(bar, (uint32_t)step & 1);
  }
}

int main() {
  int shared = whole_sm_bytes;
  allow_shared(sweep_by_threads<false>, shared);
  allow_shared(sweep_by_threads<true>, shared);
  allow_shared(sweep_by_boxes, shared);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster_ctas;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(32);
  config.gridDim = dim3(cluster_ctas);
  config.dynamicSmemBytes = (size_t)shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, sweep_by_boxes, &config));
  config.gridDim = dim3((unsigned)(clusters * cluster_ctas));
  char *buffer = device_alloc<char>((size_t)(clusters + 1) * region_bytes);
  uint32_t *sink = device_alloc<uint32_t>(1);
  const struct {
    const char *name;
    Asks asks;
  } parts[] = {{"whole", Asks::whole}, {"first", Asks::first}, {"next", Asks::next}, {"far", Asks::far}};
  config.blockDim = dim3(32 * num_warps);
  for (bool async : {false, true})
    for (const auto &part : parts)
      for (int apart : {0, 8, 24}) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", async ? "cp_async" : "ld", part.name);
        const char *const_buffer = buffer;
        CUDA_CHECK(cudaLaunchKernelEx(&config, async ? sweep_by_threads<true> : sweep_by_threads<false>, const_buffer,
                                      part.asks, apart, sink));
        finish();
        row("half_lines", name, "apart_cycles", apart, "clusters", clusters, "1");
      }
  config.blockDim = dim3(32);
  const struct {
    const char *name;
    uint64_t columns;
    uint32_t box_columns;
    Boxes boxes;
  } shapes[] = {{"whole", 64, 64, {2, 1, 0, 8192}},       {"first", 64, 32, {2, 1, 0, 4096}},
                {"next", 64, 32, {4, 2, 32, 4096}},       {"pair", 128, 64, {2, 2, 64, 8192}},
                {"pair_first", 128, 64, {2, 1, 0, 8192}}, {"192", 96, 64, {2, 2, 64, 8192}}};
  const struct {
    const char *name;
    CUtensorMapL2promotion promotion;
    uint64_t policy;
  } promotions[] = {{"", CU_TENSOR_MAP_L2_PROMOTION_NONE, 0},
                    {"_promotion_128", CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 0},
                    {"_promotion_256", CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 0},
                    {"_evict_normal", CU_TENSOR_MAP_L2_PROMOTION_NONE, 0x1000000000000000},
                    {"_evict_first", CU_TENSOR_MAP_L2_PROMOTION_NONE, 0x12F0000000000000},
                    {"_evict_last", CU_TENSOR_MAP_L2_PROMOTION_NONE, 0x14F0000000000000}};
  for (const auto &promotion : promotions)
    for (const auto &shape : shapes) {
      uint64_t rows = (uint64_t)clusters * region_bytes / (shape.columns * 2);
      int rows_a_region = (int)(region_bytes / (shape.columns * 2));
      CUtensorMap map = hopper::tensor_map(buffer, shape.columns, rows, 1, 64, shape.box_columns, promotion.promotion);
      for (int apart : {0, 8, 24}) {
        char name[64];
        snprintf(name, sizeof name, "tma_%s%s", shape.name, promotion.name);
        const char *const_buffer = buffer;
        CUDA_CHECK(cudaLaunchKernelEx(&config, sweep_by_boxes, map, shape.boxes, rows_a_region, apart, promotion.policy,
                                      const_buffer, sink));
        finish();
        row("half_lines", name, "apart_cycles", apart, "clusters", clusters, "1");
      }
    }
  return 0;
}
