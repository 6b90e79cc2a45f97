// A GPU, configurations, and a folder for one test.
#ifndef FTL_TESTS_RESULTS_FIXTURE_H
#define FTL_TESTS_RESULTS_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "arch/arch.h"
#include "fake/fake_engine.h"
#include "results/evaluate.h"

// A GPU with one value; two GPUs with another `num_sms` have other hashes.
static inline ftl_arch *make_arch(const char *name, int64_t num_sms) {
  ftl_error error;
  ftl_arch *arch = ftl_arch_create(name, "toy");
  ftl_origin origin = {.kind = FTL_ORIGIN_GUESS, .text = "a test", .file = "test.lua", .line = 7};
  cr_assert_eq(ftl_arch_set_int(arch, ftl_arch_key_find("chip.num_sms"), num_sms, origin, &error), FTL_OK);
  return arch;
}

static inline ftl_spec make_spec(const char *block_m, const char *block_n) {
  ftl_error error = {0};
  ftl_spec spec;
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK, "%s", error.message);
  const char *const values[][2] = {
      {"heads", "8"}, {"seqlen", "1024"}, {"head_dim", "64"}, {"block_m", block_m}, {"block_n", block_n}};
  for (int i = 0; i < 5; i++) cr_assert_eq(ftl_spec_set_text(&spec, values[i][0], values[i][1], &error), FTL_OK);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  return spec;
}

typedef struct folder {
  char path[64];
  char file[128];  // a name in it, not yet there
} folder;

static inline folder make_folder(void) {
  folder f = {.path = "/tmp/ftl_test_XXXXXX"};
  cr_assert_not_null(mkdtemp(f.path));
  snprintf(f.file, sizeof f.file, "%s/results.db", f.path);
  return f;
}

static inline void remove_folder(const folder *f) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", f->path);
  cr_assert_eq(system(command), 0);
}

#endif
