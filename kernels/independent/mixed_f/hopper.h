/* wgmma of 64 x N x 16 with fp32 sums, N 64 and 128; TMA, mbarriers. */
#pragma once

#include "ptx.h"

namespace mixed_f {

/* ---- mbarriers */
DEVICE void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVICE void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void barrier_wait(uint32_t barrier, int parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}
DEVICE void barriers_visible() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
DEVICE void shared_visible_to_tma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- TMA; coordinates: column, row, head, sequence */
DEVICE void tma_load(uint32_t to, const void *map, uint32_t barrier, int column, int row, int head, int sequence) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], [%2];" ::
          "r"(to),
      "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(sequence)
      : "memory");
}
DEVICE void tma_store(const void *map, uint32_t from, int column, int row, int head, int sequence) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2,%3,%4,%5}], [%1];" ::"l"(map), "r"(from),
               "r"(column), "r"(row), "r"(head), "r"(sequence)
               : "memory");
}
DEVICE void tma_stores_finish() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
DEVICE void tma_prefetch(const void *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

/* ---- wgmma. Operands in 128-byte swizzle: `step` bytes between groups of eight rows, `leap` between groups of 64
 * columns where the columns are those of the result (a transposed B). */
DEVICE uint64_t descriptor(uint32_t at, uint32_t leap, uint32_t step) {
  return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(leap >> 4) << 16 | (uint64_t)(step >> 4) << 32 |
         (uint64_t)1 << 62;
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* The compiler may not move uses of `x` across. */
template <int N>
DEVICE void pin(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int N>
DEVICE void wgmma_finish(float (&x)[N]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  pin(x);
}

#define FOUR(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])
#define SIXTEEN(x, i) FOUR(x, i), FOUR(x, i + 4), FOUR(x, i + 8), FOUR(x, i + 12)
#define THIRTYTWO(x, i) SIXTEEN(x, i), SIXTEEN(x, i + 16)

#define SUMS_64                                                                                                      \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%" \
  "30,%31}"
#define WGMMA_64(TYPE)                                                                                        \
  asm volatile(                                                                                               \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                                            \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " SUMS_64 ", %32, %33, p, 1, 1, 0, 0;\n}" \
      : THIRTYTWO(d, 0)                                                                                       \
      : "l"(a), "l"(b), "r"((int)add))
#define WGMMA_64_REGISTERS(TYPE)                                              \
  asm volatile(                                                               \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                            \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " SUMS_64 \
      ", {%32,%33,%34,%35}, %36, p, 1, 1, 1;\n}"                              \
      : THIRTYTWO(d, 0)                                                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1))

#define SUMS_128                                                                                                     \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%" \
  "30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%" \
  "58,%59,%60,%61,%62,%63}"
#define WGMMA_128(TYPE)                                                                                         \
  asm volatile(                                                                                                 \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                                              \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " " SUMS_128 ", %64, %65, p, 1, 1, 0, 0;\n}" \
      : THIRTYTWO(d, 0), THIRTYTWO(d, 32)                                                                       \
      : "l"(a), "l"(b), "r"((int)add))
#define WGMMA_128_REGISTERS(TYPE)                                               \
  asm volatile(                                                                 \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                              \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " " SUMS_128 \
      ", {%64,%65,%66,%67}, %68, p, 1, 1, 1;\n}"                                \
      : THIRTYTWO(d, 0), THIRTYTWO(d, 32)                                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1))

/* d = (add ? d : 0) + a b, both from shared memory, b stored [column][depth]. */
template <class T, int HALF_N>
DEVICE void wgmma(float (&d)[HALF_N], uint64_t a, uint64_t b, bool add) {
  static_assert(HALF_N == 32 || HALF_N == 64, "columns");
  if constexpr (HALF_N == 32) {
    if constexpr (is_bf16<T>)
      WGMMA_64("bf16");
    else
      WGMMA_64("f16");
  } else {
    if constexpr (is_bf16<T>)
      WGMMA_128("bf16");
    else
      WGMMA_128("f16");
  }
}
/* d += a b, a from registers, b stored [depth][column]. */
template <class T, int HALF_N>
DEVICE void wgmma(float (&d)[HALF_N], const uint32_t (&a)[4], uint64_t b) {
  static_assert(HALF_N == 32 || HALF_N == 64, "columns");
  if constexpr (HALF_N == 32) {
    if constexpr (is_bf16<T>)
      WGMMA_64_REGISTERS("bf16");
    else
      WGMMA_64_REGISTERS("f16");
  } else {
    if constexpr (is_bf16<T>)
      WGMMA_128_REGISTERS("bf16");
    else
      WGMMA_128_REGISTERS("f16");
  }
}

}  // namespace mixed_f
