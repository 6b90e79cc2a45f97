#include "engine/sampled/gpu_steps.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"
#include "base/sectors.h"
#include "engine/sampled/gpu_run.h"
#include "engine/sampled/latency_pool.h"
#include "machine/sm/l1.h"

enum { CANCEL_EVENTS = 4096 };  // events between looks at the cancel flag

int64_t ftl_gpu_pace_of(const ftl_gpu_run *run, int32_t slot, int64_t latency_cycles) {
  const ftl_cta_state *state = &run->slots[slot];
  int32_t resident = run->resident[ftl_gpu_sm_of(run, slot)];
  if (state->is_bare)
    return FTL_TICKS_PER_SIXTEENTH * ftl_step_times_get_bare(run->times, state->segment, resident, latency_cycles);
  bool later = run->plan.stride > 0 && state->cta >= run->plan.stride;
  int64_t sixteenths = later ? ftl_step_times_get_later(run->times, state->segment, resident, latency_cycles)
                             : ftl_step_times_get(run->times, state->segment, resident, latency_cycles);
  return FTL_TICKS_PER_SIXTEENTH * sixteenths;
}

// The iterations of the group that the CTA has come to, as far as its loop has them.
static int64_t count_of_group(const ftl_gpu_run *run, const ftl_cta_state *state) {
  int64_t group = run->plan.group, left = state->trips - state->iteration;
  if (group == 1) return 1;
  int64_t count = group - ftl_modulo(state->first_value + state->iteration, group);
  return count < left ? count : left;
}

// The segments of the outer loop come again, or not at all.
static int32_t segment_after(const ftl_gpu_run *run, ftl_cta_state *state) {
  const ftl_outer_loop *outer = &run->segments->outer;
  if (outer->loop < 0) return state->segment + 1;
  if (state->segment == outer->last && state->outer_left > 0) {
    state->outer_left--;
    state->outer++;
    return outer->first;
  }
  if (state->segment + 1 != outer->first) return state->segment + 1;
  int64_t trips = ftl_segments_outer_trips(run->segments, run->launch->warps, state->cta, &state->outer);
  state->outer_left = trips - 1;
  return trips > 0 ? outer->first : outer->last + 1;
}

// Moves to the next segment with something to run; false at the CTA's end.
static bool try_next_segment(ftl_gpu_run *run, int32_t slot) {
  ftl_cta_state *state = &run->slots[slot];
  if (state->segment % 2 == 1 && (state->iteration += state->count) < state->trips) {
    state->count = count_of_group(run, state);
    return true;
  }
  while ((state->segment = segment_after(run, state)) < run->num_segments) {
    state->iteration = 0;
    state->count = 1;
    if (state->segment % 2 == 1) {
      ftl_cta_at at = ftl_gpu_cta_at(run, ftl_gpu_member(run, slot, 0), state->outer);
      state->trips =
          ftl_segments_trips_in(run->segments, run->launch->warps, state->segment / 2, &at, &state->first_value);
      if (state->trips == 0) {
        if (!state->is_bare)
          state->untimed_ticks += FTL_TICKS_PER_SIXTEENTH * ftl_step_times_least_before(run->times, state->segment);
        continue;
      }
      state->count = count_of_group(run, state);
      state->pace_ticks = ftl_gpu_pace_of(run, slot, run->times->latency_cycles[0]);
    }
    ftl_gpu_set_cursors(run, slot);
    return true;
  }
  return false;
}

// A step whose tiles are still to come is put off until they are there: were its own loads issued now with a later
// time, they would occupy L2 and DRAM ahead of others' that come before them.
static bool try_put_off(ftl_gpu_run *run, ftl_event event) {
  ftl_cta_state *state = &run->slots[event.slot];
  int64_t *due_ticks = &state->arrival_ticks[state->step % FTL_TILE_MAX_STAGES], arrival_ticks = *due_ticks;
  *due_ticks = 0;
  if (arrival_ticks <= event.ticks) return false;
  ftl_event_heap_push(&run->heap, (ftl_event){.ticks = arrival_ticks, .slot = event.slot});
  return true;
}

