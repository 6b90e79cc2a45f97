/* FlashAttention-2 forward with mma.sync m16n8k16 and cp.async.
 *
 * A CTA owns block_m rows of one head; warp w the rows w * block_m / num_warps onward. Q stays in shared memory and is
 * read by ldmatrix in every step, as in FlashAttention-2. K and V tiles arrive by cp.async, 16 bytes a thread, rows
 * swizzled in 16-byte chunks.
 *
 * schedule stages, num_stages >= 2: that many K and V buffers each, every tile its own commit group; a wait (wait_group
 * + __syncthreads) before QK^T for K and after the softmax for V; a buffer is refilled right after the next wait's
 * barrier shows that all are done with it. schedule stages, num_stages = 1: one buffer that K and V take in turn;
 * nothing overlaps. schedule interleaved: one buffer each; V is fetched during QK^T, the next K during softmax and PV.
 *
 * seqlen_q must be a multiple of block_m and seqlen_kv of block_n, unless `ragged`: then rows past the end are copied
 * as zeros (cp.async with a source size of 0), the last tile of keys is masked, and rows past seqlen_q are not
 * written. Only the last tile pays: all others run the code of the even kernel.
 *
 * `windowed`: a sliding window; tiles across its left edge are masked, then those that every row sees whole are not,
 * then those across its right edge are. `drops`: elements of P are dropped where they are packed for the second product
 * (dropout.h). head_dim_v: columns of V and O where they are not those of Q and K.
 *
 * `by_registers` (copy=ldg): K and V come through registers, with one or two stages. A tile is asked for a step ahead
 * and stored where the step would wait for it; of one buffer K is asked for where it is needed, V ahead of the softmax.
 * `persistent`: as many CTAs as fit, each takes every gridDim-th tile. `most_registers`: a cap (__maxnreg__), or 0. */
#pragma once

#include "attention.h"
#include "bench.h"
#include "online_softmax.h"

namespace flash2_mma {

enum class Schedule { stages, interleaved };

template <int block_m_, int block_n_, int num_warps_, int num_stages_, int head_dim_, bool causal_, Schedule schedule_,
          bool ragged_ = false, bool windowed_ = false, bool drops_ = false, int head_dim_v_ = head_dim_,
          bool by_registers_ = false, bool persistent_ = false, int most_registers_ = 0>
struct Shape {
  static constexpr int block_m = block_m_, block_n = block_n_, num_warps = num_warps_, head_dim = head_dim_,
                       head_dim_v = head_dim_v_;
  static constexpr bool causal = causal_, ragged = ragged_, windowed = windowed_, drops = drops_;
  static constexpr bool by_registers = by_registers_, persistent = persistent_;
  static constexpr int most_registers = most_registers_;
  static constexpr Schedule schedule = schedule_;
  static constexpr int num_stages = schedule_ == Schedule::interleaved ? 1 : num_stages_;
  static constexpr bool single_buffer = schedule_ == Schedule::stages && num_stages_ == 1;
  static constexpr int num_threads = num_warps * 32;
  static constexpr int warp_rows = block_m / num_warps;
  static constexpr int m_tiles = warp_rows / 16;
  static constexpr int n_tiles = block_n / 8;
  static constexpr int d_tiles = head_dim_v / 8;
  static constexpr int row_chunks = head_dim / 8;
  static constexpr int q_bytes = block_m * head_dim * 2;
  static constexpr int tile_bytes = block_n * head_dim * 2, v_tile_bytes = block_n * head_dim_v * 2;
  static constexpr int o_bytes = block_m * head_dim_v * 2; /* if V is wider it lies over all buffers */
  static constexpr int buffer_bytes = single_buffer ? (tile_bytes > v_tile_bytes ? tile_bytes : v_tile_bytes)
                                                    : num_stages * (tile_bytes + v_tile_bytes);
  static constexpr int shared_bytes = q_bytes + buffer_bytes > o_bytes ? q_bytes + buffer_bytes : o_bytes;
  static_assert(warp_rows % 16 == 0 && block_n % 16 == 0 && head_dim % 32 == 0 && head_dim_v % 32 == 0);
  static_assert(!drops || block_n % 32 == 0);
  static_assert(!persistent || most_registers == 0);
  static_assert(!by_registers || (schedule == Schedule::stages && num_stages_ <= 2 && !ragged && !windowed && !drops));
};

__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Where a 16-byte chunk of a row lies. Chunks are swizzled within groups of eight, of which rows of 64 columns and
 * their multiples are made; within groups of four, by every second row, where a row is or ends with half a group. */
template <int row_chunks>
__device__ __forceinline__ uint32_t swizzled_in(uint32_t row, uint32_t chunk) {
  return (row * row_chunks + (chunk ^ (row_chunks % 8 == 4 ? row / 2 & 3 : row & 7))) * 16;
}
template <class S>
__device__ __forceinline__ uint32_t swizzled(uint32_t row, uint32_t chunk) {
  return swizzled_in<S::row_chunks>(row, chunk);
}

template <class S, int rows, int columns = S::head_dim>
__device__ __forceinline__ void copy_tile(uint32_t to, const __half *from) {
  constexpr int row_chunks = columns / 8;
  static_assert(rows * row_chunks % S::num_threads == 0);
#pragma unroll
  for (int i = 0; i < rows * row_chunks / S::num_threads; i++) {
    uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads, row = index / row_chunks, chunk = index % row_chunks;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + swizzled_in<row_chunks>(row, chunk)),
                 "l"(from + row * columns + chunk * 8)
                 : "memory");
  }
}

