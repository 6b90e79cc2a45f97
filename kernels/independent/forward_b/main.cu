/* FlashAttention-2 forward with mma.sync and cp.async, strided tensors and lengths that need not be multiples of the
 * tiles: 19 instances. */
#include "commands.h"
#include "flash_fwd.h"
#include "forward_problem.h"

using namespace independent;

struct Instance {
  char name;
  bool bf16;
  int head_dim, block_m, block_n, num_warps, num_stages;
  bool causal, ragged;
  int shared_bytes;
  void (*kernel)(const FwdParams);

  const char *schedule_name() const { return num_stages == 1 ? "interleaved" : "stages"; }
};
template <class C>
static Instance make(char name) {
  return {name,    is_bf16<typename C::T>, C::HD, C::BM, C::BN, C::WARPS, C::STAGES, C::CAUSAL, C::RAGGED,
          C::SMEM, flash_fwd_kernel<C>};
}
using f16 = __half;
using bf16 = __nv_bfloat16;
constexpr bool CAUSAL = true, FULL = false, RAGGED = true, EVEN = false;
constexpr int INTER = 1, DOUBLE = 2;

static const Instance instances[] = {
    make<FwdConfig<f16, 64, 128, 64, 4, INTER, FULL, EVEN>>('A'),
    make<FwdConfig<f16, 64, 128, 128, 4, INTER, FULL, EVEN>>('B'),
    make<FwdConfig<f16, 64, 128, 128, 4, INTER, CAUSAL, RAGGED>>('C'),
    make<FwdConfig<f16, 64, 64, 64, 4, DOUBLE, FULL, EVEN>>('D'),
    make<FwdConfig<bf16, 64, 64, 128, 4, DOUBLE, CAUSAL, EVEN>>('E'),
    make<FwdConfig<bf16, 64, 128, 64, 8, DOUBLE, FULL, RAGGED>>('F'),
    make<FwdConfig<f16, 64, 128, 32, 8, DOUBLE, CAUSAL, EVEN>>('G'),
    make<FwdConfig<f16, 96, 128, 64, 4, INTER, FULL, EVEN>>('H'),
    make<FwdConfig<bf16, 96, 64, 64, 4, INTER, CAUSAL, EVEN>>('I'),
    make<FwdConfig<bf16, 96, 128, 64, 8, DOUBLE, CAUSAL, RAGGED>>('J'),
    make<FwdConfig<f16, 96, 64, 32, 4, DOUBLE, FULL, RAGGED>>('K'),
    make<FwdConfig<f16, 128, 128, 64, 4, INTER, FULL, EVEN>>('L'),
    make<FwdConfig<bf16, 128, 128, 64, 4, INTER, CAUSAL, RAGGED>>('M'),
    make<FwdConfig<bf16, 128, 128, 32, 4, INTER, CAUSAL, EVEN>>('N'),
    make<FwdConfig<bf16, 128, 64, 64, 4, DOUBLE, CAUSAL, EVEN>>('O'),
    make<FwdConfig<f16, 128, 128, 64, 8, DOUBLE, FULL, RAGGED>>('P'),
    make<FwdConfig<bf16, 128, 128, 64, 8, DOUBLE, CAUSAL, EVEN>>('Q'),
    make<FwdConfig<f16, 128, 128, 128, 8, INTER, FULL, EVEN>>('R'),
    make<FwdConfig<bf16, 128, 64, 128, 4, INTER, CAUSAL, EVEN>>('T'),
};

