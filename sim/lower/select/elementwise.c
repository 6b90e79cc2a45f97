// Functions of elements: FILL, ELEM, and CONVERT of accumulators to packed operands of 16 or 8 bits.
#include "lower/select/select.h"

typedef struct recipe_step {
  ftl_opcode opcode;
  bool to_predicate;
  bool predicated;  // by the predicate before
  int32_t count;    // so many, each of the one before; 0: one
} recipe_step;

// The instructions of one element, in order of dependence. exp2 and log2 are ex2.approx.ftz and lg2.approx.ftz, one
// MUFU each, as -use_fast_math and Triton compile them; without .ftz arguments whose result (logarithm: that) is a
// denormal number are scaled before and the result after, as ptxas compiles ex2.approx and lg2.approx: FSETP, @P FMUL,
// MUFU, @P FMUL (FADD). A reciprocal is guarded against 0 and NaN by two compares and a select. What nvcc makes of expf
// without -use_fast_math: FFMA.SAT, FFMA.RM, FADD, 2 FFMA, SHF, MUFU.EX2, FMUL. Of logf: FSETP, @P FMUL,
// IADD3, LOP3, IADD3, I2FP, 2 MOV, FADD, 11 FFMA, FMUL, ISETP, FSETP, @P FFMA, 2 FSEL.
typedef struct recipe {
  recipe_step steps[8];
  int32_t num_steps;
} recipe;

static recipe recipe_of(ftl_elem_fn fn, bool keeps_denormals) {
  switch (fn) {
    case FTL_ELEM_COPY:
      return (recipe){{{.opcode = FTL_OP_MOV}}, 1};
    case FTL_ELEM_MAX:
      return (recipe){{{.opcode = FTL_OP_FMNMX}}, 1};
    case FTL_ELEM_EXP2:
    case FTL_ELEM_LOG2:
      if (!keeps_denormals) return (recipe){{{.opcode = FTL_OP_MUFU}}, 1};
      return (recipe){{{.opcode = FTL_OP_ISETP, .to_predicate = true},
                       {.opcode = FTL_OP_FFMA, .predicated = true},
                       {.opcode = FTL_OP_MUFU},
                       {.opcode = FTL_OP_FFMA, .predicated = true}},
                      4};
    case FTL_ELEM_RECIP:
      return (recipe){{{.opcode = FTL_OP_ISETP, .to_predicate = true},
                       {.opcode = FTL_OP_ISETP, .to_predicate = true},
                       {.opcode = FTL_OP_MUFU},
                       {.opcode = FTL_OP_SEL, .predicated = true}},
                      4};
    case FTL_ELEM_EXP:
      return (recipe){{{.opcode = FTL_OP_FFMA, .count = 5},
                       {.opcode = FTL_OP_LOP},
                       {.opcode = FTL_OP_MUFU},
                       {.opcode = FTL_OP_FFMA}},
                      4};
    case FTL_ELEM_LOG:
      return (recipe){{{.opcode = FTL_OP_ISETP, .to_predicate = true},
                       {.opcode = FTL_OP_FFMA, .predicated = true},
                       {.opcode = FTL_OP_IADD, .count = 4},
                       {.opcode = FTL_OP_MOV, .count = 2},
                       {.opcode = FTL_OP_FFMA, .count = 13},
                       {.opcode = FTL_OP_ISETP, .to_predicate = true, .count = 2},
                       {.opcode = FTL_OP_FFMA, .predicated = true},
                       {.opcode = FTL_OP_SEL, .predicated = true, .count = 2}},
                      8};
    case FTL_ELEM_ZERO_IF_NEG_INF:
      return (recipe){{{.opcode = FTL_OP_ISETP, .to_predicate = true}, {.opcode = FTL_OP_SEL, .predicated = true}}, 2};
    case FTL_ELEM_ADD:
    case FTL_ELEM_SUB:
    case FTL_ELEM_MUL:
    case FTL_ELEM_FMA:
    case FTL_ELEM_DIV:       // add_ieee_division
    case FTL_ELEM_DIV_FULL:  // divide_in_full
    case FTL_ELEM_SELECT:    // add_choice
      break;
  }
  return (recipe){{{.opcode = FTL_OP_FFMA}}, 1};
}

