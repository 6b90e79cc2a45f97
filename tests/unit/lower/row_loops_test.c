// How the loops of kernels that stream rows are unrolled, and what registers ptxas takes for them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../lower_checker/programs.h"
#include "lower/walk.h"

static programs lowered(const char *arch, const char *workload, const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, arch, workload, parameters, launch, &error);
  cr_assert_eq(status, FTL_OK, "%s: %s", arch, error.message);
  return p;
}

typedef struct row_loop {
  int32_t loads, stores;
  int32_t loads_first;  // before the first conversion: so many at least
} row_loop;

static row_loop look_at(const ftl_warp_program *p, int32_t loop_idx) {
  row_loop loop = {0};
  int32_t converted = 0;
  for (int32_t i = p->loops[loop_idx].begin + 1; i < p->loops[loop_idx].end; i++) {
    ftl_opcode opcode = p->insts[i].opcode;
    loop.loads += opcode == FTL_OP_LDG;
    loop.stores += opcode == FTL_OP_STG;
    loop.loads_first += opcode == FTL_OP_LDG && converted == 0;
    converted += opcode == FTL_OP_HFMA2;
  }
  return loop;
}

static void expect_loop(const ftl_warp_program *p, int32_t loop_idx, row_loop expected) {
  row_loop loop = look_at(p, loop_idx);
  cr_expect_eq(loop.loads, expected.loads, "loop %d: %d loads", loop_idx, loop.loads);
  cr_expect_eq(loop.stores, expected.stores, "loop %d: %d stores", loop_idx, loop.stores);
  cr_expect_geq(loop.loads_first, expected.loads_first, "loop %d: %d loads first", loop_idx, loop.loads_first);
}

#define ROWS "batch=1 heads=1 seqlen_q=132 seqlen_kv=7168 num_warps=4 schedule=reread scaling=apart"

// The SASS of kernels/attention/softmax_rows.h (#pragma unroll 4): of each pass a loop of single steps for what four do
// not divide, then one of four steps. The first asks for steps ahead of the arithmetic; the last pass cannot, behind
// its stores.
Test(unit_lower_row_loops, rows_that_are_read_again_are_read_four_steps_at_a_time) {
  programs p = lowered("h200", "softmax_online", ROWS, 0);
  cr_assert_eq(p.warps->num_loops, 4);
  expect_loop(p.warps, 0, (row_loop){1, 0, 1});
  expect_loop(p.warps, 1, (row_loop){4, 0, 3});
  expect_loop(p.warps, 2, (row_loop){1, 1, 1});
  expect_loop(p.warps, 3, (row_loop){4, 4, 1});
  // 7168 columns are 7 steps of 1024: 3 single ones, then one round
  const ftl_tile_program *tile = p.tile;
  ftl_expr_point point = {0};
  for (int32_t i = 0; i < 4; i++)
    cr_expect_eq(ftl_expr_eval(tile, p.warps->loops[i].hi, &point) - ftl_expr_eval(tile, p.warps->loops[i].lo, &point),
                 i % 2 == 0 ? 3 : 1, "loop %d", i);
  programs_fini(&p);
}

// kernels/attention/standard_mma.h leaves it to nvcc, for which 152 instructions are enough: of 38 instructions a step
// (maximum) four, of 62 (sum) and 67 (result) two, of 77 (maximum and sum at once) one.
Test(unit_lower_row_loops, loops_that_the_source_does_not_unroll_are_unrolled_by_their_size) {
  enum { SOFTMAX = 1 };
  static const char shape[] = "heads=2 seqlen=4096 head_dim=64 block_m=64 block_n=64 num_warps=4 softmax=";
  char parameters[128];
  snprintf(parameters, sizeof parameters, "%ssafe", shape);
  programs p = lowered("h200", "standard_attention", parameters, SOFTMAX);
  cr_assert_eq(p.warps->num_loops, 9);  // of each pass single steps, rounds, and the last step
  expect_loop(p.warps, 1, (row_loop){4, 0, 3});
  expect_loop(p.warps, 4, (row_loop){2, 0, 2});
  expect_loop(p.warps, 7, (row_loop){2, 2, 1});
  programs_fini(&p);
  snprintf(parameters, sizeof parameters, "%sonline", shape);
  p = lowered("h200", "standard_attention", parameters, SOFTMAX);
  cr_assert_eq(p.warps->num_loops, 5);
  expect_loop(p.warps, 0, (row_loop){1, 0, 1});
  expect_loop(p.warps, 3, (row_loop){2, 2, 1});
  programs_fini(&p);
}

