// The shipped models' tensor rates against the vendors' tables, dense and sparse, for every GPU and type.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "arch/tensor_rates.h"
#include "script/arch_loader.h"

static const char models_dir[] = FTL_SOURCE_DIR "/arch_models";

// Sources: NVIDIA V100, T4, A100, H100, H200, L40S datasheets; whitepapers of Turing (RTX 2080 Ti, reference clock),
// GA102 (RTX 3090) and Ada (RTX 4090), appendix tables. mhz: the clock that the vendor's figure stands for; L40S's
// sheet has fp16 at another clock than the rest. Sparse 0: none given.
typedef struct row {
  char gpu[12], operands[6], accumulator[6];
  double dense, sparse;  // TFLOP/s or TOPS, as printed
  double last_digit;     // what the last printed digit stands for
  double mhz;
} row;

static const row rows[] = {
    {"v100", "fp16", "fp32", 125, 0, 1, 1530},
    {"v100", "fp16", "fp16", 125, 0, 1, 1530},
    {"t4", "fp16", "fp32", 65, 0, 1, 1590},
    {"t4", "fp16", "fp16", 65, 0, 1, 1590},
    {"t4", "int8", "int32", 130, 0, 1, 1590},
    {"t4", "int4", "int32", 260, 0, 1, 1590},
    {"rtx2080ti", "fp16", "fp32", 53.8, 0, 0.1, 1545},
    {"rtx2080ti", "fp16", "fp16", 107.6, 0, 0.1, 1545},
    {"rtx2080ti", "int8", "int32", 215.2, 0, 0.1, 1545},
    {"rtx2080ti", "int4", "int32", 430.3, 0, 0.1, 1545},
    {"a100_40", "fp16", "fp32", 312, 624, 1, 1410},
    {"a100_40", "fp16", "fp16", 312, 624, 1, 1410},
    {"a100_40", "bf16", "fp32", 312, 624, 1, 1410},
    {"a100_40", "tf32", "fp32", 156, 312, 1, 1410},
    {"a100_40", "fp64", "fp64", 19.5, 0, 0.1, 1410},
    {"a100_40", "int8", "int32", 624, 1248, 1, 1410},
    {"a100_40", "int4", "int32", 1248, 2496, 1, 1410},
    {"a100_40", "int1", "int32", 4992, 0, 1, 1410},
    {"a100_80", "fp16", "fp32", 312, 624, 1, 1410},
    {"a100_80", "fp16", "fp16", 312, 624, 1, 1410},
    {"a100_80", "bf16", "fp32", 312, 624, 1, 1410},
    {"a100_80", "tf32", "fp32", 156, 312, 1, 1410},
    {"a100_80", "fp64", "fp64", 19.5, 0, 0.1, 1410},
    {"a100_80", "int8", "int32", 624, 1248, 1, 1410},
    {"a100_80", "int4", "int32", 1248, 2496, 1, 1410},
    {"a100_80", "int1", "int32", 4992, 0, 1, 1410},
    {"rtx3090", "fp16", "fp32", 71, 142, 1, 1695},
    {"rtx3090", "fp16", "fp16", 142, 284, 1, 1695},
    {"rtx3090", "bf16", "fp32", 71, 142, 1, 1695},
    {"rtx3090", "tf32", "fp32", 35.6, 71.2, 0.1, 1695},
    {"rtx3090", "int8", "int32", 284, 568, 1, 1695},
    {"rtx3090", "int4", "int32", 568, 1136, 1, 1695},
    {"rtx4090", "fp16", "fp32", 165.2, 330.4, 0.1, 2520},
    {"rtx4090", "fp16", "fp16", 330.3, 660.6, 0.1, 2520},
    {"rtx4090", "bf16", "fp32", 165.2, 330.4, 0.1, 2520},
    {"rtx4090", "tf32", "fp32", 82.6, 165.2, 0.1, 2520},
    {"rtx4090", "fp8", "fp32", 330.3, 660.6, 0.1, 2520},
    {"rtx4090", "fp8", "fp16", 660.6, 1321.2, 0.1, 2520},
    {"rtx4090", "int8", "int32", 660.6, 1321.2, 0.1, 2520},
    {"rtx4090", "int4", "int32", 1321.2, 2642.4, 0.1, 2520},
    {"l40s", "fp16", "fp32", 362.05, 0, 0.01, 2490},
    {"l40s", "fp16", "fp32", 366, 733, 1, 2520},
    {"l40s", "bf16", "fp32", 362.05, 0, 0.01, 2490},
    {"l40s", "tf32", "fp32", 183, 366, 1, 2520},
    {"l40s", "fp8", "fp32", 733, 1466, 1, 2520},
    {"l40s", "int8", "int32", 733, 1466, 1, 2520},
    {"l40s", "int4", "int32", 733, 1466, 1, 2520},
    {"h100_sxm", "fp16", "fp32", 989.4, 1978.9, 0.1, 1830},
    {"h100_sxm", "fp16", "fp16", 989.4, 1978.9, 0.1, 1830},
    {"h100_sxm", "bf16", "fp32", 989.4, 1978.9, 0.1, 1830},
    {"h100_sxm", "tf32", "fp32", 494.7, 989.4, 0.1, 1830},
    {"h100_sxm", "fp8", "fp32", 1978.9, 3957.8, 0.1, 1830},
    {"h100_sxm", "fp8", "fp16", 1978.9, 3957.8, 0.1, 1830},
    {"h100_sxm", "int8", "int32", 1978.9, 3957.8, 0.1, 1830},
    {"h100_sxm", "fp64", "fp64", 66.9, 0, 0.1, 1980},
    {"h100_pcie", "fp16", "fp32", 756, 1513, 1, 1620},
    {"h100_pcie", "bf16", "fp32", 756, 1513, 1, 1620},
    {"h100_pcie", "tf32", "fp32", 378, 756, 1, 1620},
    {"h100_pcie", "fp8", "fp32", 1513, 3026, 1, 1620},
    {"h100_pcie", "int8", "int32", 1513, 3026, 1, 1620},
    {"h100_pcie", "fp64", "fp64", 51, 0, 1, 1755},
    {"h200", "fp16", "fp32", 989.5, 1979, 1, 1830},
    {"h200", "bf16", "fp32", 989.5, 1979, 1, 1830},
    {"h200", "tf32", "fp32", 494.7, 989, 1, 1830},
    {"h200", "fp8", "fp32", 1979, 3958, 1, 1830},
    {"h200", "int8", "int32", 1979, 3958, 1, 1830},
    {"h200", "fp64", "fp64", 67, 0, 1, 1980},
};
enum { NUM_ROWS = sizeof rows / sizeof rows[0] };

