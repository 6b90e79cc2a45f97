// Clusters in tile programs: what the check refuses, and whose tile the interpreter takes.
#include "sketch.h"
#include "tile/interpreter.h"

enum { CTAS = 4 };

// Each CTA copies 16 rows of x to y, its own head's; the loads of two CTAs are shared.
static void write_copy(sketch *s, ftl_expr row_of_x, int32_t cluster) {
  ftl_builder *b = s->b;
  int32_t producer = ftl_builder_role(b, "producer", 1, 0);
  int32_t ring = ftl_builder_ring(b, "x", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, producer, 2);
  ftl_builder_cluster(b, cluster);
  ftl_builder_multicast(b, ring, (ftl_multicast){2, 1});
  ftl_builder_grid(b, CTAS, false, FTL_TILES_BY_STRIDE);
  ftl_fill_stage(b, ring, sketch_ref(s, s->x, ftl_const(b, 0), row_of_x));
  ftl_builder_role(b, "consumer", 1, 0);
  int32_t tile = ftl_builder_tile(b, "t", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_wait(b, ring);
  ftl_fetch(b, tile, ring);
  ftl_release(b, ring);
  ftl_expr half = ftl_div(b, ftl_cta(b), ftl_const(b, 2));
  ftl_store(b, sketch_ref(s, s->y, half, ftl_mul(b, ftl_mod(b, ftl_cta(b), ftl_const(b, 2)), ftl_const(b, 16))), tile,
            -1);
}

Test(unit_tile_cluster, ctas_that_share_loads_and_load_different_tiles_are_refused) {
  sketch s = sketch_create();
  write_copy(&s, ftl_mul(s.b, ftl_mod(s.b, ftl_cta(s.b), ftl_const(s.b, 2)), ftl_const(s.b, 16)), 2);
  sketch_assert_refused(&s, "share its loads and load different tiles");
}

Test(unit_tile_cluster, a_cluster_that_does_not_divide_the_grid_is_refused) {
  sketch s = sketch_create();
  write_copy(&s, ftl_const(s.b, 0), 3);
  sketch_assert_refused(&s, "clusters of 3 CTAs in a grid of 4");
}

Test(unit_tile_cluster, loads_shared_by_more_ctas_than_a_cluster_has_are_refused) {
  sketch s = sketch_create();
  write_copy(&s, ftl_const(s.b, 0), 1);
  sketch_assert_refused(&s, "2 CTAs, every 1 of a cluster of 1, cannot share loads of 16 rows evenly");
}

// CTAs 0 and 1 read rows 0 to 15, CTAs 2 and 3 rows 16 to 31.
Test(unit_tile_cluster, both_halves_of_a_shared_tile_arrive) {
  enum { NUMBERS = 2 * SKETCH_LENGTH * SKETCH_COLUMNS };
  sketch s = sketch_create();
  write_copy(&s, ftl_mul(s.b, ftl_div(s.b, ftl_cta(s.b), ftl_const(s.b, 2)), ftl_const(s.b, 16)), 2);
  ftl_tile_program *program = sketch_finish(&s);
  static float x[NUMBERS], y[NUMBERS];
  for (int i = 0; i < NUMBERS; i++) x[i] = (float)(i % 1024);
  float *tensors[] = {x, y};
  ftl_error error = {0};
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  for (int cta = 0; cta < CTAS; cta++)
    for (int i = 0; i < SKETCH_ROWS * SKETCH_COLUMNS; i++)
      cr_assert_eq(y[(cta / 2 * SKETCH_LENGTH + cta % 2 * SKETCH_ROWS) * SKETCH_COLUMNS + i],
                   x[cta / 2 * SKETCH_ROWS * SKETCH_COLUMNS + i], "CTA %d, element %d", cta, i);
  ftl_tile_program_destroy(program);
}
