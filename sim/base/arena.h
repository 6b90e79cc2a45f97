// A bump allocator: everything built for one program or machine is freed at once.
#ifndef FTL_BASE_ARENA_H
#define FTL_BASE_ARENA_H

#include <stddef.h>

typedef struct ftl_arena {
  struct ftl_arena_block *last;
} ftl_arena;

// Zeroed, 64-byte aligned; NULL when memory is out. size 0 gives a valid pointer.
void *ftl_arena_alloc(ftl_arena *arena, size_t size);
#define FTL_ARENA_NEW(arena, type, count) ((type *)ftl_arena_alloc((arena), sizeof(type) * (size_t)(count)))
// The same, not zeroed: for large arrays of which every element is written before it is read.
void *ftl_arena_alloc_raw(ftl_arena *arena, size_t size);
#define FTL_ARENA_NEW_RAW(arena, type, count) ((type *)ftl_arena_alloc_raw((arena), sizeof(type) * (size_t)(count)))
void ftl_arena_fini(ftl_arena *arena);

#endif
