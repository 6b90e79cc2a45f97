// The tile program: an attention algorithm as its paper writes it, on tiles.
//
// Tensors in HBM, a grid of CTAs, roles (groups of warps) and, for each role, a list of operations on tiles with loops
// whose trip counts depend on the CTA. Nothing here knows a GPU. It is lowered to warps by lower/ and executed
// numerically by tile/interpreter.h; both read exactly this structure.
//
// Invariants (checked by ftl_tile_program_check):
//   - a value or buffer is used by the role(s) that own it; LOOP and END_LOOP nest; ring operations alternate as below;
//   - rows and columns of operands fit their operation (documented at each op).
#ifndef FTL_TILE_TILE_H
#define FTL_TILE_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/l2_priority.h"
#include "base/status.h"

enum {
  FTL_TILE_NAME_BYTES = 24,
  FTL_TILE_MAX_TENSORS = 20,
  FTL_TILE_MAX_ROLES = 4,
  FTL_TILE_MAX_RINGS = 16,
  FTL_TILE_MAX_VALUES = 64,
  FTL_TILE_MAX_LOOP_VARS = 12,  // of a role: each role numbers its own
  FTL_TILE_MAX_BARRIERS = 8,
  FTL_TILE_MAX_CLUSTER_CTAS = 16,
};

// ---- integer expressions of the CTA index and the loop variables ----
typedef int32_t ftl_expr;  // index into ftl_tile_program.exprs

typedef enum ftl_expr_kind {
  FTL_EXPR_CONST,  // value
  FTL_EXPR_CTA,    // linear CTA index (of the tile, for persistent kernels)
  FTL_EXPR_LOOP,   // loop variable number `value`
  FTL_EXPR_WARP,  // number of the warp within its role: in bounds of loops alone, and there the first warp runs longest
  FTL_EXPR_ADD,
  FTL_EXPR_SUB,
  FTL_EXPR_MUL,
  FTL_EXPR_DIV,  // floor division, divisor > 0
  FTL_EXPR_MOD,  // floor modulus, divisor > 0
  FTL_EXPR_MIN,
  FTL_EXPR_MAX,
  FTL_EXPR_LOOKUP,  // entry `a` of table (a tensor) number `value`; 0 outside of it. b: the constant 0
} ftl_expr_kind;

typedef struct ftl_expr_node {
  ftl_expr_kind kind;
  int64_t value;
  ftl_expr a, b;
} ftl_expr_node;

// The point at which expressions are evaluated.
typedef struct ftl_expr_point {
  int64_t cta;
  int64_t warp;  // of the role. What runs a CTA as a whole (the interpreter) runs what the first warp does
  int64_t loop[FTL_TILE_MAX_LOOP_VARS];
} ftl_expr_point;

// ---- tensors in HBM ----
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
  // table, beside the entry's address.
  int32_t index_insts;
  // STORE, row-wise: instructions by which a thread decides whether it stores a vector, beside a predicate.
  int32_t check_insts;
  // LOAD_TILE, a row-wise tile of an element a thread: its rows are the reference's columns, so that the threads of one
  // walk the rows of the tensor.
  bool transposed;
} ftl_tile_ref;

// ---- shared memory: rings of stages ----
// A ring is `num_stages` equal buffers of rows x columns. One role fills a stage (acquire, load..., commit), others
// read it (wait, mma..., release), in order. Columns beyond the tensor's are zero (head_dim padding). Reads take the
// stage that the role waited for last; several consumers may read different rows of it. When a CTA ends, stages that
// were committed and never waited for must be empty (prefetches past the last tile); a persistent program ends each
// tile with every committed stage waited for and released.
// CTAs of a cluster that load the same tiles share the work: with n of them, each copies 1/n of the rows and sends them
// to all. They are ranks r, r + stride, ... of the cluster, r / stride being a multiple of n. A stage is then free when
// the readers of all of them have released it.
typedef struct ftl_multicast {
  int32_t num_ctas, stride;  // num_ctas 0 or 1: each CTA loads for itself
} ftl_multicast;

