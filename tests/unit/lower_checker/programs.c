#include "programs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/lower_options.h"
#include "script/arch_loader.h"
#include "tests/spec_words.h"

static void set_parameters(ftl_spec *spec, const char *parameters, ftl_error *error) {
  char text[512];
  snprintf(text, sizeof text, "%s", parameters);
  for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(word, '=');
    cr_assert_not_null(value, "%s", word);
    *value++ = '\0';
    cr_assert_eq(ftl_spec_set_text(spec, word, value, error), FTL_OK, "%s", error->message);
  }
}

static ftl_status lower_spec(programs *p, ftl_spec *spec, int launch, ftl_error *error) {
  ftl_lower_options options = ftl_lower_options_of(spec);
  ftl_status status = ftl_lower_resolve(p->arch, &options, error);
  if (status != FTL_OK) return status;
  spec->value[FTL_PARAM_copy] = options.copy;
  spec->value[FTL_PARAM_mma] = options.mma;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  int num_launches = 0;
  status = spec->workload->build(spec, launches, &num_launches, error);
  if (status != FTL_OK) return status;
  cr_assert_lt(launch, num_launches);
  p->tile = launches[launch];
  p->options = options;
  for (int i = 0; i < num_launches; i++)
    if (i != launch) ftl_tile_program_destroy(launches[i]);
  return ftl_lower(p->tile, p->arch, options, &p->warps, error);
}

ftl_status lower_workload(programs *out, const char *arch, const char *workload, const char *parameters,
                          ftl_error *error) {
  return lower_launch(out, arch, workload, parameters, 0, error);
}

ftl_status lower_launch(programs *out, const char *arch, const char *workload, const char *parameters, int launch,
                        ftl_error *error) {
  *out = (programs){0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", arch, &out->arch, error), FTL_OK, "%s", error->message);
  ftl_spec spec;
  cr_assert_eq(ftl_spec_init(&spec, workload, error), FTL_OK, "%s", error->message);
  set_parameters(&spec, parameters, error);
  cr_assert_eq(ftl_spec_complete(&spec, error), FTL_OK, "%s", error->message);
  spec_use_bare_code(&spec);
  ftl_status status = lower_spec(out, &spec, launch, error);
  cr_assert(status == FTL_OK || status == FTL_INFEASIBLE, "%s %s: %s", arch, parameters, error->message);
  return status;
}

void programs_fini(programs *p) {
  ftl_warp_program_destroy(p->warps);
  ftl_tile_program_destroy(p->tile);
  ftl_arch_destroy(p->arch);
}
