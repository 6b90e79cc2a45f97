// A spec from one text, for tests: "name=value name=value ...". The first word that is not accepted ends it with the
// status and the message of ftl_spec_set_text; what is left out gets its default when the spec is completed.
#ifndef FTL_TESTS_SPEC_WORDS_H
#define FTL_TESTS_SPEC_WORDS_H

#include <stdlib.h>
#include <string.h>

#include "workloads/code_form.h"
#include "workloads/spec.h"

static inline ftl_status spec_set_words(ftl_spec *spec, const char *words, ftl_error *error) {
  char *copy = strdup(words), *rest = copy;
  ftl_status status = FTL_OK;
  for (char *name; status == FTL_OK && (name = strsep(&rest, " ")) != NULL;) {
    if (*name == '\0') continue;
    char *value = strchr(name, '=');
    if (value) *value++ = '\0';
    status = ftl_spec_set_text(spec, name, value ? value : "", error);
  }
  free(copy);
  return status;
}

// What `auto` of a kernel's source is on a Hopper GPU.
static inline void resolve_code(ftl_spec *spec) {
  const ftl_arch hopper = {
      .chip_compute_capability = 90, .shared_max_bytes_per_cta = 227 * 1024, .shared_bytes_per_sm = 228 * 1024};
  ftl_spec_resolve_code(spec, &hopper);
}

// The barest form of the code where the test has not chosen one: of the lowest counts, and what `auto` is to no
// program.
static inline void spec_use_bare_code(ftl_spec *spec) {
  static const struct {
    ftl_param param;
    int64_t value;
  } bare[] = {{FTL_PARAM_code, FTL_CODE_LEAN},        {FTL_PARAM_scaling, FTL_SCALING_EXPONENT},
              {FTL_PARAM_row_sums, FTL_ROW_SUMS_END}, {FTL_PARAM_guard, FTL_GUARD_MASKED},
              {FTL_PARAM_exp2, FTL_EXP2_FTZ},         {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES}};
  if (!ftl_spec_takes(spec, FTL_PARAM_code)) resolve_code(spec);  // of rows their scaling, which their schedule decides
  for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
    if (spec->value[bare[i].param] == 0) spec->value[bare[i].param] = bare[i].value;  // auto
}

// `more` after `words`. The code's form is bare where neither names it.
static inline ftl_status spec_of_words(ftl_spec *spec, const char *workload, const char *words, const char *more,
                                       ftl_error *error) {
  ftl_status status = ftl_spec_init(spec, workload, error);
  if (status == FTL_OK) status = spec_set_words(spec, words, error);
  if (status == FTL_OK) status = spec_set_words(spec, more, error);
  if (status == FTL_OK) status = ftl_spec_complete(spec, error);
  if (status == FTL_OK) spec_use_bare_code(spec);
  return status;
}

#endif
