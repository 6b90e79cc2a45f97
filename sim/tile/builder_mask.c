// Operations that hide scores, and that drop probabilities.
#include "tile/builder_internal.h"

void ftl_mask(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal, ftl_expr limit) {
  ftl_mask_heads(builder, dst, row0, column0, diagonal, limit, 0);
}

static ftl_tile_op mask_of(int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal, ftl_expr limit) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MASK);
  op.dst = dst;
  op.row0 = row0;
  op.column0 = column0;
  op.diagonal = diagonal;
  op.limit = limit;
  return op;
}

void ftl_mask_heads(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal,
                    ftl_expr limit, int64_t period) {
  ftl_tile_op op = mask_of(dst, row0, column0, diagonal, limit);
  op.period = period;
  ftl_builder_add_op(builder, op);
}

void ftl_mask_transposed(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal,
                         ftl_expr limit) {
  ftl_tile_op op = mask_of(dst, row0, column0, diagonal, limit);
  op.transposed = true;
  ftl_builder_add_op(builder, op);
}

// The mask added last; NULL, and the builder fails as said, where something else was.
static ftl_tile_op *last_mask(ftl_builder *builder, const char *otherwise) {
  ftl_tile_program *program = builder->program;
  if (!ftl_builder_is_ok(builder)) return NULL;
  if (program->num_ops > 0 && program->ops[program->num_ops - 1].kind == FTL_TILE_MASK)
    return &program->ops[program->num_ops - 1];
  ftl_builder_fail(builder, FTL_BAD_INPUT, "%s", otherwise);
  return NULL;
}

void ftl_mask_again(ftl_builder *builder) {
  ftl_tile_op *mask = last_mask(builder, "only a mask is applied again");
  if (mask) mask->again = true;
}

void ftl_mask_left(ftl_builder *builder, ftl_expr left) {
  ftl_tile_op *mask = last_mask(builder, "only a mask has a bound on the left");
  if (mask) mask->left = left;
}

void ftl_mask_bits(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MASK_BITS);
  op.dst = dst;
  op.ref = ref;
  ftl_builder_add_op(builder, op);
}

static ftl_tile_op dropout_of(int32_t dst, ftl_expr sequence, ftl_expr row0, ftl_expr column0, int32_t threshold) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_DROPOUT);
  op.dst = dst;
  op.sequence = sequence;
  op.row0 = row0;
  op.column0 = column0;
  op.threshold = threshold;
  return op;
}

void ftl_dropout(ftl_builder *builder, int32_t dst, ftl_expr sequence, ftl_expr row0, ftl_expr column0,
                 int32_t threshold) {
  ftl_builder_add_op(builder, dropout_of(dst, sequence, row0, column0, threshold));
}

void ftl_dropout_by_sign(ftl_builder *builder, int32_t dst, ftl_expr sequence, ftl_expr row0, ftl_expr column0,
                         int32_t threshold, bool transposed) {
  ftl_tile_op op = dropout_of(dst, sequence, row0, column0, threshold);
  op.by_sign = true;
  op.transposed = transposed;
  ftl_builder_add_op(builder, op);
}
