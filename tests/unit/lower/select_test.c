// Instruction counts of flash2_fwd against closed forms and against what nvcc emits for the kernels in
// kernels/attention. The form of its softmax, its addresses and its registers have files of their own.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop_counts.h"

// ---- closed forms: a warp has 32 rows; S and P are 32 x 64, O is 32 x 64 ----
static void expect_math(const char *arch, const char *parameters, int64_t macs_per_inst) {
  programs p = lowered(arch, parameters);
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(p.warps->product.mma_macs, macs_per_inst);
  cr_expect_eq(c.insts[FTL_OP_MMA] * macs_per_inst, 2 * 32 * 64 * 64, "%s", arch);
  // an element each, and two rows of each slab in a lane
  cr_expect_eq(c.insts[FTL_OP_MUFU], 32 * 64 / 32 + 4, "%s", arch);
  cr_expect_eq(c.insts[FTL_OP_CVT], 32 * 64 / 32 / 2, "%s", arch);
  cr_expect_eq(c.insts[FTL_OP_SHFL], 2 * 4, "%s", arch);
  cr_expect_eq(c.insts[FTL_OP_FMNMX], 32 * 64 / 32 + 2 * 4, "%s", arch);
  programs_fini(&p);
}

Test(unit_lower_select, tensor_and_softmax_instructions_follow_from_the_shapes_on_every_generation) {
  const char *shape = SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 mma=mma";
  expect_math("v100", shape, 8 * 8 * 4 * 4 / 4);
  expect_math("t4", shape, 16 * 8 * 8);
  expect_math("a100_80", shape, 16 * 8 * 16);
  expect_math("rtx4090", shape, 16 * 8 * 16);
  expect_math("h200", shape, 16 * 8 * 16);
}

Test(unit_lower_select, operands_are_loaded_once_a_k_step_and_shared_by_the_slabs_of_a_warp) {
  programs p =
      lowered("a100_80", SHAPE "head_dim=128 block_m=128 block_n=64 num_warps=4 num_stages=1 schedule=interleaved");
  counts c = count_loop(p.warps, 0);
  // Q: 2 slabs x 8; K: 8 x 4; V: 4 x 8 blocks of 16 x 16
  cr_expect_eq(c.insts[FTL_OP_LDSM], 80);
  cr_expect_eq(c.conflicts, 0);
  // 2 tiles of 64 x 256 bytes, 512 bytes an instruction, 4 warps
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 16);
  programs_fini(&p);
}

// First instruction of an opcode in the first role; the number of instructions where there is none.
static int32_t first_of(const ftl_warp_program *p, ftl_opcode opcode) {
  int32_t i = 0;
  while (i < p->roles[0].num_insts && p->insts[i].opcode != opcode) i++;
  return i;
}

// 4 of 16 rows exist, and the kernel zeroes the others (decode_mma.h, load_queries): their 16-byte loads are stored
// before a key is asked for. A tile of 64 rows on 4 warps is copied like any other.
Test(unit_lower_select, queries_of_a_tile_that_warps_share_go_through_registers) {
  const char *shape =
      "heads=32 kv_heads=8 seqlen_kv=8192 head_dim=128 block_n=64 num_warps=4 num_stages=2 splits=4 mma=mma "
      "copy=cp_async ";
  ftl_error error = {0};
  for (int wide = 0; wide < 2; wide++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "%s%s", shape, wide ? "block_m=64" : "block_m=16");
    programs p;
    cr_assert_eq(lower_workload(&p, "h200", "flash_decode", parameters, &error), FTL_OK, "%s", error.message);
    int32_t load = first_of(p.warps, FTL_OP_LDG), store = first_of(p.warps, FTL_OP_STS);
    int32_t copy = first_of(p.warps, FTL_OP_CP_ASYNC);
    cr_expect_eq(load < store && store < copy, !wide, "%d: %d %d %d", wide, load, store, copy);
    programs_fini(&p);
  }
}

