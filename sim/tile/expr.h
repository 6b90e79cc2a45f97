// Integer expressions of the CTA index, the warp and the loop variables: where tiles begin, how far loops go.
//
// A program owns their nodes; equal expressions are one. builder.h makes them.
#ifndef FTL_TILE_EXPR_H
#define FTL_TILE_EXPR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ftl_tile_program ftl_tile_program;

enum { FTL_TILE_MAX_LOOP_VARS = 12 };  // of a role: each role numbers its own

typedef int32_t ftl_expr;  // index into ftl_tile_program.exprs

typedef enum ftl_expr_kind {
  FTL_EXPR_CONST,  // value
  FTL_EXPR_CTA,    // linear CTA index (of the tile, for persistent kernels)
  FTL_EXPR_LOOP,   // loop variable number `value`
  FTL_EXPR_WARP,  // number of the warp within its role: in bounds of loops alone, and there the first warp runs longest
  FTL_EXPR_ADD,
  FTL_EXPR_SUB,
  FTL_EXPR_MUL,
  FTL_EXPR_DIV,  // floor division, divisor > 0
  FTL_EXPR_MOD,  // floor modulus, divisor > 0
  FTL_EXPR_MIN,
  FTL_EXPR_MAX,
  FTL_EXPR_LOOKUP,  // entry `a` of table (a tensor) number `value`; 0 outside of it. b: the constant 0
} ftl_expr_kind;

typedef struct ftl_expr_node {
  ftl_expr_kind kind;
  int64_t value;
  ftl_expr a, b;
} ftl_expr_node;

// Values of expressions of one program at one point. Who asks for many there, as for the places of all tiles of a CTA,
// has what they share worked out once.
typedef struct ftl_expr_known {
  uint32_t generation;  // of the point that the values are of, from 1
  struct {
    uint32_t generation;
    ftl_expr expr;
    int64_t value;
  } values[128];  // of an expression, in the place of its number's lowest bits
} ftl_expr_known;

// Values at the point's CTA of expressions that hang on nothing else (cta_exprs.h); borrowed.
typedef struct ftl_cta_values {
  const int32_t *place;  // of each expression of the program among the values; -1: it is not
  const int64_t *values;
} ftl_cta_values;

// The point at which expressions are evaluated.
typedef struct ftl_expr_point {
  int64_t cta;
  int64_t warp;  // of the role. What runs a CTA as a whole (the interpreter) runs what the first warp does
  int64_t loop[FTL_TILE_MAX_LOOP_VARS];
  ftl_expr_known *known;  // where values at this point are kept; NULL: nowhere
  ftl_cta_values of_cta;  // place NULL: none
} ftl_expr_point;

// Called when the point that has it, zero so far or not, becomes another.
static inline void ftl_expr_known_forget(ftl_expr_known *known) { known->generation++; }

int64_t ftl_expr_eval(const ftl_tile_program *program, ftl_expr expr, const ftl_expr_point *point);
// A power of two, at most 2^30, that divides the expression wherever it is evaluated.
int64_t ftl_expr_alignment(const ftl_tile_program *program, ftl_expr expr);
// Whether evaluating the expression reads loop variable `loop_var`, or (-1) any table.
bool ftl_expr_uses(const ftl_tile_program *program, ftl_expr expr, int32_t loop_var);
bool ftl_expr_uses_warp(const ftl_tile_program *program, ftl_expr expr);
bool ftl_expr_uses_cta(const ftl_tile_program *program, ftl_expr expr);

#endif
