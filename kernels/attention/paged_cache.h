/* The paged KV cache of a case: which pages the sequences have, the work items of its splits, and K and V moved into
 * pages. */
#pragma once

#include "attention.h"
#include "cases.h"
#include "pool.h"

struct PagedCache {
  Pages pages;
  const int *lengths; /* in device memory, of each sequence */

  /* From a problem whose k and v are contiguous; columns page_size, page_layout, layout, splits, block_n. */
  void fill(const Case &c, const Problem &p, const std::vector<int> &sequence_lengths);

 private:
  Pool k, v, tables;
};

/* The column lengths ("37:512x3" is 37, 512, 512, 512), or seqlen_kv for each sequence of the batch. */
std::vector<int> sequence_lengths(const Case &c);
