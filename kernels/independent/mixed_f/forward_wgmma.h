/* FlashAttention-2 forward with wgmma and TMA, all warps alike: thread 0 refills the buffers of a key tile when the CTA
 * is done with it. K and V have STAGES buffers each; a warpgroup has 64 rows. Tiles lie as [D / 64][rows][64] in
 * 128-byte swizzle. */
#pragma once

#include <cuda.h>

#include "hopper.h"
#include "softmax.h"

namespace mixed_f {

template <int D, int BM, int BN, int STAGES>
constexpr int forward_wgmma_shared = 1024 + (BM + 2 * STAGES * BN) * D * 2 + (1 + 2 * STAGES) * 8;

template <class T, int D, int BM, int BN, int W, int STAGES, bool CAUSAL, int MIN_CTAS>
__global__ void __launch_bounds__(W * 32, MIN_CTAS)
    forward_wgmma(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                  const __grid_constant__ CUtensorMap v_map, const __grid_constant__ CUtensorMap o_map,
                  const Attention a, float *__restrict__ lse, TileOrder order) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL) /* nothing for plain compute_90 */
  static_assert(BM == W * 16 && W % 4 == 0, "64 rows a warpgroup");
  constexpr int tile_bytes = BN * D * 2, k_panel = BN * 128, q_panel = BM * 128;
  extern __shared__ __align__(1024) unsigned char shared[];

  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = warp / 4;
  const uint32_t q_tile = (shared_address(shared) + 1023) & ~1023u, ring = q_tile + BM * D * 2;
  const uint32_t q_full = ring + STAGES * 2 * tile_bytes, k_full = q_full + 8, v_full = k_full + STAGES * 8;
  const Place place = place_of(order);
  const int first_row = place.tile * BM, kv_head = place.head / (a.heads / a.kv_heads);
  const int tiles = key_tiles<BM, BN, CAUSAL>(a, first_row);
  const float scale = rsqrtf((float)D), scale_log2 = scale * log2_e;

  auto fetch = [&](int tile) {
    int slot = tile % STAGES;
    uint32_t to = ring + slot * (2 * tile_bytes);
    barrier_expect(k_full + slot * 8, tile_bytes);
#pragma unroll
    for (int c = 0; c < D / 64; c++)
      tma_load(to + c * k_panel, &k_map, k_full + slot * 8, c * 64, tile * BN, kv_head, place.sequence);
    barrier_expect(v_full + slot * 8, tile_bytes);
#pragma unroll
    for (int c = 0; c < D / 64; c++)
      tma_load(to + tile_bytes + c * k_panel, &v_map, v_full + slot * 8, c * 64, tile * BN, kv_head, place.sequence);
  };

  if (thread == 0) {
    tma_prefetch(&q_map);
    tma_prefetch(&k_map);
    tma_prefetch(&v_map);
    for (int i = 0; i < 1 + 2 * STAGES; i++) barrier_init(q_full + i * 8, 1);
    barriers_visible();
  }
  __syncthreads();
  if (thread == 0) {
    barrier_expect(q_full, BM * D * 2);
#pragma unroll
    for (int c = 0; c < D / 64; c++)
      tma_load(q_tile + c * q_panel, &q_map, q_full, c * 64, first_row, place.head, place.sequence);
    for (int s = 0; s < STAGES && s < tiles; s++) fetch(s);
  }

  float out[D / 2];
  RowState state;
#pragma unroll
  for (int i = 0; i < D / 2; i++) out[i] = 0;
  barrier_wait(q_full, 0);

  for (int tile = 0; tile < tiles; tile++) {
    const int slot = tile % STAGES, parity = tile / STAGES & 1;
    const uint32_t k_tile = ring + slot * (2 * tile_bytes), v_tile = k_tile + tile_bytes;

    float s[BN / 2];
    barrier_wait(k_full + slot * 8, parity);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < D / 16; d++)
      wgmma<T>(s, descriptor(q_tile + d / 4 * q_panel + group * (64 * 128) + d % 4 * 32, 16, 1024),
               descriptor(k_tile + d / 4 * k_panel + d % 4 * 32, 16, 1024), d > 0);
    wgmma_commit();
    wgmma_finish(s);

    mask_scores<BN, CAUSAL>(s, a, first_row + warp * 16, tile * BN, lane);
    softmax_step(s, out, state, scale_log2);
    uint32_t p[BN / 16][4];
#pragma unroll
    for (int n = 0; n < BN / 16; n++) as_operand<T>(p[n], &s[n * 8]);

    barrier_wait(v_full + slot * 8, parity);
    pin(out);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < BN / 16; n++) wgmma<T>(out, p[n], descriptor(v_tile + n * (16 * 128), k_panel, 1024));
    wgmma_commit();
    wgmma_finish(out);

    __syncthreads(); /* all warps are done with the buffers */
    if (thread == 0 && tile + STAGES < tiles) fetch(tile + STAGES);
  }

  /* O through Q's place, which the barrier at the end of the loop freed (or which nobody read). */
  float row_lse[2];
  finish(out, state, scale, row_lse);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    int local = warp * 16 + lane / 4 + 8 * h, row = first_row + local;
    if (lane % 4 == 0 && row < a.seqlen_q)
      lse[((size_t)place.sequence * a.heads + place.head) * a.seqlen_q + row] = row_lse[h];
#pragma unroll
    for (int t = 0; t < D / 8; t++)
      store_word(q_tile + t / 8 * q_panel + chunk_at<8>(local, t % 8) + lane % 4 * 4,
                 pack<T>(out[t * 4 + 2 * h], out[t * 4 + 2 * h + 1]));
  }
  shared_visible_to_tma();
  __syncthreads();
  if (thread == 0) {
#pragma unroll
    for (int c = 0; c < D / 64; c++)
      tma_store(&o_map, q_tile + c * q_panel, c * 64, first_row, place.head, place.sequence);
    tma_stores_finish();
  }
#endif
}

}  // namespace mixed_f
