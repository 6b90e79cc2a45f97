// Numbers a column of products that come through a ring of one column: what they do to each column, and what is
// refused.
#include "tile/interpreter.h"

#include "sketch.h"

enum { COLUMNS = SKETCH_COLUMNS };

typedef struct column_sketch {
  sketch s;
  int32_t numbers, ring, scale, tile;  // a tensor; the rest of the role
} column_sketch;

// A ring of ring_rows numbers, for the columns of a tile.
static column_sketch begin(int32_t ring_rows) {
  column_sketch c = {.s = sketch_create()};
  ftl_builder *b = c.s.b;
  c.numbers = ftl_builder_tensor(b, "numbers", FTL_FP32, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, SKETCH_LENGTH, 1));
  ftl_builder_role(b, "main", 1, 0);
  c.ring = ftl_builder_ring(b, "numbers", FTL_FP32, ring_rows, 1, 1, 0, 1);
  c.scale = ftl_builder_columns(b, "scale", COLUMNS);
  c.tile = ftl_builder_tile(b, "tile", FTL_FP32, SKETCH_ROWS, COLUMNS);
  return c;
}

// tile = 1 x the number of each column, stored to y.
static void scale_ones(const column_sketch *c, int32_t ring_rows) {
  ftl_builder *b = c->s.b;
  ftl_tile_ref from = sketch_ref(&c->s, c->numbers, ftl_const(b, 0), ftl_const(b, 0));
  from.rows = ring_rows, from.columns = 1;
  ftl_fill_stage(b, c->ring, from);
  ftl_wait(b, c->ring);
  ftl_fetch(b, c->scale, c->ring);
  ftl_release(b, c->ring);
  ftl_fill(b, c->tile, 1);
  ftl_elem(b, FTL_ELEM_MUL, c->tile, ftl_value_operand(c->tile), ftl_value_operand(c->scale), ftl_immediate(0));
  ftl_store(b, sketch_ref(&c->s, c->s.y, ftl_const(b, 0), ftl_const(b, 0)), c->tile, -1);
}

Test(unit_tile_columns, each_column_has_the_number_of_its_row) {
  column_sketch c = begin(COLUMNS);
  scale_ones(&c, COLUMNS);
  float x[2 * SKETCH_LENGTH * COLUMNS] = {0}, y[2 * SKETCH_LENGTH * COLUMNS], numbers[SKETCH_LENGTH];
  for (int i = 0; i < SKETCH_LENGTH; i++) numbers[i] = (float)(3 * i + 1);
  ftl_tile_program *program = sketch_finish(&c.s);
  float *buffers[] = {x, y, numbers};
  ftl_error error = {0};
  cr_assert_eq(ftl_interpret(program, buffers, NULL, &error), FTL_OK, "%s", error.message);
  for (int row = 0; row < SKETCH_ROWS; row++)
    for (int column = 0; column < COLUMNS; column++)
      cr_assert_eq(y[row * COLUMNS + column], numbers[column], "%d %d", row, column);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_columns, a_ring_of_another_length_is_refused) {
  column_sketch c = begin(COLUMNS / 2);
  scale_ones(&c, COLUMNS / 2);
  sketch_assert_refused(&c.s, "ring numbers does not hold a number for each column of scale");
}
