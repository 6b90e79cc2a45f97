// What the files of the builder share: builder*.c (declarations and operations), expr.c (expressions), lookup.c
// (tables).
#ifndef FTL_TILE_BUILDER_INTERNAL_H
#define FTL_TILE_BUILDER_INTERNAL_H

#include "tile/builder.h"

enum {
  FTL_TILE_MAX_EXPRS = 4096,
  FTL_TILE_MAX_OPS = 16384,
  FTL_TILE_MAX_LOOKUPS = 64,
  FTL_TILE_BASE_ALIGNMENT_BYTES = 2 << 20,  // large pages of the GPU: every tensor starts one
};

// A lookup whose entry a register holds: in the loop whose depth is `depth` and in loops within it.
typedef struct ftl_held_lookup {
  ftl_expr lookup, present;
  int32_t table, num_entries;
  ftl_expr entry;  // the first
  int32_t depth;   // 0: of no loop
} ftl_held_lookup;

struct ftl_builder {
  ftl_tile_program *program;
  int32_t capacity_ops;
  int32_t *expr_sizes;  // nodes of each expression written out as a tree: bounds the cost of evaluating it
  int32_t open_loops[FTL_TILE_MAX_LOOP_VARS], open_loop_ops[FTL_TILE_MAX_LOOP_VARS];  // variables; LOOP operations
  int32_t num_open_loops, num_role_loops;                                             // of the role begun last
  ftl_held_lookup held[FTL_TILE_MAX_LOOKUPS];                                         // of the role begun last
  int32_t num_held;
  int64_t next_base_bytes;
  int32_t source_line;  // of ops to come
  ftl_error error;      // the first; everything after it is ignored
};

// Remembers the first error.
void ftl_builder_fail(ftl_builder *builder, ftl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool ftl_builder_is_ok(const ftl_builder *builder);
void ftl_builder_copy_name(char out[FTL_TILE_NAME_BYTES], const char *name);  // cut to what fits
ftl_tile_op ftl_builder_op_of(ftl_tile_op_kind kind);  // an operation with nothing set: no value, no ring, no tensor
// Adds an operation to the role begun last, after the LOOKUPs that it needs.
void ftl_builder_add_op(ftl_builder *builder, ftl_tile_op op);
// Puts an operation before operation `at` of the program, which is one of the role begun last, or at its end.
void ftl_builder_insert_op(ftl_builder *builder, int32_t at, const ftl_tile_op *op);
// Adds the LOOKUPs that an operation needs before it: of its bounds, its reference and its mask. Completes the pages of
// its reference.
void ftl_builder_add_lookups(ftl_builder *builder, ftl_tile_op *op);
// Lookups of a loop that ends, or (depth 0) of a role or a tile, are held no longer.
void ftl_builder_drop_lookups(ftl_builder *builder, int32_t depth);

#endif
