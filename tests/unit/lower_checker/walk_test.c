#include <criterion/criterion.h>

#include "lower/walk.h"

enum { CAPACITY = 64 };

static ftl_tile_place place(int64_t address, int64_t stride, int32_t num_rows) {
  return (ftl_tile_place){
      .address_bytes = address, .row_stride_bytes = stride, .num_rows = num_rows, .row_bytes = 1 << 20};
}

Test(unit_lower_walk, a_row_within_a_line_gives_its_sectors) {
  ftl_access access = {.num_rows = 1, .row_step = 1, .column_byte = 32, .bytes = 64};
  ftl_tile_place at = place(1024, 256, 8);
  ftl_line lines[CAPACITY];
  cr_assert_eq(ftl_access_lines(&access, &at, 0, lines, CAPACITY), 1);
  cr_expect_eq(lines[0].line, 8);
  cr_expect_eq(lines[0].sectors, 0x6);
  cr_expect_eq(lines[0].full_sectors, 0x6);
}

Test(unit_lower_walk, a_row_that_straddles_lines_gives_both_and_tells_partial_sectors) {
  // Bytes 80 .. 279: sectors 2 (from 80, partial) and 3 of line 0, all of line 1, sector 0 of line 2 (to 279, partial).
  ftl_access access = {.num_rows = 1, .row_step = 1, .bytes = 200};
  ftl_tile_place at = place(80, 256, 1);
  ftl_line lines[CAPACITY];
  cr_assert_eq(ftl_access_lines(&access, &at, 0, lines, CAPACITY), 3);
  cr_expect_eq(lines[0].sectors, 0xc);
  cr_expect_eq(lines[0].full_sectors, 0x8);
  cr_expect_eq(lines[1].sectors, 0xf);
  cr_expect_eq(lines[1].full_sectors, 0xf);
  cr_expect_eq(lines[2].sectors, 0x1);
  cr_expect_eq(lines[2].full_sectors, 0x0);
}

Test(unit_lower_walk, rows_of_four_bytes_that_touch_fill_a_sector_together) {
  ftl_access access = {.num_rows = 8, .row_step = 1, .bytes = 4};
  ftl_tile_place at = place(4096, 4, 64);
  ftl_line lines[CAPACITY];
  cr_assert_eq(ftl_access_lines(&access, &at, 0, lines, CAPACITY), 1);
  cr_expect_eq(lines[0].sectors, 1);
  cr_expect_eq(lines[0].full_sectors, 1);
}

Test(unit_lower_walk, rows_beyond_the_tensor_give_nothing) {
  ftl_access access = {.num_rows = 8, .row = 4, .warp_row_step = 8, .row_step = 1, .bytes = 128};
  ftl_tile_place at = place(0, 1024, 14);  // warp 0: rows 4 .. 11, warp 1: rows 12 and 13 of 12 .. 19
  ftl_line lines[CAPACITY];
  cr_expect_eq(ftl_access_lines(&access, &at, 0, lines, CAPACITY), 8);
  cr_expect_eq(ftl_access_lines(&access, &at, 1, lines, CAPACITY), 2);
  cr_expect_eq(lines[1].line, 13 * 8);
  cr_expect_eq(ftl_access_lines(&access, &at, 2, lines, CAPACITY), 0);
}

Test(unit_lower_walk, a_short_buffer_is_filled_and_the_whole_number_told) {
  ftl_access access = {.num_rows = 4, .row_step = 1, .bytes = 256};
  ftl_tile_place at = place(0, 512, 4);
  ftl_line lines[3] = {{0}};
  cr_expect_eq(ftl_access_lines(&access, &at, 0, lines, 2), 8);
  cr_expect_eq(lines[1].line, 1);
  cr_expect_eq(lines[2].sectors, 0, "written beyond the capacity");
}

Test(unit_lower_walk, a_local_access_is_one_line_a_slot_whatever_the_warp) {
  ftl_access access = {.is_local = true, .row = 3, .num_rows = 2, .row_step = 1, .bytes = 128};
  ftl_tile_place at = place(1280, FTL_LOCAL_SLOT_BYTES, 0);
  ftl_line lines[CAPACITY];
  cr_assert_eq(ftl_access_lines(&access, &at, 5, lines, CAPACITY), 2);
  cr_expect_eq(lines[0].line, 13);
  cr_expect_eq(lines[1].line, 14);
  cr_expect_eq(lines[1].full_sectors, 0xf);
}

