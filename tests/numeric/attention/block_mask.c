// Block masks: each workload that has them computes attention over the blocks that are left, visits every pair of them
// once and no other.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "attention_case.h"
#include "workloads/block_mask.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove(const char *params) {
  const char *failure = attention_case_prove(params);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

static const char *const masks[] = {"mask=strided mask_width=3", "mask=local_global mask_width=2", "mask=butterfly",
                                    "mask=local_global mask_width=100"};
// 384 keys are 6 blocks of 64, or 3 of 128.
static const char *const problems[] = {
    "seqlen_q=384 seqlen_kv=384",
    "seqlen_q=350 seqlen_kv=350 causal=true",
    "seqlen_q=128 seqlen_kv=384 causal=true window=150",
    "batch=2 heads=4 kv_heads=2 seqlen_q=256 seqlen_kv=384 layout=bshd",
};

static void prove_all(const char *const *kernels, size_t num_kernels) {
  char params[400];
  for (size_t k = 0; k < num_kernels; k++)
    for (size_t m = 0; m < COUNT(masks); m++)
      for (size_t p = 0; p < COUNT(problems); p++) {
        snprintf(params, sizeof params, "%s heads=1 head_dim=16 %s %s", kernels[k], masks[m], problems[p]);
        prove(params);
      }
}

Test(numeric_attention_block_mask, flash2_fwd_visits_the_blocks_that_are_left) {
  static const char *const kernels[] = {
      "flash2_fwd mask_block=64 block_m=32 block_n=32 num_warps=2 num_stages=1",
      "flash2_fwd mask_block=64 block_m=64 block_n=32 num_warps=2 num_stages=3",
      "flash2_fwd mask_block=64 block_m=64 block_n=32 num_warps=2 num_stages=2 refill=late",
      "flash2_fwd mask_block=64 block_m=64 block_n=64 num_warps=4 schedule=interleaved",
      "flash2_fwd mask_block=64 block_m=32 block_n=64 num_warps=2 persistent=true dropout_p=0.2",
      "flash2_fwd mask_block=64 block_m=64 block_n=32 num_warps=4 mma=wgmma copy=tma",
      "flash2_fwd mask_block=64 block_m=32 block_n=16 num_warps=2 num_stages=2 refill=late mask_steps=blocks",
      "flash2_fwd mask_block=64 block_m=64 block_n=32 num_warps=4 schedule=interleaved mask_steps=blocks"};
  prove_all(kernels, COUNT(kernels));
}

// Lists of blocks are walked without a mask too, and tiles of a block that nobody sees add nothing.
Test(numeric_attention_block_mask, flash2_fwd_walks_lists_of_all_blocks) {
  char params[400];
  for (size_t p = 0; p < COUNT(problems); p++) {
    snprintf(params, sizeof params,
             "heads=1 head_dim=16 block_m=32 block_n=16 num_warps=2 mask_steps=blocks mask_block=64 %s", problems[p]);
    prove(params);
  }
}

// The table of a program's tiles, as text.
static void table_text(const char *params, const char *name, char *text, size_t size) {
  attention_case c;
  attention_case_init(&c, params);
  cr_assert(c.failure[0] == '\0', "%s", c.failure);
  text[0] = '\0';
  for (int32_t t = 0; t < c.program->num_tensors; t++) {
    const ftl_tensor *tensor = &c.program->tensors[t];
    if (strcmp(tensor->name, name) != 0) continue;
    for (int64_t i = 0; i < tensor->num_rows; i++)
      snprintf(text + strlen(text), size - strlen(text), "%s%d", i > 0 ? " " : "", (int)tensor->table[i]);
  }
  attention_case_fini(&c);
}

// Causal, two blocks of 64 queries and keys, tiles of 32: of the first block's tiles both walk key tiles 0 and 1 of
// their block, which is seen in part, though the first sees none of tile 1; those of the second walk 2 and 3 first and
// then 0 and 1, which are seen whole. By tiles, whole ones come first, and only those that somebody sees are walked.
Test(numeric_attention_block_mask, lists_of_blocks_hold_their_tiles_and_those_seen_in_part_first) {
#define FOUR_TILES "heads=1 head_dim=16 seqlen=128 block_m=32 block_n=32 num_warps=2 mask_block=64 causal=true "
  char text[200];
  table_text(FOUR_TILES "mask_steps=blocks", "step_tiles", text, sizeof text);
  cr_expect_str_eq(text, "0 1 0 1 2 3 0 1 2 3 0 1");
  table_text(FOUR_TILES "mask_steps=blocks", "ends", text, sizeof text);
  cr_expect_str_eq(text, "0 2 2 4 4 6 8 10 12");
  table_text(FOUR_TILES "mask=local_global mask_width=2", "step_tiles", text, sizeof text);
  cr_expect_str_eq(text, "0 0 1 0 1 2 0 1 2 3");
}

