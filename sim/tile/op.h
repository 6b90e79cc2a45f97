// Operations of a role: loops, the protocol of rings, and what is done to tiles in registers and shared memory.
#ifndef FTL_TILE_OP_H
#define FTL_TILE_OP_H

#include "tile/tensor.h"

// A compiler makes several loops of one that it unrolls. Steps that run at most once are no loop at all.
typedef enum ftl_loop_steps {
  FTL_LOOP_BEGINS,     // the loop of the source, or the single steps ahead of its rounds
  FTL_LOOP_IN_ROUNDS,  // several of its steps at once
  FTL_LOOP_GOES_ON     // more of the steps before
} ftl_loop_steps;

typedef struct ftl_loop_part {
  ftl_loop_steps steps;
  bool once;
} ftl_loop_part;

// How ATOMIC_ADD's lanes hold what an instruction adds.
typedef enum ftl_add_order {
  FTL_ADD_IN_LINES,  // 32 adjacent words, whichever elements their registers hold
  FTL_ADD_IN_PAIRS,  // two adjacent words of 8 rows, 4 lanes a row, as the fragments have them (red.v2.f32)
  FTL_ADD_IN_WORDS   // every other word of those, by two instructions
} ftl_add_order;

// What each does stands above it; dst, a, b, c are register values, `ring` and `ref` the op's own.
typedef enum ftl_tile_op_kind {
  // ---- control ----
  // Runs `loop_var` from lo (inclusive) to hi (exclusive); empty if lo >= hi.
  //   by_threads: each thread leaves it, or never enters it, as its own columns end. What a thread outside would load
  //   is nothing or `outside`, what it would store nothing, and what it reduces leaves results as they are; hi may ask
  //   for the warp, and no LOOP stands in it. `part` says which steps of a loop of the source these are
  FTL_TILE_LOOP,
  FTL_TILE_END_LOOP,

  // ---- ring protocol ----
  FTL_TILE_ACQUIRE,  // the next stage to fill is free (all consumers released it)
  FTL_TILE_LOAD,     // ring <- ref: asynchronous copy of a tile into the acquired stage, from its row ring_row on
  FTL_TILE_COMMIT,   // the loads since the last commit of this ring complete this stage
  FTL_TILE_WAIT,     // the oldest stage not yet waited for is full and visible to all warps of the role
  FTL_TILE_RELEASE,  // this role has finished reading the stage it waited for first and has not released

  // ---- global memory to registers ----
  // The entry `lookup` of the table ref.tensor is read here, by every warp of the role; or, of FTL_PAGE_ENTRIES, the
  // entries ref of a tile's pages. The builder adds these: before each operation that needs them, as far out of its
  // loops as index and `present` allow.
  FTL_TILE_LOOKUP,
  // dst (TILE of the tensor's dtype) <- ref, through L1. Row-wise, or fp32 fragments that ATOMIC_ADD left in memory.
  // What lies outside of the reference is the immediate a, 0 as a rule (row-wise). The reference may be smaller than
  // the tile.
  FTL_TILE_LOAD_TILE,
  FTL_TILE_LOAD_ROWS,     // dst (ROWS) <- ref (one column, fp32): the same number in all lanes of its row
  FTL_TILE_LOAD_COLUMNS,  // dst (COLUMNS) <- ref (one column, fp32), whose row i is dst's column i

  // ---- registers and shared memory ----
  FTL_TILE_FILL,  // dst <- immediate, all elements
  // dst (TILE) <- the waited-for stage of ring: into MMA A-operand registers.
  //   dst (COLUMNS) <- that of a ring of one column (fp32), whose row i is dst's column i.
  //   as_b: the role's share of it as B of products (a TILE of 16 bits, [n][k] of that B, which is stored as
  //   transpose_b says): as A-operand registers hold 16 x 16 elements [m][k], they hold B of 16 columns
  FTL_TILE_FETCH,
  // The acquired stage of ring <- a (TILE of its shape and dtype), to become an operand that all warps read. No LOAD
  // fills such a ring, nor one of the next two.
  FTL_TILE_PUT,
  // The acquired stage of ring (16-bit, [rows][columns]) <- the waited-for stage of ring_a (fp8, int8, or int4 in
  // pairs), number by number times those in the waited-for stage of ring_scales ([page][group][row of the page], ring's
  // dtype: a number a row and group of adjacent columns; see ftl_tile_scale_groups), rounded to ring's dtype.
  FTL_TILE_DEQUANTIZE,
  // The acquired stage of ring ([columns][rows]) <- the waited-for stage of ring_a ([rows][columns]), both of the same
  // one-byte type.
  FTL_TILE_TRANSPOSE,

  // ---- math ----
  // dst += A x B. A: value a, or (a < 0) the waited-for stage of ring_a, of which rows ring_row .. ring_row + (rows of
  // dst) - 1. B: the stage of ring, or (b >= 0) what FETCH left of one in value b.
  //   transpose_a: A, of ring_a, is stored [k][m]. transpose_b: B is stored [n][k] (K of QK^T); else [k][n] (V of PV).
  //   A and B of one type; sums in dst's: fp32 or fp16, int32 of integers. Types of other than two bytes take A [m][k]
  //   and B [n][k] only (16-bit fragments alone are transposed on their way to registers).
  //   Several groups: A of a ring is the same for all of them.
  //   part_of_k: of the sum over k only num_k terms from first_k on; both operands from rings, of a role of one group.
  //   B's ring holds all k, or those terms alone.
  FTL_TILE_MMA,
  // dst <- fn(a, b, c); each operand a TILE of dst's shape, a ROWS or COLUMNS value (broadcast), or an immediate.
  FTL_TILE_ELEM,
  // dst (TILE) <- -inf where column + column0 > token + diagonal, or column + column0 >= limit, or, with `left`, where
  // the key lies before token + left. token: row + row0, modulo `period` if that is not 0 (the rows of several heads).
  // A
  // group's columns begin where those of the group before end.
  //   transposed: rows are keys and columns queries: -inf where row + row0 > column + column0 + diagonal, or
  //   row + row0 >= limit
  FTL_TILE_MASK,
  // dst (16-bit TILE of fragments, or row-wise fp32 TILE) <- 0 where dropout drops element (row + row0, column +
  // column0) of head `sequence` (dropout.h). Fragments: row0 is a multiple of 16, column0 and dst's columns of 32;
  // row-wise: column0 and vector_columns of 4.
  //   by_sign: dst (fp32 TILE of fragments, none below 0) <- -dst there, so that both what is kept and all of it can be
  //   had from dst.
  //   transposed (by_sign only): rows are keys and columns queries: element (column + column0, row + row0), multiples
  //   of 16 both
  FTL_TILE_DROPOUT,
  // dst (TILE) <- -inf where a bit is 0. ref: a table of bit rows (ftl_builder_bit_rows); row r of ref is dst's row r,
  // bit c of its words column c. Rows beyond ref's have no bits. The columns of a group begin where those of the group
  // before end.
  FTL_TILE_MASK_BITS,
  FTL_TILE_REDUCE_ROWS,   // dst (ROWS) <- fn over a's columns, combined with dst; each lane over what it holds
  FTL_TILE_REDUCE_LANES,  // dst (ROWS) <- fn over the lanes that share a row (shuffles); makes a ROWS value whole
  // dst (ROWS of warps side by side) <- fn over the lanes and warps that share a row, through ring `ring` as staging
  // (fp32, a number for each row and warp); makes it whole.
  FTL_TILE_REDUCE_WARPS,
  FTL_TILE_REDUCE_GROUPS,  // dst (ROWS, whole) <- fn over the groups' copies, through ring `ring` as staging
  // dst (row-wise TILE or ROWS, whole) <- fn over the groups' copies of a (fragments, as many rows and columns; ROWS
  // are
  // whole), through ring `ring` as staging: for tiles fp32, a row for each row of each group. Of one group: the same
  // numbers held otherwise.
  FTL_TILE_GATHER,
  // dst (row-wise fp32 TILE) <- of each row of a (held alike; may be dst): the numbers 0, 1, ... , by column, of the
  // `count` largest elements; -1 for the others. Of equals those of lower columns.
  FTL_TILE_TOP,
  // dst (dtype of dst) <- a, rounded to nearest even; row-wise also from 16 bits to fp32.
  //   positive (fragments): dst <- 0 where a is below 0
  FTL_TILE_CONVERT,

  // ---- registers to global memory ----
  // ref <- what b (TILE, as TOP leaves it) numbers. Of a (fp32, held alike, rounded): number n of row r goes to column
  // n
  // of row r. Of no a (a < 0; b has one row): the column of number n goes to row n, the entries of a table.
  FTL_TILE_STORE_TOP,
  // ref <- a (rounded to the tensor's dtype); direct, or through ring `ring` as staging if >= 0: through its rows from
  // ring_row on. The staging ring must be the role's own and idle (every committed stage released), or one that another
  // role fills, all of whose stages the role holds. A ring of a part of the columns stages them piece after piece,
  // through its stages in turn. Row-wise tiles: direct. A role of one group.
  FTL_TILE_STORE,
  // ref (fp32) += a (fp32 TILE held as fragments): other CTAs add to the same elements, in any order, by add_order. Of
  // lines whoever reads the sum back holds it alike. A role of one group.
  FTL_TILE_ATOMIC_ADD,
  // ref (one column) <- a (ROWS, whole); of warps side by side the first stores, of groups the first its copy.
  FTL_TILE_STORE_ROWS,
  // ref (fp32) <- the groups' softmax states as one: a their outputs (TILE), b their row maxima, c their row sums
  // (ROWS,
  // whole) of exponentials 2^((score - maximum) * a.immediate): sum_g a w / sum_g c w with
  // w = 2^((b - max_g b) * a.immediate); 0 for a row that no group saw a key of. Staged in the idle rings `ring`
  // (outputs) and `ring_a` (maxima, sums).
  FTL_TILE_STORE_MERGED,

  // ---- barriers ----
  FTL_TILE_BARRIER,  // all warps of the role meet (bar.sync)
  FTL_TILE_ARRIVE,   // barrier: this role has come, and goes on (bar.arrive)
  FTL_TILE_SYNC,     // barrier: this role has come, and waits until all have (bar.sync)
} ftl_tile_op_kind;

