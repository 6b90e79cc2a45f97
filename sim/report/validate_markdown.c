// The generated part of docs/accuracy.md.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/validate_report.h"

static void add_statistics_row(ftl_text *out, const char *name, const char *unit, const ftl_error_statistics *s) {
  int digits = strcmp(unit, "%") == 0 ? 1 : 2;
  ftl_text_add(out, "| %s | %s | %lld | %.*f | %.*f | %.*f | %.*f | %+.*f |\n", name, unit, (long long)s->count, digits,
               s->mean, digits, s->median, digits, s->p90, digits, s->max, digits, s->bias);
}

static ftl_status add_statistics(const ftl_validation *v, ftl_part part, ftl_text *out, ftl_error *error) {
  ftl_text_add(out,
               "| error of | unit | cases | mean | median | p90 | max | bias |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
  ftl_status status = FTL_OK;
  for (int q = 0; status == FTL_OK && q < FTL_QUANTITY_COUNT; q++) {
    ftl_error_statistics s;
    ftl_quantity quantity = (ftl_quantity)q;
    status = ftl_validation_statistics(v, part, quantity, false, &s, error);
    if (status != FTL_OK || s.count == 0) continue;
    add_statistics_row(out, ftl_quantity_name(quantity), ftl_quantity_unit(quantity), &s);
    if (quantity != FTL_QUANTITY_hbm) continue;
    status = ftl_validation_statistics(v, part, quantity, true, &s, error);
    if (status == FTL_OK && s.count > 0) add_statistics_row(out, "the same above twice the spread", "%", &s);
  }
  int64_t num_cases = 0, num_near = 0;
  ftl_validation_registers(v, part, &num_cases, &num_near);
  if (num_cases > 0) {
    ftl_text_add(out, "\nRegisters are within 8 of the measured in %.1f %% of cases.\n",
                 100 * (double)num_near / (double)num_cases);
  }
  return status;
}

static void add_choice_row(const ftl_choice *c, ftl_text *out) {
  char mma[32], copy[32], conditions[32];
  const ftl_spec *spec = &c->first->measured_case.spec;
  ftl_text_add(out, "| %s | %s | ", c->first->measured_case.source,
               ftl_spec_text(spec, FTL_PARAM_conditions, conditions));
  ftl_case_shape(c->first, out);
  ftl_text_add(out, " | %s %s | %lld | ", ftl_spec_text(spec, FTL_PARAM_mma, mma),
               ftl_spec_text(spec, FTL_PARAM_copy, copy), (long long)c->num_cases);
  ftl_text_add(out, isnan(c->rho) ? "- | " : "%.2f | ", c->rho);
  ftl_text_add(out, "%.1f | %.1f |\n", c->best_pct, c->best3_pct);
}

static ftl_status add_choices(const ftl_validation *v, ftl_part part, ftl_text *out, ftl_error *error) {
  ftl_choice *choices = NULL;
  int64_t count = 0;
  ftl_status status = ftl_validation_choices(v, part, &choices, &count, error);
  if (status != FTL_OK || count == 0) {
    free(choices);
    return status;
  }
  ftl_choice_summary s = ftl_choices_summary(choices, count);
  ftl_text_add(
      out,
      "\nChoice of block sizes, warps and stages, %lld shapes: Spearman's rho mean %.3f, least %.3f. Of the best "
      "measured time, the predicted best reaches %.1f %% (least %.1f %%), the best of three %.1f %% (least %.1f "
      "%%).\n\n<details><summary>Each shape, worst first</summary>\n\n"
      "| kernel | condition | shape | family | cases | rho | best %% | best of 3 %% |\n"
      "|---|---|---|---|--:|--:|--:|--:|\n",
      (long long)count, s.rho_mean, s.rho_least, s.best_mean_pct, s.best_least_pct, s.best3_mean_pct,
      s.best3_least_pct);
  for (int64_t i = 0; i < count; i++) add_choice_row(&choices[i], out);
  ftl_text_add(out, "\n</details>\n");
  free(choices);
  return FTL_OK;
}

static void add_error_cell(const ftl_case *c, ftl_quantity quantity, ftl_text *out) {
  double error = 0;
  if (ftl_case_error(c, quantity, &error)) {
    ftl_text_add(out, "%+.1f |", error);
  } else {
    ftl_text_add(out, "- |");
  }
}

static void add_case_row(const ftl_case *c, ftl_text *out) {
  char conditions[32];
  ftl_text_add(out, "|%s|%s|", c->measured_case.source,
               ftl_spec_text(&c->measured_case.spec, FTL_PARAM_conditions, conditions));
  ftl_case_shape(c, out);
  ftl_text_add(out, "|");
  ftl_case_tile(c, out);
  ftl_text_add(out, "|%.1f|", ftl_case_measured_time_ns(c) / 1000);
  if (ftl_case_is_predicted(c)) {
    ftl_text_add(out, "%.1f|", ftl_case_predicted_time_ns(c) / 1000);
  } else {
    ftl_text_add(out, "%s|", c->status == FTL_OK ? "infeasible" : "failed");
  }
  bool is_stream = strcmp(conditions, "stream") == 0;
  add_error_cell(c, is_stream ? FTL_QUANTITY_stream_time : FTL_QUANTITY_time, out);
  static const ftl_quantity shown[] = {FTL_QUANTITY_cycles, FTL_QUANTITY_hbm_read,   FTL_QUANTITY_hbm_write,
                                       FTL_QUANTITY_hbm,    FTL_QUANTITY_l2_sectors, FTL_QUANTITY_l2_hit,
                                       FTL_QUANTITY_insts,  FTL_QUANTITY_registers,  FTL_QUANTITY_occupancy};
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) add_error_cell(c, shown[i], out);
  ftl_text_add(out, "\n");
}

static void add_cases(const ftl_validation *v, ftl_part part, ftl_text *out) {
  ftl_text_add(out,
               "\n<details><summary>Every case, worst first</summary>\n\n"
               "|kernel|condition|shape|tile|measured us|predicted us|time %%|cycles %%|HBM read %%|HBM write %%|HBM "
               "%%|L2 sectors %%|L2 hit points|instructions %%|registers %%|occupancy points|\n"
               "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (int64_t i = 0; i < v->num_cases; i++) {
    if (v->cases[i].measured_case.part == part) add_case_row(&v->cases[i], out);
  }
  ftl_text_add(out, "\n</details>\n");
}

ftl_status ftl_validation_markdown(const ftl_validation *v, ftl_text *out, ftl_error *error) {
  ftl_validation_coverage(v, "- ", out);
  ftl_status status = FTL_OK;
  for (int p = 0; status == FTL_OK && p < FTL_PART_COUNT; p++) {
    if (ftl_validation_count_part(v, (ftl_part)p) == 0) continue;
    const char *title = ftl_part_title((ftl_part)p);
    ftl_text_add(out, "\n## %c%s\n\n", toupper(title[0]), title + 1);
    status = add_statistics(v, (ftl_part)p, out, error);
    if (status == FTL_OK) status = add_choices(v, (ftl_part)p, out, error);
    if (status == FTL_OK) add_cases(v, (ftl_part)p, out);
  }
  return status;
}
