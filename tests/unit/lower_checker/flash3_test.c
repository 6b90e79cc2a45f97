// Every lowering of flash3_fwd that is feasible does what its tile program says, and what it needs is told.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const shapes[] = {
    "heads=2 seqlen=512 head_dim=64",
    "heads=2 seqlen=500 head_dim=64 causal=1",
    "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=333 head_dim=128 causal=1",
    "heads=4 kv_heads=1 seqlen_q=300 seqlen_kv=100 head_dim=40 causal=1 layout=bshd",
    "heads=1 seqlen_q=1 seqlen_kv=17 head_dim=96",
    "heads=2 seqlen=500 head_dim=128 head_dim_v=64 causal=1",
    "heads=2 seqlen_q=300 seqlen_kv=333 head_dim=64 head_dim_v=96",
};

static const char *const blocks[] = {
    "block_n=128 num_stages=2",
    "block_n=64 num_stages=3 persistent=1",
    "num_warps=12 block_n=64 num_stages=1",
    "num_warps=12 block_n=80 num_stages=2 persistent=1",
    "block_m=256 block_n=48",  // two slabs of 64 rows a warpgroup: spills
};

static void prove(const char *shape, const char *kind) {
  char parameters[400];
  snprintf(parameters, sizeof parameters, "%s %s", shape, kind);
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", parameters, &error), FTL_OK, "%s: %s", parameters,
               error.message);
  for (int64_t cta = 0; cta < p.tile->num_ctas; cta += 1 + p.tile->num_ctas / 3)
    cr_expect_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s: %s", parameters, error.message);
  programs_fini(&p);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

Test(unit_lower_checker_flash3, every_lowering_does_what_its_tile_program_says) {
  for (size_t s = 0; s < COUNT(shapes); s++)
    for (size_t b = 0; b < COUNT(blocks); b++) prove(shapes[s], blocks[b]);
}

Test(unit_lower_checker_flash3, without_its_overlap_or_its_roles_it_does_what_its_tile_program_says) {
  static const char *const kinds[] = {"block_n=128 overlap=0",
                                      "num_warps=12 block_n=80 persistent=1 overlap=0",
                                      "block_n=128 schedule=stages producer=0",
                                      "block_n=128 schedule=stages",
                                      "num_warps=4 block_n=64 schedule=stages persistent=1",
                                      "num_warps=12 block_n=64 schedule=stages overlap=1",
                                      "block_n=64 num_stages=3 persistent=1 schedule=stages producer=0",
                                      "num_warps=12 block_n=64 schedule=stages producer=0 overlap=0",
                                      "block_n=128 num_stages=1 turns=softmax",
                                      "block_n=64 persistent=1 turns=softmax q_stages=2 scaling=apart"};
  for (size_t s = 0; s < COUNT(shapes); s++)
    for (size_t k = 0; k < COUNT(kinds); k++) prove(shapes[s], kinds[k]);
}

Test(unit_lower_checker_flash3, packed_sequences_do_what_the_tile_program_says) {
  static const char *const kinds[] = {"block_n=64",
                                      "block_n=64 persistent=1 causal=1 layout=bshd",
                                      "num_warps=12 block_n=96 causal=1 window=100",
                                      "block_n=64 dtype=fp8_e4m3",
                                      "block_n=128 schedule=stages producer=0 persistent=1",
                                      "block_n=128 schedule=stages persistent=1",
                                      "block_n=64 overlap=0 causal=1"};
  for (size_t k = 0; k < COUNT(kinds); k++) prove("heads=4 kv_heads=2 lengths=300:1:513:64 head_dim=64", kinds[k]);
}

Test(unit_lower_checker_flash3, fp8_with_values_transposed_by_the_producer_does_what_its_tile_program_says) {
  static const char *const kinds[] = {"block_n=128 dtype=fp8_e4m3",
                                      "block_n=64 num_stages=3 persistent=1 dtype=fp8_e4m3",
                                      "num_warps=12 block_n=128 dtype=fp8_e4m3"};
  for (size_t s = 0; s < COUNT(shapes); s++)
    for (size_t k = 0; k < COUNT(kinds); k++)
      if (!strstr(shapes[s], "head_dim=40")) prove(shapes[s], kinds[k]);
}

Test(unit_lower_checker_flash3, every_cta_of_a_cluster_does_what_the_tile_program_says) {
  static const char *const clusters[] = {"cluster=2x1", "cluster=4x1 block_n=64 persistent=1",
                                         "cluster=8x1 block_n=64"};
  for (size_t c = 0; c < COUNT(clusters); c++) {
    char parameters[400];
    snprintf(parameters, sizeof parameters, "heads=2 seqlen_q=1000 seqlen_kv=333 head_dim=64 %s", clusters[c]);
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", parameters, &error), FTL_OK, "%s", error.message);
    for (int64_t cta = 0; cta < p.tile->num_ctas; cta += 5)
      cr_expect_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s: %s", parameters, error.message);
    programs_fini(&p);
  }
}

