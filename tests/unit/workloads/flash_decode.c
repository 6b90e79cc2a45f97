// Structure, defaults and feasibility of flash_decode. That it computes attention is proved in tests/numeric/attention.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "workloads/decode.h"
#include "tests/spec_words.h"

static ftl_spec spec_of(const char *params) {
  ftl_spec spec;
  ftl_error error = {0};
  cr_assert_eq(spec_of_words(&spec, "flash_decode", "copy=cp_async mma=mma", params, &error), FTL_OK, "%s",
               error.message);
  return spec;
}

Test(unit_workloads_flash_decode, decodes_one_query_unless_told) {
  cr_assert_eq(spec_of("heads=2 seqlen_kv=512 head_dim=64").value[FTL_PARAM_seqlen_q], 1);
  cr_assert_eq(spec_of("heads=2 seqlen_q=3 seqlen_kv=512 head_dim=64").value[FTL_PARAM_seqlen_q], 3);
}

Test(unit_workloads_flash_decode, infeasible_configurations_name_the_parameter_and_the_limit) {
  static const struct {
    const char *params, *reason;
  } cases[] = {
      {"copy=ldg num_stages=3", "num_stages=3: copy=ldg keeps one tile in flight"},
      {"block_n=24", "block_n=24: it is the K of the second matrix product, a multiple of 16"},
      {"block_m=48 num_warps=4", "block_m=48 num_warps=4: the 16 rows a warp must fit an equal number of times"},
      {"block_m=16 num_warps=4 block_n=32", "block_n=32: 4 groups of warps share a key tile, so a multiple of 64"},
      {"mma=wgmma num_warps=6", "num_warps=6: with wgmma it must be a multiple of 4"},
      {"mma=wgmma block_m=16", "with wgmma each 4 warps need a multiple of 64 rows"},
      {"schedule=interleaved num_stages=2 block_m=64 num_warps=4", "num_stages=2: schedule=interleaved has one buffer"},
      {"schedule=interleaved block_m=16 num_warps=4", "schedule=interleaved: warps of 16 rows each (block_m=16"},
      {"schedule=interleaved block_m=64 num_warps=4 kv_dtype=int8", "schedule=interleaved: warps of 16 rows each"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char params[256];
    snprintf(params, sizeof params, "heads=2 seqlen_q=1 seqlen_kv=512 head_dim=64 splits=2 %s", cases[i].params);
    ftl_spec spec = spec_of(params);
    ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
    int num_launches = -1;
    ftl_error error = {0};
    cr_expect_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_INFEASIBLE, "%s", params);
    cr_expect_eq(num_launches, 0);
    cr_expect(strstr(error.message, cases[i].reason) != NULL, "%s", error.message);
  }
}

// Groups of a quantised cache divide keys and values; left open they are as long as they can be.
Test(unit_workloads_flash_decode, a_scale_is_of_elements_that_divide_keys_and_values) {
  const char *shape = "heads=2 seqlen_kv=512 splits=2 kv_dtype=int8";
  char params[256];
  snprintf(params, sizeof params, "%s head_dim=96 head_dim_v=64", shape);
  cr_expect_eq(spec_of(params).value[FTL_PARAM_kv_group_size], 32);
  snprintf(params, sizeof params, "%s head_dim=128", shape);
  cr_expect_eq(spec_of(params).value[FTL_PARAM_kv_group_size], 128);
  snprintf(params, sizeof params, "%s head_dim=128 head_dim_v=96 kv_group_size=64", shape);
  ftl_spec spec = spec_of(params);
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  int num_launches = -1;
  ftl_error error = {0};
  cr_expect_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_INFEASIBLE);
  cr_expect_not_null(strstr(error.message, "kv_group_size=64: "), "%s", error.message);
  cr_expect_not_null(strstr(error.message, "divides head_dim_v=96"), "%s", error.message);
}

