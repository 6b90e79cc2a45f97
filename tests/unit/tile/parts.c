// Stages that several loads fill, and products of parts of k.
#include <string.h>

#include "tile/interpreter.h"

#include "sketch.h"

enum { ROWS = SKETCH_ROWS, COLUMNS = SKETCH_COLUMNS, NUM_ELEMENTS = 2 * SKETCH_LENGTH * COLUMNS };

typedef struct parts_sketch {
  sketch s;
  int32_t ring, sum;
} parts_sketch;

static parts_sketch begin(void) {
  parts_sketch p = {.s = sketch_create()};
  ftl_builder_role(p.s.b, "main", 1, 0);
  p.ring = ftl_builder_ring(p.s.b, "r", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  p.sum = ftl_builder_tile(p.s.b, "sum", FTL_FP32, ROWS, COLUMNS);
  return p;
}

// Rows from `row` on of x's first tile, into those from `ring_row` on of the stage.
static void load_rows(const parts_sketch *p, int32_t row, int32_t num_rows, int32_t ring_row) {
  ftl_tile_ref ref = sketch_ref(&p->s, p->s.x, ftl_const(p->s.b, 0), ftl_const(p->s.b, row));
  ref.rows = num_rows;
  ftl_load(p->s.b, p->ring, ref);
  ftl_at_ring_row(p->s.b, ring_row);
}

static void fill(const parts_sketch *p, int32_t first_rows, int32_t second_row) {
  ftl_acquire(p->s.b, p->ring);
  load_rows(p, 0, first_rows, 0);
  load_rows(p, first_rows, ROWS - first_rows, second_row);
  ftl_commit(p->s.b, p->ring);
  ftl_wait(p->s.b, p->ring);
  ftl_fill(p->s.b, p->sum, 0);
}

static void finish(const parts_sketch *p) {
  ftl_release(p->s.b, p->ring);
  ftl_store(p->s.b, sketch_ref(&p->s, p->s.y, ftl_const(p->s.b, 0), ftl_const(p->s.b, 0)), p->sum, -1);
}

static void run(parts_sketch *p, float *x, float *y) {
  float *tensors[] = {x, y};
  ftl_error error = {0};
  ftl_tile_program *program = sketch_finish(&p->s);
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  ftl_tile_program_destroy(program);
}

// X X^T over columns 4 to 11 of rows that two loads have brought.
Test(unit_tile_parts, a_product_sums_a_part_of_k_of_a_stage_that_two_loads_filled) {
  parts_sketch p = begin();
  fill(&p, 8, 8);
  ftl_mma_shared(p.s.b, p.sum, p.ring, p.ring, true);
  ftl_part_of_k(p.s.b, 4, 8);
  finish(&p);
  float x[NUM_ELEMENTS], y[NUM_ELEMENTS];
  for (int i = 0; i < NUM_ELEMENTS; i++) x[i] = (float)((i / COLUMNS + i % COLUMNS) % 3);
  run(&p, x, y);
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < ROWS; c++) {
      float wanted = 0;
      for (int k = 4; k < 12; k++) wanted += (float)((r + k) % 3 * ((c + k) % 3));
      cr_expect_eq(y[r * COLUMNS + c], wanted, "row %d, column %d: %g, not %g", r, c, (double)y[r * COLUMNS + c],
                   (double)wanted);
    }
}

// Columns 4 to 11 of X by its rows 0 to 7, which a ring of their own holds.
static void multiply_by_part(parts_sketch *p, int32_t num_k) {
  enum { PART = 8 };
  int32_t part = ftl_builder_ring(p->s.b, "part", FTL_FP16, PART, COLUMNS, 1, 0, 1);
  fill(p, 8, 8);
  ftl_tile_ref ref = sketch_ref(&p->s, p->s.x, ftl_const(p->s.b, 0), ftl_const(p->s.b, 0));
  ref.rows = PART;
  ftl_fill_stage(p->s.b, part, ref);
  ftl_wait(p->s.b, part);
  ftl_mma_shared(p->s.b, p->sum, p->ring, part, false);
  ftl_part_of_k(p->s.b, 4, num_k);
  ftl_release(p->s.b, part);
  finish(p);
}

Test(unit_tile_parts, a_product_takes_a_ring_that_holds_its_terms_alone) {
  parts_sketch p = begin();
  multiply_by_part(&p, 8);
  float x[NUM_ELEMENTS], y[NUM_ELEMENTS];
  for (int i = 0; i < NUM_ELEMENTS; i++) x[i] = (float)((i / COLUMNS + 2 * (i % COLUMNS)) % 5);
  run(&p, x, y);
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++) {
      float wanted = 0;
      for (int k = 4; k < 12; k++) wanted += (float)((r + 2 * k) % 5 * ((k - 4 + 2 * c) % 5));
      cr_expect_eq(y[r * COLUMNS + c], wanted, "row %d, column %d: %g, not %g", r, c, (double)y[r * COLUMNS + c],
                   (double)wanted);
    }
}

Test(unit_tile_parts, a_ring_of_another_number_of_terms_is_refused) {
  parts_sketch p = begin();
  multiply_by_part(&p, 4);
  sketch_assert_refused(&p.s, "shapes do not fit: 16 x 16 += 16 x 16 by 8 x 16");
}

Test(unit_tile_parts, only_a_mask_is_applied_again) {
  parts_sketch p = begin();
  ftl_fill(p.s.b, p.sum, 0);
  ftl_mask_again(p.s.b);
  sketch_assert_refused(&p.s, "only a mask is applied again");
}

Test(unit_tile_parts, the_text_names_rows_and_terms) {
  parts_sketch p = begin();
  fill(&p, 8, 8);
  ftl_mma_shared(p.s.b, p.sum, p.ring, p.ring, true);
  ftl_part_of_k(p.s.b, 4, 8);
  finish(&p);
  ftl_tile_program *program = sketch_finish(&p.s);
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  ftl_tile_program_write(out, program);
  fclose(out);
  cr_expect(strstr(text, "r[8..] <- x[0][0][8 +8]") != NULL, "%s", text);
  cr_expect(strstr(text, "sum += r(shared) x r^T, k 4..11") != NULL, "%s", text);
  free(text);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_parts, rows_beyond_the_stage_are_refused) {
  parts_sketch p = begin();
  fill(&p, 8, 9);
  finish(&p);
  sketch_assert_refused(&p.s, "a tile of 8 x 16 does not fit ring r of 16 x 16 from row 9 on");
}

Test(unit_tile_parts, terms_beyond_k_are_refused) {
  static const struct { int32_t first, count; } parts[] = {{8, 9}, {-1, 4}, {4, 0}, {17, 1}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    parts_sketch p = begin();
    fill(&p, 8, 8);
    ftl_mma_shared(p.s.b, p.sum, p.ring, p.ring, true);
    ftl_part_of_k(p.s.b, parts[i].first, parts[i].count);
    finish(&p);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a sum over %d terms from %d on, of 16", parts[i].count, parts[i].first);
    sketch_assert_refused(&p.s, wanted);
  }
}

Test(unit_tile_parts, only_a_product_of_two_rings_sums_a_part) {
  parts_sketch p = begin();
  ftl_fill(p.s.b, p.sum, 0);
  ftl_part_of_k(p.s.b, 0, 8);
  sketch_assert_refused(&p.s, "only a product that takes A from a ring sums a part of k");
}
