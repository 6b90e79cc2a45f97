// Rows of a thread that finish one after another. A reciprocal of plain code has branches (elementwise.c), over which
// ptxas moves nothing: in a loop over a thread's rows that is written out, all of a row stands between its branch and
// that of the next, from what the warps left in shared memory to the store (SASS of kernels/attention/flash1_mma.h).
#include "lower/select/select.h"

ftl_slab_span ftl_select_slabs(const ftl_select *s, int32_t value) {
  if (s->in_turns) return (ftl_slab_span){s->turn, s->turn + 1};
  return (ftl_slab_span){0, s->values[value].map.num_slabs};
}

// The row-wise value that an operation makes or stores; FTL_NO_VALUE: it is none that can take turns.
static int32_t row_wise_value(const ftl_select *s, const ftl_tile_op *op) {
  int32_t value = FTL_NO_VALUE;
  if (op->kind == FTL_TILE_GATHER || op->kind == FTL_TILE_ELEM) value = op->dst;
  if (op->kind == FTL_TILE_STORE || op->kind == FTL_TILE_STORE_ROWS) value = op->a.value;
  return value >= 0 && ftl_select_is_by_rows(s, value) ? value : FTL_NO_VALUE;
}

ftl_row_turns ftl_select_row_turns(const ftl_select *s) {
  const ftl_row_turns none = {0, 1};
  ftl_row_turns turns = none;
  bool branches = false;
  if (!s->plain_code) return none;
  for (int32_t i = s->op_idx; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    int32_t value = row_wise_value(s, op);
    if (value == FTL_NO_VALUE) break;
    if (turns.num_ops == 0) turns.num_turns = s->values[value].map.num_slabs;
    if (s->values[value].map.num_slabs != turns.num_turns) break;
    turns.num_ops++;
    branches |= op->kind == FTL_TILE_ELEM && op->fn == FTL_ELEM_RECIP;
  }
  return branches && turns.num_turns > 1 ? turns : none;
}
