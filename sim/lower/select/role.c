// One role, operation by operation.
#include <string.h>

#include "lower/select/select.h"

#define NONE FTL_NO_VALUE

// B of products, whose rows are columns of theirs: not of the 16 rows that a warp of a group has.
static bool holds_b(const ftl_select *s, int32_t value) {
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_FETCH && op->as_b && op->dst == value) return true;
  }
  return false;
}

static void add_values(ftl_select *s) {
  for (int32_t v = 0; v < s->tile->num_values; v++) {
    const ftl_value *value = &s->tile->values[v];
    if (value->role != s->role_idx) continue;
    int32_t row_warps = ftl_role_row_warps(s->role), across = value->warps_per_row;
    if (value->kind != FTL_VALUE_COLUMNS && value->layout.threads_per_row == 0 &&
        value->rows * across % (FTL_SLAB_ROWS * row_warps) != 0) {
      ftl_select_fail(s, "%s of %d rows over %d warps: each warp needs a multiple of %d rows", value->name, value->rows,
                      row_warps / across, FTL_SLAB_ROWS);
      return;
    }
    int32_t fragment_columns = value->dtype == FTL_FP32 ? s->shape.accumulator_columns : FTL_OPERAND_COLUMNS;
    if (across > 1 && value->kind == FTL_VALUE_TILE && ftl_value_warp_columns(value) % fragment_columns != 0) {
      ftl_select_fail(s, "%s of %d columns over %d warps: each warp needs a multiple of %d columns", value->name,
                      value->columns, across, fragment_columns);
      return;
    }
    bool by_rows = value->layout.threads_per_row > 0;
    ftl_fragment_map map = ftl_fragment_map_of(&s->shape, value, by_rows ? s->role->num_warps : row_warps);
    if (!by_rows && s->role->num_groups > 1 && map.num_slabs > 1 && !holds_b(s, v)) {
      ftl_select_fail(s, "%s of %d rows over %d groups of %d warps: a warp of a group has %d rows", value->name,
                      value->rows, s->role->num_groups, row_warps, FTL_SLAB_ROWS);
      return;
    }
    int32_t most = by_rows ? FTL_SELECT_MAX_VECTORS : FTL_SELECT_MAX_FRAGMENTS;
    if (map.num_slabs > FTL_SELECT_MAX_FRAGMENTS || map.per_slab > most) {
      ftl_select_fail(s, "%s of %d x %d is too large a register tile", value->name, value->rows, value->columns);
      return;
    }
    s->values[v] = (ftl_select_value){
        .first = s->draft.num_values, .map = map, .reserve = NONE, .first_bit_row = NONE, .put_ring = NONE};
    for (int32_t i = 0; i < map.num_slabs * map.per_slab; i++) ftl_select_temp(s, map.num_registers);
  }
}

// What an operation does with register tiles before its own selection sees them: the operands that it reads, and
// whether it changes or replaces dst. Others touch none, or settle theirs themselves.
typedef struct register_use {
  bool reads[3];  // a, b, c
  enum { KEEPS_DST, CHANGES_DST, REPLACES_DST } dst;
} register_use;

static register_use use_of(ftl_tile_op_kind kind) {
  static const register_use uses[] = {
      [FTL_TILE_LOAD_TILE] = {.dst = REPLACES_DST},
      [FTL_TILE_LOAD_ROWS] = {.dst = REPLACES_DST},
      [FTL_TILE_LOAD_COLUMNS] = {.dst = REPLACES_DST},
      [FTL_TILE_FILL] = {.dst = REPLACES_DST},
      [FTL_TILE_FETCH] = {.dst = REPLACES_DST},
      [FTL_TILE_ELEM] = {{true, true, true}, REPLACES_DST},
      [FTL_TILE_TOP] = {{true}, REPLACES_DST},
      [FTL_TILE_GATHER] = {{true}, REPLACES_DST},
      [FTL_TILE_CONVERT] = {{true}, REPLACES_DST},
      [FTL_TILE_MMA] = {{true}, CHANGES_DST},
      [FTL_TILE_MASK] = {.dst = CHANGES_DST},
      [FTL_TILE_MASK_BITS] = {.dst = CHANGES_DST},
      [FTL_TILE_DROPOUT] = {.dst = CHANGES_DST},
      [FTL_TILE_REDUCE_LANES] = {.dst = CHANGES_DST},
      [FTL_TILE_REDUCE_WARPS] = {.dst = CHANGES_DST},
      [FTL_TILE_REDUCE_GROUPS] = {.dst = CHANGES_DST},
      [FTL_TILE_REDUCE_ROWS] = {{true}, CHANGES_DST},
      [FTL_TILE_STORE_TOP] = {.reads = {true, true}},
      [FTL_TILE_STORE_MERGED] = {.reads = {true, true, true}},
      [FTL_TILE_PUT] = {.reads = {true}},
      [FTL_TILE_STORE] = {.reads = {true}},
      [FTL_TILE_STORE_ROWS] = {.reads = {true}},
      [FTL_TILE_ATOMIC_ADD] = {.reads = {true}},
  };
  return (size_t)kind < sizeof uses / sizeof *uses ? uses[kind] : (register_use){.dst = KEEPS_DST};
}

