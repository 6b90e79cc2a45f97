// Keys or values that a kernel streams from a cache, as they are or quantised: fp8 (e4m3), int8, or int4 in pairs, each
// group of kv_group_size adjacent elements of a token with a scale of the queries' type. A quantised tile is copied as
// it is stored and dequantised to a second buffer in shared memory, from which products read it.
//
// Scales lie [batch][kv head][group][token], so that those of a key tile are rows of adjacent numbers; in a paged cache
// [page][kv head][group][token of the page], and a tile's are those of its pages one after another. Source of
// per-token group scales: Y. Sheng et al., "FlexGen", arXiv:2303.06865, section 4; Z. Liu et al., "KIVI",
// arXiv:2402.02750, of which this is the per-token half for both K and V.
#ifndef FTL_WORKLOADS_KV_CACHE_H
#define FTL_WORKLOADS_KV_CACHE_H

#include "tile/builder.h"
#include "workloads/spec.h"

typedef struct ftl_kv_cache {
  ftl_dtype dtype, stored;  // of products, and in memory: the same where nothing is quantised
  int32_t group_size;       // elements of a token that share a scale
  int64_t page_size;        // tokens; 0: keys follow each other
} ftl_kv_cache;

// Of a workload without these parameters: as queries.
ftl_kv_cache ftl_kv_cache_of(const ftl_spec *spec);
// kv_dtype as dtype, kv_group_size a whole row (the most elements that divide a key and a value), where the user left
// them open.
void ftl_kv_cache_set_defaults(ftl_spec *spec);
// FTL_INFEASIBLE, with the reason, where head_dim, head_dim_v, kv_group_size and kv_dtype do not go together.
FTL_MUST_USE ftl_status ftl_kv_cache_check(const ftl_spec *spec, ftl_error *error);

// Bytes of a token's key, or value, of one head of so many columns, with its scales.
int64_t ftl_kv_cache_token_bytes(const ftl_kv_cache *cache, int64_t columns);

// K or V: `ring` is what products read; `stored` and `scale_ring` what copies fill (stored == ring: not quantised).
typedef struct ftl_kv_stream {
  int32_t tensor, scales, ring, stored, scale_ring;
  int64_t num_rows, num_columns;  // keys (of a page), head_dim or head_dim_v
  int64_t page_stride;            // elements
  int64_t scale_page_stride;      // elements
} ftl_kv_stream;

// Before the role. `shape`: of a head's columns, in elements of the products' type. Names: "k" or "v".
ftl_kv_stream ftl_kv_stream_declare(ftl_builder *b, const ftl_kv_cache *cache, const char *name,
                                    const char *scales_name, ftl_tensor_shape shape);
// Only so many keys are needed, those of all sequences and KV heads together.
void ftl_kv_stream_needs(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream, int64_t num_keys);
// Within the role that fills and reads: block_n keys a stage, of `columns` columns (padding included).
void ftl_kv_stream_rings(ftl_builder *b, const ftl_kv_cache *cache, ftl_kv_stream *stream, const char *const names[3],
                         int32_t role, int32_t block_n, int32_t columns, int32_t num_stages);
// Fills a stage of K and one of V with the rows that `ref` names, copied as one group; its columns, and where pages
// lie, are those of the stream.
void ftl_kv_streams_load(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *k, const ftl_kv_stream *v,
                         ftl_tile_ref ref);
// Fills a stage of one of them, which is not quantised, likewise.
void ftl_kv_stream_load(ftl_builder *b, const ftl_kv_cache *cache, const ftl_kv_stream *stream, ftl_tile_ref ref);
// A stage as it was stored has arrived; it is free again.
void ftl_kv_stream_wait(ftl_builder *b, const ftl_kv_stream *stream);
void ftl_kv_stream_release(ftl_builder *b, const ftl_kv_stream *stream);
// After the wait: makes the stage what products read. To be waited for again as `ring`, and released as that.
void ftl_kv_stream_dequantize(ftl_builder *b, const ftl_kv_stream *stream);

static inline bool ftl_kv_is_quantised(const ftl_kv_cache *cache) { return cache->stored != cache->dtype; }

#endif
