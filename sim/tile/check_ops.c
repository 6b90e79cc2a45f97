#include "tile/check_internal.h"
#include "tile/dropout.h"

static bool is_value(const ftl_check *check, int32_t value) {
  return value >= 0 && value < check->program->num_values && check->program->values[value].role == check->role_idx;
}

static bool is_tile(const ftl_check *check, int32_t value) {
  return is_value(check, value) && check->program->values[value].kind == FTL_VALUE_TILE;
}

static bool is_rows(const ftl_check *check, int32_t value) {
  return is_value(check, value) && check->program->values[value].kind == FTL_VALUE_ROWS;
}

static bool is_ring(const ftl_check *check, int32_t ring) { return ring >= 0 && ring < check->program->num_rings; }

// An expression whose loop variables are all in scope.
static bool is_expr(const ftl_check *check, ftl_expr expr) {
  if (expr < 0 || expr >= check->program->num_exprs) return false;
  const ftl_expr_node *node = &check->program->exprs[expr];
  switch (node->kind) {
    case FTL_EXPR_CONST:
    case FTL_EXPR_CTA:
      return true;
    case FTL_EXPR_LOOP:
      return node->value >= 0 && node->value < FTL_TILE_MAX_LOOP_VARS && (check->live_loops >> node->value & 1) != 0;
    case FTL_EXPR_DIV:
    case FTL_EXPR_MOD:
      if (node->b < 0 || node->b >= expr || check->program->exprs[node->b].kind != FTL_EXPR_CONST ||
          check->program->exprs[node->b].value <= 0)
        return false;
      break;
    default:
      break;
  }
  return node->a < expr && node->b < expr && is_expr(check, node->a) && is_expr(check, node->b);
}

// Pages lie inside of their tensor, whatever entry a tile takes.
static ftl_status check_pages(const ftl_check *check, const ftl_tile_ref *ref) {
  const ftl_tensor *tensor = &check->program->tensors[ref->tensor];
  const ftl_pages *pages = &ref->pages;
  if (pages->page_rows == 0) return FTL_OK;
  if (pages->page_rows < 0 || pages->table < 0 || pages->table >= check->program->num_tensors ||
      !check->program->tensors[pages->table].table || !is_expr(check, pages->first_entry) ||
      !is_expr(check, pages->entry) || ref->row_end == FTL_TENSOR_END || pages->page_stride < 0)
    return ftl_check_fail(check, "the pages of %s need a table, at least 1 row each, and an end of the rows",
                          tensor->name);
  const ftl_tensor *table = &check->program->tensors[pages->table];
  int64_t elements = tensor->size_bytes / ftl_dtype_bytes(tensor->dtype);
  int64_t page_elements = (pages->page_rows - 1) * tensor->row_stride + ref->columns;
  for (int64_t i = 0; i < table->num_rows; i++) {
    int64_t page = table->table[i], begin;
    if (page >= 0 && !__builtin_mul_overflow(page, pages->page_stride, &begin) && begin <= elements - page_elements)
      continue;
    return ftl_check_fail(check, "entry %lld of %s, page %lld, is outside of %s", (long long)i, table->name,
                          (long long)page, tensor->name);
  }
  return FTL_OK;
}

static ftl_status check_ref(const ftl_check *check, const ftl_tile_ref *ref, bool is_store) {
  const ftl_tile_program *program = check->program;
  if (ref->tensor < 0 || ref->tensor >= program->num_tensors) return ftl_check_fail(check, "no such tensor");
  const ftl_tensor *tensor = &program->tensors[ref->tensor];
  if (ref->rows < 1 || ref->columns < 1 || ref->columns > tensor->num_columns)
    return ftl_check_fail(check, "%d x %d is not a tile of %s, which has %lld columns", ref->rows, ref->columns,
                          tensor->name, (long long)tensor->num_columns);
  if (is_store && tensor->use == FTL_TENSOR_INPUT) return ftl_check_fail(check, "stores to the input %s", tensor->name);
  if (!is_store && tensor->use == FTL_TENSOR_OUTPUT) return ftl_check_fail(check, "loads the output %s", tensor->name);
  if (!is_expr(check, ref->batch) || !is_expr(check, ref->head) || !is_expr(check, ref->row) ||
      !is_expr(check, ref->column) || !is_expr(check, ref->column_end) || !is_expr(check, ref->row_end) ||
      (ref->present != FTL_ALWAYS && !is_expr(check, ref->present)))
    return ftl_check_fail(check, "an expression of the tile of %s uses a loop variable outside its loop", tensor->name);
  return check_pages(check, ref);
}

