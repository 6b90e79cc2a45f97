#include "gradient_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tile/dropout.h"

static size_t num_elements(const ftl_tensor *t) { return (size_t)(t->size_bytes / ftl_dtype_bytes(t->dtype)); }

static const ftl_tensor *tensor(const gradients *g, int i) { return &g->launches[0]->tensors[i]; }

float *gradients_row(const gradients *g, gradient_tensor i, int64_t batch, int64_t head, int64_t r) {
  const ftl_tensor *t = tensor(g, (int)i);
  return g->tensors[i] + batch * t->batch_stride + head * t->head_stride + r * t->row_stride;
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
  char text[512], *rest = text;
  snprintf(text, sizeof text, "copy=cp_async mma=mma %s", params);
  cr_assert(ftl_spec_init(&g->spec, workload, &error) == FTL_OK);
  for (char *param; (param = strsep(&rest, " ")) != NULL;) {
    char *value = strchr(param, '=');
    *value++ = '\0';
    cr_assert(ftl_spec_set_text(&g->spec, param, value, &error) == FTL_OK, "%s", error.message);
  }
  cr_assert(ftl_spec_complete(&g->spec, &error) == FTL_OK, "%s", error.message);
  cr_assert(g->spec.workload->build(&g->spec, g->launches, &g->num_launches, &error) == FTL_OK, "%s: %s", params,
            error.message);
  g->a = ftl_attention_of(&g->spec);
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
  for (int i = 0; i < g->num_launches; i++) ftl_tile_program_destroy(g->launches[i]);
}

static double dot(const float *x, const float *y, int32_t n) {
  double sum = 0;
  for (int32_t d = 0; d < n; d++) sum += (double)x[d] * (double)y[d];
  return sum;
}

static size_t element(const gradients *g, int64_t heads, int64_t length, int64_t batch, int64_t head, int64_t r) {
  return (size_t)(((batch * heads + head) * length + r) * g->a.head_dim);
}

// Adds x * y[d] to a row of gradient i, where x was rounded (or computed from what was) with errors in units of `size`.
static void add(gradients *g, int i, size_t at, double x, double size, const float *y) {
  for (int32_t d = 0; d < g->a.head_dim; d++) {
    g->expected[i][at + (size_t)d] += x * (double)y[d];
    g->magnitude[i][at + (size_t)d] += size * fabs((double)y[d]);
  }
}

static bool tile_is_seen(const ftl_attention *a, int64_t m, int64_t n) {
  for (int64_t i = m * a->block_m; i < (m + 1) * a->block_m; i++)
    for (int64_t j = n * a->block_n; j < (n + 1) * a->block_n && j < a->seqlen_kv; j++)
      if (reference_sees(a, i, j)) return true;
  return false;
}

// What the forward pass stores of row i: P, and with dropout what it kept of P, and which. 0 in tiles of which the
// query tile sees something; the others are left alone.
static void clear_stored(const gradients *g, int64_t batch, int64_t head, int64_t i) {
  const ftl_attention *a = &g->a;
  const int stored[] = {g->stored_p, g->dropped_p, g->kept};
  for (int s = 0; s < 3; s++)
    for (int64_t j = 0; stored[s] >= 0 && j < tensor(g, stored[s])->num_columns; j++)
      if (tile_is_seen(a, i / a->block_m, j / a->block_n))
        gradients_row(g, (gradient_tensor)stored[s], batch, head, i)[j] = 0;
}

static void store(const gradients *g, int64_t batch, int64_t head, int64_t i, int64_t j, double p, double kept_scale) {
  float rounded = ftl_dtype_round(g->a.dtype, (float)p);
  if (g->stored_p >= 0) gradients_row(g, (gradient_tensor)g->stored_p, batch, head, i)[j] = rounded;
  if (g->dropped_p < 0) return;
  gradients_row(g, (gradient_tensor)g->dropped_p, batch, head, i)[j] =
      ftl_dtype_round(g->a.dtype, (float)(kept_scale * (double)rounded));
  gradients_row(g, (gradient_tensor)g->kept, batch, head, i)[j] = kept_scale > 0;
}

// 1 / (1 - p) where element (i, j) of P is kept, else 0.
static double kept_scale_of(const gradients *g, int64_t sequence, int64_t i, int64_t j) {
  double p = g->a.dropout_p;
  return p == 0 || ftl_dropout_row_keeps(sequence, i, j, ftl_dropout_row_threshold(p)) ? 1 / (1 - p) : 0;
}

