// Compulsory bytes of a launch are those of its inputs and outputs that masks, lengths and choices leave, each once,
// however the kernel's tiles cut them. Expected bytes are written out: heads * rows * head_dim * bytes of an element.
#include "fixture.h"

typedef struct bytes {
  const char *kernel;
  int64_t read, written;
} bytes;

static void check(const char *parameters, const bytes *launches, int num_launches) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(arch, parameters, NULL);
  cr_assert_eq(p.num_kernels, num_launches, "%s", parameters);
  for (int i = 0; i < num_launches; i++) {
    const double *value = p.kernels[i].metrics.value;
    cr_expect_str_eq(p.kernels[i].name, launches[i].kernel);
    cr_expect_eq((int64_t)value[FTL_METRIC_compulsory_read], launches[i].read, "%s: %s reads %.0f, not %lld",
                 parameters, launches[i].kernel, value[FTL_METRIC_compulsory_read], (long long)launches[i].read);
    cr_expect_eq((int64_t)value[FTL_METRIC_compulsory_write], launches[i].written, "%s: %s writes %.0f, not %lld",
                 parameters, launches[i].kernel, value[FTL_METRIC_compulsory_write], (long long)launches[i].written);
  }
  ftl_arch_destroy(arch);
}

#define CHECK(parameters, ...)                                         \
  do {                                                                 \
    static const bytes launches[] = {__VA_ARGS__};                     \
    check(parameters, launches, sizeof launches / sizeof launches[0]); \
  } while (0)

#define TILES " block_m=64 block_n=64 num_warps=4 "

// 100 queries aligned with the last of 1000 keys: the first sees the 50 up to its own, key 900, the last those up to
// key 999: 149 in all. 64 of them fill no whole number of tiles.
Test(unit_engine_compulsory, keys_that_no_window_reaches_are_not_needed) {
  enum { Q = 4 * 100 * 64 * 2, KV = 2 * 2 * 149 * 64 * 2, LSE = 4 * 100 * 4 };
  CHECK("flash2_fwd heads=4 kv_heads=2 seqlen_q=100 seqlen_kv=1000 head_dim=64 causal=1 window=50" TILES,
        {"flash2_fwd", Q + KV, Q + LSE});
  // Without a causal bound windows reach as far to the right as well, and no further to the left.
  CHECK("flash2_fwd heads=4 kv_heads=2 seqlen_q=100 seqlen_kv=1000 head_dim=64 window=50" TILES,
        {"flash2_fwd", Q + KV, Q + LSE});
  CHECK("flash2_fwd heads=4 kv_heads=2 seqlen_q=100 seqlen_kv=1000 head_dim=64 causal=1" TILES,
        {"flash2_fwd", Q + 2 * 2 * 1000 * 64 * 2, Q + LSE});
}

// Q and K of 192 columns, V and O of 128: DeepSeek's MLA as it prefills.
Test(unit_engine_compulsory, values_have_columns_of_their_own) {
  enum {
    Q = 4 * 300 * 192 * 2,
    K = 2 * 500 * 192 * 2,
    V = 2 * 500 * 128 * 2,
    O = 4 * 300 * 128 * 2,
    LSE = 4 * 300 * 4
  };
  enum { D_K_OF_HEADS = 2 * K, D_V_OF_HEADS = 2 * V, DELTA = LSE };
  const char *shape = "heads=4 kv_heads=2 seqlen_q=300 seqlen_kv=500 head_dim=192 head_dim_v=128";
  char params[256];
  snprintf(params, sizeof params, "flash2_fwd %s" TILES, shape);
  CHECK(params, {"flash2_fwd", Q + K + V, O + LSE});
  snprintf(params, sizeof params, "flash3_fwd %s block_n=64", shape);
  CHECK(params, {"flash3_fwd", Q + K + V, O + LSE});
  snprintf(params, sizeof params, "flash2_bwd %s dq=kernel mma=mma block_m=32 block_n=64 num_warps=4 num_stages=1",
           shape);
  CHECK(params, {"flash2_bwd_delta", 2 * O, DELTA},
        {"flash2_bwd_dk_dv", Q + K + V + O + LSE + DELTA, D_K_OF_HEADS + D_V_OF_HEADS},
        {"flash2_bwd_dq", Q + K + V + O + LSE + DELTA, Q},
        {"flash2_bwd_add_heads", D_K_OF_HEADS + D_V_OF_HEADS, K + V});
}

