// Where a kernel's source scales the scores changes neither O, LSE nor the gradients.
#include <criterion/criterion.h>
#include <stdio.h>

#include "attention_case.h"
#include "gradient_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const scalings[] = {"exponent", "scores", "twice", "apart", "by_tile"};

Test(numeric_attention_softmax_form, forward_is_attention_wherever_scores_are_scaled) {
  static const char *const kernels[] = {
      "flash2_fwd block_m=32 block_n=32 num_warps=2 num_stages=2",
      "flash2_fwd block_m=32 block_n=32 num_warps=2 num_stages=2 row_sums=step refill=late",
      "flash3_fwd block_n=64 mma=wgmma copy=tma row_sums=step guard=always",
      "flash_decode block_m=16 block_n=32 num_warps=2 splits=2 row_sums=step",
      "flash_decode block_m=16 block_n=64 num_warps=4 num_stages=1 splits=2 row_sums=step persistent=1",
      "flash2_fwd block_m=64 block_n=32 num_warps=2 schedule=interleaved window=20 dropout_p=0.2 guard=always",
      "flash3_fwd block_n=64 mma=wgmma copy=tma",
      "flash_decode block_m=16 block_n=32 num_warps=2 splits=3",
      "flash_decode block_m=16 block_n=32 num_warps=2 splits=1 kv_dtype=int8"};
  char params[320];
  for (size_t k = 0; k < COUNT(kernels); k++)
    for (size_t s = 0; s < COUNT(scalings); s++) {
      snprintf(params, sizeof params,
               "%s batch=2 heads=2 kv_heads=1 seqlen_q=70 seqlen_kv=130 head_dim=16 causal=true softmax_scale=0.4 "
               "scaling=%s exp2=ieee",
               kernels[k], scalings[s]);
      const char *failure = attention_case_prove(params);
      cr_assert(failure[0] == '\0', "%s: %s", params, failure);
    }
}

// Keys of the first queries are all masked: their maxima stay -inf, and -inf times the scale too.
Test(numeric_attention_softmax_form, queries_that_see_no_key_stay_zero) {
  for (size_t s = 0; s < COUNT(scalings); s++) {
    char params[320];
    snprintf(params, sizeof params,
             "flash2_fwd heads=1 seqlen_q=200 seqlen_kv=90 head_dim=16 causal=true block_m=32 block_n=32 num_warps=2 "
             "scaling=%s",
             scalings[s]);
    const char *failure = attention_case_prove(params);
    cr_assert(failure[0] == '\0', "%s: %s", params, failure);
  }
}

Test(numeric_attention_softmax_form, gradients_are_those_of_attention_wherever_scores_are_scaled) {
  static const char *const kernels[] = {"block_m=16 block_n=32 num_warps=2",
                                        "block_m=32 block_n=64 num_warps=4 dq=atomics"};
  char params[320];
  for (size_t k = 0; k < COUNT(kernels); k++)
    for (size_t s = 0; s < COUNT(scalings); s++) {
      snprintf(params, sizeof params,
               "heads=2 kv_heads=1 seqlen_q=70 seqlen_kv=50 head_dim=32 causal=true softmax_scale=0.3 %s scaling=%s "
               "exp2=ieee",
               kernels[k], scalings[s]);
      gradients_prove("flash2_bwd", params);
    }
}
