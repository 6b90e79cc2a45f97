/* A block table that gives the pages of a cache to its sequences in an order that is random and always the same. */
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace independent {

inline std::vector<int> shuffled_pages(size_t count) {
  std::vector<int> pages(count);
  std::iota(pages.begin(), pages.end(), 0);
  std::mt19937 random(7);
  std::shuffle(pages.begin(), pages.end(), random);
  return pages;
}

inline int page_shift_of(int page_size) {
  int shift = 0;
  while ((1 << shift) < page_size) shift++;
  return shift;
}

}  // namespace independent
