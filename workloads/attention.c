#include "workloads/attention.h"

#include <math.h>

#include "base/integer.h"
#include "tile/dropout.h"

// The K of a product in bytes, on every architecture that pads to it or to a divisor of it.
enum { MMA_K_BYTES = 32, WARPS_PER_GROUP = 4 };

// The output tile of CUTLASS's fused attention has as many columns as the keys' tile.
static int32_t padded_head_dim_v(const ftl_spec *spec, int32_t head_dim_v, int32_t unit) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] == FTL_SCHEDULE_BACK_TO_BACK) return (int32_t)v[FTL_PARAM_block_n];
  return ftl_round_up32(head_dim_v, unit);
}

// Lean code that copies by cp.async, or by TMA without a producer: by tensor descriptors.
static bool is_by_triton(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_no_producer = v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA && v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES;
  return v[FTL_PARAM_code] == FTL_CODE_LEAN && (has_no_producer || v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC);
}

ftl_attention ftl_attention_of(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  int32_t head_dim = (int32_t)v[FTL_PARAM_head_dim], head_dim_v = (int32_t)ftl_spec_head_dim_v(spec);
  int32_t mma_k = MMA_K_BYTES / ftl_dtype_bytes(ftl_spec_dtype(spec));
  int32_t multiple = (int32_t)v[FTL_PARAM_head_dim_multiple];  // 0 of workloads that do not take it
  int32_t unit = multiple > mma_k ? ftl_round_up32(multiple, mma_k) : mma_k;
  return (ftl_attention){
      .batch = v[FTL_PARAM_batch],
      .heads = v[FTL_PARAM_heads],
      .kv_heads = v[FTL_PARAM_kv_heads],
      .seqlen_q = v[FTL_PARAM_seqlen_q],
      .seqlen_kv = v[FTL_PARAM_seqlen_kv],
      .head_dim = head_dim,
      .head_dim_v = head_dim_v,
      .padded_head_dim = ftl_round_up32(head_dim, unit),
      .padded_head_dim_v = padded_head_dim_v(spec, head_dim_v, unit),
      .block_m = (int32_t)v[FTL_PARAM_block_m],
      .block_n = (int32_t)v[FTL_PARAM_block_n],
      .num_m_tiles = ftl_divide_up(v[FTL_PARAM_seqlen_q], v[FTL_PARAM_block_m]),
      .dtype = ftl_spec_dtype(spec),
      .causal = v[FTL_PARAM_causal] != 0,
      .diagonal = v[FTL_PARAM_seqlen_kv] - v[FTL_PARAM_seqlen_q],
      .window = v[FTL_PARAM_window],
      .dropout_p = ftl_spec_real(spec, FTL_PARAM_dropout_p),
      .scaling = (int32_t)v[FTL_PARAM_scaling],
      .warps_n = v[FTL_PARAM_warps_n] > 1 ? (int32_t)v[FTL_PARAM_warps_n] : 1,
      .repeats_scores = v[FTL_PARAM_warps_n] > 1 && v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA,
      .sums_each_step = v[FTL_PARAM_row_sums] == FTL_ROW_SUMS_STEP || v[FTL_PARAM_row_sums] == FTL_ROW_SUMS_BEHIND,
      .sums_behind = v[FTL_PARAM_row_sums] == FTL_ROW_SUMS_BEHIND,
      .guards_each_step = v[FTL_PARAM_guard] == FTL_GUARD_ALWAYS,
      .precise_end = is_by_triton(spec),
      .scale = v[FTL_PARAM_softmax_scale] > 0 ? (float)ftl_spec_real(spec, FTL_PARAM_softmax_scale)
                                              : 1.0f / sqrtf((float)head_dim),
  };
}

ftl_attention_band ftl_attention_band_of(const ftl_attention *a) {
  bool windowed = a->window > 0;
  return (ftl_attention_band){.has_left = windowed,
                              .has_right = a->causal || windowed,
                              .left = a->diagonal - (a->window - 1),
                              .right = a->causal ? a->diagonal : a->diagonal + a->window - 1};
}

