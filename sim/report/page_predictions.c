// Every prediction, the fastest of each problem first.
#include "report/page_internal.h"

static void add_prediction(const ftl_page *page, const ftl_page_row *row) {
  const ftl_stored_prediction *p = row->prediction;
  const double *value = p->metrics.value;
  ftl_page_row_begin(page);
  ftl_page_cell(page, row->gpu);
  ftl_page_cell(page, p->workload);
  ftl_page_cell(page, row->problem);
  ftl_page_cell(page, row->choice);
  ftl_page_cell(page, p->feasible ? p->bottleneck : p->reason);
  if (page->num_versions > 1) ftl_page_cell(page, p->version);
  ftl_page_number(page, row->time_ns / 1e3, 1);
  ftl_page_number(page, row->measured_ns / 1e3, 1);
  if (!p->feasible) {
    ftl_text_add(page->out, "<td colspan=7>");
    return;
  }
  ftl_page_number(page, value[FTL_METRIC_tflops], 1);
  ftl_page_number(page, value[FTL_METRIC_dram_read] / 1e6, 1);
  ftl_page_number(page, value[FTL_METRIC_dram_write] / 1e6, 1);
  ftl_page_number(page, value[FTL_METRIC_l2_hit_pct], 1);
  ftl_page_number(page, value[FTL_METRIC_tensor_pct], 1);
  ftl_page_number(page, value[FTL_METRIC_warps_pct], 1);
  ftl_page_number(page, value[FTL_METRIC_registers], 0);
}

void ftl_page_add_predictions(ftl_page *page) {
  static const char *const columns[] = {"GPU",
                                        "workload",
                                        "problem",
                                        "choice",
                                        "bottleneck, or why infeasible",
                                        "version",
                                        "time us",
                                        "measured us",
                                        "TFLOP/s",
                                        "HBM read MB",
                                        "HBM write MB",
                                        "L2 hit %",
                                        "tensor %",
                                        "occupancy %",
                                        "registers",
                                        NULL};
  enum { VERSION = 5, NUM_COLUMNS = sizeof columns / sizeof *columns };
  const char *shown[NUM_COLUMNS];
  bool has_version = page->num_versions > 1;
  if (page->contents->num_predictions == 0) return;
  for (int i = 0, count = 0; i < NUM_COLUMNS; i++) {
    if (i != VERSION || has_version) shown[count++] = columns[i];
  }
  ftl_page_section(page, "predictions", "Every prediction");
  ftl_page_table_begin(page, "Predictions, problem after problem, the fastest first", shown, has_version ? 7 : 6);
  for (int64_t i = 0; i < page->contents->num_predictions; i++) add_prediction(page, &page->rows[i]);
  ftl_page_table_end(page);
  ftl_text_add(page->out, "</section>\n");
}
