#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/sandbox.h"

static ftl_sandbox_limits small(void) {
  return (ftl_sandbox_limits){.max_memory_bytes = 8 << 20, .max_string_bytes = 1 << 20, .max_instructions = 3000000};
}

static ftl_error last_error;

static ftl_status run_with(ftl_sandbox_limits limits, const char *text) {
  ftl_sandbox *sandbox = NULL;
  last_error = (ftl_error){0};
  cr_assert_eq(ftl_sandbox_create(&sandbox, limits, &last_error), FTL_OK);
  ftl_status status = ftl_sandbox_run_text(sandbox, "s.lua", text, strlen(text), 0, &last_error);
  cr_assert_eq(lua_gettop(ftl_sandbox_lua(sandbox)), 0);
  ftl_sandbox_destroy(sandbox);
  return status;
}

static void expect_ok(const char *text) { cr_assert_eq(run_with(small(), text), FTL_OK, "%s", last_error.message); }

static void expect_error(const char *text, const char *message) {
  cr_assert_eq(run_with(small(), text), FTL_BAD_INPUT, "%s", text);
  cr_assert_neq(strstr(last_error.message, message), NULL, "%s -> %s", text, last_error.message);
}

Test(script_sandbox, runs_lua_and_leaves_the_results_on_the_stack) {
  ftl_sandbox *sandbox = NULL;
  const char *text = "local a, b = ...; return 6 * 7, 'x' .. 1";
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_text(sandbox, "s.lua", text, strlen(text), 2, NULL), FTL_OK);
  cr_assert_eq(lua_tointeger(ftl_sandbox_lua(sandbox), -2), 42);
  cr_assert_str_eq(lua_tostring(ftl_sandbox_lua(sandbox), -1), "x1");
  ftl_sandbox_destroy(sandbox);
}

Test(script_sandbox, a_syntax_error_names_file_and_line) { expect_error("\n\nlocal = 3", "s.lua:3: "); }
Test(script_sandbox, a_runtime_error_names_file_and_line) { expect_error("\nlocal t; t.x = 1", "s.lua:2: "); }
Test(script_sandbox, an_error_that_is_no_text_names_the_line) {
  expect_error("\nerror({})", "s.lua:2: the script raised a table");
}

Test(script_sandbox, a_long_file_name_is_not_shortened_in_errors) {
  ftl_sandbox *sandbox = NULL;
  char name[200];
  memset(name, 'd', sizeof name);
  memcpy(name + sizeof name - 5, ".lua", 5);
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_text(sandbox, name, "\nx.y = 1", 8, 0, &last_error), FTL_BAD_INPUT);
  cr_assert_eq(strncmp(last_error.message, name, strlen(name)), 0, "%s", last_error.message);
  cr_assert_eq(strncmp(last_error.message + strlen(name), ":2: ", 4), 0, "%s", last_error.message);
  ftl_sandbox_destroy(sandbox);
}

Test(script_sandbox, an_endless_loop_stops_with_its_line, .timeout = 20) {
  expect_error("local x\nwhile true do\n x = 1 end", "s.lua:3: the script ran longer than 3000000 instructions");
}
Test(script_sandbox, an_endless_loop_on_one_line_stops, .timeout = 20) {
  expect_error("while true do end", "s.lua:1: ");
}
Test(script_sandbox, a_goto_loop_stops, .timeout = 20) { expect_error("::a:: goto a", "instructions"); }

Test(script_sandbox, pcall_cannot_swallow_the_instruction_limit, .timeout = 20) {
  expect_error("while true do pcall(function() while true do end end) end", "instructions");
  expect_error("while true do xpcall(function() while true do end end, function() while true do end end) end",
               "instructions");
  expect_error("local function f() pcall(f) while true do end end f()", "instructions");
}

