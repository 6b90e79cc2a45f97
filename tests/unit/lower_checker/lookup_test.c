// Lookups in tables: loaded from global memory where the tile program has them, on every generation.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "lower/lower.h"
#include "script/arch_loader.h"
#include "tile/builder.h"

enum { ROWS = 64, COLUMNS = 64, LENGTH = 512, NUM_CTAS = 3, LISTED = 8 };

// CTA c reads counts[c] tiles of x, which begin at the rows that its part of the list names, and stores the last.
static const int32_t counts[NUM_CTAS] = {5, 0, 8};
static const int32_t rows[NUM_CTAS * LISTED] = {448, 0, 64, 0, 128, 0, 0, 0, 0,  0,   0,   0,
                                                0,   0, 0,  0, 64,  0, 0, 0, 64, 192, 256, 320};
enum { X, Y, COUNTS, LIST };

static ftl_tile_program *build(void) {
  ftl_builder *b;
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_create(&b, "listed", &error), FTL_OK);
  int32_t x = ftl_builder_tensor(b, "x", FTL_FP16, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, LENGTH, COLUMNS));
  int32_t y = ftl_builder_tensor(b, "y", FTL_FP16, FTL_TENSOR_OUTPUT, ftl_contiguous(1, NUM_CTAS, ROWS, COLUMNS));
  int32_t count_of = ftl_builder_table(b, "counts", counts, NUM_CTAS);
  int32_t list = ftl_builder_table(b, "list", rows, NUM_CTAS * LISTED);
  int32_t role = ftl_builder_role(b, "main", 4, 0);
  int32_t ring = ftl_builder_ring(b, "x", FTL_FP16, ROWS, COLUMNS, 1, role, 1 << role);
  int32_t half = ftl_builder_tile(b, "half", FTL_FP16, ROWS, COLUMNS);
  ftl_expr zero = ftl_const(b, 0), count = ftl_lookup(b, count_of, ftl_cta(b));
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, zero, count));
  ftl_expr row = ftl_lookup(b, list, ftl_add(b, ftl_mul(b, ftl_cta(b), ftl_const(b, LISTED)), i));
  ftl_fill_stage(b, ring,
                 (ftl_tile_ref){.tensor = x, .row = row, .present = FTL_ALWAYS, .rows = ROWS, .columns = COLUMNS});
  ftl_wait(b, ring);
  ftl_fetch(b, half, ring);
  ftl_release(b, ring);
  ftl_end_loop(b);
  ftl_store(b, (ftl_tile_ref){.tensor = y, .head = ftl_cta(b), .present = FTL_ALWAYS, .rows = ROWS, .columns = COLUMNS},
            half, -1);
  ftl_builder_grid(b, NUM_CTAS, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(b, &program, &error), FTL_OK, "%s", error.message);
  ftl_builder_destroy(b);
  return program;
}

Test(unit_lower_lookup, entries_are_read_once_a_cta_and_once_an_iteration_on_every_generation) {
  const char *const names[] = {"v100", "t4", "a100_80", "h200"};
  for (int a = 0; a < 4; a++) {
    ftl_arch *arch;
    ftl_warp_program *warps;
    ftl_error error = {0};
    cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", names[a], &arch, &error), FTL_OK, "%s", error.message);
    ftl_tile_program *tile = build();
    cr_assert_eq(ftl_lower(tile, arch, (ftl_lower_options){0}, &warps, &error), FTL_OK, "%s", error.message);
    for (int64_t cta = 0; cta < NUM_CTAS; cta++) {
      ftl_work work;
      cr_assert_eq(ftl_checker_prove(warps, cta, &error), FTL_OK, "%s: %s", names[a], error.message);
      cr_assert_eq(ftl_work_of_warps(warps, cta, &work, &error), FTL_OK);
      cr_expect_eq(work.load_bytes[COUNTS], 4, "%s", names[a]);
      cr_expect_eq(work.load_bytes[LIST], 4 * counts[cta], "%s", names[a]);
      cr_expect_eq(work.load_bytes[X], (int64_t)counts[cta] * ROWS * COLUMNS * 2, "%s", names[a]);
    }
    ftl_warp_program_destroy(warps);
    ftl_tile_program_destroy(tile);
    ftl_arch_destroy(arch);
  }
}
