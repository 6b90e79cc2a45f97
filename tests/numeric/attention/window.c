// A sliding window: each workload computes attention within it, visits every pair of it once and no other, with windows
// around the boundaries of tiles, with and without a causal bound.
#include <criterion/criterion.h>
#include <stdio.h>

#include "attention_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// One key, within a tile of 32, around one and several of its boundaries, longer than the problem.
static const int windows[] = {1, 2, 31, 32, 33, 70, 96, 97, 1000};
static const char *const lengths[] = {"seqlen_q=130 seqlen_kv=130", "seqlen_q=100 seqlen_kv=227",
                                      "seqlen_q=227 seqlen_kv=100", "seqlen_q=1 seqlen_kv=200"};

static void prove(const char *params) {
  const char *failure = attention_case_prove(params);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

// Every window, length and either bound with each of `rest`.
static void prove_all(const char *const *rest, size_t num_rest) {
  char params[320];
  for (size_t r = 0; r < num_rest; r++)
    for (size_t w = 0; w < COUNT(windows); w++)
      for (size_t l = 0; l < COUNT(lengths); l++)
        for (int causal = 0; causal < 2; causal++) {
          snprintf(params, sizeof params, "%s heads=1 head_dim=16 block_n=32 window=%d causal=%d %s", rest[r],
                   windows[w], causal, lengths[l]);
          prove(params);
        }
}

Test(numeric_attention_window, flash2_fwd_computes_attention_within_the_window) {
  static const char *const rest[] = {"flash2_fwd block_m=32 num_warps=2 num_stages=1",
                                     "flash2_fwd block_m=64 num_warps=4 num_stages=3",
                                     "flash2_fwd block_m=64 num_warps=2 schedule=interleaved",
                                     "flash2_fwd block_m=64 num_warps=2 schedule=interleaved mask_steps=window",
                                     "flash2_fwd block_m=64 num_warps=2 schedule=interleaved mask_steps=unrolled",
                                     "flash2_fwd block_m=32 num_warps=2 num_stages=3 refill=late mask_steps=window",
                                     "flash2_fwd block_m=32 num_warps=2 num_stages=3 mask_steps=all",
                                     "flash2_fwd block_m=32 num_warps=2 num_stages=3 refill=late persistent=true",
                                     "flash2_fwd block_m=32 num_warps=2 num_stages=3 refill=when_free persistent=true",
                                     "flash2_fwd block_m=16 num_warps=1 num_stages=2 persistent=true tile_reverse=true",
                                     "flash2_fwd block_m=64 num_warps=4 mma=wgmma copy=tma num_stages=2"};
  prove_all(rest, COUNT(rest));
}

Test(numeric_attention_window, flash3_fwd_computes_attention_within_the_window) {
  static const char *const rest[] = {"flash3_fwd mma=wgmma copy=tma", "flash3_fwd mma=wgmma copy=tma num_warps=12",
                                     "flash3_fwd mma=wgmma copy=tma persistent=true num_stages=3",
                                     "flash3_fwd mma=wgmma copy=tma persistent=true mask_steps=all turns=softmax"};
  prove_all(rest, COUNT(rest));
}

Test(numeric_attention_window, flash_decode_splits_the_window) {
  static const char *const rest[] = {"flash_decode block_m=16 num_warps=2 splits=1",
                                     "flash_decode block_m=16 num_warps=1 splits=3 num_stages=3",
                                     "flash_decode block_m=16 num_warps=2 splits=4 persistent=true"};
  prove_all(rest, COUNT(rest));
}

Test(numeric_attention_window, packed_heads_of_several_tokens_see_their_own_windows) {
  char params[320];
  for (size_t w = 0; w < COUNT(windows); w++)
    for (int tokens = 1; tokens < 6; tokens += 2)
      for (int bshd = 0; bshd < 2; bshd++) {
        snprintf(params, sizeof params,
                 "flash_decode batch=2 heads=8 kv_heads=2 head_dim=24 seqlen_q=%d seqlen_kv=210 causal=1 window=%d "
                 "block_m=16 block_n=64 num_warps=4 splits=3 layout=%s",
                 tokens, windows[w], bshd ? "bshd" : "bhsd");
        prove(params);
      }
}
