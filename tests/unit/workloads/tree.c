// Trees of speculated tokens: those of the methods are what their papers say, and lists are held to the rules.
#include "workloads/tree.h"

#include <criterion/criterion.h>

static ftl_spec spec;
static ftl_error error;

static void setup(void) {
  error = (ftl_error){0};
  cr_assert_eq(ftl_spec_init(&spec, "tree_decode", &error), FTL_OK);
}

TestSuite(unit_workloads_tree, .init = setup);

static void set(const char *name, const char *text) {
  cr_assert_eq(ftl_spec_set_text(&spec, name, text, &error), FTL_OK, "%s", error.message);
}

// Tokens by level, and from these the pairs: a token of level d sees d + 1 tokens of the tree. Medusa's 63 guesses by
// the length of their paths: 10, 28, 23 and 2; EAGLE's 25: 4, 8, 8, 3, 2.
Test(unit_workloads_tree, trees_have_the_levels_of_their_papers) {
  static const struct {
    const char *name;
    int tokens[9];
  } levels[] = {
      {"medusa", {1, 10, 28, 23, 2}},
      {"eagle", {1, 4, 8, 8, 3, 2}},
      {"specinfer", {1, 1, 1, 3, 3, 3, 3, 3, 3}},
      {"lookahead", {1, 15, 15, 15, 15}},
      {"blockwise", {1, 1, 1, 1, 1, 1, 1, 1}},
  };
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    ftl_tree tree;
    int num_tokens = 0, num_pairs = 0;
    for (int level = 0; level < 9; level++) {
      num_tokens += levels[i].tokens[level];
      num_pairs += levels[i].tokens[level] * (level + 1);
    }
    set("tree", levels[i].name);
    cr_assert_eq(ftl_tree_of(&tree, &spec, &error), FTL_OK);
    cr_expect_eq(tree.num_tokens, num_tokens, "%s", levels[i].name);
    cr_expect_eq(ftl_tree_num_tokens(&spec), num_tokens, "%s", levels[i].name);
    cr_expect_eq(ftl_tree_num_pairs(&tree, 0, 0), num_pairs, "%s", levels[i].name);
  }
}

// One token and the 15 that were copied after it.
Test(unit_workloads_tree, llma_is_a_chain) {
  ftl_tree tree;
  set("tree", "llma");
  cr_assert_eq(ftl_tree_of(&tree, &spec, &error), FTL_OK);
  cr_assert_eq(tree.num_tokens, 16);
  for (int token = 0; token < 16; token++) cr_expect_eq(ftl_tree_depth(&tree, token), token);
}

Test(unit_workloads_tree, a_token_sees_itself_and_its_ancestors) {
  static const char *const seen[] = {"x....", "xx...", "x.x..", "x.xx.", "xx..x"};
  ftl_tree tree;
  set("parents", "0:0:2:1");
  cr_assert_eq(ftl_tree_of(&tree, &spec, &error), FTL_OK);
  for (int token = 0; token < 5; token++)
    for (int other = 0; other < 5; other++)
      cr_expect_eq(ftl_tree_sees(&tree, token, other), seen[token][other] == 'x', "%d, %d", token, other);
  cr_expect_eq(ftl_tree_num_pairs(&tree, 0, 0), 1 + 2 + 2 + 3 + 3);
  // With three cached keys 4, 5, 5, 6 and 6; of these a window leaves the last.
  cr_expect_eq(ftl_tree_num_pairs(&tree, 3, 0), 4 + 5 + 5 + 6 + 6);
  cr_expect_eq(ftl_tree_num_pairs(&tree, 3, 5), 4 + 5 + 5 + 5 + 5);
}

Test(unit_workloads_tree, a_token_that_comes_before_its_parent_is_refused) {
  ftl_tree tree;
  set("parents", "0:3:1");
  cr_assert_eq(ftl_tree_of(&tree, &spec, &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "parents: token 2 follows token 3: allowed are 0 to 1");
}

Test(unit_workloads_tree, a_tree_of_too_many_tokens_is_refused) {
  ftl_tree tree;
  set("parents", "0x256");
  cr_assert_eq(ftl_tree_of(&tree, &spec, &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "parents of 256 tokens: at most 255");
}