// One query row's share, with m_j = 1 / (1 - dropout_p) or 0: dV_j += p_j m_j dO; ds_j = p_j (m_j dO v_j - dO o) scale;
// dQ += ds_j k_j; dK_j += ds_j q.
static void differentiate_row(gradients *g, int64_t batch, int64_t head, int64_t i) {
  const ftl_attention *a = &g->a;
  int64_t kv_head = head / (a->heads / a->kv_heads);
  double out[256], lse;
  const float *q = gradients_row(g, Q, batch, head, i), *d_o = gradients_row(g, D_O, batch, head, i);
  reference_more more = {.sequence = batch * a->heads + head, .rows_are_streamed = true};
  reference_row_of(a, &more, i, gradients_row(g, Q, batch, head, 0), tensor(g, Q)->row_stride,
                   gradients_row(g, K, batch, kv_head, 0), tensor(g, K)->row_stride,
                   gradients_row(g, V, batch, kv_head, 0), tensor(g, V)->row_stride, out, &lse);
  float *o = gradients_row(g, O, batch, head, i);
  for (int32_t d = 0; d < a->head_dim; d++) o[d] = ftl_dtype_round(a->dtype, (float)out[d]);
  *gradients_row(g, LSE, batch, head, i) = (float)lse;
  double delta = 0, delta_size = 0, terms_size = 0, scale = (double)a->scale;
  for (int32_t d = 0; d < a->head_dim; d++) {
    delta += out[d] * (double)d_o[d];
    delta_size += fabs(out[d] * (double)d_o[d]);
  }
  clear_stored(g, batch, head, i);
  for (int64_t j = 0; j < a->seqlen_kv; j++) {
    if (!reference_sees(a, i, j)) continue;
    double p = exp(dot(q, gradients_row(g, K, batch, kv_head, j), a->head_dim) * scale - lse);
    double kept_scale = kept_scale_of(g, more.sequence, i, j);
    terms_size += p * kept_scale * fabs(dot(d_o, gradients_row(g, V, batch, kv_head, j), a->head_dim));
    store(g, batch, head, i, j, p, kept_scale);
  }
  double roundings = g->dropped_p >= 0 ? 2 : 1;  // of what dropout leaves, and of what it makes of dP
  size_t at = element(g, a->heads, a->seqlen_q, batch, head, i);
  for (int64_t j = 0; j < a->seqlen_kv; j++) {
    if (!reference_sees(a, i, j)) continue;
    const float *k = gradients_row(g, K, batch, kv_head, j), *v = gradients_row(g, V, batch, kv_head, j);
    double kept_scale = kept_scale_of(g, more.sequence, i, j);
    double p = exp(dot(q, k, a->head_dim) * scale - lse), dp = kept_scale * dot(d_o, v, a->head_dim);
    double ds = p * (dp - delta) * scale, size = fabs(ds) + p * delta_size * scale;
    if (g->stored_p >= 0) size = 2 * fabs(ds) + p * roundings * (fabs(dp) + 2 * terms_size) * scale;
    size_t at_key = element(g, a->kv_heads, a->seqlen_kv, batch, kv_head, j);
    add(g, 0, at, ds, size, k);
    add(g, 1, at_key, ds, size, q);
    add(g, 2, at_key, p * kept_scale, p * kept_scale * roundings, d_o);
  }
}

static void differentiate(gradients *g) {
  const ftl_attention *a = &g->a;
  size_t queries = (size_t)(a->batch * a->heads * a->seqlen_q * a->head_dim);
  size_t keys = (size_t)(a->batch * a->kv_heads * a->seqlen_kv * a->head_dim);
  for (int i = 0; i < 3; i++) {
    g->expected[i] = calloc(i == 0 ? queries : keys, sizeof(double));
    g->magnitude[i] = calloc(i == 0 ? queries : keys, sizeof(double));
  }
  for (int64_t batch = 0; batch < a->batch; batch++)
    for (int64_t head = 0; head < a->heads; head++)
      for (int64_t i = 0; i < a->seqlen_q; i++) differentiate_row(g, batch, head, i);
}

// u: unit roundoff of the 16-bit type. P and dS are rounded to it before their products (u of their size; below 2^-14
// in fp16 by 2^-25), and O before delta (u of |O dO|): `magnitude` holds the sum of these sizes. With grouped heads
// each head's part is rounded, and in the end the result. What fp32 and exp2 add (scores of 16 at most, 2^-24 * 16 *
// head_dim of P) is less than a quarter of u. Where P is stored, dP is too, and both are rounded on the way to rowsum(P
// dP) and to dS.
static double tolerance(const gradients *g, int i, double expected, double magnitude) {
  const ftl_attention *a = &g->a;
  double u = a->dtype == FTL_FP16 ? 0x1p-11 : 0x1p-8, terms = (double)(i == 0 ? a->seqlen_kv : a->seqlen_q);
  double group = (double)(a->heads / a->kv_heads), largest = 2;  // of Q, K and dO
  return 1.25 * u * magnitude + (group > 1 ? 2 : 1) * u * fabs(expected) + (group > 1 ? u * magnitude : 0) +
         terms * group * largest * 0x1p-25 + 0x1p-24;
}

static void compare(const gradients *g, int i, int64_t heads, int64_t length, const char *params) {
  static const char *const names[] = {"dQ", "dK", "dV"};
  for (int64_t batch = 0; batch < g->a.batch; batch++)
    for (int64_t head = 0; head < heads; head++)
      for (int64_t r = 0; r < length; r++)
        for (int32_t d = 0; d < g->a.head_dim; d++) {
          size_t at = element(g, heads, length, batch, head, r) + (size_t)d;
          double expected = g->expected[i][at],
                 found = (double)gradients_row(g, (gradient_tensor)(D_Q + i), batch, head, r)[d];
          double allowed = tolerance(g, i, expected, g->magnitude[i][at]);
          cr_assert(fabs(found - expected) <= allowed, "%s: %s[%d][%d][%d][%d] is %.9g, not %.9g +- %.2g", params,
                    names[i], (int)batch, (int)head, (int)r, d, found, expected, allowed);
        }
}

void gradients_run(gradients *g, const char *workload, const char *params) {
  init(g, workload, params);
  differentiate(g);
  ftl_error error = {0};
  for (int i = 0; i < g->num_launches; i++)
    cr_assert(ftl_interpret(g->launches[i], g->tensors, NULL, &error) == FTL_OK, "%s: %s", params, error.message);
}

void gradients_prove(const char *workload, const char *params) {
  gradients g;
  gradients_run(&g, workload, params);
  compare(&g, 0, g.a.heads, g.a.seqlen_q, params);
  compare(&g, 1, g.a.kv_heads, g.a.seqlen_kv, params);
  compare(&g, 2, g.a.kv_heads, g.a.seqlen_kv, params);
  gradients_fini(&g);
}
