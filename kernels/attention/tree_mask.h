/* The mask of a tree of speculated tokens: which of its tokens each row of a kv head sees. */
#pragma once

#include "attention.h"
#include "pool.h"

/* parents[i] is the token that token i + 1 follows; the tree has one token more than that. */
struct TreeMask {
  Tree tree;

  /* From the first tile of block_n keys that holds a token of the tree on; `group` heads have the same rows. */
  void fill(const std::vector<int> &parents, int group, int seqlen_kv, int block_n);

 private:
  Pool words;
};
