// Proves that a warp program does what its tile program says: what is timed is what was proved right.
//
// Walks the flattened warp program of one CTA (all warps) and compares with the tile program: bytes read and written
// per tensor (each byte of each load and store exactly once), bytes put into rings, MMA multiply-adds, exponentials;
// and replays the ring protocol with vector clocks, so that what holds does so for every interleaving of the warps: no
// instruction reads a stage before every copy into it has been waited for (and, across warps, a barrier has passed),
// none overwrites a stage that some warp or wgmma may still read, no warp waits for ever. Does not check: staging of
// stores through shared memory, the fence between generic writes and wgmma's reads.
#ifndef FTL_LOWER_CHECKER_H
#define FTL_LOWER_CHECKER_H

#include "lower/warp_program.h"

typedef struct ftl_work {
  int64_t load_bytes[FTL_TILE_MAX_TENSORS];
  int64_t store_bytes[FTL_TILE_MAX_TENSORS];
  int64_t put_bytes;  // registers to stages of rings
  int64_t mma_macs;   // multiply-adds that the tensor cores execute, padding included
  int64_t exps;  // exponentials, per element; of a value a row: once a row and warp side by side (tile), once a lane
                 // that holds it (warps; row-wise values in tile programs too)
  int64_t row_exps;       // of these, of values a row that are held as fragments (tile programs only)
  int64_t dropouts;       // elements of 16-bit fragments that a random number keeps or drops
  int64_t sign_dropouts;  // of fp32 fragments, by their sign
  int64_t warp_insts;     // warp instructions issued (warp programs only)
} ftl_work;

// STORE_MERGED: exponentials of all threads for one row: each works out every group's weight, once for the sum and
// again for each of its columns.
int64_t ftl_merge_row_exps(const ftl_role *role, int32_t columns);

// mma_columns: as of ftl_product.
FTL_MUST_USE ftl_status ftl_work_of_tile(const ftl_tile_program *tile, int32_t mma_columns, int64_t cta, ftl_work *out,
                                         ftl_error *error);
FTL_MUST_USE ftl_status ftl_work_of_warps(const ftl_warp_program *program, int64_t cta, ftl_work *out,
                                          ftl_error *error);
// FTL_RUN_FAILED with the first difference or violated order.
FTL_MUST_USE ftl_status ftl_checker_prove(const ftl_warp_program *program, int64_t cta, ftl_error *error);

#endif
