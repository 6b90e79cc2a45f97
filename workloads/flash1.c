#include "workloads/flash1.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { MAX_WRITTEN_OUT = 8, MOST_VECTOR = 4, STEP_ROWS = 16 };

int64_t ftl_flash1_num_key_blocks(const ftl_attention *a, const ftl_packed_batch *packed) {
  int64_t longest = packed == NULL ? a->seqlen_kv : 0;
  for (int64_t i = 0; packed != NULL && i < packed->num_sequences; i++)
    if (packed->lengths[i] > longest) longest = packed->lengths[i];
  return ftl_divide_up(longest, a->block_n);
}

ftl_status ftl_flash1_pack(ftl_packed_batch **out, const ftl_spec *spec, ftl_error *error) {
  return ftl_packed_batch_create(out, spec, spec->value[FTL_PARAM_seqlen_kv], error);
}

ftl_flash1 ftl_flash1_of(ftl_builder *b, const ftl_spec *spec, const ftl_tile_lists *lists,
                         const ftl_packed_batch *packed) {
  ftl_flash1 f = {.spec = spec,
                  .b = b,
                  .lists = lists->tiles != NULL ? lists : NULL,
                  .packed = packed,
                  .a = ftl_attention_of(spec),
                  .num_warps = (int32_t)spec->value[FTL_PARAM_num_warps],
                  .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages]};
  f.num_splits = ftl_larger(1, spec->value[FTL_PARAM_splits]);
  f.num_key_blocks = ftl_flash1_num_key_blocks(&f.a, packed);
  return f;
}

// Where CTAs of one split follow those of the one before, each has all heads.
static ftl_expr take_split(ftl_flash1 *f, ftl_expr head_of_all) {
  ftl_expr heads = ftl_const(f->b, f->a.heads);
  f->split = f->num_splits > 1 ? ftl_div(f->b, head_of_all, heads) : ftl_const(f->b, 0);
  return f->num_splits > 1 ? ftl_mod(f->b, head_of_all, heads) : head_of_all;
}

static ftl_expr kv_head_of(const ftl_flash1 *f, ftl_expr head) {
  return ftl_div(f->b, head, ftl_const(f->b, f->a.heads / f->a.kv_heads));
}

// The library's grid: sequences first, which the tiles of a packed batch are, then heads, then splits.
static void set_packed_tile(ftl_flash1 *f) {
  ftl_packed_tile packed = ftl_packed_batch_tile(f->b, f->spec, f->packed, &f->a);
  f->tile = packed.tile;
  f->tile.head = take_split(f, packed.tile.head);
  if (f->num_splits > 1) f->tile.kv_head = kv_head_of(f, f->tile.head);
  f->lengths = packed.lengths;
  f->origin = packed.origin;
  f->row_end = packed.row_end;
}

void ftl_flash1_set_tile(ftl_flash1 *f) {
  ftl_builder *b = f->b;
  if (f->packed != NULL) {
    set_packed_tile(f);
    return;
  }
  ftl_expr heads = ftl_const(b, f->a.heads), cta = ftl_cta(b), all = ftl_const(b, f->a.batch * f->a.heads);
  f->split = f->num_splits > 1 ? ftl_div(b, cta, all) : ftl_const(b, 0);
  if (f->num_splits > 1) cta = ftl_mod(b, cta, all);
  ftl_expr head = ftl_mod(b, cta, heads), batch = ftl_div(b, cta, heads);
  f->tile = (ftl_attention_tile){
      .batch = batch, .sequence = batch, .head = head, .kv_head = kv_head_of(f, head), .row = ftl_const(b, 0)};
  f->lengths = ftl_attention_lengths_of(b, &f->a);
  f->origin = ftl_const(b, 0);
  f->row_end = FTL_TENSOR_END;
}

void ftl_flash1_grid(const ftl_flash1 *f) {
  int64_t num_sequences = f->packed != NULL ? f->packed->num_sequences : f->a.batch;
  ftl_builder_grid(f->b, num_sequences * f->a.heads * f->num_splits, false, FTL_TILES_BY_STRIDE);
}

ftl_tile_ref ftl_flash1_ref(const ftl_flash1 *f, int32_t tensor, ftl_expr head, ftl_expr row, int32_t rows,
                            int32_t columns) {
  ftl_tile_ref ref = ftl_attention_query_ref(&f->tile, tensor, row, rows, columns);
  ref.head = head;
  return ftl_packed_ref(f->b, f->origin, f->row_end, ref);
}

