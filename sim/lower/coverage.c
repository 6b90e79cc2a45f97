#include "lower/coverage.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "tile/exec.h"

enum { NONE = -1, UNIT_BYTES = 2, WORD_UNITS = 64 };  // the smallest elements of a row of odd length: halves

static bool grow_fills(ftl_coverage *c, int32_t ring) {
  if (c->num_fills[ring] < c->capacity_fills[ring]) return true;
  int64_t capacity = c->capacity_fills[ring] ? c->capacity_fills[ring] * 2 : 64;
  int32_t *larger = realloc(c->first_of_fill[ring], sizeof *larger * (size_t)capacity);
  if (!larger) return false;
  c->first_of_fill[ring] = larger;
  c->capacity_fills[ring] = capacity;
  return true;
}

// The fill that LOADs of a ring go to is the last of its list, begun by ACQUIRE.
static ftl_status begin_fill(ftl_coverage *c, int32_t ring, ftl_error *error) {
  if (!grow_fills(c, ring)) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  c->first_of_fill[ring][c->num_fills[ring]++] = NONE;
  return FTL_OK;
}

static int32_t *head_of(ftl_coverage *c, const ftl_exec_event *event) {
  if (ftl_tile_op_stores(event->op->kind)) return &c->first_store;
  if (ftl_tile_op_loads_direct(event->op->kind)) return &c->first_direct;
  int32_t ring = event->op->ring;
  return &c->first_of_fill[ring][c->num_fills[ring] - 1];
}

static ftl_status add_tile(ftl_coverage *c, const ftl_exec_event *event, int32_t ring, ftl_error *error) {
  ftl_tile_place place = ftl_tile_place_of(c->tile, &event->op->ref, event->point);
  if (place.num_rows == 0) return FTL_OK;
  if (c->num_tiles == c->capacity_tiles) {
    int32_t capacity = c->capacity_tiles ? c->capacity_tiles * 2 : 64;
    ftl_covered_tile *larger = realloc(c->tiles, sizeof *larger * (size_t)capacity);
    if (!larger) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
    c->tiles = larger;
    c->capacity_tiles = capacity;
  }
  int32_t *head = head_of(c, event);
  int32_t tensor = event->op->ref.tensor;
  ftl_covered_tile t = {
      .tensor = tensor, .ring = ring, .place = place, .next = *head, .is_store = ftl_tile_op_stores(event->op->kind)};
  t.fill = ring == NONE ? 0 : c->num_fills[ring] - 1;
  t.columns_bytes = event->op->ref.columns * ftl_dtype_bytes(c->tile->tensors[tensor].dtype);
  t.words_per_row = ftl_divide_up32(t.columns_bytes / UNIT_BYTES, WORD_UNITS);
  t.bytes_left = (int64_t)place.row_bytes * place.num_rows;
  t.touched = calloc((size_t)t.words_per_row * (size_t)place.num_rows, sizeof *t.touched);
  if (!t.touched) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  *head = c->num_tiles;
  c->tiles[c->num_tiles++] = t;
  return FTL_OK;
}

static ftl_status visit(void *context, const ftl_exec_event *event, ftl_error *error) {
  ftl_coverage *c = context;
  switch (event->op->kind) {
    case FTL_TILE_ACQUIRE:
      return begin_fill(c, event->op->ring, error);
    case FTL_TILE_LOAD:
      return add_tile(c, event, event->op->ring, error);
    case FTL_TILE_LOOKUP:
    case FTL_TILE_LOAD_TILE:
    case FTL_TILE_LOAD_ROWS:
    case FTL_TILE_LOAD_COLUMNS:
    case FTL_TILE_MASK_BITS:
    case FTL_TILE_STORE:
    case FTL_TILE_STORE_MERGED:
    case FTL_TILE_STORE_ROWS:
    case FTL_TILE_STORE_TOP:
    case FTL_TILE_ATOMIC_ADD:
      return add_tile(c, event, NONE, error);
    default:
      return FTL_OK;
  }
}

ftl_status ftl_coverage_init(ftl_coverage *coverage, const ftl_tile_program *tile, int64_t cta, ftl_error *error) {
  *coverage = (ftl_coverage){.tile = tile, .first_store = NONE, .first_direct = NONE};
  ftl_exec_options options = {.first_tile = cta, .tile_stride = tile->num_ctas, .visit = visit, .context = coverage};
  ftl_status status = ftl_exec_cta(tile, &options, error);
  if (status != FTL_OK) ftl_coverage_fini(coverage);
  return status;
}

void ftl_coverage_fini(ftl_coverage *coverage) {
  for (int32_t i = 0; i < coverage->num_tiles; i++) free(coverage->tiles[i].touched);
  free(coverage->tiles);
  for (int r = 0; r < FTL_TILE_MAX_RINGS; r++) free(coverage->first_of_fill[r]);
  memset(coverage, 0, sizeof *coverage);
}

