#include "report/column.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "results/metric_id.h"

// Sources of an alias beyond the metrics.
enum { SOURCE_none = -1, SOURCE_time = -2 };
enum {
#define FTL_METRIC(id, name, unit, combine, doc) SOURCE_##id = FTL_METRIC_##id,
#include "engine/metrics.def"
#undef FTL_METRIC
};

typedef struct alias {
  const char *name, *unit, *shown_unit;
  int metric, other, decimals;
  double scale, shown_scale;
} alias;

static const alias aliases[] = {
#define FTL_ALIAS(name, metric, other, scale, unit, shown_scale, shown_unit, decimals, doc) \
  {#name, unit, shown_unit, SOURCE_##metric, SOURCE_##other, decimals, scale, shown_scale},
#include "report/aliases.def"
#undef FTL_ALIAS
};

static const struct {
  const char *name;
  ftl_column_kind kind;
} texts[] = {{"arch", FTL_COLUMN_ARCH},
             {"workload", FTL_COLUMN_WORKLOAD},
             {"bottleneck", FTL_COLUMN_BOTTLENECK},
             {"reason", FTL_COLUMN_REASON}};

enum { NUM_ALIASES = sizeof aliases / sizeof *aliases, NUM_TEXTS = sizeof texts / sizeof *texts };

double ftl_prediction_time_ns(const ftl_prediction *prediction) {
  char buffer[32];
  bool takes_conditions = ftl_spec_takes(&prediction->spec, FTL_PARAM_conditions);
  bool is_stream =
      takes_conditions && strcmp(ftl_spec_text(&prediction->spec, FTL_PARAM_conditions, buffer), "stream") == 0;
  return prediction->metrics.value[is_stream ? FTL_METRIC_stream_time_ns : FTL_METRIC_time_ns];
}

// --- by name ---

static bool find_exact(const char *name, ftl_column *out) {
  for (int i = 0; i < NUM_TEXTS; i++) {
    if (strcmp(name, texts[i].name) == 0) return *out = (ftl_column){.kind = texts[i].kind, .idx = i}, true;
  }
  int param = ftl_param_find(name);
  if (param >= 0) return *out = (ftl_column){.kind = FTL_COLUMN_PARAM, .idx = param}, true;
  for (int i = 0; i < NUM_ALIASES; i++) {
    if (strcmp(name, aliases[i].name) == 0) return *out = (ftl_column){.kind = FTL_COLUMN_ALIAS, .idx = i}, true;
  }
  int metric = ftl_metric_find(name);
  if (metric < 0) metric = ftl_metric_id_find(name);
  if (metric >= 0) *out = (ftl_column){.kind = FTL_COLUMN_METRIC, .idx = metric};
  return metric >= 0;
}

static void consider(const char *name, const char *candidate, const char **nearest, int *distance) {
  int d = ftl_edit_distance(name, candidate);
  bool is_longer = d == *distance && strlen(candidate) > strlen(*nearest);  // letters are missed more than added
  if (d < *distance || is_longer) {
    *distance = d;
    *nearest = candidate;
  }
}

static const char *nearest_name(const char *name) {
  const char *nearest = "";
  int distance = INT_MAX;
  for (int i = 0; i < NUM_ALIASES; i++) consider(name, aliases[i].name, &nearest, &distance);
  for (int i = 0; i < NUM_TEXTS; i++) consider(name, texts[i].name, &nearest, &distance);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    consider(name, ftl_metric_id((ftl_metric)i), &nearest, &distance);
    consider(name, ftl_metric_get((ftl_metric)i)->name, &nearest, &distance);
  }
  for (int i = 0; i < FTL_PARAM_COUNT; i++) consider(name, ftl_param_get((ftl_param)i)->name, &nearest, &distance);
  return nearest;
}

ftl_status ftl_column_find(const char *name, ftl_column *out, ftl_error *error) {
  if (find_exact(name, out)) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "no metric, parameter or alias is called \"%.64s\"; the nearest is %s",
                       name, nearest_name(name));
}

ftl_status ftl_column_find_among(const ftl_row *rows, int64_t num_rows, const char *name, ftl_column *out,
                                 ftl_error *error) {
  const ftl_user_kernel *kernel = num_rows > 0 ? rows[0].prediction->spec.workload->user_kernel : NULL;
  int own = ftl_user_kernel_find_param(kernel, name);
  if (own < 0) return ftl_column_find(name, out, error);
  *out = (ftl_column){.kind = FTL_COLUMN_OWN, .idx = own, .own = &kernel->params[own]};
  return FTL_OK;
}

const char *ftl_column_name(ftl_column column) {
  switch (column.kind) {
    case FTL_COLUMN_OWN:
      return column.own->name;
    case FTL_COLUMN_PARAM:
      return ftl_param_get((ftl_param)column.idx)->name;
    case FTL_COLUMN_METRIC:
      return ftl_metric_id((ftl_metric)column.idx);
    case FTL_COLUMN_ALIAS:
      return aliases[column.idx].name;
    default:
      return texts[column.idx].name;
  }
}

