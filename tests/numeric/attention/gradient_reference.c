// The definition: attention's gradients in float64, query row after query row, and the sizes of what kernels round.
#include <math.h>

#include "gradient_case.h"
#include "tile/dropout.h"

static double dot(const float *x, const float *y, int32_t n) {
  double sum = 0;
  for (int32_t d = 0; d < n; d++) sum += (double)x[d] * (double)y[d];
  return sum;
}

static bool sees(const gradients *g, const gradient_sequence *s, int64_t i, int64_t j) {
  return reference_sees(&s->a, i, j) && (g->seen == NULL || g->seen[i * s->a.seqlen_kv + j] != 0);
}

// Row i of the sequence.
static float *row_of(const gradients *g, const gradient_sequence *s, gradient_tensor t, int64_t head, int64_t i) {
  return gradients_row(g, t, s->batch, head, s->first + i);
}

// Adds x * y[d] to a row of gradient i, where x was rounded (or computed from what was) with errors in units of `size`.
static void add(gradients *g, int i, size_t at, double x, double size, const float *y) {
  for (int32_t d = 0; d < (i == 2 ? g->a.head_dim_v : g->a.head_dim); d++) {
    g->expected[i][at + (size_t)d] += x * (double)y[d];
    g->magnitude[i][at + (size_t)d] += size * fabs((double)y[d]);
  }
}

// By causal and window: what a block mask hides is stored as 0.
static bool tile_is_seen(const ftl_attention *a, int64_t m, int64_t n) {
  for (int64_t i = m * a->block_m; i < (m + 1) * a->block_m; i++)
    for (int64_t j = n * a->block_n; j < (n + 1) * a->block_n && j < a->seqlen_kv; j++)
      if (reference_sees(a, i, j)) return true;
  return false;
}

// What the forward pass stores of row i: P, and with dropout what it kept of P, and which. 0 in tiles of which the
// query tile sees something; the others are left alone. Whole rows where launches take whole matrices.
static void clear_stored(const gradients *g, const gradient_sequence *s, int64_t head, int64_t i) {
  const ftl_attention *a = &g->a;
  const int stored[] = {g->stored_p, g->dropped_p, g->kept};
  bool whole = g->spec.value[FTL_PARAM_elementwise] != FTL_ELEMENTWISE_EPILOGUE;
  for (int k = 0; k < 3; k++)
    for (int64_t j = 0; stored[k] >= 0 && j < g->launches[0]->tensors[stored[k]].num_columns; j++)
      if (whole || tile_is_seen(a, i / a->block_m, j / a->block_n))
        row_of(g, s, (gradient_tensor)stored[k], head, i)[j] = 0;
}

static void store(const gradients *g, const gradient_sequence *s, int64_t head, int64_t i, int64_t j, double p,
                  double kept_scale) {
  float rounded = ftl_dtype_round(g->a.dtype, (float)p);
  if (g->stored_p >= 0) row_of(g, s, (gradient_tensor)g->stored_p, head, i)[j] = rounded;
  if (g->dropped_p < 0) return;
  row_of(g, s, (gradient_tensor)g->dropped_p, head, i)[j] =
      ftl_dtype_round(g->a.dtype, (float)(kept_scale * (double)rounded));
  row_of(g, s, (gradient_tensor)g->kept, head, i)[j] = kept_scale > 0;
}

// 1 / (1 - p) where element (i, j) of P is kept, else 0. Unfused kernels drop by rows, others by fragments.
static double kept_scale_of(const gradients *g, int64_t sequence, int64_t i, int64_t j) {
  double p = g->a.dropout_p;
  if (p == 0) return 1;
  bool kept = g->dropped_p >= 0 ? ftl_dropout_row_keeps(sequence, i, j, ftl_dropout_row_threshold(p))
                                : ftl_dropout_keeps(sequence, i, j, ftl_dropout_threshold(p));
  return kept ? 1 / (1 - p) : 0;
}

