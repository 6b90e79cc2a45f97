// What the form of the softmax and of its masks costs in the loops of flash2_fwd. A lane has 64 elements of a step and
// 4 corrections, 2 rows of each of 2 slabs.
#include <criterion/criterion.h>

#include "loop_counts.h"
#include "lower/walk.h"

static int64_t num_fma(const programs *p) { return count_loop(p->warps, 0).insts[FTL_OP_FFMA]; }

Test(unit_lower_softmax_form, scores_that_are_scaled_before_the_maximum_take_a_multiplication_each_time) {
  const char *shapes[] = {SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma",
                          SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma scaling=scores",
                          SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma scaling=twice"};
  int64_t fma[3], total[3];
  for (int i = 0; i < 3; i++) {
    programs p = lowered("h200", shapes[i]);
    fma[i] = num_fma(&p);
    total[i] = count_loop(p.warps, 0).total;
    programs_fini(&p);
  }
  cr_expect_eq(fma[1] - fma[0], 64);
  cr_expect_eq(fma[2] - fma[0], 2 * 64);
  cr_expect_eq(total[1] - total[0], 64);
  cr_expect_eq(total[2] - total[0], 2 * 64);
}

// Two butterflies of two shuffles and two sums for each of 2 slabs: SHFL and FADD of 2 rows each.
Test(unit_lower_softmax_form, row_sums_of_every_step_take_shuffles) {
  programs p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma");
  counts end = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma row_sums=step");
  counts step = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(step.insts[FTL_OP_SHFL] - end.insts[FTL_OP_SHFL], 2 * 2 * 2);
  cr_expect_eq(step.insts[FTL_OP_FMNMX], end.insts[FTL_OP_FMNMX]);
}

// A step of two warps that share 32 queries and 32 keys, with head_dim 128 (SASS of
// kernels/foreign/triton_attention.py, 32 x 32 tiles of 2 warps): each has 2 slabs x 2 fragments of S, and 2 x 8 of O.
Test(unit_lower_softmax_form, warps_side_by_side_exchange_row_maxima_row_sums_and_probabilities) {
  programs p = lowered("h200",
                       "heads=4 seqlen=4096 head_dim=128 block_m=32 block_n=32 num_warps=2 warps_n=2 num_stages=2 "
                       "refill=behind row_sums=step scaling=scores mma=mma copy=cp_async");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_MMA], 2 * 2 * 8 + 2 * 8 * 2);
  // Q and K of 8 k steps: 2 slabs and 16 keys; P and V of 2: 2 slabs and 64 columns
  cr_expect_eq(c.insts[FTL_OP_LDSM], 8 * (2 + 1) + 2 * (2 + 4));
  // maxima and sums: two exchanges of the 4 rows of a lane in a warp, one of the number that a thread has of 64
  cr_expect_eq(c.insts[FTL_OP_SHFL], 2 * (2 * 4 + 1));
  cr_expect_eq(c.insts[FTL_OP_LDS], 2 * (1 + 4));
  // 4 rows and a number; and P's two blocks of 16 x 16, by stmatrix
  cr_expect_eq(c.insts[FTL_OP_STS], 2 * (4 + 1) + 2);
  // before the loads of a step, between writes and reads of maxima (2), sums (2) and P, before sums and P are written
  // over what was read, and before V's buffer is filled again: K's has passed one of these
  cr_expect_eq(c.insts[FTL_OP_BAR_SYNC], 1 + 2 + 2 + 1 + 2 + 1);
  programs_fini(&p);
}

