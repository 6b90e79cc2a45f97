// A validation for people at a terminal, and what the other forms share.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"
#include "report/validate_report.h"

static long long value_of(const ftl_case *c, ftl_param param) { return (long long)c->measured_case.spec.value[param]; }

static void add_product_shape(const ftl_case *c, ftl_text *out) {
  ftl_text_add(out, "%lld %lldx%lldx%lld", value_of(c, FTL_PARAM_batch), value_of(c, FTL_PARAM_m),
               value_of(c, FTL_PARAM_n), value_of(c, FTL_PARAM_k));
}

void ftl_case_shape(const ftl_case *c, ftl_text *out) {
  if (ftl_spec_takes(&c->measured_case.spec, FTL_PARAM_m)) {
    add_product_shape(c, out);
    return;
  }
  ftl_text_add(out, "%lldx%lld", value_of(c, FTL_PARAM_batch), value_of(c, FTL_PARAM_heads));
  if (value_of(c, FTL_PARAM_kv_heads) != value_of(c, FTL_PARAM_heads)) {
    ftl_text_add(out, "/%lld", value_of(c, FTL_PARAM_kv_heads));
  }
  ftl_text_add(out, " %lld", value_of(c, FTL_PARAM_seqlen_q));
  if (value_of(c, FTL_PARAM_seqlen_kv) != value_of(c, FTL_PARAM_seqlen_q)) {
    ftl_text_add(out, "x%lld", value_of(c, FTL_PARAM_seqlen_kv));
  }
  ftl_text_add(out, " d%lld", value_of(c, FTL_PARAM_head_dim));
  int64_t head_dim_v = ftl_spec_head_dim_v(&c->measured_case.spec);
  if (head_dim_v != value_of(c, FTL_PARAM_head_dim)) ftl_text_add(out, "/%lld", (long long)head_dim_v);
  if (value_of(c, FTL_PARAM_causal) != 0) ftl_text_add(out, " causal");
}

void ftl_case_tile(const ftl_case *c, ftl_text *out) {
  char mma[32], copy[32];
  const ftl_spec *spec = &c->measured_case.spec;
  ftl_text_add(out, "%lldx%lld w%lld ", value_of(c, FTL_PARAM_block_m), value_of(c, FTL_PARAM_block_n),
               value_of(c, FTL_PARAM_num_warps));
  if (value_of(c, FTL_PARAM_schedule) == FTL_SCHEDULE_INTERLEAVED) {
    ftl_text_add(out, "interleaved");
  } else {
    ftl_text_add(out, "s%lld", value_of(c, FTL_PARAM_num_stages));
  }
  ftl_text_add(out, " %s %s", ftl_spec_text(spec, FTL_PARAM_mma, mma), ftl_spec_text(spec, FTL_PARAM_copy, copy));
  if (value_of(c, FTL_PARAM_tile_order) == FTL_ORDER_HEAD_FIRST) ftl_text_add(out, " head_first");
  if (value_of(c, FTL_PARAM_tile_reverse) != 0) ftl_text_add(out, " reverse");
}

void ftl_validation_coverage(const ftl_validation *v, const char *indent, ftl_text *out) {
  int64_t num_impossible = 0, num_infeasible = 0, num_failed = 0;
  for (int64_t i = 0; i < v->num_cases; i++) {
    const ftl_case *c = &v->cases[i];
    num_impossible += c->num_impossible;
    num_infeasible += c->status == FTL_OK && !c->prediction->feasible;
    num_failed += c->status != FTL_OK;
  }
  ftl_text_add(out, "%s%lld measured rows, %lld cases\n", indent, (long long)v->num_rows, (long long)v->num_cases);
  for (int i = 0; i < v->num_uncovered; i++) {
    ftl_text_add(out, "%snot covered: %lld rows, %s\n", indent, (long long)v->uncovered[i].num_rows,
                 v->uncovered[i].reason);
  }
  if (v->num_not_run > 0) ftl_text_add(out, "%sdid not run on the GPU: %lld rows\n", indent, (long long)v->num_not_run);
  if (v->num_unchecked > 0) {
    ftl_text_add(out, "%sran, but nothing checked what it computed: %lld rows\n", indent, (long long)v->num_unchecked);
  }
  if (num_infeasible > 0) {
    ftl_text_add(out, "%sran, but predicted as infeasible: %lld cases\n", indent, (long long)num_infeasible);
  }
  if (num_failed > 0) ftl_text_add(out, "%swithout a prediction: %lld cases\n", indent, (long long)num_failed);
  if (num_impossible > 0) {
    ftl_text_add(out, "%simpossible measured values (negative, or a share above 100 %%), left out: %lld\n", indent,
                 (long long)num_impossible);
  }
}

