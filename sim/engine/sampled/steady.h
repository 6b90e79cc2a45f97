// When a walk repeats itself: the state at each start of a period, and the last periods that stand for those to come.
#ifndef FTL_ENGINE_SAMPLED_STEADY_H
#define FTL_ENGINE_SAMPLED_STEADY_H

#include "engine/sampled/traffic.h"

// At the start of a period.
typedef struct ftl_steady_mark {
  int64_t time;
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
  int64_t spread_permille;  // by how much they differ from as many before them
} ftl_steady_window;

void ftl_steady_add(ftl_steady *steady, const ftl_steady_mark *mark);
// The shortest window of 1, 4, 8 or 16 periods up to the last mark that agrees with the one before it within 5 permille
// in time and in DRAM traffic. What is dirty in L2 must not have changed by more than 2 % in a single period; in a
// longer window, by more than that part of its DRAM traffic: else writes are still to come. Single periods waver, as
// CTAs drift; longer windows average that.
ftl_steady_window ftl_steady_find(const ftl_steady *steady);

#endif
