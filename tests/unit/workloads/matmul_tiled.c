// The order of tiles of matmul_tiled, and how its warpgroups divide one. That it computes a product is proved in
// tests/numeric/attention.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "workloads/spec.h"
#include "tests/spec_words.h"

// For a GPU of so much shared memory a CTA.
static ftl_status build_for(int64_t shared_bytes, const char *params, ftl_tile_program **program, ftl_error *error) {
  ftl_spec spec;
  cr_assert_eq(spec_of_words(&spec, "matmul_tiled", "k=64 mma=wgmma copy=tma", params, error), FTL_OK, "%s",
               error->message);
  spec.shared_bytes_per_cta = shared_bytes;
  int num_launches;
  *program = NULL;
  return spec.workload->build(&spec, program, &num_launches, error);
}

static ftl_status build(const char *params, ftl_tile_program **program, ftl_error *error) {
  return build_for(0, params, program, error);
}

// "row.column" of the tile that each CTA stores, one after another.
static void tiles_of(const char *params, char *text, size_t size) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(build(params, &program, &error), FTL_OK, "%s", error.message);
  const ftl_tile_op *store = NULL;
  for (int32_t i = 0; i < program->num_ops; i++)
    if (program->ops[i].kind == FTL_TILE_STORE) store = &program->ops[i];
  size_t used = 0;
  for (int64_t cta = 0; cta < program->num_ctas; cta++) {
    int64_t row = ftl_expr_eval(program, store->ref.row, &(ftl_expr_point){.cta = cta});
    int64_t column = ftl_expr_eval(program, store->ref.column, &(ftl_expr_point){.cta = cta});
    used += (size_t)snprintf(text + used, size - used, "%s%lld.%lld", cta > 0 ? " " : "", (long long)row / 64,
                             (long long)column / 64);
  }
  ftl_tile_program_destroy(program);
}

// C of 3 x 5 tiles, or 5 x 3.
#define TILE "block_m=64 block_n=64 num_warps=4 "
#define FLAT TILE "m=192 n=320 "
#define TALL TILE "m=320 n=192 "

