#include <math.h>

#include "engine/sampled/gpu_run.h"

enum {
  KEPT_PERIODS = 1,  // run in any case at the end, so that the tail is real
  // Before any are skipped: what CTAs find in L2, and merge, goes on changing as they drift apart.
  LEAST_STEPS = 1 << 18,
  SECTOR_BYTES = 32,
  STREAM_L2S = 8,      // times what L2 holds, that a stream has moved by then
  STREAM_PERIODS = 4,  // of a stream, each a wave or little more, that stand for those to come
};

void ftl_gpu_set_cursors(ftl_gpu_run *run, int32_t slot) {
  int32_t segment_idx = run->slots[slot].segment;
  const ftl_segment *segment = &run->segments->segments[segment_idx];
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    ftl_cta_member member = ftl_gpu_member(run, slot, rank);
    ftl_ref_cursor *cursors = &run->cursors[member.slot * run->num_cursors];
    for (int32_t i = 0; i < segment->num_refs; i++)
      if (run->steps[segment_idx][i].is_steady)
        cursors[i] = ftl_ref_cursor_at(run->segments->tile, &segment->refs[i], member.cta, run->slots[slot].outer);
  }
}

static void begin_cta(ftl_gpu_run *run, int32_t slot, int64_t cta) {
  run->slots[slot].cta = cta;
  run->slots[slot].segment = 0;
  run->slots[slot].iteration = 0;
  run->slots[slot].count = 1;
  if (run->plan.stride && run->segments->tile->handout == FTL_TILES_BY_STRIDE)
    run->slots[slot].next_tile = cta + run->plan.stride;
  if (run->segments->tile->handout == FTL_TILES_ASKED_AHEAD) run->slots[slot].next_tile = run->num_tiles_taken++;
  ftl_gpu_set_cursors(run, slot);
}

void ftl_gpu_start_cluster(ftl_gpu_run *run, const ftl_cta_start *starts) {
  int32_t first = starts->sm * run->ctas_per_sm + starts->slot;
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    const ftl_cta_start *start = &starts[rank];
    int32_t slot = start->sm * run->ctas_per_sm + start->slot;
    run->slots[slot] =
        (ftl_cta_state){.start_cycle = start->cycle, .first_cold = run->has_code[start->sm] ? run->num_segments : 0};
    run->members[first * run->cluster_ctas + rank] = slot;
    if (run->resident[start->sm]++ == 0) {
      run->active_since[start->sm] = start->cycle;
      run->num_active_sms++;
    }
  }
  begin_cta(run, first, starts->cta);
  ftl_event_heap_push(&run->heap, (ftl_event){.time = starts->cycle * FTL_TRAFFIC_UNIT, .slot = first});
}

// `sum` has grown since `before`; by how much it grows in `times` as much work.
static int64_t growth_of(int64_t sum, int64_t before, double times) {
  return (int64_t)llround((double)(sum - before) * times);
}

// Adds what would be counted in `times` the work done since `before`.
static void repeat_counts(ftl_traffic_counts *counts, const ftl_traffic_counts *before, double times) {
  int64_t *sum = (int64_t *)counts;  // every field is an int64_t
  const int64_t *old = (const int64_t *)before;
  for (size_t i = 0; i < sizeof *counts / sizeof *sum; i++) sum[i] += growth_of(sum[i], old[i], times);
}

// Of a stream, as many as fill L2: a launch chained to it finds what was streamed last.
static int64_t kept_periods(const ftl_gpu_run *run) {
  int64_t bytes = run->period_work * SECTOR_BYTES;
  if (!run->plan.is_stream || bytes == 0) return KEPT_PERIODS;
  return KEPT_PERIODS + (run->launch->arch->l2_size_bytes + bytes - 1) / bytes;
}

static bool walked_enough(const ftl_gpu_run *run) {
  if (run->plan.is_stream) return run->work * SECTOR_BYTES >= STREAM_L2S * run->launch->arch->l2_size_bytes;
  return run->num_steps >= LEAST_STEPS;
}

// Called when the CTA that begins a period starts: skips the periods to come once the last ones stand for them.
static void consider_skip(ftl_gpu_run *run, int64_t now) {
  ftl_steady_mark mark = {.time = now,
                          .work = run->work,
                          .counts = run->traffic->counts,
                          .dirty_sectors = ftl_l2_tags_dirty_sectors(run->traffic->tags)};
  ftl_steady_add(&run->steady, &mark);
  int64_t left = ftl_cta_scheduler_num_left(run->scheduler) / run->plan.period - kept_periods(run);
  if (left < 1 || run->period_ctas < run->plan.period || !walked_enough(run)) return;
  int64_t skipped_ctas = left * run->plan.period;
  ftl_steady_window window = ftl_steady_find(&run->steady, run->plan.is_stream ? STREAM_PERIODS : 1,
                                             1000 * skipped_ctas / run->segments->tile->num_ctas);
  if (window.num_periods == 0) return;
  double times = (double)left * (double)run->period_work / (double)(mark.work - window.since.work);
  repeat_counts(&run->traffic->counts, &window.since.counts, times);
  // What is dirty stays what it is from now on: what a stream's window dirtied and did not write is written later. (Of
  // other launches, whose work is time, a window may hold the stores of more CTAs than it holds the work of.)
  if (run->plan.is_stream)
    run->traffic->counts.dram_write_sectors += growth_of(mark.dirty_sectors, window.since.dirty_sectors, times);
  run->skipped_cycles += growth_of(now, window.since.time, times) / FTL_TRAFFIC_UNIT;
  ftl_cta_scheduler_skip(run->scheduler, skipped_ctas);
  run->out->skipped_ctas += skipped_ctas;
  run->out->period_spread_permille = window.spread_permille;
}

void ftl_gpu_end_cta(ftl_gpu_run *run, int32_t slot, int64_t now) {
  ftl_cta_state *state = &run->slots[slot];
  if (run->segments->tile->handout == FTL_TILES_ASKED_LATE) state->next_tile = run->num_tiles_taken++;
  if (run->plan.stride && state->next_tile < run->segments->tile->num_ctas) {
    begin_cta(run, slot, state->next_tile);
    ftl_event_heap_push(&run->heap, (ftl_event){.time = now, .slot = slot});
    return;
  }
  if (state->cta < run->plan.period) {
    run->period_work += state->work;
    run->period_ctas += run->cluster_ctas;
  }
  int64_t cycle = (now + FTL_TRAFFIC_UNIT - 1) / FTL_TRAFFIC_UNIT;
  if (cycle > run->out->end_cycle) run->out->end_cycle = cycle;
  int32_t ended[FTL_CTA_MAX_CLUSTER];  // a cluster that starts may take the place of the state
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) ended[rank] = ftl_gpu_member(run, slot, rank).slot;
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    int32_t sm = ftl_gpu_sm_of(run, ended[rank]);
    run->out->cta_cycles += cycle - run->slots[ended[rank]].start_cycle;
    run->slots[ended[rank]].start_cycle = INT64_MAX;
    run->has_code[sm] = true;
    if (--run->resident[sm] == 0) {
      run->out->sm_active_cycles += cycle - run->active_since[sm];
      run->num_active_sms--;
    }
    ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
    if (!ftl_cta_scheduler_refill(run->scheduler, sm, ended[rank] % run->ctas_per_sm, cycle, starts)) continue;
    ftl_gpu_start_cluster(run, starts);
    if (run->plan.period && starts->cta % run->plan.period == 0) consider_skip(run, now);
  }
}
