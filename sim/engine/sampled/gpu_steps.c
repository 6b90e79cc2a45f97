#include "engine/sampled/gpu_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sampled/cursor.h"
#include "engine/sampled/event_heap.h"
#include "engine/sampled/l1_tiles.h"
#include "engine/sampled/local_lines.h"
#include "engine/sampled/pace.h"
#include "engine/sampled/steady.h"
#include "machine/cta/cta_scheduler.h"

enum {
  PER_STEP_UNIT = FTL_TRAFFIC_UNIT / FTL_STEP_UNIT,
  KEPT_PERIODS = 1,      // run in any case at the end, so that the tail is real
  CANCEL_EVENTS = 4096,  // events between looks at the cancel flag
  DRAWS_A_STEP = 9,      // numbers by which drift is drawn; a segment beyond has one of the next step's
  MAX_STAGES = 8,        // the range of num_stages
};

// What a step's accesses do to it.
typedef struct step_wait {
  int64_t latency_cycles;  // longest of its loads; 0 without loads
  int64_t queue;           // longest queueing of loads that it waits for itself (1/65536 cycle)
  int64_t least;           // time of a group of steps for its loads ahead to arrive (1/65536 cycle)
  int64_t asking, intake;  // time in which the SM asks for its loads, and in which it takes them in (1/65536 cycle)
  ftl_tile_marks marks;    // of all its loads
  uint32_t due;            // arrivals that its loads set, one bit each
  bool waits;              // for one of its loads
} step_wait;

// CTAs of a cluster take their steps together: what one waits for its peers wait for too, since they share loads. The
// state of a cluster is that of its first CTA.
typedef struct cta_state {
  int64_t cta, start_cycle;   // start_cycle: INT64_MAX where no CTA is
  int64_t next_tile;          // of a persistent CTA, after `cta`
  int64_t iteration, trips;   // in the present loop
  int64_t first_value;        // of its variable
  int64_t count;              // iterations that the present event stands for
  int64_t pace;               // of one, without queueing (1/65536 cycle)
  int64_t untimed;            // of issue slots, by code whose time is that of a loop that did not run (1/65536 cycle)
  int64_t outer, outer_left;  // value of the outer loop's variable, and iterations of it after this one
  int32_t segment;
  int32_t step;                 // steps taken, all loops counted on
  int64_t arrival[MAX_STAGES];  // of what steps to come need, by step modulo MAX_STAGES (1/65536 cycle)
  bool is_waiting;              // its loads are made and it is to be seen what others asked for meanwhile
  step_wait wait;               // then: of its loads,
  int64_t made, end;            // when they were made, and when the step would end (1/65536 cycle)
} cta_state;

typedef struct steps_run {
  const ftl_launch *launch;
  const ftl_segments *segments;
  ftl_walk_plan plan;
  ftl_step_times *times;
  ftl_traffic *traffic;
  ftl_cta_scheduler *scheduler;
  cta_state *slots;
  int64_t num_tiles_taken;  // from the counter of dynamic tiles, those at the start included
  int32_t cluster_ctas;
  int32_t *members;  // per slot of a cluster's first CTA, cluster_ctas each: the slots of its CTAs
  int32_t *sm_of_slot;
  int32_t *resident;        // CTAs per SM
  int64_t *active_since;    // per SM
  ftl_ref_cursor *cursors;  // per slot, num_cursors each: of the accesses of its segment
  int32_t num_cursors;      // most accesses of a segment
  ftl_l1_tiles l1;          // where segments->has_direct
  ftl_ref_step steps[FTL_MAX_SEGMENTS][FTL_MAX_SEGMENT_REFS];
  ftl_local_lines local;
  ftl_event_heap heap;
  int32_t ctas_per_sm, num_segments;
  ftl_gpu_steps *out;
  int64_t skipped_cycles;
  ftl_steady steady;
} steps_run;

