// What a measured row is as a configuration of a workload (kernels/README.md says how each kernel is expressed), and
// which part of the comparison it belongs to (kernels/measurements/HELDOUT.md).
#ifndef FTL_RESULTS_MEASURED_CASE_H
#define FTL_RESULTS_MEASURED_CASE_H

#include "results/measurement.h"
#include "workloads/spec.h"

// Calibration: may be looked at while the model is made. Reserved: of our own kernels too, but only scored. Held out:
// kernels that this project did not write, only scored. Yours: of a file that is none of the project's, in a row whose
// column `part` says nothing; the model was made without it.
typedef enum ftl_part {
  FTL_PART_CALIBRATION,
  FTL_PART_RESERVED,
  FTL_PART_HELD_OUT,
  FTL_PART_INDEPENDENT,  // of kernels/independent: nothing but tiles and schedule is told of them
  FTL_PART_YOURS,
  FTL_PART_COUNT
} ftl_part;
const char *ftl_part_name(ftl_part part);   // "held-out", "yours"
const char *ftl_part_title(ftl_part part);  // "held-out part", "your own measurements"

enum { FTL_MEASURED_NAME_BYTES = 32 };

typedef struct ftl_measured_case {
  char source[FTL_MEASURED_NAME_BYTES];  // "own", "triton", "sdpa_flash": whose kernel it is
  char author[FTL_MEASURED_NAME_BYTES];  // of kernels/independent, the column `family`; else empty
  char arch[FTL_MEASURED_NAME_BYTES];    // the shipped model of that GPU
  ftl_spec spec;                         // complete; `conditions` as measured
  ftl_part part;
} ftl_measured_case;

// FTL_INFEASIBLE: no configuration can express the row; the message is a short reason, the same for rows of one kind
// ("workload flash3_fwd"). FTL_BAD_INPUT: a parameter of the row is out of range.
FTL_MUST_USE ftl_status ftl_measured_case_make(ftl_measured_case *out, const ftl_measurement *row, ftl_error *error);

// The same for a row of a file: `part` is "yours" where the file is none of the project's.
FTL_MUST_USE ftl_status ftl_measured_case_of(ftl_measured_case *out, const ftl_measurement_file *file,
                                             const ftl_measurement *row, ftl_error *error);

#endif
