/* The PTX that the kernels need (cp.async, ldmatrix, mma.sync), and swizzled tiles. */
#pragma once

#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define DYN_SMEM(name) extern __shared__ __align__(1024) unsigned char name[]

__device__ __forceinline__ uint32_t smem_addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void cp16(uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a)
               : "memory");
}
__device__ __forceinline__ void ldsm4t(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a)
               : "memory");
}
__device__ __forceinline__ void sts32(uint32_t a, uint32_t v) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(a), "r"(v) : "memory");
}
__device__ __forceinline__ uint4 lds128(uint32_t a) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(a)
               : "memory");
  return v;
}
__device__ __forceinline__ void sts128(uint32_t a, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};\n" ::"r"(a), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

template <typename T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ __forceinline__ void mma<__half>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__host__ __device__ __forceinline__ float to_f(__half x) { return __half2float(x); }
__host__ __device__ __forceinline__ float to_f(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__host__ __device__ __forceinline__ T from_f(float x);
template <>
__host__ __device__ __forceinline__ __half from_f<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__host__ __device__ __forceinline__ __nv_bfloat16 from_f<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/* two floats -> one register, the first one in the low half */
template <typename T>
__device__ __forceinline__ uint32_t pack2(float lo, float hi);
template <>
__device__ __forceinline__ uint32_t pack2<__half>(float lo, float hi) {
  __half2 h = __floats2half2_rn(lo, hi);
  return *reinterpret_cast<uint32_t*>(&h);
}
template <>
__device__ __forceinline__ uint32_t pack2<__nv_bfloat16>(float lo, float hi) {
  __nv_bfloat162 h = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<uint32_t*>(&h);
}
template <typename T>
__device__ __forceinline__ float2 unpack2(uint32_t v);
template <>
__device__ __forceinline__ float2 unpack2<__half>(uint32_t v) {
  return __half22float2(*reinterpret_cast<__half2*>(&v));
}
template <>
__device__ __forceinline__ float2 unpack2<__nv_bfloat16>(uint32_t v) {
  return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162*>(&v));
}

/* Byte offset of 16-byte chunk `c` of row `r` in a tile with COLS 2-byte columns; xor swizzle, conflict-free for
 * ldmatrix. */
template <int COLS>
__device__ __forceinline__ uint32_t sw(int r, int c) {
  if constexpr (COLS == 32)
    return r * 64 + ((c ^ ((r >> 1) & 3)) << 4);
  else
    return r * (COLS * 2) + ((c ^ (r & 7)) << 4);
}

/* ROWS x COLS tile, contiguous rows at `ld` elements, by all threads of the CTA. */
template <int ROWS, int COLS, int THREADS, typename T>
__device__ __forceinline__ void copy_tile(uint32_t dst, const T* src, size_t ld, int tid) {
  constexpr int CH = COLS / 8;
  static_assert(ROWS * CH % THREADS == 0, "copy");
#pragma unroll
  for (int i = 0; i < ROWS * CH / THREADS; i++) {
    int idx = tid + i * THREADS, r = idx / CH, c = idx % CH;
    cp16(dst + sw<COLS>(r, c), src + (size_t)r * ld + c * 8);
  }
}

/* Fragment addresses (lane-dependent) for ldmatrix.x4. All at rows r0.., chunk c0.. (8 columns a chunk).
 * 16x16 with row = lane%16, chunk = lane/16: A of a [m][k] tile (plain); B of two n-tiles of a [k][n] tile (trans) */
template <int COLS>
__device__ __forceinline__ uint32_t fa(uint32_t base, int r0, int c0, int lane) {
  return base + sw<COLS>(r0 + (lane & 15), c0 + (lane >> 4));
}
/* row = 8*(lane/16) + lane%8, chunk = (lane/8)%2: B of two n-tiles of a [n][k] tile (plain); A of a [k][m] tile (trans)
 */
template <int COLS>
__device__ __forceinline__ uint32_t fb(uint32_t base, int r0, int c0, int lane) {
  return base + sw<COLS>(r0 + ((lane >> 4) << 3) + (lane & 7), c0 + ((lane >> 3) & 1));
}

constexpr float LOG2E = 1.4426950408889634f;
