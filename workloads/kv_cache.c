#include "workloads/kv_cache.h"

#include "base/integer.h"

enum { VECTOR_BYTES = 16, CHUNK_ELEMENTS = 8 };

static ftl_dtype stored_dtype(const ftl_spec *spec) {
  static const ftl_dtype dtypes[] = {[FTL_KV_FP16] = FTL_FP16,
                                     [FTL_KV_BF16] = FTL_BF16,
                                     [FTL_KV_FP8] = FTL_FP8_E4M3,
                                     [FTL_KV_INT8] = FTL_INT8,
                                     [FTL_KV_INT4] = FTL_INT4X2};
  return dtypes[spec->value[FTL_PARAM_kv_dtype]];
}

ftl_kv_cache ftl_kv_cache_of(const ftl_spec *spec) {
  bool as_queries = !ftl_spec_takes(spec, FTL_PARAM_kv_dtype);
  bool paged = ftl_spec_takes(spec, FTL_PARAM_page_size);
  return (ftl_kv_cache){.dtype = ftl_spec_dtype(spec),
                        .stored = as_queries ? ftl_spec_dtype(spec) : stored_dtype(spec),
                        .group_size = (int32_t)spec->value[FTL_PARAM_kv_group_size],
                        .page_size = paged ? spec->value[FTL_PARAM_page_size] : 0};
}

