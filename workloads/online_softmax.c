#include "workloads/online_softmax.h"

#include <math.h>

static const float ln_2 = 0.69314718055994530942f;

static int32_t rows_of(ftl_builder *b, const char *name, int32_t rows, const ftl_attention *a) {
  int32_t value = ftl_builder_rows(b, name, rows);
  if (a->warps_n > 1 && a->repeats_scores)
    ftl_builder_repeat(b, a->warps_n);
  else if (a->warps_n > 1)
    ftl_builder_side_by_side(b, a->warps_n);
  return value;
}

ftl_online_softmax ftl_online_softmax_declare(ftl_builder *b, int32_t rows, const ftl_attention *a) {
  return (ftl_online_softmax){
      .scaling = ftl_score_scaling_of(a),
      .guards_each_step = a->guards_each_step,
      .sums_behind = a->sums_behind,
      .precise_end = a->precise_end,
      .output_scale = 1.0F,
      .max = rows_of(b, "max", rows, a),
      .previous = rows_of(b, "previous_max", rows, a),
      .shift = rows_of(b, "shift", rows, a),
      .correction = rows_of(b, "correction", rows, a),
      .sum = rows_of(b, "sum", rows, a),
      .step_sum = a->sums_each_step ? rows_of(b, "step_sum", rows, a) : -1,
      .warps_n = a->repeats_scores ? 1 : a->warps_n,
  };
}

void ftl_online_softmax_exchange(ftl_builder *b, ftl_online_softmax *s, int32_t role, int32_t rows) {
  s->exchange = ftl_builder_ring(b, "exchange", FTL_FP32, 1, rows * s->warps_n, 1, role, 1 << role);
  ftl_builder_overlay(b, s->exchange);
}

void ftl_online_softmax_keep_in_shared(ftl_builder *b, ftl_online_softmax *s, int32_t role, int32_t rows) {
  enum { NUMBERS = 4, PADDING = 4 };  // m_prime, s_prime, mi, out_rescale; P's rows are 16 bytes apart from each other
  int32_t columns = rows * (NUMBERS + PADDING + s->warps_n);
  s->exchange = ftl_builder_ring(b, "rows", FTL_FP32, 1, columns, 1, role, 1 << role);
  s->in_shared = true;
}

void ftl_online_softmax_multiply_exchanged(ftl_builder *b, const ftl_online_softmax *s, int32_t output, int32_t probs,
                                           int32_t ring_p, int32_t ring_v) {
  if (s->step_sum >= 0) ftl_barrier(b);  // all have read the sums, whose place P takes
  ftl_acquire(b, ring_p);
  ftl_put(b, ring_p, probs);
  ftl_commit(b, ring_p);
  ftl_wait(b, ring_p);
  ftl_mma_shared(b, output, ring_p, ring_v, false);
  ftl_release(b, ring_p);
}

void ftl_online_softmax_share(ftl_builder *b, ftl_online_softmax *s, int32_t role, int32_t rows, int32_t num_groups) {
  s->num_sharing = num_groups;
  s->step_max_staging = ftl_builder_ring(b, "step maxima", FTL_FP32, 1, num_groups * rows, 1, role, 1 << role);
  s->step_sum_staging = ftl_builder_ring(b, "step sums", FTL_FP32, 1, num_groups * rows, 1, role, 1 << role);
}

void ftl_online_softmax_start(ftl_builder *b, const ftl_online_softmax *s) {
  ftl_fill(b, s->max, -INFINITY);
  ftl_fill(b, s->sum, 0.0f);
}

// Over the lanes that share a row, and the warps side by side.
static void make_whole(ftl_builder *b, const ftl_online_softmax *s, ftl_elem_fn fn, int32_t rows) {
  if (s->in_shared)
    ftl_reduce_in_shared(b, fn, rows, s->exchange);
  else if (s->warps_n > 1)
    ftl_reduce_warps(b, fn, rows, s->exchange);
  else
    ftl_reduce_lanes(b, fn, rows);
}

