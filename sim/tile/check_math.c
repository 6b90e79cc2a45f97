// Ops on values in registers, and products.
#include "tile/check_operands.h"
#include "tile/dropout.h"

typedef struct shape {
  int32_t rows, columns;
  ftl_dtype dtype;
} shape;

// Of operands: one type, which tensor cores multiply; of sums: what they add it up in; and how both must be stored.
static ftl_status check_product_types(const ftl_check *check, const ftl_tile_op *op, ftl_dtype a) {
  ftl_dtype b = check->program->rings[op->ring].dtype, sum = check->program->values[op->dst].dtype;
  if (a != b || a == FTL_FP32 || a == FTL_INT32)
    return ftl_check_fail(check, "A is %s and B %s: a product needs one type that tensor cores multiply",
                          ftl_dtype_name(a), ftl_dtype_name(b));
  bool adds = ftl_dtype_is_integer(a) ? sum == FTL_INT32
                                      : sum == FTL_FP32 || (sum == FTL_FP16 && (a == FTL_FP16 || ftl_dtype_is_fp8(a)));
  if (!adds) return ftl_check_fail(check, "products of %s do not add up in %s", ftl_dtype_name(a), ftl_dtype_name(sum));
  if (ftl_dtype_bytes(a) != 2 && (op->transpose_a || !op->transpose_b))
    return ftl_check_fail(check, "products of %s need A stored [m][k] and B stored [n][k]", ftl_dtype_name(a));
  return FTL_OK;
}

static ftl_status check_mma(const ftl_check *check, const ftl_tile_op *op) {
  const ftl_tile_program *program = check->program;
  ftl_status status = ftl_check_ring_role(check, op->ring, false);
  if (status == FTL_OK && op->ring_a >= 0) status = ftl_check_ring_role(check, op->ring_a, false);
  if (status != FTL_OK) return status;
  if (!ftl_check_is_tile(check, op->dst)) return ftl_check_fail(check, "the accumulator is not a tile of this role");
  if (op->ring_a < 0 && !ftl_check_is_tile(check, op->a.value))
    return ftl_check_fail(check, "A is neither a tile of this role nor a ring");
  if (!ftl_check_is_fragment(check, op->dst) || (op->ring_a < 0 && !ftl_check_is_fragment(check, op->a.value)))
    return ftl_check_fail(check, "a product takes values that are held as fragments");
  if (op->ring_a < 0 && (!ftl_check_has_whole_rows(check, op->a.value) ||
                         !ftl_check_same_threads(&program->values[op->a.value], &program->values[op->dst])))
    return ftl_check_fail(check, "warps side by side that have not all of A take it from shared memory");
  const ftl_ring *ring_b = &program->rings[op->ring], *ring_a = op->ring_a >= 0 ? &program->rings[op->ring_a] : NULL;
  int32_t ring_rows = !ring_a ? 0 : op->transpose_a ? ring_a->columns : ring_a->rows;
  const ftl_value *dst = &program->values[op->dst];
  if (op->ring_a >= 0 && (op->ring_row < 0 || op->ring_row + dst->rows > ring_rows))
    return ftl_check_fail(check, "rows %d to %d of ring %s, which has %d", op->ring_row, op->ring_row + dst->rows - 1,
                          ring_a->name, ring_rows);
  shape a = op->ring_a >= 0 ? (shape){dst->rows, op->transpose_a ? ring_a->rows : ring_a->columns, ring_a->dtype}
                            : (shape){program->values[op->a.value].rows, program->values[op->a.value].columns,
                                      program->values[op->a.value].dtype};
  int32_t groups = program->roles[check->role_idx].num_groups, share = ring_b->rows / groups;
  if (ring_b->rows % groups != 0)
    return ftl_check_fail(check, "%d rows of ring %s are not %d equal shares", ring_b->rows, ring_b->name, groups);
  int32_t n = op->transpose_b ? share : ring_b->columns, k = op->transpose_b ? ring_b->columns : share;
  bool is_part = op->num_k != 0 || op->first_k != 0, has_part = op->ring_a >= 0 && is_part && k == op->num_k;
  if (a.rows != dst->rows || n != dst->columns || (a.columns != k && !has_part))
    return ftl_check_fail(check, "shapes do not fit: %d x %d += %d x %d by %d x %d", dst->rows, dst->columns, a.rows,
                          a.columns, k, n);
  if (op->b.value >= 0) {
    status = ftl_check_fetched_b(check, op, op->b.value);
    if (status != FTL_OK) return status;
  }
  if (is_part && (op->first_k < 0 || op->num_k <= 0 || op->num_k > a.columns - op->first_k || groups > 1))
    return ftl_check_fail(check, "a sum over %d terms from %d on, of %d", op->num_k, op->first_k, a.columns);
  return check_product_types(check, op, a.dtype);
}