ftl_tile_ref ftl_flash1_keys_ref(const ftl_flash1 *f, const ftl_flash1_block *block, int32_t tensor, int32_t columns) {
  ftl_tile_ref ref = ftl_flash1_ref(f, tensor, f->tile.kv_head, block->key, f->a.block_n, columns);
  if (block->listed >= 0) ref.present = ftl_sub(f->b, block->end, block->first);
  return ref;
}

ftl_tile_ref ftl_flash1_rows_ref(const ftl_flash1 *f, int32_t tensor, ftl_expr row, int32_t columns) {
  return ftl_flash1_ref(f, tensor, f->tile.head, row, f->a.block_m, columns);
}

bool ftl_flash1_is_masked(const ftl_flash1 *f) {
  return f->a.causal || f->packed != NULL || f->a.seqlen_kv % f->a.block_n != 0;
}

ftl_status ftl_flash1_check(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t num_warps = v[FTL_PARAM_num_warps], block_m = v[FTL_PARAM_block_m], block_n = v[FTL_PARAM_block_n];
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE, "mma=wgmma: the warps of FlashAttention-1 share the keys: mma=mma");
  if (block_m != STEP_ROWS)
    return ftl_error_set(error, FTL_INFEASIBLE, "block_m=%lld: a step of FlashAttention-1 has %d queries",
                         (long long)block_m, STEP_ROWS);
  if (block_n % (16 * num_warps) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld num_warps=%lld: the warps share the keys of a block, each a multiple of 16",
                         (long long)block_n, (long long)num_warps);
  if (v[FTL_PARAM_splits] > 1 && v[FTL_PARAM_mask] != FTL_MASK_NONE)
    return ftl_error_set(error, FTL_INFEASIBLE, "splits=%lld: the lists of a mask are of a whole head: allowed is 1",
                         (long long)v[FTL_PARAM_splits]);
  return ftl_attention_check_stages(spec, error);
}

// As the library chose on GPUs with the shared memory of an A100 (csrc/flash_attn/fmha_fprop_fp16_kernel.sm80.cu).
void ftl_flash1_set_defaults(ftl_spec *spec) {
  ftl_spec_set_default(spec, FTL_PARAM_mma, FTL_SPEC_MMA_MMA);
  ftl_spec_set_default(spec, FTL_PARAM_block_m, STEP_ROWS);
  ftl_spec_set_default(spec, FTL_PARAM_block_n, ftl_spec_widest_head(spec) <= 64 ? 256 : 128);
}

ftl_value_layout ftl_flash1_row_layout(const ftl_flash1 *f, int32_t columns) {
  ftl_value_layout layout = {.vector_columns = 1, .threads_per_row = 1};
  for (int32_t vector = MOST_VECTOR; vector >= 1; vector /= 2)
    for (int32_t threads = FTL_WARP_LANES; threads >= 1; threads /= 2) {
      int32_t rows_at_once = f->num_warps * FTL_WARP_LANES / threads;
      if (columns % (threads * vector) == 0 && f->a.block_m % rows_at_once == 0)
        return (ftl_value_layout){.threads_per_row = threads, .vector_columns = vector};
    }
  return layout;
}

// ---- blocks of keys ----

// What `unit` tokens divide the CTA's sequence into.
static ftl_expr num_parts(const ftl_flash1 *f, int64_t unit) {
  return ftl_div(f->b, ftl_add(f->b, f->lengths.seqlen_kv, ftl_const(f->b, unit - 1)), ftl_const(f->b, unit));
}

// Packed sequences have as many queries as keys.
static ftl_expr num_query_tiles(const ftl_flash1 *f) {
  return f->packed != NULL ? num_parts(f, f->a.block_m) : ftl_const(f->b, f->a.num_m_tiles);
}

// How many of the tiles before `tile` are the CTA's.
static ftl_expr own_tiles_before(const ftl_flash1 *f, ftl_expr tile) {
  ftl_builder *b = f->b;
  if (f->num_splits == 1) return tile;
  ftl_expr splits = ftl_const(b, f->num_splits), behind = ftl_sub(b, ftl_const(b, f->num_splits - 1), f->split);
  return ftl_div(b, ftl_add(b, tile, behind), splits);
}

// The first block is for rows that see no key, too.
static void set_place(const ftl_flash1 *f, ftl_expr index, ftl_flash1_block *block) {
  ftl_builder *b = f->b;
  block->index = index;
  block->key = ftl_mul(b, index, ftl_const(b, f->a.block_n));
  block->listed = -1;
  block->first = block->seen = ftl_const(b, 0);
  ftl_expr end = num_query_tiles(f);
  block->end = own_tiles_before(f, end);
  if (!f->a.causal || block->is_first) return;
  ftl_expr sees = ftl_max(b, ftl_const(b, 0), ftl_sub(b, block->key, ftl_const(b, f->a.diagonal)));
  ftl_expr first = ftl_min(b, end, ftl_div(b, sees, ftl_const(b, f->a.block_m)));
  block->first = block->seen = own_tiles_before(f, first);
}