// Of a decoded token, in pages or not: a key's columns and a value's, and fp32 sums of a value's.
Test(unit_engine_compulsory, a_cached_token_has_the_columns_of_its_key_and_its_value) {
  enum { Q = 3 * 8 * 192 * 2, PARTIAL = 2 * 3 * 8 * (128 + 1) * 4, O = 3 * 8 * (128 * 2 + 4), KEYS = 3 * 2 * 512 };
  const char *shape = "batch=3 heads=8 kv_heads=2 seqlen_kv=512 head_dim=192 head_dim_v=128 splits=2";
  char params[256];
  snprintf(params, sizeof params, "flash_decode %s", shape);
  CHECK(params, {"flash_decode_split", Q + KEYS * (192 + 128) * 2, PARTIAL}, {"flash_decode_combine", PARTIAL, O});
  // A scale of 2 bytes for each 64 elements, of which 192 and 128 are multiples.
  snprintf(params, sizeof params, "flash_decode %s kv_dtype=int8", shape);
  CHECK(params, {"flash_decode_split", Q + KEYS * (192 + 128 + (3 + 2) * 2), PARTIAL},
        {"flash_decode_combine", PARTIAL, O});
}

// Every key is in some query's window; with fewer keys than queries too.
Test(unit_engine_compulsory, a_window_over_as_many_queries_as_keys_hides_no_key) {
  CHECK("flash2_fwd heads=1 seqlen=500 head_dim=64 causal=1 window=50" TILES,
        {"flash2_fwd", 3 * 500 * 64 * 2, 500 * 64 * 2 + 500 * 4});
  CHECK("flash2_fwd heads=1 seqlen_q=500 seqlen_kv=200 head_dim=64 causal=1 window=50" TILES,
        {"flash2_fwd", (500 + 2 * 200) * 64 * 2, 500 * 64 * 2 + 500 * 4});
}

// Three sequences of one query each: 1000 keys of each of two KV heads. A split's partial result is fp32.
Test(unit_engine_compulsory, a_decoding_window_is_what_is_read) {
  enum { Q = 3 * 8 * 128 * 2, PARTIAL = 4 * 3 * 8 * (128 + 1) * 4, O = 3 * 8 * (128 * 2 + 4) };
  const char *shape =
      "flash_decode batch=3 heads=8 kv_heads=2 seqlen_kv=5000 head_dim=128 causal=1 window=1000 splits=4";
  char params[256];
  CHECK(shape, {"flash_decode_split", Q + 3 * 2 * 2 * 1000 * 128 * 2, PARTIAL}, {"flash_decode_combine", PARTIAL, O});
  // int4: half a byte an element, and of each 32 a scale of 2 bytes
  snprintf(params, sizeof params, "%s kv_dtype=int4 kv_group_size=32", shape);
  CHECK(params, {"flash_decode_split", Q + 3 * 2 * 2 * 1000 * (128 / 2 + 128 / 32 * 2), PARTIAL},
        {"flash_decode_combine", PARTIAL, O});
}

// One part each. Of 7, 500 and 100 keys 7, 128 and 100 are in sight, in pages 0, 23 to 31 (keys 372 to 499) and 0 to 6
// of their sequences. Tables of 4-byte entries: lengths, first pages, pages, and of each item its sequence and part.
Test(unit_engine_compulsory, slots_of_pages_that_hold_no_key_in_sight_are_not_needed) {
  enum { Q = 3 * 8 * 64 * 2, PARTIAL = 3 * 8 * (64 + 1) * 4, O = 3 * 8 * (64 * 2 + 4), TABLES = (3 + 4 + 3 + 3) * 4 };
  CHECK("paged_decode heads=8 kv_heads=2 head_dim=64 lengths=7:500:100 page_size=16 causal=1 window=128 splits=1",
        {"paged_decode_split", Q + 2 * 2 * (7 + 128 + 100) * 64 * 2 + TABLES + (1 + 9 + 7) * 4, PARTIAL},
        {"paged_decode_combine", PARTIAL + 4 * 4, O});
  // Two pages of the prefix that all share, and 8, 0 and 5 tokens more; 3 + 2 + 3 entries.
  CHECK(
      "paged_decode heads=8 kv_heads=2 head_dim=64 lengths=40:32:37 page_size=16 page_layout=shared_prefix prefix=32 "
      "splits=1",
      {"paged_decode_split", Q + 2 * 2 * (32 + 8 + 5) * 64 * 2 + TABLES + (3 + 2 + 3) * 4, PARTIAL},
      {"paged_decode_combine", PARTIAL + 4 * 4, O});
}

