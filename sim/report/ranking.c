#include "report/ranking.h"

#include <stdlib.h>
#include <string.h>

#include "report/table.h"

ftl_status ftl_rank_column_find_among(const ftl_row *rows, int64_t num_rows, const char *by, ftl_column *out,
                                      ftl_error *error) {
  ftl_status status = ftl_column_find_among(rows, num_rows, strcmp(by, "time") == 0 ? "time_us" : by, out, error);
  if (status == FTL_OK && !ftl_column_is_number(*out)) {
    return ftl_error_set(error, FTL_BAD_INPUT, "cannot rank by %s, which is no number; use time, hbm, or a metric", by);
  }
  return status;
}

ftl_status ftl_rank_column_find(const char *by, ftl_column *out, ftl_error *error) {
  return ftl_rank_column_find_among(NULL, 0, by, out, error);
}

typedef struct ranked {
  ftl_row row;
  double value;  // smaller is better
  bool is_known;
  int64_t idx;
} ranked;

static int compare(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->is_known != y->is_known) return x->is_known ? -1 : 1;
  if (x->is_known && x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->idx > y->idx) - (x->idx < y->idx);
}

ftl_status ftl_rows_rank(ftl_row *rows, int64_t num_rows, ftl_column by, ftl_error *error) {
  if (num_rows == 0) return FTL_OK;
  ranked *order = calloc((size_t)num_rows, sizeof *order);
  if (order == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %lld answers", (long long)num_rows);
  double sign = ftl_column_prefers_large(by) ? -1 : 1;
  for (int64_t i = 0; i < num_rows; i++) {
    double value = 0;
    bool is_known = rows[i].prediction->feasible && ftl_column_number(by, &rows[i], &value);
    order[i] = (ranked){.row = rows[i], .value = sign * value, .is_known = is_known, .idx = i};
  }
  qsort(order, (size_t)num_rows, sizeof *order, compare);
  for (int64_t i = 0; i < num_rows; i++) rows[i] = order[i].row;
  free(order);
  return FTL_OK;
}

int64_t ftl_rows_num_feasible(const ftl_row *rows, int64_t num_rows) {
  int64_t count = 0;
  for (int64_t i = 0; i < num_rows; i++) count += rows[i].prediction->feasible;
  return count;
}

// --- what varies ---

// Own parameters of one kernel that differ; of two different kernels none, for their numbers mean different things.
static uint32_t varying_own(const ftl_spec *spec, const ftl_spec *first) {
  const ftl_user_kernel *a = spec->workload->user_kernel, *b = first->workload->user_kernel;
  uint32_t own = 0;
  if (a == NULL || b == NULL || strcmp(a->name, b->name) != 0 || a->num_params != b->num_params) return 0;
  for (int i = 0; i < a->num_params; i++)
    if (strcmp(a->params[i].text, b->params[i].text) != 0) own |= UINT32_C(1) << i;
  return own;
}

// `auto` that nobody asked for and nothing decided: of parameters that contradict each other.
static bool is_open(const ftl_spec *spec, int p) {
  const char *allowed = ftl_param_get((ftl_param)p)->allowed;
  bool has_auto = allowed != NULL && strncmp(allowed, "auto|", strlen("auto|")) == 0;
  return has_auto && spec->value[p] == 0 && (spec->given >> p & 1) == 0;
}

ftl_varying ftl_rows_varying(const ftl_row *rows, int64_t num_rows) {
  ftl_varying varying = {0};
  const ftl_spec *first_decided[FTL_PARAM_COUNT] = {0};
  for (int64_t i = 0; i < num_rows; i++) {
    const ftl_spec *spec = &rows[i].prediction->spec, *first = &rows[0].prediction->spec;
    if (rows[i].arch != rows[0].arch) varying.arch = true;
    varying.own |= varying_own(spec, first);
    for (int p = 0; p < FTL_PARAM_COUNT; p++) {
      bool both = (spec->workload->accepts & first->workload->accepts) >> p & 1;
      if (!both || is_open(spec, p)) continue;
      if (first_decided[p] == NULL) first_decided[p] = spec;
      if (spec->value[p] != first_decided[p]->value[p]) varying.params |= (ftl_param_set)1 << p;
    }
  }
  return varying;
}

void ftl_row_label(const ftl_row *row, ftl_varying varying, ftl_text *out) {
  const ftl_spec *spec = &row->prediction->spec;
  char buffer[32];
  const char *separator = "";
  if (varying.arch) {
    ftl_text_add(out, "%s", row->arch->name);
    separator = " ";
  }
  for (int i = 0; i < FTL_MAX_OWN_PARAMS; i++) {
    if ((varying.own >> i & 1) == 0) continue;
    const ftl_own_param *own = &spec->workload->user_kernel->params[i];
    ftl_text_add(out, "%s%s=%s", separator, own->name, own->text);
    separator = " ";
  }
  for (int p = 0; p < FTL_PARAM_COUNT; p++) {
    if ((varying.params >> p & 1) == 0) continue;
    ftl_text_add(out, "%s%s=%s", separator, ftl_param_get((ftl_param)p)->name,
                 ftl_spec_text(spec, (ftl_param)p, buffer));
    separator = " ";
  }
  if (separator[0] == '\0') ftl_text_add(out, "this configuration");
}

// --- tables ---

// The name and the unit, unless the name ends in it.
static void add_header(ftl_table *table, ftl_column column) {
  const char *name = ftl_column_name(column), *unit = ftl_column_shown_unit(column);
  size_t name_size = strlen(name), unit_size = strlen(unit);
  bool says_unit = unit_size < name_size && strcmp(name + name_size - unit_size, unit) == 0;
  if (says_unit) {
    ftl_table_add(table, "%s", name);
  } else {
    ftl_table_add(table, "%s %s", name, unit);
  }
}

ftl_status ftl_rows_table(const ftl_row *rows, int64_t num_rows, const ftl_column *columns, int num_columns,
                          ftl_text *out, ftl_error *error) {
  ftl_table table;
  ftl_table_init(&table, num_columns);
  for (int c = 0; c < num_columns; c++) {
    add_header(&table, columns[c]);
    if (ftl_column_is_number(columns[c])) ftl_table_align_right(&table, c);
  }
  for (int64_t i = 0; i < num_rows; i++) {
    for (int c = 0; c < num_columns; c++) {
      ftl_text cell = {0};
      ftl_column_text(columns[c], &rows[i], &cell);
      ftl_table_add(&table, "%s", ftl_text_get(&cell));
      ftl_text_fini(&cell);
    }
  }
  ftl_status status = ftl_table_write(&table, 0, out, error);
  ftl_table_fini(&table);
  return status;
}

ftl_status ftl_rows_ranking(const ftl_row *rows, int64_t num_rows, ftl_varying varying, ftl_text *out,
                            ftl_error *error) {
  static const char *const names[] = {"time_us", "tflops",    "hbm_read",  "hbm_write",
                                      "l2_hit",  "occupancy", "bottleneck"};
  enum { NUM_NAMES = sizeof names / sizeof *names };
  ftl_column columns[1 + FTL_MAX_OWN_PARAMS + FTL_PARAM_COUNT + NUM_NAMES];
  int num_columns = 0;
  if (varying.arch) columns[num_columns++] = (ftl_column){.kind = FTL_COLUMN_ARCH};
  for (int i = 0; num_rows > 0 && i < FTL_MAX_OWN_PARAMS; i++) {
    if ((varying.own >> i & 1) == 0) continue;
    const ftl_own_param *own = &rows[0].prediction->spec.workload->user_kernel->params[i];
    columns[num_columns++] = (ftl_column){.kind = FTL_COLUMN_OWN, .idx = i, .own = own};
  }
  for (int p = 0; p < FTL_PARAM_COUNT; p++) {
    if (varying.params >> p & 1) columns[num_columns++] = (ftl_column){.kind = FTL_COLUMN_PARAM, .idx = p};
  }
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < NUM_NAMES; i++) {
    status = ftl_column_find(names[i], &columns[num_columns++], error);
  }
  return status != FTL_OK ? status : ftl_rows_table(rows, num_rows, columns, num_columns, out, error);
}

