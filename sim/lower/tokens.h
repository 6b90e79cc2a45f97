// Virtual values to dependency tokens, by a linear scan over the final order.
#ifndef FTL_LOWER_TOKENS_H
#define FTL_LOWER_TOKENS_H

#include "lower/registers.h"

// Fills destination and sources of every instruction. A value keeps one token from its first to its last live position;
// one that is carried around a loop, for the whole loop. An instruction never writes a token that it reads for another
// value. FTL_INFEASIBLE when more than FTL_MAX_TOKENS values live at once.
FTL_MUST_USE ftl_status ftl_tokens_assign(ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                                          ftl_arena *arena, int32_t *num_tokens, ftl_error *error);

#endif