static int32_t sm_of(const steps_run *run, int32_t slot) { return run->sm_of_slot[slot]; }

// A CTA of a cluster: its own slot, and that of the cluster's state.
typedef struct cta_member {
  int32_t slot, state_slot;
  int64_t cta;
} cta_member;

static cta_member member_of(const steps_run *run, int32_t state_slot, int32_t rank) {
  return (cta_member){.slot = run->members[state_slot * run->cluster_ctas + rank],
                      .state_slot = state_slot,
                      .cta = run->slots[state_slot].cta + rank};
}

// Called when a cluster enters a segment.
static void set_cursors(steps_run *run, int32_t slot) {
  int32_t segment_idx = run->slots[slot].segment;
  const ftl_segment *segment = &run->segments->segments[segment_idx];
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    cta_member member = member_of(run, slot, rank);
    ftl_ref_cursor *cursors = &run->cursors[member.slot * run->num_cursors];
    for (int32_t i = 0; i < segment->num_refs; i++)
      if (run->steps[segment_idx][i].is_steady)
        cursors[i] = ftl_ref_cursor_at(run->segments->tile, &segment->refs[i], member.cta, run->slots[slot].outer);
  }
}

static void begin_cta(steps_run *run, int32_t slot, int64_t cta) {
  run->slots[slot].cta = cta;
  run->slots[slot].segment = 0;
  run->slots[slot].iteration = 0;
  run->slots[slot].count = 1;
  if (run->plan.stride && run->segments->tile->handout == FTL_TILES_BY_STRIDE)
    run->slots[slot].next_tile = cta + run->plan.stride;
  if (run->segments->tile->handout == FTL_TILES_ASKED_AHEAD) run->slots[slot].next_tile = run->num_tiles_taken++;
  set_cursors(run, slot);
}

static void start_cluster(steps_run *run, const ftl_cta_start *starts) {
  int32_t first = starts->sm * run->ctas_per_sm + starts->slot;
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    const ftl_cta_start *start = &starts[rank];
    int32_t slot = start->sm * run->ctas_per_sm + start->slot;
    run->slots[slot] = (cta_state){.start_cycle = start->cycle};
    run->members[first * run->cluster_ctas + rank] = slot;
    if (run->resident[start->sm]++ == 0) run->active_since[start->sm] = start->cycle;
  }
  begin_cta(run, first, starts->cta);
  ftl_event_heap_push(&run->heap, (ftl_event){.time = starts->cycle * FTL_TRAFFIC_UNIT, .slot = first});
}

static int64_t of_counts(int64_t *sum, int64_t before, int64_t times) { return *sum += (*sum - before) * times; }

// Adds `times` more of what was counted since `before`.
static void repeat_counts(ftl_traffic_counts *counts, const ftl_traffic_counts *before, int64_t times) {
  int64_t *sum = (int64_t *)counts;  // every field is an int64_t
  const int64_t *old = (const int64_t *)before;
  for (size_t i = 0; i < sizeof *counts / sizeof *sum; i++) of_counts(&sum[i], old[i], times);
}

// Called when the CTA that begins a period starts: skips the periods to come once the last ones stand for them, as many
// whole windows as there are.
static void consider_skip(steps_run *run, int64_t now) {
  ftl_steady_mark mark = {
      .time = now, .counts = run->traffic->counts, .dirty_sectors = ftl_l2_tags_dirty_sectors(run->traffic->tags)};
  ftl_steady_add(&run->steady, &mark);
  ftl_steady_window window = ftl_steady_find(&run->steady);
  int64_t left = ftl_cta_scheduler_num_left(run->scheduler) / run->plan.period - KEPT_PERIODS;
  int64_t windows = window.num_periods > 0 ? left / window.num_periods : 0;
  if (windows < 1) return;
  repeat_counts(&run->traffic->counts, &window.since.counts, windows);
  run->skipped_cycles += (now - window.since.time) / FTL_TRAFFIC_UNIT * windows;
  int64_t skipped_ctas = windows * window.num_periods * run->plan.period;
  ftl_cta_scheduler_skip(run->scheduler, skipped_ctas);
  run->out->skipped_ctas += skipped_ctas;
  run->out->period_spread_permille = window.spread_permille;
}

