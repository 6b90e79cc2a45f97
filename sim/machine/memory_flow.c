// What happens to a request: network, slice, the other side, DRAM, and back.
#include "machine/memory_internal.h"

#include <stddef.h>

#include "base/check.h"

static int64_t bytes_of(uint8_t mask) { return (int64_t)ftl_num_sectors(mask) * FTL_SECTOR_BYTES; }

static ftl_memory_phase phase_of(ftl_memory_stage stage) {
  switch (stage) {
    case FTL_STAGE_FILL:
      return FTL_PHASE_FILL;
    case FTL_STAGE_CROSS:
      return FTL_PHASE_CROSS;
    default:
      return FTL_PHASE_LOOKUP;
  }
}

static void schedule(ftl_memory *memory, uint32_t index, ftl_memory_stage stage, int64_t cycle) {
  ftl_memory_node *node = &memory->nodes[index];
  node->stage = (uint8_t)stage;
  bool is_reply = stage == FTL_STAGE_PORT;
  ftl_wheel_push(is_reply ? &memory->port_events : &memory->events, cycle, is_reply ? 0 : (int)phase_of(stage),
                 node->sequence, index);
}

static uint32_t slice_of(const ftl_memory *memory, uint32_t side, uint32_t slice_in_side) {
  return side * (uint32_t)memory->slices_per_side + slice_in_side;
}

static ftl_noc_port *slice_port(ftl_memory *memory, uint32_t side, uint32_t slice_in_side) {
  return &memory->slices[slice_of(memory, side, slice_in_side)];
}

static bool is_write(const ftl_memory_node *node) { return node->kind != FTL_NODE_READ; }

static inline void start(ftl_memory *memory, const ftl_mem_request *request) {
  uint32_t index = ftl_memory_take_node(memory);
  ftl_memory_node *node = &memory->nodes[index];
  *node = (ftl_memory_node){.sequence = memory->next_sequence++,
                            .line = request->line,
                            .at = ftl_l2_hash_address(&memory->hash, request->line),
                            .transaction = request->transaction,
                            .sm = request->sm,
                            .kind = request->kind,
                            .side = (uint8_t)memory->side_of_sm[request->sm],
                            .sectors = request->sectors,
                            .full_sectors = request->full_sectors,
                            .part_halves = request->part_halves,
                            .priority = request->priority,
                            .peer_stage = request->stage,
                            .peers = request->peers};
  // A request without data takes its port for a cycle, as does one with less data than a cycle carries.
  ftl_noc_port *port = &memory->sm_out[request->sm];
  int64_t bytes = is_write(node) ? bytes_of(request->sectors) : 0;
  if (bytes < port->bytes_per_cycle) bytes = port->bytes_per_cycle;
  int64_t cycle = ftl_memory_convert(memory->sm_to_l2, request->time);
  int64_t arrival = ftl_noc_port_take(port, cycle, bytes).last + memory->request_cycles;
  if (request->is_local) memory->counters.local_sectors += ftl_num_sectors(request->sectors);
  bool crosses = is_write(node) && node->at.home_side != node->side;
  schedule(memory, index, crosses ? FTL_STAGE_CROSS : FTL_STAGE_SLICE, arrival);
}

void ftl_memory_flow_start(ftl_memory *memory, const ftl_mem_request *requests, int64_t count) {
  for (int64_t i = 0; i < count; i++) start(memory, &requests[i]);
}

// Sends what a node reads through a slice's port, from where it goes on in `hit_cycles`; the hit latency is paid once,
// by the slice that replies to the SM.
static void reply_from_slice(ftl_memory *memory, uint32_t index, int64_t cycle) {
  ftl_memory_node *node = &memory->nodes[index];
  node->tail_cycles = 0;
  int64_t leaves = cycle;
  if (!node->is_coalesced && !is_write(node)) {
    ftl_noc_slot slot =
        ftl_noc_port_take(slice_port(memory, node->side, node->at.slice_in_side), cycle, bytes_of(node->sectors));
    node->tail_cycles = (uint8_t)(slot.last - slot.first);
    leaves = slot.first;
  }
  int64_t way_back = memory->reply_cycles;
  if (is_write(node) && node->at.home_side != node->side) way_back += memory->far_cycles;
  schedule(memory, index, FTL_STAGE_PORT, leaves + memory->hit_cycles + way_back);
}

