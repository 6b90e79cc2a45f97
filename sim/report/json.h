// Writing JSON. Text that is not UTF-8 is made so, with U+FFFD for what is not.
#ifndef FTL_REPORT_JSON_H
#define FTL_REPORT_JSON_H

#include "base/text.h"

void ftl_json_add_string(ftl_text *out, const char *string);
// `"key": `
void ftl_json_add_key(ftl_text *out, const char *key);
// Whole numbers print as integers, others with the fewest digits that give the same double; not finite: null.
void ftl_json_add_number(ftl_text *out, double value);

#endif
