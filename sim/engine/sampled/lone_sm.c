#include "engine/sampled/lone_sm.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/sectors.h"
#include "engine/sampled/time_units.h"
#include "engine/sampled/traffic.h"
#include "machine/dram/map.h"
#include "machine/l2/hash.h"

ftl_lone_latency ftl_lone_latency_of(const ftl_arch *arch, int64_t sm_khz, int64_t latency_cycles) {
  int64_t hit, far, miss, from_far = latency_cycles;
  ftl_traffic_latencies(arch, sm_khz, &hit, &far, &miss);
  bool is_refresh = latency_cycles > hit + far + miss && latency_cycles <= ftl_traffic_refreshing_latency(arch, sm_khz);
  if (is_refresh) from_far = hit + far + miss;
  int64_t crossing = from_far - hit < far ? from_far - hit : far;
  if (crossing < 0) crossing = 0;
  return (ftl_lone_latency){
      .near_cycles = from_far - crossing, .far_cycles = from_far, .last_cycles = latency_cycles, .local_cycles = hit};
}

// Cycles without progress after which the SM is called stuck: far longer than any latency that is asked for.
enum { STUCK_WINDOWS = 100000 };

// Requests that take equally long, answered in the order in which they were made.
typedef struct lone_queue {
  ftl_mem_reply *pending;  // ring: `time` is when the line is at the SM's read port
  uint8_t *num_sectors;    // of each that the port lets in; 0: of a write
  int64_t head, count, latency_cycles;
} lone_queue;

enum { NEAR, FAR, LAST, LOCAL, NUM_QUEUES };
enum { CAPACITY = 1 << 16 };

typedef struct lone_memory {
  ftl_l2_hash hash;
  lone_queue queues[NUM_QUEUES];
  int64_t line_256ths;                       // that a line occupies the read port
  int64_t port_free_256ths;                  // when it has passed what came before
  int64_t num_lines;                         // asked for
  int64_t lines_per_chunk, chunks_per_late;  // of so many chunks of a DRAM channel one finds it in a refresh; 0: none
} lone_memory;

// The SM is on the first side.
static lone_queue *queue_of(lone_memory *memory, const ftl_mem_request *request) {
  if (request->is_local) return &memory->queues[LOCAL];
  int64_t chunk = memory->num_lines++ / memory->lines_per_chunk;
  if (memory->chunks_per_late > 0 && (chunk + 1) % memory->chunks_per_late == 0) return &memory->queues[LAST];
  return &memory->queues[ftl_l2_hash_home(&memory->hash, request->line) == 0 ? NEAR : FAR];
}

static void ask(lone_memory *memory, const ftl_mem_request *request) {
  lone_queue *queue = queue_of(memory, request);
  FTL_CHECK(queue->count < CAPACITY, "more than %d requests in flight from one SM", CAPACITY);
  int64_t i = (queue->head + queue->count++) % CAPACITY;
  queue->pending[i] =
      (ftl_mem_reply){.time = request->time + queue->latency_cycles, .transaction = request->transaction};
  queue->num_sectors[i] = request->kind == FTL_MEM_READ ? (uint8_t)ftl_num_sectors(request->sectors) : 0;
}

static lone_queue *earliest(lone_memory *memory) {
  lone_queue *first = &memory->queues[0];
  for (lone_queue *queue = first + 1; queue < memory->queues + NUM_QUEUES; queue++) {
    if (queue->count == 0) continue;
    if (first->count == 0 || queue->pending[queue->head].time < first->pending[first->head].time) first = queue;
  }
  return first;
}

// Replies pass the port in order of time.
static void deliver_until(lone_memory *memory, ftl_sm *sm, int64_t until) {
  for (lone_queue *queue; (queue = earliest(memory))->count > 0;) {
    ftl_mem_reply reply = queue->pending[queue->head];
    int64_t at_port_256ths = reply.time * FTL_256THS_PER_CYCLE;
    if (memory->port_free_256ths > at_port_256ths) at_port_256ths = memory->port_free_256ths;
    int64_t passed_256ths = at_port_256ths + memory->line_256ths * queue->num_sectors[queue->head] / 4;
    if (passed_256ths / FTL_256THS_PER_CYCLE >= until) return;
    memory->port_free_256ths = passed_256ths;
    reply.time = passed_256ths / FTL_256THS_PER_CYCLE;
    ftl_sm_deliver(sm, &reply);
    queue->head = (queue->head + 1) % CAPACITY;
    queue->count--;
  }
}

