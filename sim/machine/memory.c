#include "machine/memory.h"

#include <stdlib.h>

#include "arch/topology.h"
#include "base/check.h"
#include "base/integer.h"
#include "base/lines.h"
#include "machine/memory_internal.h"

static ftl_status no_memory(ftl_error *error) {
  return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the model of the memory system");
}

static ftl_clock_memo *create_memo(ftl_clock from, ftl_clock to) {
  ftl_clock_memo *memo = malloc(sizeof *memo);
  if (memo == NULL) return NULL;
  memo->from = from;
  memo->to = to;
  for (int i = 0; i < FTL_MEMORY_CLOCK_MEMO; i++) memo->cycles[i] = -1;
  return memo;
}

void ftl_memory_convert_anew(ftl_clock_memo *memo, int64_t cycle) {
  uint32_t i = (uint32_t)cycle % FTL_MEMORY_CLOCK_MEMO;
  memo->cycles[i] = cycle;
  memo->results[i] = ftl_clock_cycle_at_or_after(memo->to, ftl_clock_edge_ps(memo->from, cycle));
}

static bool reserve_nodes(ftl_memory *memory, uint32_t num_nodes) {
  ftl_memory_node *nodes = ftl_lines_grow(memory->nodes, memory->num_nodes * sizeof *nodes, num_nodes * sizeof *nodes);
  if (nodes == NULL) return false;
  memory->nodes = nodes;
  for (uint32_t i = num_nodes; i > memory->num_nodes; i--) {
    nodes[i - 1].next = memory->free_node;
    memory->free_node = i - 1;
  }
  memory->num_nodes = num_nodes;
  return true;
}

static bool reserve_replies(ftl_memory *memory, int64_t count) {
  ftl_mem_reply *replies = realloc(memory->replies, (size_t)count * sizeof *replies);
  if (replies == NULL) return false;
  memory->replies = replies;
  memory->max_replies = count;
  return true;
}

// An SM's loads in flight are limited and were allowed for; its stores are not.
void ftl_memory_add_nodes(ftl_memory *memory) {
  FTL_CHECK(reserve_nodes(memory, memory->num_nodes * 2), "memory: no memory for %u requests", memory->num_nodes * 2);
}

void ftl_memory_add_replies(ftl_memory *memory) {
  FTL_CHECK(reserve_replies(memory, memory->max_replies * 2), "memory: no memory for %lld replies",
            (long long)memory->max_replies * 2);
}

void ftl_memory_add_message(ftl_memory *memory, ftl_mem_message message) {
  if (memory->num_messages == memory->max_messages) {
    int64_t count = memory->max_messages > 0 ? 2 * memory->max_messages : 4096;
    ftl_mem_message *messages = realloc(memory->messages, (size_t)count * sizeof *messages);
    FTL_CHECK(messages != NULL, "memory: no memory for %lld messages", (long long)count);
    memory->messages = messages;
    memory->max_messages = count;
  }
  memory->messages[memory->num_messages++] = message;
}

static void init_timing(ftl_memory *memory, const ftl_arch *arch) {
  memory->ecc_inline_milli = arch->dram_ecc_inline_milli;
  memory->request_cycles = arch->noc_request_cycles;
  memory->hit_cycles = arch->l2_hit_cycles;
  memory->reply_cycles = arch->noc_reply_cycles;
  memory->far_cycles = arch->noc_far_cycles;
  memory->to_dram_cycles = arch->dram_controller_cycles / 2;
  memory->from_dram_cycles = arch->dram_controller_cycles - memory->to_dram_cycles;
  int64_t dram_l2_cycles =
      ((arch->dram_tcl_cycles + arch->dram_burst_cycles) * arch->clock_l2_khz - 1) / arch->clock_dram_khz;
  memory->lead_cycles = arch->dram_controller_cycles + dram_l2_cycles;
  if (memory->lead_cycles < 1) memory->lead_cycles = 1;
  int64_t round_trip = memory->request_cycles + memory->hit_cycles + memory->reply_cycles;
  memory->max_window_cycles = round_trip * memory->sm_clock.khz / memory->l2_clock.khz;
  if (memory->max_window_cycles < 1) memory->max_window_cycles = 1;
}