static bool operand_fits(const ftl_check *check, ftl_operand operand, const ftl_value *dst) {
  if (operand.value == -1) return true;
  if (!ftl_check_is_value(check, operand.value)) return false;
  const ftl_value *value = &check->program->values[operand.value];
  if (value->dtype != FTL_FP32 || !ftl_check_same_threads(value, dst)) return false;
  bool as_many_rows = value->rows == dst->rows, as_many_columns = value->columns == dst->columns;
  switch (value->kind) {
    case FTL_VALUE_TILE:
      return dst->kind == FTL_VALUE_TILE && as_many_rows && as_many_columns && ftl_check_same_layout(value, dst);
    case FTL_VALUE_ROWS:
      return dst->kind != FTL_VALUE_COLUMNS && as_many_rows;
    case FTL_VALUE_COLUMNS:
      return dst->kind != FTL_VALUE_ROWS && as_many_columns;
  }
  return false;
}

static ftl_status check_elem(const ftl_check *check, const ftl_tile_op *op) {
  if (!ftl_check_is_value(check, op->dst)) return ftl_check_fail(check, "the destination is not a value of this role");
  const ftl_value *dst = &check->program->values[op->dst];
  if (dst->dtype != FTL_FP32) return ftl_check_fail(check, "%s is not fp32", dst->name);
  if ((int)op->fn < 0 || op->fn > FTL_ELEM_SELECT) return ftl_check_fail(check, "no such function");
  const ftl_operand operands[] = {op->a, op->b, op->c};
  for (int i = 0; i < ftl_elem_num_operands(op->fn); i++)
    if (!operand_fits(check, operands[i], dst))
      return ftl_check_fail(check,
                            "operand %d does not fit %s: an fp32 value of this role, %d x %d and with its layout",
                            i + 1, dst->name, dst->rows, dst->columns);
  return FTL_OK;
}

static ftl_status check_mask(const ftl_check *check, const ftl_tile_op *op) {
  if (!ftl_check_is_tile(check, op->dst) || check->program->values[op->dst].dtype != FTL_FP32)
    return ftl_check_fail(check, "the destination is not an fp32 tile of this role");
  if (!ftl_check_is_expr(check, op->row0) || !ftl_check_is_expr(check, op->column0) ||
      !ftl_check_is_expr(check, op->limit) || (op->diagonal != FTL_ALWAYS && !ftl_check_is_expr(check, op->diagonal)) ||
      (op->left != FTL_ALWAYS && !ftl_check_is_expr(check, op->left)))
    return ftl_check_fail(check, "an expression uses a loop variable outside its loop");
  if (op->transposed && (op->period != 0 || !ftl_check_is_fragment(check, op->dst) ||
                         check->program->roles[check->role_idx].num_groups > 1))
    return ftl_check_fail(check, "only fragments of one group and one head are masked transposed");
  if (op->period < 0) return ftl_check_fail(check, "a period of %lld rows", (long long)op->period);
  return FTL_OK;
}

static ftl_status check_mask_bits(const ftl_check *check, const ftl_tile_op *op) {
  enum { WORD_BITS = 32 };
  ftl_status status = ftl_check_ref(check, &op->ref, false);
  if (status != FTL_OK) return status;
  const ftl_tensor *bits = &check->program->tensors[op->ref.tensor];
  if (!ftl_check_is_tile(check, op->dst) || !ftl_check_is_fragment(check, op->dst) ||
      check->program->values[op->dst].dtype != FTL_FP32)
    return ftl_check_fail(check, "the destination is not an fp32 tile of this role, held as fragments");
  if (check->program->values[op->dst].warps_per_row > 1)
    return ftl_check_fail(check, "several warps share the rows of %s", check->program->values[op->dst].name);
  if (bits->table == NULL) return ftl_check_fail(check, "%s is no table of bit rows", bits->name);
  const ftl_value *dst = &check->program->values[op->dst];
  int32_t columns = check->program->roles[check->role_idx].num_groups * dst->columns;
  if (op->ref.rows > dst->rows || op->ref.columns * WORD_BITS != columns)
    return ftl_check_fail(check, "%d rows of %d words are not the bits of %s: at most %d rows of %d bits", op->ref.rows,
                          op->ref.columns, dst->name, dst->rows, columns);
  return FTL_OK;
}

typedef struct dropout_block {
  int32_t rows, columns;  // of the tile that begin a block of random numbers
} dropout_block;

