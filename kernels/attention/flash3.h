/* Warp-specialised forward after FlashAttention-3: one producer warpgroup (one thread issues TMA), num_warps / 4
 * consumer warpgroups of 64 rows each. Inside a consumer QK^T of the next tile is issued before the softmax of this one
 * and PV runs beside it; between consumers a ring of named barriers lets one issue its products while the other is in
 * its softmax (ping-pong). num_stages K and V buffers each, full and empty mbarriers. persistent: one CTA a SM walks
 * the tiles with the grid's stride, and the producer runs ahead into the next tile while the consumers finish this one;
 * otherwise one tile of rows a CTA. head_dim_v: columns of V and O where they are not those of Q and K; O then has a
 * buffer of its own if Q's rows are too short for it. */
#pragma once

#include <algorithm>

#include "wgmma_tiles.h"

namespace flash3 {

using namespace wgmma_tiles;

template <int block_m_, int block_n_, int num_warps_, int num_stages_, int head_dim_, bool causal_,
          bool persistent_ = false, int head_dim_v_ = head_dim_>
struct Shape {
  static constexpr int block_m = block_m_, block_n = block_n_, num_warps = num_warps_, num_stages = num_stages_,
                       head_dim = head_dim_, head_dim_v = head_dim_v_;
  static constexpr bool causal = causal_, persistent = persistent_;
  static constexpr int num_groups = num_warps / 4, num_threads = (num_groups + 1) * 128;
  static constexpr int q_bytes = block_m * head_dim * 2;
  static constexpr int k_tile_bytes = block_n * head_dim * 2, v_tile_bytes = block_n * head_dim_v * 2;
  static constexpr bool has_o = head_dim_v > head_dim; /* a buffer for O */
  static constexpr int rings_bytes = num_stages * (k_tile_bytes + v_tile_bytes);
  static constexpr int shared_bytes = 1024 + q_bytes + rings_bytes + (has_o ? block_m * head_dim_v * 2 : 0);
  static constexpr int producer_registers = num_groups == 2 ? 24 : 32, consumer_registers = num_groups == 2 ? 240 : 160;
  static_assert((num_groups == 2 || num_groups == 3) && block_m == 64 * num_groups);
};

struct Bars {
  uint32_t base;
  int num_stages;
  __device__ __forceinline__ uint32_t at(int kind, int stage) const {
    return base + (uint32_t)(kind * num_stages + stage) * 8;
  }
  __device__ __forceinline__ uint32_t full(int which, int j) const { return at(which, j % num_stages); }
  __device__ __forceinline__ uint32_t empty(int which, int j) const { return at(2 + which, j % num_stages); }
  __device__ __forceinline__ uint32_t q() const { return base + (uint32_t)(4 * num_stages) * 8; }
  __device__ __forceinline__ uint32_t q_empty() const { return base + (uint32_t)(4 * num_stages + 1) * 8; }
  __device__ __forceinline__ uint32_t parity(int j) const { return (uint32_t)(j / num_stages) & 1; }
};

/* `round` counts this CTA's row tiles, `before` the K tiles of earlier rounds: ring positions go on from one round to
 * the next. */
template <class S>
__device__ __forceinline__ void produce(const Maps &maps, const Tile &tile, const Range &range, int round, int before,
                                        Bars bars, uint32_t q, uint32_t k, uint32_t v) {
  if (S::persistent && round > 0) hopper::mbarrier_wait(bars.q_empty(), (uint32_t)(round - 1) & 1);
  hopper::mbarrier_expect(bars.q(), S::q_bytes);
  tma_tile<S::block_m, S::head_dim>(q, &maps.q, tile.m * S::block_m, tile.head, bars.q());
  for (int j = 0; j < range.num_tiles; j++) {
    int n = before + j;
#pragma unroll
    for (int which = 0; which < 2; which++) {
      if (n >= S::num_stages) hopper::mbarrier_wait(bars.empty(which, n), bars.parity(n - S::num_stages));
      hopper::mbarrier_expect(bars.full(which, n), which ? S::v_tile_bytes : S::k_tile_bytes);
      uint32_t to = (which ? v : k) + (uint32_t)(n % S::num_stages) * (which ? S::v_tile_bytes : S::k_tile_bytes);
      tma_panels<S::block_n>(to, which ? &maps.v : &maps.k, (which ? S::head_dim_v : S::head_dim) / 64, j * S::block_n,
                             tile.kv_head, bars.full(which, n));
    }
  }
}

/* Named barriers 2, 3, 4: a group syncs on its own when it wants to issue products and arrives at the others' when it
 * has. */
template <class S>
struct Turns {
  int group;
  __device__ __forceinline__ void begin() const {
    if (group > 0) hopper::named_arrive(2, S::num_groups * 128);
    if (S::num_groups == 3 && group > 1) hopper::named_arrive(3, S::num_groups * 128);
  }
  __device__ __forceinline__ void take() const { hopper::named_sync(2 + group, S::num_groups * 128); }
  __device__ __forceinline__ void pass() const {
    hopper::named_arrive(2 + (group + 1) % S::num_groups, S::num_groups * 128);
    if (S::num_groups == 3) hopper::named_arrive(2 + (group + 2) % S::num_groups, S::num_groups * 128);
  }
};

template <class S>
__device__ __forceinline__ void consume(const TileParams &p, const Tile &tile, const Range &range, int round,
                                        int before, Turns<S> turns, Bars bars, uint32_t q, uint32_t k, uint32_t v) {
  int group = (int)threadIdx.x / 128 - 1;
  uint32_t group_row = (uint32_t)group * 64, warp_row = group_row + threadIdx.x % 128 / 32 * 16;
  float s[1][S::block_n / 2], o[1][S::head_dim_v / 2], correction[1][2];
  uint32_t fragments[1][S::block_n / 16][4];
  RowState<1> rows;
  rows.clear();
  fill_zero(o);
  auto release = [&](int which, int j) {
    if (threadIdx.x % 32 == 0) hopper::mbarrier_arrive(bars.empty(which, j));
  };
  auto mask = [&](int j) {
    if (S::causal && j >= range.num_unmasked) mask_causal<64>(s, (int)warp_row + range.row_offset, j * S::block_n);
  };

  hopper::mbarrier_wait(bars.q(), (uint32_t)round & 1);
  if (range.num_tiles > 0) {
    hopper::mbarrier_wait(bars.full(0, before), bars.parity(before));
    turns.take();
    hopper::wgmma_fence();
    issue_scores<S::block_m, S::block_n, S::head_dim>(s, q, group_row,
                                                      k + (uint32_t)(before % S::num_stages) * S::k_tile_bytes);
    hopper::wgmma_commit();
    turns.pass();
    hopper::wgmma_wait<0>();
    keep_all(s);
    release(0, before);
    mask(0);
    softmax_step(s, rows, correction, p.scale_log2);
    make_p<S::block_n>(fragments, s);
    for (int j = 1; j < range.num_tiles; j++) {
      int n = before + j;
      uint32_t stage = (uint32_t)(n % S::num_stages), stage_before = (uint32_t)((n - 1) % S::num_stages);
      hopper::mbarrier_wait(bars.full(0, n), bars.parity(n));
      turns.take();
      keep_all(s);
      keep_all(o);
      hopper::wgmma_fence();
      issue_scores<S::block_m, S::block_n, S::head_dim>(s, q, group_row, k + stage * S::k_tile_bytes);
      hopper::wgmma_commit();
      hopper::mbarrier_wait(bars.full(1, n - 1), bars.parity(n - 1));
      hopper::wgmma_fence();
      issue_output<S::block_n, S::head_dim_v>(o, fragments, v + stage_before * S::v_tile_bytes);
      hopper::wgmma_commit();
      turns.pass();
      hopper::wgmma_wait<1>();
      keep_all(s);
      release(0, n);
      mask(j);
      softmax_step(s, rows, correction, p.scale_log2);
      hopper::wgmma_wait<0>();
      keep_all(o);
      release(1, n - 1);
      rescale(o, correction);
      make_p<S::block_n>(fragments, s);
    }
    int last = before + range.num_tiles - 1;
    hopper::mbarrier_wait(bars.full(1, last), bars.parity(last));
    keep_all(o);
    hopper::wgmma_fence();
    issue_output<S::block_n, S::head_dim_v>(o, fragments, v + (uint32_t)(last % S::num_stages) * S::v_tile_bytes);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    keep_all(o);
    if (S::persistent) release(1, last);
  }
  size_t first_row = (size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m;
  auto release_queries = [&] {
    if (threadIdx.x % 32 == 0) hopper::mbarrier_arrive(bars.q_empty());
  };
  if (S::persistent && S::has_o) release_queries();
  normalize<64>(o, rows, p.lse + first_row, warp_row, p.scale_log2);
  hopper::named_sync(5 + group, 128);
  write_output<S::block_m, S::head_dim_v>(o, S::has_o ? v + S::num_stages * S::v_tile_bytes : q, warp_row,
                                          p.o + first_row * S::head_dim_v);
  if (S::persistent && !S::has_o) {
    hopper::proxy_fence();
    __syncwarp();
    release_queries();
  }
}

template <class S>
__device__ __forceinline__ void forward_cta(const TileParams &p, const Maps &maps) {
  extern __shared__ uint8_t raw[];
  __shared__ __align__(8) uint64_t bar_storage[4 * S::num_stages + 2];
  uint32_t q = (hopper::smem(raw) + 1023) / 1024 * 1024, k = q + S::q_bytes, v = k + S::num_stages * S::k_tile_bytes;
  Bars bars = {hopper::smem(bar_storage), S::num_stages};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < S::num_stages; stage++)
      for (int which = 0; which < 2; which++) {
        hopper::mbarrier_init(bars.at(which, stage), 1);
        hopper::mbarrier_init(bars.at(2 + which, stage), (uint32_t)S::num_warps);
      }
    hopper::mbarrier_init(bars.q(), 1);
    hopper::mbarrier_init(bars.q_empty(), (uint32_t)S::num_warps);
    hopper::mbarrier_init_fence();
  }
  __syncthreads();
  int num_row_tiles = S::persistent ? p.num_m_tiles * p.num_heads_total : 0, index = (int)blockIdx.x, round = 0,
      before = 0;
  if (threadIdx.x < 128) {
    hopper::registers_shrink<S::producer_registers>();
    if (threadIdx.x == 0) do {
        Tile tile = tile_of(p, index);
        Range range = key_range<S::causal, S::block_m, S::block_n>(p, tile.m);
        produce<S>(maps, tile, range, round++, before, bars, q, k, v);
        before += range.num_tiles;
        index += (int)gridDim.x;
      } while (index < num_row_tiles);
  } else {
    hopper::registers_grow<S::consumer_registers>();
    Turns<S> turns = {(int)threadIdx.x / 128 - 1};
    turns.begin();
    do {
      Tile tile = tile_of(p, index);
      Range range = key_range<S::causal, S::block_m, S::block_n>(p, tile.m);
      consume<S>(p, tile, range, round++, before, turns, bars, q, k, v);
      before += range.num_tiles;
      index += (int)gridDim.x;
    } while (index < num_row_tiles);
  }
}

template <class S>
__global__ __launch_bounds__(S::num_threads, 1) void forward(TileParams p, const __grid_constant__ Maps maps) {
  forward_cta<S>(p, maps);
}

template <class S>
Launch plan(const Problem &p) {
  unsigned tiles = (unsigned)(p.seqlen_q / S::block_m * p.batch * p.heads);
  int num_sms = 0;
  if (S::persistent) cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, 0);
  return {S::persistent ? std::min(tiles, (unsigned)num_sms) : tiles, (unsigned)S::num_threads,
          (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  forward<S>
      <<<l.grid, l.block, l.shared_bytes, stream>>>(tile_params(p, S::block_m), make_maps(p, S::block_m, S::block_n));
}

template <class S>
Instance instance() {
  return {{"flash3_fwd", "wgmma", "tma", "pingpong", S::block_m, S::block_n, S::num_warps, S::num_stages, S::head_dim,
           S::causal, S::persistent, false, false, false, "", 0, S::head_dim_v == S::head_dim ? 0 : S::head_dim_v},
          (const void *)forward<S>,
          plan<S>,
          run<S>};
}

}  // namespace flash3
