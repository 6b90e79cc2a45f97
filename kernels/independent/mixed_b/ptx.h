/* The PTX that the kernels need, for both formats, and swizzled tiles. */
#pragma once

#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

__device__ __forceinline__ uint32_t smem_u32(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void cp16(uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a)
               : "memory");
}
__device__ __forceinline__ void ldsm4t(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a)
               : "memory");
}
__device__ __forceinline__ void sts32(uint32_t a, uint32_t v) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(a), "r"(v) : "memory");
}
__device__ __forceinline__ float2 lds_f2(uint32_t a) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(a) : "memory");
  return v;
}
__device__ __forceinline__ uint4 lds128(uint32_t a) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(a)
               : "memory");
  return v;
}
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ void red_add2(float* p, float a, float b) {
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(a), "f"(b) : "memory");
}

template <typename T>
struct Num;
template <>
struct Num<half> {
  static __device__ __forceinline__ uint32_t pack(float lo, float hi) {
    half2 h = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<uint32_t*>(&h);
  }
  static __device__ __forceinline__ float2 unpack(uint32_t u) { return __half22float2(*reinterpret_cast<half2*>(&u)); }
  static __host__ __device__ __forceinline__ float f(half x) { return __half2float(x); }
  static __host__ __device__ __forceinline__ half t(float x) { return __float2half_rn(x); }
  static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
template <>
struct Num<bf16> {
  static __device__ __forceinline__ uint32_t pack(float lo, float hi) {
    __nv_bfloat162 h = __floats2bfloat162_rn(lo, hi);
    return *reinterpret_cast<uint32_t*>(&h);
  }
  static __device__ __forceinline__ float2 unpack(uint32_t u) {
    return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162*>(&u));
  }
  static __host__ __device__ __forceinline__ float f(bf16 x) { return __bfloat162float(x); }
  static __host__ __device__ __forceinline__ bf16 t(float x) { return __float2bfloat16_rn(x); }
  static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/* Shared tiles are [rows][RB bytes], RB = 128 or 256; the 16-byte chunk c of row r lies at chunk c ^ (r & 7). */
template <int RB>
__device__ __forceinline__ uint32_t swz(int r, int c) {
  return r * RB + ((c ^ (r & 7)) << 4);
}

/* Lane part of the ldmatrix addresses. In each, the row that a lane names has (row & 7) == (lane & 7) relative to
 * an 8-aligned tile origin, so the address of 16-wide step s along the row is  base + row * RB + ((s * 32) ^ x).
 * A:  [m][k] -> A fragment:          m = lane & 15,                       k half = lane >> 4
 * B:  [n][k] -> two B fragments:     n = (lane & 7) + 8 * (lane >> 4),    k half = (lane >> 3) & 1
 * Bt: [k][n] -> two B, transposed:   k = lane & 15,                       n half = lane >> 4
 * At: [k][m] -> A, transposed:       k = (lane & 7) + 8 * (lane >> 4),    m half = (lane >> 3) & 1 */
struct LaneAddr {
  int r_lo16, r_split; /* row for (A, Bt) and for (B, At) */
  uint32_t x_lo16, x_split;
  __device__ __forceinline__ explicit LaneAddr(int lane) {
    r_lo16 = lane & 15;
    r_split = (lane & 7) + ((lane >> 4) << 3);
    x_lo16 = ((lane >> 4) ^ (lane & 7)) << 4;
    x_split = (((lane >> 3) & 1) ^ (lane & 7)) << 4;
  }
};

/* rows x D elements, contiguous rows in global, into a swizzled tile */
template <typename T, int ROWS, int D, int NT>
__device__ __forceinline__ void copy_tile(uint32_t dst, const T* src, int tid) {
  constexpr int CH = D / 8;
  static_assert(ROWS * CH % NT == 0, "");
#pragma unroll
  for (int i = 0; i < ROWS * CH / NT; i++) {
    int idx = tid + i * NT, r = idx / CH, c = idx % CH;
    cp16(dst + swz<D * 2>(r, c), src + (size_t)r * D + c * 8);
  }
}
