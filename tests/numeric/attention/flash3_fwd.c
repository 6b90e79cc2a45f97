// flash3_fwd computes attention, and visits every pair that the mask allows once: two and three consumer warpgroups
// that take turns, over lengths, blocks, stages, heads and persistent CTAs.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const groups[] = {"num_warps=8 block_m=128", "num_warps=12 block_m=192"};

static void prove(const char *params) {
  char text[512];
  snprintf(text, sizeof text, "flash3_fwd mma=wgmma copy=tma %s", params);
  const char *failure = attention_case_prove(text);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

Test(numeric_attention_flash3_fwd, every_pair_of_lengths_gives_attention) {
  // Around the boundaries of a key tile (32), a group's rows (64), a query tile (128, 192), alone and in pairs.
  static const int lengths[] = {1, 31, 32, 33, 64, 65, 100, 128, 129, 193, 260};
  char params[256];
  for (size_t g = 0; g < COUNT(groups); g++)
    for (int causal = 0; causal < 2; causal++)
      for (size_t q = 0; q < COUNT(lengths); q++)
        for (size_t kv = 0; kv < COUNT(lengths); kv++) {
          snprintf(params, sizeof params, "heads=1 head_dim=16 block_n=32 causal=%d seqlen_q=%d seqlen_kv=%d %s",
                   causal, lengths[q], lengths[kv], groups[g]);
          prove(params);
        }
}

Test(numeric_attention_flash3_fwd, padded_heads_give_attention) {
  prove(
      "heads=2 head_dim=96 head_dim_multiple=128 block_n=32 causal=1 seqlen_q=150 seqlen_kv=170 num_warps=8 "
      "block_m=128");
  prove(
      "heads=2 head_dim=24 head_dim_multiple=64 block_n=32 seqlen_q=150 seqlen_kv=170 persistent=1 q_stages=2 "
      "turns=softmax");
}

Test(numeric_attention_flash3_fwd, any_number_of_stages_and_block_size_gives_attention) {
  static const int blocks_n[] = {16, 48, 64, 128, 176};
  char params[256];
  for (size_t g = 0; g < COUNT(groups); g++)
    for (int stages = 1; stages <= 4; stages++)
      for (size_t n = 0; n < COUNT(blocks_n); n++)
        for (int persistent = 0; persistent < 2; persistent++) {
          snprintf(params, sizeof params,
                   "heads=2 head_dim=16 causal=%d seqlen_q=200 seqlen_kv=230 num_stages=%d block_n=%d persistent=%d %s",
                   (stages + (int)n) % 2, stages, blocks_n[n], persistent, groups[g]);
          prove(params);
        }
}

Test(numeric_attention_flash3_fwd, persistent_ctas_grouped_heads_and_tile_orders_give_attention) {
  static const char *const heads[] = {"heads=4 kv_heads=4", "heads=4 kv_heads=2", "heads=3 kv_heads=1"};
  static const char *const orders[] = {"tile_order=m_first", "tile_reverse=true layout=bshd",
                                       "tile_order=head_first tile_reverse=true", "head_order=sequences_first"};
  // More queries than keys: the first tiles see none of them. And the other way round.
  static const char *const lengths[] = {"seqlen_q=300 seqlen_kv=40", "seqlen_q=150 seqlen_kv=290"};
  char params[320];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t o = 0; o < COUNT(orders); o++)
      for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t g = 0; g < COUNT(groups); g++)
          for (int persistent = 0; persistent < 2; persistent++) {
            snprintf(params, sizeof params, "batch=2 head_dim=24 causal=true block_n=32 %s %s %s persistent=%d %s",
                     heads[h], orders[o], lengths[l], persistent, groups[g]);
            prove(params);
          }
}