typedef struct mask_cost {
  int32_t compares, selects, moves;
} mask_cost;

static mask_cost cost_of(const ftl_warp_program *p, int32_t loop_idx) {
  mask_cost cost = {0};
  for (int32_t i = p->loops[loop_idx].begin + 1; i < p->loops[loop_idx].end; i++) {
    const ftl_warp_inst *inst = &p->insts[i];
    cost.compares += inst->opcode == FTL_OP_ISETP ? inst->repeat : 0;
    cost.selects += inst->opcode == FTL_OP_SEL ? inst->repeat : 0;
    cost.moves += inst->opcode == FTL_OP_MOV ? inst->repeat : 0;
  }
  return cost;
}

// A softmax compares each column with the last that its row sees, whether that is known or not: the four vectors of a
// round of the maximum cost 4 x 8 compares, and none whether the vector exists, since threads leave the loop as their
// columns end. One compare ends the loop. Each load moves its address to a pair of registers, 2 MOV; where the two
// vectors of a round are exponentiated, 2 x 8 zeros are moved besides.
Test(unit_lower_row_loops, a_mask_of_rows_costs_a_compare_an_element) {
  enum { SOFTMAX = 1, MAXIMUM_ROUNDS = 1, SUM_ROUNDS = 4 };
  static const char shape[] = "heads=2 seqlen=4096 head_dim=64 block_m=64 block_n=64 num_warps=4 causal=";
  for (int causal = 0; causal < 2; causal++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters, "%s%d", shape, causal);
    programs p = lowered("h200", "standard_attention", parameters, SOFTMAX);
    mask_cost maximum = cost_of(p.warps, MAXIMUM_ROUNDS), sum = cost_of(p.warps, SUM_ROUNDS);
    cr_expect_eq(maximum.compares, 4 * 8 + 1, "%d compares", maximum.compares);
    cr_expect_eq(maximum.moves, 4 * 2, "%d moves", maximum.moves);
    cr_expect_eq(sum.compares, 2 * 8 + 1, "%d compares", sum.compares);
    cr_expect_eq(sum.moves, 2 * (2 + 8), "%d moves", sum.moves);
    cr_expect_eq(maximum.selects + sum.selects, 0);
    programs_fini(&p);
  }
}

static int32_t registers_of(const char *arch, const char *workload, const char *more) {
  char parameters[256];
  snprintf(parameters, sizeof parameters, "%s block_m=%s", ROWS, more);
  programs p = lowered(arch, workload, parameters, 0);
  int32_t registers = p.warps->registers_per_thread;
  cr_expect_eq(p.warps->spill_registers, 0);
  programs_fini(&p);
  return registers;
}

// More than 32 registers are needed, of which 16 CTAs would fit. 12 CTAs of 4 warps share 65536: 42 a thread, 40 in
// units of 8, as on the RTX 4090, which holds 12. ptxas for sm_75 takes what it needs.
Test(unit_lower_row_loops, registers_that_cost_no_cta_are_taken_from_sm_80_on) {
  cr_expect_eq(registers_of("a100_80", "softmax_safe", "4"), 40);
  cr_expect_eq(registers_of("h200", "softmax_safe", "4"), 40);
  cr_expect_eq(registers_of("h200", "softmax_online", "1"), 40);
  cr_expect_eq(registers_of("rtx4090", "softmax_safe", "1"), 40);
  cr_expect_eq(registers_of("t4", "softmax_safe", "1"), 38);
}

