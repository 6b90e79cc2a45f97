#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { ALIGNMENT = 64, BLOCK_BYTES = 64 * 1024 };

struct ftl_arena_block {
  struct ftl_arena_block *previous;
  size_t used, capacity;  // bytes after this header
};

static size_t aligned(size_t size) { return ftl_round_up_size(size, ALIGNMENT); }

void *ftl_arena_alloc_raw(ftl_arena *arena, size_t size) {
  size_t header = aligned(sizeof(struct ftl_arena_block));
  size_t need = aligned(size ? size : 1);
  struct ftl_arena_block *block = arena->last;
  if (!block || block->capacity - block->used < need) {
    size_t capacity = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    block = aligned_alloc(ALIGNMENT, header + capacity);
    if (!block) return NULL;
    *block = (struct ftl_arena_block){.previous = arena->last, .capacity = capacity};
    arena->last = block;
  }
  char *memory = (char *)block + header + block->used;
  block->used += need;
  return memory;
}

void *ftl_arena_alloc(ftl_arena *arena, size_t size) {
  void *memory = ftl_arena_alloc_raw(arena, size);
  return memory ? memset(memory, 0, size) : NULL;
}

void ftl_arena_fini(ftl_arena *arena) {
  for (struct ftl_arena_block *block = arena->last; block;) {
    struct ftl_arena_block *previous = block->previous;
    free(block);
    block = previous;
  }
  arena->last = NULL;
}
