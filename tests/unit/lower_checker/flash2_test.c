// Every lowering of flash2_fwd that is feasible does what its tile program says.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../thinned.h"
#include "lower/checker.h"
#include "programs.h"

static const char *const shapes[] = {
    "heads=2 seqlen=256 head_dim=64",
    "heads=2 seqlen=300 head_dim=64 causal=1",
    "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=333 head_dim=128 causal=1",
    "heads=4 kv_heads=1 seqlen_q=200 seqlen_kv=100 head_dim=40 causal=1 layout=bshd",
    "heads=1 seqlen_q=1 seqlen_kv=17 head_dim=96",
    "heads=2 seqlen=257 head_dim=128 tile_order=head_first tile_reverse=1 causal=1 batch=2",
    "heads=4 kv_heads=2 lengths=70:1:200 head_dim=64 causal=1",
    "heads=2 seqlen_q=200 seqlen_kv=333 head_dim=96 head_dim_v=64 causal=1",
    "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=333 head_dim=40 head_dim_v=128 layout=bshd",
    "heads=2 lengths=128:333 head_dim=128 layout=bshd tile_order=head_first",
};

static const char *const blocks[] = {
    "block_m=64 block_n=64 num_warps=4 num_stages=2",
    "block_m=128 block_n=64 num_warps=4 num_stages=3",
    "block_m=128 block_n=32 num_warps=8 num_stages=1",
    "block_m=64 block_n=48 num_warps=4 num_stages=1 schedule=interleaved",
    "block_m=128 block_n=128 num_warps=8 num_stages=2",
    "block_m=64 block_n=128 num_warps=4 num_stages=2 max_registers=96",
};

// Gives how many configurations were feasible.
static int prove_all(const char *arch, const char *how) {
  int feasible = 0, count = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
      char parameters[400];
      snprintf(parameters, sizeof parameters, "%s %s %s", shapes[s], blocks[b], how);
      programs p;
      ftl_error error = {0};
      if (lower_workload(&p, arch, "flash2_fwd", parameters, &error) == FTL_OK) {
        feasible++;
        for (int64_t cta = 0; cta < p.tile->num_ctas; cta += 1 + p.tile->num_ctas / 3) {
          if (!thinned_runs(&count)) continue;
          ftl_status status = ftl_checker_prove(p.warps, cta, &error);
          cr_expect_eq(status, FTL_OK, "%s: %s: %s", arch, parameters, error.message);
        }
      }
      programs_fini(&p);
    }
  }
  return feasible;
}

Test(unit_lower_checker_flash2, volta_by_registers) { cr_expect_geq(prove_all("v100", ""), 20); }
Test(unit_lower_checker_flash2, turing_by_registers) { cr_expect_geq(prove_all("t4", ""), 15); }
Test(unit_lower_checker_flash2, ampere_by_cp_async) { cr_expect_geq(prove_all("a100_80", ""), 25); }
Test(unit_lower_checker_flash2, ampere_by_registers) { cr_expect_geq(prove_all("a100_80", "copy=ldg"), 20); }
Test(unit_lower_checker_flash2, ada_by_cp_async_in_bf16) { cr_expect_geq(prove_all("rtx4090", "dtype=bf16"), 20); }
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_tma) { cr_expect_geq(prove_all("h200", ""), 15); }
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_cp_async) { cr_expect_geq(prove_all("h200", "copy=cp_async"), 15); }
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_registers) { cr_expect_geq(prove_all("h200", "copy=ldg"), 10); }
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_cp_async_refilled_early) {
  cr_expect_geq(prove_all("h200", "copy=cp_async refill=early"), 15);
}
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_cp_async_refilled_when_free) {
  cr_expect_geq(prove_all("h200", "copy=cp_async refill=when_free"), 15);
}
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_tma_refilled_when_free) {
  cr_expect_geq(prove_all("h200", "refill=when_free"), 15);
}
Test(unit_lower_checker_flash2, ampere_by_cp_async_refilled_when_free) {
  cr_expect_geq(prove_all("a100_80", "refill=when_free"), 25);
}
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_tma_refilled_amid) {
  cr_expect_geq(prove_all("h200", "refill=amid"), 8);
}
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_cp_async_refilled_amid) {
  cr_expect_geq(prove_all("h200", "copy=cp_async refill=amid"), 8);
}
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_cp_async_refilled_jointly) {
  cr_expect_geq(prove_all("h200", "copy=cp_async refill=joint"), 8);
}
Test(unit_lower_checker_flash2, ampere_by_cp_async_refilled_jointly) {
  cr_expect_geq(prove_all("a100_80", "refill=joint"), 15);
}
Test(unit_lower_checker_flash2, hopper_by_wgmma_and_tma_refilled_late) {
  cr_expect_geq(prove_all("h200", "refill=late"), 8);
}
Test(unit_lower_checker_flash2, ampere_by_cp_async_refilled_late) {
  cr_expect_geq(prove_all("a100_80", "refill=late"), 15);
}
Test(unit_lower_checker_flash2, turing_by_registers_refilled_late) { cr_expect_geq(prove_all("t4", "refill=late"), 5); }
Test(unit_lower_checker_flash2, hopper_by_mma_sync_and_cp_async) { cr_expect_geq(prove_all("h200", "mma=mma"), 25); }
Test(unit_lower_checker_flash2, hopper_by_mma_sync_and_tma) {
  cr_expect_geq(prove_all("h200", "mma=mma copy=tma"), 25);
}

