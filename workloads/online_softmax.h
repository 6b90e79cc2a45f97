// The online softmax of FlashAttention-2 in the exp2 domain: running row maximum and row sum, and what corrects the
// output when the maximum grows. Source: T. Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 1, and
// csrc/flash_attn/src/softmax.h of github.com/Dao-AILab/flash-attention.
#ifndef FTL_WORKLOADS_ONLINE_SOFTMAX_H
#define FTL_WORKLOADS_ONLINE_SOFTMAX_H

#include "workloads/score_scaling.h"

typedef struct ftl_online_softmax {
  ftl_score_scaling scaling;
  bool guards_each_step;  // looks for rows that have seen no key in steps that are not masked too
  bool sums_behind;       // the compiler has a step's sums behind its product with V
  bool precise_end;       // divides by the sums and takes their logarithm to an ulp or two, as Triton
                          // compiles / and tl.log2, not by reciprocals and lg2.approx
  float log2_largest;  // exponentials are 2^this times what they are, which divides out; 0 unless set after declaring
  float output_scale;  // of the output, as it is normalised: 1, or 1 / (1 - p) after dropout
  int32_t max;         // rows: largest score so far, as scaled before the maximum, -inf before the first
  int32_t previous;    // rows: the one before
  int32_t shift;       // rows: -max in the unit of exp2, what exponents are shifted by
  int32_t correction;  // rows: exp2(previous - max) in that unit; the output so far is to be multiplied by it
  int32_t sum;         // rows: of the exponentials; each lane over its own columns until the end, or whole rows
  int32_t step_sum;    // rows: of one step's exponentials, whole rows; -1: each lane adds to `sum` its own
  // Warps side by side, where there are more than 1: maxima and sums of whole rows are exchanged through this ring.
  int32_t warps_n, exchange;
  bool in_shared;  // that ring has them for good, and lanes reach the maxima by atomics
  // Groups of warps that share a key tile, 0 unless shared below: their maxima and sums are those of whole rows in
  // every step, exchanged through these rings.
  int32_t num_sharing, step_max_staging, step_sum_staging;
} ftl_online_softmax;

ftl_online_softmax ftl_online_softmax_declare(ftl_builder *builder, int32_t rows, const ftl_attention *a);
// Of warps side by side: the staging that they exchange maxima and sums through, which lies over rings declared before;
// these are idle, and all warps past their use, at each step of the softmax.
void ftl_online_softmax_exchange(ftl_builder *builder, ftl_online_softmax *softmax, int32_t role, int32_t rows);
// Of warps side by side that keep the rows' numbers in shared memory: maxima, sums, what O is multiplied by, and a sum
// of each warp's columns.
void ftl_online_softmax_keep_in_shared(ftl_builder *builder, ftl_online_softmax *softmax, int32_t role, int32_t rows);
// Of warps side by side: output += P V. Each has keys of P (probs), puts them into ring_p, over which the staging lies,
// and multiplies those of all with its columns of V.
void ftl_online_softmax_multiply_exchanged(ftl_builder *builder, const ftl_online_softmax *softmax, int32_t output,
                                           int32_t probs, int32_t ring_p, int32_t ring_v);
// Of a softmax with step sums, in a role of `num_groups` groups.
void ftl_online_softmax_share(ftl_builder *builder, ftl_online_softmax *softmax, int32_t role, int32_t rows,
                              int32_t num_groups);
void ftl_online_softmax_start(ftl_builder *builder, const ftl_online_softmax *softmax);
// Scores become exponentials. `masked`: a row may have seen no key yet, its maximum be -inf.
void ftl_online_softmax_step(ftl_builder *builder, const ftl_online_softmax *softmax, int32_t scores, bool masked);
// The same in two: what needs the scores of all columns, up to the correction of the output, and what is left.
void ftl_online_softmax_maximum(ftl_builder *builder, const ftl_online_softmax *softmax, int32_t scores, bool masked);
void ftl_online_softmax_exponentials(ftl_builder *builder, const ftl_online_softmax *softmax, int32_t scores,
                                     bool masked);
// Normalises `output` (rows that saw no key become 0) and leaves log-sum-exp, in natural units, in softmax->max.
void ftl_online_softmax_finish(ftl_builder *builder, const ftl_online_softmax *softmax, int32_t output);
// In a role of several groups, first: stores the merged and normalised output through idle staging rings.
void ftl_online_softmax_store_groups(ftl_builder *builder, const ftl_online_softmax *softmax, ftl_tile_ref ref,
                                     int32_t output, int32_t output_staging, int32_t rows_staging);
// Then: merges the groups' maxima and sums through two idle rings and leaves log-sum-exp in softmax->max.
void ftl_online_softmax_merge_groups(ftl_builder *builder, const ftl_online_softmax *softmax, int32_t max_staging,
                                     int32_t sum_staging);

#endif
