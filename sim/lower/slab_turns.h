// Slabs of an accumulator that become operands one after the other.
//
// A program multiplies all slabs of S = QK^T and then works on S as a whole. Where wgmmas are issued one at a time,
// ptxas keeps their order but may put what makes an operand of a slab between the products of that slab and those of
// the next: then the accumulator of one slab and the operands of the others are live at once, not all accumulators. It
// does so in code whose products follow each other without a barrier, and whose accumulators are written over by what
// reads them first, a product by the scale, say, or where few registers are wanting then (docs/model_schedule.md,
// "Slabs in turn").
#ifndef FTL_LOWER_SLAB_TURNS_H
#define FTL_LOWER_SLAB_TURNS_H

#include "arch/arch.h"
#include "lower/flow.h"
#include "lower/registers.h"

// Rewrites the order of the stretches where slabs can take turns, if wgmmas hold `cap` registers or more in the written
// one and fewer so. Once per draft, behind ftl_waits_find. False when memory is out.
bool ftl_slabs_take_turns(ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, const ftl_arch *arch,
                          int32_t cap, ftl_arena *arena);

#endif
