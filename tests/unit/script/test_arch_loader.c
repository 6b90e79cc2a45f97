#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/arch_loader.h"
#include "script/sandbox.h"

static const char models_dir[] = FTL_SOURCE_DIR "/arch_models";
static char folder[64];
static ftl_error last_error;

static void folder_create(void) {
  strcpy(folder, "/tmp/ftl_arch_XXXXXX");
  cr_assert_neq(mkdtemp(folder), NULL);
}

static void folder_remove(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(script_arch_loader, .init = folder_create, .fini = folder_remove, .timeout = 30);

// Writes a file in the test's folder; the path is valid until the next call.
static const char *file_write(const char *name, const char *text) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  cr_assert_neq(file, NULL);
  fputs(text, file);
  fclose(file);
  return path;
}

static ftl_arch *load(const char *name) {
  ftl_arch *arch = NULL;
  cr_assert_eq(ftl_arch_load(models_dir, name, &arch, &last_error), FTL_OK, "%s", last_error.message);
  return arch;
}

// The message behind "FOLDER/", for a model file with this text.
static const char *load_error(const char *text) {
  ftl_arch *arch = NULL;
  const char *path = file_write("my.lua", text);
  last_error.message[0] = '\0';
  ftl_status status = ftl_arch_load(models_dir, path, &arch, &last_error);
  cr_assert_eq(status, FTL_BAD_INPUT, "%s -> %d", text, status);
  cr_assert_eq(arch, NULL);
  size_t size = strlen(folder);
  cr_assert_eq(strncmp(last_error.message, folder, size), 0, "%s", last_error.message);
  return last_error.message + size + 1;
}

#define ON_H200(body) "return product \"my\" : on \"h200\" {\n" body "\n}"

// --- what loads ---

Test(script_arch_loader, a_what_if_takes_three_lines) {
  const char *path = file_write("my.lua",
                                "return product \"h200_2xl2\" : on \"h200\" {\n"
                                "  l2 = { size_bytes = override(2*94*640*1024) }\n}\n");
  ftl_arch *arch = load(path), *h200 = load("h200");
  int key_idx = ftl_arch_key_find("l2.size_bytes");
  cr_assert_str_eq(arch->name, "h200_2xl2");
  cr_assert_str_eq(arch->die, "gh100");
  cr_assert_eq(arch->l2_size_bytes, 2 * h200->l2_size_bytes);
  cr_assert_eq(ftl_arch_origin(arch, key_idx).kind, FTL_ORIGIN_OVERRIDE);
  cr_assert_eq(ftl_arch_origin(arch, key_idx).line, 2);
  cr_assert_str_eq(ftl_arch_origin(arch, key_idx).file, path);
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    if (i == key_idx) continue;
    cr_assert_eq(ftl_arch_origin(arch, i).line, ftl_arch_origin(h200, i).line, "%s", ftl_arch_key_get(i)->name);
  }
  ftl_arch_destroy(arch);
  ftl_arch_destroy(h200);
}

Test(script_arch_loader, a_product_without_differences_equals_its_base) {
  ftl_arch *arch = load(file_write("my.lua", "return product \"my\" : on \"h200\" {}")), *h200 = load("h200");
  cr_assert_eq(ftl_arch_hash(arch), ftl_arch_hash(h200));
  ftl_arch_destroy(arch);
  ftl_arch_destroy(h200);
}

Test(script_arch_loader, a_product_may_stand_on_a_file_beside_it) {
  file_write("base.lua", "return product \"base\" : on \"h200\" { sm = { max_warps = override(32) } }");
  ftl_arch *arch =
      load(file_write("my.lua", "return product \"my\" : on \"base.lua\" { sm = { max_ctas = override(16) } }"));
  cr_assert_eq(arch->sm_max_warps, 32);
  cr_assert_eq(arch->sm_max_ctas, 16);
  ftl_arch_destroy(arch);
}

