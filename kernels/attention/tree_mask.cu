#include "tree_mask.h"

void TreeMask::fill(const std::vector<int> &parents, int group, int seqlen_kv, int block_n) {
  int tokens = (int)parents.size() + 1, first_token = seqlen_kv - tokens;
  tree.first_key = first_token / block_n * block_n;
  tree.row_words = (seqlen_kv - tree.first_key) / 32;
  std::vector<uint32_t> mask((size_t)(group * tokens * tree.row_words), 0);
  auto see = [&](int row, int key) {
    mask[(size_t)(row * tree.row_words + (key - tree.first_key) / 32)] |= 1u << (key - tree.first_key) % 32;
  };
  for (int row = 0; row < group * tokens; row++) {
    for (int key = tree.first_key; key < first_token; key++) see(row, key);
    int token = row % tokens;
    for (see(row, first_token + token); token > 0; see(row, first_token + token)) token = parents[(size_t)token - 1];
  }
  uint32_t *to = (uint32_t *)words.at_least(mask.size() * 4);
  CUDA_CHECK(cudaMemcpy(to, mask.data(), mask.size() * 4, cudaMemcpyHostToDevice));
  tree.words = to;
}
