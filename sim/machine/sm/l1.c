#include "machine/sm/l1.h"

#include <stddef.h>

#include "base/integer.h"
#include "base/sectors.h"
#include "lower/walk.h"

typedef struct l1_shape {
  int64_t num_sets, num_ways;
} l1_shape;

static l1_shape shape_of(const ftl_arch *arch, int64_t bytes) {
  int64_t lines = bytes > 0 ? bytes / arch->l1_line_bytes : 0, num_ways = ftl_smaller(arch->l1_ways, lines);
  return (l1_shape){num_ways > 0 ? lines / num_ways : 0, num_ways};
}

int64_t ftl_sm_l1_way_bytes(const ftl_arch *arch, int64_t bytes) {
  return shape_of(arch, bytes).num_sets * arch->l1_line_bytes;
}

int64_t ftl_sm_l1_protected_bytes(const ftl_arch *arch, int64_t bytes) {
  int64_t left = bytes - arch->l1_once_used_bytes;
  if (left <= 0) return 0;
  return left < arch->l1_protected_bytes ? left : arch->l1_protected_bytes;
}

bool ftl_sm_l1_create(sm_l1 *l1, const ftl_arch *arch, int64_t bytes, ftl_arena *arena) {
  l1_shape shape = shape_of(arch, bytes);
  *l1 = (sm_l1){.num_sets = (int32_t)shape.num_sets,
                .num_ways = (int32_t)shape.num_ways,
                .max_protected = (int32_t)(ftl_sm_l1_protected_bytes(arch, bytes) / arch->l1_line_bytes)};
  l1->ways_of_set = FTL_ARENA_NEW(arena, sm_l1_way, shape.num_sets * shape.num_ways);
  return l1->ways_of_set != NULL;
}

typedef struct l1_set {
  sm_l1_way *ways;
  int32_t num_ways, max_protected;
} l1_set;

// Local memory of an SM's warps is one after the other, so that it fills sets evenly, however much each has: here each
// begins a golden section of the sets behind the one before.
static uint64_t set_of_local(uint64_t num_sets, uint64_t line) {
  const uint64_t in_frame = (UINT64_C(1) << FTL_LOCAL_FRAME_BITS) / FTL_LINE_BYTES;
  uint64_t warp = line / in_frame % (UINT64_C(1) << FTL_LOCAL_WARP_BITS);
  return (line % in_frame + warp * (num_sets * 618 / 1000)) % num_sets;
}

// Of as many neighbours as there are sets each has one, whose order is a matter of the others' number (Murmur3's
// finaliser).
int64_t ftl_sm_l1_set(const sm_l1 *l1, uint64_t line) {
  uint64_t num_sets = (uint64_t)l1->num_sets, turn = line / num_sets;
  if (line >= (UINT64_C(1) << FTL_LOCAL_BIT) / FTL_LINE_BYTES) return (int64_t)set_of_local(num_sets, line);
  turn = (turn ^ turn >> 33) * UINT64_C(0xff51afd7ed558ccd);
  turn = (turn ^ turn >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return (int64_t)((line + (turn >> 33)) % num_sets);
}

// Those that may be protected are spread evenly, so that some sets have one more than others.
static int32_t max_protected_of(const sm_l1 *l1, int64_t index) {
  int64_t all = l1->max_protected, num_sets = l1->num_sets;
  int32_t most = (int32_t)((index + 1) * all / num_sets - index * all / num_sets);
  return most < l1->num_ways ? most : l1->num_ways - 1;  // a line that comes needs a way
}

static l1_set set_of(const sm_l1 *l1, uint64_t line) {
  if (l1->num_sets == 0) return (l1_set){0};
  int64_t index = ftl_sm_l1_set(l1, line);
  return (l1_set){.ways = &l1->ways_of_set[index * l1->num_ways],
                  .num_ways = l1->num_ways,
                  .max_protected = max_protected_of(l1, index)};
}

static sm_l1_way *find(const l1_set *set, uint64_t line) {
  for (int32_t way = 0; way < set->num_ways; way++)
    if (set->ways[way].is_taken && set->ways[way].line == line) return &set->ways[way];
  return NULL;
}

// The one used longest ago of those that are protected, or of those that are not.
static sm_l1_way *oldest_of(const l1_set *set, bool is_protected) {
  sm_l1_way *oldest = NULL;
  for (int32_t i = 0; i < set->num_ways; i++) {
    sm_l1_way *way = &set->ways[i];
    if (way->is_protected == is_protected && (!oldest || way->used < oldest->used)) oldest = way;
  }
  return oldest;
}

static void protect(const l1_set *set, sm_l1_way *line) {
  int32_t num_protected = 0;
  if (line->is_protected || set->max_protected <= 0) return;
  for (int32_t way = 0; way < set->num_ways; way++) num_protected += set->ways[way].is_protected;
  if (num_protected == set->max_protected) {
    sm_l1_way *oldest = oldest_of(set, true);
    oldest->is_protected = false;
    oldest->used = 0;
  }
  line->is_protected = true;
}

uint8_t ftl_sm_l1_present(const sm_l1 *l1, uint64_t line) {
  l1_set set = set_of(l1, line);
  const sm_l1_way *way = find(&set, line);
  return way ? way->valid : 0;
}

uint8_t ftl_sm_l1_lookup(sm_l1 *l1, uint64_t line) {
  l1_set set = set_of(l1, line);
  sm_l1_way *way = find(&set, line);
  if (!way) return 0;
  if (way->valid) protect(&set, way);
  way->used = ++l1->clock;
  return way->valid;
}

// An empty way, if there is one.
static sm_l1_way *victim_of(const l1_set *set) {
  for (int32_t way = 0; way < set->num_ways; way++)
    if (!set->ways[way].is_taken) return &set->ways[way];
  return oldest_of(set, false);
}

// NULL: there is no L1.
static sm_l1_way *place_of(sm_l1 *l1, uint64_t line) {
  l1_set set = set_of(l1, line);
  if (set.num_ways == 0) return NULL;
  sm_l1_way *way = find(&set, line);
  if (!way) {
    way = victim_of(&set);
    *way = (sm_l1_way){.line = line, .is_taken = true};
  }
  way->used = ++l1->clock;
  return way;
}

void ftl_sm_l1_ask(sm_l1 *l1, uint64_t line) { place_of(l1, line); }

void ftl_sm_l1_fill(sm_l1 *l1, uint64_t line, uint8_t sectors) {
  l1_set set = set_of(l1, line);
  sm_l1_way *way = find(&set, line);
  if (way) way->valid |= sectors;
}

void ftl_sm_l1_write(sm_l1 *l1, uint64_t line, uint8_t sectors) {
  sm_l1_way *way = place_of(l1, line);
  if (way) way->valid |= sectors;
}
