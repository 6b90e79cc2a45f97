/* Attention forward with a producer (a warpgroup, or one warp) that fills rings of K and V tiles through TMA, and consumer
 * warpgroups of 64 query rows each. With PingPong the warpgroups take turns on the tensor cores, and QK^T of the next
 * block runs along with PV of this one (FlashAttention-3). */
#pragma once

#include "attention_tile.h"

template <int WG, int ProducerWarps, int MinCtas>
struct Reallocation {
  /* 64-Ki registers by CTAs and 128 threads, in eights */
  static constexpr int at_launch = 65536 / MinCtas / (128 * (WG + 1)) / 8 * 8;
  static constexpr bool used = ProducerWarps == 4 && at_launch < 256;
  static constexpr int producer = WG >= 3 ? 32 : 24;
  static constexpr int all = (at_launch * (WG + 1) - producer) / WG / 8 * 8;
  static constexpr int consumer = all > 240 ? 240 : all;
};

template <class T, int D, int BM, int BN, int Stages, bool PingPong, int ProducerWarps, int MinCtas>
struct Specialised {
  static_assert(BM % 64 == 0 && BN % 16 == 0 && D % 64 == 0, "tiles");
  static constexpr int warpgroups = BM / 64, threads = warpgroups * 128 + ProducerWarps * 32;
  static constexpr int q_bytes = BM * D * 2, kv_bytes = BN * D * 2;
  static constexpr int bar_q = q_bytes + 2 * Stages * kv_bytes; /* then full K, empty K, full V, empty V */
  static constexpr int shared_bytes = bar_q + 8 * (1 + 4 * Stages);
  typedef Reallocation<warpgroups, ProducerWarps, MinCtas> Registers;
  typedef WarpgroupTile<BN, D, T> Fragment;

  struct Ring {
    uint32_t full_k, empty_k, full_v, empty_v;
    __device__ __forceinline__ explicit Ring(uint32_t base)
        : full_k(base + bar_q + 8),
          empty_k(full_k + 8 * Stages),
          full_v(empty_k + 8 * Stages),
          empty_v(full_v + 8 * Stages) {}
  };

  struct Slot {
    int index = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void advance() {
      if (++index == Stages) index = 0, parity ^= 1;
    }
  };

  static __device__ __forceinline__ void produce(const Tile &t, const CUtensorMap *q, const CUtensorMap *k,
                                                 const CUtensorMap *v, uint32_t base) {
    Ring ring(base);
    uint32_t k_tiles = base + q_bytes, v_tiles = k_tiles + Stages * kv_bytes;
    load_tile<BM, D>(base, q, base + bar_q, t.m0, t.head, t.batch);
    Slot k_slot, v_slot;
    auto load_k = [&](int j) {
      barrier_wait(ring.empty_k + 8 * k_slot.index, k_slot.parity ^ 1);
      load_tile<BN, D>(k_tiles + k_slot.index * kv_bytes, k, ring.full_k + 8 * k_slot.index, (t.blocks - 1 - j) * BN,
                       t.kv_head, t.batch);
      k_slot.advance();
    };
    auto load_v = [&](int j) {
      barrier_wait(ring.empty_v + 8 * v_slot.index, v_slot.parity ^ 1);
      load_tile<BN, D>(v_tiles + v_slot.index * kv_bytes, v, ring.full_v + 8 * v_slot.index, (t.blocks - 1 - j) * BN,
                       t.kv_head, t.batch);
      v_slot.advance();
    };
    load_k(0);
    for (int j = 1; j < t.blocks; j++) {
      if (PingPong) {
        load_k(j);
        load_v(j - 1);
      } else {
        load_v(j - 1);
        load_k(j);
      }
    }
    load_v(t.blocks - 1);
  }

