/* The compiled instantiations:
 * id, type, head_dim, block_m, block_n, warps, stages, schedule, causal, Q fragments in registers */
#pragma once

#define FP16 __half
#define BF16 __nv_bfloat16
#define FOR_EACH_CONFIG(X)                                    \
  X(0, FP16, 64, 64, 64, 4, 2, STAGES, false, true)           \
  X(1, FP16, 64, 128, 64, 4, 2, STAGES, false, true)          \
  X(2, FP16, 64, 128, 64, 4, 2, STAGES, true, true)           \
  X(3, FP16, 64, 128, 128, 8, 2, STAGES, false, true)         \
  X(4, FP16, 64, 128, 64, 8, 3, STAGES, true, true)           \
  X(5, FP16, 64, 32, 64, 2, 2, STAGES, false, true)           \
  X(6, FP16, 64, 64, 32, 2, 3, STAGES, false, false)          \
  X(7, FP16, 64, 128, 128, 4, 1, INTERLEAVED, false, false)   \
  X(8, FP16, 64, 64, 64, 4, 1, STAGES, false, true)           \
  X(9, FP16, 64, 128, 64, 8, 1, INTERLEAVED, true, true)      \
  X(10, FP16, 128, 64, 64, 4, 2, STAGES, false, false)        \
  X(11, FP16, 128, 64, 64, 4, 2, STAGES, true, false)         \
  X(12, FP16, 128, 128, 64, 8, 2, STAGES, false, true)        \
  X(13, FP16, 128, 128, 64, 4, 2, STAGES, false, false)       \
  X(14, FP16, 128, 128, 32, 4, 1, INTERLEAVED, false, false)  \
  X(15, FP16, 128, 128, 128, 8, 1, INTERLEAVED, false, false) \
  X(16, FP16, 128, 64, 64, 4, 1, STAGES, false, false)        \
  X(17, FP16, 128, 64, 32, 4, 3, STAGES, false, false)        \
  X(18, FP16, 128, 128, 64, 8, 3, STAGES, true, false)        \
  X(19, BF16, 128, 128, 64, 4, 1, INTERLEAVED, true, false)   \
  X(20, BF16, 64, 128, 64, 4, 2, STAGES, false, true)         \
  X(21, BF16, 128, 64, 64, 4, 2, STAGES, false, false)        \
  X(22, FP16, 96, 64, 64, 4, 2, STAGES, false, true)          \
  X(23, FP16, 80, 64, 64, 4, 1, INTERLEAVED, true, false)
