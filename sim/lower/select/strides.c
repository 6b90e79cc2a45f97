#include "lower/select/strides.h"

#define NONE FTL_NO_VALUE

enum { TILE_PRODUCTS = 4, HALF_SUMS = 2 };

bool ftl_select_steps_by_strides(const ftl_select *s) { return s->buffered_code && !ftl_select_multiplies_one_a(s); }

// The tile's number times the stride of its rows, added to the lane's place in the first tile, scaled, and added to the
// tensor's base: IMAD.WIDE, SHF, IMAD, IMAD, IMAD.IADD; LEA, LEA; LEA.HI.X, LEA.HI.X.
ftl_strided ftl_select_strided_tile(ftl_select *s, const ftl_tile_op *op) {
  int32_t pointer = s->tensor_pointer[op->ref.tensor], product = ftl_draft_value_add(&s->draft, 2, 1);
  ftl_strided tile = {ftl_draft_value_add(&s->draft, 2, 1), ftl_draft_value_add(&s->draft, 0, 1)};
  ftl_select_add(s, FTL_OP_IMAD_WIDE, 1, product, ftl_select_entry_of_ref(s, &op->ref), NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, TILE_PRODUCTS, product, product, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, HALF_SUMS, tile.lower, product, pointer, NONE);
  ftl_select_add(s, FTL_OP_IADD, HALF_SUMS, tile.address, product, pointer, tile.lower);
  return tile;
}

// IADD3, IADD3.X: the lower halves follow each other, the upper ones come behind.
ftl_strided ftl_select_strided_group(ftl_select *s, ftl_strided previous) {
  ftl_strided group = {ftl_draft_value_add(&s->draft, 2, 1), ftl_draft_value_add(&s->draft, 0, 1)};
  ftl_select_add(s, FTL_OP_IADD, 1, group.lower, previous.lower, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, 1, group.address, previous.address, group.lower, NONE);
  return group;
}
