// When CTAs that begin on an SM beside others ask for their first tiles.
//
// A CTA that takes the place of another has its code run while the SM's other CTAs compute: they come first in the
// issue slots and have driven its code out of the instruction cache. How long it takes to its first loads hangs on what
// they do meanwhile, so CTAs that begin together on different SMs do not ask together.
#ifndef FTL_ENGINE_SAMPLED_BEGIN_MARKS_H
#define FTL_ENGINE_SAMPLED_BEGIN_MARKS_H

#include "engine/sampled/loop_marks.h"

enum { FTL_MARKED_ROUNDS = 3 };

// Of the CTAs of a slot, one behind the other: the cycles in which warps of the leading role issued loads ahead of its
// loops. A role that loads nothing there, as where another one copies by TMA, has none.
typedef struct ftl_begin_marks {
  const ftl_warp_program *program;
  const ftl_segments *segments;
  int32_t num_exits[FTL_MARKED_CTAS];  // warps of the slot that have ended
  int64_t sum[FTL_MARKED_CTAS][FTL_MARKED_ROUNDS], count[FTL_MARKED_CTAS][FTL_MARKED_ROUNDS];
} ftl_begin_marks;

// Observes an SM; `context` is the marks.
void ftl_begin_marks_mark(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                          const ftl_warp_inst *inst);
// Standard deviation, in cycles, of the time from the end of one CTA to when the next in its slot asks for its tiles;
// ends[r * num_slots + slot] is when CTAs ended. 0 where one of them loads nothing there.
double ftl_begin_marks_spread(const ftl_begin_marks *marks, int32_t num_slots, int32_t num_rounds, const int64_t *ends);

#endif