/* The same where only the first `valid` rows exist; the others become zero. */
template <class S, int rows, int columns = S::head_dim>
__device__ __forceinline__ void copy_tile_part(uint32_t to, const __half *from, int valid) {
  constexpr int row_chunks = columns / 8;
#pragma unroll
  for (int i = 0; i < rows * row_chunks / S::num_threads; i++) {
    uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads, row = index / row_chunks, chunk = index % row_chunks;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + swizzled_in<row_chunks>(row, chunk)),
                 "l"(from + row * columns + chunk * 8), "r"((int)row < valid ? 16 : 0)
                 : "memory");
  }
}

/* A tile on its way through registers. */
template <class S, int rows, int columns>
struct HeldTile {
  static constexpr int row_chunks = columns / 8, num_chunks = rows * row_chunks / S::num_threads;
  static_assert(rows * row_chunks % S::num_threads == 0, "each thread has as many chunks");
  uint4 chunks[num_chunks];

  __device__ __forceinline__ void load(const __half *from) {
#pragma unroll
    for (int i = 0; i < num_chunks; i++) {
      uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads;
      chunks[i] = __ldg((const uint4 *)(from + index / row_chunks * columns + index % row_chunks * 8));
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const {
#pragma unroll
    for (int i = 0; i < num_chunks; i++) {
      uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads;
      asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(
                       to + swizzled_in<row_chunks>(index / row_chunks, index % row_chunks)),
                   "r"(chunks[i].x), "r"(chunks[i].y), "r"(chunks[i].z), "r"(chunks[i].w)
                   : "memory");
    }
  }
};

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void wait_and_sync() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
  __syncthreads();
}

