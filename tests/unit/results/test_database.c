#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "results/version.h"
#include "unit/results/fixture.h"

static ftl_database *open_database(const char *path) {
  ftl_error error = {0};
  ftl_database *database = NULL;
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_OK, "%s", error.message);
  return database;
}

static void open_fails(const char *path, const char *reason) {
  ftl_error error = {0};
  ftl_database *database = NULL;
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_IO_FAILED);
  cr_assert_null(database);
  cr_assert_not_null(strstr(error.message, path), "%s", error.message);
  cr_assert_not_null(strstr(error.message, reason), "%s", error.message);
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
}

static void execute(const char *path, const char *sql) {
  sqlite3 *sqlite = NULL;
  cr_assert_eq(sqlite3_open(path, &sqlite), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(sqlite));
  sqlite3_close(sqlite);
}

static void query_text(const char *path, const char *sql, char *out, size_t size) {
  sqlite3 *sqlite = NULL;
  sqlite3_stmt *statement = NULL;
  cr_assert_eq(sqlite3_open(path, &sqlite), SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(sqlite));
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
  snprintf(out, size, "%s", (const char *)sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  sqlite3_close(sqlite);
}

static bool exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

typedef struct stored {
  ftl_arch *arch;
  ftl_spec spec;
  ftl_result_key key;
  ftl_prediction prediction;
  int64_t run_id;
} stored;

static stored store_one(ftl_database *database, const char *block_n) {
  ftl_error error = {0};
  ftl_predict_options options = {.num_threads = 1};
  stored s = {.arch = make_arch("toy", 4), .spec = make_spec("128", block_n)};
  cr_assert_eq(ftl_result_key_make(&s.spec, s.arch, &s.key, &error), FTL_OK);
  cr_assert_eq(ftl_predict(&s.spec, s.arch, &options, &s.prediction, &error), FTL_OK);
  cr_assert_eq(ftl_database_begin_run(database, "test", "a.lua", "print(1)", &s.run_id, &error), FTL_OK);
  cr_assert_eq(ftl_database_put(database, s.run_id, &s.key, &s.spec, s.arch, &s.prediction, &error), FTL_OK, "%s",
               error.message);
  return s;
}

Test(unit_results_database, gives_back_the_prediction_that_was_put) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored s = store_one(database, "64");
  ftl_database_close(database);
  database = open_database(f.file);
  ftl_prediction out;
  ftl_error error = {0};
  bool found = false;
  cr_assert_eq(ftl_database_get(database, s.run_id, &s.key, &s.spec, &found, &out, &error), FTL_OK, "%s",
               error.message);
  cr_assert(found);
  cr_assert(out.feasible);
  cr_assert_eq(out.num_kernels, 1);
  cr_assert_str_eq(out.kernels[0].name, "fake");
  cr_assert_str_eq(out.bottleneck, s.prediction.bottleneck);
  cr_assert_eq(memcmp(&out.metrics, &s.prediction.metrics, sizeof out.metrics), 0);
  cr_assert_eq(memcmp(&out.kernels[0].metrics, &s.prediction.metrics, sizeof out.metrics), 0);
  cr_assert_eq(memcmp(out.spec.value, s.prediction.spec.value, sizeof out.spec.value), 0,
               "values that were `auto` come back resolved");
  cr_assert_eq(out.wall_s, 0.25);
  cr_assert_eq(out.error_bound_cycles_pct, 2.5);
  ftl_database_close(database);
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}

Test(unit_results_database, gives_back_the_reason_of_an_infeasible_one) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored s = store_one(database, "512");
  ftl_prediction out;
  ftl_error error = {0};
  bool found = false;
  cr_assert_eq(ftl_database_get(database, s.run_id, &s.key, &s.spec, &found, &out, &error), FTL_OK);
  cr_assert(found);
  cr_assert_not(out.feasible);
  cr_assert_str_eq(out.reason, "block_m=128 block_n=512 is more than toy holds");
  ftl_database_close(database);
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}