Test(unit_workloads_matmul_tiled, tiles_follow_each_other_in_strips_there_and_back) {
  static const struct {
    const char *params, *tiles;
  } cases[] = {
      {FLAT "tile_order=n_first", "0.0 0.1 0.2 0.3 0.4 1.0 1.1 1.2 1.3 1.4 2.0 2.1 2.2 2.3 2.4"},
      {FLAT "tile_order=n_first tile_strip=2", "0.0 0.1 1.0 1.1 2.0 2.1 2.2 2.3 1.2 1.3 0.2 0.3 0.4 1.4 2.4"},
      {FLAT "tile_order=n_first tile_strip=5", "0.0 0.1 0.2 0.3 0.4 1.0 1.1 1.2 1.3 1.4 2.0 2.1 2.2 2.3 2.4"},
      {FLAT "tile_order=m_first tile_strip=1", "0.0 0.1 0.2 0.3 0.4 1.4 1.3 1.2 1.1 1.0 2.0 2.1 2.2 2.3 2.4"},
      {TALL "tile_order=m_first tile_strip=2", "0.0 1.0 0.1 1.1 0.2 1.2 2.2 3.2 2.1 3.1 2.0 3.0 4.0 4.1 4.2"},
      // CUTLASS's GemmIdentityThreadblockSwizzle goes forward in each.
      {FLAT "tile_order=n_first tile_strip=2 mma=mma copy=cp_async code=buffered",
       "0.0 0.1 1.0 1.1 2.0 2.1 0.2 0.3 1.2 1.3 2.2 2.3 0.4 1.4 2.4"},
      // So do Triton's groups.
      {FLAT "tile_order=n_first tile_strip=2 mma=wgmma copy=cp_async code=lean",
       "0.0 0.1 1.0 1.1 2.0 2.1 0.2 0.3 1.2 1.3 2.2 2.3 0.4 1.4 2.4"},
      // Clusters of two columns, of which a strip has one; the sixth column makes the last whole.
      {FLAT "tile_order=n_first tile_strip=2 cluster=1x2",
       "0.0 0.1 1.0 1.1 2.0 2.1 2.2 2.3 1.2 1.3 0.2 0.3 0.4 0.5 1.4 1.5 2.4 2.5"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char tiles[256];
    tiles_of(cases[i].params, tiles, sizeof tiles);
    cr_expect_str_eq(tiles, cases[i].tiles, "%s: %s", cases[i].params, tiles);
  }
}

// Of lean code without TMA, which is Triton's, where nothing is said of the order.
Test(unit_workloads_matmul_tiled, open_tiles_of_triton_go_in_groups_of_eight_rows) {
  static const struct {
    const char *params;
    int64_t strip;
  } cases[] = {{"mma=wgmma copy=cp_async code=lean", 8},
               {"mma=wgmma copy=cp_async code=lean tile_strip=0", 0},
               {"mma=wgmma copy=cp_async code=lean tile_order=n_first", 0},
               {"mma=wgmma copy=cp_async code=plain", 0},
               {"mma=wgmma copy=tma code=lean", 0},
               {"mma=wgmma copy=tma code=lean cluster=1x2", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_spec spec;
    ftl_error error = {0};
    cr_assert_eq(spec_of_words(&spec, "matmul_tiled", "m=1280 n=512 k=256", cases[i].params, &error), FTL_OK, "%s",
                 error.message);
    spec.workload->resolve(&spec, NULL);
    cr_expect_eq(spec.value[FTL_PARAM_tile_strip], cases[i].strip, "%s", cases[i].params);
  }
}

Test(unit_workloads_matmul_tiled, a_strip_holds_whole_clusters) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(build(FLAT "tile_order=n_first tile_strip=3 cluster=1x2", &program, &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "tile_strip=3: a multiple of 2, as many tiles as a cluster has");
}

// Of the H200's 227 KB, less 2. 3 stages of (320 + 128) x 64 numbers are 168 KB. Two groups of 320 rows: two buffers of
// 32 columns each are 80 KB, one 40 KB, of which 57 are left; nothing is too much for a GPU of twice the memory, and of
// 198 KB one of 16 columns, 20 KB, is all that fits. With 4 stages of 256 x 128 tiles (192 KB) two buffers are 32 KB,
// and 33 are left, as with steps of 128 numbers of one byte, whose result has two (20 of 214 KB: one); with 5 of 192 x
// 128 (200 KB) of two groups one of 32 columns is 24 KB, and 25 are left.
Test(unit_workloads_matmul_tiled, pieces_of_c_are_what_shared_memory_holds) {
  static const struct {
    int64_t shared_kb;
    const char *params;
    int32_t columns, buffers;
  } cases[] = {{227, "m=320 n=128 block_m=320 block_n=128 num_stages=3 groups_n=2", 32, 1},
               {454, "m=320 n=128 block_m=320 block_n=128 num_stages=3 groups_n=2", 32, 2},
               {198, "m=320 n=128 block_m=320 block_n=128 num_stages=3 groups_n=2", 16, 1},
               {227, "m=256 n=128 block_m=256 block_n=128 num_stages=4", 32, 2},
               {227, "m=192 n=128 block_m=192 block_n=128 num_stages=5 groups_n=2", 32, 1},
               {227, "m=192 n=160 block_m=128 block_n=144 num_stages=2", 16, 2},
               {227, "m=256 n=128 block_m=256 block_n=128 block_k=128 num_stages=4 dtype=fp8_e4m3", 32, 2},
               {214, "m=256 n=128 block_m=256 block_n=128 block_k=128 num_stages=4 dtype=fp8_e4m3", 32, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[128];
    ftl_tile_program *program;
    ftl_error error = {0};
    snprintf(params, sizeof params, "num_warps=8 store=staged %s", cases[i].params);
    cr_assert_eq(build_for(cases[i].shared_kb * 1024, params, &program, &error), FTL_OK, "%s: %s", params,
                 error.message);
    const ftl_ring *c = &program->rings[program->num_rings - 1];
    cr_expect_eq(c->columns, cases[i].columns, "%s: %d columns", params, c->columns);
    cr_expect_eq(c->num_stages, cases[i].buffers, "%s: %d buffers", params, c->num_stages);
    ftl_tile_program_destroy(program);
  }
}

// Where the stages are idle and have the room C lies over them, else behind them.
Test(unit_workloads_matmul_tiled, a_tile_of_c_without_a_producer_leaves_whole) {
  static const struct {
    const char *params;
    bool lies_over;
  } cases[] = {{"m=128 n=128 block_m=128 block_n=128 block_k=32 num_stages=2", true},
               {"m=128 n=128 block_m=128 block_n=128 block_k=32 num_stages=1", false},
               {"m=128 n=128 block_m=128 block_n=128 block_k=64 num_stages=2 dtype=fp8_e4m3", true},
               {"m=128 n=128 block_m=128 block_n=128 block_k=32 num_stages=2 dtype=fp8_e4m3", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[128];
    ftl_tile_program *program;
    ftl_error error = {0};
    snprintf(params, sizeof params, "num_warps=8 store=staged mma=mma copy=cp_async %s", cases[i].params);
    cr_assert_eq(build(params, &program, &error), FTL_OK, "%s: %s", params, error.message);
    const ftl_ring *c = &program->rings[program->num_rings - 1];
    cr_expect(c->rows == 128 && c->columns == 128 && c->num_stages == 1, "%s", params);
    cr_expect_eq(c->overlaid, cases[i].lies_over, "%s", params);
    ftl_tile_program_destroy(program);
  }
}

Test(unit_workloads_matmul_tiled, a_staged_tile_of_c_is_whole_and_unsplit) {
  static const char *const refused[] = {"m=64 n=64 block_m=64 block_n=40",      "m=64 n=64 k=128 block_m=64 splits=2",
                                        "m=64 n=64 block_m=64 dtype=tf32",      "m=64 n=64 block_m=64 acc_dtype=fp16",
                                        "m=64 n=64 mma=mma block_n=40",         "m=64 n=64 mma=mma k=128 splits=2",
                                        "m=64 n=64 mma=mma copy=ldg dtype=int8"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char params[128];
    ftl_tile_program *program;
    ftl_error error = {0};
    snprintf(params, sizeof params, "num_warps=4 store=staged %s", refused[i]);
    cr_assert_eq(build(params, &program, &error), FTL_INFEASIBLE, "%s", params);
    cr_expect_str_eq(error.message,
                     "store=staged: needs columns of each group in whole pieces of 16, results of 16 bits, "
                     "acc_dtype=fp32 and splits=1");
  }
}

// Steps of 128 half-bytes are copied in two parts, as CUTLASS's mma.sync kernels copy theirs.
Test(unit_workloads_matmul_tiled, ctas_of_a_cluster_share_no_parts_of_steps) {
  ftl_tile_program *program;
  ftl_error error = {0};
  const char *params =
      "m=256 n=64 k=4096 block_m=128 block_n=64 block_k=128 num_warps=4 num_stages=4 mma=mma copy=cp_async "
      "code=buffered dtype=int8 acc_dtype=int32 transpose_b=1 cluster=2x1";
  cr_assert_eq(build(params, &program, &error), FTL_INFEASIBLE, "%s", error.message);
  cr_expect_str_eq(
      error.message,
      "cluster=2x1: its CTAs share whole tiles, by mma=wgmma copy=tma; code=buffered copies parts of a step");
}

Test(unit_workloads_matmul_tiled, late_refills_have_no_producer_and_two_stages) {
  static const char *const refused[] = {"refill=late", "copy=cp_async num_stages=1 refill=late",
                                        "copy=cp_async refill=behind"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char params[128];
    ftl_tile_program *program;
    ftl_error error = {0};
    snprintf(params, sizeof params, "m=64 n=64 block_m=64 num_warps=4 %s", refused[i]);
    cr_assert_eq(build(params, &program, &error), FTL_INFEASIBLE, "%s", params);
    cr_expect(strstr(error.message, "products refill early, or late without a producer and with num_stages >= 2"), "%s",
              error.message);
  }
}

// As block_product.h: late is Triton's with wgmma and cp.async; what was given stays, but for `auto`.
Test(unit_workloads_matmul_tiled, an_answer_says_when_buffers_are_refilled) {
  static const struct {
    const char *params;
    int64_t refill;
  } cases[] = {{"copy=cp_async num_stages=2", FTL_REFILL_LATE},
               {"copy=cp_async num_stages=2 refill=auto", FTL_REFILL_LATE},
               {"copy=cp_async num_stages=1", FTL_REFILL_EARLY},
               {"copy=tma num_stages=2 code=plain", FTL_REFILL_EARLY},
               {"copy=tma num_stages=2 code=lean", FTL_REFILL_WHEN_FREE},
               {"copy=tma num_stages=1 code=lean", FTL_REFILL_EARLY},
               {"copy=tma num_stages=2 code=lean refill=early", FTL_REFILL_EARLY},
               {"copy=cp_async mma=mma num_stages=2", FTL_REFILL_EARLY},
               {"copy=cp_async num_stages=2 refill=early", FTL_REFILL_EARLY},
               {"copy=cp_async mma=mma num_stages=2 refill=late", FTL_REFILL_LATE}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ftl_spec spec;
    ftl_error error = {0};
    cr_assert_eq(spec_of_words(&spec, "matmul_tiled", "m=64 n=64 k=64 mma=wgmma", cases[c].params, &error), FTL_OK,
                 "%s", error.message);
    spec.workload->resolve(&spec, NULL);
    cr_expect_eq(spec.value[FTL_PARAM_refill], cases[c].refill, "%s", cases[c].params);
  }
}

// 192 x 192 on two warpgroups: 64 rows a warpgroup do not divide 192, half of the columns do.
Test(unit_workloads_matmul_tiled, warpgroups_side_by_side_have_all_rows_and_half_the_columns) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(build("m=384 n=384 block_m=192 block_n=192 num_warps=8", &program, &error), FTL_INFEASIBLE);
  cr_assert_eq(build("m=384 n=384 block_m=192 block_n=192 num_warps=8 groups_n=2", &program, &error), FTL_OK);
  cr_expect_eq(program->num_roles, 3);
  for (int32_t i = 0; i < program->num_values; i++) {
    cr_expect_eq(program->values[i].rows, 192);
    cr_expect_eq(program->values[i].columns, 96);
  }
  ftl_tile_program_destroy(program);
  cr_assert_eq(build("m=384 n=384 block_m=192 block_n=176 num_warps=8 groups_n=2", &program, &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, "groups_n=2: needs mma=wgmma copy=tma and block_n a multiple of 32");
  cr_assert_eq(build("m=384 n=384 num_warps=1 groups_n=2", &program, &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, "groups_n=2: num_warps=1 must be a multiple");
}

Test(unit_workloads_matmul_tiled, warps_side_by_side_have_whole_blocks_of_columns) {
  static const struct {
    const char *params, *message;
  } refused[] = {
      {"num_warps=4 warps_n=3 mma=mma", "warps_n=3: num_warps=4 must be a multiple of 3, and block_n=64 of 48"},
      {"num_warps=8 warps_n=8 mma=mma", "warps_n=8: num_warps=8 must be a multiple of 8, and block_n=64 of 128"},
      {"num_warps=4 warps_n=2 mma=wgmma copy=cp_async",
       "warps_n=2: num_warps=4 must be a multiple of 8, and block_n=64 of 32"},
      {"num_warps=8 warps_n=2 mma=wgmma copy=tma",
       "warps_n=2: with mma=wgmma copy=tma groups_n is how warps divide columns"}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char params[128];
    ftl_tile_program *program;
    ftl_error error = {0};
    snprintf(params, sizeof params, "m=64 n=64 block_m=64 block_n=64 %s", refused[i].params);
    cr_expect_eq(build(params, &program, &error), FTL_INFEASIBLE, "%s", params);
    cr_expect_str_eq(error.message, refused[i].message);
  }
}
