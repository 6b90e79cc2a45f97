#include "engine/sampled/line_strips.h"

#include <stdlib.h>

// So many that strips of the CTAs at work seldom take each other's place. Memory that none takes is not touched.
enum { LOG2_STRIPS = 13 };

bool ftl_line_strips_try_init(ftl_line_strips *strips) {
  strips->strips = calloc(1u << LOG2_STRIPS, sizeof *strips->strips);
  return strips->strips != NULL;
}

void ftl_line_strips_fini(ftl_line_strips *strips) { free(strips->strips); }

static void know(ftl_line_strip *strip, const ftl_l2_tags *tags) {
  for (int32_t i = 0; i < FTL_STRIP_LINES; i++) strip->rows_of_line[i] = 0;
  ftl_l2_address at;
  for (int32_t row = 0; row < strip->num_rows; row++) {
    uint64_t first = strip->first_line + (uint64_t)row * strip->stride_lines, end = first + FTL_STRIP_LINES;
    for (uint64_t line = first;; line++) {
      line = ftl_l2_tags_next_in_sample(tags, line, end, &at);
      if (line == end) break;
      strip->rows_of_line[line - first] |= UINT64_C(1) << row;
    }
  }
  strip->is_known = true;
}

const ftl_line_strip *ftl_line_strips_find(ftl_line_strips *strips, const ftl_l2_tags *tags,
                                           const ftl_line_strip *wanted) {
  uint64_t hash = ftl_l2_mix(wanted->first_line + (wanted->stride_lines << 32));
  ftl_line_strip *strip = &strips->strips[hash >> (64 - LOG2_STRIPS)];
  if (strip->first_line != wanted->first_line || strip->stride_lines != wanted->stride_lines ||
      strip->num_rows != wanted->num_rows) {
    *strip = *wanted;
    strip->is_known = false;
    return NULL;
  }
  if (!strip->is_known) know(strip, tags);
  return strip;
}
