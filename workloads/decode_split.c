// The first kernel of split-KV decoding: a CTA takes one tile of query rows and one split of the keys, walks the split
// with an online softmax, and writes a partial output, normalised, and its log-sum-exp, both fp32.
// Sources: T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding for long-context inference", 2023; FlashAttention-2,
// csrc/flash_attn/src/flash_fwd_kernel.h (compute_attn_1rowblock_splitkv). Where there are fewer rows than the warps
// could take, groups of warps share each key tile, as kernels/attention/decode_mma.h.
#include <stdio.h>

#include "workloads/decode_keys.h"
#include "workloads/kv_cache.h"
#include "workloads/online_softmax.h"

enum { WARP_ROWS = 16 };

typedef struct split {
  ftl_builder *b;
  ftl_decode d;
  int32_t num_stages, num_warps, num_groups;
  int32_t ring_p;  // of warps side by side
  bool persistent, interleaved;

  int32_t q;  // tensor
  ftl_kv_cache cache;
  ftl_kv_stream k, v;
  ftl_decode_results results;
  int32_t ring_q;
  int32_t output_staging, rows_staging, max_staging;  // of several groups
  int32_t scores, probs, output;                      // values
  ftl_online_softmax softmax;
  ftl_expr split_idx, batch, head, kv_head, row;
  ftl_expr partial;  // the batch of the partial results
  ftl_attention_lengths lengths;
  ftl_pages pages;  // of the sequence's keys
  ftl_decode_keys keys;
} split;

// ---- what cannot exist on any GPU ----

static ftl_status check_groups(const ftl_spec *spec, ftl_error *error) {
  long long block_m = spec->value[FTL_PARAM_block_m], block_n = spec->value[FTL_PARAM_block_n];
  long long num_warps = spec->value[FTL_PARAM_num_warps], rows = WARP_ROWS * num_warps;
  if (spec->value[FTL_PARAM_warps_n] > 1) return ftl_attention_check_warps(spec, error);
  if (block_m % rows == 0) return FTL_OK;
  if (spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: with wgmma each 4 warps need a multiple of 64 rows", block_m,
                         num_warps);
  if (rows % block_m != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: the 16 rows a warp must fit an equal number of times", block_m,
                         num_warps);
  if (block_n % (rows / block_m * WARP_ROWS) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: %lld groups of warps share a key tile, so a multiple of %lld", block_n,
                         rows / block_m, rows / block_m * WARP_ROWS);
  return FTL_OK;
}

// As FlashAttention-2's splitkv kernel has them: of a cache as it is, in warps that stand one below the other.
static ftl_status check_interleaved(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] != FTL_SCHEDULE_INTERLEAVED) return FTL_OK;
  ftl_kv_cache cache = ftl_kv_cache_of(spec);
  if (v[FTL_PARAM_num_stages] != 1)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld: schedule=interleaved has one buffer of K and one of V, num_stages=1",
                         (long long)v[FTL_PARAM_num_stages]);
  bool shares_rows = WARP_ROWS * v[FTL_PARAM_num_warps] > v[FTL_PARAM_block_m] || v[FTL_PARAM_warps_n] > 1;
  if (shares_rows || ftl_kv_is_quantised(&cache) || v[FTL_PARAM_persistent] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "schedule=interleaved: warps of 16 rows each (block_m=%lld, num_warps=%lld), a cache that is "
                         "not quantised, a CTA a tile",
                         (long long)v[FTL_PARAM_block_m], (long long)v[FTL_PARAM_num_warps]);
  return FTL_OK;
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_num_warps] % 4 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "num_warps=%lld: with wgmma it must be a multiple of 4",
                         (long long)v[FTL_PARAM_num_warps]);
  ftl_status status = ftl_attention_check_stages(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_block_n] % 16 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: it is the K of the second matrix product, a multiple of 16",
                         (long long)v[FTL_PARAM_block_n]);
  status = ftl_kv_cache_check(spec, error);
  if (status == FTL_OK) status = check_interleaved(spec, error);
  if (status == FTL_OK) status = ftl_attention_check_warps_n(spec, error);
  return status == FTL_OK ? check_groups(spec, error) : status;
}

// ---- declarations ----