// One call of the generator serves a row's thread, or a block of a fragment's lanes; of a transposed tile warps have
// 16 of its 32 keys.
static dropout_block dropout_block_of(const ftl_tile_op *op, bool by_rows) {
  if (by_rows) return (dropout_block){1, FTL_DROPOUT_ROW_COLUMNS};
  return (dropout_block){FTL_DROPOUT_ROWS, op->transposed ? FTL_DROPOUT_ROWS : FTL_DROPOUT_COLUMNS};
}

static ftl_status check_dropout_blocks(const ftl_check *check, const ftl_tile_op *op) {
  const ftl_value *dst = &check->program->values[op->dst];
  bool by_rows = !ftl_check_is_fragment(check, op->dst);
  dropout_block block = dropout_block_of(op, by_rows);
  int32_t columns = by_rows ? dst->layout.vector_columns : ftl_value_warp_columns(dst);
  bool aligned = columns % block.columns == 0 && ftl_expr_alignment(check->program, op->column0) % block.columns == 0 &&
                 ftl_expr_alignment(check->program, op->row0) % block.rows == 0;
  if (aligned) return FTL_OK;
  return ftl_check_fail(check, "a tile that is not made of blocks of %d x %d", block.rows, block.columns);
}

static ftl_status check_dropout(const ftl_check *check, const ftl_tile_op *op) {
  if (!ftl_check_is_tile(check, op->dst)) return ftl_check_fail(check, "the destination is not a tile of this role");
  bool by_rows = !ftl_check_is_fragment(check, op->dst);
  int32_t bytes = ftl_dtype_bytes(check->program->values[op->dst].dtype);
  if (op->by_sign && (by_rows || bytes != 4))
    return ftl_check_fail(check, "only an fp32 tile of fragments is dropped by its sign");
  if (!op->by_sign && bytes != (by_rows ? 4 : 2))
    return ftl_check_fail(check, "the destination is neither a 16-bit tile of fragments nor a row-wise fp32 tile");
  if (op->transposed && (!op->by_sign || check->program->roles[check->role_idx].num_groups > 1))
    return ftl_check_fail(check, "only fragments of one group are dropped transposed, and by their sign");
  if (!ftl_check_is_expr(check, op->sequence) || !ftl_check_is_expr(check, op->row0) ||
      !ftl_check_is_expr(check, op->column0))
    return ftl_check_fail(check, "an expression uses a loop variable outside its loop");
  int32_t most = by_rows ? FTL_DROPOUT_ROW_THRESHOLDS : UINT8_MAX;
  if (op->threshold < 0 || op->threshold > most)
    return ftl_check_fail(check, "a threshold of %d: allowed is 0 to %d", op->threshold, most);
  return check_dropout_blocks(check, op);
}

static ftl_status check_reduce_warps(const ftl_check *check, const ftl_tile_op *op) {
  const ftl_value *dst = &check->program->values[op->dst];
  if (dst->warps_per_row == 1 || dst->is_repeated)
    return ftl_check_fail(check, "%s is held by one warp a row: reduce_lanes makes it whole", dst->name);
  return ftl_check_staging(check, op->ring, (int64_t)dst->rows * dst->warps_per_row);
}

static ftl_status check_reduce(const ftl_check *check, const ftl_tile_op *op) {
  if (op->fn != FTL_ELEM_ADD && op->fn != FTL_ELEM_MAX) return ftl_check_fail(check, "only add and max reduce");
  if (!ftl_check_is_rows(check, op->dst))
    return ftl_check_fail(check, "the destination is not a rows value of this role");
  if (op->kind == FTL_TILE_REDUCE_LANES) {
    const ftl_value *dst = &check->program->values[op->dst];
    if (dst->warps_per_row == 1 || dst->is_repeated) return FTL_OK;
    return ftl_check_fail(check, "%s: lanes do not reach the other warps of a row", dst->name);
  }
  if (op->kind == FTL_TILE_REDUCE_WARPS) return check_reduce_warps(check, op);
  if (op->kind == FTL_TILE_REDUCE_GROUPS)
    return ftl_check_group_staging(check, op->ring, check->program->values[op->dst].rows, 1);
  if (!ftl_check_is_tile(check, op->a.value) || check->program->values[op->a.value].dtype != FTL_FP32 ||
      check->program->values[op->a.value].rows != check->program->values[op->dst].rows ||
      !ftl_check_same_threads(&check->program->values[op->a.value], &check->program->values[op->dst]) ||
      check->program->values[op->a.value].is_repeated != check->program->values[op->dst].is_repeated)
    return ftl_check_fail(check, "the source is not an fp32 tile of this role with as many rows, held alike");
  return FTL_OK;
}

