// Which lines of tiles whose rows lie apart are in the sample of L2 sets. Such tiles lie side by side, as those of a
// matrix do whose rows are long: each of its own would ask the hash for every row, and have a line of few of them in
// the sample. A strip holds that of many tiles.
#ifndef FTL_ENGINE_SAMPLED_LINE_STRIPS_H
#define FTL_ENGINE_SAMPLED_LINE_STRIPS_H

#include "machine/l2/tags.h"

enum { FTL_STRIP_LINES = 32, FTL_STRIP_ROWS = 64 };

// FTL_STRIP_LINES lines of each of some rows.
typedef struct ftl_line_strip {
  uint64_t first_line, stride_lines;       // of the first row; from row to row
  int32_t num_rows;                        // at most FTL_STRIP_ROWS; 0: none
  bool is_known;                           // asked for before: rows_of_line is there
  int64_t asked;                           // when it was asked for last, in requests
  uint64_t rows_of_line[FTL_STRIP_LINES];  // rows of which that line is in the sample, one bit each
} ftl_line_strip;

typedef struct ftl_line_strips {
  ftl_line_strip *strips;  // some in each place that a hash gives: there the ones asked for last stay
  int64_t num_asked;
} ftl_line_strips;

// False when memory is out.
FTL_MUST_USE bool ftl_line_strips_try_init(ftl_line_strips *strips);
void ftl_line_strips_fini(ftl_line_strips *strips);
// The strip in which the first row's lines begin at `wanted->first_line`, and so on. NULL the first time that it is
// asked for, when nobody knows whether it will be again: finding one tile's lines alone takes less.
const ftl_line_strip *ftl_line_strips_find(ftl_line_strips *strips, const ftl_l2_tags *tags,
                                           const ftl_line_strip *wanted);

#endif
