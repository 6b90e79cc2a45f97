// What of block_product.h cannot exist on any GPU.
#include "workloads/attention.h"
#include "workloads/block_product.h"

enum { GROUP_COLUMNS = 16, VECTOR_BYTES = 16, MMA_K_BYTES = 32 };

ftl_status ftl_block_product_check_vectors(ftl_dtype dtype, ftl_param param, int64_t numbers, ftl_error *error) {
  int vector = VECTOR_BYTES / ftl_dtype_bytes(dtype) * ftl_dtype_numbers(dtype);
  if (numbers % vector == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "%s=%lld: 16-byte copies need rows of a multiple of %d elements",
                       ftl_param_get(param)->name, (long long)numbers, vector);
}

// What products of a type add up in, and how their factors are stored.
static ftl_status check_types(const ftl_spec *spec, const ftl_block_product *p, ftl_error *error) {
  char dtype[32], sum[32];
  ftl_spec_text(spec, FTL_PARAM_dtype, dtype);
  bool integers = ftl_dtype_is_integer(p->dtype), half = p->dtype == FTL_FP16 || ftl_dtype_is_fp8(p->dtype);
  bool adds = integers ? p->sum_dtype == FTL_INT32 : p->sum_dtype == FTL_FP32 || (half && p->sum_dtype == FTL_FP16);
  if (!adds)
    return ftl_error_set(error, FTL_INFEASIBLE, "acc_dtype=%s: products of %s add up in %s",
                         ftl_spec_text(spec, FTL_PARAM_acc_dtype, sum), dtype,
                         integers ? "int32"
                         : half   ? "fp32 or fp16"
                                  : "fp32");
  if (ftl_dtype_bytes(p->dtype) != 2 && (p->transpose_a || !p->transpose_b))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "dtype=%s: tensor instructions take A [m][k] and B [n][k] of this type, transpose_a=false and "
                         "transpose_b=true",
                         dtype);
  if (p->num_splits > 1 && p->sum_dtype != FTL_FP32)
    return ftl_error_set(error, FTL_INFEASIBLE, "splits=%lld acc_dtype=%s: parts of k are added in fp32",
                         (long long)p->num_splits, ftl_dtype_name(p->sum_dtype));
  return FTL_OK;
}

bool ftl_block_product_needs_wgmma(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  return v[FTL_PARAM_groups_n] > 1 || v[FTL_PARAM_persistent] != 0;
}

static ftl_status check_size(const ftl_block_product *p, ftl_error *error) {
  int64_t flops = 2 * p->batch * ftl_dtype_numbers(p->dtype);
  if (__builtin_mul_overflow(flops, p->m, &flops) || __builtin_mul_overflow(flops, p->n, &flops) ||
      __builtin_mul_overflow(flops, p->k, &flops))
    return ftl_error_set(error, FTL_BAD_INPUT, "k=%lld: 2 * batch * m * n * k is more than 2^63 FLOPs",
                         (long long)p->k);
  return FTL_OK;
}

// Warps side by side have whole operand blocks of C each, which they store by themselves.
static ftl_status check_warps_n(const ftl_spec *spec, const ftl_block_product *p, ftl_error *error) {
  int64_t num_warps = spec->value[FTL_PARAM_num_warps];
  int warps = spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA ? 4 * p->warps_n : p->warps_n;
  if (p->warps_n == 1) return FTL_OK;
  if (p->has_producer)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "warps_n=%d: with mma=wgmma copy=tma groups_n is how warps divide columns", p->warps_n);
  if (num_warps % warps == 0 && p->block_n % (GROUP_COLUMNS * p->warps_n) == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "warps_n=%d: num_warps=%lld must be a multiple of %d, and block_n=%d of %d", p->warps_n,
                       (long long)num_warps, warps, p->block_n, GROUP_COLUMNS * p->warps_n);
}

// Each group of warps multiplies as a kernel of its own would.
static ftl_status check_warps(const ftl_spec *spec, const ftl_block_product *p, ftl_error *error) {
  if (p->groups_n > 1 && (!p->has_producer || p->block_n % (p->groups_n * GROUP_COLUMNS) != 0))
    return ftl_error_set(error, FTL_INFEASIBLE, "groups_n=%d: needs mma=wgmma copy=tma and block_n a multiple of %d",
                         p->groups_n, p->groups_n * GROUP_COLUMNS);
  if (spec->value[FTL_PARAM_num_warps] % p->groups_n != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "groups_n=%d: num_warps=%lld must be a multiple", p->groups_n,
                         (long long)spec->value[FTL_PARAM_num_warps]);
  ftl_spec of_group = *spec;
  of_group.value[FTL_PARAM_num_warps] /= p->groups_n;
  return ftl_attention_check_warps(&of_group, error);
}

static ftl_status check_steps(const ftl_spec *spec, const ftl_block_product *p, ftl_error *error) {
  int64_t block_k = spec->value[FTL_PARAM_block_k], refill = spec->value[FTL_PARAM_refill];
  int mma_k = MMA_K_BYTES / ftl_dtype_bytes(p->dtype) * ftl_dtype_numbers(p->dtype);
  if (block_k % mma_k != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "block_k=%lld: tensor instructions need a multiple of %d",
                         (long long)block_k, mma_k);
  char text[32];
  bool cannot_wait = p->has_producer || p->num_stages == 1;
  bool is_none = refill == FTL_REFILL_BEHIND || refill == FTL_REFILL_AMID || refill == FTL_REFILL_JOINT;
  if (is_none || (refill == FTL_REFILL_LATE && cannot_wait))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "refill=%s: products refill early, or late without a producer and with num_stages >= 2",
                         ftl_spec_text(spec, FTL_PARAM_refill, text));
  return FTL_OK;
}

bool ftl_block_product_can_stage(const ftl_block_product *p) {
  bool is_whole = p->block_n / p->groups_n % FTL_PRODUCT_SMALL_PIECE_COLUMNS == 0 && p->num_splits == 1;
  return is_whole && ftl_dtype_bytes(p->c_dtype) == 2 && p->sum_dtype == FTL_FP32;
}

static ftl_status check_tiles(const ftl_block_product *p, ftl_error *error) {
  if (p->part_k > 0 && p->cluster.m * p->cluster.n > 1)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster=%dx%d: its CTAs share whole tiles, by mma=wgmma copy=tma; code=buffered copies parts "
                         "of a step",
                         p->cluster.m, p->cluster.n);
  int side = p->m_first ? p->cluster.m : p->cluster.n;
  if (p->tile_strip % side != 0)
    return ftl_error_set(error, FTL_BAD_INPUT, "tile_strip=%lld: a multiple of %d, as many tiles as a cluster has",
                         (long long)p->tile_strip, side);
  if (p->stages_c && !ftl_block_product_can_stage(p))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "store=staged: needs columns of each group in whole pieces of %d, results of 16 bits, "
                         "acc_dtype=fp32 and splits=1",
                         FTL_PRODUCT_SMALL_PIECE_COLUMNS);
  if (p->persistent && !p->has_producer)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "persistent: CTAs that walk several tiles need mma=wgmma copy=tma here");
  return FTL_OK;
}

ftl_status ftl_block_product_check(const ftl_spec *spec, const ftl_block_product *p, ftl_error *error) {
  ftl_status status = check_size(p, error);
  if (status == FTL_OK) status = check_warps_n(spec, p, error);
  if (status == FTL_OK) status = check_warps(spec, p, error);
  if (status == FTL_OK) status = check_types(spec, p, error);
  if (status == FTL_OK) status = check_steps(spec, p, error);
  return status == FTL_OK ? check_tiles(p, error) : status;
}
