// Predictions as rows of the page, in groups of one problem each.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_internal.h"

// What-ifs of one scenario often share a name.
static bool is_only(const ftl_contents *contents, int arch_idx) {
  for (int i = 0; i < contents->num_archs; i++) {
    bool same = strcmp(contents->archs[i].model->name, contents->archs[arch_idx].model->name) == 0;
    if (i != arch_idx && same) return false;
  }
  return true;
}

ftl_status ftl_page_make_gpus(ftl_page *page) {
  const ftl_contents *contents = page->contents;
  page->gpus = FTL_ARENA_NEW(&page->arena, const char *, contents->num_archs);
  if (page->gpus == NULL) return ftl_page_no_memory(page);
  for (int i = 0; i < contents->num_archs; i++) {
    ftl_text name = {0};
    ftl_text_add(&name, "%s", contents->archs[i].model->name);
    if (!is_only(contents, i)) ftl_text_add(&name, " %.6s", contents->archs[i].hash);
    page->gpus[i] = ftl_page_keep(page, &name);
    if (page->gpus[i] == NULL) return ftl_page_no_memory(page);
  }
  return FTL_OK;
}

static double time_of(const ftl_stored_prediction *p) {
  bool is_stream = strstr(p->question, " conditions=stream") != NULL;
  return p->metrics.value[is_stream ? FTL_METRIC_stream_time_ns : FTL_METRIC_time_ns];
}

static ftl_status make_row(ftl_page *page, const ftl_stored_prediction *p, ftl_page_row *out) {
  ftl_text problem = {0}, choice = {0};
  ftl_status status = ftl_question_split(page, p->question, &problem, &choice);
  *out = (ftl_page_row){.prediction = p,
                        .arch = &page->contents->archs[p->arch_idx],
                        .gpu = page->gpus[p->arch_idx],
                        .problem = ftl_page_keep(page, &problem),
                        .choice = ftl_page_keep(page, &choice)};
  out->measured_ns = page->measured_ns[p - page->contents->predictions];
  out->time_ns = p->feasible ? time_of(p) : (double)NAN;
  out->hbm_bytes = p->metrics.value[FTL_METRIC_dram_read] + p->metrics.value[FTL_METRIC_dram_write];
  return out->problem != NULL && out->choice != NULL ? status : ftl_page_no_memory(page);
}

static int compare_groups(const ftl_page_row *a, const ftl_page_row *b) {
  int order = strcmp(a->prediction->workload, b->prediction->workload);
  if (order == 0) order = strcmp(a->problem, b->problem);
  if (order == 0 && a->arch != b->arch) order = a->arch < b->arch ? -1 : 1;  // of one array, by name
  return order != 0 ? order : strcmp(a->prediction->version, b->prediction->version);
}

static int compare_rows(const void *a, const void *b) {
  const ftl_page_row *x = a, *y = b;
  int order = compare_groups(x, y);
  double x_ns = isnan(x->time_ns) ? INFINITY : x->time_ns, y_ns = isnan(y->time_ns) ? INFINITY : y->time_ns;
  if (order == 0) order = (x_ns > y_ns) - (x_ns < y_ns);
  return order != 0 ? order : strcmp(x->prediction->question, y->prediction->question);
}

static void make_groups(ftl_page *page, int64_t num_rows) {
  for (int64_t first = 0, end = 0; first < num_rows; first = end) {
    ftl_page_group *group = &page->groups[page->num_groups++];
    *group = (ftl_page_group){.rows = &page->rows[first]};
    for (; end < num_rows && compare_groups(&page->rows[first], &page->rows[end]) == 0; end++) {
      group->num_feasible += !isnan(page->rows[end].time_ns);
    }
    group->num_rows = end - first;
  }
}

// Rows are by workload: a name that differs from the one before is new.
static void list_workloads(ftl_page *page, int64_t num_rows) {
  for (int64_t i = 0; i < num_rows; i++) {
    const char *name = page->rows[i].prediction->workload;
    bool is_new = page->num_workloads == 0 || strcmp(page->workloads[page->num_workloads - 1], name) != 0;
    if (is_new) page->workloads[page->num_workloads++] = name;
  }
}

static int count_versions(const ftl_contents *contents) {
  int count = 0;
  for (int64_t i = 0; i < contents->num_predictions; i++) {
    int64_t j = 0;
    while (j < i && strcmp(contents->predictions[j].version, contents->predictions[i].version) != 0) j++;
    count += j == i;
  }
  return count;
}

ftl_status ftl_page_make_rows(ftl_page *page) {
  int64_t num_rows = page->contents->num_predictions;
  page->rows = FTL_ARENA_NEW_RAW(&page->arena, ftl_page_row, num_rows);
  page->groups = FTL_ARENA_NEW_RAW(&page->arena, ftl_page_group, num_rows);
  page->workloads = FTL_ARENA_NEW_RAW(&page->arena, const char *, num_rows);
  if (page->rows == NULL || page->groups == NULL || page->workloads == NULL) return ftl_page_no_memory(page);
  for (int64_t i = 0; i < num_rows; i++) {
    ftl_status status = make_row(page, &page->contents->predictions[i], &page->rows[i]);
    if (status != FTL_OK) return status;
  }
  if (num_rows > 1) qsort(page->rows, (size_t)num_rows, sizeof *page->rows, compare_rows);
  make_groups(page, num_rows);
  list_workloads(page, num_rows);
  page->num_versions = count_versions(page->contents);
  return FTL_OK;
}
