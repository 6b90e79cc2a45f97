// wgmma: asynchronous products of warpgroups, in order of their last warp's issue.
//
// A product takes the tensor cores of all sub-cores for its math, and reads B (and A, unless it is in registers) once
// for the whole warpgroup from shared memory: it lasts as long as the slower of the two. Other traffic of the data pipe
// but copies past L1 goes first; what it takes while operands are read lengthens what is reserved next (operand_free).
// m64nNk16 is N/2 cycles at 2048 FMA a cycle, and the operand bytes reproduce
// the published 24 instead of 16 cycles of N = 32 with A in shared memory (Luo et al., Benchmarking and Dissecting the
// Nvidia Hopper GPU Architecture, 2024).
#include "machine/sm/state.h"

// Runs that are under way issue on with other intervals: in the sub-cores that had their turn this cycle from the next
// on, in the others from this one.
static void cut_runs(ftl_sm *sm, int32_t subcore, int64_t now) {
  for (int32_t s = 0; s < sm->num_subcores; s++)
    if (sm->subcores[s].run.position >= 0) ftl_sm_run_cut(&sm->subcores[s], s <= subcore ? now + 1 : now);
}

static void note_reads(ftl_sm *sm, int64_t begin, int64_t end) {
  sm_reads *last = &sm->reads[(sm->reads_end - 1) % SM_READS];
  if (sm->reads_end != sm->reads_head && begin <= last->end) {
    last->end = end;
    return;
  }
  if (sm->reads_end - sm->reads_head == SM_READS) sm->reads_head++;
  sm->reads[sm->reads_end++ % SM_READS] = (sm_reads){begin, end};
}

// op->latency: cycles of math; op->data_cycles: of operand reads; op->extra_cycles: of these, without a free cycle.
static void reserve(ftl_sm *sm, sm_warpgroup *group, const sm_op *op, int64_t now) {
  if (sm->tensor_free <= now && sm->gmma_taken > 0) {
    sm->gmma_taken = 0;
    for (int32_t s = 0; s < sm->num_subcores; s++) sm->subcores[s].taken = 0;
  }
  int64_t start = sm_later(now, sm->tensor_free);
  for (int32_t s = 0; s < sm->num_subcores; s++) start = sm_later(start, sm->subcores[s].pipe_free[FTL_SM_PIPE_TENSOR]);
  int64_t begin = sm_later(sm->operand_free, start);
  sm->operand_free = begin + op->data_cycles;
  if (op->extra_cycles > 0) note_reads(sm, begin, begin + op->extra_cycles);
  sm->tensor_free = sm_later(start + op->latency, sm->operand_free);
  group->end[group->reserved++ % SM_GROUPS] = sm->tensor_free;
  for (int32_t s = 0; s < sm->num_subcores; s++) {
    sm->subcores[s].pipe_free[FTL_SM_PIPE_TENSOR] = sm->tensor_free;
    sm_subcore_changed(&sm->subcores[s]);
  }
  sm->gmma_busy_cycles += (int64_t)op->latency * sm->num_subcores;
}

void ftl_sm_gmma_issue(ftl_sm *sm, sm_warp *w, int64_t now) {
  sm_warpgroup *group = &sm->warpgroups[w->warpgroup];
  group->issued[w->warp_in_role % SM_WARPGROUP]++;
  for (int i = 0; i < SM_WARPGROUP; i++)
    if (group->issued[i] == group->reserved) return;
  if (!sm_wgmma_runs(sm, now)) cut_runs(sm, w->subcore, now);
  reserve(sm, group, w->op, now);
  sm_warp *first = w - w->warp_in_role % SM_WARPGROUP;
  for (int i = 0; i < SM_WARPGROUP; i++)
    if (first[i].blocked == SM_ON_GMMA) ftl_sm_warp_retry(sm, &first[i], now);
}

// When the product of this index has ended; one that is SM_GROUPS or more before the last has long.
static int64_t end_of(const sm_warpgroup *group, uint32_t index) {
  if (index >= group->reserved) return SM_NEVER;
  return group->reserved - index > SM_GROUPS ? 0 : group->end[index % SM_GROUPS];
}

int64_t ftl_sm_gmma_ready(const ftl_sm *sm, const sm_warp *w) {
  const sm_warpgroup *group = &sm->warpgroups[w->warpgroup];
  if (w->op->kind == SM_WGMMA) {
    uint32_t index = group->issued[w->warp_in_role % SM_WARPGROUP],
             depth = (uint32_t)sm->arch->tensor_wgmma_queue_depth;
    return index < depth ? 0 : end_of(group, index - depth);
  }
  if (w->gmma_closed <= w->op->arg) return 0;
  uint32_t products = w->gmma_end[(w->gmma_closed - w->op->arg - 1) % SM_GROUPS];
  if (products == 0) return 0;
  int64_t end = end_of(group, products - 1);
  return end == SM_NEVER ? SM_NEVER : end + sm->arch->tensor_wgmma_tail_cycles;
}

// Warps that know when their next product or wait may issue. What they wait for products is no dispatch any more.
static void put_off_warps(ftl_sm *sm, sm_subcore *sc, int64_t now) {
  for (uint64_t awake = sc->awake; awake; awake &= awake - 1) {
    int32_t i = __builtin_ctzll(awake);
    const sm_warp *w = sc->warps[i];
    int64_t before = sc->ready[i];
    if (before <= now || (w->op->kind != SM_WGMMA && w->op->kind != SM_WGMMA_WAIT)) continue;
    sc->ready[i] = sm_later(before, ftl_sm_gmma_ready(sm, w));
    int64_t frozen = sm_earlier(sc->ready[i], sc->thaws) - before;
    if (sc->frozen >> i & 1 && frozen > 0) sc->undispatched[i] -= (uint32_t)frozen;
  }
}

void ftl_sm_gmma_take(ftl_sm *sm, sm_subcore *sc, int64_t cycles, int64_t now) {
  sc->taken += cycles;
  int64_t later = sc->taken - sm->gmma_taken;
  if (later <= 0) return;
  sm->gmma_taken = sc->taken;
  sm->tensor_free += later;
  if (sm->operand_free > now) sm->operand_free += later;
  int32_t num_groups = sm->config.num_slots * sm->warpgroups_per_cta;
  for (int32_t g = 0; g < num_groups; g++) {
    sm_warpgroup *group = &sm->warpgroups[g];
    for (uint32_t i = group->reserved;
         i > 0 && group->reserved - i < SM_GROUPS && group->end[(i - 1) % SM_GROUPS] > now; i--)
      group->end[(i - 1) % SM_GROUPS] += later;
  }
  for (int32_t s = 0; s < sm->num_subcores; s++) {
    sm->subcores[s].pipe_free[FTL_SM_PIPE_TENSOR] = sm->tensor_free;
    put_off_warps(sm, &sm->subcores[s], now);
    sm_subcore_changed(&sm->subcores[s]);
  }
}
