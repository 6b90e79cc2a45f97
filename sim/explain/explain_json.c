// The member `explain` of an answer. docs/explain.md has the names.
#include <math.h>

#include "explain/explain.h"
#include "explain/launch_view.h"
#include "report/json.h"
#include "report/prediction_report.h"

// Opens or continues an object or a list: nothing before the first member.
static void add_separator(ftl_text *out, bool *first) {
  if (!*first) ftl_text_add(out, ", ");
  *first = false;
}

static void add_number(ftl_text *out, bool *first, const char *key, double value) {
  add_separator(out, first);
  ftl_json_add_key(out, key);
  ftl_json_add_number(out, value);
}

static void add_string(ftl_text *out, bool *first, const char *key, const char *value) {
  add_separator(out, first);
  ftl_json_add_key(out, key);
  ftl_json_add_string(out, value);
}

static void open_member(ftl_text *out, bool *first, const char *key, const char *bracket) {
  add_separator(out, first);
  ftl_json_add_key(out, key);
  ftl_text_add(out, "%s", bracket);
}

static void add_usage(const ftl_launch_view *view, ftl_text *out) {
  bool first = true;
  for (int i = 0; i < FTL_RESOURCE_COUNT; i++)
    add_number(out, &first, ftl_resource_get((ftl_resource)i)->id, view->usage_pct[i]);
  ftl_text_add(out, "}");
}

static void add_occupancy(const ftl_launch_view *view, ftl_text *out) {
  const double *value = view->metrics->value;
  bool first = true;
  add_string(out, &first, "limited_by", view->limited_by);
  add_number(out, &first, "ctas_per_sm", value[FTL_METRIC_ctas_per_sm]);
  add_number(out, &first, "limit_registers", value[FTL_METRIC_limit_registers]);
  add_number(out, &first, "limit_shared_memory", value[FTL_METRIC_limit_shared]);
  add_number(out, &first, "limit_warps", value[FTL_METRIC_limit_warps]);
  add_number(out, &first, "limit_barriers", value[FTL_METRIC_limit_barriers]);
  add_number(out, &first, "limit_ctas", value[FTL_METRIC_limit_blocks]);
  add_number(out, &first, "achieved_pct", value[FTL_METRIC_warps_pct]);
  add_number(out, &first, "waves", value[FTL_METRIC_waves]);
  ftl_text_add(out, "}");
}

static void add_stalls(const ftl_launch_view *view, const ftl_spec *spec, ftl_text *out) {
  ftl_metric stalls[FTL_NUM_STALLS];
  int count = ftl_launch_view_stalls(view, stalls);
  for (int i = 0; i < count; i++) {
    char name[32];
    bool first = true;
    ftl_text_add(out, i == 0 ? "{" : ", {");
    add_string(out, &first, "reason", ftl_stall_name(stalls[i], name));
    add_number(out, &first, "warps_per_issue", view->metrics->value[stalls[i]]);
    add_string(out, &first, "meaning", ftl_stall_meaning(stalls[i], spec));
    ftl_text_add(out, "}");
  }
  ftl_text_add(out, "]");
}

static double ratio(double part, double whole) { return whole > 0 ? part / whole : NAN; }

static void add_roofline(const ftl_launch_view *view, ftl_text *out) {
  const ftl_roofline *r = &view->roofline;
  bool first = true;
  add_number(out, &first, "flops", r->flops);
  add_number(out, &first, "least_bytes", r->least_bytes);
  add_number(out, &first, "hbm_bytes", r->hbm_bytes);
  add_number(out, &first, "l2_bytes", r->l2_bytes);
  add_number(out, &first, "flop_per_least_byte", ratio(r->flops, r->least_bytes));
  add_number(out, &first, "flop_per_hbm_byte", ratio(r->flops, r->hbm_bytes));
  add_number(out, &first, "flop_per_l2_byte", ratio(r->flops, r->l2_bytes));
  add_number(out, &first, "ridge_hbm", 1e3 * r->peak_tflops / r->peak_hbm_gbps);
  add_number(out, &first, "ridge_l2", 1e3 * r->peak_tflops / r->peak_l2_gbps);
  add_number(out, &first, "peak_tflops", r->peak_tflops);
  add_number(out, &first, "peak_hbm_gbps", r->peak_hbm_gbps);
  add_number(out, &first, "peak_l2_gbps", r->peak_l2_gbps);
  add_string(out, &first, "bound", r->is_compute_bound ? "compute" : "memory");
  add_number(out, &first, "least_time_ns", r->least_time_ns);
  add_number(out, &first, "attainable_tflops", ratio(r->flops, r->least_time_ns) * 1e-3);
  add_number(out, &first, "reached_tflops", r->flops / view->time_ns * 1e-3);
  add_number(out, &first, "reached_pct", 100 * r->least_time_ns / view->time_ns);
  ftl_text_add(out, "}");
}