static void expect_infeasible(const char *arch, const char *parameters, const char *reason) {
  programs p;
  ftl_error error = {0};
  cr_expect_eq(lower_workload(&p, arch, "flash3_fwd", parameters, &error), FTL_INFEASIBLE, "%s: feasible", parameters);
  cr_expect_not_null(strstr(error.message, reason), "\"%s\" does not say \"%s\"", error.message, reason);
  programs_fini(&p);
}

#define SHAPE "heads=1 seqlen=512 head_dim=64 "

Test(unit_lower_checker_flash3, what_it_needs_and_does_not_find_is_the_reason) {
  expect_infeasible("a100_80", SHAPE, "needs mma=wgmma (compute capability 9.0)");
  expect_infeasible("h200", SHAPE "mma=mma", "needs mma=wgmma");
  expect_infeasible("h200", SHAPE "dtype=fp8_e4m3 block_n=48", "block_n=48");
  expect_infeasible("h200", SHAPE "dtype=fp8_e4m3 num_stages=1", "num_stages=1");
  expect_infeasible("h200", SHAPE "copy=cp_async", "needs copy=tma");
  expect_infeasible("h200", SHAPE "num_warps=4", "two or three consumer warpgroups");
  expect_infeasible("h200", SHAPE "num_warps=2", "two or three consumer warpgroups");  // no whole warpgroup
  expect_infeasible("h200", SHAPE "num_warps=8 block_m=64", "each consumer warpgroup needs a multiple of 64 rows");
  expect_infeasible("h200", SHAPE "cluster=2x1 causal=1",
                    "with causal, window, lengths or mask its query tiles see different keys");
  expect_infeasible("h200", SHAPE "cluster=2x1 mask=butterfly mask_block=256",
                    "with causal, window, lengths or mask its query tiles");
  expect_infeasible("h200", "heads=1 lengths=512:512 head_dim=64 cluster=2x1", "with causal, window, lengths or mask");
  expect_infeasible("h200", "heads=1 lengths=512:512 head_dim=64 mask=butterfly", "not with lengths");
  expect_infeasible("h200", SHAPE "cluster=2x1 schedule=stages producer=0", "allowed is producer=true");
  expect_infeasible("h200", SHAPE "dtype=fp8_e4m3 schedule=stages producer=0", "a producer transposes values");
  expect_infeasible("h200", SHAPE "num_stages=1 schedule=stages producer=0", "num_stages=1: without a producer");
  expect_infeasible("h200", SHAPE "producer=0", "nobody takes turns without a producer");
  expect_infeasible("h200", SHAPE "schedule=stages turns=softmax", "under schedule=stages nobody takes turns");
  expect_infeasible("h200", SHAPE "schedule=stages producer=0 q_stages=2", "nobody fetches queries ahead");
  expect_infeasible("h200", "heads=1 seqlen=300 head_dim=64 cluster=2x1", "a head has 3 query tiles");
  expect_infeasible("h200", "heads=1 seqlen=1024 head_dim=64 cluster=4x1 block_n=16", "must copy a multiple of 8");
  expect_infeasible("h200", "heads=1 seqlen=512 head_dim=256 block_n=128", "bytes of shared memory a CTA");
}

// ---- broken one instruction at a time ----

static programs lowered(void) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", SHAPE "block_n=64", &error), FTL_OK, "%s", error.message);
  return p;
}

// The `nth` instruction of a kind in a role.
static ftl_warp_inst *nth_of(const programs *p, int32_t role, ftl_opcode opcode, int nth) {
  const ftl_warp_role *r = &p->warps->roles[role];
  for (int32_t i = r->first_inst; i < r->first_inst + r->num_insts; i++)
    if (p->warps->insts[i].opcode == opcode && nth-- == 0) return &p->warps->insts[i];
  cr_assert_fail("no such %s", ftl_opcode_name(opcode));
  return NULL;
}

static void drop(ftl_warp_inst *inst) { inst->opcode = FTL_OP_NOP; }

static void expect_rejected(programs *p, const char *what) {
  ftl_error error = {0};
  cr_expect_eq(ftl_checker_prove(p->warps, 0, &error), FTL_RUN_FAILED, "accepted; wanted: %s", what);
  cr_expect_not_null(strstr(error.message, what), "said \"%s\", wanted \"%s\"", error.message, what);
  programs_fini(p);
}

