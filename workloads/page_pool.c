#include "workloads/page_pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

void ftl_page_pool_init(ftl_page_pool *pool, int64_t page_size) { *pool = (ftl_page_pool){.page_size = page_size}; }

void ftl_page_pool_fini(ftl_page_pool *pool) {
  free(pool->references);
  *pool = (ftl_page_pool){0};
}

void ftl_page_list_fini(ftl_page_list *list) {
  free(list->pages);
  *list = (ftl_page_list){0};
}

static bool try_grow(int32_t **array, int64_t *capacity, int64_t wanted) {
  if (wanted <= *capacity) return true;
  int64_t larger = 2 * wanted;
  int32_t *grown = realloc(*array, (size_t)larger * sizeof *grown);
  if (!grown) return false;
  *array = grown;
  *capacity = larger;
  return true;
}

static ftl_status no_memory(ftl_error *error) {
  return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the pages of a KV cache");
}

// A page with one reference; -1: memory is out.
static int32_t take_page(ftl_page_pool *pool) {
  if (!try_grow(&pool->references, &pool->capacity, pool->num_pages + 1)) return -1;
  pool->references[pool->num_pages] = 1;
  return (int32_t)pool->num_pages++;
}

static ftl_status make_last_page_own(ftl_page_pool *pool, ftl_page_list *list, ftl_error *error) {
  int32_t *last = &list->pages[list->num_pages - 1];
  if (pool->references[*last] == 1) return FTL_OK;
  int32_t copy = take_page(pool);
  if (copy < 0) return no_memory(error);
  pool->references[*last]--;
  *last = copy;
  pool->num_copied++;
  return FTL_OK;
}

ftl_status ftl_page_list_append(ftl_page_pool *pool, ftl_page_list *list, int64_t num_tokens, ftl_error *error) {
  bool last_has_room = list->num_tokens < list->num_pages * pool->page_size;
  if (num_tokens > 0 && last_has_room) {
    ftl_status status = make_last_page_own(pool, list, error);
    if (status != FTL_OK) return status;
  }
  int64_t wanted = ftl_divide_up(list->num_tokens + num_tokens, pool->page_size);
  if (!try_grow(&list->pages, &list->capacity, wanted)) return no_memory(error);
  while (list->num_pages < wanted) {
    int32_t page = take_page(pool);
    if (page < 0) return no_memory(error);
    list->pages[list->num_pages++] = page;
  }
  list->num_tokens += num_tokens;
  return FTL_OK;
}

ftl_status ftl_page_list_fork(ftl_page_pool *pool, const ftl_page_list *from, ftl_page_list *list, ftl_error *error) {
  if (!try_grow(&list->pages, &list->capacity, from->num_pages)) return no_memory(error);
  if (from->num_pages > 0) memcpy(list->pages, from->pages, (size_t)from->num_pages * sizeof *list->pages);
  list->num_pages = from->num_pages;
  list->num_tokens = from->num_tokens;
  for (int64_t i = 0; i < list->num_pages; i++) pool->references[list->pages[i]]++;
  return FTL_OK;
}
