// Interval arithmetic over a program's expressions: what they can be at any CTA and in any iteration. Where intervals
// are too wide, as of `end - 1 - i` with i below `end`, sums are taken apart: the loop variables in them are replaced
// by the bounds of their loops, from the innermost, and what cancels is gone.
#include <inttypes.h>
#include <stdio.h>

#include "tile/bounds_lookup.h"
#include "tile/expr_apply.h"

static const int64_t largest_value = INT64_C(1) << 60;
static const int64_t largest_coordinate = INT64_C(1) << 46;
static const int64_t most_steps = INT64_C(1) << 24;
static const int64_t most_visits = INT64_C(1) << 20;  // to find what lookups read

typedef struct interval {
  int64_t least, most;  // both within +-largest_value; a sum or product beyond is cut to it
} interval;

typedef struct bounds {
  ftl_check check;
  interval tables[FTL_TILE_MAX_TENSORS];            // of the entries of those that are tables
  interval loops[FTL_TILE_MAX_LOOP_VARS];           // of the variables in scope
  const ftl_tile_op *open[FTL_TILE_MAX_LOOP_VARS];  // their loops, outermost first
  int64_t trips[FTL_TILE_MAX_LOOP_VARS];  // product of the trip counts of the loops that are open, outermost first
  int num_open;
  int64_t steps, visits_left;
} bounds;

static int64_t cut(int64_t x) { return x < -largest_value ? -largest_value : x > largest_value ? largest_value : x; }

static int64_t product(int64_t a, int64_t b) {
  int64_t x;
  if (!__builtin_mul_overflow(a, b, &x)) return cut(x);
  return (a < 0) == (b < 0) ? largest_value : -largest_value;
}

static interval multiply(interval a, interval b) {
  const int64_t corners[] = {product(a.least, b.least), product(a.least, b.most), product(a.most, b.least),
                             product(a.most, b.most)};
  interval x = {corners[0], corners[0]};
  for (int i = 1; i < 4; i++) {
    if (corners[i] < x.least) x.least = corners[i];
    if (corners[i] > x.most) x.most = corners[i];
  }
  return x;
}

// The divisor is a constant above 0.
static interval modulo(interval a, int64_t divisor) {
  int64_t turn = ftl_expr_apply(FTL_EXPR_DIV, a.least, divisor);
  if (turn != ftl_expr_apply(FTL_EXPR_DIV, a.most, divisor)) return (interval){0, divisor - 1};
  return (interval){ftl_expr_apply(FTL_EXPR_MOD, a.least, divisor), ftl_expr_apply(FTL_EXPR_MOD, a.most, divisor)};
}

// Any entry, or the 0 that stands for what is outside of the table.
static interval range_of_table(const ftl_tensor *table) {
  interval x = {0, 0};
  for (int64_t i = 0; i < table->num_rows * table->num_columns; i++) {
    if (table->table[i] < x.least) x.least = table->table[i];
    if (table->table[i] > x.most) x.most = table->table[i];
  }
  return x;
}

static interval range_of(const bounds *b, ftl_expr expr) {
  const ftl_tile_program *program = b->check.program;
  const ftl_expr_node *node = &program->exprs[expr];
  switch (node->kind) {
    case FTL_EXPR_CONST:
      return (interval){cut(node->value), cut(node->value)};
    case FTL_EXPR_CTA:
      return (interval){0, program->num_ctas - 1};
    case FTL_EXPR_LOOP:
      return b->loops[node->value];
    case FTL_EXPR_WARP:
      return (interval){0, ftl_tile_num_warps(program) - 1};
    case FTL_EXPR_LOOKUP:
      return b->tables[node->value];
    default:
      break;
  }
  interval x = range_of(b, node->a), y = range_of(b, node->b);
  switch (node->kind) {
    case FTL_EXPR_ADD:
      return (interval){cut(x.least + y.least), cut(x.most + y.most)};
    case FTL_EXPR_SUB:
      return (interval){cut(x.least - y.most), cut(x.most - y.least)};
    case FTL_EXPR_MUL:
      return multiply(x, y);
    case FTL_EXPR_MOD:
      return modulo(x, y.least);
    default:  // DIV, MIN and MAX grow with both operands, but DIV's second is a constant
      return (interval){ftl_expr_apply(node->kind, x.least, y.least), ftl_expr_apply(node->kind, x.most, y.most)};
  }
}

// ---- sums ----

enum { MAX_TERMS = 16 };

// constant + the sum of factor * expr, where no expr is a sum or a multiple.
typedef struct sum {
  int num_terms;
  struct {
    ftl_expr expr;
    int64_t factor;
  } terms[MAX_TERMS];
  int64_t constant;
  bool failed;  // too many terms, or numbers near the largest
} sum;

// A number that had to be cut makes the sum useless: a later one could bring it back into range.
static int64_t uncut(sum *s, int64_t x) {
  s->failed = s->failed || x == largest_value || x == -largest_value;
  return x;
}

