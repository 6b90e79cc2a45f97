// What an op reads was written: by an op that stands before it in its role. A loop may run no iteration and a tile may
// be absent, so this finds what can never be right, not all that can go wrong; the interpreter finds the rest.
#include "tile/check_internal.h"

enum { MAX_READS = 4 };

// The values that an op reads, and how many; a destination that it adds to is among them.
static int reads_of(const ftl_tile_op *op, int32_t reads[MAX_READS]) {
  int count = 0;
  const ftl_operand operands[] = {op->a, op->b, op->c};
  switch (op->kind) {
    case FTL_TILE_MMA:
      reads[count++] = op->dst;
      if (op->ring_a < 0) reads[count++] = op->a.value;
      if (op->b.value >= 0) reads[count++] = op->b.value;
      break;
    case FTL_TILE_ELEM:
      for (int i = 0; i < ftl_elem_num_operands(op->fn); i++) reads[count++] = operands[i].value;
      break;
    case FTL_TILE_REDUCE_ROWS:
      reads[count++] = op->dst;
      reads[count++] = op->a.value;
      break;
    case FTL_TILE_MASK:
    case FTL_TILE_MASK_BITS:
    case FTL_TILE_DROPOUT:
    case FTL_TILE_REDUCE_LANES:
    case FTL_TILE_REDUCE_WARPS:
    case FTL_TILE_REDUCE_GROUPS:
      reads[count++] = op->dst;
      break;
    case FTL_TILE_STORE_MERGED:
      for (int i = 0; i < 3; i++) reads[count++] = operands[i].value;
      break;
    case FTL_TILE_STORE_TOP:
      if (op->a.value >= 0) reads[count++] = op->a.value;
      reads[count++] = op->b.value;
      break;
    case FTL_TILE_TOP:
    case FTL_TILE_PUT:
    case FTL_TILE_ATOMIC_ADD:
    case FTL_TILE_CONVERT:
    case FTL_TILE_STORE:
    case FTL_TILE_STORE_ROWS:
      reads[count++] = op->a.value;
      break;
    default:
      break;
  }
  return count;
}

static bool is_written_before(const ftl_check *check, int32_t value) {
  const ftl_tile_program *program = check->program;
  for (int32_t i = check->op_idx - 1; i >= program->roles[check->role_idx].first_op; i--)
    if (program->ops[i].dst == value) return true;
  return false;
}

ftl_status ftl_check_written(const ftl_check *check) {
  int32_t reads[MAX_READS];
  int count = reads_of(&check->program->ops[check->op_idx], reads);
  for (int i = 0; i < count; i++)
    if (reads[i] >= 0 && !is_written_before(check, reads[i]))
      return ftl_check_fail(check, "%s is read and nothing before wrote it", check->program->values[reads[i]].name);
  return FTL_OK;
}
