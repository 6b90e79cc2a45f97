// Whether a program looks up entries outside of a table: every CTA and every iteration of the loops around the lookup,
// as far as the number of them allows, since a guard or a loop's own bounds may keep out what intervals cannot.
#include "tile/bounds_lookup.h"

#include <inttypes.h>

typedef struct walk {
  const ftl_check *check;
  const ftl_tile_op *lookup;
  const ftl_tile_op *const *loops;  // around it, outermost first
  int num_loops;
  ftl_expr_point point;
  int64_t *visits_left;
} walk;

static ftl_status look_up(walk *w) {
  const ftl_tile_program *program = w->check->program;
  const ftl_tile_ref *ref = &w->lookup->ref;
  if (ref->present != FTL_ALWAYS && ftl_expr_eval(program, ref->present, &w->point) <= 0) return FTL_OK;
  const ftl_tensor *table = &program->tensors[ref->tensor];
  int64_t entry = ftl_expr_eval(program, ref->row, &w->point);
  if (entry >= 0 && entry < table->num_rows) return FTL_OK;
  return ftl_check_fail(w->check, "CTA %" PRId64 ": entry %" PRId64 " is outside of %s, which has %" PRId64,
                        w->point.cta, entry, table->name, table->num_rows);
}

// Whether the lookup, its guard or a loop inside of loop `depth` asks for that loop's variable.
static bool matters(const walk *w, int depth) {
  const ftl_tile_program *program = w->check->program;
  const ftl_tile_ref *ref = &w->lookup->ref;
  int32_t var = w->loops[depth]->loop_var;
  bool uses = ftl_expr_uses(program, ref->row, var);
  uses |= ref->present != FTL_ALWAYS && ftl_expr_uses(program, ref->present, var);
  for (int i = depth + 1; i < w->num_loops; i++)
    uses |= ftl_expr_uses(program, w->loops[i]->lo, var) || ftl_expr_uses(program, w->loops[i]->hi, var);
  return uses;
}

static ftl_status visit(walk *w, int depth) {
  if (*w->visits_left <= 0) return FTL_OK;
  --*w->visits_left;
  if (depth == w->num_loops) return look_up(w);
  const ftl_tile_op *loop = w->loops[depth];
  int64_t lo = ftl_expr_eval(w->check->program, loop->lo, &w->point);
  int64_t hi = ftl_expr_eval(w->check->program, loop->hi, &w->point);
  if (lo < hi && !matters(w, depth)) hi = lo + 1;
  for (int64_t i = lo; i<hi && * w->visits_left> 0; i++) {
    w->point.loop[loop->loop_var] = i;
    ftl_status status = visit(w, depth + 1);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}

ftl_status ftl_check_entries(const ftl_check *check, const ftl_tile_op *const *loops, int num_loops,
                             int64_t *visits_left) {
  walk w = {.check = check,
            .lookup = &check->program->ops[check->op_idx],
            .loops = loops,
            .num_loops = num_loops,
            .visits_left = visits_left};
  for (w.point.cta = 0; w.point.cta<check->program->num_ctas && * visits_left> 0; w.point.cta++) {
    ftl_status status = visit(&w, 0);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}
