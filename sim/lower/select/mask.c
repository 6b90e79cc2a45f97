// MASK: -inf where a key is beyond the diagonal or the limit.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE

// The last (first) column that each of a lane's rows sees: row + row0 + diagonal, at most the limit (at least 0).
static void row_limits(ftl_select *s, const ftl_tile_op *op, int32_t *limits) {
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++) {
    limits[slab] = ftl_draft_value_add(&s->draft, 2, true);
    ftl_select_add(s, FTL_OP_IADD, 2, limits[slab], s->thread, NONE, NONE);
    ftl_select_add(s, FTL_OP_FMNMX, 2, limits[slab], limits[slab], NONE, NONE);
  }
}

// Transposed without a diagonal: a row is seen or not, whatever the column.
static void mask_rows(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_value *v = &s->values[op->dst];
  for (int32_t slab = 0; slab < v->map.num_slabs; slab++) {
    int32_t row = ftl_draft_value_add(&s->draft, 2, true), beyond = ftl_select_temp(s, 0);
    ftl_select_add(s, FTL_OP_IADD, 2, row, s->thread, NONE, NONE);
    ftl_select_add(s, FTL_OP_ISETP, 2, beyond, row, NONE, NONE);
    for (int32_t i = 0; i < v->map.per_slab; i++) {
      int32_t fragment = ftl_select_fragment(s, op->dst, slab, i);
      ftl_select_add(s, FTL_OP_SEL, v->map.num_registers, fragment, fragment, beyond, NONE);
    }
  }
}

// Bounds of the columns that a row sees; NULL: none on that side.
typedef struct mask_bounds {
  const int32_t *right, *left;
} mask_bounds;

// A compare an element and bound, the second combined with the first, and a select.
static void mask_fragment(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t index, int32_t columns,
                          int32_t beyond, const mask_bounds *bounds) {
  const int32_t *sides[] = {bounds->right, bounds->left};
  int32_t num_elements = s->values[op->dst].map.num_registers;
  for (int i = 0; i < 2; i++) {
    if (sides[i] == NULL) continue;
    int32_t either = ftl_select_temp(s, 0);
    ftl_select_add(s, FTL_OP_ISETP, num_elements, either, columns, sides[i][slab], beyond);
    beyond = either;
  }
  int32_t fragment = ftl_select_fragment(s, op->dst, slab, index);
  ftl_select_add(s, FTL_OP_SEL, num_elements, fragment, fragment, beyond, NONE);
}

// An element's compare comes back from a bit (LOP3, PLOP3; it was put there by P2R) and guards its exponential, which
// is 0 otherwise (IMAD.MOV). Source: SASS of PyTorch's memory-efficient attention
// (fmha_cutlassF_f16_aligned_64x64_rf_sm80, CUDA 13.0): of 32 elements 64 PLOP3, 42 LOP3, 18 ISETP, 17 P2R and 44
// IMAD.MOV beyond what the exponentials take.
static void mask_again(ftl_select *s, const ftl_tile_op *op) {
  enum { COMPARES = 3 };
  const ftl_select_value *v = &s->values[op->dst];
  int32_t num_elements = v->map.num_registers, bits = ftl_select_temp(s, 1), seen = ftl_select_temp(s, 0);
  for (int32_t i = 0; i < v->map.per_slab; i++)
    for (int32_t slab = 0; slab < v->map.num_slabs; slab++) {
      int32_t fragment = ftl_select_fragment(s, op->dst, slab, i);
      ftl_select_add(s, FTL_OP_LOP, num_elements, bits, s->thread, NONE, NONE);
      for (int32_t k = 0; k < COMPARES; k++)
        ftl_select_add(s, FTL_OP_ISETP, num_elements, seen, k == 0 ? bits : seen, NONE, NONE);
      ftl_select_add(s, FTL_OP_IMAD, num_elements, fragment, fragment, seen, NONE);
    }
}

// Column indices are shared by the rows, and one serves two neighbours (greater; greater or equal). With a diagonal
// every element has a compare of its own, and with a bound on the left another (FlashAttention-2's apply_mask_local);
// the limit alone is compared once a column.
void ftl_select_mask(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->dst)) {
    ftl_select_mask_by_rows(s, op);
    return;
  }
  if (op->again) {
    mask_again(s, op);
    return;
  }
  const ftl_select_value *v = &s->values[op->dst];
  bool causal = op->diagonal != FTL_ALWAYS, windowed = op->left != FTL_ALWAYS;
  if (op->transposed && !causal && !windowed) {
    mask_rows(s, op);
    return;
  }
  int32_t right[FTL_SELECT_MAX_FRAGMENTS], left[FTL_SELECT_MAX_FRAGMENTS];
  if (causal) row_limits(s, op, right);
  if (windowed) row_limits(s, op, left);
  mask_bounds bounds = {causal ? right : NULL, windowed ? left : NULL};
  int32_t base = ftl_draft_value_add(&s->draft, 1, true);
  ftl_select_add(s, FTL_OP_IADD, 1, base, s->thread, ftl_select_entry_of(s, op->limit), NONE);
  for (int32_t i = 0; i < v->map.per_slab; i++) {
    int32_t pairs = v->map.num_registers > 4 ? v->map.num_registers / 4 : 1;
    int32_t columns = ftl_draft_value_add(&s->draft, pairs, 1);
    ftl_select_add(s, FTL_OP_IADD, pairs, columns, base, NONE, NONE);
    int32_t beyond = NONE;
    if (!causal) {
      beyond = ftl_select_temp(s, 0);
      ftl_select_add(s, FTL_OP_ISETP, v->map.num_registers / 2, beyond, columns, NONE, NONE);
    }
    for (int32_t slab = 0; slab < v->map.num_slabs; slab++) mask_fragment(s, op, slab, i, columns, beyond, &bounds);
  }
}
