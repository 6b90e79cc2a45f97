// What spilling one value would mean: where it leaves its registers, and the loads and stores that this costs.
//
// A region is code without loop control. A spilled value is in memory at every region boundary; inside a region it
// leaves its registers between two accesses only if registers are short somewhere between them. The accesses that it
// stays in registers for are a group: one reload before it, if its first access reads, and one store after its last
// write, if the value is needed later.
#ifndef FTL_LOWER_SPILL_PLAN_H
#define FTL_LOWER_SPILL_PLAN_H

#include "lower/registers.h"

typedef struct ftl_spill_access {
  int32_t position;
  bool reads, writes;
  bool takes_off;  // a wgmma uses the registers from here until its wait
} ftl_spill_access;

typedef struct ftl_spill_region {
  int32_t begin, end;
  int64_t weight;  // expected executions, for comparing costs
  const uint64_t *live_in, *live_out;
} ftl_spill_region;

typedef struct ftl_spill_state {
  const ftl_draft *draft;
  int32_t limit;
  int32_t num_regions;
  ftl_spill_region *regions;
  ftl_spill_access *accesses;  // of all values; value v's are [first_access[v], first_access[v + 1])
  int32_t *first_access;
  int32_t *pressure;  // registers needed at each instruction, kept up to date as values are evicted
  int32_t *num_over;  // [i]: instructions before i at which pressure exceeds the limit
} ftl_spill_state;

// False when memory is out.
bool ftl_spill_state_init(ftl_spill_state *state, const ftl_draft *draft, const ftl_flow *flow,
                          const ftl_liveness *liveness, int32_t limit, ftl_arena *arena);
void ftl_spill_count_over(ftl_spill_state *state);

// A group of accesses, and the places between which the value is out of registers.
typedef struct ftl_spill_group {
  int32_t first, last;  // positions of its accesses
  int32_t free_from;    // the value is out of registers from here to `first`; `first` if it is not read there
  int32_t last_write;   // -1: none
  int32_t num_reads;    // by instructions that do not write it
  bool reload, store;
  bool is_stored_anew;  // behind its last access, though nothing has changed it
  int64_t weight;
} ftl_spill_group;

// Calls `visit` for each group, and `visit_gap` (may be NULL) for each stretch [from, to) of positions without
// registers. False, with nothing visited, if the value cannot be spilled (a wgmma uses it across a region's boundary).
typedef struct ftl_spill_visitor {
  void (*group)(void *context, const ftl_spill_group *group);
  void (*gap)(void *context, int32_t from, int32_t to);
  void *context;
} ftl_spill_visitor;
bool ftl_spill_plan(const ftl_spill_state *state, int32_t value, const ftl_spill_visitor *visitor);

#endif
