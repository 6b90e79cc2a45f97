// What the launches of unfused attention share, forward and backward: S and P as matrices in memory.
#ifndef FTL_WORKLOADS_STANDARD_ATTENTION_H
#define FTL_WORKLOADS_STANDARD_ATTENTION_H

#include "workloads/attention.h"
#include "workloads/standard_rows.h"

// S, P and their gradients: rows of whole 16-byte vectors, each head's after the other.
ftl_tensor_shape ftl_standard_scores_shape(const ftl_attention *a);
// The columns of S that a tile of block_n keys can have: all of a narrow S.
int32_t ftl_standard_tile_columns(const ftl_attention *a);
// 1 if a query tile, which sees `keys`, sees something of key tile n; else 0 or less.
ftl_expr ftl_standard_is_seen(ftl_builder *builder, const ftl_attention *a, const ftl_key_range *keys, ftl_expr n);

// elementwise=epilogue: what no query of a tile sees is left alone by every launch. Else they take whole matrices.
bool ftl_standard_skips_unseen(const ftl_spec *spec);
// elementwise=fused, separate.
bool ftl_standard_is_fused(const ftl_spec *spec);
bool ftl_standard_is_separate(const ftl_spec *spec);
// With dropout_p, where P's dropout and its gradient are launches of their own.
bool ftl_standard_is_dropped_apart(const ftl_spec *spec);
// elementwise=eager_...: a program of PyTorch; eager_baddbmm, eager_einsum: with copies of Q, K and V.
bool ftl_standard_is_eager(const ftl_spec *spec);
bool ftl_standard_copies_tokens(const ftl_spec *spec);
bool ftl_standard_is_einsum(const ftl_spec *spec);
bool ftl_standard_is_matmul(const ftl_spec *spec);
// Launches that hide pairs: padding; causal, window and mask together.
int ftl_standard_num_masks(const ftl_spec *spec);
// What eager PyTorch runs: as many heads of keys as of queries, all of as many columns, rows that registers hold.
// FTL_INFEASIBLE.
FTL_MUST_USE ftl_status ftl_standard_check_eager(const ftl_spec *spec, ftl_error *error);
// Instructions by which PyTorch's element-wise kernels find an element's place in tensors that are no flat arrays:
// TensorIterator's OffsetCalculator, ten for each dimension that is left when adjacent ones have become one; torch.cat
// divides by run-time numbers. From the warp instructions an element of kernels/measurements/eager_ncu.csv: 46.5 in 2
// dimensions (scaled K), 66.5 in 4 (copies), 54.5 in 3 (K transposed), with a mask 56.8 in 2 and 66.8 in 3 (padding;
// its gradient, which reads no mask here), torch.cat 91.6; less what the launches here take besides, 19 to 41.
enum {
  FTL_EAGER_SCALE_INSTS = 24,
  FTL_EAGER_COPY_INSTS = 48,
  FTL_EAGER_TRANSPOSE_INSTS = 28,
  FTL_EAGER_MASK_INSTS = 20,
  FTL_EAGER_PADDING_INSTS = 26,
  FTL_EAGER_FILL_INSTS = 46,
  FTL_EAGER_GATHER_INSTS = 86
};

// store=staged: where a tile of results of the only role is put together, over rings that have room_elements; else -1.
int32_t ftl_standard_staging(const ftl_spec *spec, ftl_builder *builder, int32_t rows, int32_t columns,
                             int64_t room_elements);

// The problem as launches walk it: without causal and window where they take whole matrices.
ftl_attention ftl_standard_walked(const ftl_spec *spec);
// FLOPs of products of pairs and a head's columns, by the pairs that causal, window and mask leave. FTL_INFEASIBLE: a
// mask that does not fit.
typedef struct ftl_standard_flops {
  int64_t of_keys, of_values;  // a product of head_dim columns; of head_dim_v
} ftl_standard_flops;
FTL_MUST_USE ftl_status ftl_standard_product_flops(const ftl_spec *spec, ftl_standard_flops *flops, ftl_error *error);

