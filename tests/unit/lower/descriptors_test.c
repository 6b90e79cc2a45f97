// flash2_fwd as Triton compiles tensor descriptors, against SASS of kernels/foreign/triton_descriptors.py (Triton 3.6,
// sm_90a): instructions of a step, where warps meet, and registers.
#include <criterion/criterion.h>
#include <math.h>

#include "loop_counts.h"

#define DESCRIPTORS SHAPE "mma=wgmma copy=tma "

typedef struct compiled {
  const char *tile;
  int32_t insts, registers;  // of a step by one warp; that ptxas reports
} compiled;

static const compiled kernels[] = {
    {"head_dim=128 block_m=64 block_n=64 num_warps=4 num_stages=3", 339, 138},
    {"head_dim=128 block_m=128 block_n=64 num_warps=8 num_stages=3", 339, 138},
    {"head_dim=128 block_m=128 block_n=128 num_warps=8 num_stages=2", 491, 187},
    {"head_dim=64 block_m=64 block_n=32 num_warps=4 num_stages=4", 221, 82},
    {"head_dim=64 block_m=128 block_n=64 num_warps=4 num_stages=2", 517, 187},
};
enum { NUM_KERNELS = sizeof kernels / sizeof *kernels };

// A step without a mask is that of the first loop, whose tiles need none.
Test(unit_lower_descriptors, a_step_has_the_instructions_that_triton_compiles) {
  for (int i = 0; i < NUM_KERNELS; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, DESCRIPTORS "%s", kernels[i].tile);
    programs p = lowered("h200", parameters);
    double error_pct = 100.0 * (double)(count_loop(p.warps, 0).total - kernels[i].insts) / kernels[i].insts;
    cr_expect_leq(fabs(error_pct), 5, "%s: %+.1f %%", kernels[i].tile, error_pct);
    programs_fini(&p);
  }
}

// Accumulators and operands from R24 on, and two more: O, S, and P, which the product that runs on into the next step
// still reads.
Test(unit_lower_descriptors, registers_are_those_that_ptxas_reports) {
  for (int i = 0; i < NUM_KERNELS; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, DESCRIPTORS "%s", kernels[i].tile);
    programs p = lowered("h200", parameters);
    cr_expect_leq(abs(p.warps->registers_per_thread - kernels[i].registers), 1, "%s: %d", kernels[i].tile,
                  (int)p.warps->registers_per_thread);
    programs_fini(&p);
  }
}

// Behind the first product, and between the expectation and the copy of K and of V.
Test(unit_lower_descriptors, all_warps_meet_three_times_a_step) {
  programs p = lowered("h200", DESCRIPTORS "head_dim=128 block_m=128 block_n=64 num_warps=8 num_stages=3");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_BAR_SYNC], 3);
  cr_expect_eq(c.insts[FTL_OP_MBAR_EXPECT], 2);
  cr_expect_eq(c.insts[FTL_OP_TMA_LOAD], 2 * 2, "rows of 256 bytes are two boxes");
  const ftl_warp_inst *last = NULL, *insts = p.warps->insts;
  for (int32_t i = p.warps->loops[0].begin + 1; i < p.warps->loops[0].end; i++) {
    if (insts[i].opcode == FTL_OP_TMA_LOAD && last->opcode != FTL_OP_TMA_LOAD)
      cr_expect_eq(last->opcode, FTL_OP_BAR_SYNC);
    bool counts_here = insts[i].opcode == FTL_OP_MBAR_EXPECT || insts[i].opcode == FTL_OP_BAR_SYNC ||
                       insts[i].opcode == FTL_OP_TMA_LOAD;
    if (counts_here) last = &insts[i];
  }
  programs_fini(&p);
}

// K's address is worked out ahead of its wait; V's is K's, so that it is tried long before the softmax ends.
Test(unit_lower_descriptors, v_is_tried_ahead_of_its_wait) {
  programs p = lowered("h200", DESCRIPTORS "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3");
  int32_t num_waits = 0, num_tried = 0;
  for (int32_t i = p.warps->loops[0].begin + 1; i < p.warps->loops[0].end; i++) {
    if (p.warps->insts[i].opcode != FTL_OP_MBAR_WAIT) continue;
    num_waits++;
    num_tried += (p.warps->insts[i].flags & FTL_INST_TRIED) != 0;
  }
  cr_expect_eq(num_waits, 2);
  cr_expect_eq(num_tried, 1);
  programs_fini(&p);
}

// A step waits for K, multiplies the scores and takes their exponentials, and waits for V then: of what cp.async brings
// it waits for both at once.
Test(unit_lower_descriptors, v_is_waited_for_behind_the_softmax) {
  programs p = lowered("h200", DESCRIPTORS "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3");
  int32_t num_waits = 0, exponentials_ahead[2] = {0, 0}, exponentials = 0;
  for (int32_t i = p.warps->loops[0].begin + 1; i < p.warps->loops[0].end; i++) {
    exponentials += p.warps->insts[i].opcode == FTL_OP_MUFU;
    if (p.warps->insts[i].opcode == FTL_OP_MBAR_WAIT && num_waits < 2) exponentials_ahead[num_waits++] = exponentials;
  }
  cr_assert_eq(num_waits, 2);
  cr_expect_eq(exponentials_ahead[0], 0);
  cr_expect_geq(exponentials_ahead[1], 64 * 64 / 128, "%d", (int)exponentials_ahead[1]);
  programs_fini(&p);
}

// Masked scores are shifted by an addition of their own: 32 a lane in 64 x 64 tiles of 4 warps.
Test(unit_lower_descriptors, a_masked_score_takes_an_addition_more) {
  static const char *const scalings[] = {"exponent", "by_tile"};
  int64_t masked[2], whole[2];
  for (int i = 0; i < 2; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             DESCRIPTORS "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3 causal=1 scaling=%s", scalings[i]);
    programs p = lowered("h200", parameters);
    whole[i] = count_loop(p.warps, 0).insts[FTL_OP_FFMA];
    masked[i] = count_loop(p.warps, 1).insts[FTL_OP_FFMA];
    programs_fini(&p);
  }
  cr_expect_eq(whole[1], whole[0]);
  cr_expect_eq(masked[1], masked[0] + 32);
}

// With three stages Q and two tiles of K and of V are asked for ahead of the loop: each makes an mbarrier, behind which
// all warps meet, and is copied behind another meeting. Each is waited for outside of the loop, Q before it and what is
// left of K and V behind it, where its mbarrier is taken back. O's rows are staged behind one meeting and stored behind
// another.
Test(unit_lower_descriptors, mbarriers_are_made_and_taken_back_one_by_one) {
  programs p = lowered("h200", DESCRIPTORS "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3");
  int64_t met = 0, in_loop = count_loop(p.warps, 0).insts[FTL_OP_BAR_SYNC];
  for (int32_t i = 0; i < p.warps->num_insts; i++) met += p.warps->insts[i].opcode == FTL_OP_BAR_SYNC;
  cr_expect_eq(met - in_loop, 2 * (1 + 2 + 2) + (1 + 2 + 2) + 2, "%lld", (long long)(met - in_loop));
  programs_fini(&p);
}
