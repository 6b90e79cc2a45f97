// Pages of which every thread looks up the rows that it copies: lean code whose warps lie side by side.
#include "loop_counts.h"

#define PAGED "heads=8 kv_heads=1 seqlen_q=1 lengths=4096x4 splits=1 page_layout=scattered mma=mma copy=cp_async "
#define TILE "head_dim=128 block_m=16 block_n=64 num_warps=4 num_stages=1 code=lean "

static programs paged(const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "paged_decode", parameters, &error), FTL_OK, "%s", error.message);
  return p;
}

// A warp copies two rows of 256 bytes an instruction, four warps eight: eight row groups of 64 keys. Each looks its
// page up for K and for V, as the 16 LDG of the SASS that Triton 3.6 compiles with num_stages=2; one more is the begin
// of the sequence's block table. Four entries are read for the first time, by every second row group of K.
Test(unit_lower_page_rows, every_row_group_is_looked_up_for_k_and_for_v) {
  programs p = paged(PAGED TILE "warps_n=4 page_size=16");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_LDG], 2 * 8 + 1);
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 2 * 8);
  int32_t num_again = 0;
  for (int32_t i = p.warps->loops[0].begin; i < p.warps->loops[0].end; i++)
    if (p.warps->insts[i].opcode == FTL_OP_LDG) num_again += p.warps->accesses[p.warps->insts[i].access].is_reread;
  cr_expect_eq(num_again, 2 * 8 - 4);
  programs_fini(&p);
}

// Runs of three additions in the loop: tokens and places of row groups, sums of addresses, addresses of entries.
static int32_t num_triple_adds(const char *parameters) {
  programs p = paged(parameters);
  int32_t count = 0;
  for (int32_t i = p.warps->loops[0].begin; i < p.warps->loops[0].end; i++)
    count += p.warps->insts[i].opcode == FTL_OP_IADD && p.warps->insts[i].repeat == 3;
  programs_fini(&p);
  return count;
}

// Pages of 16 tokens are two row groups of eight, which share the address of their entry; of pages of eight four more
// are found.
Test(unit_lower_page_rows, row_groups_of_a_page_share_the_address_of_its_entry) {
  cr_expect_eq(
      num_triple_adds(PAGED TILE "warps_n=4 page_size=8") - num_triple_adds(PAGED TILE "warps_n=4 page_size=16"), 4);
}

// Groups of warps take the entries a lane each, once for K and V, and pass the pages' addresses on by two shuffles a
// row group and tensor.
Test(unit_lower_page_rows, groups_of_warps_look_up_a_lane_each) {
  programs p = paged(PAGED TILE "page_size=16");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_LDG], 1 + 1);
  cr_expect_geq(c.insts[FTL_OP_SHFL], 2 * 2 * 8);
  programs_fini(&p);
}