// A row a CTA leaves the three tensors' addresses, 6 of 38 and of 36 registers, to uniform ones: 16 CTAs fit. ptxas
// gives softmax_rows.h 32 registers so and 40 where each warp has a row, on sm_80 and sm_90a; 47 either way on sm_75.
Test(unit_lower_row_loops, addresses_of_a_row_a_cta_are_in_uniform_registers) {
  cr_expect_eq(registers_of("a100_80", "softmax_safe", "1"), 32);
  cr_expect_eq(registers_of("h200", "softmax_safe", "1"), 32);
  cr_expect_eq(registers_of("t4", "softmax_safe", "4"), registers_of("t4", "softmax_safe", "1"));
}

static int32_t open_registers_of(const char *arch, const char *workload, const char *more) {
  char parameters[256];
  snprintf(parameters, sizeof parameters, "%s scaling=exponent", more);
  return registers_of(arch, workload, parameters);
}

// Written by an author who is not known they fill an SM of 64 warps with 32 registers, of 48 with 40; on sm_75, whose
// SM of 32 warps has 64 for each, they take what they need.
Test(unit_lower_row_loops, rows_of_unknown_authors_fill_an_sm_with_warps) {
  cr_expect_eq(open_registers_of("h200", "softmax_online", "1"), 32);
  cr_expect_eq(open_registers_of("a100_80", "softmax_online", "1"), 32);
  cr_expect_eq(open_registers_of("h200", "softmax_safe", "4"), 32);
  cr_expect_eq(open_registers_of("rtx4090", "softmax_online", "1"), 40);
  cr_expect_gt(open_registers_of("t4", "softmax_online", "1"), 32);
}

// What one warp of the first CTA issues of an opcode.
static int32_t issued(const ftl_warp_program *p, int32_t warp, ftl_opcode opcode) {
  ftl_walk walk = ftl_walk_start(p, 0, warp, 0);
  int32_t count = 0;
  for (const ftl_warp_inst *inst; (inst = ftl_walk_next(&walk));) count += inst->opcode == opcode ? inst->repeat : 0;
  return count;
}

// A step is 8 warps x 256 columns. Of 1280 columns 5 warps have some: each reads them in three passes, the others leave
// before the first load.
Test(unit_lower_row_loops, warps_leave_a_loop_as_their_columns_end) {
  programs p = lowered("h200", "softmax_safe", "heads=1 seqlen_q=132 seqlen_kv=1280 num_warps=8 schedule=reread", 0);
  for (int32_t warp = 0; warp < 8; warp++)
    cr_expect_eq(issued(p.warps, warp, FTL_OP_LDG), warp < 5 ? 3 : 0, "warp %d", warp);
  programs_fini(&p);
}

// A warp a row, 256 columns a step. 1024 columns are one round of 4 steps in either pass. Of 1000 the first 29 lanes
// have a fourth step, and run the round, the others three single ones: the warp issues 3 + 4.
Test(unit_lower_row_loops, a_warp_runs_the_steps_of_both_where_some_threads_have_one_more) {
  static const char shape[] = "heads=1 seqlen_q=132 block_m=4 num_warps=4 schedule=reread seqlen_kv=";
  char parameters[128];
  snprintf(parameters, sizeof parameters, "%s1024", shape);
  programs p = lowered("h200", "softmax_online", parameters, 0);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_LDG), 2 * 4);
  programs_fini(&p);
  snprintf(parameters, sizeof parameters, "%s1000", shape);
  p = lowered("h200", "softmax_online", parameters, 0);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_LDG), 2 * (3 + 4));
  programs_fini(&p);
}

