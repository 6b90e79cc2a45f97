// A batch of sequences of several lengths, packed one after another into tensors of one batch (varlen): where each
// begins, and which query tiles there are. Source: FlashAttention-2's varlen interface (cu_seqlens, unpadded LSE). Its
// grid has the query tiles of the longest sequence for every sequence, and those that do not exist leave at once; here
// CTAs have a list of those that do, as FlashInfer's prefill kernels.
#ifndef FTL_WORKLOADS_PACKED_BATCH_H
#define FTL_WORKLOADS_PACKED_BATCH_H

#include "workloads/attention.h"

typedef struct ftl_packed_batch {
  int64_t num_sequences, num_tokens, num_tiles;  // num_tiles: of a head
  int64_t tile_rows;
  int32_t *lengths;  // [num_sequences]
  int32_t *offsets;  // [num_sequences + 1]: first token of each
  // Of each tile, those of a sequence in order (or, with tile_reverse, the last first).
  int32_t *tile_sequence, *tile_row;
} ftl_packed_batch;

// *out is NULL where the specification has no `lengths`. FTL_INFEASIBLE: more than 2^24 tokens, or parameters that
// are those of equally long sequences; FTL_NO_MEMORY.
// tile_rows: queries of a tile (or keys: there are as many).
FTL_MUST_USE ftl_status ftl_packed_batch_create(ftl_packed_batch **out, const ftl_spec *spec, int64_t tile_rows,
                                                ftl_error *error);
void ftl_packed_batch_destroy(ftl_packed_batch *batch);

// All tokens as those of one sequence: what the tensors and whatever treats each token alone have.
ftl_spec ftl_packed_batch_tokens(const ftl_packed_batch *batch, const ftl_spec *spec);

// CTAs of a kernel with one for each query tile of each head; `batch` NULL: of equally long sequences.
static inline int64_t ftl_packed_batch_num_ctas(const ftl_packed_batch *batch, const ftl_attention *a) {
  return a->heads * (batch != NULL ? batch->num_tiles : a->batch * a->num_m_tiles);
}
// FLOPs of the forward pass of all sequences.
int64_t ftl_packed_batch_flops(const ftl_packed_batch *batch, const ftl_attention *a);

// q, k, v, o and lse of all tokens: [head][token] or [token][head] as `layout` says.
ftl_attention_tensors ftl_packed_batch_declare(ftl_builder *builder, const ftl_spec *spec,
                                               const ftl_packed_batch *batch, const ftl_attention *a);

// The tile of a CTA: `tile` counts rows from the first of its sequence, which is row `origin` of the
// tensors, and `row_end` the row of them after its last. Tiles advance first, then the sequence, then the head, as
// FlashAttention-2's grid; with tile_order=head_first the head before both.
typedef struct ftl_packed_tile {
  ftl_attention_tile tile;
  ftl_attention_lengths lengths;
  ftl_expr origin, row_end;
} ftl_packed_tile;
// A reference whose row counts from the first of its sequence, in the tensors.
static inline ftl_tile_ref ftl_packed_ref(ftl_builder *builder, ftl_expr origin, ftl_expr row_end, ftl_tile_ref ref) {
  ref.row = ftl_add(builder, origin, ref.row);
  ref.row_end = row_end;
  return ref;
}
ftl_packed_tile ftl_packed_batch_tile(ftl_builder *builder, const ftl_spec *spec, const ftl_packed_batch *batch,
                                      const ftl_attention *a);

#endif
