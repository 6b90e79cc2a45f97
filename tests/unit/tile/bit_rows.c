// MASK_BITS hides exactly the elements whose bits are 0, in one group of warps and in several.
#include <math.h>
#include <stdlib.h>

#include "sketch.h"
#include "tile/interpreter.h"

enum { ROWS = 16, COLUMNS = 64, WORDS = 2, NUM_TILES = 3, LISTED_ROWS = 11 };

static uint32_t bits[LISTED_ROWS * WORDS * NUM_TILES];

static void randomise_bits(void) {
  uint32_t x = 1;
  for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) bits[i] = x = x * 1664525 + 1013904223;
}

// CTA c stores ones, masked by the bits of columns c * 64 on.
static ftl_builder *begin(int32_t *tile, ftl_tile_ref *of_bits) {
  ftl_builder *b;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_create(&b, "masked", &error), FTL_OK);
  int32_t y = ftl_builder_tensor(b, "y", FTL_FP32, FTL_TENSOR_OUTPUT, ftl_contiguous(1, NUM_TILES, ROWS, COLUMNS));
  int32_t table = ftl_builder_bit_rows(b, "bits", bits, LISTED_ROWS, WORDS * NUM_TILES);
  ftl_builder_role(b, "main", 1, 0);
  *tile = ftl_builder_tile(b, "s", FTL_FP32, ROWS, COLUMNS);
  ftl_builder_grid(b, NUM_TILES, false, FTL_TILES_BY_STRIDE);
  ftl_expr zero = ftl_const(b, 0);
  *of_bits = (ftl_tile_ref){.tensor = table,
                            .batch = zero,
                            .head = zero,
                            .row = zero,
                            .present = FTL_ALWAYS,
                            .rows = LISTED_ROWS,
                            .columns = WORDS,
                            .column = ftl_mul(b, ftl_cta(b), ftl_const(b, WORDS))};
  ftl_fill(b, *tile, 1);
  (void)y;
  return b;
}

static ftl_tile_ref result(ftl_builder *b) {
  ftl_expr zero = ftl_const(b, 0);
  return (ftl_tile_ref){.tensor = 0,
                        .batch = zero,
                        .head = ftl_cta(b),
                        .row = zero,
                        .present = FTL_ALWAYS,
                        .rows = ROWS,
                        .columns = COLUMNS};
}

Test(unit_tile_bit_rows, elements_without_a_bit_are_hidden) {
  static float y[NUM_TILES * ROWS * COLUMNS], words[sizeof bits / sizeof *bits];
  float *tensors[] = {y, words};
  int32_t tile;
  ftl_tile_ref of_bits;
  ftl_tile_program *program;
  ftl_error error = {0};
  randomise_bits();
  ftl_builder *b = begin(&tile, &of_bits);
  ftl_mask_bits(b, tile, of_bits);
  ftl_store(b, result(b), tile, -1);
  cr_assert_eq(ftl_builder_finish(b, &program, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  for (int t = 0; t < NUM_TILES; t++)
    for (int r = 0; r < ROWS; r++)
      for (int c = 0; c < COLUMNS; c++) {
        int word = r * WORDS * NUM_TILES + t * WORDS + c / 32;
        bool seen = r < LISTED_ROWS && (bits[word] >> c % 32 & 1) != 0;
        cr_assert_eq(y[(t * ROWS + r) * COLUMNS + c], seen ? 1.0f : -INFINITY, "tile %d row %d column %d", t, r, c);
      }
  ftl_tile_program_destroy(program);
  ftl_builder_destroy(b);
}

static void assert_refused(ftl_builder *b, const char *reason) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_finish(b, &program, &error), FTL_BAD_INPUT);
  cr_assert(strstr(error.message, reason) != NULL, "\"%s\" does not say \"%s\"", error.message, reason);
  ftl_builder_destroy(b);
}

Test(unit_tile_bit_rows, a_mask_of_another_width_or_of_a_tensor_is_refused) {
  int32_t tile;
  ftl_tile_ref of_bits;
  ftl_builder *narrow = begin(&tile, &of_bits);
  of_bits.columns = 1;
  ftl_mask_bits(narrow, tile, of_bits);
  assert_refused(narrow, "11 rows of 1 words are not the bits of s: at most 16 rows of 64 bits");

  ftl_builder *unlisted = begin(&tile, &of_bits);
  ftl_tensor_shape shape = ftl_contiguous(1, 1, LISTED_ROWS, WORDS * NUM_TILES);
  of_bits.tensor = ftl_builder_tensor(unlisted, "x", FTL_FP32, FTL_TENSOR_INPUT, shape);
  ftl_mask_bits(unlisted, tile, of_bits);
  assert_refused(unlisted, "x is no table of bit rows");

  ftl_builder *looked_up = begin(&tile, &of_bits);
  ftl_lookup(looked_up, of_bits.tensor, ftl_const(looked_up, 0));
  assert_refused(looked_up, "a lookup takes a table");
}