static void end_cta(steps_run *run, int32_t slot, int64_t now) {
  cta_state *state = &run->slots[slot];
  if (run->segments->tile->handout == FTL_TILES_ASKED_LATE) state->next_tile = run->num_tiles_taken++;
  if (run->plan.stride && state->next_tile < run->segments->tile->num_ctas) {
    begin_cta(run, slot, state->next_tile);
    ftl_event_heap_push(&run->heap, (ftl_event){.time = now, .slot = slot});
    return;
  }
  int64_t cycle = (now + FTL_TRAFFIC_UNIT - 1) / FTL_TRAFFIC_UNIT;
  if (cycle > run->out->end_cycle) run->out->end_cycle = cycle;
  int32_t ended[FTL_CTA_MAX_CLUSTER];  // a cluster that starts may take the place of the state
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) ended[rank] = member_of(run, slot, rank).slot;
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    int32_t sm = sm_of(run, ended[rank]);
    run->out->cta_cycles += cycle - run->slots[ended[rank]].start_cycle;
    run->slots[ended[rank]].start_cycle = INT64_MAX;
    if (--run->resident[sm] == 0) run->out->sm_active_cycles += cycle - run->active_since[sm];
    ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
    if (!ftl_cta_scheduler_refill(run->scheduler, sm, ended[rank] % run->ctas_per_sm, cycle, starts)) continue;
    start_cluster(run, starts);
    if (run->plan.period && starts->cta % run->plan.period == 0) consider_skip(run, now);
  }
}

static void add_marks(ftl_tile_marks *sum, const ftl_tile_marks *marks) {
  if (marks->l2 > sum->l2) sum->l2 = marks->l2;
  if (marks->far > sum->far) sum->far = marks->far;
  if (marks->dram > sum->dram) sum->dram = marks->dram;
  if (marks->gpc > sum->gpc) sum->gpc = marks->gpc;
}

// A load that a later step waits for arrives then; one for this step lengthens it. A group of steps takes no less than
// its loads take to arrive one after the other, as many at a time as they are ahead.
static void add_wait(const steps_run *run, cta_state *state, const ftl_segment_ref *ref, const ftl_traffic_wait *wait,
                     int64_t now, step_wait *longest) {
  if (wait->latency_cycles > longest->latency_cycles) longest->latency_cycles = wait->latency_cycles;
  longest->asking += wait->asking;
  longest->intake += wait->intake;
  add_marks(&longest->marks, &wait->marks);
  if (ref->lookahead == 0) {
    longest->waits = true;
    if (wait->queue > longest->queue) longest->queue = wait->queue;
    return;
  }
  if (run->plan.group > 1) {
    int64_t least = state->count * wait->latency_cycles * FTL_TRAFFIC_UNIT / ref->lookahead + wait->queue;
    if (least > longest->least) longest->least = least;
    return;
  }
  int64_t arrival = now + wait->queue + wait->latency_cycles * FTL_TRAFFIC_UNIT;
  int32_t slot = (state->step + ref->lookahead) % MAX_STAGES;
  longest->due |= 1u << slot;
  if (arrival > state->arrival[slot]) state->arrival[slot] = arrival;
}

static bool try_access_run(steps_run *run, cta_member member, const ftl_segment_ref *ref, const ftl_tile_run *tiles,
                           int64_t span, int64_t now, step_wait *longest) {
  if (ref->is_store) return ftl_traffic_try_store(run->traffic, tiles, ref->is_atomic, now);
  ftl_traffic_wait wait;
  ftl_tile_run share;
  if (ref->multicast.num_ctas > 1) {
    share = ftl_tile_run_share(tiles, ref->multicast, member.cta);
    if (share.num_tiles == 0) return true;
    tiles = &share;
  }
  if (!ftl_traffic_try_load(run->traffic, tiles, span, sm_of(run, member.slot), now, &wait)) return false;
  add_wait(run, &run->slots[member.state_slot], ref, &wait, now, longest);
  return true;
}

