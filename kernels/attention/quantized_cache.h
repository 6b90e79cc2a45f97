/* The quantised KV cache of a case: K and V of a problem in fewer bits, each group of adjacent elements of a token with
 * a scale of its own (per-token groups: arXiv:2303.06865, arXiv:2402.02750). */
#pragma once

#include "attention.h"
#include "cases.h"
#include "kv_format.h"
#include "pool.h"

/* The column kv_dtype; empty: the case has none, or its cache is f16. */
std::string kv_format_name(const Case &c);

struct QuantizedCache {
  StoredKeys stored;

  /* Quantises `k` and `v` ([batch][kv_heads][seqlen_kv][head_dim]) as columns kv_dtype and kv_group_size say, and puts
   * what the stored numbers mean back in their place, for the reference. */
  void fill(const Case &c, const Problem &p, __half *k, __half *v);

 private:
  Pool k_pool, v_pool, k_scale_pool, v_scale_pool;
};
