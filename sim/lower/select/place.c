// From the index of a CTA to the batch, head and row of its tiles: how many divisions by run-time numbers that takes.
#include "lower/select/select.h"

enum { MAX_PAIRS = 16 };
// Of a role that multiplies, and of one that copies for it: 4 x 16 instructions in the SASS of kernels/attention,
// whatever the loop (docs/model_lowering.md).
enum { ROLE_DIVISIONS = 4 };
// ptxas needs some 16 instructions for an unsigned division by a run-time number (reciprocal, two corrections).
enum { DIVISION_INSTS = 16 };
// Of a product of matrices: matrix and tile in it, row, column (each by one of two divisors, as the order of tiles is),
// split; steps a split once. What is worked out beside: the tiles of each side, signs, which order (SASS of
// product_wgmma.h: 139 to 162 instructions in all, 141 a tile of a persistent CTA).
enum { PRODUCT_DIVISIONS = 4, PRODUCT_SIZE_DIVISIONS = 1, PRODUCT_OTHER_INSTS = 40 };

// Distinct (dividend, divisor): quotient and remainder come from one division.
typedef struct pairs {
  const ftl_tile_program *tile;
  ftl_expr dividend[MAX_PAIRS], divisor[MAX_PAIRS];
  int32_t count;
} pairs;

static void add_pair(pairs *p, ftl_expr dividend, ftl_expr divisor) {
  for (int32_t i = 0; i < p->count; i++)
    if (p->dividend[i] == dividend && p->divisor[i] == divisor) return;
  if (p->count == MAX_PAIRS) return;  // a sketch may have more, which are not counted
  p->dividend[p->count] = dividend;
  p->divisor[p->count++] = divisor;
}

static bool is_division(const ftl_expr_node *node) { return node->kind == FTL_EXPR_DIV || node->kind == FTL_EXPR_MOD; }

// Of the index, its quotients and remainders; sums are divided by sizes of blocks, which the compiler knows.
static void visit(pairs *p, ftl_expr expr) {
  const ftl_expr_node *node = &p->tile->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return;
  const ftl_expr_node *dividend = &p->tile->exprs[node->a];
  if (is_division(node) && (dividend->kind == FTL_EXPR_CTA || is_division(dividend))) add_pair(p, node->a, node->b);
  visit(p, node->a);
  visit(p, node->b);
}

// x where outer = x / length and inner = x % length: adjacent dimensions that the code need not take apart. Else -1.
static ftl_expr joined(const ftl_tile_program *tile, ftl_expr outer, ftl_expr inner, int64_t length) {
  const ftl_expr_node *quotient = &tile->exprs[outer], *rest = &tile->exprs[inner];
  if (quotient->kind != FTL_EXPR_DIV || rest->kind != FTL_EXPR_MOD) return -1;
  bool same = quotient->a == rest->a && quotient->b == rest->b;
  return same && tile->exprs[rest->b].value == length ? rest->a : -1;
}

static void visit_ref(pairs *p, const ftl_tile_ref *ref) {
  const ftl_tensor *tensor = &p->tile->tensors[ref->tensor];
  visit(p, ref->column_end);
  bool heads_adjacent = tensor->batch_stride == tensor->num_heads * tensor->head_stride;
  bool rows_adjacent = tensor->head_stride == tensor->num_rows * tensor->row_stride;
  ftl_expr head = heads_adjacent ? joined(p->tile, ref->batch, ref->head, tensor->num_heads) : -1;
  ftl_expr row = head >= 0 && rows_adjacent ? joined(p->tile, head, ref->row, tensor->num_rows) : -1;
  if (head < 0) {
    visit(p, ref->batch);
    visit(p, ref->head);
  } else if (row < 0) {
    visit(p, head);
  }
  visit(p, row < 0 ? ref->row : row);
}

int32_t ftl_select_num_divisions(const ftl_tile_program *tile, const ftl_role *role) {
  pairs p = {.tile = tile};
  for (int32_t i = 0; i < role->num_ops; i++) {
    const ftl_tile_op *op = &tile->ops[role->first_op + i];
    if (op->kind == FTL_TILE_MMA) return ROLE_DIVISIONS;
    if (op->kind == FTL_TILE_LOAD && tile->num_roles > 1) return ROLE_DIVISIONS;
    if (ftl_tile_op_loads(op->kind) || ftl_tile_op_stores(op->kind)) visit_ref(&p, &op->ref);
    if (op->kind == FTL_TILE_MASK) visit(&p, op->limit);
  }
  return p.count;
}

bool ftl_select_moves_coordinates(const ftl_select *s) {
  // The producer's role has no products: those of all roles count.
  return s->plain_code && s->mma == FTL_MMA_WGMMA && ftl_select_ops_multiply_one_a(s->tile->ops, s->tile->num_ops);
}

ftl_select_place ftl_select_place_of(const ftl_select *s) {
  if (!ftl_select_moves_coordinates(s))
    return (ftl_select_place){.num_insts = ftl_select_num_divisions(s->tile, s->role) * DIVISION_INSTS};
  return (ftl_select_place){
      .num_insts = PRODUCT_OTHER_INSTS,
      .num_signed_divisions = PRODUCT_DIVISIONS + (s->tile->persistent ? 0 : PRODUCT_SIZE_DIVISIONS),
      .flags = ftl_select_producer_flags(s)};
}

// The reciprocal of the divisor (I2F, MUFU.RCP, F2I), by which it is multiplied and then corrected: 24 instructions, of
// which each but those of signs waits for the one before.
void ftl_select_signed_division(ftl_select *s, int32_t value, uint8_t flags) {
  enum { NONE = FTL_NO_VALUE };
  static const ftl_opcode steps[] = {FTL_OP_MUFU, FTL_OP_MUFU,  FTL_OP_IADD, FTL_OP_MUFU, FTL_OP_IMAD,  FTL_OP_IMAD,
                                     FTL_OP_IMAD, FTL_OP_IMAD,  FTL_OP_IMAD, FTL_OP_IMAD, FTL_OP_ISETP, FTL_OP_IMAD,
                                     FTL_OP_IADD, FTL_OP_ISETP, FTL_OP_IADD, FTL_OP_IMAD, FTL_OP_IMAD,  FTL_OP_LOP};
  enum { NUM_STEPS = sizeof steps / sizeof steps[0], SIGN_INSTS = 24 - NUM_STEPS };
  ftl_select_add(s, FTL_OP_LOP, SIGN_INSTS, value, value, NONE, NONE)->inst.flags = flags;
  for (int32_t i = 0; i < NUM_STEPS; i++) ftl_select_add(s, steps[i], 1, value, value, NONE, NONE)->inst.flags = flags;
}

bool ftl_select_has_products(const ftl_tile_program *tile, const ftl_role *role) {
  for (int32_t i = 0; i < role->num_ops; i++)
    if (tile->ops[role->first_op + i].kind == FTL_TILE_MMA) return true;
  return false;
}
