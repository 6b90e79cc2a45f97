// What the scheduler believes about an instruction: pipe, issue interval, latency. As a compiler does, it sees one warp
// on an idle machine; the machine itself has the real timing. Numbers: the arch model's keys.
#ifndef FTL_LOWER_OP_TIMING_H
#define FTL_LOWER_OP_TIMING_H

#include "arch/arch.h"
#include "lower/warp_program.h"

typedef enum ftl_pipe {
  FTL_PIPE_FP32,
  FTL_PIPE_ALU,
  FTL_PIPE_HALF,
  FTL_PIPE_SFU,
  FTL_PIPE_TENSOR,
  FTL_PIPE_MIO,
  FTL_PIPE_BRANCH,
  FTL_PIPE_NONE,
  FTL_PIPE_COUNT
} ftl_pipe;

typedef struct ftl_op_timing {
  int32_t pipe;             // ftl_pipe
  int32_t interval_cycles;  // until the pipe takes the next, of one instruction of a run
  int32_t latency_cycles;   // to a dependent instruction, of one instruction of a run
} ftl_op_timing;

// The timing of every opcode on an architecture; WGMMA depends on N and is made by ftl_op_timing_of.
typedef struct ftl_op_timings {
  ftl_op_timing of[FTL_OPCODE_COUNT];
  int64_t wgmma_fma_per_cycle;
  int32_t wgmma_k;
  int32_t wgmma_tail_cycles;
  int32_t guard_latency_cycles;  // from what sets a predicate to an instruction that it guards
} ftl_op_timings;

void ftl_op_timings_init(ftl_op_timings *timings, const ftl_arch *arch, const ftl_product *product);
// Fragments are to stand as far ahead of their products as ptxas loads them where it has registers for that.
void ftl_op_timings_move_fragments(ftl_op_timings *timings, const ftl_arch *arch);
// And where it has none: the two products of a fragment before.
void ftl_op_timings_near_fragments(ftl_op_timings *timings);
// Cycles until what the instruction began is done, though no register waits for it; 0: nothing is begun.
int32_t ftl_op_background_cycles(const ftl_op_timings *timings, const ftl_warp_inst *inst);
ftl_op_timing ftl_op_timing_of(const ftl_op_timings *timings, const ftl_warp_inst *inst);

#endif
