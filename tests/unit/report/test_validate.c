#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/validate.h"
#include "report/validate_report.h"

static double rho(const double *x, const double *y, int64_t count) {
  double out = 0;
  ftl_error error;
  cr_assert_eq(ftl_spearman(x, y, count, &out, &error), FTL_OK);
  return out;
}

Test(unit_report_validate, mean_median_p90_max_are_of_sizes_and_bias_of_signs) {
  // sizes 1 2 3 4 10: mean 4, median 3, p90 the ceil(4.5) = 5th; signed sum -1 + 2 - 3 + 4 + 10 = 12, over 5
  double errors[] = {-3, 10, 2, -1, 4};
  ftl_error_statistics s = ftl_error_statistics_make(errors, 5);
  cr_assert_eq(s.count, 5);
  cr_assert_float_eq(s.mean, 4, 1e-12);
  cr_assert_float_eq(s.median, 3, 1e-12);
  cr_assert_float_eq(s.p90, 10, 1e-12);
  cr_assert_float_eq(s.max, 10, 1e-12);
  cr_assert_float_eq(s.bias, 2.4, 1e-12);
}

Test(unit_report_validate, the_median_of_an_even_count_is_between_and_p90_is_the_nearest_rank) {
  double errors[20];
  for (int i = 0; i < 20; i++) errors[i] = 20 - i;  // 1 to 20: median 10.5, p90 the 18th
  ftl_error_statistics s = ftl_error_statistics_make(errors, 20);
  cr_assert_float_eq(s.median, 10.5, 1e-12);
  cr_assert_float_eq(s.p90, 18, 1e-12);
  cr_assert_eq(ftl_error_statistics_make(errors, 0).count, 0);
}

Test(unit_report_validate, spearman_is_1_for_the_same_order_and_minus_1_for_the_reverse) {
  const double x[] = {1, 2, 3, 4}, same[] = {10, 20, 21, 1000}, reverse[] = {4, 3, 2, 1};
  cr_assert_float_eq(rho(x, same, 4), 1, 1e-12);
  cr_assert_float_eq(rho(x, reverse, 4), -1, 1e-12);
}

Test(unit_report_validate, spearman_gives_ties_the_mean_of_their_ranks) {
  // ranks of x: 0 1.5 1.5 3, of y: 0 1 2 3; deviations from 1.5: (-1.5 0 0 1.5) and (-1.5 -.5 .5 1.5)
  // rho = 4.5 / sqrt(4.5 * 5) = 0.948683
  const double x[] = {1, 2, 2, 3}, y[] = {1, 2, 3, 4};
  cr_assert_float_eq(rho(x, y, 4), 0.9486832980505138, 1e-12);
}

Test(unit_report_validate, what_has_no_order_has_no_rho) {
  const double x[] = {5, 5, 5}, y[] = {1, 2, 3};
  cr_assert(isnan(rho(x, y, 3)));
  cr_assert(isnan(rho(y, y, 1)));
}

Test(unit_report_validate, the_share_of_the_best_is_of_measured_times) {
  // predicted order: 2 (measured 12), 0 (10), 1 (8)
  const double predicted[] = {2, 3, 1}, measured[] = {10, 8, 12};
  cr_assert_float_eq(ftl_best_share(predicted, measured, 3, 1), 8.0 / 12, 1e-12);
  cr_assert_float_eq(ftl_best_share(predicted, measured, 3, 2), 8.0 / 10, 1e-12);
  cr_assert_float_eq(ftl_best_share(predicted, measured, 3, 3), 1, 1e-12);
}

// --- cases ---

#define COLUMNS                                                                                    \
  "workload,heads,seqlen_q,seqlen_kv,head_dim,block_m,block_n,status,condition,gpu,repeat,kernel," \
  "dram__bytes_read.sum,dram__bytes_write.sum,sm__cycles_elapsed.max,gpu__time_duration.sum,"      \
  "lts__t_sector_hit_rate.pct\n"
