#include "machine/sm/l1.h"

#include <stddef.h>

int64_t ftl_sm_l1_protected_bytes(const ftl_arch *arch, int64_t bytes) {
  int64_t left = bytes - arch->l1_once_used_bytes;
  if (left <= 0) return 0;
  return left < arch->l1_protected_bytes ? left : arch->l1_protected_bytes;
}

bool ftl_sm_l1_create(sm_l1 *l1, const ftl_arch *arch, int64_t bytes, ftl_arena *arena) {
  int64_t lines = bytes > 0 ? bytes / arch->l1_line_bytes : 0, num_ways = arch->l1_ways;
  if (num_ways > lines) num_ways = lines;
  *l1 = (sm_l1){.num_ways = (int32_t)num_ways, .num_sets = num_ways > 0 ? (int32_t)(lines / num_ways) : 0};
  if (lines > 0) l1->max_protected = (int32_t)(num_ways * ftl_sm_l1_protected_bytes(arch, bytes) / bytes);
  if (l1->max_protected == num_ways && num_ways > 0) l1->max_protected--;  // a line that comes needs a way
  l1->ways_of_set = FTL_ARENA_NEW(arena, sm_l1_way, (int64_t)l1->num_sets * num_ways);
  return l1->ways_of_set != NULL;
}

static sm_l1_way *set_of(const sm_l1 *l1, uint64_t line) {
  return &l1->ways_of_set[(int64_t)(line % (uint64_t)l1->num_sets) * l1->num_ways];
}

static sm_l1_way *find(const sm_l1 *l1, uint64_t line) {
  if (l1->num_sets == 0) return NULL;
  sm_l1_way *set = set_of(l1, line);
  for (int32_t way = 0; way < l1->num_ways; way++)
    if (set[way].valid && set[way].line == line) return &set[way];
  return NULL;
}

// The one used longest ago of those that are protected, or of those that are not.
static sm_l1_way *oldest_of(sm_l1_way *set, int32_t num_ways, bool is_protected) {
  sm_l1_way *oldest = NULL;
  for (int32_t way = 0; way < num_ways; way++)
    if (set[way].is_protected == is_protected && (!oldest || set[way].used < oldest->used)) oldest = &set[way];
  return oldest;
}

static void protect(sm_l1 *l1, sm_l1_way *set, sm_l1_way *line) {
  int32_t num_protected = 0;
  if (line->is_protected || l1->max_protected == 0) return;
  for (int32_t way = 0; way < l1->num_ways; way++) num_protected += set[way].is_protected;
  if (num_protected == l1->max_protected) {
    sm_l1_way *oldest = oldest_of(set, l1->num_ways, true);
    oldest->is_protected = false;
    oldest->used = ++l1->clock;
  }
  line->is_protected = true;
}

uint8_t ftl_sm_l1_present(const sm_l1 *l1, uint64_t line) {
  const sm_l1_way *way = find(l1, line);
  return way ? way->valid : 0;
}

uint8_t ftl_sm_l1_lookup(sm_l1 *l1, uint64_t line) {
  sm_l1_way *way = find(l1, line);
  if (!way) return 0;
  protect(l1, set_of(l1, line), way);
  way->used = ++l1->clock;
  return way->valid;
}

// An empty way, if there is one.
static sm_l1_way *victim_of(sm_l1 *l1, uint64_t line) {
  sm_l1_way *set = set_of(l1, line);
  for (int32_t way = 0; way < l1->num_ways; way++)
    if (!set[way].valid) return &set[way];
  return oldest_of(set, l1->num_ways, false);
}

void ftl_sm_l1_fill(sm_l1 *l1, uint64_t line, uint8_t sectors) {
  if (l1->num_sets == 0) return;
  sm_l1_way *way = find(l1, line);
  if (!way) {
    way = victim_of(l1, line);
    *way = (sm_l1_way){.line = line};
  }
  way->valid |= sectors;
  way->used = ++l1->clock;
}
