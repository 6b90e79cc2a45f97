// A validation as text, as Markdown (docs/accuracy.md), and as JSON lines. Cases are sorted before
// (ftl_validation_sort).
#ifndef FTL_REPORT_VALIDATE_REPORT_H
#define FTL_REPORT_VALIDATE_REPORT_H

#include "base/text.h"
#include "report/validate.h"

// "1x32/8 4096 d128 causal": batch, heads over key/value heads, lengths, head_dim (over head_dim_v). "128x64 w4 s2
// wgmma tma": the choice. Of products batch, m, n and k: "1 4096x4096x1024".
void ftl_case_shape(const ftl_case *c, ftl_text *out);
void ftl_case_tile(const ftl_case *c, ftl_text *out);

// How many rows became cases, and what was not compared and why; a line each, with `indent` before them.
void ftl_validation_coverage(const ftl_validation *validation, const char *indent, ftl_text *out);

// top: worst cases a part; 0: all.
FTL_MUST_USE ftl_status ftl_validation_text(const ftl_validation *validation, int64_t top, ftl_text *out,
                                            ftl_error *error);
FTL_MUST_USE ftl_status ftl_validation_markdown(const ftl_validation *validation, ftl_text *out, ftl_error *error);
// A line a case, then a line each statistic and choice, told apart by the key "kind".
FTL_MUST_USE ftl_status ftl_validation_json(const ftl_validation *validation, ftl_text *out, ftl_error *error);

#endif
