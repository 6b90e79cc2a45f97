#include "lower/chip_features.h"

#include "arch/topology.h"
#include "lower/fragment.h"
#include "lower/shared_layout.h"

static ftl_status lacks(const ftl_arch *arch, const char *what, const char *since, ftl_error *error) {
  return ftl_error_set(error, FTL_INFEASIBLE, "%s needs %s, which %s lacks", what, since, arch->name);
}

ftl_status ftl_lower_resolve(const ftl_arch *arch, ftl_lower_options *options, ftl_error *error) {
  if (options->mma == FTL_MMA_AUTO) options->mma = arch->sm_has_wgmma ? FTL_MMA_WGMMA : FTL_MMA_MMA;
  if (options->copy == FTL_COPY_AUTO) {
    bool tma = arch->sm_has_tma && options->mma == FTL_MMA_WGMMA;
    options->copy = tma ? FTL_COPY_TMA : arch->sm_has_cp_async ? FTL_COPY_CP_ASYNC : FTL_COPY_LDG;
  }
  if (options->mma == FTL_MMA_WGMMA && !arch->sm_has_wgmma)
    return lacks(arch, "mma=wgmma", "warpgroup tensor instructions (compute capability 9.0)", error);
  if (options->copy == FTL_COPY_TMA && !arch->sm_has_tma)
    return lacks(arch, "copy=tma", "a tensor memory accelerator (compute capability 9.0)", error);
  if (options->copy == FTL_COPY_CP_ASYNC && !arch->sm_has_cp_async)
    return lacks(arch, "copy=cp_async", "asynchronous copies (compute capability 8.0)", error);
  return FTL_OK;
}

static ftl_status check_dtypes(const ftl_tile_program *tile, const ftl_arch *arch, ftl_error *error) {
  for (int32_t t = 0; t < tile->num_tensors; t++) {
    ftl_dtype dtype = tile->tensors[t].dtype;
    if (dtype == FTL_BF16 && arch->tensor_bf16_fma_per_cycle == 0)
      return lacks(arch, "dtype=bf16", "bf16 tensor instructions (compute capability 8.0)", error);
    if (ftl_dtype_is_fp8(dtype) && arch->tensor_fp8_fma_per_cycle == 0)
      return lacks(arch, "fp8", "conversions of fp8 (compute capability 8.9)", error);
  }
  return FTL_OK;
}

// createpolicy and access policy windows.
static ftl_status check_l2_priorities(const ftl_tile_program *tile, const ftl_arch *arch, ftl_error *error) {
  enum { SINCE_COMPUTE_CAPABILITY = 80 };
  for (int32_t t = 0; t < tile->num_tensors; t++) {
    ftl_l2_priority priority = tile->tensors[t].l2_priority;
    if (priority == FTL_L2_EVICT_NORMAL) continue;
    bool has_set_aside = priority != FTL_L2_EVICT_LAST || arch->l2_persisting_max_bytes > 0;
    if (arch->chip_compute_capability < SINCE_COMPUTE_CAPABILITY || !has_set_aside)
      return ftl_error_set_about(error, FTL_INFEASIBLE, tile->name,
                                 ": an L2 priority of tensor %s needs compute capability 8.0 and, "
                                 "to stay, an L2 set-aside, which %s lacks",
                                 tile->tensors[t].name, arch->name);
  }
  return FTL_OK;
}