// A CTA of 4 warps a row, 1024 columns a step. Of 3584 the first two warps have four steps, the others three: none has
// threads of both kinds, and each issues its own in either pass.
Test(unit_lower_row_loops, whole_warps_with_a_step_more_run_only_their_own) {
  programs p =
      lowered("h200", "softmax_online", "heads=1 seqlen_q=132 block_m=1 num_warps=4 schedule=reread seqlen_kv=3584", 0);
  for (int32_t warp = 0; warp < 4; warp++)
    cr_expect_eq(issued(p.warps, warp, FTL_OP_LDG), 2 * (warp < 2 ? 4 : 3), "warp %d: %d", warp,
                 issued(p.warps, warp, FTL_OP_LDG));
  programs_fini(&p);
}

// Rows of 1024 columns in kernels that hold 4 steps of 1024: all 4 are filled with -inf and loaded under a predicate.
// MUFU of the safe one: 4 x 8 of the sum, 8 of the one step that is stored, reciprocal, logarithm. Of the online one: a
// correction and 8 a step, one more, 4 x 8 of the result, reciprocal, logarithm.
Test(unit_lower_row_loops, held_rows_are_filled_once_and_not_masked) {
  static const char shape[] =
      "heads=1 seqlen_q=132 seqlen_kv=1024 block_m=1 block_n=4096 num_warps=4 schedule=registers scaling=apart";
  programs p = lowered("h200", "softmax_safe", shape, 0);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_LDG), 4);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_MUFU), 4 * 8 + 8 + 2, "%d", issued(p.warps, 0, FTL_OP_MUFU));
  cr_expect_eq(issued(p.warps, 0, FTL_OP_STG), 2);
  programs_fini(&p);
  p = lowered("h200", "softmax_online", shape, 0);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_MUFU), 4 * 9 + 1 + 4 * 8 + 2, "%d", issued(p.warps, 0, FTL_OP_MUFU));
  programs_fini(&p);
}

// Rows of 4096 columns in 4 steps of 1024. As stored: HFMA2 converts 4 x 8 numbers in each of three passes, F2F 4 x 4
// pairs back; FADD and FMUL are a difference and a factor in two passes, MUFU 2 x 32, reciprocal, logarithm. Of
// exponentials that are kept numbers are converted once, a FFMA each, and MUFU are half as many.
Test(unit_lower_row_loops, exponentials_that_are_held_are_computed_once) {
  static const char shape[] =
      "heads=1 seqlen_q=132 seqlen_kv=4096 block_m=1 block_n=4096 num_warps=4 "
      "schedule=registers scaling=";
  char parameters[160];
  snprintf(parameters, sizeof parameters, "%sapart", shape);
  programs stored = lowered("h200", "softmax_safe", parameters, 0);
  snprintf(parameters, sizeof parameters, "%sexponent", shape);
  programs kept = lowered("h200", "softmax_safe", parameters, 0);
  cr_expect_eq(issued(stored.warps, 0, FTL_OP_MUFU), 2 * 32 + 2);
  cr_expect_eq(issued(kept.warps, 0, FTL_OP_MUFU), 32 + 2);
  cr_expect_eq(issued(stored.warps, 0, FTL_OP_HFMA2), 3 * issued(kept.warps, 0, FTL_OP_HFMA2));
  int32_t saved = issued(stored.warps, 0, FTL_OP_FFMA) - issued(kept.warps, 0, FTL_OP_FFMA);
  cr_expect_eq(saved, 4 * 32 - 32 - 1, "%d", saved);  // the maximum is scaled, once
  programs_fini(&stored);
  programs_fini(&kept);
}

