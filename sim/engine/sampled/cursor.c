#include "engine/sampled/cursor.h"

#include "base/check.h"
#include "base/integer.h"
#include "base/sectors.h"

// Whether an expression grows by the same amount each time the loop variable grows by one, and by how much.
static bool try_slope(const ftl_tile_program *tile, ftl_expr expr, int32_t loop_var, int64_t *slope) {
  const ftl_expr_node *node = &tile->exprs[expr];
  int64_t a, b;
  *slope = 0;
  switch (node->kind) {
    case FTL_EXPR_CONST:
    case FTL_EXPR_CTA:
      return true;
    case FTL_EXPR_LOOP:
      *slope = node->value == loop_var;
      return true;
    case FTL_EXPR_ADD:
    case FTL_EXPR_SUB:
      if (!try_slope(tile, node->a, loop_var, &a) || !try_slope(tile, node->b, loop_var, &b)) return false;
      *slope = node->kind == FTL_EXPR_ADD ? a + b : a - b;
      return true;
    case FTL_EXPR_MUL:  // the builder puts a constant second
      if (!try_slope(tile, node->a, loop_var, &a) || !try_slope(tile, node->b, loop_var, &b) || b != 0) return false;
      *slope = a * (a != 0 ? tile->exprs[node->b].value : 0);
      return a == 0 || tile->exprs[node->b].kind == FTL_EXPR_CONST;
    case FTL_EXPR_LOOKUP:
      return try_slope(tile, node->a, loop_var, &a) && a == 0;
    case FTL_EXPR_DIV:  // by a constant that divides each step: the remainder stays
    case FTL_EXPR_MOD:
      if (!try_slope(tile, node->a, loop_var, &a) || !try_slope(tile, node->b, loop_var, &b) || b != 0) return false;
      if (a == 0) return true;
      if (tile->exprs[node->b].kind != FTL_EXPR_CONST || a % tile->exprs[node->b].value != 0) return false;
      *slope = node->kind == FTL_EXPR_DIV ? a / tile->exprs[node->b].value : 0;
      return true;
    default:
      return try_slope(tile, node->a, loop_var, &a) && try_slope(tile, node->b, loop_var, &b) && a == 0 && b == 0;
  }
}

static bool is_fixed(const ftl_tile_program *tile, ftl_expr expr, int32_t loop_var) {
  int64_t slope;
  return try_slope(tile, expr, loop_var, &slope) && slope == 0;
}

ftl_ref_step ftl_ref_step_of(const ftl_tile_program *tile, const ftl_segment_ref *ref) {
  const ftl_tile_ref *r = &ref->ref;
  ftl_ref_step step = {0};
  step.is_steady = (r->pages.page_rows == 0 || try_slope(tile, r->pages.entry, ref->loop_var, &step.entries)) &&
                   is_fixed(tile, r->row_end, ref->loop_var) && is_fixed(tile, r->batch, ref->loop_var) &&
                   is_fixed(tile, r->head, ref->loop_var) && is_fixed(tile, r->column_end, ref->loop_var) &&
                   try_slope(tile, r->column, ref->loop_var, &step.columns) &&
                   (r->present == FTL_ALWAYS || try_slope(tile, r->present, ref->loop_var, &step.presence)) &&
                   try_slope(tile, r->row, ref->loop_var, &step.rows);
  const ftl_tensor *tensor = &tile->tensors[r->tensor];
  step.element_bytes = ftl_dtype_bytes(tensor->dtype);
  step.row_stride_bytes = tensor->row_stride * step.element_bytes;
  bool may_run = step.is_steady && r->pages.page_rows == 0;
  step.is_tall = may_run && step.columns == 0 && (step.rows == r->rows || step.rows == -r->rows);
  step.is_wide = may_run && step.rows == 0 && step.columns == r->columns;
  step.shares_sectors = (r->columns * step.element_bytes | step.row_stride_bytes) % FTL_SECTOR_BYTES != 0;
  return step;
}

static ftl_expr_point point_at(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_cta_at *at,
                               int64_t iteration) {
  ftl_expr_point point = {.cta = at->cta, .of_cta = at->of_cta};
  if (ref->outer_var >= 0) point.loop[ref->outer_var] = at->outer;
  if (ref->loop_var >= 0) point.loop[ref->loop_var] = ftl_expr_eval(tile, ref->lo, &point) + iteration;
  return point;
}