const char *ftl_column_shown_unit(ftl_column column) {
  switch (column.kind) {
    case FTL_COLUMN_METRIC:
      return ftl_metric_get((ftl_metric)column.idx)->unit;
    case FTL_COLUMN_ALIAS:
      return aliases[column.idx].shown_unit;
    default:
      return "";
  }
}

const char *ftl_column_metric_name(ftl_column column) {
  int metric = SOURCE_none;
  if (column.kind == FTL_COLUMN_METRIC) metric = column.idx;
  if (column.kind == FTL_COLUMN_ALIAS && aliases[column.idx].other == SOURCE_none) metric = aliases[column.idx].metric;
  if (metric == SOURCE_time) metric = FTL_METRIC_time_ns;
  return metric >= 0 ? ftl_metric_get((ftl_metric)metric)->name : "";
}

bool ftl_column_is_number(ftl_column column) {
  if (column.kind == FTL_COLUMN_OWN) return column.own->kind == FTL_OWN_NUMBER;
  if (column.kind == FTL_COLUMN_PARAM) return !ftl_param_is_text((ftl_param)column.idx);
  return column.kind == FTL_COLUMN_METRIC || column.kind == FTL_COLUMN_ALIAS;
}

bool ftl_column_prefers_large(ftl_column column) {
  const char *unit = column.kind == FTL_COLUMN_METRIC  ? ftl_metric_get((ftl_metric)column.idx)->unit
                     : column.kind == FTL_COLUMN_ALIAS ? aliases[column.idx].unit
                                                       : "";
  return strcmp(unit, "%") == 0 || strcmp(unit, "TFLOP/s") == 0 || strcmp(unit, "MHz") == 0;
}

// --- values ---

static double source_value(int source, const ftl_prediction *prediction) {
  if (source == SOURCE_none) return 0;
  return source == SOURCE_time ? ftl_prediction_time_ns(prediction) : prediction->metrics.value[source];
}

bool ftl_column_number(ftl_column column, const ftl_row *row, double *out) {
  const ftl_prediction *prediction = row->prediction;
  if (!ftl_column_is_number(column)) return false;
  if (column.kind == FTL_COLUMN_OWN) {
    *out = prediction->spec.workload->user_kernel->params[column.idx].number;
    return true;
  }
  if (column.kind == FTL_COLUMN_PARAM) {
    bool is_real = ftl_param_get((ftl_param)column.idx)->is_real;
    *out =
        is_real ? ftl_spec_real(&prediction->spec, (ftl_param)column.idx) : (double)prediction->spec.value[column.idx];
    return ftl_spec_takes(&prediction->spec, (ftl_param)column.idx);
  }
  if (!prediction->feasible) return false;
  if (column.kind == FTL_COLUMN_METRIC) {
    *out = prediction->metrics.value[column.idx];
  } else {
    const alias *a = &aliases[column.idx];
    *out = (source_value(a->metric, prediction) + source_value(a->other, prediction)) * a->scale;
  }
  return isfinite(*out);
}

static const char *text_value(ftl_column column, const ftl_row *row, char *buffer) {
  const ftl_prediction *prediction = row->prediction;
  switch (column.kind) {
    case FTL_COLUMN_OWN:
      return prediction->spec.workload->user_kernel->params[column.idx].text;
    case FTL_COLUMN_ARCH:
      return row->arch->name;
    case FTL_COLUMN_WORKLOAD:
      return prediction->spec.workload->name;
    case FTL_COLUMN_BOTTLENECK:
      return prediction->feasible ? prediction->bottleneck : "-";
    case FTL_COLUMN_REASON:
      return prediction->feasible ? "-" : prediction->reason;
    default:
      break;
  }
  bool takes = ftl_spec_takes(&prediction->spec, (ftl_param)column.idx);
  return takes ? ftl_spec_text(&prediction->spec, (ftl_param)column.idx, buffer) : "-";
}

void ftl_column_text(ftl_column column, const ftl_row *row, ftl_text *out) {
  char buffer[32];
  double value = 0;
  if (column.kind != FTL_COLUMN_METRIC && column.kind != FTL_COLUMN_ALIAS) {
    ftl_text_add(out, "%s", text_value(column, row, buffer));
  } else if (!ftl_column_number(column, row, &value)) {
    ftl_text_add(out, "-");
  } else if (column.kind == FTL_COLUMN_ALIAS) {
    ftl_text_add(out, "%.*f", aliases[column.idx].decimals, value * aliases[column.idx].shown_scale);
  } else {
    ftl_text_add(out, value == floor(value) ? "%.0f" : fabs(value) >= 100 ? "%.1f" : "%.2f", value);
  }
}