bool ftl_attention_may_see_none(const ftl_attention *a) {
  ftl_attention_band band = ftl_attention_band_of(a);
  return band.has_right && band.right < 0;
}

int64_t ftl_attention_first_seeing_query(const ftl_attention *a) {
  return ftl_attention_may_see_none(a) ? -ftl_attention_band_of(a).right : 0;
}

// Without a window the last query sees all. Windows of neighbours overlap, so that together they have no gaps.
int64_t ftl_attention_num_keys_seen(const ftl_attention *a) {
  ftl_attention_band band = ftl_attention_band_of(a);
  if (!band.has_left || band.left < 0) return a->seqlen_kv;
  return a->seqlen_kv - band.left;
}

void ftl_attention_needs_keys(ftl_builder *b, const ftl_attention *a, int32_t k, int32_t v, int64_t num_keys) {
  int64_t num_rows = a->batch * a->kv_heads * num_keys;
  ftl_builder_needs(b, k, num_rows * a->head_dim);
  ftl_builder_needs(b, v, num_rows * a->head_dim_v);
}

void ftl_attention_needs_pairs(ftl_builder *b, const ftl_attention *a, int32_t tensor) {
  if (ftl_attention_band_of(a).has_right)
    ftl_builder_needs(b, tensor, a->batch * a->heads * ftl_attention_num_pairs(a));
}

// The window of the first query and the keys that come in sight of those behind it.
int64_t ftl_attention_most_key_tiles(const ftl_attention *a, int64_t num_queries) {
  int64_t tiles = ftl_divide_up(a->seqlen_kv, a->block_n);
  ftl_attention_band band = ftl_attention_band_of(a);
  if (!band.has_left) return tiles;
  int64_t keys = band.right - band.left + num_queries;
  return ftl_smaller(tiles, ftl_divide_up(keys - 1, a->block_n) + 1);
}

ftl_attention_lengths ftl_attention_lengths_of(ftl_builder *b, const ftl_attention *a) {
  return (ftl_attention_lengths){.seqlen_kv = ftl_const(b, a->seqlen_kv), .diagonal = ftl_const(b, a->diagonal)};
}

// A bound of the band for a sequence whose diagonal is an expression.
static ftl_expr bound_of(ftl_builder *b, const ftl_attention *a, ftl_attention_lengths lengths, int64_t bound) {
  return ftl_add(b, lengths.diagonal, ftl_const(b, bound - a->diagonal));
}

void ftl_attention_mask_lengths(ftl_builder *b, const ftl_attention *a, ftl_attention_lengths lengths, int32_t scores,
                                ftl_expr query, ftl_expr key, int64_t period) {
  ftl_attention_band band = ftl_attention_band_of(a);
  ftl_expr right = band.has_right ? bound_of(b, a, lengths, band.right) : FTL_ALWAYS;
  ftl_mask_heads(b, scores, query, key, right, lengths.seqlen_kv, period);
  if (band.has_left) ftl_mask_left(b, bound_of(b, a, lengths, band.left));
}

void ftl_attention_mask_transposed(ftl_builder *b, const ftl_attention *a, ftl_attention_lengths lengths,
                                   int32_t scores, ftl_expr key, ftl_expr query) {
  ftl_attention_band band = ftl_attention_band_of(a);
  ftl_expr right = band.has_right ? bound_of(b, a, lengths, band.right) : FTL_ALWAYS;
  ftl_mask_transposed(b, scores, key, query, right, lengths.seqlen_kv);
  if (band.has_left) ftl_mask_left(b, bound_of(b, a, lengths, band.left));
}

static ftl_expr dropout_sequence(ftl_builder *b, const ftl_attention *a, const ftl_attention_tile *tile) {
  return ftl_add(b, ftl_mul(b, tile->sequence, ftl_const(b, a->heads)), tile->head);
}

