// When instructions get their operands, and what waits with one that does not at once.
#ifndef FTL_MACHINE_SM_OPERANDS_H
#define FTL_MACHINE_SM_OPERANDS_H

#include "machine/sm/state.h"

// A sub-core reads the operands of one instruction after the other: those of an mma.sync a piece a cycle, and those of
// others between the pieces. The operands of one product may wait; the next one issues when no more than those of one
// are to be read. Gives the cycle from which on the instruction's own are.
// Source: kernels/measurements/micro_operand_ports.csv.
static inline int64_t sm_dispatch(const ftl_sm *sm, sm_subcore *sc, const sm_op *op, int64_t now) {
  if (op->dispatch == 1 && sc->dispatch_free <= now) {  // the usual case: nothing waits
    sc->dispatch_free = now + 1;
    return now;
  }
  int64_t from = sc->dispatch_free > now ? sc->dispatch_free : now;
  sc->dispatch_free = from + op->dispatch;
  int64_t next_product = sc->dispatch_free - (int64_t)sm->code.mma_dispatch_cycles;
  if (sc->pipe_free[FTL_SM_PIPE_TENSOR] < next_product) sc->pipe_free[FTL_SM_PIPE_TENSOR] = next_product;
  return from;
}

// The instruction that issued at `now` finds a product's operands being read or a wgmma under way. While it waits its
// sub-core freezes: nothing issues, and the stall counts of all its warps stand still.
// `reads`: registers that it reads.
void ftl_sm_wait_for_operands(ftl_sm *sm, sm_subcore *sc, const sm_op *op, int32_t reads, int64_t now);

#endif
