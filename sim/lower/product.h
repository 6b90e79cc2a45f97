// The tensor instruction that multiplies one type of operands on one GPU: its shape in K, its multiply-adds, its pace.
// Models: mma.sync with 32 bytes of K a row (16 on Turing, m8n8k4 on Volta), wgmma with 32. Whatever the type, an
//   instruction reads as many operand bytes, so its interval follows from the published rate of the type
//   (tensor_rates.h) and the interval of the fp16 instruction; fp8 where mma.sync has none is multiplied as fp16.
// Does not model: sub-byte K other than int4's, fp64 and single bits, structured sparsity.
// Numbers: the tensor.* keys. tf32 on H200 is measured at 6.0 cycles and a latency of 24.3, as fp16
//   (kernels/measurements/micro_mma.csv); that half of what the interval shrinks by comes off the latency gives 25 for
//   fp16 accumulation on GA102, measured as 24 (Huerta et al., MICRO 2025).
#ifndef FTL_LOWER_PRODUCT_H
#define FTL_LOWER_PRODUCT_H

#include "arch/arch.h"
#include "base/status.h"
#include "tile/tile.h"

// Bytes of a row of A, or of a column of B, that one operand block holds in registers, and that one wgmma reads.
enum { FTL_OPERAND_BYTES = 32 };

typedef struct ftl_product {
  ftl_dtype operands, accumulator;
  int32_t operand_columns;      // elements in FTL_OPERAND_BYTES; the K of a wgmma
  int32_t mma_k;                // K of one mma.sync
  int32_t mma_columns;          // that a warp's columns are filled up to: 16 where four quad pairs multiply at once
  int32_t mma_num_insts;        // machine instructions of one mma.sync over 16 rows
  int32_t mma_macs;             // multiply-adds of one machine instruction of one warp
  int32_t mma_fp16_macs;        // of fp16, that would read the same operand bytes
  int32_t mma_interval_cycles;  // of one machine instruction on one sub-core
  int32_t mma_dispatch_cycles;  // of the sub-core's dispatch that one takes, to read its operands
  int32_t mma_latency_cycles;   // of the whole mma.sync to a dependent instruction
  int64_t wgmma_fma_per_cycle;  // 0: no wgmma
  bool widens;                  // fp8 that mma.sync does not take: converted to fp16
} ftl_product;

// FTL_INFEASIBLE where the GPU has no such products; the line names the types and what has them.
FTL_MUST_USE ftl_status ftl_product_of(ftl_product *out, const ftl_arch *arch, ftl_dtype operands,
                                       ftl_dtype accumulator, ftl_error *error);
// Of all products of a program, which are of one type; fp16's of a program without any.
FTL_MUST_USE ftl_status ftl_product_of_tile(ftl_product *out, const ftl_tile_program *tile, const ftl_arch *arch,
                                            ftl_error *error);

#endif
