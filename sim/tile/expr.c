// Expressions at a point, and what can be said of them at every point.
#include "tile/expr_apply.h"
#include "tile/tile.h"

// Most operands are constants or the CTA.
static inline int64_t operand(const ftl_tile_program *program, ftl_expr expr, const ftl_expr_point *point) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind == FTL_EXPR_CONST) return node->value;
  return node->kind == FTL_EXPR_CTA ? point->cta : ftl_expr_eval(program, expr, point);
}

static int64_t apply_to_operands(const ftl_tile_program *program, const ftl_expr_node *node,
                                 const ftl_expr_point *point) {
  if (node->kind == FTL_EXPR_LOOKUP)
    return ftl_expr_look_up(&program->tensors[node->value], operand(program, node->a, point));
  return ftl_expr_apply(node->kind, operand(program, node->a, point), operand(program, node->b, point));
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
    default:
      break;
  }
  if (point->of_cta.place) {
    int32_t place = point->of_cta.place[expr];
    if (place >= 0) return point->of_cta.values[place];
  }
  ftl_expr_known *known = point->known;
  if (!known) return apply_to_operands(program, node, point);
  uint32_t at = (uint32_t)expr % (sizeof known->values / sizeof known->values[0]);
  if (known->values[at].generation == known->generation && known->values[at].expr == expr)
    return known->values[at].value;
  int64_t value = apply_to_operands(program, node, point);
  known->values[at].generation = known->generation;
  known->values[at].expr = expr;
  known->values[at].value = value;
  return value;
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
  if (node->kind == FTL_EXPR_LOOKUP) return loop_var < 0 || ftl_expr_uses(program, node->a, loop_var);
  return ftl_expr_uses(program, node->a, loop_var) || ftl_expr_uses(program, node->b, loop_var);
}

static bool uses_kind(const ftl_tile_program *program, ftl_expr expr, ftl_expr_kind kind) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return node->kind == kind;
  if (node->kind == FTL_EXPR_LOOKUP) return uses_kind(program, node->a, kind);
  return uses_kind(program, node->a, kind) || uses_kind(program, node->b, kind);
}

bool ftl_expr_uses_warp(const ftl_tile_program *program, ftl_expr expr) {
  return uses_kind(program, expr, FTL_EXPR_WARP);
}

bool ftl_expr_uses_cta(const ftl_tile_program *program, ftl_expr expr) {
  return uses_kind(program, expr, FTL_EXPR_CTA);
}
