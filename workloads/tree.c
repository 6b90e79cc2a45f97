#include "workloads/tree.h"

// Parents of tokens 1 and on.
#define PARENTS(...)                                                          \
  {                                                                           \
    sizeof((const uint8_t[]){__VA_ARGS__}), (const uint8_t[]) { __VA_ARGS__ } \
  }

typedef struct shape {
  size_t num_guesses;
  const uint8_t *parents;
} shape;

// In the order of the parameter `tree`.
static const shape shapes[] = {
    // Medusa (arXiv:2401.10774), medusa_choices.py: mc_sim_7b_63, guesses of four heads, level by level.
    PARENTS(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8,
            9, 10, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 12, 12, 12, 13, 13, 14, 15, 16, 17, 18, 21, 21, 28, 39, 39),
    // EAGLE (arXiv:2401.15077), choices.py: 25 guesses in five levels.
    PARENTS(0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 5, 5, 6, 6, 7, 7, 8, 13, 13, 13, 21, 21),
    // SpecInfer (arXiv:2305.09781), expansion by 1, 1, 3, 1, 1, 1, 1, 1: three branches from the third level on.
    PARENTS(0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17),
    // Lookahead decoding (arXiv:2402.02057), verification branch: 15 n-grams of 5 tokens that begin with token 0.
    PARENTS(0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 0, 13, 14, 15, 0, 17, 18, 19, 0, 21, 22, 23, 0, 25, 26, 27, 0, 29, 30,
            31, 0, 33, 34, 35, 0, 37, 38, 39, 0, 41, 42, 43, 0, 45, 46, 47, 0, 49, 50, 51, 0, 53, 54, 55, 0, 57, 58,
            59),
    // LLMA (arXiv:2304.04487): a span of 15 tokens copied from a reference.
    PARENTS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14),
    // Blockwise parallel decoding (arXiv:1811.03115): blocks of 8 tokens.
    PARENTS(0, 1, 2, 3, 4, 5, 6),
};

int64_t ftl_tree_num_tokens(const ftl_spec *spec) {
  int64_t num_listed = ftl_spec_list(spec, FTL_PARAM_parents, NULL, 0);
  return 1 + (num_listed > 0 ? num_listed : (int64_t)shapes[spec->value[FTL_PARAM_tree]].num_guesses);
}

ftl_status ftl_tree_of(ftl_tree *out, const ftl_spec *spec, ftl_error *error) {
  int64_t num_tokens = ftl_tree_num_tokens(spec);
  if (num_tokens > FTL_TREE_MAX_TOKENS)
    return ftl_error_set(error, FTL_BAD_INPUT, "parents of %lld tokens: at most %d", (long long)(num_tokens - 1),
                         FTL_TREE_MAX_TOKENS - 1);
  *out = (ftl_tree){.num_tokens = (int32_t)num_tokens};
  if (ftl_spec_list(spec, FTL_PARAM_parents, out->parents + 1, FTL_TREE_MAX_TOKENS - 1) == 0)
    for (int32_t token = 1; token < out->num_tokens; token++)
      out->parents[token] = shapes[spec->value[FTL_PARAM_tree]].parents[token - 1];
  for (int32_t token = 1; token < out->num_tokens; token++)
    if (out->parents[token] >= token)
      return ftl_error_set(error, FTL_BAD_INPUT, "parents: token %d follows token %d: allowed are 0 to %d", token,
                           out->parents[token], token - 1);
  return FTL_OK;
}

bool ftl_tree_sees(const ftl_tree *tree, int32_t token, int32_t other) {
  while (token > other) token = tree->parents[token];
  return token == other;
}

int32_t ftl_tree_depth(const ftl_tree *tree, int32_t token) {
  int32_t depth = 0;
  for (; token > 0; token = tree->parents[token]) depth++;
  return depth;
}

int64_t ftl_tree_num_pairs(const ftl_tree *tree, int64_t num_cached, int64_t window) {
  int64_t sum = 0;
  for (int32_t token = 0; token < tree->num_tokens; token++) {
    int64_t keys = num_cached + ftl_tree_depth(tree, token) + 1;
    sum += window > 0 && window < keys ? window : keys;
  }
  return sum;
}
