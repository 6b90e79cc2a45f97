// Kernels that this project did not write, as configurations of workloads: what their rows, their names and their
// source say of them (kernels/README.md has the table).
#ifndef FTL_RESULTS_FOREIGN_KERNEL_H
#define FTL_RESULTS_FOREIGN_KERNEL_H

#include "results/measurement.h"
#include "workloads/spec.h"

#define FTL_INDEPENDENT "independent"  // source of rows of kernels/independent

// `source`: "triton", "sdpa_flash", ..., or FTL_INDEPENDENT, of which the rest stays open. FTL_INFEASIBLE: no
// configuration can express the row, with a short reason; FTL_BAD_INPUT: a parameter of the row is out of range.
FTL_MUST_USE ftl_status ftl_foreign_kernel_set(ftl_spec *spec, const ftl_measurement *row, const char *source,
                                               ftl_error *error);

#endif
