// flash2_bwd computes the gradients of attention, over lengths, blocks, stages and grouped heads.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gradient_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(numeric_attention_flash2_bwd, every_pair_of_lengths_gives_the_gradients) {
  // Around the boundaries of a step (16) and of the rows that a CTA keeps (64), alone and in pairs.
  static const int lengths[] = {1, 15, 16, 17, 63, 64, 65, 130};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++) {
        snprintf(params, sizeof params, "heads=1 head_dim=16 block_m=16 block_n=64 causal=%d seqlen_q=%d seqlen_kv=%d",
                 causal, lengths[q], lengths[kv]);
        gradients_prove("flash2_bwd", params);
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
        gradients_prove("flash2_bwd", params);
      }
}

Test(numeric_attention_flash2_bwd, steps_that_refill_late_give_the_gradients) {
  static const char *const problems[] = {
      "heads=1 seqlen_q=150 seqlen_kv=170 head_dim=32 block_m=16 block_n=64",
      "heads=2 kv_heads=1 seqlen_q=170 seqlen_kv=150 head_dim=24 block_m=48 block_n=64 causal=true layout=bshd",
      "heads=1 seqlen_q=1 seqlen_kv=130 head_dim=16 block_m=32 block_n=64 causal=true",
      "heads=2 seqlen_q=130 seqlen_kv=130 head_dim=16 block_m=32 block_n=64 window=40 dropout_p=0.3",
      "heads=1 lengths=70:5:64 head_dim=16 block_m=32 block_n=64 causal=true",
      "heads=1 seqlen=512 head_dim=16 block_m=64 block_n=128 mask=butterfly"};
  static const char *const machines[] = {"mma=wgmma", "mma=mma"};
  char params[256];
  for (size_t p = 0; p < COUNT(problems); p++)
    for (size_t m = 0; m < COUNT(machines); m++)
      for (int stages = 2; stages <= 4; stages++) {
        snprintf(params, sizeof params, "refill=late copy=cp_async num_stages=%d %s %s", stages, machines[m],
                 problems[p]);
        gradients_prove("flash2_bwd", params);
      }
}

Test(numeric_attention_flash2_bwd, grouped_heads_layouts_orders_and_types_give_the_gradients) {
  static const char *const heads[] = {"heads=2", "heads=4 kv_heads=2", "heads=3 kv_heads=1"};
  static const char *const orders[] = {"layout=bhsd", "layout=bshd tile_reverse=true",
                                       "tile_order=head_first dtype=bf16", "head_order=sequences_first"};
  static const char *const head_dims[] = {"head_dim=24", "head_dim=128"};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t o = 0; o < COUNT(orders); o++)
      for (size_t d = 0; d < COUNT(head_dims); d++) {
        snprintf(params, sizeof params, "batch=2 seqlen_q=70 seqlen_kv=90 causal=true block_m=16 block_n=64 %s %s %s",
                 heads[h], orders[o], head_dims[d]);
        gradients_prove("flash2_bwd", params);
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
        gradients_prove("flash2_bwd", params);
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
        gradients_prove("flash2_bwd", params);
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
      gradients_prove("flash2_bwd", params);
    }
}

Test(numeric_attention_flash2_bwd, transposed_scores_give_the_gradients_of_every_pair_of_lengths) {
  static const int lengths[] = {1, 16, 17, 63, 64, 65, 130};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++) {
        snprintf(params, sizeof params,
                 "dq=atomics p_operand=registers kv_group=loop heads=2 kv_heads=1 head_dim=32 block_m=32 block_n=64 "
                 "num_warps=4 num_stages=%d causal=%d seqlen_q=%d seqlen_kv=%d",
                 1 + (int)(q + kv) % 3, causal, lengths[q], lengths[kv]);
        gradients_prove("flash2_bwd", params);
      }
}

Test(numeric_attention_flash2_bwd, transposed_scores_with_any_heads_sums_and_stages_give_the_gradients) {
  static const char *const cases[] = {
      "heads=2 seqlen_q=150 seqlen_kv=170 head_dim=128",
      "kv_group=loop heads=6 kv_heads=2 seqlen_q=70 seqlen_kv=200 head_dim=24 causal=true layout=bshd",
      "heads=3 kv_heads=1 batch=2 seqlen_q=130 seqlen_kv=60 head_dim=64 causal=true dtype=bf16 kv_group=grid",
      "kv_group=loop heads=4 kv_heads=1 seqlen_q=200 seqlen_kv=150 head_dim=96 head_dim_v=64 tile_order=head_first "
      "tile_reverse=true",
      "kv_group=loop heads=2 kv_heads=1 seqlen_q=350 seqlen_kv=300 head_dim=64 window=50 block_n=64 num_warps=4 "
      "causal=true",
      "kv_group=loop heads=4 kv_heads=2 seqlen_q=300 seqlen_kv=350 head_dim=32 window=100 block_m=32 block_n=64 "
      "num_warps=4",
      "kv_group=loop heads=4 kv_heads=2 seqlen=200 head_dim=32 dropout_p=0.3 causal=true",
      "kv_group=loop heads=4 kv_heads=2 seqlen=512 head_dim=32 mask=strided mask_width=3 causal=true",
      "heads=2 kv_heads=1 lengths=70:5:164 head_dim=32 causal=true"};
  static const char *const adds[] = {"lines", "pairs", "words"};
  char params[256];
  for (size_t i = 0; i < COUNT(cases); i++)
    for (int stages = 1; stages <= 3; stages++) {
      snprintf(params, sizeof params, "dq=atomics p_operand=registers num_stages=%d dq_adds=%s %s", stages,
               adds[stages - 1], cases[i]);
      gradients_prove("flash2_bwd", params);
    }
  gradients_prove(
      "flash2_bwd",
      "dq=atomics p_operand=registers kv_group=loop heads=4 kv_heads=2 seqlen=150 head_dim=64 copy=ldg causal=true");
}

static void expect_no_gradient_where_no_key_is_seen(const char *params) {
  // With 200 queries and 40 keys, aligned at the bottom right, queries 0 to 159 see none.
  gradients g;
  gradients_run(&g, "flash2_bwd", params);
  for (int64_t r = 0; r < 160; r++)
    for (int d = 0; d < 16; d++) cr_assert(gradients_row(&g, D_Q, 0, 0, r)[d] == 0.0f, "%s: row %d", params, (int)r);
  gradients_fini(&g);
}

Test(numeric_attention_flash2_bwd, queries_that_see_no_key_have_no_gradient) {
  expect_no_gradient_where_no_key_is_seen(
      "heads=1 head_dim=16 seqlen_q=200 seqlen_kv=40 causal=true block_m=16 block_n=64");
  expect_no_gradient_where_no_key_is_seen("heads=1 head_dim=16 seqlen_q=200 seqlen_kv=40 causal=true dq=atomics");
}