// Triton's code puts P by stmatrix, two blocks of 16 x 16, but where there is none (compute capability below 9). With a
// causal mask rows meet in two loops, and each slab's two stores of a maximum or a sum stand behind a branch: a BSYNC
// for those that enter, and one for the others.
Test(unit_lower_softmax_form, warps_side_by_side_in_lean_code_branch_where_two_loops_have_them) {
  const struct {
    const char *arch, *causal;
    int32_t stores, joins, branches;
  } cases[] = {{"h200", "", 2 * (4 + 1) + 2, 0, 1},
               {"h200", "causal=true", 2 * (4 + 1) + 2, 2 * 2 * 2, 1 + 2 * 2},
               {"a100_80", "", 2 * (4 + 1) + 2 * 4, 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "heads=4 seqlen=4096 head_dim=64 block_m=32 block_n=32 num_warps=2 warps_n=2 num_stages=2 code=lean "
             "refill=behind row_sums=step scaling=scores mma=mma copy=cp_async %s",
             cases[i].causal);
    programs p = lowered(cases[i].arch, parameters);
    counts c = count_loop(p.warps, 0);
    cr_expect_eq(c.insts[FTL_OP_STS], cases[i].stores, "%s %s: %d stores", cases[i].arch, cases[i].causal,
                 (int)c.insts[FTL_OP_STS]);
    cr_expect_eq(c.insts[FTL_OP_BSYNC], cases[i].joins);
    cr_expect_eq(c.insts[FTL_OP_BRA], cases[i].branches);
    programs_fini(&p);
  }
}

// Of two warps with the same 32 rows the first stores LSE, 8 rows with each of 4 instructions, and the other nothing.
Test(unit_lower_softmax_form, the_first_of_warps_side_by_side_stores_a_number_a_row) {
  programs p = lowered("h200",
                       "heads=4 seqlen=4096 head_dim=128 block_m=32 block_n=32 num_warps=2 warps_n=2 num_stages=2 "
                       "refill=behind row_sums=step scaling=scores mma=mma copy=cp_async");
  const ftl_tile_place lse = {.row_stride_bytes = 4, .num_rows = 32, .row_bytes = 4};
  int32_t num_stores = 0, num_rows = 0;
  for (int32_t i = 0; i < p.warps->num_insts; i++) {
    if (p.warps->insts[i].opcode != FTL_OP_STG) continue;
    const ftl_access *access = &p.warps->accesses[p.warps->insts[i].access];
    if (access->bytes != 4) continue;  // O is stored by more
    num_stores++;
    if (ftl_access_start_of(access, &lse, 0).bytes == 4) num_rows += access->num_rows;
    cr_expect_eq(ftl_access_start_of(access, &lse, 1).bytes, 0);
  }
  cr_expect_eq(num_stores, 2 * 2);
  cr_expect_eq(num_rows, 32);
  programs_fini(&p);
}

