// Instructions around plain matrix products and decoding, where few addresses are needed: kept for ldmatrix, and made
// once for tiles that are copied side by side.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../lower_checker/programs.h"

typedef struct counts {
  int64_t insts[FTL_OPCODE_COUNT];
} counts;

// One execution of the body of a role's only loop by one warp.
static counts count_loop_of(const char *workload, const char *parameters, int32_t role) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, "h200", workload, parameters, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  counts c = {0};
  int32_t first = p.warps->roles[role].first_inst;
  for (int32_t i = p.warps->loops[role].begin + 1; i < p.warps->loops[role].end; i++)
    c.insts[p.warps->insts[first + i].opcode] += p.warps->insts[first + i].repeat;
  programs_fini(&p);
  return c;
}

static counts count_loop(const char *workload, const char *parameters) {
  return count_loop_of(workload, parameters, 0);
}

static counts count_consumer_loop(const char *parameters) { return count_loop_of("matmul_tiled", parameters, 1); }

static int64_t num_alu(const counts *c) {
  return c->insts[FTL_OP_IADD] + c->insts[FTL_OP_LOP] + c->insts[FTL_OP_IMAD] + c->insts[FTL_OP_MOV];
}

#define PRODUCT "m=1024 n=1024 k=1024 block_k=64 mma=mma copy=cp_async "
#define MATMUL PRODUCT "block_m=128 block_n=128 num_warps=8 num_stages=3 "
#define GLU PRODUCT "block_m=64 block_n=64 num_warps=4 num_stages=3 "
#define DECODE                                                                                                     \
  "heads=32 kv_heads=8 seqlen_q=1 seqlen_kv=8192 splits=4 head_dim=128 block_m=16 block_n=64 num_warps=4 mma=mma " \
  "copy=cp_async "