// What was measured on the other die is a guess for this one; the vendor's documents and guesses stay what they are.
Test(script_arch_loader, a_die_may_stand_on_a_die) {
  char command[256];
  file_write("gh101.lua", "return die \"gh101\" : on \"gh100\" { sm = { max_ctas = override(16) } }");
  snprintf(command, sizeof command,
           "sed 's/product \"h200\" : on \"gh100\"/product \"my\" : on \"gh101.lua\"/' %s/h200.lua > %s/my.lua",
           models_dir, folder);
  cr_assert_eq(system(command), 0);
  snprintf(command, sizeof command, "%s/my.lua", folder);
  ftl_arch *arch = load(command), *h200 = load("h200");
  cr_assert_str_eq(arch->die, "gh101");
  cr_assert_eq(arch->sm_max_ctas, 16);
  arch->sm_max_ctas = h200->sm_max_ctas;
  cr_assert_eq(ftl_arch_hash(arch), ftl_arch_hash(h200));
  int num_taken = 0;
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    ftl_origin mine = ftl_arch_origin(arch, i), theirs = ftl_arch_origin(h200, i);
    if (mine.kind == theirs.kind) continue;
    if (mine.kind == FTL_ORIGIN_OVERRIDE) continue;
    num_taken++;
    cr_assert_eq(theirs.kind, FTL_ORIGIN_MEASURED);
    cr_assert_eq(mine.kind, FTL_ORIGIN_GUESS);
    cr_assert_eq(strncmp(mine.text, "measured on gh100: ", 19), 0, "%s", mine.text);
    cr_assert_str_eq(mine.text + 19, theirs.text);
  }
  cr_assert_gt(num_taken, 20);
  ftl_arch_destroy(arch);
  ftl_arch_destroy(h200);
}

Test(script_arch_loader, arithmetic_locals_and_functions_are_allowed) {
  ftl_arch *arch = load(file_write("my.lua",
                                   "local src = 'a ' .. 'sheet'\nlocal function mib(n) return n * 1024 * 1024 end\n"
                                   "return product \"my\" : on \"a100_80\" { l2 = { size_bytes = "
                                   "datasheet(mib(80), src), ways = guess(2^4, 'as before') } }"));
  cr_assert_eq(arch->l2_size_bytes, 80 << 20);
  cr_assert_eq(arch->l2_ways, 16);
  cr_assert_str_eq(ftl_arch_origin(arch, ftl_arch_key_find("l2.size_bytes")).text, "a sheet");
  ftl_arch_destroy(arch);
}

Test(script_arch_loader, the_last_path_part_may_be_without_folder) {
  cr_assert_eq(chdir(folder), 0);
  file_write("my.lua", "return product \"my\" : on \"h200\" {}");
  ftl_arch_destroy(load("my.lua"));
}

Test(script_arch_loader, the_environment_names_the_folder_of_models) {
  char *found = NULL;
  cr_assert_eq(setenv("FORETILE_ARCH_MODELS", folder, 1), 0);
  cr_assert_eq(ftl_arch_models_dir(&found, NULL), FTL_OK);
  cr_assert_str_eq(found, folder);
  free(found);
  cr_assert_eq(setenv("FORETILE_ARCH_MODELS", "/nowhere", 1), 0);
  cr_assert_eq(ftl_arch_models_dir(&found, &last_error), FTL_IO_FAILED);
  cr_assert_str_eq(last_error.message, "FORETILE_ARCH_MODELS: /nowhere is not a folder");
  cr_assert_eq(unsetenv("FORETILE_ARCH_MODELS"), 0);
  cr_assert_eq(ftl_arch_models_dir(&found, NULL), FTL_OK);
  cr_assert_str_eq(found, models_dir);
  free(found);
}

// --- names ---

