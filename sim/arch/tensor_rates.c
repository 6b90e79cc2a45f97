#include "arch/tensor_rates.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct entry {
  const char *operands, *accumulator;
  size_t dense;    // where the key's value lies in ftl_arch
  bool is_pruned;  // structured sparsity speeds it up
} entry;

static const entry entries[] = {
    {"fp16", "fp32", offsetof(ftl_arch, tensor_peak_fma_per_cycle), true},
    {"fp16", "fp16", offsetof(ftl_arch, tensor_fp16_fp16_fma_per_cycle), true},
    {"bf16", "fp32", offsetof(ftl_arch, tensor_bf16_fma_per_cycle), true},
    {"tf32", "fp32", offsetof(ftl_arch, tensor_tf32_fma_per_cycle), true},
    {"fp64", "fp64", offsetof(ftl_arch, tensor_fp64_fma_per_cycle), false},
    {"fp8", "fp32", offsetof(ftl_arch, tensor_fp8_fma_per_cycle), true},
    {"fp8", "fp16", offsetof(ftl_arch, tensor_fp8_fp16_fma_per_cycle), true},
    {"int8", "int32", offsetof(ftl_arch, tensor_int8_fma_per_cycle), true},
    {"int4", "int32", offsetof(ftl_arch, tensor_int4_fma_per_cycle), true},
    {"int1", "int32", offsetof(ftl_arch, tensor_int1_fma_per_cycle), false},
};

int ftl_arch_num_tensor_rates(void) { return sizeof entries / sizeof entries[0]; }

ftl_tensor_rate ftl_arch_tensor_rate(const ftl_arch *arch, int idx) {
  const entry *e = &entries[idx];
  int64_t dense;
  memcpy(&dense, (const char *)arch + e->dense, sizeof dense);
  bool sparse = e->is_pruned && arch->tensor_sparse_speedup > 1;
  return (ftl_tensor_rate){.operands = e->operands,
                           .accumulator = e->accumulator,
                           .dense_fma_per_cycle = dense,
                           .sparse_fma_per_cycle = sparse ? dense * arch->tensor_sparse_speedup : 0};
}

double ftl_arch_tensor_tflops(const ftl_arch *arch, int64_t fma_per_cycle, int64_t sm_khz) {
  return 2 * (double)fma_per_cycle * (double)arch->chip_num_sms * (double)sm_khz * 1e3 / 1e12;
}
