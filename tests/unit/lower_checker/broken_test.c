// Sound programs, broken one instruction at a time: the checker has to say so, and what.
#include <criterion/criterion.h>
#include <string.h>

#include "lower/checker.h"
#include "programs.h"

#define SHAPE "heads=1 seqlen=512 head_dim=64 block_m=64 block_n=64 num_warps=4 "

static programs lowered(const char *arch, const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, arch, "flash2_fwd", parameters, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_checker_prove(p.warps, 0, &error), FTL_OK, "%s", error.message);
  return p;
}

// The `nth` instruction of a kind, counted from the program's first loop on; asserts that there is one.
static ftl_warp_inst *nth_in_loop(const programs *p, ftl_opcode opcode, int nth) {
  bool inside = false;
  for (int32_t i = 0; i < p->warps->num_insts; i++) {
    ftl_warp_inst *inst = &p->warps->insts[i];
    inside |= inst->opcode == FTL_OP_LOOP;
    if (inside && inst->opcode == opcode && nth-- == 0) return inst;
  }
  cr_assert_fail("no such %s", ftl_opcode_name(opcode));
  return NULL;
}

static ftl_warp_inst *last_of(const programs *p, ftl_opcode opcode) {
  for (int32_t i = p->warps->num_insts - 1; i >= 0; i--)
    if (p->warps->insts[i].opcode == opcode) return &p->warps->insts[i];
  cr_assert_fail("no %s", ftl_opcode_name(opcode));
  return NULL;
}

static ftl_warp_inst *first_of(const programs *p, ftl_opcode opcode) {
  for (int32_t i = 0; i < p->warps->num_insts; i++)
    if (p->warps->insts[i].opcode == opcode) return &p->warps->insts[i];
  cr_assert_fail("no %s", ftl_opcode_name(opcode));
  return NULL;
}

static void drop(ftl_warp_inst *inst) {
  *inst = (ftl_warp_inst){.opcode = FTL_OP_NOP,
                          .repeat = 1,
                          .destination = FTL_NO_TOKEN,
                          .access = FTL_NO_ACCESS,
                          .ring_a = FTL_NO_RING,
                          .ring_b = FTL_NO_RING};
}

// Asserts that the checker rejects p with a message that holds `what`, and frees p.
static void expect_rejected(programs *p, const char *what) {
  ftl_error error = {0};
  cr_expect_eq(ftl_checker_prove(p->warps, 0, &error), FTL_RUN_FAILED, "accepted; wanted: %s", what);
  cr_expect_not_null(strstr(error.message, what), "said \"%s\", wanted \"%s\"", error.message, what);
  programs_fini(p);
}

// ---- cp.async ----
Test(unit_lower_checker_broken, a_missing_barrier_after_the_copies_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_BAR_SYNC, 0));
  expect_rejected(&p, "reads a stage");
}

Test(unit_lower_checker_broken, a_wait_number_one_too_high_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  nth_in_loop(&p, FTL_OP_CP_WAIT, 0)->arg++;
  expect_rejected(&p, "reads a stage whose copies have not been waited for");
}

Test(unit_lower_checker_broken, a_missing_commit_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_CP_COMMIT, 0));
  expect_rejected(&p, "have not been waited for");
}

Test(unit_lower_checker_broken, a_dropped_copy_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_CP_ASYNC, 0));
  expect_rejected(&p, "reads a stage before every copy into it was made");
}

Test(unit_lower_checker_broken, a_duplicated_copy_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  ftl_warp_inst *first = nth_in_loop(&p, FTL_OP_CP_ASYNC, 0);
  nth_in_loop(&p, FTL_OP_CP_ASYNC, 1)->access = first->access;
  expect_rejected(&p, "touches bytes a second time");
}

Test(unit_lower_checker_broken, a_copy_of_another_tensor_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  ftl_access *access = &p.warps->accesses[nth_in_loop(&p, FTL_OP_CP_ASYNC, 0)->access];
  access->ref = p.warps->accesses[first_of(&p, FTL_OP_CP_ASYNC)->access].ref;
  expect_rejected(&p, "copies a tile that belongs in another stage");
}

