/* Attention forward on Hopper with wgmma and TMA, in two kernels, over sweeps of tiles: bf16 with head_dim 128, fp16 with
 * head_dim 64. */
#include "commands.h"
#include "forward_problem.h"
#include "specialised.h"
#include "tensor_map.h"
#include "uniform.h"

using namespace independent;

typedef void (*Kernel)(const Params, const CUtensorMap, const CUtensorMap, const CUtensorMap, const CUtensorMap);

struct Instance {
  std::string name;
  Kernel kernel;
  bool bf16;
  int head_dim, block_m, block_n, num_warps, num_stages, threads, shared_bytes;
  const char *workload, *schedule;
};

template <int D>
using Element = std::conditional_t<D == 128, __nv_bfloat16, __half>;

template <int D, int BM, int BN, int Stages, bool PingPong, int ProducerWarps = 4, int MinCtas = 1>
Instance specialised() {
  typedef Element<D> T;
  typedef Specialised<T, D, BM, BN, Stages, PingPong, ProducerWarps, MinCtas> S;
  std::string name = std::string("specialised ") + (PingPong ? "pingpong" : "plain") + " producer" +
                     std::to_string(ProducerWarps);
  return {name,
          attention_specialised<T, D, BM, BN, Stages, PingPong, ProducerWarps, MinCtas>,
          is_bf16<T>,
          D,
          BM,
          BN,
          S::warpgroups * 4,
          Stages,
          S::threads,
          S::shared_bytes,
          "flash3_fwd",
          PingPong ? "pingpong" : "stages"};
}

template <int D, int BM, int BN, int Warpgroups, int Stages, Free F, int MinCtas = 1>
Instance uniform() {
  typedef Element<D> T;
  typedef Uniform<T, D, BM, BN, Warpgroups, Stages, F> U;
  const char *names[] = {"sync", "barrier", "interleaved"};
  return {std::string("uniform ") + names[(int)F],
          attention_uniform<T, D, BM, BN, Warpgroups, Stages, F, MinCtas>,
          is_bf16<T>,
          D,
          BM,
          BN,
          Warpgroups * 4,
          Stages,
          U::threads,
          U::shared_bytes,
          "flash2_fwd",
          F == Free::interleaved ? "interleaved" : "stages"};
}

struct Shape {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool causal, bshd, reverse, head_first;
};

