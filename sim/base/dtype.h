// Element types of tensors and tiles, and the rounding that storing in them implies.
#ifndef FTL_BASE_DTYPE_H
#define FTL_BASE_DTYPE_H

#include <stdint.h>

typedef enum ftl_dtype { FTL_FP16, FTL_BF16, FTL_FP32, FTL_INT32, FTL_DTYPE_COUNT } ftl_dtype;

int ftl_dtype_bytes(ftl_dtype dtype);
const char *ftl_dtype_name(ftl_dtype dtype);  // "fp16", "bf16", "fp32", "int32"

// Rounds to nearest even in the given type, as cvt.rn does (fp16 overflow gives infinity). fp32 and int32 return x.
float ftl_dtype_round(ftl_dtype dtype, float x);

#endif
