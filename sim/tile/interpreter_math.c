// Register tiles: element-wise functions, masks, reductions.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tile/dropout.h"
#include "tile/interpreter_internal.h"

static const ftl_tile_source no_source = {.tensor = -1};

ftl_status ftl_interpret_not_written(const ftl_interpreter *in, const ftl_exec_event *event, int32_t value,
                                     ftl_error *error) {
  return ftl_interpret_fail(in, event, error, "%s was never written", ftl_value_info(in, value)->name);
}

// A value that is written from scratch.
static ftl_value_data *overwrite(ftl_interpreter *in, int32_t value) {
  ftl_value_data *data = &in->values[value];
  data->written = true;
  data->queries = data->keys = no_source;
  return data;
}

static void fill(ftl_interpreter *in, const ftl_tile_op *op) {
  float *x = overwrite(in, op->dst)->x;
  for (size_t i = 0; i < ftl_value_size(in, op->dst); i++) x[i] = op->a.immediate;
}

// Each group its share of keys, [n][k] of a product's B.
static void fetch_b(const ftl_interpreter *in, const ftl_exec_event *event, ftl_value_data *dst) {
  const ftl_ring *ring = &in->program->rings[event->op->ring];
  const float *stage = in->rings[event->op->ring].stages[event->stage];
  size_t rows = (size_t)ring->rows, columns = (size_t)ring->columns;
  size_t share = rows / (size_t)ftl_num_groups_of(in, event->op->dst);
  dst->keys = in->rings[event->op->ring].sources[event->stage];
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++) {
      size_t group = r / share, key = r % share;
      size_t at = event->op->transpose_b ? key * columns + c : c * share + key;
      dst->x[group * share * columns + at] = stage[r * columns + c];
    }
}

static void fetch(ftl_interpreter *in, const ftl_exec_event *event) {
  const ftl_ring_data *ring = &in->rings[event->op->ring];
  ftl_value_data *dst = overwrite(in, event->op->dst);
  if (event->op->as_b) {
    fetch_b(in, event, dst);
    return;
  }
  int32_t groups = ftl_num_groups_of(in, event->op->dst);
  size_t copy = ftl_value_size(in, event->op->dst) / (size_t)groups;
  for (int32_t g = 0; g < groups; g++)
    memcpy(dst->x + (size_t)g * copy, ring->stages[event->stage], sizeof(float) * copy);
  dst->queries = ring->sources[event->stage];
}

// ---- element-wise ----

static float apply(ftl_elem_fn fn, float a, float b, float c) {
  switch (fn) {
    case FTL_ELEM_COPY:
      return a;
    case FTL_ELEM_ADD:
      return a + b;
    case FTL_ELEM_SUB:
      return a - b;
    case FTL_ELEM_MUL:
      return a * b;
    case FTL_ELEM_FMA:
      return fmaf(a, b, c);
    case FTL_ELEM_MAX:
      return fmaxf(a, b);
    case FTL_ELEM_EXP2:
      return exp2f(a);
    case FTL_ELEM_LOG2:
      return log2f(a);
    case FTL_ELEM_RECIP:
      return a == 0.0f || isnan(a) ? 0.0f : 1.0f / a;
    case FTL_ELEM_ZERO_IF_NEG_INF:
      return isinf(a) && a < 0.0f ? 0.0f : a;
    case FTL_ELEM_EXP:
      return expf(a);
    case FTL_ELEM_LOG:
      return logf(a);
    case FTL_ELEM_DIV:
    case FTL_ELEM_DIV_FULL:
      return b == 0.0f || isnan(b) ? 0.0f : a / b;
    case FTL_ELEM_SELECT:
      return a >= 0.0f ? b : c;
  }
  return NAN;
}

// The operand's number for column (or lane, of a ROWS destination) `c` of row `r`.
static float operand_at(const ftl_interpreter *in, ftl_operand operand, bool dst_is_rows, int32_t r, int32_t c) {
  if (operand.value < 0) return operand.immediate;
  if (ftl_value_info(in, operand.value)->kind == FTL_VALUE_COLUMNS) return in->values[operand.value].x[c];
  const float *x = in->values[operand.value].x + (size_t)r * (size_t)ftl_value_width(in, operand.value);
  bool broadcast = ftl_value_info(in, operand.value)->kind == FTL_VALUE_ROWS && !dst_is_rows;
  return x[broadcast ? ftl_lane_of_column(c) : c];
}