Test(script_arch_loader, an_unknown_name_gets_the_nearest_one) {
  ftl_arch *arch = NULL;
  cr_assert_eq(ftl_arch_load(models_dir, "h20", &arch, &last_error), FTL_BAD_INPUT);
  cr_assert_str_eq(last_error.message, "unknown GPU \"h20\", nearest is \"h200\"; `foretile arch list` lists all");
  file_write("h20.lua", "");
  cr_assert_eq(chdir(folder), 0);
  cr_assert_eq(ftl_arch_load(models_dir, "h20", &arch, &last_error), FTL_BAD_INPUT);
  cr_assert_str_eq(last_error.message, "unknown GPU \"h20\"; the file of that name is ./h20.lua");
  cr_assert_eq(chdir("/"), 0);
  cr_assert_eq(ftl_arch_load(models_dir, "", &arch, &last_error), FTL_BAD_INPUT);
  cr_assert_eq(ftl_arch_load(models_dir, "..", &arch, &last_error), FTL_BAD_INPUT);
  cr_assert_eq(arch, NULL);
}

Test(script_arch_loader, a_die_is_not_a_gpu) {
  ftl_arch *arch = NULL;
  cr_assert_eq(ftl_arch_load(models_dir, "gh100", &arch, &last_error), FTL_BAD_INPUT);
  cr_assert_neq(strstr(last_error.message, "gh100 is a die, name a product on it"), NULL, "%s", last_error.message);
}

Test(script_arch_loader, a_file_or_folder_that_is_missing_is_named) {
  ftl_arch *arch = NULL;
  ftl_arch_list list;
  cr_assert_eq(ftl_arch_load(models_dir, "/nowhere/my.lua", &arch, &last_error), FTL_IO_FAILED);
  cr_assert_str_eq(last_error.message, "/nowhere/my.lua: No such file or directory");
  cr_assert_eq(ftl_arch_load_all("/nowhere", &list, &last_error), FTL_IO_FAILED);
  cr_assert_str_eq(last_error.message, "/nowhere: No such file or directory");
}

// A shipped model's file is found by name, so the name inside must agree.
Test(script_arch_loader, a_model_in_the_folder_has_the_name_of_its_file) {
  ftl_arch *arch = NULL;
  char command[512];
  snprintf(command, sizeof command, "cp %s/*.lua %s && mv %s/v100.lua %s/v101.lua", models_dir, folder, folder, folder);
  cr_assert_eq(system(command), 0);
  cr_assert_eq(ftl_arch_load(folder, "v101", &arch, &last_error), FTL_BAD_INPUT);
  // `return product "v100"` is there.
  cr_assert_neq(strstr(last_error.message, "v101.lua:8: is named \"v100\" inside, must be \"v101\""), NULL, "%s",
                last_error.message);
}

// --- errors, by class: file, line, key, and what is allowed ---

typedef struct error_case {
  char text[256], message[256];
} error_case;

static void expect_errors(const error_case *cases, size_t num_cases) {
  for (size_t i = 0; i < num_cases; i++) {
    const char *message = load_error(cases[i].text);
    cr_assert_eq(strncmp(message, cases[i].message, strlen(cases[i].message)), 0, "%s\n-> %s", cases[i].text, message);
  }
}
#define EXPECT_ERRORS(...)                                   \
  do {                                                       \
    static const error_case cases_[] = {__VA_ARGS__};        \
    expect_errors(cases_, sizeof cases_ / sizeof cases_[0]); \
  } while (0)

Test(script_arch_loader, a_misspelt_key_names_the_nearest) {
  EXPECT_ERRORS({ON_H200("l2 = {\n way = guess(16, 'x') }"), "my.lua:3: unknown key l2.way, nearest is l2.ways"},
                {ON_H200("l3 = { ways = guess(16, 'x') }"), "my.lua:2: unknown key l3.ways, nearest is l1.ways"},
                {ON_H200("l3 = {}"), "my.lua:2: unknown section l3, nearest is l1"},
                {ON_H200("l2 = { ways = override(7) }"), "my.lua:2: l2.ways=7: l2.size_bytes, 61603840 in "},
                {ON_H200("l2 = {\n way = 16 }"), "my.lua:3: unknown key l2.way, nearest is l2.ways"});
}

