// What attention workloads share: tensors in their layouts, the grid's coordinates, which key tiles a query tile
// visits.
#ifndef FTL_WORKLOADS_ATTENTION_H
#define FTL_WORKLOADS_ATTENTION_H

#include "tile/builder.h"
#include "workloads/spec.h"

// A completed spec's problem, with names.
typedef struct ftl_attention {
  int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv;
  int32_t head_dim, head_dim_v;  // columns of Q and K; of V and O
  // To head_dim_multiple, and the K of the MMA: columns in shared memory and in the MMAs.
  int32_t padded_head_dim, padded_head_dim_v;
  int32_t block_m, block_n;
  int64_t num_m_tiles;
  ftl_dtype dtype;
  bool causal;
  int64_t diagonal;       // causal: query i sees key j only if j <= i + diagonal (aligned at the bottom right)
  int64_t window;         // 0: none
  double dropout_p;       // 0: no dropout
  float scale;            // of the scores
  int32_t scaling;        // FTL_SCALING_...
  bool guards_each_step;  // every step of the softmax looks for rows without a key, else masked ones do
  int32_t warps_n;        // side by side: 1, each warp has whole rows
  bool repeats_scores;    // of wgmma: warpgroups side by side have all keys each, and share the columns of O
  bool sums_each_step;  // row sums are those of whole rows after every step, else of each lane's columns until the end
  bool sums_behind;     // the compiler has those of a step behind its product with V
  bool precise_end;     // Triton: O is divided by the sums, element by element, and their logarithm is libdevice's
} ftl_attention;
ftl_attention ftl_attention_of(const ftl_spec *spec);
// Of O: dtype, or bf16 of fp8.
ftl_dtype ftl_attention_out_dtype(const ftl_attention *a);

// block_m against num_warps, by the tensor instruction. FTL_INFEASIBLE with the reason.
FTL_MUST_USE ftl_status ftl_attention_check_warps(const ftl_spec *spec, ftl_error *error);
// num_stages against copy, likewise.
FTL_MUST_USE ftl_status ftl_attention_check_stages(const ftl_spec *spec, ftl_error *error);
// Likewise what warps_n warps side by side divide: the warps, the keys of a tile (with wgmma those of an instruction)
// and the columns of V.
FTL_MUST_USE ftl_status ftl_attention_check_warps_n(const ftl_spec *spec, ftl_error *error);

// What causal and window leave of the keys: query i sees key j only if i + left <= j <= i + right. A window is that of
// FlashAttention-2 with window_size = (window - 1, causal ? 0 : window - 1).
typedef struct ftl_attention_band {
  bool has_left, has_right;
  int64_t left, right;
} ftl_attention_band;
ftl_attention_band ftl_attention_band_of(const ftl_attention *a);
// Some query may see no key.
bool ftl_attention_may_see_none(const ftl_attention *a);
// The first query that sees a key; those before it see none.
int64_t ftl_attention_first_seeing_query(const ftl_attention *a);
// Keys of a sequence that some query sees.
int64_t ftl_attention_num_keys_seen(const ftl_attention *a);
// Says of tensors like K and V that only `num_keys` keys of each head are needed.
void ftl_attention_needs_keys(ftl_builder *builder, const ftl_attention *a, int32_t k, int32_t v, int64_t num_keys);
// Of a tensor with an element for each (query, key) pair of each head, that only those pairs are that the mask leaves.
void ftl_attention_needs_pairs(ftl_builder *builder, const ftl_attention *a, int32_t tensor);
// Key tiles that `num_queries` queries in a row see at most, wherever in a tile their window begins (FlashAttention-3's
// num_splits counts so); without a window those of the sequence.
int64_t ftl_attention_most_key_tiles(const ftl_attention *a, int64_t num_queries);
// The lengths of the sequence that a CTA works on, where those of a batch differ: expressions instead of seqlen_kv and
// diagonal of ftl_attention.
typedef struct ftl_attention_lengths {
  ftl_expr seqlen_kv, diagonal;
} ftl_attention_lengths;
ftl_attention_lengths ftl_attention_lengths_of(ftl_builder *builder, const ftl_attention *a);

// -inf where a query (rows of `scores`, from `query` on) does not see a key (columns, from `key` on). period: as
// ftl_mask_heads. Transposed: rows are keys.
void ftl_attention_mask_lengths(ftl_builder *builder, const ftl_attention *a, ftl_attention_lengths lengths,
                                int32_t scores, ftl_expr query, ftl_expr key, int64_t period);
void ftl_attention_mask_transposed(ftl_builder *builder, const ftl_attention *a, ftl_attention_lengths lengths,
                                   int32_t scores, ftl_expr key, ftl_expr query);

