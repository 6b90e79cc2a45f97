/* The host's side: tensors, launches and parameters of the three workloads. */
#pragma once

#include "decode.h"
#include "forward.h"
#include "forward_problem.h"
#include "product.h"
#include "reference_product.h"

namespace mixed_d {

using independent::Case;
using independent::Json;
using independent::Problem;

inline void require(bool condition, const char *what) {
  if (!condition) throw std::runtime_error(what);
}
inline const char *layout_name(bool is_bshd) { return is_bshd ? "bshd" : "bhsd"; }

struct ForwardShape {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool causal = false, is_bshd = false, head_first = false;
};

template <class Tile>
class ForwardOfTile : public independent::ForwardProblem {
  typedef typename Tile::Number T;

 public:
  explicit ForwardOfTile(const ForwardShape &s)
      : ForwardProblem(independent::attention(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv, Tile::head_dim,
                                              s.causal, s.is_bshd),
                       independent::is_bf16<T>),
        head_first_(s.head_first) {
    require(s.seqlen_q % Tile::block_m == 0 && s.seqlen_kv % Tile::block_n == 0, "lengths are no multiples of tiles");
    independent::allow_shared(forward<Tile>, Tile::shared_bytes);
  }
  void launch() override {
    ForwardArguments<T> arguments = {
        (const T *)q_, (const T *)k_,          (const T *)v_, (T *)o_,      lse_,      a_.q,        a_.kv,
        a_.heads,      a_.heads / a_.kv_heads, a_.seqlen_q,   a_.seqlen_kv, a_.causal, head_first_, a_.scale()};
    unsigned tiles = (unsigned)(a_.seqlen_q / Tile::block_m), planes = (unsigned)(a_.heads * a_.batch);
    dim3 grid = head_first_ ? dim3(planes, tiles) : dim3(tiles, planes);
    forward<Tile><<<grid, Tile::threads, Tile::shared_bytes>>>(arguments);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  bool head_first_;
};

template <class Tile>
Case forward_case(const ForwardShape &s) {
  Json json;
  json.text("workload", "flash2_fwd").sizes(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv);
  json.number("head_dim", Tile::head_dim);
  json.text("dtype", independent::dtype_name(independent::is_bf16<typename Tile::Number>)).flag("causal", s.causal);
  json.blocks(Tile::block_m, Tile::block_n).warps(Tile::warps, Tile::stages).text("schedule", "stages");
  json.text("copy", "cp_async").text("mma", "mma").text("layout", layout_name(s.is_bshd));
  json.text("tile_order", s.head_first ? "head_first" : "m_first").flag("tile_reverse", s.causal);
  json.number("launches", 1);
  return {json, [s] { return std::make_unique<ForwardOfTile<Tile>>(s); }};
}

struct ProductShape {
  int batch, m, n, k;
  bool n_first = false;
};

template <class Tile>
class ProductOfTile : public Problem {
 public:
  explicit ProductOfTile(const ProductShape &s)
      : s_(s),
        a_(normal<__half>((size_t)s.batch * s.m * s.k, 1)),
        b_(normal<__half>((size_t)s.batch * s.n * s.k, 2)),
        c_(alloc<__half>((size_t)s.batch * s.m * s.n)) {
    require(s.m % Tile::block_m == 0 && s.n % Tile::block_n == 0 && s.k % Tile::block_k == 0,
            "sizes are no multiples of tiles");
    independent::allow_shared(multiply_tiled<Tile>, Tile::shared_bytes);
  }
  void launch() override {
    unsigned tiles_m = (unsigned)(s_.m / Tile::block_m), tiles_n = (unsigned)(s_.n / Tile::block_n);
    dim3 grid(s_.n_first ? tiles_n : tiles_m, s_.n_first ? tiles_m : tiles_n, (unsigned)s_.batch);
    ProductArguments arguments = {a_, b_, c_, s_.m, s_.n, s_.k, s_.n_first};
    multiply_tiled<Tile><<<grid, Tile::threads, Tile::shared_bytes>>>(arguments);
    CUDA_CHECK(cudaGetLastError());
  }
  /* In |x - r| / (1 + |r|). */
  bool check(std::string &report) override {
    size_t matrix = (size_t)s_.m * s_.n;
    float *reference = alloc<float>(s_.batch * matrix);
    for (size_t i = 0; i < (size_t)s_.batch; i++)
      independent::reference_product(a_ + i * s_.m * s_.k, b_ + i * s_.n * s_.k, reference + i * matrix, s_.m, s_.n,
                                     s_.k, true);
    auto errors = independent::errors_of(independent::fetch(c_, s_.batch * matrix),
                                         independent::fetch(reference, s_.batch * matrix));
    return independent::within(report, "C", errors.scaled, 1e-3);
  }

