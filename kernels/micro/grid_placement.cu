/* On which SMs the CTAs of a grid begin that has fewer than the SMs hold: by CTAs an SM, by CTAs in the grid, and in
 * clusters. `gpc` names a GPC by its first SM; SMs that clusters do not reach are groups of two (clusters of 2). */
#include "gpc_map.h"
using namespace bench;

__global__ void where(uint32_t *sms) {
  extern __shared__ uint32_t unused[];
  if (threadIdx.x == 0) sms[blockIdx.x] = sm_id();
  for (uint64_t begin = cycles64(); cycles64() - begin < 30000;)
    ;
}

static void place(const GpcMap &map, int num_ctas, int per_sm, int cluster) {
  static uint32_t *sms = device_alloc<uint32_t>(1024);
  int shared_bytes = per_sm == 1 ? whole_sm_bytes : whole_sm_bytes / per_sm - 2048;
  allow_shared(where, whole_sm_bytes);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {(unsigned)cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)num_ctas);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = (size_t)shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = cluster > 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, where, sms));
  char variant[64];
  if (cluster > 1)
    snprintf(variant, sizeof variant, "%d_ctas_in_clusters_of_%d", num_ctas, cluster);
  else
    snprintf(variant, sizeof variant, "%d_ctas_%d_per_sm", num_ctas, per_sm);
  std::vector<uint32_t> of_cta = to_host(sms, (size_t)num_ctas);
  for (size_t i = 0; i < of_cta.size(); i++) row("grid_placement", variant, "cta", (double)i, "sm", of_cta[i], "1");
  std::vector<int> of_gpc((size_t)map.num_gpcs());
  for (uint32_t sm : of_cta) of_gpc[(size_t)map.gpc_of(sm)]++;
  for (size_t gpc = 0; gpc < of_gpc.size(); gpc++) {
    int first = 0;
    while (map.gpc_of((uint32_t)first) != (int)gpc) first++;
    row("grid_placement", variant, "gpc", first, "ctas", of_gpc[gpc], "1");
  }
}

int main() {
  GpcMap map;
  for (int num_ctas : {8, 18, 36, 64, 72, 96, 120, 132}) place(map, num_ctas, 1, 1);
  for (int num_ctas : {36, 150, 200, 250}) place(map, num_ctas, 2, 1);
  for (int num_ctas : {16, 32, 64}) place(map, num_ctas, 1, 2);
  for (int num_ctas : {16, 32, 64}) place(map, num_ctas, 1, 8);
  finish();
  return 0;
}
