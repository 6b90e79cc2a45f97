// Row-wise values and direct loads: a softmax of rows that begin at column 8 of a tensor, plus a number a row.
#include <criterion/criterion.h>
#include <math.h>

#include "lower/checker.h"
#include "lower/lower.h"
#include "lower/walk.h"
#include "script/arch_loader.h"
#include "tile/builder.h"
#include "tile/interpreter.h"

enum { ROWS = 6, COLUMNS = 1000, FIRST = 8, LEFT_OUT = 16 };

typedef struct sketch {
  int32_t num_warps, rows, columns, threads_per_row, vector_columns;
  ftl_dtype dtype;
} sketch;

static ftl_tensor_shape shape_of(int64_t num_columns) {
  return (ftl_tensor_shape){1, 1, ROWS, num_columns, 0, 0, num_columns};
}

// y[row][FIRST ...] = softmax(x[row][FIRST .. COLUMNS - LEFT_OUT]) + bias[row]
static ftl_tile_program *build(const sketch *k) {
  ftl_builder *b;
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_create(&b, "rows", &error), FTL_OK);
  int32_t x = ftl_builder_tensor(b, "x", k->dtype, FTL_TENSOR_INPUT, shape_of(COLUMNS));
  int32_t y = ftl_builder_tensor(b, "y", k->dtype, FTL_TENSOR_OUTPUT, shape_of(COLUMNS));
  int32_t bias = ftl_builder_tensor(b, "bias", FTL_FP32, FTL_TENSOR_INPUT, shape_of(1));
  int32_t top_out = ftl_builder_tensor(b, "top", FTL_FP32, FTL_TENSOR_OUTPUT, shape_of(1));
  ftl_builder_role(b, "main", k->num_warps, 0);
  ftl_value_layout layout = {k->threads_per_row, k->vector_columns};
  int32_t raw = ftl_builder_tile_by_rows(b, "raw", k->dtype, k->rows, k->columns, layout);
  int32_t s = ftl_builder_tile_by_rows(b, "s", FTL_FP32, k->rows, k->columns, layout);
  int32_t top = ftl_builder_rows_by_rows(b, "top", k->rows, layout);
  int32_t sum = ftl_builder_rows_by_rows(b, "sum", k->rows, layout);
  int32_t add = ftl_builder_rows_by_rows(b, "bias", k->rows, layout);
  ftl_expr zero = ftl_const(b, 0);
  ftl_tile_ref ref = {.tensor = x,
                      .batch = zero,
                      .head = zero,
                      .row = ftl_mul(b, ftl_cta(b), ftl_const(b, k->rows)),
                      .present = FTL_ALWAYS,
                      .rows = k->rows,
                      .columns = k->columns < COLUMNS ? k->columns : COLUMNS,
                      .column = ftl_const(b, FIRST),
                      .column_end = ftl_const(b, COLUMNS - LEFT_OUT)};
  ftl_tile_ref row_ref = {.tensor = x, .row = ref.row, .present = FTL_ALWAYS, .rows = k->rows, .columns = 1};
  ftl_operand none = ftl_immediate(0);
  ftl_load_tile(b, raw, ref);
  row_ref.tensor = bias;
  ftl_load_rows(b, add, row_ref);
  ftl_convert(b, s, raw);
  ftl_mask(b, s, ref.row, ref.column, FTL_ALWAYS, ref.column_end);
  ftl_fill(b, top, -INFINITY);
  ftl_reduce_rows(b, FTL_ELEM_MAX, top, s);
  ftl_reduce_lanes(b, FTL_ELEM_MAX, top);
  ftl_elem(b, FTL_ELEM_SUB, s, ftl_value_operand(s), ftl_value_operand(top), none);
  ftl_elem(b, FTL_ELEM_EXP2, s, ftl_value_operand(s), none, none);
  ftl_fill(b, sum, 0);
  ftl_reduce_rows(b, FTL_ELEM_ADD, sum, s);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, sum);
  ftl_elem(b, FTL_ELEM_RECIP, sum, ftl_value_operand(sum), none, none);
  ftl_elem(b, FTL_ELEM_FMA, s, ftl_value_operand(s), ftl_value_operand(sum), ftl_value_operand(add));
  ftl_convert(b, raw, s);
  ref.tensor = y;
  ftl_store(b, ref, raw, -1);
  row_ref.tensor = top_out;
  ftl_store_rows(b, row_ref, top);
  ftl_builder_grid(b, (ROWS + k->rows - 1) / k->rows, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(b, &program, &error), FTL_OK, "%s", error.message);
  ftl_builder_destroy(b);
  return program;
}

static const sketch sketches[] = {
    {4, 1, 1024, 128, 8, FTL_FP16},   // a row a CTA
    {4, 4, 1024, 32, 8, FTL_FP16},    // a row a warp
    {2, 16, 1024, 4, 8, FTL_FP16},    // eight rows a warp
    {12, 3, 1024, 128, 4, FTL_FP16},  // three groups of four warps, 8 bytes a lane
    {16, 1, 2048, 512, 4, FTL_FP32},  // more warps a row than are chained
    {1, 2, 1024, 32, 4, FTL_FP32},    // two rows a lane
};
enum { NUM_SKETCHES = sizeof sketches / sizeof *sketches };

