// Where V and O have fewer columns than Q and K, or more, every workload that takes head_dim_v gives attention, and its
// gradients: each schedule, each way of staging, and columns of padding on either side.
#include <criterion/criterion.h>
#include <stdio.h>

#include "attention_case.h"
#include "gradient_case.h"
#include "workloads/tree.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Fewer and more columns, by a factor and by one step of 8, which padding to 16 hides on one side.
static const char *const heads[] = {"head_dim=48 head_dim_v=32", "head_dim=32 head_dim_v=64",
                                    "head_dim=24 head_dim_v=16", "head_dim=16 head_dim_v=24",
                                    "head_dim=64 head_dim_v=16", "head_dim=40 head_dim_v=120"};

static void prove(const char *params) {
  const char *failure = attention_case_prove(params);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

static void prove_all(const char *workload, const char *problem, const char *const *kinds, size_t num_kinds) {
  char params[512];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t k = 0; k < num_kinds; k++) {
      snprintf(params, sizeof params, "%s %s %s %s", workload, problem, heads[h], kinds[k]);
      prove(params);
    }
}

Test(numeric_attention_head_dim_v, flash2_fwd_gives_attention_under_every_schedule) {
  static const char *const kinds[] = {"num_stages=1",
                                      "num_stages=1 persistent=1 causal=1",
                                      "num_stages=2",
                                      "num_stages=3 persistent=1",
                                      "num_stages=2 refill=when_free causal=1 q_operand=shared",
                                      "num_stages=3 refill=late",
                                      "num_stages=2 refill=behind window=40",
                                      "schedule=interleaved layout=bshd",
                                      "schedule=interleaved mask_steps=unrolled causal=1 persistent=1",
                                      "num_stages=2 copy=tma",
                                      "num_stages=1 mma=wgmma copy=tma",
                                      "num_stages=2 mma=wgmma code=lean dtype=bf16",
                                      "num_stages=2 copy=ldg dropout_p=0.2",
                                      "num_stages=2 head_dim_multiple=64"};
  prove_all("flash2_fwd", "heads=4 kv_heads=2 seqlen_q=100 seqlen_kv=170 block_m=64 block_n=32 num_warps=4", kinds,
            COUNT(kinds));
}

// Queries of many rows beside few keys: O does not fit over the other buffers.
Test(numeric_attention_head_dim_v, flash2_fwd_stages_an_output_that_is_larger_than_its_buffers) {
  prove("heads=1 seqlen_q=150 seqlen_kv=70 head_dim=16 head_dim_v=256 block_m=128 block_n=16 num_warps=8 num_stages=1");
  prove("heads=1 seqlen_q=150 seqlen_kv=70 head_dim=32 head_dim_v=512 block_m=64 block_n=16 num_warps=4 num_stages=2");
}

Test(numeric_attention_head_dim_v, warps_side_by_side_share_the_columns_of_values) {
  prove("heads=2 seqlen_q=50 seqlen_kv=130 head_dim=48 head_dim_v=64 block_m=32 block_n=64 num_warps=4 warps_n=2");
  prove("heads=2 seqlen_q=50 seqlen_kv=130 head_dim=64 head_dim_v=32 block_m=32 block_n=64 num_warps=4 warps_n=2");
}

Test(numeric_attention_head_dim_v, flash3_fwd_gives_attention_under_every_schedule) {
  static const char *const kinds[] = {"num_stages=2",
                                      "num_stages=2 persistent=1 causal=1",
                                      "num_stages=2 persistent=1 q_stages=2",
                                      "num_stages=1 overlap=0",
                                      "turns=softmax causal=1",
                                      "schedule=stages num_stages=3 persistent=1",
                                      "num_stages=2 head_dim_multiple=64"};
  prove_all("flash3_fwd", "heads=2 seqlen_q=150 seqlen_kv=170 block_m=128 block_n=32 num_warps=8 mma=wgmma copy=tma",
            kinds, COUNT(kinds));
}

Test(numeric_attention_head_dim_v, flash3_fwd_transposes_values_of_their_own_width) {
  static const char *const sizes[] = {"head_dim=64 head_dim_v=32", "head_dim=32 head_dim_v=96",
                                      "head_dim=48 head_dim_v=16"};
  char params[256];
  for (size_t i = 0; i < COUNT(sizes); i++) {
    snprintf(params, sizeof params,
             "flash3_fwd heads=2 seqlen_q=150 seqlen_kv=170 block_m=128 block_n=64 num_warps=8 mma=wgmma copy=tma "
             "dtype=fp8_e4m3 num_stages=2 %s",
             sizes[i]);
    prove(params);
  }
}