static bool create_arrays(ftl_memory *memory, const ftl_arch *arch) {
  size_t num_sms = (size_t)memory->num_sms;
  memory->sm_to_l2 = create_memo(memory->sm_clock, memory->l2_clock);
  memory->l2_to_sm = create_memo(memory->l2_clock, memory->sm_clock);
  memory->l2_to_dram = create_memo(memory->l2_clock, memory->dram_clock);
  memory->dram_to_l2 = create_memo(memory->dram_clock, memory->l2_clock);
  memory->coalescers = calloc((size_t)memory->num_gpcs, sizeof *memory->coalescers);
  memory->sm_out = calloc(num_sms, sizeof *memory->sm_out);
  memory->sm_in = calloc(num_sms, sizeof *memory->sm_in);
  memory->gpc_in = calloc((size_t)memory->num_gpcs, sizeof *memory->gpc_in);
  memory->slices_in = calloc((size_t)memory->num_slices, sizeof *memory->slices_in);
  memory->slices = calloc((size_t)memory->num_slices, sizeof *memory->slices);
  memory->gpc_of_sm = calloc(num_sms, sizeof *memory->gpc_of_sm);
  memory->side_of_sm = calloc(num_sms, sizeof *memory->side_of_sm);
  if (memory->sm_to_l2 == NULL || memory->l2_to_sm == NULL || memory->l2_to_dram == NULL ||
      memory->dram_to_l2 == NULL || memory->coalescers == NULL || memory->sm_out == NULL || memory->sm_in == NULL ||
      memory->gpc_in == NULL || memory->slices_in == NULL || memory->slices == NULL || memory->gpc_of_sm == NULL ||
      memory->side_of_sm == NULL) {
    return false;
  }
  for (int32_t sm = 0; sm < memory->num_sms; sm++) {
    memory->gpc_of_sm[sm] = ftl_arch_gpc_of_sm(arch, sm);
    memory->side_of_sm[sm] = ftl_arch_side_of_sm(arch, sm);
    memory->sm_out[sm].bytes_per_cycle = (uint32_t)arch->noc_sm_write_bytes_per_cycle;
    memory->sm_in[sm].bytes_per_cycle = (uint32_t)arch->noc_sm_read_bytes_per_cycle;
  }
  for (int32_t g = 0; g < memory->num_gpcs; g++)
    memory->gpc_in[g].bytes_per_cycle = (uint32_t)arch->noc_gpc_read_bytes_per_cycle;
  for (int32_t s = 0; s < memory->num_slices; s++) {
    memory->slices_in[s].bytes_per_cycle = (uint32_t)arch->l2_slice_intake_bytes_per_cycle;
    memory->slices[s].bytes_per_cycle = (uint32_t)arch->l2_slice_bytes_per_cycle;
  }
  memory->read_request_bytes = arch->l2_read_request_bytes;
  memory->byte_mask_bytes = arch->l1_byte_mask_sectors * FTL_SECTOR_BYTES;
  for (int side = 0; side < 2; side++)
    memory->far_links[side].bytes_per_cycle = (uint32_t)arch->noc_far_bytes_per_cycle;
  for (int32_t g = 0; g < memory->num_gpcs; g++) ftl_l2_coalescer_init(&memory->coalescers[g], arch);
  // A request in flight, and a fetch for every second one.
  int64_t pending_lines = ftl_larger(arch->l1_max_pending_lines, arch->l1_max_pending_load_lines);
  uint32_t num_nodes = (uint32_t)(num_sms * (size_t)(pending_lines + arch->tma_max_pending_lines + 64) * 3 / 2);
  memory->free_node = FTL_MEMORY_NONE;
  return reserve_nodes(memory, num_nodes) && reserve_replies(memory, num_nodes);
}

