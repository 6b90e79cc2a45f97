// Instructions by which code finds its addresses: plain code, which computes each, and lean and buffered code.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "loop_counts.h"

// ---- addresses: head_dim 128, 64 x 64 tiles, 4 warps; 8 row groups of a copy, as 2 rows of 256 bytes are 512 ----
#define TILES "head_dim=128 block_m=64 block_n=64 num_warps=4 mma=mma copy=cp_async "

static int64_t num_alu(const counts *c) {
  return c->insts[FTL_OP_IADD] + c->insts[FTL_OP_LOP] + c->insts[FTL_OP_IMAD] + c->insts[FTL_OP_MOV];
}

Test(unit_lower_addresses,
     plain_code_computes_an_address_for_each_load_and_lean_code_keeps_one_for_each_column_position) {
  programs p = lowered("h200", SHAPE TILES "num_stages=2 q_operand=shared code=plain");
  counts plain = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", SHAPE TILES "num_stages=2 q_operand=shared code=lean");
  counts lean = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(plain.insts[FTL_OP_LDSM], 8 + 32 + 32);
  cr_expect_eq(lean.insts[FTL_OP_LDSM], plain.insts[FTL_OP_LDSM]);
  // two for each ldmatrix, two for each of 8 column positions of Q and V and one of K, 14 and 4 for rows and columns of
  // the lane; for each of 16 row groups four instead of two, and one in shared memory instead of none
  cr_expect_eq(num_alu(&plain) - num_alu(&lean), 2 * 72 + (2 + 1 + 2) * 8 + 14 + 4 + (2 + 1) * 16);
}

static int64_t num_alu_of(const char *parameters) {
  programs p = lowered("h200", parameters);
  counts c = count_loop(p.warps, 0);
  programs_fini(&p);
  return num_alu(&c);
}

// By hand the base of a stage moves: a LOP3 and an IADD3 at each of 8 column positions of K and of V, where lean code
// has none in the loop; 4 and 4 at head_dim 64. 128 x 64 tiles on 4 warps at head_dim 128 leave no registers for a
// lane's row and column: O 128, S 64, P 32, Q 64 and 40 for the rest; four instructions a position, where lean code,
// which keeps none either, has two.
Test(unit_lower_addresses, stepped_code_finds_each_column_position_of_a_stage_in_every_step) {
#define MOVED SHAPE "block_n=64 num_warps=4 mma=mma copy=cp_async num_stages=2 refill=early "
  static const struct {
    const char *tile;
    int64_t insts;
  } cases[] = {{MOVED "head_dim=128 block_m=64 q_operand=shared", 2 * (8 + 8)},
               {MOVED "head_dim=64 block_m=64 q_operand=shared", 2 * (4 + 4)},
               {MOVED "head_dim=128 block_m=128 q_operand=registers", (4 - 2) * (8 + 8)}};
  char stepped[256], lean[256];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(stepped, sizeof stepped, "%s code=stepped", cases[i].tile);
    snprintf(lean, sizeof lean, "%s code=lean", cases[i].tile);
    programs p = lowered("h200", stepped), q = lowered("h200", lean);
    counts by_hand = count_loop(p.warps, 0), by_steps = count_loop(q.warps, 0);
    int64_t insts = num_alu(&by_hand) - num_alu(&by_steps);
    cr_expect_eq(insts, cases[i].insts, "%s: %d", stepped, (int)insts);
    programs_fini(&p);
    programs_fini(&q);
  }
}