typedef struct ftl_ring {
  char name[FTL_TILE_NAME_BYTES];
  ftl_dtype dtype;
  int32_t rows, columns, num_stages;
  int32_t producer, consumers_mask;  // role index; bit per consuming role
  ftl_multicast multicast;           // of every load into it
  bool overlaid;  // lies over rings declared before it, which are idle when it is used: takes no room of its own
  // Threads load a stage into registers and store it before they go on, whatever other rings are copied with (but TMA):
  // nothing is in flight once it is committed.
  bool through_registers;
} ftl_ring;

// ---- register tiles ----
typedef enum ftl_value_kind {
  FTL_VALUE_TILE,  // rows x columns, spread over the role's warps by rows
  FTL_VALUE_ROWS,  // one number a row (max, sum): columns == 1. Each lane of the row holds its own until REDUCE_LANES
  FTL_VALUE_COLUMNS,  // one number a column, the same for all rows: rows == 1. Held as the columns of fragments are
} ftl_value_kind;

// How the threads of a role hold a value. threads_per_row == 0: as MMA fragments, 16 rows a warp, which is what MMA and
// FETCH take. Otherwise row-wise, for kernels that stream rows: threads_per_row consecutive threads hold a row (a power
// of two up to a warp, or whole warps), each `vector_columns` adjacent columns at a time, the threads of a row taking
// turns; the groups of threads take turns at the rows. Loads and stores of such tiles are coalesced.
typedef struct ftl_value_layout {
  int32_t threads_per_row;
  int32_t vector_columns;  // of tiles; 16 bytes of the tensor's elements, as a rule: 8 of fp16, 4 of fp32
} ftl_value_layout;

// Operands of one operation have the same layout (a ROWS value the same threads_per_row).
typedef struct ftl_value {
  char name[FTL_TILE_NAME_BYTES];
  ftl_value_kind kind;
  ftl_dtype dtype;
  int32_t rows, columns;
  int32_t role;
  ftl_value_layout layout;
  // Fragments of a TILE or ROWS value: so many warps stand side by side, each with the same rows and an equal share of
  // the columns. 1: every warp has whole rows, which is what REDUCE_LANES, FETCH and the A of a product take.
  int32_t warps_per_row;
  bool accumulates;  // some product adds to it
} ftl_value;

typedef struct ftl_role {
  char name[FTL_TILE_NAME_BYTES];  // "main", "producer", "consumer"
  int32_t num_warps;
  int32_t first_warp;     // index in the CTA
  int32_t num_registers;  // after reallocation (setmaxnreg); 0: as the compiler gives
  // The warps are num_groups groups of as many. Each group holds a copy of its own of every fragment value of the role
  // and takes its share of B's keys in a product: share g of K's rows (transpose_b) or of V's. 1: all warps share the
  // rows.
  int32_t num_groups;
  int32_t first_op, num_ops;
  int32_t num_setup_ops;  // of num_ops: the first run once a CTA, the others once a tile (a persistent CTA has several)
} ftl_role;

// A named barrier: roles of the mask meet. A phase is over when each of them has come once; those that ARRIVE go on at
// once, those that SYNC wait for the end of the phase. Phases may be left unfinished when a CTA ends.
typedef struct ftl_named_barrier {
  char name[FTL_TILE_NAME_BYTES];
  int32_t roles_mask;
} ftl_named_barrier;

// ---- operations ----
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