Test(script_arch_loader, a_value_out_of_range_names_the_limits) {
  EXPECT_ERRORS(
      {ON_H200("l2 = {\n ways = guess(0, 'x') }"), "my.lua:3: l2.ways = 0 is out of range, allowed is 1 to 128 (way)"},
      {ON_H200("l2 = { ways = guess(math.maxinteger, 'x') }"), "my.lua:2: l2.ways = 9223372036854775807 is out"},
      {ON_H200("l2 = { ways = guess(-1, 'x') }"), "my.lua:2: l2.ways = -1 is out of range"},
      {ON_H200("l2 = { replacement = guess('fifo', 'x') }"),
       "my.lua:2: l2.replacement = \"fifo\", allowed are lru|nru|random"});
}

Test(script_arch_loader, a_value_of_another_type_says_what_is_allowed) {
  EXPECT_ERRORS(
      {ON_H200("l2 = { ways = guess('16', 'x') }"), "my.lua:2: l2.ways is the text \"16\", allowed is an integer"},
      {ON_H200("l2 = { ways = guess(1.5, 'x') }"), "my.lua:2: l2.ways is 1.5, not a whole number, allowed is an"},
      {ON_H200("l2 = { ways = guess(0/0, 'x') }"), "my.lua:2: l2.ways is "},
      {ON_H200("l2 = { ways = guess(1e300, 'x') }"), "my.lua:2: l2.ways is "},
      {ON_H200("l2 = { ways = guess(true, 'x') }"), "my.lua:2: l2.ways is a boolean, allowed is an integer of 1"},
      {ON_H200("l2 = { ways = guess({}, 'x') }"), "my.lua:2: l2.ways is a table, allowed is an integer of 1"},
      {ON_H200("l2 = { ways = guess(nil, 'x') }"), "my.lua:2: l2.ways is a nil, allowed is an integer of 1"},
      {ON_H200("l2 = { replacement = guess(1, 'x') }"), "my.lua:2: l2.replacement is a number (1), allowed are"});
}

Test(script_arch_loader, a_value_without_origin_is_refused) {
  EXPECT_ERRORS(
      {ON_H200("l2 = {\n\n ways = 16 }"), "my.lua:4: l2.ways is a bare number: say where it is from with datasheet"},
      {ON_H200("l2 = { ['ways'] = 16 }"), "my.lua:2: l2.ways is a bare number"},
      {ON_H200("l2 = { replacement = 'lru' }"), "my.lua:2: l2.replacement is a string, allowed are datasheet"},
      {ON_H200("l2 = { ways = { 16 } }"), "my.lua:2: l2.ways is a table, allowed are datasheet"},
      {ON_H200("l2 = { ways = datasheet(16) }"), "my.lua:2: datasheet(value, \"source\") needs its second argument"},
      {ON_H200("l2 = { ways = guess(16, '') }"), "my.lua:2: guess(value, \"why\") needs its second argument"},
      {ON_H200("l2 = { ways = measured(16, 3) }"), "my.lua:2: measured(value, \"source\") needs its second"});
}

Test(script_arch_loader, a_key_or_section_given_twice_is_refused) {
  EXPECT_ERRORS({ON_H200("l2 = { ways = guess(16, 'x'),\n ways = guess(20, 'x') }"),
                 "my.lua:3: l2.ways is given twice, first in line 2"},
                {ON_H200("l2 = { ways = guess(16, 'x') },\n l2 = { num_slices = guess(94, 'x') }"),
                 "my.lua:3: l2 is given twice, first in line 2"},
                {ON_H200("l2 = { ways = guess(16, 'x'), -- ways = 3\n --[[ ways = 4\n]] ['ways'] = guess(20, 'x') }"),
                 "my.lua:4: l2.ways is given twice, first in line 2"});
}