// Query rows as tiles see them; packed, the heads of a group follow each other in both layouts.
static ftl_tensor_shape query_shape(const split *s, const ftl_spec *spec) {
  const ftl_attention *a = &s->d.a;
  ftl_tensor_shape shape = ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim);
  if (!s->d.is_packed) return shape;
  int64_t group = a->heads / a->kv_heads;
  bool head_outside = spec->value[FTL_PARAM_layout] == FTL_LAYOUT_BHSD;
  shape.num_heads = a->kv_heads;
  shape.num_rows = s->d.num_rows;
  shape.row_stride = head_outside || group > 1 ? a->head_dim : shape.row_stride;
  shape.head_stride *= group;
  return shape;
}

// A paged cache: its pages instead of the sequences, with page_size tokens each, heads in them as `layout` says.
static ftl_tensor_shape key_shape(const split *s, const ftl_spec *spec, int64_t columns) {
  const ftl_attention *a = &s->d.a;
  if (!s->d.paged) return ftl_attention_shape(spec, a->kv_heads, a->seqlen_kv, columns);
  ftl_tensor_shape pages = ftl_attention_shape(spec, a->kv_heads, s->d.paged->page_size, columns);
  pages.num_batches = s->d.paged->num_pages;
  return pages;
}

// Of a paged batch a CTA takes a work item: a sequence and a part of its keys.
static void declare_item(split *s, ftl_expr item) {
  ftl_builder *b = s->b;
  const ftl_paged_tables *tables = &s->results.tables;
  s->batch = ftl_lookup(b, tables->item_sequence, item);
  s->split_idx = ftl_lookup(b, tables->item_part, item);
  s->partial = item;
  s->lengths.seqlen_kv = ftl_lookup(b, tables->lengths, s->batch);
  s->lengths.diagonal = ftl_sub(b, s->lengths.seqlen_kv, ftl_const(b, s->d.a.seqlen_q));
  s->pages = (ftl_pages){.page_rows = (int32_t)s->d.paged->page_size,
                         .table = tables->pages,
                         .first_entry = ftl_lookup(b, tables->first_page, s->batch)};
}

static void declare_tile(split *s) {
  ftl_builder *b = s->b;
  const ftl_attention *a = &s->d.a;
  ftl_expr m_tiles = ftl_const(b, s->d.num_m_tiles), heads = ftl_const(b, s->d.num_heads);
  ftl_expr any_head = ftl_div(b, ftl_cta(b), m_tiles), any_batch = ftl_div(b, any_head, heads);
  s->row = ftl_mul(b, ftl_mod(b, ftl_cta(b), m_tiles), ftl_const(b, a->block_m));
  s->head = ftl_mod(b, any_head, heads);
  s->kv_head = ftl_div(b, s->head, ftl_const(b, s->d.num_heads / a->kv_heads));
  if (s->d.paged) {
    declare_item(s, any_batch);
    return;
  }
  s->batch = ftl_mod(b, any_batch, ftl_const(b, a->batch));
  s->split_idx = ftl_div(b, any_batch, ftl_const(b, a->batch));
  s->partial = any_batch;
  s->lengths = ftl_attention_lengths_of(b, a);
}

// ---- staging ----

static int64_t copies_bytes(const split *s, int32_t columns) {
  return (int64_t)s->num_groups * s->d.a.block_m * columns * ftl_dtype_bytes(FTL_FP32);
}

// `ring` where the groups' copies of rows x columns numbers fit into its stages, which are idle by then; else one more.
// Rings have rows of whole 16 bytes: narrower copies are one row.
static int32_t staging_for(const split *s, int32_t ring, const char *name, int64_t ring_bytes, int32_t columns) {
  if (ring_bytes >= copies_bytes(s, columns)) return ring;
  int32_t num_rows = s->num_groups * (int32_t)s->d.a.block_m;
  bool is_narrow = columns * ftl_dtype_bytes(FTL_FP32) < 16;
  return ftl_builder_ring(s->b, name, FTL_FP32, is_narrow ? 1 : num_rows, is_narrow ? num_rows * columns : columns, 1,
                          0, 1);
}

// Of the buffers in which tiles of a quantised cache arrive, scales left out.
static int64_t stored_bytes(const split *s) {
  int64_t columns = s->d.a.padded_head_dim + s->d.a.padded_head_dim_v;
  int64_t numbers = (int64_t)s->num_stages * s->d.a.block_n * columns;
  return ftl_kv_is_quantised(&s->cache) ? numbers / ftl_dtype_numbers(s->cache.stored) : 0;
}

