/* Matrix products by tiles with wgmma and TMA, warp-specialised as CUTLASS's cooperative kernels: C = A B.
 *
 * A [m][k], B [k][n] or, with transpose_b, [n][k], C [m][n], f16, batch after batch. One producer warpgroup (one thread
 * issues TMA), num_warps / 4 consumer warpgroups, each block_m / groups rows and all columns of the CTA's tile.
 * num_stages buffers of A and B with full and empty mbarriers. A step's products are issued before those of the step
 * before are waited for, whose buffer is given back then. persistent: a CTA walks tiles with the grid's stride, and the
 * producer runs ahead into the next tile; otherwise one tile a CTA.
 *
 * C leaves from registers, two columns a lane and store; or, staged, in pieces of 32 columns: a group packs a piece
 * into shared memory by stmatrix, one thread stores it by TMA, and two pieces may be under way while the next is
 * packed, so that the last stores of a tile run beside the next tile's products. Split K: parts leave their f32 sums by
 * registers, and product_mma::add_splits adds them up.
 *
 * Marks hears where a CTA is, from the thread that issues copies and from the first of consumers (product_trace.cu); the
 * kernels that are measured have none.
 *
 * m, n and k must be multiples of the blocks. */
#pragma once

#include "hopper.h"
#include "product_mma.h"

namespace product_wgmma {

using product_mma::Product;

template <int block_m_, int block_n_, int block_k_, int num_warps_, int num_stages_, bool transpose_b_,
          bool persistent_, bool staged_>
struct Shape {
  static constexpr int block_m = block_m_, block_n = block_n_, block_k = block_k_, num_warps = num_warps_,
                       num_stages = num_stages_;
  static constexpr bool transpose_b = transpose_b_, persistent = persistent_, staged = staged_;
  static constexpr int num_groups = num_warps / 4, num_threads = (num_groups + 1) * 128;
  static constexpr int group_rows = block_m / num_groups, m_tiles = group_rows / 64;
  static constexpr int a_bytes = block_m * block_k * 2, b_bytes = block_k * block_n * 2;
  static constexpr int piece_columns = 32, num_pieces = block_n / piece_columns, buffers = 2;
  static constexpr int piece_bytes = group_rows * piece_columns * 2; /* of a group */
  static constexpr int staging_bytes = staged ? num_groups * buffers * piece_bytes : 0;
  static constexpr int shared_bytes = 1024 + num_stages * (a_bytes + b_bytes) + staging_bytes;
  static_assert(num_groups == 1 || num_groups == 2);
  static_assert(group_rows % 64 == 0 && block_k % 64 == 0 && block_n % 64 == 0 && num_stages >= 2);
};

struct Maps {
  CUtensorMap a, b, c;
};

struct Bars {
  uint32_t base;
  int num_stages;
  __device__ __forceinline__ uint32_t full(int step) const { return base + (uint32_t)(step % num_stages) * 8; }
  __device__ __forceinline__ uint32_t empty(int step) const {
    return base + (uint32_t)(num_stages + step % num_stages) * 8;
  }
  __device__ __forceinline__ uint32_t parity(int step) const { return (uint32_t)(step / num_stages) & 1; }
};

/* Where a tile lies, and which steps of K it takes. */
struct Place {
  int batch, row, column, split, first_step, num_steps;
};

template <class S>
__device__ __host__ __forceinline__ int tiles_of(const Product &p) {
  return p.batch * p.splits * (p.m / S::block_m) * (p.n / S::block_n);
}

template <class S>
__device__ __forceinline__ Place place(const Product &p, int index) {
  int tiles_m = p.m / S::block_m, tiles_n = p.n / S::block_n, tile = index % (tiles_m * tiles_n);
  int matrix = index / (tiles_m * tiles_n), steps = p.k / S::block_k;
  int per_split = (steps + p.splits - 1) / p.splits;
  Place at;
  at.row = (p.m_first ? tile % tiles_m : tile / tiles_n) * S::block_m;
  at.column = (p.m_first ? tile / tiles_m : tile % tiles_n) * S::block_n;
  at.split = matrix % p.splits;
  at.batch = matrix / p.splits;
  at.first_step = at.split * per_split;
  at.num_steps = min(per_split, steps - at.first_step);
  return at;
}

/* Places of a CTA: it begins, its warps have met; for each tile, its place is known, its first copy is issued, the data
 * of its first step are there, its last products are done, C has left registers. */
enum class Mark { began, met, placed, asked, data, looped, stored };
struct NoMarks {
  __device__ __forceinline__ explicit NoMarks(const Product &) {}
  __device__ __forceinline__ void at(Mark) {}
  __device__ __forceinline__ void next_tile() {}
};

/* `before`: steps of earlier tiles; stages go on from one tile to the next. A tile is panels of 64 columns. */
template <class S, class Marks>
__device__ __forceinline__ void produce(const Maps &maps, const Place &at, int before, Bars bars, uint32_t a,
                                        uint32_t b, Marks &marks) {
  for (int i = 0; i < at.num_steps; i++) {
    int step = before + i, depth = (at.first_step + i) * S::block_k;
    uint32_t full = bars.full(step), stage = (uint32_t)(step % S::num_stages);
    if (step >= S::num_stages) hopper::mbarrier_wait(bars.empty(step), bars.parity(step - S::num_stages));
    hopper::mbarrier_expect(full, S::a_bytes + S::b_bytes);
#pragma unroll
    for (int panel = 0; panel < S::block_k / 64; panel++)
      hopper::tensor_load_3d(a + stage * S::a_bytes + (uint32_t)panel * S::block_m * 128, &maps.a, depth + panel * 64,
                             at.row, at.batch, full);
#pragma unroll
    for (int panel = 0; panel < (S::transpose_b ? S::block_k : S::block_n) / 64; panel++) {
      uint32_t to = b + stage * S::b_bytes + (uint32_t)panel * (S::transpose_b ? S::block_n : S::block_k) * 128;
      if (S::transpose_b)
        hopper::tensor_load_3d(to, &maps.b, depth + panel * 64, at.column, at.batch, full);
      else
        hopper::tensor_load_3d(to, &maps.b, at.column + panel * 64, depth, at.batch, full);
    }
    if (i == 0) marks.at(Mark::asked);
  }
}

/* Issues the products of a step: m_tiles of 64 rows, 16 of K each. */
template <class S>
__device__ __forceinline__ void issue(float (&sums)[S::m_tiles][S::block_n / 2], uint32_t a, uint32_t b, bool adds) {
  hopper::wgmma_fence();
#pragma unroll
  for (int kk = 0; kk < S::block_k / 16; kk++) {
    uint32_t of_k = (uint32_t)(kk % 4) * 32, panel = (uint32_t)(kk / 4);
    uint64_t of_b = S::transpose_b ? hopper::descriptor(b + panel * S::block_n * 128 + of_k, 16, 1024)
                                   : hopper::descriptor(b + (uint32_t)kk * 2048, S::block_k * 128, 1024);
#pragma unroll
    for (int m = 0; m < S::m_tiles; m++) {
      uint64_t of_a = hopper::descriptor(a + panel * S::block_m * 128 + (uint32_t)m * 64 * 128 + of_k, 16, 1024);
      Wgmma<S::block_n>::template ss<S::transpose_b ? 0 : 1>(sums[m], of_a, of_b, adds || kk > 0);
    }
  }
  hopper::wgmma_commit();
}

/* From registers, two columns of a row a lane. */
template <class S>
__device__ __forceinline__ void store_direct(const float (&sums)[S::m_tiles][S::block_n / 2], const Product &p,
                                             const Place &at, int first_row) {
  uint32_t lane = threadIdx.x % 32, warp_row = threadIdx.x % 128 / 32 * 16;
  size_t matrix = (size_t)(at.batch * p.splits + at.split) * (size_t)p.m * (size_t)p.n;
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      size_t row = (size_t)(at.row + first_row + m * 64 + half * 8) + warp_row + lane / 4;
      size_t to = matrix + row * (size_t)p.n + (size_t)at.column + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < S::block_n / 8; n++) {
        float low = sums[m][n * 4 + half * 2], high = sums[m][n * 4 + half * 2 + 1];
        if (p.splits > 1)
          *(float2 *)(p.sums + to + n * 8) = make_float2(low, high);
        else
          *(uint32_t *)(p.c + to + n * 8) = pack(low, high);
      }
    }
}

