#include "reference.h"

#include <math.h>

#include "tile/dropout.h"

static const int32_t *parents;  // from query 1 on

void reference_set_parents(const int32_t *of_tree) { parents = of_tree; }

static bool follows(int64_t i, int64_t ancestor) {
  return i == ancestor || (i > 0 && follows(parents[i - 1], ancestor));
}

static int64_t depth_of(int64_t i) { return i == 0 ? 0 : 1 + depth_of(parents[i - 1]); }

// Places of tokens are those of their depths: the window of one at depth d ends d keys behind that of the first.
static bool tree_sees(const ftl_attention *a, int64_t i, int64_t j) {
  int64_t first_of_tree = a->seqlen_kv - a->seqlen_q, other = j - first_of_tree;
  int64_t distance = depth_of(i) - (other < 0 ? other : depth_of(other));
  return (other < 0 || follows(i, other)) && (a->window == 0 || distance < a->window);
}

bool reference_sees(const ftl_attention *a, int64_t i, int64_t j) {
  if (parents != NULL) return tree_sees(a, i, j);
  int64_t aligned = i + a->seqlen_kv - a->seqlen_q;
  if (a->causal && j > aligned) return false;
  if (a->window == 0) return true;
  return j > aligned - a->window && (a->causal || j < aligned + a->window);
}

static bool sees(const ftl_attention *a, const reference_more *more, int64_t i, int64_t j) {
  return reference_sees(a, i, j) && (more->seen == NULL || more->seen[i * a->seqlen_kv + j] != 0);
}

static bool drops(const ftl_attention *a, const reference_more *more, int64_t i, int64_t j) {
  if (a->dropout_p == 0) return false;
  if (more->rows_are_streamed)
    return !ftl_dropout_row_keeps(more->sequence, i, j, ftl_dropout_row_threshold(a->dropout_p));
  return !ftl_dropout_keeps(more->sequence, i, j, ftl_dropout_threshold(a->dropout_p));
}

static double score(const ftl_attention *a, const float *q, const float *k) {
  double sum = 0;
  for (int32_t d = 0; d < a->head_dim; d++) sum += (double)q[d] * (double)k[d];
  return sum * (double)a->scale;
}

void reference_row(const ftl_attention *a, int64_t i, const float *q, int64_t q_stride, const float *k,
                   int64_t k_stride, const float *v, int64_t v_stride, double *out, double *lse) {
  ftl_attention nothing_dropped = *a;
  nothing_dropped.dropout_p = 0;
  reference_row_of(&nothing_dropped, &(reference_more){0}, i, q, q_stride, k, k_stride, v, v_stride, out, lse);
}

void reference_row_of(const ftl_attention *a, const reference_more *more, int64_t i, const float *q, int64_t q_stride,
                      const float *k, int64_t k_stride, const float *v, int64_t v_stride, double *out, double *lse) {
  double max = -INFINITY, sum = 0;
  for (int32_t d = 0; d < a->head_dim_v; d++) out[d] = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = 0; j < a->seqlen_kv; j++) {
      if (!sees(a, more, i, j)) continue;
      double s = score(a, q + i * q_stride, k + j * k_stride) + (more->key_bias ? (double)more->key_bias[j] : 0);
      if (pass == 0) max = fmax(max, s);
      if (pass == 0 || isinf(max)) continue;
      double p = exp(s - max);
      sum += p;
      bool dropped = drops(a, more, i, j);
      for (int32_t d = 0; d < a->head_dim_v && !dropped; d++) out[d] += p * (double)v[j * v_stride + d];
    }
  *lse = sum > 0 ? max + log(sum) : -INFINITY;
  for (int32_t d = 0; d < a->head_dim_v && sum > 0; d++) out[d] /= sum * (1 - a->dropout_p);
}