typedef enum ftl_tile_op_kind {
  // Control. LOOP runs `loop_var` from expr lo (inclusive) to hi (exclusive); empty if lo >= hi.
  //   by_threads: each thread leaves it, or never enters it, as its own columns end. What a thread outside would load
  //   is nothing or `outside`, what it would store nothing, and what it reduces leaves results as they are; hi
  //   may ask for the warp, and no LOOP stands in it. `part` says which steps of a loop of the source these are
  FTL_TILE_LOOP,
  FTL_TILE_END_LOOP,

  // Ring protocol.
  FTL_TILE_ACQUIRE,  // ring: the next stage to fill is free (all consumers released it)
  FTL_TILE_LOAD,     // ring <- ref: asynchronous copy of a tile into the acquired stage
  FTL_TILE_COMMIT,   // ring: the loads since the last commit of this ring complete this stage
  FTL_TILE_WAIT,     // ring: the oldest stage not yet waited for is full and visible to all warps of the role
  FTL_TILE_RELEASE,  // ring: this role has finished reading the stage it waited for first and has not released

  FTL_TILE_LOOKUP,  // lookup: its entry of the table ref.tensor is read here, by every warp of the role; or, of
                    //   FTL_PAGE_ENTRIES, the entries ref of a tile's pages. The builder adds these: before each
                    //   operation that needs them, as far out of its loops as index and `present` allow

  // Register tiles.
  FTL_TILE_LOAD_TILE,  // dst (TILE of the tensor's dtype) <- ref: global memory into registers, through L1. Row-wise,
                       //   or fp32 fragments that ATOMIC_ADD left in memory. What lies outside of the reference is
                       //   the immediate a, 0 as a rule (row-wise). The reference may be smaller than the tile
  FTL_TILE_LOAD_ROWS,  // dst (ROWS) <- ref (one column, fp32): the same number in all lanes of its row
  FTL_TILE_LOAD_COLUMNS,  // dst (COLUMNS) <- ref (one column, fp32), whose row i is dst's column i
  FTL_TILE_FILL,          // dst <- immediate, all elements
  FTL_TILE_FETCH,         // dst (TILE) <- the waited-for stage of ring: shared memory into MMA A-operand registers
  FTL_TILE_PUT,         // the acquired stage of ring <- a (TILE of its shape and dtype): registers to shared memory, to
                        //   become an operand that all warps read. No LOAD fills such a ring
  FTL_TILE_DEQUANTIZE,  // the acquired stage of ring (16-bit, [rows][columns]) <- the waited-for stage of ring_a (fp8,
                        //   int8, or int4 in pairs), number by number times those in the waited-for stage of
                        //   ring_scales ([page][group][row of the page], ring's dtype: a number a row and group of
                        //   adjacent columns; see ftl_tile_scale_groups), rounded to ring's dtype. No LOAD fills such a
                        //   ring
  FTL_TILE_TRANSPOSE,   // the acquired stage of ring ([columns][rows]) <- the waited-for stage of ring_a ([rows]
                        //   [columns]), both of the same one-byte type. No LOAD fills such a ring
  FTL_TILE_MMA,         // dst += A x B. A: value a, or (a < 0) the waited-for stage of ring_a. B: the stage of ring.
  //   transpose_a: A, of ring_a, is stored [k][m]. transpose_b: B is stored [n][k] (K of QK^T); else [k][n] (V of PV).
  //   A and B of one type; sums in dst's: fp32 or fp16, int32 of integers. Types of other than two bytes take A [m][k]
  //   and B [n][k] only (16-bit fragments alone are transposed on their way to registers).
  //   Several groups: A of a ring is the same for all of them.
  //   A in shared memory: rows ring_row .. ring_row + (rows of dst) - 1 of its stage.
  FTL_TILE_ELEM,  // dst <- fn(a, b, c); each operand a TILE of dst's shape, a ROWS or COLUMNS value (broadcast), or an
                  //   immediate
  FTL_TILE_MASK,  // dst (TILE) <- -inf where column + column0 > token + diagonal, or column + column0 >= limit. token:
                  //   row + row0, modulo `period` if that is not 0 (the rows of several heads). A group's columns
                  //   begin where those of the group before end. transposed: rows are keys and columns queries: -inf
                  //   where row + row0 > column + column0 + diagonal, or row + row0 >= limit
                  //   With `left` also where the key lies before the token + left
  FTL_TILE_DROPOUT,  // dst (16-bit TILE of fragments, or row-wise fp32 TILE) <- 0 where dropout drops element
  //   (row + row0, column + column0) of head `sequence` (dropout.h). Fragments: row0 is a multiple of
  //   16, column0 and dst's columns of 32; row-wise: column0 and vector_columns of 4
  //   by_sign: dst (fp32 TILE of fragments, none below 0) <- -dst there, so that both what is kept and all of
  //   it can be had from dst. transposed (by_sign only): rows are keys and columns queries: element
  //   (column + column0, row + row0), multiples of 16 both
  FTL_TILE_MASK_BITS,     // dst (TILE) <- -inf where a bit is 0. ref: a table of bit rows (ftl_builder_bit_rows); row r
                          //   of ref is dst's row r, bit c of its words column c. Rows beyond ref's have no bits. The
                          //   columns of a group begin where those of the group before end
  FTL_TILE_REDUCE_ROWS,   // dst (ROWS) <- fn over a's columns, combined with dst; each lane over what it holds
  FTL_TILE_REDUCE_LANES,  // dst (ROWS) <- fn over the lanes that share a row (shuffles); makes a ROWS value whole
  FTL_TILE_REDUCE_WARPS,  // dst (ROWS of warps side by side) <- fn over the lanes and warps that share a row, through
                          //   ring `ring` as staging (fp32, a number for each row and warp); makes it whole
  FTL_TILE_REDUCE_GROUPS,  // dst (ROWS, whole) <- fn over the groups' copies, through ring `ring` as staging
  FTL_TILE_GATHER,         // dst (row-wise TILE or ROWS, whole) <- fn over the groups' copies of a (fragments, as many
                           //   rows and columns; ROWS are whole), through ring `ring` as staging: for tiles fp32, a row
                           //   for each row of each group. Of one group: the same numbers held otherwise
  FTL_TILE_TOP,  // dst (row-wise fp32 TILE) <- of each row of a (held alike): the numbers 0, 1, ... , by column, of the
                 //   `count` largest elements; -1 for the others. Of equals those of lower columns. dst may be a
  FTL_TILE_STORE_TOP,  // ref <- what b (TILE, as TOP leaves it) numbers. Of a (fp32, held alike, rounded): number n of
                       //   row r goes to column n of row r. Of no a (a < 0; b has one row): the column of number n goes
                       //   to row n, the entries of a table
  FTL_TILE_CONVERT,    // dst (dtype of dst) <- a, rounded to nearest even; row-wise also from 16 bits to fp32
                       //   positive (fragments): dst <- 0 where a is below
  FTL_TILE_STORE,      // ref <- a (rounded to the tensor's dtype); through ring `ring` as staging if >= 0, else direct.
                       //   through its rows from ring_row on. The staging ring must be the role's own and idle (every
  //   committed stage released), or one that another role fills, all of whose stages the role holds. A
  //   ring of a part of the columns stages them piece after piece, through its stages in turn.
  //   Row-wise tiles: direct. A role of one group; STORE_ROWS stores the first group's copy.
  FTL_TILE_ATOMIC_ADD,    // ref (fp32) += a (fp32 TILE held as fragments): other CTAs add to the same elements, in any
                          //   order. Lanes add adjacent words, whichever elements their registers hold, as long as
                          //   whoever reads the sum back holds it alike. A role of one group
  FTL_TILE_STORE_ROWS,    // ref (one column) <- a (ROWS, whole; of warps side by side the first stores)
  FTL_TILE_STORE_MERGED,  // ref (fp32) <- the groups' softmax states as one: a their outputs (TILE), b their row
                          // maxima,
                          //   c their row sums (ROWS, whole) of exponentials 2^((score - maximum) * a.immediate).
                          //   sum_g a w / sum_g c w with w = 2^((b - max_g b) * a.immediate); 0 for a row that no group
                          //   saw a key of. Staged in the idle rings `ring` (outputs) and `ring_a` (maxima, sums)
  FTL_TILE_BARRIER,       // all warps of the role meet (bar.sync)
  FTL_TILE_ARRIVE,        // barrier: this role has come, and goes on (bar.arrive)
  FTL_TILE_SYNC,          // barrier: this role has come, and waits until all have (bar.sync)
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
  int32_t ring_row;      // MMA with A in shared memory, STORE through a ring: first of its rows that are this op's
  int32_t barrier;       // ARRIVE, SYNC
  bool transpose_a, transpose_b;
  bool transposed;     // MASK, DROPOUT
  bool by_sign;        // DROPOUT
  bool positive;       // CONVERT
  bool by_threads;     // LOOP
  ftl_loop_part part;  // LOOP by threads
  bool first_apart;    // WAIT: see ftl_wait_first_apart
  bool behind;         // REDUCE_ROWS: see ftl_reduce_rows_behind
  ftl_tile_ref ref;    // LOOKUP, LOAD, LOAD_TILE, LOAD_ROWS, LOAD_COLUMNS, MASK_BITS, STORE*, ATOMIC_ADD
  ftl_expr lookup;     // LOOKUP: of kind FTL_EXPR_LOOKUP, or FTL_PAGE_ENTRIES
  int32_t loop_var;    // LOOP, END_LOOP
  ftl_expr lo, hi;     // LOOP
  ftl_expr row0, column0, diagonal, limit;  // MASK; diagonal == FTL_ALWAYS: no bound on the right
  ftl_expr left;                            // MASK; FTL_ALWAYS: no bound on the left
  ftl_expr sequence;                        // DROPOUT, with row0 and column0
  int32_t threshold;                        // DROPOUT: as dropout.h
  int64_t period;                           // MASK
  int32_t count;                            // TOP
  int32_t source_line;                      // of the script that wrote the op; 0: none did
} ftl_tile_op;

