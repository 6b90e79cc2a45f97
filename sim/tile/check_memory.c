// Ops that move tiles: between memory, rings and registers.
#include "tile/check_operands.h"

static ftl_status check_lookup(const ftl_check *check, const ftl_tile_op *op) {
  const ftl_tile_program *program = check->program;
  if (op->lookup == FTL_PAGE_ENTRIES) return ftl_check_ref(check, &op->ref, false);
  bool is_lookup = ftl_check_is_expr(check, op->lookup) && program->exprs[op->lookup].kind == FTL_EXPR_LOOKUP;
  if (!is_lookup || program->exprs[op->lookup].value != op->ref.tensor || program->exprs[op->lookup].a != op->ref.row)
    return ftl_check_fail(check, "the expression is no lookup of that entry");
  return ftl_check_ref(check, &op->ref, false);
}

static ftl_status check_load(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ring_role(check, op->ring, true);
  if (status == FTL_OK) status = ftl_check_ref(check, &op->ref, false);
  if (status != FTL_OK) return status;
  const ftl_ring *ring = &check->program->rings[op->ring];
  if (op->ring_row < 0 || op->ref.rows > ring->rows - op->ring_row || op->ref.columns > ring->columns)
    return ftl_check_fail(check, "a tile of %d x %d does not fit ring %s of %d x %d from row %d on", op->ref.rows,
                          op->ref.columns, ring->name, ring->rows, ring->columns, op->ring_row);
  if (op->ring_row > 0 && ring->multicast.num_ctas > 1)
    return ftl_check_fail(check, "the CTAs of a cluster share whole tiles, not rows from %d on", op->ring_row);
  if (check->program->tensors[op->ref.tensor].dtype != ring->dtype)
    return ftl_check_fail(check, "ring %s has another dtype than its tensor", ring->name);
  return FTL_OK;
}

static ftl_status check_load_direct(const ftl_check *check, const ftl_tile_op *op) {
  static const char *const wanted[] = {"tile", "rows value", "columns value"};
  ftl_value_kind kind = op->kind == FTL_TILE_LOAD_TILE   ? FTL_VALUE_TILE
                        : op->kind == FTL_TILE_LOAD_ROWS ? FTL_VALUE_ROWS
                                                         : FTL_VALUE_COLUMNS;
  ftl_status status = ftl_check_ref(check, &op->ref, false);
  if (status != FTL_OK) return status;
  if (!ftl_check_is_value(check, op->dst) || check->program->values[op->dst].kind != kind)
    return ftl_check_fail(check, "the destination is not a %s of this role", wanted[kind]);
  const ftl_value *dst = &check->program->values[op->dst];
  const ftl_tensor *tensor = &check->program->tensors[op->ref.tensor];
  bool of_columns = kind == FTL_VALUE_COLUMNS, swapped = op->ref.transposed;
  if (swapped && (kind != FTL_VALUE_TILE || dst->layout.vector_columns != 1 || op->ref.pages.page_rows > 0))
    return ftl_check_fail(check, "%s is not held row-wise, an element a thread, as what is loaded transposed",
                          dst->name);
  int32_t most_rows = of_columns || swapped ? dst->columns : dst->rows;
  int32_t most_columns = of_columns ? 1 : swapped ? dst->rows : dst->columns;
  if (op->ref.rows > most_rows || op->ref.columns > most_columns)
    return ftl_check_fail(check, "a tile of %d x %d is larger than %s", op->ref.rows, op->ref.columns, dst->name);
  if (dst->dtype != tensor->dtype)
    return ftl_check_fail(check, "%s has another dtype than %s", dst->name, tensor->name);
  if (ftl_tile_num_copies(check->program, op->dst) > 1)
    return ftl_check_fail(check, "the groups of a role do not load %s for each of them", dst->name);
  if (kind == FTL_VALUE_TILE && ftl_check_is_fragment(check, op->dst) && dst->dtype != FTL_FP32)
    return ftl_check_fail(check, "%s is held as fragments of %s; only fp32 sums and row-wise tiles are loaded directly",
                          dst->name, ftl_dtype_name(dst->dtype));
  return ftl_check_vector(check, dst, tensor);
}

static bool is_columns(const ftl_check *check, int32_t value) {
  return ftl_check_is_value(check, value) && check->program->values[value].kind == FTL_VALUE_COLUMNS;
}

