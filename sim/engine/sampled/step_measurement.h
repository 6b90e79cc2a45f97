// One SM in full detail: how long the segments of a CTA take at one memory latency, alone and with all that it ever
// holds.
#ifndef FTL_ENGINE_SAMPLED_STEP_MEASUREMENT_H
#define FTL_ENGINE_SAMPLED_STEP_MEASUREMENT_H

#include "engine/launch.h"
#include "engine/sampled/segments.h"
#include "engine/sampled/time_units.h"

typedef struct ftl_step_point {
  int64_t time_sixteenths[FTL_MAX_SEGMENTS];   // of one iteration (loops) or of the whole segment (straight code)
  int64_t later_sixteenths[FTL_MAX_SEGMENTS];  // the same for tiles after a persistent CTA's first, whose copies began
                                               // before
  // By how many cycles each takes longer in the SM's youngest CTA than in its oldest.
  double age_cycles[FTL_MAX_SEGMENTS];
  ftl_sm_counters counters;  // of the SM run that this comes from
} ftl_step_point;

typedef struct ftl_step_measurement ftl_step_measurement;  // the programs with shortened loops, and where they run

// Borrows launch and segments.
FTL_MUST_USE ftl_status ftl_step_measurement_create(ftl_step_measurement **out, const ftl_launch *launch,
                                                    const ftl_segments *segments, int64_t sm_khz, ftl_error *error);
void ftl_step_measurement_destroy(ftl_step_measurement *m);
// The CTA that stands for all (measured_ctas.h).
int64_t ftl_step_measurement_representative(const ftl_step_measurement *m);

// `alone`: with one CTA; `shared`: with all that an SM ever holds. Both are zero before. Loops that this CTA does not
// run have the times of one that does.
FTL_MUST_USE ftl_status ftl_step_measurement_take(ftl_step_measurement *m, int64_t latency_cycles,
                                                  ftl_step_point *alone, ftl_step_point *shared, ftl_error *error);
// How much longer than in `alone`, of the same latency, each segment takes whose code the SM has not run yet. Loops
// whose iterations are told apart take it in the code before them.
FTL_MUST_USE ftl_status ftl_step_measurement_take_cold(ftl_step_measurement *m, int64_t latency_cycles,
                                                       const ftl_step_point *alone,
                                                       int64_t extra_sixteenths[FTL_MAX_SEGMENTS], ftl_error *error);
// CTAs that are evenly apart on an SM, each following behind another.
typedef struct ftl_step_succession {
  int64_t extra_sixteenths;   // what one takes more than the sum of its segments
  double asks_spread_cycles;  // standard deviation of when they ask for their first tiles
  ftl_sm_counters counters;
} ftl_step_succession;

// What a CTA takes more than the sum of its segments in `shared`, of the same latency, where the SM's CTAs are evenly
// apart and each follows behind another, as in a launch of many waves: it starts while the others compute, which holds
// it up, and it them; while it waits for its first loads they are quicker; and they drive each other's code out. It may
// be less than 0. For all CTAs that an SM ever holds, two at least; the counters are theirs.
FTL_MUST_USE ftl_status ftl_step_measurement_take_succession(ftl_step_measurement *m, int64_t latency_cycles,
                                                             const ftl_step_point *shared, ftl_step_succession *out,
                                                             ftl_error *error);
// Whether the grid has CTAs that run no loop while others do, and what one takes alone: all of it, of code that the SM
// has (is_warm) or has not run yet.
bool ftl_step_measurement_has_bare(const ftl_step_measurement *m);
FTL_MUST_USE ftl_status ftl_step_measurement_take_bare(ftl_step_measurement *m, int64_t latency_cycles, bool is_warm,
                                                       int64_t *sixteenths, ftl_error *error);
// The same with all such CTAs that an SM ever holds, one behind the other in each slot; two at least.
FTL_MUST_USE ftl_status ftl_step_measurement_take_bare_shared(ftl_step_measurement *m, int64_t latency_cycles,
                                                              int64_t alone_sixteenths, int64_t *sixteenths,
                                                              ftl_error *error);
// The counters of an SM whose CTAs begin as those of the launch do: of the first wave as fast as its GPC starts them,
// with code and data to fetch, and each of two more waves, as far as there are so many, as one ends.
FTL_MUST_USE ftl_status ftl_step_measurement_take_launch(ftl_step_measurement *m, int64_t latency_cycles,
                                                         ftl_sm_counters *counters, ftl_error *error);

#endif
