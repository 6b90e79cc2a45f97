// Measured cases and the predictions that the file has of them. A prediction is of a case if it is for a GPU model of
// that name and workload and parameters are the same, as they were asked or with `auto` resolved, at either level of
// detail (as in the view `compared`, results/schema.c); of several the newest is taken.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_internal.h"

typedef struct entry {
  const char *key;
  const ftl_stored_prediction *prediction;
  int64_t age;  // later ones are newer
} entry;

static const char *make_key(ftl_page *page, const char *arch, const char *question) {
  ftl_text key = {0};
  const char *detail = strstr(question, " detail=");
  size_t before = detail != NULL ? (size_t)(detail - question) : strlen(question);
  ftl_text_add(&key, "%s ", arch);
  ftl_text_add_bytes(&key, question, before);
  if (detail != NULL) ftl_text_add(&key, "%s", detail + 1 + strcspn(detail + 1, " "));
  return ftl_page_keep(page, &key);
}

static const char *make_spec_key(ftl_page *page, const char *arch, const ftl_spec *spec) {
  ftl_text question = {0};
  ftl_spec_canonical(spec, &question);
  const char *key = question.failed ? NULL : make_key(page, arch, ftl_text_get(&question));
  ftl_text_fini(&question);
  return key;
}

static int compare_entries(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  if (order == 0) order = strcmp(y->prediction->created_utc, x->prediction->created_utc);
  return order != 0 ? order : (x->age < y->age) - (x->age > y->age);
}

static ftl_status make_entries(ftl_page *page, entry **out, int64_t *num_entries) {
  int64_t count = 0;
  entry *entries = FTL_ARENA_NEW_RAW(&page->arena, entry, 2 * page->contents->num_predictions);
  if (entries == NULL) return ftl_page_no_memory(page);
  for (int64_t i = 0; i < page->contents->num_predictions; i++) {
    const ftl_stored_prediction *p = &page->contents->predictions[i];
    const char *arch = page->contents->archs[p->arch_idx].model->name;
    entries[count] = (entry){.key = make_key(page, arch, p->question), .prediction = p, .age = i};
    if (entries[count++].key == NULL) return ftl_page_no_memory(page);
    if (p->spec == NULL) continue;
    entries[count] = (entry){.key = make_spec_key(page, arch, p->spec), .prediction = p, .age = i};
    if (entries[count++].key == NULL) return ftl_page_no_memory(page);
  }
  if (count > 1) qsort(entries, (size_t)count, sizeof *entries, compare_entries);
  *out = entries;
  *num_entries = count;
  return FTL_OK;
}

// The newest with this key: the first among equal ones.
static const ftl_stored_prediction *find(const entry *entries, int64_t count, const char *key) {
  int64_t low = 0, high = count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (strcmp(entries[middle].key, key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && strcmp(entries[low].key, key) == 0 ? entries[low].prediction : NULL;
}

// Keeps the cases that have a prediction. Of several cases of one prediction (kernels of two sources that are the same
// configuration) the first is the measured one beside it.
static ftl_status take_predictions(ftl_page *page, const entry *entries, int64_t num_entries) {
  ftl_validation *v = &page->cases;
  int64_t kept = 0;
  for (int64_t i = 0; i < v->num_cases; i++) {
    ftl_case *c = &v->cases[i];
    const char *key = make_spec_key(page, c->measured_case.arch, &c->measured_case.spec);
    if (key == NULL) return ftl_page_no_memory(page);
    const ftl_stored_prediction *p = find(entries, num_entries, key);
    if (p == NULL) continue;
    ftl_prediction *prediction = FTL_ARENA_NEW(&page->arena, ftl_prediction, 1);
    if (prediction == NULL) return ftl_page_no_memory(page);
    prediction->feasible = p->feasible;
    prediction->metrics = p->metrics;
    c->status = FTL_OK;
    c->prediction = prediction;
    double *measured_ns = &page->measured_ns[p - page->contents->predictions];
    if (isnan(*measured_ns)) *measured_ns = ftl_case_measured_time_ns(c);
    if (kept != i) v->cases[kept] = *c;
    kept++;
  }
  page->num_unpredicted = v->num_cases - kept;
  v->num_cases = kept;
  return FTL_OK;
}

ftl_status ftl_page_make_cases(ftl_page *page) {
  entry *entries = NULL;
  int64_t num_entries = 0;
  ftl_status status = make_entries(page, &entries, &num_entries);
  page->measured_ns = FTL_ARENA_NEW_RAW(&page->arena, double, page->contents->num_predictions);
  if (status == FTL_OK && page->measured_ns == NULL) status = ftl_page_no_memory(page);
  for (int64_t i = 0; status == FTL_OK && i < page->contents->num_predictions; i++) page->measured_ns[i] = (double)NAN;
  for (int i = 0; status == FTL_OK && i < page->contents->num_files; i++) {
    status = ftl_validation_add(&page->cases, &page->contents->files[i].file, NULL, page->error);
  }
  if (status == FTL_OK) status = take_predictions(page, entries, num_entries);
  if (status == FTL_OK) ftl_validation_sort(&page->cases);
  return status;
}
