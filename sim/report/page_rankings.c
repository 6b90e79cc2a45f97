// Block sizes of each problem: the fastest configurations with bars, and time over block_m and block_n.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_internal.h"

enum { MAX_PROBLEMS = 60, MAX_BARS = 10, MAX_SIDE = 16 };

// --- which problems ---

static int compare_groups(const void *a, const void *b) {
  const ftl_page_group *x = *(const ftl_page_group *const *)a, *y = *(const ftl_page_group *const *)b;
  int order = (x->num_feasible < y->num_feasible) - (x->num_feasible > y->num_feasible);
  return order != 0 ? order : (x > y) - (x < y);  // of one array, by workload and problem
}

// --- bars ---

static void add_bars(const ftl_page *page, const ftl_page_group *group) {
  static const char *const columns[] = {"choice",      "bottleneck", "times the best", "time us",
                                        "measured us", "TFLOP/s",    "HBM MB",         NULL};
  int64_t count = group->num_feasible < MAX_BARS ? group->num_feasible : MAX_BARS;
  double best_ns = group->rows[0].time_ns, longest_ns = group->rows[count - 1].time_ns;
  char caption[32];
  snprintf(caption, sizeof caption, "The %d fastest", MAX_BARS);
  ftl_page_table_begin(page, count < group->num_feasible ? caption : "The fastest first", columns, 4);
  for (int64_t i = 0; i < count; i++) {
    const ftl_page_row *row = &group->rows[i];
    ftl_page_row_begin(page);
    ftl_page_cell(page, row->choice[0] != '\0' ? row->choice : "all defaults");
    ftl_page_cell(page, row->prediction->bottleneck);
    ftl_text_add(page->out, "<td><span class=\"bar%s\" style=\"width:%.1f%%\"></span>%.2f", i == 0 ? " best" : "",
                 70 * row->time_ns / longest_ns, row->time_ns / best_ns);
    ftl_page_number(page, row->time_ns / 1e3, 1);
    ftl_page_number(page, row->measured_ns / 1e3, 1);
    ftl_page_number(page, row->prediction->metrics.value[FTL_METRIC_tflops], 1);
    ftl_page_number(page, row->hbm_bytes / 1e6, 1);
  }
  ftl_page_table_end(page);
}

// --- time over block_m and block_n ---

typedef struct heat_map {
  long block_m[MAX_SIDE], block_n[MAX_SIDE];
  int num_m, num_n;
  double best_ns[MAX_SIDE][MAX_SIDE];  // over all else; NaN: none
} heat_map;

// Inserts a value that is not there, in order. False: no room.
static bool hold(long *values, int *count, long value) {
  int at = 0;
  while (at < *count && values[at] < value) at++;
  if (at < *count && values[at] == value) return true;
  if (*count == MAX_SIDE) return false;
  memmove(&values[at + 1], &values[at], (size_t)(*count - at) * sizeof *values);
  values[at] = value;
  ++*count;
  return true;
}

static int find(const long *values, long value) {
  int at = 0;
  while (values[at] != value) at++;
  return at;
}

static bool blocks_of(const ftl_page_row *row, long *block_m, long *block_n) {
  char m[32], n[32];
  const char *question = row->prediction->question;
  if (!ftl_question_value(question, "block_m", m, sizeof m)) return false;
  if (!ftl_question_value(question, "block_n", n, sizeof n)) return false;
  *block_m = strtol(m, NULL, 10);
  *block_n = strtol(n, NULL, 10);
  return true;
}

// False: fewer than two values of either, or too many.
static bool make_heat_map(const ftl_page_group *group, heat_map *map) {
  long m = 0, n = 0;
  map->num_m = map->num_n = 0;
  for (int64_t i = 0; i < group->num_rows; i++) {
    if (!blocks_of(&group->rows[i], &m, &n)) return false;
    if (!hold(map->block_m, &map->num_m, m) || !hold(map->block_n, &map->num_n, n)) return false;
  }
  for (int i = 0; i < MAX_SIDE; i++) {
    for (int j = 0; j < MAX_SIDE; j++) map->best_ns[i][j] = (double)NAN;
  }
  for (int64_t i = 0; i < group->num_feasible; i++) {
    if (!blocks_of(&group->rows[i], &m, &n)) return false;
    double *cell = &map->best_ns[find(map->block_m, m)][find(map->block_n, n)];
    *cell = fmin(*cell, group->rows[i].time_ns);  // of a NaN and a number the number
  }
  return map->num_m > 1 && map->num_n > 1;
}

static void add_heat_map(const ftl_page *page, const ftl_page_group *group) {
  heat_map map;
  if (!make_heat_map(group, &map)) return;
  ftl_text_add(page->out,
               "<table class=heat><caption>Least time in us over block_m (down) and block_n (across)</caption>"
               "\n<thead><tr><td>");
  for (int j = 0; j < map.num_n; j++) ftl_text_add(page->out, "<th scope=col>%ld", map.block_n[j]);
  ftl_text_add(page->out, "</thead><tbody>\n");
  for (int i = 0; i < map.num_m; i++) {
    ftl_text_add(page->out, "<tr><th scope=row>%ld", map.block_m[i]);
    for (int j = 0; j < map.num_n; j++) {
      double ns = map.best_ns[i][j];
      if (isnan(ns)) {
        ftl_text_add(page->out, "<td>-");
      } else {
        double share = group->rows[0].time_ns / ns;  // 1: the best
        ftl_text_add(page->out, "<td style=\"--share:%.2f\">%.1f", share * share, ns / 1e3);
      }
    }
    ftl_text_add(page->out, "\n");
  }
  ftl_text_add(page->out, "</tbody></table>\n");
}

// --- the section ---

static void add_group(const ftl_page *page, const ftl_page_group *group, bool is_open) {
  ftl_text_add(page->out, "<details%s><summary>", is_open ? " open" : "");
  ftl_page_group_name(page, group);
  ftl_text_add(page->out, " <small>(%lld configurations, %lld infeasible)</small></summary>\n",
               (long long)group->num_rows, (long long)(group->num_rows - group->num_feasible));
  add_bars(page, group);
  add_heat_map(page, group);
  ftl_text_add(page->out, "</details>\n");
}

ftl_status ftl_page_add_rankings(ftl_page *page) {
  const ftl_page_group **groups = calloc((size_t)page->num_groups + 1, sizeof *groups);
  if (groups == NULL) return ftl_page_no_memory(page);
  int64_t count = 0;
  for (int64_t i = 0; i < page->num_groups; i++) {
    if (page->groups[i].num_feasible > 1) groups[count++] = &page->groups[i];
  }
  if (count > 1) qsort(groups, (size_t)count, sizeof *groups, compare_groups);
  if (count > 0) {
    int64_t num_shown = count < MAX_PROBLEMS ? count : MAX_PROBLEMS;
    ftl_page_section(page, "rankings", "Block sizes, problem after problem");
    ftl_text_add(page->out,
                 "<p>%lld problems with more than one feasible configuration; %lld are shown, those with the most "
                 "configurations first.\n",
                 (long long)count, (long long)num_shown);
    for (int64_t i = 0; i < num_shown; i++) add_group(page, groups[i], i == 0);
    ftl_text_add(page->out, "</section>\n");
  }
  free(groups);
  return FTL_OK;
}
