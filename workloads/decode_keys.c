#include "workloads/decode_keys.h"

#include <stdlib.h>

#include "base/integer.h"

enum { WORD_BITS = 32, MOST_MASK_WORDS = 1 << 22 };

// ---- trees ----

static int64_t num_cached(const ftl_decode *d) { return d->a.seqlen_kv - d->tree->num_tokens; }

// The first key that a token at this depth sees.
static int64_t first_seen(const ftl_decode *d, int64_t depth) {
  int64_t first = d->a.window > 0 ? num_cached(d) + depth - d->a.window + 1 : 0;
  return first > 0 ? first : 0;
}

// A token's place is that of its depth: what comes before it in the tree, not beside it, counts for a window.
static bool tree_sees(const ftl_decode *d, int32_t token, int64_t key) {
  int64_t depth = ftl_tree_depth(d->tree, token), other = key - num_cached(d);
  if (key >= d->a.seqlen_kv) return false;
  if (other < 0) return key >= first_seen(d, depth);
  if (!ftl_tree_sees(d->tree, token, (int32_t)other)) return false;
  return d->a.window == 0 || depth - ftl_tree_depth(d->tree, (int32_t)other) < d->a.window;
}

// Key tiles as numbers: those of ftl_key_range.
typedef struct tile_range {
  int64_t first, whole, unmasked, end;
} tile_range;

// Keys before the window of the deepest token are seen by some tokens, those before the tree by all.
static tile_range tree_tiles(const ftl_decode *d) {
  int64_t block_n = d->a.block_n, deepest = 0;
  for (int32_t token = 1; token < d->tree->num_tokens; token++) {
    int64_t depth = ftl_tree_depth(d->tree, token);
    if (depth > deepest) deepest = depth;
  }
  tile_range r = {.first = first_seen(d, 0) / block_n, .end = ftl_divide_up(d->a.seqlen_kv, block_n)};
  r.whole = ftl_smaller(r.end, ftl_divide_up(first_seen(d, deepest), block_n));
  r.unmasked = num_cached(d) / block_n;
  if (r.unmasked < r.whole) r.unmasked = r.whole;
  return r;
}

// ---- bit rows ----

// Of a block mask, with what causal and window leave.
static bool query_sees(const ftl_decode *d, int64_t query, int64_t key) {
  const ftl_block_mask *mask = &d->lists->mask;
  ftl_attention_band band = ftl_attention_band_of(&d->a);
  if (key >= d->a.seqlen_kv || (band.has_right && key > query + band.right)) return false;
  if (band.has_left && key < query + band.left) return false;
  return ftl_block_mask_sees(mask, ftl_block_mask_row(mask, query), key / mask->block_tokens);
}

// Key tile number i of those that a query tile sees in part; -1: there are fewer. tree: of a tree.
static int64_t tile_in_part(const ftl_decode *d, const tile_range *tree, int64_t query_tile, int64_t i) {
  if (d->tree) {
    int64_t num_first = tree->whole - tree->first;
    return i < num_first ? tree->first + i : tree->unmasked + i - num_first;
  }
  const int32_t *ends = &d->lists->ends[2 * query_tile];
  return ends[1] + i < ends[2] ? d->lists->tiles[ends[1] + i] : -1;
}

static void write_row(const ftl_decode *d, const tile_range *tree, int64_t row, int64_t num_tiles, uint32_t *words) {
  int64_t token = d->is_packed ? row % d->a.seqlen_q : row, block_n = d->a.block_n;
  int64_t query_tile = d->is_packed ? 0 : row / d->a.block_m;
  for (int64_t i = 0; i < num_tiles; i++) {
    int64_t tile = tile_in_part(d, tree, query_tile, i);
    for (int64_t k = 0; tile >= 0 && k < block_n; k++) {
      int64_t key = tile * block_n + k, bit = i * block_n + k;
      if (d->tree ? tree_sees(d, (int32_t)token, key) : query_sees(d, token, key))
        words[bit / WORD_BITS] |= UINT32_C(1) << bit % WORD_BITS;
    }
  }
}

// A bit a key of so many tiles, for each row of a head's tiles: packed, the rows of a token are equal.
static ftl_status declare_bits(ftl_decode_keys *keys, ftl_builder *b, const ftl_decode *d, const tile_range *tree,
                               const char *name, int64_t num_tiles, ftl_error *error) {
  int64_t num_keys = num_tiles * d->a.block_n, words_per_row = num_keys / WORD_BITS;
  if (d->a.block_n % WORD_BITS != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "block_n=%d: a word of %s has %d keys, so a multiple", d->a.block_n,
                         name, WORD_BITS);
  if (d->num_rows > MOST_MASK_WORDS / words_per_row)
    return ftl_error_set(error, FTL_INFEASIBLE, "heads=%lld: a %s of %lld rows a KV head and %lld keys",
                         (long long)d->a.heads, name, (long long)d->num_rows, (long long)num_keys);
  uint32_t *words = calloc((size_t)(d->num_rows * words_per_row), sizeof *words);
  if (!words) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a %s", name);
  for (int64_t row = 0; row < d->num_rows; row++) write_row(d, tree, row, num_tiles, words + row * words_per_row);
  keys->bits = ftl_builder_bit_rows(b, name, words, d->num_rows, words_per_row);
  free(words);
  return FTL_OK;
}