static ftl_status check_fetch_columns(const ftl_check *check, const ftl_tile_op *op) {
  const ftl_ring *ring = &check->program->rings[op->ring];
  const ftl_value *dst = &check->program->values[op->dst];
  if (op->as_b || !ftl_ring_holds_columns(ring) || dst->columns != ring->rows || dst->dtype != ring->dtype)
    return ftl_check_fail(check, "ring %s does not hold a number for each column of %s", ring->name, dst->name);
  if (ftl_tile_num_copies(check->program, op->dst) > 1)
    return ftl_check_fail(check, "the groups of a role do not fetch %s for each of them", dst->name);
  return FTL_OK;
}

static ftl_status check_fetch(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ring_role(check, op->ring, false);
  if (status != FTL_OK) return status;
  if (is_columns(check, op->dst)) return check_fetch_columns(check, op);
  if (!ftl_check_is_tile(check, op->dst)) return ftl_check_fail(check, "the destination is not a tile of this role");
  if (op->as_b) return ftl_check_fetched_b(check, op, op->dst);
  const ftl_ring *ring = &check->program->rings[op->ring];
  const ftl_value *dst = &check->program->values[op->dst];
  if (!ftl_check_has_whole_rows(check, op->dst))
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
  ftl_status status = ftl_check_ring_role(check, op->ring, true);
  if (status != FTL_OK) return status;
  if (!ftl_check_is_tile(check, op->a.value) || !ftl_check_is_fragment(check, op->a.value))
    return ftl_check_fail(check, "the source is not a tile of this role that is held as fragments");
  const ftl_ring *ring = &check->program->rings[op->ring];
  const ftl_value *a = &check->program->values[op->a.value];
  if (a->rows != ring->rows || a->columns != ring->columns || a->dtype != ring->dtype)
    return ftl_check_fail(check, "%s differs from ring %s in shape or dtype", a->name, ring->name);
  if (check->program->roles[check->role_idx].num_groups > 1 || a->is_repeated)
    return ftl_check_fail(check, "each of several groups or warps has a copy of %s", a->name);
  if (is_loaded(check, op->ring)) return ftl_check_fail(check, "ring %s is filled by loads as well", ring->name);
  return FTL_OK;
}

static ftl_status check_transpose(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ring_role(check, op->ring, true);
  if (status == FTL_OK) status = ftl_check_ring_role(check, op->ring_a, false);
  if (status != FTL_OK) return status;
  const ftl_ring *to = &check->program->rings[op->ring], *from = &check->program->rings[op->ring_a];
  if (to->rows != from->columns || to->columns != from->rows || to->dtype != from->dtype ||
      ftl_dtype_bytes(to->dtype) != 1)
    return ftl_check_fail(check, "ring %s is not ring %s of one-byte elements, transposed", to->name, from->name);
  if (is_loaded(check, op->ring)) return ftl_check_fail(check, "ring %s is filled by loads as well", to->name);
  return FTL_OK;
}

