/* Building blocks: swizzled tiles in shared memory, cp.async, ldmatrix, mma.sync m16n8k16 and products of a warp. */
#pragma once

#include <cstdint>

#include "number.h"

namespace backward_a {

__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Byte offset of a 16-byte chunk in a row-major tile of COLS 16-bit columns: eight rows of one chunk column lie in
 * different banks. */
template <int COLS>
__device__ __forceinline__ uint32_t chunk_offset(int row, int chunk) {
  static_assert(COLS >= 32 && COLS % 32 == 0, "tile too narrow");
  if constexpr (COLS == 32)
    return row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4);
  else
    return row * (COLS * 2) + ((chunk ^ (row & 7)) << 4);
}

__device__ __forceinline__ void cp_async16(uint32_t to, const void *from, bool valid) {
  int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* Rows [first, first + ROWS) of a row-major matrix of `rows` rows; zeros behind its end. */
template <int ROWS, int COLS, int THREADS, class T>
__device__ __forceinline__ void load_tile(uint32_t to, const T *from, int first, int rows) {
  constexpr int CHUNKS = COLS / 8;
  static_assert(ROWS * CHUNKS % THREADS == 0, "tile and threads do not match");
#pragma unroll
  for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
    int index = i * THREADS + threadIdx.x, row = index / CHUNKS, chunk = index % CHUNKS;
    bool valid = first + row < rows;
    cp_async16(to + chunk_offset<COLS>(row, chunk), from + (size_t)(valid ? first + row : 0) * COLS + chunk * 8, valid);
  }
}

template <int ROWS, int COLS, int THREADS, class T>
__device__ __forceinline__ void store_tile(const unsigned char *from, T *to, int first, int rows) {
  constexpr int CHUNKS = COLS / 8;
#pragma unroll
  for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
    int index = i * THREADS + threadIdx.x, row = index / CHUNKS, chunk = index % CHUNKS;
    if (first + row < rows)
      *(uint4 *)(to + (size_t)(first + row) * COLS + chunk * 8) =
          *(const uint4 *)(from + chunk_offset<COLS>(row, chunk));
  }
}

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void ldmatrix4_transposed(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

template <class T>
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (independent::is_bf16<T>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class T>
__device__ __forceinline__ uint32_t pack(float x, float y) {
  if constexpr (independent::is_bf16<T>) {
    __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
    return *(uint32_t *)&both;
  } else {
    __half2 both = __floats2half2_rn(x, y);
    return *(uint32_t *)&both;
  }
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* The A operand, 16 x 16 at (m, k): of a tile stored [m][k], or [k][m] if STORED_TRANSPOSED. */
template <bool STORED_TRANSPOSED, int COLS>
__device__ __forceinline__ void load_a(uint32_t (&a)[4], uint32_t tile, int m, int k) {
  int lane = threadIdx.x & 31;
  if constexpr (STORED_TRANSPOSED)
    ldmatrix4_transposed(
        a, tile + chunk_offset<COLS>(k + (lane & 7) + ((lane >> 4) << 3), (m >> 3) + ((lane >> 3) & 1)));
  else
    ldmatrix4(a, tile + chunk_offset<COLS>(m + (lane & 15), (k >> 3) + (lane >> 4)));
}

/* The B operands of two n8 tiles, 16 x 16 at (k, n): of a tile stored [n][k], or [k][n] if STORED_K_BY_N. The first has
 * b[0], b[1], the second b[2], b[3]. */
template <bool STORED_K_BY_N, int COLS>
__device__ __forceinline__ void load_b(uint32_t (&b)[4], uint32_t tile, int k, int n) {
  int lane = threadIdx.x & 31;
  if constexpr (STORED_K_BY_N)
    ldmatrix4_transposed(b, tile + chunk_offset<COLS>(k + (lane & 15), (n >> 3) + (lane >> 4)));
  else
    ldmatrix4(b, tile + chunk_offset<COLS>(n + (lane & 7) + ((lane >> 4) << 3), (k >> 3) + ((lane >> 3) & 1)));
}

template <int MT, int NT>
__device__ __forceinline__ void clear(float (&c)[MT][NT][4]) {
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) c[m][n][e] = 0.f;
}

/* c += A B over K, both operands in shared memory; the warp's part begins at row m and column n. */
template <class T, int K, bool A_TRANSPOSED, int A_COLS, bool B_K_BY_N, int B_COLS, int MT, int NT>
__device__ __forceinline__ void product(float (&c)[MT][NT][4], uint32_t a_tile, int m, uint32_t b_tile, int n) {
  static_assert(NT % 2 == 0, "n8 tiles come in pairs");
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    uint32_t a[MT][4];
#pragma unroll
    for (int i = 0; i < MT; i++) load_a<A_TRANSPOSED, A_COLS>(a[i], a_tile, m + i * 16, k);
#pragma unroll
    for (int j = 0; j < NT; j += 2) {
      uint32_t b[4];
      load_b<B_K_BY_N, B_COLS>(b, b_tile, k, n + j * 8);
#pragma unroll
      for (int i = 0; i < MT; i++) {
        mma<T>(c[i][j], a[i], b[0], b[1]);
        mma<T>(c[i][j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/* The same with A in registers. */
template <class T, bool B_K_BY_N, int B_COLS, int MT, int NT, int KT>
__device__ __forceinline__ void product(float (&c)[MT][NT][4], const uint32_t (&a)[MT][KT][4], uint32_t b_tile, int n) {
  static_assert(NT % 2 == 0, "n8 tiles come in pairs");
#pragma unroll
  for (int k = 0; k < KT; k++)
#pragma unroll
    for (int j = 0; j < NT; j += 2) {
      uint32_t b[4];
      load_b<B_K_BY_N, B_COLS>(b, b_tile, k * 16, n + j * 8);
#pragma unroll
      for (int i = 0; i < MT; i++) {
        mma<T>(c[i][j], a[i][k], b[0], b[1]);
        mma<T>(c[i][j + 1], a[i][k], b[2], b[3]);
      }
    }
}

/* Rounds an accumulator times `factor` into a tile. */
template <class T, int COLS, int MT, int NT>
__device__ __forceinline__ void store_accumulator(unsigned char *tile, const float (&c)[MT][NT][4], int m, int n,
                                                  float factor) {
  int lane = threadIdx.x & 31, row = m + (lane >> 2), within = (lane & 3) * 4;
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int j = 0; j < NT; j++) {
      *(uint32_t *)(tile + chunk_offset<COLS>(row + i * 16, (n >> 3) + j) + within) =
          pack<T>(c[i][j][0] * factor, c[i][j][1] * factor);
      *(uint32_t *)(tile + chunk_offset<COLS>(row + i * 16 + 8, (n >> 3) + j) + within) =
          pack<T>(c[i][j][2] * factor, c[i][j][3] * factor);
    }
}

}  // namespace backward_a
