#include "workloads/decode.h"

#include "base/integer.h"
#include "workloads/kv_cache.h"

static int64_t tile_tokens(const ftl_decode *d) {
  return d->is_packed ? d->a.seqlen_q : ftl_smaller(d->a.seqlen_q, d->a.block_m);
}

static void split(ftl_decode *d, int64_t tiles_n) {
  d->tiles_n = tiles_n;
  if (d->splits > 0) d->tiles_per_split = ftl_divide_up(tiles_n, d->splits);
}

ftl_decode ftl_decode_of(const ftl_spec *spec) {
  ftl_decode d = {.a = ftl_attention_of(spec)};
  if ((spec->workload->accepts & FTL_TAKES_TREE) != 0) d.a.causal = true;  // no token sees one that comes after it
  int64_t group = d.a.heads / d.a.kv_heads;
  d.is_packed = group == 1 || d.a.seqlen_q == 1 || spec->value[FTL_PARAM_layout] == FTL_LAYOUT_BHSD;
  d.num_heads = d.is_packed ? d.a.kv_heads : d.a.heads;
  d.num_rows = d.is_packed ? group * d.a.seqlen_q : d.a.seqlen_q;
  d.num_m_tiles = ftl_divide_up(d.num_rows, d.a.block_m);
  d.splits = spec->value[FTL_PARAM_splits];
  // A window is split, not the keys before it (FlashAttention-3's num_splits does the same).
  split(&d, ftl_attention_most_key_tiles(&d.a, tile_tokens(&d)));
  return d;
}

ftl_status ftl_decode_list_keys(ftl_decode *d, const ftl_spec *spec, ftl_tile_lists *lists, ftl_error *error) {
  ftl_tile_walk walk = {.kept_tokens = tile_tokens(d), .step_tokens = d->a.block_n, .in_any_rows = true};
  ftl_status status = ftl_tile_lists_init(lists, spec, walk, error);
  if (status != FTL_OK || lists->tiles == NULL) return status;
  d->lists = lists;
  split(d, lists->most_tiles);
  return FTL_OK;
}

// Splits beyond this one would be empty: as many tiles a split as with one split less.
static bool is_new(int64_t splits, int64_t num_tiles_n) {
  return splits == 1 || ftl_divide_up(num_tiles_n, splits) != ftl_divide_up(num_tiles_n, splits - 1);
}

// CTAs over the CTAs that the waves they need could hold.
typedef struct filling {
  int64_t num_ctas, room;
} filling;

static filling filling_of(int64_t num_ctas, int64_t at_once) {
  return (filling){num_ctas, ftl_divide_up(num_ctas, at_once) * at_once};
}

int64_t ftl_decode_num_splits(int64_t num_tiles_m, int64_t num_ctas_at_once, int64_t num_tiles_n) {
  enum { MAX_SPLITS = 128, ENOUGH_PCT = 80, WITHIN_PCT = 85 };
  if (100 * num_tiles_m >= ENOUGH_PCT * num_ctas_at_once) return 1;
  int64_t most = MAX_SPLITS;
  if (most > num_ctas_at_once) most = num_ctas_at_once;
  if (most > num_tiles_n) most = num_tiles_n;
  filling best = {0, 1};
  for (int64_t splits = 1; splits <= most; splits++) {
    filling f = filling_of(num_tiles_m * splits, num_ctas_at_once);
    if (is_new(splits, num_tiles_n) && f.num_ctas * best.room > best.num_ctas * f.room) best = f;
  }
  for (int64_t splits = 1; splits <= most; splits++) {
    filling f = filling_of(num_tiles_m * splits, num_ctas_at_once);
    if (is_new(splits, num_tiles_n) && 100 * f.num_ctas * best.room >= WITHIN_PCT * best.num_ctas * f.room)
      return splits;
  }
  return 1;
}

bool ftl_decode_is_flat(const ftl_spec *spec, const ftl_decode *d) {
  return d->paged == NULL && (d->a.seqlen_q == 1 || spec->value[FTL_PARAM_layout] == FTL_LAYOUT_BHSD);
}

ftl_decode_results ftl_decode_declare(ftl_builder *b, const ftl_spec *spec, const ftl_decode *d, ftl_decode_view view) {
  const ftl_attention *a = &d->a;
  bool split_major = view != FTL_DECODE_BY_TILES, flat = view == FTL_DECODE_FLAT;
  int64_t of_split = d->paged ? 1 : a->batch;  // sequences that a partial result of all heads has
  int64_t partials = d->paged ? d->paged->num_items : d->splits * a->batch;
  int64_t batches = split_major ? partials / of_split : partials, heads = split_major ? 1 : d->num_heads;
  int64_t rows = split_major ? of_split * a->heads * a->seqlen_q : d->num_rows;
  ftl_decode_results r;
  r.partial_o = ftl_builder_tensor(b, "partial_o", FTL_FP32, FTL_TENSOR_TEMP,
                                   ftl_contiguous(batches, heads, rows, a->head_dim_v));
  r.partial_lse =
      ftl_builder_tensor(b, "partial_lse", FTL_FP32, FTL_TENSOR_TEMP, ftl_contiguous(batches, heads, rows, 1));
  r.o = ftl_builder_tensor(b, "o", a->dtype, FTL_TENSOR_OUTPUT,
                           flat ? ftl_contiguous(1, 1, rows, a->head_dim_v)
                                : ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim_v));
  r.lse = ftl_builder_tensor(b, "lse", FTL_FP32, FTL_TENSOR_OUTPUT,
                             flat ? ftl_contiguous(1, 1, rows, 1) : ftl_contiguous(a->batch, a->heads, a->seqlen_q, 1));
  if (d->paged) r.tables = ftl_paged_batch_declare(b, d->paged);
  return r;
}

void ftl_decode_set_defaults(ftl_spec *spec) {
  enum { LEAST = 16, MOST = 64 };
  const int64_t *v = spec->value;
  int64_t rows = v[FTL_PARAM_heads] / v[FTL_PARAM_kv_heads] * v[FTL_PARAM_seqlen_q], block_m = LEAST;
  while (block_m < rows && block_m < MOST) block_m *= 2;
  ftl_spec_set_default(spec, FTL_PARAM_block_m, block_m);
  ftl_kv_cache_set_defaults(spec);
}

void ftl_decode_resolve_splits(ftl_spec *spec, const ftl_decode *d, const ftl_arch *arch) {
  enum { CTAS_PER_SM = 2 };  // as FlashAttention-2 counts, with its CTAs of 128 threads
  if (spec->value[FTL_PARAM_splits] > 0) return;
  spec->value[FTL_PARAM_splits] =
      ftl_decode_num_splits(d->num_m_tiles * d->num_heads * d->a.batch, CTAS_PER_SM * arch->chip_num_sms, d->tiles_n);
}

ftl_status ftl_decode_build(const ftl_spec *spec, const ftl_decode *d, ftl_tile_program **launches, int *num_launches,
                            ftl_error *error) {
  *num_launches = 0;
  ftl_status status = ftl_decode_build_split(spec, d, &launches[0], error);
  if (status != FTL_OK) return status;
  *num_launches = 1;
  status = ftl_decode_build_combine(spec, d, &launches[1], error);
  if (status == FTL_OK) *num_launches = 2;
  return status;
}