Test(numeric_attention_head_dim_v, flash1_fwd_gives_attention_of_one_block_and_of_many) {
  static const char *const kinds[] = {"seqlen_kv=60", "seqlen_kv=200 causal=1", "seqlen_kv=700 num_stages=3",
                                      "seqlen_kv=200 layout=bshd dropout_p=0.1 block_n=128"};
  prove_all("flash1_fwd", "heads=4 kv_heads=2 seqlen_q=70 block_n=64 num_warps=4", kinds, COUNT(kinds));
}

Test(numeric_attention_head_dim_v, flash_decode_gives_attention_from_any_cache) {
  static const char *const kinds[] = {
      "block_m=16 block_n=64 num_warps=4 splits=3",
      "block_m=16 block_n=32 num_warps=1 splits=1 layout=bshd",
      "block_m=16 block_n=64 num_warps=4 splits=2 persistent=1 num_stages=3",
      "block_m=64 block_n=32 num_warps=4 splits=4 seqlen_q=3 causal=1",
  };
  prove_all("flash_decode", "batch=2 heads=8 kv_heads=2 seqlen_kv=300", kinds, COUNT(kinds));
  static const char *const cached[] = {
      "head_dim=64 head_dim_v=32 kv_dtype=int8", "head_dim=32 head_dim_v=96 kv_dtype=fp8 kv_group_size=16",
      "head_dim=96 head_dim_v=64 kv_dtype=int4", "head_dim=32 head_dim_v=64 kv_dtype=int4 kv_group_size=8"};
  char params[256];
  for (size_t i = 0; i < COUNT(cached); i++) {
    snprintf(params, sizeof params,
             "flash_decode batch=2 heads=8 kv_heads=2 seqlen_kv=300 block_m=16 block_n=64 num_warps=4 splits=2 %s",
             cached[i]);
    prove(params);
  }
}

Test(numeric_attention_head_dim_v, tree_decode_gives_attention_of_ancestors) {
  static const int32_t parents[] = {0, 0, 2, 1};
  static const char *const kinds[] = {"block_m=16 block_n=64 num_warps=4 splits=2",
                                      "block_m=32 block_n=32 num_warps=2 splits=1 window=30"};
  reference_set_parents(parents);
  prove_all("tree_decode", "heads=4 kv_heads=1 parents=0:0:2:1 seqlen_kv=140", kinds, COUNT(kinds));
  reference_set_parents(NULL);
}

// ---- gradients ----

static void prove_gradients(const char *workload, const char *problem, const char *const *kinds, size_t num_kinds) {
  char params[512];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t k = 0; k < num_kinds; k++) {
      snprintf(params, sizeof params, "%s %s %s", problem, heads[h], kinds[k]);
      gradients_prove(workload, params);
    }
}

Test(numeric_attention_head_dim_v, flash2_bwd_gives_the_gradients) {
  static const char *const kinds[] = {"dq=kernel block_m=32 block_n=64 num_warps=4",
                                      "dq=kernel block_m=32 block_n=64 num_warps=4 causal=1 num_stages=1",
                                      "dq=kernel block_m=32 block_n=64 num_warps=4 layout=bshd dropout_p=0.2",
                                      "dq=atomics block_m=64 block_n=64 num_warps=4 causal=1",
                                      "dq=atomics block_m=32 block_n=64 num_warps=2 num_stages=1",
                                      "dq=atomics block_m=64 block_n=64 num_warps=4 heads=2 kv_heads=2 dropout_p=0.1"};
  prove_gradients("flash2_bwd", "heads=4 kv_heads=2 seqlen_q=90 seqlen_kv=110", kinds, COUNT(kinds));
}

Test(numeric_attention_head_dim_v, flash1_bwd_gives_the_gradients) {
  static const char *const kinds[] = {"seqlen_kv=60", "seqlen_kv=200 causal=1",
                                      "seqlen_kv=600 num_stages=1 heads=2 kv_heads=2"};
  prove_gradients("flash1_bwd", "heads=4 kv_heads=2 seqlen_q=70 block_n=64 num_warps=4", kinds, COUNT(kinds));
}

Test(numeric_attention_head_dim_v, standard_attention_gives_the_gradients) {
  static const char *const kinds[] = {"num_stages=1", "num_stages=2 causal=1 layout=bshd",
                                      "elementwise=fused dropout_p=0.2", "elementwise=separate causal=1"};
  prove_gradients("standard_attention",
                  "pass=bwd heads=4 kv_heads=2 seqlen_q=90 seqlen_kv=110 block_m=32 block_n=32 num_warps=2", kinds,
                  COUNT(kinds));
}
