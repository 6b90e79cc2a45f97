/* The families' problems: tensors, launches, checks, and the parameters that `list` names. */
#pragma once

#include "backward_mma.h"
#include "compare.h"
#include "forward_mma.h"
#include "forward_problem.h"
#include "forward_wgmma.h"
#include "matmul_mma.h"
#include "problem.h"
#include "reference_gradients.h"
#include "reference_product.h"
#include "tensor_map.h"

namespace mixed_f {

using independent::Case;
using independent::Check;
using independent::Json;
using independent::MakeProblem;
using independent::Problem;

struct Shape {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool bshd = false;
  TileOrder order = {false, false};
};

template <int D, bool CAUSAL>
Attention attention_of(const Shape &s) {
  return independent::attention(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv, D, CAUSAL, s.bshd);
}

/* A kernel as a type: its tile and how it is launched. */
template <class T_, int D_, int BM_, int BN_, int W_, int STAGES_, bool CAUSAL_, int MIN_ = 1>
struct Tiling {
  typedef T_ T;
  static constexpr int D = D_, BM = BM_, BN = BN_, W = W_, STAGES = STAGES_, MIN = MIN_;
  static constexpr bool CAUSAL = CAUSAL_;

  static Json describe(const char *workload, const Shape &s, const char *copy, const char *mma, int launches) {
    Json json;
    json.text("workload", workload).sizes(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv).number("head_dim", D);
    json.text("dtype", independent::dtype_name(is_bf16<T>)).flag("causal", CAUSAL).blocks(BM, BN).warps(W, STAGES);
    json.text("schedule", "stages").text("copy", copy).text("mma", mma).text("layout", s.bshd ? "bshd" : "bhsd");
    json.flag("persistent", false).text("tile_order", s.order.head_first ? "head_first" : "m_first");
    json.flag("tile_reverse", s.order.reverse).number("min_ctas", MIN).number("launches", launches);
    return json;
  }
};

template <class G>
class MmaForward : public independent::ForwardProblem {
  typedef typename G::T T;