Test(unit_lower_checker_flash3, a_turn_that_is_not_passed_on_is_found) {
  programs p = lowered();
  drop(nth_of(&p, 1, FTL_OP_BAR_ARRIVE, 1));  // consumer 0's in the loop
  expect_rejected(&p, "waits for ever");
}

Test(unit_lower_checker_flash3, a_stage_given_back_before_its_products_are_waited_for_is_found) {
  programs p = lowered();
  drop(nth_of(&p, 1, FTL_OP_WGMMA_WAIT, 1));  // before K's release in the loop
  expect_rejected(&p, "gives back a stage that a wgmma may still read");
}

Test(unit_lower_checker_flash3, a_stage_filled_before_all_consumers_gave_it_back_is_found) {
  programs p = lowered();
  p.warps->rings[1].num_consumer_warps = 4;  // K's stages count as empty when one of the two warpgroups is done
  expect_rejected(&p, "a stage that");
}

// ---- how the compiler orders it ----

static int64_t count(const programs *p, int32_t role, ftl_opcode opcode) {
  int64_t n = 0;
  const ftl_warp_role *r = &p->warps->roles[role];
  for (int32_t i = r->first_inst; i < r->first_inst + r->num_insts; i++) n += p->warps->insts[i].opcode == opcode;
  return n;
}

// Position after `from` in the role of the next instruction of a kind.
static int32_t next_of(const programs *p, int32_t role, ftl_opcode opcode, int32_t from) {
  const ftl_warp_role *r = &p->warps->roles[role];
  for (int32_t i = from + 1; i < r->num_insts; i++)
    if (p->warps->insts[r->first_inst + i].opcode == opcode) return i;
  cr_assert_fail("no %s", ftl_opcode_name(opcode));
  return -1;
}

Test(unit_lower_checker_flash3, a_turn_is_passed_on_before_the_softmax_and_the_output_awaited_before_its_exponentials) {
  programs p = lowered();
  int32_t loop = next_of(&p, 1, FTL_OP_LOOP, -1), turn = next_of(&p, 1, FTL_OP_BAR_SYNC, loop);
  int32_t passed = next_of(&p, 1, FTL_OP_BAR_ARRIVE, turn), maximum = next_of(&p, 1, FTL_OP_FMNMX, turn);
  int32_t scores = next_of(&p, 1, FTL_OP_WGMMA_WAIT, passed), output = next_of(&p, 1, FTL_OP_WGMMA_WAIT, scores);
  int32_t exponential = next_of(&p, 1, FTL_OP_MUFU, scores);
  cr_expect_lt(passed, scores);
  cr_expect_lt(scores, maximum);
  cr_expect_lt(maximum, output);
  cr_expect_lt(output, next_of(&p, 1, FTL_OP_CVT, scores));
  cr_expect_lt(output, exponential + 16, "at most a few exponentials go before it");
  programs_fini(&p);
}

// Without overlap no two products are under way together: each is waited for before the next, the scores before the
// maximum, the output before the scores of the next tile are begun.
Test(unit_lower_checker_flash3, without_overlap_the_output_is_awaited_before_the_next_scores_begin) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", SHAPE "block_n=64 overlap=0", &error), FTL_OK, "%s",
               error.message);
  int32_t loop = next_of(&p, 1, FTL_OP_LOOP, -1), turn = next_of(&p, 1, FTL_OP_BAR_SYNC, loop);
  int32_t output = next_of(&p, 1, FTL_OP_WGMMA_COMMIT, turn), awaited = next_of(&p, 1, FTL_OP_WGMMA_WAIT, turn);
  int32_t scores = next_of(&p, 1, FTL_OP_WGMMA, awaited), passed = next_of(&p, 1, FTL_OP_BAR_ARRIVE, turn);
  cr_expect_lt(output, awaited);
  cr_expect_lt(awaited, next_of(&p, 1, FTL_OP_WGMMA_COMMIT, output), "two products are under way");
  cr_expect_lt(scores, passed);
  cr_expect_lt(passed, next_of(&p, 1, FTL_OP_FMNMX, scores));
  programs_fini(&p);
}

