// The neighbours of a configuration: one of the kernel's own parameters a step up or down, or of another name.
#ifndef FTL_EXPLAIN_NEIGHBOURS_H
#define FTL_EXPLAIN_NEIGHBOURS_H

#include "workloads/spec.h"

typedef struct ftl_neighbour {
  ftl_param param;
  char value[32];
  bool is_complete;  // else the rules between parameters forbid it, and why:
  char reason[FTL_ERROR_MESSAGE_BYTES];
  ftl_spec spec;  // completed: what was left open is decided anew
} ftl_neighbour;

enum { FTL_MAX_NEIGHBOURS = 24 };

// Those of `spec` (completed, with what the user left open) around the values of `resolved` (as predicted). Values that
// the workload does not know are left out. Gives their number, FTL_MAX_NEIGHBOURS at most.
int ftl_neighbours_make(const ftl_spec *spec, const ftl_spec *resolved, ftl_neighbour out[FTL_MAX_NEIGHBOURS]);

#endif