Test(script_sandbox, pcall_cannot_swallow_the_memory_limit, .timeout = 20) {
  expect_error("pcall(string.rep, 'x', 1 << 30) return 1", "memory");
  expect_error("local t = {} pcall(function() while true do t[#t + 1] = {} end end)", "memory");
  expect_error("pcall(pcall, string.rep, 'x', 1 << 30) return 1", "memory");
}

// 2 MiB of 8 MiB of memory, where a string may have 1 MiB.
Test(script_sandbox, a_string_has_a_limit_of_its_own) {
  expect_error("local s = string.rep('x', 2 << 20)", "a string of more than 1048576");
}

Test(script_sandbox, close_handlers_cannot_outlive_the_limit, .timeout = 20) {
  expect_error("local c <close> = setmetatable({}, {__close = function() while true do end end}) while true do end",
               "instructions");
}

Test(script_sandbox, a_huge_allocation_stops_with_its_line, .timeout = 20) {
  expect_error("\n\nlocal s = string.rep('x', 1 << 30)", "s.lua:3: the script needs more than 8388608 bytes of memory");
  expect_error("\nlocal s = 'x' while true do s = s .. s end", "s.lua:2: ");
  expect_error("local t = {} while true do t[#t + 1] = {1, 2, 3} end", "memory");
  expect_error("local t = table.pack(table.unpack({}, 1, 500000)) error('x' .. #t)", "s.lua:1: ");
}

Test(script_sandbox, deep_recursion_is_an_error_and_no_crash, .timeout = 20) {
  expect_error("local function f(x) return 1 + f(x) end f(1)", "s.lua:1: ");
  expect_error(
      "local s = string.rep('(', 100000) .. '1' local f = string.gsub local function g() return f('x', 'x', g) end g()",
      "s.lua:1: ");
  char nested[4096];
  memset(nested, '(', sizeof nested);
  memcpy(nested, "return ", 7);
  nested[sizeof nested - 1] = '\0';
  expect_error(nested, "s.lua: C stack overflow");
  expect_error(
      "local t = setmetatable({}, {}) getmetatable(t).__index = function(a, k) return a[k + 1] end return t[1]",
      "s.lua:1: ");
}

Test(script_sandbox, loops_inside_library_functions_stop, .timeout = 20) {
  expect_error("table.move({}, 1, 1 << 60, 2)", "instructions");
  expect_error("table.unpack({}, 1, 1 << 30)", "instructions");
  expect_error("table.concat(setmetatable({}, {__index = type}), '', 1, 1 << 60)", "instructions");
  expect_error("table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 2)", "__len");
  expect_ok("assert(string.rep('', 1 << 60) == '')");
  expect_error("while true do local s = string.rep('x', 1000000) end", "instructions");
}

Test(script_sandbox, pattern_matching_that_explodes_stops, .timeout = 20) {
  expect_error("string.find(string.rep('a', 200), string.rep('a*', 20) .. 'b')", "s.lua:1: the script ran longer");
  expect_error("string.gsub(string.rep('a', 10000), '.-.-.-b', '')", "instructions");
  expect_error("for w in string.gmatch(string.rep('a', 10000), '.-.-.-b') do end", "instructions");
  expect_error("string.match(string.rep('a', 1000000), string.rep('(', 300))", "too many captures");
  expect_error("string.find(string.rep('a', 500000), string.rep('a', 250000) .. 'b', 1, true)", "instructions");
}

// 100000 searches of 400 steps or more each, in some 5 instructions of Lua: the limit of 3000000 is reached although no
// search alone counts many.
Test(script_sandbox, many_short_searches_count_as_well, .timeout = 20) {
  expect_error("local s = string.rep('a', 400) for i = 1, 100000 do string.find(s, 'b%a') end", "instructions");
  expect_error("local s = string.rep('a', 400) for i = 1, 100000 do string.match(s, 'b%a') end", "instructions");
  expect_error("local s = string.rep('a', 400) for i = 1, 100000 do for w in string.gmatch(s, 'b%a') do end end",
               "instructions");
}

