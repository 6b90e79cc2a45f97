// Every lowering of the two kernels of flash_decode and of paged_decode that is feasible does what its tile program
// says.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../thinned.h"
#include "engine/predict.h"
#include "lower/checker.h"
#include "script/arch_loader.h"

static const char *const shapes[] = {
    "heads=8 kv_heads=2 seqlen_q=1 seqlen_kv=512 head_dim=128 splits=2",
    "heads=4 seqlen_q=1 seqlen_kv=333 head_dim=64 splits=7",
    "heads=8 kv_heads=2 seqlen_q=1 seqlen_kv=333 head_dim=128 head_dim_v=64 splits=3",
    "batch=3 heads=24 kv_heads=1 seqlen_q=1 seqlen_kv=200 head_dim=40 splits=1 layout=bshd",
    "heads=6 kv_heads=2 seqlen_q=5 seqlen_kv=300 head_dim=128 splits=3 causal=1",
    "heads=6 kv_heads=2 seqlen_q=5 seqlen_kv=130 head_dim=256 splits=9 causal=1 layout=bshd",
    "heads=8 kv_heads=2 seqlen_q=4 seqlen_kv=514 head_dim=64 splits=2 causal=1 mask=local_global mask_width=2",
};

static const char *const paged_shapes[] = {
    "heads=8 kv_heads=2 seqlen_q=1 lengths=512:100:1 head_dim=128 splits=2 page_size=16 page_layout=scattered",
    "heads=4 seqlen_q=1 lengths=333:64 head_dim=64 splits=7 page_size=1 page_layout=scattered",
    "heads=8 kv_heads=2 seqlen_q=1 lengths=333:64 head_dim=64 head_dim_v=128 splits=3 page_size=16",
    "heads=24 kv_heads=1 seqlen_q=1 lengths=200x3 head_dim=40 splits=1 layout=bshd page_size=48",
    "heads=6 kv_heads=2 seqlen_q=5 lengths=300:3 head_dim=128 splits=3 causal=1 page_layout=shared_prefix prefix=2",
    "heads=6 kv_heads=2 seqlen_q=5 lengths=130:90 head_dim=256 splits=9 causal=1 layout=bshd page_size=256",
    "heads=8 kv_heads=2 seqlen_q=2 lengths=512:40:1 head_dim=64 splits=2 causal=1 window=100",
};

// Groups of warps: four, two, one, and two with a staging buffer of their own.
static const char *const blocks[] = {
    "block_m=16 block_n=64 num_warps=4 num_stages=3",
    "block_m=32 block_n=64 num_warps=4 num_stages=2",
    "block_m=64 block_n=32 num_warps=4 num_stages=2",
    "block_m=16 block_n=32 num_warps=2 num_stages=2",
    "block_m=16 block_n=64 num_warps=4 num_stages=2 persistent=1",
};

static void parse(ftl_spec *spec, const char *workload, const char *parameters) {
  ftl_error error = {0};
  char text[512];
  snprintf(text, sizeof text, "%s", parameters);
  cr_assert_eq(ftl_spec_init(spec, workload, &error), FTL_OK);
  for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(word, '=');
    *value++ = '\0';
    cr_assert_eq(ftl_spec_set_text(spec, word, value, &error), FTL_OK, "%s", error.message);
  }
  cr_assert_eq(ftl_spec_complete(spec, &error), FTL_OK, "%s", error.message);
}

static bool prove(const ftl_arch *arch, const char *workload, const char *parameters, int launch) {
  ftl_spec spec;
  parse(&spec, workload, parameters);
  ftl_tile_program *tile;
  ftl_warp_program *warps;
  ftl_error error = {0};
  ftl_status status = ftl_predict_programs(&spec, arch, launch, &tile, &warps, &error);
  cr_assert(status == FTL_OK || status == FTL_INFEASIBLE, "%s: %s", parameters, error.message);
  if (status == FTL_INFEASIBLE) return false;
  static int count = 0;
  for (int64_t cta = 0; cta < tile->num_ctas; cta += 1 + tile->num_ctas / 4) {
    if (!thinned_runs(&count)) continue;
    cr_expect_eq(ftl_checker_prove(warps, cta, &error), FTL_OK, "%s: %s: launch %d: %s", arch->name, parameters, launch,
                 error.message);
  }
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  return true;
}

// Gives how many configurations were feasible.
static int prove_shapes(const char *arch_name, const char *how, const char *workload, const char *const *of,
                        size_t num_shapes) {
  int feasible = 0;
  ftl_arch *arch;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", arch_name, &arch, &error), FTL_OK, "%s", error.message);
  for (size_t s = 0; s < num_shapes; s++)
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
      char parameters[400];
      snprintf(parameters, sizeof parameters, "%s %s %s", of[s], blocks[b], how);
      feasible += prove(arch, workload, parameters, 0) && prove(arch, workload, parameters, 1);
    }
  ftl_arch_destroy(arch);
  return feasible;
}