static void push_dram(ftl_memory *memory, uint64_t line, uint8_t sectors, bool writes, uint32_t cookie) {
  int64_t cycle = memory->events.now + memory->to_dram_cycles;
  ftl_dram_request request = {.arrival_cycle = ftl_memory_convert(memory->l2_to_dram, cycle),
                              .line = line,
                              .cookie = cookie,
                              .sectors = sectors,
                              .is_write = writes};
  ftl_dram_push(memory->dram, &request);
}

static void write_back(ftl_memory *memory, const ftl_l2_outcome *outcome) {
  for (int i = 0; i < outcome->num_writebacks; i++) {
    push_dram(memory, outcome->writebacks[i], outcome->writeback_sectors[i], true, FTL_MEMORY_NONE);
  }
}

// A node that stands for a fetch on behalf of `index`.
static uint32_t take_fetch(ftl_memory *memory, uint32_t index, ftl_memory_node_kind kind, uint8_t sectors) {
  uint32_t fetch = ftl_memory_take_node(memory);
  memory->nodes[fetch] = memory->nodes[index];
  memory->nodes[fetch].kind = (uint8_t)kind;
  memory->nodes[fetch].sectors = sectors;
  memory->nodes[fetch].dram_sectors = 0;
  return fetch;
}

static void fetch_from_dram(ftl_memory *memory, uint32_t index, uint8_t sectors) {
  uint32_t fetch = take_fetch(memory, index, FTL_NODE_DRAM_FETCH, sectors);
  memory->nodes[fetch].side = (uint8_t)memory->nodes[fetch].at.home_side;
  push_dram(memory, memory->nodes[fetch].line, sectors, false, fetch);
}

static ftl_l2_mshr *find_flight(const ftl_memory *memory, const ftl_memory_node *node, uint32_t side) {
  return ftl_l2_mshrs_find(&memory->mshrs, node->line, side);
}

static uint8_t in_flight(const ftl_l2_mshr *mshr) { return mshr == NULL ? 0 : mshr->in_flight; }

// Notes what the home side must fetch and is not fetching already (`mshr`); the read itself starts at the home slice.
static uint8_t claim_dram_fetch(ftl_memory *memory, const ftl_memory_node *node, const ftl_l2_mshr *mshr,
                                uint8_t sectors) {
  uint8_t fetch = sectors & (uint8_t)~in_flight(mshr);
  if (fetch != 0) (void)ftl_l2_mshrs_add(&memory->mshrs, node->line, node->at.home_side, fetch);
  return fetch;
}

static void fetch_from_far(ftl_memory *memory, uint32_t index, uint8_t sectors, const ftl_l2_outcome *outcome) {
  (void)ftl_l2_mshrs_add(&memory->mshrs, memory->nodes[index].line, memory->nodes[index].side, sectors);
  uint32_t fetch = take_fetch(memory, index, FTL_NODE_FAR_FETCH, sectors);
  ftl_memory_node *node = &memory->nodes[fetch];
  const ftl_l2_mshr *at_home = find_flight(memory, node, node->at.home_side);
  node->dram_sectors = claim_dram_fetch(memory, node, at_home, outcome->dram_read_sectors);
  memory->counters.l2_fabric_sectors += ftl_num_sectors(sectors);
  memory->counters.l2_fabric_hit_sectors += ftl_num_sectors(sectors & outcome->far_sectors);
  schedule(memory, fetch, FTL_STAGE_HOME, memory->events.now + memory->far_cycles);
}

