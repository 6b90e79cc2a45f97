// A batch of sequences of several lengths over a paged KV cache, as a server hands it to a decoding kernel: lengths,
// block tables, and the list of work items (a sequence and a part of its keys) that CTAs take. Sources: W. Kwon et al.,
// arXiv:2309.06180 (block tables); FlashInfer, include/flashinfer/attention/scheduler.cuh (block tables one after
// another with their begins, work items made on the host, the length of a part by binary search).
#ifndef FTL_WORKLOADS_PAGED_BATCH_H
#define FTL_WORKLOADS_PAGED_BATCH_H

#include "base/arena.h"
#include "workloads/attention.h"

typedef struct ftl_paged_batch {
  int64_t batch, page_size, num_pages;  // of the cache
  int32_t *lengths;                     // [batch]
  int32_t *first_page;                  // [batch + 1]: of each sequence in `pages`
  int32_t *pages;                       // of all sequences, in the order of their tokens
  // Work items, those of a sequence in order: item first_item[b] + i is part i of the keys of sequence b.
  int64_t num_items;
  int32_t *first_item;       // [batch + 1]
  int32_t *item_sequence;    // [num_items]
  int32_t *item_part;        // [num_items]
  int64_t num_filled_slots;  // of the cache: a token that sequences share counts once
  int64_t num_seen_slots;    // of these, those that the queries see: all but the prefix's own copy, without a window
  int64_t num_seen_entries;  // of `pages`, those whose page has such a slot
  int64_t num_copied_pages;  // by copy-on-write, where a prefix ends within a page
  ftl_arena arena;
} ftl_paged_batch;

// Allocates the pages and splits the keys of each sequence into parts of `tiles_per_part` tiles, under a window those
// in sight; a sequence has at least one. FTL_INFEASIBLE names page_size where there are more than 2^22 entries,
// FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_paged_batch_create(ftl_paged_batch **out, const ftl_spec *spec, int64_t tiles_per_part,
                                               ftl_error *error);
void ftl_paged_batch_destroy(ftl_paged_batch *batch);

// The fewest tiles a part such that all parts, num_tiles_m CTAs each, are no more than num_ctas_at_once; all tiles of
// the longest sequence where even one part each is more.
int64_t ftl_paged_batch_tiles_per_part(const ftl_spec *spec, int64_t num_tiles_m, int64_t num_ctas_at_once);

// The tables of a batch in a program.
typedef struct ftl_paged_tables {
  int32_t lengths, first_page, pages, first_item, item_sequence, item_part;
} ftl_paged_tables;
ftl_paged_tables ftl_paged_batch_declare(ftl_builder *builder, const ftl_paged_batch *batch);

#endif
