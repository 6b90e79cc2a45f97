/* FlashAttention-2 forward with mma.sync and cp.async. A warp owns 16 or 32 rows; K and V have `Stages` buffers each.
 */
#pragma once

#include "fragments.h"

namespace mixed_e {

template <class T_, int D_, int M_, int N_, int Warps_, int Stages_, bool Causal_>
struct MmaConfig {
  using T = T_;
  static constexpr int D = D_, M = M_, N = N_, Warps = Warps_, Stages = Stages_;
  static constexpr bool Causal = Causal_;
  static constexpr int threads = Warps * 32, row_tiles = M / Warps / 16, k_steps = D / 16;
  static constexpr int row_bytes = D * 2, tile_bytes = N * row_bytes, q_bytes = M * row_bytes;
  static constexpr int shared_bytes = q_bytes + 2 * Stages * tile_bytes;
  /* CTAs of an SM, by shared memory and by registers; Q is kept in registers if that leaves 40 for the rest. */
  static constexpr int accumulators = row_tiles * (D + N) / 2, by_shared = 227 * 1024 / (shared_bytes + 1024),
                       by_registers = 65536 / threads / (accumulators <= 96 ? 128 : 255),
                       min_ctas = by_shared < by_registers ? by_shared : by_registers;
  static constexpr bool q_in_registers = accumulators + row_tiles * k_steps * 4 + 40 <= 65536 / threads / min_ctas;
  static_assert(row_tiles * Warps * 16 == M && N % 16 == 0 && D % 32 == 0 && Stages >= 2, "");
};

__device__ inline void cp_async16(uint32_t to, const void *from, bool exists) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

template <bool Transposed>
__device__ void load_matrices(uint32_t (&x)[4], uint32_t from) {
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
}

/* c: four accumulators at `first`. */
template <class T, int Count>
__device__ void mma(float (&c)[Count], int first, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  float &c0 = c[first], &c1 = c[first + 1], &c2 = c[first + 2], &c3 = c[first + 3];
  if constexpr (independent::is_bf16<T>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* What the number of a 16-byte chunk is XORed with, so that 8 rows of one column lie in all the banks. */
template <int D>
__device__ int swizzle(int row) {
  return D % 64 == 0 ? row % 8 : row / 2 % 4;
}

/* Rows from `first_row` on; those from `end_row` on become zero. 8 threads (4 where D is no multiple of 64) take a row,
 * so that a thread's chunks all have one swizzle. */
template <class C, int Rows>
__device__ void copy_rows(uint32_t to, const typename C::T *head, int64_t row_stride, int first_row, int end_row) {
  constexpr int across = C::D % 64 == 0 ? 8 : 4, step = C::threads / across;
  static_assert(Rows % step == 0 && step % 8 == 0, "");
  const int row = threadIdx.x / across, chunk = threadIdx.x % across;
  to += row * C::row_bytes + (chunk ^ swizzle<C::D>(row)) * 16;
  const bool all_exist = first_row + Rows <= end_row;
  const typename C::T *from = head + (first_row + row) * row_stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < Rows; i += step, from += step * row_stride) {
    const bool exists = all_exist || first_row + row + i < end_row;
#pragma unroll
    for (int j = 0; j < C::D / 8; j += across)
      cp_async16(to + i * C::row_bytes + j * 16, exists ? from + j * 8 : head, exists);
  }
}

/* Where this lane's row of four 8x8 matrices begins, but for the columns of a step: XOR `32 step` into it. Matrices 1
 * and 3 lie below 0 and 2 if `RowsFirst`, else right of them. */
template <class C, bool RowsFirst>
__device__ uint32_t lane_offset() {
  const int first = lane_id() / 8 % 2, second = lane_id() / 16;
  const int row = lane_id() % 8 + (RowsFirst ? first : second) * 8, chunk = RowsFirst ? second : first;
  return row * C::row_bytes + (chunk ^ swizzle<C::D>(row)) * 16;
}

template <class C>
struct MmaWarp {
  uint32_t q_rows; /* in shared memory */
  uint32_t a_row, a_columns, k_row, k_columns, v_row, v_columns;
  uint32_t q[C::q_in_registers ? C::row_tiles * C::k_steps : 1][4];
  float o[C::row_tiles][C::D / 2], s[C::row_tiles][C::N / 2];
  Softmax softmax[C::row_tiles];

  __device__ explicit MmaWarp(uint32_t q_rows_) : q_rows(q_rows_) {
    split(lane_offset<C, true>(), a_row, a_columns);
    split(lane_offset<C, false>(), k_row, k_columns);
    split(lane_offset<C, true>(), v_row, v_columns);
#pragma unroll
    for (int m = 0; m < C::row_tiles; m++)
#pragma unroll
      for (int i = 0; i < C::D / 2; i++) o[m][i] = 0.f;
  }
  static __device__ void split(uint32_t offset, uint32_t &row, uint32_t &columns) {
    row = offset / C::row_bytes * C::row_bytes;
    columns = offset % C::row_bytes;
  }

  __device__ void load_q_step(uint32_t (&a)[4], int m, int step) const {
    load_matrices<false>(a, q_rows + m * 16 * C::row_bytes + a_row + (a_columns ^ step * 32));
  }
  __device__ void load_q() {
    if constexpr (C::q_in_registers) {
#pragma unroll
      for (int i = 0; i < C::row_tiles * C::k_steps; i++) load_q_step(q[i], i / C::k_steps, i % C::k_steps);
    }
  }

  __device__ void scores(uint32_t k) {
#pragma unroll
    for (int m = 0; m < C::row_tiles; m++)
#pragma unroll
      for (int i = 0; i < C::N / 2; i++) s[m][i] = 0.f;
#pragma unroll
    for (int step = 0; step < C::k_steps; step++) {
      uint32_t a[C::row_tiles][4];
#pragma unroll
      for (int m = 0; m < C::row_tiles; m++) {
        if constexpr (C::q_in_registers) {
#pragma unroll
          for (int i = 0; i < 4; i++) a[m][i] = q[m * C::k_steps + step][i];
        } else {
          load_q_step(a[m], m, step);
        }
      }
#pragma unroll
      for (int n = 0; n < C::N / 16; n++) {
        uint32_t b[4];
        load_matrices<false>(b, k + n * 16 * C::row_bytes + k_row + (k_columns ^ step * 32));
#pragma unroll
        for (int m = 0; m < C::row_tiles; m++) {
          mma<typename C::T>(s[m], n * 8, a[m], b[0], b[1]);
          mma<typename C::T>(s[m], n * 8 + 4, a[m], b[2], b[3]);
        }
      }
    }
  }

  __device__ void values(uint32_t v) {
#pragma unroll
    for (int step = 0; step < C::N / 16; step++) {
      uint32_t a[C::row_tiles][4];
#pragma unroll
      for (int m = 0; m < C::row_tiles; m++) pack_columns<typename C::T>(a[m], s[m], step);
#pragma unroll
      for (int n = 0; n < C::k_steps; n++) {
        uint32_t b[4];
        load_matrices<true>(b, v + step * 16 * C::row_bytes + v_row + (v_columns ^ n * 32));
#pragma unroll
        for (int m = 0; m < C::row_tiles; m++) {
          mma<typename C::T>(o[m], n * 8, a[m], b[0], b[1]);
          mma<typename C::T>(o[m], n * 8 + 4, a[m], b[2], b[3]);
        }
      }
    }
  }
};

template <class C>
__global__ void __launch_bounds__(C::threads, C::min_ctas) mma_forward(const __grid_constant__ Arguments a) {
  using T = typename C::T;
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(shared), k_tiles = q_tile + C::q_bytes,
                 v_tiles = k_tiles + C::Stages * C::tile_bytes;
  const Work work = work_of<C::M>(a, blockIdx.x);
  const int tiles = key_tiles<C::Causal, C::M, C::N>(a, work.first_row);
  const int64_t kv_offset = work.sequence * a.kv_strides.batch + work.head / a.group * a.kv_strides.head;
  const T *const q = (const T *)a.q + work.sequence * a.q_strides.batch + work.head * a.q_strides.head;
  const T *const k = (const T *)a.k + kv_offset, *const v = (const T *)a.v + kv_offset;

  auto copy_keys = [&](int tile, int stage) {
    if (tile < tiles) {
      copy_rows<C, C::N>(k_tiles + stage * C::tile_bytes, k, a.kv_strides.row, tile * C::N, a.seqlen_kv);
      copy_rows<C, C::N>(v_tiles + stage * C::tile_bytes, v, a.kv_strides.row, tile * C::N, a.seqlen_kv);
    }
    cp_async_commit();
  };
  copy_rows<C, C::M>(q_tile, q, a.q_strides.row, work.first_row, a.seqlen_q);
  for (int i = 0; i < C::Stages - 1; i++) copy_keys(i, i);

  const int row_in_tile = threadIdx.x / 32 * C::row_tiles * 16, warp_row = work.first_row + row_in_tile,
            row = warp_row + lane_id() / 4;
  const int unmasked = unmasked_tiles<C::Causal, C::N>(a, warp_row);
  MmaWarp<C> warp(q_tile + row_in_tile * C::row_bytes);
  int stage = 0;
  for (int tile = 0; tile < tiles; tile++) {
    cp_async_wait<C::Stages - 2>();
    __syncthreads(); /* this tile is there for all, and all are through with the one before */
    copy_keys(tile + C::Stages - 1, stage == 0 ? C::Stages - 1 : stage - 1);
    if (tile == 0) warp.load_q();
    warp.scores(k_tiles + stage * C::tile_bytes);
#pragma unroll
    for (int m = 0; m < C::row_tiles; m++) {
      float correction[2];
      if (tile >= unmasked) mask<C::Causal>(warp.s[m], a, row + m * 16, tile * C::N);
      warp.softmax[m].step(warp.s[m], a.scale_log2, correction);
      rescale(warp.o[m], correction);
    }
    warp.values(v_tiles + stage * C::tile_bytes);
    stage = stage == C::Stages - 1 ? 0 : stage + 1;
  }
#pragma unroll
  for (int m = 0; m < C::row_tiles; m++) store_rows<T>(warp.o[m], warp.softmax[m], a, work, row + m * 16);
  cp_async_wait<0>();
}

}  // namespace mixed_e
