// An explanation for people: the answer as `predict` prints it, then why.
#include <math.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/launch_view.h"
#include "report/prediction_report.h"
#include "report/table.h"

static double us(double ns) { return ns * 1e-3; }

// --- where the time goes ---

static void add_time(const ftl_launch_view *view, ftl_text *out) {
  ftl_text_add(
      out, "  %.1f us: SMs at work %.1f us (%.1f %%), SMs idle %.1f us (%.1f %%), start and drain %.1f us (%.1f %%)\n",
      us(view->time_ns), us(view->work_ns), 100 * view->work_ns / view->time_ns, us(view->idle_ns),
      100 * view->idle_ns / view->time_ns, us(view->overhead_ns), 100 * view->overhead_ns / view->time_ns);
}

static void add_bottleneck(const ftl_launch_view *view, ftl_text *out) {
  ftl_resource top = ftl_resource_most_used(view->usage_pct);
  ftl_text_add(out, "  bottleneck: %s; of the resources the %s is used most, %.1f %% of its peak\n", view->bottleneck,
               ftl_resource_get(top)->name, view->usage_pct[top]);
}

static void add_occupancy(const ftl_launch_view *view, ftl_text *out) {
  const double *value = view->metrics->value;
  ftl_text_add(
      out,
      "  occupancy: %.1f %% of warps, %.0f CTAs of %.0f threads an SM, limited by %s (registers %.0f, shared memory "
      "%.0f, warps %.0f, barriers %.0f, CTA slots %.0f); %.2f waves\n",
      value[FTL_METRIC_warps_pct], value[FTL_METRIC_ctas_per_sm], value[FTL_METRIC_block], view->limited_by,
      value[FTL_METRIC_limit_registers], value[FTL_METRIC_limit_shared], value[FTL_METRIC_limit_warps],
      value[FTL_METRIC_limit_barriers], value[FTL_METRIC_limit_blocks], value[FTL_METRIC_waves]);
}

