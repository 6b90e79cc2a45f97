// Copies of a program: in a block of memory of the caller's, or of their own.
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "tile/tile.h"

// The block holds the program, its ops, its expressions and its tables, one after another.
typedef struct packed_sizes {
  size_t program, ops, exprs, tables;
} packed_sizes;

static size_t aligned(size_t size) { return ftl_round_up_size(size, _Alignof(max_align_t)); }

static size_t table_bytes(const ftl_tensor *tensor) {
  return tensor->table ? sizeof *tensor->table * (size_t)(tensor->num_rows * tensor->num_columns) : 0;
}

static packed_sizes sizes_of(const ftl_tile_program *program) {
  packed_sizes sizes = {.program = aligned(sizeof *program),
                        .ops = aligned(sizeof *program->ops * (size_t)program->num_ops),
                        .exprs = aligned(sizeof *program->exprs * (size_t)program->num_exprs)};
  for (int32_t i = 0; i < program->num_tensors; i++) sizes.tables += aligned(table_bytes(&program->tensors[i]));
  return sizes;
}

size_t ftl_tile_program_packed_bytes(const ftl_tile_program *program) {
  packed_sizes sizes = sizes_of(program);
  return sizes.program + sizes.ops + sizes.exprs + sizes.tables;
}

static void copy_ops_and_exprs(const ftl_tile_program *from, ftl_tile_program *to) {
  memcpy(to->ops, from->ops, sizeof *to->ops * (size_t)from->num_ops);
  memcpy(to->exprs, from->exprs, sizeof *to->exprs * (size_t)from->num_exprs);
}

const ftl_tile_program *ftl_tile_program_pack(const ftl_tile_program *program, void *block) {
  packed_sizes sizes = sizes_of(program);
  unsigned char *bytes = block;
  ftl_tile_program *copy = block;
  *copy = *program;
  copy->ops = (ftl_tile_op *)(void *)(bytes + sizes.program);
  copy->exprs = (ftl_expr_node *)(void *)(bytes + sizes.program + sizes.ops);
  copy_ops_and_exprs(program, copy);
  bytes += sizes.program + sizes.ops + sizes.exprs;
  for (int32_t i = 0; i < program->num_tensors; i++) {
    const ftl_tensor *tensor = &program->tensors[i];
    if (!tensor->table) continue;
    copy->tensors[i].table = (int32_t *)(void *)bytes;
    memcpy(bytes, tensor->table, table_bytes(tensor));
    bytes += aligned(table_bytes(tensor));
  }
  return copy;
}

// False when memory is out.
static bool clone_tables(const ftl_tile_program *program, ftl_tile_program *copy) {
  bool cloned = true;
  for (int32_t i = 0; i < program->num_tensors; i++) copy->tensors[i].table = NULL;
  for (int32_t i = 0; cloned && i < program->num_tensors; i++) {
    const ftl_tensor *tensor = &program->tensors[i];
    if (!tensor->table) continue;
    copy->tensors[i].table = malloc(table_bytes(tensor));
    cloned = copy->tensors[i].table != NULL;
    if (cloned) memcpy(copy->tensors[i].table, tensor->table, table_bytes(tensor));
  }
  return cloned;
}

ftl_status ftl_tile_program_clone(const ftl_tile_program *program, ftl_tile_program **out, ftl_error *error) {
  *out = NULL;
  bool cloned = false;
  ftl_tile_program *copy = malloc(sizeof *copy);
  if (copy) {
    *copy = *program;
    copy->ops = malloc(sizeof *copy->ops * (size_t)program->num_ops);
    copy->exprs = malloc(sizeof *copy->exprs * (size_t)program->num_exprs);
    cloned = clone_tables(program, copy) && copy->ops && copy->exprs;
  }
  if (!cloned) {
    ftl_tile_program_destroy(copy);
    return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory for a copy", program->name);
  }
  copy_ops_and_exprs(program, copy);
  *out = copy;
  return FTL_OK;
}
