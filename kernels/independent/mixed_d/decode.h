/* Split-KV decoding of one query a sequence. The query heads of a KV head are the rows of one 16-row operand. Every
 * warp has its own tokens of each tile, its own buffers for them and its own softmax, so that warps meet only at the
 * end of the split; a second kernel combines the splits. */
#pragma once

#include "online_softmax.h"
#include "reference_attention.h"

namespace mixed_d {

template <class T>
struct DecodeArguments {
  const T *q, *k, *v;      /* q: [batch][heads][head_dim] */
  float *split_o;          /* [batch][heads][splits][head_dim] */
  float *split_lse;        /* [batch][heads][splits], base 2 */
  independent::Strides kv; /* strides */
  int heads, group, seqlen_kv;
  float scale;
};

template <class T, int BlockN, int Warps, int Stages>
struct DecodeTile {
  typedef T Number;
  static constexpr int head_dim = 128, block_m = 16, block_n = BlockN, warps = Warps, stages = Stages;
  static constexpr int threads = Warps * 32, tokens = BlockN / Warps; /* of a warp */
  static constexpr int row_bytes = head_dim * 2, buffer_bytes = tokens * row_bytes;
  static constexpr int warp_bytes = 2 * Stages * buffer_bytes;
  static constexpr int merge_row = head_dim + 8; /* floats: rows of 4 lanes are in different banks */
  static constexpr int shared_bytes = Warps * warp_bytes;
  static_assert(tokens % 16 == 0 && Stages >= 2, "tile");
  static_assert(shared_bytes >= Warps * block_m * merge_row * 4, "warps are merged in the buffers");
};

/* Grid (splits, kv_heads, batch). */
template <class Tile>
__global__ void __launch_bounds__(Tile::threads) decode_split(const DecodeArguments<typename Tile::Number> a) {
  typedef typename Tile::Number T;
  constexpr int head_dim = Tile::head_dim, tokens = Tile::tokens, stages = Tile::stages, warps = Tile::warps;
  constexpr int row_bytes = Tile::row_bytes, steps_d = head_dim / 16, output_tiles = head_dim / 8;
  __shared__ float tops[warps][16], sums[warps][16];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, splits = gridDim.x, split = blockIdx.x;
  int all_tiles = a.seqlen_kv / Tile::block_n;
  int first_tile = (int)((int64_t)all_tiles * split / splits);
  int tiles = (int)((int64_t)all_tiles * (split + 1) / splits) - first_tile;
  int64_t kv_offset = blockIdx.z * a.kv.batch + blockIdx.y * a.kv.head +
                      ((int64_t)first_tile * Tile::block_n + warp * tokens) * a.kv.row;
  const T *k = a.k + kv_offset, *v = a.v + kv_offset;
  uint32_t k_buffers = shared_address() + warp * Tile::warp_bytes, v_buffers = k_buffers + stages * Tile::buffer_bytes;

  auto fetch = [&](int j, int stage) {
    if (j < tiles) {
      int64_t offset = (int64_t)j * Tile::block_n * a.kv.row;
      copy_rows<tokens, head_dim, 32>(k_buffers + stage * Tile::buffer_bytes, k + offset, a.kv.row, lane);
      copy_rows<tokens, head_dim, 32>(v_buffers + stage * Tile::buffer_bytes, v + offset, a.kv.row, lane);
    }
    commit_copies();
  };
#pragma unroll
  for (int j = 0; j < stages - 1; j++) fetch(j, j);

  int64_t first_head = (int64_t)blockIdx.z * a.heads + blockIdx.y * a.group;
  uint32_t q[steps_d][4];
#pragma unroll
  for (int d = 0; d < steps_d; d++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      int row = (lane >> 2) + (e & 1) * 8, column = d * 16 + (e >> 1) * 8 + (lane & 3) * 2;
      q[d][e] = row < a.group ? *(const uint32_t *)(a.q + (first_head + row) * head_dim + column) : 0u;
    }

  RowState state;
  float o[output_tiles][4] = {};
  float scale_log2 = a.scale * log2_of_e;
  uint32_t k_lane = k_buffers + lane_offset_b<head_dim>(lane), v_lane = v_buffers + lane_offset_a<head_dim>(lane);
  int stage = 0, stage_to_fill = stages - 1;
  for (int j = 0; j < tiles; j++) {
    wait_copies<stages - 2>();
    __syncwarp();
    fetch(j + stages - 1, stage_to_fill);
    stage_to_fill = next_stage<stages>(stage_to_fill);
    uint32_t k_stage = k_lane + stage * Tile::buffer_bytes, v_stage = v_lane + stage * Tile::buffer_bytes;
    stage = next_stage<stages>(stage);

    float s[tokens / 8][4] = {};
#pragma unroll
    for (int d = 0; d < steps_d; d++)
#pragma unroll
      for (int n = 0; n < tokens / 16; n++) {
        uint32_t b[4];
        load_matrices(b, step_along_row(k_stage, d) + n * 16 * row_bytes);
        multiply<T>(s[2 * n], q[d], b[0], b[1]);
        multiply<T>(s[2 * n + 1], q[d], b[2], b[3]);
      }
    take_scores(state, s, o, scale_log2);
#pragma unroll
    for (int n = 0; n < tokens / 16; n++) {
      uint32_t p[4];
      pack_probabilities<T>(p, s, n);
#pragma unroll
      for (int d = 0; d < steps_d; d++) {
        uint32_t b[4];
        load_transposed(b, step_along_row(v_stage, d) + n * 16 * row_bytes);
        multiply<T>(o[2 * d], p, b[0], b[1]);
        multiply<T>(o[2 * d + 1], p, b[2], b[3]);
      }
    }
  }

  __syncthreads();
  float *outputs = (float *)shared_memory;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    int row = (lane >> 2) + h * 8;
    float sum = quad_sum(state.sum[h]);
    if ((lane & 3) == 0) tops[warp][row] = state.top[h] * scale_log2, sums[warp][row] = sum;
    if (row < a.group)
#pragma unroll
      for (int t = 0; t < output_tiles; t++)
        *(float2 *)(outputs + (warp * 16 + row) * Tile::merge_row + t * 8 + (lane & 3) * 2) =
            make_float2(o[t][2 * h], o[t][2 * h + 1]);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < a.group * head_dim; i += Tile::threads) {
    int row = i / head_dim, column = i % head_dim;
    float top = tops[0][row], sum = 0, value = 0;
#pragma unroll
    for (int w = 1; w < warps; w++) top = fmaxf(top, tops[w][row]);
#pragma unroll
    for (int w = 0; w < warps; w++) {
      float weight = power_of_two(tops[w][row] - top);
      sum += weight * sums[w][row];
      value += weight * outputs[(w * 16 + row) * Tile::merge_row + column];
    }
    int64_t at = (first_head + row) * splits + split;
    a.split_o[at * head_dim + column] = value / sum;
    if (column == 0) a.split_lse[at] = top + log2f(sum);
  }
}

