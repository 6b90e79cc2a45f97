// Predicted against measured: charts, errors a part and workload, quality of rankings.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_internal.h"
#include "report/plot.h"

enum { NUM_MARKED = 10 };  // worst points of a chart, which say what they are

// --- charts ---

typedef struct chart {
  ftl_quantity quantity;
  const char *title, *unit;
  double scale;  // to that unit
} chart;

static const chart charts[] = {
    {FTL_QUANTITY_hbm, "HBM bytes, read and written", "byte", 1},
    {FTL_QUANTITY_time, "Time of a launch under Nsight Compute", "us", 1e-3},
    {FTL_QUANTITY_stream_time, "Time back to back in a stream", "us", 1e-3},
    {FTL_QUANTITY_l2_sectors, "L2 sectors asked for by SMs", "sector", 1},
};

static void add_points(const ftl_page *page, const chart *c, const ftl_plot *plot) {
  for (int i = 0; i < page->num_workloads; i++) {
    char style[8];
    snprintf(style, sizeof style, "c%d", ftl_page_colour(page, page->workloads[i]));
    bool is_open = false;
    for (int64_t j = 0; j < page->cases.num_cases; j++) {
      const ftl_case *it = &page->cases.cases[j];
      double measured = 0, predicted = 0;
      if (strcmp(it->measured_case.spec.workload->name, page->workloads[i]) != 0) continue;
      if (!ftl_case_values(it, c->quantity, &measured, &predicted)) continue;
      if (!is_open) ftl_plot_points_begin(plot, style);
      is_open = true;
      ftl_plot_point(plot, measured * c->scale, predicted * c->scale);
    }
    if (is_open) ftl_plot_points_end(plot);
  }
}

static void add_mark(const chart *c, const ftl_plot *plot, const ftl_case *it, double error) {
  double measured = 0, predicted = 0;
  ftl_text text = {0};
  if (!ftl_case_values(it, c->quantity, &measured, &predicted)) return;
  ftl_text_add(&text, "%s, %s: measured %.4g %s, predicted %.4g (%+.1f %%)", it->measured_case.spec.workload->name,
               it->place, measured * c->scale, c->unit, predicted * c->scale, error);
  ftl_plot_mark(plot, measured * c->scale, predicted * c->scale, "worst", ftl_text_get(&text));
  ftl_text_fini(&text);
}

// The points with the largest errors, once each.
static void add_marks(const ftl_page *page, const chart *c, const ftl_plot *plot) {
  double limit = INFINITY;
  for (int marked = 0; marked < NUM_MARKED; marked++) {
    const ftl_case *worst = NULL;
    double worst_error = 0, error = 0;
    for (int64_t i = 0; i < page->cases.num_cases; i++) {
      const ftl_case *it = &page->cases.cases[i];
      bool is_next = ftl_case_error(it, c->quantity, &error) && fabs(error) < limit;
      if (!is_next || (worst != NULL && fabs(error) <= fabs(worst_error))) continue;
      worst = it;
      worst_error = error;
    }
    if (worst == NULL) return;
    add_mark(c, plot, worst, worst_error);
    limit = fabs(worst_error);
  }
}

