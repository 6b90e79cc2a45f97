/* What the kernels of this family are made of: asynchronous copies into swizzled tiles, fragments, 16x8x16 products. */
#pragma once

#include <cstdint>

#include "number.h"

namespace mixed_d {

extern __shared__ __align__(1024) unsigned char shared_memory[];

__device__ inline uint32_t shared_address() { return (uint32_t)__cvta_generic_to_shared(shared_memory); }

/* Byte offset of a 16-byte chunk in a tile whose rows of 16-bit numbers lie one behind the other: any 8 rows of one
 * column of chunks are in different banks. 16 rows further the pattern is the same, and the chunk two further in the
 * row is at the offset XOR 32 (see `step_along_row`). */
template <int Columns>
__device__ inline uint32_t swizzled(int row, int chunk) {
  static_assert(Columns == 32 || Columns == 64 || Columns == 128, "rows of 64, 128 or 256 bytes");
  int phase = Columns == 32 ? (row >> 1) & 3 : row & 7;
  return (uint32_t)(row * Columns * 2 + ((chunk ^ phase) << 4));
}
__device__ inline uint32_t step_along_row(uint32_t address, int steps) { return address ^ ((uint32_t)steps << 5); }

__device__ inline void copy_async(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int Pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

/* Rows of Columns numbers, by threads 0 to Threads - 1. */
template <int Rows, int Columns, int Threads, class T>
__device__ inline void copy_rows(uint32_t to, const T *from, int64_t row_stride, int thread) {
  constexpr int chunks = Columns / 8, step = Threads / chunks;
  static_assert(Threads % chunks == 0 && Rows % step == 0, "every thread copies as much as any other");
  int row = thread / chunks, chunk = thread % chunks;
  from += row * row_stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < Rows / step; i++) {
    copy_async(to + swizzled<Columns>(row + i * step, chunk), from);
    from += step * row_stride;
  }
}

__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
/* The lane's offset in a 16x16 block: of an A operand, or of a B operand that is stored [k][n] and is loaded transposed
 * (registers 0 and 1: columns 0 to 7; 2 and 3: columns 8 to 15). */
template <int Columns>
__device__ inline uint32_t lane_offset_a(int lane) {
  return swizzled<Columns>(lane & 15, lane >> 4);
}
/* Of a B operand that is stored [n][k]; registers as above. */
template <int Columns>
__device__ inline uint32_t lane_offset_b(int lane) {
  return swizzled<Columns>((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
}

template <class T>
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
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
__device__ inline uint32_t pack(float low, float high) {
  if constexpr (independent::is_bf16<T>) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&pair;
  } else {
    __half2 pair = __floats2half2_rn(low, high);
    return *(uint32_t *)&pair;
  }
}

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}
constexpr float log2_of_e = 1.4426950408889634f, ln_of_2 = 0.6931471805599453f;

/* Over the four lanes that share a row of an accumulator. */
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

template <int Stages>
__device__ inline int next_stage(int stage) {
  return stage + 1 == Stages ? 0 : stage + 1;
}

}  // namespace mixed_d
