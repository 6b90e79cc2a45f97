/* Attention backward by dQ in atomics, and a few forward passes: cp.async and mma.sync. */
#include "commands.h"
#include "problems.h"

namespace backward_b {

using independent::Case;
using independent::Check;
using independent::Json;

struct Sizes {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool causal, bshd;
};

/* Last tiles, groups of heads, more queries than keys and the reverse, both layouts. */
const std::vector<Sizes> small_sizes = {{1, 2, 2, 256, 256, false, false}, {2, 4, 2, 200, 264, true, true},
                                        {1, 4, 1, 320, 192, true, false},  {1, 2, 2, 130, 77, false, true},
                                        {2, 3, 3, 257, 257, true, false},  {1, 6, 2, 100, 513, true, true}};

class Program {
 public:
  template <class S, class T>
  void backward(const std::vector<Sizes> &all) {
    auto describe = [](Json &json) { json.text("dq", "atomics").number("launches", 3); };
    add<Backward<S, T>, S, T>("flash2_bwd", "backward", all, describe);
  }
  template <class S, class T>
  void forward(const std::vector<Sizes> &all) {
    auto describe = [](Json &json) {
      json.text("schedule", S::interleaved ? "interleaved" : "stages").number("launches", 1);
    };
    add<Forward<S, T>, S, T>("flash2_fwd", "forward", all, describe);
  }

  std::vector<Case> cases;
  std::vector<Check> checks;

 private:
  template <class Pass, class S>
  static independent::MakeProblem maker(const Sizes &z) {
    return [z] {
      return std::make_unique<Pass>(
          independent::attention(z.batch, z.heads, z.kv_heads, z.seqlen_q, z.seqlen_kv, S::head_dim, z.causal, z.bshd));
    };
  }

  template <class S, class T>
  static Json parameters(const char *workload, const char *pass, const Sizes &z) {
    Json json;
    json.text("workload", workload).text("pass", pass);
    json.sizes(z.batch, z.heads, z.kv_heads, z.seqlen_q, z.seqlen_kv).number("head_dim", S::head_dim);
    json.text("dtype", independent::dtype_name(independent::is_bf16<T>)).flag("causal", z.causal);
    json.blocks(S::block_m, S::block_n).warps(S::warps, S::stages);
    return json.text("copy", "cp_async").text("mma", "mma").text("layout", z.bshd ? "bshd" : "bhsd");
  }

  template <class Pass, class S, class T, class Describe>
  void add(const char *workload, const char *pass, const std::vector<Sizes> &all, Describe describe) {
    for (const Sizes &z : all) {
      Json json = parameters<S, T>(workload, pass, z);
      describe(json);
      cases.push_back({json, maker<Pass, S>(z)});
    }
    for (const Sizes &z : small_sizes)
      checks.push_back({parameters<S, T>(workload, pass, z).joined(","), maker<Pass, S>(z)});
  }
};

typedef __half H;
typedef __nv_bfloat16 B;

/* BackwardShape: head_dim, block_m, block_n, warps, stages, chunk, ctas, keep. */
void add_backward_64(Program &p) {
  typedef BackwardShape<64, 64, 64, 4, 2, 32, 3, true> Small;
  typedef BackwardShape<64, 64, 128, 8, 2, 32, 1, true> Wide;
  typedef BackwardShape<64, 128, 64, 4, 2, 32, 2, true> Tall;
  typedef BackwardShape<64, 128, 128, 8, 2, 64, 1, true> Large;
  typedef BackwardShape<64, 32, 128, 4, 2, 32, 2, false> Thick;
  typedef BackwardShape<64, 32, 128, 8, 2, 32, 2, false> Flat;
  typedef BackwardShape<64, 64, 128, 8, 1, 64, 1, true> OneStage;
  p.backward<Small, H>({{4, 16, 16, 2048, 2048, false, false}, {8, 12, 12, 1024, 1024, false, true}});
  p.backward<Small, B>({{2, 16, 4, 4096, 4096, true, true}});
  p.backward<Wide, B>({{4, 16, 16, 2048, 2048, true, false}});
  p.backward<Wide, H>({{1, 32, 8, 4096, 4096, false, true}});
  p.backward<Tall, H>({{4, 16, 16, 2048, 2048, false, true}, {2, 32, 8, 2048, 2048, true, false}});
  p.backward<Large, B>({{4, 16, 16, 2048, 2048, false, false}, {2, 16, 8, 4096, 4096, true, true}});
  p.backward<Thick, H>({{4, 16, 4, 2048, 2048, true, false}, {2, 16, 16, 1024, 4096, false, true}});
  p.backward<Flat, H>({{2, 32, 32, 2048, 2048, true, true}});
  p.backward<OneStage, B>({{8, 8, 8, 2048, 2048, false, false}});
}

void add_backward_128(Program &p) {
  typedef BackwardShape<128, 64, 64, 4, 2, 32, 2, false> Small;
  typedef BackwardShape<128, 64, 128, 8, 2, 32, 1, false> Wide;
  typedef BackwardShape<128, 32, 128, 8, 2, 32, 1, false> Flat;
  typedef BackwardShape<128, 64, 64, 4, 1, 64, 2, false> OneStage;
  typedef BackwardShape<128, 32, 64, 4, 3, 32, 2, false> ThreeStages;
  p.backward<Small, H>({{2, 16, 16, 2048, 2048, false, false}});
  p.backward<Small, B>({{2, 16, 4, 2048, 2048, true, true}});
  p.backward<Wide, B>({{2, 16, 16, 2048, 2048, false, true}, {1, 32, 8, 4096, 4096, true, false}});
  p.backward<Flat, B>({{4, 8, 2, 2048, 2048, true, false}});
  p.backward<OneStage, H>({{4, 16, 8, 1000, 1000, false, true}});
  p.backward<ThreeStages, H>({{1, 16, 16, 3072, 3072, true, false}});
}

/* ForwardShape: head_dim, block_m, block_n, warps, stages, interleaved, ctas. */
void add_forward(Program &p) {
  p.forward<ForwardShape<64, 128, 64, 4, 2, false, 2>, H>({{4, 16, 16, 4096, 4096, false, false}});
  p.forward<ForwardShape<64, 64, 64, 4, 3, false, 3>, B>({{4, 16, 4, 4096, 4096, true, true}});
  p.forward<ForwardShape<64, 128, 128, 8, 2, false, 1>, B>({{2, 32, 8, 2048, 4096, true, false}});
  p.forward<ForwardShape<128, 128, 64, 8, 2, false, 1>, H>({{2, 16, 16, 4096, 4096, false, true}});
  p.forward<ForwardShape<128, 64, 64, 4, 1, true, 2>, B>({{2, 32, 8, 4096, 4096, true, false}});
  p.forward<ForwardShape<128, 128, 64, 8, 1, true, 1>, H>({{4, 16, 16, 2000, 2000, false, true}});
}

}  // namespace backward_b

int main(int argc, char **argv) {
  backward_b::Program program;
  backward_b::add_backward_64(program);
  backward_b::add_backward_128(program);
  backward_b::add_forward(program);
  return independent::Commands(program.cases, program.checks).run(argc, argv);
}
