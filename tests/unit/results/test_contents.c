#include <math.h>

#include <sqlite3.h>

#include "results/contents.h"
#include "results/measurement_store.h"
#include "results/version.h"
#include "unit/results/fixture.h"

static void execute(const char *path, const char *sql) {
  sqlite3 *sqlite = NULL;
  cr_assert_eq(sqlite3_open(path, &sqlite), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(sqlite));
  sqlite3_close(sqlite);
}

// Predicts and stores block_n = 64 (fast), 32 (slow) and 512 (infeasible) of a GPU with num_sms.
static void put_predictions(const char *path, int64_t num_sms, const char *scenario) {
  static const char *const block_n[] = {"64", "32", "512"};
  ftl_error error = {0};
  ftl_database *database = NULL;
  int64_t run_id = 0;
  ftl_arch *arch = make_arch("toy", num_sms);
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_database_begin_run(database, "explore", scenario, NULL, &run_id, &error), FTL_OK);
  ftl_evaluate_options options = {.num_threads = 1, .database = database, .run_id = run_id};
  for (int i = 0; i < 3; i++) {
    ftl_answer answer;
    ftl_point point = {.spec = make_spec("128", block_n[i]), .arch = arch};
    cr_assert_eq(ftl_evaluate(&point, 1, &options, &answer, &error), FTL_OK, "%s", error.message);
  }
  cr_assert_eq(ftl_database_end_run(database, run_id, FTL_RUN_STATE_DONE, &error), FTL_OK);
  ftl_database_close(database);
  ftl_arch_destroy(arch);
}