static ftl_status check_lookup(const ftl_check *check, const ftl_tile_op *op) {
  const ftl_tile_program *program = check->program;
  if (op->lookup == FTL_PAGE_ENTRIES) return check_ref(check, &op->ref, false);
  bool is_lookup = is_expr(check, op->lookup) && program->exprs[op->lookup].kind == FTL_EXPR_LOOKUP;
  if (!is_lookup || program->exprs[op->lookup].value != op->ref.tensor || program->exprs[op->lookup].a != op->ref.row)
    return ftl_check_fail(check, "the expression is no lookup of that entry");
  return check_ref(check, &op->ref, false);
}

static ftl_status check_ring_role(const ftl_check *check, int32_t ring, bool produces) {
  if (!is_ring(check, ring)) return ftl_check_fail(check, "no such ring");
  const ftl_ring *info = &check->program->rings[ring];
  if (produces ? info->producer == check->role_idx : (info->consumers_mask >> check->role_idx & 1) != 0) return FTL_OK;
  return ftl_check_fail(check, "role %s is not a %s of ring %s", check->program->roles[check->role_idx].name,
                        produces ? "producer" : "consumer", info->name);
}

static ftl_status check_load(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ring_role(check, op->ring, true);
  if (status == FTL_OK) status = check_ref(check, &op->ref, false);
  if (status != FTL_OK) return status;
  const ftl_ring *ring = &check->program->rings[op->ring];
  if (op->ref.rows > ring->rows || op->ref.columns > ring->columns)
    return ftl_check_fail(check, "a tile of %d x %d does not fit ring %s of %d x %d", op->ref.rows, op->ref.columns,
                          ring->name, ring->rows, ring->columns);
  if (check->program->tensors[op->ref.tensor].dtype != ring->dtype)
    return ftl_check_fail(check, "ring %s has another dtype than its tensor", ring->name);
  return FTL_OK;
}

static bool same_threads(const ftl_value *a, const ftl_value *b) {
  return a->layout.threads_per_row == b->layout.threads_per_row && a->warps_per_row == b->warps_per_row;
}

static bool same_layout(const ftl_value *a, const ftl_value *b) {
  return same_threads(a, b) && a->layout.vector_columns == b->layout.vector_columns;
}

static bool is_fragment(const ftl_check *check, int32_t value) {
  return check->program->values[value].layout.threads_per_row == 0;
}

static bool has_whole_rows(const ftl_check *check, int32_t value) {
  return is_fragment(check, value) && check->program->values[value].warps_per_row == 1;
}

// What a lane moves at once between a row-wise tile and memory; a lone 16-bit element can be stored.
static ftl_status check_vector(const ftl_check *check, const ftl_value *value, const ftl_tensor *tensor,
                               bool is_store) {
  enum { MOST_BYTES = 16 };
  const int32_t least_bytes = is_store ? 2 : 4;
  if (value->kind != FTL_VALUE_TILE || value->layout.threads_per_row == 0) return FTL_OK;
  int32_t bytes = value->layout.vector_columns * ftl_dtype_bytes(tensor->dtype);
  if (bytes >= least_bytes && bytes <= MOST_BYTES) return FTL_OK;
  return ftl_check_fail(check, "%d columns of %s at once are %d bytes a lane: allowed are %d to %d",
                        value->layout.vector_columns, value->name, bytes, least_bytes, MOST_BYTES);
}

