// How a workload writes a tile program. Errors (out of memory, too many values, a wrong shape) are remembered by the
// builder and reported once by ftl_builder_finish, so that a workload reads as the algorithm does.
#ifndef FTL_TILE_BUILDER_H
#define FTL_TILE_BUILDER_H

#include "tile/tile.h"

typedef struct ftl_builder ftl_builder;

FTL_MUST_USE ftl_status ftl_builder_create(ftl_builder **out, const char *kernel_name, ftl_error *error);
void ftl_builder_destroy(ftl_builder *builder);
// Checks the program and hands it over; the builder is empty afterwards (still to be destroyed).
FTL_MUST_USE ftl_status ftl_builder_finish(ftl_builder *builder, ftl_tile_program **out, ftl_error *error);

// Ops added from now on were written by a script, at this line; errors then begin "source:line". `source` is borrowed
// as long as the program lives.
void ftl_builder_source(ftl_builder *builder, const char *source, int32_t line);
// The first error so far, and what ftl_builder_finish will say about the op, the value and the ring that came last (but
// for who fills and reads the ring), at once.
FTL_MUST_USE ftl_status ftl_builder_check_latest(const ftl_builder *builder, ftl_error *error);
// The program so far, until ftl_builder_finish.
const ftl_tile_program *ftl_builder_program(const ftl_builder *builder);

void ftl_builder_grid(ftl_builder *builder, int64_t num_ctas, bool persistent, ftl_tile_handout handout);
void ftl_builder_cache_memory(ftl_builder *builder, ftl_cache_memory memory);
// The source asks for mma.sync of half the K that the GPU has, as kernels that have one text for several do.
void ftl_builder_half_products(ftl_builder *builder);
void ftl_builder_flops(ftl_builder *builder, int64_t model_flops);

ftl_expr ftl_const(ftl_builder *builder, int64_t value);
ftl_expr ftl_cta(ftl_builder *builder);
ftl_expr ftl_warp(ftl_builder *builder);  // only in the bound `hi` of a loop
ftl_expr ftl_loop_value(ftl_builder *builder, int32_t loop_var);
ftl_expr ftl_add(ftl_builder *builder, ftl_expr a, ftl_expr b);
ftl_expr ftl_sub(ftl_builder *builder, ftl_expr a, ftl_expr b);
ftl_expr ftl_mul(ftl_builder *builder, ftl_expr a, ftl_expr b);
ftl_expr ftl_div(ftl_builder *builder, ftl_expr a, ftl_expr b);
ftl_expr ftl_mod(ftl_builder *builder, ftl_expr a, ftl_expr b);
ftl_expr ftl_min(ftl_builder *builder, ftl_expr a, ftl_expr b);
ftl_expr ftl_max(ftl_builder *builder, ftl_expr a, ftl_expr b);

// Entry `index` of a table. The entry is loaded from global memory before the operation that uses the expression:
// once for all its iterations if neither the index nor the guard of its reference has a loop variable.
ftl_expr ftl_lookup(ftl_builder *builder, int32_t table, ftl_expr index);
// Loads the entry of `lookup` here, ahead of the operation that needs it, whose guard is `present`; index_insts: as in
// ftl_tile_ref.
void ftl_look_up(ftl_builder *builder, ftl_expr lookup, ftl_expr present, int32_t index_insts);

// Strides in elements. Addresses are assigned in order of declaration, each tensor on a 2 MiB boundary.
typedef struct ftl_tensor_shape {
  int64_t num_batches, num_heads, num_rows, num_columns;
  int64_t batch_stride, head_stride, row_stride;
} ftl_tensor_shape;
// Rows, heads and batches one after another, without gaps.
ftl_tensor_shape ftl_contiguous(int64_t num_batches, int64_t num_heads, int64_t num_rows, int64_t num_columns);
int32_t ftl_builder_tensor(ftl_builder *builder, const char *name, ftl_dtype dtype, ftl_tensor_use use,
                           ftl_tensor_shape shape);
// A table in HBM whose int32 entries the host knows before the launch (block tables, offsets of sequences, lists of
// blocks): a tensor [1][1][count][1], copied. Expressions read it by ftl_lookup.
int32_t ftl_builder_table(ftl_builder *builder, const char *name, const int32_t *entries, int64_t count);
// A table that an earlier launch writes. `entries` stand for what it will hold: where tiles lie follows from them in
// timing, and from what was written when the program is executed numerically.
int32_t ftl_builder_temp_table(ftl_builder *builder, const char *name, const int32_t *entries, int64_t count);
// Rows of bits in HBM that the host knows before the launch, as masks of trees: a tensor
// [1][1][num_rows][words_per_row] of 32-bit words, whose bit c % 32 of word c / 32 is column c. Copied.
int32_t ftl_builder_bit_rows(ftl_builder *builder, const char *name, const uint32_t *words, int64_t num_rows,
                             int64_t words_per_row);