static void end_step(ftl_gpu_run *run, int32_t slot, int64_t now_ticks) {
  ftl_cta_state *state = &run->slots[slot];
  if (state->segment % 2 == 1) state->step++;
  state->is_ending = !try_next_segment(run, slot);
  ftl_event_heap_push(&run->heap, (ftl_event){.ticks = now_ticks, .slot = slot});
}

static int64_t moved_sectors(const ftl_traffic *traffic) {
  return traffic->counts.asked_sectors + traffic->counts.l1_hit_sectors + traffic->counts.store_sectors;
}

// Straight code stores when it has its loads: a row that a CTA holds is read and not yet written, and at a launch's end
// as many lines of what it wrote are L2's latest. Code that only stores, as behind a loop, does so as it comes to it.
// An event of a loop stands for many iterations, whose stores come among their loads.
static bool stores_last(int32_t segment_idx, const ftl_segment *segment) {
  bool loads = false, stores = false;
  for (int32_t i = 0; i < segment->num_refs; i++) {
    loads |= !segment->refs[i].is_store;
    stores |= segment->refs[i].is_store;
  }
  return segment_idx % 2 == 0 && loads && stores;
}

// Time that a step takes of the port of one SM.
typedef struct port_times {
  int64_t asking_ticks, intake_ticks, storing_ticks;
} port_times;

static port_times port_times_of(const ftl_step_wait *wait) {
  return (port_times){wait->asking_ticks, wait->intake_ticks, wait->stores.sm_ticks};
}

static void set_port_times(ftl_step_wait *wait, port_times times) {
  wait->asking_ticks = times.asking_ticks;
  wait->intake_ticks = times.intake_ticks;
  wait->stores.sm_ticks = times.storing_ticks;
}

static port_times longer_of(port_times a, port_times b) {
  return (port_times){ftl_larger(a.asking_ticks, b.asking_ticks), ftl_larger(a.intake_ticks, b.intake_ticks),
                      ftl_larger(a.storing_ticks, b.storing_ticks)};
}

// What the slot's step accesses at once, or what it has put off. The CTAs of a cluster do so side by side, each through
// the port of its SM. Of a stream, work is what it moves.
static ftl_status access_tiles(ftl_gpu_run *run, int32_t slot, bool put_off, int64_t now_ticks, ftl_step_wait *wait,
                               ftl_error *error) {
  ftl_cta_state *state = &run->slots[slot];
  const ftl_segment *segment = &run->segments->segments[state->segment];
  int64_t moved = moved_sectors(run->traffic), stored = run->traffic->counts.store_sectors;
  const port_times before = port_times_of(wait);
  port_times most = before;
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    ftl_cta_member member = ftl_gpu_member(run, slot, rank);
    set_port_times(wait, before);
    for (int32_t i = 0; i < segment->num_refs; i++)
      if ((run->stores_last[state->segment] && segment->refs[i].is_store) == put_off &&
          !ftl_gpu_try_access(run, member, i, now_ticks, wait))
        return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the tiles seen");
    most = longer_of(most, port_times_of(wait));
  }
  set_port_times(wait, most);
  int64_t work = run->plan.is_stream ? moved_sectors(run->traffic) - moved : 0;
  state->work += work;
  run->work += work;
  state->stored += run->traffic->counts.store_sectors - stored;
  return FTL_OK;
}

// The step's stores are made: an SM stores no faster than L2 takes it.
static void hand_on_stores(ftl_gpu_run *run, int32_t slot, int64_t now_ticks) {
  ftl_cta_state *state = &run->slots[slot];
  if (state->wait.stores.l2_ticks == 0) {
    end_step(run, slot, now_ticks);
    return;
  }
  state->is_storing = true;
  ftl_event_heap_push(&run->heap, (ftl_event){.ticks = now_ticks, .slot = slot});
}