void ftl_attention_dropout(ftl_builder *b, const ftl_attention *a, const ftl_attention_tile *tile, int32_t probs,
                           ftl_expr query, ftl_expr key) {
  if (a->dropout_p == 0) return;
  ftl_dropout(b, probs, dropout_sequence(b, a, tile), query, key, ftl_dropout_threshold(a->dropout_p));
}

void ftl_attention_dropout_by_sign(ftl_builder *b, const ftl_attention *a, const ftl_attention_tile *tile,
                                   int32_t probs, ftl_expr query, ftl_expr key, bool transposed) {
  if (a->dropout_p == 0) return;
  ftl_dropout_by_sign(b, probs, dropout_sequence(b, a, tile), transposed ? key : query, transposed ? query : key,
                      ftl_dropout_threshold(a->dropout_p), transposed);
}

float ftl_attention_dropout_scale(const ftl_attention *a) { return (float)(1.0 / (1.0 - a->dropout_p)); }

ftl_status ftl_attention_check_dropout(const ftl_spec *spec, ftl_error *error) {
  int64_t block_n = spec->value[FTL_PARAM_block_n];
  if (spec->value[FTL_PARAM_dropout_p] == 0 || block_n % FTL_DROPOUT_COLUMNS == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_n=%lld: with dropout_p random numbers come for %d keys at a time, a multiple of that",
                       (long long)block_n, FTL_DROPOUT_COLUMNS);
}

// The sum of 1 .. x.
static int64_t triangle(int64_t x) { return x <= 0 ? 0 : x * (x + 1) / 2; }

// Pairs (i, j) with j <= i + bound: the sum over the queries of i + bound + 1 held between 0 and num_keys.
static int64_t pairs_up_to(int64_t num_queries, int64_t num_keys, int64_t bound) {
  int64_t last = bound + num_queries, whole = last > num_keys ? last - num_keys : 0;
  int64_t whole_before = bound > num_keys ? bound - num_keys : 0;
  return triangle(last) - triangle(whole) - (triangle(bound) - triangle(whole_before));
}

ftl_dtype ftl_attention_out_dtype(const ftl_attention *a) { return ftl_dtype_is_fp8(a->dtype) ? FTL_BF16 : a->dtype; }

int64_t ftl_attention_pairs_within(const ftl_attention *a, int64_t query, int64_t num_queries, int64_t key,
                                   int64_t num_keys) {
  ftl_attention_band band = ftl_attention_band_of(a);
  int64_t shift = query - key, pairs = num_queries * num_keys;
  if (band.has_right) pairs = pairs_up_to(num_queries, num_keys, band.right + shift);
  return band.has_left ? pairs - pairs_up_to(num_queries, num_keys, band.left - 1 + shift) : pairs;
}

int64_t ftl_attention_num_pairs(const ftl_attention *a) {
  return ftl_attention_pairs_within(a, 0, a->seqlen_q, 0, a->seqlen_kv);
}

int64_t ftl_attention_flops_of_pairs(const ftl_attention *a, int64_t num_pairs) {
  return 2 * (a->head_dim + a->head_dim_v) * a->heads * a->batch * num_pairs;
}

int64_t ftl_attention_flops_of_columns(const ftl_attention *a, int64_t forward_flops, int64_t columns) {
  return forward_flops / (a->head_dim + a->head_dim_v) * columns;
}

int64_t ftl_attention_forward_flops(const ftl_attention *a) {
  return ftl_attention_flops_of_pairs(a, ftl_attention_num_pairs(a));
}

ftl_tensor_shape ftl_attention_shape(const ftl_spec *spec, int64_t num_heads, int64_t num_rows, int64_t num_columns) {
  bool head_outside = spec->value[FTL_PARAM_layout] == FTL_LAYOUT_BHSD;
  return (ftl_tensor_shape){
      .num_batches = spec->value[FTL_PARAM_batch],
      .num_heads = num_heads,
      .num_rows = num_rows,
      .num_columns = num_columns,
      .batch_stride = num_heads * num_rows * num_columns,
      .head_stride = head_outside ? num_rows * num_columns : num_columns,
      .row_stride = head_outside ? num_columns : num_heads * num_columns,
  };
}

