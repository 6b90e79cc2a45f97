#include <criterion/criterion.h>

#include "engine/answer.h"
#include "engine/predict.h"

Test(unit_engine_metrics, every_metric_is_found_by_its_name_and_names_are_unique) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++) cr_assert_eq(ftl_metric_find(ftl_metric_get((ftl_metric)i)->name), i);
  cr_assert_eq(ftl_metric_find("no__such.metric"), -1);
}

Test(unit_engine_metrics, a_pipeline_sums_counts_takes_the_largest_shape_and_weighs_rates_by_time) {
  ftl_kernel_answer kernels[2] = {0};
  kernels[0].metrics.value[FTL_METRIC_time_ns] = 100;
  kernels[1].metrics.value[FTL_METRIC_time_ns] = 300;
  kernels[0].metrics.value[FTL_METRIC_dram_read] = 7;
  kernels[1].metrics.value[FTL_METRIC_dram_read] = 5;
  kernels[0].metrics.value[FTL_METRIC_registers] = 128;
  kernels[1].metrics.value[FTL_METRIC_registers] = 64;
  kernels[0].metrics.value[FTL_METRIC_l2_hit_pct] = 80;
  kernels[1].metrics.value[FTL_METRIC_l2_hit_pct] = 40;
  ftl_metrics sum;
  ftl_answer_combine(kernels, 2, &sum);
  cr_assert_eq(sum.value[FTL_METRIC_time_ns], 400);
  cr_assert_eq(sum.value[FTL_METRIC_dram_read], 12);
  cr_assert_eq(sum.value[FTL_METRIC_registers], 128);
  cr_assert_eq(sum.value[FTL_METRIC_l2_hit_pct], 50);  // (100 * 80 + 300 * 40) / 400
}