// An element of a window takes two compares and a select; 2 slabs of 8 fragments of 8 columns are 64 a lane. The other
// 4 of each are the guard of 4 rows.
Test(unit_lower_softmax_form, a_window_masks_the_tiles_at_its_edges_or_all_of_them_in_one_loop) {
  programs p = lowered("a100_80", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 window=512");
  cr_assert_eq(p.warps->num_loops, 3);
  counts edge = count_loop(p.warps, 0), whole = count_loop(p.warps, 1);
  cr_expect_eq(edge.insts[FTL_OP_SEL] - whole.insts[FTL_OP_SEL], 64 + 4);
  cr_expect_eq(edge.insts[FTL_OP_ISETP] - whole.insts[FTL_OP_ISETP], 2 * 64 + 4);
  programs_fini(&p);
  p = lowered("a100_80", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 window=512 mask_steps=window");
  cr_assert_eq(p.warps->num_loops, 1);
  counts all = count_loop(p.warps, 0);
  cr_expect_eq(all.insts[FTL_OP_SEL], edge.insts[FTL_OP_SEL]);
  cr_expect_eq(all.insts[FTL_OP_ISETP], edge.insts[FTL_OP_ISETP]);
  programs_fini(&p);
}

// Steps that have code of their own, and the loop: of tiles of 128 x 64 one without a mask, the two that the diagonal
// crosses, one more where the last tile may be cut or there is a window.
Test(unit_lower_softmax_form, the_last_tiles_are_unrolled_as_flash_attention_2_does) {
  static const struct {
    const char *how;
    int32_t num_unrolled;
    bool masks_all;
  } cases[] = {{"seqlen=4096", 1, false},
               {"seqlen=4096 causal=true", 2, false},
               {"seqlen=4000 causal=true", 3, false},
               {"seqlen=4096 causal=true window=512", 3, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "heads=32 head_dim=64 block_m=128 block_n=64 num_warps=4 schedule=interleaved mask_steps=unrolled %s",
             cases[i].how);
    programs p = lowered("a100_80", parameters);
    cr_assert_eq(p.warps->num_loops, cases[i].num_unrolled + 1, "%s", cases[i].how);
    counts last = count_loop(p.warps, 0), rest = count_loop(p.warps, cases[i].num_unrolled);
    bool last_masks = last.insts[FTL_OP_SEL] >= 64, rest_masks = rest.insts[FTL_OP_SEL] >= 64;
    cr_expect_eq(last_masks, i > 0, "%s", cases[i].how);
    cr_expect_eq(rest_masks, cases[i].masks_all, "%s", cases[i].how);
    programs_fini(&p);
  }
}

// A compare and a select for each of 2 rows of each of 2 slabs.
Test(unit_lower_softmax_form, a_guard_in_every_step_takes_a_compare_and_a_select_a_row) {
  programs p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma");
  counts masked = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma guard=always");
  counts always = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(always.insts[FTL_OP_ISETP] - masked.insts[FTL_OP_ISETP], 2 * 2);
  cr_expect_eq(always.total - masked.total, 2 * 2 * 2);
}

// Masks of a thread's 64 or 128 vectors of one element, of which the last three stay in predicates: each other one is
// packed into a register of its own (P2R) and tested by a compare, or is a bit of a word that two guarded instructions
// clear and set and that one tests.
Test(unit_lower_softmax_form, masks_of_a_row_are_packed_or_set_and_tested_as_bits) {
  static const struct { int block_n, packed, tested; } cases[] = {{8192, 64 - 3, 0}, {16384, 0, 128 - 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    programs p;
    ftl_error error = {0};
    char text[128];
    snprintf(text, sizeof text,
             "heads=1 seqlen_q=64 seqlen_kv=%d block_m=1 block_n=%d num_warps=4 schedule=exponentials",
             cases[i].block_n - 5, cases[i].block_n);
    cr_assert_eq(lower_launch(&p, "h200", "softmax_safe", text, 0, &error), FTL_OK, "%s", error.message);
    int packed = 0, tested = 0;
    for (int32_t k = 0; k < p.warps->num_insts; k++) {
      const ftl_warp_inst *inst = &p.warps->insts[k];
      packed += inst->opcode == FTL_OP_LOP && inst->arg == FTL_LOP_PACKS;
      tested += inst->opcode == FTL_OP_LOP && inst->arg == FTL_LOP_TESTS;
    }
    cr_expect_eq(packed, cases[i].packed, "%d packed", packed);
    cr_expect_eq(tested, cases[i].tested, "%d tested", tested);
    programs_fini(&p);
  }
}

Test(unit_lower_softmax_form, exponentials_that_keep_denormals_take_a_compare_and_two_multiplications_more) {
  programs p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma");
  counts ftz = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma exp2=ieee");
  counts ieee = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(ieee.insts[FTL_OP_MUFU], ftz.insts[FTL_OP_MUFU]);
  cr_expect_eq(ieee.insts[FTL_OP_ISETP] - ftz.insts[FTL_OP_ISETP], 64 + 4);
  cr_expect_eq(ieee.insts[FTL_OP_FFMA] - ftz.insts[FTL_OP_FFMA], 2 * (64 + 4));
  cr_expect_eq(ieee.total - ftz.total, 3 * (64 + 4));
}

#define BACK_TO_BACK                                                                                   \
  "heads=4 seqlen=4096 head_dim=64 block_m=64 block_n=64 schedule=back_to_back mma=mma copy=cp_async " \
  "code=buffered scaling=twice row_sums=step exp2=ieee"

// A step of CUTLASS's attention, of 64 queries and 64 keys at head_dim 64: a warp has 2 slabs x 4 x 8 of S and of O, 4
// rows a lane, and products take m16n8k8. Counts: SASS of PyTorch's fmha_cutlassF_f16_aligned_64x64_rf_sm80.
Test(unit_lower_softmax_form, products_back_to_back_keep_their_rows_in_shared_memory) {
  programs p = lowered("h200", BACK_TO_BACK);
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_MMA], 2 * 64);
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 3 * 4);
  // 2 slabs and 2 x 16 columns of 4 k steps; P's 2 slabs and V's 2 x 16 columns of 4
  cr_expect_eq(c.insts[FTL_OP_LDSM], 2 * 4 * (2 + 2));
  // 4 maxima by atomics, 3 numbers that go on by them; 4 sums, and one of the row's thread; P in words
  cr_expect_eq(c.insts[FTL_OP_STS], 4 + 3 + 4 + 1 + 16);
  cr_expect_eq(c.insts[FTL_OP_BSYNC], 4);
  cr_expect_eq(c.insts[FTL_OP_SHFL], 2 * 4);
  // 32 exponentials, the 4 corrections of a lane's rows, and that of a row by its thread
  cr_expect_eq(c.insts[FTL_OP_MUFU], 32 + 4 + 1);
  programs_fini(&p);
}