static ftl_status add_usage(const ftl_launch_view *view, ftl_text *out, ftl_error *error) {
  ftl_table table;
  ftl_table_init(&table, 3);
  ftl_table_align_right(&table, 1);
  ftl_table_add(&table, "resource");
  ftl_table_add(&table, "in use");
  ftl_table_add(&table, "100 %% is");
  for (int i = 0; i < FTL_RESOURCE_COUNT; i++) {
    const ftl_resource_info *info = ftl_resource_get((ftl_resource)i);
    ftl_table_add(&table, "%s", info->name);
    ftl_table_add(&table, "%.1f %%", view->usage_pct[i]);
    ftl_table_add(&table, "%s", info->full);
  }
  ftl_status status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

static ftl_status add_stalls(const ftl_launch_view *view, const ftl_spec *spec, ftl_text *out, ftl_error *error) {
  ftl_metric stalls[FTL_NUM_STALLS];
  int count = ftl_launch_view_stalls(view, stalls);
  if (count == 0) return FTL_OK;
  ftl_table table;
  ftl_table_init(&table, 3);
  ftl_table_align_right(&table, 1);
  ftl_table_add(&table, "stall reason");
  ftl_table_add(&table, "warps an issue");
  ftl_table_add(&table, "what waits");
  for (int i = 0; i < count; i++) {
    char name[32];
    ftl_table_add(&table, "%s", ftl_stall_name(stalls[i], name));
    ftl_table_add(&table, "%.2f", view->metrics->value[stalls[i]]);
    ftl_table_add(&table, "%s", ftl_stall_meaning(stalls[i], spec));
  }
  ftl_status status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

// --- the roofline ---

static void add_roofline(const ftl_launch_view *view, ftl_text *out) {
  const ftl_roofline *r = &view->roofline;
  ftl_text_add(out, "  HBM: %.1f MB without what stays dirty in L2, tensors once %.1f MB; L2: %.1f MB\n",
               r->hbm_bytes * 1e-6, r->least_bytes * 1e-6, r->l2_bytes * 1e-6);
  if (r->flops > 0) {
    ftl_text_add(out,
                 "  FLOP a byte: %.1f of HBM (%.1f with tensors once, ridge at %.1f), %.1f of L2 (ridge at %.1f)\n",
                 r->flops / r->hbm_bytes, r->flops / r->least_bytes, 1e3 * r->peak_tflops / r->peak_hbm_gbps,
                 r->flops / r->l2_bytes, 1e3 * r->peak_tflops / r->peak_l2_gbps);
    ftl_text_add(out, "  attainable %.1f TFLOP/s, reached %.1f\n", r->flops / r->least_time_ns * 1e-3,
                 r->flops / view->time_ns * 1e-3);
  }
  ftl_text_add(out, "  least time %.1f us (%s-bound): %.1f %% of the roofline\n", us(r->least_time_ns),
               r->is_compute_bound ? "compute" : "memory", 100 * r->least_time_ns / view->time_ns);
}

// --- in short ---

static const double least_elasticity = 0.1;

// A latency that warps wait for longest may be hidden behind other work, or be of the pipe and not of the result: where
// the time does not hang on it, a line says so.
static void add_hidden_latency(const ftl_explanation *e, ftl_text *out) {
  static const struct {
    ftl_metric stall;
    const char *what_if;
  } latencies[] = {{FTL_METRIC_stall_wait, "math_latency"},
                   {FTL_METRIC_stall_short_scoreboard, "shared_latency"},
                   {FTL_METRIC_stall_long_scoreboard, "memory_latency"}};
  const ftl_prediction *p = &e->base.prediction;
  ftl_bottleneck bottleneck = p->kernels[p->longest_kernel].bottleneck;
  if (bottleneck.bound != FTL_BOUND_STALL) return;
  for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++) {
    if (bottleneck.stall != latencies[i].stall) continue;
    for (int w = 0; w < e->num_what_ifs; w++) {
      const ftl_explain_case *c = &e->what_ifs[w];
      if (strcmp(c->name, latencies[i].what_if) != 0 || !c->feasible || c->elasticity >= least_elasticity) continue;
      ftl_text_add(out, "warps wait longest for: %s; yet %s %.2f times better changes the time by %+.1f %% only\n",
                   ftl_bottleneck_name(bottleneck), c->name, c->factor, c->time_change_pct);
    }
  }
}

// What the time hangs on, and the neighbour that is faster, if any is by more than a prediction's own noise.
static void add_summary(const ftl_explanation *e, ftl_text *out) {
  enum { MOST_NAMED = 3 };
  const double least_gain_pct = 0.5;
  const char *separator = "\nin short: time hangs on ";
  for (int i = 0; i < e->num_what_ifs && i < MOST_NAMED; i++) {
    const ftl_explain_case *c = &e->what_ifs[i];
    if (!c->feasible || c->elasticity < least_elasticity) break;
    ftl_text_add(out, "%s%s (elasticity %.2f)", separator, c->name, c->elasticity);
    separator = ", ";
  }
  if (separator[0] != ',') ftl_text_add(out, "\nin short: time hangs on no single resource");
  const ftl_explain_case *best = e->num_neighbours > 0 ? &e->neighbours[0] : NULL;
  if (best != NULL && best->feasible && best->time_change_pct < -least_gain_pct)
    ftl_text_add(out, "; %s=%s is %.1f %% faster", best->name, best->value, -best->time_change_pct);
  ftl_text_add(out, "\n");
  add_hidden_latency(e, out);
}

// --- launches ---

static ftl_status add_launch(const ftl_row *row, int launch_idx, ftl_text *out, ftl_error *error) {
  ftl_launch_view view = ftl_launch_view_of(row, launch_idx);
  bool is_only = row->prediction->num_kernels == 1;
  ftl_text_add(out, "\nwhere the time goes%s%s\n", is_only ? "" : ": ",
               is_only          ? ""
               : launch_idx < 0 ? "all launches"
                                : view.name);
  add_time(&view, out);
  add_bottleneck(&view, out);
  if (launch_idx >= 0) add_occupancy(&view, out);
  ftl_status status = add_usage(&view, out, error);
  if (status == FTL_OK) status = add_stalls(&view, &row->prediction->spec, out, error);
  if (status == FTL_OK) add_roofline(&view, out);
  return status;
}

static ftl_status add_launches(const ftl_row *row, ftl_text *out, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < row->prediction->num_kernels; i++) status = add_launch(row, i, out, error);
  if (status == FTL_OK && row->prediction->num_kernels > 1) status = add_launch(row, -1, out, error);
  return status;
}

