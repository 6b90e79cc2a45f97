#include "explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "explain/what_if.h"

// What is asked besides the base, and where each answer goes.
typedef struct questions {
  ftl_point *points;
  ftl_explain_case **cases;
  ftl_arch **archs;  // changed models
  ftl_answer *answers;
  int64_t num_points;
  int num_archs;
} questions;

static int most_questions(void) { return ftl_num_what_ifs() + FTL_MAX_NEIGHBOURS; }

static ftl_status questions_init(questions *q, ftl_error *error) {
  size_t most = (size_t)most_questions();
  *q = (questions){.points = calloc(most, sizeof *q->points),
                   .cases = calloc(most, sizeof *q->cases),
                   .archs = calloc(most, sizeof *q->archs),
                   .answers = calloc(most, sizeof *q->answers)};
  bool failed = q->points == NULL || q->cases == NULL || q->archs == NULL || q->answers == NULL;
  return failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an explanation") : FTL_OK;
}

static void questions_fini(questions *q) {
  for (int i = 0; i < q->num_archs; i++) ftl_arch_destroy(q->archs[i]);
  free(q->answers);
  free(q->archs);
  free(q->cases);
  free(q->points);
}

static void ask(questions *q, const ftl_point *point, ftl_explain_case *c) {
  q->points[q->num_points] = *point;
  q->cases[q->num_points++] = c;
}

static ftl_status ask_what_ifs(questions *q, const ftl_point *base, ftl_explanation *e, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < ftl_num_what_ifs(); i++) {
    ftl_explain_case *c = &e->what_ifs[e->num_what_ifs];
    ftl_point point;
    bool applies = false;
    *c = (ftl_explain_case){.name = ftl_what_if_name(i), .what = ftl_what_if_doc(i)};
    ftl_arch *arch = NULL;
    status = ftl_what_if_make(i, base, &e->base.prediction, &applies, &point, &arch, &c->change, &c->factor, error);
    if (arch != NULL) q->archs[q->num_archs++] = arch;
    if (status == FTL_OK && !applies) continue;
    e->num_what_ifs++;
    if (status == FTL_OK) ask(q, &point, c);
    if (status != FTL_BAD_INPUT) continue;
    snprintf(c->reason, sizeof c->reason, "%s", error->message);  // a rule between keys of this model forbids it
    status = FTL_OK;
  }
  return status;
}