static ftl_status check_gather(const ftl_check *check, const ftl_tile_op *op) {
  if (op->fn != FTL_ELEM_ADD && op->fn != FTL_ELEM_MAX) return ftl_check_fail(check, "only add and max reduce");
  if (!ftl_check_is_value(check, op->dst) || !ftl_check_is_value(check, op->a.value))
    return ftl_check_fail(check, "both operands must be values of this role");
  const ftl_value *dst = &check->program->values[op->dst], *a = &check->program->values[op->a.value];
  if (ftl_check_is_fragment(check, op->dst) || !ftl_check_is_fragment(check, op->a.value))
    return ftl_check_fail(check, "gathers %s, which is to be fragments, into %s, which is to be row-wise", a->name,
                          dst->name);
  if (dst->kind != a->kind || dst->rows != a->rows || dst->columns != a->columns || dst->dtype != FTL_FP32 ||
      a->dtype != FTL_FP32)
    return ftl_check_fail(check, "%s and %s differ in kind or shape, or are not fp32", dst->name, a->name);
  if (dst->kind == FTL_VALUE_ROWS) return ftl_check_group_staging(check, op->ring, a->rows, 1);
  if (!ftl_check_is_ring(check, op->ring)) return ftl_check_fail(check, "no such ring");
  const ftl_ring *ring = &check->program->rings[op->ring];
  int32_t rows = check->program->roles[check->role_idx].num_groups * a->rows;
  if (ring->producer != check->role_idx || ring->dtype != FTL_FP32 || ring->rows != rows || ring->columns != a->columns)
    return ftl_check_fail(check, "ring %s is not one of this role's, of %d x %d fp32", ring->name, rows, a->columns);
  return FTL_OK;
}

static ftl_status check_convert(const ftl_check *check, const ftl_tile_op *op) {
  if (!ftl_check_is_tile(check, op->dst) || !ftl_check_is_tile(check, op->a.value))
    return ftl_check_fail(check, "both operands must be tiles of this role");
  const ftl_value *dst = &check->program->values[op->dst], *a = &check->program->values[op->a.value];
  if (dst->rows != a->rows || dst->columns != a->columns)
    return ftl_check_fail(check, "%s and %s differ in shape", dst->name, a->name);
  if (!ftl_check_same_layout(dst, a))
    return ftl_check_fail(check, "%s and %s are held differently", dst->name, a->name);
  if (op->positive && !ftl_check_is_fragment(check, op->dst))
    return ftl_check_fail(check, "%s is not held as fragments: only those are converted without what is below 0",
                          dst->name);
  return FTL_OK;
}

static ftl_status check_top(const ftl_check *check, const ftl_tile_op *op) {
  if (!ftl_check_is_row_wise(check, op->dst) || !ftl_check_is_row_wise(check, op->a.value))
    return ftl_check_fail(check, "both tiles must be row-wise fp32 tiles of this role");
  const ftl_value *dst = &check->program->values[op->dst], *a = &check->program->values[op->a.value];
  if (dst->rows != a->rows || dst->columns != a->columns || !ftl_check_same_layout(dst, a))
    return ftl_check_fail(check, "%s and %s differ in shape or layout", dst->name, a->name);
  if (op->count >= 1 && op->count <= a->columns) return FTL_OK;
  return ftl_check_fail(check, "the %d largest of %d columns", op->count, a->columns);
}

ftl_status ftl_check_math_op(const ftl_check *check, const ftl_tile_op *op) {
  switch (op->kind) {
    case FTL_TILE_FILL:
      return ftl_check_is_value(check, op->dst) ? FTL_OK
                                                : ftl_check_fail(check, "the destination is not a value of this role");
    case FTL_TILE_MMA:
      return check_mma(check, op);
    case FTL_TILE_ELEM:
      return check_elem(check, op);
    case FTL_TILE_MASK:
      return check_mask(check, op);
    case FTL_TILE_MASK_BITS:
      return check_mask_bits(check, op);
    case FTL_TILE_DROPOUT:
      return check_dropout(check, op);
    case FTL_TILE_REDUCE_ROWS:
    case FTL_TILE_REDUCE_LANES:
    case FTL_TILE_REDUCE_WARPS:
    case FTL_TILE_REDUCE_GROUPS:
      return check_reduce(check, op);
    case FTL_TILE_GATHER:
      return check_gather(check, op);
    case FTL_TILE_CONVERT:
      return check_convert(check, op);
    case FTL_TILE_TOP:
      return check_top(check, op);
    default:
      return ftl_check_fail(check, "no such op");
  }
}
