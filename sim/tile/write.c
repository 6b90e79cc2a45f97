// A tile program as pseudo-code, for people.
#include "tile/tile.h"

static void write_expr(FILE *out, const ftl_tile_program *program, ftl_expr expr);

static void write_binary(FILE *out, const ftl_tile_program *program, const ftl_expr_node *node) {
  static const char *const symbols[] = {
      [FTL_EXPR_ADD] = " + ", [FTL_EXPR_SUB] = " - ", [FTL_EXPR_MUL] = " * ", [FTL_EXPR_DIV] = " / ",
      [FTL_EXPR_MOD] = " % ", [FTL_EXPR_MIN] = ", ",  [FTL_EXPR_MAX] = ", "};
  const char *open = node->kind == FTL_EXPR_MIN ? "min(" : node->kind == FTL_EXPR_MAX ? "max(" : "(";
  fputs(open, out);
  write_expr(out, program, node->a);
  const ftl_expr_node *b = &program->exprs[node->b];
  if (node->kind == FTL_EXPR_ADD && b->kind == FTL_EXPR_CONST && b->value < 0) {
    fprintf(out, " - %llu)", 0 - (unsigned long long)b->value);
    return;
  }
  fputs(symbols[node->kind], out);
  write_expr(out, program, node->b);
  fputc(')', out);
}

static void write_expr(FILE *out, const ftl_tile_program *program, ftl_expr expr) {
  const ftl_expr_node *node = &program->exprs[expr];
  switch (node->kind) {
    case FTL_EXPR_CONST:
      fprintf(out, "%lld", (long long)node->value);
      break;
    case FTL_EXPR_CTA:
      fputs("cta", out);
      break;
    case FTL_EXPR_WARP:
      fputs("warp", out);
      break;
    case FTL_EXPR_LOOP:
      fprintf(out, "i%lld", (long long)node->value);
      break;
    case FTL_EXPR_LOOKUP:
      fprintf(out, "%s[", program->tensors[node->value].name);
      write_expr(out, program, node->a);
      fputc(']', out);
      break;
    default:
      write_binary(out, program, node);
  }
}

static void write_present(FILE *out, const ftl_tile_program *program, const ftl_tile_ref *ref) {
  if (ref->present == FTL_ALWAYS) return;
  fputs(" if ", out);
  write_expr(out, program, ref->present);
  fputs(" > 0", out);
}

static void write_ref(FILE *out, const ftl_tile_program *program, const ftl_tile_ref *ref) {
  fprintf(out, "%s[", program->tensors[ref->tensor].name);
  write_expr(out, program, ref->batch);
  fputs("][", out);
  write_expr(out, program, ref->head);
  fputs("][", out);
  write_expr(out, program, ref->row);
  fprintf(out, " +%d", ref->rows);
  if (ref->row_end != FTL_TENSOR_END) {
    fputs(" < ", out);
    write_expr(out, program, ref->row_end);
  }
  if (ref->pages.page_rows > 0) {
    fprintf(out, " in pages of %d by %s[", ref->pages.page_rows, program->tensors[ref->pages.table].name);
    write_expr(out, program, ref->pages.entry);
    fputs(" ..]", out);
  }
  fputs("][", out);
  write_expr(out, program, ref->column);
  fprintf(out, " +%d", ref->columns);
  if (ref->column_end != FTL_TENSOR_END) {
    fputs(" < ", out);
    write_expr(out, program, ref->column_end);
  }
  fputs(ref->transposed ? "]^T" : "]", out);
  write_present(out, program, ref);
}

static void write_operand(FILE *out, const ftl_tile_program *program, ftl_operand operand) {
  if (operand.value >= 0)
    fputs(program->values[operand.value].name, out);
  else
    fprintf(out, "%g", (double)operand.immediate);
}

static void write_elem(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  static const struct {
    const char *before, *between_ab, *between_bc, *after;
    int num_operands;
  } forms[] = {
      [FTL_ELEM_COPY] = {"", "", "", "", 1},
      [FTL_ELEM_ADD] = {"", " + ", "", "", 2},
      [FTL_ELEM_SUB] = {"", " - ", "", "", 2},
      [FTL_ELEM_MUL] = {"", " * ", "", "", 2},
      [FTL_ELEM_FMA] = {"", " * ", " + ", "", 3},
      [FTL_ELEM_MAX] = {"max(", ", ", "", ")", 2},
      [FTL_ELEM_EXP2] = {"exp2(", "", "", ")", 1},
      [FTL_ELEM_LOG2] = {"log2(", "", "", ")", 1},
      [FTL_ELEM_RECIP] = {"1 / ", "", "", "", 1},
      [FTL_ELEM_ZERO_IF_NEG_INF] = {"zero_if_neg_inf(", "", "", ")", 1},
      [FTL_ELEM_EXP] = {"exp(", "", "", ")", 1},
      [FTL_ELEM_DIV] = {"", " / ", "", "", 2},
      [FTL_ELEM_LOG] = {"log(", "", "", ")", 1},
      [FTL_ELEM_DIV_FULL] = {"", " / ", "", "", 2},
      [FTL_ELEM_SELECT] = {"", " >= 0 ? ", " : ", "", 3},
  };
  fprintf(out, "%s = %s", program->values[op->dst].name, forms[op->fn].before);
  write_operand(out, program, op->a);
  fputs(forms[op->fn].between_ab, out);
  if (forms[op->fn].num_operands > 1) write_operand(out, program, op->b);
  fputs(forms[op->fn].between_bc, out);
  if (forms[op->fn].num_operands > 2) write_operand(out, program, op->c);
  fputs(forms[op->fn].after, out);
}