Test(unit_workloads_flash_decode, the_default_tile_has_the_rows_of_a_kv_head_up_to_64) {
  static const struct {
    const char *params;
    int64_t block_m;
  } cases[] = {
      {"heads=8 kv_heads=8 seqlen_q=1", 16},               // 1 row
      {"heads=32 kv_heads=2 seqlen_q=1", 16},              // 16 rows
      {"heads=32 kv_heads=2 seqlen_q=2", 32},              // 32 rows
      {"heads=32 kv_heads=2 seqlen_q=9", 64},              // 144 rows, three tiles
      {"heads=32 kv_heads=2 seqlen_q=9 block_m=128", 128}  // as given
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char params[256];
    snprintf(params, sizeof params, "seqlen_kv=512 head_dim=64 %s", cases[i].params);
    cr_expect_eq(spec_of(params).value[FTL_PARAM_block_m], cases[i].block_m, "%s", params);
  }
}

Test(unit_workloads_flash_decode, heads_are_packed_where_their_rows_lie_at_one_stride) {
  static const struct {
    const char *params;
    bool is_packed;
    int64_t num_rows;
  } cases[] = {
      {"kv_heads=2 seqlen_q=1 layout=bhsd", true, 4},  {"kv_heads=2 seqlen_q=1 layout=bshd", true, 4},
      {"kv_heads=2 seqlen_q=3 layout=bhsd", true, 12}, {"kv_heads=2 seqlen_q=3 layout=bshd", false, 3},
      {"kv_heads=8 seqlen_q=3 layout=bshd", true, 3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char params[256];
    snprintf(params, sizeof params, "heads=8 seqlen_kv=512 head_dim=64 splits=1 %s", cases[i].params);
    ftl_spec spec = spec_of(params);
    ftl_decode d = ftl_decode_of(&spec);
    cr_expect_eq(d.is_packed, cases[i].is_packed, "%s", params);
    cr_expect_eq(d.num_rows, cases[i].num_rows, "%s", params);
  }
}

// 108 SMs hold 216 CTAs by FlashAttention-2's count.
Test(unit_workloads_flash_decode, splits_fill_the_last_wave) {
  cr_expect_eq(ftl_decode_num_splits(173, 216, 100), 1, "173 of 216 are more than 80 %%");
  // 48 CTAs on 108: two splits fill 96 of 108 (0.89); three 144 of 216 (0.67), nine all of 432 (1.0): 0.89 is enough.
  cr_expect_eq(ftl_decode_num_splits(48, 108, 1000), 2);
  // One CTA, 216 places, at most 128 splits: 128 of 216 is best (0.59); 109 is the first with 85 % of that.
  cr_expect_eq(ftl_decode_num_splits(1, 216, 100000), 109);
  // 64 key tiles: 12 splits would have 6 tiles each, as 11 do, and so one split would be empty; 14 likewise have 5 as
  // 13 do. Of 14 places 13 splits fill 0.93 and 11 fill 0.786, which is less than 85 % of it.
  cr_expect_eq(ftl_decode_num_splits(1, 14, 64), 13);
  cr_expect_eq(ftl_decode_num_splits(1, 216, 1), 1, "one key tile");
}

Test(unit_workloads_flash_decode, both_kernels_place_their_results_at_the_same_addresses) {
  ftl_spec spec = spec_of("batch=2 heads=6 kv_heads=2 seqlen_q=3 seqlen_kv=300 head_dim=64 splits=3");
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  int num_launches;
  ftl_error error = {0};
  cr_assert_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(num_launches, 2);
  for (int t = 0; t < 4; t++) {
    const ftl_tensor *a = &launches[0]->tensors[t], *b = &launches[1]->tensors[t];
    cr_expect_str_eq(a->name, b->name);
    cr_expect_eq(a->base_bytes, b->base_bytes);
    cr_expect_eq(a->size_bytes, b->size_bytes);
  }
  // Two KV heads, two sequences and three splits; a row each of two sequences, six heads, three tokens.
  cr_expect_eq(launches[0]->num_ctas, 2 * 2 * 3);
  cr_expect_eq(launches[1]->num_ctas, 2 * 6 * 3);
  for (int i = 0; i < num_launches; i++) ftl_tile_program_destroy(launches[i]);
}

static ftl_tile_program *split_of(const char *params, ftl_tile_program **combine) {
  ftl_spec spec = spec_of(params);
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  int num_launches = 0;
  ftl_error error = {0};
  cr_assert_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(num_launches, 2);
  *combine = launches[1];
  return launches[0];
}

#define DECODING "heads=2 seqlen_kv=512 head_dim=64 splits=2 block_m=16 block_n=64 num_warps=4 "

// What a step does from the release of V, its last, to its end: all threads meet, then one tile of K and of V is asked
// for.
Test(unit_workloads_flash_decode, one_buffer_is_filled_again_at_the_end_of_a_step) {
  static const ftl_tile_op_kind kinds[] = {FTL_TILE_RELEASE, FTL_TILE_BARRIER, FTL_TILE_ACQUIRE, FTL_TILE_ACQUIRE};
  ftl_tile_program *combine, *split = split_of(DECODING "num_stages=1", &combine);
  int32_t end = 0;
  while (end < split->num_ops && split->ops[end].kind != FTL_TILE_END_LOOP) end++;
  int32_t barrier = end;
  while (barrier > 0 && split->ops[barrier].kind != FTL_TILE_BARRIER) barrier--;
  cr_assert_gt(barrier, 0);
  for (int32_t i = 0; i < 4; i++) cr_expect_eq(split->ops[barrier - 1 + i].kind, kinds[i], "op %d", (int)i);
  int32_t loads = 0;
  for (int32_t i = barrier; i < end; i++) loads += split->ops[i].kind == FTL_TILE_LOAD;
  cr_expect_eq(loads, 2);
  ftl_tile_program_destroy(split);
  ftl_tile_program_destroy(combine);
}

static int32_t num_exchanges_in_loop(const char *params) {
  ftl_tile_program *combine, *split = split_of(params, &combine);
  int32_t depth = 0, count = 0;
  for (int32_t i = 0; i < split->num_ops; i++) {
    depth += split->ops[i].kind == FTL_TILE_LOOP;
    depth -= split->ops[i].kind == FTL_TILE_END_LOOP;
    count += depth > 0 && split->ops[i].kind == FTL_TILE_REDUCE_GROUPS;
  }
  ftl_tile_program_destroy(split);
  ftl_tile_program_destroy(combine);
  return count;
}

// A maximum and a sum; all keys are in the one loop of whole tiles.
Test(unit_workloads_flash_decode, groups_that_sum_each_step_exchange_a_maximum_and_a_sum) {
  cr_expect_eq(num_exchanges_in_loop(DECODING "row_sums=step"), 2);
  cr_expect_eq(num_exchanges_in_loop(DECODING "row_sums=end"), 0);
}

// FlashAttention-2's combine kernel: 128 threads have 4 rows of heads that 128 columns divide, 8 of 64, else 16
// (grids of kernels/measurements/foreign_splits_ncu.csv: 32 heads of 128 in 8 CTAs, 24 of 64 in 3, 16 of 96 in one).
Test(unit_workloads_flash_decode, interleaved_splits_are_combined_several_rows_a_cta) {
  static const struct {
    const char *params;
    int64_t num_ctas;
  } cases[] = {{"heads=32 head_dim=128 schedule=interleaved", 8},
               {"heads=24 head_dim=64 schedule=interleaved", 3},
               {"heads=16 head_dim=96 schedule=interleaved", 1},
               {"heads=32 seqlen_q=2 layout=bshd head_dim=128 schedule=interleaved", 64},
               {"heads=32 head_dim=128", 32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[256];
    snprintf(params, sizeof params, "seqlen_kv=4096 splits=4 block_m=64 num_warps=4 %s", cases[i].params);
    ftl_spec spec = spec_of(params);
    ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
    int num_launches = 0;
    ftl_error error = {0};
    cr_assert_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_OK, "%s", error.message);
    cr_assert_eq(num_launches, 2);
    cr_expect_eq(launches[1]->num_ctas, cases[i].num_ctas, "%s: %d", params, (int)launches[1]->num_ctas);
    for (int k = 0; k < num_launches; k++) ftl_tile_program_destroy(launches[k]);
  }
}