#define CASE(m, n, repeat) "flash2_fwd,8,1024,1024,64," #m "," #n ",ok,ncu,NVIDIA H200," #repeat ",k,"

static ftl_validation read_rows(const char *text) {
  ftl_csv csv;
  ftl_measurement_file file;
  ftl_validation v = {0};
  ftl_error error = {0};
  cr_assert_eq(ftl_csv_init(&csv, "f.csv", text, strlen(text), &error), FTL_OK);
  cr_assert_eq(ftl_measurement_file_parse(&file, &csv, &error), FTL_OK, "%s", error.message);
  file.is_of_project = true;
  cr_assert_eq(ftl_validation_add(&v, &file, NULL, &error), FTL_OK, "%s", error.message);
  ftl_measurement_file_fini(&file);
  ftl_csv_fini(&csv);
  return v;
}

// A prediction in place of the simulator's.
static void predict(ftl_case *c, double read, double write, double cycles, double time_ns) {
  static ftl_prediction predictions[8];  // a test has a process of its own
  static int num_predictions = 0;
  cr_assert_lt(num_predictions, 8);
  ftl_prediction *prediction = &predictions[num_predictions++];
  c->status = FTL_OK;
  c->prediction = prediction;
  prediction->feasible = true;
  double *value = prediction->metrics.value;
  for (int i = 0; i < FTL_METRIC_COUNT; i++) value[i] = (double)NAN;
  value[FTL_METRIC_dram_read] = read;
  value[FTL_METRIC_dram_write] = write;
  value[FTL_METRIC_cycles] = cycles;
  value[FTL_METRIC_time_ns] = time_ns;
  value[FTL_METRIC_l2_hit_pct] = 90;
}

static double error_of(const ftl_case *c, ftl_quantity quantity) {
  double error = 0;
  cr_assert(ftl_case_error(c, quantity, &error));
  return error;
}

Test(unit_report_validate, hbm_is_the_difference_of_sums_over_the_measured_sum) {
  ftl_validation v = read_rows(COLUMNS CASE(64, 64, 0) "800,200,100,1000,80\n");
  predict(&v.cases[0], 900, 50, 110, 900);
  cr_assert_float_eq(error_of(&v.cases[0], FTL_QUANTITY_hbm), -5, 1e-12);  // 950 against 1000
  cr_assert_float_eq(error_of(&v.cases[0], FTL_QUANTITY_hbm_write), -75, 1e-12);
  cr_assert_float_eq(error_of(&v.cases[0], FTL_QUANTITY_cycles), 10, 1e-12);
  cr_assert_float_eq(error_of(&v.cases[0], FTL_QUANTITY_time), -10, 1e-12);
  cr_assert_float_eq(error_of(&v.cases[0], FTL_QUANTITY_l2_hit), 10, 1e-12);  // points, not percent
  cr_assert_float_eq(ftl_case_size(&v.cases[0]), 10, 1e-12);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, a_shape_names_the_columns_of_values_where_they_differ) {
  ftl_validation v = read_rows(
      "workload,heads,seqlen_q,seqlen_kv,head_dim,head_dim_v,causal,status,condition,gpu,kernel,dram__bytes_read.sum\n"
      "flash2_fwd,8,1024,1024,192,128,1,ok,ncu,NVIDIA H200,k,800\n"
      "flash2_fwd,8,1024,1024,192,192,0,ok,ncu,NVIDIA H200,k,900\n");
  cr_assert_eq(v.num_cases, 2);
  ftl_text first = {0}, second = {0};
  ftl_case_shape(&v.cases[0], &first);
  ftl_case_shape(&v.cases[1], &second);
  cr_expect_str_eq(ftl_text_get(&first), "1x8 1024 d192/128 causal");
  cr_expect_str_eq(ftl_text_get(&second), "1x8 1024 d192");
  ftl_text_fini(&first);
  ftl_text_fini(&second);
  ftl_validation_fini(&v);
}

