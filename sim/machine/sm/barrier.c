// Named barriers, and mbarriers of rings.
//
// The SM takes one warp's arrival at a named barrier in shared.barrier_interval_cycles; the barrier opens
// shared.barrier_latency_cycles after the last was taken, shared.named_barrier_latency_cycles where a part of the CTA's
// warps meets. bar.arrive counts and goes on, bar.sync counts and waits.
//
// A stage has two mbarriers: `full` completes a phase when the producer has arrived, all copies into the stage were
// issued (it went on to the next stage) and all their lines have come; `empty` when every consumer warp has arrived, of
// all CTAs that share the ring's loads (cluster.c).
// Each warp counts what it filled, waited for and released; so fill number f is in stage f mod num_stages, phase f div
// num_stages.
#include "base/integer.h"
#include "machine/sm/state.h"

// ---- named barriers ----
static int32_t meeting_warps(const sm_warp *w) {
  int32_t warps = w->op->meeting;
  if (!(w->op->flags & FTL_INST_WARPGROUP)) return warps;
  int32_t left = warps - w->warp_in_role / SM_WARPGROUP * SM_WARPGROUP;
  return left < SM_WARPGROUP ? left : SM_WARPGROUP;
}

static int32_t barrier_of(const sm_warp *w) {
  return w->op->barrier + (w->op->flags & FTL_INST_WARPGROUP ? w->warp_in_role / SM_WARPGROUP : 0);
}

static int64_t opening_cycles(const ftl_sm *sm, int32_t num_warps) {
  return num_warps == sm->program->num_warps ? sm->arch->shared_barrier_latency_cycles
                                             : sm->arch->shared_named_barrier_latency_cycles;
}

static sm_warp *warps_of_slot(ftl_sm *sm, int32_t slot) { return &sm->warps[slot * sm->program->num_warps]; }

// The warp waits at its barrier, or at an instruction behind it, or has not come to one that is held.
static void open_to(ftl_sm *sm, sm_warp *w, int64_t now, int64_t opens) {
  w->barrier_opens = opens;
  if (w->blocked == SM_BEHIND_BARRIER)
    ftl_sm_warp_retry(sm, w, now);
  else if (w->blocked == SM_ON_BARRIER)
    ftl_sm_warp_resume(sm, w, now, opens, FTL_STALL_BARRIER);
}

void ftl_sm_barrier_come(ftl_sm *sm, sm_warp *w, int64_t now) {
  int32_t barrier = barrier_of(w);
  uint16_t *count = &sm->barrier_counts[w->slot * sm->code.num_barriers + barrier];
  sm->barrier_free = (sm->barrier_free > now ? sm->barrier_free : now) + sm->arch->shared_barrier_interval_cycles;
  if (w->op->kind == SM_BARRIER) {
    w->wait_id = barrier;
    w->barrier_opens = SM_NEVER;
    if (!w->op->defers) ftl_sm_warp_block(sm, w, SM_ON_BARRIER, FTL_STALL_BARRIER);
  }
  int32_t meeting = meeting_warps(w);
  if (++*count < meeting) return;
  *count = 0;
  sm_warp *warps = warps_of_slot(sm, w->slot);
  int64_t opens = sm->barrier_free + opening_cycles(sm, meeting);
  for (int32_t i = 0; i < sm->program->num_warps; i++)
    if (warps[i].barrier_opens == SM_NEVER && warps[i].wait_id == barrier) open_to(sm, &warps[i], now, opens);
}

// ---- mbarriers ----
static int32_t stage_index(const ftl_sm *sm, const sm_warp *w, int32_t ring, uint32_t fill) {
  return w->slot * sm->stages_per_cta + sm->first_stage[ring] +
         (int32_t)(fill % (uint32_t)sm->program->rings[ring].num_stages);
}

sm_stage *ftl_sm_stage(ftl_sm *sm, const sm_warp *w, int32_t ring, uint32_t fill, int32_t *index) {
  *index = stage_index(sm, w, ring, fill);
  return &sm->stages[*index];
}

static uint32_t phase_of(const ftl_sm *sm, int32_t ring, uint32_t fill) {
  return fill / (uint32_t)sm->program->rings[ring].num_stages;
}