static ftl_status ask_neighbours(questions *q, const ftl_point *base, ftl_explanation *e, ftl_error *error) {
  ftl_neighbour *neighbours = calloc(FTL_MAX_NEIGHBOURS, sizeof *neighbours);
  if (neighbours == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an explanation");
  e->num_neighbours = ftl_neighbours_make(&base->spec, &e->base.prediction.spec, neighbours);
  for (int i = 0; i < e->num_neighbours; i++) {
    const ftl_neighbour *n = &neighbours[i];
    ftl_explain_case *c = &e->neighbours[i];
    *c = (ftl_explain_case){.name = ftl_param_get(n->param)->name, .factor = NAN};
    snprintf(c->value, sizeof c->value, "%s", n->value);
    snprintf(c->reason, sizeof c->reason, "%s", n->reason);
    if (n->is_complete) ask(q, &(ftl_point){.spec = n->spec, .arch = base->arch}, c);
  }
  free(neighbours);
  return FTL_OK;
}

static double hbm_bytes(const ftl_prediction *p) {
  return p->metrics.value[FTL_METRIC_dram_read] + p->metrics.value[FTL_METRIC_dram_write];
}

static double change_pct(double value, double base) { return base > 0 ? 100 * (value / base - 1) : NAN; }

static void take_answer(const ftl_answer *base, const ftl_answer *answer, ftl_explain_case *c) {
  const ftl_prediction *p = &answer->prediction;
  c->feasible = answer->status == FTL_OK && p->feasible;
  if (!c->feasible) {
    snprintf(c->reason, sizeof c->reason, "%s", answer->status == FTL_OK ? p->reason : answer->message);
    return;
  }
  bool compares = base->prediction.feasible;
  c->time_ns = ftl_prediction_time_ns(p);
  c->hbm_bytes = hbm_bytes(p);
  c->time_change_pct = compares ? change_pct(c->time_ns, ftl_prediction_time_ns(&base->prediction)) : NAN;
  c->hbm_change_pct = compares ? change_pct(c->hbm_bytes, hbm_bytes(&base->prediction)) : NAN;
  double growth = log(c->factor), speedup = -log1p(c->time_change_pct / 100);
  c->elasticity = growth != 0 && isfinite(growth) ? speedup / growth : NAN;
}

static bool is_more_elastic(const ftl_explain_case *a, const ftl_explain_case *b) {
  if (a->feasible != b->feasible) return a->feasible;
  return a->feasible && a->elasticity > b->elasticity;
}

static bool is_faster(const ftl_explain_case *a, const ftl_explain_case *b) {
  if (a->feasible != b->feasible) return a->feasible;
  return a->feasible && a->time_ns < b->time_ns;
}

// By insertion: few, and equal ones stay in their order.
static void sort_cases(ftl_explain_case *cases, int num_cases,
                       bool (*is_before)(const ftl_explain_case *, const ftl_explain_case *)) {
  for (int i = 1; i < num_cases; i++) {
    ftl_explain_case c = cases[i];
    int at = i;
    for (; at > 0 && is_before(&c, &cases[at - 1]); at--) cases[at] = cases[at - 1];
    cases[at] = c;
  }
}

static ftl_status ask_base(const ftl_point *point, const ftl_evaluate_options *options, ftl_answer *out,
                           ftl_error *error) {
  ftl_status status = ftl_evaluate(point, 1, options, out, error);
  if (status != FTL_OK || out->status == FTL_OK) return status;
  return ftl_error_set(error, out->status, "%s", out->message);
}

static ftl_status fill(const ftl_point *point, const ftl_evaluate_options *options, ftl_explanation *e,
                       ftl_error *error) {
  questions q = {0};
  ftl_status status = ask_base(point, options, &e->base, error);
  if (status == FTL_OK) status = questions_init(&q, error);
  if (status == FTL_OK && e->base.prediction.feasible) status = ask_what_ifs(&q, point, e, error);
  if (status == FTL_OK) status = ask_neighbours(&q, point, e, error);
  if (status == FTL_OK) status = ftl_evaluate(q.points, q.num_points, options, q.answers, error);
  for (int64_t i = 0; status == FTL_OK && i < q.num_points; i++) take_answer(&e->base, &q.answers[i], q.cases[i]);
  questions_fini(&q);
  sort_cases(e->what_ifs, e->num_what_ifs, is_more_elastic);
  sort_cases(e->neighbours, e->num_neighbours, is_faster);
  return status;
}

ftl_status ftl_explain(const ftl_point *point, const ftl_evaluate_options *options, ftl_explanation **out,
                       ftl_error *error) {
  *out = NULL;
  ftl_evaluate_options without_database = *options;
  without_database.database = NULL;
  ftl_explanation *e = calloc(1, sizeof *e);
  if (e != NULL) {
    e->arch = point->arch;
    e->what_ifs = calloc((size_t)ftl_num_what_ifs() + 1, sizeof *e->what_ifs);
    e->neighbours = calloc(FTL_MAX_NEIGHBOURS, sizeof *e->neighbours);
  }
  ftl_status status = e == NULL || e->what_ifs == NULL || e->neighbours == NULL
                          ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an explanation")
                          : fill(point, &without_database, e, error);
  if (status == FTL_OK) {
    *out = e;
  } else {
    ftl_explanation_destroy(e);
  }
  return status;
}

void ftl_explanation_destroy(ftl_explanation *e) {
  if (e == NULL) return;
  for (int i = 0; e->what_ifs != NULL && i < e->num_what_ifs; i++) ftl_text_fini(&e->what_ifs[i].change);
  free(e->what_ifs);
  free(e->neighbours);
  free(e);
}