// Of the tensor's elements only so many decide what a launch computes: the others a mask hides, or nobody chose. Counts
// as compulsory bytes; without it all of them do.
void ftl_builder_needs(ftl_builder *builder, int32_t tensor, int64_t num_elements);
// What every access to the tensor says to L2; normal without it.
void ftl_builder_l2_priority(ftl_builder *builder, int32_t tensor, ftl_l2_priority priority);
int32_t ftl_builder_ring(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                         int32_t num_stages, int32_t producer_role, int32_t consumers_mask);
// The ring lies over those declared before it, of at least its bytes; that they are idle whenever it is used is the
// program's own care.
void ftl_builder_overlay(ftl_builder *builder, int32_t ring);
// Its loads wait for their data, as those of a kernel that zeroes rows it does not have (see ftl_ring).
void ftl_builder_through_registers(ftl_builder *builder, int32_t ring);
// With copy=tma a stage is free when an mbarrier has counted the warps that left it (see ftl_ring).
void ftl_builder_count_releases(ftl_builder *builder, int32_t ring);

// For who learns as ops come which roles use a ring or meet at a barrier: declare it with producer -1 and masks 0.
void ftl_builder_ring_filled_by(ftl_builder *builder, int32_t ring, int32_t role);
void ftl_builder_ring_read_by(ftl_builder *builder, int32_t ring, int32_t role);
void ftl_builder_barrier_joined_by(ftl_builder *builder, int32_t barrier, int32_t role);

// CTAs [n * num_ctas, (n + 1) * num_ctas) form a cluster; loads into the ring are shared as ftl_multicast says.
void ftl_builder_cluster(ftl_builder *builder, int32_t num_ctas);
void ftl_builder_multicast(ftl_builder *builder, int32_t ring, ftl_multicast multicast);

// Ops are added to the role begun last. num_registers 0: as the compiler gives.
int32_t ftl_builder_role(ftl_builder *builder, const char *name, int32_t num_warps, int32_t num_registers);
// Deals the warps of the role begun last to groups, each with its own copy of every value (see ftl_role).
void ftl_builder_groups(ftl_builder *builder, int32_t num_groups);
// What this role did so far it does once a CTA; what follows, for each tile. Without it: everything for each tile.
void ftl_builder_tile_begins(ftl_builder *builder);
int32_t ftl_builder_named_barrier(ftl_builder *builder, const char *name, int32_t roles_mask);
int32_t ftl_builder_tile(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns);
int32_t ftl_builder_rows(ftl_builder *builder, const char *name, int32_t rows);
int32_t ftl_builder_columns(ftl_builder *builder, const char *name, int32_t columns);
// Holds a TILE or ROWS value declared last by `warps_per_row` warps side by side (see ftl_value).
void ftl_builder_side_by_side(ftl_builder *builder, int32_t warps_per_row);
// The same where each of these warps has all columns.
void ftl_builder_repeat(ftl_builder *builder, int32_t warps_per_row);
// The same, held row-wise.
int32_t ftl_builder_tile_by_rows(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                                 ftl_value_layout layout);
int32_t ftl_builder_rows_by_rows(ftl_builder *builder, const char *name, int32_t rows, ftl_value_layout layout);

int32_t ftl_loop(ftl_builder *builder, ftl_expr lo, ftl_expr hi);  // gives the loop variable
// A condition of the source: what follows runs once where lo < hi, and not at all elsewhere; hi is at most lo + 1.
int32_t ftl_loop_once(ftl_builder *builder, ftl_expr lo, ftl_expr hi);
// One that each thread leaves, or never enters, as its own columns end; `hi` may ask for the warp.
int32_t ftl_loop_by_threads(ftl_builder *builder, ftl_expr lo, ftl_expr hi, ftl_loop_part part);
void ftl_end_loop(ftl_builder *builder);

void ftl_acquire(ftl_builder *builder, int32_t ring);
void ftl_load(ftl_builder *builder, int32_t ring, ftl_tile_ref ref);
void ftl_commit(ftl_builder *builder, int32_t ring);
// Acquires the next stage of a ring, loads one tile into it and commits it.
void ftl_fill_stage(ftl_builder *builder, int32_t ring, ftl_tile_ref ref);
void ftl_wait(ftl_builder *builder, int32_t ring);
// The same in a loop whose first step can leave more copies in flight than the others: the number is part of the
// instruction that waits, so the source has two of them.
void ftl_wait_first_apart(ftl_builder *builder, int32_t ring);
void ftl_release(ftl_builder *builder, int32_t ring);
// The same behind an MMA that does not read the stage: where that has several blocks of rows a warpgroup (wgmma), as
// soon as the products of the first are issued.
void ftl_release_amid(ftl_builder *builder, int32_t ring);

ftl_operand ftl_value_operand(int32_t value);
ftl_operand ftl_immediate(float x);