Test(unit_results_database, finds_nothing_for_another_gpu_or_another_block_size) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored s = store_one(database, "64");
  ftl_arch *other = make_arch("toy", 5);
  ftl_spec other_spec = make_spec("64", "64");
  ftl_result_key keys[2];
  ftl_error error = {0};
  cr_assert_eq(ftl_result_key_make(&s.spec, other, &keys[0], &error), FTL_OK);
  cr_assert_eq(ftl_result_key_make(&other_spec, s.arch, &keys[1], &error), FTL_OK);
  for (int i = 0; i < 2; i++) {
    ftl_prediction out;
    bool found = true;
    cr_assert_eq(ftl_database_get(database, s.run_id, &keys[i], &s.spec, &found, &out, &error), FTL_OK);
    cr_assert_not(found);
  }
  ftl_database_close(database);
  ftl_arch_destroy(other);
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}

Test(unit_results_database, keeps_where_every_number_comes_from) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored s = store_one(database, "64");
  cr_assert_eq(ftl_database_end_run(database, s.run_id, FTL_RUN_STATE_DONE, NULL), FTL_OK);
  ftl_database_close(database);
  char text[256];
  query_text(f.file, "SELECT arch || ' ' || block_n || ' ' || copy || ' ' || \"dram__bytes_read.sum\" FROM answers",
             text, sizeof text);
  cr_assert_str_eq(text, "toy 64 ldg 8000000.0");
  query_text(f.file, "SELECT value || ' ' || origin || ' ' || source || ' ' || file || ':' || line FROM arch_values",
             text, sizeof text);
  cr_assert_str_eq(text, "4 guess a test test.lua:7");
  query_text(f.file, "SELECT program_version FROM predictions", text, sizeof text);
  cr_assert_str_eq(text, ftl_program_version());
  query_text(f.file, "SELECT command || ' ' || scenario || ' ' || length(scenario_hash) || ' ' || state FROM runs",
             text, sizeof text);
  cr_assert_str_eq(text, "test a.lua 16 done");
  query_text(f.file, "SELECT count(*) FROM kernels", text, sizeof text);
  cr_assert_str_eq(text, "1");
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}

Test(unit_results_database, putting_the_same_key_twice_keeps_one_row) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored first = store_one(database, "64"), second = store_one(database, "64");
  ftl_database_close(database);
  char text[64];
  query_text(f.file, "SELECT (SELECT count(*) FROM predictions) || ' ' || (SELECT count(*) FROM run_predictions)", text,
             sizeof text);
  cr_assert_str_eq(text, "1 2", "one prediction, linked to both runs");
  ftl_arch_destroy(first.arch);
  ftl_arch_destroy(second.arch);
  remove_folder(&f);
}

// The number of rows is right, but one of them is of no launch.
Test(unit_results_database, an_answer_whose_launches_are_others_is_damaged) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  ftl_error error = {0};
  ftl_prediction out;
  bool found = false;
  stored s = store_one(database, "64");
  execute(f.file, "UPDATE launches SET launch_idx = 7 WHERE launch_idx = 0");
  cr_assert_eq(ftl_database_get(database, s.run_id, &s.key, &s.spec, &found, &out, &error), FTL_IO_FAILED);
  cr_assert(strstr(error.message, "a damaged database: launches are missing") != NULL, "%s", error.message);
  cr_assert_not(found);
  ftl_database_close(database);
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}

Test(unit_results_database, adds_the_columns_that_an_older_file_lacks) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored s = store_one(database, "64");
  ftl_database_close(database);
  execute(f.file, "DROP VIEW answers; DROP VIEW kernels; DROP VIEW compared; ALTER TABLE launches DROP COLUMN power_w");
  database = open_database(f.file);
  ftl_prediction out;
  bool found = false;
  ftl_error error = {0};
  cr_assert_eq(ftl_database_get(database, s.run_id, &s.key, &s.spec, &found, &out, &error), FTL_OK, "%s",
               error.message);
  cr_assert(found);
  cr_assert(out.metrics.value[FTL_METRIC_power_w] != out.metrics.value[FTL_METRIC_power_w], "unknown is not a number");
  ftl_database_close(database);
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}

// --- what can be wrong with a file ---

Test(unit_results_database, refuses_a_file_that_is_no_database_and_leaves_it_alone) {
  folder f = make_folder();
  write_text(f.file,
             "this is a letter, and a long one, so that there is a whole header of a hundred bytes to look at....");
  open_fails(f.file, "not a database");
  FILE *file = fopen(f.file, "r");
  char word[5] = "";
  cr_assert_eq(fread(word, 1, 4, file), 4);
  cr_assert_str_eq(word, "this");
  fclose(file);
  remove_folder(&f);
}

