#include "workloads/row_softmax.h"

#include <math.h>

static const float log2_e = 1.44269504F, ln_2 = 0.693147181F;

// The arithmetic of a step begins while that of the step before ends.
enum { STEPS_AT_WORK = 2 };

typedef struct rows_kernel {
  ftl_builder *b;
  const ftl_row_softmax *s;
  int32_t step_columns;
  int32_t held[FTL_ROW_MAX_HELD_STEPS];  // tiles of the tensor's dtype; `unroll` of them where rows are read again
  int32_t tiles[STEPS_AT_WORK];          // steps in fp32
  int32_t x;                             // of these, that of the present step
  int32_t top, previous, shift, sum, correction;  // rows
} rows_kernel;

// What a pass does with a step's columns, which are in `x`, -inf where a row sees none. `raw` holds them as read.
typedef void (*step_work)(const rows_kernel *k, ftl_expr column, int32_t raw);

typedef struct row_pass {
  step_work work;
  int32_t vector_insts;  // instructions of a step for a thread's vector, but for those that load and mask it
} row_pass;

static int32_t threads_per_row(const ftl_row_softmax *s) { return s->num_warps * 32 / s->rows; }

int32_t ftl_row_softmax_step_columns(const ftl_row_softmax *s) { return threads_per_row(s) * FTL_ROW_VECTOR_COLUMNS; }

// dst <- exp(a - subtracted)
static void exp_of_difference(const rows_kernel *k, int32_t dst, int32_t a, int32_t subtracted) {
  ftl_binary(k->b, FTL_ELEM_SUB, dst, a, ftl_value_operand(subtracted));
  ftl_binary(k->b, FTL_ELEM_MUL, dst, dst, ftl_immediate(log2_e));
  ftl_unary(k->b, FTL_ELEM_EXP2, dst, dst);
}

// ---- steps ----
static ftl_tile_ref step_ref(const rows_kernel *k, int32_t tensor, ftl_expr column, ftl_expr end) {
  const ftl_row_softmax *s = k->s;
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = s->batch,
                        .head = s->head,
                        .row = s->row,
                        .present = FTL_ALWAYS,
                        .rows = s->rows,
                        .columns = (int32_t)(s->columns < k->step_columns ? s->columns : k->step_columns),
                        .column = column,
                        .column_end = end};
}

// Loads whole vectors: the last may reach beyond what the row sees, and is masked.
static ftl_expr whole_vectors(const rows_kernel *k, ftl_expr end) {
  if (end == FTL_TENSOR_END) return FTL_TENSOR_END;
  ftl_expr vector = ftl_const(k->b, FTL_ROW_VECTOR_COLUMNS);
  ftl_expr up = ftl_add(k->b, end, ftl_const(k->b, FTL_ROW_VECTOR_COLUMNS - 1));
  return ftl_mul(k->b, ftl_div(k->b, up, vector), vector);
}

static void unpack(const rows_kernel *k, int32_t raw, ftl_expr column, bool ragged) {
  ftl_convert(k->b, k->x, raw);
  if (k->s->more) k->s->more->read(k->s->more->context, column, k->x);
  ftl_expr visible = k->s->visible;
  if (visible == FTL_TENSOR_END && !ragged) return;
  ftl_expr limit = visible == FTL_TENSOR_END ? ftl_const(k->b, k->s->columns) : visible;
  ftl_mask(k->b, k->x, k->s->row, column, FTL_ALWAYS, limit);
  if (k->s->first_visible != 0) ftl_mask_left(k->b, ftl_sub(k->b, k->s->first_visible, k->s->row));
}

// Steps are independent until they are reduced.
static rows_kernel with_tile(const rows_kernel *k, int32_t step) {
  rows_kernel other = *k;
  other.x = k->tiles[step % STEPS_AT_WORK];
  return other;
}

static ftl_expr column_after(const rows_kernel *k, ftl_expr column, int32_t step) {
  return ftl_add(k->b, column, ftl_const(k->b, (int64_t)step * k->step_columns));
}

// `num` steps from `column` on. A load may go ahead of the arithmetic of the steps before it, not of their stores.
static void read_steps(const rows_kernel *k, ftl_expr column, int32_t num, ftl_expr end, bool ragged, step_work work) {
  for (int32_t i = 0; i < num; i++) {
    rows_kernel step = with_tile(k, i);
    ftl_expr first = column_after(k, column, i);
    ftl_load_tile(k->b, k->held[i], step_ref(k, k->s->from, first, whole_vectors(k, end)));
    unpack(&step, k->held[i], first, ragged);
    work(&step, first, k->held[i]);
  }
}

// A loop of `num` times `unroll` steps from `column` on.
static void loop_steps(const rows_kernel *k, ftl_expr column, ftl_expr num, int32_t unroll, ftl_expr end,
                       step_work work) {
  ftl_builder *b = k->b;
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), num));
  ftl_expr round_columns = ftl_const(b, (int64_t)unroll * k->step_columns);
  read_steps(k, ftl_add(b, column, ftl_mul(b, i, round_columns)), unroll, end, false, work);
  ftl_end_loop(b);
}