constexpr int combine_warps = 4;

/* A warp a row of `rows` = batch * heads, 4 columns a lane. */
template <class T>
__global__ void __launch_bounds__(combine_warps * 32)
    combine_splits(const float *split_o, const float *split_lse, T *o, float *lse, int rows, int splits) {
  constexpr int head_dim = 128;
  int lane = threadIdx.x & 31, row = blockIdx.x * combine_warps + (threadIdx.x >> 5);
  if (row >= rows) return;
  const float *row_lse = split_lse + (int64_t)row * splits;
  float top = -INFINITY, sum = 0;
  for (int s = lane; s < splits; s += 32) top = fmaxf(top, row_lse[s]);
#pragma unroll
  for (int step = 16; step; step >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));

  const float4 *from = (const float4 *)(split_o + (int64_t)row * splits * head_dim) + lane;
  float4 value = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int s = 0; s < splits; s++) {
    float weight = power_of_two(row_lse[s] - top);
    float4 x = from[s * (head_dim / 4)];
    sum += weight;
    value.x += weight * x.x, value.y += weight * x.y, value.z += weight * x.z, value.w += weight * x.w;
  }
  float inverse = 1 / sum;
  *(uint2 *)(o + (int64_t)row * head_dim + lane * 4) =
      make_uint2(pack<T>(value.x * inverse, value.y * inverse), pack<T>(value.z * inverse, value.w * inverse));
  if (lane == 0) lse[row] = (top + log2f(sum)) * ln_of_2;
}

}  // namespace mixed_d
