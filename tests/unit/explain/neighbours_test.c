// One parameter a step aside, from the values that were predicted.
#include "explain/neighbours.h"
#include "tests/unit/engine/fixture.h"

typedef struct list {
  ftl_neighbour *all;
  int size;
  ftl_text text;  // "block_m=256 block_m=64! ...": ! of one that a rule forbids
} list;

static list neighbours_of(const char *parameters, int64_t mma) {
  list l = {.all = calloc(FTL_MAX_NEIGHBOURS, sizeof *l.all)};
  ftl_spec spec = spec_of(parameters), resolved = spec;
  resolved.value[FTL_PARAM_mma] = mma;
  l.size = ftl_neighbours_make(&spec, &resolved, l.all);
  for (int i = 0; i < l.size; i++)
    ftl_text_add(&l.text, "%s%s=%s%s", i > 0 ? " " : "", ftl_param_get(l.all[i].param)->name, l.all[i].value,
                 l.all[i].is_complete ? "" : "!");
  return l;
}

static void release(list *l) {
  ftl_text_fini(&l->text);
  free(l->all);
}

Test(unit_explain_neighbours, of_flash2_are_tiles_warps_stages_and_orders) {
  list l = neighbours_of("heads=4 seqlen=1024 head_dim=64", FTL_SPEC_MMA_MMA);
  cr_expect_str_eq(ftl_text_get(&l.text),
                   "block_m=256 block_m=64 block_n=128 block_n=32 num_warps=8 num_warps=2 num_stages=3 num_stages=1 "
                   "schedule=interleaved persistent=true tile_order=head_first tile_reverse=true");
  release(&l);
}

// 128 x 64 where the answer has 128 x 32: its neighbours keep one of these and step the other, from there.
Test(unit_explain_neighbours, of_tiles_that_the_gpu_chose_keep_the_others) {
  ftl_neighbour *all = calloc(FTL_MAX_NEIGHBOURS, sizeof *all);
  ftl_spec spec = spec_of("heads=4 seqlen=1024 head_dim=128"), resolved = spec;
  resolved.value[FTL_PARAM_block_n] = 32;
  resolved.value[FTL_PARAM_mma] = FTL_SPEC_MMA_MMA;
  int size = ftl_neighbours_make(&spec, &resolved, all);
  cr_assert_gt(size, 3);
  for (int i = 0; i < size; i++)
    if (all[i].param != FTL_PARAM_block_n) cr_expect_eq(all[i].spec.value[FTL_PARAM_block_n], 32);
  cr_expect_str_eq(all[2].value, "64");
  cr_expect_eq(all[2].spec.value[FTL_PARAM_block_m], 128);
  free(all);
}

// Which head follows which decides what L2 still holds only where heads share keys.
Test(unit_explain_neighbours, of_grouped_heads_are_their_orders_too) {
  list l = neighbours_of("batch=2 heads=4 kv_heads=2 seqlen=1024 head_dim=64 head_order=heads_first", FTL_SPEC_MMA_MMA);
  cr_expect_not_null(strstr(ftl_text_get(&l.text), " head_order=sequences_first"), "%s", ftl_text_get(&l.text));
  cr_expect_null(strstr(ftl_text_get(&l.text), "head_order=heads_first"), "%s", ftl_text_get(&l.text));
  release(&l);
}

Test(unit_explain_neighbours, of_wgmma_are_whole_warpgroups) {
  list l = neighbours_of("heads=4 seqlen=1024 head_dim=64 num_warps=8", FTL_SPEC_MMA_WGMMA);
  cr_assert_not_null(strstr(ftl_text_get(&l.text), "num_warps=12 num_warps=4 "), "%s", ftl_text_get(&l.text));
  release(&l);
}

// One change each: all else is as it was given, and what was left open stays open.
Test(unit_explain_neighbours, differ_in_one_parameter) {
  list l = neighbours_of("heads=4 seqlen=1024 head_dim=64 block_m=64 causal=true", FTL_SPEC_MMA_MMA);
  for (int i = 0; i < l.size; i++) {
    cr_expect_eq(l.all[i].spec.value[FTL_PARAM_heads], 4);
    cr_expect_eq(l.all[i].spec.value[FTL_PARAM_causal], 1);
    cr_expect_eq(l.all[i].spec.value[FTL_PARAM_mma], FTL_SPEC_MMA_AUTO);
    cr_expect(l.all[i].param == FTL_PARAM_block_m || l.all[i].spec.value[FTL_PARAM_block_m] == 64);
  }
  release(&l);
}

// block_m=8 is less than a product has rows; splits=2 gives 4 and 1.
Test(unit_explain_neighbours, that_break_a_rule_say_which) {
  list l = neighbours_of("flash_decode heads=8 seqlen_kv=1024 head_dim=64 splits=2", FTL_SPEC_MMA_MMA);
  cr_assert_not_null(strstr(ftl_text_get(&l.text), "block_m=8!"), "%s", ftl_text_get(&l.text));
  cr_assert_not_null(strstr(ftl_text_get(&l.text), "splits=4 splits=1"), "%s", ftl_text_get(&l.text));
  for (int i = 0; i < l.size; i++) cr_expect_eq(l.all[i].is_complete, l.all[i].reason[0] == '\0');
  release(&l);
}

Test(unit_explain_neighbours, of_matrix_products_step_their_k_too) {
  list l = neighbours_of("matmul_tiled m=256 n=256 k=256", FTL_SPEC_MMA_MMA);
  cr_expect_not_null(strstr(ftl_text_get(&l.text), "block_k=128 block_k=32"), "%s", ftl_text_get(&l.text));
  cr_expect_not_null(strstr(ftl_text_get(&l.text), "tile_order=n_first"), "%s", ftl_text_get(&l.text));
  cr_expect_null(strstr(ftl_text_get(&l.text), "tile_order=head_first"));
  release(&l);
}
