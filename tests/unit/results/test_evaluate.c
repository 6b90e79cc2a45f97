#include "unit/results/fixture.h"

enum { NUM_POINTS = 12 };

typedef struct points {
  ftl_arch *arch;
  ftl_point list[NUM_POINTS];
  ftl_answer answers[NUM_POINTS];
} points;

// block_n from 16 to 192; answers 9 to 12 (block_n > 128) are infeasible.
static points *make_points(void) {
  points *p = calloc(1, sizeof *p);
  char block_n[8];
  p->arch = make_arch("toy", 4);
  for (int i = 0; i < NUM_POINTS; i++) {
    snprintf(block_n, sizeof block_n, "%d", 16 * (i + 1));
    p->list[i] = (ftl_point){.spec = make_spec("128", block_n), .arch = p->arch};
  }
  return p;
}

static void free_points(points *p) {
  ftl_arch_destroy(p->arch);
  free(p);
}

static ftl_status evaluate(points *p, ftl_evaluate_options options, ftl_error *error) {
  return ftl_evaluate(p->list, NUM_POINTS, &options, p->answers, error);
}

// heads * seqlen_q * seqlen_kv / (block_m * block_n), times two with 4 warps.
static double expected_time_ns(int i) { return 2.0 * 8 * 1024 * 1024 / (128.0 * 16 * (i + 1)); }

Test(unit_results_evaluate, answers_are_in_the_order_of_the_points_on_any_number_of_threads) {
  for (int num_threads = 1; num_threads <= 7; num_threads += 3) {
    points *p = make_points();
    ftl_error error = {0};
    setenv("FTL_FAKE_DELAY_MS", "2", 1);
    cr_assert_eq(evaluate(p, (ftl_evaluate_options){.num_threads = num_threads}, &error), FTL_OK);
    for (int i = 0; i < NUM_POINTS; i++) {
      cr_assert_eq(p->answers[i].prediction.feasible, i < 8);
      if (i < 8) cr_assert_eq(p->answers[i].prediction.metrics.value[FTL_METRIC_time_ns], expected_time_ns(i));
    }
    free_points(p);
  }
}

Test(unit_results_evaluate, equal_points_are_predicted_once) {
  points *p = make_points();
  ftl_error error = {0};
  for (int i = 1; i < NUM_POINTS; i++) p->list[i].spec = p->list[i % 3].spec;
  cr_assert_eq(evaluate(p, (ftl_evaluate_options){.num_threads = 3}, &error), FTL_OK);
  cr_assert_eq(atomic_load(&ftl_fake_num_predictions), 3);
  for (int i = 0; i < NUM_POINTS; i++) {
    cr_assert_eq(p->answers[i].prediction.metrics.value[FTL_METRIC_time_ns], expected_time_ns(i % 3));
  }
  free_points(p);
}

static ftl_evaluate_options with_database(ftl_database *database, int num_threads) {
  ftl_error error = {0};
  ftl_evaluate_options options = {.num_threads = num_threads, .database = database};
  cr_assert_eq(ftl_database_begin_run(database, "test", NULL, NULL, &options.run_id, &error), FTL_OK);
  return options;
}

// Tiles left open may become others on a GPU than the same tiles named.
Test(unit_results_evaluate, a_point_with_open_tiles_is_not_that_with_the_defaults) {
  ftl_arch *arch = make_arch("toy", 4);
  ftl_spec named = make_spec("128", "64"), open = named;
  open.given &= ~(FTL_TAKES(block_m) | FTL_TAKES(block_n));
  ftl_result_key of_named, of_open;
  cr_assert_eq(ftl_result_key_make(&named, arch, &of_named, NULL), FTL_OK);
  cr_assert_eq(ftl_result_key_make(&open, arch, &of_open, NULL), FTL_OK);
  cr_expect_str_neq(of_named.hex, of_open.hex);
  ftl_arch_destroy(arch);
}

