// What bounds a launch: the resource nearest to its capacity; SMs without work, where those with work are not what the
// launch is full of; or, when nothing is near its capacity, why warps wait.
#include "engine/answer.h"

// A resource used at less than this share of its capacity does not bound a kernel by itself. A convention of the words
// of an answer: no number hangs on it.
enum { BOUND_PERCENT = 70, IDLE_PERCENT = 60 };

static double share(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

// What warps wait for; NULL: a reason that bounds nothing by itself.
static const char *const stall_names[FTL_STALL_COUNT] = {
    [FTL_STALL_WAIT] = "latency of arithmetic",
    [FTL_STALL_SHORT_SCOREBOARD] = "latency of shared memory and SFU",
    [FTL_STALL_LONG_SCOREBOARD] = "latency of global memory",
    [FTL_STALL_MATH_PIPE_THROTTLE] = "busy math pipes in turn",
    [FTL_STALL_MIO_THROTTLE] = "MIO queue",
    [FTL_STALL_LG_THROTTLE] = "memory requests in flight",
    [FTL_STALL_BARRIER] = "barriers",
    [FTL_STALL_BRANCH_RESOLVING] = "branches",
    [FTL_STALL_GMMA] = "wgmma in flight",
    [FTL_STALL_MISC] = "loads of a warp on their way",
    [FTL_STALL_DRAIN] = "stores at CTA ends",
};

static ftl_metric longest_stall(const ftl_sm_counters *sm) {
  int top = FTL_STALL_WAIT;
  for (int i = 0; i < FTL_STALL_COUNT; i++)
    if (stall_names[i] && sm->stall_cycles[i] > sm->stall_cycles[top]) top = i;
  return (ftl_metric)(FTL_METRIC_stall_selected + top);
}

ftl_bottleneck ftl_answer_bottleneck(const ftl_launch *launch, const ftl_totals *totals, const float *usage_pct) {
  int64_t sm_cycles = totals->cycles * launch->arch->chip_num_sms;
  ftl_resource top = ftl_resource_most_used(usage_pct);
  bool is_shared = top >= FTL_RESOURCE_ports;  // by all SMs: its use is of the whole launch
  bool is_bound = usage_pct[top] >= BOUND_PERCENT;
  bool is_idle = share((double)totals->sm.active_cycles, (double)sm_cycles) < IDLE_PERCENT;
  if (is_bound && (is_shared || !is_idle)) return (ftl_bottleneck){.bound = FTL_BOUND_RESOURCE, .resource = top};
  if (is_idle) return (ftl_bottleneck){.bound = FTL_BOUND_IDLE_SMS};
  return (ftl_bottleneck){.bound = FTL_BOUND_STALL, .stall = longest_stall(&totals->sm)};
}

const char *ftl_bottleneck_name(ftl_bottleneck bottleneck) {
  switch (bottleneck.bound) {
    case FTL_BOUND_RESOURCE:
      return ftl_resource_get(bottleneck.resource)->name;
    case FTL_BOUND_IDLE_SMS:
      return "idle SMs (too few CTAs)";
    case FTL_BOUND_STALL:
      break;
  }
  return stall_names[bottleneck.stall - FTL_METRIC_stall_selected];
}