// ---- control flow ----
static ftl_expr_node exprs[] = {
    {FTL_EXPR_CONST, 0, 0, 0}, {FTL_EXPR_CTA, 0, 0, 0}, {FTL_EXPR_CONST, 2, 0, 0}, {FTL_EXPR_LOOP, 0, 0, 0}};

// for i in 0 .. cta: A; for j in 0 .. i: B; then warp 0 only: C. Counts what each warp sees.
static void count_walk(int64_t cta, int32_t warp, int counts[FTL_OPCODE_COUNT]) {
  ftl_tile_program tile = {.exprs = exprs, .num_exprs = 4};
  ftl_warp_inst insts[] = {{.opcode = FTL_OP_NOP},  // of another role
                           {.opcode = FTL_OP_LOOP, .arg = 0},
                           {.opcode = FTL_OP_FFMA},
                           {.opcode = FTL_OP_LOOP, .arg = 1},
                           {.opcode = FTL_OP_MUFU},
                           {.opcode = FTL_OP_END_LOOP, .arg = 1},
                           {.opcode = FTL_OP_END_LOOP, .arg = 0},
                           {.opcode = FTL_OP_STG, .flags = FTL_INST_WARP0}};
  ftl_warp_loop loops[] = {{.loop_var = 0, .lo = 0, .hi = 1, .begin = 0, .end = 5},
                           {.loop_var = 1, .lo = 0, .hi = 3, .begin = 2, .end = 4}};
  ftl_warp_program program = {
      .tile = &tile, .insts = insts, .loops = loops, .num_insts = 8, .num_loops = 2, .num_roles = 2};
  program.roles[1] = (ftl_warp_role){.first_inst = 1, .num_insts = 7, .num_warps = 2};
  ftl_walk walk = ftl_walk_start(&program, 1, warp, cta);
  for (const ftl_warp_inst *inst; (inst = ftl_walk_next(&walk));) counts[inst->opcode]++;
}

Test(unit_lower_walk, nested_loops_run_their_trips_and_empty_ones_none) {
  int counts[FTL_OPCODE_COUNT] = {0};
  count_walk(4, 0, counts);  // the inner loop runs 0 + 1 + 2 + 3 times
  cr_expect_eq(counts[FTL_OP_FFMA], 4);
  cr_expect_eq(counts[FTL_OP_MUFU], 6);
  cr_expect_eq(counts[FTL_OP_LOOP] + counts[FTL_OP_END_LOOP], 0);
  int none[FTL_OPCODE_COUNT] = {0};
  count_walk(0, 0, none);
  cr_expect_eq(none[FTL_OP_FFMA], 0);
  cr_expect_eq(none[FTL_OP_STG], 1);
}

Test(unit_lower_walk, what_an_elected_warp_does_the_others_do_not_see) {
  int counts[FTL_OPCODE_COUNT] = {0};
  count_walk(1, 1, counts);
  cr_expect_eq(counts[FTL_OP_FFMA], 1);
  cr_expect_eq(counts[FTL_OP_STG], 0);
}

Test(unit_lower_walk, a_tile_is_clipped_at_the_end_of_its_tensor_and_absent_when_told) {
  ftl_tile_program tile = {.exprs = exprs, .num_exprs = 4, .num_tensors = 1};
  tile.tensors[0] = (ftl_tensor){.dtype = FTL_FP16,
                                 .num_batches = 1,
                                 .num_heads = 8,
                                 .num_rows = 100,
                                 .num_columns = 64,
                                 .head_stride = 6400,
                                 .row_stride = 64,
                                 .base_bytes = 2097152};
  // head 2, row = CTA, 64 rows
  ftl_tile_ref ref = {.batch = 0, .head = 2, .row = 1, .present = FTL_ALWAYS, .rows = 64, .columns = 64};
  ftl_expr_point point = {.cta = 60};
  ftl_tile_place at = ftl_tile_place_of(&tile, &ref, &point);
  cr_expect_eq(at.num_rows, 40);
  cr_expect_eq(at.row_stride_bytes, 128);
  cr_expect_eq(at.address_bytes, 2097152 + 2 * (2 * 6400 + 60 * 64));
  point.cta = 100;
  cr_expect_eq(ftl_tile_place_of(&tile, &ref, &point).num_rows, 0);
  point.cta = 0;
  ref.present = 0;  // constant 0: absent
  cr_expect_eq(ftl_tile_place_of(&tile, &ref, &point).num_rows, 0);
}
