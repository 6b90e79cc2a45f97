#include "engine/sampled/steady.h"

#include <math.h>
#include <stdlib.h>

// Guesses, of what the stated error bounds leave room for (docs/model_sampled.md, error bounds).
enum {
  TIME_PERMILLE = 5,      // of the launch, by which windows that stand for what is to come may differ
  TRAFFIC_PERMILLE = 10,  // and of its traffic from DRAM and from L2
  DIRTY_PERMILLE = 20,    // the share of L2 that is dirty wavers by about a hundredth when it no longer grows
  DIRTIED_PERMILLE = 5,
};

static int64_t dram_sectors(const ftl_steady_mark *mark) {
  return mark->counts.dram_read_sectors + mark->counts.dram_write_sectors;
}

static int64_t l2_sectors(const ftl_steady_mark *mark) {
  return mark->counts.asked_sectors - mark->counts.coalesced_sectors;
}

// The mark `back` periods before the last.
static const ftl_steady_mark *mark_at(const ftl_steady *steady, int64_t back) {
  return &steady->marks[(steady->num_marks - 1 - back) % FTL_STEADY_MARKS];
}

void ftl_steady_add(ftl_steady *steady, const ftl_steady_mark *mark) {
  steady->marks[steady->num_marks++ % FTL_STEADY_MARKS] = *mark;
}

// What a window takes of something for the work that it does.
typedef struct window_rates {
  double time, dram, l2;
} window_rates;

static window_rates rates_of(const ftl_steady_mark *begin, const ftl_steady_mark *end) {
  double work = (double)(end->work - begin->work);
  return (window_rates){.time = (double)(end->ticks - begin->ticks) / work,
                        .dram = (double)(dram_sectors(end) - dram_sectors(begin)) / work,
                        .l2 = (double)(l2_sectors(end) - l2_sectors(begin)) / work};
}

static double difference_permille(double a, double b) {
  double larger = fmax(a, b);
  return larger > 0 ? 1000.0 * fabs(a - b) / larger : 0;
}

static bool has_settled(const ftl_steady_mark *begin, const ftl_steady_mark *end, int64_t periods) {
  int64_t dirtied = llabs(end->dirty_sectors - begin->dirty_sectors);
  if (dirtied * 1000 <= (dram_sectors(end) - dram_sectors(begin)) * DIRTIED_PERMILLE) return true;
  int64_t more = end->dirty_sectors > begin->dirty_sectors ? end->dirty_sectors : begin->dirty_sectors;
  return periods == 1 && dirtied * 1000 <= more * DIRTY_PERMILLE;
}

ftl_steady_window ftl_steady_find(const ftl_steady *steady, int64_t least_periods, int64_t left_permille) {
  for (int64_t periods = least_periods; 2 * periods < steady->num_marks && periods <= FTL_STEADY_MOST_PERIODS;
       periods *= 2) {
    const ftl_steady_mark *begin = mark_at(steady, 2 * periods), *middle = mark_at(steady, periods);
    const ftl_steady_mark *end = mark_at(steady, 0);
    if (middle->work <= begin->work || end->work <= middle->work || !has_settled(middle, end, periods)) continue;
    window_rates before = rates_of(begin, middle), last = rates_of(middle, end);
    double time_spread = difference_permille(last.time, before.time), left = (double)left_permille / 1000;
    double traffic_spread = fmax(difference_permille(last.dram, before.dram), difference_permille(last.l2, before.l2));
    if (time_spread * left > TIME_PERMILLE || traffic_spread * left > TRAFFIC_PERMILLE) continue;
    if (periods == 1 && time_spread > TIME_PERMILLE) continue;
    return (ftl_steady_window){.num_periods = periods,
                               .since = *middle,
                               .spread_permille = (int64_t)ceil(fmax(time_spread, traffic_spread) * left)};
  }
  return (ftl_steady_window){0};
}
