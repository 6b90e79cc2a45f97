#include "engine/full.h"

#include <stdlib.h>

#include "base/check.h"
#include "engine/request_merge.h"
#include "engine/sampled/dram_rate.h"
#include "engine/sm_pool.h"
#include "machine/cta/cta_scheduler.h"

// Cycles without any instruction issued, with nothing in flight in memory, after which the machine is called stuck.
enum { STUCK_CYCLES = 100000 };

typedef struct full_run {
  const ftl_launch *launch;
  ftl_memory *memory;
  ftl_sm_pool *pool;
  ftl_cta_scheduler *scheduler;
  ftl_request_merge merge;
  bool *advanced;  // per SM: was busy in this window
  ftl_sm_finished *finished;
  int32_t *finished_sm;
  int32_t num_sms, num_finished;
  int64_t now, window, end_cycle;
  bool memory_lags;   // the memory system works a window out while the SMs run the next one
  int64_t next_tile;  // of the counter of dynamic tiles
  int64_t last_insts, last_progress_cycle;
} full_run;

static ftl_status allocate(full_run *run, int64_t sm_khz, ftl_error *error) {
  const ftl_launch *launch = run->launch;
  const ftl_arch *arch = launch->arch;
  int64_t num_ctas = ftl_launch_num_ctas(launch);
  ftl_sm_config config = {.arch = arch,
                          .is_code_far = run->launch->l2_before == FTL_L2_PROFILED,
                          .ctas_alike = ftl_warp_program_has_ctas_alike(run->launch->warps),
                          .program = launch->warps,
                          .num_slots = launch->occupancy.ctas_per_sm,
                          .persistent_stride = launch->tile->persistent ? num_ctas : 0,
                          .dynamic_tiles = launch->tile->handout != FTL_TILES_BY_STRIDE,
                          .bulk = !launch->no_bulk};
  ftl_status status = FTL_OK;
  if (!run->memory) status = ftl_memory_create(&run->memory, arch, sm_khz, error);
  if (status == FTL_OK) status = ftl_sm_pool_create(&run->pool, &config, run->num_sms, launch->num_threads, error);
  if (status == FTL_OK)
    status = ftl_cta_scheduler_create(&run->scheduler, arch, num_ctas, launch->occupancy.ctas_per_sm,
                                      launch->tile->cluster_ctas, error);
  if (status != FTL_OK) return status;
  run->next_tile = num_ctas;
  // Replies to one window's requests then come after the next window. One thread is quicker with fewer windows.
  run->memory_lags = launch->num_threads > 1 && ftl_memory_max_window_cycles(run->memory) >= 2;
  run->window = ftl_memory_max_window_cycles(run->memory) / (run->memory_lags ? 2 : 1);
  if (run->window > arch->launch_cta_start_cycles) run->window = arch->launch_cta_start_cycles;
  bool has_peers = launch->tile->cluster_ctas > 1;
  if (has_peers && run->window > arch->tma_peer_latency_cycles) run->window = arch->tma_peer_latency_cycles;
  size_t slots = (size_t)run->num_sms * (size_t)launch->occupancy.ctas_per_sm;
  run->advanced = calloc((size_t)run->num_sms, sizeof *run->advanced);
  run->finished = calloc(slots, sizeof *run->finished);
  run->finished_sm = calloc(slots, sizeof *run->finished_sm);
  if (!run->advanced || !run->finished || !run->finished_sm)
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the machine");
  return ftl_request_merge_init(&run->merge, run->window, error);
}

// The CTAs of one cluster.
static void start_ctas(full_run *run, const ftl_cta_start *starts, int32_t count) {
  ftl_mem_peer members[FTL_CTA_MAX_CLUSTER];
  for (int32_t i = 0; i < count; i++) {
    members[i] = (ftl_mem_peer){.sm = (uint16_t)starts[i].sm, .slot = (uint16_t)starts[i].slot};
    ftl_sm_launch(ftl_sm_pool_get(run->pool, starts[i].sm), starts[i].slot, starts[i].cta, starts[i].cycle);
  }
  for (int32_t i = 0; count > 1 && i < count; i++)
    ftl_sm_join(ftl_sm_pool_get(run->pool, starts[i].sm), starts[i].slot, members);
}

