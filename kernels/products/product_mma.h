/* Matrix products by tiles with mma.sync m16n8k16 and cp.async: C = A B, its K optionally split over CTAs, and the
 * fused gated linear unit (two Bs, one walk over K).
 *
 * A [m][k], B [k][n], C [m][n], f16, batch after batch. A CTA owns block_m x block_n of C; warp w its rows w * block_m
 * / num_warps onward and all columns. num_stages buffers of each tile, filled num_stages - 1 steps ahead; one barrier a
 * step. Rows are swizzled in 16-byte chunks. Sums are stored from registers, two columns at a time. Split K: each part
 * leaves its f32 sums in memory, and a second kernel adds them up, a warp 128 columns of a row.
 *
 * m, n and k must be multiples of the blocks. */
#pragma once

#include "flash2_mma.h"

namespace product_mma {

struct Product {
  int batch, m, n, k, splits;
  bool m_first;
  const __half *a, *b[2]; /* b[1]: of a gated linear unit */
  __half *c;
  float *sums; /* of each part, [batch][split][m][n] */
};

template <int block_m_, int block_n_, int block_k_, int num_warps_, int num_stages_, int num_b_>
struct Shape {
  static constexpr int block_m = block_m_, block_n = block_n_, block_k = block_k_, num_warps = num_warps_,
                       num_stages = num_stages_, num_b = num_b_;
  static constexpr int num_threads = num_warps * 32, warp_rows = block_m / num_warps, m_tiles = warp_rows / 16,
                       n_tiles = block_n / 8;
  static constexpr int a_bytes = block_m * block_k * 2, b_bytes = block_k * block_n * 2;
  static constexpr int stage_bytes = a_bytes + num_b * b_bytes, shared_bytes = num_stages * stage_bytes;
  static_assert(warp_rows % 16 == 0 && block_k % 64 == 0 && block_n % 64 == 0 && num_stages >= 2);
};

/* Byte offset of a 16-byte chunk in a tile whose rows have `columns` halves. */
template <int columns>
__device__ __forceinline__ uint32_t swizzled(uint32_t row, uint32_t chunk) {
  return (row * (columns / 8) + (chunk ^ (row & 7))) * 16;
}

template <int rows, int columns, int num_threads>
__device__ __forceinline__ void copy_tile(uint32_t to, const __half *from, size_t row_stride) {
  constexpr int chunks = columns / 8;
  static_assert(rows * chunks % num_threads == 0);
#pragma unroll
  for (int i = 0; i < rows * chunks / num_threads; i++) {
    uint32_t index = threadIdx.x + (uint32_t)(i * num_threads), row = index / chunks, chunk = index % chunks;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + swizzled<columns>(row, chunk)),
                 "l"(from + row * row_stride + chunk * 8)
                 : "memory");
  }
}

/* Where a CTA's tile lies, and which steps of K it takes. */
struct Place {
  size_t batch, row, column;
  int split, first_step, num_steps;
};

template <class S>
__device__ __forceinline__ Place place(const Product &p) {
  int tiles_m = p.m / S::block_m, tiles_n = p.n / S::block_n, tile = (int)blockIdx.x % (tiles_m * tiles_n);
  int matrix = (int)blockIdx.x / (tiles_m * tiles_n), steps = p.k / S::block_k;
  int per_split = (steps + p.splits - 1) / p.splits;
  Place at;
  at.row = (size_t)(p.m_first ? tile % tiles_m : tile / tiles_n) * S::block_m;
  at.column = (size_t)(p.m_first ? tile / tiles_m : tile % tiles_n) * S::block_n;
  at.split = matrix % p.splits;
  at.batch = (size_t)(matrix / p.splits);
  at.first_step = at.split * per_split;
  at.num_steps = min(per_split, steps - at.first_step);
  return at;
}

template <class S>
struct Sums {
  float of[S::num_b][S::m_tiles][S::n_tiles * 4];
};

template <class S>
__device__ __forceinline__ void multiply(Sums<S> &sums, uint32_t a, uint32_t b) {
  uint32_t lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * S::warp_rows;
#pragma unroll
  for (int kk = 0; kk < S::block_k / 16; kk++) {
    uint32_t rows[S::m_tiles][4];
#pragma unroll
    for (int m = 0; m < S::m_tiles; m++)
      flash2_mma::ldmatrix(
          rows[m], a + swizzled<S::block_k>(warp_row + (uint32_t)m * 16 + lane % 16, (uint32_t)kk * 2 + lane / 16));
#pragma unroll
    for (int i = 0; i < S::num_b; i++)
#pragma unroll
      for (int n = 0; n < S::n_tiles; n += 2) {
        uint32_t columns[4];
        flash2_mma::ldmatrix_trans(columns,
                                   b + (uint32_t)(i * S::b_bytes) +
                                       swizzled<S::block_n>((uint32_t)kk * 16 + lane % 16, (uint32_t)n + lane / 16));
#pragma unroll
        for (int m = 0; m < S::m_tiles; m++) {
          flash2_mma::mma(&sums.of[i][m][n * 4], rows[m], columns[0], columns[1]);
          flash2_mma::mma(&sums.of[i][m][n * 4 + 4], rows[m], columns[2], columns[3]);
        }
      }
  }
}

