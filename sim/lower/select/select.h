// Instruction selection: one role's tile operations become drafted instructions. What select/*.c share.
//
// A selection walks the operations of a role in order; each file turns some kinds of operations into instructions on
// the role's draft. Failures (memory, a configuration that cannot be) are remembered in `status` and reported once.
#ifndef FTL_LOWER_SELECT_SELECT_H
#define FTL_LOWER_SELECT_SELECT_H

#include "arch/arch.h"
#include "lower/draft.h"
#include "lower/operand.h"
#include "lower/ring_order.h"
#include "lower/select/copy_plan.h"
#include "lower/shared_layout.h"
#include "lower/warp_program.h"

enum {
  FTL_SELECT_MAX_GROUPS = 8,
  FTL_SELECT_MAX_HELD = 128,
  FTL_SELECT_MAX_FRAGMENTS = 64,
  FTL_SELECT_MAX_VECTORS = 256,  // of a row-wise value, a thread and row
  FTL_SELECT_MAX_LOOKUPS = 128
};

// What all roles append to.
typedef struct ftl_select_lists {
  ftl_tile_ref *refs;
  ftl_access *accesses;
  ftl_warp_loop *loops;
  int32_t num_refs, num_accesses, num_loops, capacity_refs, capacity_accesses, capacity_loops;
  int32_t local_bytes_per_thread;
  bool failed;
} ftl_select_lists;
void ftl_select_lists_fini(ftl_select_lists *lists);
bool ftl_select_lists_grow_loops(ftl_select_lists *lists);  // room for one more

// The fragments of a value: virtual values first .. in order of slab, then column. FILLs with 0 wait for an MMA that
// takes C = RZ.
typedef struct ftl_select_value {
  int32_t first;
  ftl_fragment_map map;
  bool zero_pending;
  int32_t reserve;        // registers beside it while it is made an operand of wgmmas (operand_blocks.c), or NO_VALUE
  int32_t num_reserves;   // values from there on: one, or one for each block of the operand
  int32_t first_bit_row;  // MASK_BITS of plain code: where each row of a lane begins among the words; or NO_VALUE
  int32_t put_ring;       // where each group's copy lies, for a GATHER to read; or NO_VALUE
} ftl_select_value;

// A role's view of a ring. Virtual values, or FTL_NO_VALUE where the role has no need of them.
typedef struct ftl_select_ring {
  int32_t read_offset,
      read_address;  // of this lane: in stage 0, and in the stage being read (the same if there is one)
  int32_t first_kept[FTL_OPERAND_KIND_COUNT];  // addresses of ldmatrix kept over the loop, in order of step, then
                                               // block; NONE: computed for each load
  int32_t write_offset, write_address;         // likewise in the stage being filled
  int32_t read_index, write_index;             // of the stage, for rings of several
  int32_t num_kept[FTL_OPERAND_KIND_COUNT];
  bool keeps_all[FTL_OPERAND_KIND_COUNT];
  int32_t first_tensor_offset, first_shared_offset;  // of each row group of a copy, the same in all iterations
  int32_t num_row_groups;                            // 0: computed where the copy is
  int32_t first_round, first_address;                // DEQUANTIZE: of each round, kept over the loop and where it is
  int32_t places[FTL_SELECT_MAX_HELD], num_places;   // shared addresses of the row groups of the last copy, if computed
  int32_t held[FTL_SELECT_MAX_HELD];                 // copies by registers: the 16 bytes a lane of each LDG of a stage
  int32_t num_held_values;                           // of these that exist
  ftl_wavefronts held_wavefronts[FTL_SELECT_MAX_HELD];
  int32_t num_held;                 // LDGs of the stage that is in registers
  int32_t num_waits, num_releases;  // of fills, so far in the program
  bool stage_begun;                 // a LOAD since the last COMMIT
  int32_t copy_mask;                // where a stage is copied in parts: a bit for each copy of it
} ftl_select_ring;

