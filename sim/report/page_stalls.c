// Why warps wait: stall reasons of the fastest configuration of each problem, and the means of what was also measured.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page_internal.h"

// Colours c0 to c6, and c7 for the rest; `selected` is the issue itself, not a wait.
static const ftl_metric reasons[] = {FTL_METRIC_stall_long_scoreboard,
                                     FTL_METRIC_stall_wait,
                                     FTL_METRIC_stall_barrier,
                                     FTL_METRIC_stall_math_pipe_throttle,
                                     FTL_METRIC_stall_gmma,
                                     FTL_METRIC_stall_short_scoreboard,
                                     FTL_METRIC_stall_not_selected,
                                     FTL_METRIC_stall_mio_throttle,
                                     FTL_METRIC_stall_lg_throttle,
                                     FTL_METRIC_stall_tex_throttle,
                                     FTL_METRIC_stall_membar,
                                     FTL_METRIC_stall_branch_resolving,
                                     FTL_METRIC_stall_drain,
                                     FTL_METRIC_stall_dispatch_stall,
                                     FTL_METRIC_stall_imc_miss,
                                     FTL_METRIC_stall_no_instruction,
                                     FTL_METRIC_stall_misc,
                                     FTL_METRIC_stall_sleeping};
enum { NUM_REASONS = sizeof reasons / sizeof *reasons, NUM_OWN = FTL_PAGE_NUM_COLOURS - 1, MAX_PROBLEMS = 40 };

typedef struct stalls {
  double warps[FTL_PAGE_NUM_COLOURS];  // the last is of all other reasons
} stalls;

static double sum_of(const stalls *s) {
  double sum = 0;
  for (int i = 0; i < FTL_PAGE_NUM_COLOURS; i++) sum += s->warps[i];
  return sum;
}

static stalls of_metrics(const double *value) {
  stalls s = {{0}};
  for (int i = 0; i < NUM_REASONS; i++) {
    double warps = value[reasons[i]];
    s.warps[i < NUM_OWN ? i : NUM_OWN] += isnan(warps) ? 0 : warps;
  }
  return s;
}

static void begin_table(const ftl_page *page, const char *caption) {
  const char *columns[FTL_PAGE_NUM_COLOURS + 5] = {"of", "configuration", "shares", "stalled warps an issue"};
  char names[NUM_OWN][32];
  int count = 4;
  for (int i = 0; i < NUM_OWN; i++) columns[count++] = ftl_stall_name(reasons[i], names[i]);
  columns[count] = "other";
  ftl_page_table_begin(page, caption, columns, 4);
}

static void add_bar(const ftl_page *page, const stalls *s) {
  double sum = sum_of(s);
  ftl_text_add(page->out, "<td class=stack>");
  for (int i = 0; i < FTL_PAGE_NUM_COLOURS; i++) {
    double share = sum > 0 ? 100 * s->warps[i] / sum : 0;
    if (share >= 0.5) ftl_text_add(page->out, "<span class=\"key c%d\" style=\"width:%.1f%%\"></span>", i, share);
  }
  ftl_page_number(page, sum, 2);
  for (int i = 0; i < FTL_PAGE_NUM_COLOURS; i++) ftl_page_number(page, s->warps[i], 2);
}

static void add_legend(const ftl_page *page) {
  ftl_text_add(page->out, "<ul class=legend>");
  char name[32];
  for (int i = 0; i < FTL_PAGE_NUM_COLOURS; i++) {
    ftl_text_add(page->out, "<li><span class=\"key c%d\"></span>%s", i,
                 i < NUM_OWN ? ftl_stall_name(reasons[i], name) : "other");
  }
  ftl_text_add(page->out, "</ul>\n");
}

// --- what was also measured ---

// Sums over the cases of a workload whose stall reasons were measured; how many.
static int64_t add_up(const ftl_page *page, const char *workload, stalls *measured, stalls *predicted) {
  int64_t count = 0;
  *measured = *predicted = (stalls){{0}};
  for (int64_t i = 0; i < page->cases.num_cases; i++) {
    const ftl_case *c = &page->cases.cases[i];
    double m = 0, p = 0;
    if (strcmp(c->measured_case.spec.workload->name, workload) != 0) continue;
    if (!ftl_case_values(c, FTL_QUANTITY_stall_wait, &m, &p)) continue;
    stalls of_measured = of_metrics(c->measured), of_predicted = of_metrics(c->prediction->metrics.value);
    for (int j = 0; j < FTL_PAGE_NUM_COLOURS; j++) {
      measured->warps[j] += of_measured.warps[j];
      predicted->warps[j] += of_predicted.warps[j];
    }
    count++;
  }
  return count;
}

static void add_mean(const ftl_page *page, const char *workload, const char *side, const stalls *sum, int64_t count) {
  stalls mean;
  for (int i = 0; i < FTL_PAGE_NUM_COLOURS; i++) mean.warps[i] = sum->warps[i] / (double)count;
  ftl_page_row_begin(page);
  ftl_page_cell(page, workload);
  ftl_text_add(page->out, "<td>%s, mean of %lld", side, (long long)count);
  add_bar(page, &mean);
}

static void add_compared(const ftl_page *page) {
  stalls measured, predicted;
  bool is_open = false;
  for (int i = 0; i < page->num_workloads; i++) {
    int64_t count = add_up(page, page->workloads[i], &measured, &predicted);
    if (count == 0) continue;
    if (!is_open) begin_table(page, "Measured and predicted, means of each workload's cases");
    is_open = true;
    add_mean(page, page->workloads[i], "measured", &measured, count);
    add_mean(page, page->workloads[i], "predicted", &predicted, count);
  }
  if (is_open) ftl_page_table_end(page);
}

// --- the fastest of each problem ---

static void add_fastest(const ftl_page *page) {
  int64_t num_shown = 0;
  char caption[64];
  snprintf(caption, sizeof caption, "The fastest configuration of each problem (the first %d)", MAX_PROBLEMS);
  begin_table(page, caption);
  for (int64_t i = 0; i < page->num_groups && num_shown < MAX_PROBLEMS; i++) {
    const ftl_page_group *group = &page->groups[i];
    if (group->num_feasible == 0) continue;
    const ftl_page_row *row = &group->rows[0];
    stalls s = of_metrics(row->prediction->metrics.value);
    if (sum_of(&s) <= 0) continue;
    num_shown++;
    ftl_page_row_begin(page);
    ftl_text_add(page->out, "<td>");
    ftl_page_group_name(page, group);
    ftl_page_cell(page, row->choice);
    add_bar(page, &s);
  }
  ftl_page_table_end(page);
}

void ftl_page_add_stalls(ftl_page *page) {
  if (page->contents->num_predictions == 0) return;
  ftl_page_section(page, "stalls", "Stall reasons");
  ftl_text_add(page->out,
               "<p>Warps that wait while one issues, by reason, as Nsight Compute's "
               "<code>smsp__average_warps_issue_stalled_REASON_per_issue_active</code>; bars show shares.\n");
  add_legend(page);
  add_compared(page);
  add_fastest(page);
  ftl_text_add(page->out, "</section>\n");
}
