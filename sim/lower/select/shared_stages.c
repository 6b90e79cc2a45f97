#include "lower/select/shared_stages.h"

bool ftl_select_shares_stages(const ftl_select *s) {
  bool is_one_tile = s->tile->num_roles == 1 && !s->tile->persistent;
  if (!s->plain_code || s->mma != FTL_MMA_MMA || s->copy != FTL_COPY_CP_ASYNC) return false;
  if (!is_one_tile || s->role->num_groups == 1) return false;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_MMA && s->tile->rings[op->ring].num_stages == 1) return false;
  }
  return true;
}

static bool is_copied_in_pages(const ftl_select *s, int32_t ring) {
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_LOAD && op->ring == ring && op->ref.pages.page_rows > 0) return true;
  }
  return false;
}

bool ftl_select_finds_offsets_anew(const ftl_select *s, int32_t ring) {
  return ftl_select_shares_stages(s) && s->tile->rings[ring].num_stages > 1 && !is_copied_in_pages(s, ring);
}

// nvcc hoists them out of the loops where a warp has two k steps of a tile's keys (7 instances of decode_mma.h at
// head_dim 64 and 128), and in 2 of 16 others (one, three and four k steps; head_dim 32, 96 and 256).
bool ftl_select_keeps_places(const ftl_select *s, int32_t ring) {
  enum { KEPT_K_STEPS = 2 };
  int32_t keys = s->tile->rings[ring].rows / s->role->num_groups;
  return ftl_select_finds_offsets_anew(s, ring) && keys == KEPT_K_STEPS * s->product->operand_columns;
}