ftl_status ftl_memory_create(ftl_memory **out, const ftl_arch *arch, int64_t sm_khz, ftl_error *error) {
  *out = NULL;
  ftl_memory *memory = calloc(1, sizeof *memory);
  if (memory == NULL) return no_memory(error);
  memory->num_sms = (int32_t)arch->chip_num_sms;
  memory->num_gpcs = (int32_t)arch->chip_num_gpcs;
  memory->num_sides = (int32_t)arch->l2_num_sides;
  memory->num_slices = (int32_t)arch->l2_num_slices;
  memory->slices_per_side = memory->num_slices / memory->num_sides;
  memory->max_merges = (uint8_t)arch->l2_coalescer_merges;
  memory->sm_clock.khz = sm_khz;
  memory->l2_clock.khz = arch->clock_l2_khz;
  memory->dram_clock.khz = arch->clock_dram_khz;
  memory->hash = ftl_l2_hash_init(arch);
  init_timing(memory, arch);
  ftl_status status = create_arrays(memory, arch) ? FTL_OK : no_memory(error);
  if (status == FTL_OK) status = ftl_l2_tags_create(&memory->tags, arch, 0, error);
  if (status == FTL_OK) status = ftl_dram_create(&memory->dram, arch, error);
  if (status == FTL_OK) status = ftl_l2_mshrs_init(&memory->mshrs, 0, error);
  if (status == FTL_OK) status = ftl_wheel_init(&memory->events, error);
  if (status == FTL_OK) status = ftl_wheel_init(&memory->port_events, error);
  if (status != FTL_OK) {
    ftl_memory_destroy(memory);
    return status;
  }
  *out = memory;
  return FTL_OK;
}

void ftl_memory_destroy(ftl_memory *memory) {
  if (memory == NULL) return;
  ftl_wheel_fini(&memory->port_events);
  ftl_wheel_fini(&memory->events);
  ftl_l2_mshrs_fini(&memory->mshrs);
  ftl_dram_destroy(memory->dram);
  ftl_l2_tags_destroy(memory->tags);
  void *arrays[] = {memory->messages,   memory->replies,    memory->nodes,      memory->side_of_sm, memory->gpc_of_sm,
                    memory->slices_in,  memory->slices,     memory->gpc_in,     memory->sm_in,      memory->sm_out,
                    memory->coalescers, memory->dram_to_l2, memory->l2_to_dram, memory->l2_to_sm,   memory->sm_to_l2};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) free(arrays[i]);
  free(memory);
}

int64_t ftl_memory_max_window_cycles(const ftl_memory *memory) { return memory->max_window_cycles; }

void ftl_memory_submit(ftl_memory *memory, const ftl_mem_request *requests, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    FTL_CHECK(requests[i].time >= memory->until && (i == 0 || requests[i].time >= requests[i - 1].time),
              "memory: SM %d submits a request of cycle %lld out of order", requests[i].sm,
              (long long)requests[i].time);
    FTL_CHECK(requests[i].sm < memory->num_sms && (requests[i].sectors & 15) != 0,
              "memory: a request of SM %d is malformed", requests[i].sm);
  }
  ftl_memory_flow_start(memory, requests, count);
  memory->num_requests += count;
}

// Runs L2 and DRAM to the L2 cycle before which every request's arrival at a slice is known. DRAM is kept far enough
// ahead of L2 that every fill of the cycles to come is known, and never ahead of a request that could still come.
static void run_events(ftl_memory *memory, int64_t horizon) {
  ftl_wheel *events = &memory->events;
  while (events->now < horizon) {
    int64_t end = events->now + memory->lead_cycles;
    if (end > horizon) end = horizon;
    for (; events->now < end; events->now++) {
      if (events->count > 0) ftl_memory_flow_cycle(memory);
    }
    int64_t num_done;
    int64_t dram_until = ftl_memory_convert(memory->l2_to_dram, end + memory->to_dram_cycles);
    const ftl_dram_done *done = ftl_dram_advance(memory->dram, dram_until, &num_done);
    for (int64_t i = 0; i < num_done; i++) ftl_memory_flow_dram_done(memory, done[i].cookie, done[i].cycle);
  }
}

