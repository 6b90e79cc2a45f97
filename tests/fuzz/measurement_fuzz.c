// A file of measurements of any bytes: read, and every row made a configuration.
#include <stdlib.h>

#include "fuzz_target.h"
#include "results/measured_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ftl_csv csv;
  ftl_error error = {0};
  if (ftl_csv_init(&csv, "fuzz.csv", (const char *)data, size, &error) != FTL_OK) return 0;
  ftl_measurement_file file;
  ftl_status status = ftl_measurement_file_parse(&file, &csv, &error);
  ftl_csv_fini(&csv);
  if (status != FTL_OK) {
    if (error.message[0] == '\0') abort();
    return 0;
  }
  if (file.num_rows < 1) abort();
  for (int64_t i = 0; i < file.num_rows; i++) {
    ftl_measured_case c;
    ftl_error reason = {0};
    if (ftl_measured_case_make(&c, &file.rows[i], &reason) != FTL_OK && reason.message[0] == '\0') abort();
  }
  ftl_measurement_file_fini(&file);
  return 0;
}
