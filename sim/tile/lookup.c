// Tables, and where their entries are read: LOOKUP operations are added before the operations whose expressions need
// them. A register holds an entry as long as it cannot change, so each is read once in the outermost loop that its
// index and its guard allow, as a compiler hoists a load.
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "tile/builder_internal.h"

// A table of num_rows x num_columns entries.
static int32_t add_table(ftl_builder *builder, const char *name, ftl_tensor_use use, const void *entries,
                         int64_t num_rows, int64_t num_columns) {
  int64_t count;
  if (num_rows < 1 || num_columns < 1 || __builtin_mul_overflow(num_rows, num_columns, &count)) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "table %s of %lld entries", name,
                     (long long)ftl_smaller(num_rows, num_columns));
    return 0;
  }
  int32_t table = ftl_builder_tensor(builder, name, FTL_INT32, use, ftl_contiguous(1, 1, num_rows, num_columns));
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

int32_t ftl_builder_table(ftl_builder *builder, const char *name, const int32_t *entries, int64_t count) {
  return add_table(builder, name, FTL_TENSOR_INPUT, entries, count, 1);
}

int32_t ftl_builder_temp_table(ftl_builder *builder, const char *name, const int32_t *entries, int64_t count) {
  return add_table(builder, name, FTL_TENSOR_TEMP, entries, count, 1);
}

int32_t ftl_builder_bit_rows(ftl_builder *builder, const char *name, const uint32_t *words, int64_t num_rows,
                             int64_t words_per_row) {
  return add_table(builder, name, FTL_TENSOR_INPUT, words, num_rows, words_per_row);
}

void ftl_builder_drop_lookups(ftl_builder *builder, int32_t depth) {
  int32_t kept = 0;
  for (int32_t i = 0; i < builder->num_held; i++)
    if (builder->held[i].depth < depth) builder->held[kept++] = builder->held[i];
  builder->num_held = kept;
}

static bool is_held(const ftl_builder *builder, const ftl_tile_op *op) {
  for (int32_t i = 0; i < builder->num_held; i++) {
    const ftl_held_lookup *held = &builder->held[i];
    bool same_entries =
        held->table == op->ref.tensor && held->entry == op->ref.row && held->num_entries == op->ref.rows;
    bool covers = held->present == FTL_ALWAYS || held->present == op->ref.present;
    if (held->lookup == op->lookup && same_entries && covers) return true;
  }
  return false;
}

// Loops, from the outermost, that have to be entered before the entry and the guard are known.
static int32_t depth_of(const ftl_builder *builder, const ftl_tile_ref *entries) {
  const ftl_expr exprs[] = {entries->row, entries->row_end, entries->present};
  for (int32_t depth = builder->num_open_loops; depth > 0; depth--)
    for (size_t i = 0; i < sizeof exprs / sizeof *exprs; i++)
      if (exprs[i] >= 0 && ftl_expr_uses(builder->program, exprs[i], builder->open_loops[depth - 1])) return depth;
  return 0;
}

// lookup: the expression, or FTL_PAGE_ENTRIES.
static void add_lookup(ftl_builder *builder, ftl_expr lookup, ftl_tile_ref entries) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOOKUP);
  op.lookup = lookup;
  op.ref = entries;
  if (!ftl_builder_is_ok(builder) || is_held(builder, &op)) return;
  if (builder->num_held == FTL_TILE_MAX_LOOKUPS) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "allowed are %d lookups held at a time", FTL_TILE_MAX_LOOKUPS);
    return;
  }
  int32_t depth = depth_of(builder, &entries);
  bool here = depth == builder->num_open_loops;
  ftl_builder_insert_op(builder, here ? builder->program->num_ops : builder->open_loop_ops[depth], &op);
  builder->held[builder->num_held++] = (ftl_held_lookup){.lookup = lookup,
                                                         .present = entries.present,
                                                         .table = entries.tensor,
                                                         .num_entries = entries.rows,
                                                         .entry = entries.row,
                                                         .depth = depth};
}

static ftl_tile_ref entry_of(const ftl_expr_node *lookup, ftl_expr present) {
  return (ftl_tile_ref){
      .tensor = (int32_t)lookup->value, .row = lookup->a, .present = present, .rows = 1, .columns = 1};
}

