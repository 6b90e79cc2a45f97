// Every launch of the matrix products and of gated units does what its tile program says, on every generation.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
enum { NUM_ARCHS = sizeof archs / sizeof *archs };

static void prove(const char *workload, const char *parameters, int num_launches) {
  for (int a = 0; a < NUM_ARCHS; a++)
    for (int launch = 0; launch < num_launches; launch++) {
      programs p;
      ftl_error error = {0};
      ftl_status status = lower_launch(&p, archs[a], workload, parameters, launch, &error);
      cr_assert_eq(status, FTL_OK, "%s %s: %s", archs[a], parameters, error.message);
      int64_t last = p.tile->num_ctas - 1, ctas[] = {0, 1, last / 2, last - 1, last};
      for (size_t i = 0; i < sizeof ctas / sizeof *ctas; i++)
        cr_assert_eq(ftl_checker_prove(p.warps, ctas[i], &error), FTL_OK, "%s %s: %s", archs[a], parameters,
                     error.message);
      programs_fini(&p);
    }
}

Test(unit_lower_products, gated_units_are_proved) {
  prove("glu", "m=200 n=264 k=136 block_m=64 block_k=32", 1);
  prove("glu", "m=200 n=264 k=136 block_m=64 block_k=32 transpose_b=1 activation=gelu", 1);
  prove("glu", "m=200 n=264 k=136 block_m=64 block_k=32 fused=0 activation=relu", 3);
}

Test(unit_lower_products, products_are_proved_at_every_order_and_stride) {
  prove("matmul_tiled", "m=200 n=264 k=136 block_m=64 block_k=32 transpose_a=1 transpose_c=1", 1);
  prove("matmul_tiled", "m=200 n=264 k=136 block_m=64 block_k=32 batch=3 lda=152 ldb=264 ldc=272 stride_b=0 splits=2",
        2);
}

Test(unit_lower_products, warps_side_by_side_are_proved) {
  prove("matmul_tiled", "m=200 n=264 k=136 block_m=64 block_n=128 block_k=32 num_warps=4 warps_n=2 mma=mma", 1);
  prove("matmul_tiled",
        "m=200 n=264 k=136 block_m=64 block_n=128 block_k=32 num_warps=4 warps_n=2 mma=mma num_stages=3 "
        "code=buffered",
        1);
  prove("matmul_tiled",
        "m=200 n=264 k=512 block_m=64 block_n=128 block_k=64 transpose_a=1 num_warps=4 warps_n=2 mma=mma "
        "num_stages=2 splits=3 code=buffered",
        2);
  prove("matmul_tiled", "m=200 n=264 k=136 block_m=32 block_n=128 block_k=32 num_warps=8 warps_n=4 mma=mma splits=2",
        2);
}

// Over the stages, behind them, of fp8, of rows and columns that end inside a tile.
Test(unit_lower_products, tiles_that_leave_through_shared_memory_are_proved) {
  static const char *const tiles[] = {"block_m=64 block_n=128 block_k=32 num_warps=4 warps_n=2 num_stages=3",
                                      "block_m=128 block_n=128 block_k=32 num_warps=8 warps_n=1 num_stages=1",
                                      "block_m=64 block_n=64 block_k=32 num_warps=4 warps_n=2 code=buffered",
                                      "block_m=64 block_n=48 block_k=64 num_warps=4 warps_n=1 transpose_b=1"};
  char parameters[256];
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
    snprintf(parameters, sizeof parameters, "m=200 n=264 k=136 store=staged mma=mma %s", tiles[i]);
    prove("matmul_tiled", parameters, 1);
  }
  static const char unfused[] =
      "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=130 causal=1 block_m=32 block_n=64 num_warps=2 store=staged mma=mma";
  static const char *const heads[] = {"head_dim=64", "head_dim=16 head_dim_v=24 num_stages=1"};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    snprintf(parameters, sizeof parameters, "%s %s", unfused, heads[i]);
    prove("standard_attention", parameters, 3);
    snprintf(parameters, sizeof parameters, "pass=bwd %s %s", unfused, heads[i]);
    prove("standard_attention", parameters, 5);
  }
}

// Four quad pairs of Volta multiply 16 columns at once: of the last, or of all, eight are padding.
Test(unit_lower_products, odd_eights_of_columns_are_proved) {
  prove("matmul_tiled", "m=64 n=520 k=64 block_m=64 block_n=40 block_k=64 transpose_b=1", 1);
  prove("standard_attention", "heads=2 seqlen_q=128 seqlen_kv=64 head_dim=16 block_m=64 block_n=8", 1);
}