// ", or key > token + bound" of a mask, in terms of its rows and columns.
static void write_mask_bound(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op, const char *relation,
                             ftl_expr bound) {
  if (bound == FTL_ALWAYS) return;
  fprintf(out, ", or %s ", relation);
  if (op->transposed) {
    fputs("column ", out);
    write_expr(out, program, op->column0);
    fputs(" + c + ", out);
  } else {
    fputs(op->period ? "(row " : "row ", out);
    write_expr(out, program, op->row0);
    if (op->period) fprintf(out, " + r) mod %lld", (long long)op->period);
    fputs(op->period ? " + " : " + r + ", out);
  }
  write_expr(out, program, bound);
}

static void write_mask(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  fprintf(out, "%s = -inf where %s ", program->values[op->dst].name, op->transposed ? "row" : "column");
  write_expr(out, program, op->transposed ? op->row0 : op->column0);
  fputs(op->transposed ? " + r >= " : " + c >= ", out);
  write_expr(out, program, op->limit);
  write_mask_bound(out, program, op, ">", op->diagonal);
  write_mask_bound(out, program, op, "<", op->left);
}

static void write_dropout(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  const char *name = program->values[op->dst].name;
  fprintf(out, "%s = %s%s where dropout drops (head ", name, op->by_sign ? "-" : "0", op->by_sign ? name : "");
  write_expr(out, program, op->sequence);
  fputs(", row ", out);
  write_expr(out, program, op->transposed ? op->column0 : op->row0);
  fprintf(out, " + %s, column ", op->transposed ? "c" : "r");
  write_expr(out, program, op->transposed ? op->row0 : op->column0);
  fprintf(out, " + %s): a random byte above %d", op->transposed ? "r" : "c", op->threshold);
}

static void write_ring_row(FILE *out, const ftl_tile_op *op) {
  if (op->ring_row > 0) fprintf(out, "[%d..]", op->ring_row);
}

static void write_mma(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  const char *a = op->ring_a >= 0 ? program->rings[op->ring_a].name : program->values[op->a.value].name;
  fprintf(out, "%s += %s%s%s", program->values[op->dst].name, a, op->ring_a >= 0 ? "(shared)" : "",
          op->transpose_a ? "^T" : "");
  write_ring_row(out, op);
  if (op->b.value >= 0)
    fprintf(out, " x %s^T", program->values[op->b.value].name);
  else
    fprintf(out, " x %s%s", program->rings[op->ring].name, op->transpose_b ? "^T" : "");
  if (op->num_k > 0) fprintf(out, ", k %d..%d", op->first_k, op->first_k + op->num_k - 1);
}

enum { NUM_KINDS = FTL_TILE_SYNC + 1 };

static const char *value_name(const ftl_tile_program *program, int32_t value) {
  return value >= 0 ? program->values[value].name : "";
}

static const char *ring_name(const ftl_tile_program *program, int32_t ring) {
  return ring >= 0 ? program->rings[ring].name : "";
}

// What a letter of a form stands for.
static void write_part(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op, char part) {
  switch (part) {
    case 'd':
      fputs(value_name(program, op->dst), out);
      break;
    case 't':
      fputs(ftl_dtype_name(program->values[op->dst].dtype), out);
      break;
    case 'a':
      fputs(value_name(program, op->a.value), out);
      break;
    case 'b':
      fputs(value_name(program, op->b.value), out);
      break;
    case 'c':
      fputs(value_name(program, op->c.value), out);
      break;
    case 'x':
      fprintf(out, op->positive ? "max(%s, 0)" : "%s", value_name(program, op->a.value));
      break;
    case 'm':
      fprintf(out, "%g", (double)op->a.immediate);
      break;
    case 'w':
      if (op->add_order != FTL_ADD_IN_LINES) fputs(op->add_order == FTL_ADD_IN_PAIRS ? " in pairs" : " in words", out);
      break;
    case 'n':
      fprintf(out, "%d", op->count);
      break;
    case 'o':
      if (op->a.immediate != 0) fprintf(out, ", %g outside", (double)op->a.immediate);
      break;
    case 'f':
      fputs(op->fn == FTL_ELEM_MAX ? "max" : "sum", out);
      break;
    case 'r':
      fputs(ring_name(program, op->ring), out);
      break;
    case 'q':
      fputs(ring_name(program, op->ring_a), out);
      break;
    case 's':
      fputs(ring_name(program, op->ring_scales), out);
      break;
    default:
      write_ref(out, program, &op->ref);
  }
}