Test(script_sandbox, there_is_no_io_os_debug_package_load_or_coroutine) {
  expect_ok(
      "for _, n in ipairs {'io', 'os', 'debug', 'package', 'load', 'loadfile', 'dofile', 'loadstring', "
      "'coroutine', 'collectgarbage'} do assert(_G[n] == nil, n) end assert(string.dump == nil)");
  expect_error("require 'os'", "there is no module \"os\"");
}

Test(script_sandbox, allow_io_opens_io_and_os) {
  ftl_sandbox_limits limits = small();
  limits.allow_io = true;
  cr_assert_eq(run_with(limits, "assert(os.time() > 0 and io.open('/dev/null'))"), FTL_OK);
}

Test(script_sandbox, bytecode_is_refused) { expect_error("\x1bLua", "s.lua: attempt to load a binary chunk"); }
Test(script_sandbox, finalizers_are_refused) { expect_error("setmetatable({}, {__gc = function() end})", "__gc"); }

Test(script_sandbox, random_numbers_are_the_same_in_every_run) {
  double seen[2];
  for (int i = 0; i < 2; i++) {
    ftl_sandbox *sandbox = NULL;
    cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
    cr_assert_eq(ftl_sandbox_run_text(sandbox, "s.lua", "return math.random()", 20, 1, NULL), FTL_OK);
    seen[i] = lua_tonumber(ftl_sandbox_lua(sandbox), -1);
    ftl_sandbox_destroy(sandbox);
  }
  cr_assert_eq(seen[0], seen[1]);
}

// Lua would take the time and an address of its own.
Test(script_sandbox, a_random_seed_is_a_number_of_the_scenario) {
  expect_error("math.randomseed()", "number expected");
  expect_error("math.randomseed({})", "number expected");
  cr_assert_eq(run_with(small(),
                        "math.randomseed(7) local a = math.random() math.randomseed(7)"
                        " assert(a == math.random())"),
               FTL_OK);
}

static int open_answer(lua_State *lua) {
  lua_newtable(lua);
  lua_pushinteger(lua, 42);
  lua_setfield(lua, -2, "answer");
  return 1;
}

Test(script_sandbox, require_gives_a_preloaded_module_once) {
  ftl_sandbox *sandbox = NULL;
  const char *text = "local m = require 'm' assert(m == require 'm') return m.answer";
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_preload(sandbox, "m", open_answer, NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_text(sandbox, "s.lua", text, strlen(text), 1, &last_error), FTL_OK, "%s",
               last_error.message);
  cr_assert_eq(lua_tointeger(ftl_sandbox_lua(sandbox), -1), 42);
  ftl_sandbox_destroy(sandbox);
}

// --- modules ---

static char folder[] = "/tmp/foretile-modules-XXXXXX";

// In the folder; `path` may name a folder in it.
static void write_file(const char *path, const char *text) {
  char full[300];
  snprintf(full, sizeof full, "%s/%s", folder, path);
  FILE *file = fopen(full, "w");
  cr_assert_not_null(file);
  fputs(text, file);
  fclose(file);
}

static void make_folder(void) {
  char inner[300];
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  snprintf(inner, sizeof inner, "%s/parts", folder);
  cr_assert_eq(mkdir(inner, 0700), 0);
}

static void remove_folder(void) {
  static const char *const files[] = {"m.lua", "n.lua", "parts/deep.lua", "parts", ""};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char full[300];
    snprintf(full, sizeof full, "%s/%s", folder, files[i]);
    remove(full);
  }
}

static ftl_status run_in_folder(const char *text) {
  ftl_sandbox *sandbox = NULL;
  char path[300];
  snprintf(path, sizeof path, "%s/s.lua", folder);
  last_error = (ftl_error){0};
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_allow_modules(sandbox, path, &last_error), FTL_OK);
  ftl_status status = ftl_sandbox_run_text(sandbox, path, text, strlen(text), 0, &last_error);
  cr_assert_eq(lua_gettop(ftl_sandbox_lua(sandbox)), 0);
  ftl_sandbox_destroy(sandbox);
  return status;
}

