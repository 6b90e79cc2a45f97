// Element types of tensors and tiles, and the rounding that storing in them implies.
#ifndef FTL_BASE_DTYPE_H
#define FTL_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ftl_dtype {
  FTL_FP16,
  FTL_BF16,
  FTL_FP32,
  FTL_TF32,      // fp32 of which tensor cores read 10 bits of mantissa; four bytes in memory
  FTL_FP8_E4M3,  // up to 448, no infinity
  FTL_FP8_E5M2,  // up to 57344
  FTL_INT8,
  FTL_INT4X2,  // a byte of two 4-bit integers -8 .. 7; as a number: (low & 15) + 16 * (high & 15)
  FTL_INT32,   // what products of integers add up in; entries of tables
  FTL_DTYPE_COUNT
} ftl_dtype;

int ftl_dtype_bytes(ftl_dtype dtype);
int ftl_dtype_numbers(ftl_dtype dtype);       // in one element: two of int4x2
const char *ftl_dtype_name(ftl_dtype dtype);  // "fp16", "bf16", "fp32", "tf32", "fp8_e4m3", ...
bool ftl_dtype_is_fp8(ftl_dtype dtype);
bool ftl_dtype_is_integer(ftl_dtype dtype);

// Rounds to nearest even in the given type, as cvt.rn does (fp16 overflow gives infinity); fp8 and integers saturate,
// as cvt.rn.satfinite and cvt.rni.sat do. fp32 returns x. tf32 rounds away from zero at ties (cvt.rna).
float ftl_dtype_round(ftl_dtype dtype, float x);

// The integers in a byte of FTL_INT4X2; and the byte of two integers.
int ftl_int4x2_low(float pair);
int ftl_int4x2_high(float pair);
float ftl_int4x2_pack(int low, int high);

#endif
