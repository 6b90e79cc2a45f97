// Plain code with mma.sync in which groups of warps share tiles of several stages, as in decoding: ptxas keeps little
// of them over the loops. Stages are counted from the tile's number, with one address of the stage for all tensors; row
// groups of copies are found at each copy from the thread's number, which is read again there and behind the loops, as
// are the addresses of results. Source: SASS that nvcc 13 makes of kernels/attention/decode_mma.h for sm_90a.
#ifndef FTL_LOWER_SELECT_SHARED_STAGES_H
#define FTL_LOWER_SELECT_SHARED_STAGES_H

#include "lower/select/select.h"

bool ftl_select_shares_stages(const ftl_select *s);
// Whether nothing of where a copy's row groups lie in their tensor is kept over the loops.
bool ftl_select_finds_offsets_anew(const ftl_select *s, int32_t ring);
// Of these copies: whether the tile is one run of bytes, in the stage as in its tensor, as decode_quantized.h copies
// it.
bool ftl_select_copies_bytes(const ftl_select *s, int32_t ring);
// Of these copies: whether the row groups' places in the stage are kept.
bool ftl_select_keeps_places(const ftl_select *s, int32_t ring);
// The 64-bit address that a row group's, or a run's, copy reads; `is_beside`: of the tensor whose tile is copied behind
// another's that lies alike.
int32_t ftl_select_address_found_anew(ftl_select *s, const ftl_tile_op *op, int32_t group, bool is_beside);
// control.c: at the end of the last loop of such a role, the thread's number and what follows from it there.
void ftl_select_find_results(ftl_select *s);

#endif