static void expect_in_folder(const char *text, const char *message) {
  cr_assert_eq(run_in_folder(text), FTL_BAD_INPUT, "%s", text);
  cr_assert_neq(strstr(last_error.message, message), NULL, "%s -> %s", text, last_error.message);
}

Test(script_sandbox, a_module_of_the_scripts_folder_runs_once, .init = make_folder, .fini = remove_folder) {
  write_file("m.lua", "runs = (runs or 0) + 1 return { answer = 42, name = ... }");
  write_file("parts/deep.lua", "return require 'm'.answer + 1");
  cr_assert_eq(run_in_folder("local m = require 'm' assert(m.answer == 42 and m.name == 'm')\n"
                             "assert(require 'parts.deep' == 43 and require 'm' == m and runs == 1)"),
               FTL_OK, "%s", last_error.message);
}

Test(script_sandbox, an_error_in_a_module_names_its_file_and_line, .init = make_folder, .fini = remove_folder) {
  write_file("m.lua", "\n\nlocal t; t.x = 1");
  write_file("n.lua", "\nreturn { loop = function()\n while true do end end, raise = function() error({}) end }");
  expect_in_folder("require 'm'", "/m.lua:3: ");
  expect_in_folder("require 'n'.loop()", "/n.lua:3: the script ran longer than 3000000 instructions");
  expect_in_folder("require 'n'.raise()", "/n.lua:3: the script raised a table");
  expect_in_folder("require 'n'\n\nerror 'here'", "/s.lua:3: here");
  write_file("m.lua", "\nreturn = 3");
  expect_in_folder("require 'm'", "/m.lua:2: ");
}

Test(script_sandbox, a_module_that_failed_may_be_required_again, .init = make_folder, .fini = remove_folder) {
  write_file("m.lua", "if not ready then error 'not ready' end return 7");
  cr_assert_eq(run_in_folder("assert(not pcall(require, 'm')) ready = true assert(require 'm' == 7)"), FTL_OK, "%s",
               last_error.message);
}

Test(script_sandbox, modules_that_require_each_other_are_an_error, .init = make_folder, .fini = remove_folder) {
  write_file("m.lua", "return require 'n'");
  write_file("n.lua", "return require 'm'");
  expect_in_folder("require 'm'", "module \"m\" requires itself");
}

Test(script_sandbox, a_module_stays_in_the_scripts_folder, .init = make_folder, .fini = remove_folder) {
  static const char *const names[] = {"../m", "..m", "/etc/passwd", "a/b", "", ".m", "m.", "a..b", "m.lua\\n"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[64];
    snprintf(text, sizeof text, "require '%s'", names[i]);
    expect_in_folder(text, "allowed are words of letters, digits and _ with dots between");
  }
  expect_in_folder("require 'm'", "there is no module \"m\" (");
  write_file("m.lua", "x = 1");
  expect_in_folder("require 'm'", "module \"m\" returns nothing");
  write_file("m.lua", "\x1bLua");
  expect_in_folder("require 'm'", "attempt to load a binary chunk");
}

Test(script_sandbox, an_interrupt_stops_the_script) {
  static volatile sig_atomic_t interrupt = 1;
  ftl_sandbox_limits limits = small();
  limits.interrupt = &interrupt;
  cr_assert_eq(run_with(limits, "while true do pcall(error) end"), FTL_INTERRUPTED);
}

Test(script_sandbox, the_limit_holds_over_several_runs) {
  ftl_sandbox *sandbox = NULL;
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_text(sandbox, "a.lua", "while true do end", 17, 0, NULL), FTL_BAD_INPUT);
  cr_assert_eq(ftl_sandbox_run_text(sandbox, "b.lua", "return 1", 8, 0, &last_error), FTL_BAD_INPUT);
  ftl_sandbox_destroy(sandbox);
}