// The fragment of an operand that goes with fragment `index` of slab `slab`; ROWS and COLUMNS values are broadcast.
static int32_t operand_fragment(const ftl_select *s, ftl_operand operand, int32_t slab, int32_t index) {
  if (operand.value < 0) return FTL_NO_VALUE;
  ftl_value_kind kind = s->tile->values[operand.value].kind;
  return ftl_select_fragment(s, operand.value, kind == FTL_VALUE_COLUMNS ? 0 : slab,
                             kind == FTL_VALUE_ROWS ? 0 : index);
}

typedef struct recipe_state {
  int32_t result, predicate;  // so far
} recipe_state;

static bool is_by_row(const ftl_select *s, ftl_operand operand) {
  return operand.value >= 0 && s->tile->values[operand.value].kind == FTL_VALUE_ROWS;
}

// Of a product of elements: what its second factor is.
static uint16_t factor_of(const ftl_select *s, const ftl_tile_op *op) {
  if (op->fn != FTL_ELEM_MUL || is_by_row(s, (ftl_operand){.value = op->dst})) return 0;
  if (is_by_row(s, op->a) || is_by_row(s, op->b)) return FTL_FP32_BY_ROW;
  return op->a.value < 0 || op->b.value < 0 ? FTL_FP32_BY_CONSTANT : 0;
}

static void add_step(ftl_select *s, const ftl_tile_op *op, const recipe_step *step, int32_t repeat, int32_t dst,
                     const int32_t operands[3], recipe_state *state) {
  if (step->to_predicate) {
    int32_t chained = state->predicate;
    state->predicate = ftl_select_temp(s, 0);
    ftl_select_add(s, step->opcode, repeat, state->predicate, operands[0], chained, FTL_NO_VALUE);
    return;
  }
  bool first = state->result == operands[0];
  ftl_draft_inst *inst = ftl_select_add(s, step->opcode, repeat, dst, state->result, first ? operands[1] : FTL_NO_VALUE,
                                        first ? operands[2] : FTL_NO_VALUE);
  if (step->predicated) inst->sources[inst->num_sources++] = state->predicate;
  if (step->opcode == FTL_OP_FFMA) inst->inst.arg = factor_of(s, op);
  if (step->opcode == FTL_OP_MUFU) inst->inst.arg = (uint16_t)(op->fn == FTL_ELEM_EXP ? FTL_ELEM_EXP2 : op->fn);
  ftl_select_hold_reserve(s, inst, op->dst, 0, 0);
  state->result = dst;
}

static void add_recipe(ftl_select *s, const ftl_tile_op *op, int32_t repeat, int32_t dst, const int32_t operands[3]) {
  recipe r = recipe_of(op->fn, s->keeps_denormals || (s->plain_code && op->fn == FTL_ELEM_LOG2));
  recipe_state state = {operands[0], FTL_NO_VALUE};
  for (int32_t i = 0; i < r.num_steps; i++)
    for (int32_t k = 0; k < (r.steps[i].count > 0 ? r.steps[i].count : 1); k++)
      add_step(s, op, &r.steps[i], repeat, dst, operands, &state);
}

// Predicates that are left for the exponentials of a masked row: of seven three tell lanes and warps of the reductions
// apart, and each vector of a thread has one that says whether it lies inside, as long as there are any. One is left
// however many vectors there are (SASS of softmaxes in Triton: 1, 2 and 4 vectors or more leave 3, 2 and 1).
static int32_t predicates_left(const ftl_select *s, const ftl_tile_op *op) {
  enum { LEFT_BY_NONE = 4 };
  int32_t left = LEFT_BY_NONE - s->values[op->dst].map.per_slab;
  return left > 1 ? left : 1;
}

