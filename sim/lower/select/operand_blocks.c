// Registers beside an accumulator while it is turned into an operand of wgmmas.
//
// An accumulator fragment of m64nN holds, of each 8 columns, two of one row and two of the row 8 below; the operand of
// 16 columns is four adjacent registers, taking turns between the rows. ptxas writes it over the fragment of the first
// 8 columns as the exponentials of one row are done, so what stands there of the other row has to move out: a quarter
// of the accumulator. Where the product follows without a wait in between, most operands get registers of their own:
// half of the accumulator. Source: SASS of kernels/attention/flash2_wgmma.h for sm_90a. With this the registers of the
// 100 instances with TMA that do not spill are off by 4 %, without it by 9 %
// (kernels/measurements/registers.csv).
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { SHARE_IN_PLACE = 4, SHARE_APART = 2 };

static const ftl_tile_op *op_at(const ftl_select *s, int32_t i) { return &s->tile->ops[s->role->first_op + i]; }

// The CONVERT of `value` from the operation at hand on, in the same loop; -1: none.
static int32_t conversion_of(const ftl_select *s, int32_t value) {
  for (int32_t i = s->op_idx; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = op_at(s, i);
    if (op->kind == FTL_TILE_END_LOOP || op->kind == FTL_TILE_LOOP) return -1;
    if (op->kind == FTL_TILE_CONVERT && op->a.value == value) return i;
  }
  return -1;
}

// Which share of the accumulator is needed beside it; 0: the result of the conversion is no operand.
static int32_t share_of(const ftl_select *s, int32_t conversion) {
  int32_t operand = op_at(s, conversion)->dst, share = SHARE_APART;
  for (int32_t i = conversion + 1; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = op_at(s, i);
    if (op->kind == FTL_TILE_WAIT) share = SHARE_IN_PLACE;
    if (op->kind == FTL_TILE_MMA && op->ring_a < 0 && op->a.value == operand) return share;
  }
  return 0;
}

void ftl_select_reserve_operands(ftl_select *s, int32_t accumulator) {
  ftl_select_value *value = &s->values[accumulator];
  if (s->mma != FTL_MMA_WGMMA || value->reserve != NONE) return;
  int32_t conversion = conversion_of(s, accumulator), share = conversion < 0 ? 0 : share_of(s, conversion);
  if (share == 0) return;
  int32_t registers = value->map.num_slabs * value->map.per_slab * value->map.num_registers;
  value->reserve = ftl_draft_value_add(&s->draft, registers / share, 0);
  ftl_draft_value *reserve = &s->draft.values[value->reserve];
  reserve->is_reserve = true;
  reserve->spare_registers = (int16_t)(registers / share - registers / SHARE_IN_PLACE);
  ftl_select_add(s, FTL_OP_RESERVE, 1, value->reserve, NONE, NONE, NONE);
}

void ftl_select_hold_reserve(ftl_select *s, ftl_draft_inst *inst, int32_t accumulator) {
  int32_t reserve = s->values[accumulator].reserve;
  if (reserve != NONE && inst->num_sources < FTL_DRAFT_MAX_SOURCES) inst->sources[inst->num_sources++] = reserve;
}
