// What the operands of an op must be: of which kind, held how, in whose reach.
#ifndef FTL_TILE_CHECK_OPERANDS_H
#define FTL_TILE_CHECK_OPERANDS_H

#include "tile/check_internal.h"

// An index of a value of the role that is checked; of a tile; of a rows value; of a ring of the program.
bool ftl_check_is_value(const ftl_check *check, int32_t value);
bool ftl_check_is_tile(const ftl_check *check, int32_t value);
bool ftl_check_is_rows(const ftl_check *check, int32_t value);
bool ftl_check_is_ring(const ftl_check *check, int32_t ring);
// An expression whose loop variables are all in scope; only the bound of a loop may ask for the warp.
bool ftl_check_is_bound(const ftl_check *check, ftl_expr expr);
bool ftl_check_is_expr(const ftl_check *check, ftl_expr expr);

// Both values have their rows in the same threads; and their columns too.
bool ftl_check_same_threads(const ftl_value *a, const ftl_value *b);
bool ftl_check_same_layout(const ftl_value *a, const ftl_value *b);
// Held as fragments of tensor-core products; of rows that one warp has whole; or by rows, in fp32.
bool ftl_check_is_fragment(const ftl_check *check, int32_t value);
bool ftl_check_has_whole_rows(const ftl_check *check, int32_t value);
bool ftl_check_is_row_wise(const ftl_check *check, int32_t value);

// A tile that lies in a tensor which may be read, or stored to; its pages inside of the tensor.
FTL_MUST_USE ftl_status ftl_check_ref(const ftl_check *check, const ftl_tile_ref *ref, bool is_store);
// A ring that this role fills, or reads.
FTL_MUST_USE ftl_status ftl_check_ring_role(const ftl_check *check, int32_t ring, bool produces);
// What a lane moves at once between a row-wise tile and memory; of 16-bit elements one at least.
FTL_MUST_USE ftl_status ftl_check_vector(const ftl_check *check, const ftl_value *value, const ftl_tensor *tensor);
// The fp32 copies that all groups have of rows x columns lie side by side in the whole ring; so many numbers do.
FTL_MUST_USE ftl_status ftl_check_group_staging(const ftl_check *check, int32_t ring, int32_t rows, int32_t columns);
FTL_MUST_USE ftl_status ftl_check_staging(const ftl_check *check, int32_t ring, int64_t num_numbers);
// A value that holds B of products, a group's share of the op's ring as its transpose_b says (FETCH).
FTL_MUST_USE ftl_status ftl_check_fetched_b(const ftl_check *check, const ftl_tile_op *op, int32_t value);

#endif