// (query, key) pairs of one head that the mask leaves.
int64_t ftl_attention_num_pairs(const ftl_attention *a);
// Of queries `query` .. query + num_queries - 1 and as many keys.
int64_t ftl_attention_pairs_within(const ftl_attention *a, int64_t query, int64_t num_queries, int64_t key,
                                   int64_t num_keys);
// FLOPs of the forward pass: a multiply-add per pair and element in QK^T and in PV.
int64_t ftl_attention_forward_flops(const ftl_attention *a);
// The same where a head sees `num_pairs` pairs.
int64_t ftl_attention_flops_of_pairs(const ftl_attention *a, int64_t num_pairs);

// Of `forward_flops`, the share of products whose heads have `columns` columns in all.
int64_t ftl_attention_flops_of_columns(const ftl_attention *a, int64_t forward_flops, int64_t columns);

// num_heads x num_rows x num_columns per batch in the order that the parameter `layout` names.
ftl_tensor_shape ftl_attention_shape(const ftl_spec *spec, int64_t num_heads, int64_t num_rows, int64_t num_columns);

// A number a query row, [batch][head][row] in any layout.
ftl_tensor_shape ftl_attention_shape_of_rows(const ftl_attention *a);

// q, k, v, o and lse (fp32, a number a query row), declared in this order.
typedef struct ftl_attention_tensors {
  int32_t q, k, v, o, lse;
} ftl_attention_tensors;
ftl_attention_tensors ftl_attention_declare(ftl_builder *builder, const ftl_spec *spec, const ftl_attention *a);

// What l2_persist and l2_evict_first ask for.
void ftl_attention_set_l2_priorities(ftl_builder *builder, const ftl_spec *spec, const ftl_attention_tensors *t);

// Coordinates of the query tile that a CTA works on, in the launch order that tile_order, tile_reverse and head_order
// name: the m tile advances first, then the head, then the batch, or these two the other way round; or the m tile after
// both.
typedef struct ftl_attention_tile {
  ftl_expr batch, head, kv_head;
  ftl_expr sequence;  // `batch`, or of packed sequences its number, by which dropout draws
  ftl_expr row;       // its first query row
} ftl_attention_tile;
ftl_attention_tile ftl_attention_tile_of(ftl_builder *builder, const ftl_spec *spec, const ftl_attention *a);
// The same of the query tile that comes as number `index` in that order, where a CTA is not one query tile.
ftl_attention_tile ftl_attention_tile_at(ftl_builder *builder, const ftl_spec *spec, const ftl_attention *a,
                                         ftl_expr index);

// Rows row .. row + rows - 1 of a tensor like q, and of one like k, both of the tile's head.
ftl_tile_ref ftl_attention_query_ref(const ftl_attention_tile *tile, int32_t tensor, ftl_expr row, int32_t rows,
                                     int32_t columns);
ftl_tile_ref ftl_attention_key_ref(const ftl_attention_tile *tile, int32_t tensor, ftl_expr row, int32_t rows,
                                   int32_t columns);

// Drops elements of P, 16-bit fragments that hold `probs` rows from query `query` and columns from key `key` on. The
// output is then to be scaled by ftl_attention_dropout_scale, 1 / (1 - p).
void ftl_attention_dropout(ftl_builder *builder, const ftl_attention *a, const ftl_attention_tile *tile, int32_t probs,
                           ftl_expr query, ftl_expr key);
float ftl_attention_dropout_scale(const ftl_attention *a);
// The same of P in fp32, for the gradient: what is dropped is negated (tile.h). Transposed: rows are keys.
void ftl_attention_dropout_by_sign(ftl_builder *builder, const ftl_attention *a, const ftl_attention_tile *tile,
                                   int32_t probs, ftl_expr query, ftl_expr key, bool transposed);
// Random numbers come for 32 columns at a time: FTL_INFEASIBLE names block_n.
FTL_MUST_USE ftl_status ftl_attention_check_dropout(const ftl_spec *spec, ftl_error *error);

// Key tiles first .. whole-1 and unmasked .. end-1 are seen in part, whole .. unmasked-1 by every row of the query tile
// whole, others not at all. Without a window first and whole are the constant 0.
typedef struct ftl_key_range {
  ftl_expr first, whole, unmasked, end;
} ftl_key_range;
ftl_key_range ftl_attention_keys(ftl_builder *builder, const ftl_attention *a, ftl_expr row);
// Whether the kernel masks each tile that it walks, seen whole or not.
bool ftl_attention_masks_all_steps(const ftl_spec *spec);
ftl_key_range ftl_attention_keys_lengths(ftl_builder *builder, const ftl_attention *a, ftl_attention_lengths lengths,
                                         ftl_expr row);

#endif