Test(numeric_attention_block_mask, flash3_fwd_visits_the_blocks_that_are_left) {
  static const char *const kernels[] = {"flash3_fwd mma=wgmma copy=tma mask_block=128 block_n=32",
                                        "flash3_fwd mma=wgmma copy=tma mask_block=128 block_n=64 persistent=true"};
  prove_all(kernels, COUNT(kernels));
}

// One query in any row of blocks; several in one row of blocks, and in two and three that see different blocks.
Test(numeric_attention_block_mask, flash_decode_splits_the_blocks_that_are_left) {
  static const char *const kernels[] = {
      "block_m=16 block_n=32 num_warps=2 splits=1", "block_m=16 block_n=64 num_warps=4 splits=3 num_stages=3",
      "block_m=64 block_n=32 num_warps=4 splits=2 persistent=true",
      "block_m=64 num_warps=4 mma=wgmma copy=tma splits=2", "block_m=16 block_n=32 num_warps=1 splits=2 layout=bshd"};
  static const char *const lengths[] = {"seqlen_q=1 seqlen_kv=384",
                                        "seqlen_q=1 seqlen_kv=321",
                                        "seqlen_q=5 seqlen_kv=322 causal=true",
                                        "seqlen_q=5 seqlen_kv=322",
                                        "seqlen_q=5 seqlen_kv=380 causal=true window=100",
                                        "seqlen_q=70 seqlen_kv=330 causal=true window=150"};
  char params[400];
  for (size_t k = 0; k < COUNT(kernels); k++)
    for (size_t m = 0; m < COUNT(masks); m++)
      for (size_t l = 0; l < COUNT(lengths); l++) {
        snprintf(params, sizeof params, "flash_decode %s heads=4 kv_heads=2 head_dim=16 mask_block=64 %s %s",
                 kernels[k], masks[m], lengths[l]);
        prove(params);
      }
}

// The tokens of two rows of blocks, one of which sees nothing; a cache in fewer bits.
Test(numeric_attention_block_mask, flash_decode_takes_bits_and_quantised_caches) {
  prove(
      "flash_decode heads=4 kv_heads=2 head_dim=32 seqlen_q=3 seqlen_kv=129 splits=2 block_m=16 block_n=32 num_warps=2 "
      "mask=bits mask_block=64 mask_bits=0x3:1:0:1 kv_dtype=int8");
  prove(
      "flash_decode heads=2 head_dim=32 seqlen_q=1 seqlen_kv=500 splits=3 block_m=16 block_n=32 num_warps=2 mask=bits "
      "mask_block=64 mask_bits=1:0:0:1:1:0:1:1 kv_dtype=int4 kv_group_size=16");
}

Test(numeric_attention_block_mask, bits_are_taken_row_by_row_and_rows_may_see_nothing) {
  prove(
      "heads=2 head_dim=16 seqlen_q=192 seqlen_kv=256 mask_block=64 block_m=64 block_n=32 num_warps=4 mask=bits "
      "mask_bits=1:0:1:0:0x4:0x3:1");
  prove(
      "heads=2 head_dim=16 seqlen_q=192 seqlen_kv=256 mask_block=64 block_m=64 block_n=32 num_warps=4 mask=bits "
      "mask_bits=0x4:1x8 causal=true schedule=interleaved");
}

static void assert_refused(const char *params, const char *message) {
  attention_case c;
  attention_case_init(&c, params);
  cr_assert_str_eq(c.failure, message);
  attention_case_fini(&c);
}

