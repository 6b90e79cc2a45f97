// Instructions around lean wgmmas: matrix descriptors, copies of two tensors side by side, lists that are walked.
// The counts are those of Triton 3.6 for its own attention and for FlexAttention's (SASS, sm_90a).
#include <criterion/criterion.h>
#include <stdio.h>

#include "../lower_checker/programs.h"

#define SHAPE                                                                                       \
  "heads=4 seqlen=2048 mma=wgmma copy=cp_async code=lean row_sums=step scaling=scores refill=late " \
  "num_stages=3 block_n=64 "

typedef struct counts {
  int64_t insts[FTL_OPCODE_COUNT];
} counts;

// One execution of the body of the role's last loop by one warp.
static counts count_loop(const char *parameters) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, "h200", "flash2_fwd", parameters, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  counts c = {0};
  const ftl_warp_loop *loop = &p.warps->loops[p.warps->num_loops - 1];
  for (int32_t i = loop->begin + 1; i < loop->end; i++) c.insts[p.warps->insts[i].opcode] += p.warps->insts[i].repeat;
  programs_fini(&p);
  return c;
}

// Of B a product's first k step takes 6 and each further one 1. QK^T has head_dim / 16 of them, PV 64 / 16.
Test(unit_lower_lean_wgmma, one_warpgroup_keeps_the_descriptors_of_q) {
  counts c = count_loop(SHAPE "head_dim=64 block_m=64 num_warps=4");
  cr_expect_eq(c.insts[FTL_OP_UNIFORM], (6 + 3) + (6 + 3));
  cr_expect_eq(c.insts[FTL_OP_R2UR], 0);
  c = count_loop(SHAPE "head_dim=128 block_m=64 num_warps=4");
  cr_expect_eq(c.insts[FTL_OP_UNIFORM], (6 + 7) + (6 + 3));
  cr_expect_eq(c.insts[FTL_OP_R2UR], 0, "eight stay in uniform registers");
}

// The second 64 rows have 8 descriptors of Q more, past the eight that uniform registers hold: two R2UR each, and two
// moves bring B's beside them. P's come from registers: PV has B's alone, once.
Test(unit_lower_lean_wgmma, descriptors_of_further_rows_are_brought_from_other_registers) {
  counts c = count_loop(SHAPE "head_dim=128 block_m=128 num_warps=4");
  cr_expect_eq(c.insts[FTL_OP_R2UR], 8 * 2);
  cr_expect_eq(c.insts[FTL_OP_UNIFORM], (6 + 7) + 8 * 2 + (6 + 3));
}

// Each warpgroup makes its own descriptors of Q in each step: 6 for the first, 2 for each further one, beside B's.
Test(unit_lower_lean_wgmma, several_warpgroups_make_the_descriptors_of_q_anew) {
  counts c = count_loop(SHAPE "head_dim=64 block_m=128 num_warps=8");
  cr_expect_eq(c.insts[FTL_OP_UNIFORM], (6 + 3) + (6 + 3 * 2) + (6 + 3));
  cr_expect_eq(c.insts[FTL_OP_R2UR], 0);
}

// Two warpgroups on 64 rows: each has all of S, by two instructions of half of its columns a k step of 16 of head_dim,
// and half of O's columns, one a k step of 16 keys. HGMMAs of a step that ncu counts of Triton's kernels
// (foreign_unseen_triton_ncu.csv and its successors): 192, 160, 128 and 96 of 8 warps.
Test(unit_lower_lean_wgmma, warpgroups_beyond_the_rows_repeat_the_first_product) {
  static const struct {
    const char *tile;
    int64_t counted;
  } kernels[] = {{"head_dim=128 block_n=128 num_stages=2", 192},
                 {"head_dim=128 block_n=64 num_stages=3", 160},
                 {"head_dim=64 block_n=128 num_stages=2", 128},
                 {"head_dim=64 block_n=64 num_stages=3", 96}};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, SHAPE "%s block_m=64 num_warps=8 warps_n=2", kernels[i].tile);
    cr_expect_eq(8 * count_loop(parameters).insts[FTL_OP_WGMMA], kernels[i].counted, "%s", kernels[i].tile);
  }
}

// Exponentials of 64 x 64 scores are those of one warpgroup in either of two: 32 a lane, 2 corrections of rows beside.
Test(unit_lower_lean_wgmma, warpgroups_beyond_the_rows_repeat_the_softmax) {
  counts one = count_loop(SHAPE "head_dim=64 block_m=64 num_warps=4");
  counts two = count_loop(SHAPE "head_dim=64 block_m=64 num_warps=8 warps_n=2");
  cr_expect_eq(one.insts[FTL_OP_MUFU], 32 + 2);
  cr_expect_eq(two.insts[FTL_OP_MUFU], 32 + 2);
  cr_expect_eq(two.insts[FTL_OP_SHFL], one.insts[FTL_OP_SHFL]);
  cr_expect_eq(one.insts[FTL_OP_FFMA] - two.insts[FTL_OP_FFMA], 16, "O's correction: 16 columns of 2 rows fewer");
}

