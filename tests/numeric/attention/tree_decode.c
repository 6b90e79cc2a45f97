// tree_decode computes attention in which each token of a tree sees the cache, its ancestors and itself, and visits
// every such pair once: trees of all methods and of one's own, wherever the tree lies in its key tiles.
#include <criterion/criterion.h>
#include <stdio.h>

#include "attention_case.h"
#include "reference.h"
#include "workloads/tree.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove_with(const char *params, const int32_t *parents) {
  char text[512];
  snprintf(text, sizeof text, "tree_decode %s", params);
  reference_set_parents(parents);
  const char *failure = attention_case_prove(text);
  cr_assert(failure[0] == '\0', "%s: %s", params, failure);
}

static const char *const trees[] = {"medusa", "eagle", "specinfer", "lookahead", "llma", "blockwise"};

static ftl_tree named(const char *name) {
  ftl_spec spec;
  ftl_error error = {0};
  ftl_tree tree;
  cr_assert_eq(ftl_spec_init(&spec, "tree_decode", &error), FTL_OK);
  cr_assert_eq(ftl_spec_set_text(&spec, "tree", name, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_tree_of(&tree, &spec, &error), FTL_OK, "%s", error.message);
  return tree;
}

Test(numeric_attention_tree_decode, trees_of_all_methods_give_attention_of_ancestors) {
  static const char *const heads[] = {"heads=2 kv_heads=2", "batch=2 heads=8 kv_heads=2",
                                      "heads=6 kv_heads=2 layout=bshd"};
  char params[256];
  for (size_t t = 0; t < COUNT(trees); t++)
    for (size_t h = 0; h < COUNT(heads); h++) {
      ftl_tree tree = named(trees[t]);
      snprintf(params, sizeof params, "%s tree=%s head_dim=24 seqlen_kv=%zu splits=%zu", heads[h], trees[t],
               150 + 37 * t, 1 + h);
      prove_with(params, tree.parents + 1);
    }
}

// 5 tokens in two branches: the tree begins and ends anywhere in a key tile, and may be all there is.
Test(numeric_attention_tree_decode, a_tree_may_lie_anywhere_in_its_key_tiles) {
  static const int32_t parents[] = {0, 0, 2, 1};
  static const char *const shares[] = {"block_m=16 block_n=64 num_warps=4", "block_m=32 block_n=32 num_warps=4",
                                       "block_m=16 block_n=32 num_warps=1 persistent=1"};
  static const int lengths[] = {5, 6, 31, 32, 33, 36, 37, 64, 66, 130};
  char params[256];
  for (size_t s = 0; s < COUNT(shares); s++)
    for (size_t l = 0; l < COUNT(lengths); l++)
      for (int splits = 1; splits <= 4; splits++) {
        snprintf(params, sizeof params, "heads=4 kv_heads=1 parents=0:0:2:1 head_dim=16 seqlen_kv=%d splits=%d %s",
                 lengths[l], splits, shares[s]);
        prove_with(params, parents);
      }
}

// Windows that end within the tree, at its first key, in tiles before it, in several tiles by depth, and before all.
Test(numeric_attention_tree_decode, a_window_counts_what_a_token_follows) {
  static const int windows[] = {1, 2, 3, 7, 8, 9, 30, 33, 64, 100, 1000};
  static const int lengths[] = {21, 64, 150};
  static const char *const shares[] = {"heads=4 kv_heads=2 block_m=64 num_warps=4 block_n=32",
                                       "heads=6 kv_heads=2 layout=bshd block_m=16 num_warps=2 block_n=64 persistent=1"};
  char params[256];
  ftl_tree tree = named("specinfer");
  for (size_t w = 0; w < COUNT(windows); w++)
    for (size_t l = 0; l < COUNT(lengths); l++)
      for (size_t s = 0; s < COUNT(shares); s++) {
        snprintf(params, sizeof params, "tree=specinfer head_dim=16 seqlen_kv=%d window=%d splits=%zu %s", lengths[l],
                 windows[w], 1 + (w + l) % 3, shares[s]);
        prove_with(params, tree.parents + 1);
      }
}

Test(numeric_attention_tree_decode, copies_and_instructions_give_attention_of_ancestors) {
  static const char *const kinds[] = {"copy=ldg", "copy=tma num_stages=3 dtype=bf16", "mma=wgmma copy=tma block_m=64",
                                      "block_n=128 block_m=16"};
  char params[256];
  ftl_tree tree = named("eagle");
  for (size_t k = 0; k < COUNT(kinds); k++) {
    snprintf(params, sizeof params, "heads=4 kv_heads=2 tree=eagle head_dim=64 seqlen_kv=300 splits=2 %s", kinds[k]);
    prove_with(params, tree.parents + 1);
  }
}

Test(numeric_attention_tree_decode, quantised_caches_are_what_their_scales_make_of_them) {
  static const char *const caches[] = {"kv_dtype=int8 kv_group_size=16", "kv_dtype=int4 dtype=bf16",
                                       "kv_dtype=fp8 kv_group_size=32 layout=bshd"};
  static const char *const kinds[] = {"copy=ldg", "block_m=16 num_warps=2 num_stages=3 persistent=1",
                                      "mma=wgmma copy=tma block_m=64"};
  char params[256];
  ftl_tree tree = named("specinfer");
  for (size_t i = 0; i < COUNT(caches); i++)
    for (size_t k = 0; k < COUNT(kinds); k++) {
      snprintf(params, sizeof params,
               "batch=2 heads=4 kv_heads=2 tree=specinfer head_dim=64 seqlen_kv=165 splits=2 %s %s", caches[i],
               kinds[k]);
      prove_with(params, tree.parents + 1);
    }
}

Test(numeric_attention_tree_decode, a_chain_is_causal_decoding) {
  attention_case tree, causal;
  const char *shape = "heads=4 kv_heads=2 head_dim=32 seqlen_kv=99 splits=2 block_m=16";
  char params[256];
  snprintf(params, sizeof params, "tree_decode tree=blockwise %s", shape);
  attention_case_init(&tree, params);
  attention_case_run(&tree);
  cr_assert(tree.failure[0] == '\0', "%s", tree.failure);
  snprintf(params, sizeof params, "flash_decode causal=1 seqlen_q=8 %s", shape);
  attention_case_init(&causal, params);
  attention_case_run(&causal);
  cr_assert(causal.failure[0] == '\0', "%s", causal.failure);
  enum { O = 3 };
  for (int i = 0; i < 4 * 8 * 32; i++) cr_assert_eq(tree.tensors[O][i], causal.tensors[O][i], "element %d", i);
  attention_case_fini(&tree);
  attention_case_fini(&causal);
}
