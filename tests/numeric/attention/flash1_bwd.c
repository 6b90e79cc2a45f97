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
