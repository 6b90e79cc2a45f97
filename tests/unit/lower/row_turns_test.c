// How warps with copies of their own put them together, and rows of plain code that go one after another: the loop of
// kernels/attention/flash1_mma.h, 4 rows a thread, 4 warps.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../lower_checker/programs.h"

static programs lowered(const char *code) {
  programs p;
  ftl_error error = {0};
  char parameters[128];
  snprintf(parameters, sizeof parameters,
           "heads=1 seqlen_q=256 seqlen_kv=128 head_dim=128 block_n=128 num_warps=4 num_stages=2 code=%s", code);
  cr_assert_eq(lower_launch(&p, "h200", "flash1_fwd", parameters, 0, &error), FTL_OK, "%s", error.message);
  return p;
}

typedef struct body {
  int32_t barriers, shared_loads, shared_stores, conflicts, fp32, reciprocals, skips, skips_behind_stores,
      stores_in_turn;
} body;

// Of the loop over queries, the program's only one. Each row has two stores, 4 halves a lane of the output and LSE; one
// is in its turn if it stands behind as many reciprocals as there are rows up to its own.
static body look_at(const ftl_warp_program *p) {
  body b = {0};
  int32_t stores = 0;
  for (int32_t i = p->loops[0].begin + 1; i < p->loops[0].end; i++) {
    const ftl_warp_inst *inst = &p->insts[i];
    if (inst->opcode == FTL_OP_BAR_SYNC) b.barriers++;
    if (inst->opcode == FTL_OP_LDS) b.shared_loads += inst->repeat;
    if (inst->opcode == FTL_OP_STS) b.shared_stores += inst->repeat;
    if (inst->opcode == FTL_OP_STS) b.conflicts += inst->conflicts;
    if (inst->opcode == FTL_OP_FFMA) b.fp32 += inst->repeat;
    if (inst->opcode == FTL_OP_MUFU && inst->arg == FTL_ELEM_RECIP) b.reciprocals += inst->repeat;
    bool skips = inst->opcode == FTL_OP_BRA && inst->flags & FTL_INST_SKIPS;
    b.skips += skips;
    b.skips_behind_stores += skips && inst->num_sources == 2;
    if (inst->opcode == FTL_OP_STG && b.reciprocals == stores++ / 2 + 1) b.stores_in_turn++;
  }
  return b;
}

// Q is there, maxima are there, sums and outputs are there. Each warp reads the maxima of 2 rows of a lane, 4 of each
// at once, and of its 4 rows 4 maxima and 4 sums at once, and 4 outputs of 16 bytes. It writes 2 maxima, where they are
// read twice, 2 sums, and its output of 16 x 128 in 32 times 8 bytes a lane. Lean code reads the maxima of 2 rows one
// by one.
Test(unit_lower_row_turns, gathers_that_follow_each_other_share_a_barrier) {
  programs p = lowered("plain");
  body b = look_at(p.warps);
  cr_expect_eq(b.barriers, 3, "%d", b.barriers);
  cr_expect_eq(b.conflicts, 0, "%d", b.conflicts);
  cr_expect_eq(b.shared_loads, 2 + 4 * (1 + 1 + 4), "%d", b.shared_loads);
  cr_expect_eq(b.shared_stores, 2 + 2 + 32, "%d", b.shared_stores);
  programs_fini(&p);
  p = lowered("lean");
  b = look_at(p.warps);
  cr_expect_eq(b.shared_loads, 2 * 4 + 4 * (1 + 1 + 4), "%d", b.shared_loads);
  cr_expect_eq(b.shared_stores, 2 + 2 + 32, "%d", b.shared_stores);
  programs_fini(&p);
}

// The loop's instructions from its second barrier to its third, a letter for each run: Load and Put in shared memory,
// Exponentials, Shuffles, Fragments, Products.
static void spell(const ftl_warp_program *p, char *text) {
  static const char letters[FTL_OPCODE_COUNT] = {[FTL_OP_LDS] = 'L',  [FTL_OP_STS] = 'P',  [FTL_OP_MUFU] = 'E',
                                                 [FTL_OP_SHFL] = 'S', [FTL_OP_LDSM] = 'F', [FTL_OP_MMA] = 'M'};
  int32_t barriers = 0, length = 0;
  for (int32_t i = p->loops[0].begin + 1; barriers < 3; i++) {
    char letter = letters[p->insts[i].opcode];
    barriers += p->insts[i].opcode == FTL_OP_BAR_SYNC;
    if (barriers == 2 && letter && (length == 0 || text[length - 1] != letter)) text[length++] = letter;
  }
  text[length] = 0;
}

// The second row's maxima are read when the first row's sum has left, V's fragments when both have; what the products
// make is put behind the last of them.
Test(unit_lower_row_turns, sums_of_plain_code_leave_before_the_next_row_and_products) {
  char text[512];
  programs p = lowered("plain");
  spell(p.warps, text);
  cr_expect_eq(strncmp(text, "LESPLESPFM", 10), 0, "%s", text);
  cr_expect_eq(strspn(text + 10, "FM") + 10, strlen(text) - 1, "%s", text);
  cr_expect_eq(text[strlen(text) - 1], 'P', "%s", text);
  programs_fini(&p);
  p = lowered("lean");
  spell(p.warps, text);
  cr_expect_eq(strncmp(text, "LEF", 3), 0, "%s", text);
  programs_fini(&p);
}

// Output and LSE of each of the 4 rows are stored before the next row's reciprocal, whose branch waits for them; lean
// code has no branch and may divide all rows first.
Test(unit_lower_row_turns, rows_of_plain_code_finish_one_after_another) {
  programs p = lowered("plain");
  body b = look_at(p.warps);
  cr_expect_eq(b.reciprocals, 4);
  cr_expect_eq(b.skips, 4);
  cr_expect_eq(b.skips_behind_stores, 3);
  cr_expect_eq(b.stores_in_turn, 8, "%d", b.stores_in_turn);
  programs_fini(&p);
  p = lowered("lean");
  b = look_at(p.warps);
  cr_expect_eq(b.skips, 0);
  programs_fini(&p);
}

// Of each of the 4 rows the first of the 4 copies of 4 columns is added to 0, a Newton step takes 3 and a logarithm of
// denormal numbers 2 instructions of FP32 more than lean code. Of the sums of a lane's two rows each begins with its
// first element in lean code.
Test(unit_lower_row_turns, sums_of_plain_code_begin_at_zero) {
  programs p = lowered("plain");
  int32_t plain = look_at(p.warps).fp32;
  programs_fini(&p);
  p = lowered("lean");
  cr_expect_eq(plain - look_at(p.warps).fp32, 4 * (4 + 3 + 2) + 2, "%d", plain - look_at(p.warps).fp32);
  programs_fini(&p);
}
