// Makes a scheduled draft fit its registers by moving values to local memory.
#ifndef FTL_LOWER_SPILL_H
#define FTL_LOWER_SPILL_H

#include "lower/registers.h"

typedef struct ftl_spill_context {
  ftl_add_local_access add_local_access;
  void *context;
  int32_t num_slots;          // of 4 bytes a thread
  int32_t spilled_registers;  // registers a thread that live in local memory
} ftl_spill_context;

FTL_MUST_USE ftl_status ftl_spill(ftl_draft *draft, const ftl_arch *arch, int32_t limit, ftl_spill_context *spill,
                                  ftl_arena *arena, ftl_error *error);

#endif