// Tiles of 128 keys at head_dim 64 are 8 row groups for 4 warps and 4 for 8, of 64 queries 4, of 128 with 8 warps 4;
// the products of a warp are the same. So the first have 4 row groups more for K and V each, of five instructions (four
// where there is one buffer, with no stage to add), which no copy of Q has, and as K and V may not be there they find
// these anew, by five more. With several buffers the second work out addresses of V (as below), 2 x 32 + 2 x 4 + 4 and
// 14 for rows and columns of the lane, where the first keep all and add the stage to each. With one buffer and wgmma
// V's copy is made whatever comes: all are kept.
Test(unit_lower_addresses, plain_code_finds_row_groups_beyond_those_of_q_in_each_guarded_copy) {
#define KEYS SHAPE "head_dim=64 block_n=128 copy=cp_async q_operand=shared code=plain "
#define STAGES KEYS "mma=mma num_stages=2 refill=when_free "
#define INTERLEAVED KEYS "mma=mma num_stages=1 schedule=interleaved "
#define ONE_BUFFER KEYS "mma=wgmma num_stages=1 "
#define FEW "block_m=128 num_warps=8"
#define MANY "block_m=64 num_warps=4"
  cr_expect_eq(num_alu_of(STAGES MANY) - num_alu_of(STAGES FEW), 2 * 4 * (5 + 5) - (2 * 32 + 2 * 4 + 4 + 14 - 32));
  cr_expect_eq(num_alu_of(INTERLEAVED MANY) - num_alu_of(INTERLEAVED FEW), 2 * 4 * (4 + 5));
  cr_expect_eq(num_alu_of(ONE_BUFFER MANY) - num_alu_of(ONE_BUFFER FEW), 2 * 4 * 4);
}

// nvcc makes two blocks of a copy that may end inside its tile (kernels/attention/flash2_mma.h, `ragged`): a compare of
// the rows that are left, which takes two more, a branch to one block and one over the other. No row is compared in a
// whole tile, and the 7 row groups behind the first find their rows anew, by five instructions. Of K and V each.
Test(unit_lower_addresses, plain_code_copies_a_tile_that_may_end_inside_by_one_of_two_blocks) {
  programs p = lowered("h200", SHAPE TILES "num_stages=2 q_operand=shared code=plain");
  counts whole = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", "heads=32 seqlen=4000 " TILES "num_stages=2 q_operand=shared code=plain");
  counts ragged = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(ragged.insts[FTL_OP_CP_ASYNC], whole.insts[FTL_OP_CP_ASYNC]);
  cr_expect_eq(ragged.insts[FTL_OP_BRA] - whole.insts[FTL_OP_BRA], 2 * 2);
  cr_expect_eq(ragged.insts[FTL_OP_ISETP] - whole.insts[FTL_OP_ISETP], 2 * 1);
  cr_expect_eq(num_alu(&ragged) - num_alu(&whole), 2 * (2 + 7 * 5));
}

// Lean code predicates each row group's copy instead: 8 compares of K and of V.
Test(unit_lower_addresses, lean_code_compares_the_rows_of_a_tile_that_may_end_inside) {
  programs p = lowered("h200", SHAPE TILES "num_stages=2 q_operand=shared code=lean");
  counts whole = count_loop(p.warps, 0);
  programs_fini(&p);
  p = lowered("h200", "heads=32 seqlen=4000 " TILES "num_stages=2 q_operand=shared code=lean");
  counts ragged = count_loop(p.warps, 0);
  programs_fini(&p);
  cr_expect_eq(ragged.insts[FTL_OP_BRA], whole.insts[FTL_OP_BRA]);
  cr_expect_eq(ragged.insts[FTL_OP_ISETP] - whole.insts[FTL_OP_ISETP], 2 * 8);
}

// A kernel is compiled for any number of keys: in a launch with one tile of them its loop is one all the same. nvcc
// gives 128 x 64 tiles of 8 warps at head_dim 64 156 registers; as straight code they had 122, and two CTAs fitted for
// one.
Test(unit_lower_addresses, a_loop_of_one_iteration_is_a_loop) {
  static const char *const keys[] = {"seqlen_kv=64", "seqlen_kv=128"};
  int32_t registers[2];
  for (int i = 0; i < 2; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "heads=1 seqlen_q=128 head_dim=64 block_m=128 block_n=64 num_warps=8 num_stages=2 mma=mma copy=cp_async "
             "code=plain %s",
             keys[i]);
    programs p = lowered("h200", parameters);
    registers[i] = p.warps->registers_per_thread;
    programs_fini(&p);
  }
  cr_expect_eq(registers[0], registers[1], "%d, %d", (int)registers[0], (int)registers[1]);
  cr_expect_gt(registers[0], 128, "%d", (int)registers[0]);
}