Test(numeric_attention_flash3_fwd, head_dims_dtypes_and_more_rows_a_group_give_attention) {
  static const int head_dims[] = {16, 40, 64, 128, 256};
  static const char *const dtypes[] = {"fp16", "bf16"};
  static const char *const blocks[] = {"num_warps=8 block_m=128", "num_warps=8 block_m=256"};
  char params[256];
  for (size_t d = 0; d < COUNT(head_dims); d++)
    for (size_t t = 0; t < COUNT(dtypes); t++)
      for (size_t b = 0; b < COUNT(blocks); b++) {
        snprintf(params, sizeof params,
                 "heads=1 head_dim=%d seqlen_q=140 seqlen_kv=100 causal=%d block_n=48 dtype=%s %s", head_dims[d],
                 (int)t, dtypes[t], blocks[b]);
        prove(params);
      }
}

// Without the overlap of products and softmax, without turns, without a producer, without both; with turns of the
// softmax; with queries that come a tile ahead.
static const char *const ablations[] = {"overlap=0",
                                        "schedule=stages",
                                        "schedule=stages overlap=1",
                                        "schedule=stages producer=0",
                                        "schedule=stages producer=0 overlap=0",
                                        "turns=softmax",
                                        "q_stages=2",
                                        "turns=softmax q_stages=2 scaling=apart"};

Test(numeric_attention_flash3_fwd, without_its_overlap_or_its_roles_it_gives_attention) {
  // One key tile, two and more than there are stages; ragged; rows that see no key.
  static const char *const lengths[] = {"seqlen_q=1 seqlen_kv=1", "seqlen_q=130 seqlen_kv=65",
                                        "seqlen_q=200 seqlen_kv=230", "seqlen_q=300 seqlen_kv=40",
                                        "seqlen_q=70 seqlen_kv=300 window=45"};
  char params[320];
  for (size_t m = 0; m < COUNT(ablations); m++)
    for (size_t l = 0; l < COUNT(lengths); l++)
      for (int stages = 2; stages <= 4; stages++)
        for (int variant = 0; variant < 4; variant++) {
          snprintf(params, sizeof params,
                   "batch=2 heads=2 kv_heads=1 head_dim=24 block_n=32 causal=%d persistent=%d num_stages=%d %s %s %s",
                   variant % 2, variant / 2, stages, lengths[l], groups[(size_t)stages % 2], ablations[m]);
          prove(params);
        }
}

Test(numeric_attention_flash3_fwd, ablations_walk_blocks_of_a_mask_and_fp8_does_without_overlap) {
  static const char *const params[] = {
      "heads=2 head_dim=32 seqlen=384 block_n=32 mask=butterfly overlap=0",
      "heads=2 head_dim=32 seqlen=384 block_n=64 mask=local_global mask_width=1 schedule=stages producer=0 "
      "persistent=1",
      "heads=2 head_dim=32 seqlen=384 block_n=64 num_warps=4 schedule=stages persistent=1",
      "heads=2 head_dim=64 seqlen_q=200 seqlen_kv=330 causal=1 block_n=64 dtype=fp8_e4m3 overlap=0",
      "heads=2 head_dim=16 seqlen_q=256 seqlen_kv=100 block_n=32 cluster=2x1 overlap=0",
      "heads=2 head_dim=32 seqlen=384 block_n=64 mask=local_global mask_width=1 turns=softmax num_stages=1",
      "heads=3 head_dim=32 seqlen=384 block_n=64 persistent=1 tile_scheduler=dynamic_late turns=softmax q_stages=2",
      "heads=2 head_dim=64 seqlen_q=200 seqlen_kv=330 causal=1 block_n=64 dtype=fp8_e4m3 q_stages=2"};
  for (size_t i = 0; i < COUNT(params); i++) prove(params[i]);
}