// Blocks (0, 0), (1, 0), (2, 2), (3, 2) of 128 x 128: 256 of 512 keys. Tables: four key tiles, two ends for each of
// four query tiles, and the last.
Test(unit_engine_compulsory, keys_that_a_block_mask_hides_are_not_needed) {
  enum { Q = 512 * 64 * 2, LSE = 512 * 4 };
  CHECK(
      "flash2_fwd heads=1 seqlen=512 head_dim=64 block_m=128 block_n=128 num_warps=4 mask=bits mask_block=128 "
      "mask_bits=1:0:0:0:1:0:0:0:0:0:1:0:0:0:1:0",
      {"flash2_fwd", Q + 2 * 256 * 64 * 2 + (4 + 9) * 4, Q + LSE});
}

// The token of key 499 lies in row 3 of blocks of 128, which sees block 0 and itself: keys 0 to 127 and 384 to 499.
// Tables: four key tiles of 64, and the three ends of one query tile.
Test(unit_engine_compulsory, a_decoded_token_needs_the_blocks_that_it_sees) {
  enum { Q = 2 * 64 * 2, PARTIAL = 2 * (64 + 1) * 4, O = 2 * (64 * 2 + 4) };
  CHECK("flash_decode heads=2 seqlen_kv=500 head_dim=64 block_n=64 splits=1 mask=local_global mask_width=1",
        {"flash_decode_split", Q + 2 * 2 * (128 + 116) * 64 * 2 + (4 + 3) * 4, PARTIAL},
        {"flash_decode_combine", PARTIAL, O});
}

// Eight tokens in a row, the first in the place of key 492: with a window of 100 it sees keys 393 and on, in tiles of
// 32 from 384 on. The tokens' windows begin in tile 12 (393 to 400); the tree is in tiles 15: two tiles of a word a
// row.
Test(unit_engine_compulsory, a_tree_needs_the_window_of_its_first_token) {
  enum { ROWS = 2 * 8, Q = ROWS * 64 * 2, PARTIAL = ROWS * (64 + 1) * 4, O = ROWS * (64 * 2 + 4), KEYS = 500 - 393 };
  CHECK(
      "tree_decode heads=2 kv_heads=1 tree=blockwise seqlen_kv=500 head_dim=64 block_n=32 num_warps=1 splits=1 "
      "window=100",
      {"tree_decode_split", Q + 2 * KEYS * 64 * 2 + ROWS * 2 * 4, PARTIAL}, {"tree_decode_combine", PARTIAL, O});
}

// Sequences of 300, 50 and 7 tokens: no padding. Tables: 5 + 1 + 1 query tiles' sequences and rows, four offsets.
Test(unit_engine_compulsory, packed_sequences_need_their_tokens) {
  enum { TOKENS = 300 + 50 + 7 };
  CHECK("flash2_fwd heads=2 lengths=300:50:7 head_dim=64 causal=1" TILES,
        {"flash2_fwd", 3 * 2 * TOKENS * 64 * 2 + (7 + 7 + 4) * 4, 2 * TOKENS * (64 * 2 + 4)});
}

// A score for each of 1 + 2 + ... + 256 pairs a head; the softmax reads what it then overwrites, which counts once.
Test(unit_engine_compulsory, scores_above_the_diagonal_are_not_needed) {
  enum { ROWS = 2 * 256 * 64 * 2, S = 2 * (256 * 257 / 2) * 2, LSE = 2 * 256 * 4 };
  CHECK("standard_attention heads=2 seqlen=256 head_dim=64 causal=1" TILES, {"scores", 2 * ROWS, S},
        {"softmax_rows", 0, S + LSE}, {"outputs", S + ROWS, ROWS});
}