static ftl_status make_stores(ftl_gpu_run *run, ftl_event event, ftl_error *error) {
  ftl_cta_state *state = &run->slots[event.slot];
  state->is_loaded = false;
  ftl_status status = access_tiles(run, event.slot, true, event.ticks, &state->wait, error);
  if (status == FTL_OK) hand_on_stores(run, event.slot, event.ticks);
  return status;
}

// All but the step's stores is over at end_ticks.
static void end_loads(ftl_gpu_run *run, int32_t slot, int64_t end_ticks) {
  ftl_cta_state *state = &run->slots[slot];
  if (!run->stores_last[state->segment]) {
    hand_on_stores(run, slot, end_ticks);
    return;
  }
  state->is_loaded = true;
  ftl_event_heap_push(&run->heap, (ftl_event){.ticks = end_ticks, .slot = slot});
}

// Hands the stores on, and comes again when L2 should have taken them, until nobody has stored ahead meanwhile.
static void store(ftl_gpu_run *run, ftl_event event) {
  ftl_cta_state *state = &run->slots[event.slot];
  int64_t end_ticks;
  if (state->wait.stores.l2_ticks > 0) {
    state->made_ticks = event.ticks - state->wait.stores.sm_ticks;
    end_ticks = ftl_traffic_take_stores(run->traffic, &state->wait.stores, event.ticks);
    state->wait.stores.l2_ticks = 0;
  } else {
    end_ticks = ftl_traffic_stores_taken(run->traffic, state->made_ticks, event.ticks);
  }
  if (end_ticks > event.ticks) {
    ftl_event_heap_push(&run->heap, (ftl_event){.ticks = end_ticks, .slot = event.slot});
    return;
  }
  state->is_storing = false;
  end_step(run, event.slot, event.ticks);
}

// What others asked for since the step's loads were made delays them as far as they still wait, or were asked for only
// now: it came ahead of their last sectors.
static void look_again(ftl_gpu_run *run, ftl_event event) {
  ftl_cta_state *state = &run->slots[event.slot];
  ftl_traffic_waiting waiting = {
      .marks = state->wait.marks,
      .sm = ftl_gpu_sm_of(run, event.slot),
      .made_ticks = state->made_ticks,
      .due_ticks = state->made_ticks + state->wait.intake_ticks,
      .served_ticks = state->made_ticks + state->wait.asking_ticks < event.ticks ? event.ticks : 0};
  int64_t late_ticks = ftl_traffic_overtaken(run->traffic, &waiting);
  for (uint64_t due = state->wait.due; due != 0; due &= due - 1)
    state->arrival_ticks[__builtin_ctzll(due)] += late_ticks;
  int64_t end_ticks = state->end_ticks + (state->wait.waits ? late_ticks : 0);
  state->is_waiting = false;
  end_loads(run, event.slot, end_ticks > event.ticks ? end_ticks : event.ticks);
}

static bool is_longer_than(const ftl_tile_marks *marks, int64_t ticks) {
  return marks->l2_ticks > ticks || marks->far_ticks > ticks || marks->dram_ticks > ticks || marks->gpc_ticks > ticks;
}

// What the state's segment takes more because its code is not in the SM's instruction cache yet.
static int64_t cold_time(const ftl_gpu_run *run, ftl_cta_state *state) {
  if (state->segment < state->first_cold) return 0;
  state->first_cold = state->segment + 1;
  if (state->is_bare) return FTL_TICKS_PER_SIXTEENTH * ftl_step_times_bare_cold(run->times, state->segment);
  return FTL_TICKS_PER_SIXTEENTH * run->times->cold_sixteenths[state->segment];
}

// What the slot's CTA takes more where it begins while the SM's others are in other segments than its first.
static int64_t succession_time(const ftl_gpu_run *run, int32_t slot) {
  const ftl_cta_state *state = &run->slots[slot];
  if (run->times->most_ctas < 2 || state->segment != run->times->first_timed || state->is_bare) return 0;
  return FTL_TICKS_PER_SIXTEENTH * run->times->succession.extra_sixteenths * ftl_gpu_num_elsewhere(run, slot) /
         (run->times->most_ctas - 1);
}

