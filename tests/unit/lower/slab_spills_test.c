// Words that lean loops with two slabs of S and of O a thread store and load: 128 x 128 tiles of 4 warps at head_dim
// 128, of which O has 128 registers, S 128 and P 64.
#include <stdio.h>

#include "loop_counts.h"

#define TILE                                                                                          \
  SHAPE                                                                                               \
  "head_dim=128 block_m=128 block_n=128 num_warps=4 mma=wgmma copy=cp_async code=lean row_sums=step " \
  "guard=masked "

enum { SLAB_OF_O = 64 };

typedef struct words {
  int32_t stored, loaded;
} words;

// In one execution of the body of the last loop by one warp.
static words spilled(const char *parameters) {
  programs p = lowered("h200", parameters);
  const ftl_warp_loop *loop = &p.warps->loops[p.warps->num_loops - 1];
  words w = {0};
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_STL) w.stored += inst->wavefronts * inst->repeat;
    if (inst->opcode == FTL_OP_LDL) w.loaded += inst->wavefronts * inst->repeat;
  }
  programs_fini(&p);
  return w;
}

// Scores that are multiplied twice leave the accumulator before the maximum is taken: slabs take turns, O (128), P of
// one slab (32) and S of the other (64) are live at once, 224 of 252. What leaves is 16 indices of row groups and less
// than as many numbers that the loop only reads. Of FlexAttention's ptxas stores 1 to 9 words a step and loads 8 to 21.
Test(unit_lower_slab_spills, slabs_whose_scores_are_multiplied_twice_take_turns) {
  words w = spilled(TILE "num_stages=2 refill=late scaling=twice");
  cr_expect_lt(w.stored, 16);
  cr_expect_leq(w.loaded, 32);
}

// Else exponentials read the accumulators: of Triton's loop ptxas stores a slab of O twice.
Test(unit_lower_slab_spills, slabs_that_exponentials_read_do_not) {
  const char *const places[] = {"scores", "exponent", "apart"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, TILE "num_stages=2 refill=late scaling=%s", places[i]);
    cr_expect_geq(spilled(parameters).stored, 2 * SLAB_OF_O, "%s", places[i]);
  }
}

// One buffer for K and V: warps meet between the products.
Test(unit_lower_slab_spills, slabs_do_not_where_warps_meet_before_the_second_product) {
  cr_expect_geq(spilled(TILE "num_stages=1 scaling=twice").stored, 2 * SLAB_OF_O);
}