Test(unit_results_database, refuses_a_database_of_another_program) {
  folder f = make_folder();
  execute(f.file, "CREATE TABLE songs (title TEXT)");
  open_fails(f.file, "a database of another program");
  remove_folder(&f);
}

Test(unit_results_database, refuses_a_database_of_a_newer_version) {
  folder f = make_folder();
  ftl_database_close(open_database(f.file));
  execute(f.file, "PRAGMA user_version = 99");
  open_fails(f.file, "written by a newer foretile (schema 99");
  remove_folder(&f);
}

Test(unit_results_database, names_the_folder_that_is_missing) {
  open_fails("/tmp/ftl_no_such_folder/results.db", "the folder /tmp/ftl_no_such_folder: No such file or directory");
}

Test(unit_results_database, refuses_a_folder) {
  folder f = make_folder();
  open_fails(f.path, "not a file");
  remove_folder(&f);
}

// Root may write anything: the child becomes nobody.
Test(unit_results_database, refuses_a_read_only_file) {
  folder f = make_folder();
  ftl_database_close(open_database(f.file));
  cr_assert_eq(chmod(f.path, 0755), 0);
  cr_assert_eq(chmod(f.file, 0444), 0);
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    ftl_error error = {0};
    ftl_database *database = NULL;
    ftl_status status = ftl_database_open(&database, f.file, &error);
    _exit(status == FTL_IO_FAILED && strstr(error.message, "read-only") != NULL ? 0 : 1);
  }
  int exit_status = -1;
  cr_assert_eq(waitpid(child, &exit_status, 0), child);
  cr_assert_eq(exit_status, 0);
  remove_folder(&f);
}

Test(unit_results_database, says_when_another_program_holds_the_lock, .timeout = 20) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  sqlite3 *other = NULL;
  int64_t run_id = 0;
  ftl_error error = {0};
  cr_assert_eq(sqlite3_open(f.file, &other), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  cr_assert_eq(ftl_database_begin_run(database, "test", NULL, NULL, &run_id, &error), FTL_IO_FAILED);
  cr_expect_eq(run_id, 0);
  cr_assert_not_null(strstr(error.message, "locked by another program"), "%s", error.message);
  sqlite3_close(other);
  ftl_database_close(database);
  remove_folder(&f);
}

static void limit_file_size(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// A file-size limit refuses a write as a full disk does, with another errno.
Test(unit_results_database, leaves_no_file_behind_when_it_cannot_be_set_up) {
  folder f = make_folder();
  limit_file_size(8192);
  open_fails(f.file, "File too large");
  limit_file_size(RLIM_INFINITY);
  cr_assert_not(exists(f.file));
  remove_folder(&f);
}

Test(unit_results_database, a_failed_write_changes_nothing) {
  folder f = make_folder();
  ftl_database *database = open_database(f.file);
  stored s = store_one(database, "64");
  ftl_database_close(database);
  database = open_database(f.file);
  int64_t run_id = 0;
  ftl_error error = {0};
  cr_assert_eq(ftl_database_begin_run(database, "test", NULL, NULL, &run_id, &error), FTL_OK);
  ftl_spec spec = make_spec("64", "64");
  ftl_result_key key;
  cr_assert_eq(ftl_result_key_make(&spec, s.arch, &key, &error), FTL_OK);
  limit_file_size(4096 + 100);  // the log holds one page at most
  cr_assert_eq(ftl_database_put(database, run_id, &key, &spec, s.arch, &s.prediction, &error), FTL_IO_FAILED);
  cr_assert_not_null(strstr(error.message, "disk I/O error"), "%s", error.message);
  limit_file_size(RLIM_INFINITY);
  ftl_database_close(database);
  char text[64];
  query_text(f.file, "SELECT (SELECT count(*) FROM predictions) || ' ' || (SELECT count(*) FROM launches)", text,
             sizeof text);
  cr_assert_str_eq(text, "1 2");
  query_text(f.file, "PRAGMA integrity_check", text, sizeof text);
  cr_assert_str_eq(text, "ok");
  ftl_arch_destroy(s.arch);
  remove_folder(&f);
}
