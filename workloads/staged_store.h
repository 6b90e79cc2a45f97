// A tile of results that leaves through shared memory when the products are done: warps write their fragments there,
// and all threads store it by 16 bytes, so that a row leaves in whole lines. Products written by hand do so (all three
// of kernels/independent by mma.sync, whose authors did not know of each other).
#ifndef FTL_WORKLOADS_STAGED_STORE_H
#define FTL_WORKLOADS_STAGED_STORE_H

#include "tile/builder.h"
#include "workloads/spec.h"

// In a workload's `resolve`, where `code` has been chosen: store=staged if the user named neither of the two, the code
// is plain, mma.sync multiplies, and shared memory has the bytes of a CTA that stages.
void ftl_stage_open_store(ftl_spec *spec, int64_t shared_bytes);
// Shared memory of rings of room_bytes and such a tile behind or over them.
int64_t ftl_staged_store_bytes(int64_t tile_bytes, int64_t room_bytes);

// The ring of such a tile, in a CTA whose rings declared before it have room_bytes together and are idle by then: over
// them where it fits, as one allocation that is used twice, else its own.
int32_t ftl_staged_store_ring(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                              int64_t room_bytes, int32_t role);
// Behind a barrier: other warps have read what the ring lies over. `ring` -1: from the fragments.
void ftl_staged_store(ftl_builder *builder, ftl_tile_ref to, int32_t value, int32_t ring);

#endif