Test(unit_lower_products, warpgroups_side_by_side_are_proved) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, "h200", "matmul_tiled",
                                   "m=384 n=400 k=136 block_m=192 block_n=192 num_warps=8 groups_n=2 mma=wgmma "
                                   "copy=tma persistent=1 tile_order=n_first tile_strip=2",
                                   0, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  for (int64_t cta = 0; cta < p.tile->num_ctas; cta++)
    cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s", error.message);
  programs_fini(&p);
}

// Instructions of a product's consumers, from the first that the CTA issues: a letter each. W: wgmma, its wait with the
// groups left; R: a stage given back; B: a barrier of the first role; C: a group of copies; P: the wait for pieces of C
// with the pieces left; T: a piece stored; ( ): a loop.
static void role_text(const char *parameters, int role_idx, char *text) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, "h200", "matmul_tiled", parameters, 0, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  for (int64_t cta = 0; cta < p.tile->num_ctas; cta++)
    cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s", error.message);
  const ftl_warp_role *role = &p.warps->roles[role_idx];
  for (int32_t i = 0; i < role->num_insts; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[role->first_inst + i];
    char letter = inst->opcode == FTL_OP_WGMMA                       ? 'W'
                  : inst->opcode == FTL_OP_MBAR_RELEASE              ? 'R'
                  : inst->opcode == FTL_OP_TMA_STORE                 ? 'T'
                  : inst->opcode == FTL_OP_BAR_SYNC && role_idx == 0 ? 'B'
                  : inst->opcode == FTL_OP_CP_COMMIT                 ? 'C'
                  : inst->opcode == FTL_OP_LOOP                      ? '('
                  : inst->opcode == FTL_OP_END_LOOP                  ? ')'
                                                                     : 0;
    if (letter) *text++ = letter;
    if (inst->opcode == FTL_OP_WGMMA_WAIT) *text++ = (char)('0' + inst->arg);
    if (inst->opcode == FTL_OP_TMA_STORE_WAIT) {
      *text++ = 'P';
      *text++ = (char)('0' + inst->arg);
    }
  }
  *text = 0;
  programs_fini(&p);
}

static void consumer_text(const char *parameters, char *text) { role_text(parameters, 1, text); }

// Four and two k steps of 16 a stage, two stages. Late: a step's products are issued, those of the step before waited
// for, and its stage is filled behind a barrier, as Triton's are (SASS of kernels/foreign/triton_product.py). Early: a
// step's barrier serves its tiles and the stage that is filled, and nothing is multiplied meanwhile.
Test(unit_lower_products, copies_of_a_role_that_multiplies_come_late_or_early) {
  char text[256];
#define BOTH "m=64 n=64 k=128 block_m=64 block_n=64 num_warps=4 mma=wgmma copy=cp_async num_stages=2 "
  role_text(BOTH "block_k=64 refill=late", 0, text);
  cr_expect_str_eq(text, "CBWWWWC(BWWWW1BC)0");
  role_text(BOTH "block_k=32 refill=early", 0, text);
  cr_expect_str_eq(text, "C(BCWW0)");
}

// ptxas waits for each wgmma of Triton's kernels with two buffers whose tiles of A have more rows than K: 64 of 64 do
// not, nor do three buffers, nor plain code.
Test(unit_lower_products, products_of_two_buffers_are_waited_for_one_by_one) {
  char text[256];
#define LATE "m=64 n=64 k=128 block_m=64 block_n=64 block_k=32 num_warps=4 mma=wgmma copy=cp_async refill=late "
  role_text(LATE "num_stages=2", 0, text);
  cr_expect_str_eq(text, "CBW0W0C(BW0W0BC)");
  role_text(LATE "num_stages=3", 0, text);
  cr_expect_str_eq(text, "CCBWWC(BWW1BC)0");
  role_text(LATE "num_stages=2 code=plain", 0, text);
  cr_expect_str_eq(text, "CBWWC(BWW1BC)0");
}

// Two k steps of 16 a stage. The stages of a step (A's and B's) are given back behind the products of the next, with
// these in flight; those of the last behind the loop. With one stage nothing runs on.
Test(unit_lower_products, products_run_on_while_the_last_ones_are_waited_for) {
  char text[256];
#define RUN_ON "m=64 n=64 k=128 block_m=64 block_n=64 block_k=32 num_warps=4 mma=wgmma copy=tma "
  consumer_text(RUN_ON "num_stages=2", text);
  cr_expect_str_eq(text, "WW(WW1RR)0RR");
  consumer_text(RUN_ON "num_stages=1", text);
  cr_expect_str_eq(text, "(WW0RR)");
}

