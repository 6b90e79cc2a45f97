/* Attention forward for Hopper with wgmma: FlashAttention-2 with cp.async (7 instances) or TMA (7), and
 * FlashAttention-3 with two warpgroups that take turns (6). */
#include <cstring>

#include "commands.h"
#include "forward_problem.h"
#include "kernels.h"
#include "tensor_map.h"

using namespace independent;

struct Instance {
  const char *name;
  int kind;
  bool bf16;
  int head_dim, block_m, block_n, num_warps, num_stages;
  bool causal;
  const void *kernel;
  int shared_bytes, threads;
};
template <class T, int D, int BM, int BN, int NW, int NS, bool C>
static Instance cpa(const char *name) {
  return {name,
          CP_ASYNC,
          is_bf16<T>,
          D,
          BM,
          BN,
          NW,
          NS,
          C,
          (const void *)flash2_cp_async<T, D, BM, BN, NW, NS, C>,
          smem_bytes<D, BM, BN, NS>(),
          NW * 32};
}
template <class T, int D, int BM, int BN, int NW, int NS, bool C>
static Instance tma(const char *name) {
  return {name,
          TMA,
          is_bf16<T>,
          D,
          BM,
          BN,
          NW,
          NS,
          C,
          (const void *)flash2_tma<T, D, BM, BN, NW, NS, C>,
          smem_bytes<D, BM, BN, NS>(),
          NW * 32};
}
template <class T, int D, int BN, int NS, bool C>
static Instance pp(const char *name) {
  return {name,
          PINGPONG,
          is_bf16<T>,
          D,
          128,
          BN,
          8,
          NS,
          C,
          (const void *)flash3_pingpong<T, D, BN, NS, C>,
          smem_bytes<D, 128, BN, NS>(),
          384};
}
typedef __half f16;
typedef __nv_bfloat16 b16;

static const Instance instances[] = {
    cpa<f16, 128, 128, 64, 8, 2, false>("A1"),  cpa<f16, 128, 128, 64, 8, 3, true>("A2"),
    cpa<f16, 64, 64, 64, 4, 2, false>("A3"),    cpa<b16, 64, 128, 128, 8, 2, true>("A4"),
    cpa<b16, 128, 128, 128, 8, 2, false>("A5"), cpa<f16, 64, 128, 64, 4, 3, false>("A6"),
    cpa<b16, 128, 64, 64, 4, 2, false>("A7"),   tma<f16, 128, 128, 64, 8, 2, false>("B1"),
    tma<b16, 128, 128, 128, 8, 2, false>("B2"), tma<f16, 64, 64, 128, 4, 2, false>("B3"),
    tma<f16, 64, 128, 64, 4, 3, false>("B4"),   tma<f16, 128, 128, 64, 8, 3, true>("B5"),
    tma<b16, 64, 128, 128, 8, 3, true>("B6"),   tma<f16, 128, 64, 64, 4, 2, false>("B7"),
    pp<f16, 128, 128, 2, false>("C1"),          pp<f16, 128, 128, 2, true>("C2"),
    pp<f16, 64, 128, 2, false>("C3"),           pp<b16, 64, 128, 3, true>("C4"),
    pp<b16, 128, 96, 2, false>("C5"),           pp<f16, 128, 64, 3, true>("C6"),
};

struct ListedCase {
  const char *instance;
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool head_first, reverse;
};
static const ListedCase listed_cases[] = {
    /* cp.async */
    {"A1", 2, 16, 16, 4096, 4096, false, false},
    {"A1", 8, 32, 8, 1024, 1024, false, false},
    {"A2", 2, 16, 16, 4096, 4096, false, true},
    {"A2", 1, 32, 4, 2048, 2048, false, false},
    {"A3", 4, 12, 12, 2048, 2048, false, false},
    {"A3", 16, 16, 16, 512, 512, true, false},
    {"A4", 1, 16, 16, 8192, 8192, false, true},
    {"A5", 1, 32, 8, 4096, 4096, false, false},
    {"A6", 2, 24, 24, 2048, 2048, false, false},
    {"A7", 4, 16, 4, 2048, 2048, false, false},
    /* TMA */
    {"B1", 2, 16, 16, 4096, 4096, false, false},
    {"B1", 1, 40, 8, 2048, 4096, false, false},
    {"B2", 4, 16, 16, 2048, 2048, false, false},
    {"B3", 4, 12, 12, 2048, 2048, false, false},
    {"B3", 32, 8, 8, 1024, 256, false, false},
    {"B4", 2, 24, 24, 2048, 2048, false, false},
    {"B5", 2, 16, 16, 4096, 4096, false, false},
    {"B5", 1, 32, 8, 8192, 8192, true, true},
    {"B6", 4, 16, 2, 4096, 4096, false, true},
    {"B7", 1, 28, 4, 3072, 3072, false, false},
    /* ping-pong */
    {"C1", 2, 16, 16, 4096, 4096, false, false},
    {"C1", 4, 32, 8, 1024, 2048, false, false},
    {"C2", 2, 16, 16, 4096, 4096, false, true},
    {"C2", 1, 32, 8, 8192, 8192, true, true},
    {"C3", 2, 16, 16, 4096, 4096, false, false},
    {"C4", 4, 16, 4, 4096, 4096, false, true},
    {"C5", 2, 16, 16, 3072, 3072, false, false},
    {"C6", 4, 16, 16, 2048, 2048, false, false},
};