Test(unit_lower_plain_products, a_step_has_one_barrier_one_group_and_one_block_of_copies) {
  static const struct {
    const char *workload, *parameters;
  } cases[] = {{"matmul_tiled", MATMUL}, {"glu", GLU}, {"flash_decode", DECODE "num_stages=3 code=plain"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    counts c = count_loop(cases[i].workload, cases[i].parameters);
    cr_expect_eq(c.insts[FTL_OP_BAR_SYNC], 1, "%s", cases[i].workload);
    cr_expect_eq(c.insts[FTL_OP_CP_WAIT], 1, "%s", cases[i].workload);
    cr_expect_eq(c.insts[FTL_OP_CP_COMMIT], 1, "%s", cases[i].workload);
    cr_expect_eq(c.insts[FTL_OP_BRA], 2, "%s: around the copies, and the loop's", cases[i].workload);
    cr_expect_eq(c.insts[FTL_OP_NOP], 3, "%s: null loads before the first LDGSTS", cases[i].workload);
  }
}

// Of 128-byte blocks of rows: A of 128 x 64 are 8 copies of a thread and B of 64 x 64 are 4; A of 64 x 64 are 4, and B
// of 64 x 128, whose rows have two blocks, 8. Two adds each; one multiply-add more for those of B, whose rows go on.
Test(unit_lower_plain_products, lean_products_carry_a_pointer_for_each_copy) {
#define LEAN "m=1024 n=1024 k=1024 block_k=64 num_warps=4 num_stages=3 mma=wgmma copy=cp_async code=lean "
  counts tall = count_loop("matmul_tiled", LEAN "block_m=128 block_n=64");
  counts wide = count_loop("matmul_tiled", LEAN "block_m=64 block_n=128");
  cr_expect_eq(tall.insts[FTL_OP_CP_ASYNC], 8 + 4);
  cr_expect_eq(wide.insts[FTL_OP_CP_ASYNC], 4 + 8);
  // and three for each tile's pointer, one for each of two stage indices and for the loop
  cr_expect_eq(tall.insts[FTL_OP_IADD], 2 * 12 + 2 * 3 + 2 + 1);
  cr_expect_eq(wide.insts[FTL_OP_IADD], 2 * 12 + 2 * 3 + 2 + 1);
  // and one for each tile's stage. Where rows go on it is one a copy, and of 64 rows copied one or two ahead a wide one
  // and two moves (Triton's 128 x 64 tiles have 105 instructions a step with three stages, 100 with four, 71 in steps
  // of 32).
  cr_expect_eq(tall.insts[FTL_OP_IMAD], 2);
  cr_expect_eq(wide.insts[FTL_OP_IMAD], 2);
  cr_expect_eq(tall.insts[FTL_OP_IMAD_WIDE], 4);
  cr_expect_eq(wide.insts[FTL_OP_IMAD_WIDE], 8);
  cr_expect_eq(wide.insts[FTL_OP_MOV] - tall.insts[FTL_OP_MOV], 2 * (8 - 4));
  cr_expect_eq(count_loop("matmul_tiled", LEAN "block_m=128 block_n=64 num_stages=4").insts[FTL_OP_IMAD], 4 + 2);
  cr_expect_eq(count_loop("matmul_tiled", LEAN "block_m=128 block_n=64 block_k=32").insts[FTL_OP_IMAD], 2 + 2);
}

Test(unit_lower_plain_products, products_side_by_side_load_what_they_share_once) {
  // 4 k steps: a block of x each, and 4 of either weight
  cr_expect_eq(count_loop("glu", GLU "code=lean").insts[FTL_OP_LDSM], 4 + 2 * 16);
  cr_expect_eq(count_loop("glu", GLU "code=plain").insts[FTL_OP_LDSM], 4 + 2 * 16);
}

enum { MAX_STRETCHES = 32 };

// The body of loop 0 cut where a copy follows a product.
typedef struct shares {
  int32_t num, copies[MAX_STRETCHES], products[MAX_STRETCHES];  // of each: the products behind the copies
  int32_t products_before;                                      // the first copy
  int32_t ahead;                                                // ldmatrix ahead of the first product
  int32_t products_behind_barrier, fragments_behind_barrier;
} shares;

static void see(shares *s, const ftl_warp_inst *inst, bool behind_barrier) {
  bool is_product = inst->opcode == FTL_OP_MMA, is_fragment = inst->opcode == FTL_OP_LDSM;
  if (inst->opcode == FTL_OP_CP_ASYNC) {
    if (s->num == 0 || s->products[s->num - 1] > 0) s->num++;
    cr_assert_leq(s->num, MAX_STRETCHES);
    s->copies[s->num - 1]++;
  }
  if (is_product && s->num > 0) s->products[s->num - 1] += inst->repeat;
  if (is_product && s->num == 0) s->products_before += inst->repeat;
  if (is_fragment && s->num == 0 && s->products_before == 0) s->ahead++;
  if (behind_barrier && is_product) s->products_behind_barrier += inst->repeat;
  if (behind_barrier && is_fragment) s->fragments_behind_barrier++;
}

static shares shares_of(const char *workload, const char *parameters) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, "h200", workload, parameters, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  shares s = {0};
  bool behind_barrier = false;
  for (int32_t i = p.warps->loops[0].begin + 1; i < p.warps->loops[0].end; i++) {
    see(&s, &p.warps->insts[i], behind_barrier);
    behind_barrier |= p.warps->insts[i].opcode == FTL_OP_BAR_SYNC;
  }
  programs_fini(&p);
  return s;
}

// Four k steps of 16 columns of A and 128 of B: 9 ldmatrix and 16 products each. A's 4 copies of a thread are one for
// each, B's 4 of two blocks of columns two for each of two row groups; the last two shares follow each other.
Test(unit_lower_plain_products, buffered_code_spreads_the_copies_over_the_products_of_a_step) {
  shares s = shares_of("matmul_tiled", MATMUL "code=buffered");
  int32_t copies = 0, products = s.products_before;
  for (int32_t i = 0; i < s.num; i++) {
    copies += s.copies[i];
    products += s.products[i];
    cr_expect_leq(s.products[i], 16 + 4, "products between a share and the next, %d", i);
  }
  cr_expect_eq(copies, 4 + 4);
  cr_expect_eq(products, 4 * 16);
  cr_expect_geq(s.num, 3);
  cr_expect_geq(s.products_before, 16 / 2, "the first share is copied amid the first products");
  // elsewhere a step's copies leave together, behind its barrier
  shares lean = shares_of("matmul_tiled", MATMUL "code=lean");
  cr_expect_eq(lean.num, 1);
  cr_expect_eq(lean.copies[0], 4 + 4);
  cr_expect_eq(lean.products_before, 0);
}