Test(script_arch_loader, of_several_faults_the_first_in_the_file_is_reported) {
  EXPECT_ERRORS({ON_H200("sm = { max_warps = guess(0, 'x') },\n l2 = { way = guess(1, 'x') },\n l1 = { ways = 3 }"),
                 "my.lua:2: sm.max_warps = 0"});
}

Test(script_arch_loader, a_missing_key_is_named_with_what_is_allowed) {
  file_write("base.lua", "return die \"base\" { sm = { max_warps = guess(32, 'x') } }");
  EXPECT_ERRORS({"return product \"my\" : on \"base.lua\" {}",
                 "my.lua:1: chip.compute_capability is missing, here and in what it stands on; allowed is 70 to 90"});
  cr_assert_not_null(strstr(last_error.message, " more are missing: chip.num_sms chip.num_gpcs "), "%s",
                     last_error.message);
}

Test(script_arch_loader, keys_that_do_not_fit_together_name_the_line) {
  EXPECT_ERRORS(
      {ON_H200("\nl2 = { num_slices = guess(93, 'x') }"),
       "my.lua:3: l2.num_slices (93) must be a multiple of l2.num_sides = 2"},
      {ON_H200("l2 = { size_bytes = override(120*1024*1024) }"),
       "my.lua:2: l2.size_bytes (125829120) must be a whole number of sets: a multiple of l2.num_slices * l2.ways "
       "* l1.line_bytes = 240640"});  // 94 slices of 20 ways of 128 bytes
}

Test(script_arch_loader, other_shapes_than_models_are_refused) {
  EXPECT_ERRORS({"return 3", "my.lua: must return die \"name\" { ... } or product \"name\" : on \"base\" { ... }"},
                {"", "my.lua: must return die"}, {"return product \"my\"", "my.lua:1: must return die"},
                {"return product \"my\" : on \"h200\"", "my.lua: must return die"},
                {"\nreturn die \"my\"", "my.lua:2: must return die"}, {"return { l2 = {} }", "my.lua: must return die"},
                {"return product \"My\" : on \"h200\" {}", "my.lua:1: the name \"My\" is not 1 to 31 lower-case"},
                {"return product \"\" : on \"h200\" {}", "my.lua:1: the name \"\" is not"},
                {"return product \"my\" : on \"h200\" (3)", "my.lua:1: bad argument #1 to"},
                {"return product \"my\" {}", "my.lua:1: write product \"name\" : on \"base\" { ... }"},
                {"return die \"my\" (3)", "my.lua:1: bad argument #1 to"},
                {"return die \"my\" : on \"h200\" {}", "my.lua:1: a die stands on a die, and h200 is a product"},
                {"return product \"gh100\" : on \"gh100\" {}", "my.lua:1: the product has the name of its die, gh100"},
                {ON_H200("l2 = 3"), "my.lua:2: l2 is a section: write l2 = { key = value, ... }"},
                {ON_H200("l2 = { 16 }"), "my.lua:2: l2 has a value without a key"},
                {ON_H200("3"), "my.lua:1: a model's table holds sections"});
}

Test(script_arch_loader, a_base_that_is_unknown_or_circular_is_refused) {
  EXPECT_ERRORS({"\nreturn product \"my\" : on \"h20\" {}", "my.lua:2: unknown GPU \"h20\", nearest is \"h200\""},
                {"return product \"my\" : on \"my.lua\" {}", "my.lua:1: more than 8 models stand on each other"},
                {"\nreturn product \"my\" : on \"./none.lua\" {}", "my.lua:2: "});
  cr_assert_not_null(strstr(last_error.message, "/none.lua: No such file or directory"), "%s", last_error.message);
  load_error("return product \"my\" : on \"h200\" { l2 = { ways = override(0) } }");
}

