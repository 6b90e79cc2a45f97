// Rows that every thread looks up: lean code whose warps lie side by side, as Triton compiles a block table that is
// indexed by `token // PAGE` (SASS of kernels/foreign/triton_paged.py, num_stages 2, 64 keys on 4 warps, pages of 16).
#include "base/integer.h"
#include "lower/select/copy_plan.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
// Of a row group, for K and V once: its token, its page's place in the table (SHF, LEA.HI) and its row there (LOP3,
// subtraction); of a page the address of its entry (SHF, LEA, LEA.HI.X). For either: the page's number, scaled and
// added to the row, by the row's stride in 64 bits (SHF, two IMAD, IMAD.WIDE, an addition), and to the tensor's base
// (LEA, LEA.HI.X).
enum { PLACE_ADDS = 3, ROW_LOGIC = 1, ROW_ADDS = 1, ENTRY_ADDS = 3, NUMBER_IMADS = 1 };
enum { SIGN_ADDS = 1, STRIDE_IMADS = 3, STRIDE_ADDS = 1, BASE_ADDS = 2 };

bool ftl_select_looks_up_rows(const ftl_select *s) {
  if (s->plain_code || s->buffered_code || s->copy == FTL_COPY_TMA) return false;
  for (int32_t i = 0; i < s->tile->num_values; i++)
    if (s->tile->values[i].role == s->role_idx && s->tile->values[i].warps_per_row > 1) return true;
  return false;
}

// Token, row in the page and predicate of a row group, and the address of its entry, which the groups of a page share.
static void find_row(ftl_select *s, const ftl_tile_op *op, int32_t group, int32_t group_rows) {
  int32_t page_rows = op->ref.pages.page_rows, row = s->page_offsets[group] = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_IADD, PLACE_ADDS, row, s->thread, NONE, NONE);
  s->page_predicates[group] = NONE;
  if (ftl_select_is_ragged(s, &op->ref)) {
    s->page_predicates[group] = ftl_select_temp(s, 0);
    ftl_select_add(s, FTL_OP_ISETP, 1, s->page_predicates[group], row, NONE, NONE);
  }
  if (group > 0 && group * group_rows / page_rows == (group * group_rows - 1) / page_rows) {
    s->page_entries[group] = s->page_entries[group - 1];
  } else {
    int32_t entry = s->page_entries[group] = ftl_select_temp(s, 2);
    ftl_select_add(s, FTL_OP_IADD, ENTRY_ADDS, entry, row, ftl_select_pages_of(s, &op->ref), NONE);
  }
  ftl_select_add(s, FTL_OP_LOP, ROW_LOGIC, row, row, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, ROW_ADDS, row, row, NONE, NONE);
}

// The entries of a row group that no group before it has; where there are none, the last of those that it shares. A
// tile that begins inside a page may have one more: the last group's.
static ftl_access entries_of(ftl_select *s, const ftl_tile_op *op, int32_t group, int32_t group_rows, bool is_last) {
  int32_t page_rows = op->ref.pages.page_rows, num_entries = op->ref.pages.num_entries;
  int32_t first = ftl_divide_up32(group * group_rows, page_rows);
  int32_t end = ftl_divide_up32((group + 1) * group_rows, page_rows);
  if (is_last || end > num_entries) end = num_entries;
  ftl_select_lookup_entry *held = ftl_select_held_pages(s, &op->ref);
  if (held->reader == NONE) held->reader = s->op_idx;
  ftl_access which = {.ref = held->ref, .is_reread = held->reader != s->op_idx || first >= end};
  which.row = first < end ? first : end - 1;
  which.num_rows = (uint16_t)(first < end ? end - first : 1);
  return which;
}

int32_t ftl_select_looked_up_address(ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan, int32_t group,
                                     bool is_second, int32_t *predicate) {
  int32_t group_rows = plan->rows * s->role->num_warps, number = ftl_select_temp(s, 1);
  if (!is_second) find_row(s, op, group, group_rows);
  *predicate = s->page_predicates[group];
  ftl_select_add(s, FTL_OP_MOV, 1, number, NONE, NONE, NONE);  // what a row beyond the last has
  ftl_select_load_entries(s, entries_of(s, op, group, group_rows, group == plan->num_groups - 1), number,
                          s->page_entries[group], *predicate);
  int32_t row = ftl_select_temp(s, 1), offset = ftl_select_temp(s, 2), address = ftl_draft_value_add(&s->draft, 2, 1);
  ftl_select_add(s, FTL_OP_IMAD, NUMBER_IMADS, row, number, s->page_offsets[group], NONE);
  ftl_select_add(s, FTL_OP_IADD, SIGN_ADDS, offset, row, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, STRIDE_IMADS, offset, row, offset, NONE);
  ftl_select_add(s, FTL_OP_IADD, STRIDE_ADDS + BASE_ADDS, address, s->tensor_pointer[op->ref.tensor], offset, NONE);
  return address;
}