/* The walk over K that both kernels share. */
template <class S>
__device__ __forceinline__ void accumulate(Sums<S> &sums, const Product &p, const Place &at) {
  extern __shared__ __align__(128) uint8_t shared[];
  uint32_t base = flash2_mma::shared_address(shared);
  const __half *a = p.a + (at.batch * (size_t)p.m + at.row) * (size_t)p.k;
  auto fetch = [&](int step) {
    if (step < at.num_steps) {
      uint32_t to = base + (uint32_t)(step % S::num_stages * S::stage_bytes);
      size_t depth = (size_t)(at.first_step + step) * S::block_k;
      copy_tile<S::block_m, S::block_k, S::num_threads>(to, a + depth, (size_t)p.k);
#pragma unroll
      for (int i = 0; i < S::num_b; i++)
        copy_tile<S::block_k, S::block_n, S::num_threads>(
            to + (uint32_t)(S::a_bytes + i * S::b_bytes),
            p.b[i] + (at.batch * (size_t)p.k + depth) * (size_t)p.n + at.column, (size_t)p.n);
    }
    flash2_mma::commit();
  };
#pragma unroll
  for (int s = 0; s < S::num_stages - 1; s++) fetch(s);
#pragma unroll
  for (int i = 0; i < S::num_b; i++) fill_zero(sums.of[i]);
  for (int step = 0; step < at.num_steps; step++) {
    flash2_mma::wait_and_sync<S::num_stages - 2>();
    fetch(step + S::num_stages - 1);
    uint32_t stage = base + (uint32_t)(step % S::num_stages * S::stage_bytes);
    multiply(sums, stage, stage + S::a_bytes);
  }
}

/* Calls store(row, column, index of the sum) for every other column of the thread's sums; the next sum is of the next
 * column. */
template <class S, class Store>
__device__ __forceinline__ void for_pairs(const Place &at, Store store) {
  uint32_t lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * S::warp_rows;
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int n = 0; n < S::n_tiles; n++)
        store(at.row + warp_row + (uint32_t)(m * 16 + half * 8) + lane / 4, at.column + (uint32_t)n * 8 + lane % 4 * 2,
              m, n * 4 + half * 2);
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void matmul(Product p) {
  Place at = place<S>(p);
  Sums<S> sums;
  accumulate(sums, p, at);
  if (p.splits > 1) {
    float *to = p.sums + (at.batch * (size_t)p.splits + (size_t)at.split) * (size_t)p.m * (size_t)p.n;
    for_pairs<S>(at, [&](size_t row, size_t column, int m, int i) {
      *(float2 *)(to + row * (size_t)p.n + column) = make_float2(sums.of[0][m][i], sums.of[0][m][i + 1]);
    });
  } else {
    __half *to = p.c + at.batch * (size_t)p.m * (size_t)p.n;
    for_pairs<S>(at, [&](size_t row, size_t column, int m, int i) {
      *(uint32_t *)(to + row * (size_t)p.n + column) = pack(sums.of[0][m][i], sums.of[0][m][i + 1]);
    });
  }
}

__device__ __forceinline__ float silu(float x) { return x / (1.0f + exp2_fast(-1.44269504f * x)); }

/* C = silu(A B0) * (A B1). */
template <class S>
__global__ __launch_bounds__(S::num_threads) void gated(Product p) {
  static_assert(S::num_b == 2);
  Place at = place<S>(p);
  Sums<S> sums;
  accumulate(sums, p, at);
  for_pairs<S>(at, [&](size_t row, size_t column, int m, int i) {
    *(uint32_t *)(p.c + row * (size_t)p.n + column) =
        pack(silu(sums.of[0][m][i]) * sums.of[1][m][i], silu(sums.of[0][m][i + 1]) * sums.of[1][m][i + 1]);
  });
}

constexpr int adding_warps = 4, adding_columns = 128;

static __global__ __launch_bounds__(adding_warps * 32) void add_splits(Product p) {
  int tiles_m = p.m / adding_warps, tiles_n = p.n / adding_columns, tile = (int)blockIdx.x % (tiles_m * tiles_n);
  size_t batch = (size_t)((int)blockIdx.x / (tiles_m * tiles_n)), size = (size_t)p.m * (size_t)p.n;
  size_t row = (size_t)(tile / tiles_n * adding_warps) + threadIdx.x / 32;
  size_t at = row * (size_t)p.n + (size_t)(tile % tiles_n * adding_columns) + threadIdx.x % 32 * 4;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int split = 0; split < p.splits; split++) {
    float4 part = *(const float4 *)(p.sums + (batch * (size_t)p.splits + (size_t)split) * size + at);
    sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
  }
  *(uint2 *)(p.c + batch * size + at) = make_uint2(pack(sum.x, sum.y), pack(sum.z, sum.w));
}

template <class S>
unsigned num_ctas(const Product &p) {
  return (unsigned)(p.batch * p.splits * (p.m / S::block_m) * (p.n / S::block_n));
}

inline void run_addition(const Product &p) {
  if (p.splits > 1)
    add_splits<<<(unsigned)(p.batch * (p.m / adding_warps) * (p.n / adding_columns)), adding_warps * 32>>>(p);
}

template <class S>
void run_matmul(const Product &p) {
  matmul<S><<<num_ctas<S>(p), S::num_threads, S::shared_bytes>>>(p);
  run_addition(p);
}

template <class S>
void run_gated(const Product &p) {
  gated<S><<<num_ctas<S>(p), S::num_threads, S::shared_bytes>>>(p);
}

}  // namespace product_mma