Test(script_arch_loader, model_files_run_in_the_sandbox) {
  EXPECT_ERRORS({"\nlocal x = ", "my.lua:2: unexpected symbol near <eof>"},
                {"\nwhile true do end", "my.lua:2: the script ran longer than 10000000 instructions"},
                {"local s = 'x' while true do s = s .. s end", "my.lua:1: the script needs more than"},
                {"os.exit(0)", "my.lua:1: attempt to index a nil value (global 'os')"},
                {"io.open('/etc/passwd')", "my.lua:1: attempt to index a nil value (global 'io')"},
                {"print 'x'", "my.lua:1: attempt to call a nil value (global 'print')"},
                {"require 'foretile'", "my.lua:1: there is no module \"foretile\""},
                {"setmetatable(_G, {__index = function(t, k) return t[k] end}) return x", "my.lua:1: "},
                {"\x1bLua", "my.lua: attempt to load a binary chunk"});
}

// --- what-if ---

static ftl_arch *what_if(const ftl_arch *base, const char *pair) {
  ftl_arch *arch = NULL;
  cr_assert_eq(ftl_arch_create_what_if(base, &pair, 1, &arch, &last_error), FTL_OK, "%s", last_error.message);
  return arch;
}

static void expect_what_if_error(const ftl_arch *base, const char *pair, const char *message) {
  ftl_arch *arch = NULL;
  cr_assert_eq(ftl_arch_create_what_if(base, &pair, 1, &arch, &last_error), FTL_BAD_INPUT, "%s", pair);
  cr_assert_eq(strncmp(last_error.message, message, strlen(message)), 0, "%s", last_error.message);
  cr_assert_eq(arch, NULL);
}

Test(script_arch_loader, a_what_if_changes_a_copy_and_marks_its_name) {
  ftl_arch *h200 = load("h200"), *arch = what_if(h200, "l2.ways=10");
  cr_assert_str_eq(arch->name, "h200*");
  cr_assert_eq(arch->l2_ways, 10);
  cr_assert_eq(h200->l2_ways, 20);
  cr_assert_eq(ftl_arch_origin(arch, ftl_arch_key_find("l2.ways")).kind, FTL_ORIGIN_OVERRIDE);
  cr_assert_neq(ftl_arch_hash(arch), ftl_arch_hash(h200));
  ftl_arch *again = what_if(arch, "l2.replacement=lru");
  cr_assert_str_eq(again->name, "h200*");
  cr_assert_str_eq(again->l2_replacement, "lru");
  ftl_arch_destroy(again);
  ftl_arch_destroy(arch);
  ftl_arch_destroy(h200);
}

Test(script_arch_loader, faults_in_what_if_pairs_are_named) {
  ftl_arch *h200 = load("h200");
  expect_what_if_error(h200, "l2.way=10", "what-if: unknown key l2.way, nearest is l2.ways");
  expect_what_if_error(h200, "l2.ways", "what-if: \"l2.ways\" is not section.key=value");
  expect_what_if_error(h200, "=3", "what-if: \"=3\" is not section.key=value");
  expect_what_if_error(h200, "l2.ways=", "what-if: l2.ways is the text \"\", allowed is an integer of 1 to 128");
  expect_what_if_error(h200, "l2.ways=1e3", "what-if: l2.ways is the text \"1e3\"");
  expect_what_if_error(h200, "l2.ways=99999999999999999999", "what-if: l2.ways is the text \"99999999999999999999\"");
  expect_what_if_error(h200, "l2.ways=129", "what-if: l2.ways = 129 is out of range, allowed is 1 to 128 (way)");
  expect_what_if_error(h200, "l2.replacement=2", "what-if: l2.replacement = \"2\", allowed are lru|nru|random");
  expect_what_if_error(h200, "l2.num_slices=93", "what-if: l2.num_slices (93) must be a multiple");
  ftl_arch_destroy(h200);
}