static int64_t sum_of(sum *s, int64_t x, int64_t y) { return uncut(s, cut(x + y)); }

static void sum_add_term(sum *s, ftl_expr expr, int64_t factor) {
  int i = 0;
  while (i < s->num_terms && s->terms[i].expr != expr) i++;
  if (i == MAX_TERMS) {
    s->failed = true;
    return;
  }
  if (i == s->num_terms) {
    s->terms[s->num_terms].expr = expr;
    s->terms[s->num_terms++].factor = 0;
  }
  s->terms[i].factor = sum_of(s, s->terms[i].factor, factor);
}

static void sum_add(sum *s, const ftl_tile_program *program, ftl_expr expr, int64_t factor) {
  const ftl_expr_node *node = &program->exprs[expr];
  bool is_multiple = node->kind == FTL_EXPR_MUL && program->exprs[node->b].kind == FTL_EXPR_CONST;
  if (node->kind == FTL_EXPR_CONST) {
    s->constant = sum_of(s, s->constant, uncut(s, product(factor, cut(node->value))));
  } else if (node->kind == FTL_EXPR_ADD || node->kind == FTL_EXPR_SUB) {
    sum_add(s, program, node->a, factor);
    sum_add(s, program, node->b, node->kind == FTL_EXPR_ADD ? factor : -factor);
  } else if (is_multiple) {
    sum_add(s, program, node->a, uncut(s, product(factor, cut(program->exprs[node->b].value))));
  } else {
    sum_add_term(s, expr, factor);
  }
}

// Removes the loop's variable: in its place the first or the last value that it has, whichever makes the sum least (or
// most).
static void sum_replace_loop(sum *s, const ftl_tile_program *program, const ftl_tile_op *loop, bool least) {
  for (int i = 0; i < s->num_terms; i++) {
    const ftl_expr_node *node = &program->exprs[s->terms[i].expr];
    if (node->kind != FTL_EXPR_LOOP || node->value != loop->loop_var) continue;
    int64_t factor = s->terms[i].factor;
    bool first = (factor > 0) == least;
    s->terms[i].factor = 0;
    sum_add(s, program, first ? loop->lo : loop->hi, factor);
    if (!first) s->constant = sum_of(s, s->constant, -factor);
    return;
  }
}

// The least (or the most) that the sum can be; `otherwise` where that cannot be said.
static int64_t bound_of_sum(const bounds *b, ftl_expr expr, bool least, int64_t otherwise) {
  sum s = {.num_terms = 0};
  sum_add(&s, b->check.program, expr, 1);
  for (int i = b->num_open - 1; i >= 0; i--) sum_replace_loop(&s, b->check.program, b->open[i], least);
  int64_t bound = s.constant;
  for (int i = 0; i < s.num_terms; i++) {
    interval x = multiply(range_of(b, s.terms[i].expr), (interval){s.terms[i].factor, s.terms[i].factor});
    bound = sum_of(&s, bound, least ? x.least : x.most);
    s.failed = s.failed || x.least == -largest_value || x.most == largest_value;
  }
  return s.failed ? otherwise : bound;
}

// What can be shown of an expression where the interval is too wide.
static interval narrowed(const bounds *b, ftl_expr expr, interval x) {
  int64_t least = bound_of_sum(b, expr, true, x.least), most = bound_of_sum(b, expr, false, x.most);
  return (interval){least > x.least ? least : x.least, most < x.most ? most : x.most};
}

static ftl_status check_within(const bounds *b, ftl_expr expr, int64_t least, int64_t most, const char *what,
                               const char *object) {
  interval x = range_of(b, expr);
  if (x.least >= least && x.most <= most) return FTL_OK;
  x = narrowed(b, expr, x);
  if (x.least >= least && x.most <= most) return FTL_OK;
  return ftl_check_fail(&b->check,
                        "%s of %s can be %" PRId64 " to %" PRId64 ", as far as can be shown; allowed is %" PRId64
                        " to %" PRId64 ": bound it by max and min",
                        what, object, x.least, x.most, least, most);
}

static ftl_status check_ref(const bounds *b, const ftl_tile_ref *ref) {
  const ftl_tensor *tensor = &b->check.program->tensors[ref->tensor];
  ftl_status status = check_within(b, ref->batch, 0, tensor->num_batches - 1, "the batch", tensor->name);
  if (status == FTL_OK) status = check_within(b, ref->head, 0, tensor->num_heads - 1, "the head", tensor->name);
  if (status == FTL_OK) status = check_within(b, ref->row, 0, largest_coordinate, "the row", tensor->name);
  if (status == FTL_OK) status = check_within(b, ref->column, 0, largest_coordinate, "the column", tensor->name);
  if (status == FTL_OK)
    status = check_within(b, ref->column_end, -largest_coordinate, largest_coordinate, "the column end", tensor->name);
  if (status == FTL_OK)
    status = check_within(b, ref->row_end, -largest_coordinate, largest_coordinate, "the row end", tensor->name);
  if (status == FTL_OK && ref->present != FTL_ALWAYS)
    status = check_within(b, ref->present, -largest_coordinate, largest_coordinate, "the presence", tensor->name);
  return status;
}