// Memory of a KV cache that is allocated in pages, and of the same tokens in one buffer a sequence, as long as the
// longest may become.
typedef struct ftl_cache_memory {
  int64_t page_bytes, filled_bytes;  // of the pages, and of their slots that have a token
  int64_t contiguous_bytes, contiguous_filled_bytes;
} ftl_cache_memory;

// How a persistent CTA comes to its next tile: by the grid's stride, or from a counter in memory that it asks as it
// begins the tile before (FlashAttention-3), or as its first role ends it (cuDNN).
typedef enum ftl_tile_handout { FTL_TILES_BY_STRIDE, FTL_TILES_ASKED_AHEAD, FTL_TILES_ASKED_LATE } ftl_tile_handout;

typedef struct ftl_tile_program {
  char name[FTL_TILE_NAME_BYTES];  // kernel name in answers: "flash2_fwd"
  int64_t num_ctas;                // grid size (tiles, for a persistent kernel)
  bool persistent;                 // as many CTAs as fit walk the tiles
  ftl_tile_handout handout;        // of persistent CTAs
  int32_t cluster_ctas;            // so many CTAs in a row form a cluster: they run side by side on a GPC; 1: none
  int32_t num_tensors, num_roles, num_rings, num_values, num_barriers, num_ops, num_exprs;
  int32_t num_loop_vars;  // the most of any role
  ftl_tensor tensors[FTL_TILE_MAX_TENSORS];
  ftl_role roles[FTL_TILE_MAX_ROLES];
  ftl_ring rings[FTL_TILE_MAX_RINGS];
  ftl_named_barrier barriers[FTL_TILE_MAX_BARRIERS];
  ftl_value values[FTL_TILE_MAX_VALUES];
  ftl_tile_op *ops;        // owned
  ftl_expr_node *exprs;    // owned
  ftl_cache_memory cache;  // zeros: no paged cache
  int64_t model_flops;     // FLOPs of the algorithm (4*B*H*Sq*Skv*D forward; only unmasked pairs if causal)
  const char *source;      // name of the script that the ops' source_line are lines of; borrowed; NULL: none
} ftl_tile_program;

