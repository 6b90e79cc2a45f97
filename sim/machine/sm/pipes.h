// Where instructions execute, in the order of ftl_sm_counters.pipe_insts.
#ifndef FTL_MACHINE_SM_PIPES_H
#define FTL_MACHINE_SM_PIPES_H

// X(name, text). The first six are a sub-core's own; MIO and LG instructions wait in the sub-core's MIO queue; TMA is
// the SM's; BRANCH takes an issue slot only.
// The formatter does not settle on a list with comments.
// clang-format off
#define FTL_SM_PIPES(X)                                                                              \
  X(FP32, "fp32") X(ALU, "alu") X(HALF, "half") X(SFU, "sfu") X(TENSOR, "tensor") X(GMMA, "gmma")    \
  X(MIO, "mio") /* shared memory, shuffles, mbarriers */                                             \
  X(LG, "lg")   /* local and global memory: also needs room among the lines in flight */             \
  X(TMA, "tma") X(BRANCH, "branch")
// clang-format on

typedef enum ftl_sm_pipe {
#define X(name, text) FTL_SM_PIPE_##name,
  FTL_SM_PIPES(X)
#undef X
      FTL_SM_PIPE_COUNT
} ftl_sm_pipe;

const char *ftl_sm_pipe_name(ftl_sm_pipe pipe);

#endif