// ---- declarations ----

static int64_t most_tiles_in_part(const ftl_tile_lists *lists) {
  int64_t most = 0;
  for (int64_t t = 0; t < lists->num_kept_tiles; t++) {
    int64_t count = lists->ends[2 * t + 2] - lists->ends[2 * t + 1];
    if (count > most) most = count;
  }
  return most;
}

ftl_status ftl_decode_keys_declare(ftl_decode_keys *keys, ftl_builder *b, const ftl_decode *d, ftl_error *error) {
  *keys = (ftl_decode_keys){.bits = -1, .tables = {-1, -1}};
  if (d->tree) {
    tile_range r = tree_tiles(d);
    keys->num_first_tiles = r.whole - r.first;
    return declare_bits(keys, b, d, &r, "tree_mask", keys->num_first_tiles + r.end - r.unmasked, error);
  }
  if (!d->lists) return FTL_OK;
  keys->tables = ftl_tile_lists_declare_tables(b, d->lists);
  return d->lists->rows_differ ? declare_bits(keys, b, d, NULL, "mask_bits", most_tiles_in_part(d->lists), error)
                               : FTL_OK;
}

// ---- ranges ----

static ftl_key_range all_keys(const ftl_decode_keys *keys, ftl_builder *b, const ftl_decode *d, ftl_expr row,
                              ftl_attention_lengths lengths) {
  ftl_expr zero = ftl_const(b, 0);
  if (d->tree) {
    tile_range r = tree_tiles(d);
    return (ftl_key_range){.first = ftl_const(b, r.first),
                           .whole = ftl_const(b, r.whole),
                           .unmasked = ftl_const(b, r.unmasked),
                           .end = ftl_const(b, r.end)};
  }
  if (d->lists) return ftl_tile_lists_range(b, d->lists, keys->tables, d->is_packed ? zero : row);
  // Packed tiles hold rows of any token: the first token's keys are seen by all, the last token's by any.
  ftl_attention every_token = d->a;
  every_token.block_m = (int32_t)d->a.seqlen_q;
  return d->is_packed ? ftl_attention_keys_lengths(b, &every_token, lengths, zero)
                      : ftl_attention_keys_lengths(b, &d->a, lengths, row);
}

void ftl_decode_keys_find(ftl_decode_keys *k, ftl_builder *b, const ftl_decode *d, ftl_expr row,
                          ftl_attention_lengths lengths, ftl_expr split_idx) {
  ftl_key_range all = all_keys(k, b, d, row, lengths);
  ftl_expr per_split = ftl_const(b, d->tiles_per_split);
  k->all = all;
  k->split.first = ftl_add(b, all.first, ftl_mul(b, split_idx, per_split));
  k->split.end = ftl_min(b, ftl_add(b, k->split.first, per_split), all.end);
  k->split.whole =
      all.whole == all.first ? k->split.first : ftl_max(b, k->split.first, ftl_min(b, k->split.end, all.whole));
  k->split.unmasked =
      all.unmasked == all.end ? k->split.end : ftl_max(b, k->split.whole, ftl_min(b, k->split.end, all.unmasked));
}

ftl_expr ftl_decode_keys_tile(const ftl_decode_keys *keys, ftl_builder *b, ftl_expr j) {
  return keys->tables.tiles < 0 ? j : ftl_lookup(b, keys->tables.tiles, j);
}

// ---- masks ----

static void mask_by_bits(const ftl_decode_keys *keys, ftl_builder *b, const ftl_decode *d, ftl_expr row, int32_t scores,
                         ftl_expr j, bool is_first) {
  ftl_expr tile = ftl_max(b, ftl_const(b, 0), ftl_sub(b, j, is_first ? keys->all.first : keys->all.unmasked));
  if (!is_first) tile = ftl_add(b, tile, ftl_const(b, keys->num_first_tiles));
  int32_t words = d->a.block_n / WORD_BITS;
  ftl_mask_bits(b, scores,
                (ftl_tile_ref){.tensor = keys->bits,
                               .batch = ftl_const(b, 0),
                               .head = ftl_const(b, 0),
                               .row = row,
                               .present = FTL_ALWAYS,
                               .rows = (int32_t)ftl_smaller(d->num_rows, d->a.block_m),
                               .columns = words,
                               .column = ftl_mul(b, tile, ftl_const(b, words))});
}

void ftl_decode_keys_mask(const ftl_decode_keys *keys, ftl_builder *b, const ftl_decode *d, ftl_expr row,
                          ftl_attention_lengths lengths, int32_t scores, ftl_expr j, bool is_first) {
  if (keys->bits >= 0) {
    mask_by_bits(keys, b, d, row, scores, j, is_first);
    return;
  }
  ftl_expr key = ftl_mul(b, ftl_decode_keys_tile(keys, b, j), ftl_const(b, d->a.block_n));
  ftl_attention_mask_lengths(b, &d->a, lengths, scores, row, key, d->is_packed ? d->a.seqlen_q : 0);
}