int64_t ftl_kv_cache_token_bytes(const ftl_kv_cache *cache, int64_t columns) {
  int64_t bytes = columns * ftl_dtype_bytes(cache->stored) / ftl_dtype_numbers(cache->stored);
  return ftl_kv_is_quantised(cache) ? bytes + columns / cache->group_size * ftl_dtype_bytes(cache->dtype) : bytes;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void ftl_kv_cache_set_defaults(ftl_spec *spec) {
  bool bf16 = spec->value[FTL_PARAM_dtype] == FTL_SPEC_BF16;
  ftl_spec_set_default(spec, FTL_PARAM_kv_dtype, bf16 ? FTL_KV_BF16 : FTL_KV_FP16);
  ftl_spec_set_default(spec, FTL_PARAM_kv_group_size,
                       greatest_common_divisor(spec->value[FTL_PARAM_head_dim], ftl_spec_head_dim_v(spec)));
}

// Scales of a page come in rows of 16-byte vectors, and whole rows or parts of one make a key tile's.
static ftl_status check_pages(const ftl_spec *spec, const ftl_kv_cache *cache, const char *kv_dtype, ftl_error *error) {
  long long page_size = cache->page_size, block_n = spec->value[FTL_PARAM_block_n];
  int vector = VECTOR_BYTES / ftl_dtype_bytes(cache->dtype);
  if (page_size == 0) return FTL_OK;
  if (page_size % vector != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "page_size=%lld kv_dtype=%s: 16-byte copies of a page's scales need a multiple of %d",
                         page_size, kv_dtype, vector);
  if (page_size % block_n != 0 && block_n % page_size != 0)
    return ftl_error_set(
        error, FTL_INFEASIBLE,
        "page_size=%lld block_n=%lld: with kv_dtype=%s a key tile is whole pages, or a whole part of one", page_size,
        block_n, kv_dtype);
  return FTL_OK;
}

// Of the heads of keys, or of values.
static ftl_status check_columns(const ftl_kv_cache *cache, const char *name, long long columns, const char *kv_dtype,
                                ftl_error *error) {
  int vector = VECTOR_BYTES * ftl_dtype_numbers(cache->stored);
  if (columns % vector != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "%s=%lld kv_dtype=%s: 16-byte copies need a multiple of %d", name,
                         columns, kv_dtype, vector);
  if (cache->group_size == 0 || columns % cache->group_size != 0 || cache->group_size % CHUNK_ELEMENTS != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "kv_group_size=%d: lanes dequantise %d elements with one scale, so a multiple of %d that "
                         "divides %s=%lld",
                         cache->group_size, CHUNK_ELEMENTS, CHUNK_ELEMENTS, name, columns);
  return FTL_OK;
}

ftl_status ftl_kv_cache_check(const ftl_spec *spec, ftl_error *error) {
  ftl_kv_cache cache = ftl_kv_cache_of(spec);
  char kv_dtype[32], dtype[32];
  ftl_spec_text(spec, FTL_PARAM_kv_dtype, kv_dtype);
  ftl_spec_text(spec, FTL_PARAM_dtype, dtype);
  if (!ftl_kv_is_quantised(&cache)) return FTL_OK;
  if (ftl_dtype_bytes(cache.stored) == 2)
    return ftl_error_set(error, FTL_INFEASIBLE, "kv_dtype=%s: 16-bit keys and values have the type of queries, %s",
                         kv_dtype, dtype);
  ftl_status status = check_columns(&cache, "head_dim", spec->value[FTL_PARAM_head_dim], kv_dtype, error);
  if (status == FTL_OK) status = check_columns(&cache, "head_dim_v", ftl_spec_head_dim_v(spec), kv_dtype, error);
  return status != FTL_OK ? status : check_pages(spec, &cache, kv_dtype, error);
}

static ftl_tensor_shape scale_shape(const ftl_kv_cache *cache, const ftl_tensor_shape *keys) {
  int64_t vector = VECTOR_BYTES / ftl_dtype_bytes(cache->dtype), num_groups = keys->num_columns / cache->group_size;
  int64_t row_stride = ftl_divide_up(keys->num_rows, vector) * vector;
  return (ftl_tensor_shape){.num_batches = keys->num_batches,
                            .num_heads = keys->num_heads,
                            .num_rows = num_groups,
                            .num_columns = keys->num_rows,
                            .batch_stride = keys->num_heads * num_groups * row_stride,
                            .head_stride = num_groups * row_stride,
                            .row_stride = row_stride};
}

ftl_kv_stream ftl_kv_stream_declare(ftl_builder *b, const ftl_kv_cache *cache, const char *name,
                                    const char *scales_name, ftl_tensor_shape shape) {
  int numbers = ftl_dtype_numbers(cache->stored);
  ftl_kv_stream stream = {.num_rows = shape.num_rows,
                          .num_columns = shape.num_columns,
                          .page_stride = shape.batch_stride,
                          .scales = -1,
                          .scale_ring = -1};
  if (ftl_kv_is_quantised(cache)) {
    ftl_tensor_shape scales = scale_shape(cache, &shape);
    stream.scales = ftl_builder_tensor(b, scales_name, cache->dtype, FTL_TENSOR_INPUT, scales);
    stream.scale_page_stride = scales.batch_stride;
  }
  shape.num_columns /= numbers;
  shape.batch_stride /= numbers;
  shape.head_stride /= numbers;
  shape.row_stride /= numbers;
  stream.tensor = ftl_builder_tensor(b, name, cache->stored, FTL_TENSOR_INPUT, shape);
  return stream;
}

void ftl_kv_stream_needs(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream, int64_t num_keys) {
  ftl_builder_needs(b, stream->tensor, num_keys * stream->num_columns / ftl_dtype_numbers(cache->stored));
  if (ftl_kv_is_quantised(cache))
    ftl_builder_needs(b, stream->scales, num_keys * stream->num_columns / cache->group_size);
}

// Tokens of a key tile whose scales lie side by side: those of a page, or all.
static int32_t tokens_of_scales(const ftl_kv_cache *cache, int32_t block_n) {
  return cache->page_size > 0 && cache->page_size < block_n ? (int32_t)cache->page_size : block_n;
}

void ftl_kv_stream_rings(ftl_builder *b, const ftl_kv_cache *cache, ftl_kv_stream *stream, const char *const names[3],
                         int32_t role, int32_t block_n, int32_t columns, int32_t num_stages) {
  int32_t readers = 1 << role, numbers = ftl_dtype_numbers(cache->stored);
  bool quantised = ftl_kv_is_quantised(cache);
  stream->ring =
      ftl_builder_ring(b, names[0], cache->dtype, block_n, columns, quantised ? 1 : num_stages, role, readers);
  stream->stored = stream->ring;
  if (!quantised) return;
  stream->stored = ftl_builder_ring(b, names[1], cache->stored, block_n, columns / numbers, num_stages, role, readers);
  int32_t num_groups = (int32_t)stream->num_columns / cache->group_size, tokens = tokens_of_scales(cache, block_n);
  stream->scale_ring =
      ftl_builder_ring(b, names[2], cache->dtype, block_n / tokens * num_groups, tokens, num_stages, role, readers);
}

// A row for each group and page: the pages' tensor has num_groups rows.
static void refer_to_pages_of_scales(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream,
                                     const ftl_tile_ref *keys, ftl_tile_ref *scales) {
  int32_t num_groups = (int32_t)stream->num_columns / cache->group_size, tokens = tokens_of_scales(cache, keys->rows);
  ftl_expr groups = ftl_const(b, num_groups), page_size = ftl_const(b, cache->page_size);
  ftl_expr last = ftl_const(b, cache->page_size - 1);
  scales->row = ftl_mul(b, ftl_div(b, keys->row, page_size), groups);
  scales->row_end = ftl_mul(b, ftl_div(b, ftl_add(b, keys->row_end, last), page_size), groups);
  scales->rows = keys->rows / tokens * num_groups;
  scales->columns = tokens;
  scales->column = keys->rows < cache->page_size ? ftl_mod(b, keys->row, page_size) : ftl_const(b, 0);
  scales->pages.page_rows = num_groups;
  scales->pages.page_stride = stream->scale_page_stride;
}

static ftl_tile_ref scales_of(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream,
                              ftl_tile_ref keys) {
  ftl_tile_ref scales = keys;
  scales.tensor = stream->scales;
  if (cache->page_size > 0) {
    refer_to_pages_of_scales(b, cache, stream, &keys, &scales);
    return scales;
  }
  scales.row = ftl_const(b, 0);
  scales.rows = (int32_t)stream->num_columns / cache->group_size;
  scales.column = keys.row;
  scales.columns = (int32_t)ftl_smaller(keys.rows, stream->num_rows);
  return scales;
}

static void load_tile(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream, ftl_tile_ref ref) {
  ftl_tile_ref stored = ref;
  stored.tensor = stream->tensor;
  stored.columns = (int32_t)stream->num_columns / ftl_dtype_numbers(cache->stored);
  if (cache->page_size > 0) stored.pages.page_stride = stream->page_stride / ftl_dtype_numbers(cache->stored);
  ftl_load(b, stream->stored, stored);
  if (ftl_kv_is_quantised(cache)) ftl_load(b, stream->scale_ring, scales_of(b, cache, stream, ref));
}

static void acquire(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream) {
  ftl_acquire(b, stream->stored);
  if (ftl_kv_is_quantised(cache)) ftl_acquire(b, stream->scale_ring);
}

static void commit(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream) {
  ftl_commit(b, stream->stored);
  if (ftl_kv_is_quantised(cache)) ftl_commit(b, stream->scale_ring);
}

void ftl_kv_streams_load(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *k, const ftl_kv_stream *v,
                         ftl_tile_ref ref) {
  acquire(b, cache, k);
  acquire(b, cache, v);
  load_tile(b, cache, k, ref);
  load_tile(b, cache, v, ref);
  commit(b, cache, k);
  commit(b, cache, v);
}

void ftl_kv_stream_load(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream, ftl_tile_ref ref) {
  acquire(b, cache, stream);
  load_tile(b, cache, stream, ref);
  commit(b, cache, stream);
}

void ftl_kv_stream_wait(ftl_builder *b, const ftl_kv_stream *stream) {
  ftl_wait(b, stream->stored);
  if (stream->stored != stream->ring) ftl_wait(b, stream->scale_ring);
}

void ftl_kv_stream_release(ftl_builder *b, const ftl_kv_stream *stream) {
  ftl_release(b, stream->stored);
  if (stream->stored != stream->ring) ftl_release(b, stream->scale_ring);
}

void ftl_kv_stream_dequantize(ftl_builder *b, const ftl_kv_stream *stream) {
  ftl_acquire(b, stream->ring);
  ftl_dequantize(b, stream->ring, stream->stored, stream->scale_ring);
  ftl_commit(b, stream->ring);
  ftl_kv_stream_release(b, stream);
}
