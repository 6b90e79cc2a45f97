// Expressions that hang on the CTA alone, as where its heads begin and how far its loops go: worked out in one pass as
// a CTA begins, what they share once, and then at hand wherever it is asked for.
#ifndef FTL_TILE_CTA_EXPRS_H
#define FTL_TILE_CTA_EXPRS_H

#include "base/status.h"
#include "tile/tile.h"

typedef struct ftl_cta_expr {
  ftl_expr_kind kind;
  int32_t a, b;   // operands among those before it; b -1: `value`
  int64_t value;  // of a constant, or a constant b; of a table, its number
} ftl_cta_expr;

typedef struct ftl_cta_exprs {
  const ftl_tile_program *program;  // borrowed
  ftl_cta_expr *exprs;              // the CTA, then those that were added, behind their operands
  int32_t count;
  int32_t *place;  // of each expression of the program among them; -1: it is not
} ftl_cta_exprs;

// None yet but the CTA.
FTL_MUST_USE ftl_status ftl_cta_exprs_init(ftl_cta_exprs *exprs, const ftl_tile_program *program, ftl_error *error);
void ftl_cta_exprs_fini(ftl_cta_exprs *exprs);
// What of the expression hangs on the CTA alone: all of it, or parts. Below 0 (FTL_ALWAYS): nothing.
void ftl_cta_exprs_add(ftl_cta_exprs *exprs, ftl_expr expr);
// All of them at a CTA, in the order of `exprs`: count numbers. Values of the CTA's points (ftl_expr_point.of_cta).
void ftl_cta_exprs_eval(const ftl_cta_exprs *exprs, int64_t cta, int64_t *values);

#endif