// Finished CTAs of this window in order of (cycle, SM, slot): the order in which the CTA scheduler hears of them.
static void collect_finished(full_run *run) {
  run->num_finished = 0;
  for (int32_t sm = 0; sm < run->num_sms; sm++) {
    if (!run->advanced[sm]) continue;
    int32_t count;
    const ftl_sm_finished *finished = ftl_sm_finished_ctas(ftl_sm_pool_get(run->pool, sm), &count);
    for (int32_t i = 0; i < count; i++) {
      int32_t at = run->num_finished++;
      for (; at > 0 && run->finished[at - 1].time > finished[i].time; at--) {
        run->finished[at] = run->finished[at - 1];
        run->finished_sm[at] = run->finished_sm[at - 1];
      }
      run->finished[at] = finished[i];
      run->finished_sm[at] = sm;
    }
  }
}

static void refill(full_run *run) {
  collect_finished(run);
  for (int32_t i = 0; i < run->num_finished; i++) {
    const ftl_sm_finished *finished = &run->finished[i];
    if (finished->time > run->end_cycle) run->end_cycle = finished->time;
    ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
    start_ctas(run, starts,
               ftl_cta_scheduler_refill(run->scheduler, run->finished_sm[i], finished->slot, finished->time, starts));
  }
}

static bool mark_busy(full_run *run) {
  bool any = false;
  for (int32_t sm = 0; sm < run->num_sms; sm++) {
    run->advanced[sm] = ftl_sm_is_busy(ftl_sm_pool_get(run->pool, sm));
    any |= run->advanced[sm];
  }
  return any;
}

// CTAs end before their stores have been answered, the launch does not.
static void deliver_replies(full_run *run) {
  int64_t count;
  const ftl_mem_reply *replies = ftl_memory_replies(run->memory, &count);
  for (int64_t i = 0; i < count; i++) {
    ftl_sm_deliver(ftl_sm_pool_get(run->pool, replies[i].sm), &replies[i]);
    if (replies[i].time > run->end_cycle) run->end_cycle = replies[i].time;
  }
}

// CTAs that took from the counter of tiles in this window get theirs in the order of their requests.
static void assign_tiles(full_run *run) {
  for (int64_t i = 0; run->launch->tile->handout != FTL_TILES_BY_STRIDE && i < run->merge.count; i++) {
    const ftl_mem_request *request = &run->merge.requests[i];
    if (request->tile_slot == 0) continue;
    ftl_sm_assign_tile(ftl_sm_pool_get(run->pool, request->sm), request->tile_slot - 1, run->next_tile++);
  }
}

// What CTAs of clusters say to each other: of what the memory found, then of what each SM that ran in this window sent.
static void deliver_messages(full_run *run) {
  int64_t num_lines;
  const ftl_mem_message *lines = ftl_memory_messages(run->memory, &num_lines);
  for (int64_t i = 0; i < num_lines; i++) ftl_sm_receive(ftl_sm_pool_get(run->pool, lines[i].to.sm), &lines[i]);
  for (int32_t sm = 0; sm < run->num_sms; sm++) {
    if (!run->advanced[sm]) continue;
    int32_t count;
    const ftl_mem_message *messages = ftl_sm_messages(ftl_sm_pool_get(run->pool, sm), &count);
    for (int32_t i = 0; i < count; i++) ftl_sm_receive(ftl_sm_pool_get(run->pool, messages[i].to.sm), &messages[i]);
  }
}

static _Noreturn void stop_stuck(full_run *run) {
  char text[4096] = "";
  for (int32_t sm = 0; sm < run->num_sms && !text[0]; sm++)
    if (run->advanced[sm]) ftl_sm_describe(ftl_sm_pool_get(run->pool, sm), text, sizeof text);
  ftl_check_failed(__FILE__, __LINE__, "no instruction since cycle %lld; now %lld; the first busy SM:\n%s",
                   (long long)run->last_progress_cycle, (long long)run->now, text);
}

static void check_progress(full_run *run) {
  int64_t insts = 0;
  for (int32_t sm = 0; sm < run->num_sms; sm++)
    insts += ftl_sm_counters_get(ftl_sm_pool_get(run->pool, sm))->warp_insts;
  if (insts != run->last_insts || run->merge.count > 0 || !ftl_memory_is_idle(run->memory))
    run->last_progress_cycle = run->now;
  run->last_insts = insts;
  if (run->now - run->last_progress_cycle > STUCK_CYCLES) stop_stuck(run);
}

// Brings the memory system to where the SMs are (or, beside them, were when they began this window).
static void advance_memory(void *context) {
  full_run *run = context;
  if (run->now == 0) return;
  ftl_memory_submit(run->memory, run->merge.requests, run->merge.count);
  ftl_memory_advance(run->memory, run->now);
}

static void do_nothing(void *context) { (void)context; }