 public:
  explicit MmaForward(const Shape &s) : ForwardProblem(attention_of<G::D, G::CAUSAL>(s), is_bf16<T>), order_(s.order) {
    independent::allow_shared(kernel, bytes);
  }
  static Json describe(const Shape &s) { return G::describe("flash2_fwd", s, "cp_async", "mma", 1); }
  void launch() override {
    int tiles = (a_.seqlen_q + G::BM - 1) / G::BM;
    kernel<<<grid_of(a_, tiles, order_), G::W * 32, bytes>>>(a_, (const T *)q_, (const T *)k_, (const T *)v_, (T *)o_,
                                                             lse_, order_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  static constexpr int bytes = forward_mma_shared<T, G::D, G::BM, G::BN, G::W, G::STAGES>;
  static constexpr auto kernel = forward_mma<T, G::D, G::BM, G::BN, G::W, G::STAGES, G::CAUSAL, G::MIN>;
  TileOrder order_;
};

template <class G>
class WgmmaForward : public independent::ForwardProblem {
  typedef typename G::T T;

 public:
  explicit WgmmaForward(const Shape &s)
      : ForwardProblem(attention_of<G::D, G::CAUSAL>(s), is_bf16<T>), order_(s.order) {
    independent::allow_shared(kernel, bytes);
    q_map_ = map(q_, a_.q, a_.seqlen_q, a_.heads, G::BM);
    o_map_ = map(o_, a_.q, a_.seqlen_q, a_.heads, G::BM);
    k_map_ = map(k_, a_.kv, a_.seqlen_kv, a_.kv_heads, G::BN);
    v_map_ = map(v_, a_.kv, a_.seqlen_kv, a_.kv_heads, G::BN);
  }
  static Json describe(const Shape &s) { return G::describe("flash2_fwd", s, "tma", "wgmma", 1); }
  void launch() override {
    int tiles = (a_.seqlen_q + G::BM - 1) / G::BM;
    kernel<<<grid_of(a_, tiles, order_), G::W * 32, bytes>>>(q_map_, k_map_, v_map_, o_map_, a_, lse_, order_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  CUtensorMap map(void *base, const independent::Strides &strides, int rows, int heads, int box_rows) const {
    long long sizes[4] = {G::D, rows, heads, a_.batch}, steps[3] = {strides.row, strides.head, strides.batch};
    return independent::tensor_map(base, is_bf16<T>, 4, sizes, steps, box_rows, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  }
  static constexpr int bytes = forward_wgmma_shared<G::D, G::BM, G::BN, G::STAGES>;
  static constexpr auto kernel = forward_wgmma<T, G::D, G::BM, G::BN, G::W, G::STAGES, G::CAUSAL, G::MIN>;
  TileOrder order_;
  CUtensorMap q_map_, k_map_, v_map_, o_map_;
};

template <class G>
class MmaBackward : public Problem {
  typedef typename G::T T;

 public:
  explicit MmaBackward(const Shape &s) : a_(attention_of<G::D, G::CAUSAL>(s)) {
    if (s.bshd || s.heads != s.kv_heads) throw std::runtime_error("backward: bhsd and as many kv heads as heads");
    size_t q_count = a_.q_count(), kv_count = a_.kv_count();
    q_ = this->template normal<T>(q_count, 1), k_ = this->template normal<T>(kv_count, 2);
    v_ = this->template normal<T>(kv_count, 3), d_o_ = this->template normal<T>(q_count, 4);
    o_ = this->template alloc<T>(q_count), lse_ = this->template alloc<float>(a_.rows());
    delta_ = this->template alloc<float>(a_.rows()), dq_sums_ = this->template alloc<float>(padded_rows() * G::D);
    dq_ = this->template alloc<T>(q_count), dk_ = this->template alloc<T>(kv_count);
    dv_ = this->template alloc<T>(kv_count);
    independent::reference_attention<T>(a_, q_, k_, v_, nullptr, o_, lse_);
    independent::allow_shared(kernel, bytes);
  }
  static Json describe(const Shape &s) { return G::describe("flash2_bwd", s, "cp_async", "mma", 3); }

  void launch() override {
    constexpr int rows_of_cta = delta_threads / (G::D / 8);
    backward_delta<T, G::D><<<(unsigned)((padded_rows() + rows_of_cta - 1) / rows_of_cta), delta_threads>>>(
        a_, o_, d_o_, delta_, dq_sums_);
    CUDA_CHECK(cudaGetLastError());
    dim3 grid((unsigned)(a_.seqlen_kv + G::BN - 1) / G::BN, (unsigned)a_.heads, (unsigned)a_.batch);
    kernel<<<grid, G::W * 32, bytes>>>(a_, q_, k_, v_, d_o_, lse_, delta_, dq_sums_, dk_, dv_);
    CUDA_CHECK(cudaGetLastError());
    backward_convert<T, G::D>
        <<<(unsigned)((a_.rows() + rows_of_cta - 1) / rows_of_cta), delta_threads>>>(a_, dq_sums_, dq_, a_.scale());
    CUDA_CHECK(cudaGetLastError());
  }

  bool check(std::string &report) override {
    float *dq = this->template alloc<float>(a_.q_count()), *dk = this->template alloc<float>(a_.kv_count());
    float *dv = this->template alloc<float>(a_.kv_count());
    independent::reference_gradients<T>(a_, {q_, k_, v_, o_, d_o_, lse_}, dq, dk, dv);
    bool ok = near(report, "dQ", dq_, dq, a_.q_count());
    ok = near(report, "dK", dk_, dk, a_.kv_count()) && ok;
    return near(report, "dV", dv_, dv, a_.kv_count()) && ok;
  }

 private:
  size_t padded_rows() const { return (size_t)a_.batch * a_.heads * ((a_.seqlen_q + 15) / 16 * 16); }
  static bool near(std::string &report, const char *name, const T *values, const float *reference, size_t count) {
    auto errors = independent::errors_of(independent::fetch(values, count), independent::fetch(reference, count));
    return independent::within(report, name, errors.relative_rms, is_bf16<T> ? 1.5e-2 : 3e-3);
  }
  static constexpr int bytes = backward_mma_shared<T, G::D, G::BM, G::BN, G::W, G::STAGES>;
  static constexpr auto kernel = backward_main<T, G::D, G::BM, G::BN, G::W, G::STAGES, G::CAUSAL, G::MIN>;
  Attention a_;
  T *q_, *k_, *v_, *o_, *d_o_, *dq_, *dk_, *dv_;
  float *lse_, *delta_, *dq_sums_;
};

struct ProductShape {
  int m, n, k;
  bool n_first;
  int strip;
};

template <class T, int BM, int BN, int BK, int WM, int WN, int STAGES, bool TRANSPOSE_B, bool C_THROUGH_SHARED,
          int MIN = 1>
class MmaProduct : public Problem {
 public:
  explicit MmaProduct(const ProductShape &s) : s_(s) {
    if (s.n % 8 || s.k % 8) throw std::runtime_error("n and k are multiples of 8");
    a_ = this->template normal<T>((size_t)s.m * s.k, 1), b_ = this->template normal<T>((size_t)s.n * s.k, 2);
    c_ = this->template alloc<T>((size_t)s.m * s.n);
    independent::allow_shared(kernel, bytes);
  }
  static Json describe(const ProductShape &s) {
    Json json;
    json.text("workload", "matmul_tiled").number("m", s.m).number("n", s.n).number("k", s.k);
    json.text("dtype", independent::dtype_name(is_bf16<T>)).flag("transpose_a", false).flag("transpose_b", TRANSPOSE_B);
    json.blocks(BM, BN).number("block_k", BK).warps(WM * WN, STAGES).text("schedule", "stages");
    json.text("copy", "cp_async").text("mma", "mma").flag("persistent", false);
    json.text("tile_order", s.n_first ? "n_first" : "m_first").number("tile_strip", s.strip);
    return json.number("min_ctas", MIN).number("launches", 1);
  }
  void launch() override {
    Raster raster = {(s_.m + BM - 1) / BM, (s_.n + BN - 1) / BN, s_.n_first, s_.strip};
    kernel<<<(unsigned)(raster.tiles_m * raster.tiles_n), WM * WN * 32, bytes>>>(a_, b_, c_, s_.m, s_.n, s_.k, raster);
    CUDA_CHECK(cudaGetLastError());
  }
  bool check(std::string &report) override {
    size_t count = (size_t)s_.m * s_.n;
    float *c = this->template alloc<float>(count);
    independent::reference_product<T>(a_, b_, c, s_.m, s_.n, s_.k, TRANSPOSE_B);
    auto errors = independent::errors_of(independent::fetch(c_, count), independent::fetch(c, count));
    return independent::within(report, "C", errors.scaled, is_bf16<T> ? 1e-2 : 2e-3);
  }

 private:
  static constexpr int bytes = matmul_shared<BM, BN, BK, STAGES>;
  static constexpr auto kernel = matmul<T, BM, BN, BK, WM, WN, STAGES, TRANSPOSE_B, C_THROUGH_SHARED, MIN>;
  ProductShape s_;
  T *a_, *b_, *c_;
};

}  // namespace mixed_f