// ---- warps side by side, as Triton has them with mma.sync ----
static int prove_tiles(const char *arch, const char *const tiles[3], const char *how) {
  static const char *const problems[] = {"heads=2 seqlen=300 head_dim=64", "heads=2 seqlen=257 head_dim=128 causal=1"};
  int feasible = 0;
  for (size_t i = 0; i < 3; i++)
    for (size_t j = 0; j < sizeof problems / sizeof *problems; j++) {
      char parameters[300];
      snprintf(parameters, sizeof parameters, "%s %s %s", problems[j], tiles[i], how);
      programs p;
      ftl_error error = {0};
      if (lower_workload(&p, arch, "flash2_fwd", parameters, &error) == FTL_OK) {
        feasible++;
        for (int64_t cta = 0; cta < p.tile->num_ctas; cta += 1 + p.tile->num_ctas / 3)
          cr_expect_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s: %s: %s", arch, parameters, error.message);
      }
      programs_fini(&p);
    }
  return feasible;
}

static int prove_side_by_side(const char *arch, const char *how) {
  static const char *const tiles[] = {"block_m=32 block_n=32 num_warps=2 warps_n=2 mma=mma",
                                      "block_m=32 block_n=64 num_warps=4 warps_n=4 mma=mma",
                                      "block_m=64 block_n=32 num_warps=4 warps_n=2 mma=mma"};
  return prove_tiles(arch, tiles, how);
}

// Warpgroups that have all keys each: products, exponentials and random numbers are counted for both.
Test(unit_lower_checker_flash2, warpgroups_that_share_the_columns_of_v) {
  static const char *const tiles[] = {"block_m=64 block_n=64 num_warps=8 warps_n=2 mma=wgmma",
                                      "block_m=128 block_n=32 num_warps=16 warps_n=2 mma=wgmma",
                                      "block_m=64 block_n=128 num_warps=16 warps_n=4 mma=wgmma"};
  cr_expect_eq(prove_tiles("h200", tiles, "num_stages=2 copy=cp_async code=lean"), 6);
  cr_expect_eq(prove_tiles("h200", tiles, "num_stages=1 copy=tma code=plain dropout_p=0.2"), 6);
}

// The softmax of a slab of scores stands between its products and those of the next.
Test(unit_lower_checker_flash2, slabs_of_scores_that_take_turns) {
  static const char *const tiles[] = {"block_m=128 block_n=128 num_warps=4 mma=wgmma",
                                      "block_m=128 block_n=96 num_warps=4 mma=wgmma",
                                      "block_m=256 block_n=128 num_warps=8 mma=wgmma"};
  cr_expect_eq(prove_tiles("h200", tiles, "num_stages=2 copy=cp_async code=lean refill=late scaling=twice"), 6);
}

