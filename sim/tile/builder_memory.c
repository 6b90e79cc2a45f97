// Operations that move tiles: between HBM and the stages of rings, and from both to registers and back.
#include "tile/builder_internal.h"

static void ring_op(ftl_builder *builder, ftl_tile_op_kind kind, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.ring = ring;
  ftl_builder_add_op(builder, op);
}

void ftl_acquire(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_ACQUIRE, ring); }
void ftl_commit(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_COMMIT, ring); }
void ftl_wait(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_WAIT, ring); }

void ftl_wait_first_apart(ftl_builder *builder, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_WAIT);
  op.ring = ring;
  op.first_apart = true;
  ftl_builder_add_op(builder, op);
}

void ftl_release(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_RELEASE, ring); }

void ftl_release_amid(ftl_builder *builder, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_RELEASE);
  op.ring = ring;
  op.amid = true;
  ftl_builder_add_op(builder, op);
}

void ftl_load(ftl_builder *builder, int32_t ring, ftl_tile_ref ref) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOAD);
  op.ring = ring;
  op.ref = ref;
  ftl_builder_add_op(builder, op);
}

void ftl_fill_stage(ftl_builder *builder, int32_t ring, ftl_tile_ref ref) {
  ftl_acquire(builder, ring);
  ftl_load(builder, ring, ref);
  ftl_commit(builder, ring);
}

static void load_direct(ftl_builder *builder, ftl_tile_op_kind kind, int32_t dst, ftl_tile_ref ref) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.dst = dst;
  op.ref = ref;
  ftl_builder_add_op(builder, op);
}

void ftl_load_tile(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) { ftl_load_tile_or(builder, dst, ref, 0); }

void ftl_load_tile_or(ftl_builder *builder, int32_t dst, ftl_tile_ref ref, float outside) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOAD_TILE);
  op.dst = dst;
  op.ref = ref;
  op.a = ftl_immediate(outside);
  ftl_builder_add_op(builder, op);
}

void ftl_load_rows(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  load_direct(builder, FTL_TILE_LOAD_ROWS, dst, ref);
}

void ftl_load_columns(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  load_direct(builder, FTL_TILE_LOAD_COLUMNS, dst, ref);
}

void ftl_fetch(ftl_builder *builder, int32_t dst, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_FETCH);
  op.dst = dst;
  op.ring = ring;
  ftl_builder_add_op(builder, op);
}

void ftl_fetch_b(ftl_builder *builder, int32_t dst, int32_t ring, bool transpose_b) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_FETCH);
  op.dst = dst;
  op.ring = ring;
  op.as_b = true;
  op.transpose_b = transpose_b;
  ftl_builder_add_op(builder, op);
}

void ftl_put(ftl_builder *builder, int32_t ring, int32_t a) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_PUT);
  op.ring = ring;
  op.a = ftl_value_operand(a);
  ftl_builder_add_op(builder, op);
}

static void store_op(ftl_builder *builder, ftl_tile_op_kind kind, ftl_tile_ref ref, int32_t a, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.ref = ref;
  op.a = ftl_value_operand(a);
  op.ring = ring;
  ftl_builder_add_op(builder, op);
}

void ftl_store(ftl_builder *builder, ftl_tile_ref ref, int32_t a, int32_t staging_ring) {
  store_op(builder, FTL_TILE_STORE, ref, a, staging_ring);
}

void ftl_atomic_add(ftl_builder *builder, ftl_tile_ref ref, int32_t a, ftl_add_order order) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_ATOMIC_ADD);
  op.ref = ref;
  op.a = ftl_value_operand(a);
  op.add_order = order;
  ftl_builder_add_op(builder, op);
}

void ftl_store_merged(ftl_builder *builder, ftl_tile_ref ref, int32_t output, int32_t row_max, int32_t row_sum,
                      float scale_log2, int32_t output_staging, int32_t rows_staging) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_STORE_MERGED);
  op.ref = ref;
  op.a = (ftl_operand){.value = output, .immediate = scale_log2};
  op.b = ftl_value_operand(row_max);
  op.c = ftl_value_operand(row_sum);
  op.ring = output_staging;
  op.ring_a = rows_staging;
  ftl_builder_add_op(builder, op);
}

void ftl_store_rows(ftl_builder *builder, ftl_tile_ref ref, int32_t a) {
  store_op(builder, FTL_TILE_STORE_ROWS, ref, a, -1);
}

void ftl_store_top(ftl_builder *builder, ftl_tile_ref ref, int32_t a, int32_t ranks) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_STORE_TOP);
  op.ref = ref;
  op.a.value = a;
  op.b = ftl_value_operand(ranks);
  ftl_builder_add_op(builder, op);
}

void ftl_at_ring_row(ftl_builder *builder, int32_t row) {
  ftl_tile_program *program = builder->program;
  if (program->num_ops == 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "a row of a ring comes after an op");
  if (ftl_builder_is_ok(builder)) program->ops[program->num_ops - 1].ring_row = row;
}