class Forward : public ForwardProblem {
 public:
  Forward(const Instance &instance, const Shape &shape)
      : ForwardProblem(attention(shape.batch, shape.heads, shape.kv_heads, shape.seqlen_q, shape.seqlen_kv,
                                 instance.head_dim, shape.causal, shape.bshd),
                       instance.bf16),
        instance_(instance) {
    q_map_ = map(q_, a_.q, a_.heads, a_.seqlen_q, instance.block_m);
    o_map_ = map(o_, a_.q, a_.heads, a_.seqlen_q, 64);
    k_map_ = map(k_, a_.kv, a_.kv_heads, a_.seqlen_kv, instance.block_n);
    v_map_ = map(v_, a_.kv, a_.kv_heads, a_.seqlen_kv, instance.block_n);
    int tiles = (a_.seqlen_q + instance.block_m - 1) / instance.block_m;
    params_ = {o_,
               lse_,
               a_.q.batch,
               a_.q.head,
               a_.q.row,
               a_.seqlen_q,
               a_.seqlen_kv,
               a_.heads,
               a_.heads / a_.kv_heads,
               tiles,
               a_.causal,
               shape.reverse,
               shape.head_first,
               a_.scale(),
               a_.scale() * 1.44269504f};
    grid_ = shape.head_first ? dim3((unsigned)a_.heads, (unsigned)a_.batch, (unsigned)tiles)
                             : dim3((unsigned)tiles, (unsigned)a_.heads, (unsigned)a_.batch);
    allow_shared(instance.kernel, instance.shared_bytes);
  }
  void launch() override {
    instance_.kernel<<<grid_, instance_.threads, instance_.shared_bytes>>>(params_, q_map_, k_map_, v_map_, o_map_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  CUtensorMap map(void *base, const Strides &s, int heads, int rows, int box_rows) const {
    long long sizes[4] = {a_.head_dim, rows, heads, a_.batch}, strides[3] = {s.row, s.head, s.batch};
    return tensor_map(base, bf16_, 4, sizes, strides, box_rows, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  }

  Instance instance_;
  CUtensorMap q_map_, k_map_, v_map_, o_map_;
  Params params_;
  dim3 grid_;
};

static MakeProblem maker(const Instance &instance, const Shape &shape) {
  return [instance, shape]() -> std::unique_ptr<Problem> { return std::make_unique<Forward>(instance, shape); };
}

static Case case_of(const Instance &i, const Shape &s) {
  Json j;
  j.text("workload", i.workload).sizes(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv);
  j.number("head_dim", i.head_dim).text("dtype", dtype_name(i.bf16)).flag("causal", s.causal);
  j.text("layout", s.bshd ? "bshd" : "bhsd").blocks(i.block_m, i.block_n).warps(i.num_warps, i.num_stages);
  j.text("schedule", i.schedule).text("copy", "tma").text("mma", "wgmma").flag("persistent", false);
  j.text("tile_order", s.head_first ? "head_first" : "m_first").flag("tile_reverse", s.reverse);
  j.number("launches", 1);
  return {j, maker(i, s)};
}

int main(int argc, char **argv) {
  /* head_dim 128, bf16 */
  Instance pp_128_128 = specialised<128, 128, 128, 2, true>(), pp_128_176 = specialised<128, 128, 176, 2, true>(),
           pp_128_80 = specialised<128, 128, 80, 3, true>(), pp_192_80 = specialised<128, 192, 80, 2, true>(),
           ws_128_128 = specialised<128, 128, 128, 2, false>(), ws_128_64 = specialised<128, 128, 64, 3, false>(),
           ws_64_128 = specialised<128, 64, 128, 2, false, 1>(), ws_128_96 = specialised<128, 128, 96, 3, false, 1>(),
           ws_192_128 = specialised<128, 192, 128, 2, false>();
  Instance un_128_64 = uniform<128, 128, 64, 2, 2, Free::sync>(), un_128_128 = uniform<128, 128, 128, 2, 2, Free::sync>(),
           un_64_64 = uniform<128, 64, 64, 1, 2, Free::sync, 2>(), un_128_80 = uniform<128, 128, 80, 2, 3, Free::barrier>(),
           un_192_64 = uniform<128, 192, 64, 3, 2, Free::barrier>(),
           in_128_128 = uniform<128, 128, 128, 2, 1, Free::interleaved>();
  /* head_dim 64, fp16 */
  Instance pp_128_128_h = specialised<64, 128, 128, 2, true>(), pp_192_128_h = specialised<64, 192, 128, 2, true>(),
           ws_128_176_h = specialised<64, 128, 176, 2, false>(), ws_128_64_h = specialised<64, 128, 64, 3, false, 1>(),
           ws_64_128_h = specialised<64, 64, 128, 2, false, 4, 2>(), ws_192_80_h = specialised<64, 192, 80, 3, false>();
  Instance un_128_64_h = uniform<64, 128, 64, 2, 2, Free::sync, 2>(), un_128_128_h = uniform<64, 128, 128, 2, 2, Free::barrier>(),
           un_192_96_h = uniform<64, 192, 96, 3, 2, Free::barrier>(), un_128_64_two_h = uniform<64, 128, 64, 1, 2, Free::sync, 2>(),
           in_64_64_h = uniform<64, 64, 64, 1, 1, Free::interleaved, 3>();

  const std::vector<std::pair<Shape, std::vector<Instance>>> problems = {
      /* head_dim 128 */
      {{2, 16, 16, 4096, 4096, false, false, false, false},
       {pp_128_128, pp_128_176, pp_128_80, ws_128_64, ws_64_128, un_128_128, un_64_64, un_192_64, in_128_128}},
      {{1, 16, 16, 8192, 8192, true, false, true, false},
       {pp_128_128, pp_192_80, ws_128_128, ws_128_96, ws_192_128, un_128_64, un_128_80}},
      {{2, 32, 8, 2048, 2048, true, true, true, true}, {pp_128_176, ws_128_128, un_128_80, in_128_128}},
      {{8, 16, 16, 1024, 1024, false, false, false, false}, {ws_192_128, un_128_64}},
      {{2, 16, 16, 3000, 3000, false, false, false, false}, {pp_128_80, un_192_64}},
      /* head_dim 64 */
      {{4, 16, 16, 2048, 2048, false, false, false, false},
       {pp_128_128_h, pp_192_128_h, ws_128_64_h, ws_192_80_h, un_128_128_h, un_128_64_two_h, in_64_64_h}},
      {{2, 32, 32, 4096, 4096, true, false, false, false},
       {pp_192_128_h, ws_128_176_h, ws_64_128_h, un_128_64_h, un_192_96_h, un_128_64_two_h}},
      {{2, 24, 24, 1000, 3500, true, false, false, false}, {ws_128_176_h, un_128_128_h}},
  };
  std::vector<Case> cases;
  for (const auto &problem : problems)
    for (const Instance &instance : problem.second) cases.push_back(case_of(instance, problem.first));

  std::vector<Check> checks;
  auto check = [&](const Instance &i, const char *what, const Shape &shape) {
    checks.push_back({i.name + " d" + std::to_string(i.head_dim) + " " + std::to_string(i.block_m) + "x" +
                          std::to_string(i.block_n) + " stages" + std::to_string(i.num_stages) + " warps" +
                          std::to_string(i.num_warps) + " " + what,
                      maker(i, shape)});
  };
  for (const Instance &i :
       {pp_128_128,   pp_128_176,   pp_128_80,    pp_192_80,   ws_128_128,   ws_128_64,   ws_64_128,    ws_128_96,
        ws_192_128,   un_128_64,    un_128_128,   un_64_64,    un_128_80,    un_192_64,   in_128_128,   pp_128_128_h,
        pp_192_128_h, ws_128_176_h, ws_128_64_h,  ws_64_128_h, ws_192_80_h,  un_128_64_h, un_128_128_h, un_192_96_h,
        un_128_64_two_h, in_64_64_h}) {
    check(i, "full ragged", {2, 2, 2, 333, 1111, false, false, false, false});
    check(i, "causal", {1, 2, 2, 1152, 1152, true, false, true, false});
    check(i, "causal gqa ragged bshd", {1, 4, 2, 500, 1100, true, true, true, true});
    check(i, "causal rows without keys", {1, 2, 1, 400, 260, true, false, false, false});
  }
  return Commands(cases, checks).run(argc, argv);
}
