// What the tensor cores of a GPU multiply, and how fast: peak rates by type of operands and accumulator, as vendors
// publish them. Does not say what an instruction reaches (lower/product.h). Numbers: the tensor.* keys.
#ifndef FTL_ARCH_TENSOR_RATES_H
#define FTL_ARCH_TENSOR_RATES_H

#include "arch/arch.h"

typedef struct ftl_tensor_rate {
  const char *operands, *accumulator;  // "fp8", "fp32"
  int64_t dense_fma_per_cycle;         // of an SM; 0: the chip does not multiply these
  int64_t sparse_fma_per_cycle;        // with 2:4 structured sparsity of A, pruned multiply-adds counted; 0: not so
} ftl_tensor_rate;

int ftl_arch_num_tensor_rates(void);
ftl_tensor_rate ftl_arch_tensor_rate(const ftl_arch *arch, int idx);
// TFLOP/s (TOPS) of all SMs at an SM clock.
double ftl_arch_tensor_tflops(const ftl_arch *arch, int64_t fma_per_cycle, int64_t sm_khz);

#endif
