#include "tile/op.h"

#include <stddef.h>

const char *ftl_tile_op_name(ftl_tile_op_kind kind) {
  static const char *const names[] = {
      [FTL_TILE_LOOP] = "loop",
      [FTL_TILE_END_LOOP] = "end_loop",
      [FTL_TILE_ACQUIRE] = "acquire",
      [FTL_TILE_LOAD] = "load",
      [FTL_TILE_COMMIT] = "commit",
      [FTL_TILE_WAIT] = "wait",
      [FTL_TILE_RELEASE] = "release",
      [FTL_TILE_LOOKUP] = "lookup",
      [FTL_TILE_LOAD_TILE] = "load_tile",
      [FTL_TILE_LOAD_ROWS] = "load_rows",
      [FTL_TILE_LOAD_COLUMNS] = "load_columns",
      [FTL_TILE_FILL] = "fill",
      [FTL_TILE_FETCH] = "fetch",
      [FTL_TILE_PUT] = "put",
      [FTL_TILE_DEQUANTIZE] = "dequantize",
      [FTL_TILE_TRANSPOSE] = "transpose",
      [FTL_TILE_MMA] = "mma",
      [FTL_TILE_ELEM] = "elem",
      [FTL_TILE_MASK] = "mask",
      [FTL_TILE_MASK_BITS] = "mask_bits",
      [FTL_TILE_DROPOUT] = "dropout",
      [FTL_TILE_REDUCE_ROWS] = "reduce_rows",
      [FTL_TILE_REDUCE_LANES] = "reduce_lanes",
      [FTL_TILE_REDUCE_WARPS] = "reduce_warps",
      [FTL_TILE_REDUCE_GROUPS] = "reduce_groups",
      [FTL_TILE_TOP] = "top",
      [FTL_TILE_STORE_TOP] = "store_top",
      [FTL_TILE_GATHER] = "gather",
      [FTL_TILE_CONVERT] = "convert",
      [FTL_TILE_STORE] = "store",
      [FTL_TILE_ATOMIC_ADD] = "atomic_add",
      [FTL_TILE_STORE_ROWS] = "store_rows",
      [FTL_TILE_STORE_MERGED] = "store_merged",
      [FTL_TILE_BARRIER] = "barrier",
      [FTL_TILE_ARRIVE] = "arrive",
      [FTL_TILE_SYNC] = "sync",
  };
  return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

bool ftl_tile_op_loads_direct(ftl_tile_op_kind kind) {
  return kind == FTL_TILE_LOOKUP || kind == FTL_TILE_LOAD_TILE || kind == FTL_TILE_LOAD_ROWS ||
         kind == FTL_TILE_LOAD_COLUMNS || kind == FTL_TILE_MASK_BITS;
}

bool ftl_tile_op_loads(ftl_tile_op_kind kind) { return kind == FTL_TILE_LOAD || ftl_tile_op_loads_direct(kind); }

bool ftl_tile_op_stores(ftl_tile_op_kind kind) {
  return kind == FTL_TILE_STORE || kind == FTL_TILE_ATOMIC_ADD || kind == FTL_TILE_STORE_ROWS ||
         kind == FTL_TILE_STORE_MERGED || kind == FTL_TILE_STORE_TOP;
}

int ftl_elem_num_operands(ftl_elem_fn fn) {
  switch (fn) {
    case FTL_ELEM_ADD:
    case FTL_ELEM_SUB:
    case FTL_ELEM_MUL:
    case FTL_ELEM_MAX:
    case FTL_ELEM_DIV:
    case FTL_ELEM_DIV_FULL:
      return 2;
    case FTL_ELEM_FMA:
    case FTL_ELEM_SELECT:
      return 3;
    default:
      return 1;
  }
}

int ftl_tile_op_reads(const ftl_tile_op *op, int32_t reads[FTL_TILE_OP_MAX_READS]) {
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
    case FTL_TILE_GATHER:
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