static ftl_status check_load_direct(const ftl_check *check, const ftl_tile_op *op) {
  static const char *const wanted[] = {"tile", "rows value", "columns value"};
  ftl_value_kind kind = op->kind == FTL_TILE_LOAD_TILE   ? FTL_VALUE_TILE
                        : op->kind == FTL_TILE_LOAD_ROWS ? FTL_VALUE_ROWS
                                                         : FTL_VALUE_COLUMNS;
  ftl_status status = check_ref(check, &op->ref, false);
  if (status != FTL_OK) return status;
  if (!is_value(check, op->dst) || check->program->values[op->dst].kind != kind)
    return ftl_check_fail(check, "the destination is not a %s of this role", wanted[kind]);
  const ftl_value *dst = &check->program->values[op->dst];
  const ftl_tensor *tensor = &check->program->tensors[op->ref.tensor];
  bool of_columns = kind == FTL_VALUE_COLUMNS;
  if (op->ref.rows > (of_columns ? dst->columns : dst->rows) || op->ref.columns > (of_columns ? 1 : dst->columns))
    return ftl_check_fail(check, "a tile of %d x %d is larger than %s", op->ref.rows, op->ref.columns, dst->name);
  if (dst->dtype != tensor->dtype)
    return ftl_check_fail(check, "%s has another dtype than %s", dst->name, tensor->name);
  if (ftl_tile_num_copies(check->program, op->dst) > 1)
    return ftl_check_fail(check, "the groups of a role do not load %s for each of them", dst->name);
  if (kind == FTL_VALUE_TILE && is_fragment(check, op->dst) && dst->dtype != FTL_FP32)
    return ftl_check_fail(check, "%s is held as fragments of %s; only fp32 sums and row-wise tiles are loaded directly",
                          dst->name, ftl_dtype_name(dst->dtype));
  return check_vector(check, dst, tensor, false);
}

static ftl_status check_fetch(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ring_role(check, op->ring, false);
  if (status != FTL_OK) return status;
  if (!is_tile(check, op->dst)) return ftl_check_fail(check, "the destination is not a tile of this role");
  const ftl_ring *ring = &check->program->rings[op->ring];
  const ftl_value *dst = &check->program->values[op->dst];
  if (!has_whole_rows(check, op->dst))
    return ftl_check_fail(check, "%s is not held as fragments of whole rows", dst->name);
  if (dst->rows != ring->rows || dst->columns != ring->columns || dst->dtype != ring->dtype)
    return ftl_check_fail(check, "%s differs from ring %s in shape or dtype", dst->name, ring->name);
  return FTL_OK;
}

static bool is_loaded(const ftl_check *check, int32_t ring) {
  for (int32_t i = 0; i < check->program->num_ops; i++)
    if (check->program->ops[i].kind == FTL_TILE_LOAD && check->program->ops[i].ring == ring) return true;
  return false;
}

static ftl_status check_put(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ring_role(check, op->ring, true);
  if (status != FTL_OK) return status;
  if (!is_tile(check, op->a.value) || !is_fragment(check, op->a.value))
    return ftl_check_fail(check, "the source is not a tile of this role that is held as fragments");
  const ftl_ring *ring = &check->program->rings[op->ring];
  const ftl_value *a = &check->program->values[op->a.value];
  if (a->rows != ring->rows || a->columns != ring->columns || a->dtype != ring->dtype)
    return ftl_check_fail(check, "%s differs from ring %s in shape or dtype", a->name, ring->name);
  if (check->program->roles[check->role_idx].num_groups > 1)
    return ftl_check_fail(check, "each of several groups has a copy of %s", a->name);
  if (is_loaded(check, op->ring)) return ftl_check_fail(check, "ring %s is filled by loads as well", ring->name);
  return FTL_OK;
}

static ftl_status check_transpose(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ring_role(check, op->ring, true);
  if (status == FTL_OK) status = check_ring_role(check, op->ring_a, false);
  if (status != FTL_OK) return status;
  const ftl_ring *to = &check->program->rings[op->ring], *from = &check->program->rings[op->ring_a];
  if (to->rows != from->columns || to->columns != from->rows || to->dtype != from->dtype ||
      ftl_dtype_bytes(to->dtype) != 1)
    return ftl_check_fail(check, "ring %s is not ring %s of one-byte elements, transposed", to->name, from->name);
  if (is_loaded(check, op->ring)) return ftl_check_fail(check, "ring %s is filled by loads as well", to->name);
  return FTL_OK;
}