// ALU instructions of plain code with a buffer for K and V each: four for each of 16 row groups, three for each tile's
// pointer, one for the loop, two for the last maxima of a lane's rows. What two loops keep besides is below.
#define WITHOUT_LDMATRIX (4 * 16 + 3 * 2 + 1 + 2)

Test(unit_lower_addresses, a_loop_of_single_buffers_that_masks_nothing_finds_addresses_of_wide_rows_anew) {
  programs p = lowered("h200", SHAPE TILES "schedule=interleaved code=plain");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(num_alu(&c), WITHOUT_LDMATRIX + 2 * 72 + (2 + 1 + 2) * 8 + 14 + 4);
  programs_fini(&p);
}

// In the one of K and V by turns those of Q and K stay: 32 ldmatrix of V, and 8 column positions.
Test(unit_lower_addresses, where_k_and_v_take_turns_in_one_buffer_addresses_of_q_and_k_are_kept) {
  programs p = lowered("h200", SHAPE TILES "num_stages=1 code=plain q_operand=shared");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(num_alu(&c), WITHOUT_LDMATRIX + 2 * 32 + 2 * 8);
  programs_fini(&p);
  // nor are V's kept where rows are a single swizzle block: of 8 row groups, 16 ldmatrix and 4 positions
  p = lowered("h200", SHAPE
              "head_dim=64 block_m=64 block_n=64 num_warps=4 mma=mma copy=cp_async num_stages=1 "
              "code=plain q_operand=shared");
  c = count_loop(p.warps, 0);
  cr_expect_eq(num_alu(&c), 4 * 8 + 3 * 2 + 1 + 2 + 2 * 16 + 2 * 4);
  programs_fini(&p);
}