// 2^a with denormal numbers, each after the one before with the same predicate: its FSETP waits until the last FMUL has
// read it.
static void exponentiate_in_turn(ftl_select *s, const ftl_tile_op *op) {
  enum { MOST_PREDICATES = 2 };
  const ftl_select_value *dst = &s->values[op->dst];
  int32_t predicates[MOST_PREDICATES] = {ftl_select_temp(s, 0), ftl_select_temp(s, 0)}, num = predicates_left(s, op);
  for (int32_t slab = 0; slab < dst->map.num_slabs; slab++)
    for (int32_t i = 0; i < dst->map.per_slab; i++)
      for (int32_t r = 0; r < dst->map.num_registers; r++) {
        int32_t x = ftl_select_fragment(s, op->dst, slab, i), predicate = predicates[i % num];
        ftl_select_add(s, FTL_OP_ISETP, 1, predicate, x, FTL_NO_VALUE, FTL_NO_VALUE);
        ftl_select_add(s, FTL_OP_FFMA, 1, x, x, predicate, FTL_NO_VALUE);
        ftl_select_add(s, FTL_OP_MUFU, 1, x, x, FTL_NO_VALUE, FTL_NO_VALUE)->inst.arg = (uint16_t)op->fn;
        ftl_select_add(s, FTL_OP_FFMA, 1, x, x, predicate, FTL_NO_VALUE);
      }
}

static bool takes_turns(const ftl_select *s, const ftl_tile_op *op) {
  return op->fn == FTL_ELEM_EXP2 && s->keeps_denormals && op->a.value == op->dst && ftl_select_is_by_rows(s, op->dst) &&
         s->tile->values[op->dst].kind == FTL_VALUE_TILE && predicates_left(s, op) < 3;
}

// a / b to 2 ulp, as ptxas compiles div.full.f32 by a number of each row: FSETP where it is too large and where it is
// too small, either of which scales b, for all elements of the row, and each a (@P FMUL); MUFU.RCP; FMUL. What wgmma
// has left in a is first scaled into a register of its own, and chosen (FMUL, FSEL).
static void divide_in_full(ftl_select *s, const ftl_tile_op *op) {
  enum { SCALINGS = 2 };
  const ftl_select_value *dst = &s->values[op->dst];
  bool is_accumulated = s->mma == FTL_MMA_WGMMA && !ftl_select_is_by_rows(s, op->dst);
  if (op->b.value < 0 || s->tile->values[op->b.value].kind != FTL_VALUE_ROWS) {
    ftl_select_fail(s, "%s is divided by other than a number of each row", s->tile->values[op->dst].name);
    return;
  }
  for (int32_t slab = 0; slab < dst->map.num_slabs; slab++) {
    int32_t b = operand_fragment(s, op->b, slab, 0), is_extreme = ftl_select_temp(s, 0);
    int32_t numbers = s->values[op->b.value].map.num_registers, reciprocal = ftl_select_temp(s, numbers);
    ftl_select_add(s, FTL_OP_ISETP, SCALINGS * numbers, is_extreme, b, FTL_NO_VALUE, FTL_NO_VALUE);
    ftl_select_add(s, FTL_OP_FFMA, SCALINGS * numbers, reciprocal, b, is_extreme, FTL_NO_VALUE);
    ftl_select_add(s, FTL_OP_MUFU, numbers, reciprocal, reciprocal, FTL_NO_VALUE, FTL_NO_VALUE)->inst.arg =
        FTL_ELEM_RECIP;
    for (int32_t i = 0; i < dst->map.per_slab; i++) {
      int32_t x = ftl_select_fragment(s, op->dst, slab, i);
      int32_t a = operand_fragment(s, op->a, slab, i), of_each = SCALINGS * dst->map.num_registers;
      if (is_accumulated) {
        int32_t scaled = ftl_select_temp(s, dst->map.num_registers);
        ftl_select_add(s, FTL_OP_FFMA, dst->map.num_registers, scaled, a, FTL_NO_VALUE, FTL_NO_VALUE);
        ftl_select_add(s, FTL_OP_SEL, dst->map.num_registers, x, scaled, a, is_extreme);
        of_each -= dst->map.num_registers;
        a = x;
      }
      ftl_select_add(s, FTL_OP_FFMA, of_each, x, a, is_extreme, FTL_NO_VALUE);
      ftl_select_add(s, FTL_OP_FFMA, dst->map.num_registers, x, x, reciprocal, FTL_NO_VALUE);
    }
  }
}

static ftl_draft_inst *add_branch(ftl_select *s, int32_t predicate, int32_t awaited) {
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, FTL_NO_VALUE, predicate, awaited, FTL_NO_VALUE);
  branch->inst.flags = FTL_INST_GUARD;
  branch->effects = FTL_EFFECT_PINNED;
  return branch;
}

