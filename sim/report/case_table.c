#include "report/case_table.h"

#include <string.h>

#include "report/table.h"
#include "report/validate_report.h"

static const char *const texts[] = {
    [FTL_CASE_ARCH] = "arch",     [FTL_CASE_WORKLOAD] = "workload", [FTL_CASE_PART] = "part",
    [FTL_CASE_SOURCE] = "source", [FTL_CASE_PLACE] = "place",       [FTL_CASE_SHAPE] = "shape",
    [FTL_CASE_TILE] = "tile"};
enum { NUM_TEXTS = sizeof texts / sizeof *texts };

// --- columns by name ---

static const char *nearest_name(const char *name) {
  const char *nearest = ftl_quantity_nearest(name), *param = ftl_param_nearest(name);
  if (ftl_edit_distance(name, param) < ftl_edit_distance(name, nearest)) nearest = param;
  for (int i = 0; i < NUM_TEXTS; i++) {
    if (ftl_edit_distance(name, texts[i]) < ftl_edit_distance(name, nearest)) nearest = texts[i];
  }
  return nearest;
}

ftl_status ftl_case_column_find(const char *name, ftl_case_column *out, ftl_error *error) {
  for (int i = 0; i < NUM_TEXTS; i++) {
    *out = (ftl_case_column){.kind = (ftl_case_column_kind)i};
    if (strcmp(name, texts[i]) == 0) return FTL_OK;
  }
  *out = (ftl_case_column){FTL_CASE_QUANTITY, ftl_quantity_find(name)};
  if (out->idx >= 0) return FTL_OK;
  *out = (ftl_case_column){FTL_CASE_PARAM, ftl_param_find(name)};
  if (out->idx >= 0) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "no column of measured cases is called \"%.64s\"; the nearest is %s", name,
                       nearest_name(name));
}

static bool any_measured(const ftl_case *const *cases, int64_t num_cases, ftl_quantity quantity) {
  double value = 0;
  for (int64_t i = 0; i < num_cases; i++) {
    if (ftl_case_measured(cases[i], quantity, &value)) return true;
  }
  return false;
}

int ftl_case_columns_default(const ftl_case *const *cases, int64_t num_cases, ftl_case_column *out) {
  static const ftl_case_column known[] = {{FTL_CASE_SOURCE, 0},
                                          {FTL_CASE_PARAM, FTL_PARAM_conditions},
                                          {FTL_CASE_SHAPE, 0},
                                          {FTL_CASE_TILE, 0},
                                          {FTL_CASE_QUANTITY, FTL_QUANTITY_time},
                                          {FTL_CASE_QUANTITY, FTL_QUANTITY_stream_time},
                                          {FTL_CASE_QUANTITY, FTL_QUANTITY_hbm}};
  int count = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    bool is_quantity = known[i].kind == FTL_CASE_QUANTITY;
    if (!is_quantity || any_measured(cases, num_cases, (ftl_quantity)known[i].idx)) out[count++] = known[i];
  }
  return count;
}

// --- cells ---

typedef struct shown {
  const char *unit;
  double scale;
  int decimals;
} shown;

static shown shown_of(ftl_quantity quantity) {
  const char *unit = ftl_quantity_value_unit(quantity);
  if (strcmp(unit, "byte") == 0 && quantity != FTL_QUANTITY_shared) return (shown){"MB", 1e-6, 1};
  if (strcmp(unit, "ns") == 0) return (shown){"us", 1e-3, 1};
  if (strcmp(unit, "%") == 0) return (shown){"%", 1, 1};
  return (shown){"", 1, strcmp(unit, "warp") == 0 ? 2 : 0};
}

static void add_number(ftl_table *table, bool is_there, double value, int decimals, bool is_signed) {
  if (!is_there) {
    ftl_table_add(table, "-");
  } else if (is_signed) {
    ftl_table_add(table, "%+.*f", decimals, value);
  } else {
    ftl_table_add(table, "%.*f", decimals, value);
  }
}

