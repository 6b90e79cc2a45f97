// What makes two predictions the same: the canonical spec and which of its tiles are left to the GPU, the arch model's
// name and content, the program's version.
#ifndef FTL_RESULTS_RESULT_KEY_H
#define FTL_RESULTS_RESULT_KEY_H

#include "arch/arch.h"
#include "base/status.h"
#include "workloads/spec.h"

enum { FTL_RESULT_KEY_BYTES = 33 };

typedef struct ftl_result_key {
  char hex[FTL_RESULT_KEY_BYTES];  // 128 bits (XXH3) in hexadecimal
} ftl_result_key;

// `spec` must be complete. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_result_key_make(const ftl_spec *spec, const ftl_arch *arch, ftl_result_key *out,
                                            ftl_error *error);
// The 64-bit hash of an arch model's values in hexadecimal, as the database holds it; into at least 17 bytes.
const char *ftl_arch_hash_text(const ftl_arch *arch, char *buffer);

#endif
