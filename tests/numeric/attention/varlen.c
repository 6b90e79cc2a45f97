// flash1_fwd, flash2_fwd and flash3_fwd of packed sequences of several lengths: each query sees the keys of its own
// sequence, once, and no row of another sequence is written.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline_case.h"
#include "reference.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { Q, K, V, O, LSE, MAX_SEQUENCES = 8 };

typedef struct packed_case {
  pipeline_case run;
  ftl_attention a;
  ftl_tensor_shape queries, keys, values, outputs;
  int32_t lengths[MAX_SEQUENCES];
  int64_t num_sequences, num_tokens;
} packed_case;

static packed_case run(const char *workload, const char *params) {
  packed_case c = {.num_tokens = 0};
  pipeline_case_run(&c.run, workload, params);
  c.a = ftl_attention_of(&c.run.spec);
  c.num_sequences = ftl_spec_list(&c.run.spec, FTL_PARAM_lengths, c.lengths, MAX_SEQUENCES);
  for (int64_t i = 0; i < c.num_sequences; i++) c.num_tokens += c.lengths[i];
  c.queries = ftl_attention_shape(&c.run.spec, c.a.heads, c.num_tokens, c.a.head_dim);
  c.keys = ftl_attention_shape(&c.run.spec, c.a.kv_heads, c.num_tokens, c.a.head_dim);
  c.values = ftl_attention_shape(&c.run.spec, c.a.kv_heads, c.num_tokens, c.a.head_dim_v);
  c.outputs = ftl_attention_shape(&c.run.spec, c.a.heads, c.num_tokens, c.a.head_dim_v);
  return c;
}

// Dropout scales the output, and its error.
static double output_tolerance(const ftl_attention *a, double expected) {
  double keep = 1 - a->dropout_p;
  return pipeline_output_tolerance(a, expected * keep) / keep;
}

static void check_sequence(const packed_case *c, int64_t sequence, int64_t first, int64_t head) {
  ftl_attention a = c->a;
  reference_more more = {.sequence = sequence * a.heads + head};
  int64_t length = c->lengths[sequence], kv_head = head / (a.heads / a.kv_heads);
  int64_t at = head * c->queries.head_stride + first * c->queries.row_stride;
  int64_t keys_at = kv_head * c->keys.head_stride + first * c->keys.row_stride;
  int64_t values_at = kv_head * c->values.head_stride + first * c->values.row_stride;
  int64_t outputs_at = head * c->outputs.head_stride + first * c->outputs.row_stride;
  a.seqlen_q = a.seqlen_kv = length;
  for (int64_t i = 0; i < length; i++) {
    double out[REFERENCE_MOST_COLUMNS], lse, found = (double)c->run.tensors[LSE][head * c->num_tokens + first + i];
    reference_row_of(&a, &more, i, c->run.tensors[Q] + at, c->queries.row_stride, c->run.tensors[K] + keys_at,
                     c->keys.row_stride, c->run.tensors[V] + values_at, c->values.row_stride, out, &lse);
    cr_assert_float_eq(found, lse, pipeline_lse_tolerance(&a, lse), "%s: LSE %g, not %g", c->run.text, found, lse);
    for (int32_t d = 0; d < a.head_dim_v; d++) {
      found = (double)c->run.tensors[O][outputs_at + i * c->outputs.row_stride + d];
      cr_assert_float_eq(found, out[d], output_tolerance(&a, out[d]), "%s: token %lld O[%d] is %g, not %g", c->run.text,
                         (long long)(first + i), d, found, out[d]);
    }
  }
}

static int64_t sequence_of(const packed_case *c, int64_t token, int64_t *first) {
  int64_t sequence = 0;
  for (*first = 0; token >= *first + c->lengths[sequence]; sequence++) *first += c->lengths[sequence];
  return sequence;
}

