// Tables, and where their entries are read: LOOKUP operations are added before the operations whose expressions need
// them. A register holds an entry as long as it cannot change, so each is read once in the outermost loop that its
// index and its guard allow, as a compiler hoists a load.
#include <stdlib.h>
#include <string.h>

#include "tile/builder_internal.h"

int32_t ftl_builder_table(ftl_builder *builder, const char *name, const int32_t *entries, int64_t count) {
  if (count < 1) ftl_builder_fail(builder, FTL_BAD_INPUT, "table %s of %lld entries", name, (long long)count);
  int32_t table = ftl_builder_tensor(builder, name, FTL_INT32, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, count, 1));
  if (!ftl_builder_is_ok(builder)) return 0;
  int32_t *copy = malloc((size_t)count * sizeof *copy);
  if (!copy) {
    ftl_builder_fail(builder, FTL_NO_MEMORY, "out of memory for table %s", name);
    return 0;
  }
  memcpy(copy, entries, (size_t)count * sizeof *copy);
  builder->program->tensors[table].table = copy;
  return table;
}

void ftl_builder_drop_lookups(ftl_builder *builder, int32_t depth) {
  int32_t kept = 0;
  for (int32_t i = 0; i < builder->num_held; i++)
    if (builder->held[i].depth < depth) builder->held[kept++] = builder->held[i];
  builder->num_held = kept;
}

static bool is_held(const ftl_builder *builder, ftl_expr lookup, ftl_expr present) {
  for (int32_t i = 0; i < builder->num_held; i++) {
    const ftl_held_lookup *held = &builder->held[i];
    if (held->lookup == lookup && (held->present == FTL_ALWAYS || held->present == present)) return true;
  }
  return false;
}

// Loops, from the outermost, that have to be entered before the index and the guard are known.
static int32_t depth_of(const ftl_builder *builder, ftl_expr lookup, ftl_expr present) {
  for (int32_t depth = builder->num_open_loops; depth > 0; depth--) {
    int32_t loop_var = builder->open_loops[depth - 1];
    if (ftl_expr_uses(builder->program, lookup, loop_var) ||
        (present != FTL_ALWAYS && ftl_expr_uses(builder->program, present, loop_var)))
      return depth;
  }
  return 0;
}

static void add_lookup(ftl_builder *builder, ftl_expr lookup, ftl_expr present) {
  if (is_held(builder, lookup, present)) return;
  if (builder->num_held == FTL_TILE_MAX_LOOKUPS) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "allowed are %d lookups held at a time", FTL_TILE_MAX_LOOKUPS);
    return;
  }
  const ftl_expr_node *node = &builder->program->exprs[lookup];
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOOKUP);
  op.lookup = lookup;
  op.ref = (ftl_tile_ref){.tensor = (int32_t)node->value, .row = node->a, .present = present, .rows = 1, .columns = 1};
  int32_t depth = depth_of(builder, lookup, present);
  bool here = depth == builder->num_open_loops;
  ftl_builder_insert_op(builder, here ? builder->program->num_ops : builder->open_loop_ops[depth], &op);
  builder->held[builder->num_held++] = (ftl_held_lookup){lookup, present, depth};
}

// The lookups in an expression, those of their indices first.
static void visit(ftl_builder *builder, ftl_expr expr, ftl_expr present) {
  if (expr < 0 || expr >= builder->program->num_exprs) return;
  const ftl_expr_node *node = &builder->program->exprs[expr];
  if (node->kind == FTL_EXPR_CONST || node->kind == FTL_EXPR_CTA || node->kind == FTL_EXPR_LOOP) return;
  visit(builder, node->a, present);
  visit(builder, node->b, present);
  if (node->kind == FTL_EXPR_LOOKUP && ftl_builder_is_ok(builder)) add_lookup(builder, expr, present);
}

static void visit_ref(ftl_builder *builder, const ftl_tile_ref *ref) {
  visit(builder, ref->present, FTL_ALWAYS);
  const ftl_expr coordinates[] = {ref->batch, ref->head, ref->row, ref->column, ref->column_end};
  for (size_t i = 0; i < sizeof coordinates / sizeof *coordinates; i++) visit(builder, coordinates[i], ref->present);
}

void ftl_builder_add_lookups(ftl_builder *builder, const ftl_tile_op *op) {
  if (!ftl_builder_is_ok(builder)) return;
  if (op->kind == FTL_TILE_LOOP) {
    visit(builder, op->lo, FTL_ALWAYS);
    visit(builder, op->hi, FTL_ALWAYS);
  }
  if (op->kind == FTL_TILE_MASK) {
    const ftl_expr exprs[] = {op->row0, op->column0, op->diagonal, op->limit};
    for (size_t i = 0; i < sizeof exprs / sizeof *exprs; i++) visit(builder, exprs[i], FTL_ALWAYS);
  }
  if (ftl_tile_op_loads(op->kind) || ftl_tile_op_stores(op->kind)) visit_ref(builder, &op->ref);
}
