// LOOKUP: entries of a table from global memory into registers, through L1, as compilers load block tables and offsets
// of sequences. One entry: one address a warp, every thread has it (cu_seqlens and block_table of FlashAttention-2).
// Pages of a tile: a lane loads an entry and works out its page's address, and the lanes that copy its rows take that
// by shuffles (FlashAttention-3, hopper/paged_kv.h). Triton's threads look up each row that they copy: page_rows.c.
#include <string.h>

#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { ENTRY_BYTES = 4 };

static void hold(ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t value) {
  if (s->num_lookups == FTL_SELECT_MAX_LOOKUPS)
    memmove(&s->lookups[0], &s->lookups[1], sizeof s->lookups[0] * (size_t)--s->num_lookups);
  s->lookups[s->num_lookups++] = (ftl_select_lookup_entry){.lookup = op->lookup,
                                                           .table = op->ref.tensor,
                                                           .num_entries = op->ref.rows,
                                                           .entry = op->ref.row,
                                                           .ref = ref,
                                                           .value = value,
                                                           .reader = NONE};
}

void ftl_select_load_entries(ftl_select *s, ftl_access which, int32_t entry, int32_t address, int32_t predicate) {
  ftl_draft_inst *load = ftl_select_add(s, FTL_OP_LDG, 1, entry, address, predicate, NONE);
  which.row_step = 1;
  which.bytes = ENTRY_BYTES;
  which.row_warps = s->role->num_warps;
  load->inst.access = ftl_select_access(s, which);
  load->inst.wavefronts = 1;
  load->inst.flags = (uint8_t)(ftl_select_producer_flags(s) | (predicate != NONE ? FTL_INST_IF_PRESENT : 0));
  // ptxas has entries of further rows, V's too, on their way before it copies the first.
  load->effects = FTL_EFFECT_MEMORY | (ftl_select_looks_up_rows(s) ? 0 : FTL_EFFECT_CHAIN);
}

void ftl_select_lookup(ftl_select *s, const ftl_tile_op *op) {
  uint8_t flags = ftl_select_producer_flags(s);
  bool of_pages = op->lookup == FTL_PAGE_ENTRIES;
  bool checked = op->ref.present != FTL_ALWAYS || op->ref.row_end != FTL_TENSOR_END;
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, flags);
  if (of_pages && ftl_select_looks_up_rows(s)) {
    hold(s, op, ref, s->tensor_pointer[op->ref.tensor]);
    return;
  }
  int32_t address = ftl_select_temp(s, 2), predicate = checked ? ftl_select_temp(s, 0) : NONE;
  if (op->ref.index_insts > 0)
    ftl_select_add(s, FTL_OP_UNIFORM, op->ref.index_insts, NONE, NONE, NONE, NONE)->inst.flags = flags;
  if (checked) ftl_select_add(s, FTL_OP_ISETP, 1, predicate, NONE, NONE, NONE)->inst.flags = flags;
  ftl_select_add(s, FTL_OP_IMAD, 1, address, s->tensor_pointer[op->ref.tensor], ftl_select_entry_of(s, op->ref.row),
                 NONE)
      ->inst.flags = flags;
  int32_t value = of_pages ? ftl_select_temp(s, 2) : NONE;
  for (int32_t first = 0; first < op->ref.rows; first += FTL_WARP_LANES) {
    int32_t left = op->ref.rows - first, entry = ftl_select_temp(s, 1);
    ftl_access which = {
        .ref = ref, .num_rows = (uint16_t)(left < FTL_WARP_LANES ? left : FTL_WARP_LANES), .row = first};
    ftl_select_load_entries(s, which, entry, address, predicate);
    if (of_pages)
      ftl_select_add(s, FTL_OP_IMAD, 1, value, entry, NONE, NONE)->inst.flags = flags;
    else
      value = entry;
  }
  hold(s, op, ref, value);
}

// Its place in s->lookups; -1: the tile lies in no pages.
static int32_t held_pages(const ftl_select *s, const ftl_tile_ref *ref) {
  if (ref->pages.page_rows == 0) return -1;
  for (int32_t i = s->num_lookups - 1; i >= 0; i--) {
    const ftl_select_lookup_entry *held = &s->lookups[i];
    if (held->lookup == FTL_PAGE_ENTRIES && held->table == ref->pages.table && held->entry == ref->pages.entry &&
        held->num_entries == ref->pages.num_entries)
      return i;
  }
  return -1;
}

ftl_select_lookup_entry *ftl_select_held_pages(ftl_select *s, const ftl_tile_ref *ref) {
  int32_t held = held_pages(s, ref);
  return held < 0 ? NULL : &s->lookups[held];
}

int32_t ftl_select_pages_of(const ftl_select *s, const ftl_tile_ref *ref) {
  int32_t held = held_pages(s, ref);
  return held < 0 ? NONE : s->lookups[held].value;
}

// The place in s->lookups of the last entry that the expression needs; -1: it needs none.
static int32_t last_entry(const ftl_select *s, ftl_expr expr) {
  const ftl_expr_node *node = &s->tile->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return -1;
  int32_t a = last_entry(s, node->a), b = last_entry(s, node->b), last = a > b ? a : b;
  if (node->kind != FTL_EXPR_LOOKUP) return last;
  for (int32_t i = s->num_lookups - 1; i > last; i--)
    if (s->lookups[i].lookup == expr) return i;
  return last;
}

int32_t ftl_select_entry_of(const ftl_select *s, ftl_expr expr) {
  int32_t last = s->num_lookups > 0 ? last_entry(s, expr) : -1;
  return last < 0 ? NONE : s->lookups[last].value;
}

int32_t ftl_select_entry_of_ref(const ftl_select *s, const ftl_tile_ref *ref) {
  const ftl_expr coordinates[] = {ref->batch, ref->head, ref->row, ref->column, ref->column_end, ref->row_end};
  int32_t last = -1;
  for (size_t i = 0; s->num_lookups > 0 && i < sizeof coordinates / sizeof *coordinates; i++) {
    int32_t entry = last_entry(s, coordinates[i]);
    if (entry > last) last = entry;
  }
  return last < 0 ? NONE : s->lookups[last].value;
}
