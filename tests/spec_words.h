// A spec from one text, for tests: "name=value name=value ...". The first word that is not accepted ends it with the
// status and the message of ftl_spec_set_text; what is left out gets its default when the spec is completed.
#ifndef FTL_TESTS_SPEC_WORDS_H
#define FTL_TESTS_SPEC_WORDS_H

#include <stdlib.h>
#include <string.h>

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

// `more` after `words`.
static inline ftl_status spec_of_words(ftl_spec *spec, const char *workload, const char *words, const char *more,
                                       ftl_error *error) {
  ftl_status status = ftl_spec_init(spec, workload, error);
  if (status == FTL_OK) status = spec_set_words(spec, words, error);
  if (status == FTL_OK) status = spec_set_words(spec, more, error);
  return status == FTL_OK ? ftl_spec_complete(spec, error) : status;
}

#endif