static void wait_for(ftl_memory *memory, ftl_l2_mshr *mshr, uint32_t index) {
  ftl_memory_node *nodes = memory->nodes;
  uint32_t last = mshr->last_waiter;
  nodes[index].next = last == FTL_L2_NO_WAITER ? index : nodes[last].next;
  if (last != FTL_L2_NO_WAITER) nodes[last].next = index;
  mshr->last_waiter = index;
}

// True: the node waits, for sectors that are on their way.
static bool try_wait_for(ftl_memory *memory, ftl_l2_mshr *mshr, uint32_t index) {
  if ((in_flight(mshr) & memory->nodes[index].sectors) == 0) return false;
  wait_for(memory, mshr, index);
  return true;
}

static ftl_l2_coalescer *coalescer_of(const ftl_memory *memory, const ftl_memory_node *node) {
  return &memory->coalescers[memory->gpc_of_sm[node->sm]];
}

// Reads of multicast copies join none and are joined by none (kernels/measurements/micro_tile_merge_ncu.csv).
static bool may_coalesce(const ftl_memory *memory, const ftl_memory_node *node) {
  return memory->max_merges > 1 && node->peers == NULL;
}

// Whether the read joins another SM's access, of which the GPC asks L2 once, and makes none of its own.
static bool joins(const ftl_memory *memory, const ftl_memory_node *node) {
  if (!may_coalesce(memory, node)) return false;
  bool on_its_way = (in_flight(find_flight(memory, node, node->side)) & node->sectors) != 0;
  return ftl_l2_coalescer_join(coalescer_of(memory, node), node->line, node->sectors, node->sm, memory->events.now,
                               on_its_way);
}

// What joined another access gets its data with that, which came to the slice before it.
static void read_joined(ftl_memory *memory, uint32_t index) {
  const ftl_memory_node *node = &memory->nodes[index];
  memory->counters.coalesced_sectors += ftl_num_sectors(node->sectors);
  if (try_wait_for(memory, find_flight(memory, node, node->side), index)) return;
  int64_t now = memory->events.now, data = ftl_l2_coalescer_data_cycle(coalescer_of(memory, node), node->line);
  reply_from_slice(memory, index, data > now ? data : now);
}

static void count_from_sm(ftl_memory *memory, const ftl_memory_node *node, uint8_t hit_sectors) {
  ftl_memory_counters *counters = &memory->counters;
  int64_t sectors = ftl_num_sectors(node->sectors), hits = ftl_num_sectors(hit_sectors);
  counters->l2_sectors_from_sms += sectors;
  *(is_write(node) ? &counters->l2_write_sectors : &counters->l2_read_sectors) += sectors;
  counters->l2_hit_sectors += hits;
  counters->l2_miss_sectors += sectors - hits;
}

// Asks for what the side lacks and nobody has asked for yet. True: there is something.
static bool fetch_missing(ftl_memory *memory, uint32_t index, const ftl_l2_mshr *mshr, const ftl_l2_outcome *outcome) {
  const ftl_memory_node *node = &memory->nodes[index];
  if (node->side == outcome->home_side) {
    if (outcome->dram_read_sectors == 0) return false;
    uint8_t fetch = claim_dram_fetch(memory, node, mshr, outcome->dram_read_sectors);
    if (fetch != 0) fetch_from_dram(memory, index, fetch);
    return fetch != 0;
  }
  uint8_t wanted = node->sectors & (uint8_t)~outcome->hit_sectors & (uint8_t)~in_flight(mshr);
  if (wanted != 0) fetch_from_far(memory, index, wanted, outcome);
  return wanted != 0;
}

