// Measured rows as they come: this project's CSV (kernels/README.md) and Nsight Compute's raw and details pages. Values
// are brought to base units (ns, byte, hz) and otherwise left alone: impossible ones are kept and flagged.
#ifndef FTL_RESULTS_MEASUREMENT_H
#define FTL_RESULTS_MEASUREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "results/csv.h"

typedef struct ftl_fact {
  const char *name, *text;  // "block_m", "64"; "kernel", "void forward<…>"
} ftl_fact;

typedef struct ftl_measured_value {
  const char *metric;  // Nsight Compute's name; the median of event timing is foretile__stream_time.sum
  const char *unit;    // base unit; "" where the file does not say
  double value;
  bool is_impossible;  // a share above 100 %, a negative count, no time: what replay passes of a short kernel give
  // Of an impossible one of a file that was just read, else NULL: its column, or line of Nsight Compute's details page,
  // and its text.
  const char *column, *text;
} ftl_measured_value;

// One launch, or one timed case.
typedef struct ftl_measurement {
  int64_t line;  // in the file
  ftl_fact *facts;
  ftl_measured_value *values;
  int num_facts, num_values;
} ftl_measurement;

typedef enum ftl_measurement_format {
  FTL_MEASUREMENT_PROJECT,
  FTL_MEASUREMENT_NCU_RAW,
  FTL_MEASUREMENT_NCU_DETAILS,
} ftl_measurement_format;

typedef struct ftl_measurement_file {
  char *path;
  ftl_measurement_format format;
  ftl_measurement *rows;
  int64_t num_rows;
  uint64_t content_hash;  // of the file's bytes (XXH3)
  bool is_of_project;     // one of kernels/measurements, by its contents (measurements_dir.h)
  ftl_arena arena;        // holds all text
} ftl_measurement_file;

// FTL_IO_FAILED, FTL_NO_MEMORY; FTL_BAD_INPUT names file, line and column: no known header, a row with fewer or more
// fields than the header, a counter that is no number, ... On failure there is nothing to free.
FTL_MUST_USE ftl_status ftl_measurement_file_read(ftl_measurement_file *out, const char *path, ftl_error *error);
// The same from memory, not of the project. Takes nothing: `csv` is still the caller's.
FTL_MUST_USE ftl_status ftl_measurement_file_parse(ftl_measurement_file *out, ftl_csv *csv, ftl_error *error);
void ftl_measurement_file_fini(ftl_measurement_file *file);

const char *ftl_measurement_format_name(ftl_measurement_format format);  // "project", "ncu raw", "ncu details"
// The text of a fact; NULL: the row has none, or an empty one.
const char *ftl_measurement_fact(const ftl_measurement *row, const char *name);
const ftl_measured_value *ftl_measurement_value(const ftl_measurement *row, const char *metric);  // NULL: none

#endif
