// What check.c (declarations, nesting, protocol) and check_ops.c, check_memory.c, check_math.c (operands and shapes of
// each op) share.
#ifndef FTL_TILE_CHECK_INTERNAL_H
#define FTL_TILE_CHECK_INTERNAL_H

#include "tile/tile.h"

typedef struct ftl_check {
  const ftl_tile_program *program;
  int32_t role_idx, op_idx;
  uint32_t live_loops;  // bit per loop variable that is in scope
  ftl_error *error;
} ftl_check;

// FTL_BAD_INPUT with the op's index and name.
ftl_status ftl_check_fail(const ftl_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Operands, shapes and ring roles of the op at check->op_idx (not LOOP and END_LOOP, but their expressions).
FTL_MUST_USE ftl_status ftl_check_op(const ftl_check *check);
// The same of an op that moves tiles, and of one on values in registers.
FTL_MUST_USE ftl_status ftl_check_memory_op(const ftl_check *check, const ftl_tile_op *op);
FTL_MUST_USE ftl_status ftl_check_math_op(const ftl_check *check, const ftl_tile_op *op);
// What the op at check->op_idx reads was written by an op before it (check_written.c).
FTL_MUST_USE ftl_status ftl_check_written(const ftl_check *check);
// One declaration; of a ring not who fills and reads it.
FTL_MUST_USE ftl_status ftl_check_value(const ftl_tile_program *program, int32_t value_idx, ftl_error *error);
FTL_MUST_USE ftl_status ftl_check_ring(const ftl_tile_program *program, int32_t ring_idx, ftl_error *error);

// Clusters: their size, and that CTAs which share loads load the same tiles in the same order (check_cluster.c).
FTL_MUST_USE ftl_status ftl_check_cluster(const ftl_tile_program *program, ftl_error *error);

#endif
