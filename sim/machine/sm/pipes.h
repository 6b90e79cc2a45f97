// Where instructions execute, in the order of ftl_sm_counters.pipe_insts.
#ifndef FTL_MACHINE_SM_PIPES_H
#define FTL_MACHINE_SM_PIPES_H

// The first six are a sub-core's own; MIO and LG instructions wait in the sub-core's MIO queue; TMA is the SM's; BRANCH
// takes an issue slot only.
typedef enum ftl_sm_pipe {
  FTL_SM_PIPE_FP32,
  FTL_SM_PIPE_ALU,
  FTL_SM_PIPE_HALF,
  FTL_SM_PIPE_SFU,
  FTL_SM_PIPE_TENSOR,
  FTL_SM_PIPE_GMMA,
  FTL_SM_PIPE_MIO,  // shared memory, shuffles, mbarriers
  FTL_SM_PIPE_LG,   // local and global memory: also needs room among the lines in flight
  FTL_SM_PIPE_TMA,
  FTL_SM_PIPE_BRANCH,
  FTL_SM_PIPE_COUNT
} ftl_sm_pipe;

#endif
