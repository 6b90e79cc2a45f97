// The tags of L2 as their files share them: sets of ways, and how a line is found among them.
#ifndef FTL_MACHINE_L2_TAGS_INTERNAL_H
#define FTL_MACHINE_L2_TAGS_INTERNAL_H

#include "base/arena.h"
#include "machine/l2/prints.h"
#include "machine/l2/replacement.h"
#include "machine/l2/tags.h"

struct ftl_l2_tags {
  ftl_l2_hash hash;
  const ftl_l2_replacement *replacement;
  uint32_t num_ways;
  uint32_t num_words;             // of prints of a set
  uint32_t most_dirty_milliways;  // of a set while a kernel writes
  uint32_t kept_dirty_milliways;  // of a set after it
  uint32_t most_last_milliways;   // of a set: the set-aside
  uint32_t last_milli;            // of the lines accessed as to be evicted last, those that are taken so
  int32_t log2_sample;
  uint32_t fill_sectors;
  uint32_t sets_per_side;  // that exist here: sampled ones only
  int64_t size_bytes;      // of the whole L2
  int64_t num_dirty_sectors;
  uint32_t changes;  // reads and writes that may have changed which lines there are, from 1
  ftl_l2_set *sets;  // [side][set]
  uint64_t *prints;  // [side][set][word]: a search touches only these, and the way that it finds
  ftl_l2_way *ways;  // [side][set][way]
  ftl_arena arena;
};

// One set of one side.
typedef struct ftl_l2_set_view {
  ftl_l2_set *set;
  uint64_t *prints;
  ftl_l2_way *ways;
} ftl_l2_set_view;

static inline ftl_l2_set_view ftl_l2_view_of(const ftl_l2_tags *tags, uint64_t set) {
  return (ftl_l2_set_view){&tags->sets[set], &tags->prints[set * tags->num_words], &tags->ways[set * tags->num_ways]};
}

// Replicas take the sets half a turn away from those of home lines of the same number: each kind fills the sets evenly
// on its own, and so do both together.
static inline uint32_t ftl_l2_set_of(const ftl_l2_tags *tags, ftl_l2_address at, uint32_t side) {
  uint32_t set_in_side = at.set_in_side >> tags->log2_sample, half = tags->sets_per_side / 2;
  if (side != at.home_side) set_in_side += set_in_side + half < tags->sets_per_side ? half : half - tags->sets_per_side;
  return side * tags->sets_per_side + set_in_side;
}

// The way that holds the line, or num_ways.
static inline uint32_t ftl_l2_find_way(const ftl_l2_tags *tags, const ftl_l2_set_view *view, uint64_t line) {
  uint8_t print = ftl_l2_print_of(line);
  for (uint32_t word = 0; word < tags->num_words; word++)
    for (uint64_t like = ftl_l2_prints_like(view->prints[word], print); like != 0; like &= like - 1) {
      uint32_t way = word * FTL_L2_PRINTS_OF_WORD + ftl_l2_prints_first(like);
      if (view->ways[way].line == line) return way;
    }
  return tags->num_ways;
}

#endif
