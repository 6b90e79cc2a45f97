// Tensor instructions by type: shapes, and a pace that is the published rate.
#include "lower/product.h"

#include <criterion/criterion.h>

#include "script/arch_loader.h"

static ftl_arch *load_arch(const char *name) {
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

static ftl_product product_on(const ftl_arch *arch, ftl_dtype operands, ftl_dtype accumulator) {
  ftl_product product;
  ftl_error error = {0};
  cr_assert_eq(ftl_product_of(&product, arch, operands, accumulator, &error), FTL_OK, "%s", error.message);
  return product;
}

static int64_t mma_rate(const ftl_arch *arch, const ftl_product *p) {
  return arch->sm_num_subcores * p->mma_macs / p->mma_interval_cycles;
}

// mma.sync keeps every chip's tensor cores busy but Hopper's, of which it reaches 4 cycles of 6.
Test(unit_lower_product, mma_sync_of_every_type_reaches_its_published_rate) {
  static const char *const gpus[] = {"v100", "t4",      "rtx2080ti", "a100_40",  "a100_80", "rtx3090",
                                     "l40s", "rtx4090", "h100_pcie", "h100_sxm", "h200"};
  for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
    ftl_arch *arch = load_arch(gpus[i]);
    const struct {
      ftl_dtype operands, accumulator;
      int64_t rate;
    } types[] = {{FTL_FP16, FTL_FP32, arch->tensor_peak_fma_per_cycle},
                 {FTL_FP16, FTL_FP16, arch->tensor_fp16_fp16_fma_per_cycle},
                 {FTL_BF16, FTL_FP32, arch->tensor_bf16_fma_per_cycle},
                 {FTL_TF32, FTL_FP32, arch->tensor_tf32_fma_per_cycle},
                 {FTL_FP8_E4M3, FTL_FP32, arch->tensor_mma_has_fp8 ? arch->tensor_fp8_fma_per_cycle : 0},
                 {FTL_FP8_E5M2, FTL_FP16, arch->tensor_mma_has_fp8 ? arch->tensor_fp8_fp16_fma_per_cycle : 0},
                 {FTL_INT8, FTL_INT32, arch->tensor_int8_fma_per_cycle},
                 {FTL_INT4X2, FTL_INT32, arch->tensor_int4_fma_per_cycle}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
      if (types[t].rate == 0) continue;
      ftl_product p = product_on(arch, types[t].operands, types[t].accumulator);
      int64_t expected = arch->sm_has_wgmma ? types[t].rate * 4 / 6 : types[t].rate;
      cr_expect_eq(mma_rate(arch, &p), expected, "%s, %s: %lld", gpus[i], ftl_dtype_name(types[t].operands),
                   (long long)mma_rate(arch, &p));
      if (arch->sm_has_wgmma) cr_expect_eq(p.wgmma_fma_per_cycle, types[t].rate);
    }
    ftl_arch_destroy(arch);
  }
}

Test(unit_lower_product, shapes_follow_from_the_bytes_of_k) {
  ftl_arch *turing = load_arch("t4"), *ampere = load_arch("a100_80"), *volta = load_arch("v100");
  ftl_product int8 = product_on(turing, FTL_INT8, FTL_INT32);  // two m8n8k16
  cr_expect_eq(int8.mma_k, 16);
  cr_expect_eq(int8.mma_num_insts, 2);
  cr_expect_eq(int8.mma_macs, 8 * 8 * 16);
  ftl_product tf32 = product_on(ampere, FTL_TF32, FTL_FP32);  // m16n8k8
  cr_expect_eq(tf32.mma_k, 8);
  cr_expect_eq(tf32.mma_macs, 16 * 8 * 8);
  ftl_product wide = product_on(ampere, FTL_INT8, FTL_INT32);  // m16n8k32
  cr_expect_eq(wide.mma_k, 32);
  cr_expect_eq(wide.mma_macs, 16 * 8 * 32);
  ftl_product int4 = product_on(ampere, FTL_INT4X2, FTL_INT32);  // m16n8k64: 32 bytes of pairs
  cr_expect_eq(int4.mma_k, 32);
  cr_expect_eq(int4.mma_macs, 16 * 8 * 64);
  ftl_product fp16 = product_on(volta, FTL_FP16, FTL_FP32);  // m8n8k4 of four quad pairs: HMMA.884 STEP0 to STEP3
  cr_expect_eq(fp16.mma_num_insts, 4);
  cr_expect_eq(fp16.mma_macs, 8 * 8 * 4);
  cr_expect_eq(fp16.mma_columns, 16);
  cr_expect_eq(wide.mma_columns, 8);
  ftl_arch_destroy(turing);
  ftl_arch_destroy(ampere);
  ftl_arch_destroy(volta);
}