static void add_launch(const ftl_row *row, int launch_idx, ftl_text *out) {
  ftl_launch_view view = ftl_launch_view_of(row, launch_idx);
  bool first = true;
  ftl_text_add(out, "{");
  add_string(out, &first, "name", view.name);
  add_string(out, &first, "bottleneck", view.bottleneck);
  add_number(out, &first, "time_ns", view.time_ns);
  add_number(out, &first, "overhead_ns", view.overhead_ns);
  add_number(out, &first, "idle_ns", view.idle_ns);
  add_number(out, &first, "work_ns", view.work_ns);
  open_member(out, &first, "usage_pct", "{");
  add_usage(&view, out);
  if (view.limited_by != NULL) {
    open_member(out, &first, "occupancy", "{");
    add_occupancy(&view, out);
  }
  open_member(out, &first, "stalls", "[");
  add_stalls(&view, &row->prediction->spec, out);
  open_member(out, &first, "roofline", "{");
  add_roofline(&view, out);
  ftl_text_add(out, "}");
}

static void add_answer(const ftl_explain_case *c, ftl_text *out, bool *first) {
  add_separator(out, first);
  ftl_json_add_key(out, "feasible");
  ftl_text_add(out, c->feasible ? "true" : "false");
  if (!c->feasible) {
    add_string(out, first, "reason", c->reason);
    return;
  }
  add_number(out, first, "time_ns", c->time_ns);
  add_number(out, first, "time_change_pct", c->time_change_pct);
  add_number(out, first, "hbm_bytes", c->hbm_bytes);
  add_number(out, first, "hbm_change_pct", c->hbm_change_pct);
}

static void add_what_ifs(const ftl_explanation *e, ftl_text *out) {
  for (int i = 0; i < e->num_what_ifs; i++) {
    const ftl_explain_case *c = &e->what_ifs[i];
    bool first = true;
    ftl_text_add(out, i == 0 ? "{" : ", {");
    add_string(out, &first, "resource", c->name);
    add_string(out, &first, "what", c->what);
    add_string(out, &first, "change", ftl_text_get(&c->change));
    add_number(out, &first, "factor", c->factor);
    add_answer(c, out, &first);
    if (c->feasible) add_number(out, &first, "elasticity", c->elasticity);
    ftl_text_add(out, "}");
  }
  ftl_text_add(out, "]");
}

static void add_neighbours(const ftl_explanation *e, ftl_text *out) {
  for (int i = 0; i < e->num_neighbours; i++) {
    const ftl_explain_case *c = &e->neighbours[i];
    bool first = true;
    ftl_text_add(out, i == 0 ? "{" : ", {");
    add_string(out, &first, "parameter", c->name);
    add_string(out, &first, "value", c->value);
    add_answer(c, out, &first);
    ftl_text_add(out, "}");
  }
  ftl_text_add(out, "]");
}

static void add_launches(const ftl_row *row, ftl_text *out, bool *first) {
  open_member(out, first, "launches", "[");
  for (int i = 0; i < row->prediction->num_kernels; i++) {
    if (i > 0) ftl_text_add(out, ", ");
    add_launch(row, i, out);
  }
  ftl_text_add(out, "]");
  open_member(out, first, "sum", "");
  add_launch(row, -1, out);
}

void ftl_explanation_json(const ftl_explanation *e, ftl_text *out) {
  ftl_row row = {.arch = e->arch, .prediction = &e->base.prediction};
  bool first = true;
  ftl_text_add(out, "{");
  ftl_prediction_json_members(&row, out);
  ftl_text_add(out, ", ");
  ftl_json_add_key(out, "explain");
  ftl_text_add(out, "{");
  if (row.prediction->feasible) {
    add_launches(&row, out, &first);
    open_member(out, &first, "what_ifs", "[");
    add_what_ifs(e, out);
  }
  open_member(out, &first, "neighbours", "[");
  add_neighbours(e, out);
  ftl_text_add(out, "}}");
}