// --- statistics ---

static void add_statistics_row(ftl_table *table, const char *name, const char *unit, const ftl_error_statistics *s) {
  int digits = strcmp(unit, "%") == 0 ? 1 : 2;
  ftl_table_add(table, "%s", name);
  ftl_table_add(table, "%s", unit);
  ftl_table_add(table, "%lld", (long long)s->count);
  const double values[] = {s->mean, s->median, s->p90, s->max};
  for (int i = 0; i < 4; i++) ftl_table_add(table, "%.*f", digits, values[i]);
  ftl_table_add(table, "%+.*f", digits, s->bias);
}

static ftl_status add_statistics(const ftl_validation *v, ftl_part part, ftl_text *out, ftl_error *error) {
  static const char *const heads[] = {"error of", "unit", "cases", "mean", "median", "p90", "max", "bias"};
  ftl_table table;
  ftl_table_init(&table, 8);
  for (int i = 2; i < 8; i++) ftl_table_align_right(&table, i);
  for (int i = 0; i < 8; i++) ftl_table_add(&table, "%s", heads[i]);
  ftl_status status = FTL_OK;
  for (int q = 0; status == FTL_OK && q < FTL_QUANTITY_COUNT; q++) {
    ftl_error_statistics s;
    status = ftl_validation_statistics(v, part, (ftl_quantity)q, false, &s, error);
    if (status != FTL_OK || s.count == 0) continue;
    add_statistics_row(&table, ftl_quantity_name((ftl_quantity)q), ftl_quantity_unit((ftl_quantity)q), &s);
    if (q != FTL_QUANTITY_hbm) continue;
    status = ftl_validation_statistics(v, part, (ftl_quantity)q, true, &s, error);
    if (status == FTL_OK && s.count > 0) add_statistics_row(&table, "  above twice the spread", "%", &s);
  }
  if (status == FTL_OK) status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

// --- ranking ---

static ftl_status add_choices(const ftl_validation *v, ftl_part part, ftl_text *out, ftl_error *error) {
  ftl_choice *choices = NULL;
  int64_t count = 0;
  ftl_status status = ftl_validation_choices(v, part, &choices, &count, error);
  if (status != FTL_OK) return status;
  ftl_choice_summary s = ftl_choices_summary(choices, count);
  free(choices);
  if (count == 0) return FTL_OK;
  ftl_text_add(out,
               "\n  choice of block sizes, warps and stages, %lld shapes: Spearman's rho mean %.3f, least %.3f;\n"
               "  of the best measured time, the predicted best reaches mean %.1f %%, least %.1f %%; the best of three "
               "mean %.1f %%, least %.1f %%\n",
               (long long)count, s.rho_mean, s.rho_least, s.best_mean_pct, s.best_least_pct, s.best3_mean_pct,
               s.best3_least_pct);
  return FTL_OK;
}

static void add_registers(const ftl_validation *v, ftl_part part, ftl_text *out) {
  int64_t num_cases = 0, num_near = 0;
  ftl_validation_registers(v, part, &num_cases, &num_near);
  if (num_cases == 0) return;
  ftl_text_add(out, "\n  registers within 8 of the measured: %.1f %% of cases\n",
               100 * (double)num_near / (double)num_cases);
}

// --- cases ---

static void add_error_cell(ftl_table *table, const ftl_case *c, ftl_quantity quantity) {
  double error = 0;
  if (ftl_case_error(c, quantity, &error)) {
    ftl_table_add(table, "%+.1f", error);
  } else {
    ftl_table_add(table, "-");
  }
}

static void add_case_row(ftl_table *table, const ftl_case *c) {
  char conditions[32];
  ftl_text shape = {0}, tile = {0};
  ftl_case_shape(c, &shape);
  ftl_case_tile(c, &tile);
  ftl_table_add(table, "%s", c->measured_case.source);
  ftl_table_add(table, "%s", ftl_spec_text(&c->measured_case.spec, FTL_PARAM_conditions, conditions));
  ftl_table_add(table, "%s", ftl_text_get(&shape));
  ftl_table_add(table, "%s", ftl_text_get(&tile));
  double measured_ns = ftl_case_measured_time_ns(c);
  if (isnan(measured_ns)) {
    ftl_table_add(table, "-");
  } else {
    ftl_table_add(table, "%.1f", measured_ns / 1000);
  }
  if (ftl_case_is_predicted(c)) {
    ftl_table_add(table, "%.1f", ftl_case_predicted_time_ns(c) / 1000);
  } else {
    ftl_table_add(table, c->status == FTL_OK ? "infeasible" : "failed");
  }
  bool is_stream = strcmp(conditions, "stream") == 0;
  add_error_cell(table, c, is_stream ? FTL_QUANTITY_stream_time : FTL_QUANTITY_time);
  static const ftl_quantity shown[] = {FTL_QUANTITY_cycles, FTL_QUANTITY_hbm,   FTL_QUANTITY_l2_sectors,
                                       FTL_QUANTITY_l2_hit, FTL_QUANTITY_insts, FTL_QUANTITY_registers};
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) add_error_cell(table, c, shown[i]);
  ftl_text_fini(&shape);
  ftl_text_fini(&tile);
}

