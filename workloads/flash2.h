// What the files of FlashAttention-2's forward kernel share: the kernel as declared, and a step over a tile of keys.
// flash2_fwd.c declares it and walks the keys, flash2_check.c refuses, flash2_steps.c has the steps.
#ifndef FTL_WORKLOADS_FLASH2_H
#define FTL_WORKLOADS_FLASH2_H

#include "tile/builder.h"
#include "workloads/attention.h"
#include "workloads/block_mask.h"
#include "workloads/online_softmax.h"
#include "workloads/packed_batch.h"

typedef struct ftl_flash2 {
  ftl_builder *b;
  ftl_attention a;
  int32_t num_stages;
  bool q_in_registers;  // fetched once before the loop; else every iteration reads it from shared memory
  bool interleaved, persistent;
  bool back_to_back;  // both products of a step are block products of their own, Q copied beside K
  bool preloads;      // of those: by cp.async, V asked for ahead of the softmax
  // Each loop over keys fills its buffers, refills them after a step's products and leaves none full.
  bool refills_late;
  bool waits_apart;                  // of those, for K and for V each behind what comes before its product: by TMA
  bool refills_behind;               // likewise, and those that the step itself has read
  bool refills_jointly;              // K and V are waited for, and asked for, at once as a step begins
  bool refills_amid;                 // when the first product is issued, into buffers that all warps said to have left
  bool refills_free;                 // a buffer is refilled behind the first barrier that shows it to be free
  int32_t num_k_ahead, num_v_ahead;  // tiles that are asked for ahead of the one in use
  bool compares_k, compares_v;       // before a copy, whether there is such a tile, where there always is
  bool masks_whole_tiles;            // one loop for all tiles, as FlashAttention-2's Is_local
  int32_t num_unrolled;              // tiles at the end of the keys that have code of their own each

  int32_t q, k, v, o, lse;                // tensors
  int32_t ring_q, ring_k, ring_v;         // ring_v == ring_k where K and V take turns and have as many columns
  bool single_buffer;                     // K and V take turns
  int32_t ring_o;                         // through which O leaves: ring_q, or its own where O has more columns
  bool output_lies_over;                  // that one lies over the other buffers
  bool exchanges;                         // warps side by side pass P, and maxima and sums of rows, to each other
  int32_t ring_p;                         // through which they pass P
  int32_t q_tile, scores, probs, output;  // values
  ftl_online_softmax softmax;
  int32_t refill_barrier;          // named: all warps have left the buffers that a late refill writes
  const ftl_packed_batch *packed;  // NULL: sequences are equally long
  ftl_attention_tile tile;
  ftl_attention_lengths lengths;
  ftl_expr origin, row_end;  // of the sequence's rows in the tensors
  ftl_key_range keys;
  ftl_tile_lists lists;  // under a block mask `keys` are positions in them
  int32_t listed;        // table: the key tiles at these positions
} ftl_flash2;

// FTL_INFEASIBLE with the reason.
FTL_MUST_USE ftl_status ftl_flash2_check(const ftl_spec *spec, ftl_error *error);

// `columns` of the query tile's rows.
ftl_tile_ref ftl_flash2_query_ref(const ftl_flash2 *f, int32_t tensor, int32_t columns);
// Fills the next stage with key, or value, tile `j`; an empty stage unless `present` > 0.
void ftl_flash2_load_keys(const ftl_flash2 *f, ftl_expr j, ftl_expr present);
void ftl_flash2_load_values(const ftl_flash2 *f, ftl_expr j, ftl_expr present);

// Hides the scores that the mask hides.
void ftl_flash2_mask_scores(const ftl_flash2 *f, ftl_expr j);
// Tile j's reference in K or V; columns from `column` on.
ftl_tile_ref ftl_flash2_key_ref(const ftl_flash2 *f, int32_t tensor, int32_t columns, ftl_expr j);
ftl_expr ftl_flash2_key(const ftl_flash2 *f, ftl_expr j);  // its first key

// A step over the tile that comes as number j of those that the query tile walks; `end`: of the loop.
void ftl_flash2_step_single_buffer(const ftl_flash2 *f, ftl_expr j, bool masked);
void ftl_flash2_step_stages(const ftl_flash2 *f, ftl_expr j, bool masked);
void ftl_flash2_step_when_free(const ftl_flash2 *f, ftl_expr j, bool masked);
void ftl_flash2_step_joint(const ftl_flash2 *f, ftl_expr j, bool masked);
void ftl_flash2_step_amid(const ftl_flash2 *f, ftl_expr j, bool masked);
void ftl_flash2_step_late(const ftl_flash2 *f, ftl_expr j, ftl_expr end, bool masked);
void ftl_flash2_step_late_apart(const ftl_flash2 *f, ftl_expr j, ftl_expr end, bool masked);
void ftl_flash2_step_interleaved(const ftl_flash2 *f, ftl_expr j, bool masked);

// schedule=back_to_back: what it takes where a user leaves it open, what cannot be, its buffers, and a step.
void ftl_flash2_set_back_to_back(ftl_spec *spec);
void ftl_flash2_resolve_back_to_back(ftl_spec *spec, const ftl_arch *arch);
FTL_MUST_USE ftl_status ftl_flash2_check_back_to_back(const ftl_spec *spec, ftl_error *error);
void ftl_flash2_declare_back_to_back(ftl_flash2 *f, int32_t role);
void ftl_flash2_step_back_to_back(const ftl_flash2 *f, ftl_expr j, bool masked);

#endif
