// Stall reasons in plain words: which instruction waits for what, as far as the kernel's copies and products tell.
// docs/model_sm.md says what the machine counts under each.
#include "explain/launch_view.h"

static const char *long_scoreboard(const ftl_spec *spec) {
  if (!ftl_spec_takes(spec, FTL_PARAM_copy)) return "an instruction waits for a load from global or local memory";
  switch (spec->value[FTL_PARAM_copy]) {
    case FTL_SPEC_COPY_TMA:
      return "mbarrier waits for tiles that TMA has not brought yet, and loads from global memory";
    case FTL_SPEC_COPY_CP_ASYNC:
      return "cp.async waits (DEPBAR) for tiles that have not come yet, and loads from global memory";
    default:
      return "stores to shared memory wait for the tiles that LDG brings from global memory";
  }
}

static const char *barrier(const ftl_spec *spec) {
  if (ftl_spec_takes(spec, FTL_PARAM_mma) && spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA)
    return "warps wait for the results of their wgmmas (WARPGROUP.DEPBAR), and at bar.sync for other warps";
  return "warps wait at bar.sync for the slowest warp of the CTA";
}

static const char *math_pipe(const ftl_spec *spec) {
  if (ftl_spec_takes(spec, FTL_PARAM_mma) && spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_MMA)
    return "an instruction is ready and another warp keeps its pipe busy, mostly the tensor pipe with mma.sync";
  return "an instruction is ready and another warp keeps its pipe busy";
}

const char *ftl_stall_meaning(ftl_metric stall, const ftl_spec *spec) {
  switch (stall) {
    case FTL_METRIC_stall_not_selected:
      return "the warp could issue and another did: there are warps enough";
    case FTL_METRIC_stall_wait:
      return "stall counts of the compiler: an instruction waits for a result of fixed latency, or for its own pipe";
    case FTL_METRIC_stall_short_scoreboard:
      return "an instruction waits for shared memory (LDS, LDSM), a shuffle or an exponential (MUFU)";
    case FTL_METRIC_stall_long_scoreboard:
      return long_scoreboard(spec);
    case FTL_METRIC_stall_math_pipe_throttle:
      return math_pipe(spec);
    case FTL_METRIC_stall_mio_throttle:
      return "the queue of shared-memory instructions and exponentials is full: too many in a row";
    case FTL_METRIC_stall_lg_throttle:
      return "the queue of global and local memory instructions, or of lines in flight, is full";
    case FTL_METRIC_stall_tex_throttle:
      return "copies wait for TMA to take them";
    case FTL_METRIC_stall_barrier:
      return barrier(spec);
    case FTL_METRIC_stall_membar:
      return "not modelled: warps wait for a memory fence";
    case FTL_METRIC_stall_branch_resolving:
      return "the warp jumped, and its next instruction is on the way";
    case FTL_METRIC_stall_gmma:
      return "a wgmma waits for room in the queue of those that are not finished";
    case FTL_METRIC_stall_drain:
      return "warps at their end wait for their stores";
    case FTL_METRIC_stall_dispatch_stall:
      return "an instruction is ready, and products in the tensor cores take the register ports that it needs";
    case FTL_METRIC_stall_imc_miss:
      return "the warp waits for the kernel's parameters, at the start of a CTA";
    case FTL_METRIC_stall_no_instruction:
      return "the warp waits for code: the loop does not fit into the instruction cache";
    case FTL_METRIC_stall_misc:
      return "a load waits since its warp has as many on their way as one may have";
    case FTL_METRIC_stall_sleeping:
      return "not modelled: the warp sleeps";
    default:
      return "";
  }
}