enum { FTL_PAGE_ENTRIES = -1 };

typedef enum ftl_elem_fn {
  FTL_ELEM_COPY,             // a
  FTL_ELEM_ADD,              // a + b
  FTL_ELEM_SUB,              // a - b
  FTL_ELEM_MUL,              // a * b
  FTL_ELEM_FMA,              // a * b + c
  FTL_ELEM_MAX,              // max(a, b)
  FTL_ELEM_EXP2,             // 2^a      (MUFU.EX2)
  FTL_ELEM_LOG2,             // log2(a)  (MUFU.LG2)
  FTL_ELEM_RECIP,            // 1/a      (MUFU.RCP); 0 where a == 0 or a is NaN (rows that saw no key)
  FTL_ELEM_ZERO_IF_NEG_INF,  // a == -inf ? 0 : a  (FlashAttention's guard for fully masked rows)
  FTL_ELEM_EXP,              // e^a      as expf computes it without -use_fast_math
  FTL_ELEM_DIV,              // a / b    likewise, of IEEE precision; 0 where RECIP is
  FTL_ELEM_LOG,              // ln(a)    as logf computes it without -use_fast_math
  FTL_ELEM_DIV_FULL,         // a / b    to 2 ulp, of any b (div.full.f32); 0 where RECIP is
  FTL_ELEM_SELECT,           // a >= 0 ? b : c
} ftl_elem_fn;

