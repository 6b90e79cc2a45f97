#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/arch_report.h"
#include "script/arch_loader.h"

static const char models_dir[] = FTL_SOURCE_DIR "/arch_models";

static ftl_arch *load(const char *name) {
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(models_dir, name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

// What the call wrote; to free().
#define WRITTEN(call)                                \
  ({                                                 \
    char *text_ = NULL;                              \
    size_t size_ = 0;                                \
    FILE *out = open_memstream(&text_, &size_);      \
    ftl_error error = {0};                           \
    cr_assert_eq(call, FTL_OK, "%s", error.message); \
    fclose(out);                                     \
    text_;                                           \
  })

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  cr_assert_neq(file, NULL, "%s", path);
  char *text = calloc(1, 1 << 20);
  cr_assert_lt(fread(text, 1, (1 << 20) - 1, file), (1 << 20) - 1);
  fclose(file);
  return text;
}

Test(arch_report, the_list_has_a_line_a_gpu) {
  ftl_arch *archs[2] = {load("h200"), load("rtx4090")};
  char *text = WRITTEN(ftl_arch_report_list(out, (const ftl_arch *const *)archs, 2, false, &error));
  cr_assert_str_eq(text,
                   "GPU          die      CC  SMs  SM clock       L2          memory bandwidth   fp16 tensor\n"
                   "h200         gh100   9.0  132  1980 MHz 58.8 MiB   140 GiB hbm3e  4814 GB/s 1070.5 TFLOP/s\n"
                   "rtx4090      ad102   8.9  128  2520 MHz 72.0 MiB    24 GiB gddr6x 1008 GB/s  165.2 TFLOP/s\n");
  free(text);
  ftl_arch_destroy(archs[0]);
  ftl_arch_destroy(archs[1]);
}

Test(arch_report, the_list_as_json) {
  ftl_arch *arch = load("v100");
  char *text = WRITTEN(ftl_arch_report_list(out, (const ftl_arch *const *)&arch, 1, true, &error));
  json_t *list = json_loads(text, 0, NULL);
  cr_assert_eq(json_array_size(list), 1);
  cr_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "name")), "v100");
  cr_assert_eq(json_integer_value(json_object_get(json_array_get(list, 0), "num_sms")), 80);
  json_decref(list);
  free(text);
  ftl_arch_destroy(arch);
}

Test(arch_report, show_has_every_key_with_origin_and_place) {
  ftl_arch *arch = load("h200");
  char *text = WRITTEN(ftl_arch_report_show(out, arch, false, &error));
  for (int i = 0; i < ftl_arch_num_keys(); i++) cr_assert_neq(strstr(text, ftl_arch_key_get(i)->name), NULL);
  cr_assert_neq(
      strstr(text, "sm.max_warps                                    64  warp             datasheet gh100.lua:"), NULL);
  cr_assert_neq(
      strstr(text, "chip.num_sms                                   132  SM               datasheet h200.lua:"), NULL);
  cr_assert_eq(strstr(text, FTL_SOURCE_DIR), NULL);
  free(text);
  ftl_arch_destroy(arch);
}

Test(arch_report, show_as_json) {
  ftl_arch *arch = load("h200");
  char *text = WRITTEN(ftl_arch_report_show(out, arch, true, &error));
  json_t *all = json_loads(text, 0, NULL);
  json_t *keys = json_object_get(all, "keys");
  cr_assert_eq((int)json_object_size(keys), ftl_arch_num_keys());
  cr_assert_eq(json_integer_value(json_object_get(json_object_get(keys, "chip.num_sms"), "value")), 132);
  cr_assert_str_eq(json_string_value(json_object_get(json_object_get(keys, "l2.replacement"), "value")), "lru");
  cr_assert_str_eq(json_string_value(json_object_get(json_object_get(keys, "sm.max_warps"), "origin")), "datasheet");
  json_decref(all);
  free(text);
  ftl_arch_destroy(arch);
}

Test(arch_report, check_counts_origins_and_lists_guesses) {
  ftl_arch *arch = load("h200");
  char *text = WRITTEN(ftl_arch_report_check(out, arch, &error));
  cr_assert_eq(strncmp(text, "h200 on gh100: ", 15), 0);
  cr_assert_neq(strstr(text, "\nguess: l2.ways"), NULL);
  cr_assert_eq(strstr(text, "\nguess: sm.max_warps"), NULL);
  free(text);
  ftl_arch_destroy(arch);
}

Test(arch_report, a_write_that_fails_is_an_error) {
  ftl_arch *arch = load("h200");
  FILE *full = fopen("/dev/full", "w");
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_report_show(full, arch, false, &error), FTL_IO_FAILED);
  cr_assert_eq(strncmp(error.message, "cannot write: ", 14), 0);
  fclose(full);
  ftl_arch_destroy(arch);
}

// Regenerate it with `foretile arch docs`.
Test(arch_report, the_table_in_the_docs_is_the_generated_one) {
  char *docs = read_file(FTL_SOURCE_DIR "/docs/arch_models.md");
  char *table = WRITTEN(ftl_arch_report_docs(out, &error));
  const char *committed = strstr(docs, "| key | unit |");
  cr_assert_neq(committed, NULL);
  cr_assert_eq(strncmp(committed, table, strlen(table)), 0,
               "docs/arch_models.md: run `foretile arch docs` and paste its table");
  cr_assert_neq(committed[strlen(table)], '|');
  free(docs);
  free(table);
}