// Entries of a table come in sectors: what L1 brought for one it has for its neighbours.
static ftl_tile_place sector_of(const ftl_tile_place *place) {
  enum { SECTOR_BYTES = 32 };
  return (ftl_tile_place){.address_bytes = place->address_bytes / SECTOR_BYTES * SECTOR_BYTES,
                          .row_stride_bytes = SECTOR_BYTES,
                          .num_rows = 1,
                          .row_bytes = SECTOR_BYTES};
}

static bool is_in_l1(steps_run *run, int32_t slot, const ftl_segment_ref *ref, const ftl_tile_place *place) {
  if (!ref->is_direct || ref->is_store || place->num_rows == 0 || place->pages) return false;
  if (!ftl_l1_tiles_load(&run->l1, sm_of(run, slot), slot, place)) return false;
  run->traffic->counts.l1_hit_sectors += (int64_t)place->num_rows * ((place->row_bytes + 31) / 32);
  return true;
}

static bool try_access(steps_run *run, cta_member member, int32_t ref_idx, int64_t now, step_wait *longest) {
  const ftl_tile_program *tile = run->segments->tile;
  const cta_state *state = &run->slots[member.state_slot];
  const ftl_segment_ref *ref = &run->segments->segments[state->segment].refs[ref_idx];
  const ftl_ref_step *step = &run->steps[state->segment][ref_idx];
  const ftl_ref_cursor *cursor = &run->cursors[member.slot * run->num_cursors + ref_idx];
  int64_t group = state->segment % 2 == 1 ? run->plan.group : 1;
  int64_t group_first = state->iteration - (state->first_value + state->iteration) % group;
  ftl_tile_run tiles;
  if (group > 1 && !ref->is_direct &&
      ftl_ref_try_run(tile, ref, step, cursor, group_first, group, state->iteration, state->count, &tiles))
    return tiles.num_tiles == 0 ||
           try_access_run(run, member, ref, &tiles, (tiles.num_tiles - 1) * state->pace, now, longest);
  for (int64_t i = 0; i < state->count; i++) {
    ftl_tile_place place = ftl_ref_place(tile, ref, step, cursor, member.cta, state->outer, state->iteration + i);
    if (ref->is_lookup && place.num_rows > 0) place = sector_of(&place);
    if (is_in_l1(run, member.slot, ref, &place)) continue;
    tiles = (ftl_tile_run){.place = place,
                           .num_rows = place.num_rows,
                           .num_tiles = 1,
                           .priority = tile->tensors[ref->ref->tensor].l2_priority};
    if (place.num_rows > 0 && !try_access_run(run, member, ref, &tiles, i * state->pace, now, longest)) return false;
  }
  return true;
}

// Of the slot's segment, with loads that take `latency_cycles`.
static int64_t pace_of(const steps_run *run, int32_t slot, int64_t latency_cycles) {
  const cta_state *state = &run->slots[slot];
  int32_t resident = run->resident[sm_of(run, slot)];
  bool later = run->plan.stride > 0 && state->cta >= run->plan.stride;
  return PER_STEP_UNIT * (later ? ftl_step_times_get_later(run->times, state->segment, resident, latency_cycles)
                                : ftl_step_times_get(run->times, state->segment, resident, latency_cycles));
}

// The iterations of the group that the CTA has come to, as far as its loop has them.
static int64_t count_of_group(const steps_run *run, const cta_state *state) {
  int64_t group = run->plan.group, left = state->trips - state->iteration;
  int64_t count = group - (state->first_value + state->iteration) % group;
  return count < left ? count : left;
}

