// What lengths say of a batch, and how its keys become work items.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/decode.h"

static ftl_status try_spec(const char *params, ftl_spec *spec, ftl_error *error) {
  char text[256];
  *error = (ftl_error){0};
  snprintf(text, sizeof text, "heads=8 kv_heads=2 seqlen_q=1 head_dim=64 %s", params);
  cr_assert_eq(ftl_spec_init(spec, "paged_decode", error), FTL_OK);
  for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(word, '=');
    *value++ = '\0';
    cr_assert_eq(ftl_spec_set_text(spec, word, value, error), FTL_OK, "%s", error->message);
  }
  return ftl_spec_complete(spec, error);
}

static ftl_spec spec_of(const char *params) {
  ftl_spec spec;
  ftl_error error;
  cr_assert_eq(try_spec(params, &spec, &error), FTL_OK, "%s", error.message);
  return spec;
}

static void assert_refused(const char *params, const char *message) {
  ftl_spec spec;
  ftl_error error;
  cr_assert_eq(try_spec(params, &spec, &error), FTL_BAD_INPUT, "%s", params);
  cr_expect_str_eq(error.message, message);
}

Test(unit_workloads_paged_decode, lengths_give_the_batch_and_its_longest_sequence) {
  ftl_spec spec = spec_of("lengths=100:4096x3:7");
  cr_expect_eq(spec.value[FTL_PARAM_batch], 5);
  cr_expect_eq(spec.value[FTL_PARAM_seqlen_kv], 4096);
  cr_expect_eq(spec_of("lengths=100:7 seqlen_kv=2048").value[FTL_PARAM_seqlen_kv], 2048, "what memory is reserved for");
  assert_refused("lengths=100:7 batch=3", "batch=3: lengths has 2");
  assert_refused("lengths=100:7 seqlen_kv=99", "seqlen_kv=99: the longest of lengths is 100");
  assert_refused("batch=3", "paged_decode needs seqlen_kv, 1 to 16777216 tokens: key/value rows a head");
}

Test(unit_workloads_paged_decode, a_prefix_is_shared_where_the_layout_says_so_and_no_longer_than_any_sequence) {
  cr_expect_eq(spec_of("lengths=100:7 page_layout=shared_prefix prefix=7").value[FTL_PARAM_prefix], 7);
  assert_refused("lengths=100:7 page_layout=shared_prefix prefix=8",
                 "prefix=8: with page_layout=shared_prefix from 1 to 7, the shortest sequence");
  assert_refused("lengths=100:7 page_layout=shared_prefix",
                 "prefix=0: with page_layout=shared_prefix from 1 to 7, the shortest sequence");
  assert_refused("seqlen_kv=100 prefix=7", "prefix=7: only with page_layout=shared_prefix");
}

// 64 keys a tile: 1, 64 and 16 tiles.
#define BATCH "lengths=7:4096:1000 block_n=64 page_size=16 "

Test(unit_workloads_paged_decode, work_items_are_the_parts_of_each_sequence_and_none_is_empty) {
  ftl_spec spec = spec_of(BATCH);
  ftl_paged_batch *b;
  ftl_error error = {0};
  cr_assert_eq(ftl_paged_batch_create(&b, &spec, 10, &error), FTL_OK, "%s", error.message);
  const int32_t first[] = {0, 1, 8, 10}, sequence[] = {0, 1, 1, 1, 1, 1, 1, 1, 2, 2},
                part[] = {0, 0, 1, 2, 3, 4, 5, 6, 0, 1};
  cr_assert_eq(b->num_items, 10);
  cr_expect_eq(memcmp(b->first_item, first, sizeof first), 0);
  cr_expect_eq(memcmp(b->item_sequence, sequence, sizeof sequence), 0);
  cr_expect_eq(memcmp(b->item_part, part, sizeof part), 0);
  cr_expect_eq(b->num_pages, 1 + 256 + 63);
  cr_expect_eq(b->num_copied_pages, 0);
  ftl_paged_batch_destroy(b);
}

// 129 keys of each sequence are in sight (the query's own among them): of 4096 and of 1000 at most 1 + 2 tiles, of 7
// the one there is.
Test(unit_workloads_paged_decode, under_a_window_the_parts_are_those_in_sight) {
  ftl_spec spec = spec_of(BATCH "causal=1 window=129");
  ftl_paged_batch *b;
  ftl_error error = {0};
  cr_assert_eq(ftl_paged_batch_create(&b, &spec, 2, &error), FTL_OK, "%s", error.message);
  const int32_t first[] = {0, 1, 3, 5};
  cr_expect_eq(memcmp(b->first_item, first, sizeof first), 0);
  ftl_paged_batch_destroy(b);
  cr_expect_eq(ftl_paged_batch_tiles_per_part(&spec, 1, 1000), 1);
  cr_expect_eq(ftl_paged_batch_tiles_per_part(&spec, 1, 6), 2, "1 + 2 + 2 parts, and not 1 + 3 + 3");
}

