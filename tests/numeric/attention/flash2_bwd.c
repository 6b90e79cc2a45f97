// flash2_bwd computes the gradients of attention: dQ, dK and dV against float64, over lengths, blocks, stages and
// grouped heads. The forward results that it reads (O, LSE) come from float64 too.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"
#include "tile/interpreter.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { Q, K, V, O, D_O, LSE, DELTA, D_Q, D_K, D_V, NUM_NAMED };  // as the workload declares them

typedef struct gradients {
  ftl_spec spec;
  ftl_attention a;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches;
  float *tensors[FTL_TILE_MAX_TENSORS];
  double *expected[3];   // dQ, dK, dV: [batch][head][row][head_dim]
  double *magnitude[3];  // of the terms that are rounded on the way to it, all positive
} gradients;

static size_t num_elements(const ftl_tensor *t) { return (size_t)(t->size_bytes / ftl_dtype_bytes(t->dtype)); }

static const ftl_tensor *tensor(const gradients *g, int i) { return &g->launches[0]->tensors[i]; }

static float *row(const gradients *g, int i, int64_t batch, int64_t head, int64_t r) {
  const ftl_tensor *t = tensor(g, i);
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

static void init(gradients *g, const char *params) {
  *g = (gradients){0};
  ftl_error error = {0};
  char text[512], *rest = text;
  snprintf(text, sizeof text, "copy=cp_async mma=mma %s", params);
  cr_assert(ftl_spec_init(&g->spec, "flash2_bwd", &error) == FTL_OK);
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
  randomise(g, Q, 2.0f);
  randomise(g, K, 1.0f);
  randomise(g, V, 1.0f);
  randomise(g, D_O, 1.0f);
}

static void fini(gradients *g) {
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

// One query row's share: dV_j += p_j dO; ds_j = p_j (dO v_j - dO o) scale; dQ += ds_j k_j; dK_j += ds_j q.
static void differentiate_row(gradients *g, int64_t batch, int64_t head, int64_t i) {
  const ftl_attention *a = &g->a;
  int64_t kv_head = head / (a->heads / a->kv_heads);
  double out[256], lse;
  const float *q = row(g, Q, batch, head, i), *d_o = row(g, D_O, batch, head, i);
  reference_row(a, i, row(g, Q, batch, head, 0), tensor(g, Q)->row_stride, row(g, K, batch, kv_head, 0),
                tensor(g, K)->row_stride, row(g, V, batch, kv_head, 0), tensor(g, V)->row_stride, out, &lse);
  float *o = row(g, O, batch, head, i);
  for (int32_t d = 0; d < a->head_dim; d++) o[d] = ftl_dtype_round(a->dtype, (float)out[d]);
  *row(g, LSE, batch, head, i) = (float)lse;
  double delta = 0, delta_size = 0, scale = (double)a->scale;
  for (int32_t d = 0; d < a->head_dim; d++) {
    delta += out[d] * (double)d_o[d];
    delta_size += fabs(out[d] * (double)d_o[d]);
  }
  size_t at = element(g, a->heads, a->seqlen_q, batch, head, i);
  for (int64_t j = 0; j < a->seqlen_kv; j++) {
    if (!reference_sees(a, i, j)) continue;
    const float *k = row(g, K, batch, kv_head, j), *v = row(g, V, batch, kv_head, j);
    double p = exp(dot(q, k, a->head_dim) * scale - lse);
    double ds = p * (dot(d_o, v, a->head_dim) - delta) * scale, size = fabs(ds) + p * delta_size * scale;
    size_t at_key = element(g, a->kv_heads, a->seqlen_kv, batch, kv_head, j);
    add(g, 0, at, ds, size, k);
    add(g, 1, at_key, ds, size, q);
    add(g, 2, at_key, p, p, d_o);
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
// head_dim of P) is less than a quarter of u.
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
          double expected = g->expected[i][at], found = (double)row(g, D_Q + i, batch, head, r)[d];
          double allowed = tolerance(g, i, expected, g->magnitude[i][at]);
          cr_assert(fabs(found - expected) <= allowed, "%s: %s[%d][%d][%d][%d] is %.9g, not %.9g +- %.2g", params,
                    names[i], (int)batch, (int)head, (int)r, d, found, expected, allowed);
        }
}

static void prove(const char *params) {
  gradients g;
  init(&g, params);
  differentiate(&g);
  ftl_error error = {0};
  for (int i = 0; i < g.num_launches; i++)
    cr_assert(ftl_interpret(g.launches[i], g.tensors, NULL, &error) == FTL_OK, "%s: %s", params, error.message);
  compare(&g, 0, g.a.heads, g.a.seqlen_q, params);
  compare(&g, 1, g.a.kv_heads, g.a.seqlen_kv, params);
  compare(&g, 2, g.a.kv_heads, g.a.seqlen_kv, params);
  fini(&g);
}

Test(numeric_attention_flash2_bwd, every_pair_of_lengths_gives_the_gradients) {
  // Around the boundaries of a step (16) and of the rows that a CTA keeps (64), alone and in pairs.
  static const int lengths[] = {1, 15, 16, 17, 63, 64, 65, 130};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++) {
        snprintf(params, sizeof params, "heads=1 head_dim=16 block_m=16 block_n=64 causal=%d seqlen_q=%d seqlen_kv=%d",
                 causal, lengths[q], lengths[kv]);
        prove(params);
      }
}

Test(numeric_attention_flash2_bwd, any_blocks_stages_and_instructions_give_the_gradients) {
  static const char *const blocks[] = {"block_m=16 block_n=64", "block_m=48 block_n=64", "block_m=64 block_n=128"};
  static const char *const machines[] = {"copy=ldg mma=mma", "copy=cp_async mma=mma", "copy=tma mma=wgmma"};
  char params[256];
  for (size_t b = 0; b < COUNT(blocks); b++)
    for (size_t m = 0; m < COUNT(machines); m++)
      for (int stages = 1; stages <= (m == 0 ? 2 : 4); stages++) {
        snprintf(params, sizeof params, "heads=1 head_dim=32 seqlen_q=150 seqlen_kv=170 causal=%d num_stages=%d %s %s",
                 stages % 2, stages, blocks[b], machines[m]);
        prove(params);
      }
}

Test(numeric_attention_flash2_bwd, grouped_heads_layouts_orders_and_types_give_the_gradients) {
  static const char *const heads[] = {"heads=2", "heads=4 kv_heads=2", "heads=3 kv_heads=1"};
  static const char *const orders[] = {"layout=bhsd", "layout=bshd tile_reverse=true",
                                       "tile_order=head_first dtype=bf16"};
  static const char *const head_dims[] = {"head_dim=24", "head_dim=128"};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t o = 0; o < COUNT(orders); o++)
      for (size_t d = 0; d < COUNT(head_dims); d++) {
        snprintf(params, sizeof params, "batch=2 seqlen_q=70 seqlen_kv=90 causal=true block_m=16 block_n=64 %s %s %s",
                 heads[h], orders[o], head_dims[d]);
        prove(params);
      }
}

