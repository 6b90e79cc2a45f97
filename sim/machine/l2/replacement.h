// Replacement in a set, by name.
// Models: true LRU; NRU (one mark a way, cleared when all have it); random from a deterministic sequence.
// A victim is sought among the ways of one priority: which one is tags.h's business.
// Numbers: l2.replacement.
#ifndef FTL_MACHINE_L2_REPLACEMENT_H
#define FTL_MACHINE_L2_REPLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/l2_priority.h"

typedef struct ftl_l2_way {
  uint64_t line;
  uint32_t stamp;         // lru: the set's tick at the last use; nru: 1 when marked
  uint8_t halves;         // of its sectors, those that are here (base/sectors.h)
  uint8_t dirty;          // sectors that DRAM has not; of one without a half the rest has not been fetched
  uint8_t priority;       // ftl_l2_priority of the last access; normal in a way without a line
  bool may_have_replica;  // of a home line: the other side may hold it too; false: it does not
} ftl_l2_way;

enum { FTL_L2_OLDEST = 11 };  // so that a set takes half a line of the host's cache

typedef struct ftl_l2_set {
  uint32_t tick;                 // uses of the set so far
  uint16_t num_used;             // ways that hold a line; they are the first ones until a replica is dropped
  uint16_t num_dirty;            // ways with a dirty sector
  uint16_t num_first, num_last;  // ways of that priority
  // lru: the ways that were the oldest, the oldest last, when that was looked up, at a tick. Those that have not been
  // used since still are.
  uint32_t oldest_tick;
  uint8_t num_oldest, oldest[FTL_L2_OLDEST];
} ftl_l2_set;

typedef struct ftl_l2_replacement {
  const char *name;
  bool stamps_only;  // `use` does no more than ftl_l2_stamp, which needs no call
  void (*use)(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way);  // a hit or a fill
  // When every way holds a line: one of those of this priority, of which there is one at least.
  uint32_t (*victim)(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, ftl_l2_priority priority);
} ftl_l2_replacement;

// The way is the set's last used.
static inline void ftl_l2_stamp(ftl_l2_set *set, ftl_l2_way *way) { way->stamp = ++set->tick; }

// NULL when there is none of that name.
const ftl_l2_replacement *ftl_l2_replacement_find(const char *name);

#endif
