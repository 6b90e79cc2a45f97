/* The two products of attention with wgmma, and the tile layout that they, TMA and cp.async agree on.
 *
 * A tile of `rows` x head_dim (of V: head_dim_v) halves is head_dim / 64 panels, each rows x 128 bytes with the
 * 128-byte swizzle (16-byte chunk c of row r at c ^ (r & 7)). Tiles start at multiples of 1024 bytes. Q and K are
 * K-major operands; V is used transposed (MN-major). */
#pragma once

#include "attention.h"
#include "hopper.h"
#include "online_softmax.h"

namespace wgmma_tiles {

template <int rows>
__device__ __forceinline__ uint32_t chunk_offset(uint32_t row, uint32_t chunk) {
  return chunk / 8 * rows * 128 + row * 128 + ((chunk % 8) ^ (row & 7)) * 16;
}

/* Issues s[m] = Q K^T for m_tiles times 64 rows from row first_row of the Q tile on; the caller fences before and
 * commits after. */
template <int block_m, int block_n, int head_dim, int m_tiles>
__device__ __forceinline__ void issue_scores(float (&s)[m_tiles][block_n / 2], uint32_t q, uint32_t first_row,
                                             uint32_t k) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int kk = 0; kk < head_dim / 16; kk++) {
      uint32_t step = (uint32_t)kk % 4 * 32;
      uint64_t a = hopper::descriptor(
          q + (uint32_t)(kk / 4) * block_m * 128 + (first_row + (uint32_t)m * 64) * 128 + step, 16, 1024);
      uint64_t b = hopper::descriptor(k + (uint32_t)(kk / 4) * block_n * 128 + step, 16, 1024);
      Wgmma<block_n>::template ss<0>(s[m], a, b, kk != 0);
    }
}

/* Issues o[m] += P V. */
template <int block_n, int head_dim, int m_tiles>
__device__ __forceinline__ void issue_output(float (&o)[m_tiles][head_dim / 2], uint32_t (&p)[m_tiles][block_n / 16][4],
                                             uint32_t v) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int kk = 0; kk < block_n / 16; kk++)
      Wgmma<head_dim>::template rs<1>(o[m], p[m][kk], hopper::descriptor(v + (uint32_t)kk * 2048, block_n * 128, 1024),
                                      1);
}

template <int block_n, int m_tiles>
__device__ __forceinline__ void make_p(uint32_t (&p)[m_tiles][block_n / 16][4],
                                       const float (&s)[m_tiles][block_n / 2]) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int kk = 0; kk < block_n / 16; kk++) p_fragment(p[m][kk], s[m], kk);
}

template <int m_tiles, int count>
__device__ __forceinline__ void keep_all(float (&x)[m_tiles][count]) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++) hopper::keep(x[m]);
}

/* O through this warp's rows of a buffer laid out as Q's to global memory, 16 bytes a store. Nobody may still read
 * those rows. */
template <int block_m, int head_dim, int m_tiles>
__device__ __forceinline__ void write_output(const float (&o)[m_tiles][head_dim / 2], uint32_t q, uint32_t warp_row,
                                             __half *to) {
  uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int d = 0; d < head_dim / 8; d++) {
        uint32_t row = warp_row + (uint32_t)(m * 64 + half * 8) + lane / 4,
                 packed = pack(o[m][d * 4 + half * 2], o[m][d * 4 + half * 2 + 1]);
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(q + chunk_offset<block_m>(row, (uint32_t)d) + lane % 4 * 4),
                     "r"(packed)
                     : "memory");
      }
  __syncwarp();
  constexpr uint32_t row_chunks = head_dim / 8;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (uint32_t i = 0; i < 16 * row_chunks / 32; i++) {
      uint32_t index = i * 32 + lane, row = warp_row + (uint32_t)m * 64 + index / row_chunks,
               chunk = index % row_chunks;
      uint4 data;
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                   : "r"(q + chunk_offset<block_m>(row, chunk)));
      *(uint4 *)(to + row * head_dim + chunk * 8) = data;
    }
}

/* Loads one tile by TMA: a box of 64 columns a panel. The caller has announced the bytes to `bar`. */
template <int rows>
__device__ __forceinline__ void tma_panels(uint32_t to, const CUtensorMap *map, int num_panels, int row, int head,
                                           uint32_t bar) {
#pragma unroll
  for (int panel = 0; panel < num_panels; panel++)
    hopper::tensor_load_3d(to + (uint32_t)panel * rows * 128, map, panel * 64, row, head, bar);
}
template <int rows, int head_dim>
__device__ __forceinline__ void tma_tile(uint32_t to, const CUtensorMap *map, int row, int head, uint32_t bar) {
  tma_panels<rows>(to, map, head_dim / 64, row, head, bar);
}

struct Maps {
  CUtensorMap q, k, v;
};

inline Maps make_maps(const Problem &p, int block_m, int block_n) {
  uint64_t d = (uint64_t)p.head_dim, kv = (uint64_t)p.seqlen_kv, kv_heads = (uint64_t)p.batch * (uint64_t)p.kv_heads;
  return {hopper::tensor_map(p.q, d, (uint64_t)p.seqlen_q, (uint64_t)p.batch * (uint64_t)p.heads, (uint32_t)block_m),
          hopper::tensor_map(p.k, d, kv, kv_heads, (uint32_t)block_n),
          hopper::tensor_map(p.v, (uint64_t)p.head_dim_v(), kv, kv_heads, (uint32_t)block_n)};
}

/* The range of key tiles that a block of rows visits, and from which on they need the causal mask. Row r sees columns
 * up to r + row_offset. */
struct Range {
  int num_tiles, num_unmasked, row_offset;
};

template <bool causal, int block_m, int block_n>
__device__ __forceinline__ Range key_range(const TileParams &p, int m) {
  int row_offset = m * block_m + p.seqlen_kv - p.seqlen_q, num_tiles = p.seqlen_kv / block_n;
  if (!causal) return {num_tiles, num_tiles, row_offset};
  num_tiles = max(0, min(num_tiles, (row_offset + block_m + block_n - 1) / block_n));
  return {num_tiles, max(0, min(num_tiles, (row_offset + 1) / block_n)), row_offset};
}

}  // namespace wgmma_tiles
