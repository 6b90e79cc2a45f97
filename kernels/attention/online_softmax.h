/* Online softmax on MMA accumulators: what the mma.sync and the wgmma kernels share.
 *
 * A thread holds, for each of m_tiles row tiles, s[m][4 * n + i]: row lane / 4 + 8 * (i / 2), column 8 * n + 2 * (lane
 * % 4) + i % 2. That is the accumulator layout of m16n8 and, with 16 rows a warp, of m64nN; the P fragments of the
 * second product have it too. */
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_fp16.h>

template <int m_tiles>
struct RowState {
  float max[m_tiles][2], sum[m_tiles][2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < m_tiles; m++) {
      max[m][0] = max[m][1] = -INFINITY;
      sum[m][0] = sum[m][1] = 0;
    }
  }
};

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  __half2 h = __floats2half2_rn(low, high);
  return *(uint32_t *)&h;
}

template <int m_tiles, int count>
__device__ __forceinline__ void fill_zero(float (&x)[m_tiles][count]) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) x[m][i] = 0;
}

/* Row r sees columns up to r: first_row and first_column are of the thread's warp and tile in those coordinates. */
template <int row_step, int m_tiles, int count>
__device__ __forceinline__ void mask_causal(float (&s)[m_tiles][count], int first_row, int first_column) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) {
      int row = first_row + m * row_step + lane / 4 + i % 4 / 2 * 8,
          column = first_column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (column > row) s[m][i] = -INFINITY;
    }
}

/* Row r sees columns from r - window + 1 up to r (causal) or up to r + window - 1; as mask_causal. */
template <int row_step, bool causal, int m_tiles, int count>
__device__ __forceinline__ void mask_window(float (&s)[m_tiles][count], int first_row, int first_column, int window) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) {
      int row = first_row + m * row_step + lane / 4 + i % 4 / 2 * 8,
          column = first_column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (column > (causal ? row : row + window - 1) || column <= row - window) s[m][i] = -INFINITY;
    }
}

/* Columns of the tile from `valid` on do not exist. */
template <int m_tiles, int count>
__device__ __forceinline__ void mask_columns(float (&s)[m_tiles][count], int valid) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++)
      if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= valid) s[m][i] = -INFINITY;
}

/* s becomes exp2(scale * (s - max)); correction is what o must be multiplied by. */
template <int m_tiles, int count>
__device__ __forceinline__ void softmax_step(float (&s)[m_tiles][count], RowState<m_tiles> &rows,
                                             float (&correction)[m_tiles][2], float scale_log2) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float top = rows.max[m][half];
#pragma unroll
      for (int n = 0; n < count / 4; n++) top = fmaxf(top, fmaxf(s[m][n * 4 + half * 2], s[m][n * 4 + half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
      float base = top == -INFINITY ? 0.0f : top * scale_log2;
      correction[m][half] = exp2_fast(rows.max[m][half] * scale_log2 - base);
      rows.max[m][half] = top;
      float sum = rows.sum[m][half] * correction[m][half];
#pragma unroll
      for (int n = 0; n < count / 4; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          float p = exp2_fast(s[m][n * 4 + half * 2 + i] * scale_log2 - base);
          s[m][n * 4 + half * 2 + i] = p;
          sum += p;
        }
      rows.sum[m][half] = sum;
    }
}

template <int m_tiles, int count>
__device__ __forceinline__ void rescale(float (&o)[m_tiles][count], const float (&correction)[m_tiles][2]) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) o[m][i] *= correction[m][i % 4 / 2];
}

template <int m_tiles, int count>
__device__ __forceinline__ void scale_output(float (&o)[m_tiles][count], float scale) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) o[m][i] *= scale;
}

/* The A fragment of the second product for 16 keys from key tile kk on. */
template <int count>
__device__ __forceinline__ void p_fragment(uint32_t (&a)[4], const float (&s)[count], int kk) {
#pragma unroll
  for (int i = 0; i < 4; i++) a[i] = pack(s[kk * 8 + i * 2], s[kk * 8 + i * 2 + 1]);
}

/* Divides o by the row sums and writes lse[row] for rows first_row + m * row_step + ... (ragged: those below `valid`).
 */
template <int row_step, bool ragged = false, int m_tiles, int count>
__device__ __forceinline__ void normalize(float (&o)[m_tiles][count], const RowState<m_tiles> &rows, float *lse,
                                          uint32_t first_row, float scale_log2, int valid = 0) {
  uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sum = rows.sum[m][half];
      sum += __shfl_xor_sync(0xffffffff, sum, 1);
      sum += __shfl_xor_sync(0xffffffff, sum, 2);
      float inverse = sum > 0 ? 1.0f / sum : 0.0f;
      uint32_t row = first_row + (uint32_t)(m * row_step + half * 8) + lane / 4;
      if (lane % 4 == 0 && (!ragged || (int)row < valid))
        lse[row] = sum > 0 ? (rows.max[m][half] * scale_log2 + __log2f(sum)) * 0.69314718f : -INFINITY;
#pragma unroll
      for (int n = 0; n < count / 4; n++) {
        o[m][n * 4 + half * 2] *= inverse;
        o[m][n * 4 + half * 2 + 1] *= inverse;
      }
    }
}
