/* What the attention kernels and their driver share: problem, launch parameters, the table of compiled instances.
 *
 * Layout bhsd: q, o [batch][heads][seqlen_q][head_dim], k, v [batch][kv_heads][seqlen_kv][head_dim], all f16; lse f32
 * [batch][heads][seqlen_q], natural logarithm. Causal masks are aligned to the bottom right. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Problem {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
  bool causal, head_first, tile_reverse;
  const __half *q, *k, *v;
  __half *o;
  float *lse;
  int splits = 1;
};

/* Names a compiled instance; the driver looks the case up by it. */
struct InstanceKey {
  std::string workload, mma, copy, schedule;
  int block_m, block_n, num_warps, num_stages, head_dim;
  bool causal, persistent = false;
  bool ragged = false; /* lengths need not be multiples of the blocks */
};

struct Launch {
  unsigned grid, block;
  size_t shared_bytes;
};

struct Instance {
  InstanceKey key;
  const void *function;
  Launch (*plan)(const Problem &);
  void (*run)(const Problem &, cudaStream_t);
  int num_launches = 1;
};

std::vector<Instance> &instances();

struct Registration {
  explicit Registration(const Instance &instance) { instances().push_back(instance); }
};

/* What a kernel is given; tiles of one head follow each other unless head_first. */
struct TileParams {
  const __half *q, *k, *v;
  __half *o;
  float *lse;
  int heads, group, seqlen_q, seqlen_kv, num_m_tiles, num_heads_total;
  int head_first, reverse;
  float scale_log2;
};

inline TileParams tile_params(const Problem &p, int block_m) {
  int num_m_tiles = (p.seqlen_q + block_m - 1) / block_m;
  float rsqrt_d = 1.0f;
  for (int d = p.head_dim; d > 1; d /= 4) rsqrt_d *= d == 2 ? 0.70710678f : 0.5f;
  return {p.q,
          p.k,
          p.v,
          p.o,
          p.lse,
          p.heads,
          p.heads / p.kv_heads,
          p.seqlen_q,
          p.seqlen_kv,
          num_m_tiles,
          p.batch * p.heads,
          p.head_first,
          p.tile_reverse,
          rsqrt_d * 1.44269504f};
}

struct Tile {
  int m, head, kv_head;
};

__device__ __forceinline__ Tile tile_of(const TileParams &p, int index) {
  int m = p.head_first ? index / p.num_heads_total : index % p.num_m_tiles;
  int head = p.head_first ? index % p.num_heads_total : index / p.num_m_tiles;
  if (p.reverse) m = p.num_m_tiles - 1 - m;
  int batch = head / p.heads;
  return {m, head, batch * (p.heads / p.group) + head % p.heads / p.group};
}