// Where the paths around a guarded block join.
static void end_block(ftl_select *s) {
  ftl_select_join(s);
  ftl_select_add(s, FTL_OP_LABEL, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE)->effects =
      FTL_EFFECT_PINNED;
}

// 0, which the result is where x is not above 0 (BSSY, FSETP, MOV, BRA).
static void begin_guard(ftl_select *s, int32_t x) {
  int32_t is_positive = ftl_select_temp(s, 0), zero = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_NOP, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_ISETP, 1, is_positive, x, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_MOV, 1, zero, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  add_branch(s, is_positive, FTL_NO_VALUE);
}

// 1 / x as nvcc compiles it without -use_fast_math, a number after the other (SASS of kernels/attention: BSSY, IADD3,
// LOP3, ISETP, BRA over the call of a function for denormal and very large numbers; MUFU.RCP, FFMA, FADD, FFMA, BSYNC).
// The branch waits for stores whose registers have not been read, as ptxas lets none be pending across it. Attention
// divides by sums of which a mask may leave nothing: there the whole stands behind a branch for x > 0.
static void add_ieee_reciprocal(ftl_select *s, const ftl_tile_op *op, int32_t dst, int32_t x) {
  bool is_guarded = ftl_select_has_products(s->tile, s->role);
  if (is_guarded) begin_guard(s, x);
  int32_t exponent = ftl_select_temp(s, 1), is_extreme = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_NOP, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_IADD, 1, exponent, x, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_LOP, 1, exponent, exponent, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_ISETP, 1, is_extreme, exponent, FTL_NO_VALUE, FTL_NO_VALUE);
  add_branch(s, is_extreme, s->stored)->inst.flags |= FTL_INST_SKIPS;
  int32_t first = ftl_select_temp(s, 1), error = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_MUFU, 1, first, x, FTL_NO_VALUE, FTL_NO_VALUE)->inst.arg = (uint16_t)op->fn;
  ftl_select_add(s, FTL_OP_FFMA, 1, error, first, x, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_FFMA, 1, error, error, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_draft_inst *last = ftl_select_add(s, FTL_OP_FFMA, 1, dst, first, error, FTL_NO_VALUE);
  ftl_select_hold_reserve(s, last, op->dst, 0, 0);
  for (int32_t i = 0; i < 1 + is_guarded; i++) end_block(s);
}

// a / b as nvcc compiles it without -use_fast_math, a number after the other (SASS of softmax_warp_forward's source:
// MUFU.RCP, BSSY, FCHK, 5 FFMA, BRA over the call of a function for rare exponents, BSYNC). FCHK is an instruction of
// the special functions' pipe (sm__inst_executed_pipe_xu of kernels/measurements/eager_ncu.csv: 3 an element, with one
// exponential and the reciprocal).
static void add_ieee_division(ftl_select *s, const ftl_tile_op *op, int32_t dst, const int32_t operands[3]) {
  int32_t reciprocal = ftl_select_temp(s, 1), is_rare = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_MUFU, 1, reciprocal, operands[1], FTL_NO_VALUE, FTL_NO_VALUE)->inst.arg = FTL_ELEM_RECIP;
  ftl_select_add(s, FTL_OP_NOP, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_MUFU, 1, is_rare, operands[0], operands[1], FTL_NO_VALUE)->inst.arg = (uint16_t)op->fn;
  int32_t error = ftl_select_temp(s, 1), quotient = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_FFMA, 1, error, reciprocal, operands[1], FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_FFMA, 1, reciprocal, reciprocal, error, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_FFMA, 1, quotient, operands[0], reciprocal, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_FFMA, 1, error, quotient, operands[1], operands[0]);
  ftl_draft_inst *last = ftl_select_add(s, FTL_OP_FFMA, 1, dst, error, reciprocal, quotient);
  ftl_select_hold_reserve(s, last, op->dst, 0, 0);
  add_branch(s, is_rare, s->stored)->inst.flags |= FTL_INST_SKIPS;
  end_block(s);
}

// Which of the other two operands the sign of the first chooses.
static void add_choice(ftl_select *s, const ftl_tile_op *op, int32_t repeat, int32_t dst, const int32_t operands[3]) {
  int32_t chosen = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, repeat, chosen, operands[0], FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_SEL, repeat, dst, operands[1], operands[2], chosen);
  ftl_select_hold_reserve(s, inst, op->dst, 0, 0);
}