static const char *touch_row(ftl_covered_tile *t, int32_t row, int32_t column_byte, int32_t bytes) {
  uint64_t *words = &t->touched[(size_t)row * (size_t)t->words_per_row];
  for (int32_t unit = column_byte / UNIT_BYTES; unit < (column_byte + bytes) / UNIT_BYTES; unit++) {
    uint64_t bit = UINT64_C(1) << unit % WORD_UNITS;
    if (words[unit / WORD_UNITS] & bit) return "touches bytes a second time";
    words[unit / WORD_UNITS] |= bit;
  }
  t->bytes_left -= bytes;
  return NULL;
}

static const char *touch(ftl_covered_tile *t, const ftl_access *access, int32_t warp) {
  ftl_access_start start = ftl_access_start_of(access, &t->place, warp);
  int32_t row = start.row;
  if (access->bytes <= 0 || start.column_byte < 0 ||
      (access->row_warps <= 1 && start.column_byte + access->bytes > t->columns_bytes) ||
      (start.column_byte | start.bytes) % UNIT_BYTES != 0)
    return "touches bytes outside the tile's columns";
  if (start.bytes == 0 || ftl_access_repeats(access, warp)) return NULL;
  for (int32_t k = 0; k < access->num_rows; k++, row += access->row_step) {
    if (row < 0) return "touches rows before the tile";
    if (row >= t->place.num_rows) continue;
    const char *problem = touch_row(t, row, start.column_byte, start.bytes);
    if (problem) return problem;
  }
  return NULL;
}

static ftl_covered_tile *find(ftl_coverage *c, int32_t head, const ftl_tile_place *place) {
  for (int32_t at = head; at != NONE; at = c->tiles[at].next) {
    ftl_covered_tile *t = &c->tiles[at];
    if (t->place.address_bytes == place->address_bytes) return t;
  }
  return NULL;
}

static bool is_same_place(const ftl_tile_place *a, const ftl_tile_place *b) {
  return a->address_bytes == b->address_bytes && a->num_rows == b->num_rows && a->row_bytes == b->row_bytes;
}

const char *ftl_coverage_load_direct(ftl_coverage *coverage, int32_t tensor, const ftl_access *access,
                                     const ftl_tile_place *place, int32_t warp) {
  if (place->num_rows == 0) return NULL;
  const char *problem = "loads a tile that the tile program does not";
  for (int32_t at = coverage->first_direct; at != NONE; at = coverage->tiles[at].next) {
    ftl_covered_tile *t = &coverage->tiles[at];
    if (t->tensor != tensor || !is_same_place(&t->place, place)) continue;
    problem = touch(t, access, warp);
    if (!problem) return NULL;
  }
  return ftl_access_repeats(access, warp) ? NULL : problem;
}

const char *ftl_coverage_load(ftl_coverage *coverage, int32_t ring, int64_t fill, const ftl_access *access,
                              const ftl_tile_place *place, int32_t warp) {
  if (place->num_rows == 0) return NULL;
  if (fill >= coverage->num_fills[ring]) return "fills a stage more often than the tile program does";
  ftl_covered_tile *t = find(coverage, coverage->first_of_fill[ring][fill], place);
  return t ? touch(t, access, warp) : "copies a tile that belongs in another stage";
}

// A CTA may store a tile again: each execution is one of its own.
const char *ftl_coverage_store(ftl_coverage *coverage, int32_t tensor, const ftl_access *access,
                               const ftl_tile_place *place, int32_t warp) {
  if (place->num_rows == 0) return NULL;
  const char *problem = "stores a tile that the tile program does not";
  for (int32_t at = coverage->first_store; at != NONE; at = coverage->tiles[at].next) {
    ftl_covered_tile *t = &coverage->tiles[at];
    if (t->tensor != tensor || t->place.address_bytes != place->address_bytes) continue;
    problem = touch(t, access, warp);
    if (!problem) return NULL;
  }
  return problem;
}

bool ftl_coverage_is_full(const ftl_coverage *coverage, int32_t ring, int64_t fill) {
  if (fill >= coverage->num_fills[ring]) return true;
  for (int32_t at = coverage->first_of_fill[ring][fill]; at != NONE; at = coverage->tiles[at].next)
    if (coverage->tiles[at].bytes_left > 0) return false;
  return true;
}

const ftl_covered_tile *ftl_coverage_incomplete(const ftl_coverage *coverage) {
  for (int32_t i = 0; i < coverage->num_tiles; i++)
    if (coverage->tiles[i].bytes_left > 0) return &coverage->tiles[i];
  return NULL;
}
