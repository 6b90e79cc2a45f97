// Dropout: each workload that has it drops the elements that the definition says, and scales what is left.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attention_case.h"
#include "tile/dropout.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove(const char *params) {
  const char *failure = attention_case_prove(params);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

Test(numeric_attention_dropout, flash2_fwd_drops_what_the_definition_says_whatever_its_tiles) {
  static const char *const kernels[] = {"block_m=32 block_n=32 num_warps=2 num_stages=1",
                                        "block_m=64 block_n=64 num_warps=2 num_stages=3 persistent=true",
                                        "block_m=128 block_n=32 num_warps=4 schedule=interleaved",
                                        "block_m=64 block_n=96 num_warps=4 mma=wgmma copy=tma"};
  static const char *const problems[] = {"batch=2 heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=130 causal=true",
                                         "batch=1 heads=2 seqlen_q=130 seqlen_kv=100 window=40",
                                         "batch=3 heads=1 seqlen_q=65 seqlen_kv=64 layout=bshd dtype=bf16"};
  static const char *const probabilities[] = {"0.1", "0.5", "0.9"};
  char params[320];
  for (size_t k = 0; k < COUNT(kernels); k++)
    for (size_t p = 0; p < COUNT(problems); p++)
      for (size_t i = 0; i < COUNT(probabilities); i++) {
        snprintf(params, sizeof params, "flash2_fwd head_dim=16 %s %s dropout_p=%s", kernels[k], problems[p],
                 probabilities[i]);
        prove(params);
      }
}

static ftl_tile_op *find_dropout(const attention_case *c) {
  for (int32_t i = 0; i < c->program->num_ops; i++)
    if (c->program->ops[i].kind == FTL_TILE_DROPOUT) return &c->program->ops[i];
  cr_assert_fail("no dropout");
  abort();
}

static const char params[] =
    "flash2_fwd batch=2 heads=2 head_dim=16 seqlen_q=64 seqlen_kv=64 block_m=32 block_n=32 num_warps=2 dropout_p=0.3";

static void assert_caught(attention_case *c) {
  attention_case_run(c);
  cr_assert(c->failure[0] == '\0', "the mutant runs: %s", c->failure);
  attention_case_check_numbers(c);
  cr_assert(c->failure[0] != '\0', "the numbers are wrong");
  attention_case_fini(c);
}

Test(numeric_attention_dropout, the_numbers_of_another_head_are_caught) {
  attention_case c;
  attention_case_init(&c, params);
  find_dropout(&c)->sequence = 0;
  assert_caught(&c);
}

Test(numeric_attention_dropout, the_numbers_of_another_row_or_column_are_caught) {
  attention_case c;
  attention_case_init(&c, params);
  find_dropout(&c)->row0 = 0;
  assert_caught(&c);
  attention_case_init(&c, params);
  find_dropout(&c)->column0 = 0;
  assert_caught(&c);
}

Test(numeric_attention_dropout, a_threshold_that_is_one_off_is_caught) {
  attention_case c;
  attention_case_init(&c, params);
  find_dropout(&c)->threshold++;
  assert_caught(&c);
}

Test(numeric_attention_dropout, key_tiles_that_are_no_multiple_of_32_are_infeasible) {
  attention_case c;
  attention_case_init(&c, "heads=1 head_dim=16 seqlen_q=64 seqlen_kv=64 block_m=64 block_n=48 dropout_p=0.3");
  cr_assert_str_eq(c.failure,
                   "block_n=48: with dropout_p random numbers come for 32 keys at a time, a multiple of that");
  attention_case_fini(&c);
}