__device__ __forceinline__ void ldmatrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void ldmatrix_trans(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ void mma(float *d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class S>
struct State {
  float o[S::m_tiles][S::d_tiles * 4];
  float s[S::m_tiles][S::n_tiles * 4];
  RowState<S::m_tiles> rows;
};

/* s = Q K^T for this warp's rows. */
template <class S>
__device__ __forceinline__ void score(State<S> &st, uint32_t q, uint32_t k, uint32_t warp_row) {
  uint32_t lane = threadIdx.x % 32;
  fill_zero(st.s);
#pragma unroll
  for (int kk = 0; kk < S::head_dim / 16; kk++) {
    uint32_t a[S::m_tiles][4];
#pragma unroll
    for (int m = 0; m < S::m_tiles; m++)
      ldmatrix(a[m], q + swizzled<S>(warp_row + (uint32_t)m * 16 + lane % 16, (uint32_t)kk * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < S::n_tiles; n += 2) {
      uint32_t b[4];
      ldmatrix(b, k + swizzled<S>((uint32_t)n * 8 + lane / 16 * 8 + lane % 8, (uint32_t)kk * 2 + lane / 8 % 2));
#pragma unroll
      for (int m = 0; m < S::m_tiles; m++) {
        mma(&st.s[m][n * 4], a[m], b[0], b[1]);
        mma(&st.s[m][n * 4 + 4], a[m], b[2], b[3]);
      }
    }
  }
}

template <class S>
__device__ __forceinline__ void softmax(State<S> &st, float scale_log2) {
  float correction[S::m_tiles][2];
  softmax_step(st.s, st.rows, correction, scale_log2);
  rescale(st.o, correction);
}

/* What becomes of P's fragment for 16 keys from key tile kk on, of row tile m, before it is multiplied. */
struct KeepAll {
  __device__ __forceinline__ void operator()(uint32_t (&)[4], int, int) {}
};

/* o += P V. */
template <class S, class Drop = KeepAll>
__device__ __forceinline__ void accumulate(State<S> &st, uint32_t v, Drop drop = {}) {
  uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int kk = 0; kk < S::block_n / 16; kk++) {
    uint32_t a[S::m_tiles][4];
#pragma unroll
    for (int m = 0; m < S::m_tiles; m++) {
      p_fragment(a[m], st.s[m], kk);
      drop(a[m], m, kk);
    }
#pragma unroll
    for (int d = 0; d < S::d_tiles; d += 2) {
      uint32_t b[4];
      ldmatrix_trans(b, v + swizzled_in<S::d_tiles>((uint32_t)kk * 16 + lane % 16, (uint32_t)d + lane / 16));
#pragma unroll
      for (int m = 0; m < S::m_tiles; m++) {
        mma(&st.o[m][d * 4], a[m], b[0], b[1]);
        mma(&st.o[m][d * 4 + 4], a[m], b[2], b[3]);
      }
    }
  }
}

/* O and LSE of the tile's first `valid` rows (all, unless ragged); O passes through the warp's own rows of Q's buffer
 * so that the stores are 16 bytes wide. Where it has more columns it lies over all buffers, which all warps have left
 * then. */
template <class S>
__device__ __forceinline__ void finish(State<S> &st, uint32_t q, uint32_t warp_row, __half *o, float *lse,
                                       float scale_log2, int valid) {
  constexpr int o_chunks = S::d_tiles, pitch = S::d_tiles > S::row_chunks ? S::d_tiles : S::row_chunks;
  uint32_t lane = threadIdx.x % 32;
  normalize<16, S::ragged>(st.o, st.rows, lse, warp_row, scale_log2, valid);
  if (S::d_tiles > S::row_chunks) __syncthreads();
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int d = 0; d < S::d_tiles; d++) {
        uint32_t packed = pack(st.o[m][d * 4 + half * 2], st.o[m][d * 4 + half * 2 + 1]),
                 row = warp_row + (uint32_t)(m * 16 + half * 8) + lane / 4;
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(q + swizzled_in<pitch>(row, (uint32_t)d) + lane % 4 * 4),
                     "r"(packed)
                     : "memory");
      }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < S::warp_rows * o_chunks / 32; i++) {
    uint32_t index = (uint32_t)i * 32 + lane, row = warp_row + index / o_chunks, chunk = index % o_chunks;
    uint4 data;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                 : "r"(q + swizzled_in<pitch>(row, chunk)));
    if (!S::ragged || (int)row < valid) *(uint4 *)(o + row * S::head_dim_v + chunk * 8) = data;
  }
}