static ftl_status check_dequantize(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ring_role(check, op->ring, true);
  if (status == FTL_OK) status = check_ring_role(check, op->ring_a, false);
  if (status == FTL_OK) status = check_ring_role(check, op->ring_scales, false);
  if (status != FTL_OK) return status;
  const ftl_ring *rings = check->program->rings, *to = &rings[op->ring], *from = &rings[op->ring_a];
  const ftl_ring *scales = &rings[op->ring_scales];
  bool quantised = ftl_dtype_is_fp8(from->dtype) || from->dtype == FTL_INT8 || from->dtype == FTL_INT4X2;
  if (!quantised || ftl_dtype_bytes(to->dtype) != 2)
    return ftl_check_fail(check, "%s is not dequantised to %s", ftl_dtype_name(from->dtype), ftl_dtype_name(to->dtype));
  if (from->rows != to->rows || from->columns * ftl_dtype_numbers(from->dtype) != to->columns)
    return ftl_check_fail(check, "ring %s holds other numbers than ring %s", from->name, to->name);
  if (ftl_tile_scale_groups(to, scales) == 0 || scales->dtype != to->dtype)
    return ftl_check_fail(check, "ring %s does not hold a scale for each row and group of columns of ring %s",
                          scales->name, to->name);
  if (is_loaded(check, op->ring)) return ftl_check_fail(check, "ring %s is filled by loads as well", to->name);
  return FTL_OK;
}

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
  ftl_status status = check_ring_role(check, op->ring, false);
  if (status == FTL_OK && op->ring_a >= 0) status = check_ring_role(check, op->ring_a, false);
  if (status != FTL_OK) return status;
  if (!is_tile(check, op->dst)) return ftl_check_fail(check, "the accumulator is not a tile of this role");
  if (op->ring_a < 0 && !is_tile(check, op->a.value))
    return ftl_check_fail(check, "A is neither a tile of this role nor a ring");
  if (!is_fragment(check, op->dst) || (op->ring_a < 0 && !is_fragment(check, op->a.value)))
    return ftl_check_fail(check, "a product takes values that are held as fragments");
  if (op->ring_a < 0 && (!has_whole_rows(check, op->dst) || !has_whole_rows(check, op->a.value)))
    return ftl_check_fail(check, "warps side by side take A from shared memory");
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
  if (a.rows != dst->rows || n != dst->columns || a.columns != k)
    return ftl_check_fail(check, "shapes do not fit: %d x %d += %d x %d by %d x %d", dst->rows, dst->columns, a.rows,
                          a.columns, k, n);
  return check_product_types(check, op, a.dtype);
}

int ftl_elem_num_operands(ftl_elem_fn fn) {
  switch (fn) {
    case FTL_ELEM_ADD:
    case FTL_ELEM_SUB:
    case FTL_ELEM_MUL:
    case FTL_ELEM_MAX:
      return 2;
    case FTL_ELEM_FMA:
    case FTL_ELEM_SELECT:
      return 3;
    default:
      return 1;
  }
}

static bool operand_fits(const ftl_check *check, ftl_operand operand, const ftl_value *dst) {
  if (operand.value == -1) return true;
  if (!is_value(check, operand.value)) return false;
  const ftl_value *value = &check->program->values[operand.value];
  if (value->dtype != FTL_FP32 || !same_threads(value, dst)) return false;
  bool as_many_rows = value->rows == dst->rows, as_many_columns = value->columns == dst->columns;
  switch (value->kind) {
    case FTL_VALUE_TILE:
      return dst->kind == FTL_VALUE_TILE && as_many_rows && as_many_columns && same_layout(value, dst);
    case FTL_VALUE_ROWS:
      return dst->kind != FTL_VALUE_COLUMNS && as_many_rows;
    case FTL_VALUE_COLUMNS:
      return dst->kind != FTL_VALUE_ROWS && as_many_columns;
  }
  return false;
}