ftl_tensor_shape ftl_attention_shape_of_rows(const ftl_attention *a) {
  return (ftl_tensor_shape){.num_batches = a->batch,
                            .num_heads = a->heads,
                            .num_rows = a->seqlen_q,
                            .num_columns = 1,
                            .batch_stride = a->heads * a->seqlen_q,
                            .head_stride = a->seqlen_q,
                            .row_stride = 1};
}

ftl_attention_tensors ftl_attention_declare(ftl_builder *b, const ftl_spec *spec, const ftl_attention *a) {
  ftl_tensor_shape queries = ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim);
  ftl_tensor_shape keys = ftl_attention_shape(spec, a->kv_heads, a->seqlen_kv, a->head_dim);
  ftl_tensor_shape values = ftl_attention_shape(spec, a->kv_heads, a->seqlen_kv, a->head_dim_v);
  ftl_tensor_shape outputs = ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim_v);
  ftl_tensor_shape rows = ftl_attention_shape_of_rows(a);
  ftl_attention_tensors t;
  t.q = ftl_builder_tensor(b, "q", a->dtype, FTL_TENSOR_INPUT, queries);
  t.k = ftl_builder_tensor(b, "k", a->dtype, FTL_TENSOR_INPUT, keys);
  t.v = ftl_builder_tensor(b, "v", a->dtype, FTL_TENSOR_INPUT, values);
  t.o = ftl_builder_tensor(b, "o", ftl_attention_out_dtype(a), FTL_TENSOR_OUTPUT, outputs);
  t.lse = ftl_builder_tensor(b, "lse", FTL_FP32, FTL_TENSOR_OUTPUT, rows);
  ftl_attention_needs_keys(b, a, t.k, t.v, ftl_attention_num_keys_seen(a));
  return t;
}

void ftl_attention_set_l2_priorities(ftl_builder *b, const ftl_spec *spec, const ftl_attention_tensors *t) {
  static const struct {
    ftl_param param;
    ftl_l2_priority priority;
  } asked[] = {{FTL_PARAM_l2_persist, FTL_L2_EVICT_LAST}, {FTL_PARAM_l2_evict_first, FTL_L2_EVICT_FIRST}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    int64_t of = spec->value[asked[i].param];
    if (of == FTL_L2_OF_NONE) continue;
    ftl_builder_l2_priority(b, of == FTL_L2_OF_QO ? t->q : t->k, asked[i].priority);
    ftl_builder_l2_priority(b, of == FTL_L2_OF_QO ? t->o : t->v, asked[i].priority);
  }
}

static ftl_tile_ref tile_ref(const ftl_attention_tile *tile, int32_t tensor, ftl_expr head, ftl_expr row, int32_t rows,
                             int32_t columns) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = tile->batch,
                        .head = head,
                        .row = row,
                        .present = FTL_ALWAYS,
                        .rows = rows,
                        .columns = columns};
}

ftl_tile_ref ftl_attention_query_ref(const ftl_attention_tile *tile, int32_t tensor, ftl_expr row, int32_t rows,
                                     int32_t columns) {
  return tile_ref(tile, tensor, tile->head, row, rows, columns);
}

ftl_tile_ref ftl_attention_key_ref(const ftl_attention_tile *tile, int32_t tensor, ftl_expr row, int32_t rows,
                                   int32_t columns) {
  return tile_ref(tile, tensor, tile->kv_head, row, rows, columns);
}

ftl_status ftl_attention_check_stages(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_copy] != FTL_SPEC_COPY_LDG || v[FTL_PARAM_num_stages] <= 2) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "num_stages=%lld: copy=ldg keeps one tile in flight, in registers, so at most 2",
                       (long long)v[FTL_PARAM_num_stages]);
}

