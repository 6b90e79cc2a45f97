// The block matrix product A B of one A with one or two Bs: a CTA computes a block_m x block_n tile, walking K in steps
// of block_k whose tiles of A and B go through shared memory. Source: NVIDIA, CUTLASS, "Efficient GEMM in CUDA" (the
// multistage kernel, and the warp-specialised cooperative kernel with TMA and wgmma); with two Bs, CUTLASS's example
// 45_dual_gemm.
//
// A is [m][k], or [k][m] with transpose_a; B is [k][n], or [n][k] with transpose_b. Types of other than two bytes
// (tf32, fp8, int8, int4) are multiplied as A [m][k] and B [n][k] only: on the way to registers 16-bit elements alone
// can be transposed. With mma=wgmma and copy=tma a producer warpgroup copies for num_warps that multiply; else all
// warps do both.
#ifndef FTL_WORKLOADS_BLOCK_PRODUCT_H
#define FTL_WORKLOADS_BLOCK_PRODUCT_H

#include "tile/builder.h"
#include "workloads/spec.h"

enum { FTL_PRODUCT_MAX_B = 2 };
enum { FTL_PRODUCT_SMALL_PIECE_COLUMNS = 16 };  // of a tile of C that leaves in pieces: its columns are a multiple

typedef struct ftl_block_product {
  int64_t batch, m, n, k, num_splits, tiles_m, tiles_n, steps_per_split;
  int32_t groups_n;    // warpgroups side by side, each with its part of the tile's columns
  int32_t warps_n;     // without a producer: warps side by side
  int64_t tile_strip;  // tiles of the coordinate that advances first; 0: all
  int32_t block_m, block_n, block_k, num_stages, num_warps;  // k and block_k in elements as stored: pairs of int4
  ftl_dtype dtype, sum_dtype, c_dtype;
  int64_t shared_bytes_per_cta;  // that the GPU allows; 0: no limit is known
  ftl_cluster_shape cluster;     // tiles_m and tiles_n are multiples of its sides: tiles outside of C are empty
  bool transpose_a, transpose_b, m_first, persistent, has_producer;
  bool refills_late;  // without a producer: a step's products are issued before those of the step before are waited for
  // With a producer, whose stages are given back a step later: behind that step's first 64 rows a warpgroup, not all.
  bool releases_amid;
  // CUTLASS's multistage mainloop: a step is multiplied in parts, between which the copies of a later one are made. 0:
  // as a whole.
  int32_t part_k;
  bool strips_return;  // strips of tiles run there and back, not always forward
  bool stages_c;       // a tile of C leaves through ring_c: in pieces with a producer, else whole
  ftl_tile_handout handout;
  // Set by the workload.
  ftl_builder *b;
  int32_t num_b, a, of_b[FTL_PRODUCT_MAX_B];  // tensors
  // Set by ftl_block_product_build.
  int32_t ring_a, ring_b[FTL_PRODUCT_MAX_B];
  int32_t ring_c;                                                 // of the group that finishes, or -1: no staging
  ftl_expr batch_idx, split, row, column, first_step, num_steps;  // of a CTA
} ftl_block_product;

// Of a completed and resolved spec that has m, n, k; one B.
ftl_block_product ftl_block_product_of(const ftl_spec *spec);
// A workload's `resolve`: says when buffers are refilled where the user did not.
void ftl_block_product_resolve(ftl_spec *spec, const ftl_arch *arch);
// Whether it has no form with mma.sync.
bool ftl_block_product_needs_wgmma(const ftl_spec *spec);
// Whether its results can leave through shared memory.
bool ftl_block_product_can_stage(const ftl_block_product *product);
// FTL_INFEASIBLE, with the reason, where no GPU has such a kernel; FTL_BAD_INPUT where 2 batch m n k overflows.
FTL_MUST_USE ftl_status ftl_block_product_check(const ftl_spec *spec, const ftl_block_product *product,
                                                ftl_error *error);
// FTL_INFEASIBLE where `numbers` of a type, a row or a stride that a parameter gives, are not whole 16-byte vectors.
FTL_MUST_USE ftl_status ftl_block_product_check_vectors(ftl_dtype dtype, ftl_param param, int64_t numbers,
                                                        ftl_error *error);

// Rows and columns from (row, column) on of head `head` of a tensor of `all_columns` columns, of the CTA's batch.
ftl_tile_ref ftl_block_product_tile(const ftl_block_product *product, int32_t tensor, ftl_expr head, ftl_expr row,
                                    ftl_expr column, int32_t rows, int32_t columns, int64_t all_columns);

// What a group does with its sums: tiles of sum_dtype, of block_m x block_n / groups_n at product->row and ->column,
// one of each B.
typedef void (*ftl_block_product_finish)(const ftl_block_product *product, const int32_t *sums, const void *context);
// The grid and all roles and operations.
void ftl_block_product_build(ftl_block_product *product, ftl_block_product_finish finish, const void *context);

#endif