// The first k step's fragments have been loaded in the step before, behind its barrier: the last k step's products go
// on there.
Test(unit_lower_plain_products, buffered_code_loads_the_next_step_ahead_of_the_last_products_of_this_one) {
  shares s = shares_of("matmul_tiled", MATMUL "code=buffered"), lean = shares_of("matmul_tiled", MATMUL "code=lean");
  cr_expect_eq(s.fragments_behind_barrier, 9);
  cr_expect_gt(s.products_behind_barrier, 0);
  cr_expect_leq(s.products_behind_barrier, 16);
  cr_expect_leq(s.ahead, 9, "of the second k step, as products of the first wait for none");
  cr_expect_eq(lean.fragments_behind_barrier, 36);
  cr_expect_eq(lean.products_behind_barrier, 4 * 16);
  // whatever stands first, the step loads as much
  cr_expect_eq(count_loop("matmul_tiled", MATMUL "code=buffered").insts[FTL_OP_LDSM], 36);
  cr_expect_eq(count_loop("glu", GLU "code=buffered").insts[FTL_OP_LDSM], 4 + 2 * 16);
}

// An odd number of k steps a step of the loop leaves no set for the next one's first fragments: the step is multiplied
// as a whole.
Test(unit_lower_plain_products, buffered_code_with_an_odd_number_of_k_steps_has_one_run_of_copies) {
  cr_expect_eq(shares_of("matmul_tiled",
                         "m=1024 n=1024 k=1024 block_k=16 mma=mma copy=cp_async block_m=128 block_n=128 num_warps=8 "
                         "num_stages=3 code=buffered")
                   .num,
               1);
}

Test(unit_lower_plain_products, ldmatrix_addresses_are_kept_and_places_of_copies_are_not) {
  counts c = count_loop("matmul_tiled", MATMUL "code=plain");
  // 4 of A and 32 of B, one for each address; 4 + 4 row groups, four for the address and three for the place in the
  // stage; three for each tile's pointer, two stage indices, four stages' addresses, the loop's
  cr_expect_eq(c.insts[FTL_OP_LDSM], 36);
  cr_expect_eq(num_alu(&c), 36 + 8 * (4 + 3) + 2 * 3 + 2 + 4 + 1);
}

Test(unit_lower_plain_products, tiles_of_rows_as_wide_share_places_and_alike_tiles_addresses_too) {
  counts c = count_loop("glu", GLU "code=plain");
  // addresses of 4 blocks of x and 16 of both weights; 4 row groups with a place each; x takes four for an address, the
  // gate two more for an offset that is scaled first, up two; pointers, indices, stages, loop
  cr_expect_eq(num_alu(&c), 20 + 4 * 3 + 4 * (4 + 6 + 2) + 3 * 3 + 2 + 6 + 1);
}

Test(unit_lower_plain_products, groups_of_warps_keep_the_addresses_of_their_share_of_a_tile) {
  counts c = count_loop("flash_decode", DECODE "num_stages=3 code=plain");
  // Q: 8 blocks, whose addresses do not change; K: 8; V: 8; 8 row groups of a tile
  cr_expect_eq(c.insts[FTL_OP_LDSM], 24);
  // eight for a row group's address and four for its place, two for V's beside it; the tile's address, two stages'
  // indices and addresses, the loop's; two for the last maxima of a lane's rows
  cr_expect_eq(num_alu(&c), 16 + 8 * (8 + 4 + 2) + 3 + 2 + 2 + 1 + 2);
}

Test(unit_lower_plain_products, pages_are_worked_out_once_for_k_and_v_and_no_addresses_are_kept) {
  counts c = count_loop(
      "paged_decode",
      "heads=32 kv_heads=8 lengths=4096:4096 splits=2 page_size=16 head_dim=128 block_m=16 block_n=64 num_warps=4 "
      "mma=mma copy=cp_async num_stages=3 code=plain");
  // 8 row groups take a page each, once; two shuffles for each half of the rows' maxima
  cr_expect_eq(c.insts[FTL_OP_SHFL], 8 + 4);
  // Q and V: 8 loads, and a chunk each, two instructions each; K: 8 of both, one for a chunk; rows and columns of a
  // lane
  int64_t of_ldmatrix = 3 * 8 * 2 + (2 + 1 + 2) * 8 + 14 + 4;
  // token and slot 6, row 1, strides 9, head and scaling 4, either base 2; place 3
  int64_t of_copies = 8 * (6 + 1 + 9 + 4 + 2 * 2 + 3);
  // addresses of two entries of tables, and what a lane makes of a page's; pointers, indices, stages, loop, maxima
  cr_expect_eq(num_alu(&c), of_ldmatrix + of_copies + 3 + 2 * 3 + 2 + 2 + 1 + 2);
}

