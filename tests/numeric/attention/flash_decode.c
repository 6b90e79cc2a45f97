// flash_decode's two kernels together compute attention, and the first visits every pair that the mask allows once:
// splits that are short or empty, groups of warps that share a key tile, packed heads, several tokens.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "attention_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove(const char *params) {
  char text[512];
  snprintf(text, sizeof text, "flash_decode %s", params);
  const char *failure = attention_case_prove(text);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

// Four warps that share a key tile, two that do, and one.
static const char *const shares[] = {"block_m=16 block_n=64 num_warps=4", "block_m=32 block_n=32 num_warps=4",
                                     "block_m=16 block_n=16 num_warps=1"};

Test(numeric_attention_flash_decode, any_length_and_number_of_splits_gives_attention) {
  // With tiles of 64 keys, 9 splits of 1 to 3 tiles leave most splits empty.
  static const int lengths[] = {1, 15, 16, 17, 63, 64, 65, 129, 300};
  static const int splits[] = {1, 2, 3, 4, 5, 9};
  char params[256];
  for (size_t share = 0; share < COUNT(shares); share++)
    for (size_t l = 0; l < COUNT(lengths); l++)
      for (size_t s = 0; s < COUNT(splits); s++)
        for (int stages = 1; stages <= 4; stages++) {
          snprintf(params, sizeof params, "heads=2 head_dim=16 seqlen_q=1 seqlen_kv=%d splits=%d num_stages=%d %s",
                   lengths[l], splits[s], stages, shares[share]);
          prove(params);
        }
}

Test(numeric_attention_flash_decode, heads_of_a_group_are_packed_into_a_tile_in_both_layouts) {
  static const char *const heads[] = {"heads=4 kv_heads=4", "heads=8 kv_heads=2", "heads=24 kv_heads=1",
                                      "heads=40 kv_heads=2"};
  static const char *const layouts[] = {"layout=bhsd", "layout=bshd"};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t l = 0; l < COUNT(layouts); l++)
      for (size_t share = 0; share < COUNT(shares); share++)
        for (int persistent = 0; persistent < 2; persistent++) {
          snprintf(params, sizeof params,
                   "batch=2 %s %s head_dim=24 seqlen_q=1 seqlen_kv=150 splits=3 persistent=%d %s", heads[h], layouts[l],
                   persistent, shares[share]);
          prove(params);
        }
}

Test(numeric_attention_flash_decode, several_tokens_see_the_keys_up_to_their_own) {
  static const char *const heads[] = {"heads=2 kv_heads=2", "heads=6 kv_heads=2", "heads=8 kv_heads=1"};
  static const char *const layouts[] = {"layout=bhsd", "layout=bshd"};
  static const int tokens[] = {2, 3, 5, 17};
  static const int lengths[] = {1, 4, 64, 67, 200};  // fewer keys than tokens: the first tokens see none
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t layout = 0; layout < COUNT(layouts); layout++)
      for (size_t t = 0; t < COUNT(tokens); t++)
        for (size_t l = 0; l < COUNT(lengths); l++)
          for (int causal = 0; causal < 2; causal++) {
            snprintf(params, sizeof params, "%s %s head_dim=16 seqlen_q=%d seqlen_kv=%d causal=%d splits=%zu %s",
                     heads[h], layouts[layout], tokens[t], lengths[l], causal, 1 + l,
                     shares[(h + t + l) % COUNT(shares)]);
            prove(params);
          }
}

Test(numeric_attention_flash_decode, head_dims_dtypes_and_copies_give_attention) {
  static const int head_dims[] = {16, 24, 40, 64, 72, 128, 256};
  static const char *const dtypes[] = {"fp16", "bf16"};
  static const char *const kinds[] = {"copy=ldg num_stages=2 block_m=16 num_warps=4",
                                      "copy=tma block_m=16 num_warps=4",
                                      "mma=wgmma copy=tma block_m=64 num_warps=4",
                                      "block_m=16 num_warps=4 block_n=64 num_stages=4",
                                      "block_m=64 num_warps=4",
                                      "copy=ldg num_stages=1 block_m=16 num_warps=4",
                                      "copy=tma block_m=64 num_warps=4 num_stages=1",
                                      "mma=wgmma copy=tma block_m=64 num_warps=4 num_stages=1"};
  char params[256];
  for (size_t d = 0; d < COUNT(head_dims); d++)
    for (size_t t = 0; t < COUNT(dtypes); t++)
      for (size_t k = 0; k < COUNT(kinds); k++) {
        snprintf(params, sizeof params, "heads=4 kv_heads=1 head_dim=%d seqlen_q=1 seqlen_kv=230 splits=2 dtype=%s %s",
                 head_dims[d], dtypes[t], kinds[k]);
        prove(params);
      }
}

