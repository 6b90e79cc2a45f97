// When a walk repeats itself: the state at each start of a period, and the last periods that stand for those to come.
#ifndef FTL_ENGINE_SAMPLED_STEADY_H
#define FTL_ENGINE_SAMPLED_STEADY_H

#include "engine/sampled/traffic.h"

// At the start of a period.
typedef struct ftl_steady_mark {
  int64_t ticks;
  int64_t work;               // of all CTAs, done since the launch began: what their steps take at the shortest latency
  ftl_traffic_counts counts;  // since the launch began
  int64_t dirty_sectors;      // in the sample of L2
} ftl_steady_mark;

enum { FTL_STEADY_MOST_PERIODS = 16, FTL_STEADY_MARKS = 2 * FTL_STEADY_MOST_PERIODS + 1 };

typedef struct ftl_steady {
  int64_t num_marks;
  ftl_steady_mark marks[FTL_STEADY_MARKS];  // the last of them, mark i at i modulo their number
} ftl_steady;

// The last periods, as many as there were before them that took as long and moved as much.
typedef struct ftl_steady_window {
  int64_t num_periods;  // 0: none do yet
  ftl_steady_mark since;
  int64_t spread_permille;  // of the whole launch: what would come of it if those to come were like the ones before
} ftl_steady_window;

// Marks come in the order of the periods; the oldest are forgotten.
void ftl_steady_add(ftl_steady *steady, const ftl_steady_mark *mark);
// The shortest window of 1, 2, 4, 8 or 16 periods, `least_periods` or more, up to the last mark that agrees with the
// one before it in time and in the traffic of L2 and DRAM for the work done: a period that begins with a wave of CTAs
// sees a whole number of waves, and its neighbour may see one less. `left_permille` of the launch are to be skipped:
// what the windows differ by is to be no more than 5 permille of the launch's time, and 10 of its traffic; in a window
// of one period, where chance may have it, 5 permille of the period's time too. What is dirty in L2 must have changed
// by less than 5 permille of the window's DRAM traffic (in a single period, or by less than 2 %): else writes are still
// to come.
ftl_steady_window ftl_steady_find(const ftl_steady *steady, int64_t least_periods, int64_t left_permille);

#endif