// --- what if ---

// Without the minus sign of what prints as zero.
static double shown(double value, double least) { return fabs(value) < least ? 0 : value; }

static void add_change_cell(ftl_table *table, double change_pct) {
  if (isfinite(change_pct)) {
    ftl_table_add(table, "%+.1f %%", shown(change_pct, 0.05));
  } else {
    ftl_table_add(table, "-");
  }
}

// The first key that was changed, and how many more.
static void add_key_cell(const char *change, ftl_table *table) {
  int num_more = 0;
  for (const char *c = change; *c != '\0'; c++) num_more += *c == ';';
  if (num_more > 0) {
    ftl_table_add(table, "%.*s, and %d more", (int)strcspn(change, ";"), change, num_more);
  } else {
    ftl_table_add(table, "%s", change);
  }
}

static void add_what_if(const ftl_explain_case *c, ftl_table *table) {
  ftl_table_add(table, "%s", c->name);
  ftl_table_add(table, "%.2f", c->factor);
  if (c->feasible) {
    add_change_cell(table, c->time_change_pct);
    ftl_table_add(table, "%.2f", shown(c->elasticity, 0.005));
    add_key_cell(ftl_text_get(&c->change), table);
  } else {
    ftl_table_add(table, "-");
    ftl_table_add(table, "-");
    ftl_table_add(table, "%s", c->reason);
  }
}

static ftl_status add_what_ifs(const ftl_explanation *e, ftl_text *out, ftl_error *error) {
  ftl_table table;
  ftl_table_init(&table, 5);
  for (int c = 1; c <= 3; c++) ftl_table_align_right(&table, c);
  ftl_table_add(&table, "resource");
  ftl_table_add(&table, "factor");
  ftl_table_add(&table, "time");
  ftl_table_add(&table, "elasticity");
  ftl_table_add(&table, "change");
  for (int i = 0; i < e->num_what_ifs; i++) add_what_if(&e->what_ifs[i], &table);
  ftl_text_add(out, "\nwhat if one resource of the GPU were better (elasticity 1: time falls as it improves)\n");
  ftl_status status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

static ftl_status add_neighbours(const ftl_explanation *e, ftl_text *out, ftl_error *error) {
  ftl_table table;
  ftl_table_init(&table, 4);
  for (int c = 1; c <= 3; c++) ftl_table_align_right(&table, c);
  ftl_table_add(&table, "parameter");
  ftl_table_add(&table, "time_us");
  ftl_table_add(&table, "time");
  ftl_table_add(&table, "HBM");
  for (int i = 0; i < e->num_neighbours; i++) {
    const ftl_explain_case *c = &e->neighbours[i];
    if (!c->feasible) continue;
    ftl_table_add(&table, "%s=%s", c->name, c->value);
    ftl_table_add(&table, "%.1f", us(c->time_ns));
    add_change_cell(&table, c->time_change_pct);
    add_change_cell(&table, c->hbm_change_pct);
  }
  ftl_text_add(out, "\nwhat another kernel would bring\n");
  bool has_rows = e->neighbours[0].feasible;  // they come first
  ftl_status status = has_rows ? ftl_table_write(&table, 2, out, error) : FTL_OK;
  ftl_table_fini(&table);
  for (int i = 0; i < e->num_neighbours; i++) {
    const ftl_explain_case *c = &e->neighbours[i];
    if (!c->feasible) ftl_text_add(out, "  %s=%s is infeasible: %s\n", c->name, c->value, c->reason);
  }
  return status;
}

ftl_status ftl_explanation_text(const ftl_explanation *e, ftl_text *out, ftl_error *error) {
  ftl_row row = {.arch = e->arch, .prediction = &e->base.prediction};
  ftl_status status = ftl_prediction_text(&row, out, error);
  if (status == FTL_OK && row.prediction->feasible) {
    add_summary(e, out);
    status = add_launches(&row, out, error);
    if (status == FTL_OK) status = add_what_ifs(e, out, error);
  }
  if (status == FTL_OK && e->num_neighbours > 0) status = add_neighbours(e, out, error);
  if (status == FTL_OK && out->failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answer");
  return status;
}