// Tiles of Triton's products go in groups unless the user says that they do not, by what is the default's value too.
Test(unit_results_evaluate, a_point_with_open_groups_of_tiles_is_not_that_without_groups) {
  ftl_arch *arch = make_arch("toy", 4);
  ftl_error error = {0};
  ftl_spec open, given;
  cr_assert_eq(ftl_spec_init(&open, "matmul_tiled", &error), FTL_OK);
  for (int i = 0; i < 3; i++)
    cr_assert_eq(ftl_spec_set_text(&open, (const char *const[]){"m", "n", "k"}[i], "4096", &error), FTL_OK);
  given = open;
  cr_assert_eq(ftl_spec_set_text(&given, "tile_strip", "0", &error), FTL_OK);
  cr_assert_eq(ftl_spec_complete(&open, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_complete(&given, &error), FTL_OK, "%s", error.message);
  ftl_result_key of_open, of_given;
  cr_assert_eq(ftl_result_key_make(&open, arch, &of_open, NULL), FTL_OK);
  cr_assert_eq(ftl_result_key_make(&given, arch, &of_given, NULL), FTL_OK);
  cr_expect_str_neq(of_open.hex, of_given.hex);
  ftl_arch_destroy(arch);
}

Test(unit_results_evaluate, finished_points_are_never_predicted_again) {
  folder f = make_folder();
  ftl_error error = {0};
  ftl_database *database = NULL;
  cr_assert_eq(ftl_database_open(&database, f.file, &error), FTL_OK);
  points *first = make_points(), *second = make_points();
  cr_assert_eq(evaluate(first, with_database(database, 4), &error), FTL_OK, "%s", error.message);
  cr_assert_eq(atomic_load(&ftl_fake_num_predictions), NUM_POINTS);
  cr_assert_eq(evaluate(second, with_database(database, 2), &error), FTL_OK);
  cr_assert_eq(atomic_load(&ftl_fake_num_predictions), NUM_POINTS);
  for (int i = 0; i < NUM_POINTS; i++) {
    cr_assert_not(first->answers[i].is_stored);
    cr_assert(second->answers[i].is_stored);
    cr_assert_eq(
        memcmp(&first->answers[i].prediction.metrics, &second->answers[i].prediction.metrics, sizeof(ftl_metrics)), 0);
    cr_assert_str_eq(first->answers[i].prediction.reason, second->answers[i].prediction.reason);
  }
  free_points(first);
  free_points(second);
  ftl_database_close(database);
  remove_folder(&f);
}

Test(unit_results_evaluate, a_point_that_fails_does_not_stop_the_others_and_is_not_stored) {
  folder f = make_folder();
  ftl_error error = {0};
  ftl_database *database = NULL;
  cr_assert_eq(ftl_database_open(&database, f.file, &error), FTL_OK);
  points *p = make_points();
  p->list[1].spec = make_spec("128", "24");
  for (int round = 1; round <= 2; round++) {
    cr_assert_eq(evaluate(p, with_database(database, 2), &error), FTL_OK);
    cr_assert_eq(p->answers[1].status, FTL_RUN_FAILED);
    cr_assert_str_eq(p->answers[1].message, "this engine cannot do block_n=24");
    cr_assert_eq(p->answers[2].prediction.metrics.value[FTL_METRIC_time_ns], expected_time_ns(2));
  }
  cr_assert_eq(atomic_load(&ftl_fake_num_predictions), NUM_POINTS + 1, "only the failed one is tried again");
  free_points(p);
  ftl_database_close(database);
  remove_folder(&f);
}

typedef struct stopper {
  atomic_bool cancel;
  int64_t after, last_done;
} stopper;

static void stop_after(void *user, int64_t num_done, int64_t num_points) {
  stopper *s = user;
  cr_assert_eq(num_points, NUM_POINTS);
  cr_assert_eq(num_done, s->last_done + 1, "progress counts up by one");
  s->last_done = num_done;
  if (num_done == s->after) atomic_store(&s->cancel, true);
}

Test(unit_results_evaluate, goes_on_where_an_interrupted_run_stopped) {
  folder f = make_folder();
  ftl_error error = {0};
  ftl_database *database = NULL;
  cr_assert_eq(ftl_database_open(&database, f.file, &error), FTL_OK);
  points *p = make_points();
  stopper s = {.after = 5};
  ftl_evaluate_options options = with_database(database, 1);
  options.cancel = &s.cancel;
  options.progress = stop_after;
  options.progress_user = &s;
  cr_assert_eq(evaluate(p, options, &error), FTL_INTERRUPTED);
  cr_assert_eq(atomic_load(&ftl_fake_num_predictions), 5);
  cr_assert_eq(evaluate(p, with_database(database, 1), &error), FTL_OK);
  cr_assert_eq(atomic_load(&ftl_fake_num_predictions), NUM_POINTS, "the five finished ones came from the database");
  free_points(p);
  ftl_database_close(database);
  remove_folder(&f);
}

Test(unit_results_evaluate, no_points_are_no_work) {
  ftl_error error = {0};
  ftl_evaluate_options options = {.num_threads = 2};
  cr_assert_eq(ftl_evaluate(NULL, 0, &options, NULL, &error), FTL_OK);
}
