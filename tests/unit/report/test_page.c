// The page, from databases that the engine with the formula fills (fake/fake_engine.h).
#include <sqlite3.h>

#include "report/page_internal.h"
#include "results/measurement_store.h"
#include "unit/results/fixture.h"

static const char *const nasty = "<script>alert('x')</script>&\".lua";
static const char *const nasty_escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;.lua";

static void execute(const char *path, const char *sql) {
  sqlite3 *sqlite = NULL;
  cr_assert_eq(sqlite3_open(path, &sqlite), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(sqlite));
  sqlite3_close(sqlite);
}

// block_m of 64 and 128, block_n of 64, 128 and 256, under ncu: 8 heads * 1024^2 / (block_m * block_n) * 2 ns, so
// 4096, 2048, 1024, 2048, 1024 ns, and 128 x 256 infeasible.
static void fill(const char *path, const char *arch_name) {
  static const char *const blocks[][2] = {{"64", "64"},  {"64", "128"},  {"64", "256"},
                                          {"128", "64"}, {"128", "128"}, {"128", "256"}};
  ftl_error error = {0};
  ftl_database *database = NULL;
  int64_t run_id = 0;
  ftl_arch *arch = make_arch(arch_name, 4);
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_database_begin_run(database, "run", nasty, "text", &run_id, &error), FTL_OK);
  ftl_evaluate_options options = {.num_threads = 1, .database = database, .run_id = run_id};
  for (int i = 0; i < 6; i++) {
    ftl_answer answer;
    ftl_point point = {.spec = make_spec(blocks[i][0], blocks[i][1]), .arch = arch};
    cr_assert_eq(ftl_evaluate(&point, 1, &options, &answer, &error), FTL_OK, "%s", error.message);
  }
  cr_assert_eq(ftl_database_end_run(database, run_id, FTL_RUN_STATE_DONE, &error), FTL_OK);
  ftl_database_close(database);
  ftl_arch_destroy(arch);
}

