// Results that pass through shared memory (PUT, GATHER), warps side by side, and sums by atomics.
#include "tile/interpreter.h"

#include "sketch.h"

enum { ROWS = SKETCH_ROWS, COLUMNS = SKETCH_COLUMNS, NUM_ELEMENTS = 2 * SKETCH_LENGTH * COLUMNS };

typedef struct put_sketch {
  sketch s;
  int32_t sum;                // a further tensor, fp32, of the shape of x
  int32_t from, through;      // rings: loaded, put
  int32_t half, accumulator;  // values
} put_sketch;

static put_sketch begin(int32_t num_warps, int32_t warps_per_row) {
  put_sketch p = {.s = sketch_create()};
  ftl_builder *b = p.s.b;
  p.sum = ftl_builder_tensor(b, "sum", FTL_FP32, FTL_TENSOR_TEMP, ftl_contiguous(1, 2, SKETCH_LENGTH, COLUMNS));
  ftl_builder_role(b, "main", num_warps, 0);
  p.from = ftl_builder_ring(b, "from", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  p.through = ftl_builder_ring(b, "through", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  p.half = ftl_builder_tile(b, "half", FTL_FP16, ROWS, COLUMNS);
  p.accumulator = ftl_builder_tile(b, "accumulator", FTL_FP32, ROWS, COLUMNS);
  ftl_builder_side_by_side(b, warps_per_row);
  return p;
}

static ftl_tile_ref ref_of(const put_sketch *p, int32_t tensor) {
  return sketch_ref(&p->s, tensor, ftl_const(p->s.b, 0), ftl_const(p->s.b, 0));
}

// x's first tile reaches `through` by way of registers.
static void pass_through(const put_sketch *p) {
  ftl_builder *b = p->s.b;
  ftl_fill_stage(b, p->from, ref_of(p, p->s.x));
  ftl_wait(b, p->from);
  ftl_fetch(b, p->half, p->from);
  ftl_acquire(b, p->through);
  ftl_put(b, p->through, p->half);
  ftl_commit(b, p->through);
  ftl_wait(b, p->through);
}

static void release(const put_sketch *p) {
  ftl_release(p->s.b, p->from);
  ftl_release(p->s.b, p->through);
}

Test(unit_tile_put, what_was_put_is_an_operand_stored_either_way) {
  // X X^T with A as it was put, and X^T X with A transposed: of X = 1 in row 3, column 5 alone.
  for (int transposed = 0; transposed < 2; transposed++) {
    put_sketch p = begin(1, 1);
    pass_through(&p);
    ftl_fill(p.s.b, p.accumulator, 0);
    ftl_mma_shared(p.s.b, p.accumulator, p.through, p.from, transposed == 0);
    if (transposed) ftl_transposed_a(p.s.b);
    release(&p);
    ftl_store(p.s.b, ref_of(&p, p.s.y), p.accumulator, -1);
    float x[NUM_ELEMENTS] = {0}, y[NUM_ELEMENTS], sum[NUM_ELEMENTS];
    x[3 * COLUMNS + 5] = 1;
    float *tensors[] = {x, y, sum};
    ftl_error error = {0};
    ftl_tile_program *program = sketch_finish(&p.s);
    cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
    int where = transposed ? 5 : 3;
    for (int i = 0; i < ROWS * COLUMNS; i++)
      cr_assert_eq(y[i], i == where * COLUMNS + where ? 1.0f : 0.0f, "transposed %d: element %d", transposed, i);
    ftl_tile_program_destroy(program);
  }
}

Test(unit_tile_put, ctas_that_add_to_the_same_tile_add_up) {
  put_sketch p = begin(1, 1);
  ftl_fill(p.s.b, p.accumulator, 1.5f);
  ftl_atomic_add(p.s.b, ref_of(&p, p.sum), p.accumulator, FTL_ADD_IN_LINES);
  ftl_builder_grid(p.s.b, 7, false, FTL_TILES_BY_STRIDE);
  float x[NUM_ELEMENTS], y[NUM_ELEMENTS], sum[NUM_ELEMENTS] = {[0] = 100};
  float *tensors[] = {x, y, sum};
  ftl_error error = {0};
  ftl_tile_program *program = sketch_finish(&p.s);
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(sum[0], 110.5f);
  cr_assert_eq(sum[ROWS * COLUMNS - 1], 10.5f);
  cr_assert_eq(sum[ROWS * COLUMNS], 0.0f);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_put, a_ring_is_loaded_or_put) {
  put_sketch p = begin(1, 1);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_convert(p.s.b, p.half, p.accumulator);
  ftl_fill_stage(p.s.b, p.from, ref_of(&p, p.s.x));
  ftl_wait(p.s.b, p.from);
  ftl_release(p.s.b, p.from);
  ftl_acquire(p.s.b, p.from);
  ftl_put(p.s.b, p.from, p.half);
  ftl_commit(p.s.b, p.from);
  sketch_assert_refused(&p.s, "ring from is filled by loads as well");
}

Test(unit_tile_put, what_was_put_is_waited_for) {
  put_sketch p = begin(1, 1);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_convert(p.s.b, p.half, p.accumulator);
  ftl_acquire(p.s.b, p.through);
  ftl_put(p.s.b, p.through, p.half);
  ftl_commit(p.s.b, p.through);
  sketch_assert_refused(&p.s, "a loaded stage was never waited for");
}

Test(unit_tile_put, atomics_add_fp32) {
  put_sketch p = begin(1, 1);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_atomic_add(p.s.b, ref_of(&p, p.s.y), p.accumulator, FTL_ADD_IN_LINES);
  sketch_assert_refused(&p.s, "atomics add fp32");
}

Test(unit_tile_put, warps_side_by_side_divide_the_role) {
  put_sketch p = begin(4, 3);
  ftl_fill(p.s.b, p.accumulator, 0);
  sketch_assert_refused(&p.s, "3 warps side by side");
}

Test(unit_tile_put, lanes_do_not_reduce_rows_of_warps_side_by_side) {
  put_sketch p = begin(2, 2);
  int32_t rows = ftl_builder_rows(p.s.b, "rows", ROWS);
  ftl_builder_side_by_side(p.s.b, 2);
  ftl_fill(p.s.b, rows, 0);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_reduce_rows(p.s.b, FTL_ELEM_ADD, rows, p.accumulator);
  ftl_reduce_lanes(p.s.b, FTL_ELEM_ADD, rows);
  sketch_assert_refused(&p.s, "do not reach the other warps");
}

static put_sketch reducing_over_warps(int32_t warps_per_row, int32_t staging_columns) {
  put_sketch p = begin(2, warps_per_row);
  int32_t rows = ftl_builder_rows(p.s.b, "rows", ROWS);
  ftl_builder_side_by_side(p.s.b, warps_per_row);
  int32_t staging = ftl_builder_ring(p.s.b, "staging", FTL_FP32, 1, staging_columns, 1, 0, 1);
  ftl_fill(p.s.b, rows, 0);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_reduce_rows(p.s.b, FTL_ELEM_ADD, rows, p.accumulator);
  ftl_reduce_warps(p.s.b, FTL_ELEM_ADD, rows, staging);
  return p;
}

// A number for each of 16 rows and 2 warps: 32 of 4 bytes.
Test(unit_tile_put, warps_side_by_side_reduce_rows_through_a_ring_with_room_for_all) {
  put_sketch fits = reducing_over_warps(2, 2 * ROWS), small = reducing_over_warps(2, 2 * ROWS - 4);
  ftl_tile_program_destroy(sketch_finish(&fits.s));
  sketch_assert_refused(&small.s, "ring staging of 112 bytes is too small to stage 128");
}

Test(unit_tile_put, one_warp_a_row_has_no_others_to_reduce_over) {
  put_sketch p = reducing_over_warps(1, 2 * ROWS);
  sketch_assert_refused(&p.s, "held by one warp a row");
}

Test(unit_tile_put, warps_side_by_side_take_a_from_shared_memory) {
  put_sketch p = begin(2, 2);
  pass_through(&p);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_mma_value(p.s.b, p.accumulator, p.half, p.from, true);
  release(&p);
  sketch_assert_refused(&p.s, "that have not all of A take it from shared memory");
}

// Both warps have all of A in registers, one of them the first and the other the last columns of the product. X X^T of
// X = 1 in row 3, column 5 alone.
Test(unit_tile_put, warps_that_repeat_a_share_the_columns_of_a_product) {
  put_sketch p = {.s = sketch_create()};
  ftl_builder *b = p.s.b;
  ftl_builder_role(b, "main", 2, 0);
  p.from = ftl_builder_ring(b, "from", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  p.half = ftl_builder_tile(b, "half", FTL_FP16, ROWS, COLUMNS);
  ftl_builder_repeat(b, 2);
  p.accumulator = ftl_builder_tile(b, "accumulator", FTL_FP32, ROWS, COLUMNS);
  ftl_builder_side_by_side(b, 2);
  ftl_fill_stage(b, p.from, ref_of(&p, p.s.x));
  ftl_wait(b, p.from);
  ftl_fetch(b, p.half, p.from);
  ftl_fill(b, p.accumulator, 0);
  ftl_mma_value(b, p.accumulator, p.half, p.from, true);
  ftl_release(b, p.from);
  ftl_store(b, ref_of(&p, p.s.y), p.accumulator, -1);
  float x[NUM_ELEMENTS] = {0}, y[NUM_ELEMENTS];
  x[3 * COLUMNS + 5] = 1;
  float *tensors[] = {x, y};
  ftl_tile_program *program = sketch_finish(&p.s);
  ftl_error error;
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  for (int i = 0; i < ROWS * COLUMNS; i++) cr_expect_eq(y[i], i == 3 * COLUMNS + 3, "element %d", i);
  ftl_tile_program_destroy(program);
}

static put_sketch repeating(int32_t num_warps, int32_t warps_per_row) {
  put_sketch p = {.s = sketch_create()};
  ftl_builder_role(p.s.b, "main", num_warps, 0);
  p.through = ftl_builder_ring(p.s.b, "through", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  p.half = ftl_builder_tile(p.s.b, "half", FTL_FP16, ROWS, COLUMNS);
  ftl_builder_repeat(p.s.b, warps_per_row);
  p.accumulator = ftl_builder_tile(p.s.b, "accumulator", FTL_FP32, ROWS, COLUMNS);
  ftl_builder_side_by_side(p.s.b, warps_per_row);
  return p;
}

Test(unit_tile_put, what_warps_repeat_is_neither_stored_nor_put_nor_mixed_with_shares) {
  put_sketch p = repeating(2, 1);
  ftl_fill(p.s.b, p.half, 0);
  sketch_assert_refused(&p.s, "value half of 16 x 16, 1 warps side by side");
  p = repeating(2, 2);
  ftl_fill(p.s.b, p.half, 0);
  ftl_store(p.s.b, ref_of(&p, p.s.y), p.half, -1);
  sketch_assert_refused(&p.s, "each of several warps has all of half");
  p = repeating(2, 2);
  ftl_fill(p.s.b, p.half, 0);
  ftl_acquire(p.s.b, p.through);
  ftl_put(p.s.b, p.through, p.half);
  ftl_commit(p.s.b, p.through);
  sketch_assert_refused(&p.s, "each of several groups or warps has a copy of half");
  p = repeating(2, 2);
  ftl_fill(p.s.b, p.accumulator, 0);
  ftl_convert(p.s.b, p.half, p.accumulator);
  sketch_assert_refused(&p.s, "");
}

// Two groups hold 1 and 1 in each element of a product with ones over their halves of the keys: 8 and 8 of 16.
static put_sketch gather_sketch(int32_t staging_rows) {
  put_sketch p = {.s = sketch_create()};
  ftl_builder *b = p.s.b;
  ftl_builder_role(b, "main", 2, 0);
  ftl_builder_groups(b, 2);
  p.from = ftl_builder_ring(b, "from", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  p.through = ftl_builder_ring(b, "through", FTL_FP32, staging_rows, COLUMNS, 1, 0, 1);
  p.half = ftl_builder_tile(b, "half", FTL_FP16, ROWS, ROWS / 2);
  p.accumulator = ftl_builder_tile(b, "accumulator", FTL_FP32, ROWS, COLUMNS);
  int32_t ones = ftl_builder_tile(b, "ones", FTL_FP32, ROWS, ROWS / 2);
  ftl_fill(b, ones, 1);
  ftl_convert(b, p.half, ones);
  ftl_fill_stage(b, p.from, ref_of(&p, p.s.x));
  ftl_wait(b, p.from);
  ftl_fill(b, p.accumulator, 0);
  ftl_mma_value(b, p.accumulator, p.half, p.from, false);
  ftl_release(b, p.from);
  return p;
}

static int32_t by_rows(put_sketch *p) {
  return ftl_builder_tile_by_rows(p->s.b, "whole", FTL_FP32, ROWS, COLUMNS,
                                  (ftl_value_layout){.threads_per_row = 4, .vector_columns = 4});
}

Test(unit_tile_put, gathering_adds_the_groups_shares) {
  put_sketch p = gather_sketch(2 * ROWS);
  int32_t whole = by_rows(&p);
  ftl_gather(p.s.b, FTL_ELEM_ADD, whole, p.accumulator, p.through);
  ftl_store(p.s.b, ref_of(&p, p.s.y), whole, -1);
  float x[NUM_ELEMENTS], y[NUM_ELEMENTS];
  for (int i = 0; i < NUM_ELEMENTS; i++) x[i] = (float)(i / COLUMNS);  // row r holds r: the sum of 0 .. 15 is 120
  float *tensors[] = {x, y};
  ftl_error error = {0};
  ftl_tile_program *program = sketch_finish(&p.s);
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  for (int i = 0; i < ROWS * COLUMNS; i++) cr_assert_eq(y[i], 120.0f, "element %d", i);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_put, gathering_stages_every_groups_copy) {
  put_sketch p = gather_sketch(ROWS);
  ftl_gather(p.s.b, FTL_ELEM_ADD, by_rows(&p), p.accumulator, p.through);
  sketch_assert_refused(&p.s, "is not one of this role's, of 32 x 16 fp32");
}
