// Tables in expressions: where their entries are read, and what they do to coordinates, bounds and guards.
#include <math.h>

#include "sketch.h"
#include "tile/interpreter.h"

enum { NUM_ELEMENTS = 2 * SKETCH_LENGTH * SKETCH_COLUMNS };

static float x[NUM_ELEMENTS], y[NUM_ELEMENTS], unused[16];

// Kinds of the operations, as their first letters.
static void assert_ops(const ftl_tile_program *program, const char *expected) {
  char kinds[64] = "";
  for (int32_t i = 0; i < program->num_ops && i < 63; i++) kinds[i] = ftl_tile_op_name(program->ops[i].kind)[0];
  for (int32_t i = 0; i < program->num_ops && i < 63; i++) {
    if (program->ops[i].kind == FTL_TILE_LOOKUP) kinds[i] = '?';
    if (program->ops[i].kind == FTL_TILE_LOOP) kinds[i] = '(';
    if (program->ops[i].kind == FTL_TILE_END_LOOP) kinds[i] = ')';
  }
  cr_assert_str_eq(kinds, expected);
}

// y's tile of the CTA's head = the tiles of x that begin at the rows of `rows`, added up: counts[cta] of them.
typedef struct gather {
  int32_t counts[2], rows[8];
  int32_t num_rows;
  bool guarded;  // a tile ahead, present while there is one
} gather;

static ftl_tile_program *build(const gather *g) {
  sketch s = sketch_create();
  int32_t counts = ftl_builder_table(s.b, "counts", g->counts, 2);
  int32_t rows = ftl_builder_table(s.b, "rows", g->rows, g->num_rows);
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_builder_grid(s.b, 2, false, FTL_TILES_BY_STRIDE);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 2, 0, 1);
  int32_t part = ftl_builder_tile(s.b, "part", FTL_FP16, 16, 16), sum = ftl_builder_tile(s.b, "sum", FTL_FP32, 16, 16);
  int32_t wide = ftl_builder_tile(s.b, "wide", FTL_FP32, 16, 16);
  ftl_expr count = ftl_lookup(s.b, counts, ftl_cta(s.b)), first = ftl_mul(s.b, ftl_cta(s.b), ftl_const(s.b, 4));
  ftl_fill(s.b, sum, 0);
  ftl_expr i = ftl_loop_value(s.b, ftl_loop(s.b, ftl_const(s.b, 0), count));
  ftl_expr place = ftl_add(s.b, first, i);
  ftl_tile_ref ref = sketch_ref(&s, s.x, ftl_const(s.b, 1), ftl_lookup(s.b, rows, place));
  if (g->guarded) ref.present = ftl_sub(s.b, ftl_const(s.b, 2), i);
  ftl_fill_stage(s.b, ring, ref);
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, part, ring);
  ftl_release(s.b, ring);
  ftl_convert(s.b, wide, part);
  ftl_binary(s.b, FTL_ELEM_ADD, sum, sum, ftl_value_operand(wide));
  ftl_end_loop(s.b);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_cta(s.b), ftl_mul(s.b, count, ftl_const(s.b, 8))), sum, -1);
  return sketch_finish(&s);
}

static ftl_status interpret(ftl_tile_program *program, ftl_error *error) {
  float *tensors[] = {x, y, unused, unused};
  for (int i = 0; i < NUM_ELEMENTS; i++) {
    x[i] = (float)(i / SKETCH_COLUMNS);
    y[i] = -1;
  }
  return ftl_interpret(program, tensors, NULL, error);
}

Test(unit_tile_lookup, entries_give_bounds_and_coordinates) {
  gather g = {.counts = {2, 1}, .rows = {3, 8, 0, 0, 21}, .num_rows = 8};
  ftl_tile_program *program = build(&g);
  ftl_error error = {0};
  cr_assert_eq(interpret(program, &error), FTL_OK, "%s", error.message);
  // rows of head 1 are 40 and on; CTA 0 stores from row 16 of head 0, CTA 1 from row 8 of head 1
  cr_expect_eq(y[16 * SKETCH_COLUMNS], 43.0f + 48.0f);
  cr_expect_eq(y[(SKETCH_LENGTH + 8 + 2) * SKETCH_COLUMNS], 63.0f);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_lookup, an_entry_is_read_once_in_the_outermost_loop_that_its_index_allows) {
  gather g = {.counts = {2, 1}, .rows = {3, 8, 0, 0, 21}, .num_rows = 8};
  ftl_tile_program *program = build(&g);
  // fill; count before the loop; in the loop: acquire, row, load, commit ...; the store needs count again: held
  assert_ops(program, "f?(a?lcwfrce)s");
  ftl_tile_program_destroy(program);
}

