#include "gradient_case.h"
#include "tests/spec_words.h"
#include "../../thinned.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ftl_tensor *tensor(const gradients *g, int i) { return &g->launches[0]->tensors[i]; }

static size_t num_elements(const ftl_tensor *t) { return (size_t)(t->size_bytes / ftl_dtype_bytes(t->dtype)); }

size_t gradients_at(const gradients *g, gradient_tensor i, int64_t batch, int64_t head, int64_t r) {
  const ftl_tensor *t = tensor(g, (int)i);
  return (size_t)(batch * t->batch_stride + head * t->head_stride + r * t->row_stride);
}

float *gradients_row(const gradients *g, gradient_tensor i, int64_t batch, int64_t head, int64_t r) {
  return g->tensors[i] + gradients_at(g, i, batch, head, r);
}

static void randomise(const gradients *g, int i, float limit) {
  uint64_t seed = (uint64_t)i + 1;
  for (size_t e = 0; e < num_elements(tensor(g, i)); e++) {
    seed = (seed * UINT64_C(0x5DEECE66D) + 0xB) & ((UINT64_C(1) << 48) - 1);
    g->tensors[i][e] = ftl_dtype_round(tensor(g, i)->dtype, limit * ((float)(seed >> 24) / (float)(1 << 23) - 1.0f));
  }
}

// What a kernel reads before any wrote it shows.
static float *not_numbers(size_t count) {
  float *x = malloc(sizeof *x * count);
  for (size_t e = 0; e < count; e++) x[e] = NAN;
  return x;
}

static int tensor_named(const gradients *g, const char *name) {
  for (int i = 0; i < g->launches[0]->num_tensors; i++)
    if (strcmp(tensor(g, i)->name, name) == 0) return i;
  return -1;
}

static void init(gradients *g, const char *workload, const char *params) {
  *g = (gradients){0};
  ftl_error error = {0};
  const char *words = strcmp(workload, "flash2_bwd") == 0 ? "dq=kernel copy=cp_async mma=mma" : "copy=cp_async mma=mma";
  cr_assert(spec_of_words(&g->spec, workload, words, params, &error) == FTL_OK, "%s", error.message);
  cr_assert(g->spec.workload->build(&g->spec, g->launches, &g->num_launches, &error) == FTL_OK, "%s: %s", params,
            error.message);
  g->a = ftl_attention_of(&g->spec);
  g->seen = reference_block_mask(&g->spec);
  for (int i = 0; i < g->launches[0]->num_tensors; i++) g->tensors[i] = not_numbers(num_elements(tensor(g, i)));
  g->stored_p = tensor_named(g, "p");
  g->dropped_p = tensor_named(g, "dropped");
  g->kept = tensor_named(g, "kept");
  randomise(g, Q, 2.0f);
  randomise(g, K, 1.0f);
  randomise(g, V, 1.0f);
  randomise(g, D_O, 1.0f);
}

void gradients_fini(gradients *g) {
  for (int i = 0; i < FTL_TILE_MAX_TENSORS; i++) free(g->tensors[i]);
  for (int i = 0; i < 3; i++) free(g->expected[i]), free(g->magnitude[i]);
  free(g->seen);
  for (int i = 0; i < g->num_launches; i++) ftl_tile_program_destroy(g->launches[i]);
}

// The sequences of the batch, alone or packed one after another.
static void differentiate(gradients *g) {
  enum { MAX_SEQUENCES = 8 };
  int32_t lengths[MAX_SEQUENCES];
  int64_t num_packed = 0;
  if (g->spec.value[FTL_PARAM_lengths] != 0)
    num_packed = ftl_spec_list(&g->spec, FTL_PARAM_lengths, lengths, MAX_SEQUENCES);
  for (int i = 0; i < 3; i++) {
    g->expected[i] = calloc(num_elements(tensor(g, D_Q + i)), sizeof(double));
    g->magnitude[i] = calloc(num_elements(tensor(g, D_Q + i)), sizeof(double));
  }
  gradient_sequence s = {.a = g->a};
  for (; num_packed == 0 && s.batch < g->a.batch; s.number = ++s.batch) gradients_of_sequence(g, &s);
  for (int64_t i = 0; i < num_packed; s.first += lengths[i++]) {
    s.number = i;
    s.a.seqlen_q = s.a.seqlen_kv = lengths[i];
    gradients_of_sequence(g, &s);
  }
}

