#include "workloads/block_mask.h"

#include <stdlib.h>

#include "base/integer.h"

enum {
  MOST_TILE_PAIRS = 1 << 26
};  // that are looked at; a mask of so many tiles takes a quarter of a gigabyte at most

// ---- blocks ----

static ftl_status check_tiles(const ftl_spec *spec, ftl_error *error) {
  const ftl_param params[] = {FTL_PARAM_block_m, FTL_PARAM_block_n};
  long long block = spec->value[FTL_PARAM_mask_block];
  for (int i = 0; i < 2; i++)
    if (block % spec->value[params[i]] != 0)
      return ftl_error_set(error, FTL_INFEASIBLE, "mask_block=%lld: a block must hold a whole number of tiles, %s=%lld",
                           block, ftl_param_get(params[i])->name, (long long)spec->value[params[i]]);
  int64_t ahead = spec->value[FTL_PARAM_seqlen_kv] - spec->value[FTL_PARAM_seqlen_q];
  if (ahead < 0 || ahead % block != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "mask_block=%lld: with a mask there are as many keys as queries, or whole blocks more", block);
  return FTL_OK;
}

static ftl_status read_bits(ftl_block_mask *mask, const ftl_spec *spec, ftl_error *error) {
  int64_t wanted = mask->num_rows * mask->num_columns, found = ftl_spec_list(spec, FTL_PARAM_mask_bits, NULL, 0);
  if (found != wanted)
    return ftl_error_set(
        error, FTL_INFEASIBLE, "mask_bits: %lld numbers, and there are %lld x %lld blocks of mask_block=%lld",
        (long long)found, (long long)mask->num_rows, (long long)mask->num_columns, (long long)mask->block_tokens);
  mask->bits = malloc(sizeof *mask->bits * (size_t)wanted);
  if (mask->bits == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  ftl_spec_list(spec, FTL_PARAM_mask_bits, mask->bits, wanted);
  return FTL_OK;
}

ftl_status ftl_block_mask_init(ftl_block_mask *mask, const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  *mask = (ftl_block_mask){.pattern = v[FTL_PARAM_mask],
                           .width = v[FTL_PARAM_mask_width],
                           .block_tokens = v[FTL_PARAM_mask_block],
                           .num_rows = ftl_divide_up(v[FTL_PARAM_seqlen_q], v[FTL_PARAM_mask_block]),
                           .num_columns = ftl_divide_up(v[FTL_PARAM_seqlen_kv], v[FTL_PARAM_mask_block])};
  mask->first_row = mask->num_columns - mask->num_rows;
  ftl_status status = check_tiles(spec, error);
  if (status == FTL_OK && mask->pattern == FTL_MASK_BITS) status = read_bits(mask, spec, error);
  return status;
}

void ftl_block_mask_fini(ftl_block_mask *mask) {
  free(mask->bits);
  *mask = (ftl_block_mask){0};
}

bool ftl_block_mask_sees(const ftl_block_mask *mask, int64_t row, int64_t column) {
  int64_t aligned = row + mask->first_row, distance = aligned > column ? aligned - column : column - aligned;
  switch (mask->pattern) {
    case FTL_MASK_STRIDED:
      return distance < mask->width || distance % mask->width == 0;
    case FTL_MASK_LOCAL_GLOBAL:
      return distance < mask->width || aligned == 0 || column == 0;
    case FTL_MASK_BUTTERFLY:
      return ((aligned ^ column) & ((aligned ^ column) - 1)) == 0;
    case FTL_MASK_BITS:
      return mask->bits[row * mask->num_columns + column] != 0;
    default:
      return true;
  }
}

// ---- key tiles ----

// Keys from..end-1; end 0: none.
typedef struct key_span {
  int64_t from, end;
} key_span;

typedef struct tile_grid {
  ftl_attention a;
  const ftl_block_mask *mask;
  int64_t num_key_tiles;
  key_span *seen;  // of each key tile: from the first key to the last that some query tile sees
} tile_grid;

// Pairs that are seen of query tile t and key tile j, and how many there are of rows that exist and columns.
static int64_t pairs_of(const tile_grid *g, int64_t t, int64_t j, int64_t *all) {
  const ftl_attention *a = &g->a;
  int64_t query = t * a->block_m, key = j * a->block_n;
  int64_t queries = ftl_smaller(a->block_m, a->seqlen_q - query);
  *all = queries * a->block_n;
  if (!ftl_block_mask_sees(g->mask, query / g->mask->block_tokens, key / g->mask->block_tokens)) return 0;
  return ftl_attention_pairs_within(a, query, queries, key, ftl_smaller(a->block_n, a->seqlen_kv - key));
}

// Query tile t sees keys of key tile j.
static void widen(const tile_grid *g, int64_t t, int64_t j) {
  const ftl_attention *a = &g->a;
  ftl_attention_band band = ftl_attention_band_of(a);
  int64_t query = t * a->block_m, last_query = ftl_smaller(query + a->block_m, a->seqlen_q) - 1;
  key_span span = {j * a->block_n, ftl_smaller((j + 1) * a->block_n, a->seqlen_kv)}, *seen = &g->seen[j];
  if (band.has_left && query + band.left > span.from) span.from = query + band.left;
  if (band.has_right) span.end = ftl_smaller(span.end, last_query + band.right + 1);
  if (seen->end == 0 || span.from < seen->from) seen->from = span.from;
  if (span.end > seen->end) seen->end = span.end;
}

static void list_query_tile(ftl_key_lists *lists, const tile_grid *g, int64_t t) {
  lists->ends[2 * t] = (int32_t)lists->num_tiles;
  for (int whole = 1; whole >= 0; whole--) {
    for (int64_t j = 0; j < g->num_key_tiles; j++) {
      int64_t all, seen = pairs_of(g, t, j, &all);
      if (seen == 0 || (seen == all) != whole) continue;
      lists->tiles[lists->num_tiles++] = (int32_t)j;
      lists->num_pairs += seen;
      widen(g, t, j);
    }
    if (whole) lists->ends[2 * t + 1] = (int32_t)lists->num_tiles;
  }
}

static ftl_status list_all(ftl_key_lists *lists, const tile_grid *g, ftl_error *error) {
  int64_t most = g->a.num_m_tiles * g->num_key_tiles;
  if (most > MOST_TILE_PAIRS)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "mask: %lld x %lld tiles of block_m x block_n; a block mask is listed for at most 2^26",
                         (long long)g->a.num_m_tiles, (long long)g->num_key_tiles);
  lists->num_query_tiles = g->a.num_m_tiles;
  lists->tiles = malloc(sizeof *lists->tiles * (size_t)most);
  lists->ends = malloc(sizeof *lists->ends * (size_t)(2 * lists->num_query_tiles + 1));
  if (lists->tiles == NULL || lists->ends == NULL || g->seen == NULL)
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  for (int64_t t = 0; t < lists->num_query_tiles; t++) list_query_tile(lists, g, t);
  lists->ends[2 * lists->num_query_tiles] = (int32_t)lists->num_tiles;
  for (int64_t j = 0; j < g->num_key_tiles; j++) lists->num_keys += g->seen[j].end - g->seen[j].from;
  if (lists->num_tiles > 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "mask: no query sees any key");
}

