// SparQ attention: a step of decoding that reads a part of the cache. Source: L. Ribar et al., "SparQ Attention:
// Bandwidth-Efficient LLM Inference", arXiv:2312.04985, algorithm 1; query heads that share a KV head choose together.
//
//   1  i1 = the r components in which |q|, summed over the heads of a group, is largest
//   2  s = softmax(q[i1] K[:, i1]^T / tau), tau = sqrt(D |q[i1]| / |q|) (sums of magnitudes): r columns of K are read,
//      from a second copy of K that is stored by columns
//   3  i2 = the k keys for which s, summed over the heads of a group, is largest; alpha = the sum of s over i2. The
//      latest sparq_local keys are always among the k, whatever their s (local_k in the authors' code)
//   4  y = softmax(q K[i2]^T / sqrt(D)) V[i2]: k rows of K and V are read
//   5  o = alpha y + (1 - alpha) mean of V, a running mean that is kept beside the cache
//
// Each step is a launch; what it chooses it writes to memory, and the launches after it gather by it.
#ifndef FTL_WORKLOADS_SPARQ_H
#define FTL_WORKLOADS_SPARQ_H

#include "workloads/attention.h"

typedef struct ftl_sparq {
  const ftl_spec *spec;
  ftl_builder *b;
  ftl_attention a;
  int64_t group;  // query heads of a KV head
  int32_t r, k, num_warps, num_stages;
  int32_t local;  // of the k keys, the latest, which are always chosen
  // Tensors, declared alike in every launch: [batch][KV head][query head of the group, or key][column].
  int32_t q, keys, keys_by_column, v, v_mean, o;
  int32_t components, rows;                      // tables [batch][KV head]: what steps 1 and 3 choose
  int32_t q_top, inv_tau, scores, alpha, o_top;  // what is left for the launches after
} ftl_sparq;

// Rows row .. row + rows - 1 of a tensor of (batch, KV head).
ftl_tile_ref ftl_sparq_ref(int32_t tensor, ftl_expr batch, ftl_expr kv_head, ftl_expr row, int32_t rows,
                           int32_t columns);
// Entries of a table that (batch, KV head) has: from which on, and rows of a tensor gathered by them, each `stride`
// elements from the next.
ftl_expr ftl_sparq_first_entry(const ftl_sparq *s, ftl_expr batch, ftl_expr kv_head, int32_t count);
ftl_pages ftl_sparq_gather(int32_t table, ftl_expr first_entry, int64_t stride);

// The launches: steps 1 and 3 in sparq_choose.c, 2, 4 and 5 in sparq_attend.c.
void ftl_sparq_build_components(ftl_sparq *s);
void ftl_sparq_build_scores(ftl_sparq *s);
void ftl_sparq_build_keys(ftl_sparq *s);
void ftl_sparq_build_attend(ftl_sparq *s);
void ftl_sparq_build_mean(ftl_sparq *s);

// Of a row whose approximate scores a CTA holds in registers in step 3.
enum { FTL_SPARQ_MOST_KEYS = 65536 };

#endif