// 200 queries on 100 keys: the last 100 see 1 to 100 of them. Of the others scores need no Q and gradients no dO; rows
// of O and dQ are written, as zeros.
Test(unit_engine_compulsory, queries_without_scores_are_needed_where_their_rows_are_written) {
  enum { Q = 2 * 200 * 64 * 2, SEEN = 2 * 100 * 64 * 2, KV = 2 * 100 * 64 * 2, S = 2 * (100 * 101 / 2) * 2 };
  CHECK("standard_attention heads=2 seqlen_q=200 seqlen_kv=100 head_dim=64 causal=1" TILES, {"scores", SEEN + KV, S},
        {"softmax_rows", 0, S + 2 * 200 * 4}, {"outputs", S + KV, Q});
  CHECK("standard_attention pass=bwd heads=2 seqlen_q=200 seqlen_kv=100 head_dim=64 causal=1" TILES,
        {"bwd_d_values", S + SEEN, KV}, {"bwd_d_probs", SEEN + KV, S}, {"bwd_d_scores", S, S},
        {"bwd_d_queries", S + KV, Q}, {"bwd_d_keys", S + SEEN, KV});
}

// As many keys as the forward pass; dK and dV of the others are written all the same, as zeros.
Test(unit_engine_compulsory, the_backward_pass_needs_the_keys_of_the_forward_pass) {
  enum { Q = 2 * 100 * 64 * 2, ROWS = 2 * 100 * 4, KV = 2 * 2 * 149 * 64 * 2, DKV = 2 * 2 * 1000 * 64 * 2 };
  CHECK("flash2_bwd dq=kernel heads=2 seqlen_q=100 seqlen_kv=1000 head_dim=64 causal=1 window=50" TILES,
        {"flash2_bwd_delta", 2 * Q, ROWS}, {"flash2_bwd_dk_dv", 2 * Q + KV + 2 * ROWS, DKV},
        {"flash2_bwd_dq", 2 * Q + KV + 2 * ROWS, Q});
}

// 1000 queries aligned with 100 keys: the first 900 see none, and whoever walks the queries of a key tile passes them
// by. delta is written, and dQ converted, for all of them. Of dQ's sum, of 16 tiles of 64 queries, tile 14 begins with
// 896.
Test(unit_engine_compulsory, queries_above_a_causal_mask_are_not_needed_by_who_walks_queries) {
  enum { HD = 64, Q = 2 * 1000 * HD * 2, SEEN = 2 * 100 * HD * 2, ROWS = 2 * 1000 * 4, SEEN_ROWS = 2 * 100 * 4 };
  enum { KV = 2 * 2 * 100 * HD * 2, SUM = 2 * 1024 * HD * 4, SEEN_SUM = 2 * (1024 - 896) * HD * 4 };
  CHECK("flash2_bwd dq=kernel heads=2 seqlen_q=1000 seqlen_kv=100 head_dim=64 causal=1" TILES,
        {"flash2_bwd_delta", 2 * Q, ROWS}, {"flash2_bwd_dk_dv", 2 * SEEN + KV + 2 * SEEN_ROWS, KV},
        {"flash2_bwd_dq", 2 * Q + KV + 2 * ROWS, Q});
  CHECK("flash2_bwd dq=atomics mma=mma heads=2 seqlen_q=1000 seqlen_kv=100 head_dim=64 causal=1" TILES,
        {"flash2_bwd_delta", 2 * Q, ROWS + SUM}, {"flash2_bwd_dq_dk_dv", 2 * SEEN + KV + 2 * SEEN_ROWS, KV + SEEN_SUM},
        {"flash2_bwd_convert_dq", SUM, Q});
}

// Of 129 queries the last alone, by itself in a tile of 16, sees a key of the second block of 128: what a causal mask
// leaves of O and of dQ in fp32 between blocks is that row. Without a mask it is all of them.
Test(unit_engine_compulsory, rows_that_one_block_of_keys_completes_are_not_summed_up_in_memory) {
  enum { HD = 4 * 129 * 128 * 2, ROWS = 4 * 129 * 4, ROW = 4 * 1 * (128 + 1) * 4, D_Q_ROW = 4 * 1 * 128 * 4 };
  CHECK("flash1_fwd heads=4 seqlen=129 head_dim=128 causal=1", {"flash1_fwd", 3 * HD, HD + ROWS + ROW});
  CHECK("flash1_fwd heads=4 seqlen=129 head_dim=128", {"flash1_fwd", 3 * HD, HD + ROWS + 129 * ROW});
  CHECK("flash1_bwd heads=4 seqlen=129 head_dim=128 causal=1", {"flash1_bwd_delta", 2 * HD, ROWS},
        {"flash1_bwd", 4 * HD + 2 * ROWS, 3 * HD + D_Q_ROW});
  // Sequences of 129 and 50. Tables: the sequence of a tile, which is all of it, and three offsets.
  enum { TOKENS = 129 + 50, TABLES = (2 + 3) * 4 };
  CHECK("flash1_fwd heads=4 lengths=129:50 head_dim=128 causal=1",
        {"flash1_fwd", 3 * 4 * TOKENS * 128 * 2 + TABLES, 4 * TOKENS * (128 * 2 + 4) + ROW});
}

