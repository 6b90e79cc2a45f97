// Expressions: constants are folded and equal subexpressions shared as they are built.
#include "tile/builder_internal.h"
#include "tile/expr_apply.h"

enum { MAX_TREE_NODES = 512 };

static ftl_expr expr_intern(ftl_builder *builder, ftl_expr_node node, int32_t size) {
  ftl_tile_program *program = builder->program;
  if (builder->error.status != FTL_OK) return 0;
  for (ftl_expr i = 0; i < program->num_exprs; i++) {
    const ftl_expr_node *other = &program->exprs[i];
    if (other->kind == node.kind && other->value == node.value && other->a == node.a && other->b == node.b) return i;
  }
  if (size > MAX_TREE_NODES || program->num_exprs == FTL_TILE_MAX_EXPRS) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "an expression is too large: at most %d nodes each, %d in all",
                     MAX_TREE_NODES, FTL_TILE_MAX_EXPRS);
    return 0;
  }
  program->exprs[program->num_exprs] = node;
  builder->expr_sizes[program->num_exprs] = size;
  return program->num_exprs++;
}

ftl_expr ftl_const(ftl_builder *builder, int64_t value) {
  return expr_intern(builder, (ftl_expr_node){.kind = FTL_EXPR_CONST, .value = value}, 1);
}

ftl_expr ftl_cta(ftl_builder *builder) { return expr_intern(builder, (ftl_expr_node){.kind = FTL_EXPR_CTA}, 1); }
ftl_expr ftl_warp(ftl_builder *builder) { return expr_intern(builder, (ftl_expr_node){.kind = FTL_EXPR_WARP}, 1); }

ftl_expr ftl_loop_value(ftl_builder *builder, int32_t loop_var) {
  if (loop_var < 0 || loop_var >= builder->program->num_loop_vars) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "loop variable %d does not exist", loop_var);
    return 0;
  }
  return expr_intern(builder, (ftl_expr_node){.kind = FTL_EXPR_LOOP, .value = loop_var}, 1);
}

static bool is_const(const ftl_builder *builder, ftl_expr expr, int64_t *value) {
  const ftl_expr_node *node = &builder->program->exprs[expr];
  *value = node->value;
  return node->kind == FTL_EXPR_CONST;
}

static bool overflows(ftl_expr_kind kind, int64_t a, int64_t b) {
  int64_t ignored;
  switch (kind) {
    case FTL_EXPR_ADD:
      return __builtin_add_overflow(a, b, &ignored);
    case FTL_EXPR_SUB:
      return __builtin_sub_overflow(a, b, &ignored);
    case FTL_EXPR_MUL:
      return __builtin_mul_overflow(a, b, &ignored);
    default:
      return false;
  }
}

// x op b that is x itself.
static bool is_identity(ftl_expr_kind kind, int64_t b) {
  switch (kind) {
    case FTL_EXPR_ADD:
    case FTL_EXPR_SUB:
      return b == 0;
    case FTL_EXPR_MUL:
    case FTL_EXPR_DIV:
      return b == 1;
    default:
      return false;
  }
}

static bool is_commutative(ftl_expr_kind kind) {
  return kind == FTL_EXPR_ADD || kind == FTL_EXPR_MUL || kind == FTL_EXPR_MIN || kind == FTL_EXPR_MAX;
}

// x * b with the constant b.
static bool is_multiple_of(const ftl_builder *builder, ftl_expr a, ftl_expr b) {
  const ftl_expr_node *node = &builder->program->exprs[a];
  return node->kind == FTL_EXPR_MUL && node->b == b;
}