// Of the CTAs that share loads into a ring, which one this is: 0 .. num_ctas - 1; 0 without multicast.
static inline int32_t ftl_multicast_member(ftl_multicast multicast, int64_t cta) {
  return multicast.num_ctas > 1 ? (int32_t)(cta / multicast.stride % multicast.num_ctas) : 0;
}
int64_t ftl_expr_eval(const ftl_tile_program *program, ftl_expr expr, const ftl_expr_point *point);
// A power of two, at most 2^30, that divides the expression wherever it is evaluated.
int64_t ftl_expr_alignment(const ftl_tile_program *program, ftl_expr expr);
// Whether evaluating the expression reads loop variable `loop_var`, or (-1) any table.
bool ftl_expr_uses(const ftl_tile_program *program, ftl_expr expr, int32_t loop_var);
bool ftl_expr_uses_warp(const ftl_tile_program *program, ftl_expr expr);
bool ftl_expr_uses_cta(const ftl_tile_program *program, ftl_expr expr);
// One binary operation (ADD ... MAX); b > 0 for DIV and MOD.
int64_t ftl_expr_apply(ftl_expr_kind kind, int64_t a, int64_t b);
const char *ftl_tile_op_name(ftl_tile_op_kind kind);  // "acquire", ...
// What an operation does to the tensor of its reference.
bool ftl_tile_op_loads(ftl_tile_op_kind kind);         // LOAD and the direct ones
bool ftl_tile_op_loads_direct(ftl_tile_op_kind kind);  // LOOKUP, LOAD_TILE, LOAD_ROWS, LOAD_COLUMNS, MASK_BITS
bool ftl_tile_op_stores(ftl_tile_op_kind kind);        // STORE, ATOMIC_ADD, STORE_ROWS, STORE_MERGED
// Whether a PUT, DEQUANTIZE or TRANSPOSE fills the ring.
bool ftl_tile_ring_is_put(const ftl_tile_program *program, int32_t ring);
// Whether threads have stored its stages when they commit them: put, or loaded through registers.
bool ftl_tile_ring_is_stored(const ftl_tile_program *program, int32_t ring);
// Groups of columns of ring `to` with a scale each in ring `scales`; 0: it has no scale for each row and group. As many
// columns of `scales` as `to` has rows: [group][row]. Fewer: so many rows of `to` are a page, pages lie one after
// another. The scale of row r and group g is then at
//   row ftl_tile_scale_row(scales, groups, r, g), column r % scales->columns.
int32_t ftl_tile_scale_groups(const ftl_ring *to, const ftl_ring *scales);
static inline int32_t ftl_tile_scale_row(const ftl_ring *scales, int32_t num_groups, int32_t row, int32_t group) {
  return row / scales->columns * num_groups + group;
}
// The first row beyond those of a reference that exist; the first column.
int64_t ftl_tile_ref_end_row(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point);
int64_t ftl_tile_ref_end_column(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point);
// Columns of a reference that exist at a point; 0: none.
int64_t ftl_tile_ref_num_columns(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point);
int32_t ftl_tile_num_warps(const ftl_tile_program *program);
int32_t ftl_role_row_warps(const ftl_role *role);  // warps of a group: those that a value's rows are dealt to
// Copies of a value in a CTA: one a group, or one alone where it is held row-wise.
int32_t ftl_tile_num_copies(const ftl_tile_program *program, int32_t value);
void ftl_tile_program_destroy(ftl_tile_program *program);