static void walk_listed(const ftl_flash1 *f, ftl_flash1_block_fn fn, void *context) {
  ftl_builder *b = f->b;
  ftl_expr index = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_const(b, f->num_key_blocks)));
  ftl_flash1_block block = {.index = index, .key = ftl_mul(b, index, ftl_const(b, f->a.block_n)), .in_loop = true};
  ftl_listed_tiles listed = ftl_tile_lists_declare(b, f->lists, block.key);
  block.listed = listed.tiles;
  block.first = listed.range.first;
  block.seen = listed.range.unmasked;
  block.end = listed.range.end;
  fn(context, &block);
  ftl_end_loop(b);
}

void ftl_flash1_each_block(const ftl_flash1 *f, ftl_flash1_block_fn fn, void *context) {
  ftl_builder *b = f->b;
  if (f->lists != NULL) {
    walk_listed(f, fn, context);
    return;
  }
  bool written_out = f->num_key_blocks <= MAX_WRITTEN_OUT && (f->packed == NULL || f->num_key_blocks == 1);
  for (int64_t i = 0; i < (written_out ? f->num_key_blocks : 1); i++) {
    ftl_flash1_block block = {.is_first = i == 0, .is_last = i == f->num_key_blocks - 1};
    set_place(f, ftl_const(b, i), &block);
    fn(context, &block);
  }
  if (written_out) return;
  ftl_flash1_block block = {.in_loop = true};
  ftl_expr end = f->packed != NULL ? num_parts(f, f->a.block_n) : ftl_const(b, f->num_key_blocks);
  set_place(f, ftl_loop_value(b, ftl_loop(b, ftl_const(b, 1), end)), &block);
  fn(context, &block);
  ftl_end_loop(b);
}

// Rows of a head whose tiles see keys beyond the first block, which all tiles walk.
static int64_t num_rows_beyond_first(const ftl_attention *a, int64_t seqlen_q, int64_t seqlen_kv) {
  if (seqlen_kv <= a->block_n) return 0;
  if (!a->causal) return seqlen_q;
  int64_t first_seeing = ftl_larger(0, a->block_n - (seqlen_kv - seqlen_q));  // a query of that block's tile
  return ftl_larger(0, seqlen_q - first_seeing / a->block_m * a->block_m);
}

// Those of a list see a block last that was not their first.
static int64_t num_rows_in_two_blocks(const ftl_flash1 *f) {
  const ftl_tile_lists *lists = f->lists;
  int64_t rows = 0;
  for (int64_t block = 0; block < lists->num_kept_tiles; block++)
    for (int32_t i = lists->ends[2 * block + 1]; i < lists->ends[2 * block + 2]; i++) {
      int64_t row = (int64_t)(lists->tiles[i] / 2) * f->a.block_m;
      if (lists->tiles[i] % 2 == 1) rows += ftl_smaller(f->a.block_m, f->a.seqlen_q - row);
    }
  return rows;
}

int64_t ftl_flash1_num_partial_rows(const ftl_flash1 *f) {
  int64_t rows = 0;
  if (f->lists != NULL) return f->a.batch * f->a.heads * num_rows_in_two_blocks(f);
  if (f->packed == NULL) return f->a.batch * f->a.heads * num_rows_beyond_first(&f->a, f->a.seqlen_q, f->a.seqlen_kv);
  for (int64_t i = 0; i < f->packed->num_sequences; i++)
    rows += num_rows_beyond_first(&f->a, f->packed->lengths[i], f->packed->lengths[i]);
  return f->a.heads * rows;
}

// The first key that no query of the tile at `row` sees.
static ftl_expr end_of_keys(const ftl_flash1 *f, ftl_expr row) {
  ftl_builder *b = f->b;
  ftl_expr seqlen_kv = f->lengths.seqlen_kv;
  if (!f->a.causal) return seqlen_kv;
  ftl_expr last_sees = ftl_add(b, row, ftl_const(b, f->a.diagonal + f->a.block_m));
  return ftl_min(b, seqlen_kv, ftl_max(b, ftl_const(b, 0), last_sees));
}

ftl_expr ftl_flash1_row(const ftl_flash1 *f, const ftl_flash1_block *block, ftl_expr step) {
  ftl_builder *b = f->b;
  ftl_expr tile = step;
  if (f->num_splits > 1) tile = ftl_add(b, f->split, ftl_mul(b, step, ftl_const(b, f->num_splits)));
  if (block->listed >= 0) tile = ftl_div(b, ftl_lookup(b, block->listed, step), ftl_const(b, 2));
  return ftl_mul(b, tile, ftl_const(b, f->a.block_m));
}