static void read_slice(ftl_memory *memory, uint32_t index) {
  ftl_memory_node *node = &memory->nodes[index];
  uint64_t line = node->line;
  uint32_t side = node->side;
  ftl_l2_mshr *mshr = find_flight(memory, node, side);
  ftl_l2_outcome outcome;
  ftl_l2_tags_read_at(memory->tags, node->at, line, node->sectors, (int32_t)side, (ftl_l2_priority)node->priority,
                      &outcome);
  count_from_sm(memory, node, outcome.hit_sectors);
  if (fetch_missing(memory, index, mshr, &outcome)) mshr = ftl_l2_mshrs_find(&memory->mshrs, line, side);
  write_back(memory, &outcome);
  if (try_wait_for(memory, mshr, index)) return;
  int64_t now = memory->events.now;
  if (may_coalesce(memory, node)) {
    int64_t from = slice_port(memory, side, outcome.slice_in_side)->free_from;
    ftl_l2_coalescer_set_data_cycle(coalescer_of(memory, node), line, from > now ? from : now);
  }
  reply_from_slice(memory, index, now);
}

static void write_slice(ftl_memory *memory, uint32_t index) {
  ftl_memory_node *node = &memory->nodes[index];
  ftl_l2_outcome outcome;
  if (node->kind == FTL_NODE_ATOMIC) {
    ftl_l2_known_line line;
    ftl_l2_tags_know(&line, memory->tags, node->at, node->line, node->sectors);
    ftl_l2_tags_atomic_known(memory->tags, &line, (ftl_l2_priority)node->priority, &outcome);
  } else {
    ftl_l2_tags_write_at(memory->tags, node->at, node->line, node->sectors,
                         ftl_halves_of_sectors(node->full_sectors) | node->part_halves, node->side,
                         (ftl_l2_priority)node->priority, &outcome);
  }
  count_from_sm(memory, node, node->sectors);
  // The ack of an atomic does not wait for the old value: attention's atomics are reductions without a result.
  if (outcome.dram_read_sectors != 0) {
    const ftl_l2_mshr *mshr = find_flight(memory, node, node->at.home_side);
    uint8_t fetch = claim_dram_fetch(memory, node, mshr, outcome.dram_read_sectors);
    if (fetch != 0) fetch_from_dram(memory, index, fetch);
  }
  write_back(memory, &outcome);
  reply_from_slice(memory, index, memory->events.now);
}

static void serve_at_home(ftl_memory *memory, uint32_t index) {
  uint8_t fetch = memory->nodes[index].dram_sectors;
  if (fetch != 0) fetch_from_dram(memory, index, fetch);
  const ftl_memory_node *node = &memory->nodes[index];
  if (!try_wait_for(memory, find_flight(memory, node, node->at.home_side), index))
    schedule(memory, index, FTL_STAGE_CROSS, memory->events.now);
}

static void cross(ftl_memory *memory, uint32_t index) {
  const ftl_memory_node *node = &memory->nodes[index];
  bool is_fetch = node->kind == FTL_NODE_FAR_FETCH;
  uint32_t to = is_fetch ? node->side : node->at.home_side;
  int64_t last = ftl_noc_port_take(&memory->far_links[to], memory->events.now, bytes_of(node->sectors)).last;
  if (!is_fetch) memory->counters.l2_fabric_sectors += ftl_num_sectors(node->sectors);
  if (!is_fetch) memory->counters.l2_fabric_hit_sectors += ftl_num_sectors(node->sectors);
  schedule(memory, index, is_fetch ? FTL_STAGE_FILL : FTL_STAGE_SLICE, last + memory->far_cycles);
}