// Clusters came with TMA. CTAs that share loads wait for each other's readers at mbarriers, which producers have.
static ftl_status check_cluster(const ftl_tile_program *tile, const ftl_arch *arch, ftl_copy copy, ftl_error *error) {
  enum { SWIZZLE_ROWS = 8 };
  int32_t cluster = tile->cluster_ctas;
  if (cluster <= 1) return FTL_OK;
  if (!arch->sm_has_tma) return lacks(arch, "cluster", "thread-block clusters (compute capability 9.0)", error);
  int32_t most = 0;
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++) {
    int32_t sms = ftl_arch_sms_for_clusters(arch, gpc, cluster);
    if (sms > most) most = sms;
  }
  if (cluster > most)
    return ftl_error_set(error, FTL_INFEASIBLE, "cluster of %d CTAs: no GPC of %s has more than %d SMs for one",
                         cluster, arch->name, most);
  if (copy != FTL_COPY_TMA || tile->num_roles < 2)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster of %d CTAs: %s needs copy=tma and a producer warp to share loads", cluster,
                         tile->name);
  for (int32_t r = 0; r < tile->num_rings; r++) {
    const ftl_ring *ring = &tile->rings[r];
    if (ring->multicast.num_ctas > 1 && ring->rows % (ring->multicast.num_ctas * SWIZZLE_ROWS) != 0)
      return ftl_error_set(error, FTL_INFEASIBLE,
                           "cluster of %d CTAs: %d of them share tiles of %d rows of ring %s; each "
                           "must copy a multiple of %d",
                           cluster, ring->multicast.num_ctas, ring->rows, ring->name, SWIZZLE_ROWS);
  }
  return FTL_OK;
}

static ftl_status check_threads(const ftl_tile_program *tile, const ftl_arch *arch, ftl_error *error) {
  int32_t num_threads = ftl_tile_num_warps(tile) * FTL_WARP_LANES;
  if (num_threads <= arch->sm_max_threads_per_cta) return FTL_OK;
  return ftl_error_set_about(error, FTL_INFEASIBLE, tile->name, " needs %d threads a CTA, %s allows %lld", num_threads,
                             arch->name, (long long)arch->sm_max_threads_per_cta);
}

// Empty mbarriers, and so producers beside consumers, exist with TMA only.
static ftl_status check_roles(const ftl_tile_program *tile, ftl_copy copy, ftl_error *error) {
  if (tile->num_roles == 1 || copy == FTL_COPY_TMA) return FTL_OK;
  return ftl_error_set_about(error, FTL_INFEASIBLE, tile->name,
                             " has producer and consumer warps, which needs copy=tma");
}

// Copies and fragments move 16 bytes at a time; but numbers of columns those of a lane, by cp.async.
static ftl_status check_ring_rows(const ftl_tile_program *tile, ftl_copy copy, ftl_error *error) {
  for (int32_t r = 0; r < tile->num_rings; r++) {
    const ftl_ring *ring = &tile->rings[r];
    int32_t row_bytes = ring->columns * ftl_dtype_bytes(ring->dtype);
    if (copy == FTL_COPY_CP_ASYNC && ftl_ring_holds_columns(ring) && ring->rows % FTL_OPERAND_COLUMNS == 0) continue;
    if (row_bytes % FTL_CHUNK_BYTES != 0)
      return ftl_error_set_about(error, FTL_INFEASIBLE, tile->name,
                                 ": ring %s has rows of %d bytes; allowed are multiples of %d", ring->name, row_bytes,
                                 FTL_CHUNK_BYTES);
  }
  return FTL_OK;
}

// red.global.add.v2.f32.
static ftl_status check_atomics(const ftl_tile_program *tile, const ftl_arch *arch, ftl_error *error) {
  enum { PAIRS_SINCE_COMPUTE_CAPABILITY = 90 };
  if (arch->chip_compute_capability >= PAIRS_SINCE_COMPUTE_CAPABILITY) return FTL_OK;
  for (int32_t i = 0; i < tile->num_ops; i++)
    if (tile->ops[i].kind == FTL_TILE_ATOMIC_ADD && tile->ops[i].add_order == FTL_ADD_IN_PAIRS)
      return lacks(arch, "adding in pairs", "atomics of two words (compute capability 9.0)", error);
  return FTL_OK;
}

ftl_status ftl_lower_check_features(const ftl_tile_program *tile, const ftl_arch *arch, ftl_copy copy,
                                    ftl_error *error) {
  ftl_status status = check_dtypes(tile, arch, error);
  if (status == FTL_OK) status = check_l2_priorities(tile, arch, error);
  if (status == FTL_OK) status = check_threads(tile, arch, error);
  if (status == FTL_OK) status = check_cluster(tile, arch, copy, error);
  if (status == FTL_OK) status = check_roles(tile, copy, error);
  if (status == FTL_OK) status = check_atomics(tile, arch, error);
  return status == FTL_OK ? check_ring_rows(tile, copy, error) : status;
}