// Sixteen copies of 16 maxima are twice the bytes of a 16 x 16 tile of queries, which they lie in otherwise.
Test(numeric_attention_flash_decode, maxima_of_more_warps_than_a_tile_of_queries_holds_have_room_of_their_own) {
  prove("heads=2 head_dim=16 seqlen_q=1 seqlen_kv=300 splits=2 block_m=16 block_n=256 num_warps=16");
  prove("heads=2 head_dim=16 seqlen_q=1 seqlen_kv=300 splits=1 block_m=16 block_n=256 num_warps=16 num_stages=1");
}

Test(numeric_attention_flash_decode, quantised_caches_are_what_their_scales_make_of_them) {
  static const char *const caches[] = {"kv_dtype=int8",
                                       "kv_dtype=int8 kv_group_size=16 dtype=bf16",
                                       "kv_dtype=int4",
                                       "kv_dtype=int4 kv_group_size=32 dtype=bf16",
                                       "kv_dtype=fp8 kv_group_size=32",
                                       "kv_dtype=fp8 dtype=bf16 layout=bshd"};
  static const char *const kinds[] = {
      "copy=ldg num_stages=2 block_m=16 num_warps=4 block_n=64", "block_m=16 num_warps=1",
      "block_m=16 num_warps=4 block_n=64 num_stages=4 persistent=1", "block_m=16 num_warps=4 block_n=64 num_stages=1",
      "mma=wgmma copy=tma block_m=64 num_warps=4"};
  static const int lengths[] = {1, 63, 64, 230};
  char params[256];
  for (size_t i = 0; i < COUNT(caches); i++)
    for (size_t k = 0; k < COUNT(kinds); k++)
      for (size_t l = 0; l < COUNT(lengths); l++) {
        snprintf(params, sizeof params, "batch=2 heads=8 kv_heads=2 head_dim=64 seqlen_q=1 seqlen_kv=%d splits=2 %s %s",
                 lengths[l], caches[i], kinds[k]);
        prove(params);
      }
}

Test(numeric_attention_flash_decode, rows_that_see_no_key_give_zero_and_minus_infinity) {
  // With 6 tokens and 2 keys, aligned at the bottom right, tokens 0 to 3 see none in any of the three splits.
  attention_case c;
  attention_case_init(&c, "flash_decode heads=2 kv_heads=1 head_dim=16 seqlen_q=6 seqlen_kv=2 causal=true splits=3");
  attention_case_run(&c);
  cr_assert(c.failure[0] == '\0', "%s", c.failure);
  for (int row = 0; row < 12; row++) {
    bool sees_none = row % 6 < 4;
    cr_assert_eq(c.tensors[4][row] == -INFINITY, sees_none, "row %d: LSE %g", row, (double)c.tensors[4][row]);
    for (int d = 0; d < 16 && sees_none; d++) cr_assert(c.tensors[3][row * 16 + d] == 0.0f, "row %d", row);
  }
  attention_case_fini(&c);
}

// K and V in one buffer each, from the last tile to the first; results are combined 4, 8 or 16 rows at a time, or one
// where rows of several heads do not follow each other.
Test(numeric_attention_flash_decode, interleaved_splits_give_attention) {
  static const char *const heads[] = {"heads=4 kv_heads=2 seqlen_q=1", "heads=3 seqlen_q=5 causal=true",
                                      "heads=5 seqlen_q=1 layout=bshd", "heads=2 kv_heads=1 seqlen_q=3 layout=bshd",
                                      "heads=2 seqlen_q=70 window=100 causal=true"};
  static const char *const columns[] = {"head_dim=128", "head_dim=64", "head_dim=96", "head_dim=32 head_dim_v=256"};
  static const int splits[] = {1, 3, 6};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t c = 0; c < COUNT(columns); c++)
      for (size_t s = 0; s < COUNT(splits); s++) {
        snprintf(params, sizeof params,
                 "batch=2 seqlen_kv=330 %s %s splits=%d block_m=64 block_n=64 num_warps=4 schedule=interleaved",
                 heads[h], columns[c], splits[s]);
        prove(params);
      }
}
