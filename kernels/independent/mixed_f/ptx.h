/* PTX in thin wrappers, fragments of m16n8k16, and swizzled tiles of 16-byte chunks. */
#pragma once

#include <cstdint>

#include "number.h"

namespace mixed_f {

using independent::is_bf16;

#define DEVICE __device__ __forceinline__

DEVICE uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* ---- cp.async; a source that is not `ok` reads as zeros. */
DEVICE void copy16(uint32_t to, const void *from, bool ok) {
  int bytes = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
DEVICE void copy4(uint32_t to, const void *from, bool ok) {
  int bytes = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
DEVICE void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING>
DEVICE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---- shared memory */
DEVICE void load_matrices(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
DEVICE void load_matrices_transposed(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
DEVICE void store_word(uint32_t at, uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
}
DEVICE uint4 load_chunk(uint32_t at) {
  uint4 x;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(at)
               : "memory");
  return x;
}
DEVICE float2 load_floats(uint32_t at) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at) : "memory");
  return x;
}

/* Byte offset of a chunk in a tile whose rows have CHUNKS of them; eight rows of one chunk column lie in different
 * banks. */
template <int CHUNKS>
DEVICE uint32_t chunk_at(int row, int chunk) {
  static_assert(CHUNKS == 4 || CHUNKS % 8 == 0, "no swizzle for this width");
  int turn = CHUNKS == 4 ? (row >> 1) & 3 : row & 7;
  return (uint32_t)(row * CHUNKS + (chunk ^ turn)) * 16;
}

/* The four 8x8 matrices of an x4 load, by the lane's row and chunk within 16 x 16 elements.
 * `across`: matrices 1 and 2 are (rows 8-15, chunk 0), (rows 0-7, chunk 1); `along`: the other way round. */
struct LanePlace {
  int row, chunk;
};
DEVICE LanePlace across(int lane) { return {lane & 15, lane >> 4}; }
DEVICE LanePlace along(int lane) { return {(lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1}; }

/* ROWS x COLUMNS elements from global memory, asynchronously; what lies past the limits becomes zero. */
template <int ROWS, int COLUMNS, int THREADS, class T>
DEVICE void fetch_tile(uint32_t to, const T *from, int64_t pitch, int rows_left, int columns_left, int thread) {
  constexpr int chunks = COLUMNS / 8;
  static_assert(ROWS * chunks % THREADS == 0, "uneven copy");
#pragma unroll
  for (int i = 0; i < ROWS * chunks / THREADS; i++) {
    int index = i * THREADS + thread, row = index / chunks, chunk = index % chunks;
    bool ok = row < rows_left && chunk * 8 < columns_left;
    copy16(to + chunk_at<chunks>(row, chunk), ok ? from + row * pitch + chunk * 8 : from, ok);
  }
}

/* ---- arithmetic */
DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class T>
DEVICE uint32_t pack(float low, float high) {
  if constexpr (is_bf16<T>) {
    __nv_bfloat162 x = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&x);
  } else {
    __half2 x = __floats2half2_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&x);
  }
}

/* d += a b; d: four floats from `d` on. */
template <class T>
DEVICE void mma(float *d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (is_bf16<T>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Accumulators of two neighbouring 8-column tiles as the A operand of a 16-deep step. */
template <class T>
DEVICE void as_operand(uint32_t (&a)[4], const float *c) {
  a[0] = pack<T>(c[0], c[1]);
  a[1] = pack<T>(c[2], c[3]);
  a[2] = pack<T>(c[4], c[5]);
  a[3] = pack<T>(c[6], c[7]);
}

}  // namespace mixed_f