static int prove_all(const char *arch, const char *how) {
  return prove_shapes(arch, how, "flash_decode", shapes, sizeof shapes / sizeof *shapes);
}

static int prove_paged(const char *arch, const char *how) {
  return prove_shapes(arch, how, "paged_decode", paged_shapes, sizeof paged_shapes / sizeof *paged_shapes);
}

Test(unit_lower_checker_flash_decode, volta_by_registers) { cr_expect_geq(prove_all("v100", "num_stages=2"), 15); }
Test(unit_lower_checker_flash_decode, turing_by_registers) { cr_expect_geq(prove_all("t4", "num_stages=2"), 10); }
Test(unit_lower_checker_flash_decode, ampere_by_cp_async) { cr_expect_geq(prove_all("a100_80", ""), 20); }
Test(unit_lower_checker_flash_decode, ada_by_cp_async_in_bf16) {
  cr_expect_geq(prove_all("rtx4090", "dtype=bf16"), 18);
}
Test(unit_lower_checker_flash_decode, hopper_by_cp_async) { cr_expect_geq(prove_all("h200", ""), 20); }
Test(unit_lower_checker_flash_decode, hopper_by_mma_sync_and_tma) {
  cr_expect_geq(prove_all("h200", "copy=tma mma=mma"), 18);
}

Test(unit_lower_checker_flash_decode, pages_on_volta) { cr_expect_geq(prove_paged("v100", "num_stages=2"), 15); }
Test(unit_lower_checker_flash_decode, pages_on_ampere) { cr_expect_geq(prove_paged("a100_80", ""), 20); }
Test(unit_lower_checker_flash_decode, pages_on_hopper_by_lanes_where_a_bulk_copy_cannot) {
  cr_expect_geq(prove_paged("h200", ""), 20);
}
Test(unit_lower_checker_flash_decode, pages_on_hopper_by_bulk_copies) {
  cr_expect_geq(prove_paged("h200", "copy=tma mma=mma page_size=16"), 18);
}

// Pages of 1, 16, 48 and 256 tokens, whose tiles begin in them and inside them.
Test(unit_lower_checker_flash_decode, pages_of_which_every_thread_looks_up_its_rows) {
  cr_expect_geq(prove_paged("h200", "num_warps=4 warps_n=4 block_n=64 mma=mma copy=cp_async code=lean"), 20);
  cr_expect_geq(prove_paged("a100_80", "num_warps=4 warps_n=4 block_n=64 num_stages=1 copy=ldg code=lean"), 20);
  // Scales are copied by the same entries, which are read for the first time once.
  cr_expect_geq(prove_paged("h200", "num_warps=4 warps_n=4 block_n=64 mma=mma code=lean kv_dtype=int8 page_size=16"),
                8);
}

// head_dim 40 holds no whole vectors, and 200 keys by TMA are as any.
Test(unit_lower_checker_flash_decode, quantised_caches) {
  cr_expect_geq(prove_all("t4", "kv_dtype=int8 num_stages=2"), 5);
  cr_expect_geq(prove_all("a100_80", "kv_dtype=int8 kv_group_size=32"), 10);
  cr_expect_geq(prove_all("a100_80", "kv_dtype=int4 dtype=bf16"), 10);
  cr_expect_geq(prove_all("rtx4090", "kv_dtype=fp8"), 10);
  cr_expect_geq(prove_all("h200", "kv_dtype=fp8 copy=tma mma=mma"), 10);
  cr_expect_geq(prove_all("h200", "kv_dtype=int4 block_m=64 mma=wgmma"), 5);
  cr_expect_eq(prove_all("a100_80", "kv_dtype=fp8"), 0);
  cr_expect_geq(prove_paged("v100", "kv_dtype=int8 page_size=16 num_stages=2"), 8);
  cr_expect_geq(prove_paged("a100_80", "kv_dtype=int4 kv_group_size=32 page_size=16"), 8);
  cr_expect_geq(prove_paged("h200", "kv_dtype=fp8 page_size=64"), 8);
  cr_expect_geq(prove_paged("h200", "kv_dtype=int8 page_size=256 copy=tma mma=mma"), 8);
  // A warp takes whole rows or not: 12 chunks of eight in a row.
  cr_expect_geq(prove_all("h200", "kv_dtype=int8 head_dim=96"), 10);
}

// An odd number of scales of two bytes: of the last copy of four bytes two exist.
Test(unit_lower_checker_flash_decode, a_row_of_scales_may_end_within_a_word) {
  ftl_arch *arch;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "a100_80", &arch, &error), FTL_OK, "%s", error.message);
  cr_expect(prove(arch, "flash_decode", "heads=8 seqlen_kv=1 head_dim=64 kv_dtype=int8", 0));
  cr_expect(prove(arch, "flash_decode", "heads=1 kv_heads=1 seqlen_kv=129 head_dim=64 kv_dtype=int8 splits=1", 0));
  ftl_arch_destroy(arch);
}