Test(unit_tile_lookup, an_entry_of_no_loop_variable_is_hoisted) {
  sketch s = sketch_create();
  int32_t rows = ftl_builder_table(s.b, "rows", (int32_t[]){0, 16}, 2);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP16, 16, 16);
  ftl_expr outer = ftl_loop_value(s.b, ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 2)));
  ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 3));
  ftl_fill_stage(s.b, ring, sketch_ref(&s, s.x, ftl_lookup(s.b, rows, ftl_cta(s.b)), ftl_lookup(s.b, rows, outer)));
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, tile, ring);
  ftl_release(s.b, ring);
  ftl_end_loop(s.b);
  ftl_end_loop(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  assert_ops(program, "?(?(alcwfr))");
  ftl_tile_program_destroy(program);
}

Test(unit_tile_lookup, an_entry_outside_of_its_table_is_an_error_where_it_is_read) {
  gather g = {.counts = {2, 3}, .rows = {3, 8, 0, 0, 21, 5}, .num_rows = 6};  // CTA 1 reads entries 4, 5 and 6
  ftl_tile_program *program = build(&g);
  ftl_error error = {0};
  cr_assert_eq(interpret(program, &error), FTL_RUN_FAILED);
  cr_assert(strstr(error.message, "entry 6 is outside of rows, which has 6"), "%s", error.message);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_lookup, an_absent_tile_reads_no_entry) {
  gather g = {.counts = {2, 3}, .rows = {3, 8, 0, 0, 21, 5}, .num_rows = 6, .guarded = true};
  ftl_tile_program *program = build(&g);
  ftl_error error = {0};
  // the third tile of CTA 1 is absent, and so is its entry; what its stage holds shows as NaN
  cr_assert_eq(interpret(program, &error), FTL_OK, "%s", error.message);
  cr_expect(isnan(y[(SKETCH_LENGTH + 3 * 8) * SKETCH_COLUMNS]));
  ftl_tile_program_destroy(program);
}

Test(unit_tile_lookup, what_is_no_table_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_lookup(s.b, s.x, ftl_cta(s.b));
  sketch_assert_refused(&s, "a lookup takes a table");
}

Test(unit_tile_lookup, an_empty_table_is_refused) {
  sketch s = sketch_create();
  ftl_builder_table(s.b, "none", NULL, 0);
  sketch_assert_refused(&s, "table none of 0 entries");
}

Test(unit_tile_lookup, alignment_is_that_of_all_entries) {
  sketch s = sketch_create();
  int32_t table = ftl_builder_table(s.b, "t", (int32_t[]){32, 64, 0, 48}, 4);
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_expr entry = ftl_lookup(s.b, table, ftl_cta(s.b));
  ftl_barrier(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  cr_assert_eq(ftl_expr_alignment(program, entry), 16);
  ftl_expr_point beyond = {.cta = 4};
  cr_assert_eq(ftl_expr_eval(program, entry, &beyond), 0);
  ftl_tile_program_destroy(program);
}

// The CTA is the first expression of the program: an entry at a constant index does not depend on it.
Test(unit_tile_lookup, an_entry_depends_on_what_its_index_does) {
  sketch s = sketch_create();
  int32_t table = ftl_builder_table(s.b, "t", (int32_t[]){32, 64, 0, 48}, 4);
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_expr cta = ftl_cta(s.b), fixed = ftl_lookup(s.b, table, ftl_const(s.b, 1)), of_cta = ftl_lookup(s.b, table, cta);
  ftl_barrier(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  cr_expect_not(ftl_expr_uses_cta(program, fixed));
  cr_expect(ftl_expr_uses_cta(program, of_cta));
  cr_expect_not(ftl_expr_uses_warp(program, of_cta));
  ftl_tile_program_destroy(program);
}