// The softmax of the rows of S, in place, and its LSE; fused with all element-wise work if the specification says so.
enum { FTL_STANDARD_MOST_ADDED = 2 };
typedef struct ftl_standard_softmax {
  const ftl_spec *spec;
  int32_t s, lse;                                     // tensors
  bool hides_keys;                                    // a row may have been masked, or padded, as a whole
  ftl_standard_added added[FTL_STANDARD_MOST_ADDED];  // fused: a mask, padding
  int32_t dropped, kept;                              // fused, with dropout_p: tensors
} ftl_standard_softmax;
void ftl_standard_write_softmax(ftl_builder *builder, const ftl_standard_softmax *softmax);

// Launches over the rows of the tiles that are seen (standard_elementwise.c), in place: matrix = scale * matrix; S =
// S + what is added.
void ftl_standard_write_scale(ftl_builder *builder, const ftl_attention *a, int32_t matrix, float scale);
void ftl_standard_write_sum(const ftl_standard_rows *rows, int32_t s, ftl_standard_added added);
// matrix = matrix * by, element by element; matrix = 0; to = from.
void ftl_standard_write_product(ftl_builder *builder, const ftl_attention *a, int32_t matrix, int32_t by);
void ftl_standard_write_fill(ftl_builder *builder, const ftl_attention *a, int32_t matrix);
void ftl_standard_write_copy(const ftl_standard_rows *rows, int32_t from, int32_t to);
// dropped = P where kept, scaled by 1 / (1 - p), and which are kept, a byte each.
void ftl_standard_write_dropout(ftl_builder *builder, const ftl_attention *a, int32_t p, int32_t dropped, int32_t kept);
// dP = dP where kept, scaled by 1 / (1 - p), in place.
void ftl_standard_write_dropout_gradient(ftl_builder *builder, const ftl_attention *a, int32_t d_p, int32_t kept);

// to = scale * from, of tensors of tokens like Q, one after the other in one launch; a tensor of -1 ends the list.
enum { FTL_STANDARD_MOST_TOKENS = 3 };
typedef struct ftl_standard_tokens {
  int32_t from[FTL_STANDARD_MOST_TOKENS], to[FTL_STANDARD_MOST_TOKENS];
  int64_t num_tokens;
  float scale;          // 1: bits are copied
  int32_t index_insts;  // a thread takes an element and finds its place by so many; 0: 16 bytes
} ftl_standard_tokens;
void ftl_standard_write_tokens(ftl_builder *builder, const ftl_attention *a, const ftl_standard_tokens *tokens);

// to = from, of tensors of tokens, transposed: rows of `to` are head_dim's columns.
void ftl_standard_write_transposed(ftl_builder *builder, const ftl_attention *a, int32_t from, int32_t to);

// Of rows that stay in registers (standard_held_rows.c, standard_warp_rows.c): P = softmax(S), and its LSE (by_element:
// as PyTorch 2.11, where a warp holds rows of up to 2048 columns, and the threads of a CTA an element at a time); the
// gradient dS = G - P rowsum(G) in the place of `weighed`, G = P dP.
void ftl_standard_write_held_softmax(ftl_builder *builder, const ftl_attention *a, int32_t s, int32_t p, int32_t lse,
                                     bool by_element);
void ftl_standard_write_held_gradient(ftl_builder *builder, const ftl_attention *a, int32_t weighed, int32_t p);
FTL_MUST_USE ftl_status ftl_standard_check_held(const ftl_spec *spec, ftl_error *error);

// dS in place of dP.
typedef struct ftl_standard_gradient {
  int32_t p, d_p;
  int32_t kept;  // what dropout kept, where its gradient is taken on the way; else -1
  float scale;   // of dS, on the way; 1: none
} ftl_standard_gradient;
void ftl_standard_write_d_scores(ftl_builder *builder, const ftl_attention *a, const ftl_standard_gradient *gradient);

// The backward pass: launches for build, as ftl_workload.build.
FTL_MUST_USE ftl_status ftl_standard_build_backward(const ftl_spec *spec, ftl_tile_program **launches,
                                                    int *num_launches, ftl_error *error);

#endif
