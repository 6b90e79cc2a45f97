#include "base/integer.h"
#include "engine/sampled/gpu_run.h"

void ftl_gpu_set_cursors(ftl_gpu_run *run, int32_t slot) {
  int32_t segment_idx = run->slots[slot].segment;
  const ftl_segment *segment = &run->segments->segments[segment_idx];
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    ftl_cta_member member = ftl_gpu_member(run, slot, rank);
    ftl_cta_at at = ftl_gpu_cta_at(run, member, run->slots[slot].outer);
    ftl_ref_cursors_at(run->segments->tile, segment, run->steps[segment_idx], &at,
                       &run->cursors[member.slot * run->num_cursors]);
  }
}

static void find_cta_values(const ftl_gpu_run *run, int32_t slot) {
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    ftl_cta_member member = ftl_gpu_member(run, slot, rank);
    ftl_cta_exprs_eval(&run->cta_exprs, member.cta, &run->cta_values[member.slot * run->cta_exprs.count]);
  }
}

static bool runs_no_loop(const ftl_gpu_run *run, int32_t slot) {
  ftl_cta_at at = ftl_gpu_cta_at(run, ftl_gpu_member(run, slot, 0), 0);
  int64_t first;
  for (int32_t k = 0; k < run->segments->num_loops; k++)
    if (ftl_segments_trips_in(run->segments, run->launch->warps, k, &at, &first) > 0) return false;
  return true;
}

static void begin_cta(ftl_gpu_run *run, int32_t slot, int64_t cta) {
  run->slots[slot].cta = cta;
  find_cta_values(run, slot);
  run->slots[slot].is_bare = run->times->has_bare && runs_no_loop(run, slot);
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
    run->num_ctas++;
    if (run->resident[start->sm]++ == 0) {
      run->active_since_cycle[start->sm] = start->cycle;
      run->num_active_sms++;
    }
  }
  begin_cta(run, first, starts->cta);
  int64_t held_ticks = ftl_gpu_hold_up(run, first, &run->slots[first].held_ticks);
  ftl_event_heap_push(&run->heap,
                      (ftl_event){.ticks = starts->cycle * FTL_TICKS_PER_CYCLE + held_ticks, .slot = first});
}

void ftl_gpu_end_cta(ftl_gpu_run *run, int32_t slot, int64_t now_ticks) {
  ftl_cta_state *state = &run->slots[slot];
  if (run->segments->tile->handout == FTL_TILES_ASKED_LATE) state->next_tile = run->num_tiles_taken++;
  if (run->plan.stride && state->next_tile < run->segments->tile->num_ctas) {
    begin_cta(run, slot, state->next_tile);
    ftl_event_heap_push(&run->heap, (ftl_event){.ticks = now_ticks, .slot = slot});
    return;
  }
  if (state->cta < run->plan.period) {
    run->period_work += state->work;
    run->period_stored += state->stored;
    run->period_ctas += run->cluster_ctas;
  }
  int64_t cycle = ftl_divide_up(now_ticks, FTL_TICKS_PER_CYCLE);
  if (cycle > run->out->end_cycle) run->out->end_cycle = cycle;
  int32_t ended[FTL_CTA_MAX_CLUSTER];  // a cluster that starts may take the place of the state
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) ended[rank] = ftl_gpu_member(run, slot, rank).slot;
  run->num_ctas -= run->cluster_ctas;
  for (int32_t rank = 0; rank < run->cluster_ctas; rank++) {
    int32_t sm = ftl_gpu_sm_of(run, ended[rank]);
    run->out->cta_cycles += cycle - run->slots[ended[rank]].start_cycle;
    run->slots[ended[rank]].start_cycle = INT64_MAX;
    run->has_code[sm] = true;
    if (--run->resident[sm] == 0) {
      run->out->sm_active_cycles += cycle - run->active_since_cycle[sm];
      run->num_active_sms--;
    }
    ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
    if (!ftl_cta_scheduler_refill(run->scheduler, sm, ended[rank] % run->ctas_per_sm, cycle, starts)) continue;
    ftl_gpu_start_cluster(run, starts);
    if (run->plan.period && starts->cta % run->plan.period == 0) ftl_gpu_consider_skip(run, now_ticks);
  }
}
