// Text and JSON about arch models: what `foretile arch list|show|check|docs` print.
// Every function writes to `out` and returns FTL_IO_FAILED when a write fails; the caller owns the file.
#ifndef FTL_REPORT_ARCH_REPORT_H
#define FTL_REPORT_ARCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "arch/arch.h"
#include "base/status.h"

// One aligned line a GPU: name, die, compute capability, SMs, clock, L2, memory, bandwidth, peak tensor TFLOP/s.
// json: one array of objects.
FTL_MUST_USE ftl_status ftl_arch_report_list(FILE *out, const ftl_arch *const *archs, int num_archs, bool json,
                                             ftl_error *error);
// Every key: value, unit, origin kind, source, file:line. json: one object.
FTL_MUST_USE ftl_status ftl_arch_report_show(FILE *out, const ftl_arch *arch, bool json, ftl_error *error);
// After a model file loaded: its name, the number of values of each origin, and the list of guesses' keys.
FTL_MUST_USE ftl_status ftl_arch_report_check(FILE *out, const ftl_arch *arch, ftl_error *error);
// The table of keys in docs/arch_models.md (Markdown), the same on every machine.
FTL_MUST_USE ftl_status ftl_arch_report_docs(FILE *out, ftl_error *error);

// DRAM bandwidth, as the list shows it.
double ftl_arch_dram_gb_per_s(const ftl_arch *arch);

#endif
