/* Attention forward (mma.sync, wgmma), attention backward and matrix products, each in several tiles. */
#include "commands.h"
#include "problems.h"

namespace mixed_f {

typedef __half H;
typedef __nv_bfloat16 B;

class Family {
 public:
  template <class P, class S>
  void add(const S &shape, std::initializer_list<S> small) {
    cases.push_back({P::describe(shape), maker<P>(shape)});
    for (const S &s : small) checks.push_back({P::describe(s).joined(","), maker<P>(s)});
  }
  std::vector<Case> cases;
  std::vector<Check> checks;

 private:
  template <class P, class S>
  static MakeProblem maker(const S &shape) {
    return [shape] { return std::unique_ptr<Problem>(new P(shape)); };
  }
};

const TileOrder backwards = {false, true}, heads_first = {true, false}, heads_first_backwards = {true, true};

void add_mma_forward(Family &f) {
  f.add<MmaForward<Tiling<H, 64, 64, 64, 4, 2, false>>, Shape>({4, 16, 16, 2048, 2048},
                                                               {{2, 3, 3, 256, 256}, {1, 2, 1, 100, 333}});
  f.add<MmaForward<Tiling<B, 64, 128, 64, 4, 2, true>>, Shape>(
      {2, 32, 8, 4096, 4096, true, backwards}, {{2, 4, 2, 256, 256, true, backwards}, {1, 4, 1, 200, 331, true}});
  f.add<MmaForward<Tiling<H, 128, 64, 64, 4, 2, true, 2>>, Shape>(
      {2, 16, 16, 4096, 4096}, {{1, 2, 2, 256, 256}, {1, 2, 1, 300, 170, false, backwards}});
  f.add<MmaForward<Tiling<B, 128, 128, 64, 8, 2, false>>, Shape>(
      {1, 32, 4, 2048, 2048, true, heads_first}, {{2, 4, 2, 256, 256, true, heads_first}, {1, 2, 2, 77, 200, true}});
  f.add<MmaForward<Tiling<H, 64, 128, 32, 4, 3, false>>, Shape>({8, 12, 12, 1024, 1024, true},
                                                                {{2, 2, 2, 256, 256, true}, {1, 3, 1, 140, 50}});
  f.add<MmaForward<Tiling<B, 64, 128, 64, 8, 3, true, 2>>, Shape>(
      {2, 16, 2, 3072, 3072, false, heads_first_backwards},
      {{2, 4, 1, 384, 384, false, heads_first_backwards}, {1, 2, 2, 130, 500}});
  f.add<MmaForward<Tiling<H, 128, 64, 128, 4, 2, false>>, Shape>({2, 32, 8, 512, 4096},
                                                                 {{1, 4, 1, 128, 512}, {1, 2, 2, 90, 300}});
  f.add<MmaForward<Tiling<B, 128, 128, 32, 4, 3, true>>, Shape>(
      {1, 24, 24, 4096, 4096, true, backwards}, {{1, 2, 2, 256, 256, true, backwards}, {1, 4, 2, 190, 222}});
  f.add<MmaForward<Tiling<H, 64, 64, 128, 4, 2, false>>, Shape>({1, 40, 40, 1500, 1500},
                                                                {{1, 2, 2, 192, 384}, {2, 2, 1, 150, 150, true}});
  f.add<MmaForward<Tiling<H, 128, 128, 64, 4, 2, true>>, Shape>(
      {4, 16, 4, 2048, 2048, false, backwards}, {{1, 4, 2, 256, 256, false, backwards}, {1, 2, 1, 333, 401, true}});
}

void add_mma_backward(Family &f) {
  f.add<MmaBackward<Tiling<H, 64, 64, 64, 4, 2, false, 2>>, Shape>({4, 32, 32, 2048, 2048},
                                                                   {{2, 2, 2, 256, 256}, {1, 2, 2, 100, 170}});
  f.add<MmaBackward<Tiling<B, 64, 128, 128, 8, 2, true>>, Shape>({4, 16, 16, 4096, 4096},
                                                                 {{1, 2, 2, 384, 384}, {1, 2, 2, 190, 333}});
  f.add<MmaBackward<Tiling<H, 64, 64, 128, 4, 2, true>>, Shape>({8, 16, 16, 2048, 2048},
                                                                {{1, 2, 2, 384, 384}, {1, 2, 2, 150, 290}});
  f.add<MmaBackward<Tiling<H, 128, 64, 64, 4, 2, false, 2>>, Shape>({4, 16, 16, 2048, 2048},
                                                                    {{1, 2, 2, 256, 256}, {1, 2, 2, 99, 130}});
  f.add<MmaBackward<Tiling<B, 128, 128, 128, 8, 2, true>>, Shape>({2, 16, 16, 4096, 4096},
                                                                  {{1, 2, 2, 384, 384}, {1, 2, 2, 200, 260}});
  f.add<MmaBackward<Tiling<B, 128, 64, 128, 8, 2, true>>, Shape>({4, 16, 16, 2048, 2048},
                                                                 {{1, 2, 2, 384, 384}, {1, 2, 2, 120, 300}});
  f.add<MmaBackward<Tiling<B, 64, 128, 64, 4, 2, false>>, Shape>({2, 40, 40, 3000, 3000},
                                                                 {{1, 2, 2, 256, 256}, {1, 2, 2, 180, 75}});
  f.add<MmaBackward<Tiling<H, 64, 64, 64, 4, 3, true>>, Shape>({3, 24, 24, 3072, 3072},
                                                               {{1, 2, 2, 320, 320}, {1, 2, 2, 65, 250}});
}

void add_wgmma_forward(Family &f) {
  f.add<WgmmaForward<Tiling<H, 64, 64, 128, 4, 2, false>>, Shape>({4, 16, 16, 2048, 2048},
                                                                  {{2, 2, 2, 256, 512}, {1, 2, 1, 100, 300}});
  f.add<WgmmaForward<Tiling<B, 64, 128, 128, 8, 2, true>>, Shape>(
      {2, 32, 8, 4096, 4096, true, backwards}, {{2, 4, 2, 384, 384, true, backwards}, {1, 2, 1, 222, 401}});
  f.add<WgmmaForward<Tiling<H, 128, 128, 128, 8, 2, true>>, Shape>(
      {2, 32, 4, 4096, 4096, false, heads_first_backwards},
      {{1, 4, 2, 640, 640, false, heads_first_backwards}, {1, 2, 2, 330, 150, true}});
  f.add<WgmmaForward<Tiling<B, 128, 64, 64, 4, 3, false, 2>>, Shape>({1, 32, 32, 3072, 3072, true},
                                                                     {{2, 2, 2, 128, 512, true}, {1, 2, 1, 99, 270}});
  f.add<WgmmaForward<Tiling<H, 128, 128, 64, 8, 2, false>>, Shape>({2, 24, 8, 1024, 4096},
                                                                   {{1, 4, 2, 256, 320}, {1, 2, 2, 190, 100, true}});
  f.add<WgmmaForward<Tiling<B, 128, 64, 128, 4, 2, true>>, Shape>({4, 16, 16, 2048, 2048, true},
                                                                  {{1, 2, 2, 512, 512, true}, {1, 4, 2, 130, 333}});
}

void add_products(Family &f) {
  f.add<MmaProduct<H, 128, 128, 32, 2, 4, 3, true, true, 2>, ProductShape>(
      {4096, 4096, 4096, false, 8}, {{384, 512, 256, false, 2}, {200, 136, 104, false, 0}});
  f.add<MmaProduct<B, 128, 128, 64, 2, 4, 3, false, true>, ProductShape>(
      {8192, 1024, 4096, true, 0}, {{256, 384, 320, true, 0}, {140, 200, 72, true, 1}});
  f.add<MmaProduct<H, 64, 64, 64, 2, 2, 3, true, false>, ProductShape>(
      {2048, 2048, 2048, false, 0}, {{256, 192, 256, false, 0}, {100, 72, 136, false, 1}});
  f.add<MmaProduct<B, 128, 64, 32, 4, 1, 4, false, false>, ProductShape>(
      {4096, 11008, 2048, false, 16}, {{512, 256, 256, false, 3}, {130, 104, 40, false, 0}});
  f.add<MmaProduct<H, 128, 256, 32, 2, 4, 3, true, true>, ProductShape>(
      {1024, 8192, 8192, true, 4}, {{256, 768, 256, true, 2}, {150, 328, 88, true, 0}});
  f.add<MmaProduct<H, 64, 128, 32, 2, 2, 4, false, true>, ProductShape>(
      {3000, 5000, 1024, true, 6}, {{320, 512, 128, true, 3}, {90, 200, 200, true, 0}});
}

}  // namespace mixed_f

int main(int argc, char **argv) {
  mixed_f::Family family;
  mixed_f::add_mma_forward(family);
  mixed_f::add_mma_backward(family);
  mixed_f::add_wgmma_forward(family);
  mixed_f::add_products(family);
  return independent::Commands(family.cases, family.checks).run(argc, argv);
}
