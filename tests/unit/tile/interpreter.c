// The interpreter on single ops: rounding, lanes, ragged tiles, errors. Whole kernels are in tests/numeric.
#include "tile/interpreter.h"

#include <math.h>

#include "sketch.h"

enum { NUM_ELEMENTS = 2 * SKETCH_LENGTH * SKETCH_COLUMNS };

static float x[NUM_ELEMENTS], y[NUM_ELEMENTS];

static void run(ftl_tile_program *program) {
  float *tensors[] = {x, y};
  ftl_error error = {0};
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  ftl_tile_program_destroy(program);
}

static void assert_fails(ftl_tile_program *program, const char *reason) {
  float *tensors[] = {x, y};
  ftl_error error = {0};
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_RUN_FAILED);
  cr_assert(strstr(error.message, reason) != NULL, "\"%s\" does not say \"%s\"", error.message, reason);
  ftl_tile_program_destroy(program);
}

// x's tile at `row` of head 1 arrives in ring `r`, waited for.
static int32_t load_tile(sketch *s, int32_t row) {
  int32_t ring = ftl_builder_ring(s->b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  ftl_acquire(s->b, ring);
  ftl_load(s->b, ring, sketch_ref(s, s->x, ftl_const(s->b, 1), ftl_const(s->b, row)));
  ftl_commit(s->b, ring);
  ftl_wait(s->b, ring);
  return ring;
}

Test(unit_tile_interpreter, rows_beyond_the_tensor_load_as_zeros_and_are_not_stored) {
  for (int i = 0; i < NUM_ELEMENTS; i++) x[i] = (float)i;
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = load_tile(&s, 32), tile = ftl_builder_tile(s.b, "t", FTL_FP16, 16, 16);
  ftl_fetch(s.b, tile, ring);
  ftl_release(s.b, ring);
  // Rows 32 .. 47 of head 1, of which 32 .. 39 exist, go to rows 20 .. 35: the last eight are the zeros.
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 1), ftl_const(s.b, 20)), tile, -1);
  // And to rows 32 .. 47 of head 0: nothing may reach head 1's row 0, which follows in memory.
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 32)), tile, -1);
  for (int i = 0; i < NUM_ELEMENTS; i++) y[i] = -1;
  run(sketch_finish(&s));
  const float *head1 = y + SKETCH_LENGTH * 16;
  cr_assert_eq(head1[27 * 16 + 5], x[(SKETCH_LENGTH + 39) * 16 + 5]);
  cr_assert_eq(head1[28 * 16], 0.0f);
  cr_assert_eq(y[32 * 16], x[(SKETCH_LENGTH + 32) * 16]);
  cr_assert_eq(head1[0], -1.0f);
}

Test(unit_tile_interpreter, an_absent_store_does_nothing) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_fill(s.b, tile, 3.0f);
  ftl_tile_ref ref = sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0));
  ref.present = ftl_const(s.b, 0);
  ftl_store(s.b, ref, tile, -1);
  y[0] = -1;
  run(sketch_finish(&s));
  cr_assert_eq(y[0], -1.0f);
}

Test(unit_tile_interpreter, stores_round_to_the_tensors_dtype) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_fill(s.b, tile, 1.0f + 0x1p-11f + 0x1p-20f);  // above the middle between 1 and 1 + 2^-10
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  run(sketch_finish(&s));
  cr_assert_eq(y[0], 1.0f + 0x1p-10f);
}

Test(unit_tile_interpreter, a_product_multiplies_by_the_stage_or_by_its_transpose) {
  for (int transposed = 0; transposed < 2; transposed++) {
    for (int i = 0; i < NUM_ELEMENTS; i++) x[i] = (float)(i % 97);
    sketch s = sketch_create();
    ftl_builder_role(s.b, "main", 1, 0);
    int32_t ring = load_tile(&s, 0);
    int32_t a = ftl_builder_tile(s.b, "a", FTL_FP16, 16, 16), c = ftl_builder_tile(s.b, "c", FTL_FP32, 16, 16);
    ftl_fetch(s.b, a, ring);
    ftl_fill(s.b, c, 1.0f);
    ftl_mma_value(s.b, c, a, ring, transposed);
    ftl_release(s.b, ring);
    ftl_elem(s.b, FTL_ELEM_MUL, c, ftl_value_operand(c), ftl_immediate(0x1p-8f), ftl_immediate(0));
    ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), c, -1);
    run(sketch_finish(&s));
    const float *m = x + SKETCH_LENGTH * 16;
    float sum = 1.0f;
    for (int k = 0; k < 16; k++) sum += m[3 * 16 + k] * (transposed ? m[7 * 16 + k] : m[k * 16 + 7]);
    cr_assert_eq(y[3 * 16 + 7], ftl_dtype_round(FTL_FP16, sum * 0x1p-8f));
  }
}