// Where an op is, as errors begin: "flash2_fwd: op 12 (mma)", or "alibi.lua:34: mma" where a script wrote it. `object`
// (a ring's or barrier's name) follows the op's name; NULL: none.
enum { FTL_TILE_WHERE_BYTES = 320 };
const char *ftl_tile_op_where(const ftl_tile_program *program, int32_t op_idx, const char *object,
                              char buffer[FTL_TILE_WHERE_BYTES]);

// A program in one block of memory, for who keeps many: how large it is, and the copy into a block of that size,
// aligned as malloc aligns. The copy lives as long as the block; it is not to be destroyed.
size_t ftl_tile_program_packed_bytes(const ftl_tile_program *program);
const ftl_tile_program *ftl_tile_program_pack(const ftl_tile_program *program, void *block);
// A copy of its own, to be destroyed. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_tile_program_clone(const ftl_tile_program *program, ftl_tile_program **out,
                                               ftl_error *error);
// Of everything that decides what a program does (not of where it was written): equal programs have equal hashes.
uint64_t ftl_tile_program_hash(const ftl_tile_program *program);

// Structure, shapes and ring protocol (walked for a few CTAs); FTL_BAD_INPUT with the op's index and what is wrong.
FTL_MUST_USE ftl_status ftl_tile_program_check(const ftl_tile_program *program, ftl_error *error);
// What the check does not promise and a program of unknown origin must show: every tile begins inside of its tensor
// wherever the operation is reached, no expression comes near 2^63, and a CTA runs a bounded number of operations.
// Interval arithmetic over CTAs and loop variables: FTL_BAD_INPUT names what cannot be shown.
// *max_steps_a_cta: that bound, of all roles together.
FTL_MUST_USE ftl_status ftl_tile_program_check_bounds(const ftl_tile_program *program, int64_t *max_steps_a_cta,
                                                      ftl_error *error);

// The program as readable pseudo-code.
void ftl_tile_program_write(FILE *out, const ftl_tile_program *program);

#endif
