#include "workloads/block_mask.h"

#include <stdlib.h>

#include "base/integer.h"

enum {
  MOST_TILE_PAIRS = 1 << 26
};  // that are looked at; a mask of so many tiles takes a quarter of a gigabyte at most

// ---- blocks ----

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
                           .first_key = v[FTL_PARAM_seqlen_kv] - v[FTL_PARAM_seqlen_q],
                           .num_columns = ftl_divide_up(v[FTL_PARAM_seqlen_kv], v[FTL_PARAM_mask_block])};
  mask->first_row = mask->first_key / mask->block_tokens;
  mask->num_rows = mask->num_columns - mask->first_row;
  return mask->pattern == FTL_MASK_BITS ? read_bits(mask, spec, error) : FTL_OK;
}

int64_t ftl_block_mask_row(const ftl_block_mask *mask, int64_t query) {
  return (query + mask->first_key) / mask->block_tokens - mask->first_row;
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

int32_t *ftl_block_mask_list(const ftl_block_mask *mask) {
  int32_t *list = malloc(sizeof *list * (size_t)(mask->num_rows * mask->num_columns));
  for (int64_t row = 0; list != NULL && row < mask->num_rows; row++)
    for (int64_t column = 0; column < mask->num_columns; column++)
      list[row * mask->num_columns + column] = ftl_block_mask_sees(mask, row, column);
  return list;
}

// ---- lists of tiles ----

static ftl_status check_holds(const ftl_spec *spec, ftl_param tile, ftl_error *error) {
  long long block = spec->value[FTL_PARAM_mask_block];
  if (block % spec->value[tile] == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "mask_block=%lld: a block must hold a whole number of tiles, %s=%lld",
                       block, ftl_param_get(tile)->name, (long long)spec->value[tile]);
}

// Query tiles in one row of blocks each.
static ftl_status check_rows(const ftl_spec *spec, ftl_error *error) {
  long long block = spec->value[FTL_PARAM_mask_block];
  int64_t ahead = spec->value[FTL_PARAM_seqlen_kv] - spec->value[FTL_PARAM_seqlen_q];
  ftl_status status = check_holds(spec, FTL_PARAM_block_m, error);
  if (status == FTL_OK) status = check_holds(spec, FTL_PARAM_block_n, error);
  if (status != FTL_OK || (ahead >= 0 && ahead % block == 0)) return status;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "mask_block=%lld: with a mask there are as many keys as queries, or whole blocks more", block);
}

static ftl_status check_tokens(const ftl_spec *spec, ftl_error *error) {
  long long seqlen_q = spec->value[FTL_PARAM_seqlen_q], seqlen_kv = spec->value[FTL_PARAM_seqlen_kv];
  if (seqlen_q > seqlen_kv)
    return ftl_error_set(error, FTL_INFEASIBLE, "seqlen_q=%lld: with a mask at most as many as seqlen_kv=%lld",
                         seqlen_q, seqlen_kv);
  return check_holds(spec, FTL_PARAM_block_n, error);
}

// Keys from..end-1; end 0: none.
typedef struct key_span {
  int64_t from, end;
} key_span;

typedef struct tile_grid {
  ftl_attention a;
  const ftl_block_mask *mask;
  ftl_tile_walk walk;
  int64_t num_kept, num_steps;  // tiles
  key_span *seen;               // of each key tile: from the first key to the last that some query tile sees
} tile_grid;

// Queries and keys of kept tile t and step j; the last may exceed what there is.
typedef struct tile_pair {
  int64_t query, num_queries, key, num_keys, key_tile;
} tile_pair;

static tile_pair pair_at(const tile_grid *g, int64_t t, int64_t j) {
  const ftl_tile_walk *w = &g->walk;
  int64_t kept = t * w->kept_tokens, step = j * w->step_tokens;
  return w->keeps_keys ? (tile_pair){step, w->step_tokens, kept, w->kept_tokens, t}
                       : (tile_pair){kept, w->kept_tokens, step, w->step_tokens, j};
}

// What the queries and keys of a pair of tiles see of each other, of `all` pairs of queries that exist with a whole
// tile of keys.
typedef struct tile_view {
  int64_t all, pairs;
  key_span keys;
  bool rows_differ;  // the queries lie in a row of blocks that sees the keys and in one that does not
} tile_view;

static void widen(key_span *seen, key_span keys) {
  if (seen->end == 0 || keys.from < seen->from) seen->from = keys.from;
  if (keys.end > seen->end) seen->end = keys.end;
}

