/* Attention forward without a producer: thread 0 issues the TMA loads of later tiles, all warpgroups compute, each
 * `MTiles` times 64 rows. Free says how thread 0 learns that a buffer may be filled again. */
#pragma once

#include "attention_tile.h"

enum class Free {
  sync,       /* __syncthreads after each block */
  barrier,    /* an mbarrier a stage, at which each warp arrives; filled while the next QK^T runs */
  interleaved /* one buffer each: __syncthreads after QK^T (next K) and after PV (next V) */
};

template <class T, int D, int BM, int BN, int Warpgroups, int Stages, Free F>
struct Uniform {
  static constexpr int m_tiles = BM / 64 / Warpgroups;
  static_assert(m_tiles * 64 * Warpgroups == BM && BN % 16 == 0, "tiles");
  static_assert(F != Free::interleaved || Stages == 1, "stages");
  static constexpr int threads = Warpgroups * 128;
  static constexpr int q_bytes = BM * D * 2, kv_bytes = BN * D * 2;
  static constexpr int bar_q = q_bytes + 2 * Stages * kv_bytes, full_k = bar_q + 8, full_v = full_k + 8 * Stages,
                       empty = full_v + 8 * Stages;
  static constexpr int shared_bytes = empty + 8 * Stages;
};

template <class T, int D, int BM, int BN, int Warpgroups, int Stages, Free F, int MinCtas>
__global__ void __launch_bounds__(Warpgroups * 128, MinCtas)
    attention_uniform(const Params p, const __grid_constant__ CUtensorMap q_map,
                      const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
                      const __grid_constant__ CUtensorMap) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) /* wgmma and setmaxnreg: sm_90a only */
  typedef Uniform<T, D, BM, BN, Warpgroups, Stages, F> U;
  typedef WarpgroupTile<BN, D, T> Fragment;
  constexpr int MT = U::m_tiles;
  extern __shared__ __align__(1024) unsigned char tiles[];
  uint32_t base = shared_address(tiles), k_tiles = base + U::q_bytes, v_tiles = k_tiles + Stages * U::kv_bytes;
  int wg = __shfl_sync(~0u, threadIdx.x / 128, 0), warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  Tile t = tile_of_cta<BM, BN>(p);

  auto load_k = [&](int j, int slot) {
    load_tile<BN, D>(k_tiles + slot * U::kv_bytes, &k_map, base + U::full_k + 8 * slot, j * BN, t.kv_head, t.batch);
  };
  auto load_v = [&](int j, int slot) {
    load_tile<BN, D>(v_tiles + slot * U::kv_bytes, &v_map, base + U::full_v + 8 * slot, j * BN, t.kv_head, t.batch);
  };

  if (threadIdx.x == 0) {
    barrier_init(base + U::bar_q, 1);
    for (int i = 0; i < Stages; i++) {
      barrier_init(base + U::full_k + 8 * i, 1);
      barrier_init(base + U::full_v + 8 * i, 1);
      barrier_init(base + U::empty + 8 * i, Warpgroups * 4);
    }
    barrier_init_fence();
    if (t.blocks > 0) load_tile<BM, D>(base, &q_map, base + U::bar_q, t.m0, t.head, t.batch);
    for (int j = 0; j < Stages && j < t.blocks; j++) load_k(j, j), load_v(j, j);
  }
  __syncthreads();

  Fragment f[MT];