// Heads of 96 in tiles of 128 columns: QK^T has 8 k steps for 6, PV 4 (of 64 keys) either way.
Test(unit_lower_lean_wgmma, columns_of_padding_are_multiplied) {
  cr_expect_eq(count_loop(SHAPE "head_dim=96 block_m=64 num_warps=4").insts[FTL_OP_WGMMA], 6 + 4);
  cr_expect_eq(count_loop(SHAPE "head_dim=96 head_dim_multiple=128 block_m=64 num_warps=4").insts[FTL_OP_WGMMA], 8 + 4);
}

// 4 warps copy 16 rows of 128 bytes at once, so 64 in 4 row groups: an index each (and one for the tile), which serves
// K and V, and an IMAD.WIDE each of either. Rows of 256 bytes are copied whole, 8 at once. Beside them stand two stage
// indices and the loop's counter (IADD3) and the stages' addresses (IMAD), and no branch but the loop's.
Test(unit_lower_lean_wgmma, copies_side_by_side_share_the_index_of_a_row_group) {
  counts c = count_loop(SHAPE "head_dim=64 block_m=64 num_warps=4");
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 2 * 4);
  cr_expect_eq(c.insts[FTL_OP_IADD], 1 + 4 + 3);
  cr_expect_eq(c.insts[FTL_OP_IMAD_WIDE], 2 * 4);
  cr_expect_eq(c.insts[FTL_OP_IMAD], 2);
  cr_expect_eq(c.insts[FTL_OP_NOP], 3, "null loads before the first copy");
  cr_expect_eq(c.insts[FTL_OP_BRA], 1);
  c = count_loop(SHAPE "head_dim=128 block_m=64 num_warps=4");
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 2 * 8);
  cr_expect_eq(c.insts[FTL_OP_IADD], 1 + 8 + 3);
  cr_expect_eq(c.insts[FTL_OP_IMAD_WIDE], 2 * 8);
  cr_expect_eq(c.insts[FTL_OP_IMAD], 2);
}

// With mma.sync too: 2 warps copy 8 rows of 128 bytes at once, 32 in 4 row groups (Triton's 32 x 32 tiles at head_dim
// 64 have 8 copies and 8 IMAD.WIDE a step).
Test(unit_lower_lean_wgmma, copies_for_mma_sync_make_their_addresses_so_as_well) {
  counts c = count_loop(
      "heads=4 seqlen=2048 head_dim=64 block_m=32 block_n=32 num_warps=2 warps_n=2 mma=mma copy=cp_async "
      "code=lean num_stages=2 row_sums=step scaling=scores refill=late");
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 2 * 4);
  cr_expect_eq(c.insts[FTL_OP_IMAD_WIDE], 2 * 4);
}

// A list is walked by 25 instructions beside the address (IMAD), its guard and the load; rows that it names are scaled.
Test(unit_lower_lean_wgmma, a_list_of_blocks_is_walked_in_each_step) {
  counts c = count_loop(SHAPE "head_dim=64 block_m=64 num_warps=4 mask_steps=blocks");
  cr_expect_eq(c.insts[FTL_OP_LDG], 1);
  cr_expect_eq(c.insts[FTL_OP_UNIFORM], (6 + 3) + (6 + 3) + 25);
  cr_expect_eq(c.insts[FTL_OP_IADD], 1 + 2 * 4 + 3);
  cr_expect_eq(c.insts[FTL_OP_IMAD_WIDE], 2 * 4);
  cr_expect_eq(c.insts[FTL_OP_IMAD], 2 + 1);
}

// The entry is asked for before the exponentials, so that its latency passes beside them.
Test(unit_lower_lean_wgmma, an_entry_of_a_list_is_loaded_ahead_of_the_softmax) {
  programs p;
  ftl_error error = {0};
  ftl_status status =
      lower_workload(&p, "h200", "flash2_fwd", SHAPE "head_dim=64 block_m=64 num_warps=4 mask_steps=blocks", &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  const ftl_warp_loop *loop = &p.warps->loops[p.warps->num_loops - 1];
  int32_t loaded = -1, last_exponential = -1;
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    if (p.warps->insts[i].opcode == FTL_OP_LDG) loaded = i;
    if (p.warps->insts[i].opcode == FTL_OP_MUFU) last_exponential = i;
  }
  cr_expect_geq(loaded, 0);
  cr_expect_lt(loaded, last_exponential);
  programs_fini(&p);
}

// FP32 arithmetic of the loop's body behind the fence of its last product.
static int64_t count_behind_last_fence(const char *parameters) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, "h200", "flash2_fwd", parameters, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  const ftl_warp_loop *loop = &p.warps->loops[p.warps->num_loops - 1];
  int64_t count = 0;
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    if (p.warps->insts[i].opcode == FTL_OP_WGMMA_ARRIVE) count = 0;
    if (p.warps->insts[i].opcode == FTL_OP_FFMA) count += p.warps->insts[i].repeat;
  }
  programs_fini(&p);
  return count;
}

