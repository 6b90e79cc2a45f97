#include "machine/sm/store_merge.h"

#include <stddef.h>

#include "lower/warp_program.h"

#define ALL_WORDS UINT32_MAX

void ftl_sm_store_merge_init(sm_store_merge *merge) { *merge = (sm_store_merge){.closes = INT64_MAX}; }

// The first word of every lane's 16 bytes, or the next one where the line has that.
static uint32_t next_words(uint32_t words, uint32_t stored) {
  const uint32_t first = 0x11111111;
  for (int32_t i = 0; i < FTL_LANE_WORDS; i++)
    if (!(words & first << i & stored)) return words & first << i;
  return words & first;
}

// The place of the line; else a free one, or that of the line stored to longest ago; NULL: there are no places.
static sm_open_line *place_of(sm_store_merge *merge, int64_t num_places, uint64_t line) {
  sm_open_line *best = NULL, *end = merge->lines + num_places;
  for (sm_open_line *place = merge->lines; place < end; place++) {
    if (place->words && place->line == line) return place;
    if (!best || (best->words && (!place->words || place->last_use < best->last_use))) best = place;
  }
  return best;
}

bool ftl_sm_store_merge_add(sm_store_merge *merge, const ftl_arch *arch, sm_open_line store, bool in_words,
                            int64_t passed, sm_open_line *closed) {
  sm_open_line *place = place_of(merge, arch->l1_store_merge_lines, store.line);
  bool is_open = place && place->words && place->line == store.line;
  *closed = (sm_open_line){0};
  if (in_words) store.words = next_words(store.words, is_open ? place->words : 0);
  if (is_open) store.words |= place->words;
  store.last_use = ++merge->uses;
  if (!place || store.words == ALL_WORDS) {
    *closed = store;
    if (is_open) place->words = 0;
    merge->num_open -= is_open;
  } else {
    if (!is_open) *closed = *place;
    merge->num_open += !place->words;
    *place = store;
  }
  merge->closes = merge->num_open > 0 ? passed + arch->l1_store_merge_cycles + 1 : INT64_MAX;
  return !is_open;
}

bool ftl_sm_store_merge_take(sm_store_merge *merge, int64_t now, sm_open_line *closed) {
  if (merge->closes > now) return false;
  sm_open_line *place = merge->lines;
  while (!place->words) place++;
  *closed = *place;
  place->words = 0;
  if (--merge->num_open == 0) merge->closes = INT64_MAX;
  return true;
}
