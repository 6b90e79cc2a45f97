/* Which elements of P dropout keeps: FlashAttention-2's numbers (csrc/flash_attn/src/dropout.h, philox.cuh). Philox
 * 4x32 of 7 rounds (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), key 0, gives a lane 16
 * bytes for its 16 elements of a block of 16 rows and 32 columns; a byte above the threshold drops its element. */
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

/* The largest byte that is kept: floor(255 (1 - p)). */
inline uint32_t dropout_threshold(double p) { return (uint32_t)(255.0 * (1.0 - p)); }

struct PhiloxWords {
  uint32_t word[4];
};

__host__ __device__ __forceinline__ PhiloxWords philox7(PhiloxWords c) {
  uint32_t key0 = 0, key1 = 0;
#pragma unroll
  for (int round = 0; round < 7; round++) {
    uint64_t first = (uint64_t)0xd2511f53u * c.word[0], second = (uint64_t)0xcd9e8d57u * c.word[2];
    c = {{(uint32_t)(second >> 32) ^ c.word[1] ^ key0, (uint32_t)second, (uint32_t)(first >> 32) ^ c.word[3] ^ key1,
          (uint32_t)first}};
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return c;
}

/* Whether element (row, column) of a head is kept: a lane of an m16n8 accumulator holds columns 2 (lane % 4) and the
 * next of rows lane / 4 and 8 further on. */
__host__ __device__ inline bool dropout_keeps(uint32_t head, uint32_t row, uint32_t column, uint32_t most_kept) {
  uint32_t lane = row % 8 * 4 + column % 8 / 2, byte = column % 2 + row / 8 % 2 * 2 + column / 8 % 4 * 4;
  PhiloxWords words = philox7({{head * 32 + lane, 0, row / 16, column / 32}});
  return (words.word[byte / 4] >> byte % 4 * 8 & 0xff) <= most_kept;
}

/* A warp's rows. */
struct DropoutRows {
  uint32_t head, first_row, most_kept;
};

/* Drops elements of P's fragments for a tile of keys from `first_column` on, a multiple of 32: two bytes become two
 * 16-bit numbers, compared as a pair of halves (small whole numbers are ordered as denormals are). */
template <int m_tiles>
struct DropoutTile {
  DropoutRows rows;
  uint32_t first_column;
  PhiloxWords words[m_tiles] = {};

  __device__ __forceinline__ void operator()(uint32_t (&a)[4], int m, int kk) {
    if (kk % 2 == 0)
      words[m] = philox7({{rows.head * 32 + threadIdx.x % 32, 0, rows.first_row / 16 + (uint32_t)m,
                           first_column / 32 + (uint32_t)kk / 2}});
    uint32_t most = rows.most_kept * 0x10001u;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t word = words[m].word[kk % 2 * 2 + i / 2], pair = __byte_perm(word, 0, i % 2 ? 0x4342 : 0x4140);
      a[i] &= __hle2_mask(*(__half2 *)&pair, *(__half2 *)&most);
    }
  }
};
