// How a persistent CTA comes to its next tile: by a stride, or from a counter in memory (dynamic tiles).
//
// TILE_ASK, of the CTA's first warp as it begins a tile, adds to the counter; its reply, a trip to L2 later, is the
// number of the tile after this one. TILE_WAIT, at the end of a tile, waits for it: a named barrier and a load from
// shared memory tell all warps. Source: FlashAttention-3, hopper/tile_scheduler.hpp, DynamicPersistentTileScheduler.
#include "machine/sm/state.h"

enum { COUNTER_SECTOR = 1 };

void ftl_sm_tile_ask(ftl_sm *sm, sm_warp *w, int64_t now) {
  ftl_line counter = {.line = FTL_MEM_COUNTER_LINE, .sectors = COUNTER_SECTOR};
  sm_request(sm, now, &counter, FTL_MEM_ATOMIC, (sm_transaction){.kind = SM_TX_TILE, .warp = w});
}

void ftl_sm_assign_tile(ftl_sm *sm, int32_t slot_idx, int64_t tile) {
  sm_slot *slot = &sm->slots[slot_idx];
  slot->tiles[++slot->tiles_assigned % SM_MAX_TILES_AHEAD] = tile;
}

// When a warp that waits in `now` knows the number that has come.
static int64_t passes_at(const ftl_sm *sm, int64_t now) {
  return now + sm->arch->shared_barrier_latency_cycles + sm->arch->shared_load_latency_cycles;
}

void ftl_sm_tile_wait(ftl_sm *sm, sm_warp *w, int64_t now) {
  if (sm->slots[w->slot].tiles_known > w->tiles_done)
    ftl_sm_warp_advance(sm, w, now, passes_at(sm, now), FTL_STALL_BARRIER);
  else
    ftl_sm_warp_block(sm, w, SM_ON_TILE, FTL_STALL_BARRIER);
}

void ftl_sm_tile_reply(ftl_sm *sm, int32_t slot_idx, int64_t now) {
  sm_slot *slot = &sm->slots[slot_idx];
  slot->tiles_known++;
  sm_warp *warps = &sm->warps[slot_idx * sm->program->num_warps];
  for (int32_t i = 0; i < sm->program->num_warps; i++)
    if (warps[i].blocked == SM_ON_TILE && warps[i].tiles_done < slot->tiles_known)
      ftl_sm_warp_resume(sm, &warps[i], now, passes_at(sm, now), FTL_STALL_BARRIER);
}

int64_t ftl_sm_next_tile(const ftl_sm *sm, const sm_warp *w) {
  int64_t stride = sm->config.persistent_stride;
  if (stride == 0) return -1;
  int64_t next = w->point.cta + stride;
  if (sm->config.dynamic_tiles) {
    const sm_slot *slot = &sm->slots[w->slot];
    FTL_CHECK(slot->tiles_assigned > w->tiles_done && slot->tiles_assigned - w->tiles_done <= SM_MAX_TILES_AHEAD,
              "SM %d: a warp ends tile %u of its CTA, which was given %u", sm->config.sm_idx, w->tiles_done,
              slot->tiles_assigned);
    next = slot->tiles[(w->tiles_done + 1) % SM_MAX_TILES_AHEAD];
  }
  return next < sm->program->tile->num_ctas ? next : -1;
}
