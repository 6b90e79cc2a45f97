// Makes a scheduled draft fit its registers by moving values to local memory.
//
// Where registers are short the value leaves that costs least for what it relieves: reloads and stores weighed by loop
// depth, registers times instructions; then the one whose next use is farthest (Belady). An address or constant is
// computed again instead. The order of the other instructions stays; reloads stand before their first use, to be
// ordered with the others afterwards.
#ifndef FTL_LOWER_SPILL_H
#define FTL_LOWER_SPILL_H

#include "lower/registers.h"

typedef struct ftl_spill_context {
  ftl_add_local_access add_local_access;
  void *context;
  int32_t num_slots;          // of 4 bytes a thread
  int32_t spilled_registers;  // registers a thread that live in local memory
  int32_t kept_registers;     // of these, what is only loaded in loops
} ftl_spill_context;

// `limit`: registers that may be live. Changes positions: flow and liveness are out of date afterwards.
FTL_MUST_USE ftl_status ftl_spill(ftl_draft *draft, int32_t limit, const ftl_flow *flow, const ftl_liveness *liveness,
                                  ftl_spill_context *spill, ftl_arena *arena, ftl_error *error);

#endif
