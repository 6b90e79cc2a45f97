#include "tile/tile.h"

#include <stdlib.h>

int64_t ftl_tile_ref_end_row(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point) {
  int64_t end = program->tensors[ref->tensor].num_rows;
  if (ref->row_end == FTL_TENSOR_END) return end;
  int64_t given = ftl_expr_eval(program, ref->row_end, point);
  return given < end || ref->pages.page_rows > 0 ? given : end;
}

int64_t ftl_tile_ref_end_column(const ftl_tile_program *program, const ftl_tile_ref *ref, const ftl_expr_point *point) {
  int64_t end = program->tensors[ref->tensor].num_columns;
  if (ref->column_end == FTL_TENSOR_END) return end;
  int64_t nearer = ftl_expr_eval(program, ref->column_end, point);
  return nearer < end ? nearer : end;
}

int64_t ftl_tile_ref_num_columns(const ftl_tile_program *program, const ftl_tile_ref *ref,
                                 const ftl_expr_point *point) {
  int64_t left = ftl_tile_ref_end_column(program, ref, point) - ftl_expr_eval(program, ref->column, point);
  return left < 0 ? 0 : left < ref->columns ? left : ref->columns;
}

int32_t ftl_tile_num_warps(const ftl_tile_program *program) {
  int32_t num_warps = 0;
  for (int32_t i = 0; i < program->num_roles; i++) num_warps += program->roles[i].num_warps;
  return num_warps;
}

int32_t ftl_value_warp_columns(const ftl_value *value) {
  bool is_shared = value->warps_per_row > 1 && !value->is_repeated;
  return is_shared ? value->columns / value->warps_per_row : value->columns;
}

int32_t ftl_role_row_warps(const ftl_role *role) { return role->num_warps / role->num_groups; }

int32_t ftl_tile_num_copies(const ftl_tile_program *program, int32_t value) {
  const ftl_value *info = &program->values[value];
  return info->layout.threads_per_row > 0 ? 1 : program->roles[info->role].num_groups;
}

int32_t ftl_tile_scale_groups(const ftl_ring *to, const ftl_ring *scales) {
  if (to->rows % scales->columns != 0) return 0;
  int32_t num_pages = to->rows / scales->columns;
  if (scales->rows % num_pages != 0) return 0;
  int32_t num_groups = scales->rows / num_pages;
  return to->columns % num_groups == 0 ? num_groups : 0;
}

int32_t ftl_tile_terms_of_b(const ftl_tile_program *program, const ftl_tile_op *mma) {
  const ftl_ring *b = &program->rings[mma->ring];
  return mma->transpose_b ? b->columns : b->rows / program->roles[program->values[mma->dst].role].num_groups;
}

int32_t ftl_tile_first_term_of_b(const ftl_tile_program *program, const ftl_tile_op *mma) {
  return ftl_tile_terms_of_b(program, mma) == mma->num_k ? 0 : mma->first_k;
}

bool ftl_tile_ring_is_put(const ftl_tile_program *program, int32_t ring) {
  for (int32_t i = 0; i < program->num_ops; i++) {
    const ftl_tile_op *op = &program->ops[i];
    bool puts = op->kind == FTL_TILE_PUT || op->kind == FTL_TILE_DEQUANTIZE || op->kind == FTL_TILE_TRANSPOSE;
    if (puts && op->ring == ring) return true;
  }
  return false;
}

bool ftl_tile_ring_is_stored(const ftl_tile_program *program, int32_t ring) {
  return program->rings[ring].through_registers || ftl_tile_ring_is_put(program, ring);
}

void ftl_tile_program_destroy(ftl_tile_program *program) {
  if (!program) return;
  for (int32_t i = 0; i < program->num_tensors; i++) free(program->tensors[i].table);
  free(program->ops);
  free(program->exprs);
  free(program);
}
