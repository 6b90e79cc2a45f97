// TOP numbers the largest of a row by column, STORE_TOP puts them side by side, and a table that an earlier launch
// wrote says where the next one reads.
#include <math.h>

#include "sketch.h"
#include "tile/interpreter.h"

enum { ROWS = 2, COLUMNS = 128, COUNT = 5 };
static const ftl_value_layout layout = {32, 4};

typedef struct kernel {
  ftl_builder *b;
  int32_t x, ranks;           // tiles
  int32_t from, to, numbers;  // tensors; numbers: of one row, a table
} kernel;

static ftl_tile_ref ref(const kernel *k, int32_t tensor, int32_t rows, int32_t columns) {
  ftl_expr zero = ftl_const(k->b, 0);
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = zero,
                        .head = zero,
                        .row = zero,
                        .present = FTL_ALWAYS,
                        .rows = rows,
                        .columns = columns};
}

static kernel begin(int32_t rows, int32_t count) {
  static const int32_t assumed[COUNT] = {0};
  ftl_error error = {0};
  kernel k = {0};
  cr_assert_eq(ftl_builder_create(&k.b, "choose", &error), FTL_OK);
  k.from = ftl_builder_tensor(k.b, "x", FTL_FP32, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, rows, COLUMNS));
  k.to = ftl_builder_tensor(k.b, "top", FTL_FP16, FTL_TENSOR_OUTPUT, ftl_contiguous(1, 1, rows, COUNT));
  k.numbers = ftl_builder_temp_table(k.b, "numbers", assumed, COUNT);
  ftl_builder_role(k.b, "main", rows, 0);
  ftl_builder_grid(k.b, 1, false, FTL_TILES_BY_STRIDE);
  k.x = ftl_builder_tile_by_rows(k.b, "x", FTL_FP32, rows, COLUMNS, layout);
  k.ranks = ftl_builder_tile_by_rows(k.b, "ranks", FTL_FP32, rows, COLUMNS, layout);
  ftl_load_tile(k.b, k.x, ref(&k, k.from, rows, COLUMNS));
  ftl_top(k.b, k.ranks, k.x, count);
  return k;
}

static void run(kernel *k, float *const *tensors) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_finish(k->b, &program, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  ftl_tile_program_destroy(program);
  ftl_builder_destroy(k->b);
}

Test(unit_tile_top, the_largest_of_each_row_are_stored_by_column) {
  float x[ROWS * COLUMNS] = {0}, top[ROWS * COUNT] = {0}, numbers[COUNT] = {0};
  float *tensors[] = {x, top, numbers};
  const float first[] = {3, 9, 1, 7, 5}, second[] = {-1, 8, 8, 8, 8};  // where they stand: columns 11, 22, ...
  for (int i = 0; i < COUNT; i++) {
    x[11 * (i + 1)] = first[i];
    x[COLUMNS + 11 * (i + 1)] = second[i];
  }
  kernel k = begin(ROWS, COUNT);
  ftl_store_top(k.b, ref(&k, k.to, ROWS, COUNT), k.x, k.ranks);
  run(&k, tensors);
  for (int i = 0; i < COUNT; i++) cr_expect_eq(top[i], first[i]);
  // Of the zeros, which are all equal, that of the lowest column is the fifth.
  const float expected[] = {0, 8, 8, 8, 8};
  for (int i = 0; i < COUNT; i++) cr_expect_eq(top[COUNT + i], expected[i]);
}

static void store_numbers(const float *x, float *numbers) {
  float copy[COLUMNS], top[COUNT];
  float *tensors[] = {copy, top, numbers};
  memcpy(copy, x, sizeof copy);
  kernel k = begin(1, COUNT);
  ftl_store_top(k.b, ref(&k, k.numbers, COUNT, 1), -1, k.ranks);
  run(&k, tensors);
}

Test(unit_tile_top, column_numbers_are_the_entries_of_a_table) {
  float x[COLUMNS] = {0}, numbers[COUNT];
  for (int i = 0; i < COUNT; i++) x[100 - 7 * i] = (float)(i + 1);
  store_numbers(x, numbers);
  for (int i = 0; i < COUNT; i++) cr_expect_eq(numbers[i], (float)(72 + 7 * i));
}

// Rows of y gathered by the table, in a launch that was built with other entries.
static ftl_status gather(float *y, float *numbers, float *out, ftl_error *error) {
  static const int32_t assumed[SKETCH_ROWS] = {0};
  sketch s = sketch_create();
  int32_t table = ftl_builder_temp_table(s.b, "numbers", assumed, SKETCH_ROWS);
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_builder_grid(s.b, 1, false, FTL_TILES_BY_STRIDE);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  int32_t part = ftl_builder_tile(s.b, "part", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_tile_ref from = sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0));
  from.row_end = ftl_const(s.b, SKETCH_ROWS);
  from.pages = (ftl_pages){1, table, ftl_const(s.b, 0), SKETCH_COLUMNS, 0, 0};
  ftl_fill_stage(s.b, ring, from);
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, part, ring);
  ftl_release(s.b, ring);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), part, -1);
  ftl_tile_program *program = sketch_finish(&s);
  float *tensors[] = {y, out, numbers};
  ftl_status status = ftl_interpret(program, tensors, NULL, error);
  ftl_tile_program_destroy(program);
  return status;
}

Test(unit_tile_top, tiles_lie_where_the_launch_before_wrote) {
  enum { NUM_ELEMENTS = 2 * SKETCH_LENGTH * SKETCH_COLUMNS };
  static float y[NUM_ELEMENTS], out[NUM_ELEMENTS];
  float numbers[SKETCH_ROWS];
  ftl_error error = {0};
  for (int i = 0; i < SKETCH_LENGTH; i++) y[i * SKETCH_COLUMNS] = (float)i;
  for (int i = 0; i < SKETCH_ROWS; i++) numbers[i] = (float)(2 * i + 1);
  cr_assert_eq(gather(y, numbers, out, &error), FTL_OK, "%s", error.message);
  for (int i = 0; i < SKETCH_ROWS; i++) cr_expect_eq(out[i * SKETCH_COLUMNS], (float)(2 * i + 1));
  numbers[3] = NAN;
  cr_assert_eq(gather(y, numbers, out, &error), FTL_BAD_INPUT);
  cr_expect(strstr(error.message, "entry 3 of numbers") != NULL, "%s", error.message);
}

static void assert_refused(kernel *k, const char *reason) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_finish(k->b, &program, &error), FTL_BAD_INPUT);
  cr_assert(strstr(error.message, reason) != NULL, "\"%s\" does not say \"%s\"", error.message, reason);
  ftl_builder_destroy(k->b);
}

Test(unit_tile_top, what_does_not_fit_is_refused) {
  kernel too_many = begin(1, COLUMNS + 1), rows = begin(ROWS, COUNT), numbers = begin(1, COUNT);
  assert_refused(&too_many, "the 129 largest of 128 columns");
  ftl_store_top(rows.b, ref(&rows, rows.numbers, COUNT, 1), -1, rows.ranks);
  assert_refused(&rows, "a tile of 5 x 1 does not hold what ranks numbers");
  ftl_store_top(numbers.b, ref(&numbers, numbers.to, 1, COUNT), -1, numbers.ranks);
  assert_refused(&numbers, "int32 are the numbers of columns");
}
