// What the launches of an attention backward pass share: tensors, the grid, and the launches that only stream rows.
#ifndef FTL_WORKLOADS_BACKWARD_H
#define FTL_WORKLOADS_BACKWARD_H

#include "workloads/block_mask.h"
#include "workloads/packed_batch.h"
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
  int64_t num_sum_rows;  // of dQ's sum, with dq=atomics
  int32_t num_warps, num_stages;
  const ftl_packed_batch *packed;  // the tiles that CTAs keep of packed sequences; NULL: sequences are equally long
  const ftl_tile_lists *lists;     // the steps that a block mask leaves to each; NULL: no mask
  ftl_attention_tile tile;         // the rows that a CTA keeps
  // Of the sequence that they belong to: as ftl_packed_tile.
  ftl_attention_lengths lengths;
  ftl_expr sequence, origin, row_end;
} ftl_backward;

// Whether dQ is added up by atomics; and whether a CTA walks the queries of all heads that share its keys.
bool ftl_backward_adds_dq(const ftl_spec *spec);
bool ftl_backward_loops_heads(const ftl_spec *spec);
// Fewer key/value heads than heads; sums added where fragments have their elements.
bool ftl_backward_is_grouped(const ftl_spec *spec);
bool ftl_backward_adds_by_fragments(const ftl_spec *spec);
// Of a head's columns those of dQ's sum and of the tiles of its kernel: whole 128-byte lines of fp32.
int32_t ftl_backward_padded_columns(int64_t columns);
// Declares all tensors, the same in every launch, so that each has one address. Of packed sequences `spec` is that of
// all tokens (ftl_packed_batch_tokens), with num_sequences of them; else num_sequences is 0.
ftl_backward ftl_backward_of(ftl_builder *builder, const ftl_spec *spec, int64_t num_sequences);
// A grid of one CTA for each `rows` rows of a tensor of `length` rows with `heads` heads; sets the tile.
void ftl_backward_grid(ftl_backward *f, int64_t heads, int64_t length, int32_t rows);

// A grid of one CTA for each tile of `rows` rows of each sequence, of which there are `length` where they are equally
// long; `packed` has such tiles. Sets the tile and its sequence.
void ftl_backward_keep(ftl_backward *f, int64_t length, int32_t rows);
// The same of `heads` heads, of sequences that are equally long.
void ftl_backward_keep_of_heads(ftl_backward *f, int64_t heads, int64_t length, int32_t rows);
// Rows from `row` of the CTA's sequence on, of a head of a tensor like q or k.
ftl_tile_ref ftl_backward_ref(const ftl_backward *f, int32_t tensor, ftl_expr head, ftl_expr row, int32_t rows,
                              int32_t columns);
// The same of dQ's sum: a sequence's rows begin with its first whole tile there.
ftl_tile_ref ftl_backward_sum_ref(const ftl_backward *f, ftl_expr row);

// The query tiles that see keys of a CTA that keeps block_n of them from tile.row on: first .. whole-1 and unmasked ..
// end-1 see some of them, whole .. unmasked-1 all.
typedef struct ftl_query_steps {
  ftl_expr first, whole, unmasked, end;
} ftl_query_steps;
ftl_query_steps ftl_backward_query_steps(const ftl_backward *f);
// Says of what a launch that walks so, or tiles of scores, reads of queries that it needs none of those that see no
// key, and of dQ's sum not their tiles.
void ftl_backward_needs_queries(const ftl_backward *f);

// ---- P and dS of a step, as the warps hold them ----

// P = exp2(scale S - LSE), in the place of S. `lse` is -LSE in the unit of exp2, as the next leaves it: queries that
// see no key have -inf, and scores of -inf, of which P must be 0, not NaN.
void ftl_backward_exponentiate(const ftl_backward *f, int32_t scores, int32_t lse);
void ftl_backward_prepare_lse(const ftl_backward *f, int32_t lse);
// P as operand of dV: with dropout what was kept of it, the sign of P telling (ftl_attention_dropout_by_sign).
void ftl_backward_round_probs(const ftl_backward *f, int32_t rounded, int32_t probs);
// dS = P (dP - delta), in the place of dP; with dropout dP counts as 0 where P was dropped.
void ftl_backward_differentiate(const ftl_backward *f, int32_t products, int32_t probs, int32_t delta);
// Sums of products with what was rounded, times what was left out of it: the softmax's scale (dQ, dK) and 1 / (1 - p).
void ftl_backward_scale(const ftl_backward *f, int32_t sum, bool of_scores);

// ---- launches that stream rows ----

// delta = rowsum(dO * O), with dropout times 1 - p: what was kept is scaled up at the end, by ftl_backward_scale;
// with dq=atomics also dQ's sum = 0.
void ftl_backward_write_delta(ftl_backward *f);
// dK and dV of a key/value head: the sum of those of its query heads.
void ftl_backward_add_up_heads(ftl_backward *f);

#endif