Test(unit_lower_select, wgmma_covers_block_n_or_head_dim_at_once) {
  programs p = lowered("h200", SHAPE "head_dim=128 block_m=128 block_n=128 num_warps=8");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_WGMMA], 128 / 16 + 128 / 16);
  for (int32_t i = 0; i < p.warps->num_insts; i++)
    if (p.warps->insts[i].opcode == FTL_OP_WGMMA) cr_expect_eq(p.warps->insts[i].arg, 128);
  // two boxes of 64 columns for K and for V
  cr_expect_eq(c.insts[FTL_OP_TMA_LOAD], 4);
  cr_expect_eq(c.insts[FTL_OP_LDSM] + c.insts[FTL_OP_LDS] + c.insts[FTL_OP_STS], 0);
  programs_fini(&p);
}

Test(unit_lower_select, a_mask_compares_and_selects_every_element_only_in_the_loop_that_needs_it) {
  programs p = lowered("a100_80", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 causal=1");
  cr_assert_eq(p.warps->num_loops, 2);
  counts plain = count_loop(p.warps, 0), masked = count_loop(p.warps, 1);
  cr_expect_eq(masked.insts[FTL_OP_SEL] - plain.insts[FTL_OP_SEL], 64 + 4);  // and the guard of rows without a key
  cr_expect_eq(masked.insts[FTL_OP_ISETP] - plain.insts[FTL_OP_ISETP], 64 + 4);
  programs_fini(&p);
}

// Whether a guard's branch and its label stand around the loop's `num_copies` cp.asyncs of each tile, and no product
// between them.
static void expect_guarded_blocks(const char *parameters, int32_t num_blocks, int32_t num_copies) {
  programs p = lowered("a100_80", parameters);
  int32_t blocks = 0, copies = 0;
  bool inside = false;
  for (int32_t i = p.warps->loops[0].begin; i < p.warps->loops[0].end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_BRA && (inst->flags & FTL_INST_GUARD)) inside = true;
    if (inst->opcode == FTL_OP_LABEL) {
      cr_expect_eq(copies, num_copies);
      copies = 0;
      inside = false;
      blocks++;
    }
    if (inside) copies += inst->opcode == FTL_OP_CP_ASYNC;
    cr_expect(!inside || inst->opcode != FTL_OP_MMA);
  }
  cr_expect_eq(blocks, num_blocks);
  programs_fini(&p);
}

