// What interval arithmetic must show of programs that a user wrote.
#include "sketch.h"

static void expect(sketch *s, const char *refused) {
  ftl_tile_program *program = sketch_finish(s);
  ftl_bounds_steps steps;
  ftl_status status = ftl_tile_program_check_bounds(program, &steps, &s->error);
  ftl_tile_program_destroy(program);
  if (!refused) {
    cr_assert_eq(status, FTL_OK, "%s", s->error.message);
  } else {
    cr_assert_eq(status, FTL_BAD_INPUT, "not refused: %s", refused);
    cr_assert(strstr(s->error.message, refused) != NULL, "\"%s\" does not say \"%s\"", s->error.message, refused);
  }
}

// A store of zeros at a head and a row, in a grid of 6 CTAs.
static sketch store_at(ftl_expr (*head)(ftl_builder *), ftl_expr (*row)(ftl_builder *)) {
  sketch s = sketch_create();
  ftl_builder_grid(s.b, 6, false, FTL_TILES_BY_STRIDE);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_fill(s.b, tile, 0.0f);
  ftl_store(s.b, sketch_ref(&s, s.y, head(s.b), row(s.b)), tile, -1);
  return s;
}

static ftl_expr zero(ftl_builder *b) { return ftl_const(b, 0); }
static ftl_expr cta(ftl_builder *b) { return ftl_cta(b); }
static ftl_expr cta_half(ftl_builder *b) { return ftl_div(b, ftl_cta(b), ftl_const(b, 3)); }
static ftl_expr cta_odd(ftl_builder *b) { return ftl_mod(b, ftl_cta(b), ftl_const(b, 2)); }
static ftl_expr before_cta(ftl_builder *b) { return ftl_sub(b, ftl_cta(b), ftl_const(b, 1)); }
static ftl_expr not_before(ftl_builder *b) { return ftl_max(b, before_cta(b), ftl_const(b, 0)); }
static ftl_expr beyond(ftl_builder *b) { return ftl_add(b, ftl_cta(b), ftl_const(b, 1000)); }
static ftl_expr huge(ftl_builder *b) {
  ftl_expr x = ftl_mul(b, ftl_cta(b), ftl_const(b, INT64_C(1) << 40));
  return ftl_mul(b, x, ftl_const(b, INT64_C(1) << 40));
}

Test(unit_tile_bounds, coordinates_that_stay_inside_pass) {
  ftl_expr (*const heads[])(ftl_builder *) = {zero, cta_half, cta_odd};
  for (int i = 0; i < 3; i++) {
    sketch s = store_at(heads[i], zero);
    expect(&s, NULL);
  }
}

Test(unit_tile_bounds, a_head_outside_of_its_tensor_is_refused) {
  sketch s = store_at(cta, zero);
  expect(&s, "op 1 (store): the head of y can be 0 to 5, as far as can be shown; allowed is 0 to 1");
}

Test(unit_tile_bounds, a_row_before_the_first_is_refused_and_one_behind_the_last_is_no_row) {
  sketch s = store_at(zero, before_cta);
  expect(&s, "the row of y can be -1 to 4");
  s = store_at(zero, not_before);
  expect(&s, NULL);
  s = store_at(zero, beyond);
  expect(&s, NULL);
}

Test(unit_tile_bounds, a_product_beyond_63_bits_does_not_wrap_into_the_tensor) {
  sketch s = store_at(zero, huge);
  expect(&s, "the row of y can be 0 to 1152921504606846976");
}

Test(unit_tile_bounds, loop_variables_range_over_their_bounds) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_fill(s.b, tile, 0.0f);
  ftl_expr head = ftl_loop_value(s.b, ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 3)));
  ftl_store(s.b, sketch_ref(&s, s.y, head, ftl_const(s.b, 0)), tile, -1);
  ftl_end_loop(s.b);
  expect(&s, "op 2 (store): the head of y can be 0 to 2");
}

Test(unit_tile_bounds, nested_loops_that_never_end_in_practice_are_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  for (int i = 0; i < 4; i++) ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 1 << 30));
  for (int i = 0; i < 4; i++) ftl_end_loop(s.b);
  expect(&s, "op 1 (loop): a CTA may run more than 16777216 operations up to here");
}