static void check_visits(packed_case *c) {
  ftl_pair_visits visits = {.queries = Q, .keys = K};
  ftl_error error = {0};
  int64_t n = c->num_tokens;
  visits.counts = calloc((size_t)(c->a.heads * n), (size_t)n);
  cr_assert_eq(ftl_interpret(c->run.launches[0], c->run.tensors, &visits, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(visits.num_outside, 0, "%s", c->run.text);
  for (int64_t row = 0; row < c->a.heads * n; row++) {
    int64_t first, sequence = sequence_of(c, row % n, &first);
    ftl_attention a = c->a;
    a.seqlen_q = a.seqlen_kv = c->lengths[sequence];
    for (int64_t j = 0; j < n; j++) {
      bool inside = j >= first && j < first + a.seqlen_kv;
      int expected = inside && reference_sees(&a, row % n - first, j - first);
      cr_assert_eq(visits.counts[row * n + j], expected, "%s: row %lld met key %lld", c->run.text, (long long)row,
                   (long long)j);
    }
  }
  free(visits.counts);
}

static void prove_of(const char *workload, const char *params) {
  packed_case c = run(workload, params);
  int64_t first = 0;
  for (int64_t i = 0; i < c.num_sequences; first += c.lengths[i++])
    for (int64_t head = 0; head < c.a.heads; head++) check_sequence(&c, i, first, head);
  check_visits(&c);
  pipeline_case_fini(&c.run);
}

static void prove(const char *params) { prove_of("flash2_fwd", params); }

// Sequences of one token, of less than a tile, of tiles and one more.
static const char *const lengths[] = {"1:1", "5:64:70", "33:1:130x2", "16:17:15"};

Test(numeric_attention_varlen, each_sequence_attends_to_itself_under_every_schedule) {
  static const char *const kinds[] = {"num_stages=2",
                                      "num_stages=1",
                                      "num_stages=3 persistent=1",
                                      "num_stages=3 refill=late",
                                      "schedule=interleaved",
                                      "schedule=interleaved mask_steps=unrolled",
                                      "num_stages=2 tile_reverse=1",
                                      "num_stages=2 tile_order=head_first layout=bshd"};
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++)
    for (size_t k = 0; k < COUNT(kinds); k++)
      for (int causal = 0; causal < 2; causal++) {
        snprintf(params, sizeof params,
                 "heads=2 kv_heads=1 head_dim=24 lengths=%s block_m=64 block_n=32 num_warps=4 causal=%d %s", lengths[l],
                 causal, kinds[k]);
        prove(params);
      }
}

Test(numeric_attention_varlen, values_may_have_columns_of_their_own) {
  static const char *const kinds[] = {"head_dim=48 head_dim_v=24 num_stages=2 causal=1",
                                      "head_dim=24 head_dim_v=48 num_stages=1",
                                      "head_dim=16 head_dim_v=40 persistent=1"};
  char params[256];
  for (size_t k = 0; k < COUNT(kinds); k++) {
    snprintf(params, sizeof params, "heads=4 kv_heads=2 lengths=5:64:70 block_m=64 block_n=32 num_warps=4 %s",
             kinds[k]);
    prove(params);
    prove_of("flash3_fwd",
             "heads=2 lengths=5:64:70 block_m=128 block_n=32 mma=wgmma copy=tma head_dim=64 head_dim_v=32");
  }
}

Test(numeric_attention_varlen, products_back_to_back_stop_at_each_sequences_end) {
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++) {
    snprintf(params, sizeof params,
             "heads=2 kv_heads=1 head_dim=24 lengths=%s block_m=64 block_n=64 schedule=back_to_back causal=%d mma=mma",
             lengths[l], (int)(l % 2));
    prove(params);
  }
}

// As many random numbers as a batch of equally long sequences draws: row and column count from a sequence's first.
Test(numeric_attention_varlen, dropout_draws_for_each_sequence_by_its_number) {
  static const char *const kinds[] = {"num_stages=2 dropout_p=0.1", "schedule=interleaved dropout_p=0.5",
                                      "num_stages=3 persistent=1 causal=1 dropout_p=0.3",
                                      "num_stages=2 tile_order=head_first layout=bshd window=20 dropout_p=0.9"};
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++)
    for (size_t k = 0; k < COUNT(kinds); k++) {
      snprintf(params, sizeof params, "heads=2 kv_heads=1 head_dim=24 lengths=%s block_m=64 block_n=32 num_warps=4 %s",
               lengths[l], kinds[k]);
      prove(params);
    }
}

Test(numeric_attention_varlen, a_window_ends_with_the_sequence) {
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++)
    for (int window = 1; window <= 41; window += 20) {
      snprintf(params, sizeof params,
               "heads=1 head_dim=16 lengths=%s block_m=32 block_n=16 num_warps=2 num_stages=2 causal=1 window=%d",
               lengths[l], window);
      prove(params);
    }
}

Test(numeric_attention_varlen, any_copy_and_layout_gives_the_same) {
  static const char *const kinds[] = {"copy=ldg layout=bshd", "copy=tma layout=bshd",
                                      "mma=wgmma copy=tma block_m=64 num_warps=4", "q_operand=shared head_dim=72"};
  char params[256];
  for (size_t k = 0; k < COUNT(kinds); k++) {
    snprintf(params, sizeof params,
             "heads=2 head_dim=64 lengths=70:1:129 block_m=64 block_n=64 num_warps=4 num_stages=2 causal=1 %s",
             kinds[k]);
    prove(params);
  }
}

Test(numeric_attention_varlen, flash3_fwd_does_so_with_and_without_its_roles) {
  static const char *const kinds[] = {"num_stages=2",
                                      "num_stages=3 persistent=1 layout=bshd",
                                      "num_warps=12 tile_reverse=1 tile_order=head_first",
                                      "window=20 persistent=1",
                                      "overlap=0 persistent=1",
                                      "schedule=stages persistent=1 num_stages=3",
                                      "schedule=stages overlap=0 window=33"};
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++)
    for (size_t k = 0; k < COUNT(kinds); k++)
      for (int causal = 0; causal < 2; causal++) {
        snprintf(params, sizeof params,
                 "mma=wgmma copy=tma heads=2 kv_heads=1 head_dim=24 lengths=%s block_n=32 causal=%d %s", lengths[l],
                 causal, kinds[k]);
        prove_of("flash3_fwd", params);
      }
}

// Up to three blocks of keys, of which the shorter sequences have fewer.
Test(numeric_attention_varlen, flash1_fwd_ends_each_sequence_with_its_last_block_of_keys) {
  static const char *const kinds[] = {"",
                                      "num_stages=1 causal=1",
                                      "layout=bshd dropout_p=0.3",
                                      "causal=1 dropout_p=0.1",
                                      "kv_operand=registers layout=bshd copy=ldg",
                                      "splits=3 causal=1 kv_operand=registers"};
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++)
    for (size_t k = 0; k < COUNT(kinds); k++) {
      snprintf(params, sizeof params, "heads=2 kv_heads=1 head_dim=32 lengths=%s block_n=64 num_warps=2 %s", lengths[l],
               kinds[k]);
      prove_of("flash1_fwd", params);
    }
}
