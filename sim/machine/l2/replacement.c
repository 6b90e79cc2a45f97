#include "machine/l2/replacement.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "arch/arch_limits.h"
#include "machine/l2/hash.h"

enum { MOST_WAYS = FTL_ARCH_MAX_l2_ways };
_Static_assert(MOST_WAYS <= UINT8_MAX + 1, "ways are numbered in bytes");

static void lru_use(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way) {
  (void)num_ways;
  ftl_l2_stamp(set, &ways[way]);
}

static uint32_t oldest_of(const ftl_l2_set *set, const ftl_l2_way *ways, uint32_t num_ways, ftl_l2_priority priority) {
  uint32_t oldest = num_ways;
  uint64_t most = 0;
  for (uint32_t way = 0; way < num_ways; way++) {
    // Ages are differences, so the tick may wrap. One more, and 0 for ways of another priority: no branch to
    // mispredict.
    uint64_t age = ways[way].priority == priority ? (uint64_t)(set->tick - ways[way].stamp) + 1 : 0;
    oldest = age > most ? way : oldest;
    most = age > most ? age : most;
  }
  return oldest;
}

// A way's place among them is the number of younger ones: no two were used at the same tick. Counting takes no branch,
// of which every other would be mispredicted, and four comparisons in one instruction.
static inline void rank_ways(ftl_l2_set *set, const ftl_l2_way *ways, uint32_t num_ways) {
  uint32_t ages[MOST_WAYS], num_oldest = num_ways < FTL_L2_OLDEST ? num_ways : FTL_L2_OLDEST;
  uint8_t by_age[MOST_WAYS];
  for (uint32_t way = 0; way < num_ways; way++) ages[way] = set->tick - ways[way].stamp;
  for (uint32_t way = 0; way < num_ways; way++) {
    uint32_t num_younger = 0;
    for (uint32_t other = 0; other < num_ways; other++) num_younger += ages[other] < ages[way];
    by_age[num_younger] = (uint8_t)way;
  }
  memcpy(set->oldest, by_age + num_ways - num_oldest, num_oldest);
  set->num_oldest = (uint8_t)num_oldest;
  set->oldest_tick = set->tick;
}

// The usual numbers of ways, for which the compiler knows how often its loops run.
static void find_oldest(ftl_l2_set *set, const ftl_l2_way *ways, uint32_t num_ways) {
  switch (num_ways) {
    case 16:
      rank_ways(set, ways, 16);
      break;
    case 20:
      rank_ways(set, ways, 20);
      break;
    default:
      rank_ways(set, ways, num_ways);
  }
}

// Where all ways are of one priority, several victims are looked up at once. A way that is used since has a stamp
// beyond the tick of that.
static uint32_t lru_victim(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, ftl_l2_priority priority) {
  if (set->num_first > 0 || set->num_last > 0) return oldest_of(set, ways, num_ways, priority);
  for (;;) {
    if (set->num_oldest == 0) find_oldest(set, ways, num_ways);
    uint32_t way = set->oldest[--set->num_oldest];
    if (set->tick - ways[way].stamp >= set->tick - set->oldest_tick) return way;
  }
}

static void nru_use(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way) {
  (void)set, (void)num_ways;
  ways[way].stamp = 1;
}

static bool is_unmarked(const ftl_l2_way *way, ftl_l2_priority priority) {
  return way->stamp == 0 && way->priority == priority;
}

// Any of the ways without a mark, from a deterministic sequence; marks are cleared when all ways have one.
static uint32_t nru_victim(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, ftl_l2_priority priority) {
  uint32_t way = 0;
  while (way < num_ways && !is_unmarked(&ways[way], priority)) way++;
  for (uint32_t i = 0; way == num_ways && i < num_ways; i++)
    if (ways[i].priority == priority) ways[i].stamp = 0;
  way = ftl_l2_scale(ftl_l2_mix(set->tick++), num_ways);
  while (!is_unmarked(&ways[way], priority)) way = way + 1 < num_ways ? way + 1 : 0;
  return way;
}

static void random_use(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way) {
  (void)ways, (void)num_ways, (void)way;
  set->tick++;
}

// A function of the set's history only: the order in which other sets are used changes nothing.
static uint32_t random_victim(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, ftl_l2_priority priority) {
  uint32_t way = ftl_l2_scale(ftl_l2_mix(set->tick + 1u), num_ways);
  while (ways[way].priority != priority) way = way + 1 < num_ways ? way + 1 : 0;
  return way;
}

static const ftl_l2_replacement policies[] = {
    {"lru", true, lru_use, lru_victim},
    {"nru", false, nru_use, nru_victim},
    {"random", false, random_use, random_victim},
};

const ftl_l2_replacement *ftl_l2_replacement_find(const char *name) {
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    if (strcmp(policies[i].name, name) == 0) return &policies[i];
  }
  return NULL;
}