// A CTA has ended; behind it starts the slot's next one.
static void note_end(ftl_sm *sm, const ftl_lone_ctas *ctas, const ftl_sm_finished *finished, int64_t refill_cycles) {
  int32_t slot = finished->slot, round = 0;
  while (ctas->end[round * ctas->num_slots + slot] > 0) round++;
  ctas->end[round * ctas->num_slots + slot] = finished->time;
  int64_t next = round + 1 < ctas->num_rounds ? ctas->cta[(round + 1) * ctas->num_slots + slot] : FTL_NO_CTA;
  if (next != FTL_NO_CTA) ftl_sm_launch(sm, slot, next, finished->time + refill_cycles);
}

static int64_t shortest_latency(const lone_memory *memory) {
  int64_t local = memory->queues[LOCAL].latency_cycles, other = memory->queues[NEAR].latency_cycles;
  return local < other ? local : other;
}

static void run_windows(ftl_sm *sm, lone_memory *memory, const ftl_lone_ctas *ctas, int64_t refill_cycles) {
  int64_t now = 0, window = shortest_latency(memory), insts = 0, idle_windows = 0;
  if (ctas->num_rounds > 1 && refill_cycles < window) window = refill_cycles;
  while (ftl_sm_is_busy(sm)) {
    int64_t until = now + window;
    deliver_until(memory, sm, until);
    ftl_sm_advance(sm, until);
    int32_t count;
    const ftl_mem_request *requests = ftl_sm_requests(sm, &count);
    for (int32_t i = 0; i < count; i++) ask(memory, &requests[i]);
    const ftl_sm_finished *finished = ftl_sm_finished_ctas(sm, &count);
    for (int32_t i = 0; i < count; i++) note_end(sm, ctas, &finished[i], refill_cycles);
    now = until;
    idle_windows = ftl_sm_counters_get(sm)->warp_insts == insts ? idle_windows + 1 : 0;
    insts = ftl_sm_counters_get(sm)->warp_insts;
    char text[2048] = "";
    if (idle_windows > STUCK_WINDOWS) ftl_sm_describe(sm, text, sizeof text);
    FTL_CHECK(idle_windows <= STUCK_WINDOWS, "the lone SM is stuck at cycle %lld:\n%s", (long long)now, text);
  }
}

static void set_rates(lone_memory *memory, const ftl_arch *arch, int64_t sm_khz) {
  memory->hash = ftl_l2_hash_init(arch);
  memory->line_256ths =
      arch->l1_line_bytes * FTL_256THS_PER_CYCLE * sm_khz / (arch->noc_sm_read_bytes_per_cycle * arch->clock_l2_khz);
  memory->lines_per_chunk = ftl_dram_map_init(arch).lines_per_chunk;
  if (arch->dram_trfc_cycles > 0) memory->chunks_per_late = arch->dram_trefi_cycles / arch->dram_trfc_cycles;
}

static bool try_allocate(lone_memory *memory, ftl_lone_latency latency) {
  memory->queues[NEAR].latency_cycles = latency.near_cycles;
  memory->queues[FAR].latency_cycles = latency.far_cycles;
  memory->queues[LAST].latency_cycles = latency.last_cycles;
  memory->queues[LOCAL].latency_cycles = latency.local_cycles;
  for (int i = 0; i < NUM_QUEUES; i++) {
    lone_queue *queue = &memory->queues[i];
    queue->pending = malloc(CAPACITY * sizeof *queue->pending);
    queue->num_sectors = malloc(CAPACITY * sizeof *queue->num_sectors);
    if (!queue->pending || !queue->num_sectors) return false;
  }
  return true;
}

static void release(lone_memory *memory) {
  for (int i = 0; i < NUM_QUEUES; i++) {
    free(memory->queues[i].pending);
    free(memory->queues[i].num_sectors);
  }
}

ftl_status ftl_lone_sm_run(const ftl_sm_config *config, int64_t sm_khz, ftl_lone_latency latency,
                           const ftl_lone_ctas *ctas, ftl_sm_on_issue on_issue, void *context,
                           ftl_sm_counters *counters, ftl_error *error) {
  lone_memory memory = {0};
  set_rates(&memory, config->arch, sm_khz);
  ftl_sm *sm = NULL;
  ftl_sm_config alone = *config;
  alone.is_alone = true;
  ftl_status status = ftl_sm_create(&sm, &alone, error);
  if (status != FTL_OK) return status;
  if (try_allocate(&memory, latency)) {
    if (config->bulk)
      ftl_sm_observe_jumps(sm, on_issue, context);
    else
      ftl_sm_observe(sm, on_issue, context);
    memset(ctas->end, 0, (size_t)(ctas->num_slots * ctas->num_rounds) * sizeof *ctas->end);
    for (int32_t i = 0; i < ctas->num_slots; i++) ftl_sm_launch(sm, i, ctas->cta[i], ctas->start[i]);
    run_windows(sm, &memory, ctas, config->arch->launch_cta_start_cycles);
    *counters = *ftl_sm_counters_get(sm);
  } else {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for requests of one SM");
  }
  release(&memory);
  ftl_sm_destroy(sm);
  return status;
}
