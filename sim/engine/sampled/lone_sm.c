#include "engine/sampled/lone_sm.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/sectors.h"

// Cycles without progress after which the SM is called stuck: far longer than any latency that is asked for.
enum { STUCK_WINDOWS = 100000, PORT_UNIT = 256 };

typedef struct lone_memory {
  int64_t latency, line_cost;  // cycles; 1/PORT_UNIT cycles that a line occupies the read port
  int64_t port_free;           // 1/PORT_UNIT cycles
  ftl_mem_reply *pending;      // ring, in order of time
  int64_t head, count, capacity;
} lone_memory;

static void answer(lone_memory *memory, const ftl_mem_request *request) {
  int64_t ready = (request->time + memory->latency) * PORT_UNIT;
  if (request->kind == FTL_MEM_READ) {
    if (memory->port_free > ready) ready = memory->port_free;
    ready += memory->line_cost * ftl_num_sectors(request->sectors) / 4;
    memory->port_free = ready;
  } else if (memory->port_free > ready) {
    ready = memory->port_free;  // replies stay in order of time
  }
  FTL_CHECK(memory->count < memory->capacity, "more than %lld requests in flight from one SM",
            (long long)memory->capacity);
  memory->pending[(memory->head + memory->count++) % memory->capacity] =
      (ftl_mem_reply){.time = ready / PORT_UNIT, .transaction = request->transaction};
}

static void deliver_until(lone_memory *memory, ftl_sm *sm, int64_t until) {
  while (memory->count > 0 && memory->pending[memory->head].time < until) {
    ftl_sm_deliver(sm, &memory->pending[memory->head]);
    memory->head = (memory->head + 1) % memory->capacity;
    memory->count--;
  }
}

static void run_windows(ftl_sm *sm, lone_memory *memory, int64_t *end_cycles) {
  int64_t now = 0, window = memory->latency, insts = 0, idle_windows = 0;
  while (ftl_sm_is_busy(sm)) {
    int64_t until = now + window;
    deliver_until(memory, sm, until);
    ftl_sm_advance(sm, until);
    int32_t count;
    const ftl_mem_request *requests = ftl_sm_requests(sm, &count);
    for (int32_t i = 0; i < count; i++) answer(memory, &requests[i]);
    const ftl_sm_finished *finished = ftl_sm_finished_ctas(sm, &count);
    for (int32_t i = 0; i < count; i++) end_cycles[finished[i].slot] = finished[i].time;
    now = until;
    idle_windows = ftl_sm_counters_get(sm)->warp_insts == insts ? idle_windows + 1 : 0;
    insts = ftl_sm_counters_get(sm)->warp_insts;
    char text[2048] = "";
    if (idle_windows > STUCK_WINDOWS) ftl_sm_describe(sm, text, sizeof text);
    FTL_CHECK(idle_windows <= STUCK_WINDOWS, "the lone SM is stuck at cycle %lld:\n%s", (long long)now, text);
  }
}

ftl_status ftl_lone_sm_run(const ftl_sm_config *config, int64_t sm_khz, int64_t latency_cycles, const int64_t *ctas,
                           const int64_t *starts, int32_t num_ctas, ftl_sm_on_issue on_issue, void *context,
                           int64_t *end_cycles, ftl_sm_counters *counters, ftl_error *error) {
  const ftl_arch *arch = config->arch;
  lone_memory memory = {.latency = latency_cycles, .capacity = 1 << 17};
  memory.line_cost =
      arch->l1_line_bytes * PORT_UNIT * sm_khz / (arch->noc_sm_read_bytes_per_cycle * arch->clock_l2_khz);
  ftl_sm *sm = NULL;
  ftl_sm_config alone = *config;
  alone.is_alone = true;
  ftl_status status = ftl_sm_create(&sm, &alone, error);
  if (status != FTL_OK) return status;
  memory.pending = malloc((size_t)memory.capacity * sizeof *memory.pending);
  if (memory.pending) {
    if (config->bulk)
      ftl_sm_observe_jumps(sm, on_issue, context);
    else
      ftl_sm_observe(sm, on_issue, context);
    for (int32_t i = 0; i < num_ctas; i++) ftl_sm_launch(sm, i, ctas[i], starts[i]);
    run_windows(sm, &memory, end_cycles);
    *counters = *ftl_sm_counters_get(sm);
  } else {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for requests of one SM");
  }
  free(memory.pending);
  ftl_sm_destroy(sm);
  return status;
}