static ftl_status check_elem(const ftl_check *check, const ftl_tile_op *op) {
  if (!is_value(check, op->dst)) return ftl_check_fail(check, "the destination is not a value of this role");
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
  if (!is_tile(check, op->dst) || check->program->values[op->dst].dtype != FTL_FP32)
    return ftl_check_fail(check, "the destination is not an fp32 tile of this role");
  if (!is_expr(check, op->row0) || !is_expr(check, op->column0) || !is_expr(check, op->limit) ||
      (op->diagonal != FTL_ALWAYS && !is_expr(check, op->diagonal)) ||
      (op->left != FTL_ALWAYS && !is_expr(check, op->left)))
    return ftl_check_fail(check, "an expression uses a loop variable outside its loop");
  if (op->transposed &&
      (op->period != 0 || !is_fragment(check, op->dst) || check->program->roles[check->role_idx].num_groups > 1))
    return ftl_check_fail(check, "only fragments of one group and one head are masked transposed");
  if (op->period < 0) return ftl_check_fail(check, "a period of %lld rows", (long long)op->period);
  return FTL_OK;
}

static ftl_status check_mask_bits(const ftl_check *check, const ftl_tile_op *op) {
  enum { WORD_BITS = 32 };
  ftl_status status = check_ref(check, &op->ref, false);
  if (status != FTL_OK) return status;
  const ftl_tensor *bits = &check->program->tensors[op->ref.tensor];
  if (!is_tile(check, op->dst) || !is_fragment(check, op->dst) || check->program->values[op->dst].dtype != FTL_FP32)
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
  bool by_rows = !is_fragment(check, op->dst);
  dropout_block block = dropout_block_of(op, by_rows);
  int32_t columns = by_rows ? dst->layout.vector_columns : dst->columns / dst->warps_per_row;
  bool aligned = columns % block.columns == 0 && ftl_expr_alignment(check->program, op->column0) % block.columns == 0 &&
                 ftl_expr_alignment(check->program, op->row0) % block.rows == 0;
  if (aligned) return FTL_OK;
  return ftl_check_fail(check, "a tile that is not made of blocks of %d x %d", block.rows, block.columns);
}

static ftl_status check_dropout(const ftl_check *check, const ftl_tile_op *op) {
  if (!is_tile(check, op->dst)) return ftl_check_fail(check, "the destination is not a tile of this role");
  bool by_rows = !is_fragment(check, op->dst);
  int32_t bytes = ftl_dtype_bytes(check->program->values[op->dst].dtype);
  if (op->by_sign && (by_rows || bytes != 4))
    return ftl_check_fail(check, "only an fp32 tile of fragments is dropped by its sign");
  if (!op->by_sign && bytes != (by_rows ? 4 : 2))
    return ftl_check_fail(check, "the destination is neither a 16-bit tile of fragments nor a row-wise fp32 tile");
  if (op->transposed && (!op->by_sign || check->program->roles[check->role_idx].num_groups > 1))
    return ftl_check_fail(check, "only fragments of one group are dropped transposed, and by their sign");
  if (!is_expr(check, op->sequence) || !is_expr(check, op->row0) || !is_expr(check, op->column0))
    return ftl_check_fail(check, "an expression uses a loop variable outside its loop");
  int32_t most = by_rows ? FTL_DROPOUT_ROW_THRESHOLDS : UINT8_MAX;
  if (op->threshold < 0 || op->threshold > most)
    return ftl_check_fail(check, "a threshold of %d: allowed is 0 to %d", op->threshold, most);
  return check_dropout_blocks(check, op);
}

// The copies of all groups lie side by side in the whole ring.
static ftl_status check_group_staging(const ftl_check *check, int32_t ring, int32_t rows, int32_t columns) {
  if (!is_ring(check, ring)) return ftl_check_fail(check, "the copies of several groups need a staging ring");
  const ftl_ring *info = &check->program->rings[ring];
  int64_t wanted =
      (int64_t)check->program->roles[check->role_idx].num_groups * rows * columns * ftl_dtype_bytes(FTL_FP32);
  int64_t has = (int64_t)info->rows * info->columns * info->num_stages * ftl_dtype_bytes(info->dtype);
  if (wanted <= has) return FTL_OK;
  return ftl_check_fail(check, "ring %s of %lld bytes is too small to stage %lld", info->name, (long long)has,
                        (long long)wanted);
}