// u: unit roundoff of the 16-bit type. P and dS are rounded to it before their products (u of their size; below 2^-14
// in fp16 by 2^-25), and O before delta (u of |O dO|): `magnitude` holds the sum of these sizes. With grouped heads
// each head's part is rounded, and in the end the result. What fp32 and exp2 add (scores of 16 at most, 2^-24 * 16 *
// head_dim of P) is less than a quarter of u. Where P is stored, dP is too, and both are rounded on the way to rowsum(P
// dP) and to dS, which is rounded once more where a launch of its own scales it. Dropout's 1 / (1 - p) comes after the
// roundings where P is not stored.
static double tolerance(const gradients *g, int i, double expected, double magnitude) {
  const ftl_attention *a = &g->a;
  double u = a->dtype == FTL_FP16 ? 0x1p-11 : 0x1p-8, terms = (double)(i == 0 ? a->seqlen_kv : a->seqlen_q);
  double group = (double)(a->heads / a->kv_heads), largest = 2;  // of Q, K and dO
  double scaled = g->dropped_p < 0 ? 1 / (1 - a->dropout_p) : 1;
  return 1.25 * u * magnitude + (group > 1 ? 2 : 1) * u * fabs(expected) + (group > 1 ? u * magnitude : 0) +
         terms * group * largest * scaled * 0x1p-25 + 0x1p-24;
}

// Every element of gradient i is; else where one is not.
static bool is_right(const gradients *g, int i, char *where, size_t size) {
  static const char *const names[] = {"dQ", "dK", "dV"};
  const ftl_tensor *t = tensor(g, D_Q + i);
  for (int64_t batch = 0; batch < t->num_batches; batch++)
    for (int64_t head = 0; head < t->num_heads; head++)
      for (int64_t r = 0; r < t->num_rows; r++)
        for (int32_t d = 0; d < t->num_columns; d++) {
          size_t at = gradients_at(g, (gradient_tensor)(D_Q + i), batch, head, r) + (size_t)d;
          double expected = g->expected[i][at], found = (double)g->tensors[D_Q + i][at];
          double allowed = tolerance(g, i, expected, g->magnitude[i][at]);
          if (fabs(found - expected) <= allowed) continue;
          snprintf(where, size, "%s[%d][%d][%d][%d] is %.9g, not %.9g +- %.2g", names[i], (int)batch, (int)head, (int)r,
                   d, found, expected, allowed);
          return false;
        }
  return true;
}

void gradients_init(gradients *g, const char *workload, const char *params) {
  init(g, workload, params);
  differentiate(g);
}

bool gradients_try(gradients *g, char *where, size_t size) {
  ftl_error error = {0};
  for (int i = 0; i < g->num_launches; i++)
    cr_assert(ftl_interpret(g->launches[i], g->tensors, NULL, &error) == FTL_OK, "%s", error.message);
  for (int i = 0; i < 3; i++)
    if (!is_right(g, i, where, size)) return false;
  return true;
}

void gradients_run(gradients *g, const char *workload, const char *params) {
  char where[128];
  gradients_init(g, workload, params);
  (void)gradients_try(g, where, sizeof where);
}

void gradients_prove(const char *workload, const char *params) {
  static int count;
  gradients g;
  char where[128];
  init(&g, workload, params);
  if (thinned_runs(&count)) {
    differentiate(&g);
    cr_assert(gradients_try(&g, where, sizeof where), "%s %s: %s", workload, params, where);
  }
  gradients_fini(&g);
}
