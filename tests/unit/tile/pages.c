// Tiles whose rows lie in pages, and rows that end before their tensor does.
#include "sketch.h"
#include "tile/interpreter.h"

enum { NUM_ELEMENTS = 2 * SKETCH_LENGTH * SKETCH_COLUMNS, MAX_PAGES = SKETCH_LENGTH };

static float x[NUM_ELEMENTS], y[NUM_ELEMENTS], unused[MAX_PAGES];

// Rows `row` and on of head 1 of x, in pages of `page_rows` rows that a table lists backwards, to rows 0 and on of head
// 0 of y.
static ftl_tile_program *build(int32_t page_rows, int32_t row, int32_t row_end) {
  sketch s = sketch_create();
  int32_t pages[MAX_PAGES], num_pages = SKETCH_LENGTH / page_rows;
  for (int32_t i = 0; i < num_pages; i++) pages[i] = num_pages - 1 - i;
  int32_t table = ftl_builder_table(s.b, "pages", pages, num_pages);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP16, 16, 16);
  ftl_tile_ref from = sketch_ref(&s, s.x, ftl_const(s.b, 1), ftl_const(s.b, row));
  from.row_end = ftl_const(s.b, row_end);
  from.pages = (ftl_pages){.page_rows = page_rows, .table = table, .page_stride = page_rows * SKETCH_COLUMNS};
  ftl_fill_stage(s.b, ring, from);
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, tile, ring);
  ftl_release(s.b, ring);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  return sketch_finish(&s);
}

static ftl_status interpret(const ftl_tile_program *program, ftl_error *error) {
  float *tensors[] = {x, y, unused};
  for (int i = 0; i < NUM_ELEMENTS; i++) {
    x[i] = (float)(i / SKETCH_COLUMNS - SKETCH_LENGTH);  // the row, of head 1
    y[i] = -1;
  }
  return ftl_interpret(program, tensors, NULL, error);
}

Test(unit_tile_pages, rows_are_those_of_the_pages_that_the_table_names) {
  static const int32_t sizes[] = {1, 2, 4, 5, 8, 10, 20, 40};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int32_t row = 0; row < SKETCH_LENGTH; row += 7) {
      ftl_tile_program *program = build(sizes[i], row, 37);
      ftl_error error = {0};
      cr_assert_eq(interpret(program, &error), FTL_OK, "%s", error.message);
      for (int32_t r = 0; r < SKETCH_ROWS; r++) {
        int32_t at = row + r, page = SKETCH_LENGTH / sizes[i] - 1 - at / sizes[i];
        float expected = at < 37 ? (float)(page * sizes[i] + at % sizes[i]) : 0;
        cr_assert_eq(y[r * SKETCH_COLUMNS], expected, "pages of %d, row %d: %g", sizes[i], at,
                     (double)y[r * SKETCH_COLUMNS]);
      }
      ftl_tile_program_destroy(program);
    }
}

static int32_t entries_of(int32_t page_rows, int32_t row) {
  ftl_tile_program *program = build(page_rows, row, 40);
  int32_t count = 0;
  for (int32_t i = 0; i < program->num_ops; i++)
    if (program->ops[i].kind == FTL_TILE_LOOKUP) count += program->ops[i].ref.rows;
  ftl_tile_program_destroy(program);
  return count;
}

// A tile of 16 rows.
Test(unit_tile_pages, entries_of_all_pages_that_a_tile_can_touch_are_looked_up) {
  cr_expect_eq(entries_of(4, 16), 4, "whole pages");
  cr_expect_eq(entries_of(4, 2), 5, "parts of pages");
  cr_expect_eq(entries_of(5, 0), 4, "three pages and a row");
  cr_expect_eq(entries_of(40, 0), 2, "a page that is no multiple of the tile may end within it");
  cr_expect_eq(entries_of(1, 3), 16);
}

Test(unit_tile_pages, two_tiles_of_the_same_pages_look_them_up_once) {
  sketch s = sketch_create();
  int32_t table = ftl_builder_table(s.b, "pages", (int32_t[]){1, 0}, 2);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 2, 0, 1);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP16, 16, 16), lookups = 0;
  for (int head = 0; head < 2; head++) {
    ftl_tile_ref from = sketch_ref(&s, s.x, ftl_const(s.b, head), ftl_const(s.b, 16));
    from.row_end = ftl_const(s.b, SKETCH_LENGTH);
    from.pages = (ftl_pages){.page_rows = 20, .table = table, .page_stride = 20 * SKETCH_COLUMNS};
    ftl_fill_stage(s.b, ring, from);
  }
  for (int i = 0; i < 2; i++) {
    ftl_wait(s.b, ring);
    ftl_fetch(s.b, tile, ring);
    ftl_release(s.b, ring);
  }
  ftl_tile_program *program = sketch_finish(&s);
  for (int32_t i = 0; i < program->num_ops; i++) lookups += program->ops[i].kind == FTL_TILE_LOOKUP;
  cr_assert_eq(lookups, 1);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_pages, a_page_outside_of_the_tensor_is_refused) {
  sketch s = sketch_create();
  int32_t table = ftl_builder_table(s.b, "pages", (int32_t[]){0, 20}, 2);  // x has 20 pages of 4 rows
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  ftl_tile_ref from = sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0));
  from.row_end = ftl_const(s.b, 8);
  from.pages = (ftl_pages){.page_rows = 4, .table = table, .page_stride = 4 * SKETCH_COLUMNS};
  ftl_fill_stage(s.b, ring, from);
  sketch_assert_refused(&s, "entry 1 of pages, page 20, is outside of x");
}

Test(unit_tile_pages, an_entry_beyond_the_table_is_an_error) {
  ftl_tile_program *program = build(4, 32, 44);  // rows 40 to 43 would be page 10 of ten
  ftl_error error = {0};
  cr_assert_eq(interpret(program, &error), FTL_RUN_FAILED);
  cr_assert(strstr(error.message, "entry 10 is outside of pages, which has 10"), "%s", error.message);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_pages, rows_from_row_end_on_are_not_loaded_nor_stored) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_fill(s.b, tile, 3.0f);
  ftl_tile_ref ref = sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 8));
  ref.row_end = ftl_const(s.b, 11);
  ftl_store(s.b, ref, tile, -1);
  ftl_tile_program *program = sketch_finish(&s);
  ftl_error error = {0};
  cr_assert_eq(interpret(program, &error), FTL_OK, "%s", error.message);
  cr_expect_eq(y[10 * SKETCH_COLUMNS], 3.0f);
  cr_expect_eq(y[11 * SKETCH_COLUMNS], -1.0f);
  ftl_tile_program_destroy(program);
}