// Of the loads that the slot's step waits for in its time. The first tiles of a loop that runs once are asked for by
// the code before it, which has no time of its own: where both load, one behind the other, each has half of the wait.
static int64_t latency_of_step(const ftl_gpu_run *run, ftl_cta_state *state, const ftl_step_wait *wait) {
  int64_t own = wait->latency_cycles, before = state->latency_before_cycles;
  int64_t latency = own > 0 && before > 0 ? (own + before) / 2 : own + before;
  state->latency_before_cycles = run->is_timed[state->segment] ? 0 : latency;
  return ftl_larger(latency, run->times->latency_cycles[0]);
}

// Of the slot's step or group of steps, all that it waits for included, in ticks.
static int64_t time_of_step(ftl_gpu_run *run, int32_t slot, const ftl_step_wait *wait) {
  ftl_cta_state *state = &run->slots[slot];
  state->pace_ticks = ftl_gpu_pace_of(run, slot, latency_of_step(run, state, wait));
  int64_t ticks = state->pace_ticks * state->count;
  ticks += ftl_gpu_deviation(run, slot, ticks);
  ticks += cold_time(run, state) + succession_time(run, slot);
  if (state->segment == run->times->first_timed) {
    ticks -= state->held_ticks;
    state->held_ticks = 0;
  }
  ticks += wait->queue_ticks + state->untimed_ticks * run->resident[ftl_gpu_sm_of(run, slot)];
  state->untimed_ticks = 0;
  return ticks > wait->least_ticks ? ticks : wait->least_ticks;
}

// What a spill of the present segment writes.
static void write_local_lines(ftl_gpu_run *run, int32_t slot, int64_t now_ticks) {
  for (int32_t rank = 0; run->local.lines && rank < run->cluster_ctas; rank++) {
    ftl_cta_member member = ftl_gpu_member(run, slot, rank);
    int32_t side = run->traffic->homes[ftl_gpu_sm_of(run, member.slot)].side;
    ftl_traffic_settle(run->traffic);
    int64_t written =
        ftl_local_lines_store(&run->local, member.slot, run->slots[slot].segment, side, run->traffic->tags);
    ftl_traffic_spill(run->traffic, written, now_ticks);
  }
}

static ftl_status step(ftl_gpu_run *run, ftl_event event, ftl_error *error) {
  ftl_cta_state *state = &run->slots[event.slot];
  if (state->is_ending) {
    state->is_ending = false;
    ftl_gpu_end_cta(run, event.slot, event.ticks);
    return FTL_OK;
  }
  if (state->is_waiting) {
    look_again(run, event);
    return FTL_OK;
  }
  if (state->is_loaded) return make_stores(run, event, error);
  if (state->is_storing) {
    store(run, event);
    return FTL_OK;
  }
  if (try_put_off(run, event)) return FTL_OK;
  ftl_step_wait *wait = &state->wait;
  *wait = (ftl_step_wait){0};
  ftl_status status = access_tiles(run, event.slot, false, event.ticks, wait, error);
  if (status != FTL_OK) return status;
  write_local_lines(run, event.slot, event.ticks);
  if (!run->plan.is_stream) {
    state->work += run->work_of_segment[state->segment] * state->count;
    run->work += run->work_of_segment[state->segment] * state->count;
  }
  run->num_steps++;
  int64_t end_ticks = event.ticks + time_of_step(run, event.slot, wait);
  int64_t looks_ticks = event.ticks + run->traffic->hit_latency_cycles * FTL_TICKS_PER_CYCLE;
  bool asks_long = event.ticks + wait->asking_ticks > looks_ticks;
  if (asks_long) looks_ticks = event.ticks + wait->asking_ticks;
  bool is_straight = state->segment % 2 == 0;  // CTAs that start together ask for a lot together
  if ((is_straight && asks_long) || is_longer_than(&wait->marks, looks_ticks)) {
    state->made_ticks = event.ticks;
    state->is_waiting = true;
    state->end_ticks = end_ticks;
    ftl_event_heap_push(&run->heap, (ftl_event){.ticks = looks_ticks, .slot = event.slot});
  } else {
    end_loads(run, event.slot, end_ticks);
  }
  return FTL_OK;
}