template <class S>
struct Buffers {
  uint32_t q, k, v;
  const __half *k_from, *v_from;
  int num_tiles, seqlen_kv;

  template <int columns>
  __device__ __forceinline__ void fetch(uint32_t to, const __half *from, int j) const {
    if (j < num_tiles) {
      int valid = seqlen_kv - j * S::block_n;
      to += (uint32_t)(j % S::num_stages) * (S::block_n * columns * 2);
      from += (size_t)j * S::block_n * columns;
      if (S::ragged && valid < S::block_n)
        copy_tile_part<S, S::block_n, columns>(to, from, valid);
      else
        copy_tile<S, S::block_n, columns>(to, from);
    }
    commit();
  }
  __device__ __forceinline__ void fetch_k(int j) const { fetch<S::head_dim>(k, k_from, j); }
  __device__ __forceinline__ void fetch_v(int j) const { fetch<S::head_dim_v>(v, v_from, j); }
};

/* Where a warp's scores lie: rows and columns as the mask counts them, of the tile of keys that j counts from. */
struct Place {
  int row, first_column, window;
  float scale_log2;
  DropoutRows dropout;
};

template <class S, bool masked>
__device__ __forceinline__ void step(State<S> &st, const Buffers<S> &b, int j, uint32_t warp_row, const Place &at) {
  int column = at.first_column + j * S::block_n;
  uint32_t k = b.k + (uint32_t)(j % S::num_stages) * S::tile_bytes,
           v = b.v + (uint32_t)(j % S::num_stages) * S::v_tile_bytes;
  constexpr int pending = 2 * S::num_stages - 2;
  if (S::num_stages > 1 && j == 0)
    wait_and_sync<pending + 1>();
  else
    wait_and_sync<pending>();
  if (S::schedule == Schedule::interleaved)
    b.fetch_v(j);
  else if (!S::single_buffer && j > 0)
    b.fetch_v(j - 1 + S::num_stages);
  score(st, b.q, k, warp_row);
  if (masked && S::windowed)
    mask_window<16, S::causal>(st.s, at.row, column, at.window);
  else if (masked && S::causal)
    mask_causal<16>(st.s, at.row, column);
  if (masked && S::ragged) mask_columns(st.s, b.seqlen_kv - j * S::block_n);
  if (S::single_buffer) {
    __syncthreads();
    b.fetch_v(j);
    wait_and_sync<0>();
    softmax(st, at.scale_log2);
  } else if (S::schedule == Schedule::interleaved) {
    wait_and_sync<0>();
    b.fetch_k(j + 1);
    softmax(st, at.scale_log2);
  } else {
    softmax(st, at.scale_log2);
    wait_and_sync<pending>();
    b.fetch_k(j + S::num_stages);
  }
  if constexpr (S::drops)
    accumulate(st, v, DropoutTile<S::m_tiles>{at.dropout, (uint32_t)column});
  else
    accumulate(st, v);
  if (S::single_buffer) {
    __syncthreads();
    b.fetch_k(j + 1);
  }
}

/* A step whose tiles come through registers: K of step j is held as it begins, and V too with two buffers. */
template <class S>
struct HeldTiles {
  HeldTile<S, S::block_n, S::head_dim> k;
  HeldTile<S, S::block_n, S::head_dim_v> v;

  __device__ __forceinline__ void load_k(const Buffers<S> &b, int j) {
    if (j < b.num_tiles) k.load(b.k_from + (size_t)j * S::block_n * S::head_dim);
  }
  __device__ __forceinline__ void load_v(const Buffers<S> &b, int j) {
    if (j < b.num_tiles) v.load(b.v_from + (size_t)j * S::block_n * S::head_dim_v);
  }
};

