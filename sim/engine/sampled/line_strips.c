#include "engine/sampled/line_strips.h"

#include <stdlib.h>

// So many that strips of the CTAs at work seldom take each other's place: with one in a place, twice as many rows of a
// tall product were searched one by one. Memory that none takes is not touched.
enum { LOG2_PLACES = 11, STRIPS_OF_PLACE = 4 };

bool ftl_line_strips_try_init(ftl_line_strips *strips) {
  *strips = (ftl_line_strips){.strips = calloc(STRIPS_OF_PLACE << LOG2_PLACES, sizeof *strips->strips)};
  return strips->strips != NULL;
}

void ftl_line_strips_fini(ftl_line_strips *strips) { free(strips->strips); }

static void know(ftl_line_strip *strip, const ftl_l2_tags *tags) {
  for (int32_t i = 0; i < FTL_STRIP_LINES; i++) strip->rows_of_line[i] = 0;
  ftl_l2_address at;
  for (int32_t row = 0; row < strip->num_rows; row++) {
    uint64_t first = strip->first_line + (uint64_t)row * strip->stride_lines, end = first + FTL_STRIP_LINES;
    ftl_l2_sample_walk walk = ftl_l2_sample_walk_of(tags, first, end);
    for (uint64_t line; ftl_l2_sample_walk_try_next(&walk, &line, &at);)
      strip->rows_of_line[line - first] |= UINT64_C(1) << row;
  }
  strip->is_known = true;
}

static bool is_same(const ftl_line_strip *a, const ftl_line_strip *b) {
  return a->first_line == b->first_line && a->stride_lines == b->stride_lines && a->num_rows == b->num_rows;
}

// The strip, or that of its place which was not asked for for longest.
static ftl_line_strip *strip_or_oldest(const ftl_line_strips *strips, const ftl_line_strip *wanted) {
  uint64_t hash = ftl_l2_mix(wanted->first_line + (wanted->stride_lines << 32));
  ftl_line_strip *place = &strips->strips[(hash >> (64 - LOG2_PLACES)) * STRIPS_OF_PLACE], *oldest = place;
  for (ftl_line_strip *strip = place; strip < place + STRIPS_OF_PLACE; strip++) {
    if (is_same(strip, wanted)) return strip;
    if (strip->asked < oldest->asked) oldest = strip;
  }
  return oldest;
}

const ftl_line_strip *ftl_line_strips_find(ftl_line_strips *strips, const ftl_l2_tags *tags,
                                           const ftl_line_strip *wanted) {
  ftl_line_strip *strip = strip_or_oldest(strips, wanted);
  bool is_there = is_same(strip, wanted);
  if (!is_there) *strip = *wanted;
  strip->asked = ++strips->num_asked;
  if (!is_there) return NULL;
  if (!strip->is_known) know(strip, tags);
  return strip;
}