static void declare_staging(split *s) {
  if (s->num_groups == 1) return;
  int64_t row_bytes = (int64_t)s->d.a.padded_head_dim * ftl_dtype_bytes(s->d.a.dtype);
  int64_t row_bytes_v = (int64_t)s->d.a.padded_head_dim_v * ftl_dtype_bytes(s->d.a.dtype);
  // Where the cache is quantised products read from one stage of each.
  int64_t num_stages = ftl_kv_is_quantised(&s->cache) ? 1 : s->num_stages;
  int64_t stages_bytes = num_stages * s->d.a.block_n * row_bytes;
  int64_t stages_bytes_v = num_stages * s->d.a.block_n * row_bytes_v;
  s->output_staging = staging_for(s, s->k.ring, "outputs", stages_bytes, s->d.a.padded_head_dim_v);
  // Outputs, maxima and sums one behind the other in all buffers, which are idle by then.
  int64_t idle_bytes = s->d.a.block_m * row_bytes + stages_bytes + stages_bytes_v + stored_bytes(s);
  if (s->output_staging != s->k.ring && idle_bytes >= copies_bytes(s, s->d.a.padded_head_dim_v + 2))
    ftl_builder_overlay(s->b, s->output_staging);
  s->rows_staging = staging_for(s, s->v.ring, "maxima and sums", stages_bytes_v, 2);
  s->max_staging = staging_for(s, s->ring_q, "maxima", s->d.a.block_m * row_bytes, 1);
}

// Keys that some query sees: a key that sequences share counts once.
static void declare_needs(const split *s) {
  const ftl_attention *a = &s->d.a;
  int64_t of_sequence = s->d.lists ? s->d.lists->num_keys : ftl_attention_num_keys_seen(a);
  int64_t num_keys = s->d.paged ? s->d.paged->num_seen_slots : a->batch * of_sequence;
  ftl_kv_stream_needs(s->b, &s->cache, &s->k, a->kv_heads * num_keys);
  ftl_kv_stream_needs(s->b, &s->cache, &s->v, a->kv_heads * num_keys);
  if (s->d.paged) ftl_builder_needs(s->b, s->results.tables.pages, s->d.paged->num_seen_entries);
}

static int32_t tile_of(const split *s, const char *name, ftl_dtype dtype, int32_t columns) {
  int32_t tile = ftl_builder_tile(s->b, name, dtype, s->d.a.block_m, columns);
  if (s->d.a.warps_n > 1) ftl_builder_side_by_side(s->b, s->d.a.warps_n);
  return tile;
}

static ftl_status declare(split *s, const ftl_spec *spec, ftl_error *error) {
  const ftl_attention *a = &s->d.a;
  ftl_builder *b = s->b;
  s->results = ftl_decode_declare(b, spec, &s->d, FTL_DECODE_BY_TILES);
  s->q = ftl_builder_tensor(b, "q", a->dtype, FTL_TENSOR_INPUT, query_shape(s, spec));
  s->k = ftl_kv_stream_declare(b, &s->cache, "k", "k_scales", key_shape(s, spec, a->head_dim));
  s->v = ftl_kv_stream_declare(b, &s->cache, "v", "v_scales", key_shape(s, spec, a->head_dim_v));
  declare_needs(s);
  ftl_status status = ftl_decode_keys_declare(&s->keys, b, &s->d, error);
  if (status != FTL_OK) return status;
  int32_t role = ftl_builder_role(b, "main", s->num_warps, 0), columns = a->padded_head_dim,
          columns_v = a->padded_head_dim_v;
  ftl_builder_groups(b, s->num_groups);
  s->ring_q = ftl_builder_ring(b, "q", a->dtype, a->block_m, columns, 1, role, 1 << role);
  // Of an operand of 16 rows that has fewer the kernel zeroes the others: it loads, waits and stores, before it asks
  // for any key (kernels/attention/decode_mma.h, load_queries; Triton's loads of queries).
  if (s->num_groups > 1 || a->warps_n > 1) ftl_builder_through_registers(b, s->ring_q);
  static const char *const k_rings[] = {"k", "k stored", "k scales"}, *const v_rings[] = {"v", "v stored", "v scales"};
  ftl_kv_stream_rings(b, &s->cache, &s->k, k_rings, role, a->block_n, columns, s->num_stages);
  ftl_kv_stream_rings(b, &s->cache, &s->v, v_rings, role, a->block_n, columns_v, s->num_stages);
  declare_staging(s);
  if (a->warps_n > 1) s->ring_p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, 1, role, 1 << role);
  s->scores = tile_of(s, "s", FTL_FP32, a->block_n / s->num_groups);
  s->probs = tile_of(s, "p", a->dtype, a->block_n / s->num_groups);
  s->output = tile_of(s, "o", FTL_FP32, columns_v);
  s->softmax = ftl_online_softmax_declare(b, a->block_m, a);
  if (a->warps_n > 1) ftl_online_softmax_exchange(b, &s->softmax, role, a->block_m);
  if (s->num_groups > 1 && a->sums_each_step) ftl_online_softmax_share(b, &s->softmax, role, a->block_m, s->num_groups);
  declare_tile(s);
  ftl_decode_keys_find(&s->keys, b, &s->d, s->row, s->lengths, s->split_idx);
  return FTL_OK;
}

