// What of flash3_fwd cannot exist on any GPU.
#include "workloads/flash3.h"

enum { MMA_K_BYTES = 32, VECTOR_BYTES = 16 };

bool ftl_flash3_has_producer(const ftl_spec *spec) { return spec->value[FTL_PARAM_producer] != 0; }

// The CTAs of a cluster walk the same keys in step.
static ftl_status check_cluster(const ftl_spec *spec, ftl_error *error) {
  ftl_attention a = ftl_attention_of(spec);
  int32_t cluster = ftl_spec_cluster(spec).m;
  if (cluster == 1) return FTL_OK;
  if (!ftl_flash3_has_producer(spec))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster=%dx1: a producer waits for the others' stages; allowed is "
                         "producer=true",
                         cluster);
  if (a.causal || a.window > 0 || spec->value[FTL_PARAM_lengths] != 0 || spec->value[FTL_PARAM_mask] != FTL_MASK_NONE)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster=%dx1: with causal, window, lengths or mask its query tiles see different keys",
                         cluster);
  if (a.num_m_tiles % cluster == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "cluster=%dx1: a head has %lld query tiles of block_m=%d; allowed is a "
                       "multiple of the cluster",
                       cluster, (long long)a.num_m_tiles, a.block_m);
}

// Without a producer.
static ftl_status check_stages(const ftl_spec *spec, ftl_error *error) {
  if (ftl_flash3_has_producer(spec)) return FTL_OK;
  if (ftl_dtype_is_fp8(ftl_spec_dtype(spec)))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "dtype=fp8_e4m3: a producer transposes values; allowed is producer=true");
  if (spec->value[FTL_PARAM_num_stages] >= 2) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "num_stages=%lld: without a producer keys come while those before are multiplied, at least 2",
                       (long long)spec->value[FTL_PARAM_num_stages]);
}

static ftl_status check_producer_forms(const ftl_spec *spec, ftl_error *error) {
  bool is_pingpong = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_PINGPONG;
  if (is_pingpong && !ftl_flash3_has_producer(spec))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "producer=false: nobody takes turns without a producer; allowed is schedule=stages");
  if (!is_pingpong && spec->value[FTL_PARAM_turns] == FTL_TURNS_SOFTMAX)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "turns=softmax: under schedule=stages nobody takes turns; allowed is schedule=pingpong");
  if (ftl_flash3_has_producer(spec) || spec->value[FTL_PARAM_q_stages] == 1) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "q_stages=%lld: nobody fetches queries ahead; allowed is producer=true",
                       (long long)spec->value[FTL_PARAM_q_stages]);
}

// One warpgroup has nobody to take turns with.
static ftl_status check_groups(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t num_warps = v[FTL_PARAM_num_warps], groups = num_warps / FTL_FLASH3_GROUP_WARPS;
  int64_t least = v[FTL_PARAM_schedule] == FTL_SCHEDULE_PINGPONG ? 2 : 1;
  if (num_warps % FTL_FLASH3_GROUP_WARPS != 0 || groups < least || groups > FTL_FLASH3_MAX_GROUPS)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_warps=%lld: flash3_fwd has two or three consumer warpgroups, 8 or 12 warps, and under "
                         "schedule=stages one as well, 4 warps",
                         (long long)num_warps);
  if (v[FTL_PARAM_block_m] % (groups * FTL_FLASH3_WGMMA_ROWS) == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_m=%lld num_warps=%lld: each consumer warpgroup needs a multiple of 64 rows",
                       (long long)v[FTL_PARAM_block_m], (long long)num_warps);
}

static ftl_status check_operands(const ftl_spec *spec, ftl_error *error) {
  int element_bytes = ftl_dtype_bytes(ftl_spec_dtype(spec)), mma_k = MMA_K_BYTES / element_bytes;
  long long block_n = spec->value[FTL_PARAM_block_n];
  const struct {
    const char *name;
    long long columns;
  } heads[] = {{"head_dim", spec->value[FTL_PARAM_head_dim]}, {"head_dim_v", ftl_spec_head_dim_v(spec)}};
  if (block_n % mma_k != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: it is the K of the second matrix product, a multiple of %d", block_n, mma_k);
  for (int i = 0; i < 2; i++)
    if (heads[i].columns * element_bytes % VECTOR_BYTES != 0)
      return ftl_error_set(error, FTL_INFEASIBLE, "%s=%lld: 16-byte rows of fp8 are a multiple of %d", heads[i].name,
                           heads[i].columns, VECTOR_BYTES / element_bytes);
  if (element_bytes == 1 && spec->value[FTL_PARAM_num_stages] < 2)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld dtype=fp8_e4m3: values are transposed while the next tile comes, at least 2",
                         (long long)spec->value[FTL_PARAM_num_stages]);
  if (element_bytes == 1 && spec->value[FTL_PARAM_turns] == FTL_TURNS_SOFTMAX)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "turns=softmax dtype=fp8_e4m3: a producer that transposes values is a step ahead; allowed is "
                         "turns=products");
  if (element_bytes == 1 && ftl_spec_cluster(spec).m > 1)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster=%dx1 dtype=fp8_e4m3: values that a cluster shares are not transposed here",
                         ftl_spec_cluster(spec).m);
  return FTL_OK;
}

ftl_status ftl_flash3_check(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  ftl_status status = check_cluster(spec, error);
  if (status == FTL_OK) status = check_groups(spec, error);
  if (status != FTL_OK) return status;
  status = check_operands(spec, error);
  if (status == FTL_OK) status = check_stages(spec, error);
  if (status != FTL_OK) return status;
  status = check_producer_forms(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_mma] != FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "flash3_fwd overlaps asynchronous products, which needs mma=wgmma (compute capability 9.0)");
  if (v[FTL_PARAM_copy] != FTL_SPEC_COPY_TMA)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "flash3_fwd has a producer warp that copies tiles, which needs copy=tma (compute capability "
                         "9.0)");
  return FTL_OK;
}
