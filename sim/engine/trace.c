#include "lower/trace.h"

#include "engine/predict.h"

ftl_status ftl_trace_write(FILE *out, const ftl_warp_program *program, int64_t cta, int64_t max_lines,
                           ftl_error *error) {
  return ftl_warp_trace_write(out, program, cta, max_lines, error);
}
