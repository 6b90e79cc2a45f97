#include "tile/check_operands.h"

static ftl_status check_barrier(const ftl_check *check, const ftl_tile_op *op) {
  if (op->barrier < 0 || op->barrier >= check->program->num_barriers) return ftl_check_fail(check, "no such barrier");
  const ftl_named_barrier *barrier = &check->program->barriers[op->barrier];
  if (barrier->roles_mask >> check->role_idx & 1) return FTL_OK;
  return ftl_check_fail(check, "role %s does not take part in barrier %s", check->program->roles[check->role_idx].name,
                        barrier->name);
}

static bool fills_stage(ftl_tile_op_kind kind) {
  return kind == FTL_TILE_LOAD || kind == FTL_TILE_PUT || kind == FTL_TILE_TRANSPOSE || kind == FTL_TILE_DEQUANTIZE;
}

// Between a stage's acquire and its commit stands an op that fills it, be its tile absent now and then: a barrier in
// shared memory that no copy was announced to is never passed. A commit without an acquire is check_protocol's to name.
static ftl_status check_commit(const ftl_check *check, const ftl_tile_op *op) {
  ftl_status status = ftl_check_ring_role(check, op->ring, true);
  if (status != FTL_OK) return status;
  const ftl_tile_program *program = check->program;
  for (int32_t i = check->op_idx - 1; i >= program->roles[check->role_idx].first_op; i--) {
    const ftl_tile_op *before = &program->ops[i];
    if (before->ring != op->ring) continue;
    if (fills_stage(before->kind)) return FTL_OK;
    if (before->kind == FTL_TILE_ACQUIRE)
      return ftl_check_fail(check, "nothing was loaded into this stage of ring %s", program->rings[op->ring].name);
  }
  return FTL_OK;
}

ftl_status ftl_check_op(const ftl_check *check) {
  const ftl_tile_op *op = &check->program->ops[check->op_idx];
  switch (op->kind) {
    case FTL_TILE_LOOP:
      if (!ftl_check_is_expr(check, op->lo) || !ftl_check_is_bound(check, op->hi))
        return ftl_check_fail(check, "a bound uses a loop variable outside its loop");
      if (!op->by_threads && ftl_expr_uses_warp(check->program, op->hi))
        return ftl_check_fail(check, "only the bound of a loop by threads asks for the warp");
      return FTL_OK;
    case FTL_TILE_END_LOOP:
    case FTL_TILE_BARRIER:
      return FTL_OK;
    case FTL_TILE_ARRIVE:
    case FTL_TILE_SYNC:
      return check_barrier(check, op);
    case FTL_TILE_ACQUIRE:
      return ftl_check_ring_role(check, op->ring, true);
    case FTL_TILE_COMMIT:
      return check_commit(check, op);
    case FTL_TILE_WAIT:
    case FTL_TILE_RELEASE:
      return ftl_check_ring_role(check, op->ring, false);
    case FTL_TILE_LOOKUP:
    case FTL_TILE_LOAD:
    case FTL_TILE_LOAD_TILE:
    case FTL_TILE_LOAD_ROWS:
    case FTL_TILE_LOAD_COLUMNS:
    case FTL_TILE_FETCH:
    case FTL_TILE_PUT:
    case FTL_TILE_TRANSPOSE:
    case FTL_TILE_DEQUANTIZE:
    case FTL_TILE_STORE:
    case FTL_TILE_STORE_ROWS:
    case FTL_TILE_STORE_MERGED:
    case FTL_TILE_STORE_TOP:
    case FTL_TILE_ATOMIC_ADD:
      return ftl_check_memory_op(check, op);
    case FTL_TILE_FILL:
    case FTL_TILE_MMA:
    case FTL_TILE_ELEM:
    case FTL_TILE_MASK:
    case FTL_TILE_MASK_BITS:
    case FTL_TILE_DROPOUT:
    case FTL_TILE_REDUCE_ROWS:
    case FTL_TILE_REDUCE_LANES:
    case FTL_TILE_REDUCE_WARPS:
    case FTL_TILE_REDUCE_GROUPS:
    case FTL_TILE_GATHER:
    case FTL_TILE_CONVERT:
    case FTL_TILE_TOP:
      return ftl_check_math_op(check, op);
  }
  return ftl_check_fail(check, "no such op");
}
