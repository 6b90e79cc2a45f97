// flash2_fwd computes attention, and visits every pair that the mask allows once, over a grid of configurations.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "attention_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const schedules[] = {"num_stages=1",
                                        "num_stages=2",
                                        "num_stages=3",
                                        "num_stages=4",
                                        "num_stages=2 refill=late",
                                        "num_stages=3 refill=late",
                                        "num_stages=2 refill=late copy=tma",
                                        "num_stages=4 refill=late copy=tma",
                                        "num_stages=2 refill=amid copy=tma",
                                        "num_stages=3 refill=amid",
                                        "num_stages=2 refill=joint",
                                        "num_stages=4 refill=joint",
                                        "num_stages=2 refill=when_free",
                                        "num_stages=3 refill=when_free",
                                        "num_stages=1 refill=behind",
                                        "num_stages=2 refill=behind",
                                        "num_stages=1 code=plain",
                                        "schedule=interleaved",
                                        "schedule=interleaved code=plain"};

static void prove(const char *params) {
  const char *failure = attention_case_prove(params);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

// Around the tile boundaries of 16, 32, 64 and 128 rows, alone and in pairs.
static const int lengths[] = {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 130, 200};

static void prove_lengths(const char *rest) {
  char params[256];
  for (size_t schedule = 0; schedule < COUNT(schedules); schedule++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++) {
        snprintf(params, sizeof params, "heads=1 head_dim=16 seqlen_q=%d seqlen_kv=%d block_n=32 %s %s", lengths[q],
                 lengths[kv], schedules[schedule], rest);
        prove(params);
      }
}

Test(numeric_attention_flash2_fwd, every_pair_of_lengths_gives_attention) {
  prove_lengths("block_m=64 num_warps=4 causal=false");
}

Test(numeric_attention_flash2_fwd, every_pair_of_lengths_gives_causal_attention_aligned_at_the_bottom_right) {
  prove_lengths("block_m=32 num_warps=2 causal=true");
}

Test(numeric_attention_flash2_fwd, block_sizes_that_do_not_divide_or_exceed_the_problem_give_attention) {
  static const int blocks_m[] = {16, 32, 48, 64, 128, 256};
  static const int blocks_n[] = {16, 48, 64, 80, 128, 256};
  char params[256];
  for (size_t schedule = 0; schedule < COUNT(schedules); schedule++)
    for (size_t m = 0; m < COUNT(blocks_m); m++)
      for (size_t n = 0; n < COUNT(blocks_n); n++) {
        snprintf(params, sizeof params,
                 "heads=1 head_dim=16 seqlen_q=100 seqlen_kv=130 causal=%s block_m=%d block_n=%d num_warps=1 %s",
                 (m + n) % 2 ? "true" : "false", blocks_m[m], blocks_n[n], schedules[schedule]);
        prove(params);
      }
}

Test(numeric_attention_flash2_fwd, grouped_heads_layouts_and_tile_orders_give_attention) {
  static const char *const heads[] = {"heads=4 kv_heads=4", "heads=4 kv_heads=2", "heads=3 kv_heads=1"};
  static const char *const layouts[] = {"layout=bhsd", "layout=bshd"};
  static const char *const orders[] = {
      "tile_order=m_first",         "tile_order=head_first",
      "tile_reverse=true",          "tile_order=head_first tile_reverse=true",
      "head_order=sequences_first", "head_order=sequences_first tile_order=head_first"};
  static const char *const ctas[] = {"persistent=false", "persistent=true"};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t l = 0; l < COUNT(layouts); l++)
      for (size_t o = 0; o < COUNT(orders); o++)
        for (size_t p = 0; p < COUNT(ctas); p++) {
          snprintf(params, sizeof params,
                   "batch=2 %s %s %s %s head_dim=24 seqlen_q=70 seqlen_kv=90 causal=true block_m=32 block_n=16 "
                   "num_warps=2",
                   heads[h], layouts[l], orders[o], ctas[p]);
          prove(params);
        }
}

Test(numeric_attention_flash2_fwd, persistent_ctas_leave_every_ring_ready_for_their_next_tile) {
  static const char *const mmas[] = {"mma=mma num_warps=2", "mma=wgmma num_warps=4"};
  static const char *const lengths_of[] = {"seqlen_q=200 seqlen_kv=200", "seqlen_q=260 seqlen_kv=20",
                                           "seqlen_q=100 seqlen_kv=160"};
  char params[256];
  for (size_t schedule = 0; schedule < COUNT(schedules); schedule++)
    for (size_t m = 0; m < COUNT(mmas); m++)
      for (size_t s = 0; s < COUNT(lengths_of); s++)
        for (int causal = 0; causal < 2; causal++) {
          snprintf(params, sizeof params,
                   "heads=3 head_dim=16 block_m=64 block_n=32 persistent=true causal=%d %s %s %s", causal,
                   schedules[schedule], mmas[m], lengths_of[s]);
          prove(params);
        }
}

Test(numeric_attention_flash2_fwd, padded_heads_give_attention) {
  prove(
      "heads=2 head_dim=96 head_dim_multiple=128 block_m=64 block_n=32 num_warps=4 causal=true seqlen_q=100 "
      "seqlen_kv=130");
  prove(
      "heads=2 head_dim=24 head_dim_multiple=32 block_m=32 block_n=16 num_warps=2 seqlen_q=70 seqlen_kv=90 dtype=bf16");
}

