// Softmax of the rows of a matrix alone, safe and online: batch * heads * seqlen_q rows of seqlen_kv columns, from x to
// y, and the logarithm of the sum of exponentials of each row. block_m rows a CTA, whose warps share them equally.
// Source: M. Milakov, N. Gimelshein, arXiv:1805.02867. Mirrors kernels/attention/softmax_rows.h.
#include "base/integer.h"
#include "workloads/kept_softmax.h"
#include "workloads/row_softmax.h"
#include "workloads/spec.h"

static int64_t num_rows_of(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  return v[FTL_PARAM_batch] * v[FTL_PARAM_heads] * v[FTL_PARAM_seqlen_q];
}

// The kernel knows rows alone: nothing takes heads and batches apart.
static ftl_tensor_shape shape_of(const ftl_spec *spec, int64_t num_columns) {
  return ftl_contiguous(1, 1, num_rows_of(spec), num_columns);
}

static int64_t num_threads_of(const ftl_spec *spec) { return spec->value[FTL_PARAM_num_warps] * FTL_WARP_LANES; }

// One row a CTA, in a block of a power of two of columns for each thread.
static ftl_status check_kept(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t threads = num_threads_of(spec), a_thread = v[FTL_PARAM_block_n] / threads;
  if (v[FTL_PARAM_block_m] != 1)
    return ftl_error_set(error, FTL_INFEASIBLE, "block_m=%lld: schedule=exponentials has a row a CTA",
                         (long long)v[FTL_PARAM_block_m]);
  if (v[FTL_PARAM_scaling] == FTL_SCALING_EXPONENT)
    return ftl_error_set(error, FTL_INFEASIBLE, "scaling=exponent: schedule=exponentials is Triton's, which has apart");
  bool is_power = a_thread > 0 && (a_thread & (a_thread - 1)) == 0;
  if (is_power && v[FTL_PARAM_block_n] % threads == 0 && v[FTL_PARAM_block_n] >= v[FTL_PARAM_seqlen_kv] &&
      a_thread <= FTL_KEPT_MAX_THREAD_COLUMNS)
    return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_n=%lld: schedule=exponentials holds a row of %lld columns, a power of two up to %d for "
                       "each of %lld threads",
                       (long long)v[FTL_PARAM_block_n], (long long)v[FTL_PARAM_seqlen_kv], FTL_KEPT_MAX_THREAD_COLUMNS,
                       (long long)threads);
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] == FTL_SCHEDULE_EXPONENTIALS) return check_kept(spec, error);
  if (v[FTL_PARAM_num_warps] % v[FTL_PARAM_block_m] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: whole warps share a row, so block_m divides num_warps",
                         (long long)v[FTL_PARAM_block_m], (long long)v[FTL_PARAM_num_warps]);
  if (v[FTL_PARAM_seqlen_kv] % FTL_ROW_VECTOR_COLUMNS != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "seqlen_kv=%lld: 16-byte accesses need a multiple of 8",
                         (long long)v[FTL_PARAM_seqlen_kv]);
  return FTL_OK;
}

// block_n columns, at least the row, in whole steps of the row's threads.
static ftl_status check_held(const ftl_spec *spec, const ftl_row_softmax *s, ftl_error *error) {
  int64_t block_n = spec->value[FTL_PARAM_block_n], step = ftl_row_softmax_step_columns(s);
  if (block_n >= spec->value[FTL_PARAM_seqlen_kv] && block_n % step == 0 && block_n / step <= FTL_ROW_MAX_HELD_STEPS)
    return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_n=%lld: schedule=registers holds a row of %lld columns in steps of %lld: allowed are "
                       "multiples of that, up to %d of them, that are no less than the row",
                       (long long)block_n, (long long)spec->value[FTL_PARAM_seqlen_kv], (long long)step,
                       FTL_ROW_MAX_HELD_STEPS);
}

static int64_t block_of_kept(const ftl_spec *spec) {
  int64_t block = num_threads_of(spec);
  while (block < spec->value[FTL_PARAM_seqlen_kv]) block *= 2;
  return block;
}

// Columns that a row's threads take at once; 0: warps that share no rows.
static int64_t step_columns(const ftl_spec *spec) {
  return num_threads_of(spec) / spec->value[FTL_PARAM_block_m] * FTL_ROW_VECTOR_COLUMNS;
}

// Who names a block_n that has a whole row keeps it: all six kernels of kernels/independent whose authors named such a
// block and no schedule.
static bool names_whole_row(const ftl_spec *spec) {
  int64_t block_n = spec->value[FTL_PARAM_block_n], step = step_columns(spec);
  bool is_named = (spec->given & FTL_TAKES(block_n)) != 0 && block_n >= spec->value[FTL_PARAM_seqlen_kv];
  return is_named && step > 0 && block_n % step == 0 && block_n / step <= FTL_ROW_MAX_HELD_STEPS;
}

