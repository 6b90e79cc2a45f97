// A validation for programs.
#include <math.h>
#include <stdlib.h>

#include "report/json.h"
#include "report/validate_report.h"

static void add_text(ftl_text *out, const char *key, const char *value) {
  ftl_json_add_key(out, key);
  ftl_json_add_string(out, value);
  ftl_text_add(out, ", ");
}

static void add_number(ftl_text *out, const char *key, double value, const char *behind) {
  ftl_json_add_key(out, key);
  ftl_json_add_number(out, value);
  ftl_text_add(out, "%s", behind);
}

static void add_parameters(ftl_text *out, const ftl_spec *spec) {
  bool first = true;
  ftl_text_add(out, "\"params\": {");
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i)) continue;
    const ftl_param_info *info = ftl_param_get((ftl_param)i);
    char buffer[32];
    ftl_text_add(out, first ? "" : ", ");
    ftl_json_add_key(out, info->name);
    if (ftl_param_is_text((ftl_param)i)) {
      ftl_json_add_string(out, ftl_spec_text(spec, (ftl_param)i, buffer));
    } else {
      ftl_text_add(out, "%s", ftl_spec_text(spec, (ftl_param)i, buffer));
    }
    first = false;
  }
  ftl_text_add(out, "}, ");
}

// Metrics that were measured, with the predicted value beside.
static void add_metrics(ftl_text *out, const ftl_case *c) {
  bool first = true, is_predicted = ftl_case_is_predicted(c);
  ftl_text_add(out, "\"metrics\": {");
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    if (isnan(c->measured[i])) continue;
    ftl_text_add(out, first ? "" : ", ");
    ftl_json_add_key(out, ftl_metric_get((ftl_metric)i)->name);
    ftl_text_add(out, "{");
    add_number(out, "measured", c->measured[i], ", ");
    add_number(out, "spread", c->counts[i] > 1 ? c->most[i] - c->least[i] : (double)NAN, ", ");
    add_number(out, "predicted", is_predicted ? c->prediction->metrics.value[i] : (double)NAN, "}");
    first = false;
  }
  ftl_text_add(out, "}, ");
}

static void add_errors(ftl_text *out, const ftl_case *c) {
  bool first = true;
  ftl_text_add(out, "\"errors\": {");
  for (int q = 0; q < FTL_QUANTITY_COUNT; q++) {
    double error = 0;
    if (!ftl_case_error(c, (ftl_quantity)q, &error)) continue;
    ftl_text_add(out, first ? "" : ", ");
    add_number(out, ftl_quantity_id((ftl_quantity)q), error, "");
    first = false;
  }
  ftl_text_add(out, "}}\n");
}

static void add_case(ftl_text *out, const ftl_case *c) {
  ftl_text_add(out, "{\"kind\": \"case\", ");
  add_text(out, "part", ftl_part_name(c->measured_case.part));
  add_text(out, "source", c->measured_case.source);
  add_text(out, "place", c->place);
  add_text(out, "arch", c->measured_case.arch);
  add_text(out, "workload", c->measured_case.spec.workload->name);
  add_parameters(out, &c->measured_case.spec);
  if (!ftl_case_is_predicted(c)) add_text(out, c->status == FTL_OK ? "infeasible" : "error", c->prediction->reason);
  add_number(out, "impossible", (double)c->num_impossible, ", ");
  add_metrics(out, c);
  add_errors(out, c);
}

static ftl_status add_statistics(const ftl_validation *v, ftl_part part, ftl_quantity quantity, bool above_spread,
                                 ftl_text *out, ftl_error *error) {
  ftl_error_statistics s;
  ftl_status status = ftl_validation_statistics(v, part, quantity, above_spread, &s, error);
  if (status != FTL_OK || s.count == 0) return status;
  ftl_text_add(out, "{\"kind\": \"statistics\", ");
  add_text(out, "part", ftl_part_name(part));
  add_text(out, "quantity", ftl_quantity_id(quantity));
  add_text(out, "unit", ftl_quantity_unit(quantity));
  ftl_text_add(out, "\"above_spread\": %s, ", above_spread ? "true" : "false");
  add_number(out, "cases", (double)s.count, ", ");
  add_number(out, "mean", s.mean, ", ");
  add_number(out, "median", s.median, ", ");
  add_number(out, "p90", s.p90, ", ");
  add_number(out, "max", s.max, ", ");
  add_number(out, "bias", s.bias, "}\n");
  return FTL_OK;
}

static ftl_status add_choices(const ftl_validation *v, ftl_part part, ftl_text *out, ftl_error *error) {
  ftl_choice *choices = NULL;
  int64_t count = 0;
  ftl_status status = ftl_validation_choices(v, part, &choices, &count, error);
  for (int64_t i = 0; status == FTL_OK && i < count; i++) {
    const ftl_choice *c = &choices[i];
    ftl_text_add(out, "{\"kind\": \"choice\", ");
    add_text(out, "part", ftl_part_name(part));
    add_text(out, "source", c->first->measured_case.source);
    add_parameters(out, &c->first->measured_case.spec);
    add_number(out, "cases", (double)c->num_cases, ", ");
    add_number(out, "rho", c->rho, ", ");
    add_number(out, "best_pct", c->best_pct, ", ");
    add_number(out, "best_of_3_pct", c->best3_pct, "}\n");
  }
  free(choices);
  return status;
}

static void add_uncovered(const ftl_validation *v, ftl_text *out) {
  for (int i = 0; i < v->num_uncovered; i++) {
    ftl_text_add(out, "{\"kind\": \"not_covered\", ");
    add_text(out, "reason", v->uncovered[i].reason);
    add_number(out, "rows", (double)v->uncovered[i].num_rows, "}\n");
  }
}

ftl_status ftl_validation_json(const ftl_validation *v, ftl_text *out, ftl_error *error) {
  for (int64_t i = 0; i < v->num_cases; i++) add_case(out, &v->cases[i]);
  ftl_status status = FTL_OK;
  for (int p = 0; status == FTL_OK && p < FTL_PART_COUNT; p++) {
    for (int q = 0; status == FTL_OK && q < FTL_QUANTITY_COUNT; q++) {
      status = add_statistics(v, (ftl_part)p, (ftl_quantity)q, false, out, error);
      if (status == FTL_OK) status = add_statistics(v, (ftl_part)p, (ftl_quantity)q, true, out, error);
    }
    if (status == FTL_OK) status = add_choices(v, (ftl_part)p, out, error);
  }
  add_uncovered(v, out);
  return status;
}