static int32_t num_registers(const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "matmul_tiled", parameters, &error), FTL_OK, "%s", error.message);
  int32_t registers = p.warps->registers_per_thread;
  programs_fini(&p);
  return registers;
}

// Each of the 4 + 4 row groups keeps 64 bits of its offset and the row of its place: three registers, where an offset
// of 32 bits alone made 147.
Test(unit_lower_plain_products, row_groups_keep_their_offset_and_their_row) {
  cr_expect_eq(num_registers(MATMUL "code=plain"), 147 + 2 * 8, "%d", (int)num_registers(MATMUL "code=plain"));
}

#define TWO_STAGES PRODUCT "block_m=128 block_n=128 num_warps=8 num_stages=2 code=plain "

// Two indices, the 64 bits of B's pointer and the stages' addresses would be live over the loop: of 64 x 64 tiles with
// three stages, which carry them, 103 registers are more than the 96 of five CTAs. `outputs` of standard_mma.h has 96.
Test(unit_lower_plain_products, products_of_two_stages_carry_nothing_of_them_over_the_loop) {
  const char *tiles = PRODUCT "block_m=64 block_n=64 num_warps=4 code=plain ";
  char two[256], three[256];
  snprintf(two, sizeof two, "%s num_stages=2", tiles);
  snprintf(three, sizeof three, "%s num_stages=3", tiles);
  cr_expect_leq(num_registers(two), 96);
  cr_expect_geq(num_registers(three), num_registers(two) + 2 + 2);
}

// 157 in the order that is run. A k step ahead is a block of A and 8 of B, of 4 registers each: 36 more, of which the
// 168 of three warps a sub-core leave 11.
Test(unit_lower_plain_products, registers_are_those_of_fragments_a_k_step_ahead) {
  cr_expect_eq(num_registers(TWO_STAGES), 168, "%d", (int)num_registers(TWO_STAGES));
}

#define WGMMA "m=1024 n=1024 k=1024 block_k=64 mma=wgmma copy=tma num_stages=3 code=plain "

// Accumulators of 64 and of 128 registers from R24 on, and two that ptxas reserves: 92 to 95 and 157 compiled.
Test(unit_lower_plain_products, accumulators_of_wgmma_lie_above_24_registers) {
  cr_expect_eq(num_registers(WGMMA "block_m=64 block_n=128 num_warps=4"), 24 + 64 + 2);
  cr_expect_eq(num_registers(WGMMA "block_m=128 block_n=128 num_warps=4"), 24 + 128 + 2);
}

// 4 k steps of 64 columns each. B's descriptor takes 6 uniform instructions and is moved (2) beside each further A:
// with 64 rows a warpgroup there is none, with 128 one. The rest of the loop does not hang on the rows.
Test(unit_lower_plain_products, the_descriptor_of_b_is_moved_beside_each_a) {
  counts one = count_consumer_loop(WGMMA "block_m=64 block_n=128 num_warps=4");
  counts two = count_consumer_loop(WGMMA "block_m=128 block_n=128 num_warps=4");
  cr_expect_eq(one.insts[FTL_OP_WGMMA], 4);
  cr_expect_eq(two.insts[FTL_OP_WGMMA], 8);
  cr_expect_eq(two.insts[FTL_OP_UNIFORM] - one.insts[FTL_OP_UNIFORM], 4 * 2);
  cr_expect_eq(two.insts[FTL_OP_R2UR] - one.insts[FTL_OP_R2UR], 4 * 2);
}

