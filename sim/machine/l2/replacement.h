// Replacement in a set, by name.
// Models: true LRU; NRU (one mark a way, cleared when all have it); random from a deterministic sequence.
// Does not model: insertion priority, evict-first and evict-last hints.
// Numbers: l2.replacement.
#ifndef FTL_MACHINE_L2_REPLACEMENT_H
#define FTL_MACHINE_L2_REPLACEMENT_H

#include <stdint.h>

typedef struct ftl_l2_way {
  uint32_t stamp;  // lru: the set's tick at the last use; nru: 1 when marked
  uint8_t valid;   // sectors whose bytes are all here
  uint8_t dirty;   // sectors that DRAM has not; dirty and not valid: some bytes written, the rest not fetched
} ftl_l2_way;

typedef struct ftl_l2_set {
  uint32_t tick;        // uses of the set so far
  uint16_t num_used;    // ways that hold a line; they are the first ones until a replica is dropped
  uint16_t num_marked;  // nru: ways with their bit set
  uint16_t num_dirty;   // ways with a dirty sector
} ftl_l2_set;

typedef struct ftl_l2_replacement {
  const char *name;
  void (*use)(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways, uint32_t way);  // a hit or a fill
  uint32_t (*victim)(ftl_l2_set *set, ftl_l2_way *ways, uint32_t num_ways);         // when every way holds a line
} ftl_l2_replacement;

// NULL when there is none of that name.
const ftl_l2_replacement *ftl_l2_replacement_find(const char *name);

#endif
