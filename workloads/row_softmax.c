#include "workloads/row_softmax.h"

#include <math.h>

static const float log2_e = 1.44269504F, ln_2 = 0.693147181F;
// Where the maximum of a lane that has seen no column is no infinity, none needs a guard: -1e30 as authors have it.
static const float lowest = -1e30F;

// The arithmetic of a step begins while that of the step before ends.
enum { STEPS_AT_WORK = 2 };

typedef struct rows_kernel {
  ftl_builder *b;
  const ftl_row_softmax *s;
  int32_t step_columns;
  int32_t held[FTL_ROW_MAX_HELD_STEPS];   // tiles of the tensor's dtype; `unroll` of them where rows are read again
  int32_t tiles[FTL_ROW_MAX_HELD_STEPS];  // steps in fp32: all that are kept so, else STEPS_AT_WORK
  int32_t x;                              // of these, that of the present step
  int32_t top, previous, shift, sum, correction;  // rows
} rows_kernel;

// What a pass does with a step's columns, `from`, which are in `x`, -inf where a row sees none. `raw` holds them as
// read.
typedef void (*step_work)(const rows_kernel *k, ftl_tile_ref from, int32_t raw);

typedef struct row_pass {
  step_work work;
  int32_t vector_insts;  // instructions of a step for a thread's vector, but for those that load and mask it
} row_pass;

static int32_t threads_per_row(const ftl_row_softmax *s) { return s->num_warps * FTL_WARP_LANES / s->rows; }

static int32_t vector_columns(const ftl_row_softmax *s) {
  return s->vector_columns > 0 ? s->vector_columns : FTL_ROW_VECTOR_COLUMNS;
}

int32_t ftl_row_softmax_step_columns(const ftl_row_softmax *s) { return threads_per_row(s) * vector_columns(s); }

static bool keeps_exponentials(const ftl_row_softmax *s) { return s->fused && !s->online && s->held_steps > 0; }

static int32_t num_tiles(const ftl_row_softmax *s) { return keeps_exponentials(s) ? s->held_steps : STEPS_AT_WORK; }