ftl_status ftl_attention_check_warps_n(const ftl_spec *spec, ftl_error *error) {
  enum { COLUMNS = 16, INSTRUCTION_COLUMNS = 8 };  // of a block that a warp packs and stores at once; of a wgmma's N
  const int64_t *v = spec->value;
  int64_t warps_n = v[FTL_PARAM_warps_n];
  int32_t padded = ftl_attention_of(spec).padded_head_dim_v;
  bool wgmma = v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA, is_apart = ftl_spec_head_dim_v(spec) != v[FTL_PARAM_head_dim];
  if (warps_n <= 1) return FTL_OK;
  int64_t warps = wgmma ? WARPS_PER_GROUP * warps_n : warps_n,
          columns = (wgmma ? INSTRUCTION_COLUMNS : COLUMNS) * warps_n;
  int64_t keys = v[FTL_PARAM_dropout_p] != 0 && !wgmma ? FTL_DROPOUT_COLUMNS * warps_n : columns;
  if (v[FTL_PARAM_num_warps] % warps == 0 && v[FTL_PARAM_block_n] % keys == 0 && padded % columns == 0) return FTL_OK;
  return ftl_error_set(
      error, FTL_INFEASIBLE,
      "warps_n=%lld: num_warps=%lld must be a multiple of %lld, block_n=%lld of %lld, and %s %d of %lld",
      (long long)warps_n, (long long)v[FTL_PARAM_num_warps], (long long)warps, (long long)v[FTL_PARAM_block_n],
      (long long)keys, is_apart ? "head_dim_v" : "head_dim", padded, (long long)columns);
}

ftl_status ftl_attention_check_warps(const ftl_spec *spec, ftl_error *error) {
  int64_t block_m = spec->value[FTL_PARAM_block_m], num_warps = spec->value[FTL_PARAM_num_warps];
  if (spec->value[FTL_PARAM_warps_n] > 1) num_warps /= spec->value[FTL_PARAM_warps_n];
  bool wgmma = spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA;
  if (!wgmma && block_m % (16 * num_warps) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: with mma each warp needs a multiple of 16 rows",
                         (long long)block_m, (long long)num_warps);
  if (wgmma && num_warps % WARPS_PER_GROUP != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "num_warps=%lld: with wgmma it must be a multiple of 4",
                         (long long)spec->value[FTL_PARAM_num_warps]);
  bool may_share = ftl_spec_takes(spec, FTL_PARAM_warps_n) && 16 * num_warps % block_m == 0;
  if (wgmma && block_m % (16 * num_warps) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: with wgmma each 4 warps need a multiple of 64 rows%s",
                         (long long)block_m, (long long)spec->value[FTL_PARAM_num_warps],
                         may_share ? "; with warps_n they share the columns of V, as in Triton" : "");
  return FTL_OK;
}

ftl_attention_tile ftl_attention_tile_of(ftl_builder *b, const ftl_spec *spec, const ftl_attention *a) {
  return ftl_attention_tile_at(b, spec, a, ftl_cta(b));
}

// Of one sequence, or heads that share no keys, the order decides nothing but addresses: they are taken as they lie in
// memory, so that one is as far from the next everywhere.
static bool sequences_first(const ftl_spec *spec, const ftl_attention *a) {
  return spec->value[FTL_PARAM_head_order] == FTL_SEQUENCES_FIRST && a->batch > 1 && a->kv_heads < a->heads;
}