template <class S, bool masked>
__device__ __forceinline__ void step_by_registers(State<S> &st, const Buffers<S> &b, HeldTiles<S> &held, int j,
                                                  uint32_t warp_row, const Place &at) {
  uint32_t k = b.k + (uint32_t)(j % S::num_stages) * S::tile_bytes,
           v = b.v + (uint32_t)(j % S::num_stages) * S::v_tile_bytes;
  if (S::single_buffer) {
    __syncthreads();
    held.load_k(b, j);
  }
  held.k.store(k);
  __syncthreads();
  if (!S::single_buffer) held.load_k(b, j + 1);
  score(st, b.q, k, warp_row);
  if (masked && S::causal) mask_causal<16>(st.s, at.row, at.first_column + j * S::block_n);
  if (S::single_buffer) {
    __syncthreads();
    held.load_v(b, j);
  }
  softmax(st, at.scale_log2);
  held.v.store(v);
  __syncthreads();
  if (!S::single_buffer) held.load_v(b, j + 1);
  accumulate(st, v);
}

/* Tiles of keys: `first` up to `end` are walked, and from `whole` up to `unmasked` each row sees all of a tile. */
struct KeyTiles {
  int first, whole, unmasked, end;
};

/* diagonal: the last key that the first row of the CTA's tile sees under a causal mask. */
template <class S>
__device__ __forceinline__ KeyTiles key_tiles(const TileParams &p, int diagonal) {
  constexpr int n = S::block_n;
  KeyTiles t = {0, 0, p.seqlen_kv / n, (p.seqlen_kv + n - 1) / n};
  if (S::causal || S::windowed) {
    int right = diagonal + (S::causal ? 0 : p.window - 1); /* as much of the first row's keys */
    t.end = max(0, min(t.end, (right + S::block_m + n - 1) / n));
    t.unmasked = max(0, min(min(t.end, t.unmasked), (right + 1) / n));
  }
  if (S::windowed) {
    int left = diagonal - p.window + 1; /* the first key of the first row */
    t.first = min(t.end, max(0, left) / n);
    t.whole = min(t.end, (max(0, left + S::block_m - 1) + n - 1) / n);
    t.unmasked = max(t.whole, t.unmasked);
  }
  return t;
}