static const Instance &instance_of(const ListedCase &c) {
  for (const Instance &i : instances)
    if (!strcmp(i.name, c.instance)) return i;
  throw std::runtime_error("no such instance");
}

class Forward : public ForwardProblem {
 public:
  Forward(const Instance &instance, const ListedCase &c)
      : ForwardProblem(
            attention(c.batch, c.heads, c.kv_heads, c.seqlen_q, c.seqlen_kv, instance.head_dim, instance.causal),
            instance.bf16),
        instance_(instance),
        head_first_(c.head_first) {
    if (c.seqlen_q % instance.block_m || c.seqlen_kv % instance.block_n ||
        (instance.causal && c.seqlen_q != c.seqlen_kv))
      throw std::runtime_error("unsupported lengths");
    double scale = 1.0 / sqrt((double)instance.head_dim);
    params_ = {q_,
               k_,
               v_,
               o_,
               lse_,
               c.heads,
               c.kv_heads,
               c.seqlen_q,
               c.seqlen_kv,
               (float)scale,
               (float)(scale * 1.4426950408889634),
               c.head_first,
               c.reverse};
    if (instance.kind != CP_ASYNC) make_maps();
    allow_shared(instance.kernel, instance.shared_bytes);
  }

  void launch() override {
    unsigned m_tiles = (unsigned)(a_.seqlen_q / instance_.block_m), heads = (unsigned)(a_.batch * a_.heads);
    void *args[] = {&params_, &q_map_, &k_map_, &v_map_, &o_map_};
    CUDA_CHECK(cudaLaunchKernel(instance_.kernel, head_first_ ? dim3(heads, m_tiles) : dim3(m_tiles, heads),
                                dim3((unsigned)instance_.threads), args, (size_t)instance_.shared_bytes, 0));
  }

 private:
  /* Of the rows of all heads, one after another. */
  CUtensorMap map(void *tensor, size_t numbers, int box_rows) {
    const long long sizes[2] = {a_.head_dim, (long long)numbers / a_.head_dim}, steps[1] = {a_.head_dim};
    return tensor_map(tensor, bf16_, 2, sizes, steps, box_rows, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  }
  void make_maps() {
    q_map_ = map(q_, a_.q_count(), instance_.block_m);
    k_map_ = map(k_, a_.kv_count(), instance_.block_n);
    v_map_ = map(v_, a_.kv_count(), instance_.block_n);
    o_map_ = map(o_, a_.q_count(), 64);
  }

  const Instance &instance_;
  bool head_first_;
  Params params_;
  CUtensorMap q_map_{}, k_map_{}, v_map_{}, o_map_{};
};

static Json parameters(const Instance &i, const ListedCase &c) {
  bool pingpong = i.kind == PINGPONG;
  Json json;
  json.text("workload", pingpong ? "flash3_fwd" : "flash2_fwd");
  json.sizes(c.batch, c.heads, c.kv_heads, c.seqlen_q, c.seqlen_kv);
  json.number("head_dim", i.head_dim).text("dtype", dtype_name(i.bf16)).flag("causal", i.causal);
  json.blocks(i.block_m, i.block_n).warps(i.num_warps, i.num_stages);
  json.text("schedule", pingpong ? "pingpong" : "stages").text("copy", i.kind == CP_ASYNC ? "cp_async" : "tma");
  json.text("mma", "wgmma").text("layout", "bhsd").text("tile_order", c.head_first ? "head_first" : "m_first");
  return json.flag("tile_reverse", c.reverse).flag("persistent", false).number("launches", 1);
}

static Case attention_case(const ListedCase &c) {
  const Instance &i = instance_of(c);
  return {parameters(i, c), [&i, c] { return std::make_unique<Forward>(i, c); }};
}

static std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ListedCase &c : listed_cases) all.push_back(attention_case(c));
  return all;
}

static std::vector<Case> small_cases() {
  std::vector<Case> all;
  for (const Instance &i : instances) {
    all.push_back(attention_case({i.name, 1, 4, 2, 384, 384, false, true}));
    all.push_back(attention_case({i.name, 2, 3, 3, 768, i.causal ? 768 : 1536, true, false}));
  }
  return all;
}

int main(int argc, char **argv) {
  Habits habits;
  habits.status_of_failures = 0;
  return Commands(cases(), checks_of(small_cases()), habits).run(argc, argv);
}
