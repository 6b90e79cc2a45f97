#include "lower/product.h"

#include "base/integer.h"

enum { FP16_BYTES = 2, ROWS = 16, QUAD_PAIRS = 4, QUAD_PAIRS_A_ROW = 2 };

static int64_t dense_rate(const ftl_arch *a, ftl_dtype operands, ftl_dtype accumulator) {
  bool half = accumulator == FTL_FP16;
  switch (operands) {
    case FTL_FP16:
      return half ? a->tensor_fp16_fp16_fma_per_cycle : a->tensor_peak_fma_per_cycle;
    case FTL_BF16:
      return half ? 0 : a->tensor_bf16_fma_per_cycle;
    case FTL_TF32:
      return half ? 0 : a->tensor_tf32_fma_per_cycle;
    case FTL_FP8_E4M3:
    case FTL_FP8_E5M2:
      return half ? a->tensor_fp8_fp16_fma_per_cycle : a->tensor_fp8_fma_per_cycle;
    case FTL_INT8:
      return a->tensor_int8_fma_per_cycle;
    case FTL_INT4X2:
      return a->tensor_int4_fma_per_cycle;
    case FTL_FP32:
    case FTL_INT32:
    case FTL_DTYPE_COUNT:
      break;
  }
  return 0;
}

static const char *who_has(ftl_dtype operands) {
  switch (operands) {
    case FTL_BF16:
    case FTL_TF32:
      return "compute capability 8.0";
    case FTL_FP8_E4M3:
    case FTL_FP8_E5M2:
      return "compute capability 8.9";
    case FTL_INT8:
      return "compute capability 7.5";
    case FTL_INT4X2:
      return "compute capability 7.5 to 8.9";
    default:
      return "no GPU";
  }
}

static const char *type_name(ftl_dtype operands) { return operands == FTL_INT4X2 ? "int4" : ftl_dtype_name(operands); }

// 16-bit sums are named; the others are what products of the type add up in by default.
static ftl_status lacks(const ftl_arch *arch, ftl_dtype operands, ftl_dtype accumulator, ftl_error *error) {
  const char *type = type_name(operands);
  return ftl_error_set(error, FTL_INFEASIBLE, "dtype=%s%s needs %s tensor instructions (%s), which %s lacks", type,
                       accumulator == FTL_FP16 ? " acc_dtype=fp16" : "", type, who_has(operands), arch->name);
}

// Cycles that all machine instructions of one mma.sync over 16 rows hold the tensor pipe of a sub-core: those of fp16,
// by the multiply-adds of both and the published rates of both.
static int64_t interval_cycles(const ftl_arch *arch, int64_t fp16_macs, int64_t macs, int64_t rate) {
  return ftl_divide_up(arch->tensor_mma_fp32_interval_cycles * macs * arch->tensor_peak_fma_per_cycle,
                       fp16_macs * rate);
}

static int64_t num_insts(const ftl_arch *arch, ftl_dtype operands) {
  return ftl_dtype_is_integer(operands) ? ROWS / arch->tensor_mma_int_m : arch->tensor_mma_num_insts;
}

ftl_status ftl_product_of(ftl_product *out, const ftl_arch *arch, ftl_dtype operands, ftl_dtype accumulator,
                          ftl_error *error) {
  *out = (ftl_product){.operands = operands, .accumulator = accumulator};
  ftl_dtype multiplied = ftl_dtype_is_fp8(operands) && !arch->tensor_mma_has_fp8 ? FTL_FP16 : operands;
  int64_t rate = dense_rate(arch, operands, accumulator), mma_rate = dense_rate(arch, multiplied, accumulator);
  if (rate == 0) return lacks(arch, operands, accumulator, error);
  int32_t bytes = ftl_dtype_bytes(operands), numbers = ftl_dtype_numbers(operands);
  int64_t quads = arch->tensor_mma_m == 8 ? QUAD_PAIRS : 1;
  int64_t fp16_macs = arch->tensor_mma_m * arch->tensor_mma_n * arch->tensor_mma_k * quads;
  int64_t macs = fp16_macs * FP16_BYTES / ftl_dtype_bytes(multiplied) * numbers;
  int64_t parts = num_insts(arch, operands), interval = interval_cycles(arch, fp16_macs, macs, mma_rate);
  out->widens = multiplied != operands;
  out->operand_columns = FTL_OPERAND_BYTES / bytes;
  out->mma_k = (int32_t)arch->tensor_mma_k * FP16_BYTES / ftl_dtype_bytes(multiplied);
  out->mma_columns = (int32_t)arch->tensor_mma_n * (quads > 1 ? QUAD_PAIRS_A_ROW : 1);
  out->mma_num_insts = (int32_t)parts;
  out->mma_macs = (int32_t)(macs / parts);
  out->mma_fp16_macs = (int32_t)(fp16_macs / parts);
  out->mma_interval_cycles = (int32_t)ftl_divide_up(interval, parts);
  out->mma_latency_cycles =
      (int32_t)(arch->tensor_mma_latency_cycles + (interval - arch->tensor_mma_fp32_interval_cycles) / 2);
  out->mma_dispatch_cycles = (int32_t)arch->tensor_mma_dispatch_cycles;
  out->wgmma_fma_per_cycle = arch->tensor_wgmma_fma_per_cycle * rate / arch->tensor_peak_fma_per_cycle;
  return FTL_OK;
}

// Half of the K, where a chip has both: an instruction that reads fewer operands, and has half the work.
static void halve(ftl_product *p, const ftl_arch *arch) {
  enum { WHOLE_K = 16 };
  if (arch->tensor_mma_k != WHOLE_K) return;
  int64_t interval = ftl_divide_up(p->mma_interval_cycles, 2);
  p->mma_k /= 2;
  p->mma_macs /= 2;
  p->mma_fp16_macs /= 2;
  p->mma_dispatch_cycles = (int32_t)arch->tensor_mma_half_dispatch_cycles;
  p->mma_interval_cycles = (int32_t)ftl_larger(interval, p->mma_dispatch_cycles);
  p->mma_latency_cycles = (int32_t)arch->tensor_mma_half_latency_cycles;
}

static ftl_dtype operands_of(const ftl_tile_program *tile, const ftl_tile_op *op) {
  return tile->rings[op->ring].dtype;
}

ftl_status ftl_product_of_tile(ftl_product *out, const ftl_tile_program *tile, const ftl_arch *arch, ftl_error *error) {
  const ftl_tile_op *first = NULL;
  for (int32_t i = 0; i < tile->num_ops; i++) {
    const ftl_tile_op *op = &tile->ops[i];
    if (op->kind != FTL_TILE_MMA) continue;
    if (!first) first = op;
    bool same = operands_of(tile, op) == operands_of(tile, first) &&
                tile->values[op->dst].dtype == tile->values[first->dst].dtype;
    if (!same)
      return ftl_error_set_about(
          error, FTL_INFEASIBLE, tile->name, " multiplies %s into %s and %s into %s: one type a kernel is lowered",
          ftl_dtype_name(operands_of(tile, first)), ftl_dtype_name(tile->values[first->dst].dtype),
          ftl_dtype_name(operands_of(tile, op)), ftl_dtype_name(tile->values[op->dst].dtype));
  }
  ftl_dtype operands = first ? operands_of(tile, first) : FTL_FP16;
  ftl_dtype sums = first ? tile->values[first->dst].dtype : FTL_FP32;
  ftl_status status = ftl_product_of(out, arch, operands, sums, error);
  if (status == FTL_OK && tile->half_products) halve(out, arch);
  return status;
}
