// CTAs of a cluster: who shares loads with whom, and what they say to each other.
//
// A line of a multicast copy comes to every CTA that shares the ring's loads, from whichever of them asked for it; the
// stage is full when all lines of the tile have come. A reader that releases a stage arrives at the mbarriers of all of
// them, at the others' tma.peer_latency_cycles later. An SM that runs alone (config.is_alone) stands for all CTAs.
#include "machine/sm/state.h"

int32_t ftl_sm_cluster_ctas(const ftl_warp_program *program) {
  return program->tile->cluster_ctas > 1 ? program->tile->cluster_ctas : 1;
}

int32_t ftl_sm_sharing_ctas(const ftl_sm *sm, int32_t ring) {
  int32_t num_ctas = sm->program->rings[ring].multicast.num_ctas;
  return num_ctas > 1 ? num_ctas : 1;
}

// Arrivals at all stages of all slots, of one phase.
static int32_t arrivals_of_phase(const ftl_sm *sm) {
  int32_t arrivals = 0;
  for (int32_t r = 0; r < sm->program->num_rings; r++) {
    const ftl_warp_ring *ring = &sm->program->rings[r];
    arrivals += ring->num_stages * ring->num_consumer_warps * (ftl_sm_sharing_ctas(sm, r) - 1);
  }
  return arrivals * sm->config.num_slots;
}

// Of each stage one phase is on its way at most, and the next one's may be made meanwhile.
int32_t ftl_sm_cluster_transactions(const ftl_sm *sm) {
  int32_t others = ftl_sm_cluster_ctas(sm->program) - 1;
  if (others == 0) return 0;
  return others * (int32_t)sm->arch->tma_max_pending_lines + 2 * arrivals_of_phase(sm);
}

bool ftl_sm_cluster_create(ftl_sm *sm) {
  if (ftl_sm_cluster_ctas(sm->program) == 1) return true;
  sm->capacity_messages = 2 * arrivals_of_phase(sm);
  sm->messages = FTL_ARENA_NEW(&sm->arena, ftl_mem_message, sm->capacity_messages + 1);
  sm->peers = FTL_ARENA_NEW(&sm->arena, ftl_mem_peers, (int64_t)sm->config.num_slots * sm->program->num_rings);
  return sm->messages && sm->peers;
}

const ftl_mem_peers *ftl_sm_peers(const ftl_sm *sm, int32_t slot, int32_t ring) {
  FTL_CHECK(sm->slots[slot].is_joined, "SM %d: the CTA in slot %d shares loads and has joined no cluster",
            sm->config.sm_idx, slot);
  return &sm->peers[slot * sm->program->num_rings + ring];
}

static int64_t first_of_cluster(const ftl_sm *sm, int64_t cta) { return cta - cta % ftl_sm_cluster_ctas(sm->program); }

void ftl_sm_join(ftl_sm *sm, int32_t slot_idx, const ftl_mem_peer *members) {
  sm_slot *slot = &sm->slots[slot_idx];
  int64_t first = first_of_cluster(sm, slot->cta);
  slot->is_joined = true;
  for (int32_t r = 0; r < sm->program->num_rings; r++) {
    ftl_multicast multicast = sm->program->rings[r].multicast;
    ftl_mem_peers *peers = &sm->peers[slot_idx * sm->program->num_rings + r];
    *peers = (ftl_mem_peers){.cluster = first};
    int32_t member = ftl_multicast_member(multicast, slot->cta);
    for (int32_t i = 0; i < ftl_sm_sharing_ctas(sm, r); i++)
      if (i != member) peers->peers[peers->count++] = members[slot->cta - first + (i - member) * multicast.stride];
  }
}

void ftl_sm_receive(ftl_sm *sm, const ftl_mem_message *message) {
  const sm_slot *slot = &sm->slots[message->to.slot];
  if (!slot->busy || first_of_cluster(sm, slot->cta) != message->cluster) return;
  int32_t i = sm->free_transaction;
  FTL_CHECK(i >= 0, "SM %d: more messages than expected at cycle %lld", sm->config.sm_idx, (long long)message->time);
  sm->free_transaction = sm->transactions[i].next;
  sm->transactions[i] =
      (sm_transaction){.kind = message->kind == FTL_MEM_PEER_LINE ? SM_TX_PEER_LINE : SM_TX_PEER_ARRIVAL,
                       .group = message->count,
                       .stage = message->to.slot * sm->stages_per_cta + message->stage,
                       .line = (uint64_t)message->cluster};
  sm->in_flight++;
  ftl_sm_deliver(sm, &(ftl_mem_reply){.time = message->time, .transaction = (uint32_t)i});
}

void ftl_sm_peer_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now) {
  const sm_slot *slot = &sm->slots[tx->stage / sm->stages_per_cta];
  if (!slot->busy || first_of_cluster(sm, slot->cta) != (int64_t)tx->line) return;
  if (tx->kind == SM_TX_PEER_ARRIVAL)
    ftl_sm_mbar_release(sm, tx->stage, tx->group, now);
  else
    ftl_sm_tma_peer_line(sm, tx->stage, now);
}

const ftl_mem_message *ftl_sm_messages(const ftl_sm *sm, int32_t *count) {
  *count = sm->num_messages;
  return sm->messages;
}

static int32_t ring_of_stage(const ftl_sm *sm, int32_t stage_of_cta) {
  int32_t ring = 0;
  while (stage_of_cta >= sm->first_stage[ring] + sm->program->rings[ring].num_stages) ring++;
  return ring;
}

void ftl_sm_release_to_peers(ftl_sm *sm, int32_t stage, int64_t now) {
  int32_t slot = stage / sm->stages_per_cta, ring = ring_of_stage(sm, stage % sm->stages_per_cta);
  int32_t others = ftl_sm_sharing_ctas(sm, ring) - 1;
  if (others == 0) return;
  ftl_mem_message message = {.time = now + sm->arch->tma_peer_latency_cycles,
                             .cluster = first_of_cluster(sm, sm->slots[slot].cta),
                             .to = {(uint16_t)sm->config.sm_idx, (uint16_t)slot},
                             .stage = (uint16_t)(stage % sm->stages_per_cta),
                             .kind = FTL_MEM_PEER_ARRIVAL,
                             .count = 1};
  if (sm->config.is_alone) {
    message.count = (uint8_t)others;
    ftl_sm_receive(sm, &message);
    return;
  }
  const ftl_mem_peers *peers = ftl_sm_peers(sm, slot, ring);
  FTL_CHECK(sm->num_messages + others <= sm->capacity_messages, "SM %d: %d arrivals at other SMs at cycle %lld",
            sm->config.sm_idx, sm->num_messages + others, (long long)now);
  for (int32_t i = 0; i < peers->count; i++) {
    message.to = peers->peers[i];
    sm->messages[sm->num_messages++] = message;
  }
}
