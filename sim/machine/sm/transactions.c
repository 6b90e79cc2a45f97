// Requests to L2 and their replies.
//
// What comes into L1 (LDG, and cp.async by way of L1) takes one port of l1.fill_bytes_per_cycle: a line that finds it
// busy waits, in order of its reply. Copies past L1, lines of TMA and acknowledgements do not take it.
#include "base/integer.h"
#include "machine/sm/state.h"

// The place of a ring's entry, of which there are reply_capacity.
static int32_t place_in_ring(const ftl_sm *sm, int32_t head, int32_t i) {
  return head + i < sm->reply_capacity ? head + i : head + i - sm->reply_capacity;
}

static bool lists_create(ftl_sm *sm, int32_t count) {
  sm->transactions = FTL_ARENA_NEW_RAW(&sm->arena, sm_transaction, count);
  sm->loads = FTL_ARENA_NEW_RAW(&sm->arena, sm_load, count);
  sm->waiters = FTL_ARENA_NEW_RAW(&sm->arena, sm_waiter, count);
  if (!sm->transactions || !sm->loads || !sm->waiters) return false;
  for (int32_t i = 0; i < count; i++) {
    int32_t next = i + 1 < count ? i + 1 : -1;
    sm->transactions[i].next = sm->loads[i].next_free = sm->waiters[i].next = next;
  }
  sm->num_transactions = count;
  return true;
}

// A place is listed from its load's data until it is free, of a warp that has gone perhaps beside those of the next.
static bool places_create(ftl_sm *sm) {
  int64_t num_warps = (int64_t)sm->config.num_slots * sm->program->num_warps;
  sm->place_capacity = (int32_t)(2 * num_warps * sm->arch->l1_max_warp_loads);
  sm->places = FTL_ARENA_NEW_RAW(&sm->arena, sm_load_place, sm->place_capacity + 1);
  return sm->places != NULL;
}

// Those of an instruction alone always fit.
static int32_t lines_beside(const ftl_sm *sm, int64_t max_lines) {
  return (int32_t)ftl_larger(max_lines - sm->code.gate_lines, 0);
}

bool ftl_sm_transactions_create(ftl_sm *sm) {
  // Lines in flight, write-backs included, are limited by l1.max_pending_lines and max_pending_load_lines, or are those
  // of one instruction.
  int64_t lines =
      ftl_larger(sm->arch->l1_max_pending_lines, sm->arch->l1_max_pending_load_lines) + sm->code.gate_lines + 1;
  int32_t count = (int32_t)(lines + sm->arch->tma_max_pending_lines) + ftl_sm_cluster_transactions(sm) +
                  sm->config.num_slots;  // a tile asked for by each CTA
  sm->copied_capacity = count;           // as many have come and wait to be written; what comes beyond waits for none
  count *= 2;
  if (!lists_create(sm, count) || !places_create(sm)) return false;
  sm->fill_buckets = FTL_ARENA_NEW_RAW(&sm->arena, int32_t, SM_FILL_BUCKETS);
  sm->replies = FTL_ARENA_NEW_RAW(&sm->arena, ftl_mem_reply, count);
  sm->arrivals = FTL_ARENA_NEW_RAW(&sm->arena, ftl_mem_reply, count);
  sm->copied = FTL_ARENA_NEW_RAW(&sm->arena, ftl_mem_reply, count);
  sm->requests = FTL_ARENA_NEW_RAW(&sm->arena, ftl_mem_request, 2 * (int64_t)count);
  if (!sm->fill_buckets || !sm->replies || !sm->arrivals || !sm->copied || !sm->requests) return false;
  for (int32_t i = 0; i < SM_FILL_BUCKETS; i++) sm->fill_buckets[i] = -1;
  for (int64_t sectors = 0; sectors <= FTL_LINE_SECTORS; sectors++)
    sm->fill_cycles[sectors] = ftl_divide_up(sectors * sm->arch->l1_sector_bytes, sm->arch->l1_fill_bytes_per_cycle);
  sm->lg_limit = lines_beside(sm, sm->arch->l1_max_pending_lines);
  sm->lg_load_limit = lines_beside(sm, sm->arch->l1_max_pending_load_lines);
  sm->reply_capacity = count;
  sm->capacity_requests = 2 * count;
  return true;
}

// Replies are nearly in order: a later one is put before those of later times.
void ftl_sm_deliver(ftl_sm *sm, const ftl_mem_reply *reply) {
  FTL_CHECK(
      reply->time >= sm->now && reply->transaction < (uint32_t)sm->num_transactions && sm->reply_count < sm->in_flight,
      "SM %d: reply %u at cycle %lld, now %lld", sm->config.sm_idx, reply->transaction, (long long)reply->time,
      (long long)sm->now);
  int32_t capacity = sm->reply_capacity, at = place_in_ring(sm, sm->reply_head, sm->reply_count++);
  for (int32_t i = sm->reply_count - 1; i > 0; i--) {
    int32_t before = at > 0 ? at - 1 : capacity - 1;
    if (sm->replies[before].time <= reply->time) break;
    sm->replies[at] = sm->replies[before];
    at = before;
  }
  sm->replies[at] = *reply;
  if (sm->replies[sm->reply_head].time < sm->reply_next) sm->reply_next = sm->replies[sm->reply_head].time;
}

void ftl_sm_load_done(ftl_sm *sm, sm_warp *w, int64_t now) {
  int64_t time = now + sm->arch->l1_warp_load_release_cycles;
  FTL_CHECK(sm->place_count < sm->place_capacity, "SM %d: more than %d loads in flight", sm->config.sm_idx,
            sm->place_capacity);
  int32_t at = sm->place_head + sm->place_count++;
  if (at >= sm->place_capacity) at -= sm->place_capacity;
  sm->places[at] = (sm_load_place){.time = time, .warp = w, .warp_start = w->start};
  if (time < sm->reply_next) sm->reply_next = time;
}