Test(unit_lower_select, guarded_copies_are_a_block_of_their_own_if_there_are_several) {
  // 64 x 128 bytes, 512 bytes an instruction, 4 warps: 4 copies for K and 4 for V; 32 rows on 8 warps: 1, predicated
  expect_guarded_blocks(SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 num_stages=2", 2, 4);
  expect_guarded_blocks(SHAPE "head_dim=64 block_m=128 block_n=32 num_warps=8 num_stages=2", 0, 0);
  // one buffer: nothing is fetched ahead, so nothing is guarded
  expect_guarded_blocks(SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 num_stages=1", 0, 0);
}

Test(unit_lower_select, conversions_stand_behind_the_copies_before_their_product) {
  // 128 rows of 4 warps and 64 columns: 64 elements a lane, two in an F2FP, of which a k step's stand in one
  programs p =
      lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 num_stages=2 mma=mma copy=cp_async");
  int32_t last_copy = 0, before = 0, behind = 0;
  for (int32_t i = p.warps->loops[0].begin; i < p.warps->loops[0].end; i++)
    if (p.warps->insts[i].opcode == FTL_OP_CP_ASYNC) last_copy = i;
  for (int32_t i = p.warps->loops[0].begin; i < p.warps->loops[0].end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_CVT) *(i < last_copy ? &before : &behind) += inst->repeat;
  }
  cr_expect_eq(before, 0);
  cr_expect_eq(behind, 32);
  programs_fini(&p);
}

// QK of two slabs over four k steps: Q's descriptor is made eight times, each of whose two words goes from a vector
// register to a uniform one; the upper is the same constant, moved there anew. The other moves keep
// the row maxima of two rows a slab.
Test(unit_lower_select, plain_wgmma_moves_the_upper_word_of_each_descriptor_of_q) {
  programs p = lowered("h200", SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=4 num_stages=2 code=plain");
  counts c = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(c.insts[FTL_OP_MOV], 2 * 4 + 2 * 2);
  cr_expect_eq(c.insts[FTL_OP_R2UR], 2 * 4 * 2);
}

// Warps that only compute keep Q's eight descriptors whole, and move their two words to uniform registers: nothing is
// worked out for them and no upper word moved anew. The other moves keep the row maxima of two rows.
Test(unit_lower_select, consumers_keep_the_descriptors_of_q) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(
      &p, "h200", "flash3_fwd",
      "heads=1 seqlen=1024 head_dim=128 block_m=128 block_n=64 num_warps=8 num_stages=2 code=plain", &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  const ftl_warp_role *role = &p.warps->roles[p.warps->num_roles - 1];
  counts c = {0};
  int32_t loop = p.warps->num_loops - 1;
  for (int32_t i = p.warps->loops[loop].begin; i < p.warps->loops[loop].end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[role->first_inst + i];
    c.insts[inst->opcode] += inst->repeat;
  }
  programs_fini(&p);
  cr_expect_eq(c.insts[FTL_OP_WGMMA], 8 + 4);
  cr_expect_eq(c.insts[FTL_OP_R2UR], 8 * 2);
  cr_expect_eq(c.insts[FTL_OP_MOV], 2);
}

// A persistent CTA goes on where the tile before left its rings, so its stages cannot be counted from the tile's
// number: two stage indices, the 64 bits of V's pointer and V's place for copies are live in its loop, beside what
// finds the next tile, and it works out one address more.
Test(unit_lower_select, plain_wgmma_counts_stages_and_finds_v_beside_k) {
  const char *counted =
      SHAPE "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=2 mma=wgmma copy=cp_async code=plain";
  char carried[256];
  snprintf(carried, sizeof carried, "%s persistent=true", counted);
  programs p = lowered("h200", counted), q = lowered("h200", carried);
  cr_expect_geq(q.warps->registers_per_thread - p.warps->registers_per_thread, 2 + 2 + 1);
  cr_expect_eq(count_loop(q.warps, 0).insts[FTL_OP_IMAD] - count_loop(p.warps, 0).insts[FTL_OP_IMAD], 1);
  programs_fini(&p);
  programs_fini(&q);
}

// ---- waits ----
static void expect_groups_left(const char *parameters, int32_t loop_idx, const int *expected, int count) {
  programs p = lowered("a100_80", parameters);
  int found = 0;
  for (int32_t i = p.warps->loops[loop_idx].begin; i < p.warps->loops[loop_idx].end; i++) {
    if (p.warps->insts[i].opcode != FTL_OP_CP_WAIT) continue;
    cr_assert_lt(found, count);
    cr_expect_eq(p.warps->insts[i].arg, expected[found], "wait %d leaves %d", found, p.warps->insts[i].arg);
    found++;
  }
  cr_expect_eq(found, count);
  programs_fini(&p);
}

Test(unit_lower_select, waits_leave_in_flight_what_later_tiles_may_still_take) {
  // two stages, one tile ahead: K waits for K_j with V_j behind it, V for V_j with K_j+1 behind it
  expect_groups_left(SHAPE "head_dim=64 num_stages=2", 0, (const int[]){1, 1}, 2);
  // three stages, two ahead: V_j, K_j+1, V_j+1 behind K_j
  expect_groups_left(SHAPE "head_dim=64 num_stages=3", 0, (const int[]){3, 3}, 2);
  expect_groups_left(SHAPE "head_dim=64 num_stages=1", 0, (const int[]){0, 0}, 2);
  expect_groups_left(SHAPE "head_dim=64 num_stages=1 schedule=interleaved", 0, (const int[]){0, 0}, 2);
}

Test(unit_lower_select, a_single_buffer_needs_a_barrier_before_each_refill_and_two_stages_need_none) {
  programs p = lowered("a100_80", SHAPE "head_dim=64 num_stages=2");
  cr_expect_eq(count_loop(p.warps, 0).insts[FTL_OP_BAR_SYNC], 2);
  programs_fini(&p);
  p = lowered("a100_80", SHAPE "head_dim=64 num_stages=1");
  cr_expect_eq(count_loop(p.warps, 0).insts[FTL_OP_BAR_SYNC], 4);
  programs_fini(&p);
}

// Three stages, of K all ahead of the first step: as many groups in flight at either wait, 2 * 3 - 1 less the tile that
// is waited for. K is filled a tile further ahead than V, so that each has an index of its own (IADD, ISETP, SEL),
// while the stage that is read is found once for both. A step that is not the first is told by a compare, and branches
// behind the wait over that of the first.
Test(unit_lower_select, buffers_refilled_when_free_have_two_indices_to_fill_and_two_waits_in_the_source) {
#define BUFFERS SHAPE "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3 mma=mma copy=cp_async code=plain "
  expect_groups_left(BUFFERS "refill=when_free", 0, (const int[]){4, 4}, 2);
  programs p = lowered("h200", BUFFERS "refill=early");
  counts early = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", BUFFERS "refill=when_free");
  counts when_free = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(early.insts[FTL_OP_SEL], 2);
  cr_expect_eq(when_free.insts[FTL_OP_SEL], 3);
  cr_expect_eq(when_free.insts[FTL_OP_BRA] - early.insts[FTL_OP_BRA], 2);
  cr_expect_eq(when_free.insts[FTL_OP_ISETP] - early.insts[FTL_OP_ISETP], 1 + 1);
  cr_expect_eq(when_free.insts[FTL_OP_CP_WAIT], early.insts[FTL_OP_CP_WAIT]);
}

// K and V in one group: one wait and one barrier for both.
Test(unit_lower_select, tiles_that_come_jointly_are_waited_for_at_one_barrier) {
  programs p = lowered("h200", BUFFERS "refill=joint");
  counts joint = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(joint.insts[FTL_OP_BAR_SYNC], 1);
  cr_expect_eq(joint.insts[FTL_OP_CP_WAIT], 1);
}

// By hand each of the tiles that come jointly has a block, behind a branch (SASS of kernels/independent/forward_c);
// Triton predicates the copies of the two.
Test(unit_lower_select, tiles_that_come_jointly_are_copied_in_blocks_where_nvcc_compiles_them) {
#define JOINT SHAPE "head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3 mma=mma copy=cp_async refill=joint "
  programs p = lowered("h200", JOINT "code=stepped");
  counts stepped = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", JOINT "code=lean");
  counts lean = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(stepped.insts[FTL_OP_CP_ASYNC], lean.insts[FTL_OP_CP_ASYNC]);
  cr_expect_eq(stepped.insts[FTL_OP_BRA] - lean.insts[FTL_OP_BRA], 2);
}

// By TMA a step that refills early finds the buffers free behind a barrier; amid each warp says so of K and of V, and
// the thread that copies waits for that. Triton's warps meet twice more, before each copy.
Test(unit_lower_select, releases_that_an_mbarrier_counts_need_no_barrier) {
#define BY_TMA SHAPE "head_dim=64 block_m=128 block_n=64 num_warps=8 num_stages=3 mma=wgmma copy=tma "
  static const struct {
    const char *params;
    int32_t barriers, acquires, releases;
  } cases[] = {{BY_TMA "code=stepped refill=early", 1, 0, 0},
               {BY_TMA "code=stepped refill=amid", 0, 2, 2},
               {BY_TMA "code=lean refill=early", 3, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    programs p = lowered("h200", cases[i].params);
    counts step = count_loop(p.warps, 0);
    cr_expect_eq(step.insts[FTL_OP_BAR_SYNC], cases[i].barriers, "%s: %d", cases[i].params,
                 (int)step.insts[FTL_OP_BAR_SYNC]);
    cr_expect_eq(step.insts[FTL_OP_MBAR_ACQUIRE], cases[i].acquires, "%s", cases[i].params);
    cr_expect_eq(step.insts[FTL_OP_MBAR_RELEASE], cases[i].releases, "%s", cases[i].params);
    programs_fini(&p);
  }
}

// ---- against the compiler ----
typedef struct compiled {
  const char *arch, *parameters;
  int32_t registers;   // ptxas -v
  int32_t loop_insts;  // of the unmasked loop's body, in the cubin; 0: not looked up
} compiled;

// nvcc 13.0 -O3 --use_fast_math, kernels/attention/flash2_mma.h (sm_80) and flash2_wgmma.h (sm_90a).
static const compiled compiled_kernels[] = {
    {"a100_80", SHAPE "code=plain head_dim=128 block_m=128 block_n=64 num_warps=4 num_stages=1 schedule=interleaved",
     255, 1168},
    {"a100_80",
     SHAPE "code=plain head_dim=128 block_m=128 block_n=64 num_warps=8 num_stages=2 causal=1 q_operand=shared", 166,
     715},
    {"a100_80", SHAPE "code=plain head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=2 causal=1 q_operand=shared",
     130, 496},
    {"h200", SHAPE "code=plain head_dim=128 block_m=128 block_n=64 num_warps=4 num_stages=2", 234, 0},
    {"h200", SHAPE "code=plain head_dim=128 block_m=128 block_n=128 num_warps=8 num_stages=2", 158, 0},
    {"h200", SHAPE "code=plain head_dim=128 block_m=128 block_n=64 num_warps=4 num_stages=2 copy=cp_async", 246, 0},
    {"h200", SHAPE "code=plain head_dim=64 block_m=128 block_n=128 num_warps=8 num_stages=2", 128, 0},
};

Test(unit_lower_select, registers_are_near_what_ptxas_reports) {
  for (size_t i = 0; i < sizeof compiled_kernels / sizeof *compiled_kernels; i++) {
    const compiled *k = &compiled_kernels[i];
    programs p = lowered(k->arch, k->parameters);
    cr_expect_leq(abs(p.warps->registers_per_thread - k->registers), 40, "%s: %d, compiled %d", k->parameters,
                  p.warps->registers_per_thread, k->registers);
    programs_fini(&p);
  }
}

Test(unit_lower_select, loop_bodies_have_about_as_many_instructions_as_compiled_ones) {
  for (size_t i = 0; i < sizeof compiled_kernels / sizeof *compiled_kernels; i++) {
    const compiled *k = &compiled_kernels[i];
    if (k->loop_insts == 0) continue;
    programs p = lowered(k->arch, k->parameters);
    double ratio = (double)count_loop(p.warps, 0).total / k->loop_insts;
    cr_expect(ratio > 0.9 && ratio < 1.1, "%s: %.2f of the compiled loop", k->parameters, ratio);
    programs_fini(&p);
  }
}

// Of O, 64 rows of 128 bytes by 4 warps, a warp stores 16 bytes a lane 4 times: as wgmma's kernels do, each in 4 words.
Test(unit_lower_select, wgmma_kernels_store_o_in_words) {
  static const struct {
    const char *mma;
    int64_t in_words;
  } cases[] = {{"wgmma", 4 * 4}, {"mma", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters,
             "heads=1 seqlen=128 head_dim=64 block_m=64 block_n=64 num_warps=4 code=plain mma=%s", cases[i].mma);
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_workload(&p, "h200", "flash2_fwd", parameters, &error), FTL_OK, "%s", error.message);
    int64_t in_words = 0;
    for (int32_t k = 0; k < p.warps->num_insts; k++) {
      const ftl_warp_inst *inst = &p.warps->insts[k];
      if (inst->opcode == FTL_OP_STG && p.warps->accesses[inst->access].in_words) in_words += inst->repeat;
    }
    cr_expect_eq(in_words, cases[i].in_words, "%s: %ld", cases[i].mma, (long)in_words);
    programs_fini(&p);
  }
}

// S, 64 rows of 128 bytes by 4 warps: a warp stores the 8 pieces of 16 bytes of its rows 0 to 7, then those of 8 to 15.
Test(unit_lower_select, plain_code_stores_the_upper_rows_of_a_slab_first) {
  static const char *const mmas[] = {"wgmma", "mma"};
  for (size_t m = 0; m < sizeof mmas / sizeof *mmas; m++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters,
             "heads=1 seqlen=128 head_dim=64 block_m=64 block_n=64 num_warps=4 code=plain mma=%s", mmas[m]);
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_workload(&p, "h200", "standard_attention", parameters, &error), FTL_OK, "%s", error.message);
    int32_t stores = 0;
    for (int32_t i = 0; i < p.warps->num_insts; i++) {
      if (p.warps->insts[i].opcode != FTL_OP_STG) continue;
      const ftl_access *access = &p.warps->accesses[p.warps->insts[i].access];
      cr_expect_eq(access->row, stores / 8 * 8, "%s: store %d", mmas[m], (int)stores);
      cr_expect_eq(access->column_byte, stores % 8 * 16, "%s: store %d", mmas[m], (int)stores);
      stores++;
    }
    cr_expect_eq(stores, 2 * 8, "%s", mmas[m]);
    programs_fini(&p);
  }
}