static ftl_status check_reduce(const ftl_check *check, const ftl_tile_op *op) {
  if (op->fn != FTL_ELEM_ADD && op->fn != FTL_ELEM_MAX) return ftl_check_fail(check, "only add and max reduce");
  if (!is_rows(check, op->dst)) return ftl_check_fail(check, "the destination is not a rows value of this role");
  if (op->kind == FTL_TILE_REDUCE_LANES) {
    const ftl_value *dst = &check->program->values[op->dst];
    if (dst->warps_per_row == 1) return FTL_OK;
    return ftl_check_fail(check, "%s: lanes do not reach the other warps of a row", dst->name);
  }
  if (op->kind == FTL_TILE_REDUCE_GROUPS)
    return check_group_staging(check, op->ring, check->program->values[op->dst].rows, 1);
  if (!is_tile(check, op->a.value) || check->program->values[op->a.value].dtype != FTL_FP32 ||
      check->program->values[op->a.value].rows != check->program->values[op->dst].rows ||
      !same_threads(&check->program->values[op->a.value], &check->program->values[op->dst]))
    return ftl_check_fail(check, "the source is not an fp32 tile of this role with as many rows, held alike");
  return FTL_OK;
}

static ftl_status check_gather(const ftl_check *check, const ftl_tile_op *op) {
  if (op->fn != FTL_ELEM_ADD && op->fn != FTL_ELEM_MAX) return ftl_check_fail(check, "only add and max reduce");
  if (!is_value(check, op->dst) || !is_value(check, op->a.value))
    return ftl_check_fail(check, "both operands must be values of this role");
  const ftl_value *dst = &check->program->values[op->dst], *a = &check->program->values[op->a.value];
  if (is_fragment(check, op->dst) || !is_fragment(check, op->a.value))
    return ftl_check_fail(check, "gathers %s, which is to be fragments, into %s, which is to be row-wise", a->name,
                          dst->name);
  if (dst->kind != a->kind || dst->rows != a->rows || dst->columns != a->columns || dst->dtype != FTL_FP32 ||
      a->dtype != FTL_FP32)
    return ftl_check_fail(check, "%s and %s differ in kind or shape, or are not fp32", dst->name, a->name);
  if (dst->kind == FTL_VALUE_ROWS) return check_group_staging(check, op->ring, a->rows, 1);
  if (!is_ring(check, op->ring)) return ftl_check_fail(check, "no such ring");
  const ftl_ring *ring = &check->program->rings[op->ring];
  int32_t rows = check->program->roles[check->role_idx].num_groups * a->rows;
  if (ring->producer != check->role_idx || ring->dtype != FTL_FP32 || ring->rows != rows || ring->columns != a->columns)
    return ftl_check_fail(check, "ring %s is not one of this role's, of %d x %d fp32", ring->name, rows, a->columns);
  return FTL_OK;
}

static ftl_status check_convert(const ftl_check *check, const ftl_tile_op *op) {
  if (!is_tile(check, op->dst) || !is_tile(check, op->a.value))
    return ftl_check_fail(check, "both operands must be tiles of this role");
  const ftl_value *dst = &check->program->values[op->dst], *a = &check->program->values[op->a.value];
  if (dst->rows != a->rows || dst->columns != a->columns)
    return ftl_check_fail(check, "%s and %s differ in shape", dst->name, a->name);
  if (!same_layout(dst, a)) return ftl_check_fail(check, "%s and %s are held differently", dst->name, a->name);
  if (op->positive && !is_fragment(check, op->dst))
    return ftl_check_fail(check, "%s is not held as fragments: only those are converted without what is below 0",
                          dst->name);
  return FTL_OK;
}

static bool is_row_wise(const ftl_check *check, int32_t value) {
  return is_tile(check, value) && check->program->values[value].layout.threads_per_row > 0 &&
         check->program->values[value].dtype == FTL_FP32;
}

static ftl_status check_top(const ftl_check *check, const ftl_tile_op *op) {
  if (!is_row_wise(check, op->dst) || !is_row_wise(check, op->a.value))
    return ftl_check_fail(check, "both tiles must be row-wise fp32 tiles of this role");
  const ftl_value *dst = &check->program->values[op->dst], *a = &check->program->values[op->a.value];
  if (dst->rows != a->rows || dst->columns != a->columns || !same_layout(dst, a))
    return ftl_check_fail(check, "%s and %s differ in shape or layout", dst->name, a->name);
  if (op->count >= 1 && op->count <= a->columns) return FTL_OK;
  return ftl_check_fail(check, "the %d largest of %d columns", op->count, a->columns);
}

