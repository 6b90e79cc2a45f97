// Where the scores of an attention are scaled: by softmax_scale for the softmax, and by log2(e) for exp2. Sources:
// csrc/flash_attn/src/softmax.h of github.com/Dao-AILab/flash-attention (one FMA before each exponential; a
// multiplication and a subtraction under UNFUSE_FMA, as PyTorch builds it), Triton's fused-attention tutorial (scores
// are multiplied once, before the row maximum), PyTorch's flex_attention template (by the scale, then by log2(e)), SASS
// of cuDNN's forward kernel for Hopper (apart: a multiplication and an addition after the row maximum), the present
// form of Triton's tutorial (by tile: one multiply-add before each exponential, but of masked tiles, which it scales
// and lowers by another, an addition as well).
#ifndef FTL_WORKLOADS_SCORE_SCALING_H
#define FTL_WORKLOADS_SCORE_SCALING_H

#include "workloads/attention.h"

typedef struct ftl_score_scaling {
  int32_t place;  // FTL_SCALING_...
  float scale;    // of the scores
} ftl_score_scaling;
ftl_score_scaling ftl_score_scaling_of(const ftl_attention *a);

// Multiplies the tile `scores` as often as the place says: not at all where that is done after the row maximum.
void ftl_scale_scores(ftl_builder *builder, ftl_score_scaling scaling, int32_t scores);
// What is left to multiply by then: to the unit of exp2, and to that of log-sum-exp.
float ftl_score_scaling_to_log2(ftl_score_scaling scaling);
float ftl_score_scaling_to_natural(ftl_score_scaling scaling);
// Whether that takes an instruction of its own, beside the addition of -maximum.
bool ftl_scores_are_shifted_apart(ftl_score_scaling scaling, bool masked);

#endif
