// How long a CTA's segments take on an SM, from running a few CTAs on one SM in full detail.
//
// One SM with 1 and with all the CTAs that it ever holds, against a memory that answers after a set latency through the
// SM's read port. Loops are cut to a few iterations; the time of one is taken where the schedule has become periodic.
// The memory latency is a parameter of the answer, since the traffic model finds it. Latencies beyond those of L2 and
// DRAM are measured when they are first asked for, which is seldom. What runs scatter by is not taken for their
// latency's doing (latency_pool.h).
#ifndef FTL_ENGINE_SAMPLED_STEP_TIMES_H
#define FTL_ENGINE_SAMPLED_STEP_TIMES_H

#include "engine/sampled/step_measurement.h"

enum { FTL_NUM_STEP_LATENCIES = 5 };

typedef struct ftl_step_times {
  int32_t num_segments;
  int32_t most_ctas;                               // points[1] is for this many resident CTAs, points[0] for one
  int64_t latency_cycles[FTL_NUM_STEP_LATENCIES];  // ascending
  bool is_measured[FTL_NUM_STEP_LATENCIES];
  ftl_step_point points[2][FTL_NUM_STEP_LATENCIES];
  int64_t cold_sixteenths[FTL_MAX_SEGMENTS];  // what a segment takes more where the SM has not run its code yet
  // Of a CTA that runs no loop, alone and with all such ones that an SM holds: all of it with data from L2 and from
  // DRAM; what code that the SM has not run takes more; what it takes of issue slots.
  bool has_bare;
  int64_t bare_sixteenths[2][2], bare_cold_sixteenths, least_of_bare_sixteenths;
  // Of a CTA that begins where the SM's others are in other segments; what it takes more, it takes in the first segment
  // that has a time.
  int32_t first_timed;
  ftl_step_succession succession;
  // Of the SM that says which parts of sectors merge; of one whose CTAs begin as the launch has them?
  ftl_sm_counters storing;
  bool store_as_launched;
  int64_t scatter_sixteenths[FTL_MAX_SEGMENTS];  // of a loop's time, by the run it was measured in (latency_pool.h)
  int64_t least_sixteenths[FTL_MAX_SEGMENTS];    // that one CTA takes of an SM's issue slots or tensor pipes
  int64_t times_run[FTL_MAX_SEGMENTS];           // by the CTA that stands for all
  int64_t whole_cta_sixteenths[2][FTL_NUM_STEP_LATENCIES];  // its time by the points: all its segments
  int64_t least_of_cta_sixteenths;                          // the same of least_sixteenths
  ftl_step_measurement *measurement;
  ftl_error failure;  // of the first measurement that failed
} ftl_step_times;

// Borrows launch and segments. To be released after a failure too.
FTL_MUST_USE ftl_status ftl_step_times_init(ftl_step_times *out, const ftl_launch *launch, const ftl_segments *segments,
                                            int64_t sm_khz, const int64_t latency_cycles[FTL_NUM_STEP_LATENCIES],
                                            ftl_error *error);
void ftl_step_times_fini(ftl_step_times *times);

// Whether all that was asked for could be measured; what could not was answered with 0.
FTL_MUST_USE ftl_status ftl_step_times_status(const ftl_step_times *times, ftl_error *error);

// With one CTA (row 0) or most_ctas (row 1) and the latency of index i.
const ftl_step_point *ftl_step_times_point(ftl_step_times *times, int32_t row, int32_t i);
// Time of one execution of a segment with `resident` CTAs on the SM and loads that take latency_cycles; in sixteenths.
int64_t ftl_step_times_get(ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles);
// The same in a tile after a persistent CTA's first.
int64_t ftl_step_times_get_later(ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles);
// Of a CTA that runs no loop, where has_bare: its straight code has shares of all that it takes by their instructions.
int64_t ftl_step_times_get_bare(const ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles);
int64_t ftl_step_times_bare_cold(const ftl_step_times *times, int32_t segment);
// Whether a segment has a time of its own: not straight code where the loop behind it ran once and has its time, nor a
// loop that never ran.
bool ftl_step_times_has(const ftl_step_times *times, int32_t segment);
// What one CTA takes of an SM's issue slots or tensor pipes by the code before `segment` whose time it has; in
// sixteenths.
int64_t ftl_step_times_least_before(const ftl_step_times *times, int32_t segment);

// Whether a lone CTA waits in the loop for more than half of what its loads take longer, however far ahead it asks.
bool ftl_step_times_show_latency(ftl_step_times *times, int32_t loop);

#endif