static void add_up_lanes(ftl_builder *b, const ftl_online_softmax *s) {
  if (s->step_sum < 0) make_whole(b, s, FTL_ELEM_ADD, s->sum);
}

static void add_exponentials(ftl_builder *b, const ftl_online_softmax *s, int32_t scores) {
  if (s->step_sum < 0) {
    ftl_binary(b, FTL_ELEM_MUL, s->sum, s->sum, ftl_value_operand(s->correction));
    ftl_reduce_rows(b, FTL_ELEM_ADD, s->sum, scores);
    return;
  }
  ftl_fill(b, s->step_sum, 0.0F);
  if (s->sums_behind)
    ftl_reduce_rows_behind(b, FTL_ELEM_ADD, s->step_sum, scores);
  else
    ftl_reduce_rows(b, FTL_ELEM_ADD, s->step_sum, scores);
  make_whole(b, s, FTL_ELEM_ADD, s->step_sum);
  if (s->num_sharing > 0) ftl_reduce_groups(b, FTL_ELEM_ADD, s->step_sum, s->step_sum_staging);
  ftl_elem(b, FTL_ELEM_FMA, s->sum, ftl_value_operand(s->sum), ftl_value_operand(s->correction),
           ftl_value_operand(s->step_sum));
}

void ftl_online_softmax_maximum(ftl_builder *b, const ftl_online_softmax *s, int32_t scores, bool masked) {
  const float to_log2 = ftl_score_scaling_to_log2(s->scaling);
  ftl_scale_scores(b, s->scaling, scores);
  ftl_unary(b, FTL_ELEM_COPY, s->previous, s->max);
  ftl_reduce_rows(b, FTL_ELEM_MAX, s->max, scores);
  make_whole(b, s, FTL_ELEM_MAX, s->max);
  bool is_staged = s->warps_n > 1 && !s->in_shared;
  if (is_staged) ftl_barrier(b);  // all have read the maxima: sums, or what the staging lies over, may follow
  if (s->num_sharing > 0) ftl_reduce_groups(b, FTL_ELEM_MAX, s->max, s->step_max_staging);
  // Of a row that has seen no key -inf - -inf would be NaN: such rows are shifted by 0, and exp2(-inf) is 0.
  int32_t finite_max = s->max;
  if (masked || s->guards_each_step) {
    ftl_unary(b, FTL_ELEM_ZERO_IF_NEG_INF, s->shift, s->max);
    finite_max = s->shift;
  }
  ftl_binary(b, FTL_ELEM_MUL, s->shift, finite_max, ftl_immediate(-to_log2));
  ftl_elem(b, FTL_ELEM_FMA, s->correction, ftl_value_operand(s->previous), ftl_immediate(to_log2),
           ftl_value_operand(s->shift));
  ftl_unary(b, FTL_ELEM_EXP2, s->correction, s->correction);
  if (s->log2_largest != 0) ftl_binary(b, FTL_ELEM_ADD, s->shift, s->shift, ftl_immediate(s->log2_largest));
}

static void shift_scores(ftl_builder *b, const ftl_online_softmax *s, int32_t scores, bool masked) {
  const float to_log2 = ftl_score_scaling_to_log2(s->scaling);
  if (ftl_scores_are_shifted_apart(s->scaling, masked)) {
    ftl_binary(b, FTL_ELEM_MUL, scores, scores, ftl_immediate(to_log2));
    ftl_binary(b, FTL_ELEM_ADD, scores, scores, ftl_value_operand(s->shift));
    return;
  }
  ftl_elem(b, FTL_ELEM_FMA, scores, ftl_value_operand(scores), ftl_immediate(to_log2), ftl_value_operand(s->shift));
}

void ftl_online_softmax_exponentials(ftl_builder *b, const ftl_online_softmax *s, int32_t scores, bool masked) {
  shift_scores(b, s, scores, masked);
  ftl_unary(b, FTL_ELEM_EXP2, scores, scores);
  add_exponentials(b, s, scores);
}