// Tiles that TMA brings for warps which ask for them themselves, as Triton's tensor descriptors.
Test(unit_lower_checker_flash2, descriptors_whose_products_run_on_into_the_next_step) {
  static const char *const tiles[] = {"block_m=64 block_n=64 num_warps=4 mma=wgmma",
                                      "block_m=128 block_n=64 num_warps=8 mma=wgmma",
                                      "block_m=128 block_n=64 num_warps=4 mma=wgmma"};
  cr_expect_eq(prove_tiles("h200", tiles, "num_stages=2 copy=tma code=lean refill=late scaling=by_tile"), 6);
  cr_expect_eq(prove_tiles("h200", tiles, "num_stages=4 copy=tma code=lean refill=late head_dim=64"), 6);
}

// Of the warps of a row one stores its logarithm: each byte leaves once.
Test(unit_lower_checker_flash2, warps_side_by_side_on_every_generation) {
  cr_expect_eq(prove_side_by_side("h200", "num_stages=1 refill=behind row_sums=step"), 6);
  cr_expect_eq(prove_side_by_side("h200", "num_stages=2 refill=behind row_sums=step"), 6);
  cr_expect_eq(prove_side_by_side("a100_80", "num_stages=2 row_sums=end"), 6);
  cr_expect_eq(prove_side_by_side("t4", "num_stages=1 refill=behind"), 6);
  cr_expect_eq(prove_side_by_side("v100", "num_stages=1"), 6);
}

// Instructions of a loop over keys, a letter each: W: wgmma; their wait with the groups left; R: a stage given back; B:
// a barrier; C: copies asked for.
static const char *step_text(const char *parameters) {
  static char text[128];
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash2_fwd", parameters, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_checker_prove(p.warps, 0, &error), FTL_OK, "%s: %s", parameters, error.message);
  int32_t i = 0, length = 0;
  while (p.warps->insts[i].opcode != FTL_OP_LOOP) i++;
  for (; p.warps->insts[i].opcode != FTL_OP_END_LOOP; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    char letter = inst->opcode == FTL_OP_WGMMA        ? 'W'
                  : inst->opcode == FTL_OP_WGMMA_WAIT ? (char)('0' + inst->arg)
                  : inst->opcode == FTL_OP_RING_FREE  ? 'R'
                  : inst->opcode == FTL_OP_BAR_SYNC   ? 'B'
                  : inst->opcode == FTL_OP_CP_ASYNC   ? 'C'
                                                      : 0;
    if (letter && (letter != 'C' || text[length - 1] != 'C')) text[length++] = letter;
  }
  text[length] = 0;
  programs_fini(&p);
  return text;
}

// Four k steps of 16 in either product. Refilled late the second product is waited for with the first of the next step,
// before the barrier ahead of the copies into its stage. Refilled early no barrier stands between: each step waits for
// its own. So does plain code, as kernels/attention is written.
Test(unit_lower_checker_flash2, a_late_refill_lets_the_second_product_run_into_the_next_step) {
#define STEP "heads=1 seqlen=512 head_dim=64 block_m=128 num_warps=8 num_stages=3 copy=cp_async "
  cr_expect_str_eq(step_text(STEP "block_n=64 refill=late"), "BWWWW0RWWWWBCR");
  cr_expect_str_eq(step_text(STEP "block_n=64 refill=early"), "BCWWWW0RBCWWWW0R");
  cr_expect_str_eq(step_text(STEP "block_n=64 refill=late code=plain"), "BWWWW0RWWWWBC0R");
}

// 64 columns more are 32 registers of S and 16 of P, which stands beside S while its product is in flight: in those
// that are set aside while the next P is made, not in 16 others.
Test(unit_lower_checker_flash2, an_operand_in_flight_takes_the_registers_set_aside_for_the_next) {
  int32_t registers[2];
  static const char *const tiles[] = {STEP "refill=late scaling=scores block_n=64",
                                      STEP "refill=late scaling=scores block_n=128"};
  for (int i = 0; i < 2; i++) {
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_workload(&p, "h200", "flash2_fwd", tiles[i], &error), FTL_OK, "%s", error.message);
    registers[i] = p.warps->registers_per_thread;
    programs_fini(&p);
  }
  cr_expect_geq(registers[1] - registers[0], 32 + 16);
  cr_expect_lt(registers[1] - registers[0], 32 + 16 + 16, "%d and %d", registers[0], registers[1]);
}
