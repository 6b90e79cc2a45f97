// Stages that are made from stages of another ring: numbers times their scales, and transposes.
#include <criterion/criterion.h>
#include <string.h>

#include "tile/builder.h"
#include "tile/interpreter.h"

enum { ROWS = 16, COLUMNS = 32, GROUPS = 2 };

typedef struct kernel {
  ftl_builder *b;
  int32_t in, scales, out;  // tensors
  int32_t stored, scale_ring, ring;
} kernel;

static ftl_tile_ref whole(const kernel *k, int32_t tensor, int32_t rows, int32_t columns) {
  ftl_expr zero = ftl_const(k->b, 0);
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = zero,
                        .head = zero,
                        .row = zero,
                        .present = FTL_ALWAYS,
                        .rows = rows,
                        .columns = columns};
}

static int32_t ring_of(kernel *k, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns) {
  return ftl_builder_ring(k->b, name, dtype, rows, columns, 1, 0, 1);
}

// in [16][32] of `dtype` (int4: 16 pairs a row), scales [2][16], to a stage of `rows` x `columns`.
static kernel kernel_of(ftl_dtype dtype, ftl_dtype out, int32_t rows, int32_t columns) {
  kernel k;
  ftl_error error = {0};
  int32_t stored_columns = COLUMNS / ftl_dtype_numbers(dtype);
  cr_assert_eq(ftl_builder_create(&k.b, "stages", &error), FTL_OK);
  k.in = ftl_builder_tensor(k.b, "in", dtype, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, ROWS, stored_columns));
  k.scales = ftl_builder_tensor(k.b, "scales", FTL_FP16, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, GROUPS, ROWS));
  k.out = ftl_builder_tensor(k.b, "out", out, FTL_TENSOR_OUTPUT, ftl_contiguous(1, 1, rows, columns));
  ftl_builder_role(k.b, "main", 1, 0);
  k.stored = ring_of(&k, "stored", dtype, ROWS, stored_columns);
  k.scale_ring = ring_of(&k, "scales", FTL_FP16, GROUPS, ROWS);
  k.ring = ring_of(&k, "ring", out, rows, columns);
  ftl_fill_stage(k.b, k.stored, whole(&k, k.in, ROWS, stored_columns));
  ftl_fill_stage(k.b, k.scale_ring, whole(&k, k.scales, GROUPS, ROWS));
  ftl_wait(k.b, k.stored);
  ftl_wait(k.b, k.scale_ring);
  ftl_acquire(k.b, k.ring);
  return k;
}

static ftl_status finish(kernel *k, ftl_tile_program **program, ftl_error *error) {
  ftl_commit(k->b, k->ring);
  ftl_wait(k->b, k->ring);
  ftl_builder_grid(k->b, 1, false, FTL_TILES_BY_STRIDE);
  ftl_status status = ftl_builder_finish(k->b, program, error);
  ftl_builder_destroy(k->b);
  return status;
}

// Stores the stage that was made, and runs.
static void run(kernel *k, ftl_dtype dtype, int32_t rows, int32_t columns, float *const *tensors) {
  ftl_tile_program *program;
  ftl_error error = {0};
  int32_t tile = ftl_builder_tile(k->b, "tile", dtype, rows, columns);
  ftl_commit(k->b, k->ring);
  ftl_wait(k->b, k->ring);
  ftl_fetch(k->b, tile, k->ring);
  ftl_store(k->b, whole(k, k->out, rows, columns), tile, -1);
  const int32_t rings[] = {k->stored, k->scale_ring, k->ring};
  for (int i = 0; i < 3; i++) ftl_release(k->b, rings[i]);
  ftl_builder_grid(k->b, 1, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(k->b, &program, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
  ftl_tile_program_destroy(program);
  ftl_builder_destroy(k->b);
}

static float in[ROWS * COLUMNS], scales[GROUPS * ROWS], out[ROWS * COLUMNS];
static float *const tensors[] = {in, scales, out};

Test(unit_tile_stages, bytes_are_multiplied_by_the_scale_of_their_row_and_group) {
  for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = (float)(i % 256 - 128);
  for (int i = 0; i < GROUPS * ROWS; i++) scales[i] = 0.25f + 0.125f * (float)i;
  kernel k = kernel_of(FTL_INT8, FTL_FP16, ROWS, COLUMNS);
  ftl_dequantize(k.b, k.ring, k.stored, k.scale_ring);
  run(&k, FTL_FP16, ROWS, COLUMNS, tensors);
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++) {
      float exact = in[r * COLUMNS + c] * scales[c / (COLUMNS / GROUPS) * ROWS + r];
      cr_assert_eq(out[r * COLUMNS + c], ftl_dtype_round(FTL_FP16, exact));
    }
}

Test(unit_tile_stages, nibbles_are_signed_and_the_lower_comes_first) {
  for (int i = 0; i < GROUPS * ROWS; i++) scales[i] = 2;
  for (int i = 0; i < ROWS * COLUMNS / 2; i++) in[i] = ftl_int4x2_pack(i % 16 - 8, 7 - i / 16 % 16);
  kernel k = kernel_of(FTL_INT4X2, FTL_FP16, ROWS, COLUMNS);
  ftl_dequantize(k.b, k.ring, k.stored, k.scale_ring);
  run(&k, FTL_FP16, ROWS, COLUMNS, tensors);
  for (int i = 0; i < ROWS * COLUMNS / 2; i++) {
    cr_assert_eq(out[2 * i], 2 * (float)(i % 16 - 8));
    cr_assert_eq(out[2 * i + 1], 2 * (float)(7 - i / 16 % 16));
  }
}

Test(unit_tile_stages, rows_become_columns) {
  for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = (float)(i % 16);
  in[3 * COLUMNS + 5] = 448;
  kernel k = kernel_of(FTL_FP8_E4M3, FTL_FP8_E4M3, COLUMNS, ROWS);
  ftl_transpose(k.b, k.ring, k.stored);
  run(&k, FTL_FP8_E4M3, COLUMNS, ROWS, tensors);
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++) cr_assert_eq(out[c * ROWS + r], in[r * COLUMNS + c]);
}

static void assert_refused(kernel *k, const char *message) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(finish(k, &program, &error), FTL_BAD_INPUT);
  cr_assert(strstr(error.message, message) != NULL, "\"%s\" does not say \"%s\"", error.message, message);
}

Test(unit_tile_stages, what_does_not_fit_is_refused) {
  kernel k = kernel_of(FTL_INT8, FTL_FP16, COLUMNS, ROWS);
  ftl_dequantize(k.b, k.ring, k.stored, k.scale_ring);
  assert_refused(&k, "ring stored holds other numbers than ring ring");
  k = kernel_of(FTL_FP16, FTL_FP16, ROWS, COLUMNS);
  ftl_dequantize(k.b, k.ring, k.stored, k.scale_ring);
  assert_refused(&k, "fp16 is not dequantised to fp16");
  k = kernel_of(FTL_INT8, FTL_BF16, ROWS, COLUMNS);
  ftl_dequantize(k.b, k.ring, k.stored, k.scale_ring);
  assert_refused(&k, "ring scales does not hold a scale for each row and group of columns of ring ring");
  k = kernel_of(FTL_FP8_E4M3, FTL_FP8_E4M3, ROWS, COLUMNS);
  ftl_transpose(k.b, k.ring, k.stored);
  assert_refused(&k, "ring ring is not ring stored of one-byte elements, transposed");
}
