#include "engine/sampled/steady.h"

#include <stdlib.h>

enum {
  AGREE_PERMILLE = 5,   // windows that differ by less stand for what is to come
  DIRTY_PERMILLE = 20,  // the share of L2 that is dirty wavers by about a hundredth when it no longer grows
  SHORTEST_MEAN = 4,    // periods over which their wavering is averaged
};

static int64_t difference_permille(int64_t a, int64_t b) {
  int64_t larger = a > b ? a : b;
  return larger > 0 ? (larger - (a < b ? a : b)) * 1000 / larger : 0;
}

static int64_t dram_sectors(const ftl_steady_mark *mark) {
  return mark->counts.dram_read_sectors + mark->counts.dram_write_sectors;
}

// The mark `back` periods before the last.
static const ftl_steady_mark *mark_at(const ftl_steady *steady, int64_t back) {
  return &steady->marks[(steady->num_marks - 1 - back) % FTL_STEADY_MARKS];
}

void ftl_steady_add(ftl_steady *steady, const ftl_steady_mark *mark) {
  steady->marks[steady->num_marks++ % FTL_STEADY_MARKS] = *mark;
}

// Single periods agree by chance too: then what is dirty in L2 must be what it was.
static bool has_settled(const ftl_steady_mark *begin, const ftl_steady_mark *end, int64_t periods) {
  if (periods == 1) return difference_permille(end->dirty_sectors, begin->dirty_sectors) <= DIRTY_PERMILLE;
  int64_t dirtied = llabs(end->dirty_sectors - begin->dirty_sectors);
  return dirtied * 1000 <= (dram_sectors(end) - dram_sectors(begin)) * AGREE_PERMILLE;
}

ftl_steady_window ftl_steady_find(const ftl_steady *steady) {
  for (int64_t periods = 1; 2 * periods < steady->num_marks && periods <= FTL_STEADY_MOST_PERIODS;
       periods = periods == 1 ? SHORTEST_MEAN : 2 * periods) {
    const ftl_steady_mark *begin = mark_at(steady, 2 * periods), *middle = mark_at(steady, periods);
    const ftl_steady_mark *end = mark_at(steady, 0);
    int64_t time_spread = difference_permille(end->time - middle->time, middle->time - begin->time);
    int64_t dram_spread =
        difference_permille(dram_sectors(end) - dram_sectors(middle), dram_sectors(middle) - dram_sectors(begin));
    if (time_spread > AGREE_PERMILLE || dram_spread > AGREE_PERMILLE || !has_settled(middle, end, periods)) continue;
    return (ftl_steady_window){.num_periods = periods,
                               .since = *middle,
                               .spread_permille = time_spread > dram_spread ? time_spread : dram_spread};
  }
  return (ftl_steady_window){0};
}