static void set_defaults(ftl_spec *spec) {
  ftl_spec_set_default(spec, FTL_PARAM_block_m, 1);
  ftl_spec_set_default(spec, FTL_PARAM_schedule, names_whole_row(spec) ? FTL_SCHEDULE_REGISTERS : FTL_SCHEDULE_REREAD);
  if (spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_EXPONENTIALS) {
    ftl_spec_set_default(spec, FTL_PARAM_block_n, block_of_kept(spec));
    ftl_spec_set_default(spec, FTL_PARAM_exp2, FTL_EXP2_IEEE);  // tl.exp is ex2.approx without .ftz
    return;
  }
  // as many columns as a step takes, or as the row needs
  int64_t step = step_columns(spec);
  int64_t steps = ftl_divide_up(spec->value[FTL_PARAM_seqlen_kv], step > 0 ? step : 1);
  bool is_held = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_REGISTERS;
  ftl_spec_set_default(spec, FTL_PARAM_block_n, is_held ? steps * step : step);
}

static void declare_tensors(ftl_builder *b, const ftl_spec *spec, ftl_row_softmax *s) {
  s->from = ftl_builder_tensor(b, "x", s->dtype, FTL_TENSOR_INPUT, shape_of(spec, s->columns));
  s->to = ftl_builder_tensor(b, "y", s->dtype, FTL_TENSOR_OUTPUT, shape_of(spec, s->columns));
  s->lse = ftl_builder_tensor(b, "lse", FTL_FP32, FTL_TENSOR_OUTPUT, shape_of(spec, 1));
  s->batch = s->head = ftl_const(b, 0);
  s->row = ftl_mul(b, ftl_cta(b), ftl_const(b, s->rows));
  ftl_builder_grid(b, ftl_divide_up(num_rows_of(spec), s->rows), false, FTL_TILES_BY_STRIDE);
}

static void build_kept(ftl_builder *b, const ftl_spec *spec, const ftl_row_softmax *s) {
  ftl_kept_softmax kept = {.dtype = s->dtype,
                           .from = s->from,
                           .to = s->to,
                           .lse = s->lse,
                           .batch = s->batch,
                           .head = s->head,
                           .row = s->row,
                           .num_warps = s->num_warps,
                           .block_columns = (int32_t)spec->value[FTL_PARAM_block_n],
                           .columns = s->columns};
  ftl_kept_softmax_build(b, &kept);
}

static ftl_status build(const ftl_spec *spec, bool online, ftl_tile_program **launches, int *num_launches,
                        ftl_error *error) {
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  if (status != FTL_OK) return status;
  ftl_row_softmax s = {.online = online,
                       .dtype = ftl_spec_dtype(spec),
                       .rows = (int32_t)spec->value[FTL_PARAM_block_m],
                       .num_warps = (int32_t)spec->value[FTL_PARAM_num_warps],
                       .columns = spec->value[FTL_PARAM_seqlen_kv],
                       .fused = spec->value[FTL_PARAM_scaling] == FTL_SCALING_EXPONENT,
                       .unroll = FTL_ROW_MAX_UNROLL};
  if (spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_REGISTERS) {
    status = check_held(spec, &s, error);
    if (status != FTL_OK) return status;
    s.held_steps = (int32_t)(spec->value[FTL_PARAM_block_n] / ftl_row_softmax_step_columns(&s));
  }
  ftl_builder *b;
  status = ftl_builder_create(&b, spec->workload->name, error);
  if (status != FTL_OK) return status;
  declare_tensors(b, spec, &s);
  if (spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_EXPONENTIALS)
    build_kept(b, spec, &s);
  else
    ftl_row_softmax_build(b, &s);
  status = ftl_builder_finish(b, &launches[0], error);
  if (status == FTL_OK) *num_launches = 1;
  ftl_builder_destroy(b);
  return status;
}

static ftl_status build_safe(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  return build(spec, false, launches, num_launches, error);
}

static ftl_status build_online(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  return build(spec, true, launches, num_launches, error);
}
#define ROWS_PARAMS                                                                                            \
  (FTL_TAKES(batch) | FTL_TAKES(heads) | FTL_TAKES(seqlen_q) | FTL_TAKES(seqlen_kv) | FTL_TAKES(dtype) |       \
   FTL_TAKES(block_m) | FTL_TAKES(block_n) | FTL_TAKES(num_warps) | FTL_TAKES(schedule) | FTL_TAKES(scaling) | \
   FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(conditions) | FTL_TAKES(cache) | FTL_TAKES(clock_mhz) | FTL_TAKES(detail))

const ftl_workload ftl_workload_softmax_safe = {
    .name = "softmax_safe",
    .doc = "softmax of the rows of a matrix: maximum, then sum, then result, three passes over a row",
    .accepts = ROWS_PARAMS,
    .schedules = 1 << FTL_SCHEDULE_REREAD | 1 << FTL_SCHEDULE_REGISTERS | 1 << FTL_SCHEDULE_EXPONENTIALS,
    .set_defaults = set_defaults,
    .build = build_safe,
};

const ftl_workload ftl_workload_softmax_online = {
    .name = "softmax_online",
    .doc = "softmax of the rows of a matrix: maximum and sum together, two passes over a row",
    .accepts = ROWS_PARAMS,
    .schedules = 1 << FTL_SCHEDULE_REREAD | 1 << FTL_SCHEDULE_REGISTERS,
    .set_defaults = set_defaults,
    .build = build_online,
};
