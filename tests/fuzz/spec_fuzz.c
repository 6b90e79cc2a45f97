// The parameter parser on any text: "workload name=value name=value ...". What it accepts must survive being written
// and read again, and building its program must end in a program or one clear line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/spec.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void expect(bool condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

static bool read_spec(char *text, ftl_spec *spec, ftl_error *error) {
  char *rest = text, *word = strsep(&rest, " ");
  if (ftl_spec_init(spec, word, error) != FTL_OK) return false;
  while ((word = strsep(&rest, " ")) != NULL) {
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    if (ftl_spec_set_text(spec, word, value ? value : "", error) != FTL_OK) return false;
  }
  return ftl_spec_complete(spec, error) == FTL_OK;
}

static void check_round_trip(const ftl_spec *spec) {
  ftl_text first = {0}, second = {0};
  ftl_spec_canonical(spec, &first);
  char *copy = strdup(ftl_text_get(&first));
  ftl_spec again;
  ftl_error error = {0};
  expect(read_spec(copy, &again, &error), error.message);
  ftl_spec_canonical(&again, &second);
  expect(strcmp(ftl_text_get(&first), ftl_text_get(&second)) == 0, "the canonical text changes when read again");
  free(copy);
  ftl_text_fini(&first);
  ftl_text_fini(&second);
}

static void check_build(ftl_spec spec) {
  if (spec.value[FTL_PARAM_copy] == FTL_SPEC_COPY_AUTO) spec.value[FTL_PARAM_copy] = FTL_SPEC_COPY_LDG;
  if (spec.value[FTL_PARAM_mma] == FTL_SPEC_MMA_AUTO) spec.value[FTL_PARAM_mma] = FTL_SPEC_MMA_MMA;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches;
  ftl_error error = {0};
  ftl_status status = spec.workload->build(&spec, launches, &num_launches, &error);
  expect(status == FTL_OK || status == FTL_INFEASIBLE, error.message);
  expect(status == FTL_OK || error.message[0] != '\0', "a refusal without a reason");
  for (int i = 0; i < num_launches; i++) ftl_tile_program_destroy(launches[i]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  char *text = strndup((const char *)data, size);
  ftl_spec spec;
  ftl_error error = {0};
  if (read_spec(text, &spec, &error)) {
    check_round_trip(&spec);
    check_build(spec);
  } else {
    expect(error.status != FTL_OK && error.message[0] != '\0', "a refusal without a reason");
  }
  free(text);
  return 0;
}