static ftl_ref_cursor cursor_at(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_expr_point *point) {
  const ftl_tile_ref *r = &ref->ref;
  const ftl_tensor *tensor = &tile->tensors[r->tensor];
  int64_t batch = ftl_expr_eval(tile, r->batch, point), head = ftl_expr_eval(tile, r->head, point);
  int64_t column = ftl_expr_eval(tile, r->column, point);
  int64_t element = column + batch * tensor->batch_stride + head * tensor->head_stride;
  return (ftl_ref_cursor){.base_bytes = tensor->base_bytes + element * ftl_dtype_bytes(tensor->dtype),
                          .num_columns = ftl_tile_ref_end_column(tile, r, point) - column,
                          .first_row = ftl_expr_eval(tile, r->row, point),
                          .end_row = ftl_tile_ref_end_row(tile, r, point),
                          .first_entry = r->pages.page_rows > 0 ? ftl_expr_eval(tile, r->pages.entry, point) : 0,
                          .first_presence = r->present == FTL_ALWAYS ? 1 : ftl_expr_eval(tile, r->present, point)};
}

ftl_ref_cursor ftl_ref_cursor_at(const ftl_tile_program *tile, const ftl_segment_ref *ref, int64_t cta, int64_t outer) {
  ftl_expr_point point = point_at(tile, ref, &(ftl_cta_at){.cta = cta, .outer = outer}, 0);
  return cursor_at(tile, ref, &point);
}

void ftl_ref_cursors_at(const ftl_tile_program *tile, const ftl_segment *segment, const ftl_ref_step *steps,
                        const ftl_cta_at *at, ftl_ref_cursor *cursors) {
  ftl_expr_point point = {0};
  const ftl_segment_ref *before = NULL;
  for (int32_t i = 0; i < segment->num_refs; i++) {
    const ftl_segment_ref *ref = &segment->refs[i];
    if (!steps[i].is_steady) continue;
    if (!before || !ftl_refs_share_point(before, ref)) point = point_at(tile, ref, at, 0);
    before = ref;
    cursors[i] = cursor_at(tile, ref, &point);
  }
}

static int64_t presence_at(const ftl_ref_step *step, const ftl_ref_cursor *cursor, int64_t iteration) {
  return cursor->first_presence + iteration * step->presence;
}

typedef struct range {
  int64_t from, to;
} range;

// Columns of the tiles of iterations [first, first + count), as far as they exist, counted from the cursor's first.
static range columns_of(const ftl_tile_ref *ref, const ftl_ref_step *step, const ftl_ref_cursor *cursor, int64_t first,
                        int64_t count) {
  int64_t from = first * step->columns, to = (first + count - 1) * step->columns + ref->columns;
  return (range){from, to < cursor->num_columns ? to : cursor->num_columns};
}

static ftl_tile_place steady_place(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_ref_step *step,
                                   const ftl_ref_cursor *cursor, int64_t iteration) {
  int64_t element_bytes = step->element_bytes;
  ftl_tile_place place = {.row_stride_bytes = step->row_stride_bytes};
  range columns = columns_of(&ref->ref, step, cursor, iteration, 1);
  if (columns.from >= columns.to || presence_at(step, cursor, iteration) <= 0) return place;
  int64_t row = cursor->first_row + iteration * step->rows, rows_left = cursor->end_row - row;
  if (rows_left <= 0) return place;
  FTL_CHECK(row >= 0, "%s of %s: tile outside the tensor (row %lld)", tile->tensors[ref->ref.tensor].name, tile->name,
            (long long)row);
  place.address_bytes = cursor->base_bytes + columns.from * element_bytes;
  place.row_bytes = (int32_t)((columns.to - columns.from) * element_bytes);
  place.num_rows = rows_left < ref->ref.rows ? (int32_t)rows_left : ref->ref.rows;
  if (ref->ref.pages.page_rows > 0) {
    ftl_tile_place_find_pages(tile, &ref->ref, row, cursor->first_entry + iteration * step->entries, &place);
    place.address_bytes += place.pages[0] * place.page_stride_bytes;
    row = place.page_row;
  }
  place.address_bytes += row * place.row_stride_bytes;
  return place;
}