// Signed divisions take a reciprocal each: I2F, MUFU.RCP and F2I, each of what the one before gave. In all warps of the
// consumers, in one of the producer's, behind the barrier that stands ahead of their code.
static void expect_divisions(const char *parameters, int32_t num_divisions) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "matmul_tiled", parameters, &error), FTL_OK, "%s", error.message);
  for (int32_t r = 0; r < p.warps->num_roles; r++) {
    const ftl_warp_role *role = &p.warps->roles[r];
    int32_t num_special = 0;
    bool have_met = false;
    for (int32_t i = role->first_inst; i < role->first_inst + role->num_insts; i++) {
      const ftl_warp_inst *inst = &p.warps->insts[i];
      have_met = have_met || inst->opcode == FTL_OP_BAR_SYNC;
      if (inst->opcode != FTL_OP_MUFU) continue;
      num_special += inst->repeat;
      cr_expect(have_met);
      cr_expect_eq((inst->flags & FTL_INST_WARP0) != 0, r == 0);
      cr_expect(inst->num_sources == 1 && inst->sources[0] == inst->destination);
    }
    cr_expect_eq(num_special, 3 * num_divisions);
  }
  programs_fini(&p);
}

// Steps a split; matrix, row, column and split. Tiles that a CTA comes to later have the same steps a split.
Test(unit_lower_plain_products, a_product_by_wgmma_finds_its_place_by_divisions_one_behind_the_other) {
  expect_divisions(WGMMA "block_m=64 block_n=128 num_warps=4", 5);
  expect_divisions(WGMMA "block_m=64 block_n=128 num_warps=4 persistent=true", 4);
}

// 128 columns leave in four pieces of 32. From the barrier behind which a piece is whole to its store one warp has a
// branch, 4 uniform instructions, 5 PLOP3, 5 of ALU and 3 R2UR, of which the store waits for the last. Behind the store
// all warps take a branch, where the others meet the one that stored.
Test(unit_lower_plain_products, a_staged_pieces_coordinates_are_moved_behind_its_barrier) {
  programs p;
  ftl_error error = {0};
  const char *parameters = WGMMA "block_m=64 block_n=128 num_warps=4 store=staged";
  cr_assert_eq(lower_workload(&p, "h200", "matmul_tiled", parameters, &error), FTL_OK, "%s", error.message);
  const ftl_warp_role *role = &p.warps->roles[1];
  int32_t num_stores = 0, num_since = 0, moved = -1, num_joins = 0;
  for (int32_t i = role->first_inst; i < role->first_inst + role->num_insts; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_BAR_SYNC) num_since = 0;
    if (inst->opcode == FTL_OP_R2UR) moved = inst->destination;
    if (inst->opcode == FTL_OP_TMA_STORE) {
      num_stores++;
      cr_expect_eq(inst->sources[inst->num_sources - 1], moved);
      num_joins += inst[1].opcode == FTL_OP_BSYNC;
      cr_expect_geq(num_since, 1 + 4 + 5 + 5 + 3, "%d", (int)num_since);
    }
    if (inst->opcode != FTL_OP_BAR_SYNC && (inst->flags & FTL_INST_WARP0) != 0) num_since += inst->repeat;
  }
  cr_expect_eq(num_stores, 4);
  cr_expect_eq(num_joins, 4);
  programs_fini(&p);
}

// 64 x 128 on 4 warps misses the 168 registers of three CTAs an SM by 7. To fit, addresses would have to go, which
// costs instructions: it keeps them and runs with two (182 compiled), 36 of ldmatrix and 4 + 8 row groups, as above.
Test(unit_lower_plain_products, an_occupancy_step_that_costs_addresses_is_not_taken) {
  const char *parameters = PRODUCT "block_m=64 block_n=128 num_warps=4 num_stages=3 code=plain";
  counts c = count_loop("matmul_tiled", parameters);
  cr_expect_eq(num_alu(&c), 36 + 12 * (4 + 3) + 2 * 3 + 2 + 4 + 1, "%d", (int)num_alu(&c));
  cr_expect_eq(num_registers(parameters), 168 + 7);
}

// Instructions in the first role's loop that read what one of another kind gives.
static int64_t num_reading(const programs *p, ftl_opcode opcode, ftl_opcode of) {
  int32_t writer[FTL_MAX_TOKENS];
  int64_t count = 0;
  memset(writer, -1, sizeof writer);
  for (int32_t i = p->warps->loops[0].begin + 1; i < p->warps->loops[0].end; i++) {
    const ftl_warp_inst *inst = &p->warps->insts[i];
    for (int32_t k = 0; k < inst->num_sources; k++) {
      int32_t by = writer[inst->sources[k]];
      count += inst->opcode == opcode && by >= 0 && p->warps->insts[by].opcode == of;
    }
    if (inst->destination != FTL_NO_TOKEN) writer[inst->destination] = i;
  }
  return count;
}