Test(numeric_attention_flash3_fwd, fp8_gives_attention_to_the_rounding_of_p) {
  static const char *const kinds[] = {"block_n=32", "block_n=64 num_stages=3 persistent=1 heads=4 kv_heads=2",
                                      "num_warps=12 block_n=96 layout=bshd"};
  static const char *const lengths[] = {"seqlen_q=1 seqlen_kv=1", "seqlen_q=130 seqlen_kv=200 causal=1",
                                        "seqlen_q=200 seqlen_kv=130 causal=1", "seqlen_q=100 seqlen_kv=500",
                                        "seqlen_q=300 seqlen_kv=300 causal=1 window=70"};
  static const int head_dims[] = {16, 48, 64, 128};
  char params[256];
  for (size_t k = 0; k < COUNT(kinds); k++)
    for (size_t l = 0; l < COUNT(lengths); l++)
      for (size_t d = 0; d < COUNT(head_dims); d++) {
        snprintf(params, sizeof params, "dtype=fp8_e4m3 heads=2 head_dim=%d %s %s", head_dims[d], lengths[l], kinds[k]);
        prove(params);
      }
}

// Roundings of P are independent of each other and cancel in the sum over keys: the root mean square of the errors is
// far below the bound for a single one, 2^-4.
Test(numeric_attention_flash3_fwd, errors_of_fp8_average_out) {
  attention_case c, exact;
  static const char shape[] =
      "flash3_fwd mma=wgmma copy=tma heads=1 head_dim=64 seqlen_q=128 seqlen_kv=1024 block_n=64";
  char fp8[256];
  snprintf(fp8, sizeof fp8, "%s dtype=fp8_e4m3", shape);
  attention_case_init(&c, fp8);
  attention_case_run(&c);
  cr_assert(c.failure[0] == '\0', "%s", c.failure);
  attention_case_init(&exact, shape);
  for (int t = 0; t < 3; t++)
    memcpy(exact.tensors[t], c.tensors[t], sizeof(float) * (size_t)(t == 0 ? 128 * 64 : 1024 * 64));
  attention_case_run(&exact);
  double squares = 0, squares_of_error = 0;
  for (int i = 0; i < 128 * 64; i++) {
    double o = (double)exact.tensors[3][i], error = (double)c.tensors[3][i] - o;
    squares += o * o;
    squares_of_error += error * error;
  }
  cr_assert_lt(sqrt(squares_of_error / squares), 0.04, "relative error %g", sqrt(squares_of_error / squares));
  attention_case_fini(&c);
  attention_case_fini(&exact);
}

Test(numeric_attention_flash3_fwd, clusters_that_share_keys_and_values_give_attention) {
  // Four query tiles, the last ragged; key tiles that the shares of a copy divide, and lengths that they do not.
  static const char *const clusters[] = {"cluster=2x1", "cluster=4x1", "cluster=2x1 tile_order=head_first persistent=1",
                                         "cluster=4x1 tile_reverse=1 tile_order=head_first"};
  static const int lengths[] = {1, 33, 64, 100};
  char params[256];
  for (size_t c = 0; c < COUNT(clusters); c++)
    for (size_t kv = 0; kv < COUNT(lengths); kv++) {
      snprintf(params, sizeof params, "batch=2 heads=2 kv_heads=1 head_dim=16 block_n=32 seqlen_q=500 seqlen_kv=%d %s",
               lengths[kv], clusters[c]);
      prove(params);
    }
}

Test(numeric_attention_flash3_fwd, rows_that_see_no_key_give_zero_and_minus_infinity) {
  // With 300 queries and 10 keys, aligned at the bottom right, queries 0 to 289 see none: two whole tiles and more.
  attention_case c;
  attention_case_init(&c,
                      "flash3_fwd mma=wgmma copy=tma heads=1 head_dim=16 seqlen_q=300 seqlen_kv=10 causal=true "
                      "block_n=16 persistent=true");
  attention_case_run(&c);
  cr_assert(c.failure[0] == '\0', "%s", c.failure);
  for (int i = 0; i < 300; i++) {
    cr_assert((c.tensors[4][i] == -INFINITY) == (i < 290), "row %d: LSE %g", i, (double)c.tensors[4][i]);
    for (int d = 0; d < 16 && i < 290; d++) cr_assert(c.tensors[3][i * 16 + d] == 0.0f, "row %d", i);
  }
  attention_case_fini(&c);
}
