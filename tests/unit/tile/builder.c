// What the builder and ftl_tile_program_check accept and refuse.
#include <stdlib.h>

#include "sketch.h"

static int32_t fp16_ring(sketch *s, int32_t rows, int32_t columns, int32_t num_stages) {
  return ftl_builder_ring(s->b, "r", FTL_FP16, rows, columns, num_stages, 0, 1);
}

static void load_first_tile(sketch *s, int32_t ring) {
  ftl_acquire(s->b, ring);
  ftl_load(s->b, ring, sketch_ref(s, s->x, ftl_const(s->b, 0), ftl_const(s->b, 0)));
  ftl_commit(s->b, ring);
}

Test(unit_tile_builder, a_program_that_uses_its_stages_in_order_is_accepted) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 1), tile = ftl_builder_tile(s.b, "t", FTL_FP16, 16, 16);
  load_first_tile(&s, ring);
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, tile, ring);
  ftl_release(s.b, ring);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, ring);
  ftl_tile_program_destroy(sketch_finish(&s));
}

Test(unit_tile_builder, tensors_start_on_boundaries_of_2_mib_in_order_of_declaration) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_barrier(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  cr_assert_eq(program->tensors[s.x].base_bytes % (2 << 20), 0);
  // x has 2 heads * 40 rows * 16 columns * 2 bytes, far less than 2 MiB.
  cr_assert_eq(program->tensors[s.x].size_bytes, 2 * 40 * 16 * 2);
  cr_assert_eq(program->tensors[s.y].base_bytes, program->tensors[s.x].base_bytes + (2 << 20));
  ftl_tile_program_destroy(program);
}

Test(unit_tile_builder, roles_own_consecutive_warps_and_ops) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "producer", 1, 24);
  ftl_barrier(s.b);
  ftl_builder_role(s.b, "consumer", 8, 240);
  ftl_barrier(s.b);
  ftl_barrier(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  cr_assert_eq(ftl_tile_num_warps(program), 9);
  cr_assert_eq(program->roles[1].first_warp, 1);
  cr_assert_eq(program->roles[1].first_op, 1);
  cr_assert_eq(program->roles[1].num_ops, 2);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_builder, the_first_of_several_errors_is_reported_with_its_op) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_barrier(s.b);
  ftl_end_loop(s.b);
  ftl_loop_value(s.b, 7);
  sketch_assert_refused(&s, "sketch: op 1: end_loop without a loop");
}

Test(unit_tile_builder, a_loop_that_is_not_ended_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 3));
  sketch_assert_refused(&s, "a loop is not ended");
}

Test(unit_tile_builder, a_tensor_of_more_than_2_to_the_46_bytes_is_refused_without_overflow) {
  sketch s = sketch_create();
  ftl_tensor_shape shape = {INT64_MAX, INT64_MAX, 1, 16, INT64_MAX, INT64_MAX, 16};
  ftl_builder_tensor(s.b, "huge", FTL_FP16, FTL_TENSOR_INPUT, shape);
  sketch_assert_refused(&s, "tensor huge");
}

Test(unit_tile_builder, a_loop_variable_outside_its_loop_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 1);
  ftl_expr i = ftl_loop_value(s.b, ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 3)));
  ftl_end_loop(s.b);
  ftl_acquire(s.b, ring);
  ftl_load(s.b, ring, sketch_ref(&s, s.x, ftl_const(s.b, 0), i));
  sketch_assert_refused(&s, "op 3 (load): an expression of the tile of x uses a loop variable outside its loop");
}

Test(unit_tile_builder, products_of_shapes_that_do_not_fit_are_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 1);
  int32_t a = ftl_builder_tile(s.b, "a", FTL_FP16, 16, 32), c = ftl_builder_tile(s.b, "c", FTL_FP32, 16, 16);
  ftl_mma_value(s.b, c, a, ring, false);
  sketch_assert_refused(&s, "op 0 (mma): shapes do not fit: 16 x 16 += 16 x 32 by 16 x 16");
}

static void assert_product_refused(ftl_dtype operands, ftl_dtype sums, bool transpose_b, const char *message) {
  sketch s = sketch_create();
  int32_t role = ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "b", operands, 16, 16, 1, role, 1 << role);
  int32_t a = ftl_builder_tile(s.b, "a", operands, 16, 16), c = ftl_builder_tile(s.b, "c", sums, 16, 16);
  ftl_mma_value(s.b, c, a, ring, transpose_b);
  sketch_assert_refused(&s, message);
}

Test(unit_tile_builder, a_product_adds_up_in_types_that_tensor_cores_have) {
  assert_product_refused(FTL_BF16, FTL_FP16, false, "op 0 (mma): products of bf16 do not add up in fp16");
  assert_product_refused(FTL_INT8, FTL_FP32, true, "op 0 (mma): products of int8 do not add up in fp32");
  assert_product_refused(FTL_FP16, FTL_BF16, false, "op 0 (mma): products of fp16 do not add up in bf16");
  assert_product_refused(FTL_FP32, FTL_FP32, true, "A is fp32 and B fp32: a product needs one type");
}

Test(unit_tile_builder, bytes_and_words_are_not_transposed_on_their_way_to_registers) {
  assert_product_refused(FTL_INT8, FTL_INT32, false, "products of int8 need A stored [m][k] and B stored [n][k]");
  assert_product_refused(FTL_TF32, FTL_FP32, false, "products of tf32 need A stored [m][k] and B stored [n][k]");
}