static ftl_status run_events(ftl_gpu_run *run, ftl_error *error) {
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  while (ftl_cta_scheduler_fill(run->scheduler, starts)) ftl_gpu_start_cluster(run, starts);
  for (int64_t events = 1; !ftl_event_heap_is_empty(&run->heap); events++) {
    if (events % CANCEL_EVENTS == 0 && ftl_launch_is_cancelled(run->launch))
      return ftl_error_set(error, FTL_INTERRUPTED, "interrupted");
    ftl_event event = ftl_event_heap_pop(&run->heap);
    // The next event is likely to be that of the CTA that is first now: a fifth of this loop was waiting for its state.
    for (int32_t i = 1; i < run->heap.count && i <= 2; i++) __builtin_prefetch(&run->slots[run->heap.events[i].slot]);
    ftl_status status = step(run, event, error);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}

static void find_ref_steps(ftl_gpu_run *run) {
  for (int32_t s = 0; s < run->num_segments; s++) {
    const ftl_segment *segment = &run->segments->segments[s];
    if (segment->num_refs > run->num_cursors) run->num_cursors = segment->num_refs;
    run->stores_last[s] = stores_last(s, segment);
    run->is_timed[s] = ftl_step_times_has(run->times, s);
    for (int32_t i = 0; i < segment->num_refs; i++) {
      run->steps[s][i] = ftl_ref_step_of(run->segments->tile, &segment->refs[i]);
    }
  }
}

// L2 is given for what a launch stores what the SM that ran in detail gave it.
static void find_store_cost(ftl_gpu_run *run) {
  const ftl_sm_counters *sm = &run->times->storing;
  ftl_stored_parts stored = {sm->global_store_bytes, sm->global_store_sectors, sm->global_store_masks};
  ftl_stored_parts added = {sm->added_bytes, sm->added_sectors, sm->added_requests};
  ftl_traffic_set_store_costs(run->traffic, stored, added);
}

static void find_work(ftl_gpu_run *run) {
  for (int32_t s = 0; s < run->num_segments; s++)
    run->work_of_segment[s] = ftl_step_times_get(run->times, s, run->times->most_ctas, run->times->latency_cycles[0]);
}

static ftl_status allocate(ftl_gpu_run *run, ftl_error *error) {
  size_t num_sms = (size_t)run->launch->arch->chip_num_sms, num_slots = num_sms * (size_t)run->ctas_per_sm;
  run->slots = calloc(num_slots, sizeof *run->slots);
  run->sm_of_slot = calloc(num_slots, sizeof *run->sm_of_slot);
  run->resident = calloc(num_sms, sizeof *run->resident);
  run->active_since_cycle = calloc(num_sms, sizeof *run->active_since_cycle);
  run->has_code = calloc(num_sms, sizeof *run->has_code);
  ftl_status status = ftl_cta_exprs_init(&run->cta_exprs, run->segments->tile, error);
  if (status != FTL_OK) return status;
  ftl_segments_add_exprs(run->segments, run->launch->warps, &run->cta_exprs);
  run->cta_values = calloc(num_slots * (size_t)run->cta_exprs.count, sizeof *run->cta_values);
  run->cursors = calloc(num_slots * (size_t)run->num_cursors + 1, sizeof *run->cursors);
  run->trails = calloc(num_slots * (size_t)run->num_cursors + 1, sizeof *run->trails);
  run->members = calloc(num_slots * (size_t)run->cluster_ctas, sizeof *run->members);
  run->heap.events = calloc(num_slots, sizeof *run->heap.events);
  if (!run->slots || !run->sm_of_slot || !run->members || !run->resident || !run->active_since_cycle ||
      !run->has_code || !run->cta_values || !run->cursors || !run->trails || !run->heap.events)
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for tile steps");
  for (size_t slot = 0; slot < num_slots; slot++) {
    run->sm_of_slot[slot] = (int32_t)slot / run->ctas_per_sm;
    run->slots[slot].start_cycle = INT64_MAX;
  }
  int64_t l1_bytes = ftl_l1_capacity_bytes(run->launch->arch, run->launch->warps, run->ctas_per_sm);
  if (run->segments->has_direct && !ftl_l1_tiles_try_init(&run->l1, ftl_l1_size_of(run->launch->arch, l1_bytes),
                                                          (int64_t)num_sms, (int64_t)num_slots))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for tile steps");
  status = ftl_local_lines_init(&run->local, run->launch, run->traffic->tags, error);
  if (status != FTL_OK) return status;
  return ftl_cta_scheduler_create(&run->scheduler, run->launch->arch, ftl_launch_num_ctas(run->launch),
                                  run->ctas_per_sm, run->cluster_ctas, error);
}

static void release(ftl_gpu_run *run) {
  ftl_l1_tiles_fini(&run->l1);
  free(run->slots);
  free(run->sm_of_slot);
  free(run->members);
  free(run->resident);
  free(run->active_since_cycle);
  free(run->has_code);
  ftl_cta_exprs_fini(&run->cta_exprs);
  free(run->cta_values);
  free(run->cursors);
  free(run->trails);
  free(run->heap.events);
  ftl_local_lines_fini(&run->local);
  ftl_cta_scheduler_destroy(run->scheduler);
}

ftl_status ftl_gpu_steps_run(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times,
                             ftl_walk_plan plan, ftl_traffic *traffic, ftl_gpu_steps *out, ftl_error *error) {
  *out = (ftl_gpu_steps){0};
  ftl_gpu_run run = {.launch = launch,
                     .segments = segments,
                     .plan = plan,
                     .times = times,
                     .traffic = traffic,
                     .out = out,
                     .ctas_per_sm = launch->occupancy.ctas_per_sm,
                     .cluster_ctas = launch->tile->cluster_ctas,
                     .num_tiles_taken = plan.stride,
                     .num_segments = 2 * segments->num_loops + 1};
  find_ref_steps(&run);
  ftl_gpu_find_deviations(&run);
  find_store_cost(&run);
  if (plan.period > 0) find_work(&run);
  ftl_status status = allocate(&run, error);
  if (status == FTL_OK) status = run_events(&run, error);
  int64_t taken_cycles = traffic->intake.free_ticks / FTL_TICKS_PER_CYCLE;  // stores that wait in queues hold up no CTA
  if (taken_cycles > out->end_cycle) out->end_cycle = taken_cycles;
  // Skipped periods kept every SM as busy as the average of those that ran.
  if (status == FTL_OK && run.skipped_cycles > 0) {
    int64_t ran = out->end_cycle;
    out->sm_active_cycles += (int64_t)((__extension__(__int128) out->sm_active_cycles) * run.skipped_cycles / ran);
    out->cta_cycles += (int64_t)((__extension__(__int128) out->cta_cycles) * run.skipped_cycles / ran);
    out->end_cycle += run.skipped_cycles;
  }
  out->end_cycle += traffic->hit_latency_cycles;  // CTAs end before their last stores are answered, the launch does not
  ftl_traffic_settle(traffic);
  // Stores do not wait, but the launch ends when what they wrote has passed DRAM. What is written back behind it takes
  // time of the next one, in a stream of launches as much as the last one's took of this.
  int64_t settled = ftl_l2_tags_settle(traffic->tags);
  if (launch->l2_before != FTL_L2_PROFILED) traffic->counts.settled_sectors = settled;
  int64_t dram_cycles = ftl_traffic_dram_cycles(traffic);
  if (dram_cycles > out->end_cycle) out->end_cycle = dram_cycles;
  if (launch->l2_before == FTL_L2_PROFILED) traffic->counts.settled_sectors = settled;
  out->counts = traffic->counts;
  release(&run);
  return status;
}