// The operations that are written from a form: $d destination, $t its type, $a $b $c operands, $x what is converted, $m
// immediate, $n count, $o what lies outside of a reference, $f reduction, $r ring, $q ring of A, $s ring of scales, $p
// place in memory, $w how atomics add. NULL: not one of them.
static const char *form_of(ftl_tile_op_kind kind) {
  static const char *const forms[NUM_KINDS] = {
      [FTL_TILE_END_LOOP] = "end",
      [FTL_TILE_LOAD_TILE] = "$d = $p$o",
      [FTL_TILE_LOAD_ROWS] = "$d = $p",
      [FTL_TILE_LOAD_COLUMNS] = "$d = $p",
      [FTL_TILE_FILL] = "$d = $m",
      [FTL_TILE_FETCH] = "$d = $r",
      [FTL_TILE_PUT] = "$r <- $a",
      [FTL_TILE_TRANSPOSE] = "$r <- $q^T",
      [FTL_TILE_DEQUANTIZE] = "$r <- $q * $s",
      [FTL_TILE_MASK_BITS] = "$d = -inf where a bit is 0 of $p",
      [FTL_TILE_REDUCE_ROWS] = "$d = $f over columns of $a, with $d",
      [FTL_TILE_REDUCE_LANES] = "$d = $f over lanes of $d",
      [FTL_TILE_REDUCE_WARPS] = "$d = $f over lanes and warps of $d through $r",
      [FTL_TILE_REDUCE_GROUPS] = "$d = $f over groups of $d through $r",
      [FTL_TILE_GATHER] = "$d = $f over groups of $a, by rows, through $r",
      [FTL_TILE_CONVERT] = "$d = $t($x)",
      [FTL_TILE_STORE_MERGED] = "$p <- merged over groups: $a with maxima $b, sums $c, through $r",
      [FTL_TILE_ATOMIC_ADD] = "$p += $a$w",
      [FTL_TILE_TOP] = "$d = numbers of the $n largest of $a",
  };
  return forms[kind];
}

static void write_form(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op, const char *form) {
  for (; *form; form++) {
    if (*form == '$')
      write_part(out, program, op, *++form);
    else
      fputc(*form, out);
  }
}

static void write_loop(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  fprintf(out, "for i%d in ", op->loop_var);
  write_expr(out, program, op->lo);
  fputs(" .. ", out);
  write_expr(out, program, op->hi);
  if (op->by_threads) fputs(" by threads", out);
  if (op->is_condition) fputs(" once", out);
}

static void write_lookup(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  fputs("look up ", out);
  if (op->lookup == FTL_PAGE_ENTRIES) {
    write_ref(out, program, &op->ref);
  } else {
    write_expr(out, program, op->lookup);
    write_present(out, program, &op->ref);
  }
}

static void write_store(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  write_form(out, program, op, op->ring >= 0 ? "$p <- $a through $r" : "$p <- $a");
  write_ring_row(out, op);
}

static void write_load(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  write_form(out, program, op, "$r");
  write_ring_row(out, op);
  write_form(out, program, op, " <- $p");
}

static void write_store_top(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  write_form(out, program, op, op->a.value < 0 ? "$p <- columns numbered by $b" : "$p <- $a numbered by $b");
}

static void write_meeting(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  fprintf(out, "%s %s", ftl_tile_op_name(op->kind), program->barriers[op->barrier].name);
}

static void write_op(FILE *out, const ftl_tile_program *program, const ftl_tile_op *op) {
  static void (*const writers[NUM_KINDS])(FILE *, const ftl_tile_program *, const ftl_tile_op *) = {
      [FTL_TILE_LOOP] = write_loop,           [FTL_TILE_LOOKUP] = write_lookup,  [FTL_TILE_MMA] = write_mma,
      [FTL_TILE_LOAD] = write_load,           [FTL_TILE_ELEM] = write_elem,      [FTL_TILE_MASK] = write_mask,
      [FTL_TILE_DROPOUT] = write_dropout,     [FTL_TILE_STORE] = write_store,    [FTL_TILE_STORE_ROWS] = write_store,
      [FTL_TILE_STORE_TOP] = write_store_top, [FTL_TILE_ARRIVE] = write_meeting, [FTL_TILE_SYNC] = write_meeting,
  };
  const char *form = form_of(op->kind);
  if (form)
    write_form(out, program, op, form);
  else if (writers[op->kind])
    writers[op->kind](out, program, op);
  else
    fprintf(out, "%s %s", ftl_tile_op_name(op->kind), ring_name(program, op->ring));
  fputc('\n', out);
}