Test(unit_lower_by_rows, the_interpreter_reads_and_writes_only_the_columns_asked_for) {
  static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], bias[ROWS], top[ROWS];
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = ftl_dtype_round(FTL_FP16, (float)(i % 97) / 16.0f);
  for (int r = 0; r < ROWS; r++) bias[r] = (float)r;
  for (int k = 0; k < NUM_SKETCHES; k++) {
    ftl_tile_program *program = build(&sketches[k]);
    float *tensors[] = {x, y, bias, top};
    ftl_error error = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++) y[i] = -1;
    cr_assert_eq(ftl_interpret(program, tensors, NULL, &error), FTL_OK, "%s", error.message);
    for (int r = 0; r < ROWS; r++) {
      double sum = 0, largest = -INFINITY;
      for (int c = FIRST; c < COLUMNS - LEFT_OUT; c++) largest = fmax(largest, x[r * COLUMNS + c]);
      for (int c = FIRST; c < COLUMNS - LEFT_OUT; c++) sum += exp2(x[r * COLUMNS + c] - largest);
      cr_expect_float_eq(top[r], (float)largest, 0);
      for (int c = 0; c < COLUMNS; c++) {
        bool inside = c >= FIRST && c < COLUMNS - LEFT_OUT;
        double expected = inside ? exp2(x[r * COLUMNS + c] - largest) / sum + bias[r] : -1;
        // a rounding to fp16 of numbers up to 8: 2^-8
        cr_assert_float_eq(y[r * COLUMNS + c], expected, 1.0 / 256, "sketch %d row %d column %d", k, r, c);
      }
    }
    ftl_tile_program_destroy(program);
  }
}

static ftl_warp_program *lower(const ftl_tile_program *tile, const ftl_arch *arch) {
  ftl_warp_program *warps;
  ftl_error error = {0};
  cr_assert_eq(ftl_lower(tile, arch, (ftl_lower_options){0}, &warps, &error), FTL_OK, "%s", error.message);
  return warps;
}

static ftl_arch *arch_of(const char *name) {
  ftl_arch *arch;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

Test(unit_lower_by_rows, each_byte_is_loaded_and_stored_once_on_every_generation) {
  const char *const names[] = {"v100", "t4", "a100_80", "h200"};
  for (int a = 0; a < 4; a++) {
    ftl_arch *arch = arch_of(names[a]);
    for (int k = 0; k < NUM_SKETCHES; k++) {
      ftl_tile_program *tile = build(&sketches[k]);
      ftl_warp_program *warps = lower(tile, arch);
      ftl_error error = {0};
      for (int64_t cta = 0; cta < tile->num_ctas; cta++)
        cr_assert_eq(ftl_checker_prove(warps, cta, &error), FTL_OK, "%s sketch %d: %s", names[a], k, error.message);
      ftl_warp_program_destroy(warps);
      ftl_tile_program_destroy(tile);
    }
    ftl_arch_destroy(arch);
  }
}

static int64_t count(const ftl_warp_program *p, ftl_opcode opcode) {
  int64_t n = 0;
  for (int32_t i = 0; i < p->num_insts; i++)
    if (p->insts[i].opcode == opcode) n += p->insts[i].repeat;
  return n;
}

// A row of 1024 halves over 4 warps: one 16-byte load and store a lane (and a load of the bias, a store of the
// maximum); two reductions of five shuffles, each between two barriers, with a store and a 16-byte load of the parts;
// 8 exponentials a lane and one reciprocal.
Test(unit_lower_by_rows, instructions_follow_from_the_layout) {
  ftl_arch *arch = arch_of("h200");
  ftl_tile_program *tile = build(&sketches[0]);
  ftl_warp_program *p = lower(tile, arch);
  cr_expect_eq(count(p, FTL_OP_LDG), 2);
  cr_expect_eq(count(p, FTL_OP_STG), 2);
  cr_expect_eq(count(p, FTL_OP_SHFL), 10);
  cr_expect_eq(count(p, FTL_OP_BAR_SYNC), 4);
  cr_expect_eq(count(p, FTL_OP_STS), 2);
  cr_expect_eq(count(p, FTL_OP_LDS), 2);
  cr_expect_eq(count(p, FTL_OP_MUFU), 9);
  cr_expect_eq(count(p, FTL_OP_CVT), 4);
  cr_expect_eq(p->shared_bytes, 4 * 4, "four warps' parts");
  ftl_warp_program_destroy(p);
  ftl_tile_program_destroy(tile);
  ftl_arch_destroy(arch);
}

// A warp of the second row's four warps, of rows 3 and 4: its quarter of the row, clipped at column_end.
Test(unit_lower_by_rows, the_warps_of_a_row_follow_each_other_in_it) {
  ftl_access access = {
      .num_rows = 1, .warp_row_step = 1, .row_step = 1, .bytes = 512, .row_warps = 4, .warp_column_bytes = 512};
  ftl_tile_place place = {.address_bytes = 4096, .row_stride_bytes = 2048, .num_rows = 2, .row_bytes = 1600};
  ftl_access_start start = ftl_access_start_of(&access, &place, 7);
  cr_expect_eq(start.row, 1);
  cr_expect_eq(start.column_byte, 1536);
  cr_expect_eq(start.bytes, 64);
  ftl_line lines[8];
  cr_assert_eq(ftl_access_lines(&access, &place, 7, lines, 8), 1);
  cr_expect_eq(lines[0].line, (4096 + 2048 + 1536) / 128);
  cr_expect_eq(lines[0].sectors, 0x3);
}
