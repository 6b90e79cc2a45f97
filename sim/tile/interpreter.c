// The interpreter: what it allocates, and its walk over all CTAs.
#include "tile/interpreter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "tile/interpreter_internal.h"

ftl_status ftl_interpret_fail(const ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error,
                              const char *format, ...) {
  char text[FTL_ERROR_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  char where[FTL_TILE_WHERE_BYTES];
  return ftl_error_set(error, FTL_RUN_FAILED, "%s: CTA %lld: %s",
                       ftl_tile_op_where(in->program, event->op_idx, NULL, where), (long long)event->point->cta, text);
}

// A role that goes on to another tile starts with nothing in its registers.
static void enter_tile(ftl_interpreter *in, const ftl_exec_event *event) {
  if (in->cta_of_role[event->role_idx] == event->point->cta) return;
  in->cta_of_role[event->role_idx] = event->point->cta;
  for (int32_t i = 0; i < in->program->num_values; i++)
    if (in->program->values[i].role == event->role_idx) in->values[i].written = false;
}

// Steps that an op takes, beyond the one that every op does.
static int64_t steps_of(const ftl_interpreter *in, const ftl_tile_op *op) {
  enum { ELEMENTS_A_STEP = 16, MULTIPLY_ADDS_A_STEP = 64 };
  int32_t value = op->dst >= 0 ? op->dst : op->a.value;
  int64_t elements = (int64_t)op->ref.rows * op->ref.columns;
  if (value >= 0)
    elements =
        (int64_t)in->program->values[value].rows * in->program->values[value].columns * ftl_num_groups_of(in, value);
  if (op->kind == FTL_TILE_ACQUIRE || op->kind == FTL_TILE_LOAD || op->kind == FTL_TILE_DEQUANTIZE ||
      op->kind == FTL_TILE_TRANSPOSE || op->kind == FTL_TILE_MMA)
    elements += (int64_t)in->program->rings[op->ring].rows * in->program->rings[op->ring].columns;
  if (op->kind != FTL_TILE_MMA) return elements / ELEMENTS_A_STEP;
  const ftl_ring *b = &in->program->rings[op->ring];
  int64_t k = op->num_k > 0 ? op->num_k : op->transpose_b ? b->columns : b->rows;
  return elements / ELEMENTS_A_STEP +
         (int64_t)in->program->values[op->dst].rows * in->program->values[op->dst].columns * k / MULTIPLY_ADDS_A_STEP;
}

static ftl_status too_much_work(const ftl_interpreter *in, ftl_error *error) {
  *in->work_left = 0;
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "%s: too much to compute for the limit of instructions; take a smaller size", in->program->name);
}

static ftl_status visit(void *context, const ftl_exec_event *event, ftl_error *error) {
  ftl_interpreter *in = context;
  enter_tile(in, event);
  if (in->work_left && (*in->work_left -= steps_of(in, event->op)) < 0) return too_much_work(in, error);
  return ftl_interpret_op(in, event, error);
}

static bool allocate_rings(ftl_interpreter *in) {
  size_t largest = 1;
  for (int32_t i = 0; i < in->program->num_rings; i++) {
    const ftl_ring *ring = &in->program->rings[i];
    size_t size = (size_t)ring->rows * (size_t)ring->columns;
    if (size > largest) largest = size;
    for (int32_t stage = 0; stage < ring->num_stages; stage++) {
      in->rings[i].stages[stage] = FTL_ARENA_NEW(&in->arena, float, size);
      if (!in->rings[i].stages[stage]) return false;
    }
  }
  in->transposed = FTL_ARENA_NEW(&in->arena, float, largest);
  in->transposed_a = FTL_ARENA_NEW(&in->arena, float, largest);
  return in->transposed != NULL && in->transposed_a != NULL;
}

static bool allocate_values(ftl_interpreter *in) {
  for (int32_t i = 0; i < in->program->num_values; i++) {
    const ftl_value *value = &in->program->values[i];
    size_t width = value->kind == FTL_VALUE_ROWS ? FTL_NUM_LANES : (size_t)value->columns;
    size_t rows = (size_t)value->rows * (size_t)ftl_num_groups_of(in, i);
    in->values[i].x = FTL_ARENA_NEW(&in->arena, float, rows *width);
    if (!in->values[i].x) return false;
  }
  return true;
}

static ftl_status run_cta(ftl_interpreter *in, int64_t first_tile, int64_t tile_stride, ftl_error *error) {
  int64_t num_steps = 0;
  ftl_exec_options options = {.first_tile = first_tile,
                              .tile_stride = tile_stride,
                              .max_steps = in->work_left ? *in->work_left + 1 : 0,
                              .num_steps = &num_steps,
                              .visit = visit,
                              .context = in};
  for (int32_t role = 0; role < FTL_TILE_MAX_ROLES; role++) in->cta_of_role[role] = -1;
  ftl_status status = ftl_exec_cta(in->program, &options, error);
  if (status != FTL_OK || !in->work_left) return status;
  *in->work_left -= num_steps;
  return *in->work_left < 0 ? too_much_work(in, error) : FTL_OK;
}

static ftl_status interpret(const ftl_tile_program *program, float *const *tensors, ftl_pair_visits *visits,
                            int64_t *work_left, ftl_error *error) {
  enum { NUM_PERSISTENT_CTAS = 3 };
  ftl_interpreter in = {.program = program, .tensors = tensors, .visits = visits, .work_left = work_left};
  ftl_status status = FTL_OK;
  if (!allocate_rings(&in) || !allocate_values(&in))
    status = ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory for the interpreter", program->name);
  int64_t num_ctas =
      program->persistent && program->num_ctas > NUM_PERSISTENT_CTAS ? NUM_PERSISTENT_CTAS : program->num_ctas;
  for (int64_t cta = 0; status == FTL_OK && cta < num_ctas; cta++) status = run_cta(&in, cta, num_ctas, error);
  ftl_arena_fini(&in.arena);
  return status;
}

// ---- tables that an earlier launch wrote ----

static bool is_temp_table(const ftl_tensor *tensor) { return tensor->table && tensor->use == FTL_TENSOR_TEMP; }

// What was never written, or is no int32, becomes an entry that no tile can have.
static void read_temp_table(ftl_tensor *table, const float *from) {
  for (int64_t i = 0; i < table->num_rows; i++)
    table->table[i] = fabsf(from[i]) < 0x1p31f ? (int32_t)from[i] : INT32_MIN;
}

ftl_status ftl_interpret_within(const ftl_tile_program *program, float *const *tensors, ftl_pair_visits *visits,
                                int64_t *work_left, ftl_error *error) {
  bool has_temp_tables = false;
  for (int32_t i = 0; i < program->num_tensors; i++) has_temp_tables |= is_temp_table(&program->tensors[i]);
  if (!has_temp_tables) return interpret(program, tensors, visits, work_left, error);
  ftl_tile_program *as_written;
  ftl_status status = ftl_tile_program_clone(program, &as_written, error);
  if (status != FTL_OK) return status;
  for (int32_t i = 0; i < program->num_tensors; i++)
    if (is_temp_table(&program->tensors[i])) read_temp_table(&as_written->tensors[i], tensors[i]);
  status = ftl_tile_program_check(as_written, error);
  if (status == FTL_OK) status = interpret(as_written, tensors, visits, work_left, error);
  ftl_tile_program_destroy(as_written);
  return status;
}

ftl_status ftl_interpret(const ftl_tile_program *program, float *const *tensors, ftl_pair_visits *visits,
                         ftl_error *error) {
  return ftl_interpret_within(program, tensors, visits, NULL, error);
}
