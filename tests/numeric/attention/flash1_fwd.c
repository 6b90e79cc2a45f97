// flash1_fwd computes attention, and visits every pair that the mask allows once: one block of keys, a few that are
// written out, many in a loop.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

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

// Each warp keeps its keys of a block, whose buffers K, V and the outputs of the warps share.
Test(numeric_attention_flash1_fwd, keys_held_in_registers_give_attention) {
  static const char *const problems[] = {
      "heads=2 head_dim=64 seqlen=256",
      "heads=3 kv_heads=1 head_dim=40 block_n=64 dtype=bf16 num_stages=3 seqlen_q=150 seqlen_kv=330",
      "heads=4 kv_heads=2 head_dim=128 layout=bshd seqlen_q=70 seqlen_kv=200 copy=ldg",
      "heads=1 head_dim=16 block_n=32 num_warps=2 seqlen_q=65 seqlen_kv=400",
      "heads=1 head_dim=32 head_dim_v=64 block_n=64 seqlen_q=40 seqlen_kv=130",
      "heads=2 head_dim=16 seqlen=384 mask=strided mask_width=3 block_n=64 num_warps=2 mask_block=64 dropout_p=0.2"};
  char params[256];
  for (size_t i = 0; i < COUNT(problems); i++)
    for (int causal = 0; causal < 2; causal++) {
      snprintf(params, sizeof params, "batch=2 kv_operand=registers causal=%d %s", causal, problems[i]);
      prove(params);
    }
}

// Tiles of 16 queries: 10 of 3 CTAs, 3 of 5, of which two have none, and one of two.
Test(numeric_attention_flash1_fwd, ctas_of_a_head_take_its_query_tiles_in_turns) {
  static const char *const problems[] = {
      "heads=2 head_dim=32 block_n=64 seqlen_q=150 seqlen_kv=330 splits=3",
      "heads=4 kv_heads=2 head_dim=16 block_n=64 seqlen_q=40 seqlen_kv=130 splits=5 layout=bshd",
      "heads=2 head_dim=16 block_n=64 seqlen_q=16 seqlen_kv=64 splits=2 kv_operand=registers",
      "heads=2 head_dim=16 block_n=64 num_warps=2 seqlen=400 splits=7 num_stages=3 dropout_p=0.1"};
  char params[256];
  for (size_t i = 0; i < COUNT(problems); i++)
    for (int causal = 0; causal < 2; causal++) {
      snprintf(params, sizeof params, "batch=2 causal=%d %s", causal, problems[i]);
      prove(params);
    }
}

Test(numeric_attention_flash1_fwd, rows_that_see_no_key_give_zero_and_minus_infinity) {
  prove("heads=1 head_dim=32 block_n=64 seqlen_q=200 seqlen_kv=40 causal=true");
  prove("heads=1 head_dim=32 block_n=32 num_warps=2 seqlen_q=400 seqlen_kv=300 causal=true");
}

static void prove_all(const char *const *kernels, size_t num_kernels, const char *const *problems,
                      size_t num_problems) {
  char params[400];
  for (size_t k = 0; k < num_kernels; k++)
    for (size_t p = 0; p < num_problems; p++) {
      snprintf(params, sizeof params, "%s %s", kernels[k], problems[p]);
      prove(params);
    }
}

// One block of keys, several that are written out, and many in a loop.
Test(numeric_attention_flash1_fwd, dropout_leaves_out_what_the_definition_says) {
  static const char *const kernels[] = {"block_n=128 num_warps=4", "block_n=64 num_warps=2 num_stages=3",
                                        "block_n=32 num_warps=1 num_stages=1"};
  static const char *const problems[] = {"batch=2 heads=2 head_dim=16 seqlen_q=70 seqlen_kv=100 dropout_p=0.1",
                                         "heads=4 kv_heads=2 head_dim=32 seqlen_q=90 seqlen_kv=330 causal=true "
                                         "dropout_p=0.5 layout=bshd"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

// 384 keys are 6 blocks of 64.
Test(numeric_attention_flash1_fwd, block_masks_leave_their_blocks) {
  static const char *const kernels[] = {"block_n=64 num_warps=2 mask_block=64", "block_n=32 num_warps=1 mask_block=64",
                                        "block_n=64 num_warps=2 mask_block=384 num_stages=3"};
  static const char *const problems[] = {
      "heads=2 head_dim=16 seqlen=384 mask=strided mask_width=3",
      "heads=1 head_dim=16 seqlen=350 mask=butterfly causal=true dropout_p=0.2",
      "heads=4 kv_heads=2 head_dim=16 seqlen_q=352 seqlen_kv=352 mask=local_global mask_width=2 layout=bshd"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

// The first queries see the last block alone, others none of the first.
Test(numeric_attention_flash1_fwd, the_first_and_the_last_block_of_a_query_may_be_any) {
  static const char *const kernels[] = {"block_n=64 num_warps=2", "block_n=64 num_warps=2 num_stages=1"};
  static const char *const problems[] = {
      "heads=1 head_dim=16 seqlen=256 mask_block=64 mask=bits mask_bits=0x3:1:0:1:1:0:1:0x3:0:1:0:1",
      "heads=1 head_dim=16 seqlen_q=100 seqlen_kv=164 mask_block=64 mask=bits mask_bits=1:0:0:1:0:1"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

Test(numeric_attention_flash1_fwd, what_the_entries_of_a_list_say_is_needed) {
  static const char params[] =
      "flash1_fwd heads=1 head_dim=16 seqlen=256 block_n=64 num_warps=2 mask_block=64 mask=strided mask_width=2";
  for (int change = 0; change < 2; change++) {
    attention_case c;
    attention_case_init(&c, params);
    int64_t num_entries = 0;
    int32_t *entries = NULL;
    for (int32_t t = 0; t < c.program->num_tensors; t++)
      if (strcmp(c.program->tensors[t].name, "step_tiles") == 0) {
        entries = c.program->tensors[t].table;
        num_entries = c.program->tensors[t].num_rows;
      }
    cr_assert_not_null(entries);
    int64_t i = 0;
    while (i < num_entries && (change == 0) != (entries[i] % 2 == 1)) i++;
    entries[i] ^= change == 0 ? 1 : 2;  // the last block of a query is not told; a query tile twice and another never
    attention_case_run(&c);
    attention_case_check_numbers(&c);
    cr_assert(c.failure[0] != '\0', "change %d is caught", change);
    attention_case_fini(&c);
  }
}

Test(numeric_attention_flash1_fwd, what_cannot_be_is_the_reason) {
  static const char *const cases[][2] = {
      {"flash1_fwd heads=1 head_dim=16 seqlen=128 block_n=64 num_warps=4 dropout_p=0.1",
       "block_n=64 num_warps=4: with dropout_p each warp needs a multiple of 32 keys"},
      {"flash1_fwd heads=1 head_dim=16 seqlen=128 block_n=64 num_warps=4 mask=bits mask_bits=1x2:0x2 mask_block=64",
       "mask: flash1_fwd needs a block of keys for every query tile, and one sees none"},
      {"flash1_fwd heads=1 head_dim=16 seqlen=512 mask=butterfly block_n=128 splits=2",
       "splits=2: the lists of a mask are of a whole head: allowed is 1"},
      {"flash1_fwd heads=1 head_dim=16 seqlen=512 mask=butterfly",
       "mask_block=128: a block must hold a whole number of tiles, block_n=256"}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    attention_case c;
    attention_case_init(&c, cases[i][0]);
    cr_expect_str_eq(c.failure, cases[i][1]);
    attention_case_fini(&c);
  }
}