  static __device__ __forceinline__ void consume(const Tile &t, const Params &p, const CUtensorMap *o, uint32_t base,
                                                 int wg) {
    Ring ring(base);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    int wg_row = t.m0 + wg * 64, row = wg_row + warp * 16 + lane / 4;
    Fragment f;
    f.clear();
    if (t.blocks > 0) {
      constexpr int q_panel = BM * 128;
      uint64_t q = descriptor(base + wg * 64 * 128, 16), k = descriptor(base + q_bytes, 16),
               v = descriptor(base + q_bytes + Stages * kv_bytes, BN * 128);
      /* first columns that aren't seen */
      int limit_up = p.causal ? min(p.seqlen_kv, row + t.offset + 1) : p.seqlen_kv;
      int limit_low = p.causal ? min(p.seqlen_kv, row + t.offset + 9) : p.seqlen_kv;
      int all_see = p.causal ? min(p.seqlen_kv, wg_row + t.offset + 1) : p.seqlen_kv; /* in the warpgroup */
      Slot k_slot, v_slot;
      float s[BN / 2];
      uint32_t probabilities[BN / 16][4];
      float alpha[2];

      auto masked_softmax = [&](int j) {
        int column = (t.blocks - 1 - j) * BN;
        if (column + BN > all_see) {
          int mine = column + lane % 4 * 2;
          Fragment::mask(s, limit_up - mine, limit_low - mine);
        }
        f.softmax(s, alpha, p.scale_log2);
      };
      auto release = [&](uint32_t empty, Slot &slot) {
        if (lane == 0) barrier_arrive(empty + 8 * slot.index);
        slot.advance();
      };
      auto wait_k = [&] { barrier_wait(ring.full_k + 8 * k_slot.index, k_slot.parity); };
      auto wait_v = [&] { barrier_wait(ring.full_v + 8 * v_slot.index, v_slot.parity); };
      auto issue_scores = [&] {
        Fragment::template scores<q_panel>(s, q, k + (k_slot.index * kv_bytes >> 4));
        wgmma_commit();
      };
      auto issue_values = [&] {
        f.accumulate(probabilities, v + (v_slot.index * kv_bytes >> 4));
        wgmma_commit();
      };

      barrier_wait(base + bar_q, 0);
      if constexpr (PingPong) {
        auto my_turn = [&] { named_sync(1 + wg, 256); };
        auto next_turn = [&](int j) { /* nobody waits for the last's last */
          if (wg < warpgroups - 1 || j < t.blocks - 1) named_arrive(1 + (wg + 1) % warpgroups, 256);
        };
        if (wg == warpgroups - 1) named_arrive(1, 256);
        wait_k();
        my_turn();
        hold(s);
        wgmma_fence();
        issue_scores();
        next_turn(0);
        wgmma_wait<0>();
        hold(s);
        release(ring.empty_k, k_slot);
        masked_softmax(0);
        Fragment::convert(probabilities, s);
        for (int j = 1; j < t.blocks; j++) {
          wait_k();
          wait_v();
          my_turn();
          hold(s), hold(f.o), hold(probabilities);
          wgmma_fence();
          issue_scores();
          issue_values();
          next_turn(j);
          wgmma_wait<1>();
          hold(s);
          release(ring.empty_k, k_slot);
          masked_softmax(j);
          wgmma_wait<0>();
          hold(f.o), hold(probabilities);
          release(ring.empty_v, v_slot);
          f.rescale(alpha);
          Fragment::convert(probabilities, s);
        }
        wait_v();
        hold(f.o), hold(probabilities);
        wgmma_fence();
        issue_values();
        wgmma_wait<0>();
        hold(f.o);
      } else {
        for (int j = 0; j < t.blocks; j++) {
          wait_k();
          hold(s);
          wgmma_fence();
          issue_scores();
          wgmma_wait<0>();
          hold(s);
          release(ring.empty_k, k_slot);
          masked_softmax(j);
          f.rescale(alpha);
          Fragment::convert(probabilities, s);
          wait_v();
          hold(f.o), hold(probabilities);
          wgmma_fence();
          issue_values();
          wgmma_wait<0>();
          hold(f.o);
          release(ring.empty_v, v_slot);
        }
      }
    }
    f.finish(p.lse + ((size_t)t.batch * p.heads + t.head) * p.seqlen_q + wg_row + warp * 16,
             p.seqlen_q - wg_row - warp * 16, p.scale, lane);
    /* O takes the place of this warpgroup's rows of Q */
    uint32_t to = base + wg * 64 * 128;
    named_sync(4 + wg, 128);
    f.template stage<BM * 128>(to + warp * 16 * 128, lane);
    async_proxy_fence();
    named_sync(4 + wg, 128);
    if (warp == 0 && lane == 0 && wg_row < p.seqlen_q) {
#pragma unroll
      for (int panel = 0; panel < D / 64; panel++)
        tma_store(o, to + panel * BM * 128, panel * 64, wg_row, t.head, t.batch);
      tma_store_finish();
    }
  }
};

template <class T, int D, int BM, int BN, int Stages, bool PingPong, int ProducerWarps, int MinCtas>
__global__ void __launch_bounds__(BM * 2 + ProducerWarps * 32, MinCtas)
    attention_specialised(const Params p, const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                          const __grid_constant__ CUtensorMap v, const __grid_constant__ CUtensorMap o) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) /* wgmma and setmaxnreg: sm_90a only */
  typedef Specialised<T, D, BM, BN, Stages, PingPong, ProducerWarps, MinCtas> S;
  extern __shared__ __align__(1024) unsigned char tiles[];
  uint32_t base = shared_address(tiles);
  if (threadIdx.x == 0) {
    typename S::Ring ring(base);
    barrier_init(base + S::bar_q, 1);
    for (int i = 0; i < Stages; i++) {
      barrier_init(ring.full_k + 8 * i, 1);
      barrier_init(ring.full_v + 8 * i, 1);
      barrier_init(ring.empty_k + 8 * i, S::warpgroups * 4);
      barrier_init(ring.empty_v + 8 * i, S::warpgroups * 4);
    }
    barrier_init_fence();
  }
  Tile t = tile_of_cta<BM, BN>(p);
  __syncthreads();
  int wg = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (wg == S::warpgroups) {
    if constexpr (S::Registers::used) give_registers<S::Registers::producer>();
    if (threadIdx.x == S::warpgroups * 128 && t.blocks > 0) {
      tma_prefetch_map(&k);
      tma_prefetch_map(&v);
      S::produce(t, &q, &k, &v, base);
    }
  } else {
    if constexpr (S::Registers::used) take_registers<S::Registers::consumer>();
    S::consume(t, p, &o, base, wg);
  }
#endif
}