// What waited only for these sectors goes on, in the order in which it came.
static void fill(ftl_memory *memory, uint32_t index) {
  uint64_t line = memory->nodes[index].line;
  uint32_t side = memory->nodes[index].side;
  ftl_l2_mshr *mshr = ftl_l2_mshrs_find(&memory->mshrs, line, side);
  FTL_CHECK(mshr != NULL, "memory: line %llx arrives on side %u and nobody asked for it", (unsigned long long)line,
            side);
  mshr->in_flight &= (uint8_t)~memory->nodes[index].sectors;
  uint8_t missing = mshr->in_flight;
  uint32_t last = mshr->last_waiter, waiter = last == FTL_L2_NO_WAITER ? last : memory->nodes[last].next;
  mshr->last_waiter = FTL_L2_NO_WAITER;
  ftl_memory_free_node(memory, index);
  while (waiter != FTL_L2_NO_WAITER) {
    uint32_t next = waiter == last ? FTL_L2_NO_WAITER : memory->nodes[waiter].next;
    if ((memory->nodes[waiter].sectors & missing) != 0) {
      wait_for(memory, mshr, waiter);
    } else if (memory->nodes[waiter].kind == FTL_NODE_FAR_FETCH) {
      schedule(memory, waiter, FTL_STAGE_CROSS, memory->events.now);
    } else {
      if (may_coalesce(memory, &memory->nodes[waiter]))
        ftl_l2_coalescer_set_data_cycle(coalescer_of(memory, &memory->nodes[waiter]), line, memory->events.now);
      reply_from_slice(memory, waiter, memory->events.now);
    }
    waiter = next;
  }
  if (missing == 0) ftl_l2_mshrs_remove(&memory->mshrs, mshr);
}

static void look_up(ftl_memory *memory, uint32_t index) {
  const ftl_memory_node *node = &memory->nodes[index];
  if (is_write(node)) {
    write_slice(memory, index);
  } else if (node->is_coalesced) {
    read_joined(memory, index);
  } else {
    read_slice(memory, index);
  }
}

// Of a slice's intake: data to write, with a mask of bytes where they are parts of sectors, or a request to read. What
// joins another is no request to L2, and waits its turn behind it.
static int64_t intake_bytes(const ftl_memory *memory, const ftl_memory_node *node) {
  if (!is_write(node)) return node->is_coalesced ? 0 : memory->read_request_bytes;
  bool is_masked = (node->sectors & ~node->full_sectors) != 0;
  return bytes_of(node->sectors) + (is_masked ? memory->byte_mask_bytes : 0);
}

static void take_in(ftl_memory *memory, uint32_t index) {
  ftl_memory_node *node = &memory->nodes[index];
  uint32_t side = is_write(node) ? node->at.home_side : node->side;
  node->is_coalesced = !is_write(node) && joins(memory, node);
  ftl_noc_port *port = &memory->slices_in[slice_of(memory, side, node->at.slice_in_side)];
  int64_t now = memory->events.now, last = ftl_noc_port_take(port, now, intake_bytes(memory, node)).last;
  if (!is_write(node) && !node->is_coalesced && may_coalesce(memory, node))
    ftl_l2_coalescer_set_data_cycle(coalescer_of(memory, node), node->line, last);
  if (last > now) {
    schedule(memory, index, FTL_STAGE_TAKEN, last);
  } else {
    look_up(memory, index);
  }
}

static void handle(ftl_memory *memory, uint32_t index) {
  const ftl_memory_node *node = &memory->nodes[index];
  switch ((ftl_memory_stage)node->stage) {
    case FTL_STAGE_SLICE:
      take_in(memory, index);
      break;
    case FTL_STAGE_TAKEN:
      look_up(memory, index);
      break;
    case FTL_STAGE_HOME:
      serve_at_home(memory, index);
      break;
    case FTL_STAGE_CROSS:
      cross(memory, index);
      break;
    case FTL_STAGE_FILL:
      fill(memory, index);
      break;
    case FTL_STAGE_PORT:
      break;  // in a wheel of its own
  }
}

// The nodes and tags of in-flight requests are far apart in the host's memory: asked for some events ahead.
enum { NODES_AHEAD = 8, TAGS_AHEAD = 4 };

