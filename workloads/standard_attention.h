// What the launches of unfused attention share, forward and backward: S and P as matrices in memory.
#ifndef FTL_WORKLOADS_STANDARD_ATTENTION_H
#define FTL_WORKLOADS_STANDARD_ATTENTION_H

#include "workloads/attention.h"

// S, P and their gradients: rows of whole 16-byte vectors, each head's after the other.
ftl_tensor_shape ftl_standard_scores_shape(const ftl_attention *a);
// The columns of S that a tile of block_n keys can have: all of a narrow S.
int32_t ftl_standard_tile_columns(const ftl_attention *a);
// 1 if a query tile, which sees `keys`, sees something of key tile n; else 0 or less.
ftl_expr ftl_standard_is_seen(ftl_builder *builder, const ftl_attention *a, const ftl_key_range *keys, ftl_expr n);

// Launches over the rows of the tiles that are seen (standard_elementwise.c): S += padding, a number a key of each
// sequence, in place; dropped = P where kept, scaled by 1 / (1 - p), and which are kept, a byte each.
void ftl_standard_write_padding(ftl_builder *builder, const ftl_attention *a, int32_t s, int32_t padding);
void ftl_standard_write_dropout(ftl_builder *builder, const ftl_attention *a, int32_t p, int32_t dropped, int32_t kept);
// dP = dP where kept, scaled by 1 / (1 - p), in place.
void ftl_standard_write_dropout_gradient(ftl_builder *builder, const ftl_attention *a, int32_t d_p, int32_t kept);

// The backward pass: launches for build, as ftl_workload.build.
FTL_MUST_USE ftl_status ftl_standard_build_backward(const ftl_spec *spec, ftl_tile_program **launches,
                                                    int *num_launches, ftl_error *error);

#endif
