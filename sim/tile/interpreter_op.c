// One operation of the interpreter: tensors, rings and stores here, register tiles in interpreter_math.c.
#include <math.h>
#include <string.h>

#include "tile/interpreter_internal.h"

// ---- tensors ----

typedef struct extent {
  int64_t index;                  // of (row 0, column 0) of the batch and head in its tensor
  int64_t row, first_entry;       // first row of the tile; of its pages, where it has them
  int32_t num_rows, num_columns;  // that exist
} extent;

static ftl_status locate(const ftl_interpreter *in, const ftl_exec_event *event, ftl_tile_source *source, extent *found,
                         ftl_error *error) {
  const ftl_tile_ref *ref = &event->op->ref;
  const ftl_tensor *tensor = &in->program->tensors[ref->tensor];
  *source = (ftl_tile_source){.tensor = ref->tensor,
                              .batch = ftl_expr_eval(in->program, ref->batch, event->point),
                              .head = ftl_expr_eval(in->program, ref->head, event->point),
                              .row = ftl_expr_eval(in->program, ref->row, event->point),
                              .end_row = ftl_tile_ref_end_row(in->program, ref, event->point)};
  if (source->batch < 0 || source->batch >= tensor->num_batches || source->head < 0 ||
      source->head >= tensor->num_heads || source->row < 0)
    return ftl_interpret_fail(in, event, error, "batch %lld, head %lld, row %lld is outside of %s",
                              (long long)source->batch, (long long)source->head, (long long)source->row, tensor->name);
  int64_t column = ftl_expr_eval(in->program, ref->column, event->point);
  if (column < 0)
    return ftl_interpret_fail(in, event, error, "column %lld is outside of %s", (long long)column, tensor->name);
  int64_t left = source->end_row - source->row;
  found->num_rows = left < 0 ? 0 : left < ref->rows ? (int32_t)left : ref->rows;
  found->num_columns = (int32_t)ftl_tile_ref_num_columns(in->program, ref, event->point);
  found->index = source->batch * tensor->batch_stride + source->head * tensor->head_stride + column;
  found->row = source->row;
  if (ref->pages.page_rows > 0) found->first_entry = ftl_expr_eval(in->program, ref->pages.first_entry, event->point);
  return FTL_OK;
}

// Row r of a tile in its tensor. The LOOKUP before it proved that the entry of its page exists.
static float *row_at(const ftl_interpreter *in, const ftl_tile_ref *ref, const extent *found, int32_t r) {
  int64_t row = found->row + r, stride = in->program->tensors[ref->tensor].row_stride, index = found->index;
  const ftl_pages *pages = &ref->pages;
  if (pages->page_rows > 0) {
    const int32_t *table = in->program->tensors[pages->table].table;
    index += table[found->first_entry + row / pages->page_rows] * pages->page_stride;
    row %= pages->page_rows;
  }
  return in->tensors[ref->tensor] + index + row * stride;
}

// The rows of a tensor that exist, into rows `pitch` numbers apart.
static void copy_rows(const ftl_interpreter *in, const ftl_tile_ref *ref, const extent *from, float *to, size_t pitch) {
  for (int32_t r = 0; r < from->num_rows; r++)
    memcpy(to + (size_t)r * pitch, row_at(in, ref, from, r), sizeof *to * (size_t)from->num_columns);
}

static void copy_rows_to_columns(const ftl_interpreter *in, const ftl_tile_ref *ref, const extent *from, float *to,
                                 size_t pitch) {
  for (int32_t r = 0; r < from->num_rows; r++)
    for (int32_t c = 0; c < from->num_columns; c++) to[(size_t)c * pitch + (size_t)r] = row_at(in, ref, from, r)[c];
}

// The share of a tile that one of the CTAs that load it together copies: what that CTA takes for its tile.
static ftl_status load_share(ftl_interpreter *in, const ftl_exec_event *event, int32_t member, float *stage,
                             ftl_error *error) {
  const ftl_tile_ref *ref = &event->op->ref;
  const ftl_ring *ring = &in->program->rings[event->op->ring];
  int32_t num_members = ring->multicast.num_ctas > 1 ? ring->multicast.num_ctas : 1, rows = ref->rows / num_members;
  ftl_expr_point point = *event->point;
  point.cta += (member - ftl_multicast_member(ring->multicast, point.cta)) * ring->multicast.stride;
  ftl_exec_event of_member = *event;
  of_member.point = &point;
  ftl_tile_source source;
  extent found;
  ftl_status status = locate(in, &of_member, &source, &found, error);
  if (status != FTL_OK) return status;
  int32_t first = member * rows, end = found.num_rows < first + rows ? found.num_rows : first + rows;
  found.index += first * in->program->tensors[ref->tensor].row_stride;
  found.num_rows = end - first;
  copy_rows(in, ref, &found, stage + (size_t)first * (size_t)ring->columns, (size_t)ring->columns);
  if (point.cta == event->point->cta && event->op->ring_row == 0)
    in->rings[event->op->ring].sources[event->stage] = source;
  return FTL_OK;
}