// The segments of the outer loop come again, or not at all.
static int32_t segment_after(const steps_run *run, cta_state *state) {
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
static bool try_next_segment(steps_run *run, int32_t slot) {
  cta_state *state = &run->slots[slot];
  if (state->segment % 2 == 1 && (state->iteration += state->count) < state->trips) {
    state->count = count_of_group(run, state);
    return true;
  }
  while ((state->segment = segment_after(run, state)) < run->num_segments) {
    state->iteration = 0;
    state->count = 1;
    if (state->segment % 2 == 1) {
      state->trips = ftl_segments_trips_in(run->segments, run->launch->warps, state->segment / 2, state->cta,
                                           state->outer, &state->first_value);
      if (state->trips == 0) {
        state->untimed += PER_STEP_UNIT * ftl_step_times_least_before(run->times, state->segment);
        continue;
      }
      state->count = count_of_group(run, state);
      state->pace = pace_of(run, slot, run->times->latency_cycles[0]);
    }
    set_cursors(run, slot);
    return true;
  }
  return false;
}

// A step whose tiles are still to come is put off until they are there: were its own loads issued now with a later
// time, they would occupy L2 and DRAM ahead of others' that come before them.
static bool try_put_off(steps_run *run, ftl_event event) {
  cta_state *state = &run->slots[event.slot];
  int64_t *due = &state->arrival[state->step % MAX_STAGES], arrival = *due;
  *due = 0;
  if (arrival <= event.time) return false;
  ftl_event_heap_push(&run->heap, (ftl_event){.time = arrival, .slot = event.slot});
  return true;
}

static void end_step(steps_run *run, int32_t slot, int64_t now) {
  cta_state *state = &run->slots[slot];
  if (state->segment % 2 == 1) state->step++;
  if (try_next_segment(run, slot))
    ftl_event_heap_push(&run->heap, (ftl_event){.time = now, .slot = slot});
  else
    end_cta(run, slot, now);
}

// What others asked for since the step's loads were made delays them as far as they still wait, or were asked for only
// now: it came ahead of their last sectors.
static void look_again(steps_run *run, ftl_event event) {
  cta_state *state = &run->slots[event.slot];
  ftl_traffic_waiting waiting = {.marks = state->wait.marks,
                                 .sm = sm_of(run, event.slot),
                                 .made = state->made,
                                 .due = state->made + state->wait.intake,
                                 .served = state->made + state->wait.asking < event.time ? event.time : 0};
  int64_t late = ftl_traffic_overtaken(run->traffic, &waiting);
  for (int32_t i = 0; i < MAX_STAGES; i++)
    if (state->wait.due >> i & 1) state->arrival[i] += late;
  int64_t end = state->end + (state->wait.waits ? late : 0);
  state->is_waiting = false;
  end_step(run, event.slot, end > event.time ? end : event.time);
}

static bool is_longer_than(const ftl_tile_marks *marks, int64_t time) {
  return marks->l2 > time || marks->far > time || marks->dram > time || marks->gpc > time;
}

// CTAs that came to the slot's SM before its own.
static int32_t num_older(const steps_run *run, int32_t slot) {
  int32_t first = slot - slot % run->ctas_per_sm, count = 0;
  int64_t start = run->slots[slot].start_cycle;
  for (int32_t other = first; other < first + run->ctas_per_sm; other++) {
    int64_t start_of_other = run->slots[other].start_cycle;
    count += start_of_other < start || (start_of_other == start && other < slot);
  }
  return count;
}

// By how much the slot's step or group of steps, which takes `time` on average, deviates from that: its GPC's clock,
// its turn on the SM, and at random.
static int64_t deviation_of(const steps_run *run, int32_t slot, int64_t time) {
  const cta_state *state = &run->slots[slot];
  const ftl_arch *arch = run->launch->arch;
  int32_t sm = sm_of(run, slot), others = run->resident[sm] - 1;
  double cycles = (double)time / FTL_TRAFFIC_UNIT;
  double drift = ftl_pace_drift(arch->sm_drift_ns, run->traffic->sm_khz, cycles);
  double steady =
      ftl_pace_of_gpc(arch->sm_gpc_clock_spread_ppm, run->traffic->homes[sm].gpc, (int32_t)arch->chip_num_gpcs);
  if (others > 0) {
    if (state->segment % 2 == 1)
      drift = hypot(drift, ftl_pace_shared_drift(arch->sm_shared_drift_permille, others, state->count, cycles));
    steady += ftl_pace_of_age(arch->sm_age_spread_permille, num_older(run, slot), others);
  }
  int64_t step = (int64_t)state->step * DRAWS_A_STEP + state->segment;
  double deviation = ftl_pace_deviation(drift, state->cta, step, cycles) + steady * cycles;
  return (int64_t)((deviation > -cycles ? deviation : -cycles) * FTL_TRAFFIC_UNIT);
}

// Of the slot's step or group of steps, all that it waits for included (1/65536 cycle).
static int64_t time_of_step(steps_run *run, int32_t slot, const step_wait *wait) {
  cta_state *state = &run->slots[slot];
  state->pace = pace_of(run, slot, wait->latency_cycles > 0 ? wait->latency_cycles : run->times->latency_cycles[0]);
  int64_t time = state->pace * state->count;
  time += deviation_of(run, slot, time);
  time += wait->queue + state->untimed * run->resident[sm_of(run, slot)];
  state->untimed = 0;
  return time > wait->least ? time : wait->least;
}

static ftl_status step(steps_run *run, ftl_event event, ftl_error *error) {
  cta_state *state = &run->slots[event.slot];
  if (state->is_waiting) {
    look_again(run, event);
    return FTL_OK;
  }
  if (try_put_off(run, event)) return FTL_OK;
  step_wait wait = {0};
  const ftl_segment *segment = &run->segments->segments[state->segment];
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    cta_member member = member_of(run, event.slot, rank);
    for (int32_t i = 0; i < segment->num_refs; i++)
      if (!try_access(run, member, i, event.time, &wait))
        return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the tiles seen");
    if (!run->local.lines) continue;
    int64_t written = ftl_local_lines_store(&run->local, member.slot, state->segment, run->traffic->tags);
    ftl_traffic_spill(run->traffic, written, event.time);
  }
  int64_t end = event.time + time_of_step(run, event.slot, &wait);
  int64_t looks = event.time + run->traffic->hit_latency * FTL_TRAFFIC_UNIT;
  bool asks_long = event.time + wait.asking > looks;
  if (asks_long) looks = event.time + wait.asking;
  bool is_straight = state->segment % 2 == 0;  // CTAs that start together ask for a lot together
  if ((is_straight && asks_long) || is_longer_than(&wait.marks, looks)) {
    state->made = event.time;
    state->is_waiting = true;
    state->wait = wait;
    state->end = end;
    ftl_event_heap_push(&run->heap, (ftl_event){.time = looks, .slot = event.slot});
  } else {
    end_step(run, event.slot, end);
  }
  return FTL_OK;
}

