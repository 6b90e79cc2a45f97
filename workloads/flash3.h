// What the roles of FlashAttention-3's forward kernel share: the kernel as declared, the tiles it walks, and who copies
// them when. flash3_fwd.c declares it, flash3_check.c refuses, flash3_copy.c copies, flash3_consume.c computes.
#ifndef FTL_WORKLOADS_FLASH3_H
#define FTL_WORKLOADS_FLASH3_H

#include "workloads/attention.h"
#include "workloads/block_mask.h"
#include "workloads/packed_batch.h"

enum { FTL_FLASH3_GROUP_WARPS = 4, FTL_FLASH3_MAX_GROUPS = 3, FTL_FLASH3_WGMMA_ROWS = 64 };

// Else one role of all warps copies and computes.
bool ftl_flash3_has_producer(const ftl_spec *spec);
// FTL_INFEASIBLE with the reason.
FTL_MUST_USE ftl_status ftl_flash3_check(const ftl_spec *spec, ftl_error *error);

typedef struct ftl_flash3 {
  ftl_builder *b;
  ftl_attention a;
  ftl_attention_tensors t;
  bool has_producer, takes_turns;
  bool overlaps;             // scores of a tile and the output of the one before are under way together
  bool masks_all;            // each key tile, also those that no edge of the mask crosses
  bool softmax_takes_turns;  // consumers take turns at exponentials and wait for each product; else at products
  bool is_persistent, is_fp8;
  int32_t num_stages, q_stages;
  int32_t num_groups, group_warps, group_rows;  // roles that compute, and what each has
  int32_t ring_q, ring_k, ring_v;
  int32_t ring_vt;                       // fp8: V^T; else ring_v
  int32_t turns[FTL_FLASH3_MAX_GROUPS];  // named barriers: group g waits at turns[g], the others arrive at it
  int32_t begins;                        // turns of the softmax: named barrier at which consumers meet before a tile
  const ftl_packed_batch *packed;        // NULL: sequences are equally long
  ftl_packed_tile tile;                  // the query tile; without `packed` of a sequence that is the whole tensor
  ftl_key_range keys;                    // of the whole query tile: all groups walk the same key tiles; at least one
  ftl_tile_lists lists;                  // under a block mask `keys` are positions in them
  int32_t listed;                        // table: the key tiles at these positions
} ftl_flash3;

// The first key of the tile that comes as number j of those that the query tile walks.
ftl_expr ftl_flash3_key(const ftl_flash3 *f, ftl_expr j);
// Rows of a tensor like q, counted from the sequence's first.
ftl_tile_ref ftl_flash3_query_ref(const ftl_flash3 *f, int32_t tensor, ftl_expr row, int32_t rows, int32_t columns);

// Every key tile, or every one but the first: those that all queries see whole, between those that need the mask.
typedef void (*ftl_flash3_step)(const void *role, ftl_expr j, bool masked);
void ftl_flash3_walk_all(const ftl_flash3 *f, ftl_flash3_step step, const void *role);
void ftl_flash3_walk_rest(const ftl_flash3 *f, ftl_flash3_step step, const void *role);

// The producer: all of its role.
void ftl_flash3_produce(const ftl_flash3 *f);
// Where the role that computes copies as well: before the first key tile; as it comes to each later one; and, so that
// the next tile of a persistent CTA finds no stage that was filled past the last, at the end.
void ftl_flash3_prefetch(const ftl_flash3 *f);
void ftl_flash3_copy_ahead(const ftl_flash3 *f, ftl_expr j);
void ftl_flash3_drain(const ftl_flash3 *f);

// A role that computes: all of it.
void ftl_flash3_consume(const ftl_flash3 *f, int32_t group);

#endif
