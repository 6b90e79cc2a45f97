// How well predictions rank block sizes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/validate.h"

// What is given, not chosen, beside the part and whose kernel it is: shape, condition, and the kernel's family.
static const ftl_param given[] = {
    FTL_PARAM_batch,    FTL_PARAM_heads,      FTL_PARAM_kv_heads,    FTL_PARAM_seqlen_q,    FTL_PARAM_seqlen_kv,
    FTL_PARAM_head_dim, FTL_PARAM_head_dim_v, FTL_PARAM_causal,      FTL_PARAM_window,      FTL_PARAM_m,
    FTL_PARAM_n,        FTL_PARAM_k,          FTL_PARAM_transpose_a, FTL_PARAM_transpose_b, FTL_PARAM_page_size,
    FTL_PARAM_kv_dtype, FTL_PARAM_dtype,      FTL_PARAM_mma,         FTL_PARAM_copy,        FTL_PARAM_conditions};

static int compare_given(const ftl_case *x, const ftl_case *y) {
  const ftl_measured_case *a = &x->measured_case, *b = &y->measured_case;
  int order = (a->part > b->part) - (a->part < b->part);
  if (order == 0) order = strcmp(a->source, b->source);
  if (order == 0) order = strcmp(a->author, b->author);
  if (order == 0) order = strcmp(a->arch, b->arch);
  if (order == 0) order = strcmp(a->spec.workload->name, b->spec.workload->name);
  for (size_t i = 0; order == 0 && i < sizeof given / sizeof *given; i++) {
    int64_t p = a->spec.value[given[i]], q = b->spec.value[given[i]];
    order = (p > q) - (p < q);
  }
  return order;
}

static int compare_members(const void *a, const void *b) {
  const ftl_case *x = *(const ftl_case *const *)a, *y = *(const ftl_case *const *)b;
  int order = compare_given(x, y);
  return order != 0 ? order : strcmp(x->place, y->place);
}

static int compare_choices(const void *a, const void *b) {
  const ftl_choice *x = a, *y = b;
  double x_rho = isnan(x->rho) ? 2 : x->rho, y_rho = isnan(y->rho) ? 2 : y->rho;
  if (x_rho != y_rho) return x_rho > y_rho ? 1 : -1;
  return strcmp(x->first->place, y->first->place);
}

// times: room for twice the members.
static ftl_status make_choice(const ftl_case *const *members, int64_t count, double *times, ftl_choice *out,
                              ftl_error *error) {
  for (int64_t i = 0; i < count; i++) {
    times[i] = ftl_case_predicted_time_ns(members[i]);
    times[count + i] = ftl_case_measured_time_ns(members[i]);
  }
  *out = (ftl_choice){.first = members[0], .num_cases = count};
  out->best_pct = 100 * ftl_best_share(times, times + count, count, 1);
  out->best3_pct = 100 * ftl_best_share(times, times + count, count, 3);
  return ftl_spearman(times, times + count, count, &out->rho, error);
}

// Those that have both times, a choice after another.
static int64_t collect(const ftl_case *const *cases, int64_t num_cases, const ftl_case **members) {
  int64_t count = 0;
  for (int64_t i = 0; i < num_cases; i++) {
    if (ftl_case_is_predicted(cases[i]) && !isnan(ftl_case_measured_time_ns(cases[i]))) members[count++] = cases[i];
  }
  if (count > 1) qsort(members, (size_t)count, sizeof(const ftl_case *), compare_members);
  return count;
}

ftl_status ftl_cases_choices(const ftl_case *const *cases, int64_t num_cases, ftl_choice *out, int64_t *num_choices,
                             ftl_error *error) {
  *num_choices = 0;
  size_t most = (size_t)num_cases + 1;
  const ftl_case **members = calloc(most, sizeof *members);
  double *times = calloc(2 * most, sizeof *times);
  ftl_status status = FTL_OK;
  if (members == NULL || times == NULL) {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the choices");
  } else {
    int64_t count = collect(cases, num_cases, members);
    for (int64_t first = 0, end = 0; status == FTL_OK && first < count; first = end) {
      while (end < count && compare_given(members[end], members[first]) == 0) end++;
      if (end - first < FTL_CHOICE_MIN_CASES) continue;
      status = make_choice(members + first, end - first, times, &out[*num_choices], error);
      *num_choices += status == FTL_OK;
    }
  }
  free(members);
  free(times);
  if (status == FTL_OK && *num_choices > 1) qsort(out, (size_t)*num_choices, sizeof *out, compare_choices);
  return status;
}

ftl_status ftl_validation_choices(const ftl_validation *v, ftl_part part, ftl_choice **out, int64_t *num_choices,
                                  ftl_error *error) {
  *num_choices = 0;
  size_t most = (size_t)v->num_cases + 1;
  *out = calloc(most, sizeof **out);
  const ftl_case **members = calloc(most, sizeof *members);
  ftl_status status = FTL_OK;
  if (*out == NULL || members == NULL) {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the choices");
  } else {
    int64_t count = 0;
    for (int64_t i = 0; i < v->num_cases; i++) {
      if (v->cases[i].measured_case.part == part) members[count++] = &v->cases[i];
    }
    status = ftl_cases_choices(members, count, *out, num_choices, error);
  }
  free(members);
  if (status != FTL_OK) {
    free(*out);
    *out = NULL;
  }
  return status;
}

ftl_choice_summary ftl_choices_summary(const ftl_choice *choices, int64_t count) {
  ftl_choice_summary s = {.rho_least = INFINITY, .best_least_pct = INFINITY, .best3_least_pct = INFINITY};
  int64_t num_ordered = 0;
  for (int64_t i = 0; i < count; i++) {
    const ftl_choice *c = &choices[i];
    s.best_mean_pct += c->best_pct / (double)count;
    s.best3_mean_pct += c->best3_pct / (double)count;
    s.best_least_pct = fmin(s.best_least_pct, c->best_pct);
    s.best3_least_pct = fmin(s.best3_least_pct, c->best3_pct);
    if (isnan(c->rho)) continue;
    s.rho_mean += c->rho;
    s.rho_least = fmin(s.rho_least, c->rho);
    num_ordered++;
  }
  s.rho_mean /= (double)num_ordered;
  return s;
}
