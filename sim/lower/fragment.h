// How a warp's registers hold the tiles of its mma instruction.
// Models: accumulator and operand fragments of mma.sync m8n8k4 (Volta, four quad pairs as a 2 x 2
//   arrangement), m16n8k8, m16n8k16 and of wgmma (whose warps hold m16n8 tiles each).
// Sources: PTX ISA, "Matrix fragments for mma.m8n8k4 / m16n8k8 / m16n8k16 / wgmma.m64nNk16".
#ifndef FTL_LOWER_FRAGMENT_H
#define FTL_LOWER_FRAGMENT_H

#include <stdbool.h>

#include "arch/arch.h"
#include "base/warp.h"
#include "lower/product.h"
#include "tile/tile.h"

// Rows of a value are dealt to warps in slabs of 16: warp w of W holds slabs w, w + W, ... With S warps side by side:
// slabs w / S, w / S + W / S, ..., and of the columns the (w % S)-th share.
// Operands come in blocks of 16 rows and FTL_OPERAND_BYTES: FTL_OPERAND_COLUMNS columns of 16-bit types.
enum { FTL_SLAB_ROWS = 16, FTL_OPERAND_COLUMNS = 16 };
int32_t ftl_operand_columns(ftl_dtype dtype);

typedef struct ftl_fragment_shape {
  bool quad_pairs;              // Volta's m8n8k4
  int32_t accumulator_columns;  // a slab's accumulators come in fragments of this many columns
  int32_t accumulator_registers;
  int32_t operand_registers;  // of a block of 16 rows and 32 bytes of an operand
  int32_t row_lanes;          // lanes that hold one row of an accumulator
} ftl_fragment_shape;

ftl_fragment_shape ftl_fragment_shape_of(const ftl_arch *arch, bool wgmma);

// The place in its 16-row slab fragment of 32-bit register `element` (0 .. accumulator_registers-1) of a lane.
typedef struct ftl_fragment_place {
  int32_t row, column;
} ftl_fragment_place;
ftl_fragment_place ftl_fragment_accumulator(const ftl_fragment_shape *shape, int32_t lane, int32_t element);

// How a value lies in one thread: num_slabs x per_slab fragments of num_registers each. Row-wise: a slab is a row of
// the thread's, a fragment one vector of adjacent columns.
typedef struct ftl_fragment_map {
  int32_t num_slabs, per_slab, num_registers;
} ftl_fragment_map;
ftl_fragment_map ftl_fragment_map_of(const ftl_fragment_shape *shape, const ftl_value *value, int32_t num_warps);

#endif
