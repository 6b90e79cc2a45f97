// A lowered flash2_fwd, and predictions, for tests of the engine.
#ifndef FTL_TESTS_UNIT_ENGINE_FIXTURE_H
#define FTL_TESTS_UNIT_ENGINE_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/predict.h"
#include "script/arch_loader.h"

typedef struct lowered {
  ftl_arch *arch;
  ftl_spec spec;
  ftl_tile_program *tile;
  ftl_warp_program *warps;
} lowered;

static inline ftl_arch *shipped_arch(const char *name) {
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

// "heads=2 seqlen=256 ..." on top of nothing; a first word without = is the workload, else flash2_fwd.
static inline ftl_spec spec_of(const char *parameters) {
  ftl_spec spec;
  ftl_error error = {0};
  char text[512], workload[32] = "flash2_fwd", *rest = text, *pair;
  size_t word = strcspn(parameters, " ");
  if (memchr(parameters, '=', word) == NULL) {
    snprintf(workload, sizeof workload, "%.*s", (int)word, parameters);
    parameters += word;
  }
  strncpy(text, parameters, sizeof text - 1);
  text[sizeof text - 1] = '\0';
  cr_assert_eq(ftl_spec_init(&spec, workload, &error), FTL_OK, "%s", error.message);
  while ((pair = strtok_r(rest, " ", &rest))) {
    char *value = strchr(pair, '=');
    *value++ = '\0';
    cr_assert_eq(ftl_spec_set_text(&spec, pair, value, &error), FTL_OK, "%s", error.message);
  }
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  return spec;
}

// Of a configuration that the chip runs.
static inline ftl_prediction prediction_of(const ftl_arch *arch, const char *parameters,
                                           const ftl_predict_options *options) {
  ftl_spec spec = spec_of(parameters);
  ftl_prediction prediction;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict(&spec, arch, options, &prediction, &error), FTL_OK, "%s", error.message);
  cr_assert(prediction.feasible, "%s: %s", parameters, prediction.reason);
  return prediction;
}

static inline lowered lower_launch(const char *arch_name, const char *parameters, int launch) {
  lowered l = {.arch = shipped_arch(arch_name), .spec = spec_of(parameters)};
  ftl_error error = {0};
  cr_assert_eq(ftl_predict_programs(&l.spec, l.arch, launch, &l.tile, &l.warps, &error), FTL_OK, "%s", error.message);
  return l;
}

static inline lowered lower_flash2(const char *arch_name, const char *parameters) {
  return lower_launch(arch_name, parameters, 0);
}

static inline void release_lowered(lowered *l) {
  ftl_warp_program_destroy(l->warps);
  ftl_tile_program_destroy(l->tile);
  ftl_arch_destroy(l->arch);
}

#endif