__device__ __forceinline__ void stmatrix(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/* Pieces of 32 columns, rows of 64 bytes whose 16-byte chunks are swizzled as TMA does with 64 bytes. */
template <class S>
__device__ __forceinline__ void store_staged(const float (&sums)[S::m_tiles][S::block_n / 2], const Maps &maps,
                                             const Place &at, int group, uint32_t staging) {
  uint32_t lane = threadIdx.x % 32, warp_row = threadIdx.x % 128 / 32 * 16;
  bool leads = threadIdx.x % 128 == 0;
#pragma unroll
  for (int piece = 0; piece < S::num_pieces; piece++) {
    uint32_t buffer = staging + (uint32_t)(group * S::buffers + piece % S::buffers) * S::piece_bytes;
    if (leads) hopper::tensor_store_wait<S::buffers - 1>();
    hopper::named_sync(2 + group, 128);
#pragma unroll
    for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
      for (int part = 0; part < 2; part++) {
        const float *s = &sums[m][(piece * 4 + part * 2) * 4];
        uint32_t row = (uint32_t)m * 64 + warp_row + lane % 16, chunk = (uint32_t)part * 2 + lane / 16;
        stmatrix(buffer + row * 64 + (chunk ^ (row / 2 & 3)) * 16, pack(s[0], s[1]), pack(s[2], s[3]), pack(s[4], s[5]),
                 pack(s[6], s[7]));
      }
    hopper::proxy_fence();
    hopper::named_sync(2 + group, 128);
    if (leads) {
      hopper::tensor_store_3d(&maps.c, at.column + piece * S::piece_columns, at.row + group * S::group_rows, at.batch,
                              buffer);
      hopper::tensor_store_commit();
    }
  }
}

template <class S, class Marks>
__device__ __forceinline__ void consume(const Product &p, const Maps &maps, const Place &at, int before, Bars bars,
                                        uint32_t a, uint32_t b, uint32_t staging, Marks &marks) {
  int group = (int)threadIdx.x / 128 - 1;
  float sums[S::m_tiles][S::block_n / 2];
  uint32_t own = a + (uint32_t)(group * S::group_rows) * 128;
  auto keep_all = [&] {
#pragma unroll
    for (int m = 0; m < S::m_tiles; m++) hopper::keep(sums[m]);
  };
  auto release = [&](int step) {
    if (threadIdx.x % 32 == 0) hopper::mbarrier_arrive(bars.empty(step));
  };
  hopper::mbarrier_wait(bars.full(before), bars.parity(before));
  marks.at(Mark::data);
  uint32_t stage = (uint32_t)(before % S::num_stages);
  issue<S>(sums, own + stage * S::a_bytes, b + stage * S::b_bytes, false);
  for (int i = 1; i < at.num_steps; i++) {
    int step = before + i;
    stage = (uint32_t)(step % S::num_stages);
    hopper::mbarrier_wait(bars.full(step), bars.parity(step));
    issue<S>(sums, own + stage * S::a_bytes, b + stage * S::b_bytes, true);
    hopper::wgmma_wait<1>();
    release(step - 1);
  }
  hopper::wgmma_wait<0>();
  keep_all();
  release(before + at.num_steps - 1);
  marks.at(Mark::looped);
  if (S::staged)
    store_staged<S>(sums, maps, at, group, staging);
  else
    store_direct<S>(sums, p, at, group * S::group_rows);
  marks.at(Mark::stored);
}

template <class S, class Marks>
__global__ __launch_bounds__(S::num_threads, 1) void matmul(Product p, const __grid_constant__ Maps maps) {
  Marks marks(p);
  extern __shared__ uint8_t raw[];
  __shared__ __align__(8) uint64_t bar_storage[2 * S::num_stages];
  uint32_t a = (hopper::smem(raw) + 1023) / 1024 * 1024, b = a + S::num_stages * S::a_bytes,
           staging = b + S::num_stages * S::b_bytes;
  Bars bars = {hopper::smem(bar_storage), S::num_stages};
  marks.at(Mark::began);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < S::num_stages; stage++) {
      hopper::mbarrier_init(bars.full(stage), 1);
      hopper::mbarrier_init(bars.empty(stage), (uint32_t)S::num_warps);
    }
    hopper::mbarrier_init_fence();
  }
  __syncthreads();
  marks.at(Mark::met);
  int num_tiles = S::persistent ? tiles_of<S>(p) : 0, index = (int)blockIdx.x, before = 0;
  if (threadIdx.x < 128) {
    if (S::num_groups == 2) hopper::registers_shrink<24>();
    if (threadIdx.x == 0) do {
        Place at = place<S>(p, index);
        marks.at(Mark::placed);
        produce<S>(maps, at, before, bars, a, b, marks);
        before += at.num_steps;
        index += (int)gridDim.x;
        marks.next_tile();
      } while (index < num_tiles);
  } else {
    if (S::num_groups == 2) hopper::registers_grow<240>();
    do {
      Place at = place<S>(p, index);
      consume<S>(p, maps, at, before, bars, a, b, staging, marks);
      before += at.num_steps;
      index += (int)gridDim.x;
      marks.next_tile();
    } while (index < num_tiles);
    if (S::staged && threadIdx.x % 128 == 0) hopper::tensor_store_wait<0>();
  }
}

template <class S, class Marks = NoMarks>
unsigned num_ctas(const Product &p) {
  int tiles = tiles_of<S>(p), resident = tiles;
  if (S::persistent)
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, matmul<S, Marks>, S::num_threads, S::shared_bytes));
  return (unsigned)std::min(tiles, resident * bench::num_sms());
}

template <class S>
Maps make_maps(const Product &p) {
  uint64_t m = (uint64_t)p.m, n = (uint64_t)p.n, k = (uint64_t)p.k, batch = (uint64_t)p.batch;
  return {hopper::tensor_map(p.a, k, m, batch, S::block_m),
          S::transpose_b ? hopper::tensor_map(p.b[0], k, n, batch, S::block_n)
                         : hopper::tensor_map(p.b[0], n, k, batch, S::block_k),
          hopper::tensor_map(p.c, n, m, batch, S::group_rows, S::piece_columns)};
}

template <class S>
void run(const Product &p) {
  matmul<S, NoMarks><<<product_wgmma::num_ctas<S>(p), S::num_threads, S::shared_bytes>>>(p, make_maps<S>(p));
  product_mma::run_addition(p);
}

}  // namespace product_wgmma