static ftl_status load(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  if (!event->present) return FTL_OK;
  const ftl_ring *ring = &in->program->rings[event->op->ring];
  int32_t first_row = event->op->ring_row;
  float *stage = in->rings[event->op->ring].stages[event->stage] + (size_t)first_row * (size_t)ring->columns;
  memset(stage, 0, sizeof *stage * (size_t)(ring->rows - first_row) * (size_t)ring->columns);
  int32_t num_members = ring->multicast.num_ctas > 1 ? ring->multicast.num_ctas : 1;
  ftl_status status = FTL_OK;
  for (int32_t i = 0; status == FTL_OK && i < num_members; i++) status = load_share(in, event, i, stage, error);
  return status;
}

static ftl_status load_direct(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_value *info = &in->program->values[event->op->dst];
  ftl_value_data *dst = &in->values[event->op->dst];
  bool of_rows = event->op->kind == FTL_TILE_LOAD_ROWS, of_columns = event->op->kind == FTL_TILE_LOAD_COLUMNS;
  size_t width = of_rows ? FTL_NUM_LANES : (size_t)info->columns, pitch = of_columns ? 1 : width;
  float outside = event->op->kind == FTL_TILE_LOAD_TILE ? event->op->a.immediate : 0;
  for (size_t i = 0; i < (size_t)info->rows * width; i++) dst->x[i] = outside;
  dst->written = true;
  dst->queries = dst->keys = (ftl_tile_source){.tensor = -1};
  if (!event->present) return FTL_OK;
  extent found;
  ftl_status status = locate(in, event, &dst->queries, &found, error);
  if (status != FTL_OK) return status;
  if (event->op->ref.transposed)
    copy_rows_to_columns(in, &event->op->ref, &found, dst->x, pitch);
  else
    copy_rows(in, &event->op->ref, &found, dst->x, pitch);
  if (!of_rows) return FTL_OK;
  for (int32_t r = 0; r < found.num_rows; r++)
    for (size_t lane = 1; lane < FTL_NUM_LANES; lane++) dst->x[(size_t)r * pitch + lane] = dst->x[(size_t)r * pitch];
  return FTL_OK;
}

// Expressions and pages read the table themselves; that the entries exist is what there is to prove.
static ftl_status look_up(const ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  if (!event->present) return FTL_OK;
  const ftl_tile_ref *ref = &event->op->ref;
  const ftl_tensor *table = &in->program->tensors[ref->tensor];
  int64_t entry = ftl_expr_eval(in->program, ref->row, event->point), last = entry + ref->rows - 1;
  if (ref->row_end != FTL_TENSOR_END) {
    int64_t end = ftl_expr_eval(in->program, ref->row_end, event->point);
    if (end <= last) last = end - 1;
  }
  if (last < entry || (entry >= 0 && last < table->num_rows)) return FTL_OK;
  return ftl_interpret_fail(in, event, error, "entry %lld is outside of %s, which has %lld",
                            (long long)(entry < 0 ? entry : last), table->name, (long long)table->num_rows);
}

// Element (r, c) of the groups' softmax states merged into one.
static float merged_element(const ftl_interpreter *in, const ftl_tile_op *op, size_t r, size_t c) {
  const ftl_value *info = &in->program->values[op->a.value];
  size_t rows = (size_t)info->rows, columns = (size_t)info->columns,
         groups = (size_t)ftl_num_groups_of(in, op->a.value);
  const float *output = in->values[op->a.value].x + r * columns + c;
  const float *max = in->values[op->b.value].x + r * FTL_NUM_LANES;
  const float *sum = in->values[op->c.value].x + r * FTL_NUM_LANES;
  float top = -INFINITY, whole_output = 0, whole_sum = 0;
  for (size_t g = 0; g < groups; g++) top = fmaxf(top, max[g * rows * FTL_NUM_LANES]);
  for (size_t g = 0; g < groups && top > -INFINITY; g++) {
    float weight = exp2f((max[g * rows * FTL_NUM_LANES] - top) * op->a.immediate);
    whole_output += output[g * rows * columns] * weight;
    whole_sum += sum[g * rows * FTL_NUM_LANES] * weight;
  }
  return whole_sum > 0 ? whole_output / whole_sum : 0;
}

