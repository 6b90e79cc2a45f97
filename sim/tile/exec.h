// Runs the control flow and the ring protocol of a tile program: roles, loops, rings. What an op does with data is left
// to a visitor (the interpreter), or to none (the check of the protocol).
#ifndef FTL_TILE_EXEC_H
#define FTL_TILE_EXEC_H

#include "tile/tile.h"

// Of late_role: roles take turns, or role number late_role - FTL_FIRST_LATE_ROLE runs an op only when no other can, so
// that whatever does not wait for it overtakes it.
enum { FTL_NO_LATE_ROLE = 0, FTL_FIRST_LATE_ROLE = 1 };

typedef struct ftl_exec_event {
  const ftl_tile_op *op;
  const ftl_expr_point *point;
  int32_t op_idx, role_idx;
  int32_t stage;         // of op->ring: being filled (ACQUIRE, LOAD, PUT, DEQUANTIZE) or read (FETCH, MMA); 0 otherwise
  int32_t stage_a;       // of op->ring_a, being read; 0 otherwise
  int32_t stage_scales;  // likewise of op->ring_scales
  bool present;          // loads and stores: the reference is
} ftl_exec_event;

typedef ftl_status (*ftl_exec_visit)(void *context, const ftl_exec_event *event, ftl_error *error);

typedef struct ftl_exec_options {
  int64_t first_tile, tile_stride;  // the CTA walks first_tile, first_tile + tile_stride, ... while < num_ctas
  int64_t max_trips;                // longer loops leave out iterations in their middle; 0: none do
  int64_t max_steps;                // the walk ends quietly after so many ops; 0: at the program's end
  int32_t late_role;
  int64_t *num_steps;    // how many ops ran, loop control included; may be NULL
  ftl_exec_visit visit;  // called for every op but loop control, in the order of execution; may be NULL
  void *context;
} ftl_exec_options;

// Roles take turns: each runs until a ring makes it wait. FTL_RUN_FAILED names the op that breaks the protocol, or the
// ops at which all roles wait for ever.
FTL_MUST_USE ftl_status ftl_exec_cta(const ftl_tile_program *program, const ftl_exec_options *options,
                                     ftl_error *error);

#endif
