#include "report/prediction_report.h"
#include "report/ranking.h"
#include "report/svg.h"
#include "report/why.h"
#include "unit/results/fixture.h"

enum { NUM_ROWS = 4 };

// block_n: 32, 128, 512 (infeasible), 64. Times in the ratio 4 : 1 : - : 2.
typedef struct rows {
  ftl_arch *arch;
  ftl_prediction predictions[NUM_ROWS];
  ftl_row list[NUM_ROWS];
} rows;

static rows *make_rows(void) {
  static const char *const block_n[NUM_ROWS] = {"32", "128", "512", "64"};
  rows *r = calloc(1, sizeof *r);
  ftl_predict_options options = {.num_threads = 1};
  ftl_error error = {0};
  r->arch = make_arch("toy", 4);
  for (int i = 0; i < NUM_ROWS; i++) {
    ftl_spec spec = make_spec("128", block_n[i]);
    cr_assert_eq(ftl_predict(&spec, r->arch, &options, &r->predictions[i], &error), FTL_OK);
    r->list[i] = (ftl_row){.arch = r->arch, .prediction = &r->predictions[i]};
  }
  return r;
}

static void free_rows(rows *r) {
  ftl_arch_destroy(r->arch);
  free(r);
}

static void rank(rows *r, const char *by) {
  ftl_column column;
  ftl_error error = {0};
  cr_assert_eq(ftl_rank_column_find(by, &column, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_rows_rank(r->list, NUM_ROWS, column, &error), FTL_OK);
}

static int64_t block_n(const rows *r, int i) { return r->list[i].prediction->spec.value[FTL_PARAM_block_n]; }

Test(unit_report_ranking, the_fastest_is_first_and_the_infeasible_last) {
  rows *r = make_rows();
  rank(r, "time");
  const int64_t expected[NUM_ROWS] = {128, 64, 32, 512};
  for (int i = 0; i < NUM_ROWS; i++) cr_assert_eq(block_n(r, i), expected[i]);
  free_rows(r);
}

Test(unit_report_ranking, the_largest_is_best_for_a_rate) {
  rows *r = make_rows();
  r->predictions[3].metrics.value[FTL_METRIC_tflops] = 1000;
  rank(r, "tflops");
  cr_assert_eq(block_n(r, 0), 64);
  free_rows(r);
}

Test(unit_report_ranking, equal_ones_stay_in_their_order) {
  rows *r = make_rows();
  rank(r, "hbm");  // the same for all: block_m is
  const int64_t expected[NUM_ROWS] = {32, 128, 64, 512};
  for (int i = 0; i < NUM_ROWS; i++) cr_assert_eq(block_n(r, i), expected[i]);
  free_rows(r);
}

Test(unit_report_ranking, cannot_rank_by_words) {
  ftl_column column;
  ftl_error error = {0};
  cr_assert_eq(ftl_rank_column_find("bottleneck", &column, &error), FTL_BAD_INPUT);
  cr_assert_eq(ftl_rank_column_find("tme_us", &column, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, "time_us"), "%s", error.message);
}

Test(unit_report_ranking, labels_say_what_varies_and_nothing_else) {
  rows *r = make_rows();
  ftl_text text = {0};
  ftl_row_label(&r->list[3], ftl_rows_varying(r->list, NUM_ROWS), &text);
  cr_assert_str_eq(ftl_text_get(&text), "block_n=64");
  ftl_text_fini(&text);
  free_rows(r);
}

Test(unit_report_column, every_kind_of_name_gives_its_value) {
  rows *r = make_rows();
  const struct {
    const char *name;
    double value;
  } cases[] = {{"block_n", 32}, {"time_ns", 4096}, {"time_us", 4.096}, {"gpu__time_duration.sum", 4096},
               {"hbm", 8.1e6},  {"hbm_read", 8e6}};
  for (int i = 0; i < 6; i++) {
    ftl_column column;
    ftl_error error = {0};
    double value = 0;
    cr_assert_eq(ftl_column_find(cases[i].name, &column, &error), FTL_OK, "%s", error.message);
    cr_assert(ftl_column_number(column, &r->list[0], &value));
    cr_assert_float_eq(value, cases[i].value, 1e-9, "%s: %g", cases[i].name, value);
  }
  free_rows(r);
}

Test(unit_report_column, an_infeasible_answer_has_no_time) {
  rows *r = make_rows();
  ftl_column column;
  ftl_error error = {0};
  double value = 0;
  cr_assert_eq(ftl_column_find("time_us", &column, &error), FTL_OK);
  cr_assert_not(ftl_column_number(column, &r->list[2], &value));
  free_rows(r);
}

Test(unit_report_column, time_is_the_stream_time_under_stream_conditions) {
  rows *r = make_rows();
  ftl_error error = {0};
  cr_assert_eq(ftl_spec_set_text(&r->predictions[0].spec, "conditions", "stream", &error), FTL_OK);
  cr_assert_eq(ftl_prediction_time_ns(&r->predictions[0]), 4096 + 1000);
  cr_assert_eq(ftl_prediction_time_ns(&r->predictions[1]), 1024);
  free_rows(r);
}

// --- why ---

static void set_metric(rows *r, int i, ftl_metric metric, double value) {
  r->predictions[i].metrics.value[metric] = value;
}

static void why_has(const rows *r, const char *expected) {
  ftl_text text = {0};
  ftl_error error = {0};
  cr_assert_eq(ftl_rows_why(r->list, NUM_ROWS, &text, &error), FTL_OK);
  cr_assert_not_null(strstr(ftl_text_get(&text), expected), "%s", ftl_text_get(&text));
  ftl_text_fini(&text);
}

Test(unit_report_why, names_the_winner_and_how_much_faster_it_is) {
  rows *r = make_rows();
  why_has(r,
          "block_n=128 wins (bottleneck: tensor pipe); against the runner-up (block_n=64) 2.00x as fast: 50 % fewer");
  why_has(r, "against the slowest (block_n=32) 4.00x as fast: 75 % fewer warp instructions");
  free_rows(r);
}

// The same instructions, cycles and clock but for the issue rate: the stall that the rival has most in excess is named.
Test(unit_report_why, a_lower_issue_rate_names_its_stall_reason) {
  rows *r = make_rows();
  for (int i = 0; i < NUM_ROWS; i++) {
    set_metric(r, i, FTL_METRIC_insts, 1000);
    set_metric(r, i, FTL_METRIC_stall_long_scoreboard, i == 1 ? 0.5 : 3.25);
    set_metric(r, i, FTL_METRIC_issue_pct, i == 1 ? 60 : 30);
  }
  why_has(
      r,
      "2.00x as fast: issues in 60.0 % of cycles against 30.0 %, 0.50 against 3.25 warps stalled on long_scoreboard");
  free_rows(r);
}

Test(unit_report_why, a_lower_clock_is_named) {
  rows *r = make_rows();
  for (int i = 0; i < NUM_ROWS; i++) {
    set_metric(r, i, FTL_METRIC_insts, 1000);
    set_metric(r, i, FTL_METRIC_cycles, 2000);
    set_metric(r, i, FTL_METRIC_cycles_active, 2000);
    set_metric(r, i, FTL_METRIC_sm_clock_mhz, i == 1 ? 1800 : 900);
  }
  why_has(r, "2.00x as fast: the SM clock holds 1800 MHz against 900");
  free_rows(r);
}

// Twice the time: 2^0.9 of it more instructions, 2^0.1 a lower clock, a tenth of the reason.
Test(unit_report_why, less_than_a_fifth_of_the_reason_is_not_named) {
  rows *r = make_rows();
  for (int i = 0; i < NUM_ROWS; i++) {
    set_metric(r, i, FTL_METRIC_insts, i == 1 ? 1000 : 1866);
    set_metric(r, i, FTL_METRIC_cycles, i == 1 ? 2000 : 3732);
    set_metric(r, i, FTL_METRIC_cycles_active, i == 1 ? 2000 : 3732);
    set_metric(r, i, FTL_METRIC_sm_clock_mhz, i == 1 ? 1800 : 1679);
  }
  why_has(r, "2.00x as fast: 46 % fewer warp instructions; against the slowest");
  free_rows(r);
}

Test(unit_report_why, idle_sms_are_named) {
  rows *r = make_rows();
  for (int i = 0; i < NUM_ROWS; i++) {
    set_metric(r, i, FTL_METRIC_insts, 1000);
    set_metric(r, i, FTL_METRIC_cycles_active, 768);
    set_metric(r, i, FTL_METRIC_waves, i == 1 ? 0.99 : 1.5);
  }
  // cycles = 1.5 * time_ns = 1536 for the best, 3072 for the runner-up.
  why_has(r, "an SM is idle 50.0 % of the time against 75.0 % (0.99 waves against 1.50)");
  free_rows(r);
}

Test(unit_report_why, a_tie_is_called_a_tie) {
  rows *r = make_rows();
  for (int i = 0; i < NUM_ROWS; i++) set_metric(r, i, FTL_METRIC_time_ns, 1000);
  why_has(r, "against the runner-up (block_n=128) it is a tie");
  free_rows(r);
}

// --- output ---

Test(unit_report_prediction, json_has_every_parameter_and_no_metrics_when_infeasible) {
  rows *r = make_rows();
  ftl_text text = {0};
  ftl_prediction_json(&r->list[2], &text);
  const char *json = ftl_text_get(&text);
  cr_assert_not_null(
      strstr(json, "\"feasible\": false, \"reason\": \"block_m=128 block_n=512 is more than toy holds\""));
  cr_assert_not_null(strstr(json, "\"causal\": false"));
  cr_assert_not_null(strstr(json, "\"kv_heads\": 8"));
  cr_assert_null(strstr(json, "\"metrics\""));
  ftl_text_fini(&text);
  free_rows(r);
}

Test(unit_report_svg, draws_a_bar_for_each_feasible_row_and_escapes_names) {
  rows *r = make_rows();
  ftl_text text = {0};
  ftl_error error = {0};
  snprintf(r->arch->name, sizeof r->arch->name, "<b>&");
  rank(r, "time");
  cr_assert_eq(ftl_rows_svg(r->list, NUM_ROWS, 8, &text, &error), FTL_OK);
  int num_bars = 0;
  for (const char *s = ftl_text_get(&text); (s = strstr(s, "<rect x=")) != NULL; s++) num_bars++;
  cr_assert_eq(num_bars, 3);
  cr_assert_not_null(strstr(ftl_text_get(&text), "&lt;b&gt;&amp;"));
  cr_assert_null(strstr(ftl_text_get(&text), "<b>"));
  ftl_text_fini(&text);
  free_rows(r);
}