// Counts the pairs whose scores are about to be exponentiated and are not masked.
static void count_pairs(const ftl_interpreter *in, int32_t value) {
  const ftl_value_data *scores = &in->values[value];
  ftl_pair_visits *visits = in->visits;
  if (!visits || scores->queries.tensor != visits->queries || scores->keys.tensor != visits->keys) return;
  const ftl_tensor *queries = &in->program->tensors[visits->queries], *keys = &in->program->tensors[visits->keys];
  const ftl_value *info = ftl_value_info(in, value);
  int64_t num_keys = visits->num_keys > 0 ? visits->num_keys : keys->num_rows;
  for (int32_t r = 0; r < ftl_value_rows(in, value); r++) {
    int64_t query = scores->queries.row + r % info->rows, group = r / info->rows;
    if (query >= scores->queries.end_row) continue;
    int64_t row = (scores->queries.batch * queries->num_heads + scores->queries.head) * queries->num_rows + query;
    for (int32_t c = 0; c < info->columns; c++) {
      int64_t key = scores->keys.row + group * info->columns + c;
      if (scores->x[(size_t)r * (size_t)info->columns + (size_t)c] == -INFINITY) continue;
      if (key >= scores->keys.end_row || key >= num_keys)
        visits->num_outside++;
      else if (visits->counts[row * num_keys + key] < UINT8_MAX)
        visits->counts[row * num_keys + key]++;
    }
  }
}

static ftl_status elem(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  const ftl_operand operands[] = {op->a, op->b, op->c};
  for (int i = 0; i < 3; i++)
    if (operands[i].value >= 0 && !in->values[operands[i].value].written)
      return ftl_interpret_not_written(in, event, operands[i].value, error);
  bool exponentiates = op->fn == FTL_ELEM_EXP2 || op->fn == FTL_ELEM_EXP;
  if (exponentiates && op->a.value >= 0) count_pairs(in, op->a.value);
  ftl_value_data *dst = &in->values[op->dst];
  bool rows = ftl_value_info(in, op->dst)->kind == FTL_VALUE_ROWS;
  int32_t width = ftl_value_width(in, op->dst);
  for (int32_t r = 0; r < ftl_value_rows(in, op->dst); r++)
    for (int32_t c = 0; c < width; c++)
      dst->x[(size_t)r * (size_t)width + (size_t)c] =
          apply(op->fn, operand_at(in, op->a, rows, r, c), operand_at(in, op->b, rows, r, c),
                operand_at(in, op->c, rows, r, c));
  dst->written = true;
  if (exponentiates) dst->queries = dst->keys = no_source;
  return FTL_OK;
}

static ftl_status mask(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->dst].written) return ftl_interpret_not_written(in, event, op->dst, error);
  const ftl_value *info = ftl_value_info(in, op->dst);
  int64_t row0 = ftl_expr_eval(in->program, op->row0, event->point);
  int64_t column0 = ftl_expr_eval(in->program, op->column0, event->point);
  int64_t limit = ftl_expr_eval(in->program, op->limit, event->point);
  int64_t diagonal = op->diagonal == FTL_ALWAYS ? 0 : ftl_expr_eval(in->program, op->diagonal, event->point);
  int64_t left = op->left == FTL_ALWAYS ? 0 : ftl_expr_eval(in->program, op->left, event->point);
  for (int32_t r = 0; r < ftl_value_rows(in, op->dst); r++)
    for (int32_t c = 0; c < info->columns; c++) {
      int64_t query = row0 + r % info->rows, key = column0 + r / info->rows * info->columns + c;
      if (op->transposed) {
        query = column0 + c;
        key = row0 + r;
      }
      if (op->period > 0) query %= op->period;
      bool unseen =
          (op->diagonal != FTL_ALWAYS && key > query + diagonal) || (op->left != FTL_ALWAYS && key < query + left);
      if (unseen || key >= limit) in->values[op->dst].x[(size_t)r * (size_t)info->columns + (size_t)c] = -INFINITY;
    }
  return FTL_OK;
}

// Whether bit `column` of row `row` of a reference to bit rows is set.
static bool bit_at(const ftl_tensor *bits, const ftl_tile_ref *ref, int64_t row, int64_t column, int64_t first_row,
                   int64_t first_word) {
  enum { WORD_BITS = 32 };
  int64_t word = first_word + column / WORD_BITS;
  if (row >= ref->rows || first_row + row >= bits->num_rows || word >= bits->num_columns) return false;
  uint32_t bits_of_word = (uint32_t)bits->table[(first_row + row) * bits->num_columns + word];
  return (bits_of_word >> column % WORD_BITS & 1) != 0;
}