// A group of wgmmas that was committed and not yet waited for.
typedef struct ftl_select_group {
  int32_t dst, a, ring, ring_a;  // values and rings it uses
  int32_t fill, fill_a;          // of these rings: the fills that the role had waited for, the last of which it reads
} ftl_select_group;

typedef struct ftl_select_groups {
  ftl_select_group of[FTL_SELECT_MAX_GROUPS];
  int32_t count;
} ftl_select_groups;

// A table's entry that a register holds, or those of a tile's pages, one a lane: then the addresses of the pages.
typedef struct ftl_select_lookup_entry {
  ftl_expr lookup;  // FTL_PAGE_ENTRIES: of pages
  int32_t table, num_entries;
  ftl_expr entry;
  uint16_t ref;
  int32_t value;
  int32_t reader;  // of pages that each row looks up: the operation that reads their entries first; FTL_NO_VALUE: none
} ftl_select_lookup_entry;

// Whether each vector of a thread's row lies inside it, found by a masked load (row_bits.c).
typedef struct ftl_select_row_bits {
  int32_t num_vectors;  // 0: there was no such load
  ftl_expr column, column_end;
  bool in_words;                               // 32 to a register; else one each
  int32_t passing;                             // predicate of those that go there
  int32_t value[FTL_SELECT_MAX_VECTORS];       // the predicate, if that stays, or the register
  int32_t own_column[FTL_SELECT_MAX_VECTORS];  // of vectors that have an address of their own; or NO_VALUE
} ftl_select_row_bits;

enum { FTL_SELECT_MAX_PRODUCTS = 2 };  // side by side, that read the same A

// Products of parts of k in a source with two sets of fragments: those of the next part are loaded before the last
// one's are multiplied, also where a wait for the next stage stands between the two.
typedef struct ftl_select_parts {
  int32_t held;            // k step whose fragments were loaded last; NO_VALUE: none
  int32_t pending_op_idx;  // of the products whose last k step is still to be multiplied; NO_VALUE: none
  bool has_chunks;         // of addresses, since the last wait or loop
  int32_t a_chunks[FTL_SELECT_MAX_FRAGMENTS], chunks[FTL_SELECT_MAX_PRODUCTS][FTL_SELECT_MAX_FRAGMENTS];
  // Values of fragments, by even and odd k step: of A by slab; of each B by 16 columns.
  int32_t a[2][FTL_SELECT_MAX_FRAGMENTS];
  int32_t b[FTL_SELECT_MAX_PRODUCTS][2][FTL_SELECT_MAX_FRAGMENTS];
} ftl_select_parts;

// Columns that each of a lane's rows sees, found by the first step that masks.
typedef struct ftl_select_row_limits {
  const ftl_tile_op *found_by;                                              // NULL: none are kept
  int32_t right[FTL_SELECT_MAX_FRAGMENTS], left[FTL_SELECT_MAX_FRAGMENTS];  // by slab
} ftl_select_row_limits;

// What a vector's load or store is masked by, and where it is.
typedef struct ftl_select_row_bit {
  int32_t predicate, address;
} ftl_select_row_bit;

