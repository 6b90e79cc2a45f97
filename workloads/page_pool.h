// Pages of a KV cache as a server's memory manager hands them out: with reference counts, shared between sequences
// until one of them writes (copy-on-write). Source: W. Kwon et al., "Efficient Memory Management for Large Language
// Model Serving with PagedAttention", arXiv:2309.06180, sections 4.2 to 4.4.
#ifndef FTL_WORKLOADS_PAGE_POOL_H
#define FTL_WORKLOADS_PAGE_POOL_H

#include <stdint.h>

#include "base/status.h"

typedef struct ftl_page_pool {
  int64_t page_size;            // tokens
  int32_t *references;          // of each page
  int64_t num_pages, capacity;  // handed out, in the order of their numbers; none is given back
  int64_t num_copied;           // of these, those that a write to a shared one made
} ftl_page_pool;

// A sequence's tokens, in order, fill its pages; only the last page may be filled in part. Zeroed: empty.
typedef struct ftl_page_list {
  int32_t *pages;
  int64_t num_pages, capacity, num_tokens;
} ftl_page_list;

void ftl_page_pool_init(ftl_page_pool *pool, int64_t page_size);
void ftl_page_pool_fini(ftl_page_pool *pool);  // lists are freed on their own
void ftl_page_list_fini(ftl_page_list *list);  // frees memory alone

// Adds tokens. If the last page is filled in part and shared, it is copied first: the others keep the old one.
// FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_page_list_append(ftl_page_pool *pool, ftl_page_list *list, int64_t num_tokens,
                                             ftl_error *error);
// An empty list becomes one with the same tokens in the same pages. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_page_list_fork(ftl_page_pool *pool, const ftl_page_list *from, ftl_page_list *list,
                                           ftl_error *error);

#endif
