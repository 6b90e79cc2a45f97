// When the iterations of shortened loops end on an SM that is run in detail, and the times of segments that follow from
// that.
#ifndef FTL_ENGINE_SAMPLED_LOOP_MARKS_H
#define FTL_ENGINE_SAMPLED_LOOP_MARKS_H

#include "arch/arch_limits.h"
#include "engine/sampled/segments.h"
#include "machine/sm/sm.h"

enum {
  FTL_KEPT_ITERATIONS = 12,  // of a loop; the second half gives its time
  FTL_MOST_ITERATIONS = 48,  // of one that CTAs would else have run one after the other
  FTL_KEPT_OUTER = 2,        // of the loop around others; the last gives the times of what is in it
  FTL_MARKED_CTAS = FTL_ARCH_MAX_sm_max_ctas,
};

// A CTA's iterations of the loop around others. What it does in it is marked in its last one alone.
typedef struct ftl_outer_marks {
  int32_t count;
  int64_t cycle[FTL_KEPT_OUTER];               // in which each ended
  int32_t first_count[FTL_MAX_SEGMENT_LOOPS];  // iterations that the loops in it had in its first
} ftl_outer_marks;

// Cycles in which warp 0 of the leading role ended each iteration, per slot and loop.
typedef struct ftl_loop_marks {
  const ftl_warp_program *program;
  const ftl_segments *segments;
  int32_t warp;  // the observed warp's index in the CTA
  // Of a persistent CTA one tile is observed: from when the warp ended the tile before to when it ended this one.
  int64_t tile, tile_before;  // -1: no such restriction
  int64_t tile_start, tile_end;
  int32_t count[FTL_MARKED_CTAS][FTL_MAX_SEGMENT_LOOPS];
  int64_t cycle[FTL_MARKED_CTAS][FTL_MAX_SEGMENT_LOOPS][FTL_MOST_ITERATIONS];
  ftl_outer_marks outer[FTL_MARKED_CTAS];
} ftl_loop_marks;

// Observes an SM; `context` is the marks.
void ftl_loop_marks_mark(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                         const ftl_warp_inst *inst);
// Whether CTAs in `num_ctas` slots hardly ran loop k together, so that its time is not that of CTAs which do.
bool ftl_loop_marks_are_apart(const ftl_loop_marks *marks, int32_t k, int32_t num_ctas);
// By how many cycles each segment, of a loop an iteration, takes longer in the CTA that started last than in the one
// that started first, of CTAs in `num_ctas` slots that started and ended so: the slope of their times over their order.
// What a loop's first half takes more than its second counts with the code before it, as in the times. 0 in an outer
// loop, and where CTAs do not run a loop together for long enough to tell.
void ftl_loop_marks_age_cycles(const ftl_loop_marks *marks, int32_t num_ctas, const int64_t *starts,
                               const int64_t *ends, double *cycles);
// The time of each segment, of CTAs in `num_ctas` slots that started and ended so.
void ftl_loop_marks_times(const ftl_loop_marks *marks, int32_t num_ctas, const int64_t *starts, const int64_t *ends,
                          int64_t *sixteenths);

#endif
