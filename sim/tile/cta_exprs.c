#include "tile/cta_exprs.h"

#include <stdlib.h>

#include "tile/expr_apply.h"

ftl_status ftl_cta_exprs_init(ftl_cta_exprs *exprs, const ftl_tile_program *program, ftl_error *error) {
  size_t most = (size_t)program->num_exprs + 1;
  *exprs = (ftl_cta_exprs){
      .program = program, .exprs = calloc(most, sizeof *exprs->exprs), .place = calloc(most, sizeof *exprs->place)};
  if (!exprs->exprs || !exprs->place) {
    ftl_cta_exprs_fini(exprs);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for expressions");
  }
  exprs->exprs[exprs->count++] = (ftl_cta_expr){.kind = FTL_EXPR_CTA};
  for (int32_t i = 0; i < program->num_exprs; i++) exprs->place[i] = program->exprs[i].kind == FTL_EXPR_CTA ? 0 : -1;
  return FTL_OK;
}

void ftl_cta_exprs_fini(ftl_cta_exprs *exprs) {
  free(exprs->exprs);
  free(exprs->place);
  *exprs = (ftl_cta_exprs){0};
}

static bool hangs_on_cta_alone(const ftl_tile_program *program, ftl_expr expr) {
  const ftl_expr_node *node = &program->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return node->kind == FTL_EXPR_CONST || node->kind == FTL_EXPR_CTA;
  if (node->kind == FTL_EXPR_LOOKUP) return hangs_on_cta_alone(program, node->a);
  return hangs_on_cta_alone(program, node->a) && hangs_on_cta_alone(program, node->b);
}

// Of an expression that hangs on the CTA alone; the builder bounds its size, so the recursion is short.
static int32_t place_of(ftl_cta_exprs *exprs, ftl_expr expr) {
  if (exprs->place[expr] >= 0) return exprs->place[expr];
  const ftl_expr_node *node = &exprs->program->exprs[expr];
  ftl_cta_expr made = {.kind = node->kind, .b = -1, .value = node->value};
  if (node->kind != FTL_EXPR_CONST) made.a = place_of(exprs, node->a);
  if (node->kind != FTL_EXPR_CONST && node->kind != FTL_EXPR_LOOKUP) {
    const ftl_expr_node *second = &exprs->program->exprs[node->b];
    made.value = second->value;
    if (second->kind != FTL_EXPR_CONST) made.b = place_of(exprs, node->b);
  }
  exprs->exprs[exprs->count] = made;
  return exprs->place[expr] = exprs->count++;
}

void ftl_cta_exprs_add(ftl_cta_exprs *exprs, ftl_expr expr) {
  if (expr < 0 || exprs->program->exprs[expr].kind < FTL_EXPR_ADD) return;  // at hand as it is
  if (hangs_on_cta_alone(exprs->program, expr)) {
    (void)place_of(exprs, expr);
    return;
  }
  ftl_cta_exprs_add(exprs, exprs->program->exprs[expr].a);
  if (exprs->program->exprs[expr].kind != FTL_EXPR_LOOKUP) ftl_cta_exprs_add(exprs, exprs->program->exprs[expr].b);
}

void ftl_cta_exprs_eval(const ftl_cta_exprs *exprs, int64_t cta, int64_t *values) {
  values[0] = cta;
  for (int32_t i = 1; i < exprs->count; i++) {
    const ftl_cta_expr *expr = &exprs->exprs[i];
    int64_t a = values[expr->a], b = expr->b >= 0 ? values[expr->b] : expr->value;
    values[i] = expr->kind == FTL_EXPR_CONST    ? expr->value
                : expr->kind == FTL_EXPR_LOOKUP ? ftl_expr_look_up(&exprs->program->tensors[expr->value], a)
                                                : ftl_expr_apply(expr->kind, a, b);
  }
}