Test(script_arch_loader, a_what_if_sets_a_key_once) {
  ftl_arch *h200 = load("h200"), *arch = NULL;
  const char *const twice[] = {"l2.ways=10", "dram.queue_entries=64", "l2.ways=40"};
  cr_assert_eq(ftl_arch_create_what_if(h200, twice, 3, &arch, &last_error), FTL_BAD_INPUT);
  cr_expect_str_eq(last_error.message, "what-if: l2.ways is set twice, as 10 and 40");
  cr_expect_null(arch);
  const char *const apart[] = {"l2.ways=10", "l2.way=10"};
  cr_assert_eq(ftl_arch_create_what_if(h200, apart, 2, &arch, &last_error), FTL_BAD_INPUT);
  cr_expect(strncmp(last_error.message, "what-if: unknown key l2.way,", 28) == 0, "%s", last_error.message);
  ftl_arch_destroy(h200);
}

// The what-if of a table in Lua; NULL with last_error set.
static ftl_arch *what_if_lua(const char *table) {
  ftl_sandbox *sandbox = NULL;
  ftl_arch *h200 = load("h200"), *arch = NULL;
  char text[256];
  snprintf(text, sizeof text, "return %s", table);
  cr_assert_eq(ftl_sandbox_create(&sandbox, ftl_sandbox_limits_default(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_text(sandbox, "s.lua", text, strlen(text), 1, &last_error), FTL_OK, "%s",
               last_error.message);
  ftl_status status = ftl_arch_create_what_if_lua(h200, ftl_sandbox_lua(sandbox), -1, "s.lua:5", &arch, &last_error);
  cr_assert_eq(status == FTL_OK, arch != NULL);
  cr_assert_eq(lua_gettop(ftl_sandbox_lua(sandbox)), 1);
  ftl_sandbox_destroy(sandbox);
  ftl_arch_destroy(h200);
  return arch;
}

Test(script_arch_loader, a_what_if_from_a_lua_table) {
  ftl_arch *arch = what_if_lua("{ l2 = { ways = 10, replacement = 'lru' }, sm = { max_ctas = 2^4 } }");
  cr_assert_neq(arch, NULL, "%s", last_error.message);
  cr_assert_eq(arch->l2_ways, 10);
  cr_assert_str_eq(arch->l2_replacement, "lru");
  cr_assert_eq(arch->sm_max_ctas, 16);
  cr_assert_str_eq(ftl_arch_origin(arch, ftl_arch_key_find("l2.ways")).file, "s.lua:5");
  ftl_arch_destroy(arch);
}

Test(script_arch_loader, faults_in_a_lua_what_if_name_its_line) {
  static const error_case cases[] = {
      {"{ l2 = { way = 10 } }", "s.lua:5: unknown key l2.way, nearest is l2.ways"},
      {"{ l2 = { ways = 0 } }", "s.lua:5: l2.ways = 0 is out of range, allowed is 1 to 128 (way)"},
      {"{ l2 = { ways = 1.5 } }",
       "s.lua:5: l2.ways is 1.5, not a whole number, allowed is an integer of 1 to 128 (way)"},
      {"{ l2 = { ways = {} } }", "s.lua:5: l2.ways is a table, allowed is an integer of 1 to 128 (way)"},
      {"{ l2 = 3 }", "s.lua:5: l2 is a section: write l2 = { key = value, ... }"},
      {"3", "s.lua:5: a what-if is a table { section = { key = value, ... }, ... }"},
      {"{ l2 = { num_slices = 93 } }", "s.lua:5: l2.num_slices (93) must be a multiple of l2.num_sides = 2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cr_assert_eq(what_if_lua(cases[i].text), NULL, "%s", cases[i].text);
    cr_assert_str_eq(last_error.message, cases[i].message);
  }
}