ftl_tile_place ftl_ref_place(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_ref_step *step,
                             const ftl_ref_cursor *cursor, const ftl_cta_at *at, int64_t iteration) {
  if (step->is_steady) return steady_place(tile, ref, step, cursor, iteration);
  ftl_expr_point point = point_at(tile, ref, at, iteration);
  return ftl_tile_place_of(tile, &ref->ref, &point);
}

// Rows of the tiles of iterations [first, first + count), as far as they exist.
static range rows_of(const ftl_tile_ref *ref, const ftl_ref_step *step, const ftl_ref_cursor *cursor, int64_t first,
                     int64_t count) {
  int64_t a = cursor->first_row + first * step->rows, b = a + (count - 1) * step->rows;
  range rows = {.from = a < b ? a : b, .to = (a < b ? b : a) + ref->rows};
  if (rows.from < 0) rows.from = 0;
  if (rows.to > cursor->end_row) rows.to = cursor->end_row;
  return rows;
}

static int32_t num_parts(int64_t whole, int64_t part) { return (int32_t)ftl_divide_up(whole, part); }

// Of rows `asked` among rows `all`, and of columns.
static void fill_run(ftl_tile_run *run, const ftl_ref_step *step, const ftl_ref_cursor *cursor, range all, range asked,
                     range columns) {
  if (asked.from >= asked.to || columns.from >= columns.to) return;
  run->place.address_bytes =
      cursor->base_bytes + all.from * step->row_stride_bytes + columns.from * step->element_bytes;
  run->place.row_stride_bytes = step->row_stride_bytes;
  run->place.num_rows = (int32_t)(all.to - all.from);
  run->place.row_bytes = (int32_t)((columns.to - columns.from) * step->element_bytes);
  run->first_row = (int32_t)(asked.from - all.from);
  run->num_rows = (int32_t)(asked.to - asked.from);
}

bool ftl_ref_try_run(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_ref_step *step,
                     const ftl_ref_cursor *cursor, int64_t group_first, int64_t group, int64_t first, int64_t count,
                     ftl_tile_run *run) {
  const ftl_tile_ref *r = &ref->ref;
  // Tiles beside each other that share a sector are asked for it each.
  bool is_wide = step->is_wide && !step->shares_sectors && cursor->base_bytes % FTL_SECTOR_BYTES == 0;
  if (!step->is_tall && !is_wide) return false;
  *run = (ftl_tile_run){0};
  for (; count > 0 && presence_at(step, cursor, first) <= 0; count--) first++;
  while (count > 0 && presence_at(step, cursor, first + count - 1) <= 0) count--;
  if (count == 0) return true;
  range asked = rows_of(r, step, cursor, first, count), columns = columns_of(r, step, cursor, first, count);
  run->priority = tile->tensors[r->tensor].l2_priority;
  fill_run(run, step, cursor, step->is_tall ? rows_of(r, step, cursor, group_first, group) : asked, asked, columns);
  if (is_wide) run->tile_row_bytes = (int32_t)(r->columns * step->element_bytes);
  run->num_tiles =
      step->is_tall ? num_parts(run->num_rows, r->rows) : num_parts(run->place.row_bytes, run->tile_row_bytes);
  return true;
}

ftl_tile_run ftl_tile_run_share(const ftl_tile_run *run, ftl_multicast multicast, int64_t cta) {
  ftl_tile_run share = *run;
  int32_t n = multicast.num_ctas, member = ftl_multicast_member(multicast, cta);
  if (n <= 1) return share;
  share.is_multicast = true;
  int32_t first = run->place.num_rows * member / n, end = run->place.num_rows * (member + 1) / n;
  share.place.address_bytes += first * run->place.row_stride_bytes;
  share.place.num_rows = end - first;
  // Of a group of tiles that is asked for in part, as large a part of the share.
  share.first_row = run->first_row / n;
  share.num_rows = run->num_rows == run->place.num_rows ? share.place.num_rows : ftl_divide_up32(run->num_rows, n);
  if (share.first_row + share.num_rows > share.place.num_rows) share.num_rows = share.place.num_rows - share.first_row;
  if (share.num_rows <= 0) share.num_tiles = 0;
  return share;
}
