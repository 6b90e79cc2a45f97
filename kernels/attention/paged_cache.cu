#include "paged_cache.h"

#include <algorithm>
#include <numeric>

namespace {

/* to: pages; from: [batch][kv_heads][seqlen_kv][head_dim]. A CTA a token of a sequence. */
__global__ void move_token(__half *to, const __half *from, Problem p, Pages pages) {
  int token = (int)blockIdx.x, sequence = (int)blockIdx.y;
  if (token >= p.lengths[sequence]) return;
  int page_size = 1 << pages.page_shift;
  int64_t page = pages.pages[pages.first_page[sequence] + token / page_size], row = token % page_size;
  for (int i = (int)threadIdx.x; i < p.kv_heads * p.head_dim; i += (int)blockDim.x) {
    int64_t head = i / p.head_dim;
    int64_t slot =
        pages.heads_first ? (page * p.kv_heads + head) * page_size + row : (page * page_size + row) * p.kv_heads + head;
    to[slot * p.head_dim + i % p.head_dim] =
        from[((sequence * p.kv_heads + head) * p.seqlen_kv + token) * p.head_dim + i % p.head_dim];
  }
}

std::vector<int> page_numbers(int count, bool scattered) {
  std::vector<int> pages((size_t)count);
  std::iota(pages.begin(), pages.end(), 0);
  bench::Random random;
  for (size_t i = pages.size(); scattered && i > 1; i--) std::swap(pages[i - 1], pages[random.below(i)]);
  return pages;
}

/* Prefix sums of ceil(length / step). */
std::vector<int> begins(const std::vector<int> &lengths, int step) {
  std::vector<int> sums(1, 0);
  for (int length : lengths) sums.push_back(sums.back() + (length + step - 1) / step);
  return sums;
}

/* One after another in one allocation: gives where each list begins. */
std::vector<const int *> to_device(Pool &pool, const std::vector<std::vector<int>> &lists) {
  size_t count = 0;
  for (const std::vector<int> &list : lists) count += list.size();
  int *at = (int *)pool.at_least(count * sizeof(int));
  std::vector<const int *> where;
  for (const std::vector<int> &list : lists) {
    CUDA_CHECK(cudaMemcpy(at, list.data(), list.size() * sizeof(int), cudaMemcpyHostToDevice));
    where.push_back(at);
    at += list.size();
  }
  return where;
}

}  // namespace

std::vector<int> sequence_lengths(const Case &c) {
  auto found = c.find("lengths");
  if (found == c.end() || found->second.empty())
    return std::vector<int>((size_t)number(c, "batch"), number(c, "seqlen_kv"));
  return numbers(found->second);
}

void PagedCache::fill(const Case &c, const Problem &p, const std::vector<int> &all_lengths) {
  int block_n = number(c, "block_n"), longest = *std::max_element(all_lengths.begin(), all_lengths.end());
  int tiles = (longest + block_n - 1) / block_n, splits = number(c, "splits");
  int page_size = number(c, "page_size");
  for (pages.page_shift = 0; 1 << pages.page_shift < page_size;) pages.page_shift++;
  pages.heads_first = c.at("layout") == "bhsd";
  pages.tokens_per_part = (tiles + splits - 1) / splits * block_n;
  std::vector<int> first_page = begins(all_lengths, page_size), first_item = begins(all_lengths, pages.tokens_per_part);
  std::vector<int> item_sequence, item_part;
  for (int b = 0; b < (int)all_lengths.size(); b++)
    for (int part = 0; part < first_item[(size_t)b + 1] - first_item[(size_t)b]; part++) {
      item_sequence.push_back(b);
      item_part.push_back(part);
    }
  pages.num_items = first_item.back();
  std::vector<const int *> where =
      to_device(tables, {all_lengths, first_page, page_numbers(first_page.back(), c.at("page_layout") == "scattered"),
                         first_item, item_sequence, item_part});
  lengths = where[0];
  pages.first_page = where[1];
  pages.pages = where[2];
  pages.first_item = where[3];
  pages.item_sequence = where[4];
  pages.item_part = where[5];
  size_t bytes = (size_t)first_page.back() * (size_t)page_size * (size_t)p.kv_heads * (size_t)p.head_dim * 2;
  __half *k_pages = (__half *)k.at_least(bytes), *v_pages = (__half *)v.at_least(bytes);
  CUDA_CHECK(cudaMemset(k_pages, 0xff, bytes)); /* NaN where no token is */
  CUDA_CHECK(cudaMemset(v_pages, 0xff, bytes));
  Problem with_lengths = p;
  with_lengths.lengths = lengths;
  dim3 grid((unsigned)longest, (unsigned)all_lengths.size());
  move_token<<<grid, 128>>>(k_pages, p.k, with_lengths, pages);
  move_token<<<grid, 128>>>(v_pages, p.v, with_lengths, pages);
  CUDA_CHECK(cudaGetLastError());
  pages.k = k_pages;
  pages.v = v_pages;
}
