#include <criterion/criterion.h>

#include "engine/work.h"

// exprs: 0 = the constant 0, 1 = the CTA index, 2 = the constant 2.
static ftl_expr_node exprs[] = {
    {.kind = FTL_EXPR_CONST, .value = 0}, {.kind = FTL_EXPR_CTA}, {.kind = FTL_EXPR_CONST, .value = 2}};
static ftl_tile_program tile = {.num_ctas = 4, .num_exprs = 3, .exprs = exprs, .num_loop_vars = 2};

static ftl_warp_program program_of(ftl_warp_inst *insts, int32_t num_insts, ftl_warp_loop *loops, int32_t num_loops) {
  ftl_warp_program program = {.tile = &tile,
                              .num_roles = 1,
                              .num_insts = num_insts,
                              .num_loops = num_loops,
                              .insts = insts,
                              .loops = loops,
                              .product = {.mma_macs = 2048,
                                          .mma_fp16_macs = 2048,
                                          .mma_interval_cycles = 8,
                                          .operand_columns = 16,
                                          .wgmma_fma_per_cycle = 2048}};
  program.roles[0] = (ftl_warp_role){.num_warps = 4, .num_insts = num_insts};
  return program;
}

Test(unit_engine_work, loop_bodies_count_as_often_as_each_cta_runs_them) {
  ftl_warp_inst insts[] = {
      {.opcode = FTL_OP_IADD, .repeat = 3}, {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_MMA, .repeat = 2},  {.opcode = FTL_OP_LDSM, .repeat = 1, .wavefronts = 6, .conflicts = 2},
      {.opcode = FTL_OP_BRA, .repeat = 1},  {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_EXIT, .repeat = 1},
  };
  ftl_warp_loop loops[] = {{.loop_var = 0, .lo = 0, .hi = 1, .begin = 1, .end = 5}};
  ftl_warp_program program = program_of(insts, 7, loops, 1);
  ftl_static_work work = ftl_static_work_of(&program, program.tile->num_ctas);
  // CTAs 0..3 run the loop 0, 1, 2, 3 times: 6 iterations of 4 instructions; 4 CTAs of 4 instructions outside; 4 warps.
  cr_assert_eq(work.warp_insts, 4 * (4 * 4 + 6 * 4));
  cr_assert_eq(work.tensor_insts, 4 * 6 * 2);
  cr_assert_eq(work.tensor_macs, 4 * 6 * 2 * 2048);
  cr_assert_eq(work.tensor_busy_cycles, 4 * 6 * 2 * 8);
  cr_assert_eq(work.shared_wavefronts, 4 * 6 * 6);
  cr_assert_eq(work.bank_conflicts, 4 * 6 * 2);
  // By what they keep busy: 3 IADD3 a warp; EXIT a warp and BRA an iteration; LDSM and 2 HMMA an iteration.
  cr_assert_eq(work.insts[FTL_WORK_ALU], 4 * 4 * 3);
  cr_assert_eq(work.insts[FTL_WORK_BRANCH], 4 * (4 + 6));
  cr_assert_eq(work.insts[FTL_WORK_MIO], 4 * 6);
  cr_assert_eq(work.insts[FTL_WORK_TENSOR], 4 * 6 * 2);
  cr_assert_eq(work.insts[FTL_WORK_MARK], 0);
}

Test(unit_engine_work, inner_loops_may_depend_on_outer_variables) {
  // exprs 3: the value of loop variable 0, the bound of the inner loop.
  ftl_expr_node nested_exprs[] = {exprs[0], exprs[1], exprs[2], {.kind = FTL_EXPR_LOOP, .value = 0}};
  ftl_tile_program nested_tile = tile;
  nested_tile.exprs = nested_exprs;
  nested_tile.num_exprs = 4;
  ftl_warp_inst insts[] = {
      {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 1},
      {.opcode = FTL_OP_FFMA, .repeat = 1},
      {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 1},
      {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 0},
  };
  ftl_warp_loop loops[] = {{.loop_var = 0, .lo = 0, .hi = 1, .begin = 0, .end = 4},
                           {.loop_var = 1, .lo = 0, .hi = 3, .begin = 1, .end = 3}};
  ftl_warp_program program = program_of(insts, 5, loops, 2);
  program.tile = &nested_tile;
  // CTA c: sum of i for i < c = 0, 0, 1, 3: 4 instructions, 4 warps.
  cr_assert_eq(ftl_static_work_of(&program, program.tile->num_ctas).warp_insts, 4 * 4);
}