static void add_chart(const ftl_page *page, const chart *c) {
  char x_label[64], y_label[64], description[160];
  int64_t count = 0;
  snprintf(x_label, sizeof x_label, "measured, %s", c->unit);
  snprintf(y_label, sizeof y_label, "predicted, %s", c->unit);
  ftl_plot plot = {.x = {.label = x_label}, .y = {.label = y_label}, .out = page->out};
  for (int64_t i = 0; i < page->cases.num_cases; i++) {
    double measured = 0, predicted = 0;
    if (!ftl_case_values(&page->cases.cases[i], c->quantity, &measured, &predicted)) continue;
    ftl_plot_axis_hold(&plot.x, measured * c->scale);
    ftl_plot_axis_hold(&plot.x, predicted * c->scale);
    count++;
  }
  if (count == 0) return;
  plot.y.least = plot.x.least;  // the same on both axes, so that the diagonal is equality
  plot.y.most = plot.x.most;
  snprintf(description, sizeof description,
           "%lld cases, predicted over measured on logarithmic axes, with the line of "
           "equality and bands of 10 and 25 percent",
           (long long)count);
  ftl_text_add(page->out, "<figure><figcaption>%s, %lld cases</figcaption>", c->title, (long long)count);
  ftl_plot_begin(&plot, c->title, description);
  static const double bands[] = {0.75, 0.9, 1.1, 1.25};
  for (size_t i = 0; i < sizeof bands / sizeof *bands; i++) {
    ftl_plot_line(&plot, plot.x.least, bands[i] * plot.x.least, plot.x.most, bands[i] * plot.x.most, "band");
  }
  ftl_plot_line(&plot, plot.x.least, plot.x.least, plot.x.most, plot.x.most, "equal");
  add_points(page, c, &plot);
  add_marks(page, c, &plot);
  ftl_plot_end(&plot);
  ftl_text_add(page->out, "</figure>\n");
}

// --- errors ---

static const ftl_quantity shown[] = {FTL_QUANTITY_hbm,    FTL_QUANTITY_l2_sectors, FTL_QUANTITY_l2_hit,
                                     FTL_QUANTITY_insts,  FTL_QUANTITY_registers,  FTL_QUANTITY_occupancy,
                                     FTL_QUANTITY_cycles, FTL_QUANTITY_time,       FTL_QUANTITY_stream_time};

// workload: NULL: all. `errors` has room for all cases.
static void add_statistics_row(const ftl_page *page, ftl_part part, const char *workload, ftl_quantity quantity,
                               double *errors) {
  int64_t count = 0;
  for (int64_t i = 0; i < page->cases.num_cases; i++) {
    const ftl_case *c = &page->cases.cases[i];
    if (c->measured_case.part != part) continue;
    if (workload != NULL && strcmp(c->measured_case.spec.workload->name, workload) != 0) continue;
    count += ftl_case_error(c, quantity, &errors[count]);
  }
  if (count == 0) return;
  ftl_error_statistics s = ftl_error_statistics_make(errors, count);
  ftl_page_row_begin(page);
  ftl_page_cell(page, ftl_part_name(part));
  ftl_page_cell(page, workload != NULL ? workload : "all");
  ftl_page_cell(page, ftl_quantity_name(quantity));
  ftl_page_cell(page, ftl_quantity_unit(quantity));
  ftl_page_count(page, s.count);
  ftl_page_number(page, s.mean, 2);
  ftl_page_number(page, s.median, 2);
  ftl_page_number(page, s.p90, 2);
  ftl_page_number(page, s.max, 2);
  ftl_page_signed(page, s.bias, 2);
}

static ftl_status add_statistics(ftl_page *page, const char *caption, bool by_workload) {
  static const char *const columns[] = {"part",   "workload", "error of", "unit", "cases", "mean",
                                        "median", "p90",      "largest",  "bias", NULL};
  double *errors = calloc((size_t)page->cases.num_cases + 1, sizeof *errors);
  if (errors == NULL) return ftl_page_no_memory(page);
  ftl_page_table_begin(page, caption, columns, 5);
  for (int p = 0; p < FTL_PART_COUNT; p++) {
    for (int w = 0; w < (by_workload ? page->num_workloads : 1); w++) {
      for (size_t q = 0; q < sizeof shown / sizeof *shown; q++) {
        add_statistics_row(page, (ftl_part)p, by_workload ? page->workloads[w] : NULL, shown[q], errors);
      }
    }
  }
  ftl_page_table_end(page);
  free(errors);
  return FTL_OK;
}

// --- rankings ---

