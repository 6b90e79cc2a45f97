// flash1_fwd computes attention, and visits every pair that the mask allows once: one block of keys, a few that are
// written out, many in a loop.
#include <criterion/criterion.h>
#include <stdio.h>

#include "attention_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove(const char *params) {
  char text[512];
  snprintf(text, sizeof text, "flash1_fwd %s", params);
  const char *failure = attention_case_prove(text);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

Test(numeric_attention_flash1_fwd, every_pair_of_lengths_gives_attention) {
  // 64 keys a block: one to four blocks, and, for 400 keys, seven in a loop.
  static const int queries[] = {1, 15, 16, 17, 65, 130}, keys[] = {1, 16, 63, 64, 65, 200, 400};
  char params[256];
  for (int causal = 0; causal < 2; causal++)
    for (size_t q = 0; q < COUNT(queries); q++)
      for (size_t kv = 0; kv < COUNT(keys); kv++) {
        snprintf(params, sizeof params, "heads=1 head_dim=32 block_n=64 causal=%d seqlen_q=%d seqlen_kv=%d", causal,
                 queries[q], keys[kv]);
        prove(params);
      }
}

Test(numeric_attention_flash1_fwd, heads_types_stages_warps_and_layouts_give_attention) {
  static const char *const variants[] = {"heads=2 head_dim=64 num_stages=1",
                                         "heads=4 kv_heads=2 head_dim=128 block_n=128 layout=bshd",
                                         "heads=3 kv_heads=1 head_dim=40 block_n=64 dtype=bf16 num_stages=3",
                                         "heads=2 head_dim=64 block_n=128 num_warps=8 copy=ldg",
                                         "heads=1 head_dim=16 block_n=32 num_warps=2",
                                         "heads=1 head_dim=64 block_n=32 num_warps=1 num_stages=4"};
  char params[256];
  for (size_t i = 0; i < COUNT(variants); i++)
    for (int causal = 0; causal < 2; causal++) {
      snprintf(params, sizeof params, "batch=2 seqlen_q=150 seqlen_kv=330 causal=%d %s", causal, variants[i]);
      prove(params);
    }
}

Test(numeric_attention_flash1_fwd, rows_that_see_no_key_give_zero_and_minus_infinity) {
  prove("heads=1 head_dim=32 block_n=64 seqlen_q=200 seqlen_kv=40 causal=true");
  prove("heads=1 head_dim=32 block_n=32 num_warps=2 seqlen_q=400 seqlen_kv=300 causal=true");
}