Test(unit_engine_work, elected_instructions_count_once_and_a_wgmma_is_a_quarter_of_its_warpgroup) {
  ftl_warp_inst insts[] = {
      {.opcode = FTL_OP_TMA_LOAD, .repeat = 1, .flags = FTL_INST_WARP0},
      {.opcode = FTL_OP_WGMMA, .repeat = 1, .arg = 128},
      {.opcode = FTL_OP_WGMMA_COMMIT, .repeat = 1},  // no instruction of its own
  };
  ftl_warp_program program = program_of(insts, 3, NULL, 0);
  ftl_static_work work = ftl_static_work_of(&program, program.tile->num_ctas);
  cr_assert_eq(work.warp_insts, 4 * (1 + 4));
  cr_assert_eq(work.tensor_macs, 4 * 64 * 128 * 16);       // a CTA's one warpgroup, 4 CTAs
  cr_assert_eq(work.tensor_busy_cycles, 4 * 4 * 128 / 2);  // N/2 cycles on each of four sub-cores
}

Test(unit_engine_work, segments_are_cut_at_loops) {
  ftl_warp_inst insts[] = {
      {.opcode = FTL_OP_IADD, .repeat = 3},
      {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_MMA, .repeat = 2},
      {.opcode = FTL_OP_BRA, .repeat = 1},
      {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_EXIT, .repeat = 1},
  };
  ftl_warp_loop loops[] = {{.loop_var = 0, .lo = 0, .hi = 1, .begin = 1, .end = 4}};
  ftl_warp_program program = program_of(insts, 6, loops, 1);
  ftl_static_work segments[3];
  ftl_static_work_of_segments(&program, (int32_t[]){0, 1}, segments, 3);
  // One CTA of 4 warps: 3 instructions, then 2 MMAs of 8 cycles and a branch in each iteration, then the exit.
  cr_assert_eq(segments[0].warp_insts, 4 * 3);
  cr_assert_eq(segments[1].warp_insts, 4 * 3);
  cr_assert_eq(segments[1].tensor_busy_cycles, 4 * 2 * 8);
  cr_assert_eq(segments[2].warp_insts, 4 * 1);
}

Test(unit_engine_work, the_body_of_a_loop_around_others_is_cut_too) {
  ftl_warp_inst insts[] = {
      {.opcode = FTL_OP_IADD, .repeat = 3},  {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_IADD, .repeat = 5},  {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 1},
      {.opcode = FTL_OP_IADD, .repeat = 7},  {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 1},
      {.opcode = FTL_OP_IADD, .repeat = 11}, {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_IADD, .repeat = 13},
  };
  ftl_warp_loop loops[] = {{.loop_var = 0, .lo = 0, .hi = 1, .begin = 1, .end = 7},
                           {.loop_var = 1, .lo = 0, .hi = 1, .begin = 3, .end = 5}};
  ftl_warp_program program = program_of(insts, 9, loops, 2);
  ftl_static_work segments[7];
  ftl_static_work_of_segments(&program, (int32_t[]){-1, 1}, segments, 7);
  // Of 4 warps: before; a loop that never runs; in the outer loop before, in and behind the inner one; another; behind.
  static const int64_t insts_of[] = {3, 0, 5, 7, 11, 0, 13};
  for (int s = 0; s < 7; s++) cr_assert_eq(segments[s].warp_insts, 4 * insts_of[s], "segment %d", s);
}

Test(unit_engine_work, ctas_of_loops_with_constant_bounds_all_count) {
  ftl_warp_inst insts[] = {
      {.opcode = FTL_OP_LOOP, .repeat = 1, .arg = 0},
      {.opcode = FTL_OP_FFMA, .repeat = 1},
      {.opcode = FTL_OP_END_LOOP, .repeat = 1, .arg = 0},
  };
  ftl_warp_loop loops[] = {{.loop_var = 0, .lo = 0, .hi = 2, .begin = 0, .end = 2}};
  ftl_warp_program program = program_of(insts, 3, loops, 1);
  ftl_static_work work = ftl_static_work_of(&program, program.tile->num_ctas);
  // 4 CTAs run the loop twice on 4 warps: the bound is the constant 2.
  cr_assert_eq(work.warp_insts, 4 * 2 * 4);
}
