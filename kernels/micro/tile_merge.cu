/* How many requests of SMs merge that ask for one tile at the same time, by the tile's size (x, KiB), and whether those
 * of multicast do. Clusters of eight CTAs, one an SM, so inside one GPC: a barrier of the cluster, then each CTA copies
 * the cluster's tile by TMA in boxes of 8 KiB, one behind the other, and waits for all. `alone`: one cluster; `all`: as
 * many as fit, each with its own 512 KiB, which it has read once before (16384 sectors a cluster, to be taken off both
 * counts below). `apart_N`: CTA r of the cluster begins N r cycles later. `multicast_N`: every N-th CTA asks, for
 * itself and the N - 1 behind it. Run under ncu with --profile: sectors that the SMs took in
 * (l1tex__m_xbar2l1tex_read_bytes / 32) over L2 lookups (lts__t_sectors_srcunit_tex_op_read); without, how long a tile
 * takes and its deviation inside the clusters. */
#include <cooperative_groups.h>

#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int cluster_ctas = 8, box_rows = 64, box_bytes = box_rows * 128, max_boxes = 16, num_steps = 256;
constexpr int region_boxes = 64; /* 512 KiB */

__device__ __forceinline__ void multicast_load(uint32_t to, const CUtensorMap *map, int row, uint32_t bar,
                                               uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %3}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(bar), "r"(0), "r"(row), "h"(ctas)
      : "memory");
}

__global__ void sweep_tiles(const __grid_constant__ CUtensorMap map, int num_boxes, int apart_cycles, int takers,
                            uint32_t *took, const char *buffer) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  namespace cg = cooperative_groups;
  cg::cluster_group cluster = cg::this_cluster();
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile);
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init_fence();
  }
  int region = (int)blockIdx.x / cluster_ctas * region_boxes;
  uint32_t seen = 0;
  for (int at = (int)(cluster.block_rank() * 32 + threadIdx.x) * 16; at < region_boxes * box_bytes;
       at += 32 * 16 * cluster_ctas) {
    uint4 v = __ldcg((const uint4 *)(buffer + (size_t)region * box_bytes + at));
    seen ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (seen == 0x12345678) *took = seen;
  uint32_t rank = cluster.block_rank(), late = rank * (uint32_t)apart_cycles;
  bool asks = rank % (uint32_t)takers == 0;
  uint16_t ctas = (uint16_t)(((1u << takers) - 1) << rank);
  for (int step = 0; step < num_steps; step++) {
    cluster.sync();
    uint32_t start = clock32();
    if (threadIdx.x == 0) {
      while (clock32() - start < late)
        ;
      hopper::mbarrier_expect(bar, (uint32_t)(num_boxes * box_bytes));
      for (int box = 0; box < num_boxes && asks; box++) {
        int row = (region + (step * num_boxes + box) % region_boxes) * box_rows;
        uint32_t box_to = to + (uint32_t)(box * box_bytes);
        if (takers > 1)
          multicast_load(box_to, &map, row, bar, ctas);
        else
          hopper::tensor_load_3d(box_to, &map, 0, row, 0, bar);
      }
      hopper::mbarrier_wait(bar, (uint32_t)step & 1);
      took[blockIdx.x * num_steps + (uint32_t)step] = clock32() - start;
    }
  }
}

static void report(const char *name, double kib, const std::vector<uint32_t> &took, int clusters) {
  double sum = 0, variance = 0;
  for (int c = 0; c < clusters; c++)
    for (int step = num_steps / 2; step < num_steps; step++) {
      double mean = 0, square = 0;
      for (int r = 0; r < cluster_ctas; r++) {
        double t = took[(size_t)((c * cluster_ctas + r) * num_steps + step)];
        mean += t / cluster_ctas;
        square += t * t / cluster_ctas;
      }
      sum += mean;
      variance += square - mean * mean;
    }
  int n = clusters * num_steps / 2;
  row("tile_merge", name, "kib", kib, "took", sum / n, "cycles");
  row("tile_merge", name, "kib", kib, "took_inside", sqrt(variance / n), "cycles");
}

int main(int argc, char **argv) {
  bool profile = has_flag(argc, argv, "--profile");
  int shared = max_boxes * box_bytes;
  allow_shared(sweep_tiles, shared);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster_ctas;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(32);
  config.dynamicSmemBytes = (size_t)shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  config.gridDim = dim3(cluster_ctas);
  int most = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&most, sweep_tiles, &config));
  char *buffer = device_alloc<char>((size_t)most * region_boxes * box_bytes);
  uint32_t *took = device_alloc<uint32_t>((size_t)most * cluster_ctas * num_steps);
  CUtensorMap map = hopper::tensor_map(buffer, 64, (uint64_t)most * region_boxes * box_rows, 1, box_rows);
  const struct {
    const char *name;
    int apart, takers;
  } ways[] = {{"apart_0", 0, 1},     {"apart_8", 8, 1},     {"apart_24", 24, 1},
              {"multicast_2", 0, 2}, {"multicast_4", 0, 4}, {"multicast_8", 0, 8}};
  for (int clusters : {1, most})
    for (const auto &way : ways)
      for (int boxes : {1, 2, 4, 8, 16}) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", clusters == 1 ? "alone" : "all", way.name);
        config.gridDim = dim3((unsigned)(clusters * cluster_ctas));
        CUDA_CHECK(cudaLaunchKernelEx(&config, sweep_tiles, map, boxes, way.apart, way.takers, took, buffer));
        finish();
        double kib = boxes * box_bytes / 1024;
        if (profile)
          row("tile_merge", name, "kib", kib, "clusters", clusters, "1");
        else
          report(name, kib, to_host(took, (size_t)(clusters * cluster_ctas * num_steps)), clusters);
      }
  return 0;
}
