// sparq_decode chooses the components and keys that SparQ attention does, by the data that it is given, and computes
// from them what its algorithm says; with all components and keys chosen it is attention.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "pipeline_case.h"

enum { Q, K, K_BY_COLUMN, V, V_MEAN, O, Q_TOP, INV_TAU, SCORES, ALPHA, O_TOP, COMPONENTS, ROWS };
enum { MOST_KEYS = 1024, MOST_HEAD_DIM = 256 };

typedef struct sizes {
  int64_t batch, kv_heads, group, n, d, r, k, local;
  double u;  // unit roundoff of the 16-bit type
} sizes;

static sizes sizes_of(const pipeline_case *c) {
  const int64_t *v = c->spec.value;
  return (sizes){v[FTL_PARAM_batch],     v[FTL_PARAM_kv_heads],    v[FTL_PARAM_heads] / v[FTL_PARAM_kv_heads],
                 v[FTL_PARAM_seqlen_kv], v[FTL_PARAM_head_dim],    v[FTL_PARAM_sparq_r],
                 v[FTL_PARAM_sparq_k],   v[FTL_PARAM_sparq_local], v[FTL_PARAM_dtype] == FTL_FP16 ? 0x1p-11 : 0x1p-8};
}

// The copy of K by columns, and the mean of V.
static void complete_cache(const pipeline_case *c) {
  sizes s = sizes_of(c);
  for (int64_t head = 0; head < s.batch * s.kv_heads; head++)
    for (int64_t column = 0; column < s.d; column++) {
      double sum = 0;
      for (int64_t key = 0; key < s.n; key++) {
        int64_t by_row = (head * s.n + key) * s.d + column;
        c->tensors[K_BY_COLUMN][(head * s.d + column) * s.n + key] = c->tensors[K][by_row];
        sum += (double)c->tensors[V][by_row];
      }
      c->tensors[V_MEAN][head * s.d + column] = (float)(sum / (double)s.n);
    }
}

// `count` numbers below `range`, ascending, whose weights are the largest but for `slack`.
static void check_choice(const pipeline_case *c, const float *chosen, int64_t count, const double *weights,
                         int64_t range, double slack) {
  double least_chosen = INFINITY, most_left = -INFINITY;
  int64_t next = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t number = (int64_t)chosen[i];
    cr_assert(number >= next && number < range, "%s: choice %lld is %lld", c->text, (long long)i, (long long)number);
    for (; next < number; next++) most_left = fmax(most_left, weights[next]);
    least_chosen = fmin(least_chosen, weights[next++]);
  }
  for (; next < range; next++) most_left = fmax(most_left, weights[next]);
  cr_assert(least_chosen >= most_left - slack, "%s: chosen %.9g, left %.9g", c->text, least_chosen, most_left);
}

// tau and the approximate softmax of a query head over all keys, from the chosen components.
static void approximate(const pipeline_case *c, const float *q, const float *keys, const float *components,
                        double *softmax) {
  sizes s = sizes_of(c);
  double all = 0, top = 0, max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < s.d; i++) all += fabs((double)q[i]);
  for (int64_t i = 0; i < s.r; i++) top += fabs((double)q[(int64_t)components[i]]);
  double tau = sqrt((double)s.d * top / all);
  for (int64_t key = 0; key < s.n; key++) {
    double score = 0;
    for (int64_t i = 0; i < s.r; i++) {
      int64_t column = (int64_t)components[i];
      score += (double)q[column] * (double)keys[key * s.d + column];
    }
    softmax[key] = score / tau;
    max = fmax(max, softmax[key]);
  }
  for (int64_t key = 0; key < s.n; key++) sum += softmax[key] = exp(softmax[key] - max);
  for (int64_t key = 0; key < s.n; key++) softmax[key] /= sum;
}

// Attention to the chosen keys.
static void attend(const pipeline_case *c, const float *q, const float *keys, const float *values, const float *rows,
                   double *out) {
  sizes s = sizes_of(c);
  double scores[MOST_KEYS], max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < s.k; i++) {
    scores[i] = 0;
    for (int64_t d = 0; d < s.d; d++) scores[i] += (double)q[d] * (double)keys[(int64_t)rows[i] * s.d + d];
    scores[i] /= sqrt((double)s.d);
    max = fmax(max, scores[i]);
  }
  for (int64_t d = 0; d < s.d; d++) out[d] = 0;
  for (int64_t i = 0; i < s.k; i++) {
    double p = exp(scores[i] - max);
    sum += p;
    for (int64_t d = 0; d < s.d; d++) out[d] += p * (double)values[(int64_t)rows[i] * s.d + d];
  }
  for (int64_t d = 0; d < s.d; d++) out[d] /= sum;
}