// dst <- exp(a - the maximum that `subtracted` stands for)
static void exp_of_difference(const rows_kernel *k, int32_t dst, int32_t a, int32_t subtracted) {
  if (k->s->fused) {
    ftl_elem(k->b, FTL_ELEM_FMA, dst, ftl_value_operand(a), ftl_immediate(log2_e), ftl_value_operand(subtracted));
    ftl_unary(k->b, FTL_ELEM_EXP2, dst, dst);
    return;
  }
  ftl_binary(k->b, FTL_ELEM_SUB, dst, a, ftl_value_operand(subtracted));
  if (k->s->precise) {
    ftl_unary(k->b, FTL_ELEM_EXP, dst, dst);
    return;
  }
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

static void unpack(const rows_kernel *k, int32_t raw, ftl_expr column) {
  ftl_convert(k->b, k->x, raw);
  if (k->s->more) k->s->more->read(k->s->more->context, column, k->x);
  if (k->s->visible == FTL_TENSOR_END) return;
  ftl_mask(k->b, k->x, k->s->row, column, FTL_ALWAYS, k->s->visible);
  if (k->s->first_visible != 0) ftl_mask_left(k->b, ftl_sub(k->b, k->s->first_visible, k->s->row));
}

// Steps are independent until they are reduced.
static rows_kernel with_tile(const rows_kernel *k, int32_t step) {
  rows_kernel other = *k;
  other.x = k->tiles[step % num_tiles(k->s)];
  return other;
}

static ftl_expr column_after(const rows_kernel *k, ftl_expr column, int32_t step) {
  return ftl_add(k->b, column, ftl_const(k->b, (int64_t)step * k->step_columns));
}

// The columns of a step that some pass takes: from `column` up to `end` (FTL_TENSOR_END: all that are left).
typedef struct step_columns {
  ftl_expr column, end;
  int32_t columns;  // at most
} step_columns;

static step_columns whole_step(const rows_kernel *k, ftl_expr column) {
  return (step_columns){column, FTL_TENSOR_END, k->step_columns};
}

// A load may go ahead of the arithmetic of the steps before it, not of their stores.
static void read_step(const rows_kernel *k, int32_t i, step_columns from, step_work work) {
  rows_kernel step = with_tile(k, i);
  ftl_tile_ref ref = step_ref(k, k->s->from, from.column, from.end);
  if (from.columns < ref.columns) ref.columns = from.columns;
  ftl_load_tile_or(k->b, k->held[i], ref, -INFINITY);
  unpack(&step, k->held[i], from.column);
  work(&step, ref, k->held[i]);
}

// ---- loops over steps ----
// Threads leave a loop as their columns end, and warps of which all threads have left run it no more. Whether the
// warp's first thread has columns before `end` in a step from `column` on: 1 or 0. What a fused kernel reads beside the
// row is not cut at its end: all its warps stay.
static ftl_expr warp_has_columns(const rows_kernel *k, ftl_expr column, ftl_expr end) {
  ftl_builder *b = k->b;
  ftl_expr of_row = ftl_mod(b, ftl_warp(b), ftl_const(b, k->s->num_warps / k->s->rows));
  ftl_expr first =
      k->s->more ? column : ftl_add(b, column, ftl_mul(b, of_row, ftl_const(b, FTL_WARP_LANES * vector_columns(k->s))));
  return ftl_min(b, ftl_const(b, 1), ftl_max(b, ftl_const(b, 0), ftl_sub(b, end, first)));
}

static const ftl_loop_part whole_loop = {FTL_LOOP_BEGINS, false}, one_step = {FTL_LOOP_BEGINS, true},
                           rounds = {FTL_LOOP_IN_ROUNDS, false}, one_round = {FTL_LOOP_IN_ROUNDS, true},
                           more_rounds = {FTL_LOOP_GOES_ON, false}, one_more_step = {FTL_LOOP_GOES_ON, true};

static ftl_expr begin_steps(const rows_kernel *k, ftl_expr num, ftl_loop_part part) {
  return ftl_loop_value(k->b, ftl_loop_by_threads(k->b, ftl_const(k->b, 0), num, part));
}

// A loop of `num` times `unroll` whole steps from `column` on.
static void loop_steps(const rows_kernel *k, ftl_expr column, ftl_expr num, int32_t unroll, ftl_loop_part part,
                       step_work work) {
  ftl_builder *b = k->b;
  ftl_expr i = begin_steps(k, num, part);
  ftl_expr first = ftl_add(b, column, ftl_mul(b, i, ftl_const(b, (int64_t)unroll * k->step_columns)));
  for (int32_t u = 0; u < unroll; u++) read_step(k, u, whole_step(k, column_after(k, first, u)), work);
  ftl_end_loop(b);
}

// How nvcc unrolls a loop whose trip count it does not know: the steps that do not fill a round first, one by one, then
// rounds of `unroll` steps (SASS of kernels/attention/softmax_rows.h and standard_mma.h).
static void unroll_steps(const rows_kernel *k, ftl_expr begin, ftl_expr num_steps, int32_t unroll, step_work work) {
  ftl_builder *b = k->b;
  if (unroll == 1) {
    loop_steps(k, begin, num_steps, 1, whole_loop, work);
    return;
  }
  ftl_expr in_round = ftl_const(b, unroll), left = ftl_mod(b, num_steps, in_round);
  bool is_short = k->s->columns < (int64_t)unroll * k->step_columns;  // no row has a round
  loop_steps(k, begin, left, 1, unroll == 2 ? one_step : whole_loop, work);
  loop_steps(k, ftl_add(b, begin, ftl_mul(b, left, ftl_const(b, k->step_columns))),
             is_short ? ftl_const(b, 0) : ftl_div(b, num_steps, in_round), unroll, rounds, work);
}

// The last step, which has columns up to `end` for some of the threads; none where `end` is `column`.
static void last_step(const rows_kernel *k, ftl_expr column, ftl_expr end, step_work work) {
  begin_steps(k, warp_has_columns(k, column, end), one_more_step);
  read_step(k, 0, (step_columns){column, whole_vectors(k, end), k->step_columns}, work);
  ftl_end_loop(k->b);
}

// Threads that have one step more than the others of their warp, where that makes whole rounds of it: the others have
// `unroll` - 1 single steps first, while these wait, and these a round more, while the others wait. The columns are
// those of the first steps and of the last; of a step the first `longer` columns belong to the threads that have more.
// Which warps have the others' columns does not matter where one has both: it is the last one.
static void step_apart(const rows_kernel *k, int32_t num_steps, int32_t longer, int32_t unroll, step_work work) {
  ftl_builder *b = k->b;
  int32_t others = k->step_columns - longer, last = num_steps - 1;
  ftl_expr any = warp_has_columns(k, ftl_const(b, 0), ftl_const(b, others));
  ftl_expr i = begin_steps(k, ftl_mul(b, any, ftl_const(b, unroll - 1)), unroll == 2 ? one_step : whole_loop);
  ftl_expr column = ftl_add(b, ftl_mul(b, i, ftl_const(b, k->step_columns)), ftl_const(b, longer));
  read_step(k, 0, (step_columns){column, FTL_TENSOR_END, others}, work);
  ftl_end_loop(b);
  begin_steps(k, warp_has_columns(k, ftl_const(b, 0), ftl_const(b, longer)), one_round);
  for (int32_t u = 0; u < unroll; u++) {
    int64_t step = u < unroll - 1 ? u : last;
    read_step(k, u, (step_columns){ftl_const(b, step * k->step_columns), FTL_TENSOR_END, longer}, work);
  }
  ftl_end_loop(b);
}

// All steps of whole rows.
static void read_rows(const rows_kernel *k, int32_t unroll, step_work work) {
  ftl_builder *b = k->b;
  int32_t full = (int32_t)(k->s->columns / k->step_columns), longer = (int32_t)(k->s->columns % k->step_columns);
  ftl_expr zero = ftl_const(b, 0);
  // Where no warp has both kinds of threads none waits for the other: here all have single steps, and some one more.
  bool is_a_warp_apart = longer % (FTL_WARP_LANES * FTL_ROW_VECTOR_COLUMNS) != 0;
  if (is_a_warp_apart && unroll > 1 && (full + 1) % unroll == 0) {
    step_apart(k, full + 1, longer, unroll, work);
    loop_steps(k, ftl_const(b, (int64_t)(unroll - 1) * k->step_columns), ftl_const(b, full / unroll), unroll,
               more_rounds, work);
    return;
  }
  unroll_steps(k, zero, ftl_const(b, full), unroll, work);
  if (longer > 0) last_step(k, ftl_const(b, (int64_t)full * k->step_columns), ftl_const(b, k->s->columns), work);
}

// All steps from `begin` up to `end` (FTL_TENSOR_END: all columns), each read from memory.
static void read_again(const rows_kernel *k, ftl_expr end, int32_t unroll, step_work work) {
  if (end == FTL_TENSOR_END) {
    read_rows(k, unroll, work);
    return;
  }
  ftl_builder *b = k->b;
  ftl_expr step = ftl_const(b, k->step_columns), begin = k->s->begin;
  ftl_expr full = ftl_div(b, ftl_sub(b, end, begin), step);
  unroll_steps(k, begin, full, unroll, work);
  last_step(k, ftl_add(b, begin, ftl_mul(b, full, step)), end, work);
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

// Rows that are held: what lies past their end has been loaded as -inf. How long rows are is a run-time number to the
// compiler, so that it computes all steps; stores are predicated.
static void each_held(const rows_kernel *k, step_work work) {
  for (int32_t i = 0; i < k->s->held_steps; i++) {
    rows_kernel step = with_tile(k, i);
    ftl_expr column = ftl_const(k->b, (int64_t)i * k->step_columns);
    unpack(&step, k->held[i], column);
    work(&step, step_ref(k, k->s->from, column, ftl_const(k->b, k->s->columns)), k->held[i]);
  }
}

// The numbers that the pass before has left.
static void each_kept(const rows_kernel *k, step_work work) {
  for (int32_t i = 0; i < k->s->held_steps; i++) {
    rows_kernel step = with_tile(k, i);
    ftl_expr column = ftl_const(k->b, (int64_t)i * k->step_columns);
    work(&step, step_ref(k, k->s->from, column, ftl_const(k->b, k->s->columns)), k->held[i]);
  }
}

static void each_step(const rows_kernel *k, ftl_expr end, const row_pass *pass) {
  if (k->s->held_steps == 0)
    read_again(k, end, unroll_of(k, pass), pass->work);
  else
    each_held(k, pass->work);
}

// ---- what passes do ----
static void take_maximum(const rows_kernel *k, ftl_tile_ref from, int32_t raw) {
  (void)from, (void)raw;
  ftl_reduce_rows(k->b, FTL_ELEM_MAX, k->top, k->x);
}

static void take_sum(const rows_kernel *k, ftl_tile_ref from, int32_t raw) {
  (void)from, (void)raw;
  exp_of_difference(k, k->x, k->x, k->shift);
  ftl_reduce_rows(k->b, FTL_ELEM_ADD, k->sum, k->x);
}

// What exponentials are shifted by.
static void shift_by_maximum(const rows_kernel *k, bool may_be_none) {
  if (k->s->fused)
    ftl_binary(k->b, FTL_ELEM_MUL, k->shift, k->top, ftl_immediate(-log2_e));
  else
    ftl_unary(k->b, may_be_none ? FTL_ELEM_ZERO_IF_NEG_INF : FTL_ELEM_COPY, k->shift, k->top);
}

// Each lane keeps a maximum and a sum of its own columns. A lane that has seen none has the maximum -inf, or `lowest`.
static void take_both(const rows_kernel *k, ftl_tile_ref from, int32_t raw) {
  ftl_unary(k->b, FTL_ELEM_COPY, k->previous, k->top);
  take_maximum(k, from, raw);
  shift_by_maximum(k, true);
  exp_of_difference(k, k->correction, k->previous, k->shift);
  ftl_binary(k->b, FTL_ELEM_MUL, k->sum, k->sum, ftl_value_operand(k->correction));
  take_sum(k, from, raw);
}

static void write_exponentials(const rows_kernel *k, ftl_tile_ref from, int32_t raw) {
  if (k->s->precise)
    ftl_binary(k->b, FTL_ELEM_DIV, k->x, k->x, ftl_value_operand(k->sum));
  else
    ftl_binary(k->b, FTL_ELEM_MUL, k->x, k->x, ftl_value_operand(k->correction));
  ftl_convert(k->b, raw, k->x);
  ftl_tile_ref to = from;
  to.tensor = k->s->to;
  ftl_store(k->b, to, raw, -1);
  if (k->s->more) k->s->more->written(k->s->more->context, from.column, k->x, raw);
}

static void write_result(const rows_kernel *k, ftl_tile_ref from, int32_t raw) {
  exp_of_difference(k, k->x, k->x, k->shift);
  write_exponentials(k, from, raw);
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
static void find_safe(const rows_kernel *k) {
  each_step(k, k->s->visible, &maximum_pass);
  ftl_reduce_lanes(k->b, FTL_ELEM_MAX, k->top);
  shift_by_maximum(k, k->s->may_see_none);
  if (keeps_exponentials(k->s))
    each_kept(k, take_sum);
  else
    each_step(k, k->s->visible, &sum_pass);
}

static void find_online(const rows_kernel *k) {
  each_step(k, k->s->visible, &both_pass);
  ftl_unary(k->b, FTL_ELEM_COPY, k->previous, k->top);
  ftl_reduce_lanes(k->b, FTL_ELEM_MAX, k->top);
  shift_by_maximum(k, k->s->may_see_none);
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
  ftl_value_layout layout = {threads_per_row(s), vector_columns(s)};
  ftl_builder_role(k->b, "main", s->num_warps, 0);
  for (int32_t i = 0; i < (s->held_steps > 0 ? s->held_steps : FTL_ROW_MAX_UNROLL); i++)
    k->held[i] = ftl_builder_tile_by_rows(k->b, names[i], s->dtype, s->rows, k->step_columns, layout);
  for (int32_t i = 0; i < num_tiles(s); i++)
    k->tiles[i] = ftl_builder_tile_by_rows(k->b, "x", FTL_FP32, s->rows, k->step_columns, layout);
  k->top = ftl_builder_rows_by_rows(k->b, "max", s->rows, layout);
  k->previous = ftl_builder_rows_by_rows(k->b, "previous_max", s->rows, layout);
  k->shift = ftl_builder_rows_by_rows(k->b, "shift", s->rows, layout);
  k->sum = ftl_builder_rows_by_rows(k->b, "sum", s->rows, layout);
  k->correction = ftl_builder_rows_by_rows(k->b, "correction", s->rows, layout);
  if (s->more) s->more->declare(s->more->context);
}

// Every step is filled with -inf, and its load predicated.
static void load_held(const rows_kernel *k) {
  ftl_expr end = ftl_const(k->b, k->s->columns);
  for (int32_t i = 0; i < k->s->held_steps; i++)
    ftl_load_tile_or(k->b, k->held[i], step_ref(k, k->s->from, ftl_const(k->b, (int64_t)i * k->step_columns), end),
                     -INFINITY);
}

// Of the safe softmax nvcc moves the result's arithmetic to the stores, whose blocks threads without columns branch
// around: of the online one it computes all of it (SASS of kernels/attention/softmax_rows.h).
static void write_held(const rows_kernel *k) {
  if (k->s->online) {
    each_held(k, write_result);
    return;
  }
  bool is_kept = keeps_exponentials(k->s);
  ftl_expr end = ftl_const(k->b, k->s->columns);
  for (int32_t i = 0; (int64_t)i * k->step_columns < k->s->columns; i++) {
    ftl_expr column = ftl_const(k->b, (int64_t)i * k->step_columns);
    rows_kernel step = with_tile(k, i);
    bool is_whole = (int64_t)(i + 1) * k->step_columns <= k->s->columns;
    if (!is_whole) begin_steps(k, warp_has_columns(k, column, end), one_step);
    if (!is_kept) unpack(&step, k->held[i], column);
    step_work write = is_kept ? write_exponentials : write_result;
    write(&step, step_ref(k, k->s->from, column, is_whole ? FTL_TENSOR_END : end), k->held[i]);
    if (!is_whole) ftl_end_loop(k->b);
  }
}

void ftl_row_softmax_build(ftl_builder *b, const ftl_row_softmax *s) {
  rows_kernel k = {.b = b, .s = s, .step_columns = ftl_row_softmax_step_columns(s)};
  declare(&k);
  load_held(&k);
  ftl_fill(b, k.top, s->fused ? lowest : -INFINITY);
  ftl_fill(b, k.sum, 0);
  if (s->online)
    find_online(&k);
  else
    find_safe(&k);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, k.sum);
  if (!s->precise) ftl_unary(k.b, FTL_ELEM_RECIP, k.correction, k.sum);
  if (s->held_steps > 0)
    write_held(&k);
  else
    each_step(&k, s->end, &result_pass);
  store_lse(&k);
}