void ftl_load_tile(ftl_builder *builder, int32_t dst, ftl_tile_ref ref);
// What lies outside of the reference is `outside` (row-wise tiles).
void ftl_load_tile_or(ftl_builder *builder, int32_t dst, ftl_tile_ref ref, float outside);
void ftl_load_rows(ftl_builder *builder, int32_t dst, ftl_tile_ref ref);
void ftl_load_columns(ftl_builder *builder, int32_t dst, ftl_tile_ref ref);
void ftl_fill(ftl_builder *builder, int32_t dst, float x);
void ftl_fetch(ftl_builder *builder, int32_t dst, int32_t ring);
// B of products in registers: see FTL_TILE_FETCH. `dst`: a tile of the role's share of B, [n][k].
void ftl_fetch_b(ftl_builder *builder, int32_t dst, int32_t ring, bool transpose_b);
void ftl_put(ftl_builder *builder, int32_t ring, int32_t a);
void ftl_transpose(ftl_builder *builder, int32_t ring, int32_t from);
void ftl_dequantize(ftl_builder *builder, int32_t ring, int32_t from, int32_t scales);
void ftl_mma_shared(ftl_builder *builder, int32_t dst, int32_t ring_a, int32_t ring_b, bool transpose_b);
// The product just added takes A from its ring as [k][m].
void ftl_transposed_a(ftl_builder *builder);
// The product just added takes B from value b, which holds it of the product's ring.
void ftl_fetched_b(ftl_builder *builder, int32_t b);
// The product just added, of two rings, sums only `num_k` terms from `first_k` on; those may be all that B's ring
// holds.
void ftl_part_of_k(ftl_builder *builder, int32_t first_k, int32_t num_k);
void ftl_mma_value(ftl_builder *builder, int32_t dst, int32_t a, int32_t ring_b, bool transpose_b);
void ftl_elem(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, ftl_operand a, ftl_operand b, ftl_operand c);
// Of a value alone; of a value and another operand.
void ftl_unary(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a);
void ftl_binary(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, ftl_operand other);
void ftl_mask(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal, ftl_expr limit);
void ftl_mask_heads(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal,
                    ftl_expr limit, int64_t period);
void ftl_mask_transposed(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal,
                         ftl_expr limit);
// The mask just added has been applied before, and the source asks for each element once more as it takes exponentials:
// a compiler has more compares than predicates, and keeps what they gave as bits of registers meanwhile.
void ftl_mask_again(ftl_builder *builder);
// The mask just added also hides the keys before token + left (sliding window).
void ftl_mask_left(ftl_builder *builder, ftl_expr left);
// Hides what the bits of a table of bit rows do not show; ref.columns counts words.
void ftl_mask_bits(ftl_builder *builder, int32_t dst, ftl_tile_ref ref);
// Zeroes the elements of a tile of probabilities that dropout drops (dropout.h).
void ftl_dropout(ftl_builder *builder, int32_t dst, ftl_expr sequence, ftl_expr row0, ftl_expr column0,
                 int32_t threshold);
// Negates them instead, in fp32; `transposed`: rows are keys.
void ftl_dropout_by_sign(ftl_builder *builder, int32_t dst, ftl_expr sequence, ftl_expr row0, ftl_expr column0,
                         int32_t threshold, bool transposed);
void ftl_reduce_rows(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a);
// The same, of a value that is converted to an operand of a product: a compiler may have the sums behind that product,
// where the operand has registers of its own.
void ftl_reduce_rows_behind(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a);
void ftl_reduce_lanes(ftl_builder *builder, ftl_elem_fn fn, int32_t dst);
void ftl_reduce_warps(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t staging_ring);
// The same where rows' numbers stand in the ring for good, as a kernel has them whose threads reach them by atomics.
void ftl_reduce_in_shared(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t ring);
void ftl_reduce_groups(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t staging_ring);
void ftl_top(ftl_builder *builder, int32_t dst, int32_t a, int32_t count);
// `a` < 0: the numbers of columns.
void ftl_store_top(ftl_builder *builder, ftl_tile_ref ref, int32_t a, int32_t ranks);
void ftl_gather(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, int32_t staging_ring);
void ftl_convert(ftl_builder *builder, int32_t dst, int32_t a);
// The same of max(a, 0).
void ftl_convert_positive(ftl_builder *builder, int32_t dst, int32_t a);
void ftl_store(ftl_builder *builder, ftl_tile_ref ref, int32_t a, int32_t staging_ring);
// Adds to what the tensor holds; CTAs that add to the same elements do so in any order.
void ftl_atomic_add(ftl_builder *builder, ftl_tile_ref ref, int32_t a, ftl_add_order order);
void ftl_store_rows(ftl_builder *builder, ftl_tile_ref ref, int32_t a);
void ftl_store_merged(ftl_builder *builder, ftl_tile_ref ref, int32_t output, int32_t row_max, int32_t row_sum,
                      float scale_log2, int32_t output_staging, int32_t rows_staging);
// The product, load or store added last uses the rows from `row` on of its A operand's ring, of the stage that it fills
// or of its staging ring.
void ftl_at_ring_row(ftl_builder *builder, int32_t row);
void ftl_barrier(ftl_builder *builder);
void ftl_arrive(ftl_builder *builder, int32_t barrier);
void ftl_sync(ftl_builder *builder, int32_t barrier);

#endif