static void run_ports(ftl_memory *memory, int64_t horizon) {
  ftl_wheel *events = &memory->port_events;
  for (; events->now < horizon; events->now++) {
    if (events->count > 0) ftl_memory_flow_ports(memory);
  }
}

void ftl_memory_advance(ftl_memory *memory, int64_t until) {
  FTL_CHECK(until > memory->until && until - memory->until <= memory->max_window_cycles,
            "memory: a window from cycle %lld to %lld, at most %lld cycles are allowed", (long long)memory->until,
            (long long)until, (long long)memory->max_window_cycles);
  memory->num_replies = memory->num_messages = 0;
  int64_t known = ftl_memory_convert(memory->sm_to_l2, until) + memory->request_cycles;
  run_events(memory, known);
  run_ports(memory, known + memory->hit_cycles + memory->reply_cycles);
  memory->until = until;
}

const ftl_mem_reply *ftl_memory_replies(const ftl_memory *memory, int64_t *count) {
  *count = memory->num_replies;
  return memory->replies;
}

const ftl_mem_message *ftl_memory_messages(const ftl_memory *memory, int64_t *count) {
  *count = memory->num_messages;
  return memory->messages;
}

bool ftl_memory_is_idle(const ftl_memory *memory) {
  return memory->num_requests == 0 && memory->events.count == 0 && ftl_dram_is_idle(memory->dram);
}

void ftl_memory_settle(ftl_memory *memory) {
  int64_t bytes = FTL_SECTOR_BYTES * ftl_l2_tags_settle(memory->tags);
  memory->settled_bytes += bytes * (1000 + memory->ecc_inline_milli) / 1000;
}

ftl_memory_counters ftl_memory_counters_get(const ftl_memory *memory) {
  ftl_memory_counters counters = memory->counters;
  ftl_dram_counters dram = ftl_dram_counters_get(memory->dram);
  counters.dram_read_bytes = dram.read_bytes;
  counters.dram_write_bytes = dram.write_bytes + memory->settled_bytes;
  counters.dram_row_hits = dram.row_hits;
  counters.dram_row_misses = dram.row_misses;
  counters.dirty_sectors = ftl_l2_tags_dirty_sectors(memory->tags);
  return counters;
}

void ftl_memory_foul(ftl_memory *memory, int64_t bytes) { ftl_l2_tags_foul(memory->tags, bytes); }

void ftl_memory_set_hit_ratio(ftl_memory *memory, int64_t milli) { ftl_l2_tags_set_hit_ratio(memory->tags, milli); }

static void reset_ports(ftl_noc_port *ports, int64_t count) {
  for (int64_t i = 0; i < count; i++) ports[i].free_from = ports[i].taken_bytes = 0;
}

void ftl_memory_restart(ftl_memory *memory) {
  FTL_CHECK(ftl_memory_is_idle(memory), "memory: restarted with %lld requests in flight",
            (long long)memory->num_requests);
  reset_ports(memory->sm_out, memory->num_sms);
  reset_ports(memory->sm_in, memory->num_sms);
  reset_ports(memory->gpc_in, memory->num_gpcs);
  reset_ports(memory->slices_in, memory->num_slices);
  reset_ports(memory->slices, memory->num_slices);
  reset_ports(memory->far_links, 2);
  for (int32_t g = 0; g < memory->num_gpcs; g++) ftl_l2_coalescer_restart(&memory->coalescers[g]);
  ftl_wheel_restart(&memory->events);
  ftl_wheel_restart(&memory->port_events);
  ftl_dram_restart(memory->dram);
  memory->until = memory->settled_bytes = 0;
  memory->next_sequence = 0;
  memory->counters = (ftl_memory_counters){0};
  memory->num_replies = memory->num_messages = 0;
}
