#include "base/dtype.h"

#include <math.h>
#include <string.h>

int ftl_dtype_bytes(ftl_dtype dtype) { return dtype == FTL_FP32 || dtype == FTL_INT32 ? 4 : 2; }

const char *ftl_dtype_name(ftl_dtype dtype) {
  static const char *const names[FTL_DTYPE_COUNT] = {"fp16", "bf16", "fp32", "int32"};
  return names[dtype];
}

static float round_bf16(float x) {
  if (isnan(x)) return x;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  bits &= 0xffff0000u;
  memcpy(&x, &bits, sizeof bits);
  return x;
}

static float round_fp16(float x) {
  if (isnan(x) || isinf(x) || x == 0.0f) return x;
  int exponent;
  frexpf(x, &exponent);              // |x| in [2^(exponent-1), 2^exponent)
  int quantum = exponent - 11;       // 11 significant bits
  if (quantum < -24) quantum = -24;  // subnormals step by 2^-24
  float rounded = ldexpf(rintf(ldexpf(x, -quantum)), quantum);
  return fabsf(rounded) > 65504.0f ? copysignf(INFINITY, x) : rounded;
}

float ftl_dtype_round(ftl_dtype dtype, float x) {
  switch (dtype) {
    case FTL_FP16:
      return round_fp16(x);
    case FTL_BF16:
      return round_bf16(x);
    default:
      return x;
  }
}