Test(unit_tile_bounds, entries_of_a_table_bound_a_lookup) {
  const int32_t heads[] = {0, 1, 1}, wrong[] = {0, 2, 1};
  for (int i = 0; i < 2; i++) {
    sketch s = sketch_create();
    ftl_builder_grid(s.b, 3, false, FTL_TILES_BY_STRIDE);
    int32_t table = ftl_builder_table(s.b, "heads", i ? wrong : heads, 3);
    ftl_builder_role(s.b, "main", 1, 0);
    int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
    ftl_fill(s.b, tile, 0.0f);
    ftl_store(s.b, sketch_ref(&s, s.y, ftl_lookup(s.b, table, ftl_cta(s.b)), ftl_const(s.b, 0)), tile, -1);
    expect(&s, i ? "the head of y can be 0 to 2" : NULL);
  }
}

// A store at head `end - 1 - i` of a loop over i below `end`, whose end depends on the CTA.
static sketch store_backwards(int64_t too_far) {
  sketch s = sketch_create();
  ftl_builder_grid(s.b, 6, false, FTL_TILES_BY_STRIDE);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_fill(s.b, tile, 0.0f);
  ftl_expr end = ftl_min(s.b, ftl_add(s.b, ftl_cta(s.b), ftl_const(s.b, 1)), ftl_const(s.b, 2));
  ftl_expr i = ftl_loop_value(s.b, ftl_loop(s.b, ftl_const(s.b, 0), end));
  ftl_expr head = ftl_sub(s.b, ftl_sub(s.b, end, ftl_const(s.b, 1 + too_far)), i);
  ftl_store(s.b, sketch_ref(&s, s.y, head, ftl_mul(s.b, head, ftl_const(s.b, 16))), tile, -1);
  ftl_end_loop(s.b);
  return s;
}

Test(unit_tile_bounds, a_loop_may_run_backwards_from_an_end_that_differs) {
  sketch s = store_backwards(0);
  expect(&s, NULL);
  s = store_backwards(1);
  expect(&s, "op 2 (store): the head of y can be -1 to 0, as far as can be shown");
}

enum { NUM_ENTRIES = 4 };

// A tile of x at row table[CTA + j], j below `trips`, of 6 CTAs; the table has 4 entries, and the tile is present where
// `present` (NULL: always) is above 0.
static sketch look_up(int64_t trips, ftl_expr (*present)(ftl_builder *)) {
  static const int32_t entries[NUM_ENTRIES] = {3, 8, 0, 5};
  sketch s = sketch_create();
  ftl_builder_grid(s.b, 6, false, FTL_TILES_BY_STRIDE);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t table = ftl_builder_table(s.b, "rows", entries, NUM_ENTRIES);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  ftl_expr j = ftl_loop_value(s.b, ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, trips)));
  ftl_expr row = ftl_lookup(s.b, table, ftl_add(s.b, ftl_cta(s.b), j));
  ftl_tile_ref ref = sketch_ref(&s, s.x, ftl_const(s.b, 0), row);
  if (present) ref.present = present(s.b);
  ftl_fill_stage(s.b, ring, ref);
  ftl_wait(s.b, ring);
  ftl_release(s.b, ring);
  ftl_end_loop(s.b);
  return s;
}

// 3 CTAs are below.
static ftl_expr below_three(ftl_builder *b) { return ftl_sub(b, ftl_const(b, 3), ftl_cta(b)); }
static ftl_expr below_five(ftl_builder *b) { return ftl_sub(b, ftl_const(b, 5), ftl_cta(b)); }

Test(unit_tile_bounds, an_entry_that_a_table_does_not_have_is_refused_where_a_cta_reads_it) {
  sketch s = look_up(1, NULL);
  expect(&s, "(lookup): CTA 4: entry 4 is outside of rows, which has 4");
  s = look_up(1, below_five);
  expect(&s, "(lookup): CTA 4: entry 4 is outside of rows, which has 4");
  s = look_up(3, below_three);
  expect(&s, "(lookup): CTA 2: entry 4 is outside of rows, which has 4");
}

Test(unit_tile_bounds, an_entry_that_nobody_reads_is_not) {
  sketch s = look_up(2, below_three);
  expect(&s, NULL);
  s = look_up(0, NULL);
  expect(&s, NULL);
}