static void import_text(const char *path, const char *text) {
  ftl_error error = {0};
  ftl_database *database = NULL;
  ftl_csv csv;
  ftl_measurement_file file;
  ftl_import_summary summary;
  cr_assert_eq(ftl_csv_init(&csv, "mine.csv", text, strlen(text), &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_measurement_file_parse(&file, &csv, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_database_put_measurements(database, &file, &summary, &error), FTL_OK, "%s", error.message);
  ftl_database_close(database);
  ftl_measurement_file_fini(&file);
  ftl_csv_fini(&csv);
}

static ftl_text make_page(const char *path) {
  ftl_error error = {0};
  ftl_text page = {0};
  cr_assert_eq(ftl_page_of_file(path, &page, &error), FTL_OK, "%s", error.message);
  return page;
}

static int count(const char *text, const char *what) {
  int found = 0;
  for (; (text = strstr(text, what)) != NULL; text += strlen(what)) found++;
  return found;
}

// A section of the page, to be freed.
static char *section_of(const ftl_text *page, const char *id) {
  char begin[64];
  snprintf(begin, sizeof begin, "<section id=%s>", id);
  const char *from = strstr(ftl_text_get(page), begin);
  cr_assert_not_null(from, "no section %s", id);
  const char *to = strstr(from, "</section>");
  cr_assert_not_null(to);
  return strndup(from, (size_t)(to - from));
}

static void has(const char *text, const char *what) {
  cr_assert_not_null(strstr(text, what), "no %s in %s", what, text);
}

Test(unit_report_page, every_prediction_is_a_row_the_fastest_first_and_the_infeasible_last) {
  folder f = make_folder();
  fill(f.file, "toy");
  ftl_text page = make_page(f.file);
  char *rows = section_of(&page, "predictions");
  cr_assert_eq(count(rows, "\n<tr><td>"), 6);
  has(rows, "<th scope=col>TFLOP/s");
  const char *fastest = strstr(rows, "<td>1.0<"), *slowest = strstr(rows, "<td>4.1<");
  const char *infeasible = strstr(rows, "<td>block_m=128 block_n=256 is more than toy holds<td>-<td>-<td colspan=7>");
  cr_assert(fastest != NULL && slowest != NULL && infeasible != NULL);
  cr_assert(fastest < slowest && slowest < infeasible);
  has(rows,
      "<td>toy<td>flash2_fwd<td>heads=8 seqlen=1024 head_dim=64<td>block_m=64 block_n=64 num_warps=4 num_stages=2<td>"
      "tensor pipe<td>4.1");
  free(rows);
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, a_problem_has_bars_and_a_map_of_its_blocks) {
  folder f = make_folder();
  fill(f.file, "toy");
  ftl_text page = make_page(f.file);
  char *rankings = section_of(&page, "rankings");
  has(rankings, "<summary>toy · flash2_fwd · heads=8 seqlen=1024 head_dim=64 <small>(6 configurations, 1 infeasible)");
  cr_assert_eq(count(rankings, "class=\"bar"), 5);
  cr_assert_eq(count(rankings, "class=\"bar best\""), 1);
  has(rankings, "<span class=\"bar\" style=\"width:70.0%\"></span>4.00<td>4.1");  // the longest bar: 4096 of 1024 ns
  has(rankings,
      "<tr><th scope=row>64<td style=\"--share:0.06\">4.1<td style=\"--share:0.25\">2.0<td style=\"--share:1.00\">1.0");
  has(rankings, "<tr><th scope=row>128<td style=\"--share:0.25\">2.0<td style=\"--share:1.00\">1.0<td>-");
  free(rankings);
  ftl_text_fini(&page);
  remove_folder(&f);
}

// How a kernel orders its heads and pads its tiles is a choice: the problem, and with it the group, stays the same.
Test(unit_report_page, configurations_of_one_problem_are_one_group) {
  folder f = make_folder();
  fill(f.file, "toy");
  execute(f.file,
          "UPDATE predictions SET spec = spec || ' head_order=sequences_first head_dim_multiple=64' WHERE id = 1");
  ftl_text page = make_page(f.file);
  has(ftl_text_get(&page),
      "<td>heads=8 seqlen=1024 head_dim=64<td>block_m=64 block_n=64 num_warps=4 num_stages=2 head_dim_multiple=64 "
      "head_order=sequences_first<td>");
  has(ftl_text_get(&page), "<small>(6 configurations, 1 infeasible)");
  ftl_text_fini(&page);
  remove_folder(&f);
}

// Values with as many columns as keys are not worth a word.
Test(unit_report_page, values_of_fewer_columns_are_a_problem_of_their_own) {
  folder f = make_folder();
  fill(f.file, "toy");
  execute(f.file, "UPDATE predictions SET spec = replace(spec, ' head_dim_v=64', ' head_dim_v=32') WHERE id = 1");
  ftl_text page = make_page(f.file);
  has(ftl_text_get(&page), "<td>heads=8 seqlen=1024 head_dim=64 head_dim_v=32<td>");
  has(ftl_text_get(&page), "<td>heads=8 seqlen=1024 head_dim=64<td>");
  ftl_text_fini(&page);
  remove_folder(&f);
}

// Two models of one name: rows have a part of the hash too, and the table says what the one changed.
Test(unit_report_page, gpus_of_one_name_are_told_apart) {
  folder f = make_folder();
  fill(f.file, "h200*");
  execute(f.file,
          "INSERT INTO arch_models (id, name, die, hash) VALUES (2, 'h200*', 'toy', '0123456789abcdef');"
          "INSERT INTO arch_values (arch_id, key, value, unit, origin) VALUES (2, 'chip.num_sms', 7, '', 'override'),"
          " (2, 'l2.replacement', 'lru', '', 'override'); UPDATE predictions SET arch_id = 2 WHERE id = 1");
  ftl_text page = make_page(f.file);
  has(ftl_text_get(&page),
      "<td>h200* 012345<td>toy<td>0123456789abcdef<td>chip.num_sms=7 l2.replacement=lru<td>1<td>0");
  has(ftl_text_get(&page),
      "<td>h200* 012345<td>flash2_fwd<td>heads=8 seqlen=1024 head_dim=64<td>block_m=64 block_n=64");
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, text_from_outside_is_no_markup) {
  folder f = make_folder();
  fill(f.file, "<b>&'\"");
  import_text(f.file, "workload,condition,status,gpu,driver\nflash2_fwd,ncu,ok,<i>GPU</i>,\"a\"\"b\"\n");
  ftl_text page = make_page(f.file);
  const char *text = ftl_text_get(&page);
  cr_assert_eq(count(text, nasty_escaped), 1);
  cr_assert_null(strstr(text, "alert('"));
  cr_assert_eq(count(text, "<script>"), 1);
  cr_assert_null(strstr(text, "<b>&"));
  has(text, "&lt;b&gt;&amp;&#39;&quot;");
  has(text, "<td>&lt;i&gt;GPU&lt;/i&gt;<td>a&quot;b<");
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, takes_nothing_from_elsewhere_and_is_the_same_every_time) {
  folder f = make_folder();
  fill(f.file, "toy");
  ftl_text page = make_page(f.file), again = make_page(f.file);
  const char *text = ftl_text_get(&page);
  static const char *const links[] = {"http", "src=", "url(", "@import", "<link", "<iframe", "//cdn", "fetch("};
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) cr_assert_null(strstr(text, links[i]), "%s", links[i]);
  cr_assert_null(strstr(text, f.path));  // where it lies differs from machine to machine
  cr_assert(strncmp(text, "<!DOCTYPE html>\n<html lang=en>\n", 31) == 0);
  cr_assert_str_eq(text + page.size - 8, "</html>\n");
  cr_assert_str_eq(text, ftl_text_get(&again));
  ftl_text_fini(&page);
  ftl_text_fini(&again);
  remove_folder(&f);
}

// The first case is 64 x 64, predicted as 4096 ns and 16 + 0.1 MB: half of the measured time, and HBM exactly.
Test(unit_report_page, measured_cases_meet_their_prediction) {
  folder f = make_folder();
  fill(f.file, "h200");
  import_text(f.file,
              "workload,heads,seqlen,head_dim,block_m,block_n,code,gpu,condition,status,gpu__time_duration.sum,"
              "dram__bytes_read.sum,dram__bytes_write.sum\n"
              "flash2_fwd,8,1024,64,64,64,auto,NVIDIA H200,ncu,ok,8192,16000000,100000\n"
              "flash2_fwd,8,2048,64,64,64,auto,NVIDIA H200,ncu,ok,8192,16000000,100000\n");
  ftl_text page = make_page(f.file);
  char *cases = section_of(&page, "cases"), *accuracy = section_of(&page, "accuracy");
  cr_assert_eq(count(cases, "\n<tr><td>"), 1);
  has(cases, "<td>mine.csv:2<td>8.2<td>4.1<td>-50.0<td>-<td>+0.0<td>-");
  has(accuracy,
      "<p>1 measured cases have a prediction in this file (the newest of the same configuration), 1 have none");
  has(accuracy, "<td>flash2_fwd<td>time, ncu<td>%<td>1<td>50.00<td>50.00<td>50.00<td>50.00<td>-50.00");
  // 8.192 us measured, 4.096 predicted, both axes from 1 to 10 us: 62 + 364 log10 8.192, 354 - 342 log10 4.096.
  has(accuracy,
      "cx=\"394.5\" cy=\"144.6\" r=4><title>flash2_fwd, mine.csv:2: measured 8.192 us, predicted 4.096 (-50.0 %)");
  has(ftl_text_get(&page), "</span>4.00<td>4.1<td>8.2");          // in the ranking of its problem
  has(ftl_text_get(&page), "<td>tensor pipe<td>4.1<td>8.2<td>");  // among all predictions
  cr_assert_eq(count(ftl_text_get(&page), "<td>8.2"), 3);         // and nowhere else
  free(cases);
  free(accuracy);
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, of_two_predictions_of_a_case_the_newest_is_taken) {
  folder f = make_folder();
  fill(f.file, "h200");
  import_text(f.file,
              "workload,heads,seqlen,head_dim,block_m,block_n,code,gpu,condition,status,gpu__time_duration.sum\n"
              "flash2_fwd,8,1024,64,64,64,auto,NVIDIA H200,ncu,ok,8192\n");
  // 64 x 128 becomes an older and then a newer prediction of 64 x 64, by another version; it says 2048 ns.
  execute(f.file,
          "UPDATE predictions SET block_n = 64, spec = replace(spec, 'block_n=128', 'block_n=64'),"
          " program_version = 'other', created_utc = '2000-01-01T00:00:00Z' WHERE id = 2");
  ftl_text page = make_page(f.file);
  has(ftl_text_get(&page), "<td>8.2<td>4.1<td>-50.0");
  ftl_text_fini(&page);
  execute(f.file, "UPDATE predictions SET created_utc = '2999-01-01T00:00:00Z' WHERE id = 2");
  page = make_page(f.file);
  has(ftl_text_get(&page), "<td>8.2<td>2.0<td>-75.0");
  has(ftl_text_get(&page), "by <b>2</b> versions of the program");
  has(ftl_text_get(&page), "<th scope=col>version<th scope=col>time us");
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, resolved_parameters_match_too) {
  folder f = make_folder();
  fill(f.file, "h200");  // asked with copy=auto, which the engine resolves to ldg
  import_text(f.file,
              "workload,heads,seqlen,head_dim,block_m,block_n,code,copy,gpu,condition,status,gpu__time_duration.sum\n"
              "flash2_fwd,8,1024,64,64,64,auto,ldg,NVIDIA H200,ncu,ok,8192\n");
  ftl_text page = make_page(f.file);
  has(ftl_text_get(&page), "<td>8.2<td>4.1<td>-50.0");
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, measurements_alone_are_a_page_and_an_empty_file_is_none) {
  folder f = make_folder();
  ftl_error error = {0};
  ftl_text page = {0};
  ftl_database *database = NULL;
  cr_assert_eq(ftl_database_open(&database, f.file, &error), FTL_OK);
  ftl_database_close(database);
  cr_assert_eq(ftl_page_of_file(f.file, &page, &error), FTL_BAD_INPUT);
  has(error.message, "neither predictions nor measurements");
  cr_assert_eq(page.size, 0);
  import_text(f.file, "workload,condition,status,gpu,date\nflash2_fwd,ncu,ok,NVIDIA Toy,2026-01-02\n");
  page = make_page(f.file);
  char *provenance = section_of(&page, "provenance");
  has(provenance, "<td>NVIDIA Toy<td><td><td><td>ncu<td><td><td>2026-01-02<td>1<td>-<td>-");
  cr_assert_null(strstr(ftl_text_get(&page), "href=\"#predictions\""));
  free(provenance);
  ftl_text_fini(&page);
  remove_folder(&f);
}

Test(unit_report_page, a_kernel_of_a_scenario_shows_its_own_parameters) {
  folder f = make_folder();
  fill(f.file, "toy");
  execute(f.file,
          "UPDATE predictions SET workload = 'mine', spec = 'mine tiles=4 program=0123456789abcdef batch=1 heads=8"
          " conditions=stream' WHERE id = 1");
  ftl_text page = make_page(f.file);
  // Under conditions=stream its time is 4096 + 1000 ns.
  has(ftl_text_get(&page), "<td>mine<td>heads=8 conditions=stream<td>tiles=4<td>tensor pipe<td>5.1");
  ftl_text_fini(&page);
  remove_folder(&f);
}
