/* Sweeps of tile configurations of a FlashAttention-2 forward kernel with mma.sync and cp.async. */
#include "commands.h"
#include "forward_problem.h"

#include "flash2.h"

namespace {

using namespace independent;
using sweep::Schedule;

template <class C>
class Flash2 : public ForwardProblem {
 public:
  typedef typename C::T T;

  Flash2(const Attention &a, bool reverse) : ForwardProblem(a, is_bf16<T>), reverse_(reverse) {
    if (a.head_dim != C::HEAD_DIM || a.causal != C::CAUSAL) throw std::runtime_error("another kernel's problem");
    allow_shared(sweep::flash2_forward<C>, C::SHARED_BYTES);
  }

  void launch() override {
    sweep::Arguments<T> arguments = {(const T *)q_,
                                     (const T *)k_,
                                     (const T *)v_,
                                     (T *)o_,
                                     lse_,
                                     {a_.q.batch, a_.q.head, (int)a_.q.row},
                                     {a_.kv.batch, a_.kv.head, (int)a_.kv.row},
                                     a_.heads,
                                     a_.heads / a_.kv_heads,
                                     a_.seqlen_q,
                                     a_.seqlen_kv,
                                     a_.scale(),
                                     reverse_};
    dim3 grid((a_.seqlen_q + C::BLOCK_M - 1) / C::BLOCK_M, a_.heads, a_.batch);
    sweep::flash2_forward<C><<<grid, C::THREADS, C::SHARED_BYTES>>>(arguments);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  bool reverse_;
};

std::vector<Case> cases;
std::vector<Check> checks;

/* What the cases of a sweep share. */
template <class T, int HEAD_DIM, bool CAUSAL>
class Sweep {
 public:
  Sweep(int batch, int heads, int kv_heads, int seqlen_q, int seqlen_kv, bool is_bshd, bool reverse)
      : attention_(attention(batch, heads, kv_heads, seqlen_q, seqlen_kv, HEAD_DIM, CAUSAL, is_bshd)),
        is_bshd_(is_bshd),
        reverse_(reverse) {}

  template <int BLOCK_M, int BLOCK_N, int WARPS, int STAGES, Schedule SCHEDULE = Schedule::stages>
  Sweep &add() {
    typedef sweep::Configuration<T, HEAD_DIM, BLOCK_M, BLOCK_N, WARPS, STAGES, SCHEDULE, CAUSAL> C;
    Json json;
    json.text("workload", "flash2_fwd")
        .sizes(attention_.batch, attention_.heads, attention_.kv_heads, attention_.seqlen_q, attention_.seqlen_kv)
        .number("head_dim", HEAD_DIM)
        .text("dtype", dtype_name(is_bf16<T>))
        .flag("causal", CAUSAL)
        .blocks(BLOCK_M, BLOCK_N)
        .warps(WARPS, STAGES)
        .text("schedule", SCHEDULE == Schedule::interleaved ? "interleaved" : "stages")
        .text("copy", "cp_async")
        .text("mma", "mma")
        .text("layout", is_bshd_ ? "bshd" : "bhsd")
        .text("tile_order", "m_first")
        .flag("tile_reverse", reverse_)
        .flag("persistent", false)
        .number("launches", 1);
    Attention a = attention_;
    bool reverse = reverse_;
    cases.push_back({json, [a, reverse] { return std::unique_ptr<Problem>(new Flash2<C>(a, reverse)); }});

    /* Ends within blocks, GQA, both layouts; then rows that see no key where causal; then whole blocks. */
    add_check<C>(attention(2, 4, 2, 197, 450, HEAD_DIM, CAUSAL, false), false);
    add_check<C>(attention(2, 3, 1, 331, 130, HEAD_DIM, CAUSAL, true), true);
    add_check<C>(attention(1, 2, 2, 512, 512, HEAD_DIM, CAUSAL, is_bshd_), reverse);
    return *this;
  }

 private:
  template <class C>
  static void add_check(const Attention &a, bool reverse) {
    char name[200];
    snprintf(name, sizeof name, "%s head_dim %d causal %d block %dx%d warps %d stages %d%s q %d kv %d",
             dtype_name(is_bf16<T>), HEAD_DIM, CAUSAL, C::BLOCK_M, C::BLOCK_N, C::WARPS, C::STAGES,
             C::SCHEDULE == Schedule::interleaved ? " interleaved" : "", a.seqlen_q, a.seqlen_kv);
    checks.push_back({name, [a, reverse] { return std::unique_ptr<Problem>(new Flash2<C>(a, reverse)); }});
  }

  Attention attention_;
  bool is_bshd_, reverse_;
};

void add_all() {
  constexpr Schedule interleaved = Schedule::interleaved;

  /* Long, not causal. */
  Sweep<__half, 64, false>(2, 16, 16, 4096, 4096, false, false)
      .add<128, 128, 8, 2>()
      .add<128, 64, 8, 3>()
      .add<128, 64, 8, 1>()
      .add<128, 128, 4, 1, interleaved>()
      .add<128, 64, 4, 1, interleaved>()
      .add<128, 64, 4, 2>()
      .add<64, 128, 4, 3>()
      .add<64, 64, 4, 2>()
      .add<64, 32, 4, 3>()
      .add<32, 64, 2, 2>();

  /* Causal with GQA, the long blocks first. */
  Sweep<__nv_bfloat16, 128, true>(1, 32, 8, 4096, 4096, true, true)
      .add<128, 128, 8, 2>()
      .add<128, 128, 8, 1, interleaved>()
      .add<128, 64, 8, 3>()
      .add<128, 64, 4, 1, interleaved>()
      .add<128, 32, 4, 2>()
      .add<64, 128, 4, 1>()
      .add<64, 64, 4, 2>()
      .add<64, 64, 4, 1, interleaved>()
      .add<64, 32, 4, 3>()
      .add<32, 64, 2, 2>();

  /* Short, many heads. */
  Sweep<__half, 128, false>(16, 32, 32, 512, 512, true, false)
      .add<128, 128, 8, 2>()
      .add<128, 64, 8, 1, interleaved>()
      .add<128, 64, 4, 2>()
      .add<128, 32, 8, 3>()
      .add<64, 128, 4, 1, interleaved>()
      .add<64, 64, 4, 1>()
      .add<64, 64, 2, 2>()
      .add<32, 32, 2, 3>();

  /* A head_dim that is no power of two. */
  Sweep<__half, 96, true>(4, 12, 12, 2048, 2048, false, false)
      .add<128, 128, 8, 2>()
      .add<128, 64, 8, 2>()
      .add<128, 64, 4, 1, interleaved>()
      .add<64, 128, 4, 1>()
      .add<64, 64, 4, 3>()
      .add<64, 64, 4, 1, interleaved>()
      .add<64, 32, 4, 2>()
      .add<32, 64, 2, 2>();

  /* Fewer queries than keys, GQA; the last block of 128 queries is half empty. */
  Sweep<__nv_bfloat16, 64, true>(4, 24, 4, 960, 3200, false, false)
      .add<128, 128, 8, 1, interleaved>()
      .add<128, 64, 8, 2>()
      .add<128, 64, 4, 3>()
      .add<128, 32, 2, 2>()
      .add<64, 128, 4, 2>()
      .add<64, 64, 2, 2>()
      .add<64, 64, 4, 1>()
      .add<32, 128, 2, 2>()
      .add<32, 32, 2, 1, interleaved>();
}

}  // namespace

int main(int argc, char **argv) {
  add_all();
  return Commands(cases, checks).run(argc, argv);
}
