#include "workloads/paged_batch.h"

#include <stdlib.h>

#include "base/integer.h"
#include "workloads/page_pool.h"

static const int64_t most_entries = INT64_C(1) << 22;

// Those of `lengths`, or seqlen_kv for each. `out` has room for `batch`.
static void get_lengths(const ftl_spec *spec, int32_t *out) {
  int64_t batch = spec->value[FTL_PARAM_batch];
  if (ftl_spec_list(spec, FTL_PARAM_lengths, out, batch) > 0) return;
  for (int64_t i = 0; i < batch; i++) out[i] = (int32_t)spec->value[FTL_PARAM_seqlen_kv];
}

// A sequence of so many keys.
static ftl_attention sequence_of(const ftl_spec *spec, int64_t length) {
  ftl_attention a = ftl_attention_of(spec);
  a.batch = 1;
  a.seqlen_kv = length;
  a.diagonal = length - a.seqlen_q;
  return a;
}

// Those that its queries see.
static int64_t tiles_of(const ftl_spec *spec, int64_t length) {
  ftl_attention a = sequence_of(spec, length);
  return ftl_attention_most_key_tiles(&a, a.seqlen_q);
}

static int64_t parts_of(const ftl_spec *spec, int64_t length, int64_t tiles_per_part) {
  return ftl_divide_up(tiles_of(spec, length), tiles_per_part);
}

// ---- parts ----

static int64_t num_parts(const ftl_spec *spec, const int32_t *lengths, int64_t tiles_per_part) {
  int64_t sum = 0;
  for (int64_t i = 0; i < spec->value[FTL_PARAM_batch]; i++) sum += parts_of(spec, lengths[i], tiles_per_part);
  return sum;
}

int64_t ftl_paged_batch_tiles_per_part(const ftl_spec *spec, int64_t num_tiles_m, int64_t num_ctas_at_once) {
  int64_t least = 1, most = tiles_of(spec, spec->value[FTL_PARAM_seqlen_kv]);
  int32_t *lengths = malloc((size_t)spec->value[FTL_PARAM_batch] * sizeof *lengths);
  if (!lengths) return most;
  get_lengths(spec, lengths);
  while (least < most) {
    int64_t middle = (least + most) / 2;
    if (num_parts(spec, lengths, middle) * num_tiles_m <= num_ctas_at_once)
      most = middle;
    else
      least = middle + 1;
  }
  free(lengths);
  return most;
}

static bool try_list_items(ftl_paged_batch *b, const ftl_spec *spec, int64_t tiles_per_part) {
  b->num_items = num_parts(spec, b->lengths, tiles_per_part);
  b->first_item = FTL_ARENA_NEW(&b->arena, int32_t, b->batch + 1);
  b->item_sequence = FTL_ARENA_NEW(&b->arena, int32_t, b->num_items);
  b->item_part = FTL_ARENA_NEW(&b->arena, int32_t, b->num_items);
  if (!b->first_item || !b->item_sequence || !b->item_part) return false;
  int32_t item = 0;
  for (int64_t i = 0; i < b->batch; i++) {
    b->first_item[i] = item;
    for (int32_t part = 0; part < parts_of(spec, b->lengths[i], tiles_per_part); part++, item++) {
      b->item_sequence[item] = (int32_t)i;
      b->item_part[item] = part;
    }
  }
  b->first_item[b->batch] = item;
  return true;
}

// ---- pages ----

// Page p of a cache whose pages were given back and handed out many times: a step that is coprime with their number
// takes neighbours far apart.
static int32_t scattered(int64_t page, int64_t num_pages) {
  int64_t step = (int64_t)((double)num_pages * 0.6180339887) | 1, a, b;
  for (;; step += 2) {
    for (a = num_pages, b = step; b != 0;) {
      int64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return (int32_t)(page * step % num_pages);
  }
}

// Sequences that begin with the tokens of `prefix` share its pages; then each has its own.
static ftl_status allocate(ftl_page_pool *pool, const ftl_paged_batch *b, const ftl_page_list *prefix,
                           ftl_page_list *lists, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int64_t i = 0; status == FTL_OK && i < b->batch; i++) {
    status = ftl_page_list_fork(pool, prefix, &lists[i], error);
    if (status == FTL_OK) status = ftl_page_list_append(pool, &lists[i], b->lengths[i] - prefix->num_tokens, error);
  }
  return status;
}

// Tokens in the page that is number `i` of a list.
static int64_t tokens_in_page(const ftl_paged_batch *b, const ftl_page_list *list, int64_t i) {
  return ftl_smaller(b->page_size, list->num_tokens - i * b->page_size);
}

// Slots of a page that hold tokens, and those of them from the first to the last that some sequence sees.
typedef struct page_slots {
  int32_t filled, seen_from, seen_end;
} page_slots;

// Lists that share a page have the same tokens in it, as far as they go. Keys before `first_seen` are out of sight.
static void mark_slots(ftl_paged_batch *b, const ftl_page_list *list, int64_t first_seen, page_slots *slots) {
  for (int64_t i = first_seen / b->page_size; i < list->num_pages; i++) {
    page_slots *page = &slots[list->pages[i]];
    int32_t end = (int32_t)tokens_in_page(b, list, i), from = (int32_t)(first_seen - i * b->page_size);
    if (from < 0) from = 0;
    if (page->seen_end == 0 || from < page->seen_from) page->seen_from = from;
    if (end > page->seen_end) page->seen_end = end;
    b->num_seen_entries++;
  }
}