Test(numeric_attention_block_mask, masks_that_do_not_fit_are_refused) {
  assert_refused("heads=1 head_dim=16 seqlen=256 mask=butterfly mask_block=64",
                 "mask_block=64: a block must hold a whole number of tiles, block_m=128");
  assert_refused("heads=1 head_dim=16 seqlen_q=256 seqlen_kv=260 mask=butterfly",
                 "mask_block=128: with a mask there are as many keys as queries, or whole blocks more");
  assert_refused("heads=1 head_dim=16 seqlen=256 mask=bits mask_bits=1x3",
                 "mask_bits: 3 numbers, and there are 2 x 2 blocks of mask_block=128");
  assert_refused("heads=1 head_dim=16 seqlen=256 mask=bits mask_bits=0x4", "mask: no query sees any key");
  assert_refused("flash_decode heads=1 head_dim=16 seqlen_kv=256 splits=1 mask=butterfly mask_block=32 block_n=64",
                 "mask_block=32: a block must hold a whole number of tiles, block_n=64");
  assert_refused("flash_decode heads=1 head_dim=16 seqlen_q=9 seqlen_kv=8 splits=1 mask=butterfly",
                 "seqlen_q=9: with a mask at most as many as seqlen_kv=8");
  assert_refused(
      "flash_decode heads=1 head_dim=16 seqlen_q=3 seqlen_kv=129 splits=1 mask=butterfly mask_block=64 block_n=16 "
      "num_warps=1",
      "block_n=16: a word of mask_bits has 32 keys, so a multiple");
  assert_refused("heads=1 head_dim=16 lengths=100:28 mask_steps=blocks",
                 "mask_steps=blocks: of sequences that are equally long, not with lengths");
  assert_refused("heads=1 head_dim=16 seqlen=256 schedule=interleaved mask=butterfly mask_steps=unrolled",
                 "mask_steps=unrolled: keys end at a diagonal, not with mask");
  assert_refused("heads=1 head_dim=16 seqlen=256 block_m=256 block_n=16 schedule=interleaved mask_steps=unrolled",
                 "block_n=16: mask_steps=unrolled writes at most 8 steps of block_m=256");
  assert_refused("heads=1 head_dim=16 seqlen=256 mask_steps=unrolled",
                 "mask_steps=unrolled: steps of schedule=interleaved");
  assert_refused("flash3_fwd mma=wgmma copy=tma heads=1 head_dim=16 seqlen=256 mask=bits mask_bits=1x2:0x2",
                 "mask: flash3_fwd needs a key tile for every query tile, and one sees none");
}

// As a picture: rows of blocks, 1 where a block is left.
static void assert_pattern(int64_t pattern, int64_t width, const char *const rows[8]) {
  ftl_block_mask mask = {.pattern = pattern, .width = width, .block_tokens = 1, .num_rows = 8, .num_columns = 8};
  for (int64_t r = 0; r < 8; r++)
    for (int64_t c = 0; c < 8; c++)
      cr_assert_eq(ftl_block_mask_sees(&mask, r, c), rows[r][c] == '1', "row %d, column %d", (int)r, (int)c);
}

Test(numeric_attention_block_mask, patterns_are_those_of_their_papers) {
  assert_pattern(
      FTL_MASK_STRIDED, 3,
      (const char *[]){"11110010", "11111001", "11111100", "11111110", "01111111", "00111111", "10011111", "01001111"});
  assert_pattern(
      FTL_MASK_LOCAL_GLOBAL, 2,
      (const char *[]){"11111111", "11100000", "11110000", "10111000", "10011100", "10001110", "10000111", "10000011"});
  assert_pattern(
      FTL_MASK_BUTTERFLY, 1,
      (const char *[]){"11101000", "11010100", "10110010", "01110001", "10001110", "01001101", "00101011", "00010111"});
}

Test(numeric_attention_block_mask, a_tile_that_is_not_in_the_list_is_caught) {
  attention_case c;
  attention_case_init(&c,
                      "heads=1 head_dim=16 seqlen=256 block_m=64 block_n=32 num_warps=4 mask=butterfly mask_block=64");
  for (int32_t t = 0; t < c.program->num_tensors; t++)
    if (strcmp(c.program->tensors[t].name, "step_tiles") == 0) c.program->tensors[t].table[3]--;
  attention_case_run(&c);
  cr_assert(c.failure[0] == '\0', "the mutant runs: %s", c.failure);
  attention_case_check_visits(&c);
  cr_assert(c.failure[0] != '\0', "a pair is visited wrongly");
  attention_case_fini(&c);
}
