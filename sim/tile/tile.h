// The tile program: an attention algorithm as its paper writes it, on tiles.
//
// Tensors in HBM, a grid of CTAs, roles (groups of warps) and, for each role, a list of operations on tiles with loops
// whose trip counts depend on the CTA. Nothing here knows a GPU. It is lowered to warps by lower/ and executed
// numerically by tile/interpreter.h; both read exactly this structure.
//
// Invariants (checked by ftl_tile_program_check):
//   - a value or buffer is used by the role(s) that own it; LOOP and END_LOOP nest; ring operations alternate as below;
//   - rows and columns of operands fit their operation (op.h).
#ifndef FTL_TILE_TILE_H
#define FTL_TILE_TILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"
#include "base/warp.h"
#include "tile/op.h"

enum {
  FTL_TILE_MAX_TENSORS = 20,
  FTL_TILE_MAX_ROLES = 4,
  FTL_TILE_MAX_RINGS = 16,
  FTL_TILE_MAX_STAGES = 64,
  FTL_TILE_MAX_VALUES = 64,
  FTL_TILE_MAX_BARRIERS = 8,
  FTL_TILE_MAX_CLUSTER_CTAS = 16,
};

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
  // Filled by TMA, where the role that reads it fills it too: each warp arrives at a stage's mbarrier when it has read
  // it, and the thread that copies waits there; else all warps meet before a stage is filled again.
  bool counts_releases;
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
  // Warps side by side: each has all columns, what the others have once more, and so whole rows. An A of such warps has
  // a product whose columns they share.
  bool is_repeated;
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

// Memory of a KV cache that is allocated in pages, and of the same tokens in one buffer a sequence, as long as the
// longest may become.
typedef struct ftl_cache_memory {
  int64_t page_bytes, filled_bytes;  // of the pages, and of their slots that have a token
  int64_t contiguous_bytes, contiguous_filled_bytes;
} ftl_cache_memory;

// How a persistent CTA comes to its next tile: by the grid's stride, or from a counter in memory that it asks as it
// begins the tile before (FlashAttention-3), or as its first role ends it (cuDNN).
typedef enum ftl_tile_handout { FTL_TILES_BY_STRIDE, FTL_TILES_ASKED_AHEAD, FTL_TILES_ASKED_LATE } ftl_tile_handout;

struct ftl_tile_program {
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
  bool half_products;      // mma.sync of half the K that the GPU's widest has: m16n8k8 where that is m16n8k16
  int64_t model_flops;     // FLOPs of the algorithm (4*B*H*Sq*Skv*D forward; only unmasked pairs if causal)
  const char *source;      // name of the script that the ops' source_line are lines of; borrowed; NULL: none
};

// Of the CTAs that share loads into a ring, which one this is: 0 .. num_ctas - 1; 0 without multicast.
static inline int32_t ftl_multicast_member(ftl_multicast multicast, int64_t cta) {
  return multicast.num_ctas > 1 ? (int32_t)(cta / multicast.stride % multicast.num_ctas) : 0;
}
// Terms of a product that its B, of a ring, has: all k of A, or a part alone. Where in B the product's first term is.
int32_t ftl_tile_terms_of_b(const ftl_tile_program *program, const ftl_tile_op *mma);
int32_t ftl_tile_first_term_of_b(const ftl_tile_program *program, const ftl_tile_op *mma);
// Whether a PUT, DEQUANTIZE or TRANSPOSE fills the ring.
bool ftl_tile_ring_is_put(const ftl_tile_program *program, int32_t ring);
// Whether its stages hold a number a column of products, which FETCH brings to registers as a COLUMNS value.
static inline bool ftl_ring_holds_columns(const ftl_ring *ring) {
  return ring->dtype == FTL_FP32 && ring->columns == 1;
}
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
// Of a reference's whole tile, whether its rows and columns exist or not.
static inline int64_t ftl_tile_ref_bytes(const ftl_tile_program *program, const ftl_tile_ref *ref) {
  return (int64_t)ref->rows * ref->columns * ftl_dtype_bytes(program->tensors[ref->tensor].dtype);
}
// The first row beyond those of a reference that exist; the first column.
int64_t ftl_tile_ref_end_row(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point);
int64_t ftl_tile_ref_end_column(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point);
// Columns of a reference that exist at a point; 0: none.
int64_t ftl_tile_ref_num_columns(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point);
int32_t ftl_tile_num_warps(const ftl_tile_program *program);
int32_t ftl_value_warp_columns(const ftl_value *value);  // of a fragment's columns, those that one warp has
int32_t ftl_role_row_warps(const ftl_role *role);        // warps of a group: those that a value's rows are dealt to
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
// Interval arithmetic over CTAs and loop variables: FTL_BAD_INPUT names what cannot be shown. Lookups of which it
// cannot be shown that their tables have the entry are evaluated one by one, 2^20 at most: FTL_BAD_INPUT names one that
// is outside.
typedef struct ftl_bounds_steps {
  int64_t most_a_cta;  // that bound on operations, of all roles together
  int64_t visits;      // what evaluating lookups took
} ftl_bounds_steps;
FTL_MUST_USE ftl_status ftl_tile_program_check_bounds(const ftl_tile_program *program, ftl_bounds_steps *steps,
                                                      ftl_error *error);

// The program as readable pseudo-code.
void ftl_tile_program_write(FILE *out, const ftl_tile_program *program);

#endif