static ftl_status add_choices(ftl_page *page) {
  static const char *const columns[] = {"part",
                                        "shapes",
                                        "rho, mean",
                                        "rho, least",
                                        "best, mean %",
                                        "best, least %",
                                        "best of 3, mean %",
                                        "best of 3, least %",
                                        NULL};
  ftl_choice *choices[FTL_PART_COUNT] = {NULL};
  int64_t counts[FTL_PART_COUNT] = {0}, total = 0;
  ftl_status status = FTL_OK;
  for (int p = 0; status == FTL_OK && p < FTL_PART_COUNT; p++) {
    status = ftl_validation_choices(&page->cases, (ftl_part)p, &choices[p], &counts[p], page->error);
    total += counts[p];
  }
  if (status == FTL_OK && total > 0) {
    ftl_text_add(page->out,
                 "<p>Ranking of block sizes, warps and stages of one shape (four cases or more): Spearman's "
                 "rho, and how much of the best measured time the predicted best reaches.\n");
    ftl_page_table_begin(page, "How well choices are ranked", columns, 2);
    for (int p = 0; p < FTL_PART_COUNT; p++) {
      if (counts[p] == 0) continue;
      ftl_choice_summary s = ftl_choices_summary(choices[p], counts[p]);
      ftl_page_row_begin(page);
      ftl_page_cell(page, ftl_part_name((ftl_part)p));
      ftl_page_count(page, counts[p]);
      ftl_page_number(page, s.rho_mean, 3);
      ftl_page_number(page, s.rho_least, 3);
      ftl_page_number(page, s.best_mean_pct, 1);
      ftl_page_number(page, s.best_least_pct, 1);
      ftl_page_number(page, s.best3_mean_pct, 1);
      ftl_page_number(page, s.best3_least_pct, 1);
    }
    ftl_page_table_end(page);
  }
  for (int p = 0; p < FTL_PART_COUNT; p++) free(choices[p]);
  return status;
}

static void add_coverage(const ftl_page *page) {
  const ftl_validation *v = &page->cases;
  ftl_text_add(page->out,
               "<p>%lld measured cases have a prediction in this file (the newest of the same configuration)",
               (long long)v->num_cases);
  if (page->num_unpredicted > 0) {
    ftl_text_add(page->out, ", %lld have none (<code>foretile validate --db</code> makes them)",
                 (long long)page->num_unpredicted);
  }
  if (v->num_not_run > 0) ftl_text_add(page->out, ", %lld rows did not run", (long long)v->num_not_run);
  if (v->num_unchecked > 0) ftl_text_add(page->out, ", %lld are unchecked", (long long)v->num_unchecked);
  ftl_text_add(page->out, ".\n");
  if (v->num_uncovered == 0) return;
  ftl_text_add(page->out, "<ul>");
  for (int i = 0; i < v->num_uncovered; i++) {
    ftl_text_add(page->out, "<li>not covered: %lld rows, ", (long long)v->uncovered[i].num_rows);
    ftl_markup_add(page->out, v->uncovered[i].reason);
  }
  ftl_text_add(page->out, "</ul>\n");
}

ftl_status ftl_page_add_accuracy(ftl_page *page) {
  ftl_page_section(page, "accuracy", "Predicted and measured");
  if (page->contents->num_measurements == 0) {
    ftl_text_add(page->out,
                 "<p>No measurements: <code>foretile import FILE.csv --db</code> brings them in.\n</section>\n");
    return FTL_OK;
  }
  add_coverage(page);
  ftl_status status = FTL_OK;
  if (page->cases.num_cases > 0) {
    ftl_text_add(page->out,
                 "<p>Errors are predicted minus measured, in percent of the measured value where the unit is "
                 "%%. Bands: 10 and 25 %%. Rings are the %d largest errors.\n<div class=charts>\n",
                 NUM_MARKED);
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) add_chart(page, &charts[i]);
    ftl_text_add(page->out, "</div>\n");
    ftl_page_legend(page);
    status = add_statistics(page, "Absolute errors, all workloads", false);
    if (status == FTL_OK) status = add_choices(page);
    ftl_text_add(page->out, "<details><summary>Errors of each workload</summary>\n");
    if (status == FTL_OK) status = add_statistics(page, "Absolute errors of each workload", true);
    ftl_text_add(page->out, "</details>\n");
  }
  ftl_text_add(page->out, "</section>\n");
  return status;
}
