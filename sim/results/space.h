// A set of configurations: every combination of the values given to parameters.
#ifndef FTL_RESULTS_SPACE_H
#define FTL_RESULTS_SPACE_H

#include <stdint.h>

#include "base/status.h"
#include "workloads/spec.h"

// Bounds the memory of a set of answers (about 18 kB each).
enum { FTL_SPACE_MAX_POINTS = 65536 };

typedef struct ftl_space {
  char workload[64];
  struct ftl_dimension *dimensions;  // in the order in which they came; the last advances first
  int num_dimensions;
} ftl_space;

// FTL_BAD_INPUT: unknown workload. On failure there is nothing to free.
FTL_MUST_USE ftl_status ftl_space_init(ftl_space *space, const char *workload, ftl_error *error);
void ftl_space_fini(ftl_space *space);

// One more value of a parameter (`seqlen` counts as one), checked on its own. FTL_BAD_INPUT names what is allowed, or
// that the value is there already, or that there would be more than FTL_SPACE_MAX_POINTS combinations.
FTL_MUST_USE ftl_status ftl_space_add(ftl_space *space, const char *name, const char *value, ftl_error *error);

// Before many are added: whether so many values of a parameter that has none are too many. FTL_BAD_INPUT.
FTL_MUST_USE ftl_status ftl_space_check_room(const ftl_space *space, const char *name, int64_t num_values,
                                             ftl_error *error);

int64_t ftl_space_num_points(const ftl_space *space);  // 1 without dimensions
// A completed spec. FTL_BAD_INPUT where the parameters contradict each other or a required one is missing.
FTL_MUST_USE ftl_status ftl_space_point(const ftl_space *space, int64_t point_idx, ftl_spec *out, ftl_error *error);

#endif
