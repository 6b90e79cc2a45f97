// What addresses of copies (addresses.c) and of ldmatrix (kept_addresses.c) share.
#ifndef FTL_LOWER_SELECT_ADDRESSES_H
#define FTL_LOWER_SELECT_ADDRESSES_H

#include "lower/select/shared_stages.h"

bool ftl_select_repeats(const ftl_tile_op *loop);  // false: it runs once at most
// How many repeating loops the operations up to this one have entered and not left; `depth`: before it.
int32_t ftl_select_depth_after(const ftl_tile_op *op, int32_t depth);

const ftl_tile_op *ftl_select_load_in_loop(const ftl_select *s, int32_t ring);  // NULL: no loop loads the ring
bool ftl_select_multiplies(const ftl_select *s, int32_t ring);                  // some product reads it

// A value that is worked out once before the loop.
int32_t ftl_select_add_kept(ftl_select *s, int32_t num_registers);

// Loops whose products need few addresses: matrix products, and attention in which groups of warps share a key tile.
bool ftl_select_has_few_addresses(const ftl_select *s);

int32_t ftl_select_num_offset_registers(const ftl_select *s, int32_t ring);  // kept for the copies of a ring

#endif
