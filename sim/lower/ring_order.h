// What program order says about a role's rings: how many async-copy groups each WAIT may leave in flight, where a
// barrier is needed before a stage is filled again, when tiles held in registers have to be written to shared memory.
//
// For a single role whose warps both copy and compute (cp.async, or LDG + STS, or TMA with barriers instead of empty
// mbarriers). Every path through the loops is walked on an abstract state (which commits are outstanding, which free
// stages were read since the last barrier) until no new state appears; a number holds on all of them.
#ifndef FTL_LOWER_RING_ORDER_H
#define FTL_LOWER_RING_ORDER_H

#include <stdbool.h>

#include "lower/warp_program.h"

typedef struct ftl_op_order {
  bool barrier_before;  // ACQUIRE, STORE through a ring: a barrier goes before it
  bool store_pending;   // LOAD (copy by registers): an earlier tile of this ring has first to leave its registers
  bool store_here;      // WAIT (copy by registers): its tile is still in registers
  int32_t groups_left;  // WAIT: groups after the one waited for, at least
  bool reached;
} ftl_op_order;

// Whether the COMMIT `op` of the role closes a group of cp.async: COMMITs that follow each other share one.
bool ftl_ring_order_closes_group(const ftl_tile_program *tile, const ftl_role *role, int32_t op);

// One entry an operation of the role, `orders` of role->num_ops entries. FTL_RUN_FAILED if the ring protocol gives
// different needs on different paths (and so no one instruction sequence), FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_ring_order_find(const ftl_tile_program *tile, const ftl_role *role, ftl_copy copy,
                                            ftl_op_order *orders, ftl_error *error);

#endif