// Products of two shapes are no choice of blocks, however many there are.
Test(unit_report_validate, products_are_ranked_within_their_shape) {
  ftl_validation v = read_rows(
      "workload,m,n,k,block_m,block_n,block_k,status,condition,gpu,kernel,gpu__time_duration.sum\n"
      "matmul_tiled,1024,2048,512,64,64,32,ok,ncu,NVIDIA H200,k,1000\n"
      "matmul_tiled,1024,2048,512,64,128,32,ok,ncu,NVIDIA H200,k,1100\n"
      "matmul_tiled,1024,2048,512,128,64,32,ok,ncu,NVIDIA H200,k,1200\n"
      "matmul_tiled,1024,2048,512,128,128,32,ok,ncu,NVIDIA H200,k,1300\n"
      "matmul_tiled,4096,2048,512,64,64,32,ok,ncu,NVIDIA H200,k,4000\n");
  cr_assert_eq(v.num_cases, 5);
  const ftl_case *cases[5];
  for (int i = 0; i < 5; i++) {
    predict(&v.cases[i], 1, 1, 1, 1000 + i);
    cases[i] = &v.cases[i];
  }
  ftl_choice choices[5];
  int64_t num_choices = 0;
  ftl_error error = {0};
  cr_assert_eq(ftl_cases_choices(cases, 5, choices, &num_choices, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(num_choices, 1);
  cr_expect_eq(choices[0].num_cases, 4);
  ftl_text shape = {0};
  ftl_case_shape(choices[0].first, &shape);
  cr_expect_str_eq(ftl_text_get(&shape), "1 1024x2048x512");
  ftl_text_fini(&shape);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, a_measured_zero_has_no_relative_error) {
  ftl_validation v = read_rows(COLUMNS CASE(64, 64, 0) "800,0,100,1000,80\n");
  predict(&v.cases[0], 800, 5, 100, 1000);
  double error = 0;
  cr_assert_not(ftl_case_error(&v.cases[0], FTL_QUANTITY_hbm_write, &error));
  predict(&v.cases[0], 800, 0, 100, 1000);
  cr_assert_eq(error_of(&v.cases[0], FTL_QUANTITY_hbm_write), 0);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, profiles_of_one_case_are_averaged_and_their_spread_forgives) {
  // reads 990 and 1010 on average 1000, spread 20 (2 %): an error of 10 % counts as 6 %
  ftl_validation v = read_rows(COLUMNS CASE(64, 64, 0) "990,0,100,1000,80\n" CASE(64, 64, 1) "1010,0,100,1000,80\n");
  cr_assert_eq(v.num_cases, 1);
  predict(&v.cases[0], 1100, 0, 100, 1000);
  cr_assert_float_eq(error_of(&v.cases[0], FTL_QUANTITY_hbm_read), 10, 1e-12);
  double above = 0;
  cr_assert(ftl_case_error_above_spread(&v.cases[0], FTL_QUANTITY_hbm_read, &above));
  cr_assert_float_eq(above, 6, 1e-12);
  predict(&v.cases[0], 1030, 0, 100, 1000);
  cr_assert(ftl_case_error_above_spread(&v.cases[0], FTL_QUANTITY_hbm_read, &above));
  cr_assert_eq(above, 0);
  ftl_validation_fini(&v);
}

// Two authors' kernels of the same tiles are two, profiles of one of them are not.
Test(unit_report_validate, kernels_of_different_authors_are_cases_of_their_own) {
  ftl_validation v = read_rows("source,family," COLUMNS "independent,a," CASE(
      64, 64, 0) "990,0,100,1000,80\n"
                 "independent,a," CASE(
                     64, 64, 1) "1010,0,100,1000,80\n"
                                "independent,b," CASE(64, 64, 0) "1500,0,100,1000,80\n");
  cr_assert_eq(v.num_cases, 2);
  cr_expect_float_eq(v.cases[0].measured[FTL_METRIC_dram_read], 1000, 1e-12);
  cr_expect_float_eq(v.cases[1].measured[FTL_METRIC_dram_read], 1500, 1e-12);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, impossible_values_are_counted_and_not_compared) {
  ftl_validation v = read_rows(COLUMNS CASE(64, 64, 0) "990,0,100,1000,150\n");
  predict(&v.cases[0], 990, 0, 100, 1000);
  double error = 0;
  cr_assert_eq(v.cases[0].num_impossible, 1);
  cr_assert_not(ftl_case_error(&v.cases[0], FTL_QUANTITY_l2_hit, &error));
  ftl_validation_fini(&v);
}

Test(unit_report_validate, rows_of_unknown_workloads_are_counted_by_reason) {
  ftl_validation v = read_rows(
      "workload,status,condition,gpu\nabc,ok,ncu,NVIDIA H200\nabc,ok,ncu,NVIDIA H200\n"
      "xyz,ok,ncu,NVIDIA H200\nabc,OutOfResources,ncu,NVIDIA H200\nabc,unchecked,ncu,NVIDIA H200\n");
  cr_assert_eq(v.num_rows, 5);
  cr_assert_eq(v.num_cases, 0);
  cr_assert_eq(v.num_not_run, 1);
  cr_assert_eq(v.num_unchecked, 1);
  cr_assert_eq(v.num_uncovered, 2);
  cr_assert_str_eq(v.uncovered[0].reason, "workload abc");
  cr_assert_eq(v.uncovered[0].num_rows, 2);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, cases_without_a_prediction_come_first_then_the_worst) {
  ftl_validation v = read_rows(COLUMNS CASE(64, 64, 0) "1,0,100,1000,80\n" CASE(128, 64, 0) "1,0,100,1000,80\n" CASE(
      128, 128, 0) "1,0,100,1000,80\n");
  predict(&v.cases[0], 1, 0, 101, 1000);
  predict(&v.cases[1], 1, 0, 100, 1200);
  ftl_prediction infeasible = {.feasible = false};
  v.cases[2].status = FTL_OK;
  v.cases[2].prediction = &infeasible;
  ftl_validation_sort(&v);
  cr_assert_eq(v.cases[0].measured_case.spec.value[FTL_PARAM_block_n], 128);
  cr_assert_float_eq(ftl_case_size(&v.cases[1]), 20, 1e-12);
  cr_assert_float_eq(ftl_case_size(&v.cases[2]), 1, 1e-12);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, a_choice_is_among_cases_of_one_shape) {
  ftl_validation v = read_rows(COLUMNS CASE(64, 64, 0) "1,0,1,100,80\n" CASE(128, 64, 0) "1,0,1,200,80\n" CASE(
      128, 128, 0) "1,0,1,300,80\n" CASE(64, 128, 0) "1,0,1,400,80\n");
  const double predicted_ns[] = {20, 10, 30, 40};  // the first two the wrong way round
  for (int i = 0; i < 4; i++) predict(&v.cases[i], 1, 0, 1, predicted_ns[i]);
  ftl_choice *choices = NULL;
  int64_t count = 0;
  ftl_error error;
  cr_assert_eq(ftl_validation_choices(&v, FTL_PART_CALIBRATION, &choices, &count, &error), FTL_OK);
  cr_assert_eq(count, 1);
  cr_assert_float_eq(choices[0].rho, 0.8, 1e-12);  // 1 - 6 * (1 + 1) / (4 * 15)
  cr_assert_float_eq(choices[0].best_pct, 50, 1e-12);
  cr_assert_float_eq(choices[0].best3_pct, 100, 1e-12);
  free(choices);
  cr_assert_eq(ftl_validation_choices(&v, FTL_PART_HELD_OUT, &choices, &count, &error), FTL_OK);
  cr_assert_eq(count, 0);
  free(choices);
  // Cases of several parts at once: each part's stand alone, here two and two, which are too few.
  const ftl_case *cases[] = {&v.cases[0], &v.cases[1], &v.cases[2], &v.cases[3]};
  ftl_choice choice[1];
  cr_assert_eq(ftl_cases_choices(cases, 4, choice, &count, &error), FTL_OK);
  cr_assert_eq(count, 1);
  v.cases[1].measured_case.part = v.cases[2].measured_case.part = FTL_PART_RESERVED;
  cr_assert_eq(ftl_cases_choices(cases, 4, choice, &count, &error), FTL_OK);
  cr_assert_eq(count, 0);
  ftl_validation_fini(&v);
}

// --- what cannot be compared ---

static void is_unusable(const char *text, const char *expected) {
  ftl_validation v = read_rows(text);
  ftl_error error = {0};
  cr_assert_eq(ftl_validation_check(&v, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, expected), "%s", error.message);
  ftl_validation_fini(&v);
}

#define SHAPE "workload,heads,seqlen,head_dim,gpu,status,condition"
#define ROW "\nflash2_fwd,8,1024,64,NVIDIA H200,"

Test(unit_report_validate, cases_with_nothing_to_compare_say_which_column_was_near) {
  is_unusable(
      SHAPE ",dram__bytes_read" ROW "ok,ncu,5\n",
      "f.csv:2: no column with a value that is compared: time_median_us of stream rows, Nsight Compute's names of "
      "ncu rows; the nearest to dram__bytes_read is dram__bytes_read.sum");
  is_unusable(SHAPE ",time_median" ROW "ok,stream,5\n", "the nearest to time_median is time_median_us");
  is_unusable(SHAPE ",time_median_us" ROW "ok,stream,-5\n", "names of ncu rows; time_median_us is -5, which cannot be");
  is_unusable(SHAPE ROW "ok,ncu\n", "Nsight Compute's names of ncu rows");
  is_unusable(SHAPE ",time_median_us" ROW "ok,ncu,5\n", "time_median_us of stream rows");  // of the other condition
}

Test(unit_report_validate, rows_that_did_not_run_or_have_no_workload_are_named) {
  is_unusable(SHAPE ",time_median_us" ROW "failed,stream,5\n", "f.csv:2: status=failed: allowed is ok; none of the 1");
  is_unusable(SHAPE ",time_median_us" ROW "unchecked,stream,5\n",
              "f.csv:2: status=unchecked: allowed is ok; none of the 1");
  is_unusable("status,condition\nok,ncu\n", "none of the 1 measured rows can be predicted: GPU not named");
}

Test(unit_report_validate, one_case_with_a_value_is_enough) {
  ftl_validation v = read_rows(SHAPE ",time_median_us" ROW "ok,stream," ROW "failed,stream," ROW "ok,stream,5\n");
  ftl_error error;
  cr_assert_eq(ftl_validation_check(&v, &error), FTL_OK);
  ftl_validation_fini(&v);
}

Test(unit_report_validate, a_file_that_is_not_the_projects_is_yours_but_for_rows_that_name_a_part) {
  const char *text = "part," SHAPE
                     ",time_median_us\n,flash2_fwd,8,1024,64,NVIDIA H200,ok,stream,5\n"
                     "held_out,flash2_fwd,8,2048,64,NVIDIA H200,ok,stream,5\n";
  ftl_csv csv;
  ftl_measurement_file file;
  ftl_measured_case c;
  ftl_error error = {0};
  cr_assert_eq(ftl_csv_init(&csv, "f.csv", text, strlen(text), &error), FTL_OK);
  cr_assert_eq(ftl_measurement_file_parse(&file, &csv, &error), FTL_OK, "%s", error.message);
  const ftl_part expected[2][2] = {{FTL_PART_YOURS, FTL_PART_RESERVED}, {FTL_PART_CALIBRATION, FTL_PART_RESERVED}};
  for (int of_project = 0; of_project < 2; of_project++) {
    file.is_of_project = of_project != 0;
    for (int i = 0; i < 2; i++) {
      cr_assert_eq(ftl_measured_case_of(&c, &file, &file.rows[i], &error), FTL_OK, "%s", error.message);
      cr_assert_eq(c.part, expected[of_project][i]);
    }
  }
  ftl_measurement_file_fini(&file);
  ftl_csv_fini(&csv);
}
