#include "lower/walk.h"

#include "base/check.h"
#include "base/sectors.h"

ftl_walk ftl_walk_start(const ftl_warp_program *program, int32_t role, int32_t warp, int64_t cta) {
  const ftl_warp_role *r = &program->roles[role];
  return (ftl_walk){.program = program,
                    .role = role,
                    .warp = warp,
                    .pc = r->first_inst,
                    .end = r->first_inst + r->num_insts,
                    .point = {.cta = cta, .warp = warp}};
}

static void enter_loop(ftl_walk *walk, const ftl_warp_loop *loop) {
  const ftl_tile_program *tile = walk->program->tile;
  int64_t lo = ftl_expr_eval(tile, loop->lo, &walk->point);
  if (lo < ftl_expr_eval(tile, loop->hi, &walk->point)) {
    walk->point.loop[loop->loop_var] = lo;
  } else {
    walk->pc = walk->program->roles[walk->role].first_inst + loop->end + 1;
  }
}

static void repeat_loop(ftl_walk *walk, const ftl_warp_loop *loop) {
  int64_t next = ++walk->point.loop[loop->loop_var];
  if (next < ftl_expr_eval(walk->program->tile, loop->hi, &walk->point))
    walk->pc = walk->program->roles[walk->role].first_inst + loop->begin + 1;
}

const ftl_warp_inst *ftl_walk_next(ftl_walk *walk) {
  while (walk->pc < walk->end) {
    const ftl_warp_inst *inst = &walk->program->insts[walk->pc++];
    if (inst->opcode == FTL_OP_LOOP) {
      enter_loop(walk, &walk->program->loops[inst->arg]);
    } else if (inst->opcode == FTL_OP_END_LOOP) {
      repeat_loop(walk, &walk->program->loops[inst->arg]);
    } else if (walk->warp == 0 || !(inst->flags & FTL_INST_WARP0)) {
      return inst;
    }
  }
  return NULL;
}

void ftl_tile_place_find_pages(const ftl_tile_program *tile, const ftl_tile_ref *ref, int64_t row, int64_t entry,
                               ftl_tile_place *place) {
  const ftl_pages *pages = &ref->pages;
  const ftl_tensor *table = &tile->tensors[pages->table];
  place->page_rows = pages->page_rows;
  place->page_row = (int32_t)(row % pages->page_rows);
  place->page_stride_bytes = pages->page_stride * ftl_dtype_bytes(tile->tensors[ref->tensor].dtype);
  int64_t last = entry + (place->page_row + place->num_rows - 1) / pages->page_rows;
  FTL_CHECK(entry >= 0 && last < table->num_rows, "%s of %s: page entries %lld to %lld of %lld", table->name,
            tile->name, (long long)entry, (long long)last, (long long)table->num_rows);
  place->pages = table->table + entry;
}

ftl_tile_place ftl_tile_place_of(const ftl_tile_program *tile, const ftl_tile_ref *ref, const ftl_expr_point *point) {
  const ftl_tensor *tensor = &tile->tensors[ref->tensor];
  int64_t element_bytes = ftl_dtype_bytes(tensor->dtype);
  ftl_tile_place place = {.address_bytes = tensor->base_bytes, .row_stride_bytes = tensor->row_stride * element_bytes};
  if (ref->present != FTL_ALWAYS && ftl_expr_eval(tile, ref->present, point) <= 0) return place;
  int64_t batch = ftl_expr_eval(tile, ref->batch, point), head = ftl_expr_eval(tile, ref->head, point);
  int64_t row = ftl_expr_eval(tile, ref->row, point);
  int64_t end_row = ftl_tile_ref_end_row(tile, ref, point);
  if (row >= end_row) return place;
  FTL_CHECK(row >= 0 && batch >= 0 && head >= 0 && batch < tensor->num_batches && head < tensor->num_heads,
            "%s of %s: tile outside the tensor (batch %lld, head %lld, row %lld)", tensor->name, tile->name,
            (long long)batch, (long long)head, (long long)row);
  int64_t columns = ftl_tile_ref_num_columns(tile, ref, point);
  if (columns == 0) return place;
  int64_t column = ftl_expr_eval(tile, ref->column, point);
  FTL_CHECK(column >= 0, "%s of %s: tile from column %lld", tensor->name, tile->name, (long long)column);
  place.row_bytes = (int32_t)(columns * element_bytes);
  int64_t element = column + batch * tensor->batch_stride + head * tensor->head_stride;
  int64_t rows_left = end_row - row;
  place.num_rows = rows_left < ref->rows ? (int32_t)rows_left : ref->rows;
  if (ref->pages.page_rows > 0) {
    ftl_tile_place_find_pages(tile, ref, row, ftl_expr_eval(tile, ref->pages.entry, point), &place);
    element += place.pages[0] * ref->pages.page_stride;
    row = place.page_row;
  }
  place.address_bytes += (element + row * tensor->row_stride) * element_bytes;
  return place;
}

