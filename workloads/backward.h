// What the launches of an attention backward pass share: tensors, the grid, and the launches that only stream rows.
#ifndef FTL_WORKLOADS_BACKWARD_H
#define FTL_WORKLOADS_BACKWARD_H

#include "workloads/score_scaling.h"

typedef struct ftl_backward_tensors {
  int32_t q, k, v, o, d_o, lse;  // inputs
  int32_t delta;                 // rowsum(dO * O), fp32, a number a query row
  int32_t d_q, d_k, d_v;
  int32_t d_k_of_heads, d_v_of_heads;  // a dK and dV a query head; d_k and d_v where each has its own keys
  int32_t d_q_sum;                     // fp32, with dq=atomics: rows of whole query tiles, padded columns; else -1, or
                                       // the workload's own
} ftl_backward_tensors;

// One launch.
typedef struct ftl_backward {
  ftl_builder *b;
  const ftl_spec *spec;
  ftl_attention a;
  ftl_backward_tensors t;
  int32_t num_warps, num_stages;
  ftl_attention_tile tile;  // the rows that a CTA keeps
} ftl_backward;

// Whether dQ is added up by atomics.
bool ftl_backward_adds_dq(const ftl_spec *spec);
// Columns of dQ's sum and of the tiles of its kernel: whole 128-byte lines of fp32.
int32_t ftl_backward_padded_head_dim(const ftl_spec *spec);
// Declares all tensors, the same in every launch, so that each has one address.
ftl_backward ftl_backward_of(ftl_builder *builder, const ftl_spec *spec);
// A grid of one CTA for each `rows` rows of a `length` x head_dim tensor with `heads` heads; sets the tile.
void ftl_backward_grid(ftl_backward *f, int64_t heads, int64_t length, int32_t rows);

// The query tiles that see keys of a CTA that keeps block_n of them from tile.row on: first .. whole-1 and unmasked ..
// end-1 see some of them, whole .. unmasked-1 all.
typedef struct ftl_query_steps {
  ftl_expr first, whole, unmasked, end;
} ftl_query_steps;
ftl_query_steps ftl_backward_query_steps(const ftl_backward *f);

// The backward pass computes P anew: scores become exp2(scale S - LSE). `negative_lse`: rows or columns, in the unit of
// exp2.
void ftl_backward_exponentiate(const ftl_backward *f, int32_t scores, int32_t negative_lse);

// delta = rowsum(dO * O); with dq=atomics also dQ's sum = 0.
void ftl_backward_write_delta(ftl_backward *f);
// dK and dV of a key/value head: the sum of those of its query heads.
void ftl_backward_add_up_heads(ftl_backward *f);

#endif