static ftl_status check_store_top(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  if (!is_row_wise(check, op->b.value) || (op->a.value >= 0 && !is_row_wise(check, op->a.value)))
    return ftl_check_fail(check, "the tiles must be row-wise fp32 tiles of this role");
  const ftl_value *ranks = &check->program->values[op->b.value];
  bool of_numbers = op->a.value < 0;
  if (of_numbers != (check->program->tensors[op->ref.tensor].dtype == FTL_INT32))
    return ftl_check_fail(check, "int32 are the numbers of columns, and only these");
  if (of_numbers ? ranks->rows > 1 || op->ref.rows > ranks->columns || op->ref.columns > 1
                 : op->ref.rows > ranks->rows || op->ref.columns > ranks->columns)
    return ftl_check_fail(check, "a tile of %d x %d does not hold what %s numbers", op->ref.rows, op->ref.columns,
                          ranks->name);
  if (of_numbers) return FTL_OK;
  const ftl_value *a = &check->program->values[op->a.value];
  if (a->rows == ranks->rows && a->columns == ranks->columns && same_layout(a, ranks)) return FTL_OK;
  return ftl_check_fail(check, "%s and %s differ in shape or layout", a->name, ranks->name);
}

static ftl_status check_store(const ftl_check *check, const ftl_tile_op *op) {
  bool of_rows = op->kind == FTL_TILE_STORE_ROWS;
  ftl_status status = check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  if (of_rows ? !is_rows(check, op->a.value) : !is_tile(check, op->a.value))
    return ftl_check_fail(check, "the source is not a %s of this role", of_rows ? "rows value" : "tile");
  const ftl_value *a = &check->program->values[op->a.value];
  if (op->ref.rows > a->rows || op->ref.columns > a->columns)
    return ftl_check_fail(check, "a tile of %d x %d is larger than %s", op->ref.rows, op->ref.columns, a->name);
  if (of_rows && a->warps_per_row > 1) return ftl_check_fail(check, "%s is held by warps side by side", a->name);
  if (!of_rows && ftl_tile_num_copies(check->program, op->a.value) > 1)
    return ftl_check_fail(check, "each of several groups has a copy of %s: store_merged makes them one", a->name);
  if (op->ring < 0) return check_vector(check, a, &check->program->tensors[op->ref.tensor], true);
  if (!is_fragment(check, op->a.value)) return ftl_check_fail(check, "%s is stored directly only", a->name);
  if (!is_ring(check, op->ring)) return ftl_check_fail(check, "no such ring");
  const ftl_ring *ring = &check->program->rings[op->ring];
  bool is_mine = ring->producer == check->role_idx || (ring->consumers_mask >> check->role_idx & 1) != 0;
  if (!is_mine) return ftl_check_fail(check, "ring %s is not one of this role's", ring->name);
  if (op->ring_row < 0 || op->ring_row + op->ref.rows > ring->rows || op->ref.columns > ring->columns ||
      ftl_dtype_bytes(check->program->tensors[op->ref.tensor].dtype) > ftl_dtype_bytes(ring->dtype))
    return ftl_check_fail(check, "ring %s is too small to stage the tile", ring->name);
  return FTL_OK;
}

static ftl_status check_atomic_add(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  const ftl_tensor *tensor = &check->program->tensors[op->ref.tensor];
  if (!is_tile(check, op->a.value) || !is_fragment(check, op->a.value) ||
      check->program->values[op->a.value].dtype != FTL_FP32)
    return ftl_check_fail(check, "the source is not an fp32 tile of this role that is held as fragments");
  const ftl_value *a = &check->program->values[op->a.value];
  if (tensor->dtype != FTL_FP32)
    return ftl_check_fail(check, "%s is %s: atomics add fp32", tensor->name, ftl_dtype_name(tensor->dtype));
  if (op->ref.rows != a->rows || op->ref.columns > a->columns)
    return ftl_check_fail(check, "a tile of %d x %d is not %s, which has %d x %d", op->ref.rows, op->ref.columns,
                          a->name, a->rows, a->columns);
  if (check->program->roles[check->role_idx].num_groups > 1)
    return ftl_check_fail(check, "each of several groups has a copy of %s", a->name);
  return FTL_OK;
}