static ftl_arch *load(const char *name) {
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(models_dir, name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

static ftl_tensor_rate rate_of(const ftl_arch *arch, const char *operands, const char *accumulator) {
  for (int i = 0; i < ftl_arch_num_tensor_rates(); i++) {
    ftl_tensor_rate rate = ftl_arch_tensor_rate(arch, i);
    if (strcmp(rate.operands, operands) == 0 && strcmp(rate.accumulator, accumulator) == 0) return rate;
  }
  cr_assert_fail("no rate of %s into %s is listed", operands, accumulator);
  return (ftl_tensor_rate){0};
}

// The GPU's fp16 row, of which vendors print multiples (A100: 16 * 312 = 4992, where the clock gives 4990).
static const row *first_of(const row *r) {
  while (r > rows && strcmp(r[-1].gpu, r->gpu) == 0) r--;
  return r;
}

static void expect_printed(const ftl_arch *arch, const row *r, int64_t fma_per_cycle, double printed) {
  double tflops = ftl_arch_tensor_tflops(arch, fma_per_cycle, (int64_t)(r->mhz * 1000));
  double multiple = first_of(r)->dense * (double)fma_per_cycle / (double)arch->tensor_peak_fma_per_cycle;
  bool holds = fabs(tflops - printed) < r->last_digit || fabs(multiple - printed) < 1e-6;
  cr_expect(holds, "%s: %s into %s is %.2f, published %.2f", r->gpu, r->operands, r->accumulator, tflops, printed);
}

Test(unit_arch_tensor_rates, are_the_published_ones_to_the_last_printed_digit) {
  for (const row *r = rows; r < rows + NUM_ROWS; r++) {
    ftl_arch *arch = load(r->gpu);
    ftl_tensor_rate rate = rate_of(arch, r->operands, r->accumulator);
    expect_printed(arch, r, rate.dense_fma_per_cycle, r->dense);
    if (r->sparse > 0) expect_printed(arch, r, rate.sparse_fma_per_cycle, r->sparse);
    ftl_arch_destroy(arch);
  }
}

static void expect_none(const char *gpu, const char *operands, const char *accumulator) {
  ftl_arch *arch = load(gpu);
  cr_expect_eq(rate_of(arch, operands, accumulator).dense_fma_per_cycle, 0, "%s multiplies %s", gpu, operands);
  ftl_arch_destroy(arch);
}

Test(unit_arch_tensor_rates, of_types_that_a_generation_lacks_are_0) {
  static const char *const before_ampere[] = {"v100", "t4", "rtx2080ti"};
  static const char *const before_ada[] = {"v100", "t4", "rtx2080ti", "a100_40", "a100_80", "rtx3090"};
  static const char *const hopper[] = {"h100_pcie", "h100_sxm", "h200"};
  for (int i = 0; i < 3; i++) {
    expect_none(before_ampere[i], "bf16", "fp32");
    expect_none(before_ampere[i], "tf32", "fp32");
    expect_none(before_ampere[i], "fp64", "fp64");
    expect_none(hopper[i], "int4", "int32");
    expect_none(hopper[i], "int1", "int32");
  }
  for (int i = 0; i < 6; i++) expect_none(before_ada[i], "fp8", "fp32");
  expect_none("v100", "int8", "int32");
}

Test(unit_arch_tensor_rates, before_ampere_there_is_no_sparsity) {
  ftl_arch *turing = load("t4"), *ampere = load("a100_80");
  for (int i = 0; i < ftl_arch_num_tensor_rates(); i++) {
    cr_expect_eq(ftl_arch_tensor_rate(turing, i).sparse_fma_per_cycle, 0);
    ftl_tensor_rate rate = ftl_arch_tensor_rate(ampere, i);
    bool prunes = strcmp(rate.operands, "fp64") != 0 && strcmp(rate.operands, "int1") != 0;
    cr_expect_eq(rate.sparse_fma_per_cycle, prunes ? 2 * rate.dense_fma_per_cycle : 0, "%s", rate.operands);
  }
  ftl_arch_destroy(turing);
  ftl_arch_destroy(ampere);
}