// Queries from..end-1, all in one row of blocks that sees the keys of p.
static void add_queries(const tile_grid *g, const tile_pair *p, int64_t from, int64_t end, tile_view *view) {
  const ftl_attention *a = &g->a;
  ftl_attention_band band = ftl_attention_band_of(a);
  key_span keys = {p->key, ftl_smaller(p->key + p->num_keys, a->seqlen_kv)};
  int64_t pairs = ftl_attention_pairs_within(a, from, end - from, keys.from, keys.end - keys.from);
  if (pairs == 0) return;
  if (band.has_left && from + band.left > keys.from) keys.from = from + band.left;
  if (band.has_right) keys.end = ftl_smaller(keys.end, end - 1 + band.right + 1);
  widen(&view->keys, keys);
  view->pairs += pairs;
}

static tile_view view_of(const tile_grid *g, const tile_pair *p) {
  const ftl_block_mask *mask = g->mask;
  int64_t query = p->query, end = ftl_smaller(query + p->num_queries, g->a.seqlen_q);
  tile_view view = {.all = (end - query) * p->num_keys};
  bool some_see = false, some_do_not = false;
  while (query < end) {
    int64_t row = ftl_block_mask_row(mask, query);
    int64_t row_end = ftl_smaller(end, (row + mask->first_row + 1) * mask->block_tokens - mask->first_key);
    bool sees = ftl_block_mask_sees(mask, row, p->key / mask->block_tokens);
    if (sees) add_queries(g, p, query, row_end, &view);
    some_see |= sees;
    some_do_not |= !sees;
    query = row_end;
  }
  view.rows_differ = view.pairs > 0 && some_see && some_do_not;
  return view;
}

// What says whether a pair of tiles is walked and masked: they themselves, or the blocks of queries and keys that they
// lie in.
static tile_view deciding_view(const tile_grid *g, tile_pair p) {
  int64_t block = g->mask->block_tokens;
  if (g->walk.by_blocks) p = (tile_pair){p.query / block * block, block, p.key / block * block, block, p.key_tile};
  return view_of(g, &p);
}

static void list_steps(ftl_tile_lists *lists, const tile_grid *g, int64_t t) {
  int64_t first = lists->num_tiles;
  lists->ends[2 * t] = (int32_t)first;
  for (int kind = 0; kind < 2; kind++) {
    bool whole = g->walk.by_blocks ? kind == 1 : kind == 0;
    for (int64_t j = 0; j < g->num_steps; j++) {
      tile_pair p = pair_at(g, t, j);
      tile_view decides = deciding_view(g, p);
      if (decides.pairs == 0 || (decides.pairs == decides.all) != whole) continue;
      tile_view view = view_of(g, &p);
      lists->tiles[lists->num_tiles++] = (int32_t)j;
      lists->num_pairs += view.pairs;
      lists->rows_differ |= view.rows_differ;
      if (view.pairs > 0) widen(&g->seen[p.key_tile], view.keys);
    }
    if (kind == 0) lists->ends[2 * t + 1] = (int32_t)lists->num_tiles;
  }
  if (lists->num_tiles - first > lists->most_tiles) lists->most_tiles = lists->num_tiles - first;
}

static ftl_status list_all(ftl_tile_lists *lists, const tile_grid *g, ftl_error *error) {
  int64_t most = g->num_kept * g->num_steps;
  if (most > MOST_TILE_PAIRS)
    return ftl_error_set(
        error, FTL_INFEASIBLE, "mask: %lld x %lld tiles of %s; a block mask is listed for at most 2^26",
        (long long)g->num_kept, (long long)g->num_steps, g->walk.keeps_keys ? "keys x queries" : "queries x keys");
  lists->num_kept_tiles = g->num_kept;
  lists->kept_tokens = g->walk.kept_tokens;
  lists->by_blocks = g->walk.by_blocks;
  lists->tiles = malloc(sizeof *lists->tiles * (size_t)most);
  lists->ends = malloc(sizeof *lists->ends * (size_t)(2 * lists->num_kept_tiles + 1));
  if (lists->tiles == NULL || lists->ends == NULL || g->seen == NULL)
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  for (int64_t t = 0; t < lists->num_kept_tiles; t++) list_steps(lists, g, t);
  lists->ends[2 * lists->num_kept_tiles] = (int32_t)lists->num_tiles;
  int64_t num_key_tiles = g->walk.keeps_keys ? g->num_kept : g->num_steps;
  for (int64_t k = 0; k < num_key_tiles; k++) lists->num_keys += g->seen[k].end - g->seen[k].from;
  if (lists->num_tiles > 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "mask: no query sees any key");
}