// (x + c) + b and (c - x) + b with constants c and b become one sum; false where it has another form.
static bool merge_constants(ftl_builder *builder, ftl_expr a, int64_t b, ftl_expr_node *merged) {
  const ftl_expr_node *inner = &builder->program->exprs[a];
  int64_t c, sum;
  bool added = inner->kind == FTL_EXPR_ADD && is_const(builder, inner->b, &c);
  bool subtracted = inner->kind == FTL_EXPR_SUB && is_const(builder, inner->a, &c);
  if ((!added && !subtracted) || __builtin_add_overflow(c, b, &sum)) return false;
  *merged = *inner;
  ftl_expr constant = ftl_const(builder, sum);
  *(added ? &merged->b : &merged->a) = constant;
  return true;
}

static ftl_expr expr_binary(ftl_builder *builder, ftl_expr_kind kind, ftl_expr a, ftl_expr b) {
  ftl_tile_program *program = builder->program;
  if (builder->error.status != FTL_OK) return 0;
  if (a < 0 || a >= program->num_exprs || b < 0 || b >= program->num_exprs) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "expression %d does not exist", a < 0 || a >= program->num_exprs ? a : b);
    return 0;
  }
  int64_t value_a, value_b;
  if (is_commutative(kind) && is_const(builder, a, &value_a)) {
    ftl_expr swap = a;
    a = b;
    b = swap;
  }
  bool a_const = is_const(builder, a, &value_a), b_const = is_const(builder, b, &value_b);
  if ((kind == FTL_EXPR_DIV || kind == FTL_EXPR_MOD) && (!b_const || value_b <= 0)) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "a divisor must be a constant above 0");
    return 0;
  }
  if (a_const && b_const) {
    if (!overflows(kind, value_a, value_b)) return ftl_const(builder, ftl_expr_apply(kind, value_a, value_b));
    ftl_builder_fail(builder, FTL_BAD_INPUT, "a constant expression exceeds 63 bits");
    return 0;
  }
  if (b_const && is_identity(kind, value_b)) return a;
  if (b_const && ((kind == FTL_EXPR_MUL && value_b == 0) || (kind == FTL_EXPR_MOD && value_b == 1)))
    return ftl_const(builder, 0);
  if (kind == FTL_EXPR_DIV && is_multiple_of(builder, a, b)) return builder->program->exprs[a].a;
  if (kind == FTL_EXPR_SUB && b_const && value_b != INT64_MIN) return ftl_add(builder, a, ftl_const(builder, -value_b));
  ftl_expr_node merged;
  if (kind == FTL_EXPR_ADD && b_const && merge_constants(builder, a, value_b, &merged))
    return expr_binary(builder, merged.kind, merged.a, merged.b);
  if (a == b && (kind == FTL_EXPR_MIN || kind == FTL_EXPR_MAX)) return a;
  return expr_intern(builder, (ftl_expr_node){.kind = kind, .a = a, .b = b},
                     builder->expr_sizes[a] + builder->expr_sizes[b] + 1);
}

ftl_expr ftl_lookup(ftl_builder *builder, int32_t table, ftl_expr index) {
  ftl_tile_program *program = builder->program;
  if (builder->error.status != FTL_OK) return 0;
  if (index < 0 || index >= program->num_exprs || table < 0 || table >= program->num_tensors ||
      !program->tensors[table].table || program->tensors[table].num_columns != 1) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "a lookup takes a table and an expression: table %d, expression %d", table,
                     index);
    return 0;
  }
  return expr_intern(builder, (ftl_expr_node){.kind = FTL_EXPR_LOOKUP, .value = table, .a = index},
                     builder->expr_sizes[index] + 1);
}

ftl_expr ftl_add(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_ADD, a, b); }
ftl_expr ftl_sub(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_SUB, a, b); }
ftl_expr ftl_mul(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_MUL, a, b); }
ftl_expr ftl_div(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_DIV, a, b); }
ftl_expr ftl_mod(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_MOD, a, b); }
ftl_expr ftl_min(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_MIN, a, b); }
ftl_expr ftl_max(ftl_builder *builder, ftl_expr a, ftl_expr b) { return expr_binary(builder, FTL_EXPR_MAX, a, b); }
