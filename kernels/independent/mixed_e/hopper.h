/* Barriers, TMA, and wgmma on tiles in shared memory: blocks of 64 columns, each [rows][64] with 128-byte swizzle. */
#pragma once

#include <cuda.h>

#include "fragments.h"
#include "wgmma_ops.h"

namespace mixed_e {

__device__ inline void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline bool barrier_passed(uint32_t barrier, int parity) {
  uint32_t passed;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed;
}
__device__ inline void barrier_wait(uint32_t barrier, int parity) {
  while (!barrier_passed(barrier, parity)) {
  }
}
/* One arrival a warp. */
__device__ inline void warp_arrive(uint32_t barrier) {
  __syncwarp();
  if (lane_id() == 0) barrier_arrive(barrier);
}

/* Of the whole tile; rows past the end become zero, and count. */
template <int D, int Rows>
__device__ void load_tile(uint32_t to, const CUtensorMap *map, uint32_t barrier, int row, int head, int sequence) {
  barrier_expect(barrier, Rows * D * 2);
#pragma unroll
  for (int column = 0; column < D; column += 64)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to + column / 64 * Rows * 128),
        "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(sequence)
        : "memory");
}

/* 128-byte swizzle; 8 rows of 128 bytes lie 1024 bytes from the next 8. `block_stride` is from 64 columns to the next,
 * which only a transposed operand needs. In units of 16 bytes, so that offsets can be added. */
__device__ inline uint64_t descriptor(uint32_t address, uint32_t block_stride) {
  return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(block_stride >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
         (uint64_t)1 << 62;
}

__device__ inline void wgmma_fence() {
  __syncwarp();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
/* Keeps the compiler from moving uses of registers of a wgmma across the wait for it. */
template <int Count>
__device__ void settle(float (&x)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int Count>
__device__ void settle(uint32_t (&x)[Count][4]) {
#pragma unroll
  for (int i = 0; i < Count; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) asm volatile("" : "+r"(x[i][j])::"memory");
}

/* S = Q K^T of 64 rows of a Q tile of M rows. */
template <class T, int D, int M, int N>
__device__ void start_scores(float (&s)[N / 2], uint64_t q, uint64_t k) {
#pragma unroll
  for (int step = 0; step < D / 16; step++)
    wgmma_scores<T>(s, q + (step / 4 * M * 128 + step % 4 * 32) / 16, k + (step / 4 * N * 128 + step % 4 * 32) / 16,
                    step > 0);
  wgmma_commit();
}

/* O += P V. */
template <class T, int N, int Count>
__device__ void start_values(float (&o)[Count], const uint32_t (&p)[N / 16][4], uint64_t v) {
#pragma unroll
  for (int step = 0; step < N / 16; step++) wgmma_values<T>(o, p[step], v + step * (16 * 128 / 16));
  wgmma_commit();
}

template <class T, int N>
__device__ void pack_scores(uint32_t (&p)[N / 16][4], const float (&s)[N / 2]) {
#pragma unroll
  for (int step = 0; step < N / 16; step++) pack_columns<T>(p[step], s, step);
}

/* Shared memory: the barriers in the first 1024 bytes, then Q, the K stages, the V stages. */
template <int D, int M, int N, int Stages>
struct TileLayout {
  static constexpr int q_bytes = M * D * 2, kv_bytes = N * D * 2;
  static constexpr int bytes = 2048 + q_bytes + 2 * Stages * kv_bytes; /* 1024 of them to align */
  uint32_t base;

  __device__ explicit TileLayout(const void *shared)
      : base(((uint32_t)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024) {}
  __device__ uint32_t barrier(int i) const { return base + i * 8; }
  __device__ uint32_t q_full() const { return barrier(0); }
  __device__ uint32_t q_empty() const { return barrier(1); }
  __device__ uint32_t k_full(int stage) const { return barrier(2 + stage); }
  __device__ uint32_t k_empty(int stage) const { return barrier(2 + Stages + stage); }
  __device__ uint32_t v_full(int stage) const { return barrier(2 + 2 * Stages + stage); }
  __device__ uint32_t v_empty(int stage) const { return barrier(2 + 3 * Stages + stage); }
  __device__ uint32_t q() const { return base + 1024; }
  __device__ uint32_t k(int stage) const { return q() + q_bytes + stage * kv_bytes; }
  __device__ uint32_t v(int stage) const { return k(Stages + stage); }

  /* By one thread, before a barrier of the CTA. */
  __device__ void init_barriers(int readers) const {
    barrier_init(q_full(), 1);
    barrier_init(q_empty(), readers);
    for (int stage = 0; stage < Stages; stage++) {
      barrier_init(k_full(stage), 1);
      barrier_init(k_empty(stage), readers);
      barrier_init(v_full(stage), 1);
      barrier_init(v_empty(stage), readers);
    }
    barrier_init_fence();
  }
};

struct TensorMaps {
  CUtensorMap q, k, v;
};

}  // namespace mixed_e
