/* Forward passes of attention: mma.sync with cp.async, wgmma with TMA, and wgmma with a producer warp. */
#include "commands.h"
#include "forward_problem.h"
#include "mma_forward.h"
#include "specialised_forward.h"
#include "tensor_map.h"
#include "wgmma_forward.h"

namespace mixed_e {

using namespace independent;

struct Shape {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
};
struct Order {
  bool bshd = false, head_first = false, reverse = false, persistent = false;
  int ctas = 0; /* of a persistent kernel; 0: the number of SMs */
};
struct Setting {
  Shape shape;
  Order order;
};

template <class C>
Attention attention_of(const Setting &s) {
  const Shape &shape = s.shape;
  return attention(shape.batch, shape.heads, shape.kv_heads, shape.seqlen_q, shape.seqlen_kv, C::D, C::Causal,
                   s.order.bshd);
}

int sm_count() {
  int device = 0, count = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

template <class C>
class KernelProblem : public ForwardProblem {
 public:
  explicit KernelProblem(const Setting &s)
      : ForwardProblem(attention_of<C>(s), is_bf16<typename C::T>), order_(s.order) {
    const float scale = a_.scale();
    arguments_.q = q_, arguments_.k = k_, arguments_.v = v_, arguments_.o = o_, arguments_.lse = lse_;
    arguments_.q_strides = a_.q, arguments_.kv_strides = a_.kv;
    arguments_.batch = a_.batch, arguments_.heads = a_.heads, arguments_.group = a_.heads / a_.kv_heads;
    arguments_.seqlen_q = a_.seqlen_q, arguments_.seqlen_kv = a_.seqlen_kv;
    arguments_.m_tiles = (a_.seqlen_q + C::M - 1) / C::M;
    arguments_.head_first = order_.head_first, arguments_.reverse = order_.reverse;
    arguments_.scale = scale, arguments_.scale_log2 = scale * 1.4426950408889634f;
  }

 protected:
  Order order_;
  Arguments arguments_;
};

template <class C>
class MmaProblem : public KernelProblem<C> {
 public:
  explicit MmaProblem(const Setting &s) : KernelProblem<C>(s) { allow_shared(mma_forward<C>, C::shared_bytes); }
  void launch() override {
    mma_forward<C><<<this->arguments_.works(), C::threads, C::shared_bytes>>>(this->arguments_);
    CUDA_CHECK(cudaGetLastError());
  }
};

/* Both kernels that use TMA. */
template <class C>
class TmaProblem : public KernelProblem<C> {
 public:
  TmaProblem(const Setting &s, void (*kernel)(Arguments, TensorMaps)) : KernelProblem<C>(s), kernel_(kernel) {
    const Attention &a = this->a_;
    maps_ = {map(this->q_, a.heads, a.seqlen_q, a.q, C::M), map(this->k_, a.kv_heads, a.seqlen_kv, a.kv, C::N),
             map(this->v_, a.kv_heads, a.seqlen_kv, a.kv, C::N)};
    const int works = this->arguments_.works(), ctas = this->order_.ctas ? this->order_.ctas : sm_count();
    grid_ = this->order_.persistent ? std::min(works, ctas) : works;
    allow_shared(kernel_, C::shared_bytes);
  }
  void launch() override {
    kernel_<<<grid_, C::threads, C::shared_bytes>>>(this->arguments_, maps_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  CUtensorMap map(void *base, int heads, int rows, const Strides &strides, int box_rows) const {
    const long long sizes[4] = {C::D, rows, heads, this->a_.batch},
                    steps[3] = {strides.row, strides.head, strides.batch};
    return tensor_map(base, is_bf16<typename C::T>, 4, sizes, steps, box_rows, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  }

  void (*kernel_)(Arguments, TensorMaps);
  TensorMaps maps_;
  int grid_;
};

/* The three kernels: how a problem is made, and their names. */
template <class C>
struct MmaKernel : C {
  static std::unique_ptr<Problem> make(const Setting &s) { return std::unique_ptr<Problem>(new MmaProblem<C>(s)); }
  static constexpr const char *workload = "flash2_fwd", *schedule = "stages", *copy = "cp_async", *mma = "mma";
};
template <class C>
struct WgmmaKernel : C {
  static std::unique_ptr<Problem> make(const Setting &s) {
    return std::unique_ptr<Problem>(new TmaProblem<C>(s, wgmma_forward<C>));
  }
  static constexpr const char *workload = "flash2_fwd", *schedule = "stages", *copy = "tma", *mma = "wgmma";
};
template <class C>
struct SpecialisedKernel : C {
  static std::unique_ptr<Problem> make(const Setting &s) {
    return std::unique_ptr<Problem>(new TmaProblem<C>(s, specialised_forward<C>));
  }
  static constexpr const char *workload = "flash3_fwd", *schedule = C::PingPong ? "pingpong" : "stages", *copy = "tma",
                              *mma = "wgmma";
};

template <class Kernel>
Json parameters_of(const Setting &s) {
  const Shape &shape = s.shape;
  Json json;
  json.text("workload", Kernel::workload);
  json.sizes(shape.batch, shape.heads, shape.kv_heads, shape.seqlen_q, shape.seqlen_kv).number("head_dim", Kernel::D);
  json.text("dtype", dtype_name(is_bf16<typename Kernel::T>)).flag("causal", Kernel::Causal);
  json.blocks(Kernel::M, Kernel::N).warps(Kernel::Warps, Kernel::Stages).text("schedule", Kernel::schedule);
  json.flag("persistent", s.order.persistent).text("tile_order", s.order.head_first ? "head_first" : "m_first");
  json.flag("tile_reverse", s.order.reverse).text("copy", Kernel::copy).text("mma", Kernel::mma);
  return json.text("layout", s.order.bshd ? "bshd" : "bhsd").number("launches", 1);
}

struct Registry {
  std::vector<Case> cases;
  std::vector<Check> checks;
};

Order with(Order order, bool persistent) {
  order.persistent = persistent;
  order.ctas = persistent ? 3 : 0;
  return order;
}

/* An instance with its cases; it is checked in both layouts, all orders, and, where it can, both kinds of grid. */
template <class Kernel>
void add(Registry &registry, const std::vector<Setting> &settings) {
  const bool flash3 = Kernel::workload[5] == '3';
  const std::vector<Setting> small = {
      {{1, 2, 2, 128, 128}, {}},
      {{2, 4, 4, 512, 512}, with({false, false, true}, flash3)},
      {{2, 4, 2, 200, 333}, with({true, true, false}, false)},
      {{1, 6, 2, 333, 150}, with({false, true, true}, flash3)}, /* causal: rows without keys */
      {{2, 3, 1, 1000, 1100}, with({true, false, false}, flash3)},
      {{1, 2, 1, 37, 611}, with({false, false, false}, false)},
  };
  for (const Setting &s : settings)
    registry.cases.push_back({parameters_of<Kernel>(s), [s] { return Kernel::make(s); }});
  for (const Setting &s : small)
    registry.checks.push_back({parameters_of<Kernel>(s).joined(","), [s] { return Kernel::make(s); }});
}

typedef __half H;
typedef __nv_bfloat16 B;

template <class T, int D, int M, int N, int Warps, int Stages, bool Causal>
using Mma = MmaKernel<MmaConfig<T, D, M, N, Warps, Stages, Causal>>;
template <class T, int D, int N, int Warps, bool Causal>
using Wgmma = WgmmaKernel<WgmmaConfig<T, D, N, Warps, Causal>>;
template <class T, int D, int N, bool PingPong, bool Causal>
using Specialised = SpecialisedKernel<SpecialisedConfig<T, D, N, PingPong, Causal>>;

const Order bhsd_order = {}, bshd_order = {true}, bhsd_reverse = {false, false, true},
            bshd_reverse = {true, false, true}, bhsd_longest = {false, true, true}, bshd_longest = {true, true, true};

void add_mma(Registry &r) {
  add<Mma<H, 64, 64, 64, 4, 2, false>>(r,
                                       {{{8, 16, 16, 1024, 1024}, bhsd_order}, {{4, 16, 16, 512, 4096}, bshd_order}});
  add<Mma<B, 64, 128, 64, 4, 2, true>>(r, {{{4, 16, 4, 2048, 2048}, bshd_reverse}});
  add<Mma<H, 64, 128, 128, 8, 2, true>>(r, {{{2, 16, 16, 4096, 4096}, bhsd_longest}});
  add<Mma<B, 64, 64, 128, 4, 2, false>>(r, {{{4, 16, 16, 2000, 2000}, bhsd_order}});
  add<Mma<H, 96, 64, 64, 4, 3, true>>(r, {{{4, 16, 16, 2048, 2048}, bhsd_reverse}});
  add<Mma<B, 96, 128, 64, 8, 2, false>>(r, {{{2, 24, 8, 2048, 2048}, bshd_order}});
  add<Mma<H, 128, 128, 64, 4, 2, false>>(r,
                                         {{{4, 16, 16, 2048, 2048}, bhsd_order}, {{1, 16, 2, 4096, 4096}, bshd_order}});
  add<Mma<B, 128, 128, 64, 8, 2, true>>(r, {{{2, 32, 8, 2048, 2048}, bshd_longest}});
  add<Mma<B, 128, 128, 32, 4, 3, true>>(r, {{{1, 32, 32, 4096, 4096}, bhsd_reverse}});
  add<Mma<H, 128, 64, 64, 4, 2, false>>(r, {{{2, 32, 4, 1000, 3000}, bhsd_order}});
}

void add_wgmma(Registry &r) {
  add<Wgmma<H, 64, 128, 4, false>>(r, {{{8, 16, 16, 2048, 2048}, bhsd_order}, {{4, 32, 8, 1500, 2500}, bshd_order}});
  add<Wgmma<B, 64, 128, 8, true>>(r, {{{4, 32, 8, 2048, 2048}, bshd_longest}});
  add<Wgmma<H, 128, 64, 4, true>>(r, {{{4, 16, 16, 2048, 2048}, bhsd_reverse}});
  add<Wgmma<B, 128, 128, 8, false>>(r, {{{4, 16, 16, 2048, 2048}, bhsd_order}});
  add<Wgmma<H, 128, 64, 8, true>>(r, {{{1, 32, 4, 4096, 4096}, bshd_longest}});
}

void add_specialised(Registry &r) {
  Order persistent = bhsd_order, persistent_longest = bshd_longest;
  persistent.persistent = persistent_longest.persistent = true;
  add<Specialised<H, 64, 128, true, false>>(r, {{{4, 32, 32, 2048, 2048}, bhsd_order}});
  add<Specialised<B, 64, 128, false, true>>(r, {{{4, 32, 8, 4096, 4096}, persistent_longest}});
  add<Specialised<H, 128, 128, true, true>>(
      r, {{{2, 32, 8, 4096, 4096}, persistent_longest}, {{4, 16, 16, 2048, 2048}, bhsd_reverse}});
  add<Specialised<B, 128, 176, false, false>>(r, {{{4, 16, 16, 2048, 2048}, persistent}});
}

}  // namespace mixed_e

int main(int argc, char **argv) {
  mixed_e::Registry registry;
  mixed_e::add_mma(registry);
  mixed_e::add_wgmma(registry);
  mixed_e::add_specialised(registry);
  return independent::Commands(registry.cases, registry.checks).run(argc, argv);
}