static void free_places(ftl_sm *sm, int64_t now) {
  while (sm->place_count > 0 && sm->places[sm->place_head].time <= now) {
    sm_load_place place = sm->places[sm->place_head];
    sm->place_head = sm->place_head + 1 < sm->place_capacity ? sm->place_head + 1 : 0;
    sm->place_count--;
    if (place.warp->start != place.warp_start) continue;
    place.warp->loads--;
    if (place.warp->blocked == SM_ON_LOADS) ftl_sm_warp_retry(sm, place.warp, now);
  }
}

static void copy_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now) {
  int64_t written = sm_write_copied_line(sm, now, tx->data_cycles);
  if (!tx->has_landed) sm_lg_add(sm, -1);
  ftl_sm_cp_arrive(sm, tx->warp, tx->group, now, written + sm->arch->l1_copy_latency_cycles);
  sm_outstanding_done(sm, tx->warp, now);
}

static void take_reply(ftl_sm *sm, int32_t i, int64_t now) {
  const sm_transaction *tx = &sm->transactions[i];
  switch (tx->kind) {
    case SM_TX_FILL:
      ftl_sm_fill_reply(sm, i, now);
      break;
    case SM_TX_CP:
      copy_reply(sm, tx, now);
      break;
    case SM_TX_TMA_LOAD:
    case SM_TX_TMA_STORE:
      ftl_sm_tma_reply(sm, tx, now);
      break;
    case SM_TX_TILE:
      ftl_sm_tile_reply(sm, tx->warp->slot, now);
      break;
    case SM_TX_PEER_LINE:
    case SM_TX_PEER_ARRIVAL:
      ftl_sm_peer_reply(sm, tx, now);
      break;
    default:
      sm_lg_add(sm, -1);
      break;
  }
  sm->transactions[i].next = sm->free_transaction;
  sm->free_transaction = i;
  sm->in_flight--;
}

// Whether the line of this reply may come in now; else it waits its turn.
static bool enters(ftl_sm *sm, int32_t i, int64_t now) {
  const sm_transaction *tx = &sm->transactions[i];
  if (tx->kind != SM_TX_FILL) return true;
  int64_t start = sm->fill_free > now ? sm->fill_free : now;
  sm->fill_free = start + sm->fill_cycles[ftl_num_sectors(tx->sectors)];
  if (start == now) return true;
  int32_t at = place_in_ring(sm, sm->arrival_head, sm->arrival_count++);
  sm->arrivals[at] = (ftl_mem_reply){.time = start, .transaction = (uint32_t)i};
  return false;
}

static bool is_copied(const sm_transaction *tx) {
  return tx->kind == SM_TX_CP || tx->kind == SM_TX_TMA_LOAD || tx->kind == SM_TX_PEER_LINE;
}

// Whether the line of this reply must wait until those before it have been written beside a wgmma. It is not in flight
// any more, so that another may be asked for.
static bool waits_to_be_written(ftl_sm *sm, int32_t i, int64_t now) {
  sm_transaction *tx = &sm->transactions[i];
  if (!is_copied(tx) || sm->copied_count == sm->copied_capacity) return false;
  if (sm->copied_count == 0 && (sm->copied_free <= now || !sm_wgmma_runs(sm, now))) return false;
  tx->has_landed = true;
  if (tx->kind == SM_TX_CP) sm_lg_add(sm, -1);
  if (tx->kind == SM_TX_TMA_LOAD) ftl_sm_tma_landed(sm, tx);
  int32_t at = place_in_ring(sm, sm->copied_head, sm->copied_count++);
  sm->copied[at] = (ftl_mem_reply){.time = now, .transaction = (uint32_t)i};
  return true;
}

static int32_t pop(const ftl_sm *sm, const ftl_mem_reply *ring, int32_t *head, int32_t *count) {
  int32_t i = (int32_t)ring[*head].transaction;
  *head = *head + 1 < sm->reply_capacity ? *head + 1 : 0;
  --*count;
  return i;
}

void ftl_sm_replies(ftl_sm *sm, int64_t now) {
  while (sm->arrival_count > 0 && sm->arrivals[sm->arrival_head].time <= now)
    take_reply(sm, pop(sm, sm->arrivals, &sm->arrival_head, &sm->arrival_count), now);
  while (sm->copied_count > 0 && sm->copied_free <= now)
    take_reply(sm, pop(sm, sm->copied, &sm->copied_head, &sm->copied_count), now);
  while (sm->reply_count > 0 && sm->replies[sm->reply_head].time <= now) {
    int32_t i = pop(sm, sm->replies, &sm->reply_head, &sm->reply_count);
    if (!waits_to_be_written(sm, i, now) && enters(sm, i, now)) take_reply(sm, i, now);
  }
  free_places(sm, now);
  sm->reply_next = sm->reply_count > 0 ? sm->replies[sm->reply_head].time : SM_NEVER;
  if (sm->arrival_count > 0 && sm->arrivals[sm->arrival_head].time < sm->reply_next)
    sm->reply_next = sm->arrivals[sm->arrival_head].time;
  if (sm->copied_count > 0 && sm->copied_free < sm->reply_next) sm->reply_next = sm->copied_free;
  if (sm->place_count > 0 && sm->places[sm->place_head].time < sm->reply_next)
    sm->reply_next = sm->places[sm->place_head].time;
}
