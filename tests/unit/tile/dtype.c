// Rounding of element types against the values that their formats can hold.
#include "base/dtype.h"

#include <criterion/criterion.h>
#include <math.h>

// The number that an fp8 byte stands for, from its fields; NAN for codes that are not finite numbers.
static double fp8_value(int code, int exponent_bits, int mantissa_bits, bool has_infinity) {
  int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = code & ((1 << mantissa_bits) - 1);
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  if (exponent == top && (has_infinity || mantissa == (1 << mantissa_bits) - 1)) return NAN;
  double fraction = (double)mantissa / (1 << mantissa_bits);
  return exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
}

// Every number stays; a number between two goes to the nearer, and in the middle to the even code.
static void expect_nearest(ftl_dtype dtype, int exponent_bits, int mantissa_bits, bool has_infinity) {
  for (int code = 0; code < 127; code++) {
    double low = fp8_value(code, exponent_bits, mantissa_bits, has_infinity);
    double high = fp8_value(code + 1, exponent_bits, mantissa_bits, has_infinity);
    if (isnan(low) || isnan(high)) break;
    double even = code % 2 == 0 ? low : high, step = high - low;
    cr_assert_eq(ftl_dtype_round(dtype, (float)low), (float)low, "%g", low);
    cr_assert_eq(ftl_dtype_round(dtype, (float)-low), (float)-low, "%g", -low);
    cr_assert_eq(ftl_dtype_round(dtype, (float)(low + 0.25 * step)), (float)low, "above %g", low);
    cr_assert_eq(ftl_dtype_round(dtype, (float)(low + 0.5 * step)), (float)even, "between %g and %g", low, high);
    cr_assert_eq(ftl_dtype_round(dtype, (float)(low + 0.75 * step)), (float)high, "below %g", high);
  }
}

Test(unit_tile_dtype, fp8_rounds_to_the_nearest_number_and_ties_to_even) {
  expect_nearest(FTL_FP8_E4M3, 4, 3, false);
  expect_nearest(FTL_FP8_E5M2, 5, 2, true);
}

Test(unit_tile_dtype, fp8_and_integers_saturate) {
  cr_assert_eq(ftl_dtype_round(FTL_FP8_E4M3, 1e6f), 448.0f);
  cr_assert_eq(ftl_dtype_round(FTL_FP8_E4M3, -INFINITY), -448.0f);
  cr_assert_eq(ftl_dtype_round(FTL_FP8_E5M2, 1e6f), 57344.0f);
  cr_assert_eq(ftl_dtype_round(FTL_INT8, 200.0f), 127.0f);
  cr_assert_eq(ftl_dtype_round(FTL_INT8, -200.0f), -128.0f);
  cr_assert_eq(ftl_dtype_round(FTL_INT8, 2.5f), 2.0f);
}

Test(unit_tile_dtype, tf32_keeps_ten_bits_and_rounds_ties_away) {
  const float unit = 0x1p-10f;
  cr_assert_eq(ftl_dtype_round(FTL_TF32, 1 + unit), 1 + unit);
  cr_assert_eq(ftl_dtype_round(FTL_TF32, 1 + 0.49f * unit), 1.0f);
  cr_assert_eq(ftl_dtype_round(FTL_TF32, 1 + 0.5f * unit), 1 + unit);
  cr_assert_eq(ftl_dtype_round(FTL_TF32, -1 - 0.5f * unit), -1 - unit);
}

Test(unit_tile_dtype, a_byte_holds_two_signed_nibbles) {
  for (int low = -8; low < 8; low++)
    for (int high = -8; high < 8; high++) {
      float pair = ftl_int4x2_pack(low, high);
      cr_assert_eq(ftl_int4x2_low(pair), low);
      cr_assert_eq(ftl_int4x2_high(pair), high);
      cr_assert_eq(ftl_dtype_round(FTL_INT4X2, pair), pair);
    }
}
