// The rows of S, P and their gradients as kernels stream them through registers: a CTA a row, 128 threads that take 8
// adjacent columns at a time, as kernels/attention/standard_mma.h does.
#ifndef FTL_WORKLOADS_STANDARD_ROWS_H
#define FTL_WORKLOADS_STANDARD_ROWS_H

#include "workloads/attention.h"

enum { FTL_STANDARD_ROW_WARPS = 4 };

// The first of the rows that a CTA takes, `rows` of a head's num_rows; the kernel's grid.
ftl_attention_tile ftl_standard_row_grid(ftl_builder *builder, const ftl_attention *a, int64_t num_rows, int32_t rows);

typedef struct ftl_standard_rows {
  ftl_builder *b;
  const ftl_attention *a;
  ftl_value_layout layout;
  int32_t step_columns;     // that all threads take
  int64_t ctas_per_row;     // each of which takes some of its columns
  int32_t index_insts;      // of an element of the matrix (ftl_tile_ref)
  ftl_attention_tile tile;  // `row` is the CTA's
  ftl_expr begin, end;      // columns of the CTA, of the tiles that the row's query tile sees: others hold nothing
} ftl_standard_rows;

ftl_standard_rows ftl_standard_rows_of(ftl_builder *builder, const ftl_attention *a);
// Whole rows of which a CTA takes 512 elements; a thread takes one at a time and finds its place by `index_insts`
// instructions.
ftl_standard_rows ftl_standard_rows_by_elements(ftl_builder *builder, const ftl_attention *a, int32_t index_insts);
// The kernel's one role, and its grid.
void ftl_standard_rows_role(const ftl_standard_rows *rows);
// A value of a step's columns.
int32_t ftl_standard_rows_tile(const ftl_standard_rows *rows, const char *name, ftl_dtype dtype);
// Begins a loop over the row's steps; gives the first column of one.
ftl_expr ftl_standard_rows_begin_steps(const ftl_standard_rows *rows);
// A step's columns of a tensor like S.
ftl_tile_ref ftl_standard_rows_ref(const ftl_standard_rows *rows, int32_t tensor, ftl_expr column);

// What is added to the rows of S: numbers of 16 bits, -inf where a key is hidden.
typedef struct ftl_standard_added {
  int32_t tensor;   // -1: nothing
  bool of_queries;  // a row for each query, the same in every head and sequence; else one for each sequence
} ftl_standard_added;
// A step's columns of it.
ftl_tile_ref ftl_standard_added_ref(const ftl_standard_rows *rows, ftl_standard_added added, ftl_expr column);

// keep (fp32) = 1 where dropout keeps the step's columns, else 0.
void ftl_standard_rows_draw(const ftl_standard_rows *rows, int32_t keep, ftl_expr column);
// x (fp32) = x keep / (1 - p).
void ftl_standard_rows_drop(const ftl_standard_rows *rows, int32_t x, int32_t keep);

#endif
