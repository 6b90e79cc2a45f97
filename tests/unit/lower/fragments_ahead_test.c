// How far fragments are loaded ahead of their products with mma.sync.
#include <criterion/criterion.h>
#include <string.h>

#include "../lower_checker/programs.h"

// ldmatrix that are issued ahead of the first MMA of the loop's product (0: with K, 1: with V) and read by it or behind
// it. Each product has `num_mmas`.
static int32_t loads_ahead(const char *workload, const char *parameters, int32_t product, int32_t num_mmas) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", workload, parameters, 0, &error), FTL_OK, "%s", error.message);
  bool is_loaded[FTL_MAX_TOKENS] = {0};
  int32_t num_loaded = 0, num_before = product * num_mmas;
  for (int32_t i = p.warps->loops[0].begin + 1; num_before >= 0; i++) {
    cr_assert_lt(i, p.warps->loops[0].end);
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_LDSM) {
      is_loaded[inst->destination] = true;
      num_loaded++;
    }
    if (inst->opcode != FTL_OP_MMA || num_before-- == 0) continue;
    for (int32_t k = 0; k < inst->num_sources; k++) {
      num_loaded -= is_loaded[inst->sources[k]];
      is_loaded[inst->sources[k]] = false;
    }
  }
  programs_fini(&p);
  return num_loaded;
}

// A warp has 32 keys: two k steps of V at head_dim 128, each of 8 blocks of 16 columns and 16 MMAs. All of the first
// are on their way ahead of its first MMA; lean code has no more than come in time.
Test(unit_lower_fragments_ahead, groups_of_warps_load_a_step_ahead) {
  char parameters[128] =
      "heads=1 seqlen_q=256 seqlen_kv=128 head_dim=128 block_n=128 num_warps=4 num_stages=2 code=plain";
  cr_expect_eq(loads_ahead("flash1_fwd", parameters, 1, 32), 8);
  strcpy(strstr(parameters, "plain"), "lean");
  cr_expect_eq(loads_ahead("flash1_fwd", parameters, 1, 32), 3);
}

// MMAs between an ldmatrix of the loop and the first that reads it: of more than half of them no more than this.
static int32_t mmas_between(const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", "flash2_fwd", parameters, 0, &error), FTL_OK, "%s", error.message);
  int32_t loaded_at[FTL_MAX_TOKENS], num_mmas = 0, num_loads = 0, at_most[64] = {0};
  memset(loaded_at, -1, sizeof loaded_at);
  for (int32_t i = p.warps->loops[0].begin + 1; i < p.warps->loops[0].end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_LDSM) {
      loaded_at[inst->destination] = num_mmas;
      num_loads++;
    }
    if (inst->opcode != FTL_OP_MMA) continue;
    for (int32_t k = 0; k < inst->num_sources; k++) {
      int32_t *at = &loaded_at[inst->sources[k]];
      if (*at >= 0) at_most[num_mmas - *at < 63 ? num_mmas - *at : 63]++;
      *at = -1;
    }
    num_mmas++;
  }
  programs_fini(&p);
  int32_t between = 0;
  for (int32_t seen = at_most[0]; 2 * seen <= num_loads; seen += at_most[++between]) continue;
  return between;
}

// 64 x 64 tiles of 4 warps at head_dim 64 have registers for three warps a sub-core and none for fragments ahead: an
// ldmatrix is issued as the two MMAs before its own are. 128 x 64 tiles have 221 and load farther ahead.
Test(unit_lower_fragments_ahead, stepped_code_that_has_no_registers_loads_two_products_ahead) {
#define STEPPED                                                                                                       \
  "heads=8 seqlen=2048 head_dim=64 block_n=64 num_warps=4 num_stages=2 mma=mma copy=cp_async code=stepped q_operand=" \
  "registers refill=joint scaling=exponent row_sums=end guard=masked "
  cr_expect_eq(mmas_between(STEPPED "block_m=64"), 1, "%d", mmas_between(STEPPED "block_m=64"));
  cr_expect_geq(mmas_between(STEPPED "block_m=128"), 5, "%d", mmas_between(STEPPED "block_m=128"));
}