static void write_role(FILE *out, const ftl_tile_program *program, int32_t role_idx) {
  const ftl_role *role = &program->roles[role_idx];
  fprintf(out, "role %s: %d warps", role->name, role->num_warps);
  if (role->num_groups > 1) fprintf(out, " in %d groups", role->num_groups);
  if (role->num_registers > 0) fprintf(out, " of %d registers", role->num_registers);
  fputc('\n', out);
  for (int32_t i = 0; i < program->num_values; i++) {
    const ftl_value *value = &program->values[i];
    if (value->role != role_idx) continue;
    fprintf(out, "  value %s: %s %d x %d", value->name, ftl_dtype_name(value->dtype), value->rows, value->columns);
    if (value->layout.threads_per_row > 0) fprintf(out, ", %d threads a row", value->layout.threads_per_row);
    if (value->warps_per_row > 1) fprintf(out, ", %d warps a row", value->warps_per_row);
    if (value->is_repeated) fprintf(out, ", each with all columns");
    fputc('\n', out);
  }
  int depth = 1;
  for (int32_t i = role->first_op; i < role->first_op + role->num_ops; i++) {
    if (program->ops[i].kind == FTL_TILE_END_LOOP) depth--;
    fprintf(out, "%4d %*s", i, 2 * depth, "");
    write_op(out, program, &program->ops[i]);
    if (i + 1 == role->first_op + role->num_setup_ops) fputs("     -- once a CTA above, for each tile below --\n", out);
    if (program->ops[i].kind == FTL_TILE_LOOP) depth++;
  }
}

static void write_barrier(FILE *out, const ftl_tile_program *program, const ftl_named_barrier *barrier) {
  fprintf(out, "barrier %s:", barrier->name);
  for (int32_t role = 0; role < program->num_roles; role++)
    if (barrier->roles_mask >> role & 1) fprintf(out, " %s", program->roles[role].name);
  fputc('\n', out);
}

static void write_ring(FILE *out, const ftl_tile_program *program, const ftl_ring *ring) {
  fprintf(out, "ring %s: %s %d x %d, %d stage%s, %s ->", ring->name, ftl_dtype_name(ring->dtype), ring->rows,
          ring->columns, ring->num_stages, ring->num_stages == 1 ? "" : "s", program->roles[ring->producer].name);
  for (int32_t role = 0; role < program->num_roles; role++)
    if (ring->consumers_mask >> role & 1) fprintf(out, " %s", program->roles[role].name);
  if (ring->multicast.num_ctas > 1)
    fprintf(out, ", shared by %d CTAs, every %d of a cluster", ring->multicast.num_ctas, ring->multicast.stride);
  if (ring->overlaid) fputs(", over rings before it", out);
  if (ring->through_registers) fputs(", through registers", out);
  if (ring->counts_releases) fputs(", releases counted", out);
  fputc('\n', out);
}

void ftl_tile_program_write(FILE *out, const ftl_tile_program *program) {
  static const char *const priorities[] = {"", ", evicted first", ", evicted last"};
  static const char *const handouts[] = {"", ", dynamic", ", dynamic, asked for late"};
  static const char *const uses[] = {"input", "output", "temporary"};
  fprintf(out, "kernel %s: %lld %s%s, %lld model FLOPs\n", program->name, (long long)program->num_ctas,
          program->persistent ? "tiles of persistent CTAs" : "CTAs", handouts[program->handout],
          (long long)program->model_flops);
  if (program->cluster_ctas > 1) fprintf(out, "clusters of %d CTAs\n", program->cluster_ctas);
  for (int32_t i = 0; i < program->num_tensors; i++) {
    const ftl_tensor *t = &program->tensors[i];
    fprintf(out, "%s %s: %s [%lld][%lld][%lld][%lld], strides %lld %lld %lld 1%s\n", uses[t->use], t->name,
            ftl_dtype_name(t->dtype), (long long)t->num_batches, (long long)t->num_heads, (long long)t->num_rows,
            (long long)t->num_columns, (long long)t->batch_stride, (long long)t->head_stride, (long long)t->row_stride,
            priorities[t->l2_priority]);
  }
  for (int32_t i = 0; i < program->num_rings; i++) write_ring(out, program, &program->rings[i]);
  for (int32_t i = 0; i < program->num_barriers; i++) write_barrier(out, program, &program->barriers[i]);
  for (int32_t i = 0; i < program->num_roles; i++) write_role(out, program, i);
}
