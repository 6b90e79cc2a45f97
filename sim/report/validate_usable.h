// Whether a validation has anything to compare, and a line on why not.
#ifndef FTL_REPORT_VALIDATE_USABLE_H
#define FTL_REPORT_VALIDATE_USABLE_H

#include "report/validate.h"

// Whether a row says that its kernel ran, and right. FTL_BAD_INPUT: "OK" and the like, which would leave rows out
// unseen.
FTL_MUST_USE ftl_status ftl_row_status_check(const ftl_measurement *row, bool *did_run, ftl_error *error);

// What ftl_validation_check may have to say later, while the file is there: of a row that is not ok, and of a file
// whose cases, those from first_case on, have nothing to compare.
void ftl_validation_note_not_ok(ftl_validation *validation, const ftl_measurement_file *file,
                                const ftl_measurement *row);
void ftl_validation_note_unmeasured(ftl_validation *validation, const ftl_measurement_file *file, int64_t first_case);

#endif