#pragma unroll
  for (int i = 0; i < MT; i++) f[i].clear();
  int wg_row = t.m0 + wg * 64 * MT;
  if (t.blocks > 0) {
    constexpr int q_panel = BM * 128;
    uint64_t q = descriptor(base + wg * MT * 64 * 128, 16), k = descriptor(k_tiles, 16),
             v = descriptor(v_tiles, BN * 128);
    int all_see = p.causal ? min(p.seqlen_kv, wg_row + t.offset + 1) : p.seqlen_kv;
    int slot = 0, last_slot = Stages - 1;
    uint32_t parity = 0;
    barrier_wait(base + U::bar_q, 0);
    for (int j = 0; j < t.blocks; j++) {
      float s[MT][BN / 2];
      barrier_wait(base + U::full_k + 8 * slot, parity);
#pragma unroll
      for (int i = 0; i < MT; i++) hold(s[i]);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < MT; i++)
        Fragment::template scores<q_panel>(s[i], q + (i * 64 * 128 >> 4), k + (slot * U::kv_bytes >> 4));
      wgmma_commit();
      if constexpr (F == Free::barrier) {
        /* the buffers of block j - 1 */
        if (threadIdx.x == 0 && j > 0 && j - 1 + Stages < t.blocks) {
          uint32_t last_parity = slot == 0 ? parity ^ 1 : parity;
          barrier_wait(base + U::empty + 8 * last_slot, last_parity);
          load_k(j - 1 + Stages, last_slot);
          load_v(j - 1 + Stages, last_slot);
        }
        __syncwarp();
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < MT; i++) hold(s[i]);
      if constexpr (F == Free::interleaved) {
        if (j + 1 < t.blocks) {
          __syncthreads();
          if (threadIdx.x == 0) load_k(j + 1, 0);
          __syncwarp();
        }
      }

      uint32_t probabilities[MT][BN / 16][4];
#pragma unroll
      for (int i = 0; i < MT; i++) {
        if (j * BN + BN > all_see) {
          int row = wg_row + i * 64 + warp * 16 + lane / 4, mine = j * BN + lane % 4 * 2;
          int limit_up = p.causal ? min(p.seqlen_kv, row + t.offset + 1) : p.seqlen_kv;
          int limit_low = p.causal ? min(p.seqlen_kv, row + t.offset + 9) : p.seqlen_kv;
          Fragment::mask(s[i], limit_up - mine, limit_low - mine);
        }
        float alpha[2];
        f[i].softmax(s[i], alpha, p.scale_log2);
        f[i].rescale(alpha);
        Fragment::convert(probabilities[i], s[i]);
      }

      barrier_wait(base + U::full_v + 8 * slot, parity);
#pragma unroll
      for (int i = 0; i < MT; i++) hold(f[i].o), hold(probabilities[i]);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < MT; i++) f[i].accumulate(probabilities[i], v + (slot * U::kv_bytes >> 4));
      wgmma_commit();
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < MT; i++) hold(f[i].o);

      if constexpr (F == Free::barrier) {
        if (lane == 0) barrier_arrive(base + U::empty + 8 * slot);
      } else if constexpr (F == Free::sync) {
        if (j + Stages < t.blocks) {
          __syncthreads();
          if (threadIdx.x == 0) load_k(j + Stages, slot), load_v(j + Stages, slot);
          __syncwarp();
        }
      } else {
        if (j + 1 < t.blocks) {
          __syncthreads();
          if (threadIdx.x == 0) load_v(j + 1, 0);
          __syncwarp();
        }
      }
      last_slot = slot;
      if (++slot == Stages) slot = 0, parity ^= 1;
    }
  }

  /* through the warp's own rows of Q's buffer; the warpgroup's QK^T are all done */
  named_sync(1 + wg, 128);
  float *lse = p.lse + ((size_t)t.batch * p.heads + t.head) * p.seqlen_q;
  T *o = (T *)p.o + t.batch * p.o_batch + t.head * p.o_head;
#pragma unroll
  for (int i = 0; i < MT; i++) {
    int first_row = wg_row + i * 64 + warp * 16, in_tile = (wg * MT + i) * 64 + warp * 16;
    f[i].finish(lse + first_row, p.seqlen_q - first_row, p.scale, lane);
    f[i].template stage<BM * 128>(base + in_tile * 128, lane);
    __syncwarp();
    constexpr int chunks = D / 8; /* a row */
#pragma unroll
    for (int c = lane; c < 16 * chunks; c += 32) {
      int row = c / chunks, chunk = c % chunks;
      uint4 bits = *(const uint4 *)(tiles + chunk / 8 * (BM * 128) + (in_tile + row) * 128 +
                                    (((chunk % 8) ^ (row & 7)) << 4));
      if (first_row + row < p.seqlen_q) *(uint4 *)(o + (first_row + row) * p.o_row + chunk * 8) = bits;
    }
  }
#endif
}