void ftl_online_softmax_step(ftl_builder *b, const ftl_online_softmax *s, int32_t scores, bool masked) {
  ftl_online_softmax_maximum(b, s, scores, masked);
  ftl_online_softmax_exponentials(b, s, scores, masked);
}

// Leaves log-sum-exp in s->max.
static void log_sum_exp(ftl_builder *b, const ftl_online_softmax *s) {
  if (s->precise_end) {  // libdevice's log2 has logf's polynomial
    ftl_unary(b, FTL_ELEM_LOG, s->sum, s->sum);
  } else {
    ftl_unary(b, FTL_ELEM_LOG2, s->sum, s->sum);
    if (s->log2_largest != 0) ftl_binary(b, FTL_ELEM_SUB, s->sum, s->sum, ftl_immediate(s->log2_largest));
    ftl_binary(b, FTL_ELEM_MUL, s->sum, s->sum, ftl_immediate(ln_2));
  }
  ftl_elem(b, FTL_ELEM_FMA, s->max, ftl_value_operand(s->max), ftl_immediate(ftl_score_scaling_to_natural(s->scaling)),
           ftl_value_operand(s->sum));
}

static void divide_by_sums(ftl_builder *b, const ftl_online_softmax *s, int32_t output) {
  ftl_binary(b, FTL_ELEM_DIV_FULL, output, output, ftl_value_operand(s->sum));
  if (s->output_scale != 1.0F) ftl_binary(b, FTL_ELEM_MUL, output, output, ftl_immediate(s->output_scale));
}

static void multiply_by_reciprocals(ftl_builder *b, const ftl_online_softmax *s, int32_t output) {
  ftl_unary(b, FTL_ELEM_RECIP, s->correction, s->sum);
  if (s->output_scale != 1.0F)
    ftl_binary(b, FTL_ELEM_MUL, s->correction, s->correction, ftl_immediate(s->output_scale));
  ftl_binary(b, FTL_ELEM_MUL, output, output, ftl_value_operand(s->correction));
}

void ftl_online_softmax_finish(ftl_builder *b, const ftl_online_softmax *s, int32_t output) {
  add_up_lanes(b, s);
  (s->precise_end ? divide_by_sums : multiply_by_reciprocals)(b, s, output);
  log_sum_exp(b, s);
}

void ftl_online_softmax_merge_groups(ftl_builder *b, const ftl_online_softmax *s, int32_t max_staging,
                                     int32_t sum_staging) {
  ftl_unary(b, FTL_ELEM_COPY, s->previous, s->max);
  ftl_reduce_groups(b, FTL_ELEM_MAX, s->max, max_staging);
  // A group that saw no key of a row has -inf there and weighs nothing, also where no group saw one.
  ftl_unary(b, FTL_ELEM_ZERO_IF_NEG_INF, s->shift, s->max);
  ftl_binary(b, FTL_ELEM_SUB, s->correction, s->previous, ftl_value_operand(s->shift));
  ftl_binary(b, FTL_ELEM_MUL, s->correction, s->correction, ftl_immediate(ftl_score_scaling_to_log2(s->scaling)));
  ftl_unary(b, FTL_ELEM_EXP2, s->correction, s->correction);
  ftl_binary(b, FTL_ELEM_MUL, s->sum, s->sum, ftl_value_operand(s->correction));
  ftl_reduce_groups(b, FTL_ELEM_ADD, s->sum, sum_staging);
  log_sum_exp(b, s);
}

void ftl_online_softmax_store_groups(ftl_builder *b, const ftl_online_softmax *s, ftl_tile_ref ref, int32_t output,
                                     int32_t output_staging, int32_t rows_staging) {
  add_up_lanes(b, s);
  // Each group has the sum of all, which is to count once.
  if (s->num_sharing > 0) ftl_binary(b, FTL_ELEM_MUL, s->sum, s->sum, ftl_immediate(1.0F / (float)s->num_sharing));
  ftl_store_merged(b, ref, output, s->max, s->sum, ftl_score_scaling_to_log2(s->scaling), output_staging, rows_staging);
}