// ---- loads and stores ----

static ftl_tile_ref rows_ref(const split *s, int32_t tensor, ftl_expr batch, int32_t columns) {
  int64_t rows = s->d.num_rows < s->d.a.block_m ? s->d.num_rows : s->d.a.block_m;
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = batch,
                        .head = s->head,
                        .row = s->row,
                        .present = FTL_ALWAYS,
                        .rows = (int32_t)rows,
                        .columns = columns};
}

static void load_queries(const split *s) {
  ftl_fill_stage(s->b, s->ring_q, rows_ref(s, s->q, s->batch, s->d.a.head_dim));
}

static ftl_tile_ref keys_ref(const split *s, ftl_expr j) {
  return (ftl_tile_ref){.batch = s->d.paged ? ftl_const(s->b, 0) : s->batch,
                        .head = s->kv_head,
                        .row = ftl_mul(s->b, ftl_decode_keys_tile(&s->keys, s->b, j), ftl_const(s->b, s->d.a.block_n)),
                        .present = ftl_sub(s->b, s->keys.split.end, j),
                        .rows = s->d.a.block_n,
                        .row_end = s->d.paged ? s->lengths.seqlen_kv : FTL_TENSOR_END,
                        .pages = s->pages};
}

static void load_ahead(const split *s, ftl_expr j) {
  ftl_kv_streams_load(s->b, &s->cache, &s->k, &s->v, keys_ref(s, j));
}

static void store_partial(const split *s) {
  ftl_tile_ref output = rows_ref(s, s->results.partial_o, s->partial, s->d.a.head_dim_v);
  if (s->num_groups > 1) {
    ftl_online_softmax_store_groups(s->b, &s->softmax, output, s->output, s->output_staging, s->rows_staging);
    // Another ring than those that slower warps may still read.
    ftl_online_softmax_merge_groups(s->b, &s->softmax, s->max_staging, s->rows_staging);
  } else {
    ftl_online_softmax_finish(s->b, &s->softmax, s->output);
    ftl_store(s->b, output, s->output, -1);
  }
  ftl_store_rows(s->b, rows_ref(s, s->results.partial_lse, s->partial, 1), s->softmax.max);
}

// ---- the kernel ----

// Of a key tile's scores, what has to be hidden.
typedef enum part { PART_WHOLE, PART_FIRST, PART_LAST } part;

static void mask_scores(const split *s, ftl_expr j, part seen) {
  if (seen == PART_WHOLE) return;
  ftl_decode_keys_mask(&s->keys, s->b, &s->d, s->row, s->lengths, s->scores, j, seen == PART_FIRST);
}

static void dequantize(const split *s) {
  ftl_kv_stream_dequantize(s->b, &s->k);
  ftl_kv_stream_dequantize(s->b, &s->v);
  ftl_wait(s->b, s->k.ring);
  ftl_wait(s->b, s->v.ring);
}

// Tiles that are asked for ahead. One buffer is filled again at the end of a step, when all have read it.
static int32_t num_ahead(const split *s) {
  if (s->interleaved) return 0;
  return s->num_stages > 1 ? s->num_stages - 1 : 1;
}