// What an element's exponential asks again: a bit (LOP3), three compares that take it out and a move, instead of a
// compare for two columns of a fragment of 4 and a select each.
Test(unit_lower_softmax_form, a_mask_applied_again_takes_predicates_out_of_bits) {
  enum { ELEMENTS = 32, FRAGMENT_COLUMNS = 2 * 4 };
  programs p = lowered("h200", BACK_TO_BACK);
  counts again = count_loop(p.warps, 0);
  for (int32_t i = 0; i < p.tile->num_ops; i++) p.tile->ops[i].again = false;
  ftl_error error = {0};
  ftl_warp_program *plain;
  cr_assert_eq(ftl_lower(p.tile, p.arch, p.options, &plain, &error), FTL_OK, "%s", error.message);
  counts once = count_loop(plain, 0);
  cr_expect_eq(again.insts[FTL_OP_ISETP] - once.insts[FTL_OP_ISETP], 3 * ELEMENTS - FRAGMENT_COLUMNS);
  cr_expect_eq(again.insts[FTL_OP_LOP] - once.insts[FTL_OP_LOP], ELEMENTS);
  cr_expect_eq(again.insts[FTL_OP_IMAD] - once.insts[FTL_OP_IMAD], ELEMENTS);
  cr_expect_eq(again.insts[FTL_OP_SEL] - once.insts[FTL_OP_SEL], -ELEMENTS);
  ftl_warp_program_destroy(plain);
  programs_fini(&p);
}

// An iterator of Q, K and V each, 56 instructions, and 10 for each of the 2 parts of the products: a sixth of them by
// the uniform datapath (9, 11, 1), a quarter IMADs (14, 16, 2), and a sum with the tile's address; of one part
// alone 10.
Test(unit_lower_softmax_form, iterators_made_anew_take_integers_ahead_of_copies) {
  programs p = lowered("h200", BACK_TO_BACK);
  counts with = count_loop(p.warps, 0);
  for (int32_t i = 0; i < p.tile->num_ops; i++) p.tile->ops[i].ref.index_insts = 0;
  ftl_error error = {0};
  ftl_warp_program *bare;
  cr_assert_eq(ftl_lower(p.tile, p.arch, p.options, &bare, &error), FTL_OK, "%s", error.message);
  counts without = count_loop(bare, 0);
  enum { Q = 56, K = 56 + 10, K_NEXT = 10, V = 56 + 10, V_NEXT = 10, COPIES = 5 };
  cr_expect_eq(with.total - without.total, Q + K + K_NEXT + V + V_NEXT + COPIES);
  cr_expect_eq(with.insts[FTL_OP_UNIFORM] - without.insts[FTL_OP_UNIFORM], 9 + 11 + 1 + 11 + 1);
  cr_expect_eq(with.insts[FTL_OP_IMAD] - without.insts[FTL_OP_IMAD], 14 + 16 + 2 + 16 + 2);
  ftl_warp_program_destroy(bare);
  programs_fini(&p);
}

