// Measured rows in the results database: tables measurement_files, measurements, measured_facts, measured_values, and
// the view `compared` that puts predictions beside them.
#ifndef FTL_RESULTS_MEASUREMENT_STORE_H
#define FTL_RESULTS_MEASUREMENT_STORE_H

#include "results/database.h"
#include "results/measurement.h"

typedef struct ftl_import_summary {
  bool was_there;  // a file with this content was imported before: nothing is done
  int64_t num_rows, num_values, num_impossible;
  int64_t num_comparable;  // rows that are a configuration of a workload
} ftl_import_summary;

// All rows of the file in one transaction. FTL_IO_FAILED, FTL_NO_MEMORY; FTL_BAD_INPUT names the line whose parameters
// are out of range. Nothing is stored then.
FTL_MUST_USE ftl_status ftl_database_put_measurements(ftl_database *database, const ftl_measurement_file *file,
                                                      ftl_import_summary *out, ftl_error *error);

#endif