// An online pass over one step of 8 columns: a maximum and 9 exponentials, of which each has one multiply-add and
// neither difference nor guard.
Test(unit_lower_row_loops, an_exponent_is_one_multiply_add) {
  static const char shape[] = "heads=1 seqlen_q=132 seqlen_kv=1024 num_warps=4 schedule=reread scaling=";
  char parameters[128];
  snprintf(parameters, sizeof parameters, "%sapart", shape);
  programs apart = lowered("h200", "softmax_online", parameters, 0);
  snprintf(parameters, sizeof parameters, "%sexponent", shape);
  programs fused = lowered("h200", "softmax_online", parameters, 0);
  int32_t exponentials = issued(fused.warps, 0, FTL_OP_MUFU) - 2;
  cr_expect_eq(exponentials, 9 + 1 + 8);
  cr_expect_eq(issued(apart.warps, 0, FTL_OP_MUFU) - 2, exponentials);
  int32_t saved = issued(apart.warps, 0, FTL_OP_FFMA) - issued(fused.warps, 0, FTL_OP_FFMA);
  cr_expect_eq(saved, exponentials - 2, "%d", saved);
  programs_fini(&apart);
  programs_fini(&fused);
}

static int32_t loads(const ftl_warp_program *p, bool in_subwords) {
  int32_t count = 0;
  for (int32_t i = 0; i < p->roles[0].num_insts; i++)
    if (p->insts[i].opcode == FTL_OP_LDG) count += p->accesses[p->insts[i].access].in_subwords == in_subwords;
  return count;
}

// Triton loads rows whose length is no multiple of 16 number by number: 1024 columns by 128 threads are 8 loads of two
// bytes a lane, or one of 16.
Test(unit_lower_row_loops, numbers_loaded_one_by_one_are_parts_of_words) {
  static const char shape[] =
      "heads=1 seqlen_q=132 block_m=1 block_n=1024 num_warps=4 schedule=exponentials scaling=apart seqlen_kv=";
  for (int i = 0; i < 2; i++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters, "%s%d", shape, i == 0 ? 1000 : 1008);
    programs p = lowered("h200", "softmax_safe", parameters, 0);
    cr_expect_eq(loads(p.warps, true), i == 0 ? 8 : 0, "%d", loads(p.warps, true));
    cr_expect_eq(loads(p.warps, false), i == 0 ? 0 : 1, "%d", loads(p.warps, false));
    programs_fini(&p);
  }
}

// 1 / sum, once a row: plain code branches around the function for denormal and very large numbers, and joins.
Test(unit_lower_row_loops, a_reciprocal_of_plain_code_has_a_branch) {
  enum { SOFTMAX = 1 };
  static const char shape[] = "heads=1 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 code=";
  int32_t branches[2], joins[2], functions[2];
  for (int i = 0; i < 2; i++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters, "%s%s", shape, i == 0 ? "lean" : "plain");
    programs p = lowered("h200", "standard_attention", parameters, SOFTMAX);
    branches[i] = issued(p.warps, 0, FTL_OP_BRA);
    joins[i] = issued(p.warps, 0, FTL_OP_BSYNC);
    functions[i] = issued(p.warps, 0, FTL_OP_MUFU);
    programs_fini(&p);
  }
  cr_expect_eq(branches[1] - branches[0], 1, "%d and %d", branches[0], branches[1]);
  cr_expect_eq(joins[1] - joins[0], 1, "%d and %d", joins[0], joins[1]);
  cr_expect_eq(functions[1], functions[0]);
}

// The instruction before `at` that writes the token; -1: none.
static int32_t writer_of(const ftl_warp_program *p, int32_t at, uint16_t token) {
  for (int32_t i = at - 1; i >= 0; i--)
    if (p->insts[i].destination == token) return i;
  return -1;
}

