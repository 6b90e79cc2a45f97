/* FlashAttention-2 forward with wgmma; K and V arrive by cp.async or by TMA. Schedule `stages`.
 *
 * Each warpgroup owns block_m / (num_warps / 4) rows, a multiple of 64. All warps compute; with TMA thread 0 also
 * issues the copies. num_stages >= 2 buffers each for K and V, a wait before QK^T for K and after the softmax for V;
 * each wait ends in __syncthreads, after which the buffer that everyone has left is refilled. num_stages = 1: one
 * buffer that K and V take in turn; V is waited for before the softmax, and nothing overlaps.
 *
 * seqlen_q must be a multiple of block_m, seqlen_kv of block_n. head_dim_v: columns of V and O where they are not those
 * of Q and K. */
#pragma once

#include "wgmma_tiles.h"

namespace flash2_wgmma {

using namespace wgmma_tiles;

enum class Copy { cp_async, tma };

template <int block_m_, int block_n_, int num_warps_, int num_stages_, int head_dim_, bool causal_, Copy copy_,
          int head_dim_v_ = head_dim_>
struct Shape {
  static constexpr int block_m = block_m_, block_n = block_n_, num_warps = num_warps_, num_stages = num_stages_,
                       head_dim = head_dim_, head_dim_v = head_dim_v_;
  static constexpr bool causal = causal_;
  static constexpr Copy copy = copy_;
  static constexpr bool single_buffer = num_stages_ == 1;
  static constexpr int num_threads = num_warps * 32, num_groups = num_warps / 4;
  static constexpr int group_rows = block_m / num_groups, m_tiles = group_rows / 64;
  static constexpr int q_bytes = block_m * head_dim * 2;
  static constexpr int k_tile_bytes = block_n * head_dim * 2, v_tile_bytes = block_n * head_dim_v * 2;
  static constexpr int o_bytes = block_m * head_dim_v * 2; /* if V is wider it lies over all buffers */
  static constexpr int buffer_bytes = single_buffer ? (k_tile_bytes > v_tile_bytes ? k_tile_bytes : v_tile_bytes)
                                                    : num_stages * (k_tile_bytes + v_tile_bytes);
  static constexpr int shared_bytes = 1024 + (q_bytes + buffer_bytes > o_bytes ? q_bytes + buffer_bytes : o_bytes);
  static_assert(group_rows % 64 == 0 && num_warps % 4 == 0 && head_dim % 64 == 0 && head_dim_v % 64 == 0);
};

template <class S, int rows, int columns>
__device__ __forceinline__ void cp_async_tile(uint32_t to, const __half *from) {
  constexpr int row_chunks = columns / 8;
#pragma unroll
  for (int i = 0; i < rows * row_chunks / S::num_threads; i++) {
    uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads, row = index / row_chunks, chunk = index % row_chunks;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + chunk_offset<rows>(row, chunk)),
                 "l"(from + row * columns + chunk * 8)
                 : "memory");
  }
}

/* Fetches tiles and waits for them, whatever the copy engine. Tile 2j is K_j, 2j + 1 is V_j. */
template <class S>
struct Pipeline {
  uint32_t q, k, v, bars;
  const Maps *maps;
  const __half *k_from, *v_from;
  int kv_head, num_tiles;

  __device__ __forceinline__ uint32_t bar(int which, int j) const {
    return bars + (uint32_t)(which * S::num_stages + j % S::num_stages) * 8;
  }
  __device__ __forceinline__ uint32_t buffer(int which, int j) const {
    return (which ? v : k) + (uint32_t)(j % S::num_stages) * (which ? S::v_tile_bytes : S::k_tile_bytes);
  }