// How nvcc unrolls a loop whose trip count it does not know: the steps that do not fill a round first, one by one, then
// rounds of `unroll` steps (SASS of kernels/attention/softmax_rows.h and standard_mma.h).
static void unroll_steps(const rows_kernel *k, ftl_expr num_steps, int32_t unroll, ftl_expr end, step_work work) {
  ftl_builder *b = k->b;
  if (unroll == 1) {
    loop_steps(k, k->s->begin, num_steps, 1, end, work);
    return;
  }
  ftl_expr in_round = ftl_const(b, unroll), left = ftl_mod(b, num_steps, in_round);
  loop_steps(k, k->s->begin, left, 1, end, work);
  ftl_expr column = ftl_add(b, k->s->begin, ftl_mul(b, left, ftl_const(b, k->step_columns)));
  loop_steps(k, column, ftl_div(b, num_steps, in_round), unroll, end, work);
}

// All steps from `begin` up to `end` (FTL_TENSOR_END: all columns), each read from memory.
static void read_again(const rows_kernel *k, ftl_expr end, int32_t unroll, step_work work) {
  ftl_builder *b = k->b;
  if (end == FTL_TENSOR_END) {
    int64_t num_steps = k->s->columns / k->step_columns;
    unroll_steps(k, ftl_const(b, num_steps), unroll, FTL_TENSOR_END, work);
    if (k->s->columns % k->step_columns != 0)
      read_steps(k, ftl_const(b, num_steps * k->step_columns), 1, FTL_TENSOR_END, true, work);
    return;
  }
  ftl_expr step = ftl_const(b, k->step_columns);
  ftl_expr columns = ftl_sub(b, end, k->s->begin);
  unroll_steps(k, ftl_div(b, ftl_add(b, columns, ftl_const(b, k->step_columns - 1)), step), unroll, end, work);
}

// What nvcc makes of a loop that the source does not unroll: as many steps, a power of two up to 4, as MOST_INSTS
// instructions are enough for (the loops of kernels/attention/standard_mma.h as compiled for sm_90a: 36, 72, 67, 89 and
// 75 instructions a step; unrolled to 146, 135, 89 and 150. Of eight loops two are not as this says: the maximum
// without causal has two steps, the sum with causal one).
// It decides before selects become predicates: they are counted here.
static int32_t unroll_of(const rows_kernel *k, const row_pass *pass) {
  enum { VECTOR_LOAD = 6 + FTL_ROW_VECTOR_COLUMNS, VECTOR_MASK = 2 * FTL_ROW_VECTOR_COLUMNS, MOST_INSTS = 152 };
  if (k->s->unroll > 0) return k->s->unroll;
  if (k->s->more) return 1;
  int32_t insts = VECTOR_LOAD + pass->vector_insts + (k->s->visible == FTL_TENSOR_END ? 0 : VECTOR_MASK);
  int32_t unroll = FTL_ROW_MAX_UNROLL;
  while (unroll > 1 && unroll * insts > MOST_INSTS) unroll /= 2;
  return unroll;
}

static void each_step(const rows_kernel *k, ftl_expr end, const row_pass *pass) {
  step_work work = pass->work;
  if (k->s->held_steps == 0) {
    read_again(k, end, unroll_of(k, pass), work);
    return;
  }
  for (int32_t i = 0; i < k->s->held_steps; i++) {
    ftl_expr column = ftl_const(k->b, (int64_t)i * k->step_columns);
    rows_kernel step = with_tile(k, i);
    unpack(&step, k->held[i], column, (int64_t)(i + 1) * k->step_columns > k->s->columns);
    work(&step, column, k->held[i]);
  }
}

// ---- what passes do ----
static void take_maximum(const rows_kernel *k, ftl_expr column, int32_t raw) {
  (void)column, (void)raw;
  ftl_reduce_rows(k->b, FTL_ELEM_MAX, k->top, k->x);
}

static void take_sum(const rows_kernel *k, ftl_expr column, int32_t raw) {
  (void)column, (void)raw;
  exp_of_difference(k, k->x, k->x, k->shift);
  ftl_reduce_rows(k->b, FTL_ELEM_ADD, k->sum, k->x);
}

// Each lane keeps a maximum and a sum of its own columns. A lane that has seen none has the maximum -inf.
static void take_both(const rows_kernel *k, ftl_expr column, int32_t raw) {
  ftl_unary(k->b, FTL_ELEM_COPY, k->previous, k->top);
  take_maximum(k, column, raw);
  ftl_unary(k->b, FTL_ELEM_ZERO_IF_NEG_INF, k->shift, k->top);
  exp_of_difference(k, k->correction, k->previous, k->shift);
  ftl_binary(k->b, FTL_ELEM_MUL, k->sum, k->sum, ftl_value_operand(k->correction));
  take_sum(k, column, raw);
}

static void write_result(const rows_kernel *k, ftl_expr column, int32_t raw) {
  exp_of_difference(k, k->x, k->x, k->shift);
  ftl_binary(k->b, FTL_ELEM_MUL, k->x, k->x, ftl_value_operand(k->correction));
  ftl_convert(k->b, raw, k->x);
  ftl_store(k->b, step_ref(k, k->s->to, column, whole_vectors(k, k->s->end)), raw, -1);
  if (k->s->more) k->s->more->written(k->s->more->context, column, k->x, raw);
}

