// Whether an operation is the last that reads a value: no other does before the value is written anew, whether loops
// around it begin again or end. Loops on the way may run no step: what they write stands only for their own reads.
#include "lower/select/select.h"

typedef enum next_use { NOT_USED, READ, WRITTEN } next_use;

static bool reads(const ftl_tile_op *op, int32_t value) {
  int32_t read[FTL_TILE_OP_MAX_READS];
  int count = ftl_tile_op_reads(op, read);
  for (int i = 0; i < count; i++)
    if (read[i] == value) return true;
  return false;
}

// The END_LOOP of the loop around operation `i`, or where the role ends.
static int32_t end_around(const ftl_select *s, int32_t i) {
  int32_t depth = 0;
  for (; i < s->role->num_ops; i++) {
    ftl_tile_op_kind kind = ftl_select_op_at(s, i)->kind;
    if (kind == FTL_TILE_END_LOOP && depth-- == 0) break;
    if (kind == FTL_TILE_LOOP) depth++;
  }
  return i;
}

// Of the operations from first to end - 1.
static next_use next_use_in(const ftl_select *s, int32_t first, int32_t end, int32_t value) {
  for (int32_t i = first; i < end; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_LOOP) {
      int32_t end_of_loop = end_around(s, i + 1);
      if (next_use_in(s, i + 1, end_of_loop, value) == READ) return READ;
      i = end_of_loop;
      continue;
    }
    if (reads(op, value)) return READ;
    if (op->dst == value) return WRITTEN;
  }
  return NOT_USED;
}

static int32_t begin_of_loop(const ftl_select *s, int32_t end) {
  int32_t loop_var = ftl_select_op_at(s, end)->loop_var, i = end;
  while (ftl_select_op_at(s, i)->kind != FTL_TILE_LOOP || ftl_select_op_at(s, i)->loop_var != loop_var) i--;
  return i;
}

bool ftl_select_is_last_read(const ftl_select *s, int32_t op_idx, int32_t value) {
  for (int32_t i = op_idx + 1;;) {
    int32_t end = end_around(s, i);
    next_use use = next_use_in(s, i, end, value);
    if (use != NOT_USED || end == s->role->num_ops) return use != READ;
    if (next_use_in(s, begin_of_loop(s, end) + 1, op_idx + 1, value) == READ) return false;
    i = end + 1;
  }
}
