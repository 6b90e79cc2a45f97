// Where an operation was written: a script's line, or its number.
#include <stdio.h>

#include "tile/tile.h"

const char *ftl_tile_op_where(const ftl_tile_program *program, int32_t op_idx, const char *object,
                              char buffer[FTL_TILE_WHERE_BYTES]) {
  const ftl_tile_op *op = &program->ops[op_idx];
  const char *space = object ? " " : "", *name = object ? object : "";
  if (program->source)
    snprintf(buffer, FTL_TILE_WHERE_BYTES, "%s:%d: %s%s%s", program->source, op->source_line,
             ftl_tile_op_name(op->kind), space, name);
  else
    snprintf(buffer, FTL_TILE_WHERE_BYTES, "%s: op %d (%s%s%s)", program->name, op_idx, ftl_tile_op_name(op->kind),
             space, name);
  return buffer;
}