static bool is_as_infeasible(const ftl_row *a, const ftl_row *b) {
  return a->arch == b->arch && !b->prediction->feasible && strcmp(a->prediction->reason, b->prediction->reason) == 0;
}

void ftl_rows_infeasible(const ftl_row *rows, int64_t num_rows, ftl_varying varying, ftl_text *out) {
  bool is_first = true;
  int64_t more = 0;
  for (int64_t i = 0; i < num_rows; i += 1 + more) {
    more = 0;
    if (rows[i].prediction->feasible) continue;
    while (i + more + 1 < num_rows && is_as_infeasible(&rows[i], &rows[i + more + 1])) more++;
    ftl_text_add(out, is_first ? "\ninfeasible:\n  " : "  ");
    ftl_row_label(&rows[i], varying, out);
    if (more > 0) ftl_text_add(out, " and %lld more", (long long)more);
    ftl_text_add(out, ": %s\n", rows[i].prediction->reason);
    is_first = false;
  }
}

// --- bars ---

static double largest_value(const ftl_row *rows, int64_t num_rows, ftl_column column) {
  double largest = 0, value = 0;
  for (int64_t i = 0; i < num_rows; i++) {
    if (ftl_column_number(column, &rows[i], &value) && value > largest) largest = value;
  }
  return largest;
}

ftl_status ftl_rows_bars(const ftl_row *rows, int64_t num_rows, ftl_column column, int width_chars, ftl_text *out,
                         ftl_error *error) {
  double largest = largest_value(rows, num_rows, column), value = 0;
  ftl_varying varying = ftl_rows_varying(rows, num_rows);
  ftl_table table;
  ftl_table_init(&table, 3);
  ftl_table_align_right(&table, 1);
  ftl_table_add(&table, "%s", "");
  add_header(&table, column);
  ftl_table_add(&table, "%s", "");
  for (int64_t i = 0; i < num_rows; i++) {
    ftl_text label = {0}, shown = {0}, bar = {0};
    ftl_row_label(&rows[i], varying, &label);
    ftl_column_text(column, &rows[i], &shown);
    bool has_bar = ftl_column_number(column, &rows[i], &value) && value > 0;
    int length = has_bar ? (int)(value / largest * width_chars + 0.5) : 0;
    for (int k = 0; k < length; k++) ftl_text_add_bytes(&bar, "#", 1);
    ftl_table_add(&table, "%s", ftl_text_get(&label));
    ftl_table_add(&table, "%s", ftl_text_get(&shown));
    ftl_table_add(&table, "%s", ftl_text_get(&bar));
    ftl_text_fini(&label);
    ftl_text_fini(&shown);
    ftl_text_fini(&bar);
  }
  ftl_status status = ftl_table_write(&table, 0, out, error);
  ftl_table_fini(&table);
  return status;
}
