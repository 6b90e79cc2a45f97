/* Attention of chosen rows in float64, straight from the definition. */
#pragma once

#include <algorithm>
#include <cmath>

#include "attention.h"

/* The larger of two errors; NaN if one is. */
inline double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }

/* rows[i] = head * seqlen_q + row. o: [count][head_dim_v], lse: [count]; scratch: [count][seqlen_kv]. All in device
 * memory. */
void reference_rows(const Problem &p, const int64_t *rows, int count, double *scratch, double *o, double *lse);

/* The same on the CPU for host copies of the inputs, to check the device's reference itself. */
void reference_row_cpu(const Problem &p, const __half *q, const __half *k, const __half *v, int64_t row, double *o,
                       double *lse);