// A try_wait that fails suspends its warp on a scoreboard: Nsight Compute shows the producer of flash3_fwd, which does
// nothing else, as one warp of long_scoreboard (kernels/measurements/attention_hopper_ncu.csv).
static int64_t passes_at(const ftl_sm *sm, const sm_op *op, int64_t now, int64_t completed) {
  int64_t latency = sm->arch->shared_mbarrier_latency_cycles;
  if (op->flags & FTL_INST_TRIED) return ftl_larger(now + 1, completed + latency);
  return ftl_larger(now, completed) + latency;
}

void ftl_sm_mbar_acquire(ftl_sm *sm, sm_warp *w, int64_t now) {
  int32_t ring = w->op->arg, index;
  uint32_t fill = w->filled[ring];
  const sm_stage *stage = ftl_sm_stage(sm, w, ring, fill, &index);
  w->wait_id = index;
  w->wait_for = phase_of(sm, ring, fill) *
                (uint32_t)(sm->program->rings[ring].num_consumer_warps * ftl_sm_sharing_ctas(sm, ring));
  if (stage->arrivals >= w->wait_for)
    ftl_sm_warp_advance(sm, w, now, passes_at(sm, w->op, now, now), FTL_STALL_LONG_SCOREBOARD);
  else
    ftl_sm_warp_block(sm, w, SM_ON_EMPTY, FTL_STALL_LONG_SCOREBOARD);
}

void ftl_sm_mbar_wait(ftl_sm *sm, sm_warp *w, int64_t now) {
  int32_t ring = w->op->arg, index;
  uint32_t fill = w->waited[ring]++;
  const sm_stage *stage = ftl_sm_stage(sm, w, ring, fill, &index);
  w->wait_id = index;
  w->wait_for = phase_of(sm, ring, fill) + 1;
  if (stage->fills >= w->wait_for)
    ftl_sm_warp_advance(sm, w, now, passes_at(sm, w->op, now, stage->time), FTL_STALL_LONG_SCOREBOARD);
  else
    ftl_sm_warp_block(sm, w, SM_ON_FULL, FTL_STALL_LONG_SCOREBOARD);
}

static void wake(ftl_sm *sm, int32_t stage, sm_block block, uint32_t reached, int64_t now, int64_t completed) {
  sm_warp *warps = warps_of_slot(sm, stage / sm->stages_per_cta);
  for (int32_t i = 0; i < sm->program->num_warps; i++)
    if (warps[i].blocked == block && warps[i].wait_id == stage && warps[i].wait_for <= reached)
      ftl_sm_warp_resume(sm, &warps[i], now, passes_at(sm, warps[i].op, now, completed), FTL_STALL_LONG_SCOREBOARD);
}

void ftl_sm_mbar_release(ftl_sm *sm, int32_t stage, uint32_t count, int64_t now) {
  uint32_t arrivals = sm->stages[stage].arrivals += count;
  wake(sm, stage, SM_ON_EMPTY, arrivals, now, now);
}

void ftl_sm_mbar_expect(ftl_sm *sm, int32_t stage, int64_t now) {
  sm->stages[stage].expected = true;
  if (sm->stages[stage].time < now) sm->stages[stage].time = now;
  ftl_sm_stage_try_complete(sm, stage, now);
}

void ftl_sm_mbar_advance(ftl_sm *sm, sm_warp *w, int32_t ring, int64_t now) {
  uint32_t fill = w->filled[ring]++;
  if (!sm->program->rings[ring].uses_mbarrier || w->warp_in_role != 0) return;  // the others only count
  int32_t stage = stage_index(sm, w, ring, fill);
  sm->stages[stage].closed = true;
  if (sm->stages[stage].time < now) sm->stages[stage].time = now;
  ftl_sm_stage_try_complete(sm, stage, now);
}

void ftl_sm_stage_try_complete(ftl_sm *sm, int32_t stage_idx, int64_t now) {
  sm_stage *stage = &sm->stages[stage_idx];
  if (!stage->expected || !stage->closed || stage->pending_lines > 0) return;
  stage->expected = stage->closed = false;
  stage->fills++;
  wake(sm, stage_idx, SM_ON_FULL, stage->fills, now, stage->time);
}
