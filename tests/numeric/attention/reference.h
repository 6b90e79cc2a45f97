// Attention in float64, as a definition: no tiles, no running maximum.
#ifndef FTL_TESTS_REFERENCE_H
#define FTL_TESTS_REFERENCE_H

#include "workloads/attention.h"

// q, k, v: one head each, rows of head_dim (v: head_dim_v) floats at the given row strides. out: head_dim_v numbers of
// query row i; lse: its log-sum-exp. A row that sees no key gives zeros and -inf. True where the mask lets query i see
// key j. From then on the queries are the last keys and see, of these, themselves and what they follow: of each query
// after the first, the one that it follows; a window counts these. NULL: masks again.
enum { REFERENCE_MOST_COLUMNS = 512 };  // of `out`
void reference_set_parents(const int32_t *parents);
bool reference_sees(const ftl_attention *a, int64_t i, int64_t j);
// What a block mask lets queries see, by its definition: [seqlen_q][seqlen_kv], to be freed; NULL where there is none.
uint8_t *reference_block_mask(const ftl_spec *spec);
void reference_row(const ftl_attention *a, int64_t i, const float *q, int64_t q_stride, const float *k,
                   int64_t k_stride, const float *v, int64_t v_stride, double *out, double *lse);
// What else decides attention; zeros: nothing.
typedef struct reference_more {
  const uint8_t *seen;     // [seqlen_q][seqlen_kv], 0 where a pair is hidden whatever causal and window say
  const float *key_bias;   // added to the scores of each key
  int64_t sequence;        // of dropout: batch * heads + head
  bool rows_are_streamed;  // dropout takes the numbers of kernels that stream rows
} reference_more;
// The same with that, and with what dropout drops of P left out, and 1 / (1 - p) for it. It does not change the
// log-sum-exp.
void reference_row_of(const ftl_attention *a, const reference_more *more, int64_t i, const float *q, int64_t q_stride,
                      const float *k, int64_t k_stride, const float *v, int64_t v_stride, double *out, double *lse);

#endif