static void add_quantity(ftl_table *table, const ftl_case *c, ftl_quantity quantity, bool with_predicted) {
  shown s = shown_of(quantity);
  double measured = 0, predicted = 0, error = 0;
  bool has_measured = ftl_case_measured(c, quantity, &measured);
  add_number(table, has_measured, measured * s.scale, s.decimals, false);
  if (!with_predicted) return;
  bool has_both = ftl_case_values(c, quantity, &measured, &predicted);
  add_number(table, has_both, predicted * s.scale, s.decimals, false);
  bool is_relative = strcmp(ftl_quantity_unit(quantity), "%") == 0;
  bool has_error = ftl_case_error(c, quantity, &error);
  add_number(table, has_error, error, is_relative ? 1 : 2, true);
}

static void add_written(ftl_table *table, const ftl_case *c, void (*write)(const ftl_case *, ftl_text *)) {
  ftl_text text = {0};
  write(c, &text);
  ftl_table_add(table, "%s", ftl_text_get(&text));
  ftl_text_fini(&text);
}

static void add_param(ftl_table *table, const ftl_case *c, ftl_param param) {
  char buffer[32];
  const ftl_spec *spec = &c->measured_case.spec;
  bool takes = ftl_spec_takes(spec, param);
  ftl_table_add(table, "%s", takes ? ftl_spec_text(spec, param, buffer) : "-");
}

static void add_cell(ftl_table *table, const ftl_case *c, ftl_case_column column, bool with_predicted) {
  switch (column.kind) {
    case FTL_CASE_ARCH:
      ftl_table_add(table, "%s", c->measured_case.arch);
      break;
    case FTL_CASE_WORKLOAD:
      ftl_table_add(table, "%s", c->measured_case.spec.workload->name);
      break;
    case FTL_CASE_PART:
      ftl_table_add(table, "%s", ftl_part_name(c->measured_case.part));
      break;
    case FTL_CASE_SOURCE:
      ftl_table_add(table, "%s", c->measured_case.source);
      break;
    case FTL_CASE_PLACE:
      ftl_table_add(table, "%s", c->place);
      break;
    case FTL_CASE_SHAPE:
      add_written(table, c, ftl_case_shape);
      break;
    case FTL_CASE_TILE:
      add_written(table, c, ftl_case_tile);
      break;
    case FTL_CASE_QUANTITY:
      add_quantity(table, c, (ftl_quantity)column.idx, with_predicted);
      break;
    case FTL_CASE_PARAM:
      add_param(table, c, (ftl_param)column.idx);
      break;
  }
}

// --- the table ---

static void add_header(ftl_table *table, ftl_case_column column, bool with_predicted, int *num_shown) {
  if (column.kind != FTL_CASE_QUANTITY) {
    bool is_param = column.kind == FTL_CASE_PARAM;
    if (is_param && !ftl_param_is_text((ftl_param)column.idx)) ftl_table_align_right(table, *num_shown);
    ftl_table_add(table, "%s", is_param ? ftl_param_get((ftl_param)column.idx)->name : texts[column.kind]);
    ++*num_shown;
    return;
  }
  const ftl_quantity quantity = (ftl_quantity)column.idx;
  const char *unit = shown_of(quantity).unit;
  for (int i = 0; i < (with_predicted ? 3 : 1); i++) ftl_table_align_right(table, (*num_shown)++);
  ftl_table_add(table, "%s%s%s", ftl_quantity_id(quantity), unit[0] != '\0' ? " " : "", unit);
  if (!with_predicted) return;
  ftl_table_add(table, "predicted");
  ftl_table_add(table, "error %s", ftl_quantity_unit(quantity));
}

ftl_status ftl_cases_table(const ftl_case *const *cases, int64_t num_cases, const ftl_case_column *columns,
                           int num_columns, ftl_text *out, ftl_error *error) {
  bool with_predicted = false;
  for (int64_t i = 0; i < num_cases; i++) with_predicted = with_predicted || cases[i]->prediction != NULL;
  int num_shown = 0;
  for (int c = 0; c < num_columns; c++) {
    num_shown += columns[c].kind == FTL_CASE_QUANTITY && with_predicted ? 3 : 1;
  }
  ftl_table table;
  ftl_table_init(&table, num_shown);
  num_shown = 0;
  for (int c = 0; c < num_columns; c++) add_header(&table, columns[c], with_predicted, &num_shown);
  for (int64_t i = 0; i < num_cases; i++) {
    for (int c = 0; c < num_columns; c++) add_cell(&table, cases[i], columns[c], with_predicted);
  }
  ftl_status status = ftl_table_write(&table, 0, out, error);
  ftl_table_fini(&table);
  return status;
}
