#include "pipeline_case.h"
#include "tests/spec_words.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LARGEST_INPUT = 2;

static void make_spec(pipeline_case *c, const char *workload, const char *params) {
  ftl_error error = {0};
  cr_assert_eq(ftl_spec_init(&c->spec, workload, &error), FTL_OK, "%s", error.message);
  bool multiplies = ftl_spec_takes(&c->spec, FTL_PARAM_mma);
  cr_assert_eq(spec_of_words(&c->spec, workload, multiplies ? "copy=cp_async mma=mma" : "", params, &error), FTL_OK,
               "%s: %s", params, error.message);
}

// Reproducible numbers in [-2, 2], of integers all that the type holds: the generator of POSIX's drand48 in its own
// state.
static void randomise(float *x, size_t count, ftl_dtype dtype, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = (seed * UINT64_C(0x5DEECE66D) + 0xB) & ((UINT64_C(1) << 48) - 1);
    float unit = (float)(seed >> 24) / (float)(1 << 23) - 1.0f;
    float from = dtype == FTL_INT4X2 ? 128 * (unit + 1) : dtype == FTL_INT8 ? 128 * unit : 2 * unit;
    x[i] = ftl_dtype_round(dtype, from);
  }
}

static void make_tensors(pipeline_case *c) {
  const ftl_tile_program *first = c->launches[0];
  for (int i = 0; i < first->num_tensors; i++) {
    const ftl_tensor *tensor = &first->tensors[i];
    size_t count = (size_t)(tensor->size_bytes / ftl_dtype_bytes(tensor->dtype));
    c->tensors[i] = malloc(sizeof(float) * count);
    cr_assert_not_null(c->tensors[i]);
    if (tensor->use == FTL_TENSOR_INPUT) {
      randomise(c->tensors[i], count, tensor->dtype, (uint64_t)i + 1);
      continue;
    }
    for (size_t k = 0; k < count; k++) c->tensors[i][k] = NAN;
  }
}

void pipeline_case_make(pipeline_case *c, const char *workload, const char *params) {
  *c = (pipeline_case){0};
  snprintf(c->text, sizeof c->text, "%s %s", workload, params);
  make_spec(c, workload, params);
  ftl_error error = {0};
  cr_assert_eq(c->spec.workload->build(&c->spec, c->launches, &c->num_launches, &error), FTL_OK, "%s: %s", c->text,
               error.message);
  make_tensors(c);
}

void pipeline_case_execute(pipeline_case *c) {
  ftl_error error = {0};
  for (int i = 0; i < c->num_launches; i++)
    cr_assert_eq(ftl_interpret(c->launches[i], c->tensors, NULL, &error), FTL_OK, "%s: %s", c->text, error.message);
}

void pipeline_case_run(pipeline_case *c, const char *workload, const char *params) {
  pipeline_case_make(c, workload, params);
  pipeline_case_execute(c);
}

void pipeline_case_fini(pipeline_case *c) {
  for (int i = 0; i < FTL_TILE_MAX_TENSORS; i++) free(c->tensors[i]);
  for (int i = 0; i < c->num_launches; i++) ftl_tile_program_destroy(c->launches[i]);
}

static double score_error(const ftl_attention *a) {
  double largest = (double)a->scale * a->head_dim * LARGEST_INPUT * LARGEST_INPUT;
  return largest * (a->head_dim + 4 * 1.4427) * 0x1p-24 + 0x1p-23;
}

double pipeline_output_tolerance(const ftl_attention *a, double expected) {
  double n = (double)a->seqlen_kv, u = 0x1p-11;
  return LARGEST_INPUT * (u + 2 * score_error(a) + n * 0x1p-25 + 2 * n * 0x1p-24 + n / 16 * 0x1p-23) +
         u * fabs(expected) + 0x1p-25;
}

double pipeline_lse_tolerance(const ftl_attention *a, double expected) {
  return 2 * score_error(a) + (double)a->seqlen_kv * 0x1p-23 + 4 * 0x1p-24 * (fabs(expected) + 8);
}