static void mark_filled(const ftl_paged_batch *b, const ftl_page_list *list, page_slots *slots) {
  for (int64_t i = 0; i < list->num_pages; i++) {
    page_slots *page = &slots[list->pages[i]];
    int32_t tokens = (int32_t)tokens_in_page(b, list, i);
    if (tokens > page->filled) page->filled = tokens;
  }
}

// The list after the last sequence's is that of the prefix, which no query reads by.
static ftl_status count_slots(ftl_paged_batch *b, const ftl_spec *spec, const ftl_page_list *lists, ftl_error *error) {
  page_slots *slots = calloc((size_t)b->num_pages, sizeof *slots);
  if (!slots) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for block tables");
  for (int64_t l = 0; l <= b->batch; l++) mark_filled(b, &lists[l], slots);
  for (int64_t l = 0; l < b->batch; l++) {
    ftl_attention a = sequence_of(spec, b->lengths[l]);
    mark_slots(b, &lists[l], a.seqlen_kv - ftl_attention_num_keys_seen(&a), slots);
  }
  for (int64_t i = 0; i < b->num_pages; i++) {
    b->num_filled_slots += slots[i].filled;
    b->num_seen_slots += slots[i].seen_end - slots[i].seen_from;
  }
  free(slots);
  return FTL_OK;
}

static ftl_status copy_pages(ftl_paged_batch *b, const ftl_page_list *lists, bool is_scattered, ftl_error *error) {
  int64_t num_entries = 0, at = 0;
  for (int64_t i = 0; i < b->batch; i++) num_entries += lists[i].num_pages;
  b->first_page = FTL_ARENA_NEW(&b->arena, int32_t, b->batch + 1);
  b->pages = FTL_ARENA_NEW(&b->arena, int32_t, num_entries);
  if (!b->first_page || !b->pages) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for block tables");
  for (int64_t i = 0; i < b->batch; i++) {
    b->first_page[i] = (int32_t)at;
    for (int64_t k = 0; k < lists[i].num_pages; k++)
      b->pages[at++] = is_scattered ? scattered(lists[i].pages[k], b->num_pages) : lists[i].pages[k];
  }
  b->first_page[b->batch] = (int32_t)at;
  return FTL_OK;
}

// The list after the last sequence's is that of the prefix.
static ftl_status fill_pages(ftl_paged_batch *b, const ftl_spec *spec, ftl_error *error) {
  ftl_page_pool pool;
  ftl_page_list *lists = calloc((size_t)b->batch + 1, sizeof *lists), *prefix = &lists[b->batch];
  if (!lists) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for block tables");
  ftl_page_pool_init(&pool, b->page_size);
  ftl_status status = ftl_page_list_append(&pool, prefix, spec->value[FTL_PARAM_prefix], error);
  if (status == FTL_OK) status = allocate(&pool, b, prefix, lists, error);
  b->num_pages = pool.num_pages;
  b->num_copied_pages = pool.num_copied;
  if (status == FTL_OK) status = count_slots(b, spec, lists, error);
  if (status == FTL_OK) status = copy_pages(b, lists, spec->value[FTL_PARAM_page_layout] == FTL_PAGES_SCATTERED, error);
  for (int64_t i = 0; i <= b->batch; i++) ftl_page_list_fini(&lists[i]);
  free(lists);
  ftl_page_pool_fini(&pool);
  return status;
}

static ftl_status check_entries(const ftl_paged_batch *b, ftl_error *error) {
  int64_t num_entries = 0;
  for (int64_t i = 0; i < b->batch; i++) num_entries += ftl_divide_up(b->lengths[i], b->page_size);
  if (num_entries <= most_entries) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "page_size=%lld: the block tables have %lld entries; allowed are %lld",
                       (long long)b->page_size, (long long)num_entries, (long long)most_entries);
}

ftl_status ftl_paged_batch_create(ftl_paged_batch **out, const ftl_spec *spec, int64_t tiles_per_part,
                                  ftl_error *error) {
  *out = NULL;
  ftl_paged_batch *b = calloc(1, sizeof *b);
  if (!b) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a batch");
  b->batch = spec->value[FTL_PARAM_batch];
  b->page_size = spec->value[FTL_PARAM_page_size];
  b->lengths = FTL_ARENA_NEW(&b->arena, int32_t, b->batch);
  ftl_status status = b->lengths ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a batch");
  if (status == FTL_OK) {
    get_lengths(spec, b->lengths);
    status = check_entries(b, error);
  }
  if (status == FTL_OK) status = fill_pages(b, spec, error);
  if (status == FTL_OK && !try_list_items(b, spec, tiles_per_part))
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a batch");
  if (status == FTL_OK)
    *out = b;
  else
    ftl_paged_batch_destroy(b);
  return status;
}

void ftl_paged_batch_destroy(ftl_paged_batch *batch) {
  if (!batch) return;
  ftl_arena_fini(&batch->arena);
  free(batch);
}

ftl_paged_tables ftl_paged_batch_declare(ftl_builder *b, const ftl_paged_batch *batch) {
  int64_t sequences = batch->batch, items = batch->num_items;
  return (ftl_paged_tables){
      .lengths = ftl_builder_table(b, "lengths", batch->lengths, sequences),
      .first_page = ftl_builder_table(b, "first_page", batch->first_page, sequences + 1),
      .pages = ftl_builder_table(b, "pages", batch->pages, batch->first_page[sequences]),
      .first_item = ftl_builder_table(b, "first_item", batch->first_item, sequences + 1),
      .item_sequence = ftl_builder_table(b, "item_sequence", batch->item_sequence, items),
      .item_part = ftl_builder_table(b, "item_part", batch->item_part, items),
  };
}