template <class S>
__device__ __forceinline__ void forward_tile(const TileParams &p, int index) {
  extern __shared__ __align__(128) uint8_t shared[];
  Tile tile = tile_of(p, index);
  size_t first_row = (size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m,
         first_key = (size_t)tile.kv_head * (size_t)p.seqlen_kv;
  uint32_t warp_row = threadIdx.x / 32 * S::warp_rows;
  int row_offset = tile.m * S::block_m + p.seqlen_kv - p.seqlen_q;
  KeyTiles t = key_tiles<S>(p, row_offset);

  Buffers<S> b;
  b.q = shared_address(shared);
  b.k = b.q + S::q_bytes;
  b.v = S::single_buffer ? b.k : b.k + S::num_stages * S::tile_bytes;
  b.k_from = p.k + first_key * S::head_dim + (size_t)t.first * S::block_n * S::head_dim;
  b.v_from = p.v + first_key * S::head_dim_v + (size_t)t.first * S::block_n * S::head_dim_v;
  b.num_tiles = t.end - t.first;
  b.seqlen_kv = p.seqlen_kv - t.first * S::block_n;
  int valid_rows = p.seqlen_q - tile.m * S::block_m;
  Place at = {(int)warp_row + row_offset,
              t.first * S::block_n,
              p.window,
              p.scale_log2,
              {(uint32_t)tile.head, (uint32_t)tile.m * S::block_m + warp_row, p.most_kept}};

  State<S> st;
  st.rows.clear();
  fill_zero(st.o);

  if (S::ragged && valid_rows < S::block_m)
    copy_tile_part<S, S::block_m>(b.q, p.q + first_row * S::head_dim, valid_rows);
  else
    copy_tile<S, S::block_m>(b.q, p.q + first_row * S::head_dim);
  if constexpr (S::by_registers) {
    HeldTiles<S> held;
    commit();
    if (!S::single_buffer) {
      held.load_k(b, 0);
      held.load_v(b, 0);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    int j = 0;
    for (; j < t.unmasked; j++) step_by_registers<S, false>(st, b, held, j, warp_row, at);
    if (S::causal)
      for (; j < t.end; j++) step_by_registers<S, true>(st, b, held, j, warp_row, at);
    finish(st, b.q, warp_row, p.o + first_row * S::head_dim_v, p.lse + first_row, p.scale_log2, valid_rows);
    return;
  }
  if (S::schedule == Schedule::interleaved || S::single_buffer) {
    b.fetch_k(0);
  } else {
#pragma unroll
    for (int s = 0; s < S::num_stages; s++) {
      b.fetch_k(s);
      b.fetch_v(s);
    }
  }
  int j = 0;
  if (S::windowed)
    for (; j < t.whole - t.first; j++) step<S, true>(st, b, j, warp_row, at);
  for (; j < t.unmasked - t.first; j++) step<S, false>(st, b, j, warp_row, at);
  if (S::causal || S::ragged || S::windowed)
    for (; j < t.end - t.first; j++) step<S, true>(st, b, j, warp_row, at);
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (S::drops) scale_output(st.o, p.output_scale);
  finish(st, b.q, warp_row, p.o + first_row * S::head_dim_v, p.lse + first_row, p.scale_log2, valid_rows);
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward(TileParams p) {
  forward_tile<S>(p, (int)blockIdx.x);
}

template <class S>
__global__ __maxnreg__(S::most_registers) void forward_capped(TileParams p) {
  forward_tile<S>(p, (int)blockIdx.x);
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward_persistent(TileParams p, int num_tiles) {
  for (int index = (int)blockIdx.x; index < num_tiles; index += (int)gridDim.x) {
    forward_tile<S>(p, index);
    __syncthreads(); /* all warps have read O from Q's buffer, which the next tile fills */
  }
}

template <class S>
const void *kernel_of() {
  if constexpr (S::persistent) return (const void *)forward_persistent<S>;
  else if constexpr (S::most_registers > 0) return (const void *)forward_capped<S>;
  else return (const void *)forward<S>;
}

/* CTAs that the GPU holds at once. */
template <class S>
unsigned num_resident() {
  int device = 0, num_sms = 0, per_sm = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaFuncSetAttribute(kernel_of<S>(), cudaFuncAttributeMaxDynamicSharedMemorySize, S::shared_bytes));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel_of<S>(), S::num_threads, S::shared_bytes));
  return (unsigned)(num_sms * per_sm);
}

template <class S>
unsigned num_tiles(const Problem &p) {
  return (unsigned)((p.seqlen_q + S::block_m - 1) / S::block_m) * (unsigned)(p.batch * p.heads);
}

template <class S>
Launch plan(const Problem &p) {
  unsigned tiles = num_tiles<S>(p), resident = S::persistent ? num_resident<S>() : tiles;
  return {tiles < resident ? tiles : resident, (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  TileParams params = tile_params(p, S::block_m);
  if constexpr (S::persistent)
    forward_persistent<S><<<l.grid, l.block, l.shared_bytes, stream>>>(params, (int)num_tiles<S>(p));
  else if constexpr (S::most_registers > 0)
    forward_capped<S><<<l.grid, l.block, l.shared_bytes, stream>>>(params);
  else
    forward<S><<<l.grid, l.block, l.shared_bytes, stream>>>(params);
}

template <class S>
Instance instance() {
  return {{"flash2_fwd", "mma", S::by_registers ? "ldg" : "cp_async",
           S::schedule == Schedule::stages ? "stages" : "interleaved", S::block_m, S::block_n, S::num_warps,
           S::num_stages, S::head_dim, S::causal, S::persistent, S::ragged, S::windowed, S::drops, "", 0,
           S::head_dim_v == S::head_dim ? 0 : S::head_dim_v, "", S::most_registers},
          kernel_of<S>(),
          plan<S>,
          run<S>};
}

}  // namespace flash2_mma