bool ftl_flash1_try_restrict(const ftl_flash1 *f, const ftl_flash1_block *block, ftl_expr step, bool final,
                             ftl_tile_ref *ref) {
  ftl_builder *b = f->b;
  if (block->listed >= 0) {
    ftl_expr is_last = ftl_mod(b, ftl_lookup(b, block->listed, step), ftl_const(b, 2));
    ref->present = final ? is_last : ftl_sub(b, ftl_const(b, 1), is_last);
    return final || f->num_key_blocks > 1;
  }
  bool is_known = !f->a.causal && !block->in_loop && f->packed == NULL;
  if (block->is_last || is_known) return final == block->is_last;
  ftl_expr end_of_block = ftl_add(b, block->key, ftl_const(b, f->a.block_n));
  ftl_expr keys_after = ftl_sub(b, end_of_keys(f, ftl_flash1_row(f, block, step)), end_of_block);
  ref->present = final ? ftl_sub(b, ftl_const(b, 1), keys_after) : keys_after;
  return true;
}

// ---- block masks ----

enum { NOT_SEEN = -1 };

// Which block of keys each query tile sees first, and which last.
typedef struct seen_blocks {
  int32_t *first, *last;
  bool *now;  // of the block that is looked at
} seen_blocks;

static void find_seen(const ftl_tile_lists *lists, const seen_blocks *seen) {
  for (int64_t block = 0; block < lists->num_kept_tiles; block++)
    for (int32_t i = lists->ends[2 * block]; i < lists->ends[2 * block + 2]; i++) {
      int32_t tile = lists->tiles[i];
      if (seen->first[tile] == NOT_SEEN) seen->first[tile] = (int32_t)block;
      seen->last[tile] = (int32_t)block;
    }
}

// A block's entries in the order of the tiles, those that see it first before the others.
static void sort_block(ftl_tile_lists *lists, const seen_blocks *seen, int64_t block, int64_t num_tiles) {
  int32_t at = lists->ends[2 * block], end = lists->ends[2 * block + 2];
  bool *sees = seen->now;
  memset(sees, 0, (size_t)num_tiles * sizeof *sees);
  for (int32_t i = at; i < end; i++) sees[lists->tiles[i]] = true;
  for (int is_seen = 0; is_seen < 2; is_seen++) {
    for (int32_t tile = 0; tile < num_tiles; tile++)
      if (sees[tile] && (seen->first[tile] < block) == is_seen)
        lists->tiles[at++] = 2 * tile + (seen->last[tile] == block);
    if (!is_seen) lists->ends[2 * block + 1] = at;
  }
}

static ftl_status order_by_blocks(ftl_tile_lists *lists, const ftl_spec *spec, const seen_blocks *seen,
                                  int64_t num_tiles, ftl_error *error) {
  for (int64_t tile = 0; tile < num_tiles; tile++) seen->first[tile] = NOT_SEEN;
  find_seen(lists, seen);
  for (int64_t tile = 0; tile < num_tiles; tile++)
    if (seen->first[tile] == NOT_SEEN)
      return ftl_error_set(error, FTL_INFEASIBLE,
                           "mask: %s needs a block of keys for every query tile, and one sees none",
                           spec->workload->name);
  for (int64_t block = 0; block < lists->num_kept_tiles; block++) sort_block(lists, seen, block, num_tiles);
  return FTL_OK;
}

ftl_status ftl_flash1_lists_init(ftl_tile_lists *lists, const ftl_spec *spec, ftl_error *error) {
  ftl_tile_walk walk = {
      .kept_tokens = spec->value[FTL_PARAM_block_n], .step_tokens = spec->value[FTL_PARAM_block_m], .keeps_keys = true};
  ftl_status status = ftl_tile_lists_init(lists, spec, walk, error);
  if (status != FTL_OK || lists->tiles == NULL) return status;
  int64_t num_tiles = ftl_divide_up(spec->value[FTL_PARAM_seqlen_q], spec->value[FTL_PARAM_block_m]);
  seen_blocks seen = {.first = malloc((size_t)num_tiles * sizeof *seen.first),
                      .last = malloc((size_t)num_tiles * sizeof *seen.last),
                      .now = malloc((size_t)num_tiles * sizeof *seen.now)};
  status = seen.first && seen.last && seen.now ? order_by_blocks(lists, spec, &seen, num_tiles, error)
                                               : ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  free(seen.first);
  free(seen.last);
  free(seen.now);
  if (status != FTL_OK) ftl_tile_lists_fini(lists);
  return status;
}
