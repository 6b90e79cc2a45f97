// What an op reads was written: by an op that stands before it in its role. A loop may run no iteration and a tile may
// be absent, so this finds what can never be right, not all that can go wrong; the interpreter finds the rest.
#include "tile/check_internal.h"

static bool is_written_before(const ftl_check *check, int32_t value) {
  const ftl_tile_program *program = check->program;
  for (int32_t i = check->op_idx - 1; i >= program->roles[check->role_idx].first_op; i--)
    if (program->ops[i].dst == value) return true;
  return false;
}

ftl_status ftl_check_written(const ftl_check *check) {
  int32_t reads[FTL_TILE_OP_MAX_READS];
  int count = ftl_tile_op_reads(&check->program->ops[check->op_idx], reads);
  for (int i = 0; i < count; i++)
    if (reads[i] >= 0 && !is_written_before(check, reads[i]))
      return ftl_check_fail(check, "%s is read and nothing before wrote it", check->program->values[reads[i]].name);
  return FTL_OK;
}