// What waits for a copy by threads to have read its address registers.
static int64_t num_awaiting_copies(const programs *p, ftl_opcode opcode) {
  return num_reading(p, opcode, FTL_OP_CP_ASYNC);
}

static void expect_awaiting(const char *parameters, int64_t addresses, int64_t commits) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "matmul_tiled", parameters, &error), FTL_OK, "%s", error.message);
  cr_expect_eq(num_awaiting_copies(&p, FTL_OP_IADD), addresses, "%s: %d", parameters,
               (int)num_awaiting_copies(&p, FTL_OP_IADD));
  cr_expect_eq(num_awaiting_copies(&p, FTL_OP_CP_COMMIT), commits, "%s", parameters);
  programs_fini(&p);
}

// 4 copies of A and 4 of B: all but the first two write over the address of the last but one, and what follows over the
// last. Code of unknown authors writes over the last one. Lean code steps from bases.
Test(unit_lower_plain_products, copies_write_over_addresses_of_copies) {
  expect_awaiting(MATMUL "code=plain", 8 - 2, 1);
  expect_awaiting(MATMUL "code=stepped", 8 - 1, 1);
  expect_awaiting(MATMUL "code=lean", 0, 0);
}

static void expect_moves(const char *parameters, int64_t moves, int64_t awaiting_moves, int64_t awaiting_copies) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "matmul_tiled", parameters, &error), FTL_OK, "%s", error.message);
  counts c = count_loop("matmul_tiled", parameters);
  cr_expect_eq(c.insts[FTL_OP_TMA_LOAD], 3);
  cr_expect_eq(c.insts[FTL_OP_R2UR], moves, "%s: %d", parameters, (int)c.insts[FTL_OP_R2UR]);
  cr_expect_eq(num_reading(&p, FTL_OP_TMA_LOAD, FTL_OP_R2UR), awaiting_moves, "%s", parameters);
  cr_expect_eq(num_reading(&p, FTL_OP_R2UR, FTL_OP_TMA_LOAD), awaiting_copies, "%s", parameters);
  programs_fini(&p);
}

// A step's copies: A's 64 columns, B's 128 in two boxes. For each the tensor map's address (2), ELECT, and three
// coordinates and two addresses (5) are moved; those of the second and the third wait for the copy ahead. Lean code has
// them in uniform registers.
Test(unit_lower_plain_products, coordinates_of_copies_are_moved_one_copy_behind_the_other) {
  expect_moves(WGMMA "block_m=64 block_n=128 num_warps=4", 3 * (2 + 1 + 5), 3, 2);
  expect_moves(WGMMA "block_m=64 block_n=128 num_warps=4 code=lean", 0, 0, 0);
}

// ldmatrices that stand between a barrier and the last copy behind it.
static int32_t num_ahead_of_copies(const ftl_warp_program *p) {
  int32_t ahead = 0, since_barrier = 0;
  for (int32_t i = p->loops[0].begin + 1; i < p->loops[0].end; i++) {
    ftl_opcode opcode = p->insts[i].opcode;
    if (opcode == FTL_OP_BAR_SYNC) since_barrier = 0;
    if (opcode == FTL_OP_LDSM) since_barrier++;
    if (opcode != FTL_OP_CP_ASYNC) continue;
    ahead += since_barrier;
    since_barrier = 0;
  }
  return ahead;
}

// The SASS of flash2_mma.h has V's copies behind the barrier that frees its buffer, and K's fragments, of which the
// first product takes 72 with 8 warps, behind them: so V has all of that product to come.
Test(unit_lower_plain_products, ldmatrices_stand_behind_the_copies_before_them) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, "h200", "flash2_fwd",
                                     "heads=1 seqlen=1024 head_dim=128 block_m=128 block_n=128 num_warps=8 "
                                     "schedule=interleaved mma=mma copy=cp_async code=plain",
                                     &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  cr_expect_eq(num_ahead_of_copies(p.warps), 0, "%d", (int)num_ahead_of_copies(p.warps));
  programs_fini(&p);
}