// What the backward pass takes from the forward pass, O (rounded) and the LSE; gives both exactly.
static void attend_row(const gradients *g, const gradient_sequence *s, const reference_more *more, int64_t head,
                       int64_t i, double *out, double *lse) {
  int64_t kv_head = head / (g->a.heads / g->a.kv_heads);
  const ftl_tensor *t = g->launches[0]->tensors;
  reference_row_of(&s->a, more, i, row_of(g, s, Q, head, 0), t[Q].row_stride, row_of(g, s, K, kv_head, 0),
                   t[K].row_stride, row_of(g, s, V, kv_head, 0), t[V].row_stride, out, lse);
  for (int32_t d = 0; d < g->a.head_dim_v; d++)
    row_of(g, s, O, head, i)[d] = ftl_dtype_round(g->a.dtype, (float)out[d]);
  *row_of(g, s, LSE, head, i) = (float)*lse;
}

// One query row's share, with m_j = 1 / (1 - dropout_p) or 0: dV_j += p_j m_j dO; ds_j = p_j (m_j dO v_j - dO o) scale;
// dQ += ds_j k_j; dK_j += ds_j q.
static void differentiate_row(gradients *g, const gradient_sequence *s, int64_t head, int64_t i) {
  const ftl_attention *a = &s->a;
  int64_t kv_head = head / (a->heads / a->kv_heads);
  double out[REFERENCE_MOST_COLUMNS], lse;
  const float *q = row_of(g, s, Q, head, i), *d_o = row_of(g, s, D_O, head, i);
  reference_more more = {
      .seen = g->seen, .sequence = s->number * a->heads + head, .rows_are_streamed = g->dropped_p >= 0};
  attend_row(g, s, &more, head, i, out, &lse);
  double delta = 0, delta_size = 0, terms_size = 0, scale = (double)a->scale;
  for (int32_t d = 0; d < a->head_dim_v; d++) {
    delta += out[d] * (double)d_o[d];
    delta_size += fabs(out[d] * (double)d_o[d]);
  }
  clear_stored(g, s, head, i);
  for (int64_t j = 0; j < a->seqlen_kv; j++) {
    if (!sees(g, s, i, j)) continue;
    double p = exp(dot(q, row_of(g, s, K, kv_head, j), a->head_dim) * scale - lse);
    double kept_scale = kept_scale_of(g, more.sequence, i, j);
    terms_size += p * kept_scale * fabs(dot(d_o, row_of(g, s, V, kv_head, j), a->head_dim_v));
    store(g, s, head, i, j, p, kept_scale);
  }
  double roundings = g->dropped_p >= 0 ? 2 : 1;  // of what dropout leaves, and of what it makes of dP
  double roundings_of_ds = g->spec.value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_SEPARATE ? 3 : 2;
  // P dP is rounded, too, before its rows are summed.
  int64_t elementwise = g->spec.value[FTL_PARAM_elementwise];
  bool weighed_apart = elementwise == FTL_ELEMENTWISE_EAGER_BADDBMM || elementwise == FTL_ELEMENTWISE_EAGER_EINSUM;
  double roundings_of_dp = roundings + weighed_apart;
  size_t at = gradients_at(g, D_Q, s->batch, head, s->first + i);
  for (int64_t j = 0; j < a->seqlen_kv; j++) {
    if (!sees(g, s, i, j)) continue;
    const float *k = row_of(g, s, K, kv_head, j), *v = row_of(g, s, V, kv_head, j);
    double kept_scale = kept_scale_of(g, more.sequence, i, j);
    double p = exp(dot(q, k, a->head_dim) * scale - lse), dp = kept_scale * dot(d_o, v, a->head_dim_v);
    double ds = p * (dp - delta) * scale, size = fabs(ds) + p * delta_size * scale;
    if (g->stored_p >= 0) size = roundings_of_ds * fabs(ds) + p * roundings_of_dp * (fabs(dp) + 2 * terms_size) * scale;
    size_t at_key = gradients_at(g, D_K, s->batch, kv_head, s->first + j);
    add(g, 0, at, ds, size, k);
    add(g, 1, at_key, ds, size, q);
    add(g, 2, gradients_at(g, D_V, s->batch, kv_head, s->first + j), p * kept_scale, p * kept_scale * roundings, d_o);
  }
}

void gradients_of_sequence(gradients *g, const gradient_sequence *s) {
  for (int64_t head = 0; head < s->a.heads; head++)
    for (int64_t i = 0; i < s->a.seqlen_q; i++) differentiate_row(g, s, head, i);
}