static ftl_status check_dequantize(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ring_role(check, op->ring, true);
  if (status == FTL_OK) status = ftl_check_ring_role(check, op->ring_a, false);
  if (status == FTL_OK) status = ftl_check_ring_role(check, op->ring_scales, false);
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

static ftl_status check_store(const ftl_check *check, const ftl_tile_op *op) {
  bool of_rows = op->kind == FTL_TILE_STORE_ROWS;
  ftl_status status = ftl_check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  if (of_rows ? !ftl_check_is_rows(check, op->a.value) : !ftl_check_is_tile(check, op->a.value))
    return ftl_check_fail(check, "the source is not a %s of this role", of_rows ? "rows value" : "tile");
  const ftl_value *a = &check->program->values[op->a.value];
  if (op->ref.rows > a->rows || op->ref.columns > a->columns)
    return ftl_check_fail(check, "a tile of %d x %d is larger than %s", op->ref.rows, op->ref.columns, a->name);
  if (!of_rows && ftl_tile_num_copies(check->program, op->a.value) > 1)
    return ftl_check_fail(check, "each of several groups has a copy of %s: store_merged makes them one", a->name);
  if (!of_rows && a->is_repeated) return ftl_check_fail(check, "each of several warps has all of %s", a->name);
  if (op->ring < 0) return ftl_check_vector(check, a, &check->program->tensors[op->ref.tensor]);
  if (!ftl_check_is_fragment(check, op->a.value)) return ftl_check_fail(check, "%s is stored directly only", a->name);
  if (!ftl_check_is_ring(check, op->ring)) return ftl_check_fail(check, "no such ring");
  const ftl_ring *ring = &check->program->rings[op->ring];
  bool is_mine = ring->producer == check->role_idx || (ring->consumers_mask >> check->role_idx & 1) != 0;
  if (!is_mine) return ftl_check_fail(check, "ring %s is not one of this role's", ring->name);
  bool in_pieces = op->ref.columns > ring->columns && op->ring_row == 0;
  if (op->ring_row < 0 || op->ring_row + op->ref.rows > ring->rows || (op->ref.columns > ring->columns && !in_pieces) ||
      ftl_dtype_bytes(check->program->tensors[op->ref.tensor].dtype) > ftl_dtype_bytes(ring->dtype))
    return ftl_check_fail(check, "ring %s is too small to stage the tile", ring->name);
  return FTL_OK;
}

static ftl_status check_store_top(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  if (!ftl_check_is_row_wise(check, op->b.value) || (op->a.value >= 0 && !ftl_check_is_row_wise(check, op->a.value)))
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
  if (a->rows == ranks->rows && a->columns == ranks->columns && ftl_check_same_layout(a, ranks)) return FTL_OK;
  return ftl_check_fail(check, "%s and %s differ in shape or layout", a->name, ranks->name);
}

static ftl_status check_store_merged(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  if (!ftl_check_is_tile(check, op->a.value) || !ftl_check_is_rows(check, op->b.value) ||
      !ftl_check_is_rows(check, op->c.value))
    return ftl_check_fail(check, "the sources are not a tile and two rows values of this role");
  const ftl_value *values = check->program->values, *a = &values[op->a.value];
  if (op->ref.rows > a->rows || op->ref.columns > a->columns)
    return ftl_check_fail(check, "a tile of %d x %d is larger than %s", op->ref.rows, op->ref.columns, a->name);
  if (values[op->b.value].rows != a->rows || values[op->c.value].rows != a->rows ||
      !ftl_check_is_fragment(check, op->a.value) || !ftl_check_is_fragment(check, op->b.value) ||
      !ftl_check_is_fragment(check, op->c.value))
    return ftl_check_fail(check, "the sources are not fragments of %d rows each", a->rows);
  if (a->dtype != FTL_FP32 || check->program->tensors[op->ref.tensor].dtype != FTL_FP32)
    return ftl_check_fail(check, "states are merged and stored in fp32");
  const int32_t maximum_and_sum = 2;
  status = ftl_check_group_staging(check, op->ring_a, a->rows, maximum_and_sum);
  return status == FTL_OK ? ftl_check_group_staging(check, op->ring, a->rows, a->columns) : status;
}

static ftl_status check_atomic_add(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ref(check, &op->ref, true);
  if (status != FTL_OK) return status;
  const ftl_tensor *tensor = &check->program->tensors[op->ref.tensor];
  if (!ftl_check_is_tile(check, op->a.value) || !ftl_check_is_fragment(check, op->a.value) ||
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

ftl_status ftl_check_memory_op(const ftl_check *check, const ftl_tile_op *op) {
  switch (op->kind) {
    case FTL_TILE_LOOKUP:
      return check_lookup(check, op);
    case FTL_TILE_LOAD:
      return check_load(check, op);
    case FTL_TILE_LOAD_TILE:
    case FTL_TILE_LOAD_ROWS:
    case FTL_TILE_LOAD_COLUMNS:
      return check_load_direct(check, op);
    case FTL_TILE_FETCH:
      return check_fetch(check, op);
    case FTL_TILE_PUT:
      return check_put(check, op);
    case FTL_TILE_TRANSPOSE:
      return check_transpose(check, op);
    case FTL_TILE_DEQUANTIZE:
      return check_dequantize(check, op);
    case FTL_TILE_STORE_MERGED:
      return check_store_merged(check, op);
    case FTL_TILE_ATOMIC_ADD:
      return check_atomic_add(check, op);
    case FTL_TILE_STORE_TOP:
      return check_store_top(check, op);
    case FTL_TILE_STORE:
    case FTL_TILE_STORE_ROWS:
      return check_store(check, op);
    default:
      return ftl_check_fail(check, "no such op");
  }
}