struct ListedCase {
  char instance;
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool bshd = false, reverse = false;
};
static const ListedCase listed_cases[] = {
    {'A', 5, 12, 12, 1152, 1152},
    {'A', 2, 24, 8, 2688, 2688},
    {'B', 1, 20, 20, 4480, 4480},
    {'B', 7, 14, 2, 640, 3200},
    {'C', 2, 16, 4, 4097, 4097},
    {'C', 12, 18, 18, 1000, 1000, true},
    {'D', 4, 9, 9, 1984, 1984},
    {'D', 1, 40, 8, 704, 6400},
    {'E', 3, 32, 4, 2176, 2176, false, true},
    {'E', 1, 12, 12, 8960, 8960},
    {'F', 5, 16, 16, 1500, 1500},
    {'F', 2, 12, 3, 2500, 5000},
    {'G', 8, 6, 6, 1664, 1664},
    {'H', 2, 16, 16, 2304, 2304},
    {'H', 1, 32, 8, 768, 7680, true},
    {'I', 3, 22, 22, 1728, 1728},
    {'J', 4, 12, 6, 2500, 2500},
    {'J', 1, 24, 24, 6001, 6001, false, true},
    {'K', 6, 8, 8, 900, 1100},
    {'L', 2, 28, 4, 3456, 3456},
    {'L', 9, 6, 6, 896, 896},
    {'M', 1, 40, 8, 5555, 5555},
    {'M', 3, 10, 2, 1800, 1800, true, true},
    {'N', 2, 14, 14, 3200, 3200},
    {'O', 1, 32, 8, 4416, 4416},
    {'P', 2, 18, 6, 2900, 3700},
    {'P', 11, 8, 8, 500, 777},
    {'Q', 1, 36, 6, 7040, 7040, false, true},
    {'R', 4, 26, 26, 1792, 1792},
    {'T', 2, 20, 5, 2944, 2944},
};

static const Instance &instance_of(const ListedCase &c) {
  for (const Instance &i : instances)
    if (i.name == c.instance) return i;
  throw std::runtime_error("no such instance");
}

class Forward : public ForwardProblem {
 public:
  Forward(const Instance &instance, const ListedCase &c)
      : ForwardProblem(attention(c.batch, c.heads, c.kv_heads, c.seqlen_q, c.seqlen_kv, instance.head_dim,
                                 instance.causal, c.bshd),
                       instance.bf16),
        instance_(instance) {
    if (!instance.ragged && (c.seqlen_q % instance.block_m || c.seqlen_kv % instance.block_n))
      throw std::runtime_error("lengths need a ragged kernel");
    params_.q = q_, params_.k = k_, params_.v = v_, params_.o = o_, params_.lse = lse_;
    params_.seqlen_q = c.seqlen_q, params_.seqlen_kv = c.seqlen_kv;
    params_.heads = c.heads, params_.group = c.heads / c.kv_heads;
    params_.q_batch = a_.q.batch, params_.q_head = a_.q.head, params_.q_row = (int)a_.q.row;
    params_.kv_batch = a_.kv.batch, params_.kv_head = a_.kv.head, params_.kv_row = (int)a_.kv.row;
    params_.scale = a_.scale(), params_.scale_log2 = params_.scale * 1.4426950408889634f;
    params_.reverse = c.reverse;
    lse_tolerance_ = 2e-3;
    allow_shared(instance.kernel, instance.shared_bytes);
  }

  void launch() override {
    int m_tiles = (a_.seqlen_q + instance_.block_m - 1) / instance_.block_m;
    dim3 grid((unsigned)m_tiles, (unsigned)a_.heads, (unsigned)a_.batch);
    instance_.kernel<<<grid, instance_.num_warps * 32, instance_.shared_bytes>>>(params_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  const Instance &instance_;
  FwdParams params_{};
};

static Json parameters(const Instance &i, const ListedCase &c) {
  Json json;
  json.text("workload", "flash2_fwd").sizes(c.batch, c.heads, c.kv_heads, c.seqlen_q, c.seqlen_kv);
  json.number("head_dim", i.head_dim).text("dtype", dtype_name(i.bf16)).flag("causal", i.causal);
  json.blocks(i.block_m, i.block_n).warps(i.num_warps, i.num_stages).text("schedule", i.schedule_name());
  json.flag("persistent", false).text("tile_order", "m_first").flag("tile_reverse", c.reverse);
  json.text("copy", "cp_async").text("mma", "mma").text("layout", c.bshd ? "bshd" : "bhsd");
  return json.number("launches", 1);
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
    ListedCase plain{i.name, 2, 4, 2, 384, 512, false, false}, bshd{i.name, 1, 6, 2, 256, 256, true, true};
    if (i.ragged) {
      plain.seqlen_q = 201, plain.seqlen_kv = 333;
      bshd.seqlen_q = 317, bshd.seqlen_kv = i.causal ? 250 : 90; /* causal: the first rows see no key */
    }
    all.push_back(attention_case(plain));
    all.push_back(attention_case(bshd));
  }
  return all;
}

int main(int argc, char **argv) {
  Habits habits;
  habits.separator = ", ";
  habits.us_digits = 2;
  return Commands(cases(), checks_of(small_cases()), habits).run(argc, argv);
}