 private:
  ProductShape s_;
  __half *a_, *b_, *c_;
};

template <class Tile>
Case product_case(const ProductShape &s) {
  Json json;
  json.text("workload", "matmul_tiled").number("batch", s.batch).number("m", s.m).number("n", s.n).number("k", s.k);
  json.flag("transpose_b", true).text("dtype", "fp16").blocks(Tile::block_m, Tile::block_n);
  json.number("block_k", Tile::block_k).warps(Tile::warps, Tile::stages).text("schedule", "stages");
  json.text("copy", "cp_async").text("mma", "mma").text("tile_order", s.n_first ? "n_first" : "m_first");
  json.number("launches", 1);
  return {json, [s] { return std::make_unique<ProductOfTile<Tile>>(s); }};
}

struct DecodeShape {
  int batch, heads, kv_heads, seqlen_kv, splits;
  bool is_bshd = false;
};

template <class Tile>
class DecodeOfTile : public independent::ForwardProblem {
  typedef typename Tile::Number T;

 public:
  explicit DecodeOfTile(const DecodeShape &s)
      : ForwardProblem(
            independent::attention(s.batch, s.heads, s.kv_heads, 1, s.seqlen_kv, Tile::head_dim, false, s.is_bshd),
            independent::is_bf16<T>),
        splits_(s.splits),
        split_o_(alloc<float>(a_.q_count() * s.splits)),
        split_lse_(alloc<float>(a_.rows() * s.splits)) {
    require(s.heads / s.kv_heads <= Tile::block_m, "more than 16 query heads a KV head");
    require(s.seqlen_kv % Tile::block_n == 0, "seqlen_kv is no multiple of block_n");
    require(s.splits <= s.seqlen_kv / Tile::block_n, "more splits than tiles");
    independent::allow_shared(decode_split<Tile>, Tile::shared_bytes);
  }
  void launch() override {
    DecodeArguments<T> arguments = {(const T *)q_, (const T *)k_, (const T *)v_,          split_o_,     split_lse_,
                                    a_.kv,         a_.heads,      a_.heads / a_.kv_heads, a_.seqlen_kv, a_.scale()};
    dim3 grid((unsigned)splits_, (unsigned)a_.kv_heads, (unsigned)a_.batch);
    decode_split<Tile><<<grid, Tile::threads, Tile::shared_bytes>>>(arguments);
    CUDA_CHECK(cudaGetLastError());
    int rows = (int)a_.rows();
    combine_splits<T><<<(unsigned)(rows + combine_warps - 1) / combine_warps, combine_warps * 32>>>(
        split_o_, split_lse_, (T *)o_, lse_, rows, splits_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  int splits_;
  float *split_o_, *split_lse_;
};

template <class Tile>
Case decode_case(const DecodeShape &s) {
  Json json;
  json.text("workload", "flash_decode").sizes(s.batch, s.heads, s.kv_heads, 1, s.seqlen_kv);
  json.number("head_dim", Tile::head_dim);
  json.text("dtype", independent::dtype_name(independent::is_bf16<typename Tile::Number>)).flag("causal", false);
  json.blocks(Tile::block_m, Tile::block_n).warps(Tile::warps, Tile::stages).text("schedule", "stages");
  json.text("copy", "cp_async").text("mma", "mma").text("layout", layout_name(s.is_bshd));
  json.number("splits", s.splits).text("tile_order", "m_first").number("launches", 2);
  return {json, [s] { return std::make_unique<DecodeOfTile<Tile>>(s); }};
}

}  // namespace mixed_d