// Settles what operands still owe: a FILL put off, a wgmma in flight.
static void settle_operands(ftl_select *s, const ftl_tile_op *op) {
  register_use use = use_of(op->kind);
  const ftl_operand *operands[] = {&op->a, &op->b, &op->c};
  bool is_mma = op->kind == FTL_TILE_MMA;
  if (is_mma && op->ring_a >= 0) use.reads[0] = false;  // A is in shared memory
  for (int i = 0; i < 3; i++)
    if (use.reads[i] && operands[i]->value >= 0) {
      ftl_select_settle_groups(s, operands[i]->value, false, NONE);
      ftl_select_settle_fill(s, operands[i]->value);
    }
  if (use.dst == KEEPS_DST) return;
  s->values[op->dst].put_ring = NONE;
  if (is_mma) return;  // a product's accumulator may be 0 or in flight
  ftl_select_settle_groups(s, op->dst, true, NONE);
  if (use.dst == REPLACES_DST)
    s->values[op->dst].zero_pending = false;
  else if (!ftl_select_starts_sum(s, op))
    ftl_select_settle_fill(s, op->dst);
}

static void select_mma(ftl_select *s, const ftl_tile_op *op) {
  if (s->mma == FTL_MMA_WGMMA)
    ftl_select_wgmma(s, op);
  else
    ftl_select_mma_sync(s, op);
}

static void select_barrier(ftl_select *s, const ftl_tile_op *op) {
  (void)op;
  ftl_select_barrier(s);
}

static void select_op(ftl_select *s, const ftl_tile_op *op) {
  static void (*const select_of[])(ftl_select *, const ftl_tile_op *) = {
      [FTL_TILE_LOOP] = ftl_select_loop,
      [FTL_TILE_END_LOOP] = ftl_select_end_loop,
      [FTL_TILE_ACQUIRE] = ftl_select_acquire,
      [FTL_TILE_LOOKUP] = ftl_select_lookup,
      [FTL_TILE_LOAD] = ftl_select_load,
      [FTL_TILE_LOAD_TILE] = ftl_select_load_tile,
      [FTL_TILE_LOAD_ROWS] = ftl_select_load_rows,
      [FTL_TILE_LOAD_COLUMNS] = ftl_select_load_columns,
      [FTL_TILE_COMMIT] = ftl_select_commit,
      [FTL_TILE_WAIT] = ftl_select_wait,
      [FTL_TILE_RELEASE] = ftl_select_release,
      [FTL_TILE_FILL] = ftl_select_fill,
      [FTL_TILE_FETCH] = ftl_select_fetch,
      [FTL_TILE_PUT] = ftl_select_put,
      [FTL_TILE_DEQUANTIZE] = ftl_select_dequantize,
      [FTL_TILE_TRANSPOSE] = ftl_select_transpose,
      [FTL_TILE_ELEM] = ftl_select_elem,
      [FTL_TILE_MASK] = ftl_select_mask,
      [FTL_TILE_MASK_BITS] = ftl_select_mask_bits,
      [FTL_TILE_DROPOUT] = ftl_select_dropout,
      [FTL_TILE_REDUCE_ROWS] = ftl_select_reduce_rows,
      [FTL_TILE_REDUCE_LANES] = ftl_select_reduce_lanes,
      [FTL_TILE_REDUCE_WARPS] = ftl_select_reduce_warps,
      [FTL_TILE_REDUCE_GROUPS] = ftl_select_reduce_groups,
      [FTL_TILE_TOP] = ftl_select_top,
      [FTL_TILE_STORE_TOP] = ftl_select_store_top,
      [FTL_TILE_GATHER] = ftl_select_gather,
      [FTL_TILE_CONVERT] = ftl_select_convert,
      [FTL_TILE_STORE_MERGED] = ftl_select_store_merged,
      [FTL_TILE_STORE] = ftl_select_store,
      [FTL_TILE_ATOMIC_ADD] = ftl_select_atomic_add,
      [FTL_TILE_STORE_ROWS] = ftl_select_store_rows,
      [FTL_TILE_MMA] = select_mma,
      [FTL_TILE_BARRIER] = select_barrier,
      [FTL_TILE_ARRIVE] = ftl_select_named_barrier,
      [FTL_TILE_SYNC] = ftl_select_named_barrier,
  };
  ftl_select_end_part(s, op);
  settle_operands(s, op);
  select_of[op->kind](s, op);
}