#define UNROLLED                                                                                       \
  "heads=32 seqlen=4096 head_dim=64 block_m=128 num_warps=4 schedule=interleaved mask_steps=unrolled " \
  "mma=mma copy=cp_async causal=true "

// The limits of a lane's 4 rows are a sum and a minimum each, on either side of a window. Of steps that differ in
// nothing else those of buffered code that come later have the first one's; other code finds them in each.
Test(unit_lower_softmax_form, the_first_step_that_masks_finds_the_limits_of_rows_for_the_others) {
  const struct {
    const char *parameters;
    int64_t limits;
  } cases[] = {{UNROLLED "block_n=64 code=buffered", 4},
               {UNROLLED "block_n=64 code=buffered window=512", 2 * 4},
               {UNROLLED "block_n=64 code=lean", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    programs p = lowered("h200", cases[i].parameters);
    counts first = count_loop(p.warps, 0), second = count_loop(p.warps, 1);
    cr_expect_eq(first.insts[FTL_OP_FMNMX] - second.insts[FTL_OP_FMNMX], cases[i].limits, "%s: %d", cases[i].parameters,
                 (int)(first.insts[FTL_OP_FMNMX] - second.insts[FTL_OP_FMNMX]));
    cr_expect_eq(first.insts[FTL_OP_ISETP], second.insts[FTL_OP_ISETP]);
    programs_fini(&p);
  }
}

// A loop of no steps would leave those behind it without limits: where a window's edges have a loop each, each finds
// its own.
Test(unit_lower_softmax_form, a_loop_that_masks_finds_the_limits_of_rows_for_no_other) {
  programs p = lowered("h200",
                       "heads=32 seqlen=4096 head_dim=64 block_m=128 block_n=64 num_warps=4 schedule=interleaved "
                       "mask_steps=edges mma=mma copy=cp_async causal=true window=512 code=buffered");
  cr_assert_eq(p.warps->num_loops, 3);
  counts first = count_loop(p.warps, 0), last = count_loop(p.warps, 2);
  cr_expect_eq(first.insts[FTL_OP_ISETP], last.insts[FTL_OP_ISETP]);
  cr_expect_eq(first.insts[FTL_OP_FMNMX], last.insts[FTL_OP_FMNMX]);
  programs_fini(&p);
}

static int32_t words_stored(const ftl_warp_program *p, int32_t loop_idx) {
  int32_t words = 0;
  for (int32_t i = p->loops[loop_idx].begin + 1; i < p->loops[loop_idx].end; i++)
    if (p->insts[i].opcode == FTL_OP_STL) words += p->accesses[p->insts[i].access].num_rows;
  return words;
}

// A step that runs once is no loop to the compiler: what is stored in it costs an eighth of what is in the loop.
Test(unit_lower_softmax_form, the_loop_stores_less_than_half_of_a_step_that_runs_once_before_it) {
  programs p = lowered("h200",
                       "heads=36 seqlen=2336 head_dim=64 block_m=128 block_n=128 num_warps=4 schedule=interleaved "
                       "mask_steps=unrolled mma=mma copy=cp_async causal=true code=buffered");
  cr_assert_eq(p.warps->num_loops, 3);
  int32_t once = words_stored(p.warps, 0), repeated = words_stored(p.warps, 2);
  cr_expect_gt(repeated, 0);
  cr_expect_leq(2 * repeated, once, "%d, %d", repeated, once);
  programs_fini(&p);
}
