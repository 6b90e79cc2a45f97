// Row reductions: each lane over the columns it holds, then over the lanes that share a row.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE

static ftl_opcode opcode_of(ftl_elem_fn fn) { return fn == FTL_ELEM_MAX ? FTL_OP_FMNMX : FTL_OP_FFMA; }

bool ftl_select_contracts(const ftl_select *s, int32_t op_idx) {
  if (op_idx < 0 || op_idx + 1 >= s->role->num_ops) return false;
  const ftl_tile_op *scale = ftl_select_op_at(s, op_idx), *sum = scale + 1;
  return scale->kind == FTL_TILE_ELEM && scale->fn == FTL_ELEM_MUL && scale->a.value == scale->dst &&
         sum->kind == FTL_TILE_REDUCE_ROWS && sum->fn == FTL_ELEM_ADD && sum->dst == scale->dst &&
         !ftl_select_is_by_rows(s, sum->dst);
}

// One instruction an element; the two rows of a slab that a lane holds are two independent chains.
void ftl_select_reduce_rows(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->dst)) {
    ftl_select_reduce_rows_by_rows(s, op);
    return;
  }
  const ftl_select_value *a = &s->values[op->a.value];
  int32_t factor = ftl_select_contracts(s, s->op_idx - 1) ? op[-1].b.value : NONE;
  for (int32_t i = 0; i < a->map.per_slab; i++)
    for (int32_t slab = 0; slab < a->map.num_slabs; slab++)
      for (int32_t pair = 0; pair < a->map.num_registers / 2; pair++) {
        int32_t rows = ftl_select_fragment(s, op->dst, slab, 0);
        int32_t scaled_by = factor >= 0 && i == 0 && pair == 0 ? ftl_select_fragment(s, factor, slab, 0) : NONE;
        ftl_select_add(s, opcode_of(op->fn), ftl_select_lane_rows(s), rows, rows,
                       ftl_select_fragment(s, op->a.value, slab, i), scaled_by);
      }
}

void ftl_select_reduce_lanes(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->dst)) {
    ftl_select_reduce_lanes_by_rows(s, op);
    return;
  }
  const ftl_select_value *dst = &s->values[op->dst];
  for (int32_t lanes = 1; lanes < s->shape.row_lanes; lanes *= 2)
    for (int32_t slab = 0; slab < dst->map.num_slabs; slab++) {
      int32_t num_rows = ftl_select_lane_rows(s);
      int32_t rows = ftl_select_fragment(s, op->dst, slab, 0), other = ftl_select_temp(s, num_rows);
      ftl_draft_inst *shuffle = ftl_select_add(s, FTL_OP_SHFL, num_rows, other, rows, NONE, NONE);
      shuffle->inst.wavefronts = 1;
      ftl_select_add(s, opcode_of(op->fn), num_rows, rows, rows, other, NONE);
    }
}
