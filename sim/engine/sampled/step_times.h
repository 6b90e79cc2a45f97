// How long a CTA's segments take on an SM, from running a few CTAs on one SM in full detail.
//
// One SM with 1 and with all the CTAs that fit, against a memory that answers after a set latency through the SM's read
// port. Loops are cut to a few iterations; the time of one is taken where the schedule has become periodic. The memory
// latency is a parameter of the answer, since the traffic model finds it.
#ifndef FTL_ENGINE_SAMPLED_STEP_TIMES_H
#define FTL_ENGINE_SAMPLED_STEP_TIMES_H

#include "engine/launch.h"
#include "engine/sampled/segments.h"

enum { FTL_NUM_STEP_LATENCIES = 4, FTL_STEP_UNIT = 16 };  // times are in 1/16 SM cycle

typedef struct ftl_step_point {
  int64_t time[FTL_MAX_SEGMENTS];   // of one iteration (loops) or of the whole segment (straight code)
  int64_t later[FTL_MAX_SEGMENTS];  // the same for tiles after a persistent CTA's first, whose copies began before
  int64_t deviation[FTL_MAX_SEGMENT_LOOPS];  // standard deviation of an iteration's time among CTAs that share the SM
  ftl_sm_counters counters;                  // of the SM run that this comes from
} ftl_step_point;

typedef struct ftl_step_times {
  int32_t num_segments;
  int32_t most_ctas;                               // points[1] is for this many resident CTAs, points[0] for one
  int64_t latency_cycles[FTL_NUM_STEP_LATENCIES];  // ascending
  ftl_step_point points[2][FTL_NUM_STEP_LATENCIES];
  int64_t least[FTL_MAX_SEGMENTS];  // that one CTA takes of an SM's issue slots or tensor pipes
} ftl_step_times;

FTL_MUST_USE ftl_status ftl_step_times_measure(const ftl_launch *launch, const ftl_segments *segments, int64_t sm_khz,
                                               const int64_t latency_cycles[FTL_NUM_STEP_LATENCIES],
                                               ftl_step_times *out, ftl_error *error);

// Time of one execution of a segment with `resident` CTAs on the SM and loads that take latency_cycles; in 1/16 cycle.
int64_t ftl_step_times_get(const ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles);
// Standard deviation of an iteration's time, of loop k, while CTAs share the SM; in 1/16 cycle.
int64_t ftl_step_times_deviation(const ftl_step_times *times, int32_t k);
// The same in a tile after a persistent CTA's first.
int64_t ftl_step_times_get_later(const ftl_step_times *times, int32_t segment, int32_t resident,
                                 int64_t latency_cycles);

#endif