// Blocks of 128: the first row of blocks sees the first block of keys and the second both.
Test(unit_engine_compulsory, rows_that_a_block_mask_gives_one_block_are_not_summed_up_in_memory) {
  enum { HD = 256 * 128 * 2, ROWS = 256 * 4, PARTIAL = 128 * (128 + 1) * 4, TABLES = (8 + 16 + 5) * 4 };
  CHECK("flash1_fwd heads=1 seqlen=256 head_dim=128 block_n=128 mask=bits mask_block=128 mask_bits=1:0:1:1",
        {"flash1_fwd", 3 * HD + TABLES, HD + ROWS + PARTIAL});
}

// Of dQ's sum, which has room for a tile more a sequence, the tiles of queries: of 100, 33, 33 and 200 rows 2, 1, 1 and
// 4 of 64, of 64 fp32 columns.
Test(unit_engine_compulsory, the_room_between_packed_sequences_of_a_sum_is_not_needed) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p =
      prediction_of(arch, "flash2_bwd dq=atomics mma=mma heads=4 lengths=100:33x2:200 head_dim=64" TILES, NULL);
  const ftl_kernel_answer *convert = &p.kernels[p.num_kernels - 1], *adds = &p.kernels[1];
  cr_assert_str_eq(convert->name, "flash2_bwd_convert_dq");
  // and where the sequences begin
  int64_t sum = 4 * (2 + 1 + 1 + 4) * 64 * 64 * 4, read = (int64_t)convert->metrics.value[FTL_METRIC_compulsory_read];
  cr_expect_geq(read, sum);
  cr_expect_lt(read, sum + 1024);
  cr_expect_geq(convert->metrics.value[FTL_METRIC_dram_read], (double)read);
  cr_assert_str_eq(adds->name, "flash2_bwd_dq_dk_dv");
  int64_t keys = 2 * 4 * 366 * 64 * 2;  // dK and dV
  cr_expect_eq((int64_t)adds->metrics.value[FTL_METRIC_compulsory_write], sum + keys);
  ftl_arch_destroy(arch);
}

// 32 rows of the copy by columns; 100 rows of K and of V.
Test(unit_engine_compulsory, what_sparq_leaves_alone_is_not_needed) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p =
      prediction_of(arch, "sparq_decode batch=2 heads=3 seqlen_kv=1000 head_dim=128 sparq_r=32 sparq_k=100", NULL);
  enum { HEADS = 2 * 3, SCORES = 1, ATTEND = 3 };
  // With them q at the chosen components and 1 / tau, of all heads the components; q, and of all heads the keys.
  cr_expect_eq((int64_t)p.kernels[SCORES].metrics.value[FTL_METRIC_compulsory_read],
               HEADS * (32 * 1000 * 2 + 32 * 2 + 4 + 32 * 4));
  cr_expect_eq((int64_t)p.kernels[ATTEND].metrics.value[FTL_METRIC_compulsory_read],
               HEADS * (2 * 100 * 128 * 2 + 128 * 2 + 100 * 4));
  ftl_arch_destroy(arch);
}

// All of 256 keys are chosen, whose rows and places are whole sectors: each is read once, the list of places too.
Test(unit_engine_compulsory, a_gather_reads_all_of_its_list) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p =
      prediction_of(arch, "sparq_decode batch=2 heads=3 seqlen_kv=256 head_dim=64 sparq_r=32 sparq_k=256", NULL);
  enum { HEADS = 2 * 3, ATTEND = 3, READ = HEADS * (2 * 256 * 64 * 2 + 64 * 2 + 256 * 4) };
  cr_expect_eq((int64_t)p.kernels[ATTEND].metrics.value[FTL_METRIC_compulsory_read], READ);
  cr_expect_eq((int64_t)p.kernels[ATTEND].metrics.value[FTL_METRIC_dram_read], READ);
  ftl_arch_destroy(arch);
}
