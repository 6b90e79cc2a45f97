// Entries that a program looks up, one after another.
#ifndef FTL_TILE_BOUNDS_LOOKUP_H
#define FTL_TILE_BOUNDS_LOOKUP_H

#include "tile/check_internal.h"

// Of the LOOKUP at check->op_idx, in the loops that are open there, outermost first: FTL_BAD_INPUT names the first CTA
// that reads an entry which its table does not have. Ends quietly once *visits_left, which it counts down, is 0.
FTL_MUST_USE ftl_status ftl_check_entries(const ftl_check *check, const ftl_tile_op *const *loops, int num_loops,
                                          int64_t *visits_left);

#endif
