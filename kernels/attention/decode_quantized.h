/* Split-KV decode over a quantised cache: decode_mma.h whose K and V are stored in 8 or 4 bits with a scale for each
 * group of kv_group_size elements of a token.
 *
 * Tiles arrive as they are stored, with their scales, in num_stages buffers filled ahead. All warps then make one f16
 * tile of K and one of V of them, eight numbers a lane at a time, which the products read: one barrier more a tile.
 * Scales lie [batch][kv_head][group][token].
 *
 * seqlen_kv must be a multiple of block_n. */
#pragma once

#include "decode_mma.h"
#include "kv_format.h"

namespace decode_quantized {

using namespace flash2_mma;

template <KvFormat format_, int group_size_, int block_n_, int num_warps_, int num_stages_, int head_dim_>
struct Shape : decode_mma::Shape<block_n_, num_warps_, num_stages_, head_dim_> {
  using Base = decode_mma::Shape<block_n_, num_warps_, num_stages_, head_dim_>;
  static constexpr KvFormat format = format_;
  static constexpr int group_size = group_size_, num_groups = head_dim_ / group_size_;
  static constexpr int stored_bytes = block_n_ * head_dim_ * bits_of(format_) / 8,
                       scale_bytes = block_n_ * num_groups * 2;
  static constexpr int stage_bytes = stored_bytes + scale_bytes; /* of K, or of V */
  static constexpr int ring_bytes = 2 * Base::tile_bytes + 2 * num_stages_ * stage_bytes;
  static constexpr int shared_bytes = Base::q_bytes + (ring_bytes > Base::merge_bytes ? ring_bytes : Base::merge_bytes);
  static_assert(head_dim_ % group_size_ == 0 && group_size_ % 8 == 0 && block_n_ % 8 == 0);
};

/* Adjacent bytes, 16 a thread. */
template <class S, int bytes>
__device__ __forceinline__ void copy_bytes(uint32_t to, const void *from) {
#pragma unroll
  for (uint32_t at = 0; at < bytes; at += S::num_threads * 16) {
    uint32_t byte = at + threadIdx.x * 16;
    if (at + S::num_threads * 16 <= bytes || byte < bytes)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + byte), "l"((const uint8_t *)from + byte)
                   : "memory");
  }
}

/* What the CTA reads of K, or of V: tokens from its split's first on. */
struct Stream {
  const uint8_t *stored;
  const __half *scales;
  int seqlen_kv;
};

template <class S>
__device__ __forceinline__ void copy_stage(uint32_t to, const Stream &from, int j) {
  copy_bytes<S, S::stored_bytes>(to, from.stored + (size_t)j * S::stored_bytes);
#pragma unroll
  for (int g = 0; g < S::num_groups; g++)
    copy_bytes<S, S::tile_n * 2>(to + S::stored_bytes + (uint32_t)g * S::tile_n * 2,
                                 from.scales + (size_t)g * (size_t)from.seqlen_kv + (size_t)j * S::tile_n);
}