typedef struct ftl_operand {
  int32_t value;  // index, or -1: the immediate
  float immediate;
} ftl_operand;

typedef struct ftl_tile_op {
  ftl_tile_op_kind kind;
  ftl_elem_fn fn;  // ELEM; REDUCE_*, GATHER: ADD or MAX
  int32_t dst;     // value
  ftl_operand a, b, c;
  int32_t ring, ring_a;  // -1: none
  int32_t ring_scales;   // DEQUANTIZE
  int32_t ring_row;  // MMA with A in shared memory, LOAD, STORE through a ring: first of its rows that are this op's
  int32_t first_k, num_k;  // MMA of a part of k; num_k 0: of all
  int32_t barrier;         // ARRIVE, SYNC
  bool transpose_a, transpose_b;
  bool as_b;                // FETCH
  bool transposed;          // MASK, DROPOUT
  bool again;               // MASK: see ftl_mask_again
  bool in_shared;           // REDUCE_WARPS: see ftl_reduce_in_shared
  bool by_sign;             // DROPOUT
  bool positive;            // CONVERT
  ftl_add_order add_order;  // ATOMIC_ADD
  bool by_threads;          // LOOP
  bool is_condition;        // LOOP: the source has a condition here, what stands in it runs once at most
  ftl_loop_part part;       // LOOP by threads
  bool first_apart;         // WAIT: see ftl_wait_first_apart
  bool amid;                // RELEASE: see ftl_release_amid
  bool behind;              // REDUCE_ROWS: see ftl_reduce_rows_behind
  ftl_tile_ref ref;         // LOOKUP, LOAD, LOAD_TILE, LOAD_ROWS, LOAD_COLUMNS, MASK_BITS, STORE*, ATOMIC_ADD
  ftl_expr lookup;          // LOOKUP: of kind FTL_EXPR_LOOKUP, or FTL_PAGE_ENTRIES
  int32_t loop_var;         // LOOP, END_LOOP
  ftl_expr lo, hi;          // LOOP
  ftl_expr row0, column0, diagonal, limit;  // MASK; diagonal == FTL_ALWAYS: no bound on the right
  ftl_expr left;                            // MASK; FTL_ALWAYS: no bound on the left
  ftl_expr sequence;                        // DROPOUT, with row0 and column0
  int32_t threshold;                        // DROPOUT: as dropout.h
  int64_t period;                           // MASK
  int32_t count;                            // TOP
  int32_t source_line;                      // of the script that wrote the op; 0: none did
} ftl_tile_op;

const char *ftl_tile_op_name(ftl_tile_op_kind kind);  // "acquire", ...
// What an operation does to the tensor of its reference.
bool ftl_tile_op_loads(ftl_tile_op_kind kind);         // LOAD and the direct ones
bool ftl_tile_op_loads_direct(ftl_tile_op_kind kind);  // LOOKUP, LOAD_TILE, LOAD_ROWS, LOAD_COLUMNS, MASK_BITS
bool ftl_tile_op_stores(ftl_tile_op_kind kind);        // STORE, ATOMIC_ADD, STORE_ROWS, STORE_MERGED

// Values that an op takes in an ELEM of this function.
int ftl_elem_num_operands(ftl_elem_fn fn);

// The values that an op reads, and how many; a destination that it adds to is among them. Immediates are below 0.
enum { FTL_TILE_OP_MAX_READS = 4 };
int ftl_tile_op_reads(const ftl_tile_op *op, int32_t reads[FTL_TILE_OP_MAX_READS]);

#endif
