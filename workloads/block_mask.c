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

int32_t *ftl_block_mask_list(const ftl_block_mask *mask) {
  int32_t *list = malloc(sizeof *list * (size_t)(mask->num_rows * mask->num_columns));
  for (int64_t row = 0; list != NULL && row < mask->num_rows; row++)
    for (int64_t column = 0; column < mask->num_columns; column++)
      list[row * mask->num_columns + column] = ftl_block_mask_sees(mask, row, column);
  return list;
}

// ---- lists of tiles ----

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

// Pairs that are seen of kept tile t and step j, and how many there are of queries that exist with a whole tile of
// keys.
static int64_t pairs_of(const tile_grid *g, int64_t t, int64_t j, int64_t *all) {
  const ftl_attention *a = &g->a;
  tile_pair p = pair_at(g, t, j);
  int64_t queries = ftl_smaller(p.num_queries, a->seqlen_q - p.query);
  *all = queries * p.num_keys;
  if (!ftl_block_mask_sees(g->mask, p.query / g->mask->block_tokens, p.key / g->mask->block_tokens)) return 0;
  return ftl_attention_pairs_within(a, p.query, queries, p.key, ftl_smaller(p.num_keys, a->seqlen_kv - p.key));
}

// Kept tile t and step j see each other.
static void widen(const tile_grid *g, int64_t t, int64_t j) {
  const ftl_attention *a = &g->a;
  tile_pair p = pair_at(g, t, j);
  ftl_attention_band band = ftl_attention_band_of(a);
  int64_t last_query = ftl_smaller(p.query + p.num_queries, a->seqlen_q) - 1;
  key_span span = {p.key, ftl_smaller(p.key + p.num_keys, a->seqlen_kv)}, *seen = &g->seen[p.key_tile];
  if (band.has_left && p.query + band.left > span.from) span.from = p.query + band.left;
  if (band.has_right) span.end = ftl_smaller(span.end, last_query + band.right + 1);
  if (seen->end == 0 || span.from < seen->from) seen->from = span.from;
  if (span.end > seen->end) seen->end = span.end;
}

static void list_steps(ftl_tile_lists *lists, const tile_grid *g, int64_t t) {
  lists->ends[2 * t] = (int32_t)lists->num_tiles;
  for (int whole = 1; whole >= 0; whole--) {
    for (int64_t j = 0; j < g->num_steps; j++) {
      int64_t all, seen = pairs_of(g, t, j, &all);
      if (seen == 0 || (seen == all) != whole) continue;
      lists->tiles[lists->num_tiles++] = (int32_t)j;
      lists->num_pairs += seen;
      widen(g, t, j);
    }
    if (whole) lists->ends[2 * t + 1] = (int32_t)lists->num_tiles;
  }
}

static ftl_status list_all(ftl_tile_lists *lists, const tile_grid *g, ftl_error *error) {
  int64_t most = g->num_kept * g->num_steps;
  if (most > MOST_TILE_PAIRS)
    return ftl_error_set(
        error, FTL_INFEASIBLE, "mask: %lld x %lld tiles of %s; a block mask is listed for at most 2^26",
        (long long)g->num_kept, (long long)g->num_steps, g->walk.keeps_keys ? "keys x queries" : "queries x keys");
  lists->num_kept_tiles = g->num_kept;
  lists->kept_tokens = g->walk.kept_tokens;
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
  if (spec->value[FTL_PARAM_mask] == FTL_MASK_NONE) return FTL_OK;
  ftl_block_mask mask;
  ftl_status status = ftl_block_mask_init(&mask, spec, error);
  tile_grid g = {.a = ftl_attention_of(spec), .mask = &mask, .walk = walk};
  g.num_kept = ftl_divide_up(walk.keeps_keys ? g.a.seqlen_kv : g.a.seqlen_q, walk.kept_tokens);
  g.num_steps = ftl_divide_up(walk.keeps_keys ? g.a.seqlen_q : g.a.seqlen_kv, walk.step_tokens);
  g.seen = calloc((size_t)(walk.keeps_keys ? g.num_kept : g.num_steps), sizeof *g.seen);
  if (status == FTL_OK) status = list_all(lists, &g, error);
  free(g.seen);
  ftl_block_mask_fini(&mask);
  if (status != FTL_OK) ftl_tile_lists_fini(lists);
  return status;
}

ftl_tile_walk ftl_tile_walk_forward(const ftl_spec *spec) {
  return (ftl_tile_walk){.kept_tokens = spec->value[FTL_PARAM_block_m], .step_tokens = spec->value[FTL_PARAM_block_n]};
}

void ftl_tile_lists_fini(ftl_tile_lists *lists) {
  free(lists->tiles);
  free(lists->ends);
  *lists = (ftl_tile_lists){0};
}

bool ftl_tile_lists_some_empty(const ftl_tile_lists *lists) {
  for (int64_t t = 0; t < lists->num_kept_tiles; t++)
    if (lists->ends[2 * t] == lists->ends[2 * t + 2]) return true;
  return false;
}

ftl_listed_tiles ftl_tile_lists_declare(ftl_builder *b, const ftl_tile_lists *lists, ftl_expr row) {
  int32_t tiles = ftl_builder_table(b, "step_tiles", lists->tiles, lists->num_tiles);
  int32_t ends = ftl_builder_table(b, "ends", lists->ends, 2 * lists->num_kept_tiles + 1);
  ftl_expr entry = ftl_mul(b, ftl_div(b, row, ftl_const(b, lists->kept_tokens)), ftl_const(b, 2));
  ftl_expr begin = ftl_lookup(b, ends, entry);
  return (ftl_listed_tiles){.tiles = tiles,
                            .range = {.first = begin,
                                      .whole = begin,
                                      .unmasked = ftl_lookup(b, ends, ftl_add(b, entry, ftl_const(b, 1))),
                                      .end = ftl_lookup(b, ends, ftl_add(b, entry, ftl_const(b, 2)))}};
}
