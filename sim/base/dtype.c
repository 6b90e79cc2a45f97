#include "base/dtype.h"

#include <math.h>
#include <string.h>

typedef struct dtype_info {
  const char *name;
  int bytes;
} dtype_info;

static const dtype_info infos[FTL_DTYPE_COUNT] = {
    [FTL_FP16] = {"fp16", 2}, [FTL_BF16] = {"bf16", 2},         [FTL_FP32] = {"fp32", 4},
    [FTL_TF32] = {"tf32", 4}, [FTL_FP8_E4M3] = {"fp8_e4m3", 1}, [FTL_FP8_E5M2] = {"fp8_e5m2", 1},
    [FTL_INT8] = {"int8", 1}, [FTL_INT4X2] = {"int4x2", 1},     [FTL_INT32] = {"int32", 4},
};

int ftl_dtype_bytes(ftl_dtype dtype) { return infos[dtype].bytes; }
int ftl_dtype_numbers(ftl_dtype dtype) { return dtype == FTL_INT4X2 ? 2 : 1; }
const char *ftl_dtype_name(ftl_dtype dtype) { return infos[dtype].name; }
bool ftl_dtype_is_fp8(ftl_dtype dtype) { return dtype == FTL_FP8_E4M3 || dtype == FTL_FP8_E5M2; }
bool ftl_dtype_is_integer(ftl_dtype dtype) { return dtype == FTL_INT8 || dtype == FTL_INT4X2 || dtype == FTL_INT32; }

static float round_bf16(float x) {
  if (isnan(x)) return x;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  bits &= 0xffff0000u;
  memcpy(&x, &bits, sizeof bits);
  return x;
}

// Half of the last place kept is added to the magnitude: ties go away from zero.
static float round_tf32(float x) {
  enum { DROPPED_BITS = 13 };
  if (isnan(x) || isinf(x)) return x;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits += 1u << (DROPPED_BITS - 1);
  bits &= ~((1u << DROPPED_BITS) - 1);
  memcpy(&x, &bits, sizeof bits);
  return x;
}

// To `significant` bits, subnormals in steps of 2^least; ties to even. x is finite and not 0.
static float round_to_bits(float x, int significant, int least) {
  int exponent;
  frexpf(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
  int quantum = exponent - significant;
  if (quantum < least) quantum = least;
  return ldexpf(rintf(ldexpf(x, -quantum)), quantum);
}

static float round_fp16(float x) {
  if (isnan(x) || isinf(x) || x == 0.0f) return x;
  float rounded = round_to_bits(x, 11, -24);
  return fabsf(rounded) > 65504.0f ? copysignf(INFINITY, x) : rounded;
}

static float round_fp8(float x, int significant, int least, float largest) {
  if (isnan(x) || x == 0.0f) return x;
  if (fabsf(x) >= largest) return copysignf(largest, x);
  float rounded = round_to_bits(x, significant, least);
  return fabsf(rounded) > largest ? copysignf(largest, x) : rounded;
}

static float saturate(float x, float lowest, float highest) { return fminf(fmaxf(rintf(x), lowest), highest); }

float ftl_dtype_round(ftl_dtype dtype, float x) {
  switch (dtype) {
    case FTL_FP16:
      return round_fp16(x);
    case FTL_BF16:
      return round_bf16(x);
    case FTL_TF32:
      return round_tf32(x);
    case FTL_FP8_E4M3:
      return round_fp8(x, 4, -9, 448.0f);
    case FTL_FP8_E5M2:
      return round_fp8(x, 3, -16, 57344.0f);
    case FTL_INT8:
      return saturate(x, -128, 127);
    case FTL_INT4X2:
      return saturate(x, 0, 255);
    case FTL_INT32:
      return rintf(x);
    case FTL_FP32:
    case FTL_DTYPE_COUNT:
      break;
  }
  return x;
}

static int signed_nibble(int bits) { return (bits & 15) >= 8 ? (bits & 15) - 16 : bits & 15; }

int ftl_int4x2_low(float pair) { return signed_nibble((int)pair); }
int ftl_int4x2_high(float pair) { return signed_nibble((int)pair >> 4); }
float ftl_int4x2_pack(int low, int high) { return (float)((low & 15) + 16 * (high & 15)); }