// 33 cycles with fp32 accumulation; 24 were measured with fp16 (Huerta et al., MICRO 2025).
Test(unit_lower_product, half_of_what_the_interval_shrinks_by_comes_off_the_latency) {
  ftl_arch *geforce = load_arch("rtx3090");
  cr_expect_eq(product_on(geforce, FTL_FP16, FTL_FP32).mma_latency_cycles, 33);
  cr_expect_eq(product_on(geforce, FTL_FP16, FTL_FP16).mma_latency_cycles, 25);
  ftl_arch_destroy(geforce);
}

Test(unit_lower_product, hopper_multiplies_fp8_by_mma_sync_as_fp16) {
  ftl_arch *hopper = load_arch("h200"), *ada = load_arch("l40s");
  ftl_product p = product_on(hopper, FTL_FP8_E4M3, FTL_FP32);
  cr_expect(p.widens);
  cr_expect_eq(p.mma_macs, 16 * 8 * 16);
  cr_expect_eq(p.operand_columns, 32);
  cr_expect_eq(p.wgmma_fma_per_cycle, 4096);
  cr_expect_not(product_on(ada, FTL_FP8_E4M3, FTL_FP32).widens);
  ftl_arch_destroy(hopper);
  ftl_arch_destroy(ada);
}

static void expect_lacking(const char *gpu, ftl_dtype operands, ftl_dtype accumulator, const char *message) {
  ftl_arch *arch = load_arch(gpu);
  ftl_product product;
  ftl_error error = {0};
  cr_expect_eq(ftl_product_of(&product, arch, operands, accumulator, &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, message);
  ftl_arch_destroy(arch);
}

Test(unit_lower_product, what_a_chip_lacks_is_infeasible_and_named) {
  expect_lacking("h200", FTL_INT4X2, FTL_INT32,
                 "dtype=int4 needs int4 tensor instructions (compute capability 7.5 to 8.9), which "
                 "h200 lacks");
  expect_lacking("a100_80", FTL_FP8_E4M3, FTL_FP32,
                 "dtype=fp8_e4m3 needs fp8_e4m3 tensor instructions (compute capability 8.9), which "
                 "a100_80 lacks");
  expect_lacking("t4", FTL_BF16, FTL_FP32,
                 "dtype=bf16 needs bf16 tensor instructions (compute capability 8.0), which t4 lacks");
  expect_lacking("v100", FTL_INT8, FTL_INT32,
                 "dtype=int8 needs int8 tensor instructions (compute capability 7.5), which v100 lacks");
}

// Source: kernels/measurements/micro_mma.csv: m16n8k8 takes 4.2 cycles, 17.3 to what needs it. A100's is half of 8, no
// less than what it reads takes; Turing's is the whole one.
Test(unit_lower_product, half_of_the_k_takes_what_its_operands_take) {
  static const struct {
    const char *gpu;
    int32_t k, interval, dispatch, latency;
  } cases[] = {{"h200", 8, 4, 4, 17}, {"a100_80", 8, 4, 4, 18}, {"rtx3090", 8, 16, 4, 26}, {"t4", 8, 8, 4, 18}};
  ftl_error error = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_arch *arch = load_arch(cases[i].gpu);
    ftl_tile_program tile = {.half_products = true};
    ftl_product p;
    cr_assert_eq(ftl_product_of_tile(&p, &tile, arch, &error), FTL_OK, "%s", error.message);
    cr_expect_eq(p.mma_k, cases[i].k, "%s", cases[i].gpu);
    cr_expect_eq(p.mma_macs, 16 * 8 * cases[i].k, "%s: %d", cases[i].gpu, p.mma_macs);
    cr_expect_eq(p.mma_fp16_macs, 16 * 8 * cases[i].k, "%s", cases[i].gpu);
    cr_expect_eq(p.mma_interval_cycles, cases[i].interval, "%s: %d", cases[i].gpu, p.mma_interval_cycles);
    cr_expect_eq(p.mma_dispatch_cycles, cases[i].dispatch, "%s", cases[i].gpu);
    cr_expect_eq(p.mma_latency_cycles, cases[i].latency, "%s: %d", cases[i].gpu, p.mma_latency_cycles);
    ftl_arch_destroy(arch);
  }
}
