/* FlashAttention-2 forward with wgmma and TMA, without a producer: each warpgroup owns 64 rows, and warp 0 refills a
 * stage once all warps are through with it. */
#pragma once

#include "hopper.h"

namespace mixed_e {

template <class T_, int D_, int N_, int Warps_, bool Causal_>
struct WgmmaConfig {
  using T = T_;
  static constexpr int D = D_, M = Warps_ * 16, N = N_, Warps = Warps_, Stages = 2;
  static constexpr bool Causal = Causal_;
  static constexpr int threads = Warps * 32;
  typedef TileLayout<D, M, N, Stages> Layout;
  static constexpr int shared_bytes = Layout::bytes;
  static_assert(Warps % 4 == 0 && D % 64 == 0, "");
};

/* All of warp 0 calls it; one lane issues. */
template <class C>
struct Refill {
  const TensorMaps &maps;
  typename C::Layout shared;
  int tiles, kv_head, sequence;

  __device__ void start_keys(int tile) const {
    if (lane_id() == 0)
      load_tile<C::D, C::N>(shared.k(tile % 2), &maps.k, shared.k_full(tile % 2), tile * C::N, kv_head, sequence);
  }
  __device__ void start_values(int tile) const {
    if (lane_id() == 0)
      load_tile<C::D, C::N>(shared.v(tile % 2), &maps.v, shared.v_full(tile % 2), tile * C::N, kv_head, sequence);
  }
  __device__ void prologue() const {
    for (int tile = 0; tile < min(2, tiles); tile++) {
      start_keys(tile);
      start_values(tile);
    }
  }
  /* After the scores of `tile`: K of tile + 2, and V of tile + 1 unless the prologue had it. */
  __device__ void after_scores(int tile) const {
    if (tile + 2 < tiles) {
      barrier_wait(shared.k_empty(tile % 2), tile / 2 % 2);
      start_keys(tile + 2);
    }
    if (tile >= 1 && tile + 1 < tiles) {
      barrier_wait(shared.v_empty((tile - 1) % 2), (tile - 1) / 2 % 2);
      start_values(tile + 1);
    }
    __syncwarp();
  }
};

template <class C>
__global__ void __launch_bounds__(C::threads)
    wgmma_forward(const __grid_constant__ Arguments a, const __grid_constant__ TensorMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* not in the PTX of compute_90 that nvcc may add */
  using T = typename C::T;
  extern __shared__ __align__(1024) unsigned char dynamic_shared[];
  const typename C::Layout shared(dynamic_shared);
  const int warp_index = __shfl_sync(~0u, threadIdx.x / 32, 0), warpgroup = warp_index / 4;
  const Work work = work_of<C::M>(a, blockIdx.x);
  const int tiles = key_tiles<C::Causal, C::M, C::N>(a, work.first_row);
  const Refill<C> refill{maps, shared, tiles, work.head / a.group, work.sequence};

  if (threadIdx.x == 0) shared.init_barriers(C::Warps);
  __syncthreads();
  if (warp_index == 0) {
    if (lane_id() == 0)
      load_tile<C::D, C::M>(shared.q(), &maps.q, shared.q_full(), work.first_row, work.head, work.sequence);
    refill.prologue();
    __syncwarp();
  }

  const int warp_row = work.first_row + warp_index * 16, row = warp_row + lane_id() / 4;
  const int unmasked = unmasked_tiles<C::Causal, C::N>(a, work.first_row + warpgroup * 64);
  const uint64_t q = descriptor(shared.q() + warpgroup * 64 * 128, 0);
  Softmax softmax;
  float o[C::D / 2];
#pragma unroll
  for (int i = 0; i < C::D / 2; i++) o[i] = 0.f;
  barrier_wait(shared.q_full(), 0);
  for (int tile = 0; tile < tiles; tile++) {
    const int stage = tile % 2, parity = tile / 2 % 2;
    float s[C::N / 2], correction[2];
    uint32_t p[C::N / 16][4];
    barrier_wait(shared.k_full(stage), parity);
    wgmma_fence();
    start_scores<T, C::D, C::M, C::N>(s, q, descriptor(shared.k(stage), 0));
    wgmma_wait<0>();
    settle(s);
    warp_arrive(shared.k_empty(stage));

    if (tile >= unmasked) mask<C::Causal>(s, a, row, tile * C::N);
    softmax.step(s, a.scale_log2, correction);
    rescale(o, correction);
    pack_scores<T, C::N>(p, s);
    if (warp_index == 0) refill.after_scores(tile);

    barrier_wait(shared.v_full(stage), parity);
    wgmma_fence();
    start_values<T, C::N>(o, p, descriptor(shared.v(stage), C::N * 128));
    wgmma_wait<0>();
    settle(o);
    settle(p);
    warp_arrive(shared.v_empty(stage));
  }
  store_rows<T>(o, softmax, a, work, row);
#endif
}

}  // namespace mixed_e
