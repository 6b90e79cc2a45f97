/* Split-KV decoding with mma.sync: the query heads that share a kv head are the rows of one 16-row tile. Every warp takes
 * its own block_n / WARPS keys of each tile and keeps its own maximum, sum and O; the warps meet at the end. K and V come
 * by cp.async in STAGES buffers each. With PAGED the pages of a tile are looked up one tile ahead. */
#pragma once

#include "decode_params.h"
#include "ptx.h"

namespace decode_a {

template <int D, int BN, int WARPS, int STAGES>
struct DecodeShape {
  static constexpr int threads = WARPS * 32, chunks = D / 8, keys_of_warp = BN / WARPS;
  static constexpr int rows_of_pass = threads / chunks, passes = BN / rows_of_pass;
  static constexpr int q_bytes = 16 * D * 2, tile_bytes = BN * D * 2;
  static constexpr int o_stride = D + 4; /* of the warps' O in shared memory, in floats */
  static constexpr int merge_bytes = WARPS * 16 * (o_stride + 2) * 4;
  static constexpr int bytes = q_bytes + 2 * STAGES * tile_bytes;
  static_assert(keys_of_warp % 16 == 0, "a warp needs 16 keys of a tile");
  static_assert(merge_bytes <= 2 * STAGES * tile_bytes, "the warps' O lies over the buffers");
  static_assert(BN % rows_of_pass == 0 && STAGES >= 2, "");
};

template <class T, int D, int BN, int WARPS, int STAGES, bool PAGED>
__global__ void __launch_bounds__(WARPS * 32) decode_mma(const Decode<T> p) {
  using Shape = DecodeShape<D, BN, WARPS, STAGES>;
  constexpr int chunks = Shape::chunks, KW = Shape::keys_of_warp, passes = Shape::passes;
  extern __shared__ __align__(128) unsigned char shared[];
  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  const int split = blockIdx.x, sequence = blockIdx.z, row_tiles = (p.group + 15) / 16;
  const int kv_head = blockIdx.y / row_tiles, first_of_group = (blockIdx.y % row_tiles) * 16;
  const int rows = min(16, p.group - first_of_group);
  const size_t first_row = (size_t)sequence * p.heads + kv_head * p.group + first_of_group;
  const size_t split_row = (size_t)split * p.batch * p.heads + first_row;
  const int length = p.length_of(sequence);
  const TileRange range = tiles_of_split(length, BN, split, p.splits);

  if (range.first >= range.end) { /* the combining kernel passes over it */
    if (p.splits > 1 && tid < rows) p.partial_lse[split_row + tid] = -INFINITY;
    return;
  }

  const uint32_t q_shared = shared_address(shared), kv_shared = q_shared + Shape::q_bytes;
  const int my_chunk = tid % chunks, my_row = tid / chunks;
  const int64_t head_offset = kv_head * p.kv.head + my_chunk * 8;
  const int *table = PAGED ? p.pages + (size_t)sequence * p.pages_of_sequence : nullptr;
  const int page_mask = (1 << p.page_shift) - 1;
  int page[PAGED ? passes : 1];

  auto look_up = [&](int tile) {
    if constexpr (PAGED) {
#pragma unroll
      for (int i = 0; i < passes; i++) {
        int t = min(tile * BN + my_row + i * Shape::rows_of_pass, length - 1);
        page[i] = __ldg(table + (t >> p.page_shift));
      }
    }
  };
  auto copy = [&](int tile, int stage) {
    const uint32_t k_to = kv_shared + stage * 2 * Shape::tile_bytes, v_to = k_to + Shape::tile_bytes;
#pragma unroll
    for (int i = 0; i < passes; i++) {
      const int row = my_row + i * Shape::rows_of_pass, t = tile * BN + row, seen = min(t, length - 1);
      int64_t offset = head_offset;
      if constexpr (PAGED)
        offset += page[i] * p.kv.batch + (seen & page_mask) * p.kv.row;
      else
        offset += sequence * p.kv.batch + seen * p.kv.row;
      const uint32_t to = (row * chunks + (my_chunk ^ (row & 7))) * 16;
      cp_async16(k_to + to, p.k + offset, t < length);
      cp_async16(v_to + to, p.v + offset, t < length);
    }
  };

  look_up(range.first);
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    const int tile = range.first + s;
    if (tile < range.end) {
      copy(tile, s);
      if (tile + 1 < range.end) look_up(tile + 1);
    }
    cp_commit();
  }

  for (int i = tid; i < 16 * chunks; i += Shape::threads) {
    const int row = i / chunks, chunk = i % chunks;
    uint4 values = make_uint4(0, 0, 0, 0);
    if (row < rows) values = *(const uint4 *)(p.q + (first_row + row) * D + chunk * 8);
    *(uint4 *)(shared + (row * chunks + (chunk ^ (row & 7))) * 16) = values;
  }
  __syncthreads();
  uint32_t q[D / 16][4];
#pragma unroll
  for (int k = 0; k < D / 16; k++) {
    const int row = lane & 15, chunk = k * 2 + (lane >> 4);
    ldmatrix_x4(q[k], q_shared + (row * chunks + (chunk ^ (row & 7))) * 16);
  }

