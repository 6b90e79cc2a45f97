// Trees of speculated tokens. Token 0 is the last one that was accepted; each later one is a guess of what follows its
// parent. Verifying them all in one step, a token sees the keys of the cache and of its ancestors and itself.
// What decoding methods verify, as data; sources in tree.c.
#ifndef FTL_WORKLOADS_TREE_H
#define FTL_WORKLOADS_TREE_H

#include "workloads/spec.h"

enum { FTL_TREE_MAX_TOKENS = 256 };

typedef struct ftl_tree {
  int32_t num_tokens;
  int32_t parents[FTL_TREE_MAX_TOKENS];  // parents[0] is not used; of the others less than the token's own number
} ftl_tree;

// What a spec's `parents` lists or else its `tree` names. FTL_BAD_INPUT: a parent that does not come before its token.
FTL_MUST_USE ftl_status ftl_tree_of(ftl_tree *out, const ftl_spec *spec, ftl_error *error);

// Tokens of a spec's tree, whether well-formed or not.
int64_t ftl_tree_num_tokens(const ftl_spec *spec);

int32_t ftl_tree_depth(const ftl_tree *tree, int32_t token);  // tokens that it follows
bool ftl_tree_sees(const ftl_tree *tree, int32_t token, int32_t other);
// Pairs of a token and a key that it sees, of `num_cached` before the tree and those of the tree itself. Under a window
// (0: none) a token sees that many keys: itself, what it follows, and then the last cached ones.
int64_t ftl_tree_num_pairs(const ftl_tree *tree, int64_t num_cached, int64_t window);

#endif
