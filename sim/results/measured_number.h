// Numbers as Nsight Compute prints them, and their units.
#ifndef FTL_RESULTS_MEASURED_NUMBER_H
#define FTL_RESULTS_MEASURED_NUMBER_H

#include <stdbool.h>

typedef enum ftl_number_kind { FTL_NUMBER, FTL_NUMBER_MISSING, FTL_NUMBER_NONE } ftl_number_kind;

// "1,234.5", "1e9"; missing: "", "n/a", "nan", "inf" (a ratio over zero); none: anything else, also "1,23".
ftl_number_kind ftl_measured_number_parse(const char *text, double *out);
// "usecond" -> 1000 and "ns", "Kbyte/block" -> 1000 and "byte". A unit that is not known is its own base.
double ftl_measured_unit_scale(const char *unit, const char **base);
// Whether a metric of this name cannot have this value.
bool ftl_measured_is_impossible(const char *metric, double value);

#endif