enum {
  DIFFERENCE_INSTS = 3 * FTL_ROW_VECTOR_COLUMNS,  // FADD, FMUL, MUFU
  SUM_INSTS = DIFFERENCE_INSTS + FTL_ROW_VECTOR_COLUMNS,
  RESCALE_INSTS = 7  // MOV, FSETP, FSEL, FADD, FMUL, MUFU, FMUL
};
static const row_pass maximum_pass = {take_maximum, FTL_ROW_VECTOR_COLUMNS}, sum_pass = {take_sum, SUM_INSTS},
                      both_pass = {take_both, FTL_ROW_VECTOR_COLUMNS + SUM_INSTS + RESCALE_INSTS},
                      result_pass = {write_result, SUM_INSTS + FTL_ROW_VECTOR_COLUMNS / 2 + 1};

// ---- the kernel ----
static void shift_by_maximum(const rows_kernel *k) {
  ftl_unary(k->b, k->s->may_see_none ? FTL_ELEM_ZERO_IF_NEG_INF : FTL_ELEM_COPY, k->shift, k->top);
}

static void find_safe(const rows_kernel *k) {
  each_step(k, k->s->visible, &maximum_pass);
  ftl_reduce_lanes(k->b, FTL_ELEM_MAX, k->top);
  shift_by_maximum(k);
  each_step(k, k->s->visible, &sum_pass);
}

static void find_online(const rows_kernel *k) {
  each_step(k, k->s->visible, &both_pass);
  ftl_unary(k->b, FTL_ELEM_COPY, k->previous, k->top);
  ftl_reduce_lanes(k->b, FTL_ELEM_MAX, k->top);
  shift_by_maximum(k);
  exp_of_difference(k, k->correction, k->previous, k->shift);
  ftl_binary(k->b, FTL_ELEM_MUL, k->sum, k->sum, ftl_value_operand(k->correction));
}

static void store_lse(const rows_kernel *k) {
  ftl_unary(k->b, FTL_ELEM_LOG2, k->sum, k->sum);
  ftl_elem(k->b, FTL_ELEM_FMA, k->top, ftl_value_operand(k->sum), ftl_immediate(ln_2), ftl_value_operand(k->top));
  ftl_tile_ref ref = step_ref(k, k->s->lse, ftl_const(k->b, 0), FTL_TENSOR_END);
  ref.columns = 1;
  ftl_store_rows(k->b, ref, k->top);
}

static void declare(rows_kernel *k) {
  static const char *const names[FTL_ROW_MAX_HELD_STEPS] = {"row0",  "row1",  "row2",  "row3", "row4",  "row5",
                                                            "row6",  "row7",  "row8",  "row9", "row10", "row11",
                                                            "row12", "row13", "row14", "row15"};
  const ftl_row_softmax *s = k->s;
  ftl_value_layout layout = {threads_per_row(s), FTL_ROW_VECTOR_COLUMNS};
  ftl_builder_role(k->b, "main", s->num_warps, 0);
  for (int32_t i = 0; i < (s->held_steps > 0 ? s->held_steps : FTL_ROW_MAX_UNROLL); i++)
    k->held[i] = ftl_builder_tile_by_rows(k->b, names[i], s->dtype, s->rows, k->step_columns, layout);
  for (int32_t i = 0; i < STEPS_AT_WORK; i++)
    k->tiles[i] = ftl_builder_tile_by_rows(k->b, "x", FTL_FP32, s->rows, k->step_columns, layout);
  k->top = ftl_builder_rows_by_rows(k->b, "max", s->rows, layout);
  k->previous = ftl_builder_rows_by_rows(k->b, "previous_max", s->rows, layout);
  k->shift = ftl_builder_rows_by_rows(k->b, "shift", s->rows, layout);
  k->sum = ftl_builder_rows_by_rows(k->b, "sum", s->rows, layout);
  k->correction = ftl_builder_rows_by_rows(k->b, "correction", s->rows, layout);
  if (s->more) s->more->declare(s->more->context);
}

static void load_held(const rows_kernel *k) {
  for (int32_t i = 0; i < k->s->held_steps; i++)
    ftl_load_tile(k->b, k->held[i],
                  step_ref(k, k->s->from, ftl_const(k->b, (int64_t)i * k->step_columns), FTL_TENSOR_END));
}

void ftl_row_softmax_build(ftl_builder *b, const ftl_row_softmax *s) {
  rows_kernel k = {.b = b, .s = s, .step_columns = ftl_row_softmax_step_columns(s)};
  declare(&k);
  load_held(&k);
  ftl_fill(b, k.top, -INFINITY);
  ftl_fill(b, k.sum, 0);
  if (s->online)
    find_online(&k);
  else
    find_safe(&k);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, k.sum);
  ftl_unary(k.b, FTL_ELEM_RECIP, k.correction, k.sum);
  each_step(&k, s->end, &result_pass);
  store_lse(&k);
}