  float o[D / 8][4];
#pragma unroll
  for (int d = 0; d < D / 8; d++)
#pragma unroll
    for (int e = 0; e < 4; e++) o[d][e] = 0.f;
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f};

  int stage = 0, stage_to_fill = STAGES - 1;
  for (int tile = range.first; tile < range.end; tile++) {
    cp_wait<STAGES - 2>();
    __syncthreads();
    const int next = tile + STAGES - 1;
    if (next < range.end) {
      copy(next, stage_to_fill);
      if (next + 1 < range.end) look_up(next + 1);
    }
    cp_commit();

    const uint32_t k_at = kv_shared + stage * 2 * Shape::tile_bytes, v_at = k_at + Shape::tile_bytes;
    float s[KW / 8][4];
#pragma unroll
    for (int j = 0; j < KW / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) s[j][e] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
#pragma unroll
      for (int j = 0; j < KW / 16; j++) {
        const int row = warp * KW + j * 16 + (lane & 7) + ((lane >> 4) << 3), chunk = k * 2 + ((lane >> 3) & 1);
        uint32_t b[4];
        ldmatrix_x4(b, k_at + (row * chunks + (chunk ^ (row & 7))) * 16);
        mma_16x8x16<T>(s[2 * j], q[k], b[0], b[1]);
        mma_16x8x16<T>(s[2 * j + 1], q[k], b[2], b[3]);
      }
    }
    if ((tile + 1) * BN > length) {
      const int first_key = tile * BN + warp * KW + 2 * (lane & 3);
#pragma unroll
      for (int j = 0; j < KW / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          if (first_key + j * 8 + (e & 1) >= length) s[j][e] = -INFINITY;
    }

#pragma unroll
    for (int r = 0; r < 2; r++) {
      float m = top[r];
#pragma unroll
      for (int j = 0; j < KW / 8; j++) m = fmaxf(m, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
      const float scaled = finite_top(m) * p.scale_log2, shrink = ex2(top[r] * p.scale_log2 - scaled);
      top[r] = m;
      float added = 0.f;
#pragma unroll
      for (int j = 0; j < KW / 8; j++)
#pragma unroll
        for (int e = 2 * r; e < 2 * r + 2; e++) {
          s[j][e] = ex2(fmaf(s[j][e], p.scale_log2, -scaled));
          added += s[j][e];
        }
      sum[r] = sum[r] * shrink + added;
#pragma unroll
      for (int d = 0; d < D / 8; d++) o[d][2 * r] *= shrink, o[d][2 * r + 1] *= shrink;
    }

#pragma unroll
    for (int j = 0; j < KW / 16; j++) {
      const uint32_t a[4] = {pack2<T>(s[2 * j][0], s[2 * j][1]), pack2<T>(s[2 * j][2], s[2 * j][3]),
                             pack2<T>(s[2 * j + 1][0], s[2 * j + 1][1]), pack2<T>(s[2 * j + 1][2], s[2 * j + 1][3])};
      const int row = warp * KW + j * 16 + (lane & 15);
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        const int chunk = d * 2 + (lane >> 4);
        uint32_t b[4];
        ldmatrix_x4_trans(b, v_at + (row * chunks + (chunk ^ (row & 7))) * 16);
        mma_16x8x16<T>(o[2 * d], a, b[0], b[1]);
        mma_16x8x16<T>(o[2 * d + 1], a, b[2], b[3]);
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    stage_to_fill = stage_to_fill + 1 == STAGES ? 0 : stage_to_fill + 1;
  }

  /* The warps' results, over the buffers. */
  cp_wait<0>();
  __syncthreads();
  float *merge = (float *)(shared + Shape::q_bytes), *tops = merge + WARPS * 16 * Shape::o_stride,
        *sums = tops + WARPS * 16;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    const int row = (lane >> 2) + 8 * r;
    if ((lane & 3) == 0) {
      tops[warp * 16 + row] = top[r] * p.scale_log2;
      sums[warp * 16 + row] = sum[r];
    }
    if (row < rows) {
#pragma unroll
      for (int d = 0; d < D / 8; d++)
        *(float2 *)(merge + (warp * 16 + row) * Shape::o_stride + d * 8 + 2 * (lane & 3)) =
            make_float2(o[d][2 * r], o[d][2 * r + 1]);
    }
  }
  __syncthreads();
  for (int i = tid; i < rows * (D / 4); i += Shape::threads) {
    const int row = i / (D / 4), column = i % (D / 4) * 4;
    float m = -INFINITY, l = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; w++) m = fmaxf(m, tops[w * 16 + row]);
    float4 all = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const float weight = ex2(tops[w * 16 + row] - m); /* m is finite: a split has a key */
      const float4 x = *(const float4 *)(merge + (w * 16 + row) * Shape::o_stride + column);
      l += weight * sums[w * 16 + row];
      all.x += weight * x.x, all.y += weight * x.y, all.z += weight * x.z, all.w += weight * x.w;
    }
    const float inverse = 1.f / l, lse = m * ln2 + __logf(l);
    all.x *= inverse, all.y *= inverse, all.z *= inverse, all.w *= inverse;
    if (p.splits > 1) {
      *(float4 *)(p.partial_o + (split_row + row) * D + column) = all;
      if (column == 0) p.partial_lse[split_row + row] = lse;
    } else {
      *(uint2 *)(p.o + (first_row + row) * D + column) = make_uint2(pack2<T>(all.x, all.y), pack2<T>(all.z, all.w));
      if (column == 0) p.lse[first_row + row] = lse;
    }
  }
}

}  // namespace decode_a