typedef struct ftl_select {
  const ftl_tile_program *tile;
  const ftl_arch *arch;
  ftl_copy copy;
  ftl_mma mma;
  ftl_fragment_shape shape;
  const ftl_product *product;
  const ftl_shared_layout *layouts;  // of each ring
  int32_t register_cap;              // of a thread
  int32_t most_registers;            // that one may have where an occupancy step is not aimed at
  bool plain_code, is_cuda, keeps_denormals;
  // Of stepped code for sm_90: an address at each position of a tile's columns is one LOP3, or, where registers are
  // short, a lane's row and column are worked out there too.
  bool finds_positions, recomputes_positions;
  bool buffers_fragments;  // two sets of fragments: those of a k step are loaded before the last one's are multiplied
  bool buffered_code;      // the source has them, CUTLASS's, whose copies keep 64-bit offsets
  ftl_select_lists *lists;

  const ftl_role *role;
  int32_t role_idx;
  int32_t op_idx;              // within the role
  int32_t num_released_amid;   // RELEASEs behind this product that it has made
  const ftl_op_order *orders;  // of each op of the role; NULL in programs of several roles
  ftl_draft draft;
  ftl_select_value values[FTL_TILE_MAX_VALUES];
  ftl_select_ring rings[FTL_TILE_MAX_RINGS];
  int32_t tensor_pointer[FTL_TILE_MAX_TENSORS];  // 64-bit address of this thread's part of the current tile
  int32_t thread, block;                         // indices: rows and columns come from one, the tile from the other
  int32_t loop_counter[FTL_TILE_MAX_LOOP_VARS], loop_index[FTL_TILE_MAX_LOOP_VARS];
  bool by_threads;       // in a loop that threads leave one by one: those in it have something to do
  bool once;             // in steps that run once at most
  bool has_row_address;  // of the single steps of the present loop by threads
  int32_t row_column;    // that such a loop counts
  int32_t stored;        // of plain code: the registers of all stores so far have been read; NONE: there are none
  bool in_turns;         // row-wise operations work on slab `turn` alone: row_turns.c
  bool in_lane_turns;    // operations on fragments work on one of a lane's two rows: lane_turns.c
  int32_t turn;
  ftl_select_groups groups;                                  // in flight, the oldest first
  ftl_select_groups groups_at_loop[FTL_TILE_MAX_LOOP_VARS];  // that were when the loop began, and may be in each step
  int32_t first_settled;       // operation that first left no group in flight since the last loop began, or NO_VALUE
  bool is_short_of_registers;  // operands of wgmmas have the fewest beside them that they can do with
  bool serial_wgmma;           // each is waited for before the next: registers do not suffice for more in flight
  ftl_select_lookup_entry lookups[FTL_SELECT_MAX_LOOKUPS];  // in the order of the program
  int32_t num_lookups;
  ftl_select_row_limits row_limits;
  ftl_select_row_bits row_bits;              // of the last masked load of several vectors a row
  int32_t row_indices[FTL_SELECT_MAX_HELD];  // of the row groups of two tensors' tiles that are copied side by side
  int32_t page_offsets[FTL_SELECT_MAX_HELD], page_predicates[FTL_SELECT_MAX_HELD];  // of a copy's row groups in pages
  int32_t row_offsets[FTL_SELECT_MAX_HELD];   // 64 bits of a copy's row groups where they are found anew
  int32_t page_entries[FTL_SELECT_MAX_HELD];  // addresses of their entries, where each row is looked up
  // Whether the last cp.async and the one before it, or the last TMA copy, have read their addresses; NONE where
  // nothing is written over them.
  int32_t copied[2];
  ftl_select_parts parts;
  int32_t descriptor[2];  // of wgmma operands: while computed, and in the uniform registers that a wgmma reads
  ftl_status status;
  ftl_error *error;
} ftl_select;

// The role's operation number op_idx.
static inline const ftl_tile_op *ftl_select_op_at(const ftl_select *s, int32_t op_idx) {
  return &s->tile->ops[s->role->first_op + op_idx];
}

// ---- shared by the files of this folder ----
// Adds an instruction; sources that are FTL_NO_VALUE are left out.
ftl_draft_inst *ftl_select_add(ftl_select *s, ftl_opcode opcode, int32_t repeat, int32_t destination, int32_t a,
                               int32_t b, int32_t c);
