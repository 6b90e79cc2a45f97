/* Split-KV decode over a paged cache (one query row a head): decode_mma.h where a tile's rows lie in pages, for
 * sequences of any lengths.
 *
 * A CTA takes a work item, a part of a sequence's keys, and a kv head. For each tile every warp loads the page numbers,
 * a lane each, and the lanes that copy a row take its page by a shuffle; K and V share them. A page holds a whole
 * number of tiles or a tile a whole number of pages, 32 at most, and a power of two of tokens, so that nothing is
 * divided. The combining kernel has one CTA a head. */
#pragma once

#include "decode_mma.h"

namespace paged_mma {

using namespace flash2_mma;

template <int block_n, int num_warps, int num_stages, int head_dim>
using Shape = decode_mma::Shape<block_n, num_warps, num_stages, head_dim, true>;

/* Where the keys of a CTA's part lie: token t of the part is row t % 2^page_shift of page pages[t / 2^page_shift],
 * `first_row` rows further on where the part begins inside a page. */
struct Part {
  const int *pages;
  int first_row, num_keys, page_shift;
  size_t row_stride, page_stride; /* in halves */
};

/* Row `token` of the part, from the numbers of pages that the lanes hold: lane i of the i-th from `first_page` on. */
__device__ __forceinline__ size_t row_offset(const Part &part, int token, int first_page, int numbers) {
  int row = part.first_row + token, page = __shfl_sync(0xffffffff, numbers, (row >> part.page_shift) - first_page);
  return (size_t)page * part.page_stride + (size_t)(row & ((1 << part.page_shift) - 1)) * part.row_stride;
}

template <class S>
__device__ __forceinline__ void copy_chunk(uint32_t to, uint32_t row, uint32_t chunk, const __half *from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + swizzled<S>(row, chunk)),
               "l"(from + chunk * 8), "r"(exists ? 16 : 0)
               : "memory");
}

/* Tile j of K and of V, rows past the part's end as zeros. */
template <class S>
__device__ __forceinline__ void copy_tiles(const Part &part, int j, uint32_t k_to, uint32_t v_to, const __half *k,
                                           const __half *v) {
  int lane = (int)threadIdx.x % 32, first_page = (part.first_row + j * S::tile_n) >> part.page_shift;
  bool has_page = (first_page + lane) << part.page_shift < part.first_row + part.num_keys;
  int numbers = has_page ? part.pages[first_page + lane] : 0;
#pragma unroll
  for (int i = 0; i < S::tile_n * S::row_chunks / S::num_threads; i++) {
    uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads, row = index / S::row_chunks,
             chunk = index % S::row_chunks;
    int token = j * S::tile_n + (int)row;
    size_t offset = row_offset(part, token, first_page, numbers);
    copy_chunk<S>(k_to, row, chunk, k + offset, token < part.num_keys);
    copy_chunk<S>(v_to, row, chunk, v + offset, token < part.num_keys);
  }
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void split(TileParams p, Pages pages, const int *lengths,
                                                        decode_mma::Partial partial) {
  extern __shared__ __align__(128) uint8_t shared[];
  int kv_heads = p.heads / p.group, kv_head = (int)blockIdx.x % kv_heads, item = (int)blockIdx.x / kv_heads;
  int sequence = pages.item_sequence[item], first = pages.item_part[item] * pages.tokens_per_part;
  Part part;
  part.page_shift = pages.page_shift;
  part.pages = pages.pages + pages.first_page[sequence] + (first >> pages.page_shift);
  part.first_row = first & ((1 << pages.page_shift) - 1);
  part.num_keys = min(pages.tokens_per_part, lengths[sequence] - first);
  part.row_stride = (size_t)(pages.heads_first ? 1 : kv_heads) * S::head_dim;
  part.page_stride = ((size_t)kv_heads << pages.page_shift) * S::head_dim;
  size_t head_offset = (size_t)kv_head * (size_t)(pages.heads_first ? 1 << pages.page_shift : 1) * S::head_dim;
  const __half *k_from = pages.k + head_offset, *v_from = pages.v + head_offset;
  int num_tiles = (part.num_keys + S::tile_n - 1) / S::tile_n;
  uint32_t q = shared_address(shared), k = q + S::q_bytes, v = k + S::num_stages * S::tile_bytes;
  decode_mma::load_queries<S>(shared, p.q + (size_t)(sequence * p.heads + kv_head * p.group) * S::head_dim, p.group);
  auto fetch = [&](int j) {
    uint32_t stage = (uint32_t)(j % S::num_stages) * S::tile_bytes;
    if (j < num_tiles) copy_tiles<S>(part, j, k + stage, v + stage, k_from, v_from);
    commit();
  };
  State<S> st;
  decode_mma::attend(st, q, k, v, num_tiles, part.num_keys, p.scale_log2, fetch);
  size_t head = (size_t)item * (size_t)p.heads + (size_t)(kv_head * p.group);
  decode_mma::write_partial(st, (float *)(shared + S::q_bytes), p.group, p.scale_log2, partial.o + head * S::head_dim,
                            partial.lse + head);
}

template <int head_dim>
__global__ __launch_bounds__(head_dim) void combine(TileParams p, const int *first_item, decode_mma::Partial partial) {
  int sequence = (int)blockIdx.x / p.heads, row = (int)blockIdx.x % p.heads;
  int begin = first_item[sequence], end = first_item[sequence + 1];
  float top = -INFINITY, sum = 0, value = 0;
  for (int i = begin; i < end; i++) top = fmaxf(top, partial.lse[i * p.heads + row]);
  for (int i = begin; i < end; i++) {
    size_t head = (size_t)i * (size_t)p.heads + (size_t)row;
    float weight = exp2_fast((partial.lse[head] - top) * 1.44269504f);
    sum += weight;
    value += weight * partial.o[head * head_dim + threadIdx.x];
  }
  p.o[(size_t)blockIdx.x * head_dim + threadIdx.x] = __float2half(value / sum);
  if (threadIdx.x == 0) p.lse[blockIdx.x] = top + __log2f(sum) * 0.69314718f;
}

template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.kv_heads * p.pages->num_items), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  TileParams t = tile_params(p, 1);
  size_t heads = (size_t)p.pages->num_items * (size_t)p.heads;
  float *memory = (float *)standard_mma::score_memory(heads * (S::head_dim + 1) * 4);
  decode_mma::Partial partial = {memory, memory + heads * S::head_dim, 0};
  split<S><<<l.grid, l.block, l.shared_bytes, stream>>>(t, *p.pages, p.lengths, partial);
  combine<S::head_dim><<<(unsigned)(p.batch * p.heads), S::head_dim, 0, stream>>>(t, p.pages->first_item, partial);
}

template <class S>
Instance instance() {
  InstanceKey key = {"paged_decode", "mma",        "cp_async",    "stages",    16,
                     S::tile_n,      S::num_warps, S::num_stages, S::head_dim, false};
  return {key, (const void *)split<S>, plan<S>, run<S>, 2};
}

}  // namespace paged_mma