// The lookups in an expression, those of their indices first.
static void visit(ftl_builder *builder, ftl_expr expr, ftl_expr present) {
  if (expr < 0 || expr >= builder->program->num_exprs) return;
  const ftl_expr_node *node = &builder->program->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return;
  visit(builder, node->a, present);
  visit(builder, node->b, present);
  if (node->kind == FTL_EXPR_LOOKUP) add_lookup(builder, expr, entry_of(node, present));
}

void ftl_look_up(ftl_builder *builder, ftl_expr lookup, ftl_expr present, int32_t index_insts) {
  if (!ftl_builder_is_ok(builder)) return;
  const ftl_expr_node *node = &builder->program->exprs[lookup];
  visit(builder, node->a, present);
  visit(builder, present, FTL_ALWAYS);
  ftl_tile_ref entry = entry_of(node, present);
  entry.index_insts = index_insts;
  add_lookup(builder, lookup, entry);
}

static void visit_ref(ftl_builder *builder, const ftl_tile_ref *ref) {
  visit(builder, ref->present, FTL_ALWAYS);
  const ftl_expr coordinates[] = {ref->batch, ref->head, ref->row, ref->column, ref->column_end, ref->row_end};
  for (size_t i = 0; i < sizeof coordinates / sizeof *coordinates; i++) visit(builder, coordinates[i], ref->present);
}

// Pages that the rows of a tile can lie in, wherever it is evaluated.
static int32_t num_entries_of(const ftl_tile_program *program, const ftl_tile_ref *ref) {
  int32_t rows = ref->rows, page_rows = ref->pages.page_rows;
  int64_t alignment = ftl_expr_alignment(program, ref->row);
  if (page_rows % rows == 0 && alignment % rows == 0) return 1;
  if (rows % page_rows == 0 && alignment % page_rows == 0) return rows / page_rows;
  return (rows + page_rows - 2) / page_rows + 1;
}

static void visit_pages(ftl_builder *builder, ftl_tile_ref *ref) {
  const ftl_tile_program *program = builder->program;
  ftl_pages *pages = &ref->pages;
  if (pages->page_rows == 0) return;
  if (pages->page_rows < 0 || pages->table < 0 || pages->table >= program->num_tensors ||
      !program->tensors[pages->table].table || ref->rows < 1 || ref->row_end == FTL_TENSOR_END) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "pages need a table of them, at least 1 row each, and an end of the rows");
    return;
  }
  ftl_expr page_rows = ftl_const(builder, pages->page_rows), last = ftl_const(builder, pages->page_rows - 1);
  ftl_expr num_pages = ftl_div(builder, ftl_add(builder, ref->row_end, last), page_rows);
  pages->entry = ftl_add(builder, pages->first_entry, ftl_div(builder, ref->row, page_rows));
  ftl_tile_ref entries = {.tensor = pages->table,
                          .row = pages->entry,
                          .row_end = ftl_add(builder, pages->first_entry, num_pages),
                          .present = ref->present,
                          .columns = 1};
  visit(builder, pages->first_entry, ref->present);
  if (!ftl_builder_is_ok(builder)) return;
  pages->num_entries = entries.rows = num_entries_of(program, ref);
  add_lookup(builder, FTL_PAGE_ENTRIES, entries);
}

void ftl_builder_add_lookups(ftl_builder *builder, ftl_tile_op *op) {
  if (!ftl_builder_is_ok(builder)) return;
  if (op->kind == FTL_TILE_LOOP) {
    visit(builder, op->lo, FTL_ALWAYS);
    visit(builder, op->hi, FTL_ALWAYS);
  }
  if (op->kind == FTL_TILE_MASK) {
    const ftl_expr exprs[] = {op->row0, op->column0, op->diagonal, op->left, op->limit};
    for (size_t i = 0; i < sizeof exprs / sizeof *exprs; i++) visit(builder, exprs[i], FTL_ALWAYS);
  }
  if (op->kind == FTL_TILE_DROPOUT) {
    const ftl_expr exprs[] = {op->sequence, op->row0, op->column0};
    for (size_t i = 0; i < sizeof exprs / sizeof *exprs; i++) visit(builder, exprs[i], FTL_ALWAYS);
  }
  if (!ftl_tile_op_loads(op->kind) && !ftl_tile_op_stores(op->kind)) return;
  visit_ref(builder, &op->ref);
  visit_pages(builder, &op->ref);
}