/* The f16 tile at `to` of what arrived at `stage`. Neighbouring lanes have neighbouring chunks of eight. */
template <class S>
__device__ __forceinline__ void dequantize(uint32_t to, const uint8_t *stage) {
  const Eight<S::format> *stored = (const Eight<S::format> *)stage;
  const __half *scales = (const __half *)(stage + S::stored_bytes);
#pragma unroll
  for (int i = 0; i < S::tile_n * S::row_chunks / S::num_threads; i++) {
    uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads, row = index / S::row_chunks,
             chunk = index % S::row_chunks;
    __half2 scale = __half2half2(scales[chunk * 8 / S::group_size * S::tile_n + row]);
    Halves x = to_halves<S::format>(stored[index]);
    uint32_t out[4];
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
      __half2 scaled = __hmul2(x.pair[pair], scale);
      out[pair] = *(uint32_t *)&scaled;
    }
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to + swizzled<S>(row, chunk)), "r"(out[0]), "r"(out[1]),
                 "r"(out[2]), "r"(out[3])
                 : "memory");
  }
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void split(TileParams p, StoredKeys keys, decode_mma::Partial partial) {
  extern __shared__ __align__(128) uint8_t shared[];
  int num_kv_heads = p.num_heads_total / p.group, kv_head = (int)blockIdx.x % num_kv_heads,
      index = (int)blockIdx.x / num_kv_heads;
  int all_tiles = p.seqlen_kv / S::tile_n, per_split = (all_tiles + partial.splits - 1) / partial.splits;
  int first = index * per_split, num_tiles = max(0, min(per_split, all_tiles - first));
  size_t bytes_before = (size_t)(kv_head * all_tiles + first) * S::stored_bytes;
  size_t scales_before = (size_t)kv_head * S::num_groups * (size_t)p.seqlen_kv + (size_t)first * S::tile_n;
  Stream k_from = {keys.k + bytes_before, keys.k_scales + scales_before, p.seqlen_kv};
  Stream v_from = {keys.v + bytes_before, keys.v_scales + scales_before, p.seqlen_kv};
  uint8_t *stages = shared + S::q_bytes + 2 * S::tile_bytes;
  uint32_t q = shared_address(shared), k = q + S::q_bytes, v = k + S::tile_bytes, ring = shared_address(stages);
  decode_mma::load_queries<S>(shared, p.q + (size_t)kv_head * (size_t)p.group * S::head_dim, p.group);
  auto fetch = [&](int j) {
    uint32_t to = ring + (uint32_t)(j % S::num_stages) * 2 * S::stage_bytes;
    if (j < num_tiles) {
      copy_stage<S>(to, k_from, j);
      copy_stage<S>(to + S::stage_bytes, v_from, j);
    }
    commit();
  };
#pragma unroll
  for (int s = 0; s < S::num_stages - 1; s++) fetch(s);
  State<S> st;
  st.rows.clear();
  fill_zero(st.o);
  uint32_t share = threadIdx.x / 32 * S::block_n * S::head_dim * 2;
  for (int j = 0; j < num_tiles; j++) {
    wait_and_sync<S::num_stages - 2>();
    fetch(j + S::num_stages - 1);
    const uint8_t *stage = stages + (j % S::num_stages) * 2 * S::stage_bytes;
    dequantize<S>(k, stage);
    dequantize<S>(v, stage + S::stage_bytes);
    __syncthreads();
    score(st, q, k + share, 0);
    softmax(st, p.scale_log2);
    accumulate(st, v + share);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  size_t head = (size_t)index * (size_t)p.num_heads_total + (size_t)(kv_head * p.group);
  decode_mma::write_partial(st, (float *)(shared + S::q_bytes), p.group, p.scale_log2, partial.o + head * S::head_dim,
                            partial.lse + head);
}

template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.batch * p.kv_heads * p.splits), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  TileParams t = tile_params(p, 1);
  size_t heads = (size_t)p.batch * (size_t)p.heads * (size_t)p.splits;
  float *memory = (float *)standard_mma::score_memory(heads * (S::head_dim + 1) * 4);
  decode_mma::Partial partial = {memory, memory + heads * S::head_dim, p.splits};
  split<S><<<l.grid, l.block, l.shared_bytes, stream>>>(t, *p.stored, partial);
  decode_mma::combine<S::head_dim><<<(unsigned)(p.batch * p.heads), S::head_dim, 0, stream>>>(t, partial);
}

template <class S>
Instance instance() {
  InstanceKey key = {"flash_decode", "mma",        "cp_async",    "stages",    16,
                     S::tile_n,      S::num_warps, S::num_stages, S::head_dim, false};
  key.kv_format = S::format == KvFormat::int8 ? "int8" : S::format == KvFormat::fp8 ? "fp8" : "int4";
  key.kv_group_size = S::group_size;
  return {key, (const void *)split<S>, plan<S>, run<S>, 2};
}

}  // namespace decode_quantized
