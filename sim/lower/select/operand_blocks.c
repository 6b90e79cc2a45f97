// Registers beside an accumulator while it is turned into an operand of wgmmas.
//
// An accumulator fragment of m64nN holds, of each 8 columns, two of one row and two of the row 8 below; the operand of
// 16 columns is four adjacent registers, taking turns between the rows. ptxas writes it over the fragment of the first
// 8 columns as the exponentials of one row are done, so what stands there of the other row has to move out: a quarter
// of the columns on their way, which are 64 of each slab at most. Where the product follows without a wait in between,
// most operands get registers of their own: half of the accumulator, unless that would spill; half of them where
// cp.async brings the other operand, whose barrier ptxas has behind the conversion (12 of 24 registers of 128 x 96
// tiles of 8 warps with one buffer, where TMA's has 24). Source: SASS of kernels/attention/flash2_wgmma.h for sm_90a,
// which names 7 registers more than are live with one slab (64 x 128 tiles of 4 warps) and 15 with two (128 x 64).
// Instances of kernels/measurements/registers.csv with TMA that do not spill are then off by 2.6 %
// (tests/reference/registers).
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { MOVED_SHARE = 4, MOST_FRAGMENTS = 8 };  // a fragment is 8 columns of a slab
enum { SHARE_APART = 2, SHARE_APART_BEFORE_A_BARRIER = 4 };

// The CONVERT of `value` from the operation at hand on, in the same loop; -1: none.
static int32_t conversion_of(const ftl_select *s, int32_t value) {
  for (int32_t i = s->op_idx; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_END_LOOP || op->kind == FTL_TILE_LOOP) return -1;
    if (op->kind == FTL_TILE_CONVERT && op->a.value == value) return i;
  }
  return -1;
}

// Whether what is converted is made of another accumulator of its shape, which ends there (dS of dP and of P): ptxas
// writes the operand over that one. Source: kernels/foreign/triton_backward.py, whose kernels of dQ have as many
// registers as S, dP and dQ and what lies below accumulators (122 of 64 queries a warpgroup by 64 keys, head_dim 64).
static bool ends_another(const ftl_select *s, int32_t accumulator, int32_t conversion) {
  const ftl_value *values = s->tile->values, *of_it = &values[accumulator];
  for (int32_t i = s->op_idx; i < conversion; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind != FTL_TILE_ELEM || op->dst != accumulator) continue;
    int32_t other = op->a.value == accumulator ? op->b.value : op->a.value;
    if (other < 0 || other == accumulator || values[other].kind != FTL_VALUE_TILE) continue;
    if (values[other].rows == of_it->rows && values[other].columns == of_it->columns &&
        ftl_select_is_last_read(s, i, other))
      return true;
  }
  return false;
}

// Whether what adds up the accumulator may do so behind the product of what it is converted to.
static bool is_added_behind(const ftl_select *s, int32_t accumulator, int32_t conversion) {
  for (int32_t i = s->op_idx; i < conversion; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_REDUCE_ROWS && op->behind && op->a.value == accumulator) return true;
  }
  return false;
}

// How a conversion's result comes to its product; in flight: at once, and the product runs on into the next step.
typedef enum operand_use { NO_OPERAND, AFTER_A_WAIT, AT_ONCE, IN_FLIGHT } operand_use;

static operand_use use_of(const ftl_select *s, int32_t conversion) {
  int32_t operand = ftl_select_op_at(s, conversion)->dst;
  operand_use use = AT_ONCE;
  for (int32_t i = conversion + 1; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_WAIT) use = AFTER_A_WAIT;
    if (op->kind != FTL_TILE_MMA || op->ring_a >= 0 || op->a.value != operand) continue;
    return use == AT_ONCE && ftl_select_will_run_on(s, op) ? IN_FLIGHT : use;
  }
  return NO_OPERAND;
}

static int32_t share_apart(const ftl_select *s) {
  return s->plain_code && s->copy == FTL_COPY_CP_ASYNC ? SHARE_APART_BEFORE_A_BARRIER : SHARE_APART;
}

static int32_t registers_beside(const ftl_select *s, const ftl_select_value *accumulator, operand_use use) {
  int32_t a_fragment = accumulator->map.num_registers, fragments = accumulator->map.per_slab;
  if (use >= AT_ONCE && !s->is_short_of_registers)
    return accumulator->map.num_slabs * fragments * a_fragment / share_apart(s);
  if (fragments > MOST_FRAGMENTS) fragments = MOST_FRAGMENTS;
  return accumulator->map.num_slabs * fragments * a_fragment / MOVED_SHARE;
}

// Of an operand in flight each block has its own; of others all are one.
static int32_t num_reserves(const ftl_select *s, int32_t conversion, operand_use use) {
  if (use != IN_FLIGHT || s->is_short_of_registers) return 1;
  const ftl_fragment_map *operand = &s->values[ftl_select_op_at(s, conversion)->dst].map;
  return operand->num_slabs * operand->per_slab;
}

void ftl_select_reserve_operands(ftl_select *s, int32_t accumulator) {
  ftl_select_value *value = &s->values[accumulator];
  if (s->mma != FTL_MMA_WGMMA || value->reserve != NONE) return;
  int32_t conversion = conversion_of(s, accumulator);
  operand_use use = conversion < 0 ? NO_OPERAND : use_of(s, conversion);
  if (use == NO_OPERAND || ends_another(s, accumulator, conversion)) return;
  int32_t count = num_reserves(s, conversion, use), registers = registers_beside(s, value, use) / count;
  for (int32_t i = 0; i < count; i++) {
    int32_t reserve = ftl_draft_value_add(&s->draft, registers, 0);
    if (i == 0) value->reserve = reserve;
    s->draft.values[reserve].is_reserve = true;
    s->draft.values[reserve].is_apart = use == IN_FLIGHT && is_added_behind(s, accumulator, conversion);
  }
  value->num_reserves = count;
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_RESERVE, 1, value->reserve, NONE, NONE, NONE);
  inst->num_destinations = count;
  // These are the registers that the operand of the step before has until its product was waited for.
  if (use == IN_FLIGHT) inst->effects = FTL_EFFECT_MEMORY;
}

void ftl_select_hold_reserve(ftl_select *s, ftl_draft_inst *inst, int32_t accumulator, int32_t slab, int32_t block) {
  const ftl_select_value *value = &s->values[accumulator];
  if (value->reserve == NONE || inst->num_sources == FTL_DRAFT_MAX_SOURCES) return;
  int32_t own = value->num_reserves > 1 ? slab * (value->num_reserves / value->map.num_slabs) + block : 0;
  inst->sources[inst->num_sources++] = value->reserve + own;
}