Test(unit_lower_checker_broken, a_stage_filled_again_while_it_is_read_is_found) {
  // With one stage fewer in the ring than the program was lowered for, each copy goes to the stage being read.
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  uint8_t ring = nth_in_loop(&p, FTL_OP_CP_ASYNC, 0)->ring_a;
  cr_assert_eq(p.warps->rings[ring].num_stages, 2);
  p.warps->rings[ring].num_stages = 1;
  expect_rejected(&p, "a stage that");
}

Test(unit_lower_checker_broken, a_read_of_the_stage_before_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_RING_READ, 0));
  expect_rejected(&p, "that it has not waited for");
}

Test(unit_lower_checker_broken, a_barrier_that_one_warp_leaves_out_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  last_of(&p, FTL_OP_BAR_SYNC)->flags |= FTL_INST_WARP0;
  expect_rejected(&p, "waits for ever");
}

// ---- copies through registers ----
Test(unit_lower_checker_broken, a_tile_that_is_loaded_and_not_written_to_shared_memory_is_found) {
  programs p = lowered("v100", SHAPE "num_stages=2");
  for (int i = 0;; i++) {
    ftl_warp_inst *store = nth_in_loop(&p, FTL_OP_STS, i);
    if (store->ring_a == FTL_NO_RING) continue;
    drop(store);
    break;
  }
  expect_rejected(&p, "reads a stage before every copy into it was made");
}

Test(unit_lower_checker_broken, a_missing_barrier_between_sts_and_reads_is_found) {
  programs p = lowered("t4", SHAPE "num_stages=1");
  drop(nth_in_loop(&p, FTL_OP_BAR_SYNC, 1));
  expect_rejected(&p, "");
}

// ---- TMA and wgmma ----
Test(unit_lower_checker_broken, a_missing_mbarrier_wait_is_found) {
  programs p = lowered("h200", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_MBAR_WAIT, 0));
  expect_rejected(&p, "that it has not waited for");
}

Test(unit_lower_checker_broken, a_tma_that_is_not_announced_is_waited_for_for_ever) {
  programs p = lowered("h200", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_MBAR_EXPECT, 0));
  expect_rejected(&p, "waits for ever");
}

Test(unit_lower_checker_broken, a_dropped_tma_is_found) {
  programs p = lowered("h200", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_TMA_LOAD, 0));
  expect_rejected(&p, "reads a stage before every copy into it was made");
}

Test(unit_lower_checker_broken, a_wgmma_that_still_reads_when_its_stage_is_given_back_is_found) {
  programs p = lowered("h200", SHAPE "num_stages=2");
  nth_in_loop(&p, FTL_OP_WGMMA_WAIT, 0)->arg++;
  expect_rejected(&p, "a wgmma may still read");
}

// The second product runs on into the next step, where the wait for the first one is for both.
Test(unit_lower_checker_broken, a_wgmma_that_still_reads_when_its_stage_is_filled_again_is_found) {
  programs p = lowered("h200", SHAPE "num_stages=3 copy=cp_async refill=late");
  nth_in_loop(&p, FTL_OP_WGMMA_WAIT, 0)->arg += 2;
  ftl_warp_inst *of_k = nth_in_loop(&p, FTL_OP_RING_FREE, 0);
  of_k->flags |= FTL_INST_RUNS_ON;
  expect_rejected(&p, "overwrites a stage that a wgmma may still read");
}

// ---- work ----
Test(unit_lower_checker_broken, a_product_too_few_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  drop(nth_in_loop(&p, FTL_OP_MMA, 3));
  expect_rejected(&p, "multiply-adds");
}

Test(unit_lower_checker_broken, an_exponential_too_many_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  nth_in_loop(&p, FTL_OP_MUFU, 0)->repeat++;
  expect_rejected(&p, "exponentials");
}

Test(unit_lower_checker_broken, a_store_that_is_left_out_is_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  drop(last_of(&p, FTL_OP_STG));
  expect_rejected(&p, "are never stored");
}

Test(unit_lower_checker_broken, bytes_outside_the_tile_are_found) {
  programs p = lowered("a100_80", SHAPE "num_stages=2");
  p.warps->accesses[nth_in_loop(&p, FTL_OP_CP_ASYNC, 0)->access].column_byte += 64;
  expect_rejected(&p, "touches bytes");
}