static void prefetch_node(const ftl_memory *memory, const ftl_wheel_event *event, const ftl_wheel_event *end) {
  if (end - event > NODES_AHEAD) __builtin_prefetch(&memory->nodes[event[NODES_AHEAD].node], 1);
}

static void prefetch_tags(const ftl_memory *memory, const ftl_wheel_event *event, const ftl_wheel_event *end) {
  if (end - event <= TAGS_AHEAD) return;
  const ftl_memory_node *node = &memory->nodes[event[TAGS_AHEAD].node];
  if (node->stage == FTL_STAGE_SLICE) ftl_l2_tags_prefetch(memory->tags, node->at, node->side);
}

void ftl_memory_flow_cycle(ftl_memory *memory) {
  for (int phase = FTL_PHASE_FILL; phase <= FTL_PHASE_CROSS; phase++) {
    uint32_t count;
    const ftl_wheel_event *event = ftl_wheel_take(&memory->events, phase, &count), *end = event + count;
    for (; event < end; event++) {
      prefetch_node(memory, event, end);
      if (phase == FTL_PHASE_LOOKUP) prefetch_tags(memory, event, end);
      handle(memory, event->node);
    }
  }
}

void ftl_memory_flow_dram_done(ftl_memory *memory, uint32_t cookie, int64_t dram_cycle) {
  int64_t cycle = ftl_memory_convert(memory->dram_to_l2, dram_cycle) + memory->from_dram_cycles;
  // Only where the way to DRAM and back takes less than an L2 cycle.
  if (cycle < memory->events.now) cycle = memory->events.now;
  schedule(memory, cookie, FTL_STAGE_FILL, cycle);
}

// A multicast copy passes the port of its GPC once and those of all its SMs, as fast as each lets it.
static void reply_to_peers(ftl_memory *memory, const ftl_memory_node *node, ftl_noc_slot gpc, int64_t last,
                           int64_t bytes) {
  for (int32_t i = 0; i < node->peers->count; i++) {
    ftl_mem_peer to = node->peers->peers[i];
    int64_t at_sm = ftl_noc_port_take(&memory->sm_in[to.sm], gpc.first, bytes).last;
    ftl_memory_add_message(memory,
                           (ftl_mem_message){.time = ftl_memory_convert(memory->l2_to_sm, at_sm > last ? at_sm : last),
                                             .cluster = node->peers->cluster,
                                             .to = to,
                                             .stage = node->peer_stage,
                                             .kind = FTL_MEM_PEER_LINE});
  }
}

// Ports pass a message on as it comes in: its end is that of the slowest port on the way.
static void reply_at_port(ftl_memory *memory, uint32_t index) {
  const ftl_memory_node *node = &memory->nodes[index];
  int64_t now = memory->port_events.now;
  int64_t bytes = is_write(node) ? 0 : bytes_of(node->sectors);
  ftl_noc_slot gpc = ftl_noc_port_take(&memory->gpc_in[memory->gpc_of_sm[node->sm]], now, bytes);
  ftl_noc_slot sm = ftl_noc_port_take(&memory->sm_in[node->sm], gpc.first, bytes);
  int64_t last = now + node->tail_cycles;
  if (last < gpc.last) last = gpc.last;
  if (node->peers != NULL) reply_to_peers(memory, node, gpc, last, bytes);
  if (last < sm.last) last = sm.last;
  ftl_mem_reply reply = {
      .time = ftl_memory_convert(memory->l2_to_sm, last), .transaction = node->transaction, .sm = node->sm};
  ftl_memory_add_reply(memory, reply);
  ftl_memory_free_node(memory, index);
  memory->num_requests--;
}

void ftl_memory_flow_ports(ftl_memory *memory) {
  uint32_t count;
  const ftl_wheel_event *event = ftl_wheel_take(&memory->port_events, 0, &count), *end = event + count;
  for (; event < end; event++) {
    prefetch_node(memory, event, end);
    reply_at_port(memory, event->node);
  }
}
