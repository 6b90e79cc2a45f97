/* FlashAttention-2's backward pass with mma.sync and cp.async. Forms (configuration.h): P and dS by way of shared memory,
 * or in registers, both with three launches (D and zeroing, dK and dV and sums of dQ, rounding of dQ); or without atomics
 * in two launches (dQ, then dK and dV). Some cases of the forward pass. */
#include "commands.h"

#include "backward_problem.h"
#include "forward.h"

using namespace backward_a;
using independent::attention;
using independent::Case;
using independent::Check;
using independent::Json;

namespace {

struct Shape {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
};

/* Ragged ends, rows that see no key if causal, whole blocks; groups. */
const Shape CHECKED[] = {{2, 2, 1, 200, 333}, {1, 2, 2, 384, 256}, {1, 4, 2, 256, 256}};

std::vector<Case> cases;
std::vector<Check> checks;

template <template <class> class P, class C>
independent::MakeProblem maker(const Shape &s) {
  return [s] {
    return std::unique_ptr<independent::Problem>(new P<C>(
        attention(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv, C::D, C::CAUSAL)));
  };
}

template <class C>
Json description(const char *workload, int launches, const Shape &s) {
  Json json;
  json.text("workload", workload).sizes(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv);
  json.number("head_dim", C::D).text("dtype", independent::dtype_name(independent::is_bf16<typename C::T>));
  json.flag("causal", C::CAUSAL).blocks(C::BM, C::BN).warps(C::WARPS, C::STAGES);
  json.text("schedule", C::OVERLAP == Overlap::interleaved ? "interleaved" : "stages");
  json.text("copy", "cp_async").text("mma", "mma").text("layout", "bhsd");
  return json.number("launches", launches);
}

template <class T, Form FORM, int D, int BM, int BN, int WARPS, Overlap OVERLAP, bool CAUSAL>
void add(const std::vector<Shape> &shapes) {
  typedef Configuration<T, FORM, D, BM, BN, WARPS, OVERLAP, CAUSAL> C;
  for (const Shape &s : shapes) cases.push_back({description<C>("flash2_bwd", BackwardProblem<C>::LAUNCHES, s), maker<BackwardProblem, C>(s)});
  const char *form = FORM == Form::shared ? "shared " : FORM == Form::registers ? "registers " : "split ";
  for (const Shape &s : CHECKED)
    checks.push_back({form + description<C>("flash2_bwd", BackwardProblem<C>::LAUNCHES, s).joined(","), maker<BackwardProblem, C>(s)});
}

template <class T, int D, int BM, int BN, int WARPS, Overlap OVERLAP, bool CAUSAL>
void add_forward(const std::vector<Shape> &shapes) {
  typedef ForwardConfiguration<T, D, BM, BN, WARPS, OVERLAP, CAUSAL> C;
  for (const Shape &s : shapes) cases.push_back({description<C>("flash2_fwd", 1, s), maker<Forward, C>(s)});
  for (const Shape &s : CHECKED)
    checks.push_back({description<C>("flash2_fwd", 1, s).joined(","), maker<Forward, C>(s)});
}

}  // namespace

int main(int argc, char **argv) {
  typedef __half H;
  typedef __nv_bfloat16 B;
  constexpr Form SHARED = Form::shared, REGISTERS = Form::registers, SPLIT = Form::split;
  constexpr Overlap NONE = Overlap::none, INTERLEAVED = Overlap::interleaved, TWO = Overlap::two_stages;

  add<H, SHARED, 64, 64, 64, 4, TWO, false>({{16, 16, 16, 1024, 1024}});
  add<B, SHARED, 64, 64, 64, 4, TWO, true>({{4, 16, 16, 4096, 4096}});
  add<H, SHARED, 64, 64, 128, 8, TWO, true>({{8, 16, 16, 2048, 2048}});
  add<H, SHARED, 64, 128, 128, 8, TWO, false>({{8, 16, 16, 2048, 2048}, {32, 16, 16, 512, 512}});
  add<B, SHARED, 64, 128, 128, 8, INTERLEAVED, true>({{8, 16, 16, 2048, 2048}});
  add<H, SHARED, 64, 128, 64, 4, NONE, false>({{16, 16, 16, 1024, 1024}});
  add<H, SHARED, 128, 64, 64, 4, TWO, false>({{8, 16, 16, 1024, 1024}});
  add<B, SHARED, 128, 64, 64, 4, INTERLEAVED, true>({{2, 16, 16, 4096, 4096}});
  add<H, SHARED, 128, 64, 128, 8, TWO, false>(
      {{4, 16, 16, 2048, 2048}, {16, 16, 16, 512, 2048}, {5, 16, 16, 1500, 1500}});
  add<B, SHARED, 128, 64, 128, 8, TWO, true>({{2, 32, 8, 2048, 2048}, {2, 16, 16, 4096, 4096}});
  add<H, SHARED, 128, 32, 128, 8, TWO, true>({{4, 16, 16, 2048, 2048}});
  add<B, SHARED, 128, 64, 64, 8, NONE, false>({{4, 32, 32, 1024, 1024}});
  add<H, SHARED, 128, 128, 64, 8, INTERLEAVED, true>({{4, 16, 16, 2048, 2048}});

  add<H, REGISTERS, 64, 64, 64, 4, TWO, true>({{8, 16, 16, 2048, 2048}, {8, 32, 4, 1024, 1024}});
  add<H, REGISTERS, 64, 32, 128, 4, INTERLEAVED, false>({{16, 16, 16, 1024, 1024}});
  add<B, REGISTERS, 64, 64, 128, 8, TWO, false>({{16, 16, 16, 1024, 1024}});
  add<H, REGISTERS, 128, 64, 128, 8, TWO, true>({{4, 16, 16, 2048, 2048}, {2, 32, 4, 2048, 2048}});
  add<B, REGISTERS, 128, 32, 128, 8, INTERLEAVED, false>({{16, 8, 8, 1024, 1024}});

  add<H, SPLIT, 64, 64, 64, 4, TWO, false>({{16, 16, 16, 1024, 1024}});
  add<B, SPLIT, 64, 128, 128, 8, TWO, true>({{8, 16, 16, 2048, 2048}});
  add<H, SPLIT, 128, 64, 64, 4, TWO, true>({{4, 16, 16, 2048, 2048}, {4, 32, 8, 1024, 1024}});
  add<B, SPLIT, 128, 64, 64, 4, NONE, false>({{8, 16, 16, 1024, 1024}});

  add_forward<H, 64, 128, 128, 4, INTERLEAVED, false>({{8, 16, 16, 2048, 2048}});
  add_forward<B, 64, 64, 64, 4, TWO, true>({{8, 32, 8, 2048, 2048}});
  add_forward<H, 128, 128, 64, 4, INTERLEAVED, true>({{4, 16, 16, 4096, 4096}});
  add_forward<B, 128, 128, 64, 8, TWO, false>({{4, 16, 16, 2048, 2048}});
  add_forward<H, 128, 64, 64, 4, TWO, false>({{8, 16, 16, 1024, 1024}});
  add_forward<H, 128, 128, 128, 8, INTERLEAVED, true>({{4, 32, 4, 2048, 2048}});

  return independent::Commands(cases, checks).run(argc, argv);
}
