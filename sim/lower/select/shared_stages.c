#include "lower/select/shared_stages.h"

#define NONE FTL_NO_VALUE
enum { ADDRESS_ADDS = 2 };

static const ftl_tile_op *find_op(const ftl_select *s, ftl_tile_op_kind kind, int32_t ring) {
  for (int32_t i = 0; i < s->role->num_ops; i++)
    if (ftl_select_op_at(s, i)->kind == kind && ftl_select_op_at(s, i)->ring == ring) return ftl_select_op_at(s, i);
  return NULL;
}

// Tiles of a quantised cache arrive in several stages and are multiplied from one.
static bool comes_in_stages(const ftl_select *s, int32_t ring) {
  return s->tile->rings[ring].num_stages > 1 || find_op(s, FTL_TILE_DEQUANTIZE, ring);
}

bool ftl_select_shares_stages(const ftl_select *s) {
  bool is_one_tile = s->tile->num_roles == 1 && !s->tile->persistent;
  if (!s->plain_code || s->mma != FTL_MMA_MMA || s->copy != FTL_COPY_CP_ASYNC) return false;
  if (!is_one_tile || s->role->num_groups == 1) return false;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_MMA && !comes_in_stages(s, op->ring)) return false;
  }
  return true;
}

bool ftl_select_finds_offsets_anew(const ftl_select *s, int32_t ring) {
  const ftl_tile_op *load = find_op(s, FTL_TILE_LOAD, ring);
  bool in_pages = load && load->ref.pages.page_rows > 0;
  return ftl_select_shares_stages(s) && s->tile->rings[ring].num_stages > 1 && !in_pages;
}

bool ftl_select_copies_bytes(const ftl_select *s, int32_t ring) {
  return ftl_select_finds_offsets_anew(s, ring) && !find_op(s, FTL_TILE_MMA, ring);
}

// nvcc hoists them out of the loops where a warp has two k steps of a tile's keys (7 instances of decode_mma.h at
// head_dim 64 and 128), and in 2 of 16 others (one, three and four k steps; head_dim 32, 96 and 256).
bool ftl_select_keeps_places(const ftl_select *s, int32_t ring) {
  enum { KEPT_K_STEPS = 2 };
  int32_t keys = s->tile->rings[ring].rows / s->role->num_groups;
  return ftl_select_finds_offsets_anew(s, ring) && !ftl_select_copies_bytes(s, ring) &&
         keys == KEPT_K_STEPS * s->product->operand_columns;
}

// Of tiles that groups of warps share the row group's offset is found anew: its number (VIADD) and row (LOP3 or SHF),
// added to the tile's offset (IADD3, IMAD.X), scaled (IMAD.SHL, SHF) and added to the tensor's base (IADD3, IADD3.X).
// The tile beside it is copied from that offset and another base, which takes the offset's place. Of a run of bytes
// each copy's address is the one before it and an immediate (IADD3, IMAD.X). SASS of decode_mma.h and
// decode_quantized.h.
int32_t ftl_select_address_found_anew(ftl_select *s, const ftl_tile_op *op, int32_t group, bool is_beside) {
  if (ftl_select_copies_bytes(s, op->ring)) {
    int32_t address = ftl_draft_value_add(&s->draft, 2, 1);
    ftl_select_add(s, FTL_OP_IADD, ADDRESS_ADDS, address, s->tensor_pointer[op->ref.tensor], s->thread, NONE);
    return address;
  }
  int32_t *offset = &s->row_offsets[group];
  if (is_beside) {
    ftl_select_add(s, FTL_OP_IADD, ADDRESS_ADDS, *offset, *offset, NONE, NONE);
    return *offset;
  }
  *offset = ftl_draft_value_add(&s->draft, 2, 1);
  ftl_select_add(s, FTL_OP_IMAD, 1, *offset, s->thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, 1, *offset, *offset, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, 1, *offset, *offset, s->tensor_pointer[op->ref.tensor], NONE);
  ftl_select_add(s, FTL_OP_IMAD, 2, *offset, *offset, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, 1, *offset, *offset, NONE, NONE);
  int32_t address = ftl_draft_value_add(&s->draft, 2, 1);
  ftl_select_add(s, FTL_OP_IADD, ADDRESS_ADDS, address, *offset, s->copied[1], NONE);
  return address;
}
