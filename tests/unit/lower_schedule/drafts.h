// Small drafts written by hand, on an architecture with round numbers.
#ifndef TESTS_UNIT_LOWER_SCHEDULE_DRAFTS_H
#define TESTS_UNIT_LOWER_SCHEDULE_DRAFTS_H

#include "lower/draft.h"

// fp32 1 cycle, shared loads 10, ldmatrix 24, mma 8 every 8 cycles, L1 30, L2 300; every interval 1 but for the mma.
ftl_arch round_arch(void);
// What they multiply: m16n8k16 as above, and wgmma of 64 x N x 16 in N cycles.
ftl_product round_product(void);

// Adds one instruction; d and sources may be FTL_NO_VALUE. inst.arg becomes `tag`, to recognise it afterwards.
ftl_draft_inst *put(ftl_draft *draft, ftl_opcode opcode, int tag, int32_t d, int32_t a, int32_t b);
// The same, destination also read.
ftl_draft_inst *put_update(ftl_draft *draft, ftl_opcode opcode, int tag, int32_t d, int32_t a, int32_t b);
void put_loop(ftl_draft *draft);
void put_end_loop(ftl_draft *draft);

typedef struct finished {
  ftl_draft_result result;
  int32_t num_local_accesses, num_local_registers;
} finished;
// Finishes and asserts success.
finished finish(ftl_draft *draft, int32_t cap);
finished finish_on(const ftl_arch *arch, ftl_draft *draft, int32_t cap);

// Position of the instruction tagged so; -1: none. Spill code has tag 0.
int32_t position_of(const ftl_draft *draft, int tag);
int32_t count_of(const ftl_draft *draft, ftl_opcode opcode, int32_t begin, int32_t end);

#endif
