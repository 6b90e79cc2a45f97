// ft.report, with an engine that answers by a formula (fake/fake_engine.h).
#include <string.h>

#include "script/scenario.h"
#include "unit/results/fixture.h"

#define PREFIX "local ft = require 'foretile'; "
#define PREDICT "ft.predict{ arch = 'h200', workload = 'flash2_fwd', heads = 8, seqlen = 1024, head_dim = 64 }; "

// Runs a script whose results go to `path`; NULL: nowhere.
static ftl_status run(const char *script, const char *path, bool allow_io, ftl_error *error) {
  ftl_session session;
  ftl_database *database = NULL;
  ftl_session_init(&session);
  session.evaluate.num_threads = 1;
  if (path != NULL) {
    cr_assert_eq(ftl_database_open(&database, path, error), FTL_OK, "%s", error->message);
    cr_assert_eq(ftl_database_begin_run(database, "run", "test.lua", script, &session.evaluate.run_id, error), FTL_OK);
  }
  session.evaluate.database = database;
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  limits.allow_io = allow_io;
  ftl_status status = ftl_scenario_run_text(&session, "test.lua", script, strlen(script), limits, error);
  ftl_session_fini(&session);
  ftl_database_close(database);
  return status;
}

static void fails(const char *script, const char *path, bool allow_io, const char *expected) {
  ftl_error error = {0};
  cr_assert_neq(run(script, path, allow_io, &error), FTL_OK);
  cr_assert_not_null(strstr(error.message, expected), "%s", error.message);
}

Test(unit_scenario_report, is_text_about_what_the_run_keeps) {
  folder f = make_folder();
  ftl_error error = {0};
  const char *script = PREFIX PREDICT
      "local page = ft.report()\n"
      "assert(page:find('^<!DOCTYPE html>') and page:find('</html>\\n$') and page == ft.report{})\n"
      "assert(page:find('<td>h200<td>flash2_fwd<td>heads=8 seqlen=1024 head_dim=64<td>', 1, true))\n";
  cr_assert_eq(run(script, f.file, false, &error), FTL_OK, "%s", error.message);
  remove_folder(&f);
}

Test(unit_scenario_report, goes_to_a_file_where_files_are_allowed) {
  folder f = make_folder();
  ftl_error error = {0};
  char script[512], output[128], line[32] = "";
  snprintf(output, sizeof output, "%s/page.html", f.path);
  snprintf(script, sizeof script, PREFIX PREDICT "assert(select('#', ft.report{ output = '%s' }) == 0)", output);
  cr_assert_eq(run(script, f.file, true, &error), FTL_OK, "%s", error.message);
  FILE *file = fopen(output, "r");
  cr_assert_not_null(file);
  cr_assert_str_eq(fgets(line, sizeof line, file), "<!DOCTYPE html>\n");
  fclose(file);
  unlink(output);
  fails(script, f.file, false, "test.lua:1: output names a file, which needs --allow-io");
  cr_assert_neq(access(output, F_OK), 0);
  snprintf(script, sizeof script, PREFIX "assert(ft.report{ db = '%s' }:find('h200'))", f.file);
  cr_assert_eq(run(script, NULL, true, &error), FTL_OK, "%s", error.message);
  fails(script, NULL, false, "test.lua:1: db names a file, which needs --allow-io");
  remove_folder(&f);
}

Test(unit_scenario_report, mistakes_name_the_line) {
  folder f = make_folder();
  fails(PREFIX "ft.report()", NULL, false, "test.lua:1: this run keeps no results that ft.report could show");
  fails(PREFIX "ft.report()", f.file, false, "neither predictions nor measurements");
  fails(PREFIX "ft.report{ outptu = 'x', zzz = 1 }", f.file, true, "ft.report takes db and output, not \"outptu\"");
  fails(PREFIX "ft.report{ 'x.html' }", f.file, true, "ft.report takes db = ");
  fails(PREFIX "ft.report{ output = 7 }", f.file, true, "output must be a file name, not a number");
  fails(PREFIX "ft.report{ db = '/none/none.db' }", f.file, true, "/none/none.db: the folder /none: No such file");
  remove_folder(&f);
}