// A lane has two rows. Beside products each reciprocal stands behind a branch for x > 0, so that two paths join behind
// it. Their logarithms are of numbers that a compare has scaled where they are denormal.
Test(unit_lower_row_loops, sums_of_attention_are_guarded_and_their_logarithms_keep_denormals) {
  programs p = lowered("h200", "flash2_fwd", "heads=1 seqlen=256 head_dim=64 block_m=64 block_n=64 code=plain", 0);
  int32_t skips = 0, joins = 0, logarithms = 0;
  for (int32_t i = 0; i < p.warps->roles[0].num_insts; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    skips += inst->opcode == FTL_OP_BRA && (inst->flags & FTL_INST_SKIPS) != 0;
    joins += inst->opcode == FTL_OP_BSYNC;
    if (inst->opcode != FTL_OP_MUFU || inst->arg != FTL_ELEM_LOG2) continue;
    logarithms += inst->repeat;
    if (inst->num_sources == 0) continue;  // a further one of a run, whose first waits for the operands of all
    const ftl_warp_inst *scaling = &p.warps->insts[writer_of(p.warps, i, inst->sources[0])];
    int32_t compare = writer_of(p.warps, i, scaling->sources[scaling->num_sources - 1]);
    cr_expect_eq(scaling->opcode, FTL_OP_FFMA);
    cr_expect_eq(p.warps->insts[compare].opcode, FTL_OP_ISETP);
  }
  cr_expect_eq(skips, 2, "%d", skips);
  cr_expect_eq(joins, 4, "%d", joins);
  cr_expect_eq(logarithms, 2, "%d", logarithms);
  programs_fini(&p);
}

// 1024 columns are one step of each of the three passes, which nvcc makes single steps and rounds of: it works out once
// how many there are of either, and an address behind the branch around each, so that the rounds, which run for no row,
// have none. A pass has 3 LOP3 of the rounds' count and 3 of the address, 3 + 4 slots of branches and 2 of the address;
// the reciprocal has one of either. No trip count is clamped: FMNMX of 8 columns, 5 lanes and 3 parts of the maximum.
Test(unit_lower_row_loops, an_unrolled_loop_is_entered_once_and_addressed_where_it_runs) {
  enum { SOFTMAX = 1 };
  static const char shape[] = "heads=8 head_dim=64 block_m=64 block_n=64 num_warps=4 softmax=safe code=plain seqlen=";
  char parameters[128];
  snprintf(parameters, sizeof parameters, "%s1024", shape);
  programs p = lowered("h200", "standard_attention", parameters, SOFTMAX);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_LOP), 3 * (3 + 3) + 1, "%d", issued(p.warps, 0, FTL_OP_LOP));
  cr_expect_eq(issued(p.warps, 0, FTL_OP_NOP), 3 * (3 + 4 + 2) + 1, "%d", issued(p.warps, 0, FTL_OP_NOP));
  cr_expect_eq(issued(p.warps, 0, FTL_OP_FMNMX), 8 + 5 + 3, "%d", issued(p.warps, 0, FTL_OP_FMNMX));
  programs_fini(&p);
  // 5 steps: a single one and rounds in each pass, an address for either
  snprintf(parameters, sizeof parameters, "%s5120", shape);
  p = lowered("h200", "standard_attention", parameters, SOFTMAX);
  cr_expect_eq(issued(p.warps, 0, FTL_OP_LOP), 3 * (3 + 3 + 3) + 1, "%d", issued(p.warps, 0, FTL_OP_LOP));
  programs_fini(&p);
}

// Of a pass of two steps a round the single step is no loop: one compare fewer and no MOV of its address. The maximum,
// of four, steps.
Test(unit_lower_row_loops, a_single_step_before_rounds_of_two_is_no_loop) {
  enum { SOFTMAX = 1, MAXIMUM_STEPS = 0, SUM_STEPS = 3 };
  programs p = lowered("h200", "standard_attention",
                       "heads=2 seqlen=3072 head_dim=64 block_m=64 block_n=64 num_warps=4 softmax=safe", SOFTMAX);
  mask_cost maximum = cost_of(p.warps, MAXIMUM_STEPS), sum = cost_of(p.warps, SUM_STEPS);
  cr_expect_eq(maximum.compares, 8 + 1, "%d compares", maximum.compares);
  cr_expect_eq(maximum.moves, 2, "%d moves", maximum.moves);
  cr_expect_eq(sum.compares, 8, "%d compares", sum.compares);
  cr_expect_eq(sum.moves, 8, "%d moves", sum.moves);
  programs_fini(&p);
}