ftl_status ftl_tile_lists_init(ftl_tile_lists *lists, const ftl_spec *spec, ftl_tile_walk walk, ftl_error *error) {
  *lists = (ftl_tile_lists){0};
  if (spec->value[FTL_PARAM_mask] == FTL_MASK_NONE && !walk.by_blocks) return FTL_OK;
  ftl_status status = walk.in_any_rows ? check_tokens(spec, error) : check_rows(spec, error);
  if (status == FTL_OK) status = ftl_block_mask_init(&lists->mask, spec, error);
  tile_grid g = {.a = ftl_attention_of(spec), .mask = &lists->mask, .walk = walk};
  g.num_kept = ftl_divide_up(walk.keeps_keys ? g.a.seqlen_kv : g.a.seqlen_q, walk.kept_tokens);
  g.num_steps = ftl_divide_up(walk.keeps_keys ? g.a.seqlen_q : g.a.seqlen_kv, walk.step_tokens);
  g.seen = calloc((size_t)(walk.keeps_keys ? g.num_kept : g.num_steps), sizeof *g.seen);
  if (status == FTL_OK) status = list_all(lists, &g, error);
  free(g.seen);
  if (status != FTL_OK) ftl_tile_lists_fini(lists);
  return status;
}

ftl_tile_walk ftl_tile_walk_forward(const ftl_spec *spec) {
  return (ftl_tile_walk){.kept_tokens = spec->value[FTL_PARAM_block_m],
                         .step_tokens = spec->value[FTL_PARAM_block_n],
                         .by_blocks = spec->value[FTL_PARAM_mask_steps] == FTL_MASK_STEPS_BLOCKS};
}

void ftl_tile_lists_fini(ftl_tile_lists *lists) {
  ftl_block_mask_fini(&lists->mask);
  free(lists->tiles);
  free(lists->ends);
  *lists = (ftl_tile_lists){0};
}

bool ftl_tile_lists_some_empty(const ftl_tile_lists *lists) {
  for (int64_t t = 0; t < lists->num_kept_tiles; t++)
    if (lists->ends[2 * t] == lists->ends[2 * t + 2]) return true;
  return false;
}

ftl_tile_tables ftl_tile_lists_declare_tables(ftl_builder *b, const ftl_tile_lists *lists) {
  int32_t tiles = ftl_builder_table(b, "step_tiles", lists->tiles, lists->num_tiles);
  return (ftl_tile_tables){.tiles = tiles,
                           .ends = ftl_builder_table(b, "ends", lists->ends, 2 * lists->num_kept_tiles + 1)};
}

ftl_expr ftl_tile_lists_token(ftl_builder *builder, const ftl_tile_lists *lists, int32_t tiles, ftl_expr j,
                              int32_t tile_tokens) {
  ftl_expr tile = lists->tiles == NULL ? j : ftl_lookup(builder, tiles, j);
  return ftl_mul(builder, tile, ftl_const(builder, tile_tokens));
}

int64_t ftl_tile_lists_flops(const ftl_tile_lists *lists, const ftl_attention *a) {
  return lists->tiles == NULL ? ftl_attention_forward_flops(a) : ftl_attention_flops_of_pairs(a, lists->num_pairs);
}

ftl_key_range ftl_tile_lists_range(ftl_builder *b, const ftl_tile_lists *lists, ftl_tile_tables tables, ftl_expr row) {
  ftl_expr entry = ftl_mul(b, ftl_div(b, row, ftl_const(b, lists->kept_tokens)), ftl_const(b, 2));
  ftl_expr begin = ftl_lookup(b, tables.ends, entry);
  ftl_expr second = ftl_lookup(b, tables.ends, ftl_add(b, entry, ftl_const(b, 1)));
  ftl_expr end = ftl_lookup(b, tables.ends, ftl_add(b, entry, ftl_const(b, 2)));
  return lists->by_blocks ? (ftl_key_range){.first = begin, .whole = second, .unmasked = end, .end = end}
                          : (ftl_key_range){.first = begin, .whole = begin, .unmasked = second, .end = end};
}

ftl_listed_tiles ftl_tile_lists_declare(ftl_builder *b, const ftl_tile_lists *lists, ftl_expr row) {
  ftl_tile_tables tables = ftl_tile_lists_declare_tables(b, lists);
  return (ftl_listed_tiles){.tiles = tables.tiles, .range = ftl_tile_lists_range(b, lists, tables, row)};
}