static ftl_status check_merged(const ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_operand *of_rows[] = {&event->op->b, &event->op->c};
  for (int i = 0; i < 2; i++) {
    const ftl_value *info = &in->program->values[of_rows[i]->value];
    const ftl_value_data *data = &in->values[of_rows[i]->value];
    if (!data->written) return ftl_interpret_fail(in, event, error, "%s was never written", info->name);
    for (int32_t r = 0; r < info->rows * ftl_num_groups_of(in, of_rows[i]->value); r++)
      if (!ftl_lanes_agree(data->x + r * FTL_NUM_LANES))
        return ftl_interpret_fail(in, event, error, "row %d of %s is not reduced over its lanes", r % info->rows,
                                  info->name);
  }
  return FTL_OK;
}

static ftl_status store(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_ref *ref = &event->op->ref;
  const ftl_tensor *tensor = &in->program->tensors[ref->tensor];
  const ftl_value_data *value = &in->values[event->op->a.value];
  bool of_rows = event->op->kind == FTL_TILE_STORE_ROWS;
  size_t pitch = of_rows ? FTL_NUM_LANES : (size_t)in->program->values[event->op->a.value].columns;
  if (!value->written)
    return ftl_interpret_fail(in, event, error, "%s was never written", in->program->values[event->op->a.value].name);
  bool merged = event->op->kind == FTL_TILE_STORE_MERGED;
  ftl_status status = merged ? check_merged(in, event, error) : FTL_OK;
  if (status != FTL_OK || !event->present) return status;
  ftl_tile_source source;
  extent found;
  status = locate(in, event, &source, &found, error);
  if (status != FTL_OK) return status;
  for (int32_t r = 0; r < found.num_rows; r++) {
    const float *from = value->x + (size_t)r * pitch;
    if (of_rows && !ftl_lanes_agree(from))
      return ftl_interpret_fail(in, event, error, "row %d of %s is not reduced over its lanes", r,
                                in->program->values[event->op->a.value].name);
    for (int32_t c = 0; c < found.num_columns; c++) {
      float x = merged ? merged_element(in, event->op, (size_t)r, (size_t)c) : from[c];
      float *to = &row_at(in, ref, &found, r)[c];
      *to = ftl_dtype_round(tensor->dtype, event->op->kind == FTL_TILE_ATOMIC_ADD ? *to + x : x);
    }
  }
  return FTL_OK;
}

static ftl_status store_top(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  const int32_t read[] = {op->b.value, op->a.value};
  for (int i = 0; i < 2; i++)
    if (read[i] >= 0 && !in->values[read[i]].written)
      return ftl_interpret_fail(in, event, error, "%s was never written", in->program->values[read[i]].name);
  ftl_tile_source source;
  extent found;
  if (!event->present) return FTL_OK;
  ftl_status status = locate(in, event, &source, &found, error);
  if (status != FTL_OK) return status;
  bool of_numbers = op->a.value < 0;
  int32_t columns = in->program->values[op->b.value].columns, num_rows = of_numbers ? 1 : found.num_rows;
  int32_t count = of_numbers ? found.num_rows : found.num_columns;
  for (int32_t r = 0; r < num_rows; r++)
    for (int32_t c = 0; c < columns; c++) {
      size_t at = (size_t)r * (size_t)columns + (size_t)c;
      float rank = in->values[op->b.value].x[at];
      if (!(rank >= 0 && rank < (float)count)) continue;
      if (of_numbers)
        row_at(in, &op->ref, &found, (int32_t)rank)[0] = (float)c;
      else
        row_at(in, &op->ref, &found, r)[(int32_t)rank] =
            ftl_dtype_round(in->program->tensors[op->ref.tensor].dtype, in->values[op->a.value].x[at]);
    }
  return FTL_OK;
}

static ftl_status put(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_value *info = &in->program->values[event->op->a.value];
  const ftl_value_data *value = &in->values[event->op->a.value];
  if (!value->written) return ftl_interpret_fail(in, event, error, "%s was never written", info->name);
  memcpy(in->rings[event->op->ring].stages[event->stage], value->x,
         sizeof *value->x * (size_t)info->rows * (size_t)info->columns);
  return FTL_OK;
}

