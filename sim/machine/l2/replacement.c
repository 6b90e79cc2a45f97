#include "machine/l2/replacement.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "machine/l2/hash.h"

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

// Of all ways; they are fewer than 256.
static void find_oldest(ftl_l2_set *set, const ftl_l2_way *ways, uint32_t num_ways) {
  uint64_t found[FTL_L2_OLDEST] = {0};  // age and way, the oldest last
  for (uint32_t way = 0; way < num_ways; way++) {
    uint64_t aged = (uint64_t)(set->tick - ways[way].stamp) << 8 | way;
    // Each place keeps the older of two and hands on the other: no branch, of which every other was mispredicted.
    for (int32_t i = FTL_L2_OLDEST - 1; i >= 0; i--) {
      uint64_t older = aged > found[i] ? aged : found[i];
      aged = aged > found[i] ? found[i] : aged;
      found[i] = older;
    }
  }
  set->num_oldest = (uint8_t)(num_ways < FTL_L2_OLDEST ? num_ways : FTL_L2_OLDEST);
  for (int32_t i = 0; i < set->num_oldest; i++) set->oldest[i] = (uint8_t)found[FTL_L2_OLDEST - set->num_oldest + i];
  set->oldest_tick = set->tick;
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
