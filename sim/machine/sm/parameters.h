// Kernel parameters in the constant caches (parameters.c).
#ifndef FTL_MACHINE_SM_PARAMETERS_H
#define FTL_MACHINE_SM_PARAMETERS_H

#include "machine/sm/sm.h"
#include "machine/sm/warp.h"

typedef struct sm_parameters {
  int64_t *line_at;      // when a line of 64 bytes has come to the SM; SM_NEVER: nobody has asked
  int64_t *piece_at;     // slot * num_parameters + piece of 16 bytes: when it has come to the slot's CTA
  bool launch_has_read;  // any of them
} sm_parameters;

bool ftl_sm_parameters_create(ftl_sm *sm);                // false: out of memory
void ftl_sm_parameters_forget(ftl_sm *sm, int32_t slot);  // a CTA begins, which has read none
// When those that the warp's instruction reads have come; asks for what is not there.
int64_t ftl_sm_parameter_fetch(ftl_sm *sm, const sm_warp *w, int64_t now);

#endif