enum { LOG2_LINE = 7, LOG2_SECTOR = 5, LOG2_WORD = 2 };

typedef struct line_list {
  ftl_line *lines;
  int32_t count, capacity;
  ftl_line last;  // kept here too, since the list may be shorter than the access
} line_list;

static void add_line(line_list *list, ftl_line line) {
  if (list->count > 0 && list->last.line == line.line) {
    list->last.sectors |= line.sectors;
    list->last.full_sectors |= line.full_sectors;
    list->last.words |= line.words;
  } else {
    list->last = line;
    list->count++;
  }
  if (list->count <= list->capacity) list->lines[list->count - 1] = list->last;
}

// Consecutive bytes [begin, end), not empty.
static void add_run(line_list *list, uint64_t begin, uint64_t end) {
  for (uint64_t line = begin >> LOG2_LINE; line <= (end - 1) >> LOG2_LINE; line++) {
    uint64_t from = line << LOG2_LINE, to = from + (1u << LOG2_LINE);
    if (begin <= from && to <= end) {  // the usual case
      add_line(list, (ftl_line){line, FTL_ALL_SECTORS, FTL_ALL_SECTORS, UINT32_MAX});
      continue;
    }
    uint64_t lo = (begin > from ? begin : from) - from, hi = (end < to ? end : to) - from;
    uint64_t sector_bytes = 1u << LOG2_SECTOR, word_bytes = 1u << LOG2_WORD;
    add_line(list,
             (ftl_line){line, (uint8_t)ftl_mask_between(lo >> LOG2_SECTOR, (hi + sector_bytes - 1) >> LOG2_SECTOR),
                        (uint8_t)ftl_mask_between((lo + sector_bytes - 1) >> LOG2_SECTOR, hi >> LOG2_SECTOR),
                        ftl_mask_between(lo >> LOG2_WORD, (hi + word_bytes - 1) >> LOG2_WORD)});
  }
}

int32_t ftl_access_lines(const ftl_access *access, const ftl_tile_place *place, int32_t warp, ftl_line *lines,
                         int32_t capacity) {
  line_list list = {.lines = lines, .capacity = capacity};
  ftl_access_start start = {access->row, access->column_byte, access->bytes};
  if (!access->is_local) start = ftl_access_start_of(access, place, warp);
  if (start.bytes == 0) return 0;
  int32_t row = start.row, num_rows = access->is_local ? INT32_MAX : place->num_rows;
  if (row >= num_rows) return 0;
  uint64_t step = (uint64_t)(place->row_stride_bytes * access->row_step);
  uint64_t begin = (uint64_t)(ftl_tile_place_row(place, row) + start.column_byte);
  uint64_t run_begin = 0, run_end = 0;
  for (int32_t k = 0; k < access->num_rows && row < num_rows; k++, row += access->row_step, begin += step) {
    if (place->pages) begin = (uint64_t)(ftl_tile_place_row(place, row) + start.column_byte);
    if (begin != run_end) {
      if (run_begin != run_end) add_run(&list, run_begin, run_end);
      run_begin = begin;
    }
    run_end = begin + (uint64_t)start.bytes;
  }
  if (run_begin != run_end) add_run(&list, run_begin, run_end);
  for (int32_t i = 0; access->in_words && i < list.count && i < capacity; i++) lines[i].full_sectors = 0;
  return list.count;
}