static ftl_status mask_bits(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->dst].written) return ftl_interpret_not_written(in, event, op->dst, error);
  if (!event->present) return FTL_OK;
  const ftl_value *info = ftl_value_info(in, op->dst);
  const ftl_tensor *bits = &in->program->tensors[op->ref.tensor];
  int64_t first_row = ftl_expr_eval(in->program, op->ref.row, event->point);
  int64_t first_word = ftl_expr_eval(in->program, op->ref.column, event->point);
  for (int32_t r = 0; r < ftl_value_rows(in, op->dst); r++)
    for (int32_t c = 0; c < info->columns; c++)
      if (!bit_at(bits, &op->ref, r % info->rows, r / info->rows * info->columns + c, first_row, first_word))
        in->values[op->dst].x[(size_t)r * (size_t)info->columns + (size_t)c] = -INFINITY;
  return FTL_OK;
}

static ftl_status dropout(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->dst].written) return ftl_interpret_not_written(in, event, op->dst, error);
  const ftl_value *info = ftl_value_info(in, op->dst);
  bool (*keeps)(int64_t, int64_t, int64_t, int32_t) =
      info->layout.threads_per_row > 0 ? ftl_dropout_row_keeps : ftl_dropout_keeps;
  int64_t sequence = ftl_expr_eval(in->program, op->sequence, event->point);
  int64_t row0 = ftl_expr_eval(in->program, op->row0, event->point);
  int64_t column0 = ftl_expr_eval(in->program, op->column0, event->point);
  for (int32_t r = 0; r < ftl_value_rows(in, op->dst); r++)
    for (int32_t c = 0; c < info->columns; c++) {
      int64_t row = row0 + r % info->rows, column = column0 + r / info->rows * info->columns + c;
      bool kept =
          op->transposed ? keeps(sequence, column, row, op->threshold) : keeps(sequence, row, column, op->threshold);
      float *x = &in->values[op->dst].x[(size_t)r * (size_t)info->columns + (size_t)c];
      if (!kept) *x = op->by_sign ? -*x : 0.0F;
    }
  return FTL_OK;
}

// How many elements of a row come before element c among the largest.
static int32_t num_larger(const float *row, int32_t columns, int32_t c) {
  int32_t count = 0;
  for (int32_t i = 0; i < columns; i++) count += row[i] > row[c] || (row[i] == row[c] && i < c);
  return count;
}

static ftl_status top(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->a.value].written) return ftl_interpret_not_written(in, event, op->a.value, error);
  int32_t columns = ftl_value_info(in, op->dst)->columns;
  float *ranks = malloc(sizeof *ranks * (size_t)columns);
  if (!ranks) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the interpreter");
  for (int32_t r = 0; r < ftl_value_rows(in, op->dst); r++) {
    const float *row = in->values[op->a.value].x + (size_t)r * (size_t)columns;
    float next = 0;
    for (int32_t c = 0; c < columns; c++) ranks[c] = num_larger(row, columns, c) < op->count ? next++ : -1;
    memcpy(in->values[op->dst].x + (size_t)r * (size_t)columns, ranks, sizeof *ranks * (size_t)columns);
  }
  free(ranks);
  in->values[op->dst].written = true;
  return FTL_OK;
}

// ---- reductions ----

static ftl_status reduce_rows(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->dst].written) return ftl_interpret_not_written(in, event, op->dst, error);
  if (!in->values[op->a.value].written) return ftl_interpret_not_written(in, event, op->a.value, error);
  const ftl_value *a = ftl_value_info(in, op->a.value);
  for (int32_t r = 0; r < ftl_value_rows(in, op->a.value); r++)
    for (int32_t c = 0; c < a->columns; c++) {
      float *lane = &in->values[op->dst].x[r * FTL_NUM_LANES + ftl_lane_of_column(c)];
      *lane = apply(op->fn, *lane, in->values[op->a.value].x[(size_t)r * (size_t)a->columns + (size_t)c], 0.0f);
    }
  return FTL_OK;
}