static ftl_status check_barrier(const ftl_check *check, const ftl_tile_op *op) {
  if (op->barrier < 0 || op->barrier >= check->program->num_barriers) return ftl_check_fail(check, "no such barrier");
  const ftl_named_barrier *barrier = &check->program->barriers[op->barrier];
  if (barrier->roles_mask >> check->role_idx & 1) return FTL_OK;
  return ftl_check_fail(check, "role %s does not take part in barrier %s", check->program->roles[check->role_idx].name,
                        barrier->name);
}

static ftl_status check_store_merged(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  if (!is_tile(check, op->a.value) || !is_rows(check, op->b.value) || !is_rows(check, op->c.value))
    return ftl_check_fail(check, "the sources are not a tile and two rows values of this role");
  const ftl_value *values = check->program->values, *a = &values[op->a.value];
  if (op->ref.rows > a->rows || op->ref.columns > a->columns)
    return ftl_check_fail(check, "a tile of %d x %d is larger than %s", op->ref.rows, op->ref.columns, a->name);
  if (values[op->b.value].rows != a->rows || values[op->c.value].rows != a->rows || !is_fragment(check, op->a.value) ||
      !is_fragment(check, op->b.value) || !is_fragment(check, op->c.value))
    return ftl_check_fail(check, "the sources are not fragments of %d rows each", a->rows);
  if (a->dtype != FTL_FP32 || check->program->tensors[op->ref.tensor].dtype != FTL_FP32)
    return ftl_check_fail(check, "states are merged and stored in fp32");
  const int32_t maximum_and_sum = 2;
  status = check_group_staging(check, op->ring_a, a->rows, maximum_and_sum);
  return status == FTL_OK ? check_group_staging(check, op->ring, a->rows, a->columns) : status;
}

ftl_status ftl_check_op(const ftl_check *check) {
  const ftl_tile_op *op = &check->program->ops[check->op_idx];
  switch (op->kind) {
    case FTL_TILE_LOOP:
      if (!is_expr(check, op->lo) || !is_expr(check, op->hi))
        return ftl_check_fail(check, "a bound uses a loop variable outside its loop");
      return FTL_OK;
    case FTL_TILE_END_LOOP:
    case FTL_TILE_BARRIER:
      return FTL_OK;
    case FTL_TILE_ARRIVE:
    case FTL_TILE_SYNC:
      return check_barrier(check, op);
    case FTL_TILE_ACQUIRE:
    case FTL_TILE_COMMIT:
      return check_ring_role(check, op->ring, true);
    case FTL_TILE_WAIT:
    case FTL_TILE_RELEASE:
      return check_ring_role(check, op->ring, false);
    case FTL_TILE_LOOKUP:
      return check_lookup(check, op);
    case FTL_TILE_LOAD:
      return check_load(check, op);
    case FTL_TILE_LOAD_TILE:
    case FTL_TILE_LOAD_ROWS:
    case FTL_TILE_LOAD_COLUMNS:
      return check_load_direct(check, op);
    case FTL_TILE_FILL:
      return is_value(check, op->dst) ? FTL_OK : ftl_check_fail(check, "the destination is not a value of this role");
    case FTL_TILE_FETCH:
      return check_fetch(check, op);
    case FTL_TILE_PUT:
      return check_put(check, op);
    case FTL_TILE_TRANSPOSE:
      return check_transpose(check, op);
    case FTL_TILE_DEQUANTIZE:
      return check_dequantize(check, op);
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
    case FTL_TILE_REDUCE_GROUPS:
      return check_reduce(check, op);
    case FTL_TILE_GATHER:
      return check_gather(check, op);
    case FTL_TILE_CONVERT:
      return check_convert(check, op);
    case FTL_TILE_STORE_MERGED:
      return check_store_merged(check, op);
    case FTL_TILE_ATOMIC_ADD:
      return check_atomic_add(check, op);
    case FTL_TILE_TOP:
      return check_top(check, op);
    case FTL_TILE_STORE_TOP:
      return check_store_top(check, op);
    case FTL_TILE_STORE:
    case FTL_TILE_STORE_ROWS:
      return check_store(check, op);
  }
  return ftl_check_fail(check, "no such op");
}
