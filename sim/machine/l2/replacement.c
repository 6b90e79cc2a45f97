#include "machine/l2/replacement.h"

#include <stddef.h>
#include <string.h>

#include "machine/l2/hash.h"

static void lru_use(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way) {
  (void)num_ways;
  ways[way].stamp = ++set->tick;
}

static uint32_t lru_victim(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways) {
  uint32_t oldest = 0;
  for (uint32_t way = 1; way < num_ways; way++) {
    // Ages are differences, so the tick may wrap.
    if (set->tick - ways[way].stamp > set->tick - ways[oldest].stamp) oldest = way;
  }
  return oldest;
}

static void nru_use(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way) {
  (void)num_ways;
  set->num_marked = (uint16_t)(set->num_marked + (ways[way].stamp == 0));
  ways[way].stamp = 1;
}

// Any of the ways without a mark, from a deterministic sequence; marks are cleared when all ways have one.
static uint32_t nru_victim(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways) {
  if (set->num_marked == num_ways) {
    for (uint32_t way = 0; way < num_ways; way++) ways[way].stamp = 0;
    set->num_marked = 0;
  }
  uint32_t way = ftl_l2_scale(ftl_l2_mix(set->tick++), num_ways);
  while (ways[way].stamp != 0) way = way + 1 < num_ways ? way + 1 : 0;
  return way;
}

static void random_use(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way) {
  (void)ways, (void)num_ways, (void)way;
  set->tick++;
}

// A function of the set's history only: the order in which other sets are used changes nothing.
static uint32_t random_victim(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways) {
  (void)ways;
  return ftl_l2_scale(ftl_l2_mix(set->tick + 1u), num_ways);
}

static const ftl_l2_replacement policies[] = {
    {"lru", lru_use, lru_victim},
    {"nru", nru_use, nru_victim},
    {"random", random_use, random_victim},
};

const ftl_l2_replacement *ftl_l2_replacement_find(const char *name) {
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    if (strcmp(policies[i].name, name) == 0) return &policies[i];
  }
  return NULL;
}