static void clear_virtuals(ftl_select *s) {
  for (int32_t r = 0; r < FTL_TILE_MAX_RINGS; r++) {
    memset(&s->rings[r], 0, sizeof s->rings[r]);
    s->rings[r].read_offset = s->rings[r].read_address = s->rings[r].write_offset = s->rings[r].write_address = NONE;
    s->rings[r].read_index = s->rings[r].write_index = s->rings[r].copy_mask = NONE;
    for (int k = 0; k < FTL_OPERAND_KIND_COUNT; k++) s->rings[r].first_kept[k] = NONE;
  }
  for (int32_t t = 0; t < FTL_TILE_MAX_TENSORS; t++) s->tensor_pointer[t] = NONE;
  s->copied[0] = s->copied[1] = s->stored = NONE;
  s->parts.held = s->parts.pending_op_idx = NONE;
  s->parts.has_chunks = false;
  for (int32_t i = 0; i < FTL_SELECT_MAX_FRAGMENTS; i++)
    for (int32_t set = 0; set < 2; set++) {
      s->parts.a[set][i] = NONE;
      for (int32_t b = 0; b < FTL_SELECT_MAX_PRODUCTS; b++) s->parts.b[b][set][i] = NONE;
    }
}

static bool names(const ftl_tile_op *op, int32_t value) {
  return op->dst == value || op->a.value == value || op->b.value == value || op->c.value == value;
}

// The product whose operand the conversion at operation i makes; -1: it makes none of mma.sync's in its loop, or
// something else names what it takes or gives on the way.
static int32_t product_of_conversion(const ftl_select *s, int32_t i) {
  const ftl_tile_op *conversion = ftl_select_op_at(s, i);
  if (conversion->kind != FTL_TILE_CONVERT || s->mma == FTL_MMA_WGMMA) return -1;
  for (int32_t j = i + 1; j < s->role->num_ops; j++) {
    const ftl_tile_op *op = ftl_select_op_at(s, j);
    if (op->kind == FTL_TILE_MMA && op->ring_a < 0 && op->a.value == conversion->dst) return j;
    if (op->kind == FTL_TILE_LOOP || op->kind == FTL_TILE_END_LOOP) return -1;
    if (names(op, conversion->dst) || names(op, conversion->a.value)) return -1;
  }
  return -1;
}

// A compiler sinks a conversion to the product that reads it: what stands between them, as the block of copies of a
// tile that may not exist, finds the numbers in single precision. In SASS of flash2_mma.h each k step's F2FP stand
// right before its products, all behind the copies.
static void select_conversion_of(ftl_select *s, int32_t product) {
  for (int32_t i = product - 1; i >= 0 && ftl_select_op_at(s, i)->kind != FTL_TILE_LOOP; i--) {
    if (product_of_conversion(s, i) != product) continue;
    s->op_idx = i;
    select_op(s, ftl_select_op_at(s, i));
    s->op_idx = product;
    return;
  }
}

// The operation at op_idx. A conversion comes with its product.
static void select_here(ftl_select *s) {
  if (product_of_conversion(s, s->op_idx) >= 0) return;
  if (ftl_select_op_at(s, s->op_idx)->kind == FTL_TILE_MMA) select_conversion_of(s, s->op_idx);
  select_op(s, ftl_select_op_at(s, s->op_idx));
}

// Leaves the last of the operations the present one.
static void select_in_turns(ftl_select *s, ftl_row_turns turns) {
  int32_t first = s->op_idx, end = first + turns.num_ops;
  s->in_turns = true;
  for (s->turn = 0; s->turn < turns.num_turns; s->turn++)
    for (s->op_idx = first; s->op_idx < end; s->op_idx++) select_here(s);
  s->in_turns = false;
  s->op_idx = end - 1;
}

static void select_in_lane_turns(ftl_select *s, ftl_row_turns turns) {
  int32_t first = s->op_idx, end = first + turns.num_ops;
  s->in_lane_turns = true;
  for (s->turn = 0; s->turn < turns.num_turns; s->turn++) {
    int32_t first_inst = s->draft.num_insts, num_values = s->draft.num_values;
    for (s->op_idx = first; s->op_idx < end; s->op_idx++) select_here(s);
    ftl_select_end_lane_turn(s, first_inst, num_values);
  }
  s->in_lane_turns = false;
  s->op_idx = end - 1;
}

ftl_status ftl_select_role(ftl_select *s, ftl_error *error) {
  s->status = FTL_OK;
  s->error = error;
  clear_virtuals(s);
  add_values(s);
  if (s->status != FTL_OK) return s->status;
  ftl_select_prologue(s);
  for (s->op_idx = 0; s->op_idx < s->role->num_ops && s->status == FTL_OK; s->op_idx++) {
    if (s->op_idx == s->role->num_setup_ops) ftl_select_tile_begin(s);
    ftl_row_turns turns = ftl_select_row_turns(s), lane_turns = ftl_select_lane_turns(s);
    if (lane_turns.num_ops > 0)
      select_in_lane_turns(s, lane_turns);
    else if (turns.num_ops > 0)
      select_in_turns(s, turns);
    else
      select_here(s);
  }
  ftl_select_epilogue(s);
  if (s->status == FTL_OK && s->lists->failed)
    s->status = ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory, or too many accesses", s->tile->name);
  return s->status;
}