// Rows of 64 columns, 64 keys: 16 addresses of V beside some 130 registers leave three warps a sub-core their 168, and
// beside 180 of 128 x 128 tiles they do not. Of Q and K 20 and 36 ldmatrix, and 4 column positions each.
Test(unit_lower_addresses, addresses_of_v_are_kept_where_they_cost_no_warp) {
#define NARROW "head_dim=64 mma=mma copy=cp_async num_stages=2 q_operand=shared code="
  static const struct {
    const char *tiles;
    int64_t scores, values;
  } cases[] = {{"block_m=64 block_n=64 num_warps=4 ", 2 * 20 + (2 + 1) * 4, 16},
               {"block_m=128 block_n=128 num_warps=8 ", 2 * 36 + (2 + 1) * 4 + 14, 2 * 32 + 2 * 4 + 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char plain[256], lean[256];
    snprintf(plain, sizeof plain, "%s%s%splain", SHAPE, cases[i].tiles, NARROW);
    snprintf(lean, sizeof lean, "%s%s%slean", SHAPE, cases[i].tiles, NARROW);
    // three more for each of 8 row groups
    cr_expect_eq(num_alu_of(plain) - num_alu_of(lean), cases[i].scores + cases[i].values + 3 * 8, "%s: %ld",
                 cases[i].tiles, (long)(num_alu_of(plain) - num_alu_of(lean)));
  }
}

// Of several buffers too where many would have to go in a CTA of a warp a sub-core, or where the loop masks: ptxas
// gives 64 x 128 tiles 221 and 201 registers with two and three stages, 64 x 96 ones that mask 211, and 128 x 128 ones
// of 8 warps 162 without a mask and 233 with one (kernels/measurements/registers.csv).
Test(unit_lower_addresses, addresses_of_v_are_kept_at_the_cost_of_a_warp_where_many_would_go_or_the_loop_masks) {
  static const struct {
    const char *tiles;
    bool costs_a_warp;
  } cases[] = {{"block_m=64 block_n=128 num_warps=4 ", true},
               {"block_m=64 block_n=96 num_warps=4 seqlen=3072 causal=true ", true},
               {"block_m=128 block_n=128 num_warps=8 ", false},
               {"block_m=128 block_n=128 num_warps=8 causal=true ", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    snprintf(text, sizeof text, "heads=32 %s%s%splain", strstr(cases[i].tiles, "seqlen") ? "" : "seqlen=4096 ",
             cases[i].tiles, NARROW);
    programs p = lowered("h200", text);
    cr_expect_eq(p.warps->registers_per_thread > 168, cases[i].costs_a_warp, "%s: %d", cases[i].tiles,
                 (int)p.warps->registers_per_thread);
    programs_fini(&p);
  }
}

// Rows of 96 columns: behind the first 32 all rows of a column position lie immediates apart. Of K, 6 steps of 4
// ldmatrix, those of 2 have addresses of their own, of V, 4 steps of 6, 2 columns of each.
Test(unit_lower_addresses, rows_that_are_no_power_of_two_wide_share_addresses) {
#define ROWS_OF_96 SHAPE "head_dim=96 block_m=64 block_n=64 num_warps=4 mma=mma copy=cp_async num_stages=2 "
  programs p = lowered("h200", ROWS_OF_96 "q_operand=shared code=plain");
  counts plain = count_loop(p.warps, 0);
  programs_fini(&p);
  int64_t of_q = 2 * 6, of_k = 2 * (2 * 4 + 4), of_v = 2 * (2 * 4 + 4);
  cr_expect_eq(num_alu(&plain) - num_alu_of(ROWS_OF_96 "q_operand=shared code=lean"),
               of_q + of_k + of_v + (2 + 1 + 2) * 6 + 14 + 4 + 3 * plain.insts[FTL_OP_CP_ASYNC]);
}

// A column block of 64 elements is a swizzle wide: 8 lanes copy a row of it, 4 warps 16 rows, and what lies in the
// other block is an immediate away. A tile's first row group is worked out from the tile's number, the other 3 of 4 lie
// a stride behind each other.
Test(unit_lower_addresses, buffered_code_has_column_blocks_and_steps_by_strides) {
  programs p = lowered("h200", SHAPE TILES "schedule=interleaved code=buffered");
  counts c = count_loop(p.warps, 0);
  cr_expect_eq(c.insts[FTL_OP_CP_ASYNC], 2 * 4 * 2);
  cr_expect_eq(c.conflicts, 0);
  // eight beside a 64-bit product for each tile, two for each further row group, the loop's, the last maxima of two
  // rows
  cr_expect_eq(num_alu(&c), 8 * 2 + 2 * 3 * 2 + 1 + 2);
  cr_expect_eq(c.insts[FTL_OP_IMAD_WIDE], 2);
  int64_t before = 0;
  for (int32_t i = 0; i < p.warps->loops[0].begin; i++)
    if (p.warps->insts[i].opcode == FTL_OP_LOP) before += p.warps->insts[i].repeat;
  // two for each place that is worked out: of a lane where it writes and reads Q, K and V, and 4 positions each of Q, K
  // and V
  cr_expect_eq(before, 2 * (6 + 3 * 4));
  programs_fini(&p);
}

// Of a loop's ldmatrix: those whose address an instruction of the loop makes.
static int64_t num_computed_addresses(const ftl_warp_program *p, int32_t loop_idx) {
  int64_t count = 0;
  for (int32_t i = p->loops[loop_idx].begin + 1; i < p->loops[loop_idx].end; i++) {
    if (p->insts[i].opcode != FTL_OP_LDSM) continue;
    uint16_t address = p->insts[i].sources[0];
    for (int32_t k = p->loops[loop_idx].begin + 1; k < i; k++)
      if (p->insts[k].destination == address) {
        count++;
        break;
      }
  }
  return count;
}

static void expect_computed_addresses(const char *parameters, int64_t unmasked, int64_t masked) {
  programs p = lowered("h200", parameters);
  int32_t masks = -1;
  for (int32_t i = 0; i < p.warps->num_insts && masks < 0; i++)
    if (p.warps->insts[i].opcode == FTL_OP_SEL)
      for (int32_t l = 0; l < p.warps->num_loops; l++)
        if (p.warps->loops[l].begin < i && i < p.warps->loops[l].end) masks = l;
  cr_assert_eq(p.warps->num_loops, 2);
  cr_expect_eq(num_computed_addresses(p.warps, 1 - masks), unmasked);
  cr_expect_eq(num_computed_addresses(p.warps, masks), masked);
  programs_fini(&p);
}

// 8 ldmatrix of Q, 32 of K and 32 of V.
Test(unit_lower_addresses, the_loop_that_masks_keeps_all_addresses_of_ldmatrix_and_the_other_none) {
  expect_computed_addresses(SHAPE TILES "schedule=interleaved code=plain causal=true", 8 + 32 + 32, 0);
}

Test(unit_lower_addresses, the_loop_without_a_mask_keeps_those_of_q_and_k_where_v_takes_turns_with_k) {
  expect_computed_addresses(SHAPE TILES "num_stages=1 q_operand=shared code=plain causal=true", 32, 0);
}

Test(unit_lower_addresses, hand_aligned_tiles_take_a_kilobyte_more) {
  programs lean = lowered("h200", SHAPE "head_dim=128 block_m=64 block_n=64 num_warps=4 num_stages=2");
  programs plain = lowered("h200", SHAPE "head_dim=128 block_m=64 block_n=64 num_warps=4 num_stages=2 code=plain");
  // Q and two stages each of K and V, 16 KiB; five mbarriers
  cr_expect_eq(lean.warps->shared_bytes, 5 * 16384 + 5 * 8);
  cr_expect_eq(plain.warps->shared_bytes - lean.warps->shared_bytes, 1024);
  programs_fini(&lean);
  programs_fini(&plain);
}

// ---- masks of bits ----
// Of the loop's loads of words, those whose address hangs on a token that nothing in the loop writes beside the tile's.
typedef struct word_loads {
  int32_t loads, kept_rows;
} word_loads;

static bool is_written_in(const ftl_warp_program *p, const ftl_warp_loop *loop, uint16_t token) {
  for (int32_t i = loop->begin + 1; i < loop->end; i++)
    if (p->insts[i].destination == token) return true;
  return false;
}

static word_loads words_of(const char *code) {
  enum { ADDRESS_INSTS = 4 };
  programs p;
  ftl_error error = {0};
  word_loads found = {0};
  char parameters[256];
  snprintf(parameters, sizeof parameters,
           "batch=1 heads=32 kv_heads=8 seqlen_kv=2048 head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=3 "
           "copy=cp_async mma=mma splits=1 tree=medusa parents=0x3:1x3:2x3:3x3:4x3 code=%s",
           code);
  cr_assert_eq(lower_workload(&p, "h200", "tree_decode", parameters, &error), FTL_OK, "%s", error.message);
  const ftl_warp_loop *loop = &p.warps->loops[1];  // the first has tiles that all rows see
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    found.loads += inst->opcode == FTL_OP_LDG ? inst->repeat : 0;
    if (inst->opcode != FTL_OP_IADD || inst->repeat != ADDRESS_INSTS || inst->num_sources != 2) continue;
    found.kept_rows += !is_written_in(p.warps, loop, inst->sources[1]);
  }
  programs_fini(&p);
  return found;
}

// 64 columns are 2 words of each of a lane's 2 rows: one load of 8 bytes a row; plain code does not know where rows
// begin, loads word by word, and keeps what it has multiplied.
Test(unit_lower_addresses, plain_code_keeps_where_rows_of_bits_begin) {
  word_loads lean = words_of("lean"), plain = words_of("plain");
  cr_expect_eq(lean.loads, 2, "%d", lean.loads);
  cr_expect_eq(lean.kept_rows, 0, "%d", lean.kept_rows);
  cr_expect_eq(plain.loads, 4, "%d", plain.loads);
  cr_expect_eq(plain.kept_rows, 2, "%d", plain.kept_rows);
}
