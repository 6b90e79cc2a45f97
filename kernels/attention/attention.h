/* What the attention kernels and their driver share: problem, launch parameters, the table of compiled instances.
 *
 * Layout bhsd: q [batch][heads][seqlen_q][head_dim], k [batch][kv_heads][seqlen_kv][head_dim], o and v the same with
 * head_dim_v columns, all f16; lse f32 [batch][heads][seqlen_q], natural logarithm. Causal masks are aligned to the
 * bottom right. */
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "dropout.h"

/* A paged KV cache: [page][token][kv_head][head_dim], or with heads_first [page][kv_head][token][head_dim]. Block
 * tables of the sequences one after another; work items (a sequence and a part of its keys), those of a sequence in
 * order. All tables in device memory. */
struct Pages {
  const __half *k, *v;
  const int *first_page, *pages;                     /* sequence b's pages: pages[first_page[b]] onward */
  const int *first_item, *item_sequence, *item_part; /* sequence b's items: first_item[b] up to first_item[b + 1] */
  int page_shift, num_items, tokens_per_part;        /* a page has 2^page_shift tokens */
  bool heads_first;
};

/* Which keys from `first_key` on the rows of a kv head see: bit i % 32 of word i / 32 of a row is key first_key + i. In
 * device memory; words null: no tree. */
struct Tree {
  const uint32_t *words = nullptr;
  int row_words = 0, first_key = 0;
};

/* A quantised KV cache (kv_format.h): numbers [batch][kv_head][token][head_dim], f16 scales
 * [batch][kv_head][group][token]. In device memory. */
struct StoredKeys {
  const uint8_t *k, *v;
  const __half *k_scales, *v_scales;
};

/* Rows that the lengths of backward passes are multiples of: whole CTAs of delta. */
constexpr int delta_unit = 128;

/* Of a backward pass, in device memory; shapes as of Q, K and V. */
struct Gradients {
  const __half *d_o;
  float *delta;   /* [batch][heads][seqlen_q] */
  float *d_q_sum; /* as many numbers as dQ */
  __half *d_q, *d_k, *d_v;
};

struct Problem {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
  bool causal, head_first, tile_reverse;
  const __half *q, *k, *v;
  __half *o;
  float *lse;
  int splits = 1;
  int window = 0; /* query i sees key j only if j > i + seqlen_kv - seqlen_q - window, and, not causal, < ... + window;
                     0: none */
  double dropout_p = 0;                 /* of elements of P; dropout.h says which */
  const int *lengths = nullptr;         /* keys of each sequence; null: seqlen_kv */
  const Pages *pages = nullptr;         /* of a paged cache, which holds k and v instead */
  Tree tree;                            /* of speculated tokens, which are the queries */
  const StoredKeys *stored = nullptr;   /* of a quantised cache, which k and v then have the values of */
  int own_head_dim_v = 0;               /* columns of v and o where they are not those of q and k; else 0 */
  const Gradients *gradients = nullptr; /* of a backward pass, whose inputs o and lse are too */

  __host__ __device__ int head_dim_v() const { return own_head_dim_v ? own_head_dim_v : head_dim; }
};

/* Names a compiled instance; the driver looks the case up by it. */
struct InstanceKey {
  std::string workload, mma, copy, schedule;
  int block_m, block_n, num_warps, num_stages, head_dim;
  bool causal, persistent = false;
  bool ragged = false;   /* lengths need not be multiples of the blocks */
  bool windowed = false; /* has a sliding window */
  bool drops = false;    /* has dropout */
  std::string kv_format; /* of a quantised cache; empty: f16 */
  int kv_group_size = 0; /* elements that share a scale there */
  int head_dim_v = 0;    /* columns of V and O where they are not head_dim; else 0 */
  std::string dq;        /* of a backward pass: kernel or atomics; else empty */
  int max_registers = 0; /* that a thread may have; 0: as many as the compiler takes */
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
  int window;
  uint32_t most_kept; /* dropout: the largest byte whose element is kept */
  float output_scale; /* and what makes up for the others */
};

inline TileParams tile_params(const Problem &p, int block_m) {
  int num_m_tiles = (p.seqlen_q + block_m - 1) / block_m;
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
          1.44269504f / std::sqrt((float)p.head_dim),
          p.window,
          dropout_threshold(p.dropout_p),
          (float)(1 / (1 - p.dropout_p))};
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