// One row of 16 columns, column c holding c: reduced within lanes, and over them if asked; stored as a row number.
static ftl_tile_program *row_sum(bool over_lanes) {
  for (int i = 0; i < NUM_ELEMENTS; i++) x[i] = (float)(i % 16);
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = load_tile(&s, 0);
  int32_t half = ftl_builder_tile(s.b, "h", FTL_FP16, 16, 16), tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  int32_t sum = ftl_builder_rows(s.b, "sum", 16);
  ftl_fetch(s.b, half, ring);
  ftl_release(s.b, ring);
  ftl_convert(s.b, tile, half);
  ftl_fill(s.b, sum, 0.0f);
  ftl_reduce_rows(s.b, FTL_ELEM_ADD, sum, tile);
  if (over_lanes) ftl_reduce_lanes(s.b, FTL_ELEM_ADD, sum);
  ftl_tile_ref ref = sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0));
  ref.columns = 1;
  ftl_store_rows(s.b, ref, sum);
  return sketch_finish(&s);
}

Test(unit_tile_interpreter, a_sum_over_rows_is_whole_after_the_reduction_over_lanes) {
  run(row_sum(true));
  cr_assert_eq(y[0], 120.0f);  // 0 + 1 + ... + 15
}

Test(unit_tile_interpreter, a_sum_that_was_not_reduced_over_lanes_cannot_be_stored) {
  assert_fails(row_sum(false), "row 0 of sum is not reduced over its lanes");
}

Test(unit_tile_interpreter, masks_keep_the_diagonal_and_stop_at_the_limit) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_fill(s.b, tile, 1.0f);
  // Tile at rows 20.., columns 10..: column 10 + c is kept if 10 + c <= 20 + r - 8 and 10 + c < 14.
  ftl_mask(s.b, tile, ftl_const(s.b, 20), ftl_const(s.b, 10), ftl_const(s.b, -8), ftl_const(s.b, 14));
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  run(sketch_finish(&s));
  for (int r = 0; r < 16; r++)
    for (int c = 0; c < 16; c++)
      cr_assert_eq(y[r * 16 + c], c <= r + 2 && c < 4 ? 1.0f : -INFINITY, "row %d column %d", r, c);
}

Test(unit_tile_interpreter, functions_follow_their_definition_at_the_edges) {
  static const struct {
    ftl_elem_fn fn;
    float a, expected;
  } cases[] = {{FTL_ELEM_EXP2, -INFINITY, 0.0f},
               {FTL_ELEM_EXP2, 3.0f, 8.0f},
               {FTL_ELEM_LOG2, 0.0f, -INFINITY},
               {FTL_ELEM_RECIP, 0.0f, 0.0f},
               {FTL_ELEM_RECIP, NAN, 0.0f},
               {FTL_ELEM_RECIP, 4.0f, 0.25f},
               {FTL_ELEM_EXP, -INFINITY, 0.0f},
               {FTL_ELEM_EXP, 0.0f, 1.0f},
               {FTL_ELEM_LOG, 0.0f, -INFINITY},
               {FTL_ELEM_LOG, 1.0f, 0.0f},
               {FTL_ELEM_DIV, 3.0f, 0.0f},       // by 0
               {FTL_ELEM_DIV_FULL, 3.0f, 0.0f},  // likewise
               {FTL_ELEM_ZERO_IF_NEG_INF, 2.0f, 2.0f},
               {FTL_ELEM_ZERO_IF_NEG_INF, -INFINITY, 0.0f}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sketch s = sketch_create();
    ftl_builder_role(s.b, "main", 1, 0);
    int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
    ftl_fill(s.b, tile, cases[i].a);
    ftl_elem(s.b, cases[i].fn, tile, ftl_value_operand(tile), ftl_immediate(0), ftl_immediate(0));
    ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
    run(sketch_finish(&s));
    cr_assert_eq(y[0], cases[i].expected, "case %zu gives %g", i, (double)y[0]);
  }
}

Test(unit_tile_interpreter, reading_a_value_that_was_never_written_is_an_error) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_loop(s.b, ftl_const(s.b, 0), ftl_cta(s.b));  // no iteration in CTA 0
  ftl_fill(s.b, tile, 0.0f);
  ftl_end_loop(s.b);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  assert_fails(sketch_finish(&s), "op 3 (store): CTA 0: t was never written");
}

Test(unit_tile_interpreter, a_persistent_cta_does_not_carry_registers_from_tile_to_tile) {
  sketch s = sketch_create();
  ftl_builder_grid(s.b, 8, true, FTL_TILES_BY_STRIDE);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  // Written in the first iteration only of tile 0 .. 2, which the three CTAs begin with.
  ftl_loop(s.b, ftl_div(s.b, ftl_cta(s.b), ftl_const(s.b, 3)), ftl_const(s.b, 1));
  ftl_fill(s.b, tile, 0.0f);
  ftl_end_loop(s.b);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  assert_fails(sketch_finish(&s), "CTA 3: t was never written");
}

Test(unit_tile_interpreter, a_tile_outside_of_its_tensor_is_an_error) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_fill(s.b, tile, 0.0f);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 2), ftl_const(s.b, 0)), tile, -1);
  assert_fails(sketch_finish(&s), "batch 0, head 2, row 0 is outside of y");
}
