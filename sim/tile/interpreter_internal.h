// What interpreter.c (the walk), interpreter_op.c (memory) and interpreter_math.c and interpreter_mma.c (register
// tiles) share.
#ifndef FTL_TILE_INTERPRETER_INTERNAL_H
#define FTL_TILE_INTERPRETER_INTERNAL_H

#include <string.h>

#include "base/arena.h"
#include "tile/exec.h"
#include "tile/interpreter.h"

enum { FTL_NUM_LANES = 4 };  // that share a row

// Which tile of a tensor the numbers came from; tensor -1: from several, or computed.
typedef struct ftl_tile_source {
  int32_t tensor;
  int64_t batch, head, row;
  int64_t end_row;  // rows from it on do not exist
} ftl_tile_source;

typedef struct ftl_value_data {
  float *x;  // TILE: [group][rows][columns]; ROWS: [group][rows][lanes]
  bool written;
  ftl_tile_source queries, keys;  // a fetched tile: queries; scores: both
} ftl_value_data;

typedef struct ftl_ring_data {
  float *stages[FTL_TILE_MAX_STAGES];  // [rows][columns]
  ftl_tile_source sources[FTL_TILE_MAX_STAGES];
} ftl_ring_data;

typedef struct ftl_interpreter {
  const ftl_tile_program *program;
  float *const *tensors;
  ftl_pair_visits *visits;
  ftl_arena arena;
  int64_t *work_left;                // as ftl_interpret_within counts it; NULL: without a limit
  float *transposed, *transposed_a;  // scratch of the largest ring stage each
  int64_t cta_of_role[FTL_TILE_MAX_ROLES];
  ftl_value_data values[FTL_TILE_MAX_VALUES];
  ftl_ring_data rings[FTL_TILE_MAX_RINGS];
} ftl_interpreter;

static inline int32_t ftl_num_groups_of(const ftl_interpreter *in, int32_t value) {
  return ftl_tile_num_copies(in->program, value);
}

static inline const ftl_value *ftl_value_info(const ftl_interpreter *in, int32_t value) {
  return &in->program->values[value];
}

// Numbers a row that a value holds.
static inline int32_t ftl_value_width(const ftl_interpreter *in, int32_t value) {
  const ftl_value *info = ftl_value_info(in, value);
  return info->kind == FTL_VALUE_ROWS ? FTL_NUM_LANES : info->columns;
}

// Of all groups' copies.
static inline int32_t ftl_value_rows(const ftl_interpreter *in, int32_t value) {
  return ftl_value_info(in, value)->rows * ftl_num_groups_of(in, value);
}

static inline size_t ftl_value_size(const ftl_interpreter *in, int32_t value) {
  return (size_t)ftl_value_rows(in, value) * (size_t)ftl_value_width(in, value);
}

static inline int32_t ftl_lane_of_column(int32_t column) { return column / 2 % FTL_NUM_LANES; }

FTL_MUST_USE ftl_status ftl_interpret_op(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error);
FTL_MUST_USE ftl_status ftl_interpret_math(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error);
FTL_MUST_USE ftl_status ftl_interpret_mma(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error);

static inline bool ftl_lanes_agree(const float *lanes) {
  for (int32_t lane = 1; lane < FTL_NUM_LANES; lane++)
    if (memcmp(&lanes[lane], &lanes[0], sizeof lanes[0]) != 0) return false;
  return true;
}

// FTL_RUN_FAILED with the op's index and name.
ftl_status ftl_interpret_fail(const ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
// The same of a value that is read before anything was written to it.
ftl_status ftl_interpret_not_written(const ftl_interpreter *in, const ftl_exec_event *event, int32_t value,
                                     ftl_error *error);

#endif