// A turn is the exponentials, the rescaling and the conversion: the maximum is found before it, and each product is
// awaited, the scores before the maximum, the output before the next scores.
Test(unit_lower_checker_flash3, turns_of_the_softmax_hold_its_exponentials_and_no_product) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", SHAPE "block_n=64 turns=softmax", &error), FTL_OK, "%s",
               error.message);
  int32_t loop = next_of(&p, 1, FTL_OP_LOOP, -1), scores = next_of(&p, 1, FTL_OP_WGMMA, loop);
  int32_t awaited = next_of(&p, 1, FTL_OP_WGMMA_WAIT, scores), turn = next_of(&p, 1, FTL_OP_BAR_SYNC, scores);
  int32_t maximum = next_of(&p, 1, FTL_OP_FMNMX, scores), passed = next_of(&p, 1, FTL_OP_BAR_ARRIVE, turn);
  int32_t output = next_of(&p, 1, FTL_OP_WGMMA, turn), converted = next_of(&p, 1, FTL_OP_CVT, scores);
  cr_expect_lt(awaited, maximum);
  cr_expect_lt(maximum, turn);
  cr_expect_lt(turn, converted);
  cr_expect_lt(converted, passed);
  cr_expect_lt(passed, output);
  cr_expect_lt(next_of(&p, 1, FTL_OP_WGMMA_WAIT, output), next_of(&p, 1, FTL_OP_END_LOOP, output));
  programs_fini(&p);
}

static int32_t next_tile_op(const programs *p, int32_t role, ftl_tile_op_kind kind, int32_t from) {
  const ftl_role *r = &p->tile->roles[role];
  for (int32_t i = from + 1; i < r->num_ops; i++)
    if (p->tile->ops[r->first_op + i].kind == kind) return i;
  return r->num_ops;
}

// Ring 0 is Q's. With two buffers it is given back before O is stored, which has a buffer of its own; with one, which O
// is staged in, behind it.
Test(unit_lower_checker_flash3, two_buffers_of_queries_are_given_back_before_the_output_is_stored) {
  for (int32_t buffers = 1; buffers <= 2; buffers++) {
    programs p;
    ftl_error error = {0};
    const char *params = buffers == 1 ? SHAPE "block_n=64 q_stages=1" : SHAPE "block_n=64 q_stages=2";
    cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", params, &error), FTL_OK, "%s", error.message);
    int32_t release = -1, store = next_tile_op(&p, 1, FTL_TILE_STORE, -1);
    do release = next_tile_op(&p, 1, FTL_TILE_RELEASE, release);
    while (p.tile->ops[p.tile->roles[1].first_op + release].ring != 0);
    cr_expect_eq(p.tile->rings[0].num_stages, buffers);
    cr_expect_eq(release < store, buffers == 2);
    cr_expect_eq(p.tile->ops[p.tile->roles[1].first_op + store].ring == 0, buffers == 1);
    programs_fini(&p);
  }
}

// Without roles nobody takes turns: all warps meet before a stage is filled again.
Test(unit_lower_checker_flash3, without_a_producer_one_role_copies_and_multiplies) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", SHAPE "block_n=64 schedule=stages producer=0", &error), FTL_OK,
               "%s", error.message);
  cr_expect_eq(p.tile->num_roles, 1);
  cr_expect_eq(p.tile->roles[0].num_warps, 8);
  cr_expect_eq(count(&p, 0, FTL_OP_BAR_ARRIVE), 0);
  programs_fini(&p);
}

// Under schedule=stages consumers have a producer, wait for each product by default, and for no one's turn.
Test(unit_lower_checker_flash3, without_turns_consumers_wait_for_their_own_products_alone) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", SHAPE "block_n=64 schedule=stages", &error), FTL_OK, "%s",
               error.message);
  cr_expect_eq(p.tile->num_roles, 3);
  cr_expect_eq(p.tile->num_barriers, 0);
  for (int32_t role = 1; role < 3; role++) cr_expect_eq(count(&p, role, FTL_OP_BAR_ARRIVE), 0);
  programs_fini(&p);
}

// 64 x 128 scores, 64 x 128 of output and 64 x 128 packed probabilities: 64 + 64 + 32 registers of the 160 that a
// consumer of three has, with nothing left for anything else. ptxas then waits for each product (C7512).
Test(unit_lower_checker_flash3, products_that_fill_the_registers_are_waited_for_one_by_one) {
  programs p;
  ftl_error error = {0};
  const char *shape = "heads=1 seqlen=512 head_dim=128 num_warps=12";
  char parameters[100];
  snprintf(parameters, sizeof parameters, "%s block_n=128", shape);
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", parameters, &error), FTL_OK, "%s", error.message);
  cr_expect_eq(count(&p, 1, FTL_OP_WGMMA_WAIT), count(&p, 1, FTL_OP_WGMMA));
  cr_expect_gt(p.warps->spill_registers, 0);
  cr_expect_eq(ftl_checker_prove(p.warps, 0, &error), FTL_OK, "%s", error.message);
  programs_fini(&p);
  snprintf(parameters, sizeof parameters, "%s block_n=64", shape);
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", parameters, &error), FTL_OK, "%s", error.message);
  cr_expect_lt(count(&p, 1, FTL_OP_WGMMA_WAIT), count(&p, 1, FTL_OP_WGMMA));
  programs_fini(&p);
}
