// An arch model file, and what-if pairs, from any bytes: errors are one line, and nothing else may happen.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/check.h"
#include "script/arch_loader.h"
#include "script/arch_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(ftl_status status, const ftl_error *error) {
  if (status == FTL_OK) return;
  FTL_CHECK(status == error->status && error->message[0] != '\0', "status %d without a message", (int)status);
  FTL_CHECK(strchr(error->message, '\n') == NULL, "a message of several lines");
}

static void feed_model(const char *text, size_t size) {
  ftl_arch_model model;
  ftl_error error = {0};
  ftl_status status = ftl_arch_model_init_text(&model, "fuzz.lua", text, size, &error);
  check_error(status, &error);
  if (status != FTL_OK) return;
  ftl_arch *arch = ftl_arch_create(model.name, model.name);
  if (arch != NULL) {
    status = ftl_arch_model_apply(&model, arch, &error);
    check_error(status, &error);
    if (status == FTL_OK) check_error(ftl_arch_check(arch, &error), &error);
  }
  ftl_arch_destroy(arch);
  ftl_arch_model_fini(&model);
}

static ftl_arch *base;

static void feed_what_if(const char *text, size_t size) {
  ftl_error error = {0};
  if (base == NULL && ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &base, &error) != FTL_OK) abort();
  char *pair = strndup(text, size);
  ftl_arch *arch = NULL;
  if (pair == NULL) return;
  check_error(ftl_arch_create_what_if(base, (const char *const *)&pair, 1, &arch, &error), &error);
  ftl_arch_destroy(arch);
  free(pair);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  feed_model((const char *)data, size);
  feed_what_if((const char *)data, size);
  return 0;
}
