// Plain code in which groups of warps share tiles of several stages: what a copy and what follows the loop work out
// anew (kernels/attention/decode_mma.h, whose SASS the counts are read off).
#include <criterion/criterion.h>

#include "../lower_checker/programs.h"

#define DECODE \
  "batch=1 heads=32 kv_heads=8 seqlen_kv=8192 splits=1 block_m=16 num_warps=4 mma=mma copy=cp_async code=plain "
// Both have 8 row groups of a copy: 16 rows of 128 bytes, and 8 of 256, are 2 KB, a chunk of 16 bytes a thread.
#define ONE_K_STEP DECODE "head_dim=128 block_n=64 num_stages=3"
#define TWO_K_STEPS DECODE "head_dim=64 block_n=128 num_stages=2"

typedef struct counts {
  int64_t insts[FTL_OPCODE_COUNT];
} counts;

static programs lowered(const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash_decode", parameters, &error), FTL_OK, "%s", error.message);
  return p;
}

// The block around which a loop branches where there is no tile to copy.
static counts count_block(const ftl_warp_program *p, const ftl_warp_loop *loop) {
  counts c = {0};
  bool inside = false;
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    const ftl_warp_inst *inst = &p->insts[i];
    if (inst->opcode == FTL_OP_LABEL) inside = false;
    if (inside) c.insts[inst->opcode] += inst->repeat;
    if (inst->opcode == FTL_OP_BRA && inst->flags & FTL_INST_GUARD) inside = true;
  }
  return c;
}

static counts count_behind(const ftl_warp_program *p, const ftl_warp_loop *loop) {
  counts c = {0};
  for (int32_t i = loop->end; i < p->num_insts; i++) c.insts[p->insts[i].opcode] += p->insts[i].repeat;
  return c;
}

// The thread's number is read again. Each row group of K: its number and row (IMAD, LOP), 64 bits of its offset (IADD,
// IMAD), scaled (IMAD, LOP), the base (2 IADD), its place in the stage (3 LOP, IMAD). Of V the base (2 IADD). The
// tile's address is 3 IADD for both.
Test(unit_lower_shared_stages, row_groups_and_their_places_are_found_at_each_copy) {
  programs p = lowered(ONE_K_STEP);
  counts c = count_block(p.warps, &p.warps->loops[0]);
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 8 + 8);
  cr_expect_eq(c.insts[FTL_OP_S2R], 1);
  cr_expect_eq(c.insts[FTL_OP_IADD], 8 * (3 + 2) + 3);
  cr_expect_eq(c.insts[FTL_OP_LOP], 8 * (2 + 3));
  cr_expect_eq(c.insts[FTL_OP_IMAD], 8 * (3 + 1));
  cr_expect_eq(c.insts[FTL_OP_MOV], 0);
  programs_fini(&p);
}

// Kept, a place is added to the stage's address and no more.
Test(unit_lower_shared_stages, places_are_kept_where_a_warp_has_two_k_steps_of_keys) {
  programs p = lowered(TWO_K_STEPS);
  counts c = count_block(p.warps, &p.warps->loops[0]);
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 8 + 8);
  cr_expect_eq(c.insts[FTL_OP_IADD], 8 * (3 + 2) + 3);
  cr_expect_eq(c.insts[FTL_OP_LOP], 8 * 2);
  cr_expect_eq(c.insts[FTL_OP_IMAD], 8 * (3 + 1));
  programs_fini(&p);
}

// 64 x 128 numbers of a byte are four runs of 2 KB, with a run of scales, of K and of V: two adds each, and three for
// where either begins. Where they go is an immediate from the stage.
Test(unit_lower_shared_stages, quantised_tiles_are_copied_as_runs_of_bytes) {
  programs p = lowered(ONE_K_STEP " kv_dtype=int8");
  counts c = count_block(p.warps, &p.warps->loops[0]);
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 2 * (4 + 1));
  cr_expect_eq(c.insts[FTL_OP_S2R], 1);
  cr_expect_eq(c.insts[FTL_OP_IADD], 2 * 2 * (4 + 1) + 4 * 3);
  cr_expect_eq(c.insts[FTL_OP_LOP] + c.insts[FTL_OP_IMAD] + c.insts[FTL_OP_MOV], 0);
  programs_fini(&p);
}

// Two tensors are written, of 4 words of constants each.
Test(unit_lower_shared_stages, where_results_go_is_found_behind_the_loop) {
  programs p = lowered(TWO_K_STEPS);
  counts c = count_behind(p.warps, &p.warps->loops[0]);
  cr_expect_eq(c.insts[FTL_OP_S2R], 1);
  cr_expect_eq(c.insts[FTL_OP_LDC], 2 * 4);
  programs_fini(&p);
}

// Copies of K have two sets of registers for their addresses: each from the third on waits for the last but one. V's
// address takes the place of the offset that it comes of, and waits for none: all that they wait for is there.
Test(unit_lower_shared_stages, the_second_tensors_addresses_wait_for_no_copy) {
  programs p = lowered(TWO_K_STEPS);
  const ftl_warp_loop *loop = &p.warps->loops[0];
  int32_t copies = 0, waiting = 0, tokens[2] = {FTL_NO_TOKEN, FTL_NO_TOKEN};
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    for (int32_t k = 0; inst->opcode == FTL_OP_IADD && k < inst->num_sources; k++)
      waiting += inst->sources[k] != FTL_NO_TOKEN && (inst->sources[k] == tokens[0] || inst->sources[k] == tokens[1]);
    if (inst->opcode != FTL_OP_CP_ASYNC) continue;
    tokens[copies++ % 2] = inst->destination;
  }
  cr_expect_eq(copies, 16);
  cr_expect_eq(waiting, 8 - 2, "%d", waiting);
  programs_fini(&p);
}