// Two blocks of 64 rows: lean code, as cuBLAS's kernels have it, gives the last step's stages back as soon as the
// products of the first are issued, plain code (CUTLASS) when all are.
Test(unit_lower_products, lean_products_give_stages_back_amid_a_step) {
  char text[256];
#define TALL "m=128 n=64 k=128 block_m=128 block_n=64 block_k=32 num_warps=4 mma=wgmma copy=tma num_stages=2 "
  consumer_text(TALL "code=plain", text);
  cr_expect_str_eq(text, "WWWW(WWWW1RR)0RR");
  consumer_text(TALL "code=plain refill=when_free", text);
  cr_expect_str_eq(text, "WWWW(WWWW1RR)0RR");
  consumer_text(TALL "code=lean", text);
  cr_expect_str_eq(text, "WWWW(WW0RRWW)0RR");
  consumer_text(TALL "code=lean refill=early", text);
  cr_expect_str_eq(text, "WWWW(WWWW1RR)0RR");
  consumer_text(RUN_ON "num_stages=2 code=lean", text);
  cr_expect_str_eq(text, "WW(WW1RR)0RR");
}

// 64 columns in two pieces of 32, or 48 in three of 16: each waits until all but the last before it was read.
Test(unit_lower_products, a_staged_tile_leaves_in_pieces) {
  char text[256];
  consumer_text(RUN_ON "num_stages=2 store=staged", text);
  cr_expect_str_eq(text, "WW(WW1RR)0RRP1TP1T");
  consumer_text(
      "m=128 n=96 k=128 block_m=64 block_n=48 block_k=32 num_warps=4 mma=wgmma copy=tma num_stages=2 "
      "persistent=1 store=staged",
      text);
  cr_expect_str_eq(text, "WW(WW1RR)0RRP1TP1TP1T");
}

// What no chip of the list lacks is proved; elsewhere the reason names the type.
static void prove_where_there_is(const char *parameters, const char *type) {
  int num_proved = 0;
  for (int a = 0; a < NUM_ARCHS; a++) {
    programs p;
    ftl_error error = {0};
    ftl_status status = lower_launch(&p, archs[a], "matmul_tiled", parameters, 0, &error);
    if (status == FTL_INFEASIBLE) {
      cr_expect(strstr(error.message, type) != NULL, "%s: %s", archs[a], error.message);
      programs_fini(&p);
      continue;
    }
    num_proved++;
    for (int64_t cta = 0; cta < p.tile->num_ctas; cta += p.tile->num_ctas - 1)
      cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s %s: %s", archs[a], parameters, error.message);
    programs_fini(&p);
  }
  cr_expect_geq(num_proved, 2, "%s", parameters);
}

#define SIZE "m=200 n=264 k=224 block_m=64 "
Test(unit_lower_products, types_that_a_chip_has_are_proved_and_others_named) {
  static const char *const mma[] = {"mma=auto", "mma=mma"};
  for (int i = 0; i < 2; i++) {
    char parameters[256];
    static const struct {
      const char *text, *type;
    } types[] = {{"dtype=tf32 block_k=32", "tf32"},
                 {"dtype=fp8_e4m3 n=256", "fp8_e4m3"},
                 {"dtype=fp8_e5m2 acc_dtype=fp16 n=256", "fp8_e5m2"},
                 {"dtype=int8 n=256", "int8"},
                 {"dtype=int4 n=256", "int4"},
                 {"dtype=fp16 acc_dtype=fp16", "fp16"}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
      snprintf(parameters, sizeof parameters, SIZE "%s %s", types[t].text, mma[i]);
      prove_where_there_is(parameters, types[t].type);
    }
  }
}

static ftl_work work_of(const char *parameters, int launch) {
  ftl_work work;
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "a100_80", "glu", parameters, launch, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_work_of_warps(p.warps, 0, &work, &error), FTL_OK, "%s", error.message);
  programs_fini(&p);
  return work;
}

// Of a tile of 64 x 64 with k = 128: x's 64 x 128 elements once where the products are in one kernel, and twice where
// they are not, beside two weights of 128 x 64 either way.
Test(unit_lower_products, a_fused_unit_reads_x_once) {
  ftl_work fused = work_of("m=64 n=64 k=128 block_m=64", 0), gate = work_of("m=64 n=64 k=128 block_m=64 fused=0", 0);
  enum { X, W_GATE, W_UP, BYTES = 2 * 64 * 128 };
  cr_expect_eq(fused.load_bytes[X], BYTES);
  cr_expect_eq(fused.load_bytes[W_GATE], BYTES);
  cr_expect_eq(fused.load_bytes[W_UP], BYTES);
  cr_expect_eq(gate.load_bytes[X], BYTES);
  cr_expect_eq(gate.load_bytes[W_GATE], BYTES);
  cr_expect_eq(gate.load_bytes[W_UP], 0);
  cr_expect_eq(fused.mma_macs, 2 * gate.mma_macs);
}
