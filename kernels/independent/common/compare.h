/* How far an output is from its reference, by the measures that the families' tolerances are in. */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "error.h"
#include "number.h"

namespace independent {

template <class T>
std::vector<float> fetch(const T *device, size_t count) {
  std::vector<T> values(count);
  CUDA_CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; i++) floats[i] = as_float(values[i]);
  return floats;
}
inline std::vector<float> fetch16(const void *device, size_t count, bool bf16) {
  return bf16 ? fetch((const __nv_bfloat16 *)device, count) : fetch((const __half *)device, count);
}

/* Infinite where a number is NaN. */
struct Errors {
  double absolute = 0;     /* largest |x - r| */
  double scaled = 0;       /* largest |x - r| / (floor + |r|) */
  double relative_rms = 0; /* sqrt(sum (x - r)^2 / sum r^2) */
  double largest = 0;      /* |r| */
};

inline Errors errors_of(const std::vector<float> &values, const std::vector<float> &reference, double floor = 1) {
  Errors errors;
  double difference_squares = 0, squares = 0;
  for (size_t i = 0; i < reference.size(); i++) {
    double x = values[i], r = reference[i];
    if (x == r) { /* infinities too */
      if (std::isfinite(r)) squares += r * r, errors.largest = std::max(errors.largest, std::fabs(r));
      continue;
    }
    double difference = std::fabs(x - r);
    if (!std::isfinite(difference)) difference = INFINITY;
    errors.absolute = std::max(errors.absolute, difference);
    errors.scaled = std::max(errors.scaled, std::isinf(difference) ? INFINITY : difference / (floor + std::fabs(r)));
    errors.largest = std::max(errors.largest, std::fabs(r));
    difference_squares += difference * difference;
    squares += r * r;
  }
  errors.relative_rms = std::sqrt(difference_squares / std::max(squares, 1e-30));
  return errors;
}

/* Appends " NAME max_err X". */
inline bool within(std::string &report, const char *name, double error, double tolerance) {
  char text[100];
  snprintf(text, sizeof text, " %s max_err %.3e", name, error);
  report += text;
  return error <= tolerance;
}

}  // namespace independent