ftl_attention_tile ftl_attention_tile_at(ftl_builder *b, const ftl_spec *spec, const ftl_attention *a, ftl_expr cta) {
  bool m_first = spec->value[FTL_PARAM_tile_order] == FTL_ORDER_M_FIRST;
  ftl_expr num_m_tiles = ftl_const(b, a->num_m_tiles), heads = ftl_const(b, a->heads);
  // head_first runs through the heads of all sequences before the next query tile.
  ftl_expr all_heads = ftl_const(b, a->heads * spec->value[FTL_PARAM_batch]);
  // A cluster is so many query tiles of one head in a row.
  ftl_expr size = ftl_const(b, ftl_spec_cluster(spec).m), cluster = ftl_div(b, cta, size);
  ftl_expr any_head = m_first ? ftl_div(b, cta, num_m_tiles) : ftl_mod(b, cluster, all_heads);
  ftl_expr first_m_tile = ftl_mul(b, ftl_div(b, cluster, all_heads), size);
  ftl_expr m_tile = m_first ? ftl_mod(b, cta, num_m_tiles) : ftl_add(b, first_m_tile, ftl_mod(b, cta, size));
  bool by_head = sequences_first(spec, a);
  ftl_expr inner = by_head ? ftl_const(b, spec->value[FTL_PARAM_batch]) : heads;
  ftl_expr outer_idx = ftl_div(b, any_head, inner), inner_idx = ftl_mod(b, any_head, inner);
  ftl_expr batch = by_head ? inner_idx : outer_idx, head = by_head ? outer_idx : inner_idx;
  if (spec->value[FTL_PARAM_tile_reverse]) m_tile = ftl_sub(b, ftl_const(b, a->num_m_tiles - 1), m_tile);
  return (ftl_attention_tile){
      .batch = batch,
      .head = head,
      .kv_head = ftl_div(b, head, ftl_const(b, a->heads / a->kv_heads)),
      .sequence = batch,
      .row = ftl_mul(b, m_tile, ftl_const(b, a->block_m)),
  };
}

// The number of tiles of block_n keys that hold `keys` keys.
static ftl_expr num_tiles(ftl_builder *b, const ftl_attention *a, ftl_expr keys) {
  return ftl_div(b, ftl_add(b, keys, ftl_const(b, a->block_n - 1)), ftl_const(b, a->block_n));
}

// Of the query tile's rows the first is the first to see a key and the last the last to lose sight of it.
ftl_key_range ftl_attention_keys_lengths(ftl_builder *b, const ftl_attention *a, ftl_attention_lengths lengths,
                                         ftl_expr row) {
  ftl_attention_band band = ftl_attention_band_of(a);
  ftl_expr zero = ftl_const(b, 0), seqlen_kv = lengths.seqlen_kv, block_n = ftl_const(b, a->block_n);
  ftl_expr seen_by_all = seqlen_kv, seen_by_any = seqlen_kv;
  if (band.has_right) {
    ftl_expr first_row_sees = ftl_add(b, row, bound_of(b, a, lengths, band.right + 1));
    ftl_expr last_row_sees = ftl_add(b, row, bound_of(b, a, lengths, band.right + a->block_m));
    seen_by_all = ftl_min(b, seqlen_kv, ftl_max(b, zero, first_row_sees));
    seen_by_any = ftl_min(b, seqlen_kv, ftl_max(b, zero, last_row_sees));
  }
  ftl_key_range keys = {
      .first = zero, .whole = zero, .unmasked = ftl_div(b, seen_by_all, block_n), .end = num_tiles(b, a, seen_by_any)};
  if (!band.has_left) return keys;
  ftl_expr unseen_by_all = ftl_max(b, zero, ftl_add(b, row, bound_of(b, a, lengths, band.left)));
  ftl_expr unseen_by_any = ftl_max(b, zero, ftl_add(b, row, bound_of(b, a, lengths, band.left + a->block_m - 1)));
  keys.first = ftl_min(b, keys.end, ftl_div(b, unseen_by_all, block_n));
  keys.whole = ftl_min(b, keys.end, num_tiles(b, a, unseen_by_any));
  keys.unmasked = ftl_max(b, keys.whole, keys.unmasked);
  return keys;
}

bool ftl_attention_masks_all_steps(const ftl_spec *spec) {
  int64_t steps = spec->value[FTL_PARAM_mask_steps];
  bool of_windows = steps == FTL_MASK_STEPS_WINDOW || steps == FTL_MASK_STEPS_UNROLLED;
  return steps == FTL_MASK_STEPS_ALL || (of_windows && spec->value[FTL_PARAM_window] > 0);
}

ftl_key_range ftl_attention_keys(ftl_builder *b, const ftl_attention *a, ftl_expr row) {
  return ftl_attention_keys_lengths(b, a, ftl_attention_lengths_of(b, a), row);
}
