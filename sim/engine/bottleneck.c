// What bounds a launch: the resource nearest to its capacity while SMs work, or, when none is near it, why warps wait.
#include <stdio.h>

#include "engine/answer.h"

// A resource used at less than this share of its capacity does not bound a kernel by itself.
enum { BOUND_PERCENT = 70, IDLE_PERCENT = 60 };

typedef struct bound {
  const char *name;
  double percent;
} bound;

static double share(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

static bound largest(const bound *bounds, int count) {
  bound top = bounds[0];
  for (int i = 1; i < count; i++)
    if (bounds[i].percent > top.percent) top = bounds[i];
  return top;
}

static bound largest_resource(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work) {
  const ftl_arch *arch = launch->arch;
  double active = (double)totals->sm.active_cycles, subcores = active * (double)arch->sm_num_subcores;
  double elapsed_ns = (double)totals->cycles * 1e6 / (double)totals->sm_khz;
  double l2_cycles = elapsed_ns * (double)arch->clock_l2_khz * 1e-6;
  double dram_cycles = elapsed_ns * (double)arch->clock_dram_khz * 1e-6;
  double dram_bytes = (double)(totals->memory.dram_read_bytes + totals->memory.dram_write_bytes);
  double dram_peak =
      dram_cycles * (double)(arch->dram_num_channels * arch->dram_burst_bytes) / (double)arch->dram_burst_cycles;
  bound bounds[] = {
      {"tensor pipe", share((double)totals->sm.tensor_busy_cycles, subcores)},
      {"issue slots", share((double)totals->sm.issue_active_cycles, subcores)},
      {"exponentials (SFU)", share((double)(work->sfu_insts * arch->sfu_interval_cycles), subcores)},
      {"shared-memory bandwidth", share((double)totals->sm.shared_wavefronts, active)},
      {"L2 bandwidth", share(32.0 * (double)totals->memory.l2_sectors_from_sms,
                             l2_cycles * (double)(arch->l2_num_slices * arch->l2_slice_bytes_per_cycle))},
      {"HBM bandwidth", share(dram_bytes, dram_peak)},
  };
  return largest(bounds, (int)(sizeof bounds / sizeof *bounds));
}

static const char *waiting_for(const ftl_sm_counters *sm) {
  static const char *const texts[FTL_STALL_COUNT] = {
      [FTL_STALL_WAIT] = "latency of arithmetic",
      [FTL_STALL_SHORT_SCOREBOARD] = "latency of shared memory and SFU",
      [FTL_STALL_LONG_SCOREBOARD] = "latency of global memory",
      [FTL_STALL_MATH_PIPE_THROTTLE] = "busy math pipes in turn",
      [FTL_STALL_MIO_THROTTLE] = "MIO queue",
      [FTL_STALL_LG_THROTTLE] = "memory requests in flight",
      [FTL_STALL_BARRIER] = "barriers",
      [FTL_STALL_BRANCH_RESOLVING] = "branches",
      [FTL_STALL_GMMA] = "wgmma in flight",
      [FTL_STALL_DRAIN] = "stores at CTA ends",
  };
  int top = FTL_STALL_WAIT;
  for (int i = 0; i < FTL_STALL_COUNT; i++)
    if (texts[i] && sm->stall_cycles[i] > sm->stall_cycles[top]) top = i;
  return texts[top];
}

void ftl_answer_bottleneck(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work, char *out,
                           int64_t capacity) {
  int64_t sm_cycles = totals->cycles * launch->arch->chip_num_sms;
  bound top = largest_resource(launch, totals, work);
  if (top.percent >= BOUND_PERCENT)
    snprintf(out, (size_t)capacity, "%s", top.name);
  else if (share((double)totals->sm.active_cycles, (double)sm_cycles) < IDLE_PERCENT)
    snprintf(out, (size_t)capacity, "idle SMs (too few CTAs)");
  else
    snprintf(out, (size_t)capacity, "%s", waiting_for(&totals->sm));
}
