// Softmax of the rows of a matrix in global memory, a CTA or a warp a row, as kernels/attention/softmax_rows.h and
// standard_mma.h: each thread takes 8 adjacent columns at a time, and a step is what all threads of a row take.
// Sources: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867: algorithm 2
// (`safe`: maximum, then sum, then result; every element is read three times and written once) and algorithm 3
// (`online`: maximum and sum together; read twice, written once). Rows that stay in registers are read once.
#ifndef FTL_WORKLOADS_ROW_SOFTMAX_H
#define FTL_WORKLOADS_ROW_SOFTMAX_H

#include "tile/builder.h"

enum { FTL_ROW_VECTOR_COLUMNS = 8, FTL_ROW_MAX_HELD_STEPS = 16, FTL_ROW_MAX_UNROLL = 4 };

// What else is done to rows on their way through.
typedef struct ftl_row_work {
  void *context;
  void (*declare)(void *context);  // its values, in the kernel's role
  // To x, fp32, the columns of a step from `column` on, as it has been read; columns that are not visible are masked
  // afterwards.
  void (*read)(const void *context, ftl_expr column, int32_t x);
  void (*written)(const void *context, ftl_expr column, int32_t x, int32_t raw);  // with the result, which `raw` holds
} ftl_row_work;

typedef struct ftl_row_softmax {
  bool online;   // maximum and sum in one pass
  bool precise;  // exponentials and divisions as without -use_fast_math
  // By one multiply-add before each exponential, with the maximum scaled once, instead of a difference and a
  // multiplication. Of the safe softmax rows that are held then are numbers of single precision, converted once, and
  // their exponentials in the end.
  bool fused;
  ftl_dtype dtype;
  int32_t from, to, lse;      // tensors; `from` may be `to`
  ftl_expr batch, head, row;  // of the CTA's first row
  int32_t rows, num_warps;    // of a CTA; rows divides num_warps
  int64_t columns;            // of a row, of which `visible` count. A multiple of the vector, as are row strides
  // Where rows see different columns (one row a CTA): columns from `visible` up to `end` become 0, those past it are
  // left alone. FTL_TENSOR_END: every row sees all.
  ftl_expr visible, end;
  // Likewise columns from `begin` up to `first_visible` become 0, those before are left alone. Expression 0, the
  // constant 0: rows are seen from their first column on. `begin` is a multiple of the vector.
  ftl_expr begin, first_visible;
  bool may_see_none;  // a row's visible columns may be none
  // Adjacent columns of a thread in a step; 0: FTL_ROW_VECTOR_COLUMNS. Others only of rows that are held.
  int32_t vector_columns;
  int32_t held_steps;  // steps that stay in registers: the whole row; 0: every pass reads it again
  // Rows that are read again: steps that the loops are unrolled to, whose loads go ahead of their arithmetic, as the
  // source says; 0: as nvcc decides.
  int32_t unroll;
  const ftl_row_work *more;  // NULL: nothing
} ftl_row_softmax;

// Columns that the threads of a row take in a step.
int32_t ftl_row_softmax_step_columns(const ftl_row_softmax *softmax);
// The kernel's role and all its operations.
void ftl_row_softmax_build(ftl_builder *builder, const ftl_row_softmax *softmax);

#endif
