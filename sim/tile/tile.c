#include "tile/tile.h"

#include <stdlib.h>

// Numbers of 32 bits, as nearly all are, divide in half the time.
static int64_t floor_div(int64_t a, int64_t b) {
  if (((uint64_t)a | (uint64_t)b) <= UINT32_MAX) return (uint32_t)a / (uint32_t)b;
  int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

// Sums and products wrap instead of being undefined; programs whose values come near 2^63 are refused when built.
static int64_t wrap(uint64_t x) { return (int64_t)x; }

int64_t ftl_expr_apply(ftl_expr_kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case FTL_EXPR_ADD:
      return wrap((uint64_t)a + (uint64_t)b);
    case FTL_EXPR_SUB:
      return wrap((uint64_t)a - (uint64_t)b);
    case FTL_EXPR_MUL:
      return wrap((uint64_t)a * (uint64_t)b);
    case FTL_EXPR_DIV:
      return floor_div(a, b);
    case FTL_EXPR_MOD:
      return a - floor_div(a, b) * b;
    case FTL_EXPR_MIN:
      return a < b ? a : b;
    case FTL_EXPR_MAX:
      return a > b ? a : b;
    default:
      return 0;
  }
}

static int64_t look_up(const ftl_tensor *table, int64_t index) {
  return index >= 0 && index < table->num_rows ? table->table[index] : 0;
}

// Most operands are constants or the CTA.
static inline int64_t operand(const ftl_tile_program *program, ftl_expr expr, const ftl_expr_point *point) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind == FTL_EXPR_CONST) return node->value;
  return node->kind == FTL_EXPR_CTA ? point->cta : ftl_expr_eval(program, expr, point);
}

// Operands come before their node, and the builder bounds the size of the tree, so the recursion is short.
int64_t ftl_expr_eval(const ftl_tile_program *program, ftl_expr expr, const ftl_expr_point *point) {
  const ftl_expr_node *node = &program->exprs[expr];
  switch (node->kind) {
    case FTL_EXPR_CONST:
      return node->value;
    case FTL_EXPR_CTA:
      return point->cta;
    case FTL_EXPR_LOOP:
      return point->loop[node->value];
    case FTL_EXPR_WARP:
      return point->warp;
    case FTL_EXPR_LOOKUP:
      return look_up(&program->tensors[node->value], operand(program, node->a, point));
    default:
      return ftl_expr_apply(node->kind, operand(program, node->a, point), operand(program, node->b, point));
  }
}

static int64_t lowest_bit(int64_t x) {
  enum { MOST = 1 << 30 };
  return x == 0 || (x & -x) > MOST ? MOST : x & -x;
}

static int64_t table_alignment(const ftl_tensor *table) {
  int64_t bits = 0;
  for (int64_t i = 0; i < table->num_rows; i++) bits |= table->table[i];
  return lowest_bit(bits);
}

int64_t ftl_expr_alignment(const ftl_tile_program *program, ftl_expr expr) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind == FTL_EXPR_CONST) return lowest_bit(node->value);
  if (node->kind < FTL_EXPR_ADD || node->kind == FTL_EXPR_DIV) return 1;
  if (node->kind == FTL_EXPR_LOOKUP) return table_alignment(&program->tensors[node->value]);
  int64_t a = ftl_expr_alignment(program, node->a), b = ftl_expr_alignment(program, node->b);
  if (node->kind == FTL_EXPR_MUL) return lowest_bit(a * b);
  return a < b ? a : b;  // of a modulus too: it is the dividend less a multiple of the divisor
}

bool ftl_expr_uses(const ftl_tile_program *program, ftl_expr expr, int32_t loop_var) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind == FTL_EXPR_CONST || node->kind == FTL_EXPR_CTA || node->kind == FTL_EXPR_WARP) return false;
  if (node->kind == FTL_EXPR_LOOP) return node->value == loop_var;
  if (node->kind == FTL_EXPR_LOOKUP && loop_var < 0) return true;
  return ftl_expr_uses(program, node->a, loop_var) || ftl_expr_uses(program, node->b, loop_var);
}

