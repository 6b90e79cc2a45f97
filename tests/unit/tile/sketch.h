// A kernel under construction: two fp16 tensors, x to read and y to write, and how to finish or be refused.
#ifndef FTL_TESTS_TILE_SKETCH_H
#define FTL_TESTS_TILE_SKETCH_H

#include <criterion/criterion.h>
#include <string.h>

#include "tile/builder.h"

enum { SKETCH_ROWS = 16, SKETCH_COLUMNS = 16, SKETCH_LENGTH = 40 };

typedef struct sketch {
  ftl_builder *b;
  ftl_error error;
  int32_t x, y;  // tensors: 2 heads of 40 rows, fp16
} sketch;

static inline sketch sketch_create(void) {
  sketch s = {0};
  cr_assert_eq(ftl_builder_create(&s.b, "sketch", &s.error), FTL_OK);
  ftl_tensor_shape shape = {1,
                            2,
                            SKETCH_LENGTH,
                            SKETCH_COLUMNS,
                            2 * SKETCH_LENGTH * SKETCH_COLUMNS,
                            SKETCH_LENGTH * SKETCH_COLUMNS,
                            SKETCH_COLUMNS};
  s.x = ftl_builder_tensor(s.b, "x", FTL_FP16, FTL_TENSOR_INPUT, shape);
  s.y = ftl_builder_tensor(s.b, "y", FTL_FP16, FTL_TENSOR_OUTPUT, shape);
  return s;
}

// Tile `row` of head `head`, always present.
static inline ftl_tile_ref sketch_ref(const sketch *s, int32_t tensor, ftl_expr head, ftl_expr row) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = ftl_const(s->b, 0),
                        .head = head,
                        .row = row,
                        .present = FTL_ALWAYS,
                        .rows = SKETCH_ROWS,
                        .columns = SKETCH_COLUMNS};
}

static inline ftl_tile_program *sketch_finish(sketch *s) {
  ftl_tile_program *program;
  cr_assert_eq(ftl_builder_finish(s->b, &program, &s->error), FTL_OK, "%s", s->error.message);
  ftl_builder_destroy(s->b);
  return program;
}

static inline void sketch_assert_refused(sketch *s, const char *reason) {
  ftl_tile_program *program;
  cr_assert_eq(ftl_builder_finish(s->b, &program, &s->error), FTL_BAD_INPUT, "not refused: %s", reason);
  cr_assert_null(program);
  cr_assert(strstr(s->error.message, reason) != NULL, "\"%s\" does not say \"%s\"", s->error.message, reason);
  ftl_builder_destroy(s->b);
}

#endif