static ftl_status reduce_lanes(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->dst].written) return ftl_interpret_not_written(in, event, op->dst, error);
  for (int32_t r = 0; r < ftl_value_rows(in, op->dst); r++) {
    float *lanes = &in->values[op->dst].x[r * FTL_NUM_LANES];
    // As the butterfly of two shuffles does: neighbours first.
    float whole = apply(op->fn, apply(op->fn, lanes[0], lanes[1], 0.0f), apply(op->fn, lanes[2], lanes[3], 0.0f), 0.0f);
    for (int32_t lane = 0; lane < FTL_NUM_LANES; lane++) lanes[lane] = whole;
  }
  return FTL_OK;
}

static ftl_status reduce_groups(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->dst].written) return ftl_interpret_not_written(in, event, op->dst, error);
  int32_t rows = ftl_value_info(in, op->dst)->rows, groups = ftl_num_groups_of(in, op->dst);
  float *x = in->values[op->dst].x;
  for (int32_t r = 0; r < rows * groups; r++)
    if (!ftl_lanes_agree(&x[r * FTL_NUM_LANES]))
      return ftl_interpret_fail(in, event, error, "row %d of %s is not reduced over its lanes", r % rows,
                                ftl_value_info(in, op->dst)->name);
  for (int32_t r = 0; r < rows; r++) {
    float whole = x[r * FTL_NUM_LANES];
    for (int32_t g = 1; g < groups; g++) whole = apply(op->fn, whole, x[(g * rows + r) * FTL_NUM_LANES], 0.0f);
    for (int32_t g = 0; g < groups; g++)
      for (int32_t lane = 0; lane < FTL_NUM_LANES; lane++) x[(g * rows + r) * FTL_NUM_LANES + lane] = whole;
  }
  return FTL_OK;
}

static ftl_status gather(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  if (!in->values[op->a.value].written) return ftl_interpret_not_written(in, event, op->a.value, error);
  int32_t groups = ftl_num_groups_of(in, op->a.value);
  size_t copy = ftl_value_size(in, op->a.value) / (size_t)groups;
  bool of_rows = ftl_value_info(in, op->dst)->kind == FTL_VALUE_ROWS;
  const float *from = in->values[op->a.value].x;
  float *to = overwrite(in, op->dst)->x;
  for (int32_t r = 0; of_rows && r < ftl_value_rows(in, op->a.value); r++)
    if (!ftl_lanes_agree(&from[r * FTL_NUM_LANES]))
      return ftl_interpret_fail(in, event, error, "row %d of %s is not reduced over its lanes",
                                r % ftl_value_info(in, op->dst)->rows, ftl_value_info(in, op->a.value)->name);
  memcpy(to, from, sizeof *to * copy);
  for (int32_t g = 1; g < groups; g++)
    for (size_t i = 0; i < copy; i++) to[i] = apply(op->fn, to[i], from[(size_t)g * copy + i], 0.0F);
  return FTL_OK;
}

static ftl_status convert(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  const ftl_value_data *a = &in->values[op->a.value];
  if (!a->written) return ftl_interpret_not_written(in, event, op->a.value, error);
  ftl_value_data *dst = &in->values[op->dst];
  for (size_t i = 0; i < ftl_value_size(in, op->dst); i++)
    dst->x[i] = ftl_dtype_round(ftl_value_info(in, op->dst)->dtype, op->positive && a->x[i] < 0 ? 0.0F : a->x[i]);
  dst->written = true;
  dst->queries = a->queries;
  dst->keys = a->keys;
  return FTL_OK;
}

ftl_status ftl_interpret_math(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  switch (event->op->kind) {
    case FTL_TILE_FILL:
      fill(in, event->op);
      return FTL_OK;
    case FTL_TILE_FETCH:
      fetch(in, event);
      return FTL_OK;
    case FTL_TILE_MMA:
      return ftl_interpret_mma(in, event, error);
    case FTL_TILE_ELEM:
      return elem(in, event, error);
    case FTL_TILE_TOP:
      return top(in, event, error);
    case FTL_TILE_MASK_BITS:
      return mask_bits(in, event, error);
    case FTL_TILE_MASK:
      return mask(in, event, error);
    case FTL_TILE_DROPOUT:
      return dropout(in, event, error);
    case FTL_TILE_REDUCE_ROWS:
      return reduce_rows(in, event, error);
    case FTL_TILE_REDUCE_LANES:
    case FTL_TILE_REDUCE_WARPS:
      return reduce_lanes(in, event, error);
    case FTL_TILE_REDUCE_GROUPS:
      return reduce_groups(in, event, error);
    case FTL_TILE_GATHER:
      return gather(in, event, error);
    case FTL_TILE_CONVERT:
      return convert(in, event, error);
    default:
      return FTL_OK;
  }
}
