#include "tile/check_operands.h"

bool ftl_check_is_value(const ftl_check *check, int32_t value) {
  return value >= 0 && value < check->program->num_values && check->program->values[value].role == check->role_idx;
}

bool ftl_check_is_tile(const ftl_check *check, int32_t value) {
  return ftl_check_is_value(check, value) && check->program->values[value].kind == FTL_VALUE_TILE;
}

bool ftl_check_is_rows(const ftl_check *check, int32_t value) {
  return ftl_check_is_value(check, value) && check->program->values[value].kind == FTL_VALUE_ROWS;
}

bool ftl_check_is_ring(const ftl_check *check, int32_t ring) { return ring >= 0 && ring < check->program->num_rings; }

bool ftl_check_is_bound(const ftl_check *check, ftl_expr expr) {
  if (expr < 0 || expr >= check->program->num_exprs) return false;
  const ftl_expr_node *node = &check->program->exprs[expr];
  switch (node->kind) {
    case FTL_EXPR_CONST:
    case FTL_EXPR_CTA:
    case FTL_EXPR_WARP:
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
  return node->a < expr && node->b < expr && ftl_check_is_bound(check, node->a) && ftl_check_is_bound(check, node->b);
}

bool ftl_check_is_expr(const ftl_check *check, ftl_expr expr) {
  return ftl_check_is_bound(check, expr) && !ftl_expr_uses_warp(check->program, expr);
}

// Pages lie inside of their tensor, whatever entry a tile takes.
static ftl_status check_pages(const ftl_check *check, const ftl_tile_ref *ref) {
  const ftl_tensor *tensor = &check->program->tensors[ref->tensor];
  const ftl_pages *pages = &ref->pages;
  if (pages->page_rows == 0) return FTL_OK;
  if (pages->page_rows < 0 || pages->table < 0 || pages->table >= check->program->num_tensors ||
      !check->program->tensors[pages->table].table || !ftl_check_is_expr(check, pages->first_entry) ||
      !ftl_check_is_expr(check, pages->entry) || ref->row_end == FTL_TENSOR_END || pages->page_stride < 0)
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

ftl_status ftl_check_ref(const ftl_check *check, const ftl_tile_ref *ref, bool is_store) {
  const ftl_tile_program *program = check->program;
  if (ref->tensor < 0 || ref->tensor >= program->num_tensors) return ftl_check_fail(check, "no such tensor");
  const ftl_tensor *tensor = &program->tensors[ref->tensor];
  if (ref->rows < 1 || ref->columns < 1 || ref->columns > tensor->num_columns)
    return ftl_check_fail(check, "%d x %d is not a tile of %s, which has %lld columns", ref->rows, ref->columns,
                          tensor->name, (long long)tensor->num_columns);
  if (is_store && tensor->use == FTL_TENSOR_INPUT) return ftl_check_fail(check, "stores to the input %s", tensor->name);
  if (!is_store && tensor->use == FTL_TENSOR_OUTPUT) return ftl_check_fail(check, "loads the output %s", tensor->name);
  if (!ftl_check_is_expr(check, ref->batch) || !ftl_check_is_expr(check, ref->head) ||
      !ftl_check_is_expr(check, ref->row) || !ftl_check_is_expr(check, ref->column) ||
      !ftl_check_is_expr(check, ref->column_end) || !ftl_check_is_expr(check, ref->row_end) ||
      (ref->present != FTL_ALWAYS && !ftl_check_is_expr(check, ref->present)))
    return ftl_check_fail(check, "an expression of the tile of %s uses a loop variable outside its loop", tensor->name);
  return check_pages(check, ref);
}

ftl_status ftl_check_ring_role(const ftl_check *check, int32_t ring, bool produces) {
  if (!ftl_check_is_ring(check, ring)) return ftl_check_fail(check, "no such ring");
  const ftl_ring *info = &check->program->rings[ring];
  if (produces ? info->producer == check->role_idx : (info->consumers_mask >> check->role_idx & 1) != 0) return FTL_OK;
  return ftl_check_fail(check, "role %s is not a %s of ring %s", check->program->roles[check->role_idx].name,
                        produces ? "producer" : "consumer", info->name);
}

bool ftl_check_same_threads(const ftl_value *a, const ftl_value *b) {
  return a->layout.threads_per_row == b->layout.threads_per_row && a->warps_per_row == b->warps_per_row;
}

bool ftl_check_same_layout(const ftl_value *a, const ftl_value *b) {
  return ftl_check_same_threads(a, b) && a->layout.vector_columns == b->layout.vector_columns &&
         a->is_repeated == b->is_repeated;
}

bool ftl_check_is_fragment(const ftl_check *check, int32_t value) {
  return check->program->values[value].layout.threads_per_row == 0;
}

bool ftl_check_has_whole_rows(const ftl_check *check, int32_t value) {
  const ftl_value *held = &check->program->values[value];
  return ftl_check_is_fragment(check, value) && (held->warps_per_row == 1 || held->is_repeated);
}

bool ftl_check_is_row_wise(const ftl_check *check, int32_t value) {
  return ftl_check_is_tile(check, value) && check->program->values[value].layout.threads_per_row > 0 &&
         check->program->values[value].dtype == FTL_FP32;
}

ftl_status ftl_check_vector(const ftl_check *check, const ftl_value *value, const ftl_tensor *tensor) {
  enum { LEAST_BYTES = 2, MOST_BYTES = 16 };
  if (value->kind != FTL_VALUE_TILE || value->layout.threads_per_row == 0) return FTL_OK;
  int32_t bytes = value->layout.vector_columns * ftl_dtype_bytes(tensor->dtype);
  if (bytes >= LEAST_BYTES && bytes <= MOST_BYTES) return FTL_OK;
  return ftl_check_fail(check, "%d columns of %s at once are %d bytes a lane: allowed are %d to %d",
                        value->layout.vector_columns, value->name, bytes, LEAST_BYTES, MOST_BYTES);
}

ftl_status ftl_check_staging(const ftl_check *check, int32_t ring, int64_t num_numbers) {
  if (!ftl_check_is_ring(check, ring)) return ftl_check_fail(check, "what warps exchange needs a staging ring");
  const ftl_ring *info = &check->program->rings[ring];
  int64_t wanted = num_numbers * ftl_dtype_bytes(FTL_FP32);
  int64_t has = (int64_t)info->rows * info->columns * info->num_stages * ftl_dtype_bytes(info->dtype);
  if (wanted <= has) return FTL_OK;
  return ftl_check_fail(check, "ring %s of %lld bytes is too small to stage %lld", info->name, (long long)has,
                        (long long)wanted);
}

ftl_status ftl_check_group_staging(const ftl_check *check, int32_t ring, int32_t rows, int32_t columns) {
  return ftl_check_staging(check, ring, (int64_t)check->program->roles[check->role_idx].num_groups * rows * columns);
}

ftl_status ftl_check_fetched_b(const ftl_check *check, const ftl_tile_op *op, int32_t value) {
  enum { BYTES = 2, UNIT = 16 };
  if (!ftl_check_is_tile(check, value) || !ftl_check_has_whole_rows(check, value))
    return ftl_check_fail(check, "B in registers is a tile of this role that is held as fragments of whole rows");
  const ftl_ring *ring = &check->program->rings[op->ring];
  const ftl_value *b = &check->program->values[value];
  const ftl_role *role = &check->program->roles[check->role_idx];
  int32_t share = ring->rows / role->num_groups;
  int32_t n = op->transpose_b ? share : ring->columns, k = op->transpose_b ? ring->columns : share;
  if (role->num_warps != role->num_groups || ring->rows % role->num_groups != 0)
    return ftl_check_fail(check, "B in registers: each warp of the role is a group with an equal share of %s",
                          ring->name);
  if (b->rows != n || b->columns != k || b->dtype != ring->dtype)
    return ftl_check_fail(check, "%s differs from a group's share of ring %s, [%d][%d]", b->name, ring->name, n, k);
  if (ftl_dtype_bytes(b->dtype) == BYTES && n % UNIT == 0 && k % UNIT == 0) return FTL_OK;
  return ftl_check_fail(check, "%s: B in registers is of 16 bits, in blocks of 16 x 16", b->name);
}