Test(numeric_attention_flash2_bwd, windows_give_the_gradients_of_the_pairs_within) {
  static const int windows[] = {1, 15, 16, 17, 64, 90, 1000};
  static const char *const lengths_of[] = {"seqlen_q=150 seqlen_kv=150", "seqlen_q=90 seqlen_kv=170",
                                           "seqlen_q=170 seqlen_kv=90"};
  char params[256];
  for (size_t w = 0; w < COUNT(windows); w++)
    for (size_t l = 0; l < COUNT(lengths_of); l++)
      for (int causal = 0; causal < 2; causal++) {
        snprintf(params, sizeof params, "heads=1 head_dim=16 block_m=16 block_n=64 window=%d causal=%d %s", windows[w],
                 causal, lengths_of[l]);
        prove(params);
      }
}

Test(numeric_attention_flash2_bwd, atomics_give_the_gradients_of_every_pair_of_lengths) {
  static const int lengths[] = {1, 16, 17, 63, 64, 65, 130};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++) {
        snprintf(params, sizeof params,
                 "dq=atomics heads=1 head_dim=32 block_m=32 block_n=64 num_warps=4 causal=%d seqlen_q=%d seqlen_kv=%d",
                 causal, lengths[q], lengths[kv]);
        prove(params);
      }
}

Test(numeric_attention_flash2_bwd, atomics_with_any_heads_blocks_and_stages_give_the_gradients) {
  static const char *const cases[] = {
      "heads=2 seqlen_q=150 seqlen_kv=170 head_dim=128",
      "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=200 head_dim=24 causal=true layout=bshd",
      "heads=3 kv_heads=1 batch=2 seqlen_q=130 seqlen_kv=60 head_dim=64 causal=true dtype=bf16 block_m=128",
      "heads=1 seqlen_q=200 seqlen_kv=150 head_dim=96 tile_order=head_first tile_reverse=true",
      "heads=2 kv_heads=1 seqlen_q=350 seqlen_kv=300 head_dim=64 window=50 block_m=64 block_n=64 causal=true",
      "heads=1 seqlen_q=300 seqlen_kv=350 head_dim=32 window=100 block_m=32 block_n=64 num_warps=4",
  };
  char params[256];
  for (size_t i = 0; i < COUNT(cases); i++)
    for (int stages = 1; stages <= 3; stages++) {
      snprintf(params, sizeof params, "dq=atomics num_stages=%d %s", stages, cases[i]);
      prove(params);
    }
}

static void expect_no_gradient_where_no_key_is_seen(const char *params) {
  // With 200 queries and 40 keys, aligned at the bottom right, queries 0 to 159 see none.
  gradients g;
  init(&g, params);
  differentiate(&g);
  ftl_error error = {0};
  for (int i = 0; i < g.num_launches; i++)
    cr_assert(ftl_interpret(g.launches[i], g.tensors, NULL, &error) == FTL_OK, "%s", error.message);
  for (int64_t r = 0; r < 160; r++)
    for (int d = 0; d < 16; d++) cr_assert(row(&g, D_Q, 0, 0, r)[d] == 0.0f, "%s: row %d", params, (int)r);
  fini(&g);
}

Test(numeric_attention_flash2_bwd, queries_that_see_no_key_have_no_gradient) {
  expect_no_gradient_where_no_key_is_seen(
      "heads=1 head_dim=16 seqlen_q=200 seqlen_kv=40 causal=true block_m=16 block_n=64");
  expect_no_gradient_where_no_key_is_seen("heads=1 head_dim=16 seqlen_q=200 seqlen_kv=40 causal=true dq=atomics");
}
