// One answer as text for people, and as JSON for programs (docs/results.md).
#ifndef FTL_REPORT_PREDICTION_REPORT_H
#define FTL_REPORT_PREDICTION_REPORT_H

#include "report/column.h"

// One JSON object, no newline.
void ftl_prediction_json(const ftl_row *row, ftl_text *out);
// The same without its braces, for an object that says more.
void ftl_prediction_json_members(const ftl_row *row, ftl_text *out);
// {"error": "…"}, no newline.
void ftl_error_json(const char *message, ftl_text *out);
// A table of the main metrics, the parameters, and which of them were defaults.
FTL_MUST_USE ftl_status ftl_prediction_text(const ftl_row *row, ftl_text *out, ftl_error *error);

#endif