ftl_status ftl_key_lists_init(ftl_key_lists *lists, const ftl_spec *spec, ftl_error *error) {
  *lists = (ftl_key_lists){0};
  if (spec->value[FTL_PARAM_mask] == FTL_MASK_NONE) return FTL_OK;
  ftl_block_mask mask;
  ftl_status status = ftl_block_mask_init(&mask, spec, error);
  tile_grid g = {.a = ftl_attention_of(spec), .mask = &mask};
  g.num_key_tiles = ftl_divide_up(g.a.seqlen_kv, g.a.block_n);
  g.seen = calloc((size_t)g.num_key_tiles, sizeof *g.seen);
  if (status == FTL_OK) status = list_all(lists, &g, error);
  free(g.seen);
  ftl_block_mask_fini(&mask);
  if (status != FTL_OK) ftl_key_lists_fini(lists);
  return status;
}

void ftl_key_lists_fini(ftl_key_lists *lists) {
  free(lists->tiles);
  free(lists->ends);
  *lists = (ftl_key_lists){0};
}

bool ftl_key_lists_some_empty(const ftl_key_lists *lists) {
  for (int64_t t = 0; t < lists->num_query_tiles; t++)
    if (lists->ends[2 * t] == lists->ends[2 * t + 2]) return true;
  return false;
}

ftl_listed_keys ftl_key_lists_declare(ftl_builder *b, const ftl_key_lists *lists, const ftl_attention *a,
                                      ftl_expr row) {
  int32_t tiles = ftl_builder_table(b, "key_tiles", lists->tiles, lists->num_tiles);
  int32_t ends = ftl_builder_table(b, "ends", lists->ends, 2 * lists->num_query_tiles + 1);
  ftl_expr entry = ftl_mul(b, ftl_div(b, row, ftl_const(b, a->block_m)), ftl_const(b, 2));
  ftl_expr begin = ftl_lookup(b, ends, entry);
  return (ftl_listed_keys){.tiles = tiles,
                           .keys = {.first = begin,
                                    .whole = begin,
                                    .unmasked = ftl_lookup(b, ends, ftl_add(b, entry, ftl_const(b, 1))),
                                    .end = ftl_lookup(b, ends, ftl_add(b, entry, ftl_const(b, 2)))}};
}
