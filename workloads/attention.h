// What attention workloads share: tensors in their layouts, the grid's coordinates, which key tiles a query tile
// visits.
#ifndef FTL_WORKLOADS_ATTENTION_H
#define FTL_WORKLOADS_ATTENTION_H

#include "tile/builder.h"
#include "workloads/spec.h"

// A completed spec's problem, with names.
typedef struct ftl_attention {
  int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv;
  int32_t head_dim;
  int32_t padded_head_dim;  // to the K of the MMA: columns in shared memory and in the MMAs
  int32_t block_m, block_n;
  int64_t num_m_tiles;
  ftl_dtype dtype;
  bool causal;
  int64_t diagonal;  // causal: query i sees key j only if j <= i + diagonal (aligned at the bottom right)
  float scale;       // of the scores: 1 / sqrt(head_dim)
} ftl_attention;
ftl_attention ftl_attention_of(const ftl_spec *spec);

// block_m against num_warps, by the tensor instruction. FTL_INFEASIBLE with the reason.
FTL_MUST_USE ftl_status ftl_attention_check_warps(const ftl_spec *spec, ftl_error *error);

// (query, key) pairs of one head that the mask leaves.
int64_t ftl_attention_num_pairs(const ftl_attention *a);
// FLOPs of the forward pass: a multiply-add per pair and element in QK^T and in PV.
int64_t ftl_attention_forward_flops(const ftl_attention *a);

// num_heads x num_rows x num_columns per batch in the order that the parameter `layout` names.
ftl_tensor_shape ftl_attention_shape(const ftl_spec *spec, int64_t num_heads, int64_t num_rows, int64_t num_columns);

// q, k, v, o and lse (fp32, a number a query row), declared in this order.
typedef struct ftl_attention_tensors {
  int32_t q, k, v, o, lse;
} ftl_attention_tensors;
ftl_attention_tensors ftl_attention_declare(ftl_builder *builder, const ftl_spec *spec, const ftl_attention *a);

// Coordinates of the query tile that a CTA works on, in the launch order that tile_order and tile_reverse name: the m
// tile or the head advances first, then the other, then the batch.
typedef struct ftl_attention_tile {
  ftl_expr batch, head, kv_head;
  ftl_expr row;  // its first query row
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

// Key tiles 0 .. unmasked-1 are seen whole by every row of the query tile, unmasked .. end-1 in part; the rest not at
// all.
typedef struct ftl_key_range {
  ftl_expr unmasked, end;
} ftl_key_range;
ftl_key_range ftl_attention_keys(ftl_builder *builder, const ftl_attention *a, ftl_expr row);

#endif
