// How the loops of kernels that stream rows are unrolled, and what registers ptxas takes for them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../lower_checker/programs.h"

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

#define ROWS "batch=1 heads=1 seqlen_q=132 seqlen_kv=7168 block_m=1 num_warps=4 schedule=reread"

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
  cr_assert_eq(p.warps->num_loops, 6);
  expect_loop(p.warps, 1, (row_loop){4, 0, 4});
  expect_loop(p.warps, 3, (row_loop){2, 0, 2});
  expect_loop(p.warps, 5, (row_loop){2, 2, 1});
  programs_fini(&p);
  snprintf(parameters, sizeof parameters, "%sonline", shape);
  p = lowered("h200", "standard_attention", parameters, SOFTMAX);
  cr_assert_eq(p.warps->num_loops, 3);
  expect_loop(p.warps, 0, (row_loop){1, 0, 1});
  expect_loop(p.warps, 2, (row_loop){2, 2, 1});
  programs_fini(&p);
}

// A causal softmax compares each column with the last that its row sees: the four vectors of a round cost 4 x 8
// compares, each an addition for the distance and a compare whether the vector exists; one compare ends the loop.
Test(unit_lower_row_loops, a_mask_of_rows_costs_a_compare_an_element) {
  enum { SOFTMAX = 1, FIRST_ROUNDS = 1 };
  programs p = lowered("h200", "standard_attention",
                       "heads=2 seqlen=4096 head_dim=64 block_m=64 block_n=64 num_warps=4 causal=1", SOFTMAX);
  int32_t compares = 0, selects = 0;
  for (int32_t i = p.warps->loops[FIRST_ROUNDS].begin + 1; i < p.warps->loops[FIRST_ROUNDS].end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    compares += inst->opcode == FTL_OP_ISETP ? inst->repeat : 0;
    selects += inst->opcode == FTL_OP_SEL ? inst->repeat : 0;
  }
  cr_expect_eq(compares, 4 * 8 + 4 + 1, "%d compares", compares);
  cr_expect_eq(selects, 0, "%d selects", selects);
  programs_fini(&p);
}

// 38 registers are needed. 12 CTAs of 4 warps share 65536: 42 a thread, 40 in units of 8, as on the RTX 4090, which
// holds 12. For 16 CTAs 32 would have to do: 38 are 19 % more. ptxas for sm_75 takes what it needs.
Test(unit_lower_row_loops, registers_that_cost_no_cta_are_taken_from_sm_80_on) {
  static const struct {
    const char *arch;
    int32_t registers;
  } cases[] = {{"a100_80", 40}, {"rtx4090", 40}, {"h200", 40}, {"t4", 38}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *workload = strcmp(cases[i].arch, "h200") == 0 ? "softmax_online" : "softmax_safe";
    programs p = lowered(cases[i].arch, workload, ROWS, 0);
    cr_expect_eq(p.warps->registers_per_thread, cases[i].registers, "%s: %d", cases[i].arch,
                 p.warps->registers_per_thread);
    programs_fini(&p);
  }
}

// The H200 needs 36 for the maximum and the sum apart: 12.5 % more than the 32 at which 16 CTAs fit, for which it is
// drafted again.
Test(unit_lower_row_loops, row_kernels_that_miss_a_step_by_an_eighth_are_made_to_fit) {
  programs p = lowered("h200", "softmax_safe", ROWS, 0);
  cr_expect_eq(p.warps->registers_per_thread, 32, "%d", p.warps->registers_per_thread);
  cr_expect_eq(p.warps->spill_registers, 0);
  programs_fini(&p);
}
