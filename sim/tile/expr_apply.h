// One operation of an expression on numbers.
#ifndef FTL_TILE_EXPR_APPLY_H
#define FTL_TILE_EXPR_APPLY_H

#include "tile/expr.h"
#include "tile/tensor.h"

// Numbers of 32 bits, as nearly all are, divide in half the time.
static inline int64_t ftl_expr_floor_div(int64_t a, int64_t b) {
  if (((uint64_t)a | (uint64_t)b) <= UINT32_MAX) return (uint32_t)a / (uint32_t)b;
  int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

// A binary operation (ADD ... MAX); b > 0 for DIV and MOD. Sums and products wrap instead of being undefined; programs
// whose values come near 2^63 are refused when built.
static inline int64_t ftl_expr_apply(ftl_expr_kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case FTL_EXPR_ADD:
      return (int64_t)((uint64_t)a + (uint64_t)b);
    case FTL_EXPR_SUB:
      return (int64_t)((uint64_t)a - (uint64_t)b);
    case FTL_EXPR_MUL:
      return (int64_t)((uint64_t)a * (uint64_t)b);
    case FTL_EXPR_DIV:
      return ftl_expr_floor_div(a, b);
    case FTL_EXPR_MOD:
      return a - ftl_expr_floor_div(a, b) * b;
    case FTL_EXPR_MIN:
      return a < b ? a : b;
    case FTL_EXPR_MAX:
      return a > b ? a : b;
    default:
      return 0;
  }
}

// 0 outside of the table.
static inline int64_t ftl_expr_look_up(const ftl_tensor *table, int64_t index) {
  return index >= 0 && index < table->num_rows ? table->table[index] : 0;
}

#endif