// Of 1 + 256 + 63 pages the last ones have 7, 16 and 8 tokens. A shared prefix of 5 tokens: all three sequences copy
// its page, which the prefix keeps.
Test(unit_workloads_paged_decode, slots_without_a_token_are_those_of_last_pages) {
  static const struct {
    const char *params;
    int64_t num_pages, num_filled, num_copied;
  } cases[] = {{BATCH, 320, 7 + 4096 + 1000, 0},
               {BATCH "page_layout=shared_prefix prefix=5", 321, 7 + 4096 + 1000 + 5, 3},
               {"lengths=40:32:37 page_size=16 page_layout=shared_prefix prefix=32", 4, 32 + 8 + 5, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_spec spec = spec_of(cases[i].params);
    ftl_paged_batch *b;
    ftl_error error = {0};
    cr_assert_eq(ftl_paged_batch_create(&b, &spec, 10, &error), FTL_OK, "%s", error.message);
    cr_expect_eq(b->num_pages, cases[i].num_pages, "%s", cases[i].params);
    cr_expect_eq(b->num_filled_slots, cases[i].num_filled, "%s", cases[i].params);
    cr_expect_eq(b->num_copied_pages, cases[i].num_copied, "%s", cases[i].params);
    ftl_paged_batch_destroy(b);
  }
}

// Parts of t tiles: 1 + ceil(64 / t) + ceil(16 / t) of them, two CTAs each. 40 CTAs hold 20 parts: t = 5 has
// 1 + 13 + 4 = 18, t = 4 has 1 + 16 + 4 = 21.
Test(unit_workloads_paged_decode, parts_are_as_short_as_the_ctas_at_once_allow) {
  ftl_spec spec = spec_of(BATCH);
  cr_expect_eq(ftl_paged_batch_tiles_per_part(&spec, 2, 40), 5);
  cr_expect_eq(ftl_paged_batch_tiles_per_part(&spec, 2, 42), 4);
  cr_expect_eq(ftl_paged_batch_tiles_per_part(&spec, 2, 4), 64, "a part each is more than fit at once");
  cr_expect_eq(ftl_paged_batch_tiles_per_part(&spec, 1, 1000), 1);
}

Test(unit_workloads_paged_decode, scattered_pages_are_a_permutation_in_which_neighbours_are_far_apart) {
  ftl_spec spec = spec_of("lengths=1600 page_size=16 page_layout=scattered");
  ftl_paged_batch *b;
  ftl_error error = {0};
  bool seen[100] = {false};
  cr_assert_eq(ftl_paged_batch_create(&b, &spec, 1, &error), FTL_OK, "%s", error.message);
  for (int i = 0; i < 100; i++) {
    cr_assert(b->pages[i] >= 0 && b->pages[i] < 100 && !seen[b->pages[i]]);
    seen[b->pages[i]] = true;
    if (i > 0) cr_expect_gt(abs(b->pages[i] - b->pages[i - 1]), 20);
  }
  ftl_paged_batch_destroy(b);
}

Test(unit_workloads_paged_decode, block_tables_that_are_too_long_are_refused) {
  ftl_spec spec = spec_of("lengths=4194304x2 page_size=1");
  ftl_paged_batch *b;
  ftl_error error = {0};
  cr_assert_eq(ftl_paged_batch_create(&b, &spec, 1, &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, "page_size=1: the block tables have 8388608 entries; allowed are 4194304");
}

// Quantised pages: scales come by vectors of 8, and a tile's pages or a page's tiles are whole.
Test(unit_workloads_paged_decode, pages_of_a_quantised_cache_fit_tiles) {
  static const struct {
    const char *params, *message;
  } cases[] = {
      {"page_size=4", "page_size=4 kv_dtype=int8: 16-byte copies of a page's scales need a multiple of 8"},
      {"page_size=48 block_n=64",
       "page_size=48 block_n=64: with kv_dtype=int8 a key tile is whole pages, or a whole part of one"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[128];
    snprintf(params, sizeof params, "copy=cp_async mma=mma splits=1 seqlen_kv=100 kv_dtype=int8 %s", cases[i].params);
    ftl_spec spec = spec_of(params);
    ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
    int num_launches = -1;
    ftl_error error = {0};
    cr_expect_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_INFEASIBLE, "%s", params);
    cr_expect_str_eq(error.message, cases[i].message);
  }
}