int32_t ftl_select_temp(ftl_select *s, int32_t num_registers);  // a new virtual value
int32_t ftl_select_fragment(const ftl_select *s, int32_t value, int32_t slab, int32_t index);
// Of the rows of a value: the first of slab `slab` of warp 0. Warps side by side have the same.
int32_t ftl_select_slab_row(const ftl_select *s, int32_t value, int32_t slab);
// Columns of a value that a warp holds.
int32_t ftl_select_warp_columns(const ftl_select *s, int32_t value);
// Zeroes the fragments of a value whose FILL was put off.
void ftl_select_settle_fill(ftl_select *s, int32_t value);
void ftl_select_fail(ftl_select *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint16_t ftl_select_ref(ftl_select *s, const ftl_tile_ref *ref);
uint16_t ftl_select_access(ftl_select *s, ftl_access access);
// TILE: the accesses that follow are of this reference, evaluated here.
void ftl_select_add_tile(ftl_select *s, uint16_t ref, uint8_t flags);
// Stores: a row group's 64-bit address, whether its rows exist (NONE if all do), one STG.
int32_t ftl_select_row_address(ftl_select *s, const ftl_tile_ref *ref);
// Whether rows or columns of the tile can lie beyond the tensor, and have to be compared with its end.
bool ftl_select_is_ragged(const ftl_select *s, const ftl_tile_ref *ref);
int32_t ftl_select_row_predicate(ftl_select *s, const ftl_tile_ref *ref);
void ftl_select_add_stg(ftl_select *s, ftl_access access, int32_t address, int32_t data, int32_t predicate);
void ftl_select_set_wavefronts(ftl_draft_inst *inst, ftl_wavefronts wavefronts);
// A load or store of shared memory that belongs to no ring's stage.
ftl_draft_inst *ftl_select_add_shared(ftl_select *s, ftl_opcode opcode, int32_t repeat, int32_t destination, int32_t a,
                                      int32_t b, int32_t num_wavefronts);
// bar.sync of the role's warps.
void ftl_select_barrier(ftl_select *s);
// Hardware ids: 0 for the whole CTA, then one a role where there are several, then the program's named barriers.
int32_t ftl_select_barrier_id(const ftl_tile_program *tile, int32_t named_barrier);
void ftl_select_named_barrier(ftl_select *s, const ftl_tile_op *op);
// Orders shared memory among the lanes of each warp (WARPSYNC).
void ftl_select_warp_sync(ftl_select *s);
// Waits for wgmmas that accumulate in `value` (or, if it is to be written, read it) or read the oldest stage of `ring`
// that the role holds; -1: neither; both -1: all.
void ftl_select_settle_groups(ftl_select *s, int32_t value, bool writes, int32_t ring);
// Whether a stage is given back as a step ends, and its groups need not be waited for before the next step.
bool ftl_select_releases_for_next_step(const ftl_select *s);
// The same of a product to come in the loop at hand, whose A is in registers.
bool ftl_select_will_run_on(const ftl_select *s, const ftl_tile_op *product);
// Of the groups in flight where a loop begins, or a step of it ends: waits for those that may not go on being so.
void ftl_select_settle_groups_at_loop(ftl_select *s, const ftl_tile_op *loop);
void ftl_select_settle_groups_at_end(ftl_select *s, const ftl_tile_op *end);
void ftl_select_settle_groups_behind_loop(ftl_select *s, const ftl_tile_op *end);  // what its steps ran on with
// Whether a sum over rows follows that takes this operation's product into its first addition (FFMA; -fmad=true).
bool ftl_select_contracts(const ftl_select *s, int32_t op_idx);
// Whether a sum over rows begins with its first two elements instead of zero, as ptxas has it of lean code.
bool ftl_select_starts_sum(const ftl_select *s, const ftl_tile_op *op);
// Packs the 16 columns of fp32 accumulators of operand block `block` to 16 bits.
void ftl_select_pack(ftl_select *s, int32_t value, int32_t slab, int32_t block, int32_t destination);
bool ftl_select_is_through_registers(const ftl_select *s, int32_t ring);  // see ftl_ring
// nvcc puts other values into the registers of a copy's address, which wait until it was read.
bool ftl_select_writes_over_addresses(const ftl_select *s);
// Lean code of one role that copies by TMA, as Triton compiles tensor descriptors: all warps find a copy's coordinates.
bool ftl_select_copies_together(const ftl_select *s);
bool ftl_select_is_mbarrier_role(const ftl_select *s);  // producer and consumer roles talk through mbarriers
// Whether an mbarrier tells when a stage may be filled again.
bool ftl_select_counts_releases(const ftl_select *s, int32_t ring);
// The rings whose stage indices serve this one too: of the stage being read, and of the one being filled. Rings of as
// many stages that are waited for, or filled, as often share them, as in Triton's pipelines; with mbarriers each has
// its own, whose phase it also tells.
int32_t ftl_select_read_index_ring(const ftl_select *s, int32_t ring);
int32_t ftl_select_write_index_ring(const ftl_select *s, int32_t ring);
// Whether stages, and the tiles that are copied to them, are found anew from the tile's number in each iteration: plain
// code of one role and one tile of Q carries nothing of them over its loop with wgmma (SASS of
// kernels/attention/flash2_wgmma.h), nor do matrix products by mma.sync with two stages (of standard_mma.h).
bool ftl_select_counts_stages(const ftl_select *s);
// The first ring whose stages lie an immediate away from this ring's: where stages are counted, the one that has its
// index, if alike.
int32_t ftl_select_address_ring(const ftl_select *s, int32_t ring, int32_t index_ring);
// Whether one role puts stages into the ring that others read: each of its warps knows when a stage is free, one says
// that it is full.
bool ftl_select_is_put_across(const ftl_tile_program *tile, int32_t ring);
bool ftl_select_is_loaded(const ftl_tile_program *tile, int32_t ring);  // some LOAD fills the ring
// Copies by registers: writes the held tile of a ring to its stage.
void ftl_select_store_held(ftl_select *s, int32_t ring);
// Whether a LOAD fills a part of its stage, between products that others fill the rest between.
bool ftl_select_is_share(const ftl_select *s, const ftl_tile_op *load);
// Of what is copied only where its tile is there (load.c): the flag, and a branch around the copies of a stage.
uint8_t ftl_select_present_flag(const ftl_tile_ref *ref);
void ftl_select_begin_guarded_block(ftl_select *s, int32_t ring);
void ftl_select_end_guarded_block(ftl_select *s);
void ftl_select_load_by_tma(ftl_select *s, const ftl_tile_op *op);
// What an mbarrier or a bulk copy needs beside itself: its address and phase, the elected thread, uniform registers.
// Counts of sm_90a code of the kernels in kernels/attention.
void ftl_select_barrier_address(ftl_select *s, int32_t ring, uint8_t flags);
// WARP0 in a role that only issues copies, else 0.
uint8_t ftl_select_producer_flags(const ftl_select *s);

// Instructions that take an issue slot and do no more.
void ftl_select_idle(ftl_select *s, int32_t count, uint8_t flags);

// Where the paths around a block join (BSYNC), for one of them.
void ftl_select_join(ftl_select *s);

// Where a store stages its tile in a ring that the role has no other addresses of.
void ftl_select_staging_offsets(ftl_select *s, int32_t ring);

// Whether stages of the rings differ in their place alone: what lies in one has in the other the same offset.
bool ftl_select_rings_are_alike(const ftl_select *s, int32_t ring, int32_t other);
// Whether the row groups of copies to both, by offsets that are worked out once, lie alike in their tensors.
bool ftl_select_rings_share_offsets(const ftl_select *s, int32_t ring, int32_t other);

// Whether two products next to each other multiply the same A from shared memory the same way.
bool ftl_select_shares_a(const ftl_tile_op *op, const ftl_tile_op *next);

// ---- row_bits.c ----
void ftl_select_begin_row_bits(ftl_select *s, const ftl_tile_op *load, int32_t num_vectors);
// At a load, whose vectors are at immediates from `address` but for those that have their own.
ftl_select_row_bit ftl_select_find_row_bit(ftl_select *s, int32_t vector, int32_t address);
// Whether a store is masked as the last load was; then what was found for its vectors.
bool ftl_select_has_row_bits(const ftl_select *s, const ftl_tile_ref *ref, int32_t num_vectors);
ftl_select_row_bit ftl_select_kept_row_bit(ftl_select *s, int32_t vector, int32_t address);

// ---- addresses.c: at a role's start ----
ftl_copy_plan ftl_select_copy_plan(const ftl_select *s, const ftl_tile_op *load);
void ftl_select_copy_offsets(ftl_select *s, int32_t ring);  // after write_offset
// 64 or 32 bits of where a copy's row group lies in its tensor; NONE: worked out where the copy is, or at the tile's
// address.
int32_t ftl_select_tensor_offset(const ftl_select *s, int32_t ring, int32_t group);
// Lean code of matrix products by wgmma: each cp.async of a thread has a pointer of its own over the loop, and counts
// as a row group.
bool ftl_select_carries_pointers(const ftl_select *s);
// Lean code: which of a ring's addresses for ldmatrix serves a column.
int32_t ftl_select_position(const ftl_select *s, int32_t ring, int32_t column);
bool ftl_select_recomputes_places(const ftl_select *s, int32_t ring);
// Whether the products among some operations are of matrices: all take the same A from shared memory.
bool ftl_select_ops_multiply_one_a(const ftl_tile_op *ops, int32_t num_ops);
bool ftl_select_multiplies_one_a(const ftl_select *s);  // the role's
// Whether ptxas has the fragments of a whole k step ahead of their products, and the role here holds no more than ptxas
// beside them: plain code with mma.sync, of matrix products whose stages are counted, of attention with several
// buffers.
bool ftl_select_has_step_ahead(const ftl_select *s);
int32_t ftl_select_shared_places(const ftl_select *s, int32_t ring);
void ftl_select_keep_addresses(ftl_select *s);  // after all copy offsets
// Whether each step of a loop works out rows and columns of the lane for the product's addresses.
bool ftl_select_finds_rows_anew(const ftl_select *s, const ftl_tile_op *product);
void ftl_select_keep_addresses_of_loop(ftl_select *s);  // ahead of the loop that s->op_idx begins
void ftl_select_dequantize_offsets(ftl_select *s);      // dequantize.c

// ---- lookups: lookup.c ----
void ftl_select_lookup(ftl_select *s, const ftl_tile_op *op);
// The register of the last entry that an expression, or the coordinates of a reference, wait for; NONE: of none.
int32_t ftl_select_entry_of(const ftl_select *s, ftl_expr expr);
// The page addresses that a reference's rows wait for; NONE: it has no pages.
ftl_select_lookup_entry *ftl_select_held_pages(ftl_select *s, const ftl_tile_ref *ref);  // NULL: no pages
int32_t ftl_select_pages_of(const ftl_select *s, const ftl_tile_ref *ref);
// Loads the table's entries that `which` names by ref, row, num_rows and is_reread, by every warp of the role.
void ftl_select_load_entries(ftl_select *s, ftl_access which, int32_t entry, int32_t address, int32_t predicate);

// page_rows.c: whether every thread looks up the pages of the rows that it copies, and the address of a row group's so.
// is_second: the rows of the copy before.
bool ftl_select_looks_up_rows(const ftl_select *s);
int32_t ftl_select_looked_up_address(ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan, int32_t group,
                                     bool is_second, int32_t *predicate);
int32_t ftl_select_entry_of_ref(const ftl_select *s, const ftl_tile_ref *ref);

// ---- last_read.c ----
bool ftl_select_is_last_read(const ftl_select *s, int32_t op_idx, int32_t value);

// ---- operand_blocks.c ----
// Ahead of a function of `accumulator` that ends in a CONVERT to an operand of wgmmas: sets registers aside, once.
void ftl_select_reserve_operands(ftl_select *s, int32_t accumulator);
// They are taken as long as such instructions work on the accumulator, those of one block of the operand until it is
// made.
void ftl_select_hold_reserve(ftl_select *s, ftl_draft_inst *inst, int32_t accumulator, int32_t slab, int32_t block);

// ---- row-wise values: by_rows.c, direct.c, row_turns.c ----
bool ftl_select_is_by_rows(const ftl_select *s, int32_t value);
// Slabs [first, end) of a row-wise value.
typedef struct ftl_slab_span {
  int32_t first, end;
} ftl_slab_span;
// Those that an operation on the value works on: all, or the turn's.
ftl_slab_span ftl_select_slabs(const ftl_select *s, int32_t value);
// How many operations from the present one on are worked off row after row, and in how many turns.
typedef struct ftl_row_turns {
  int32_t num_ops, num_turns;
} ftl_row_turns;
ftl_row_turns ftl_select_row_turns(const ftl_select *s);
// row `rows` <- fn over `num_parts` numbers in shared memory, beside each other.
void ftl_select_read_parts(ftl_select *s, const ftl_tile_op *op, int32_t rows, int32_t num_parts);
// One load from global memory; it waits for its address and, unless NONE, a predicate.
void ftl_select_add_ldg(ftl_select *s, const ftl_tile_ref *ref, ftl_access access, int32_t dst, int32_t address,
                        int32_t predicate);
// What an instruction of a warp moves of row `slab` of a row-wise value's threads: vector `vector` of its columns.
ftl_access ftl_select_row_access(const ftl_select *s, int32_t value, uint16_t ref, int32_t slab, int32_t vector,
                                 int32_t vector_bytes);
void ftl_select_mask_by_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_rows_by_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_lanes_by_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_convert_by_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_store_by_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_store_rows_by_rows(ftl_select *s, const ftl_tile_op *op);
// Bytes of shared memory through which the warps of a role reduce rows that they share.
void ftl_select_top(ftl_select *s, const ftl_tile_op *op);
void ftl_select_store_top(ftl_select *s, const ftl_tile_op *op);
int32_t ftl_select_top_bytes(const ftl_tile_program *tile, const ftl_tile_op *op);  // shared memory; 0: none
int32_t ftl_select_reduce_bytes(const ftl_tile_program *tile);

// ---- lane_turns.c ----
// How many operations from the present one on are worked off for one of a lane's two rows after the other.
ftl_row_turns ftl_select_lane_turns(const ftl_select *s);
int32_t ftl_select_lane_rows(const ftl_select *s);  // on which an operation on fragments works: 2, or the turn's 1
// Behind the last operation of a turn: its sum is put where the groups' copies are gathered. What the turn drafted
// begins at `first_inst`, of `num_values` values that were there before.
void ftl_select_end_lane_turn(ftl_select *s, int32_t first_inst, int32_t num_values);

bool ftl_select_has_products(const ftl_tile_program *tile, const ftl_role *role);

// From a CTA's index to the places of its tiles: what its divisions by run-time numbers take. With products: the four
// of an attention kernel for either tile order and any grouping of heads (tile_of in kernels/attention/attention.h):
// tile, batch, KV heads, KV head. Plain products of matrices by wgmma: the signed ones of
// kernels/products/product_wgmma.h, in the one working warp of the producer. Kernels that stream rows: those that the
// places need, where adjacent rows, or heads, of a tensor are not taken apart.
typedef struct ftl_select_place {
  int32_t num_insts;             // that wait for nothing of each other
  int32_t num_signed_divisions;  // one behind the other
  uint8_t flags;                 // of who needs it
} ftl_select_place;
ftl_select_place ftl_select_place_of(const ftl_select *s);
void ftl_select_signed_division(ftl_select *s, int32_t value, uint8_t flags);
// Whether the thread that copies has the coordinates in registers of its own, as signed divisions leave them (SASS of
// product_wgmma.h); else they are uniform all along (flash2_wgmma.h).
bool ftl_select_moves_coordinates(const ftl_select *s);
// Divisions of the role's place, where it is not that of a product of matrices.
int32_t ftl_select_num_divisions(const ftl_tile_program *tile, const ftl_role *role);

// ---- operations ----
void ftl_select_prologue(ftl_select *s);
void ftl_select_tile_begin(ftl_select *s);  // where a persistent CTA goes on with its next tile
void ftl_select_epilogue(ftl_select *s);
void ftl_select_loop(ftl_select *s, const ftl_tile_op *op);
void ftl_select_end_loop(ftl_select *s, const ftl_tile_op *op);
void ftl_select_acquire(ftl_select *s, const ftl_tile_op *op);
void ftl_select_load(ftl_select *s, const ftl_tile_op *op);
void ftl_select_load_tile(ftl_select *s, const ftl_tile_op *op);
void ftl_select_load_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_load_columns(ftl_select *s, const ftl_tile_op *op);
void ftl_select_copy_columns(ftl_select *s, const ftl_tile_op *op);   // LOAD of a ring that holds columns, by cp.async
void ftl_select_fetch_columns(ftl_select *s, const ftl_tile_op *op);  // FETCH of one
void ftl_select_commit(ftl_select *s, const ftl_tile_op *op);
void ftl_select_wait(ftl_select *s, const ftl_tile_op *op);
void ftl_select_release(ftl_select *s, const ftl_tile_op *op);
void ftl_select_fill(ftl_select *s, const ftl_tile_op *op);
void ftl_select_fetch(ftl_select *s, const ftl_tile_op *op);
void ftl_select_put(ftl_select *s, const ftl_tile_op *op);
void ftl_select_transpose(ftl_select *s, const ftl_tile_op *op);
void ftl_select_dequantize(ftl_select *s, const ftl_tile_op *op);
void ftl_select_mma_sync(ftl_select *s, const ftl_tile_op *op);
void ftl_select_hold_first_part(ftl_select *s);  // behind the wait for a stage: the fragments that it is read for first
void ftl_select_end_part(ftl_select *s, const ftl_tile_op *op);  // before `op`, which may read the sums
void ftl_select_wgmma(ftl_select *s, const ftl_tile_op *op);
void ftl_select_elem(ftl_select *s, const ftl_tile_op *op);
void ftl_select_mask(ftl_select *s, const ftl_tile_op *op);
void ftl_select_bit_rows(ftl_select *s);  // before the loops
void ftl_select_mask_bits(ftl_select *s, const ftl_tile_op *op);
void ftl_select_dropout(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_lanes(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_warps(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_in_shared(ftl_select *s, const ftl_tile_op *op);
// Over the lanes that share a row of fragments, by shuffles.
void ftl_select_reduce_row_lanes(ftl_select *s, const ftl_tile_op *op);
void ftl_select_reduce_groups(ftl_select *s, const ftl_tile_op *op);
void ftl_select_gather(ftl_select *s, const ftl_tile_op *op);
// One lane of each row writes the ROWS that a GATHER reads: both of its rows, or the turn's.
ftl_draft_inst *ftl_select_put_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_convert(ftl_select *s, const ftl_tile_op *op);
void ftl_select_store(ftl_select *s, const ftl_tile_op *op);
void ftl_select_store_merged(ftl_select *s, const ftl_tile_op *op);
void ftl_select_store_rows(ftl_select *s, const ftl_tile_op *op);
void ftl_select_load_sums(ftl_select *s, const ftl_tile_op *op);  // LOAD_TILE of fragments
void ftl_select_atomic_add(ftl_select *s, const ftl_tile_op *op);

// Selects a whole role. The draft is the caller's to finish and to free.
FTL_MUST_USE ftl_status ftl_select_role(ftl_select *s, ftl_error *error);

#endif