void ftl_select_elem(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_contracts(s, s->op_idx)) return;
  if (op->fn == FTL_ELEM_DIV_FULL) {
    divide_in_full(s, op);
    return;
  }
  if (takes_turns(s, op)) {
    exponentiate_in_turn(s, op);
    return;
  }
  ftl_select_reserve_operands(s, op->dst);
  const ftl_operand operands[] = {op->a, op->b, op->c};
  const ftl_select_value *dst = &s->values[op->dst];
  ftl_slab_span slabs = ftl_select_slabs(s, op->dst);
  int32_t registers = s->in_lane_turns ? dst->map.num_registers / 2 : dst->map.num_registers;
  for (int32_t slab = slabs.first; slab < slabs.end; slab++)
    for (int32_t i = 0; i < dst->map.per_slab; i++) {
      int32_t fragments[3];
      for (int k = 0; k < 3; k++) fragments[k] = operand_fragment(s, operands[k], slab, i);
      if (op->fn == FTL_ELEM_RECIP && s->plain_code) {
        for (int32_t r = 0; r < registers; r++)
          add_ieee_reciprocal(s, op, ftl_select_fragment(s, op->dst, slab, i), fragments[0]);
        continue;
      }
      if (op->fn == FTL_ELEM_DIV) {
        for (int32_t r = 0; r < registers; r++)
          add_ieee_division(s, op, ftl_select_fragment(s, op->dst, slab, i), fragments);
        continue;
      }
      (op->fn == FTL_ELEM_SELECT ? add_choice : add_recipe)(s, op, registers, ftl_select_fragment(s, op->dst, slab, i),
                                                            fragments);
    }
}

void ftl_select_fill(ftl_select *s, const ftl_tile_op *op) {
  ftl_select_value *v = &s->values[op->dst];
  v->zero_pending = false;
  if (op->a.immediate == 0.0F) {
    v->zero_pending = true;
    return;
  }
  for (int32_t i = 0; i < v->map.num_slabs * v->map.per_slab; i++)
    ftl_select_add(s, FTL_OP_MOV, v->map.num_registers, v->first + i, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
}

// ---- conversion ----
// Quad pairs hold accumulators in another order than operands: the warp passes them through its own rows of shared
// memory.
static void relayout_quad_pairs(ftl_select *s, const ftl_tile_op *op, int32_t slab, const int32_t *packed) {
  const ftl_select_value *dst = &s->values[op->dst];
  ftl_shared_layout layout =
      ftl_shared_layout_of(FTL_SLAB_ROWS, s->tile->values[op->dst].columns, 2, FTL_SHARED_SWIZZLED_ROWS);
  ftl_select_warp_sync(s);
  for (int32_t i = 0; i < dst->map.per_slab; i++) {
    ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_STS, 4, FTL_NO_VALUE, packed[i], FTL_NO_VALUE, FTL_NO_VALUE);
    inst->effects = FTL_EFFECT_MEMORY;
    ftl_select_set_wavefronts(inst, ftl_accumulator_wavefronts(&s->shape, &layout, 0, i * FTL_OPERAND_COLUMNS));
  }
  ftl_select_warp_sync(s);
  for (int32_t i = 0; i < dst->map.per_slab; i++) {
    ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_LDS, 2, ftl_select_fragment(s, op->dst, slab, i), FTL_NO_VALUE,
                                          FTL_NO_VALUE, FTL_NO_VALUE);
    inst->effects = FTL_EFFECT_MEMORY;
    ftl_select_set_wavefronts(inst,
                              ftl_operand_wavefronts(&s->shape, &layout, FTL_OPERAND_A, 0, i * FTL_OPERAND_COLUMNS));
  }
}

void ftl_select_pack(ftl_select *s, int32_t value, int32_t slab, int32_t block, int32_t destination) {
  enum { PACKED_REGISTERS = 4 };
  int32_t per_operand = FTL_OPERAND_COLUMNS / s->shape.accumulator_columns;
  int32_t first = block * per_operand, left = s->values[value].map.per_slab - first;
  int32_t second = per_operand > 1 && left > 1 ? ftl_select_fragment(s, value, slab, first + 1) : FTL_NO_VALUE;
  int32_t registers = left * s->shape.accumulator_registers / 2;
  ftl_draft_inst *pack = ftl_select_add(s, FTL_OP_CVT, registers < PACKED_REGISTERS ? registers : PACKED_REGISTERS,
                                        destination, ftl_select_fragment(s, value, slab, first), second, FTL_NO_VALUE);
  ftl_select_hold_reserve(s, pack, value, slab, block);
}

