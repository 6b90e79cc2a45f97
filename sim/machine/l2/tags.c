#include <stdlib.h>
#include <string.h>

#include "base/sectors.h"
#include "machine/l2/tags_internal.h"

#define NO_LINE UINT64_MAX

_Static_assert(sizeof(ftl_l2_way) <= 16, "a tag entry takes 16 bytes");

static uint64_t num_sets(const ftl_l2_tags *tags) { return (uint64_t)tags->sets_per_side * tags->hash.num_sides; }

ftl_status ftl_l2_tags_create(ftl_l2_tags **out, const ftl_arch *arch, int32_t log2_sample, ftl_error *error) {
  *out = NULL;
  const ftl_l2_replacement *replacement = ftl_l2_replacement_find(arch->l2_replacement);
  if (replacement == NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: l2.replacement '%s' is unknown", arch->name, arch->l2_replacement);
  }
  ftl_l2_tags *tags = calloc(1, sizeof *tags);
  if (tags == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the L2 tags");
  tags->hash = ftl_l2_hash_init(arch);
  tags->replacement = replacement;
  tags->num_ways = (uint32_t)arch->l2_ways;
  tags->num_words = ftl_l2_print_words(tags->num_ways);
  tags->most_dirty_milliways = (uint32_t)(arch->l2_ways * arch->l2_busy_dirty_milli);
  tags->kept_dirty_milliways = (uint32_t)(arch->l2_ways * arch->l2_max_dirty_milli);
  tags->most_last_milliways = (uint32_t)(arch->l2_ways * 1000 * arch->l2_persisting_max_bytes / arch->l2_size_bytes);
  tags->last_milli = 1000;
  tags->log2_sample = log2_sample;
  tags->fill_sectors = (uint32_t)arch->l2_fill_sectors;
  tags->size_bytes = arch->l2_size_bytes;
  uint32_t all_sets = tags->hash.sets_per_slice * tags->hash.slices_per_side;
  tags->sets_per_side = ((all_sets - 1) >> log2_sample) + 1;
  uint64_t entries = num_sets(tags) * tags->num_ways;
  tags->sets = FTL_ARENA_NEW_RAW(&tags->arena, ftl_l2_set, num_sets(tags));
  tags->prints = FTL_ARENA_NEW_RAW(&tags->arena, uint64_t, num_sets(tags) * tags->num_words);
  tags->ways = FTL_ARENA_NEW_RAW(&tags->arena, ftl_l2_way, entries);
  if (tags->sets == NULL || tags->prints == NULL || tags->ways == NULL) {
    ftl_l2_tags_destroy(tags);
    return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the L2 tags");
  }
  ftl_l2_tags_flush(tags);
  tags->changes = 1;
  *out = tags;
  return FTL_OK;
}

void ftl_l2_tags_destroy(ftl_l2_tags *tags) {
  if (tags == NULL) return;
  ftl_arena_fini(&tags->arena);
  free(tags);
}

void ftl_l2_tags_flush(ftl_l2_tags *tags) {
  uint64_t entries = num_sets(tags) * tags->num_ways;
  for (uint64_t i = 0; i < entries; i++) tags->ways[i] = (ftl_l2_way){.line = NO_LINE};
  memset(tags->prints, FTL_L2_PRINT_FREE, num_sets(tags) * tags->num_words * sizeof *tags->prints);
  for (uint64_t i = 0; i < num_sets(tags); i++) {
    for (uint32_t way = tags->num_ways; way < tags->num_words * FTL_L2_PRINTS_OF_WORD; way++)
      ftl_l2_prints_set(&tags->prints[i * tags->num_words], way, FTL_L2_PRINT_NONE);
    // Ticks start apart, so that `random` does not choose alike in all sets.
    tags->sets[i] = (ftl_l2_set){.tick = (uint32_t)ftl_l2_mix(i)};
  }
  tags->num_dirty_sectors = 0;
}

// How many sets on the next one in the sample is.
static uint32_t sets_to_sample(const ftl_l2_tags *tags, uint32_t set_in_side) {
  return -set_in_side & ((1u << tags->log2_sample) - 1u);
}

bool ftl_l2_tags_in_sample(const ftl_l2_tags *tags, uint64_t line) {
  return sets_to_sample(tags, ftl_l2_hash_address(&tags->hash, line).set_in_side) == 0;
}

static void begin_stretch(ftl_l2_sample_walk *walk) {
  ftl_l2_stretch stretch = ftl_l2_hash_stretch(&walk->tags->hash, walk->line);
  walk->left = stretch.num_lines;
  walk->slice = stretch.at.slice_in_side;
  walk->first_set = stretch.at.set_in_side - stretch.at.slice_in_side;
  walk->home_side = stretch.at.home_side;
}

bool ftl_l2_sample_walk_try_next(ftl_l2_sample_walk *walk, uint64_t *line, ftl_l2_address *at) {
  const ftl_l2_tags *tags = walk->tags;
  uint32_t slices = tags->hash.slices_per_side;
  while (walk->line < walk->end) {
    if (walk->left == 0) begin_stretch(walk);
    uint32_t slice = walk->slice, next = sets_to_sample(tags, walk->first_set + slice);
    slice += next;
    if (slice >= slices) {
      next = slices - walk->slice;
      slice = sets_to_sample(tags, walk->first_set);
      next += slice;
    }
    if (next >= walk->left) {
      walk->line += walk->left;
      walk->left = 0;
      continue;
    }
    *at = (ftl_l2_address){walk->home_side, (uint16_t)slice, walk->first_set + slice};
    *line = walk->line + next;
    walk->line = *line + 1;
    walk->left -= next + 1;
    walk->slice = slice + 1 == slices ? 0 : slice + 1;
    return *line < walk->end;
  }
  return false;
}

ftl_l2_place ftl_l2_tags_place(const ftl_l2_tags *tags, uint64_t line) {
  ftl_l2_address at = ftl_l2_hash_address(&tags->hash, line);
  return (ftl_l2_place){.home_side = (int32_t)at.home_side,
                        .slice = (int32_t)(at.home_side * tags->hash.slices_per_side + at.slice_in_side)};
}

ftl_l2_address ftl_l2_tags_address(const ftl_l2_tags *tags, uint64_t line) {
  return ftl_l2_hash_address(&tags->hash, line);
}

static ftl_l2_set_view view_set(const ftl_l2_tags *tags, ftl_l2_address at, uint32_t side) {
  return ftl_l2_view_of(tags, ftl_l2_set_of(tags, at, side));
}

void ftl_l2_tags_prefetch(const ftl_l2_tags *tags, ftl_l2_address at, int32_t side) {
  ftl_l2_set_view view = view_set(tags, at, (uint32_t)side);
  __builtin_prefetch(view.set, 1);
  __builtin_prefetch(view.prints);
  const ftl_l2_way *end = view.ways + tags->num_ways;
  for (const ftl_l2_way *way = view.ways; way < end; way += 4) __builtin_prefetch(way, 1);
}

// The first way without a line, where there is one.
static uint32_t find_free_way(const ftl_l2_set_view *view) {
  for (uint32_t word = 0;; word++) {
    uint64_t like = ftl_l2_prints_like(view->prints[word], FTL_L2_PRINT_FREE);
    if (like != 0) return word * FTL_L2_PRINTS_OF_WORD + ftl_l2_prints_first(like);
  }
}

// A share of a set's ways. Where it is no whole number, so many sets have one more that the mean is the share.
static uint32_t share_of_set(const ftl_l2_tags *tags, const ftl_l2_set *set, uint32_t milliways) {
  return (milliways + ftl_l2_scale(ftl_l2_mix((uint64_t)(set - tags->sets)), 1000)) / 1000;
}

static void change_priority(ftl_l2_set *set, ftl_l2_way *way, ftl_l2_priority priority) {
  set->num_first =
      (uint16_t)(set->num_first + (priority == FTL_L2_EVICT_FIRST) - (way->priority == FTL_L2_EVICT_FIRST));
  set->num_last = (uint16_t)(set->num_last + (priority == FTL_L2_EVICT_LAST) - (way->priority == FTL_L2_EVICT_LAST));
  way->priority = (uint8_t)priority;
}

// Which ways a victim is taken from: those to be evicted first, where there are any, then the normal ones.
static ftl_l2_priority priority_to_evict(const ftl_l2_tags *tags, const ftl_l2_set *set) {
  if (set->num_first > 0) return FTL_L2_EVICT_FIRST;
  return set->num_last < tags->num_ways ? FTL_L2_EVICT_NORMAL : FTL_L2_EVICT_LAST;
}

// Of a window larger than the set-aside only part is to stay; which lines, a hash says, the same in every access.
static ftl_l2_priority granted(const ftl_l2_tags *tags, uint64_t line, ftl_l2_priority priority) {
  if (priority != FTL_L2_EVICT_LAST || ftl_l2_scale(ftl_l2_mix(line), 1000) < tags->last_milli) return priority;
  return FTL_L2_EVICT_NORMAL;
}

// Beyond the set-aside one of those to be evicted last becomes normal.
__attribute__((noinline)) static void take_priority(const ftl_l2_tags *tags, const ftl_l2_set_view *view, uint32_t way,
                                                    ftl_l2_priority priority) {
  change_priority(view->set, &view->ways[way], priority);
  if (priority != FTL_L2_EVICT_LAST) return;
  if (view->set->num_last <= share_of_set(tags, view->set, tags->most_last_milliways)) return;
  uint32_t beyond = tags->replacement->victim(view->set, view->ways, tags->num_ways, FTL_L2_EVICT_LAST);
  change_priority(view->set, &view->ways[beyond], FTL_L2_EVICT_NORMAL);
}

// The last access decides a line's priority.
static inline void use_way(const ftl_l2_tags *tags, const ftl_l2_set_view *view, uint32_t way,
                           ftl_l2_priority priority) {
  if (tags->replacement->stamps_only)
    ftl_l2_stamp(view->set, &view->ways[way]);
  else
    tags->replacement->use(view->set, view->ways, tags->num_ways, way);
  priority = granted(tags, view->ways[way].line, priority);
  if (view->ways[way].priority != priority) take_priority(tags, view, way, priority);
}

// The way's dirty sectors go to DRAM; the line stays, clean.
static void clean_way(ftl_l2_tags *tags, const ftl_l2_set_view *view, uint32_t way, ftl_l2_outcome *outcome) {
  ftl_l2_way *entry = &view->ways[way];
  if (entry->dirty == 0) return;
  outcome->writebacks[outcome->num_writebacks] = view->ways[way].line;
  outcome->writeback_sectors[outcome->num_writebacks] = entry->dirty;
  outcome->num_writebacks++;
  outcome->dram_write_sectors = (uint8_t)(outcome->dram_write_sectors + ftl_num_sectors(entry->dirty));
  tags->num_dirty_sectors -= ftl_num_sectors(entry->dirty);
  view->set->num_dirty--;
  entry->dirty = 0;
}

// Whether the set has more than its share of dirty ways.
static bool is_too_dirty(const ftl_l2_tags *tags, const ftl_l2_set *set, uint32_t milliways) {
  return set->num_dirty > 1 && set->num_dirty > share_of_set(tags, set, milliways);
}

// Any dirty way but `kept`, from a deterministic sequence of the set's own.
static uint32_t choose_dirty_way(const ftl_l2_tags *tags, const ftl_l2_set_view *view, uint32_t kept) {
  uint32_t way = ftl_l2_scale(ftl_l2_mix(view->set->tick + 1u), tags->num_ways);
  while (view->ways[way].dirty == 0 || way == kept) way = way + 1 < tags->num_ways ? way + 1 : 0;
  return way;
}

// A way for a line that the set does not hold: a free one, else the victim's. Apart from the hits, which would save
// registers for it.
__attribute__((noinline)) static uint32_t allocate_way(ftl_l2_tags *tags, const ftl_l2_set_view *view, uint64_t line,
                                                       ftl_l2_outcome *outcome) {
  uint32_t way;
  if (view->set->num_used < tags->num_ways) {
    way = find_free_way(view);
    view->set->num_used++;
  } else {
    way = tags->replacement->victim(view->set, view->ways, tags->num_ways, priority_to_evict(tags, view->set));
    clean_way(tags, view, way, outcome);
  }
  view->ways[way].line = line;
  ftl_l2_prints_set(view->prints, way, ftl_l2_print_of(line));
  view->ways[way].halves = 0;
  view->ways[way].may_have_replica = true;  // from before the line was evicted here
  return way;
}

static inline uint32_t find_or_allocate(ftl_l2_tags *tags, const ftl_l2_set_view *view, uint64_t line,
                                        ftl_l2_priority priority, ftl_l2_outcome *outcome) {
  uint32_t way = ftl_l2_find_way(tags, view, line);
  if (way == tags->num_ways) way = allocate_way(tags, view, line, outcome);
  use_way(tags, view, way, priority);
  return way;
}

// Widens sectors to aligned groups of fill_sectors.
static uint8_t widen(uint8_t sectors, uint32_t fill_sectors) {
  if (fill_sectors >= FTL_LINE_SECTORS) return sectors != 0 ? FTL_ALL_SECTORS : 0;
  if (fill_sectors == 1) return sectors;
  uint8_t low = (sectors & 3) != 0 ? 3 : 0, high = (sectors & 12) != 0 ? 12 : 0;
  return low | high;
}

// A read at the home side, of which *had_sectors are there: what is missing comes from DRAM. Returns the way.
static inline uint32_t read_home(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line, uint8_t sectors,
                                 ftl_l2_priority priority, bool for_replica, uint8_t *had_sectors,
                                 ftl_l2_outcome *outcome) {
  ftl_l2_set_view view = view_set(tags, at, at.home_side);
  uint32_t way = find_or_allocate(tags, &view, line, priority, outcome);
  ftl_l2_way *entry = &view.ways[way];
  uint8_t had = *had_sectors = ftl_sectors_of_halves(entry->halves);
  uint8_t missing = sectors & (uint8_t)~had;
  if (missing != 0) outcome->dram_read_sectors = widen(missing, tags->fill_sectors) & (uint8_t)~had;
  entry->halves |= ftl_halves_of_sectors(outcome->dram_read_sectors);
  entry->may_have_replica |= for_replica;
  return way;
}

// A read at the other side. Of its own, so that neither side saves the other's registers.
__attribute__((noinline)) static uint32_t read_replica(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line,
                                                       uint8_t sectors, ftl_l2_priority priority,
                                                       ftl_l2_outcome *outcome) {
  ftl_l2_set_view view = view_set(tags, at, at.home_side ^ 1u);
  uint32_t way = find_or_allocate(tags, &view, line, priority, outcome);
  ftl_l2_way *replica = &view.ways[way];
  uint8_t had = ftl_sectors_of_halves(replica->halves);
  outcome->hit_sectors = sectors & had;
  uint8_t wanted = sectors & (uint8_t)~had, at_home;
  if (wanted != 0) {
    (void)read_home(tags, at, line, wanted, priority, true, &at_home, outcome);
    outcome->far_sectors = wanted & at_home;
    replica->halves |= ftl_halves_of_sectors(wanted);
  }
  return way;
}

uint32_t ftl_l2_tags_read_at(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line, uint8_t sectors, int32_t side,
                             ftl_l2_priority priority, ftl_l2_outcome *outcome) {
  tags->changes++;
  outcome->home_side = (uint8_t)at.home_side;
  outcome->slice_in_side = at.slice_in_side;
  outcome->far_sectors = outcome->dram_read_sectors = outcome->dram_write_sectors = outcome->num_writebacks = 0;
  if ((uint32_t)side != at.home_side) return read_replica(tags, at, line, sectors, priority, outcome);
  uint8_t had;
  uint32_t way = read_home(tags, at, line, sectors, priority, false, &had, outcome);
  outcome->hit_sectors = sectors & had;
  return way;
}

ftl_l2_outcome ftl_l2_tags_read(ftl_l2_tags *tags, uint64_t line, uint8_t sectors, int32_t side,
                                ftl_l2_priority priority) {
  ftl_l2_outcome outcome = {0};
  (void)ftl_l2_tags_read_at(tags, ftl_l2_hash_address(&tags->hash, line), line, sectors, side, priority, &outcome);
  return outcome;
}

// A write by the other side goes through its own side on its way home and leaves a replica there
// (kernels/measurements/micro_write_back_ncu.csv).
static void write_through_replica(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line, uint8_t halves,
                                  ftl_l2_priority priority, ftl_l2_outcome *outcome) {
  ftl_l2_set_view view = view_set(tags, at, at.home_side ^ 1u);
  uint32_t way = find_or_allocate(tags, &view, line, priority, outcome);
  view.ways[way].halves |= halves;
}

// A write by the home's side leaves the replica stale: it goes.
static void drop_replica(const ftl_l2_tags *tags, ftl_l2_address at, uint64_t line) {
  ftl_l2_set_view view = view_set(tags, at, at.home_side ^ 1u);
  uint32_t way = ftl_l2_find_way(tags, &view, line);
  if (way == tags->num_ways) return;
  view.ways[way].line = NO_LINE;
  ftl_l2_prints_set(view.prints, way, FTL_L2_PRINT_FREE);
  view.ways[way].halves = 0;
  change_priority(view.set, &view.ways[way], FTL_L2_EVICT_NORMAL);
  view.set->num_used--;
}

uint32_t ftl_l2_tags_write_at(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line, uint8_t sectors, uint8_t halves,
                              int32_t side, ftl_l2_priority priority, ftl_l2_outcome *outcome) {
  tags->changes++;
  outcome->home_side = (uint8_t)at.home_side;
  outcome->slice_in_side = at.slice_in_side;
  outcome->hit_sectors = sectors;
  outcome->far_sectors = outcome->dram_read_sectors = outcome->dram_write_sectors = outcome->num_writebacks = 0;
  ftl_l2_set_view view = view_set(tags, at, at.home_side);
  uint32_t way = find_or_allocate(tags, &view, line, priority, outcome);
  ftl_l2_way *entry = &view.ways[way];
  bool from_far = (uint32_t)side != at.home_side;
  if (from_far)
    write_through_replica(tags, at, line, halves, priority, outcome);
  else if (entry->may_have_replica && tags->hash.num_sides == 2)
    drop_replica(tags, at, line);
  entry->may_have_replica = from_far;
  view.set->num_dirty = (uint16_t)(view.set->num_dirty + (entry->dirty == 0));
  tags->num_dirty_sectors += ftl_num_sectors(sectors & (uint8_t)~entry->dirty);
  entry->dirty |= sectors;
  entry->halves |= halves;
  if (is_too_dirty(tags, view.set, tags->most_dirty_milliways))
    clean_way(tags, &view, choose_dirty_way(tags, &view, way), outcome);
  return way;
}

ftl_l2_outcome ftl_l2_tags_write(ftl_l2_tags *tags, uint64_t line, uint8_t sectors, uint8_t full_sectors, int32_t side,
                                 ftl_l2_priority priority) {
  ftl_l2_outcome outcome = {0};
  (void)ftl_l2_tags_write_at(tags, ftl_l2_hash_address(&tags->hash, line), line, sectors,
                             ftl_halves_of_sectors(sectors & full_sectors), side, priority, &outcome);
  return outcome;
}

int64_t ftl_l2_tags_settle(ftl_l2_tags *tags) {
  int64_t before = tags->num_dirty_sectors;
  for (uint64_t i = 0; i < num_sets(tags); i++) {
    ftl_l2_set_view view = ftl_l2_view_of(tags, i);
    while (is_too_dirty(tags, view.set, tags->kept_dirty_milliways)) {
      ftl_l2_outcome outcome = {0};
      clean_way(tags, &view, choose_dirty_way(tags, &view, tags->num_ways), &outcome);
      view.set->tick++;
    }
  }
  return before - tags->num_dirty_sectors;
}

// Lines that no kernel's tensor has: device addresses end far below.
#define FOUL_FIRST_LINE ((uint64_t)1 << 56)

void ftl_l2_tags_foul(ftl_l2_tags *tags, int64_t bytes) {
  int64_t num_lines = bytes / FTL_LINE_BYTES;
  // What a stream wrote more than two capacities ago has been evicted under any policy but random.
  int64_t kept_lines = 2 * tags->size_bytes / FTL_LINE_BYTES;
  int64_t first = num_lines > kept_lines ? num_lines - kept_lines : 0;
  uint64_t end = FOUL_FIRST_LINE + (uint64_t)num_lines;
  ftl_l2_sample_walk walk = ftl_l2_sample_walk_of(tags, FOUL_FIRST_LINE + (uint64_t)first, end);
  uint64_t line;
  ftl_l2_address at;
  while (ftl_l2_sample_walk_try_next(&walk, &line, &at)) {
    ftl_l2_outcome outcome;
    (void)ftl_l2_tags_write_at(tags, at, line, FTL_ALL_SECTORS, ftl_halves_of_sectors(FTL_ALL_SECTORS),
                               (int32_t)at.home_side, FTL_L2_EVICT_NORMAL, &outcome);
  }
}

void ftl_l2_tags_set_hit_ratio(ftl_l2_tags *tags, int64_t milli) { tags->last_milli = (uint32_t)milli; }

int64_t ftl_l2_tags_dirty_sectors(const ftl_l2_tags *tags) { return tags->num_dirty_sectors; }

int64_t ftl_l2_tags_scale(const ftl_l2_tags *tags, int64_t sampled) {
  return sampled * tags->hash.sets_per_slice * tags->hash.slices_per_side / tags->sets_per_side;
}

uint32_t ftl_l2_tags_changes(const ftl_l2_tags *tags) { return tags->changes; }
