// flash1_bwd computes the gradients of attention: one block of keys, a few that are written out, many in a loop.
#include <criterion/criterion.h>
#include <stdio.h>

#include "gradient_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(numeric_attention_flash1_bwd, every_pair_of_lengths_gives_the_gradients) {
  // 64 keys a block: one to four blocks, and, for 600 keys, ten in a loop.
  static const int queries[] = {1, 16, 17, 70}, keys[] = {1, 63, 64, 65, 200, 600};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(queries); q++)
      for (size_t kv = 0; kv < COUNT(keys); kv++) {
        snprintf(params, sizeof params, "heads=1 head_dim=32 block_n=64 num_warps=4 causal=%d seqlen_q=%d seqlen_kv=%d",
                 causal, queries[q], keys[kv]);
        gradients_prove("flash1_bwd", params);
      }
}

Test(numeric_attention_flash1_bwd, heads_types_stages_warps_and_layouts_give_the_gradients) {
  static const char *const variants[] = {
      "heads=2 head_dim=64 num_stages=1", "heads=4 kv_heads=2 head_dim=128 layout=bshd",
      "heads=3 kv_heads=1 head_dim=40 block_n=64 num_warps=4 dtype=bf16 num_stages=3",
      "heads=2 head_dim=64 block_n=128 copy=ldg"};
  char params[256];
  for (size_t i = 0; i < COUNT(variants); i++)
    for (int causal = 0; causal < 2; causal++) {
      snprintf(params, sizeof params, "batch=2 seqlen_q=90 seqlen_kv=330 causal=%d %s", causal, variants[i]);
      gradients_prove("flash1_bwd", params);
    }
}

Test(numeric_attention_flash1_bwd, queries_that_see_no_key_have_no_gradient) {
  gradients g;
  gradients_run(&g, "flash1_bwd", "heads=1 head_dim=16 seqlen_q=200 seqlen_kv=40 causal=true block_n=64 num_warps=2");
  for (int64_t r = 0; r < 160; r++)
    for (int d = 0; d < 16; d++) cr_assert(gradients_row(&g, D_Q, 0, 0, r)[d] == 0.0f, "row %d", (int)r);
  gradients_fini(&g);
}

Test(numeric_attention_flash1_bwd, dropout_and_block_masks_give_the_gradients_of_what_is_left) {
  static const char *const kernels[] = {"block_n=64 num_warps=4 mask_block=64",
                                        "block_n=64 num_warps=2 num_stages=1 mask_block=64"};
  // One block of keys, several, many; 384 keys are 6 blocks; the first and the last block of a query may be any.
  static const char *const problems[] = {
      "batch=2 heads=2 head_dim=32 seqlen_q=70 seqlen_kv=60 dropout_p=0.1",
      "heads=4 kv_heads=2 head_dim=32 seqlen_q=90 seqlen_kv=330 causal=true dropout_p=0.5 layout=bshd",
      "heads=1 head_dim=32 seqlen_q=70 seqlen_kv=600 dropout_p=0.3",
      "heads=2 head_dim=32 seqlen_q=384 seqlen_kv=384 mask=strided mask_width=3",
      "heads=1 head_dim=32 seqlen_q=350 seqlen_kv=350 mask=butterfly causal=true dropout_p=0.2",
      "heads=1 head_dim=32 seqlen_q=256 seqlen_kv=256 mask=bits mask_bits=0x3:1:0:1:1:0:1:0x3:0:1:0:1"};
  char params[320];
  for (size_t k = 0; k < COUNT(kernels); k++)
    for (size_t p = 0; p < COUNT(problems); p++) {
      snprintf(params, sizeof params, "%s %s", kernels[k], problems[p]);
      gradients_prove("flash1_bwd", params);
    }
}

// Up to three blocks of keys, of which the shorter sequences have fewer; and none but the first.
Test(numeric_attention_flash1_bwd, packed_sequences_have_the_gradients_of_each_alone) {
  static const char *const problems[] = {
      "heads=2 kv_heads=1 lengths=33:1:300x2", "heads=2 lengths=5:128:140 causal=true",
      "heads=1 lengths=16:257:150 dropout_p=0.3 layout=bshd", "heads=2 lengths=7:128:90 dropout_p=0.1 causal=true"};
  char params[256];
  for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
    snprintf(params, sizeof params, "head_dim=32 block_n=128 num_warps=4 %s", problems[p]);
    gradients_prove("flash1_bwd", params);
  }
}