// The 32 columns of operand block `block` to 8 bits: a conversion packs two numbers and keeps the other half of its
// register (F2FP.E4M3.F32.PACK_AB_MERGE_C). A lane's operand has four adjacent columns where its accumulators have two
// pairs 8 apart: the other operand's rows are permuted alike, at no cost (FlashAttention-3, section 3.3).
static void pack_to_bytes(ftl_select *s, int32_t value, int32_t slab, int32_t block, int32_t destination) {
  int32_t per_operand = ftl_operand_columns(FTL_FP8_E4M3) / s->shape.accumulator_columns;
  int32_t first = block * per_operand, left = s->values[value].map.per_slab - first;
  for (int32_t i = 0; i < per_operand && i < left; i += 2) {
    int32_t a = ftl_select_fragment(s, value, slab, first + i);
    ftl_draft_inst *pack = ftl_select_add(s, FTL_OP_CVT, s->shape.accumulator_registers, destination, a,
                                          i + 1 < left ? a + 1 : FTL_NO_VALUE, FTL_NO_VALUE);
    if (i > 0) pack->effects = FTL_EFFECT_READS_DESTINATION;
    ftl_select_hold_reserve(s, pack, value, slab, block);
  }
}

// Packed numbers below 0 become 0: from Ampere on the conversion does it (F2FP.RELU); before, their signs become a mask
// (PRMT) first.
static void clamp_packed(ftl_select *s, int32_t packed, int32_t num_registers) {
  enum { RELU_SINCE_COMPUTE_CAPABILITY = 80 };
  if (s->arch->chip_compute_capability >= RELU_SINCE_COMPUTE_CAPABILITY) return;
  int32_t mask = ftl_select_temp(s, num_registers);
  ftl_select_add(s, FTL_OP_PRMT, num_registers, mask, packed, FTL_NO_VALUE, FTL_NO_VALUE);
  ftl_select_add(s, FTL_OP_LOP, num_registers, packed, packed, mask, FTL_NO_VALUE);
}

static bool is_mma_operand(const ftl_select *s, int32_t value) {
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_MMA && op->ring_a < 0 && op->a.value == value) return true;
  }
  return false;
}

void ftl_select_convert(ftl_select *s, const ftl_tile_op *op) {
  const ftl_value *from = &s->tile->values[op->a.value], *to = &s->tile->values[op->dst];
  const ftl_select_value *dst = &s->values[op->dst];
  if (ftl_select_is_by_rows(s, op->dst)) {
    ftl_select_convert_by_rows(s, op);
    return;
  }
  bool to_bytes = ftl_dtype_is_fp8(to->dtype);
  if (from->dtype != FTL_FP32 || !(to_bytes || to->dtype == FTL_FP16 || to->dtype == FTL_BF16)) {
    ftl_select_fail(s, "converts %s to %s: only fp32 to fp16, bf16 or fp8 is lowered", ftl_dtype_name(from->dtype),
                    ftl_dtype_name(to->dtype));
    return;
  }
  enum { RELAYOUT_REGISTERS = 4 };
  bool relayout = s->shape.quad_pairs && is_mma_operand(s, op->dst);
  int32_t num_registers = relayout ? RELAYOUT_REGISTERS : dst->map.num_registers;
  for (int32_t slab = 0; slab < dst->map.num_slabs; slab++) {
    int32_t packed[FTL_SELECT_MAX_FRAGMENTS];
    for (int32_t i = 0; i < dst->map.per_slab; i++) {
      packed[i] = relayout ? ftl_select_temp(s, RELAYOUT_REGISTERS) : ftl_select_fragment(s, op->dst, slab, i);
      (to_bytes ? pack_to_bytes : ftl_select_pack)(s, op->a.value, slab, i, packed[i]);
      if (op->positive) clamp_packed(s, packed[i], num_registers);
    }
    if (relayout) relayout_quad_pairs(s, op, slab, packed);
  }
  s->values[op->a.value].reserve = FTL_NO_VALUE;
}
