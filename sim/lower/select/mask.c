// MASK: -inf where a key is beyond the diagonal or the limit.
#include "lower/select/addresses.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE

// The last (first) column that each of a lane's rows sees: row + row0 + diagonal, at most the limit (at least 0).
static void row_limits(ftl_select *s, const ftl_tile_op *op, bool are_kept, int32_t *limits) {
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++) {
    limits[slab] = are_kept ? ftl_select_add_kept(s, 2) : ftl_draft_value_add(&s->draft, 2, true);
    ftl_select_add(s, FTL_OP_IADD, 2, limits[slab], s->thread, NONE, NONE);
    ftl_select_add(s, FTL_OP_FMNMX, 2, limits[slab], limits[slab], NONE, NONE);
  }
}

// Whether what this step finds may serve those behind it: not in a loop that repeats, which would find it anew.
static bool finds_for_others(const ftl_select *s) {
  int32_t depth = 0;
  for (int32_t i = 0; i < s->op_idx; i++) depth = ftl_select_depth_after(ftl_select_op_at(s, i), depth);
  return s->buffered_code && depth == 0;
}

static bool has_limits_of(const ftl_tile_op *found_by, const ftl_tile_op *op) {
  return found_by != NULL && found_by->dst == op->dst && found_by->row0 == op->row0 &&
         found_by->diagonal == op->diagonal && found_by->left == op->left && found_by->limit == op->limit;
}

// Of unrolled steps the first that masks finds the limits, which stay in registers for the others and for a loop that
// masks too: PyTorch's FlashAttention-2 kernels (SASS of six for sm_90) have four VIMNMX and VIADDMNMX, eight with a
// window, however many steps mask.
static void find_limits(ftl_select *s, const ftl_tile_op *op) {
  ftl_select_row_limits *limits = &s->row_limits;
  if (has_limits_of(limits->found_by, op)) return;
  bool are_kept = finds_for_others(s);
  if (op->diagonal != FTL_ALWAYS) row_limits(s, op, are_kept, limits->right);
  if (op->left != FTL_ALWAYS) row_limits(s, op, are_kept, limits->left);
  limits->found_by = are_kept ? op : NULL;
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
  find_limits(s, op);
  mask_bounds bounds = {causal ? s->row_limits.right : NULL, windowed ? s->row_limits.left : NULL};
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