Test(numeric_attention_flash2_fwd, head_dims_dtypes_and_mma_kinds_give_attention) {
  static const int head_dims[] = {16, 24, 40, 64, 72, 128, 256};
  static const char *const dtypes[] = {"fp16", "bf16"};
  static const char *const kinds[] = {"mma=mma num_warps=4 copy=ldg", "mma=wgmma num_warps=4 copy=tma",
                                      "mma=mma num_warps=1 schedule=interleaved",
                                      "mma=wgmma num_warps=4 schedule=interleaved"};
  char params[256];
  for (size_t d = 0; d < COUNT(head_dims); d++)
    for (size_t t = 0; t < COUNT(dtypes); t++)
      for (size_t k = 0; k < COUNT(kinds); k++) {
        snprintf(params, sizeof params,
                 "heads=1 head_dim=%d seqlen_q=70 seqlen_kv=100 causal=true block_m=64 block_n=32 dtype=%s %s %s",
                 head_dims[d], dtypes[t], kinds[k], k == 0 ? "softmax_scale=0.07" : "");
        prove(params);
      }
}

// Each warp has a part of the keys, exchanges its rows' maxima and sums with the others, and multiplies all of P with a
// part of V's columns.
Test(numeric_attention_flash2_fwd, warps_side_by_side_give_attention) {
  static const char *const tiles[] = {
      "block_m=32 block_n=32 num_warps=2 warps_n=2", "block_m=32 block_n=64 num_warps=4 warps_n=4",
      "block_m=64 block_n=32 num_warps=4 warps_n=2", "block_m=16 block_n=128 num_warps=4 warps_n=4 window=40",
      "block_m=16 block_n=64 num_warps=2 warps_n=2 dropout_p=0.3"};
  static const char *const sums[] = {"row_sums=end", "row_sums=step"};
  static const char *const more[] = {"causal=false scaling=scores", "causal=true guard=always",
                                     "causal=true persistent=true"};
  char params[256];
  for (size_t schedule = 0; schedule < COUNT(schedules); schedule++)
    for (size_t t = 0; t < COUNT(tiles); t++)
      for (size_t i = 0; i < COUNT(sums); i++)
        for (size_t m = 0; m < COUNT(more); m++) {
          snprintf(params, sizeof params, "heads=2 head_dim=64 seqlen_q=70 seqlen_kv=150 mma=mma %s %s %s %s", tiles[t],
                   sums[i], more[m], schedules[schedule]);
          prove(params);
        }
}

// Both products are block products, of parts of 32 columns of Q and K and of 32 keys of V; heads narrower than a tile
// has keys are padded to a part, and O to the tile.
Test(numeric_attention_flash2_fwd, products_back_to_back_give_attention) {
  static const char *const tiles[] = {"block_m=64 block_n=64 head_dim=64", "block_m=64 block_n=64 head_dim=32",
                                      "block_m=32 block_n=128 head_dim=80", "block_m=64 block_n=128 head_dim=128",
                                      "block_m=32 block_n=64 head_dim=40 head_dim_v=64"};
  static const char *const copies[] = {"copy=cp_async", "copy=ldg"};
  static const char *const more[] = {"", "causal=true", "causal=true window=40", "dropout_p=0.3",
                                     "causal=true heads=4 kv_heads=2 layout=bshd dtype=bf16"};
  char params[256];
  for (size_t t = 0; t < COUNT(tiles); t++)
    for (size_t i = 0; i < COUNT(copies); i++)
      for (size_t m = 0; m < COUNT(more); m++) {
        snprintf(params, sizeof params, "heads=2 seqlen_q=70 seqlen_kv=150 schedule=back_to_back mma=mma %s %s %s",
                 tiles[t], copies[i], more[m]);
        prove(params);
      }
}

// Each warpgroup has all keys and a part of V's columns.
Test(numeric_attention_flash2_fwd, warpgroups_that_repeat_the_scores_give_attention) {
  static const char *const tiles[] = {"block_m=64 block_n=32 num_warps=8 warps_n=2",
                                      "block_m=128 block_n=64 num_warps=16 warps_n=2 window=40",
                                      "block_m=64 block_n=64 num_warps=16 warps_n=4 dropout_p=0.3"};
  static const char *const more[] = {"causal=false row_sums=end", "causal=true row_sums=step persistent=true"};
  char params[256];
  for (size_t schedule = 0; schedule < COUNT(schedules); schedule++)
    for (size_t t = 0; t < COUNT(tiles); t++)
      for (size_t m = 0; m < COUNT(more); m++) {
        snprintf(params, sizeof params, "heads=2 head_dim=64 seqlen_q=70 seqlen_kv=150 mma=wgmma %s %s %s", tiles[t],
                 more[m], schedules[schedule]);
        prove(params);
      }
}

Test(numeric_attention_flash2_fwd, rows_that_see_no_key_give_zero_and_minus_infinity) {
  // With 40 queries and 10 keys, aligned at the bottom right, queries 0 to 29 see none.
  for (size_t schedule = 0; schedule < COUNT(schedules); schedule++) {
    char params[256];
    snprintf(params, sizeof params,
             "heads=1 head_dim=16 seqlen_q=40 seqlen_kv=10 causal=true block_m=16 block_n=16 num_warps=1 %s",
             schedules[schedule]);
    attention_case c;
    attention_case_init(&c, params);
    attention_case_run(&c);
    cr_assert(c.failure[0] == '\0', "%s", c.failure);
    for (int i = 0; i < 40; i++) {
      cr_assert((c.tensors[4][i] == -INFINITY) == (i < 30), "row %d: LSE %g", i, (double)c.tensors[4][i]);
      for (int d = 0; d < 16 && i < 30; d++) cr_assert(c.tensors[3][i * 16 + d] == 0.0f, "row %d", i);
    }
    attention_case_fini(&c);
  }
}
