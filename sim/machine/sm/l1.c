#include "machine/sm/l1.h"

#include <stddef.h>

bool ftl_sm_l1_create(sm_l1 *l1, int64_t bytes, int64_t line_bytes, int64_t num_ways, ftl_arena *arena) {
  int64_t lines = bytes > 0 ? bytes / line_bytes : 0;
  if (num_ways > lines) num_ways = lines;
  *l1 = (sm_l1){.num_ways = (int32_t)num_ways, .num_sets = num_ways > 0 ? (int32_t)(lines / num_ways) : 0};
  l1->ways_of_set = FTL_ARENA_NEW(arena, sm_l1_way, (int64_t)l1->num_sets * num_ways);
  return l1->ways_of_set != NULL;
}

static sm_l1_way *set_of(sm_l1 *l1, uint64_t line) {
  return &l1->ways_of_set[(int64_t)(line % (uint64_t)l1->num_sets) * l1->num_ways];
}

static sm_l1_way *find(sm_l1 *l1, uint64_t line) {
  if (l1->num_sets == 0) return NULL;
  sm_l1_way *set = set_of(l1, line);
  for (int32_t way = 0; way < l1->num_ways; way++)
    if (set[way].valid && set[way].line == line) return &set[way];
  return NULL;
}

uint8_t ftl_sm_l1_lookup(sm_l1 *l1, uint64_t line) {
  sm_l1_way *way = find(l1, line);
  if (!way) return 0;
  way->used = ++l1->clock;
  return way->valid;
}

static sm_l1_way *oldest_of(sm_l1 *l1, uint64_t line) {
  sm_l1_way *set = set_of(l1, line), *oldest = set;
  for (int32_t way = 0; way < l1->num_ways; way++) {
    if (!set[way].valid) return &set[way];
    if (set[way].used < oldest->used) oldest = &set[way];
  }
  return oldest;
}

void ftl_sm_l1_fill(sm_l1 *l1, uint64_t line, uint8_t sectors) {
  if (l1->num_sets == 0) return;
  sm_l1_way *way = find(l1, line);
  if (!way) {
    way = oldest_of(l1, line);
    *way = (sm_l1_way){.line = line};
  }
  way->valid |= sectors;
  way->used = ++l1->clock;
}