static bool uses_kind(const ftl_tile_program *program, ftl_expr expr, ftl_expr_kind kind) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return node->kind == kind;
  return uses_kind(program, node->a, kind) || uses_kind(program, node->b, kind);
}

bool ftl_expr_uses_warp(const ftl_tile_program *program, ftl_expr expr) {
  return uses_kind(program, expr, FTL_EXPR_WARP);
}

bool ftl_expr_uses_cta(const ftl_tile_program *program, ftl_expr expr) {
  return uses_kind(program, expr, FTL_EXPR_CTA);
}

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

int32_t ftl_role_row_warps(const ftl_role *role) { return role->num_warps / role->num_groups; }

const char *ftl_tile_op_name(ftl_tile_op_kind kind) {
  static const char *const names[] = {
      [FTL_TILE_LOOP] = "loop",
      [FTL_TILE_END_LOOP] = "end_loop",
      [FTL_TILE_ACQUIRE] = "acquire",
      [FTL_TILE_LOAD] = "load",
      [FTL_TILE_COMMIT] = "commit",
      [FTL_TILE_WAIT] = "wait",
      [FTL_TILE_RELEASE] = "release",
      [FTL_TILE_LOOKUP] = "lookup",
      [FTL_TILE_LOAD_TILE] = "load_tile",
      [FTL_TILE_LOAD_ROWS] = "load_rows",
      [FTL_TILE_LOAD_COLUMNS] = "load_columns",
      [FTL_TILE_FILL] = "fill",
      [FTL_TILE_FETCH] = "fetch",
      [FTL_TILE_PUT] = "put",
      [FTL_TILE_DEQUANTIZE] = "dequantize",
      [FTL_TILE_TRANSPOSE] = "transpose",
      [FTL_TILE_MMA] = "mma",
      [FTL_TILE_ELEM] = "elem",
      [FTL_TILE_MASK] = "mask",
      [FTL_TILE_MASK_BITS] = "mask_bits",
      [FTL_TILE_DROPOUT] = "dropout",
      [FTL_TILE_REDUCE_ROWS] = "reduce_rows",
      [FTL_TILE_REDUCE_LANES] = "reduce_lanes",
      [FTL_TILE_REDUCE_WARPS] = "reduce_warps",
      [FTL_TILE_REDUCE_GROUPS] = "reduce_groups",
      [FTL_TILE_TOP] = "top",
      [FTL_TILE_STORE_TOP] = "store_top",
      [FTL_TILE_GATHER] = "gather",
      [FTL_TILE_CONVERT] = "convert",
      [FTL_TILE_STORE] = "store",
      [FTL_TILE_ATOMIC_ADD] = "atomic_add",
      [FTL_TILE_STORE_ROWS] = "store_rows",
      [FTL_TILE_STORE_MERGED] = "store_merged",
      [FTL_TILE_BARRIER] = "barrier",
      [FTL_TILE_ARRIVE] = "arrive",
      [FTL_TILE_SYNC] = "sync",
  };
  return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

bool ftl_tile_op_loads_direct(ftl_tile_op_kind kind) {
  return kind == FTL_TILE_LOOKUP || kind == FTL_TILE_LOAD_TILE || kind == FTL_TILE_LOAD_ROWS ||
         kind == FTL_TILE_LOAD_COLUMNS || kind == FTL_TILE_MASK_BITS;
}

bool ftl_tile_op_loads(ftl_tile_op_kind kind) { return kind == FTL_TILE_LOAD || ftl_tile_op_loads_direct(kind); }

bool ftl_tile_op_stores(ftl_tile_op_kind kind) {
  return kind == FTL_TILE_STORE || kind == FTL_TILE_ATOMIC_ADD || kind == FTL_TILE_STORE_ROWS ||
         kind == FTL_TILE_STORE_MERGED || kind == FTL_TILE_STORE_TOP;
}

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
