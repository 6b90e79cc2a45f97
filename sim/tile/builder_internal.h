// What builder.c (declarations and operations) and expr.c (expressions) share.
#ifndef FTL_TILE_BUILDER_INTERNAL_H
#define FTL_TILE_BUILDER_INTERNAL_H

#include "tile/builder.h"

enum { FTL_TILE_MAX_EXPRS = 4096, FTL_TILE_MAX_OPS = 16384 };

struct ftl_builder {
  ftl_tile_program *program;
  int32_t capacity_ops;
  int32_t *expr_sizes;  // nodes of each expression written out as a tree: bounds the cost of evaluating it
  int32_t open_loops[FTL_TILE_MAX_LOOP_VARS];
  int32_t num_open_loops, num_role_loops;  // of the role begun last
  int64_t next_base_bytes;
  ftl_error error;  // the first; everything after it is ignored
};

// Remembers the first error.
void ftl_builder_fail(ftl_builder *builder, ftl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