static ftl_status add_cases(const ftl_validation *v, ftl_part part, int64_t top, ftl_text *out, ftl_error *error) {
  static const char *const heads[] = {"kernel",       "condition", "shape",      "tile",  "measured us",
                                      "predicted us", "time %",    "cycles %",   "HBM %", "L2 %",
                                      "L2 hit pts",   "insts %",   "registers %"};
  enum { NUM_COLUMNS = sizeof heads / sizeof *heads };
  ftl_table table;
  ftl_table_init(&table, NUM_COLUMNS);
  for (int i = 4; i < NUM_COLUMNS; i++) ftl_table_align_right(&table, i);
  for (int i = 0; i < NUM_COLUMNS; i++) ftl_table_add(&table, "%s", heads[i]);
  int64_t shown = 0;
  for (int64_t i = 0; i < v->num_cases && (top == 0 || shown < top); i++) {
    const ftl_case *c = &v->cases[i];
    if (c->measured_case.part != part) continue;
    add_case_row(&table, c);
    shown++;
  }
  ftl_text_add(out, "\n  %lld worst cases\n", (long long)shown);
  ftl_status status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

ftl_status ftl_validation_text(const ftl_validation *v, int64_t top, ftl_text *out, ftl_error *error) {
  ftl_validation_coverage(v, "", out);
  ftl_status status = FTL_OK;
  for (int p = 0; status == FTL_OK && p < FTL_PART_COUNT; p++) {
    int64_t count = ftl_validation_count_part(v, (ftl_part)p);
    if (count == 0) continue;
    ftl_text_add(out, "\n%s, %lld cases\n", ftl_part_title((ftl_part)p), (long long)count);
    status = add_statistics(v, (ftl_part)p, out, error);
    add_registers(v, (ftl_part)p, out);
    if (status == FTL_OK) status = add_choices(v, (ftl_part)p, out, error);
    if (status == FTL_OK) status = add_cases(v, (ftl_part)p, top, out, error);
  }
  return status;
}
