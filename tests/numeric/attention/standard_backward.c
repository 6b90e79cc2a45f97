// standard_attention computes the gradients of attention from a stored P, over lengths that no tile divides, masks and
// grouped heads.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gradient_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove(const char *params) {
  char text[320];
  snprintf(text, sizeof text, "pass=bwd %s", params);
  gradients_prove("standard_attention", text);
}

Test(numeric_attention_standard_backward, every_pair_of_lengths_gives_the_gradients) {
  static const int lengths[] = {1, 15, 32, 33, 64, 100, 130};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++) {
        snprintf(params, sizeof params,
                 "heads=1 head_dim=16 block_m=32 block_n=32 num_warps=2 causal=%d seqlen_q=%d seqlen_kv=%d", causal,
                 lengths[q], lengths[kv]);
        prove(params);
      }
}

// A step of the 128 threads of a row takes 1024 columns.
Test(numeric_attention_standard_backward, rows_of_several_steps_give_the_gradients) {
  prove("heads=1 head_dim=16 block_m=32 block_n=64 num_warps=2 seqlen_q=20 seqlen_kv=1030");
  prove("heads=1 head_dim=16 block_m=32 block_n=64 num_warps=2 seqlen_q=40 seqlen_kv=2500 causal=true");
}

Test(numeric_attention_standard_backward, heads_layouts_orders_types_and_instructions_give_the_gradients) {
  static const char *const variants[] = {"layout=bhsd tile_order=head_first",
                                         "layout=bshd heads=4 kv_heads=2",
                                         "tile_reverse=true window=40",
                                         "dtype=bf16 num_stages=1 kv_heads=1 heads=3",
                                         "num_stages=3 mma=wgmma num_warps=4 block_m=64 block_n=64",
                                         "head_dim=40 copy=ldg",
                                         "store=staged",
                                         "store=staged head_dim_v=80 num_stages=1"};
  char params[256];
  for (size_t i = 0; i < COUNT(variants); i++)
    for (int causal = 0; causal < 2; causal++) {
      snprintf(params, sizeof params,
               "batch=2 heads=2 head_dim=32 seqlen_q=70 seqlen_kv=90 block_m=32 block_n=64 num_warps=2 causal=%d %s",
               causal, variants[i]);
      prove(params);
    }
}

Test(numeric_attention_standard_backward, dropout_gives_the_gradients_of_what_was_kept) {
  static const char *const variants[] = {"heads=2 dropout_p=0.2", "heads=4 kv_heads=2 dropout_p=0.5 causal=true",
                                         "heads=1 dropout_p=0.1 dtype=bf16 window=40"};
  char params[256];
  for (size_t i = 0; i < COUNT(variants); i++) {
    snprintf(params, sizeof params, "batch=2 head_dim=16 seqlen_q=70 seqlen_kv=90 block_m=32 block_n=32 num_warps=2 %s",
             variants[i]);
    prove(params);
  }
}

// Launches that take whole matrices, with the gradients of dropout and of the scale in the softmax's or apart.
Test(numeric_attention_standard_backward, element_wise_work_in_one_kernel_or_in_one_each_gives_the_gradients) {
  static const char *const places[] = {"elementwise=fused", "elementwise=separate"};
  static const char *const problems[] = {"heads=2 causal=true seqlen_q=70 seqlen_kv=90",
                                         "heads=4 kv_heads=2 dropout_p=0.3 seqlen_q=90 seqlen_kv=70",
                                         "heads=1 dropout_p=0.1 dtype=bf16 window=40 seqlen_q=33 seqlen_kv=65",
                                         "heads=1 dropout_p=0.2 seqlen_q=20 seqlen_kv=1030"};
  char params[256];
  for (size_t e = 0; e < COUNT(places); e++)
    for (size_t i = 0; i < COUNT(problems); i++) {
      snprintf(params, sizeof params, "batch=2 head_dim=16 block_m=32 block_n=32 num_warps=2 %s %s", places[e],
               problems[i]);
      prove(params);
    }
}

// Q, K and V as views of one tensor, and apart; a gradient that goes through copies of a matrix, one mask and two.
Test(numeric_attention_standard_backward, programs_of_eager_pytorch_give_the_gradients) {
  static const char *const programs[] = {"elementwise=eager_baddbmm", "elementwise=eager_einsum"};
  static const char *const problems[] = {
      "heads=3 seqlen=70", "heads=2 causal=true seqlen_q=70 seqlen_kv=90 layout=bshd",
      "heads=2 dropout_p=0.3 seqlen_q=90 seqlen_kv=70", "heads=1 dropout_p=0.1 dtype=bf16 window=40 seqlen=65",
      "heads=1 dropout_p=0.2 seqlen_q=20 seqlen_kv=1030"};
  char params[256];
  for (size_t e = 0; e < COUNT(programs); e++)
    for (size_t i = 0; i < COUNT(problems); i++) {
      snprintf(params, sizeof params, "batch=2 head_dim=16 block_m=32 block_n=32 num_warps=2 %s %s", programs[e],
               problems[i]);
      prove(params);
    }
}

Test(numeric_attention_standard_backward, block_masks_leave_the_gradients_of_what_is_seen) {
  static const char *const ways[] = {"elementwise=epilogue", "elementwise=epilogue causal=true dropout_p=0.2",
                                     "elementwise=fused dropout_p=0.2 window=100", "elementwise=separate causal=true"};
  char params[256];
  for (size_t w = 0; w < COUNT(ways); w++) {
    snprintf(params, sizeof params,
             "heads=2 head_dim=16 seqlen_q=128 seqlen_kv=256 block_m=32 block_n=32 num_warps=2 mask=strided "
             "mask_width=2 mask_block=64 %s",
             ways[w]);
    prove(params);
  }
}
