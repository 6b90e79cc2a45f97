// The SM's instruction cache: least recently used lines of 128 bytes. A line that is not there comes a fixed time after
// the first warp needs it, and for all warps of the SM: on the H200 loops of more than 32 KiB take 9.5 cycles longer
// for each 8 instructions, with one warp as with one on each sub-core, and the first pass over the code as long
// (micro_instruction_cache.csv). Code beyond the next level (128 KiB) takes longer there, which is not modelled.
// Numbers: sm.code_cache_bytes, sm.code_miss_cycles.
#include "machine/sm/state.h"

// Where CTA follows CTA, the code that fits is where the last one left it.
bool ftl_sm_code_cache_create(ftl_sm *sm) {
  sm_code_cache *cache = &sm->code_cache;
  cache->lines = FTL_ARENA_NEW(&sm->arena, sm_code_line, sm->code.num_lines + 1);
  if (!cache->lines) return false;
  cache->capacity = (int32_t)(sm->arch->sm_code_cache_bytes / SM_CODE_LINE_BYTES);
  cache->uses = 1;
  cache->fits = sm->code.num_lines <= cache->capacity;
  if (!sm->config.is_warm || !cache->fits) return true;
  for (int32_t i = 0; i < sm->code.num_lines; i++) cache->lines[i].last_use = 1;
  cache->num_held = sm->code.num_lines;
  return true;
}

static void evict(ftl_sm *sm) {
  sm_code_line *lines = sm->code_cache.lines, *oldest = NULL;
  for (int32_t i = 0; i < sm->code.num_lines; i++)
    if (lines[i].last_use && (!oldest || lines[i].last_use < oldest->last_use)) oldest = &lines[i];
  oldest->last_use = 0;
  sm->code_cache.num_held--;
}

int64_t ftl_sm_code_fetch(ftl_sm *sm, const sm_op *op, int64_t now) {
  sm_code_cache *cache = &sm->code_cache;
  if (cache->capacity == 0) return now;
  int64_t there = now;
  for (int32_t i = 0; i < op->num_lines; i++) {
    sm_code_line *line = &cache->lines[op->line + i];
    if (line->last_use == 0) {
      if (cache->num_held == cache->capacity) evict(sm);
      cache->num_held++;
      line->there_at = there + sm->arch->sm_code_miss_cycles;
    }
    line->last_use = ++cache->uses;
    if (line->there_at > there) there = line->there_at;
  }
  return there;
}