// K and V of a tile are waited for together, and with two buffers or more the tile num_stages - 1 ahead is asked for at
// once.
static void iterate(const split *s, ftl_expr j, part seen) {
  ftl_builder *b = s->b;
  ftl_expr next = ftl_add(b, j, ftl_const(b, num_ahead(s)));
  ftl_kv_stream_wait(b, &s->k);
  ftl_kv_stream_wait(b, &s->v);
  if (s->num_stages > 1) load_ahead(s, next);
  if (ftl_kv_is_quantised(&s->cache)) dequantize(s);
  ftl_fill(b, s->scores, 0.0f);
  ftl_mma_shared(b, s->scores, s->ring_q, s->k.ring, true);
  ftl_release(b, s->k.ring);
  mask_scores(s, j, seen);
  ftl_online_softmax_step(b, &s->softmax, s->scores, seen != PART_WHOLE);
  ftl_convert(b, s->probs, s->scores);
  ftl_elem(b, FTL_ELEM_MUL, s->output, ftl_value_operand(s->output), ftl_value_operand(s->softmax.correction),
           ftl_immediate(0));
  if (s->d.a.warps_n > 1)
    ftl_online_softmax_multiply_exchanged(b, &s->softmax, s->output, s->probs, s->ring_p, s->v.ring);
  else
    ftl_mma_value(b, s->output, s->probs, s->v.ring, false);
  ftl_release(b, s->v.ring);
  if (s->num_stages > 1) return;
  ftl_barrier(b);
  load_ahead(s, next);
}

static void load_k(const split *s, ftl_expr j, ftl_expr present) {
  ftl_tile_ref tile = keys_ref(s, j);
  tile.present = present;
  ftl_kv_stream_load(s->b, &s->cache, &s->k, tile);
}

// One buffer each, from the last tile to the first: V is fetched during QK^T, the next K during softmax and PV.
static void iterate_interleaved(const split *s, ftl_expr j, part seen) {
  ftl_builder *b = s->b;
  ftl_tile_ref values = keys_ref(s, j);
  values.present = FTL_ALWAYS;
  ftl_kv_stream_wait(b, &s->k);
  ftl_kv_stream_load(b, &s->cache, &s->v, values);
  ftl_fill(b, s->scores, 0.0f);
  ftl_mma_shared(b, s->scores, s->ring_q, s->k.ring, true);
  ftl_release(b, s->k.ring);
  mask_scores(s, j, seen);
  ftl_kv_stream_wait(b, &s->v);
  load_k(s, ftl_sub(b, j, ftl_const(b, 1)), ftl_sub(b, j, s->keys.split.first));
  ftl_online_softmax_step(b, &s->softmax, s->scores, seen != PART_WHOLE);
  ftl_convert(b, s->probs, s->scores);
  ftl_binary(b, FTL_ELEM_MUL, s->output, s->output, ftl_value_operand(s->softmax.correction));
  ftl_mma_value(b, s->output, s->probs, s->v.ring, false);
  ftl_release(b, s->v.ring);
}

static void loop_interleaved(const split *s, ftl_expr lo, ftl_expr hi, part seen) {
  ftl_builder *b = s->b;
  if (lo == hi) return;
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_sub(b, hi, lo)));
  iterate_interleaved(s, ftl_sub(b, ftl_sub(b, hi, ftl_const(b, 1)), i), seen);
  ftl_end_loop(b);
}

static void loop(const split *s, ftl_expr lo, ftl_expr hi, part seen) {
  if (lo == hi) return;
  iterate(s, ftl_loop_value(s->b, ftl_loop(s->b, lo, hi)), seen);
  ftl_end_loop(s->b);
}

static void prologue(const split *s) {
  const ftl_key_range *keys = &s->keys.split;
  load_queries(s);
  if (s->interleaved) load_k(s, ftl_sub(s->b, keys->end, ftl_const(s->b, 1)), ftl_sub(s->b, keys->end, keys->first));
  for (int32_t i = 0; i < num_ahead(s); i++) load_ahead(s, ftl_add(s->b, s->keys.split.first, ftl_const(s->b, i)));
  ftl_fill(s->b, s->output, 0.0f);
  ftl_online_softmax_start(s->b, &s->softmax);
  ftl_wait(s->b, s->ring_q);
}

// The stages that were prefetched past the split are empty: they are read off before their memory has another use.
static void drain(const split *s) {
  for (int32_t i = 0; i < num_ahead(s); i++) {
    ftl_kv_stream_wait(s->b, &s->k);
    ftl_kv_stream_wait(s->b, &s->v);
  }
  for (int32_t i = 0; i < num_ahead(s); i++) {
    ftl_kv_stream_release(s->b, &s->k);
    ftl_kv_stream_release(s->b, &s->v);
  }
}