Test(unit_tile_builder, a_value_of_another_role_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "first", 1, 0);
  int32_t value = ftl_builder_rows(s.b, "m", 16);
  ftl_fill(s.b, value, 0);
  ftl_builder_role(s.b, "second", 1, 0);
  ftl_fill(s.b, value, 0);
  sketch_assert_refused(&s, "op 1 (fill): the destination is not a value of this role");
}

Test(unit_tile_builder, operands_with_another_number_of_rows_are_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 32, 16), rows = ftl_builder_rows(s.b, "m", 16);
  ftl_elem(s.b, FTL_ELEM_MUL, tile, ftl_value_operand(tile), ftl_value_operand(rows), ftl_immediate(0));
  sketch_assert_refused(&s, "operand 2 does not fit t");
}

Test(unit_tile_builder, storing_to_an_input_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, 16);
  ftl_store(s.b, sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  sketch_assert_refused(&s, "stores to the input x");
}

// Two adjacent columns a thread are two rows of what is transposed.
Test(unit_tile_builder, vectors_are_not_loaded_transposed) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_value_layout layout = {.threads_per_row = 8, .vector_columns = 2};
  int32_t tile = ftl_builder_tile_by_rows(s.b, "t", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, layout);
  ftl_tile_ref ref = sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0));
  ref.transposed = true;
  ftl_load_tile(s.b, tile, ref);
  sketch_assert_refused(&s, "t is not held row-wise, an element a thread, as what is loaded transposed");
}

Test(unit_tile_builder, a_ring_op_of_a_role_that_is_not_its_producer_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "producer", 1, 0);
  ftl_barrier(s.b);
  ftl_builder_role(s.b, "consumer", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, 16, 16, 1, 0, 2);
  ftl_acquire(s.b, ring);
  sketch_assert_refused(&s, "role consumer is not a producer of ring r");
}

Test(unit_tile_builder, releasing_what_was_not_waited_for_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 2);
  load_first_tile(&s, ring);
  ftl_release(s.b, ring);
  sketch_assert_refused(&s, "op 3 (release r): the stage was not waited for");
}

Test(unit_tile_builder, loading_without_an_acquired_stage_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 2);
  ftl_load(s.b, ring, sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0)));
  sketch_assert_refused(&s, "op 0 (load r): no stage is acquired");
}

Test(unit_tile_builder, a_loaded_stage_that_nobody_waits_for_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  load_first_tile(&s, fp16_ring(&s, 16, 16, 2));
  sketch_assert_refused(&s, "ring r: a loaded stage was never waited for");
}

Test(unit_tile_builder, acquiring_more_stages_than_there_are_before_any_is_released_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 2);
  for (int i = 0; i < 3; i++) load_first_tile(&s, ring);
  sketch_assert_refused(&s, "op 6 (acquire r): role main waits for ever");
}

Test(unit_tile_builder, staging_through_a_ring_that_still_holds_a_stage_is_refused) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = fp16_ring(&s, 16, 16, 1), tile = ftl_builder_tile(s.b, "t", FTL_FP16, 16, 16);
  load_first_tile(&s, ring);
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, tile, ring);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, ring);
  sketch_assert_refused(&s, "op 5 (store r): the staging ring still holds a stage");
}

Test(unit_tile_builder, deeply_nested_long_loops_are_checked_quickly) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  for (int i = 0; i < FTL_TILE_MAX_LOOP_VARS; i++) ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, INT64_C(1) << 40));
  ftl_barrier(s.b);
  for (int i = 0; i < FTL_TILE_MAX_LOOP_VARS; i++) ftl_end_loop(s.b);
  ftl_tile_program_destroy(sketch_finish(&s));
}

Test(unit_tile_builder, the_text_of_a_program_names_its_parts) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 4, 0);
  int32_t rows = ftl_builder_rows(s.b, "m", 16);
  ftl_builder_through_registers(s.b, fp16_ring(&s, 16, 16, 1));
  ftl_expr i = ftl_loop_value(s.b, ftl_loop(s.b, ftl_cta(s.b), ftl_const(s.b, 9)));
  ftl_fill(s.b, rows, 2.5f);
  ftl_value_layout layout = {.threads_per_row = 8, .vector_columns = 2};
  int32_t tile = ftl_builder_tile_by_rows(s.b, "t", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, layout);
  ftl_load_tile_or(s.b, tile, sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0)), -1.0f);
  ftl_elem(s.b, FTL_ELEM_EXP2, rows, ftl_value_operand(rows), ftl_immediate(0), ftl_immediate(0));
  ftl_end_loop(s.b);
  ftl_tile_ref ref = sketch_ref(&s, s.y, ftl_const(s.b, 1), ftl_mul(s.b, ftl_cta(s.b), ftl_const(s.b, 16)));
  ref.columns = 1;
  ftl_store_rows(s.b, ref, rows);
  (void)i;
  ftl_tile_program *program = sketch_finish(&s);
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  ftl_tile_program_write(out, program);
  fclose(out);
  static const char *const parts[] = {"kernel sketch: 1 CTAs",
                                      "input x: fp16 [1][2][40][16]",
                                      "role main: 4 warps",
                                      "ring r: fp16 16 x 16, 1 stage, main -> main, through registers",
                                      "for i0 in cta .. 9",
                                      "m = 2.5",
                                      "t = x[0][0][0 +16][0 +16], -1 outside",
                                      "m = exp2(m)",
                                      "y[0][1][(cta * 16) +16][0 +1] <- m"};
  for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++)
    cr_assert(strstr(text, parts[p]) != NULL, "no \"%s\" in\n%s", parts[p], text);
  free(text);
  ftl_tile_program_destroy(program);
}
