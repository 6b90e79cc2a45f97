// Operations on tiles: products, elementwise, reductions, conversions.
#include "tile/builder_internal.h"

ftl_operand ftl_value_operand(int32_t value) { return (ftl_operand){.value = value}; }
ftl_operand ftl_immediate(float x) { return (ftl_operand){.value = -1, .immediate = x}; }

void ftl_fill(ftl_builder *builder, int32_t dst, float x) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_FILL);
  op.dst = dst;
  op.a = ftl_immediate(x);
  ftl_builder_add_op(builder, op);
}

void ftl_transpose(ftl_builder *builder, int32_t ring, int32_t from) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_TRANSPOSE);
  op.ring = ring;
  op.ring_a = from;
  ftl_builder_add_op(builder, op);
}

void ftl_dequantize(ftl_builder *builder, int32_t ring, int32_t from, int32_t scales) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_DEQUANTIZE);
  op.ring = ring;
  op.ring_a = from;
  op.ring_scales = scales;
  ftl_builder_add_op(builder, op);
}

static void mma_add(ftl_builder *builder, ftl_tile_op op) {
  if (ftl_builder_is_ok(builder) && op.dst >= 0 && op.dst < builder->program->num_values)
    builder->program->values[op.dst].accumulates = true;
  ftl_builder_add_op(builder, op);
}

void ftl_mma_shared(ftl_builder *builder, int32_t dst, int32_t ring_a, int32_t ring_b, bool transpose_b) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MMA);
  op.dst = dst;
  op.ring_a = ring_a;
  op.ring = ring_b;
  op.transpose_b = transpose_b;
  mma_add(builder, op);
}

// The op added last, if it is a product that takes A from a ring; NULL: it is none.
static ftl_tile_op *last_shared_product(const ftl_builder *builder) {
  ftl_tile_program *program = builder->program;
  ftl_tile_op *last = program->num_ops > 0 ? &program->ops[program->num_ops - 1] : NULL;
  return last && last->kind == FTL_TILE_MMA && last->ring_a >= 0 ? last : NULL;
}

void ftl_transposed_a(ftl_builder *builder) {
  if (!ftl_builder_is_ok(builder)) return;
  ftl_tile_op *product = last_shared_product(builder);
  if (product)
    product->transpose_a = true;
  else
    ftl_builder_fail(builder, FTL_BAD_INPUT, "only a product that takes A from a ring takes it transposed");
}

void ftl_fetched_b(ftl_builder *builder, int32_t b) {
  if (!ftl_builder_is_ok(builder)) return;
  ftl_tile_program *program = builder->program;
  ftl_tile_op *last = program->num_ops > 0 ? &program->ops[program->num_ops - 1] : NULL;
  if (last && last->kind == FTL_TILE_MMA)
    last->b = ftl_value_operand(b);
  else
    ftl_builder_fail(builder, FTL_BAD_INPUT, "only a product takes B from registers");
}

void ftl_part_of_k(ftl_builder *builder, int32_t first_k, int32_t num_k) {
  if (!ftl_builder_is_ok(builder)) return;
  ftl_tile_op *product = last_shared_product(builder);
  if (!product) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "only a product that takes A from a ring sums a part of k");
    return;
  }
  product->first_k = first_k;
  product->num_k = num_k;
}

void ftl_mma_value(ftl_builder *builder, int32_t dst, int32_t a, int32_t ring_b, bool transpose_b) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MMA);
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.ring = ring_b;
  op.transpose_b = transpose_b;
  mma_add(builder, op);
}

void ftl_elem(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, ftl_operand a, ftl_operand b, ftl_operand c) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_ELEM);
  op.fn = fn;
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
  ftl_builder_add_op(builder, op);
}

void ftl_unary(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a) {
  ftl_elem(builder, fn, dst, ftl_value_operand(a), ftl_immediate(0), ftl_immediate(0));
}

void ftl_binary(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, ftl_operand other) {
  ftl_elem(builder, fn, dst, ftl_value_operand(a), other, ftl_immediate(0));
}

static void reduce_rows(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, bool behind) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_ROWS);
  op.fn = fn;
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.behind = behind;
  ftl_builder_add_op(builder, op);
}

void ftl_reduce_rows(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a) {
  reduce_rows(builder, fn, dst, a, false);
}

void ftl_reduce_rows_behind(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a) {
  reduce_rows(builder, fn, dst, a, true);
}

void ftl_reduce_lanes(ftl_builder *builder, ftl_elem_fn fn, int32_t dst) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_LANES);
  op.fn = fn;
  op.dst = dst;
  ftl_builder_add_op(builder, op);
}

void ftl_reduce_warps(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t staging_ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_WARPS);
  op.fn = fn;
  op.dst = dst;
  op.ring = staging_ring;
  ftl_builder_add_op(builder, op);
}

void ftl_reduce_in_shared(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_WARPS);
  op.fn = fn;
  op.dst = dst;
  op.ring = ring;
  op.in_shared = true;
  ftl_builder_add_op(builder, op);
}

void ftl_reduce_groups(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t staging_ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_GROUPS);
  op.fn = fn;
  op.dst = dst;
  op.ring = staging_ring;
  ftl_builder_add_op(builder, op);
}

void ftl_top(ftl_builder *builder, int32_t dst, int32_t a, int32_t count) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_TOP);
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.count = count;
  ftl_builder_add_op(builder, op);
}

void ftl_gather(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, int32_t staging_ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_GATHER);
  op.fn = fn;
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.ring = staging_ring;
  ftl_builder_add_op(builder, op);
}

static void convert(ftl_builder *builder, int32_t dst, int32_t a, bool positive) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_CONVERT);
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.positive = positive;
  ftl_builder_add_op(builder, op);
}

void ftl_convert(ftl_builder *builder, int32_t dst, int32_t a) { convert(builder, dst, a, false); }

void ftl_convert_positive(ftl_builder *builder, int32_t dst, int32_t a) { convert(builder, dst, a, true); }
