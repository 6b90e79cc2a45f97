// A workload's launches, lowered for a shipped GPU, for the checker's tests.
#ifndef TESTS_UNIT_LOWER_CHECKER_PROGRAMS_H
#define TESTS_UNIT_LOWER_CHECKER_PROGRAMS_H

#include "lower/lower.h"
#include "workloads/spec.h"

typedef struct programs {
  ftl_arch *arch;
  ftl_tile_program *tile;
  ftl_warp_program *warps;
  ftl_lower_options options;  // with which it was lowered
} programs;

// `parameters`: "heads=2 seqlen=100 copy=ldg ...". FTL_INFEASIBLE where the GPU cannot run it; asserts on anything
// worse.
ftl_status lower_launch(programs *out, const char *arch, const char *workload, const char *parameters, int launch,
                        ftl_error *error);
// The first launch.
ftl_status lower_workload(programs *out, const char *arch, const char *workload, const char *parameters,
                          ftl_error *error);
void programs_fini(programs *p);

#endif