static ftl_status check_mask(const bounds *b, const ftl_tile_op *op) {
  const char *name = b->check.program->values[op->dst].name;
  const ftl_expr exprs[] = {op->row0, op->column0, op->limit, op->diagonal == FTL_ALWAYS ? op->limit : op->diagonal,
                            op->left == FTL_ALWAYS ? op->limit : op->left};
  static const char *const what[] = {"the first row", "the first column", "the limit", "the diagonal",
                                     "the bound on the left"};
  for (int i = 0; i < 5; i++) {
    ftl_status status = check_within(b, exprs[i], -largest_coordinate, largest_coordinate, what[i], name);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}

static ftl_status enter_loop(bounds *b, const ftl_tile_op *op) {
  char name[16];
  snprintf(name, sizeof name, "loop %d", op->loop_var);
  ftl_status status = check_within(b, op->lo, -largest_coordinate, largest_coordinate, "the begin", name);
  if (status == FTL_OK) status = check_within(b, op->hi, -largest_coordinate, largest_coordinate, "the end", name);
  if (status != FTL_OK) return status;
  interval lo = range_of(b, op->lo), hi = range_of(b, op->hi);
  int64_t most_trips = hi.most > lo.least ? hi.most - lo.least : 0;
  // A body that is never reached is checked as if it ran once.
  b->loops[op->loop_var] = (interval){lo.least, hi.most - 1 > lo.least ? hi.most - 1 : lo.least};
  int64_t around = b->num_open > 0 ? b->trips[b->num_open - 1] : 1;
  b->open[b->num_open] = op;
  b->trips[b->num_open++] = product(around, most_trips);
  return FTL_OK;
}

static ftl_status check_dropout(const bounds *b, const ftl_tile_op *op) {
  const char *name = b->check.program->values[op->dst].name;
  ftl_status status = check_within(b, op->sequence, 0, largest_coordinate, "the head", name);
  if (status == FTL_OK) status = check_within(b, op->row0, 0, largest_coordinate, "the first row", name);
  return status == FTL_OK ? check_within(b, op->column0, 0, largest_coordinate, "the first column", name) : status;
}

// Most lookups are shown to be inside by intervals; where not, by each.
static ftl_status check_lookup(bounds *b, const ftl_tile_op *op) {
  const ftl_tensor *table = &b->check.program->tensors[op->ref.tensor];
  interval x = range_of(b, op->ref.row);
  if (x.least < 0 || x.most >= table->num_rows) x = narrowed(b, op->ref.row, x);
  if (op->lookup == FTL_PAGE_ENTRIES || (x.least >= 0 && x.most < table->num_rows)) return FTL_OK;
  return ftl_check_entries(&b->check, b->open, b->num_open, &b->visits_left);
}

static ftl_status check_op(bounds *b) {
  const ftl_tile_op *op = &b->check.program->ops[b->check.op_idx];
  b->steps = cut(b->steps + (b->num_open > 0 ? b->trips[b->num_open - 1] : 1));
  if (b->steps > most_steps)
    return ftl_check_fail(&b->check, "a CTA may run more than %" PRId64 " operations up to here", most_steps);
  if (op->kind == FTL_TILE_LOOP) return enter_loop(b, op);
  if (op->kind == FTL_TILE_END_LOOP) b->num_open--;
  if (op->kind == FTL_TILE_MASK) return check_mask(b, op);
  if (op->kind == FTL_TILE_DROPOUT) return check_dropout(b, op);
  if (op->kind == FTL_TILE_LOOKUP) {
    ftl_status status = check_lookup(b, op);
    if (status != FTL_OK) return status;
  }
  return op->ref.tensor >= 0 ? check_ref(b, &op->ref) : FTL_OK;
}

ftl_status ftl_tile_program_check_bounds(const ftl_tile_program *program, ftl_bounds_steps *steps, ftl_error *error) {
  *steps = (ftl_bounds_steps){0};
  int64_t visits_left = most_visits;
  for (int32_t role_idx = 0; role_idx < program->num_roles; role_idx++) {
    const ftl_role *role = &program->roles[role_idx];
    bounds b = {.check = {.program = program, .role_idx = role_idx, .error = error}, .visits_left = visits_left};
    for (int32_t i = 0; i < program->num_tensors; i++)
      if (program->tensors[i].table) b.tables[i] = range_of_table(&program->tensors[i]);
    for (b.check.op_idx = role->first_op; b.check.op_idx < role->first_op + role->num_ops; b.check.op_idx++) {
      ftl_status status = check_op(&b);
      if (status != FTL_OK) return status;
    }
    steps->most_a_cta += b.steps;
    visits_left = b.visits_left;
    steps->visits = most_visits - visits_left;
  }
  return FTL_OK;
}