  __device__ __forceinline__ void fetch(int which, int j) const {
    if constexpr (S::copy == Copy::tma) {
      if (threadIdx.x != 0 || j >= num_tiles) return;
      hopper::mbarrier_expect(bar(which, j), which ? S::v_tile_bytes : S::k_tile_bytes);
      if (which)
        tma_tile<S::block_n, S::head_dim_v>(buffer(1, j), &maps->v, j * S::block_n, kv_head, bar(1, j));
      else
        tma_tile<S::block_n, S::head_dim>(buffer(0, j), &maps->k, j * S::block_n, kv_head, bar(0, j));
    } else {
      if (j < num_tiles && which)
        cp_async_tile<S, S::block_n, S::head_dim_v>(buffer(1, j), v_from + (size_t)j * S::block_n * S::head_dim_v);
      else if (j < num_tiles)
        cp_async_tile<S, S::block_n, S::head_dim>(buffer(0, j), k_from + (size_t)j * S::block_n * S::head_dim);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
  }

  /* After it, tile `which` j is visible to wgmma of all warps, and all warps have finished what they did before. */
  __device__ __forceinline__ void wait(int which, int j) const {
    if constexpr (S::copy == Copy::tma) {
      hopper::mbarrier_wait(bar(which, j), (uint32_t)(j / S::num_stages) & 1);
    } else {
      if (S::num_stages > 1 && which == 0 && j == 0)
        asm volatile("cp.async.wait_group %0;" ::"n"(2 * S::num_stages - 1) : "memory");
      else
        asm volatile("cp.async.wait_group %0;" ::"n"(2 * S::num_stages - 2) : "memory");
      hopper::proxy_fence();
    }
    __syncthreads();
  }
};

template <class S>
__device__ __forceinline__ void forward_cta(const TileParams &p, const Maps &maps) {
  extern __shared__ uint8_t raw[];
  __shared__ __align__(8) uint64_t bars[2 * S::num_stages + 1];
  Tile tile = tile_of(p, (int)blockIdx.x);
  size_t first_row = (size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m;
  Range range = key_range<S::causal, S::block_m, S::block_n>(p, tile.m);

  Pipeline<S> pipe;
  pipe.q = (hopper::smem(raw) + 1023) / 1024 * 1024;
  pipe.k = pipe.q + S::q_bytes;
  pipe.v = S::single_buffer ? pipe.k : pipe.k + S::num_stages * S::k_tile_bytes;
  pipe.bars = hopper::smem(bars);
  pipe.maps = &maps;
  pipe.k_from = p.k + (size_t)tile.kv_head * (size_t)p.seqlen_kv * S::head_dim;
  pipe.v_from = p.v + (size_t)tile.kv_head * (size_t)p.seqlen_kv * S::head_dim_v;
  pipe.kv_head = tile.kv_head;
  pipe.num_tiles = range.num_tiles;

  uint32_t q_bar = pipe.bars + 2 * S::num_stages * 8;
  if constexpr (S::copy == Copy::tma) {
    if (threadIdx.x == 0) {
      for (int i = 0; i <= 2 * S::num_stages; i++) hopper::mbarrier_init(pipe.bars + (uint32_t)i * 8, 1);
      hopper::mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      hopper::mbarrier_expect(q_bar, S::q_bytes);
      tma_tile<S::block_m, S::head_dim>(pipe.q, &maps.q, tile.m * S::block_m, tile.head, q_bar);
    }
  } else {
    cp_async_tile<S, S::block_m, S::head_dim>(pipe.q, p.q + first_row * S::head_dim);
  }
#pragma unroll
  for (int s = 0; s < S::num_stages; s++) {
    pipe.fetch(0, s);
    if (!S::single_buffer) pipe.fetch(1, s);
  }

  float s[S::m_tiles][S::block_n / 2], o[S::m_tiles][S::head_dim_v / 2], correction[S::m_tiles][2];
  uint32_t fragments[S::m_tiles][S::block_n / 16][4];
  RowState<S::m_tiles> rows;
  rows.clear();
  fill_zero(o);
  uint32_t group_row = threadIdx.x / 128 * S::group_rows, warp_row = group_row + threadIdx.x % 128 / 32 * 16;
  if constexpr (S::copy == Copy::tma) hopper::mbarrier_wait(q_bar, 0);

  for (int j = 0; j < range.num_tiles; j++) {
    pipe.wait(0, j);
    if (!S::single_buffer && j > 0) pipe.fetch(1, j - 1 + S::num_stages);
    keep_all(s);
    hopper::wgmma_fence();
    issue_scores<S::block_m, S::block_n, S::head_dim>(s, pipe.q, group_row, pipe.buffer(0, j));
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    keep_all(s);
    if (S::causal && j >= range.num_unmasked) mask_causal<64>(s, (int)warp_row + range.row_offset, j * S::block_n);
    if (S::single_buffer) { /* everyone has left K */
      __syncthreads();
      pipe.fetch(1, j);
      pipe.wait(1, j);
    }
    softmax_step(s, rows, correction, p.scale_log2);
    rescale(o, correction);
    make_p<S::block_n>(fragments, s);
    if (!S::single_buffer) {
      pipe.wait(1, j);
      pipe.fetch(0, j + S::num_stages);
    }
    keep_all(o);
    hopper::wgmma_fence();
    issue_output<S::block_n, S::head_dim_v>(o, fragments, pipe.buffer(1, j));
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    keep_all(o);
    if (S::single_buffer) {
      __syncthreads();
      pipe.fetch(0, j + 1);
    }
  }
  normalize<64>(o, rows, p.lse + first_row, warp_row, p.scale_log2);
  __syncthreads();
  write_output<S::block_m, S::head_dim_v>(o, pipe.q, warp_row, p.o + first_row * S::head_dim_v);
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward(TileParams p, const __grid_constant__ Maps maps) {
  forward_cta<S>(p, maps);
}

template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.seqlen_q / S::block_m * p.batch * p.heads), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  forward<S>
      <<<l.grid, l.block, l.shared_bytes, stream>>>(tile_params(p, S::block_m), make_maps(p, S::block_m, S::block_n));
}

template <class S>
Instance instance() {
  return {{"flash2_fwd", "wgmma", S::copy == Copy::tma ? "tma" : "cp_async", "stages", S::block_m, S::block_n,
           S::num_warps, S::num_stages, S::head_dim, S::causal, false, false, false, false, "", 0,
           S::head_dim_v == S::head_dim ? 0 : S::head_dim_v},
          (const void *)forward<S>,
          plan<S>,
          run<S>};
}

}  // namespace flash2_wgmma
