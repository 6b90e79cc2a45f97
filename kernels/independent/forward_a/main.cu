/* FlashAttention-2 forward with mma.sync and cp.async: two schedules, 24 instances (configs.h). */
#include "commands.h"
#include "configs.h"
#include "flash2.h"
#include "forward_problem.h"

using namespace independent;

struct Instance {
  int head_dim, block_m, block_n, num_warps, num_stages, schedule, shared_bytes;
  bool causal, bf16;
  void (*kernel)(Params);

  const char *schedule_name() const { return schedule == INTERLEAVED ? "interleaved" : "stages"; }
};

template <class C>
static Instance make() {
  return {C::D, C::BM, C::BN, C::NW, C::S, C::SCHED, C::SMEM, C::CAUSAL, is_bf16<typename C::T>, flash2_fwd<C>};
}
#define INSTANCE(id, ...) make<Cfg<__VA_ARGS__>>(),
static const Instance instances[] = {FOR_EACH_CONFIG(INSTANCE)};
#undef INSTANCE

struct Sizes {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
};
struct ListedCase {
  int instance;
  Sizes sizes;
};

static const ListedCase listed_cases[] = {
    /* head_dim 64, 64x64, 4 warps, 2 stages */
    {0, {2, 16, 16, 1024, 1024}},
    {0, {16, 12, 12, 512, 512}},
    {0, {4, 16, 16, 2048, 2048}},
    /* head_dim 64, 128x64, 4 warps, 2 stages; the second group causal */
    {1, {8, 16, 16, 2048, 2048}},
    {1, {1, 16, 16, 8192, 8192}},
    {1, {16, 12, 12, 512, 512}},
    {2, {4, 16, 16, 4096, 4096}},
    {2, {2, 32, 32, 1024, 1024}},
    /* head_dim 64, 8 warps */
    {3, {4, 16, 16, 4096, 4096}},
    {3, {2, 32, 8, 2048, 2048}},
    {4, {8, 16, 16, 2048, 2048}},
    {4, {2, 16, 16, 8192, 8192}},
    /* head_dim 64, 2 warps */
    {5, {1, 16, 16, 1024, 4096}},
    {6, {4, 12, 12, 2048, 2048}},
    /* head_dim 64, one buffer each / one buffer */
    {7, {4, 16, 16, 4096, 4096}},
    {7, {16, 16, 16, 1024, 1024}},
    {8, {4, 16, 16, 2048, 2048}},
    {9, {8, 12, 12, 4096, 4096}},
    {9, {16, 32, 32, 512, 512}},
    /* head_dim 128 */
    {10, {2, 16, 16, 2048, 2048}},
    {10, {8, 8, 8, 1024, 1024}},
    {11, {4, 32, 8, 2048, 2048}},
    {11, {1, 8, 8, 8192, 8192}},
    {12, {4, 16, 16, 2048, 2048}},
    {13, {2, 32, 32, 4096, 4096}},
    {14, {4, 16, 16, 2048, 2048}},
    {15, {1, 32, 4, 4096, 4096}},
    {16, {2, 16, 16, 2048, 2048}},
    {17, {3, 10, 10, 2048, 2048}},
    {18, {2, 16, 16, 4096, 4096}},
    /* bf16 */
    {19, {1, 32, 8, 8192, 8192}},
    {19, {8, 16, 16, 1024, 1024}},
    {20, {4, 24, 24, 2048, 2048}},
    {20, {16, 8, 8, 1024, 1024}},
    {21, {4, 16, 16, 2048, 2048}},
    {21, {1, 32, 32, 512, 4096}},
    /* other head sizes */
    {22, {4, 16, 16, 2048, 2048}},
    {23, {4, 16, 16, 2048, 2048}},
};

class Forward : public ForwardProblem {
 public:
  Forward(const Instance &instance, const Sizes &s)
      : ForwardProblem(
            attention(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv, instance.head_dim, instance.causal),
            instance.bf16),
        instance_(instance) {
    if (s.seqlen_q % instance.block_m || s.seqlen_kv % instance.block_n ||
        (instance.causal && s.seqlen_kv < s.seqlen_q))
      throw std::runtime_error("problem does not fit the tiles");
    params_ = {q_, k_, v_, o_, lse_, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv, a_.scale()};
    tolerance_bf16_ = 1.6e-2;
    allow_shared(instance.kernel, instance.shared_bytes);
  }

  void launch() override {
    dim3 grid((unsigned)(a_.seqlen_q / instance_.block_m), (unsigned)a_.heads, (unsigned)a_.batch);
    instance_.kernel<<<grid, instance_.num_warps * 32, instance_.shared_bytes>>>(params_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  const Instance &instance_;
  Params params_;
};

static Json parameters(const Instance &i, const Sizes &s) {
  Json json;
  json.text("workload", "flash2_fwd").text("pass", "fwd");
  json.sizes(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv).number("head_dim", i.head_dim);
  json.text("dtype", dtype_name(i.bf16)).flag("causal", i.causal);
  json.blocks(i.block_m, i.block_n).warps(i.num_warps, i.num_stages).text("schedule", i.schedule_name());
  json.flag("persistent", false).text("tile_order", "m_first").flag("tile_reverse", false);
  return json.text("copy", "cp_async").text("mma", "mma").text("layout", "bhsd").number("launches", 1);
}

static Case attention_case(const Instance &i, const Sizes &s) {
  return {parameters(i, s), [&i, s] { return std::make_unique<Forward>(i, s); }};
}

static std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ListedCase &c : listed_cases) all.push_back(attention_case(instances[c.instance], c.sizes));
  return all;
}

static std::vector<Case> small_cases() {
  std::vector<Case> all;
  for (const Instance &i : instances)
    for (const Sizes &s : {Sizes{1, 4, 2, 384, 384}, Sizes{2, 3, 3, 256, 640}}) all.push_back(attention_case(i, s));
  return all;
}

int main(int argc, char **argv) { return Commands(cases(), checks_of(small_cases())).run(argc, argv); }