// Magnitudes of q and values are at most 2. Scores are sums of at most 256 products of at most 4 in fp32, so within
// 2^-24 * 256 * 1024 / sqrt(D) of exact, and so are the approximate weights, relatively: 2^-9 is ample for both, and
// exact components (fp32 sums of a few 16-bit magnitudes) are within 2^-20. Probabilities and the result are rounded to
// 16 bits (u), each a factor of values of at most 2.
static void check_head(const pipeline_case *c, int64_t head) {
  sizes s = sizes_of(c);
  const float *keys = c->tensors[K] + head * s.n * s.d, *values = c->tensors[V] + head * s.n * s.d;
  const float *components = c->tensors[COMPONENTS] + head * s.r, *rows = c->tensors[ROWS] + head * s.k;
  double magnitudes[MOST_HEAD_DIM] = {0}, weights[MOST_KEYS] = {0}, softmax[MOST_KEYS], top[MOST_HEAD_DIM];
  for (int64_t i = 0; i < s.group; i++) {
    const float *q = c->tensors[Q] + (head * s.group + i) * s.d;
    for (int64_t d = 0; d < s.d; d++) magnitudes[d] += fabs((double)q[d]);
    approximate(c, q, keys, components, softmax);
    for (int64_t key = 0; key < s.n; key++) weights[key] += softmax[key];
  }
  double largest = 0;
  for (int64_t key = 0; key < s.n; key++) largest = fmax(largest, weights[key]);
  check_choice(c, components, s.r, magnitudes, s.d, 0x1p-20);
  // The latest are chosen, and of those before the largest.
  int64_t from_all = s.k - s.local, before = s.n - s.local;
  check_choice(c, rows, from_all, weights, before, 0x1p-9 * largest);
  for (int64_t i = 0; i < s.local; i++)
    cr_assert_eq((int64_t)rows[from_all + i], before + i, "%s: choice %lld is %g", c->text, (long long)(from_all + i),
                 (double)rows[from_all + i]);
  for (int64_t i = 0; i < s.group; i++) {
    const float *q = c->tensors[Q] + (head * s.group + i) * s.d, *o = c->tensors[O] + (head * s.group + i) * s.d;
    double alpha = 0;
    approximate(c, q, keys, components, softmax);
    for (int64_t j = 0; j < s.k; j++) alpha += softmax[(int64_t)rows[j]];
    attend(c, q, keys, values, rows, top);
    for (int64_t d = 0; d < s.d; d++) {
      double expected = alpha * top[d] + (1 - alpha) * (double)c->tensors[V_MEAN][head * s.d + d];
      double allowed = 2 * (2 * s.u + 3 * 0x1p-9) * alpha + s.u * fabs(expected);
      cr_assert(fabs((double)o[d] - expected) <= allowed, "%s: o[%lld][%lld][%lld] is %.9g, not %.9g within %.3g",
                c->text, (long long)head, (long long)i, (long long)d, (double)o[d], expected, allowed);
    }
  }
}

static void prove(const char *params) {
  pipeline_case c;
  pipeline_case_make(&c, "sparq_decode", params);
  complete_cache(&c);
  pipeline_case_execute(&c);
  sizes s = sizes_of(&c);
  for (int64_t head = 0; head < s.batch * s.kv_heads; head++) check_head(&c, head);
  pipeline_case_fini(&c);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(numeric_attention_sparq_decode, what_is_chosen_and_computed_is_what_the_algorithm_says) {
  static const char *const shapes[] = {
      "batch=2 heads=2 head_dim=64 seqlen_kv=200 sparq_r=16 sparq_k=32",
      "heads=8 kv_heads=2 head_dim=128 seqlen_kv=616 sparq_r=32 sparq_k=100",
      "batch=2 heads=16 kv_heads=1 head_dim=72 seqlen_kv=104 sparq_r=48 sparq_k=1",
      "heads=3 head_dim=256 seqlen_kv=1000 sparq_r=64 sparq_k=128 dtype=bf16",
      "batch=2 heads=4 kv_heads=2 head_dim=64 seqlen_kv=200 sparq_r=16 sparq_k=32 sparq_local=8",
      "heads=16 kv_heads=1 head_dim=64 seqlen_kv=616 sparq_r=32 sparq_k=100 sparq_local=99",
      "heads=2 head_dim=64 seqlen_kv=104 sparq_r=32 sparq_k=50 sparq_local=50",
  };
  static const char *const kernels[] = {"block_n=64 num_warps=4", "block_n=256 num_warps=2 num_stages=3",
                                        "block_n=128 num_warps=1 copy=ldg", "block_n=128 num_warps=8"};
  char params[256];
  for (size_t i = 0; i < COUNT(shapes); i++)
    for (size_t j = 0; j < COUNT(kernels); j++) {
      snprintf(params, sizeof params, "%s %s", shapes[i], kernels[j]);
      prove(params);
    }
}

// alpha is 1 and the mean of V without weight.
Test(numeric_attention_sparq_decode, all_components_and_keys_are_attention) {
  pipeline_case c;
  pipeline_case_make(&c, "sparq_decode",
                     "heads=4 kv_heads=2 head_dim=64 seqlen_kv=136 sparq_r=64 sparq_k=136 block_n=64");
  complete_cache(&c);
  sizes s = sizes_of(&c);
  for (int64_t i = 0; i < s.kv_heads * s.d; i++) c.tensors[V_MEAN][i] = 100.0f;
  pipeline_case_execute(&c);
  for (int64_t i = 0; i < 4; i++) {
    cr_assert(fabs((double)c.tensors[ALPHA][i] - 1) < 0x1p-18, "alpha %g", (double)c.tensors[ALPHA][i]);
    double expected[MOST_HEAD_DIM];
    float all[MOST_KEYS];
    for (int k = 0; k < MOST_KEYS; k++) all[k] = (float)k;
    int64_t head = i / s.group;
    attend(&c, c.tensors[Q] + i * s.d, c.tensors[K] + head * s.n * s.d, c.tensors[V] + head * s.n * s.d, all, expected);
    for (int64_t d = 0; d < s.d; d++)
      cr_assert(fabs((double)c.tensors[O][i * s.d + d] - expected[d]) < 2 * (3 * s.u + 0x1p-9), "head %lld",
                (long long)i);
  }
  pipeline_case_fini(&c);
}
