// The two rows that a lane holds in its fragments, one after the other. Plain code leaves each row's sum in shared
// memory as soon as it has it, and nvcc cannot tell that this store spares the other row's maxima, which are read
// there: so the exponentials and the sum of the first row are through before the second row's maximum is known, and
// products whose operands lie in shared memory come behind both (SASS of kernels/attention/flash1_mma.h: LDS, MUFUs
// with an FADD behind each, SHFLs, STS; the same again; then the first LDSM of V).
#include "lower/select/select.h"

enum { LANE_ROWS = 2 };

int32_t ftl_select_lane_rows(const ftl_select *s) { return s->in_lane_turns ? 1 : LANE_ROWS; }

// Whether a later operation of the loop gathers the value, and none changes it before.
static bool is_gathered(const ftl_select *s, int32_t op_idx, int32_t value) {
  for (int32_t i = op_idx + 1; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_GATHER && op->a.value == value) return true;
    if (op->kind == FTL_TILE_END_LOOP || op->dst == value) return false;
  }
  return false;
}

static bool works_on_fragments(const ftl_select *s, const ftl_tile_op *op) {
  bool has_rows = op->kind == FTL_TILE_REDUCE_GROUPS || op->kind == FTL_TILE_ELEM || op->kind == FTL_TILE_FILL ||
                  op->kind == FTL_TILE_REDUCE_ROWS || op->kind == FTL_TILE_REDUCE_LANES;
  return has_rows && !ftl_select_is_by_rows(s, op->dst);
}

ftl_row_turns ftl_select_lane_turns(const ftl_select *s) {
  ftl_row_turns turns = {0, 1};
  if (!s->plain_code || ftl_select_op_at(s, s->op_idx)->kind != FTL_TILE_REDUCE_GROUPS) return turns;
  for (int32_t i = s->op_idx; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (!works_on_fragments(s, op)) break;
    if (op->kind == FTL_TILE_REDUCE_LANES && is_gathered(s, i, op->dst))
      return (ftl_row_turns){i + 1 - s->op_idx, LANE_ROWS};
  }
  return turns;
}

// What the turn's instructions from `first_inst` on write of values that were there before, it writes of one row: the
// other's registers keep what they have.
static void keep_other_row(ftl_select *s, int32_t first_inst, int32_t num_values) {
  for (int32_t i = first_inst; i < s->draft.num_insts; i++) {
    ftl_draft_inst *inst = &s->draft.insts[i];
    if (inst->destination < 0 || inst->destination >= num_values) continue;
    bool is_read = false;
    for (int32_t k = 0; k < inst->num_sources; k++) is_read |= inst->sources[k] == inst->destination;
    if (!is_read) inst->effects |= FTL_EFFECT_READS_DESTINATION;
  }
}

void ftl_select_end_lane_turn(ftl_select *s, int32_t first_inst, int32_t num_values) {
  const ftl_tile_op *last = ftl_select_op_at(s, s->op_idx - 1);
  if (s->turn > 0) keep_other_row(s, first_inst, num_values);
  for (int32_t i = s->op_idx; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind != FTL_TILE_GATHER || op->a.value != last->dst) continue;
    ftl_select_put_rows(s, op)->effects |= FTL_EFFECT_FENCE;
    s->values[last->dst].put_ring = op->ring;
    return;
  }
}