static ftl_status run_events(steps_run *run, ftl_error *error) {
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  while (ftl_cta_scheduler_fill(run->scheduler, starts)) start_cluster(run, starts);
  for (int64_t events = 1; run->heap.count > 0; events++) {
    if (events % CANCEL_EVENTS == 0 && ftl_launch_is_cancelled(run->launch))
      return ftl_error_set(error, FTL_INTERRUPTED, "interrupted");
    ftl_event event = ftl_event_heap_pop(&run->heap);
    // The next event is likely to be that of the CTA that is first now: a fifth of this loop was waiting for its state.
    if (run->heap.count > 0) __builtin_prefetch(&run->slots[run->heap.events[0].slot]);
    ftl_status status = step(run, event, error);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}

static void find_ref_steps(steps_run *run) {
  for (int32_t s = 0; s < run->num_segments; s++) {
    const ftl_segment *segment = &run->segments->segments[s];
    if (segment->num_refs > run->num_cursors) run->num_cursors = segment->num_refs;
    for (int32_t i = 0; i < segment->num_refs; i++)
      run->steps[s][i] = ftl_ref_step_of(run->segments->tile, &segment->refs[i]);
  }
}

static ftl_status allocate(steps_run *run, ftl_error *error) {
  size_t num_sms = (size_t)run->launch->arch->chip_num_sms, num_slots = num_sms * (size_t)run->ctas_per_sm;
  run->slots = calloc(num_slots, sizeof *run->slots);
  run->sm_of_slot = calloc(num_slots, sizeof *run->sm_of_slot);
  run->resident = calloc(num_sms, sizeof *run->resident);
  run->active_since = calloc(num_sms, sizeof *run->active_since);
  run->cursors = calloc(num_slots * (size_t)run->num_cursors + 1, sizeof *run->cursors);
  run->members = calloc(num_slots * (size_t)run->cluster_ctas, sizeof *run->members);
  run->heap.events = calloc(num_slots, sizeof *run->heap.events);
  if (!run->slots || !run->sm_of_slot || !run->members || !run->resident || !run->active_since || !run->cursors ||
      !run->heap.events)
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for tile steps");
  for (size_t slot = 0; slot < num_slots; slot++) {
    run->sm_of_slot[slot] = (int32_t)slot / run->ctas_per_sm;
    run->slots[slot].start_cycle = INT64_MAX;
  }
  int64_t l1_bytes = ftl_l1_capacity_bytes(run->launch->arch, run->launch->warps, run->ctas_per_sm);
  if (run->segments->has_direct && !ftl_l1_tiles_try_init(&run->l1, l1_bytes, (int64_t)num_sms, (int64_t)num_slots))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for tile steps");
  ftl_status status = ftl_local_lines_init(&run->local, run->launch, run->traffic->tags, error);
  if (status != FTL_OK) return status;
  return ftl_cta_scheduler_create(&run->scheduler, run->launch->arch, ftl_launch_num_ctas(run->launch),
                                  run->ctas_per_sm, run->cluster_ctas, error);
}

static void release(steps_run *run) {
  ftl_l1_tiles_fini(&run->l1);
  free(run->slots);
  free(run->sm_of_slot);
  free(run->members);
  free(run->resident);
  free(run->active_since);
  free(run->cursors);
  free(run->heap.events);
  ftl_local_lines_fini(&run->local);
  ftl_cta_scheduler_destroy(run->scheduler);
}

ftl_status ftl_gpu_steps_run(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times,
                             ftl_walk_plan plan, ftl_traffic *traffic, ftl_gpu_steps *out, ftl_error *error) {
  *out = (ftl_gpu_steps){0};
  steps_run run = {.launch = launch,
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
  ftl_status status = allocate(&run, error);
  if (status == FTL_OK) status = run_events(&run, error);
  // Skipped periods kept every SM as busy as the average of those that ran.
  if (status == FTL_OK && run.skipped_cycles > 0) {
    int64_t ran = out->end_cycle;
    out->sm_active_cycles += (int64_t)((__extension__(__int128) out->sm_active_cycles) * run.skipped_cycles / ran);
    out->cta_cycles += (int64_t)((__extension__(__int128) out->cta_cycles) * run.skipped_cycles / ran);
    out->end_cycle += run.skipped_cycles;
  }
  traffic->counts.dram_write_sectors += ftl_l2_tags_settle(traffic->tags);
  out->counts = traffic->counts;
  // Stores do not wait, but the launch ends when what they wrote has passed DRAM.
  int64_t dram_cycles = ftl_traffic_dram_cycles(traffic);
  if (dram_cycles > out->end_cycle) out->end_cycle = dram_cycles;
  release(&run);
  return status;
}