static void put_measurements(const char *path, const char *name, const char *text) {
  ftl_error error = {0};
  ftl_database *database = NULL;
  ftl_csv csv;
  ftl_measurement_file file;
  ftl_import_summary summary;
  cr_assert_eq(ftl_csv_init(&csv, name, text, strlen(text), &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_measurement_file_parse(&file, &csv, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_OK);
  cr_assert_eq(ftl_database_put_measurements(database, &file, &summary, &error), FTL_OK, "%s", error.message);
  ftl_database_close(database);
  ftl_measurement_file_fini(&file);
  ftl_csv_fini(&csv);
}

static ftl_contents *read_contents(const char *path) {
  ftl_error error = {0};
  ftl_contents *contents = NULL;
  cr_assert_eq(ftl_contents_read(&contents, path, &error), FTL_OK, "%s", error.message);
  return contents;
}

static void is_refused(const char *path, const char *reason) {
  ftl_error error = {0};
  ftl_contents *contents = NULL;
  cr_assert_eq(ftl_contents_read(&contents, path, &error), FTL_IO_FAILED);
  cr_assert_null(contents);
  cr_assert_not_null(strstr(error.message, reason), "%s", error.message);
}

Test(unit_results_contents, predictions_come_back_with_their_run_and_gpu) {
  folder f = make_folder();
  put_predictions(f.file, 4, "a.lua");
  put_predictions(f.file, 8, NULL);
  ftl_contents *c = read_contents(f.file);
  cr_assert_eq(c->num_runs, 2);
  cr_assert_str_eq(c->runs[0].scenario, "a.lua");
  cr_assert_str_eq(c->runs[1].scenario, "");
  cr_assert_str_eq(c->runs[1].state, "done");
  cr_assert_eq(c->runs[1].num_predictions, 3);
  cr_assert_eq(c->num_archs, 2);
  cr_assert_eq(c->archs[0].num_predictions, 3);
  cr_assert_eq(c->archs[0].model->chip_num_sms + c->archs[1].model->chip_num_sms, 12);
  cr_assert_eq(ftl_arch_origin(c->archs[0].model, ftl_arch_key_find("chip.num_sms")).kind, FTL_ORIGIN_GUESS);
  cr_assert_not(ftl_arch_is_set(c->archs[0].model, ftl_arch_key_find("l2.ways")));
  cr_assert_eq(c->num_predictions, 6);
  const ftl_stored_prediction *p = &c->predictions[0];
  cr_assert_str_eq(p->workload, "flash2_fwd");
  cr_assert_str_eq(p->version, ftl_program_version());
  cr_assert_str_eq(p->bottleneck, "tensor pipe");
  cr_assert(p->feasible);
  cr_assert_eq(p->metrics.value[FTL_METRIC_dram_read], 8e6);  // 1 MB * 1024 / 128
  cr_assert_not_null(strstr(p->question, " copy=auto "));
  cr_assert_eq(p->spec->value[FTL_PARAM_copy], FTL_SPEC_COPY_LDG);  // as the engine resolved it
  cr_assert_eq(c->predictions[1].spec->value[FTL_PARAM_block_n], 32);
  cr_assert_not(c->predictions[2].feasible);
  cr_assert_str_eq(c->predictions[2].reason, "block_m=128 block_n=512 is more than toy holds");
  cr_assert(isnan(c->predictions[2].metrics.value[FTL_METRIC_time_ns]));
  ftl_contents_destroy(c);
  remove_folder(&f);
}

// A database of before the parameter was there: values had the columns of keys.
Test(unit_results_contents, predictions_from_before_values_had_columns_of_their_own_are_read) {
  folder f = make_folder();
  put_predictions(f.file, 4, "a.lua");
  execute(f.file, "UPDATE predictions SET head_dim_v = NULL");
  ftl_contents *c = read_contents(f.file);
  for (int64_t i = 0; i < c->num_predictions; i++) {
    cr_assert_not_null(c->predictions[i].spec);
    cr_expect_eq(c->predictions[i].spec->value[FTL_PARAM_head_dim_v],
                 c->predictions[i].spec->value[FTL_PARAM_head_dim]);
  }
  ftl_contents_destroy(c);
  remove_folder(&f);
}

// Of each kind by its name; one that this program does not know is a guess.
Test(unit_results_contents, values_of_a_gpu_come_back_with_their_origin) {
  folder f = make_folder();
  put_predictions(f.file, 4, NULL);
  static const struct {
    const char *name;
    ftl_origin_kind kind;
  } stored[] = {{"datasheet", FTL_ORIGIN_DATASHEET},
                {"measured", FTL_ORIGIN_MEASURED},
                {"guess", FTL_ORIGIN_GUESS},
                {"override", FTL_ORIGIN_OVERRIDE},
                {"rumour", FTL_ORIGIN_GUESS}};
  for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
    char sql[64];
    snprintf(sql, sizeof sql, "UPDATE arch_values SET origin = '%s'", stored[i].name);
    execute(f.file, sql);
    ftl_contents *c = read_contents(f.file);
    ftl_origin origin = ftl_arch_origin(c->archs[0].model, ftl_arch_key_find("chip.num_sms"));
    cr_expect_eq(origin.kind, stored[i].kind, "%s", stored[i].name);
    cr_expect_str_eq(origin.text, "a test");
    cr_expect_str_eq(origin.file, "test.lua");
    cr_expect_eq(origin.line, 7);
    ftl_contents_destroy(c);
  }
  remove_folder(&f);
}

Test(unit_results_contents, what_another_version_knew_is_read_without_it) {
  folder f = make_folder();
  put_predictions(f.file, 4, NULL);
  execute(f.file,
          "UPDATE predictions SET workload = 'gone' WHERE id = 1; UPDATE predictions SET copy = 'pigeon' WHERE id = 2;"
          "UPDATE predictions SET window = NULL WHERE id = 3; UPDATE arch_values SET key = 'chip.gone'");
  ftl_contents *c = read_contents(f.file);
  cr_assert_null(c->predictions[0].spec);
  cr_assert_str_eq(c->predictions[0].workload, "gone");
  cr_assert_null(c->predictions[1].spec);
  cr_assert_not_null(c->predictions[2].spec);
  cr_assert_eq(c->predictions[2].spec->value[FTL_PARAM_window], 0);  // its default: the parameter came since
  cr_assert_not(ftl_arch_is_set(c->archs[0].model, ftl_arch_key_find("chip.num_sms")));
  ftl_contents_destroy(c);
  remove_folder(&f);
}

Test(unit_results_contents, a_file_from_before_a_metric_existed_gets_it_as_unknown) {
  folder f = make_folder();
  put_predictions(f.file, 4, NULL);
  execute(f.file, "DROP VIEW answers; DROP VIEW kernels; DROP VIEW compared; ALTER TABLE launches DROP COLUMN tflops");
  ftl_contents *c = read_contents(f.file);
  cr_assert(isnan(c->predictions[0].metrics.value[FTL_METRIC_tflops]));
  cr_assert_eq(c->predictions[0].metrics.value[FTL_METRIC_dram_read], 8e6);
  ftl_contents_destroy(c);
  remove_folder(&f);
}

Test(unit_results_contents, measured_rows_come_back_as_the_files_that_they_came_in) {
  folder f = make_folder();
  put_measurements(
      f.file, "dir/one.csv",
      "# driver: 580\nworkload,heads,condition,status,dram__bytes_read.sum,other.sum,gpu__time_duration.sum\n"
      "flash2_fwd,8,ncu,ok,10,11,12\nflash2_fwd,9,ncu,ok,20,21,\n");
  put_measurements(f.file, "two.csv",
                   "workload,condition,status,lts__t_sector_hit_rate.pct\nflash2_fwd,ncu,ok,100.5\n");
  ftl_contents *c = read_contents(f.file);
  cr_assert_eq(c->num_files, 2);
  cr_assert_eq(c->num_measurements, 3);
  const ftl_measurement_file *one = &c->files[0].file, *two = &c->files[1].file;
  cr_assert_str_eq(one->path, "dir/one.csv");
  cr_assert_str_eq(c->files[0].format, "project");
  cr_assert_eq(one->num_rows, 2);
  cr_assert_eq(one->rows[0].line, 3);
  cr_assert_str_eq(ftl_measurement_fact(&one->rows[0], "heads"), "8");
  cr_assert_str_eq(ftl_measurement_fact(&one->rows[1], "heads"), "9");
  cr_assert_str_eq(ftl_measurement_fact(&one->rows[1], "driver"), "580");
  cr_assert_eq(one->rows[0].num_values, 2);  // other.sum is no metric of a prediction
  cr_assert_eq(one->rows[1].num_values, 1);
  cr_assert_eq(ftl_measurement_value(&one->rows[0], "gpu__time_duration.sum")->value, 12);
  cr_assert_eq(ftl_measurement_value(&one->rows[1], "dram__bytes_read.sum")->value, 20);
  cr_assert_eq(two->num_rows, 1);
  cr_assert(ftl_measurement_value(&two->rows[0], "lts__t_sector_hit_rate.pct")->is_impossible);
  ftl_contents_destroy(c);
  remove_folder(&f);
}

Test(unit_results_contents, what_is_no_database_is_refused_and_not_made_into_one) {
  folder f = make_folder();
  is_refused(f.file, "No such file");
  cr_assert_neq(access(f.file, F_OK), 0);
  FILE *file = fopen(f.file, "w");
  fclose(file);
  is_refused(f.file, "an empty file");
  file = fopen(f.file, "r");
  cr_assert_eq(fgetc(file), EOF);
  fclose(file);
  unlink(f.file);
  execute(f.file, "CREATE TABLE diary (day TEXT)");
  is_refused(f.file, "a database of another program");
  unlink(f.file);
  put_predictions(f.file, 4, NULL);
  execute(f.file, "PRAGMA user_version = 99");
  is_refused(f.file, "written by a newer foretile");
  remove_folder(&f);
}

Test(unit_results_contents, a_prediction_without_its_gpu_is_a_damaged_database) {
  folder f = make_folder();
  put_predictions(f.file, 4, NULL);
  execute(f.file, "UPDATE predictions SET arch_id = 77 WHERE id = 2");
  is_refused(f.file, "a damaged database");
  remove_folder(&f);
}

// A table of a file from elsewhere without its key, in which a sum has two rows.
Test(unit_results_contents, more_rows_than_are_counted_are_a_damaged_database) {
  folder f = make_folder();
  put_predictions(f.file, 4, NULL);
  execute(f.file,
          "DROP VIEW answers; DROP VIEW kernels; DROP VIEW compared; CREATE TABLE twice AS SELECT * FROM launches;"
          " INSERT INTO twice SELECT * FROM launches; DROP TABLE launches; ALTER TABLE twice RENAME TO launches");
  is_refused(f.file, "a damaged database: a table gives more rows than it counts");
  remove_folder(&f);
}