static void epilogue(const split *s) {
  ftl_release(s->b, s->ring_q);
  if (s->persistent || s->num_groups > 1) drain(s);
  store_partial(s);
}

static void build(split *s) {
  const ftl_key_range *keys = &s->keys.split;
  prologue(s);
  if (s->interleaved) {
    loop_interleaved(s, keys->unmasked, keys->end, PART_LAST);
    loop_interleaved(s, keys->whole, keys->unmasked, PART_WHOLE);
    loop_interleaved(s, keys->first, keys->whole, PART_FIRST);
  } else {
    loop(s, keys->first, keys->whole, PART_FIRST);
    loop(s, keys->whole, keys->unmasked, PART_WHOLE);
    loop(s, keys->unmasked, keys->end, PART_LAST);
  }
  epilogue(s);
}

static int64_t num_ctas(const split *s) {
  int64_t parts = s->d.paged ? s->d.paged->num_items : s->d.a.batch * s->d.splits;
  return s->d.num_m_tiles * s->d.num_heads * parts;
}

static int64_t paged_flops(const split *s) {
  ftl_attention a = s->d.a;
  int64_t sum = 0;
  a.batch = 1;
  for (int64_t i = 0; i < s->d.paged->batch; i++) {
    a.seqlen_kv = s->d.paged->lengths[i];
    a.diagonal = a.seqlen_kv - a.seqlen_q;
    sum += ftl_attention_forward_flops(&a);
  }
  return sum;
}

// K and V of all layers are alike: of one of them.
static ftl_cache_memory cache_memory(const split *s) {
  const ftl_paged_batch *paged = s->d.paged;
  int64_t head_bytes =
      ftl_kv_cache_token_bytes(&s->cache, s->d.a.head_dim) + ftl_kv_cache_token_bytes(&s->cache, s->d.a.head_dim_v);
  int64_t token_bytes = s->d.a.kv_heads * head_bytes, tokens = 0;
  for (int64_t i = 0; i < paged->batch; i++) tokens += paged->lengths[i];
  return (ftl_cache_memory){.page_bytes = paged->num_pages * paged->page_size * token_bytes,
                            .filled_bytes = paged->num_filled_slots * token_bytes,
                            .contiguous_bytes = paged->batch * s->d.a.seqlen_kv * token_bytes,
                            .contiguous_filled_bytes = tokens * token_bytes};
}

static int64_t model_flops(const split *s) {
  const ftl_attention *a = &s->d.a;
  if (s->d.paged) return paged_flops(s);
  if (s->d.lists) return ftl_attention_flops_of_pairs(a, s->d.lists->num_pairs);
  if (!s->d.tree) return ftl_attention_forward_flops(a);
  return ftl_attention_flops_of_pairs(a, ftl_tree_num_pairs(s->d.tree, a->seqlen_kv - a->seqlen_q, a->window));
}

ftl_status ftl_decode_build_split(const ftl_spec *spec, const ftl_decode *d, ftl_tile_program **out, ftl_error *error) {
  char name[FTL_TILE_NAME_BYTES];
  ftl_status status = check_feasible(spec, error);
  if (status != FTL_OK) return status;
  split s = {.d = *d,
             .cache = ftl_kv_cache_of(spec),
             .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages],
             .num_warps = (int32_t)spec->value[FTL_PARAM_num_warps],
             .persistent = spec->value[FTL_PARAM_persistent] != 0,
             .interleaved = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED};
  bool has_groups = s.num_warps * WARP_ROWS > s.d.a.block_m && s.d.a.warps_n == 1;
  s.num_groups = has_groups ? s.num_warps * WARP_ROWS / s.d.a.block_m : 1;
  snprintf(name, sizeof name, "%s_split", spec->workload->name);
  status = ftl_builder_create(&s.b, name, error);
  if (status != FTL_OK) return status;
  status = declare(&s, spec, error);
  if (status == FTL_OK) {
    ftl_builder_grid(s.b, num_ctas(&s), s.persistent, FTL_TILES_BY_STRIDE);
    ftl_builder_flops(s.b, model_flops(&s));
    if (d->paged) ftl_builder_cache_memory(s.b, cache_memory(&s));
    build(&s);
    status = ftl_builder_finish(s.b, out, error);
  }
  ftl_builder_destroy(s.b);
  return status;
}