Test(script_sandbox, a_file_that_is_missing_or_a_folder_is_named) {
  ftl_sandbox *sandbox = NULL;
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_file(sandbox, "/nowhere/x.lua", 0, &last_error), FTL_IO_FAILED);
  cr_assert_str_eq(last_error.message, "/nowhere/x.lua: No such file or directory");
  cr_assert_eq(ftl_sandbox_run_file(sandbox, "/tmp", 0, &last_error), FTL_IO_FAILED);
  ftl_sandbox_destroy(sandbox);
}

Test(script_sandbox, a_first_line_with_a_hash_keeps_the_line_numbers) {
  char path[] = "/tmp/ftl_sandbox_XXXXXX";
  FILE *file = fdopen(mkstemp(path), "w");
  cr_assert_neq(file, NULL);
  fputs("#!/usr/bin/foretile run\nx.y = 1\n", file);
  fclose(file);
  ftl_sandbox *sandbox = NULL;
  cr_assert_eq(ftl_sandbox_create(&sandbox, small(), NULL), FTL_OK);
  cr_assert_eq(ftl_sandbox_run_file(sandbox, path, 0, &last_error), FTL_BAD_INPUT);
  cr_assert_neq(strstr(last_error.message, ":2: "), NULL, "%s", last_error.message);
  ftl_sandbox_destroy(sandbox);
  unlink(path);
}

// The same answers as Lua's own library gives.
Test(script_sandbox, patterns_work_as_in_lua) {
  expect_ok(
      "assert(('hello world'):find('wor') == 7)\n"
      "assert(select('#', ('abc'):find('b', 1, true)) == 2)\n"
      "assert(('k = v'):match('^(%w+)%s*=%s*(%w+)$') == 'k')\n"
      "assert(('THE (quick) fox'):find('%((%a+)%)') == 5)\n"
      "assert(('x'):rep(3, ',') == 'x,x,x')\n"
      "assert(('hello'):gsub('l', {l = 'L'}) == 'heLLo')\n"
      "assert(('hello world'):gsub('%w+', '%0 %0', 1) == 'hello hello world')\n"
      "assert(('abc'):gsub('', '-') == '-a-b-c-')\n"
      "assert(('abc def'):gsub('%f[%w]%w+', string.upper) == 'ABC DEF')\n"
      "assert(('f(a(b)c)d'):match('%b()') == '(a(b)c)')\n"
      "assert(('aXb'):match('()X()') == 2)\n"
      "assert(('[[x]]'):match('%[(%[.-%])%]') == '[x]')\n"
      "assert(('\"a\" and \\'b\\''):match('([\"\\'])(.-)%1') == '\"')\n"
      "assert(('a]b'):find('[]]') == 2 and ('a-b'):find('[a%-]', 2) == 2)\n"
      "assert(('a\\0b'):find('\\0', 1, true) == 2 and ('a\\0b'):find('%z') == nil)\n"
      "assert(('colour color'):gsub('colou?r', 'c') == 'c c')\n"
      "local n = 0 for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do n = n + v end assert(n == 3)\n"
      "local t = {} for w in ('one two'):gmatch('%a+') do t[#t + 1] = w end assert(#t == 2 and t[2] == 'two')\n"
      "assert(not pcall(string.find, 'a', '[a') and not pcall(string.find, 'a', '%'))\n"
      "assert(not pcall(string.find, 'a', '%1') and not pcall(string.gsub, 'a', 'a', '%2'))\n"
      "assert(('abc'):find('b', -1) == nil and ('abc'):find('', 10) == nil and ('abc'):find('', 4) == 4)\n"
      "assert(('  trim '):gsub('^%s+', '') == 'trim ' and ('x^y'):find('^', 1, true) == 2)");
}
