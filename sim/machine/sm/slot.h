// The place of a CTA on the SM: its tiles (tiles.c) and its cluster (cluster.c).
#ifndef FTL_MACHINE_SM_SLOT_H
#define FTL_MACHINE_SM_SLOT_H

#include "machine/mem.h"
#include "machine/sm/transactions.h"

enum { SM_MAX_TILES_AHEAD = 64 };

typedef struct sm_slot {
  bool busy;
  int64_t cta, start;
  int32_t warps_left;
  bool is_joined;  // its peers are in sm->peers
  // dynamic tiles: numbers of tiles 1, 2, ... of the CTA, by number modulo SM_MAX_TILES_AHEAD
  uint32_t tiles_assigned, tiles_known;
  int64_t tiles[SM_MAX_TILES_AHEAD];
} sm_slot;

// ---- tiles.c ----
// The warp adds to the counter of tiles: the request goes to L2 at `now`.
void ftl_sm_tile_ask(ftl_sm *sm, sm_warp *w, int64_t now);
// The warp goes on once the number of its CTA's next tile is known.
void ftl_sm_tile_wait(ftl_sm *sm, sm_warp *w, int64_t now);
// A number that the slot's CTA has asked for is there.
void ftl_sm_tile_reply(ftl_sm *sm, int32_t slot, int64_t now);
// The tile with which the warp goes on, or -1.
int64_t ftl_sm_next_tile(const ftl_sm *sm, const sm_warp *w);

// ---- cluster.c ----
// False: out of memory.
bool ftl_sm_cluster_create(ftl_sm *sm);
int32_t ftl_sm_cluster_ctas(const ftl_warp_program *program);  // 1 without clusters
// Lines and arrivals that may be on their way from other CTAs at once.
int32_t ftl_sm_cluster_transactions(const ftl_sm *sm);
// CTAs whose readers a stage of the ring waits for.
int32_t ftl_sm_sharing_ctas(const ftl_sm *sm, int32_t ring);
// Who shares the ring's loads with the CTA in the slot; NULL: nobody.
const ftl_mem_peers *ftl_sm_peers(const ftl_sm *sm, int32_t slot, int32_t ring);
// A warp of this CTA has released the stage: the others hear of it.
void ftl_sm_release_to_peers(ftl_sm *sm, int32_t stage, int64_t now);
// A line or an arrival from another CTA of the cluster is there.
void ftl_sm_peer_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now);

#endif
