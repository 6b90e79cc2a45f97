// Tensors in HBM, and the tiles of them that operations touch.
#ifndef FTL_TILE_TENSOR_H
#define FTL_TILE_TENSOR_H

#include "base/dtype.h"
#include "base/l2_priority.h"
#include "tile/expr.h"

enum { FTL_TILE_NAME_BYTES = 24 };

typedef enum ftl_tensor_use { FTL_TENSOR_INPUT, FTL_TENSOR_OUTPUT, FTL_TENSOR_TEMP } ftl_tensor_use;

// Logically [batch][head][row][column]; the column stride is 1 element. A per-row vector (LSE) has one column.
typedef struct ftl_tensor {
  char name[FTL_TILE_NAME_BYTES];
  ftl_dtype dtype;
  ftl_tensor_use use;
  int64_t num_batches, num_heads, num_rows, num_columns;
  int64_t batch_stride, head_stride, row_stride;  // elements
  int64_t base_bytes;                             // device address, a multiple of 2 MiB
  int64_t size_bytes;                             // of the whole allocation
  int64_t needed_bytes;  // of its elements, each once: what a launch that touches the tensor cannot do without
  int32_t *table;  // a table: its int32 entries, row by row, known before the launch. Owned; NULL: no table. Of a TEMP
                   // tensor what an earlier launch writes: these are what timing assumes, and the interpreter takes
                   // those in memory
  ftl_l2_priority l2_priority;  // of every access to it
} ftl_tensor;

// Of its elements, each once; size_bytes has the gaps between strided rows too, needed_bytes perhaps fewer elements.
static inline int64_t ftl_tensor_bytes(const ftl_tensor *tensor) {
  return tensor->num_batches * tensor->num_heads * tensor->num_rows * tensor->num_columns *
         ftl_dtype_bytes(tensor->dtype);
}

// The tile of a tensor that an operation touches: rows row .. row+rows-1, columns column .. column+columns-1 of
// (batch, head). Rows at or beyond num_rows and columns at or beyond num_columns (or, where that is nearer, row_end and
// column_end) do not exist: loads give zeros and no traffic, stores do nothing. If `present` is not FTL_ALWAYS and
// evaluates to
// <= 0, the whole access is skipped (its ring stage is then committed empty, a register tile is zero).
// Expression 0 is the constant 0 in every program, so a reference that leaves `column` and `column_end` out begins at
// column 0 and ends with the tensor. Offsets of columns are multiples of what a lane moves at once (16 bytes).
enum { FTL_ALWAYS = -1, FTL_TENSOR_END = 0 };

// Rows that do not follow each other in memory: row r of the reference's batch and head is row r % page_rows of page
// table[first_entry + r / page_rows], and pages begin page_stride elements apart. The rows end at row_end, which must
// be given. page_rows 1 gathers single rows. The entries of a tile are loaded by a LOOKUP before it.
typedef struct ftl_pages {
  int32_t page_rows;     // 0: no pages, rows are row_stride apart
  int32_t table;         // a tensor that is a table
  ftl_expr first_entry;  // of row 0
  int64_t page_stride;   // elements
  // What the builder works out: the entry of the tile's first row, and how many entries its rows can need.
  ftl_expr entry;
  int32_t num_entries;
} ftl_pages;

typedef struct ftl_tile_ref {
  int32_t tensor;
  ftl_expr batch, head, row;
  ftl_expr present;
  int32_t rows, columns;  // extent of the tile in the tensor
  ftl_expr column;
  ftl_expr column_end;  // FTL_TENSOR_END, or the first column that is left out; even
  ftl_expr row_end;     // FTL_TENSOR_END, or the first row that is left out
  ftl_pages pages;
  // LOAD_TILE, row-wise: instructions by which a thread finds the place of what it loads, where it divides the number
  // of its elements by the tensor's sizes; 0: rows and columns are at hand. LOOKUP: by which a role steps through the
  // table, beside the entry's address. LOAD: by which a source that makes an iterator anew for each tile begins it, of
  // integers and addresses that all lanes have alike or each has its own.
  int32_t index_insts;
  // STORE, row-wise: instructions by which a thread decides whether it stores a vector, beside a predicate.
  int32_t check_insts;
  // LOAD_TILE, a row-wise tile of an element a thread: its rows are the reference's columns, so that the threads of one
  // walk the rows of the tensor.
  bool transposed;
} ftl_tile_ref;

#endif