static void transpose(ftl_interpreter *in, const ftl_exec_event *event) {
  const ftl_ring *from = &in->program->rings[event->op->ring_a];
  const float *source = in->rings[event->op->ring_a].stages[event->stage_a];
  float *to = in->rings[event->op->ring].stages[event->stage];
  for (int32_t r = 0; r < from->rows; r++)
    for (int32_t c = 0; c < from->columns; c++) to[c * from->rows + r] = source[r * from->columns + c];
  in->rings[event->op->ring].sources[event->stage] = in->rings[event->op->ring_a].sources[event->stage_a];
}

// Number `column` of a row of quantised elements.
static float quantised_number(const float *row, ftl_dtype dtype, int32_t column) {
  if (dtype != FTL_INT4X2) return row[column];
  float pair = row[column / 2];
  return (float)(column % 2 == 0 ? ftl_int4x2_low(pair) : ftl_int4x2_high(pair));
}

static void dequantize(ftl_interpreter *in, const ftl_exec_event *event) {
  const ftl_tile_op *op = event->op;
  const ftl_ring *to = &in->program->rings[op->ring], *from = &in->program->rings[op->ring_a];
  const ftl_ring *scales = &in->program->rings[op->ring_scales];
  const float *source = in->rings[op->ring_a].stages[event->stage_a];
  const float *scale = in->rings[op->ring_scales].stages[event->stage_scales];
  int32_t num_groups = ftl_tile_scale_groups(to, scales), group_columns = to->columns / num_groups;
  for (int32_t r = 0; r < to->rows; r++)
    for (int32_t c = 0; c < to->columns; c++) {
      int32_t scale_row = ftl_tile_scale_row(scales, num_groups, r, c / group_columns);
      in->rings[op->ring].stages[event->stage][r * to->columns + c] =
          ftl_dtype_round(to->dtype, quantised_number(source + r * from->columns, from->dtype, c) *
                                         scale[scale_row * scales->columns + r % scales->columns]);
    }
  in->rings[op->ring].sources[event->stage] = in->rings[op->ring_a].sources[event->stage_a];
}

// ---- stages ----

// What these rows of the stage held before must not be read again: NaN shows it.
static void poison_rows(ftl_interpreter *in, int32_t ring_idx, int32_t stage, int32_t first, int32_t count) {
  int32_t columns = in->program->rings[ring_idx].columns;
  for (int32_t i = first * columns; i < (first + count) * columns; i++) in->rings[ring_idx].stages[stage][i] = NAN;
}

static void poison_stage(ftl_interpreter *in, int32_t ring_idx, int32_t stage) {
  in->rings[ring_idx].sources[stage].tensor = -1;
  poison_rows(in, ring_idx, stage, 0, in->program->rings[ring_idx].rows);
}

static void poison_staging(ftl_interpreter *in, int32_t ring, int32_t first_row, int32_t num_rows) {
  if (ring < 0) return;
  for (int32_t stage = 0; stage < in->program->rings[ring].num_stages; stage++)
    poison_rows(in, ring, stage, first_row, num_rows);
}

// ---- the operation ----

ftl_status ftl_interpret_op(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  switch (event->op->kind) {
    case FTL_TILE_ACQUIRE:
      poison_stage(in, event->op->ring, event->stage);
      return FTL_OK;
    case FTL_TILE_LOAD:
      return load(in, event, error);
    case FTL_TILE_LOOKUP:
      return look_up(in, event, error);
    case FTL_TILE_LOAD_TILE:
    case FTL_TILE_LOAD_ROWS:
    case FTL_TILE_LOAD_COLUMNS:
      return load_direct(in, event, error);
    case FTL_TILE_PUT:
      return put(in, event, error);
    case FTL_TILE_TRANSPOSE:
      transpose(in, event);
      return FTL_OK;
    case FTL_TILE_DEQUANTIZE:
      dequantize(in, event);
      return FTL_OK;
    case FTL_TILE_STORE:
      poison_staging(in, event->op->ring, event->op->ring_row, event->op->ref.rows);
      return store(in, event, error);
    case FTL_TILE_STORE_ROWS:
    case FTL_TILE_ATOMIC_ADD:
      return store(in, event, error);
    case FTL_TILE_STORE_TOP:
      return store_top(in, event, error);
    case FTL_TILE_STORE_MERGED:
      poison_staging(in, event->op->ring, 0, in->program->rings[event->op->ring].rows);
      return store(in, event, error);
    case FTL_TILE_REDUCE_WARPS:
    case FTL_TILE_REDUCE_GROUPS:
    case FTL_TILE_GATHER:
      poison_staging(in, event->op->ring, 0, in->program->rings[event->op->ring].rows);
      return ftl_interpret_math(in, event, error);
    default:
      return ftl_interpret_math(in, event, error);
  }
}