// One window of the SMs, with what they asked for before it.
static ftl_status run_window(full_run *run, ftl_error *error) {
  int64_t from = run->now, until = from + run->window;
  ftl_sm_pool_advance(run->pool, until, run->memory_lags ? advance_memory : do_nothing, run);
  ftl_status status = ftl_request_merge_collect(&run->merge, run->pool, run->advanced, run->num_sms, from, error);
  if (status != FTL_OK) return status;
  run->now = until;
  assign_tiles(run);
  if (!run->memory_lags) advance_memory(run);
  deliver_replies(run);
  deliver_messages(run);
  refill(run);
  check_progress(run);
  return FTL_OK;
}

static ftl_status run_windows(full_run *run, ftl_error *error) {
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  for (int32_t count; (count = ftl_cta_scheduler_fill(run->scheduler, starts)) > 0;) start_ctas(run, starts, count);
  while (mark_busy(run) || run->merge.count > 0 || !ftl_memory_is_idle(run->memory)) {
    if (ftl_launch_is_cancelled(run->launch)) return ftl_error_set(error, FTL_INTERRUPTED, "interrupted");
    ftl_status status = run_window(run, error);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}

void ftl_sm_counters_add(ftl_sm_counters *sum, const ftl_sm_counters *part) {
  // Every field is an int64_t: the struct is a vector of them.
  int64_t *to = (int64_t *)sum;
  const int64_t *from = (const int64_t *)part;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

// SM cycles that DRAM needs for all that was read and written: a byte read and one written take what two bytes of a
// copy take.
static int64_t dram_cycles(const ftl_memory_counters *memory, const ftl_dram_rate *rate, int64_t sm_khz) {
  double read_s = (double)memory->dram_read_bytes / (double)rate->read_bytes_per_s;
  double write_s =
      (double)memory->dram_write_bytes * (2.0 / (double)rate->copy_bytes_per_s - 1.0 / (double)rate->read_bytes_per_s);
  return (int64_t)((read_s + write_s) * (double)sm_khz * 1000.0);
}

// Stores do not wait, and what a launch before left dirty is written for it: the launch ends when all of it has passed
// DRAM. What is written back behind it takes time of the next one, in a stream of launches as much as the last one's
// took of this.
static ftl_status read_totals(full_run *run, int64_t sm_khz, ftl_totals *out, ftl_error *error) {
  ftl_dram_rate rate;
  ftl_status status = ftl_dram_rate_get(run->launch->arch, &rate, error);
  if (status != FTL_OK) return status;
  ftl_memory_counters before = ftl_memory_counters_get(run->memory);
  ftl_memory_settle(run->memory);
  *out = (ftl_totals){.sm_khz = sm_khz, .cycles = run->end_cycle, .memory = ftl_memory_counters_get(run->memory)};
  for (int32_t sm = 0; sm < run->num_sms; sm++)
    ftl_sm_counters_add(&out->sm, ftl_sm_counters_get(ftl_sm_pool_get(run->pool, sm)));
  bool is_alone = run->launch->l2_before == FTL_L2_PROFILED;
  int64_t least = dram_cycles(is_alone ? &before : &out->memory, &rate, sm_khz);
  if (least > out->cycles) out->cycles = least;
  return FTL_OK;
}

static void release(full_run *run) {
  ftl_sm_pool_destroy(run->pool);
  ftl_cta_scheduler_destroy(run->scheduler);
  ftl_request_merge_fini(&run->merge);
  free(run->advanced);
  free(run->finished);
  free(run->finished_sm);
}

ftl_status ftl_full_run(const ftl_launch *launch, int64_t sm_khz, ftl_memory **memory, ftl_totals *out,
                        ftl_error *error) {
  full_run run = {.launch = launch, .num_sms = (int32_t)launch->arch->chip_num_sms};
  if (launch->l2_before == FTL_L2_KEPT) {
    run.memory = *memory;
    ftl_memory_restart(run.memory);
  }
  ftl_status status = allocate(&run, sm_khz, error);
  if (status == FTL_OK && launch->l2_before != FTL_L2_KEPT) ftl_memory_foul(run.memory, ftl_launch_foul_bytes(launch));
  if (status == FTL_OK) ftl_memory_set_hit_ratio(run.memory, ftl_launch_hit_ratio_milli(launch));
  if (status == FTL_OK) status = run_windows(&run, error);
  if (status == FTL_OK) status = read_totals(&run, sm_khz, out, error);
  release(&run);
  if (status == FTL_OK)
    *memory = run.memory;
  else if (launch->l2_before != FTL_L2_KEPT)
    ftl_memory_destroy(run.memory);
  return status;
}