// K's run of copies and V's each end with a wait for the registers of the last address.
Test(unit_lower_lean_wgmma, what_follows_copies_side_by_side_waits_until_their_addresses_were_read) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash2_fwd", SHAPE "head_dim=128 block_m=64 num_warps=4", &error), FTL_OK);
  const ftl_warp_loop *loop = &p.warps->loops[p.warps->num_loops - 1];
  int32_t copied = FTL_NO_TOKEN, commits = 0, awaiting = 0;
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_CP_ASYNC) copied = inst->destination;
    if (inst->opcode != FTL_OP_CP_COMMIT) continue;
    commits++;
    awaiting += inst->num_sources == 1 && copied != FTL_NO_TOKEN && inst->sources[0] == copied;
  }
  cr_expect_eq(commits, 2);
  cr_expect_eq(awaiting, 2);
  programs_fini(&p);
}

// A thread has 16 numbers of each of 2 rows, 15 sums a row: 30, 2 for each of two shuffles, 2 that add the step's to
// the rows'. Those that may follow the product with V stand there, as in all loops of FlexAttention's template that
// were read; else the 30 stand before its fence, as in all loops of triton_attention.py's. Shuffles need not.
Test(unit_lower_lean_wgmma, sums_stand_behind_a_product_where_they_may) {
  cr_expect_eq(count_behind_last_fence(SHAPE "head_dim=128 block_m=64 num_warps=4 row_sums=behind"), 30 + 2 * 2 + 2);
  cr_expect_lt(count_behind_last_fence(SHAPE "head_dim=128 block_m=64 num_warps=4 row_sums=step"), 32);
  cr_expect_lt(count_behind_last_fence("heads=4 seqlen=2048 mma=wgmma copy=cp_async code=plain num_stages=2 block_n=64 "
                                       "head_dim=128 block_m=64 num_warps=4"),
               32);
}

// What one warp executes behind its last loop.
static counts count_end(const char *parameters) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, "h200", "flash2_fwd", parameters, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  counts c = {0};
  for (int32_t i = p.warps->loops[p.warps->num_loops - 1].end; i < p.warps->num_insts; i++)
    c.insts[p.warps->insts[i].opcode] += p.warps->insts[i].repeat;
  programs_fini(&p);
  return c;
}

static void expect_of_each(const char *mma, int64_t fp32, int64_t selects) {
  char narrow[256], wide[256];
  const char *shape = "heads=4 seqlen=2048 copy=cp_async code=lean block_m=64 block_n=64 num_warps=4 num_stages=2";
  snprintf(narrow, sizeof narrow, "%s mma=%s head_dim=64", shape, mma);
  snprintf(wide, sizeof wide, "%s mma=%s head_dim=128", shape, mma);
  counts a = count_end(narrow), b = count_end(wide);
  cr_expect_eq(b.insts[FTL_OP_FFMA] - a.insts[FTL_OP_FFMA], 32 * fp32, "%s", mma);
  cr_expect_eq(b.insts[FTL_OP_SEL] - a.insts[FTL_OP_SEL], 32 * selects, "%s", mma);
}

// acc / row_sum[:, None] divides every element of O (div.full.f32). Of 32 elements a thread more, each takes FMUL,
// FSEL,
// @P FMUL and FMUL where a wgmma has left it in its register, and @P FMUL, @P FMUL and FMUL behind mma.sync
// (kernels/measurements/sass_triton_ends.csv).
Test(unit_lower_lean_wgmma, each_element_of_the_output_is_divided) {
  expect_of_each("wgmma", 3, 1);
  expect_of_each("mma", 3, 0);
}

// The sums' logarithm is libdevice's, 15 FP32 instructions for each of a thread's four rows, instead of one MUFU.
Test(unit_lower_lean_wgmma, the_logarithm_of_sums_is_a_polynomial) {
  counts triton = count_end("heads=4 seqlen=2048 head_dim=64 copy=cp_async mma=mma code=lean num_warps=4"),
         by_hand = count_end("heads=4 seqlen=2048 head_dim=64 copy=cp_async mma=mma code=plain num_warps=4");
  cr_expect_eq(triton.insts[FTL_OP_MUFU], 4, "reciprocals alone: %d", (int)triton.insts[FTL_OP_MUFU]);
  cr_expect_eq(by_hand.insts[FTL_OP_MUFU], 4 + 4, "%d", (int)by_hand.insts[FTL_OP_MUFU]);
}

// Sums are cleared twice before the loop, two registers at once: 128 x 64 of 4 warps are 64 a lane.
Test(unit_lower_lean_wgmma, products_clear_their_sums_before_the_loop) {
  programs p;
  ftl_error error = {0};
  const char *parameters = "m=2048 n=2048 k=2048 mma=wgmma copy=cp_async code=lean block_m=128 block_n=64 num_warps=4";
  cr_assert_eq(lower_workload(&p, "h200", "matmul_tiled", parameters, &error), FTL_OK, "%s", error.message);
  int64_t moves = 0;
  for (int32_t i = 0; i < p.warps->loops[p.warps->num_loops - 1].begin; i++)
    moves += p.warps->insts[i].opcode == FTL_OP_MOV && p.warps->insts[i].repeat == 64 ? 64 : 0;
  cr_expect_eq(moves, 64);
  programs_fini(&p);
}
