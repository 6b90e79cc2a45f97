/* Decoding (split, paged), softmax, matrix products and unfused attention. */
#include <set>

#include "commands.h"
#include "decode_problem.h"
#include "other_problems.h"

using namespace independent;
using namespace decode_a;

namespace {

typedef __half H;
typedef __nv_bfloat16 B;

std::vector<Case> cases;
std::vector<Check> checks;
std::set<std::string> checked;

void add_check(const std::string &name, MakeProblem make) {
  if (checked.insert(name).second) checks.push_back({name, make});
}

template <class T>
const char *name_of() {
  return sizeof(T) == 4 ? "fp32" : dtype_name(is_bf16<T>);
}

Json decode_parameters(const DecodeSpec &s, int head_dim, bool bf16, int block_m, int block_n, int warps, int stages,
                       bool mma) {
  Json j;
  j.text("workload", s.page_size ? "paged_decode" : "flash_decode");
  j.sizes(s.batch, s.heads, s.kv_heads, 1, s.seqlen).number("head_dim", head_dim).text("dtype", dtype_name(bf16));
  j.flag("causal", false).blocks(block_m, block_n).warps(warps, stages).text("schedule", "stages");
  j.text("copy", mma ? "cp_async" : "ldg");
  if (mma) j.text("mma", "mma");
  j.text("layout", s.bshd ? "bshd" : "bhsd").number("splits", s.splits);
  if (s.page_size) j.number("page_size", s.page_size).text("page_layout", s.scattered ? "scattered" : "contiguous");
  if (!s.lengths.empty()) {
    std::string all;
    for (int length : s.lengths) all += (all.empty() ? "" : ",") + std::to_string(length);
    j.text("lengths", all.c_str());
  }
  j.number("launches", s.splits > 1 ? 2 : 1);
  return j;
}

template <class T, int D>
void add_decode_check(const std::string &name, const DecodeSpec &s, SplitKernel<T> kernel) {
  std::string shape = " b" + std::to_string(s.batch) + " h" + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) +
                      " n" + std::to_string(s.seqlen) + " splits" + std::to_string(s.splits) +
                      (s.bshd ? " bshd" : " bhsd") + (s.page_size ? " page" + std::to_string(s.page_size) : "") +
                      (s.scattered ? " scattered" : "") + (s.lengths.empty() ? "" : " lengths");
  add_check(name + shape, [=] { return std::unique_ptr<Problem>(new DecodeProblem<T, D>(s, kernel)); });
}

template <class T, int D, int BN, int WARPS, int STAGES, bool PAGED>
void add_mma(const DecodeSpec &s) {
  auto kernel = mma_kernel<T, D, BN, WARPS, STAGES, PAGED>();
  cases.push_back({decode_parameters(s, D, is_bf16<T>, 16, BN, WARPS, STAGES, true),
                   [=] { return std::unique_ptr<Problem>(new DecodeProblem<T, D>(s, kernel)); }});
  std::string name = std::string(PAGED ? "paged" : "decode") + " mma " + name_of<T>() + " d" + std::to_string(D) + " n" +
                     std::to_string(BN) + " w" + std::to_string(WARPS) + " s" + std::to_string(STAGES);
  std::vector<DecodeSpec> shapes;
  if (PAGED)
    shapes = {{2, 8, 2, 768, 3, false, 16, true},
              {2, 8, 8, 1024, 1, true, 64, true},
              {1, 20, 1, 1024, 2, true, 256, false},
              {3, 16, 2, 1024, 4, false, 128, true, {777, 1024, 1}}};
  else
    shapes = {{2, 8, 2, 500, 3},
              {2, 4, 4, 1024, 2, true},
              {1, 40, 2, 1301, 5, true},
              {3, 16, 2, 1024, 4, false, 0, false, {777, 1024, 1}}};
  for (const DecodeSpec &shape : shapes) add_decode_check<T, D>(name, shape, kernel);
}

template <int D, int HEADS, int LANES, int WARPS, int UNROLL>
void add_simt(const DecodeSpec &s) {
  auto kernel = simt_kernel<D, HEADS, LANES, WARPS, UNROLL>();
  constexpr int BN = simt_block_n<D, LANES, WARPS, UNROLL>;
  cases.push_back({decode_parameters(s, D, false, HEADS, BN, WARPS, 1, false),
                   [=] { return std::unique_ptr<Problem>(new DecodeProblem<H, D>(s, kernel)); }});
  std::string name = "decode simt d" + std::to_string(D) + " heads" + std::to_string(HEADS) + " lanes" +
                     std::to_string(LANES) + " w" + std::to_string(WARPS) + " u" + std::to_string(UNROLL);
  std::vector<DecodeSpec> shapes = {{2, 8, 2, 500, 3},
                                    {1, 8, 1, 1301, 4, true},
                                    {3, 16, 2, 1024, 4, false, 0, false, {777, 1024, 33}}};
  if (HEADS == 1) shapes.push_back({2, 4, 4, 1024, 2});
  for (const DecodeSpec &shape : shapes) add_decode_check<H, D>(name, shape, kernel);
}

template <class T>
void add_softmax(const char *workload, const char *kind, int batch, int heads, int rows, int columns, int block_m,
                 int block_n, int warps, SoftmaxKernel<T> kernel, int check_columns) {
  Json j;
  j.text("workload", workload).sizes(batch, heads, heads, rows, columns).text("dtype", name_of<T>());
  j.blocks(block_m, block_n).warps(warps, 1).text("copy", "ldg").number("launches", 1);
  int all = batch * heads * rows;
  cases.push_back({j, [=] { return std::unique_ptr<Problem>(new SoftmaxProblem<T>(all, columns, kernel)); }});
  for (int n : {check_columns, check_columns / 2 + 40})
    add_check(std::string(workload) + " " + kind + " " + name_of<T>() + " w" + std::to_string(warps) + " " +
                  std::to_string(n),
              [=] { return std::unique_ptr<Problem>(new SoftmaxProblem<T>(37, n, kernel)); });
}
template <class T, int WARPS, int VECTORS>
SoftmaxKernel<T> registers_kernel() {
  return {[](int columns) {
            if (columns > WARPS * 32 * VECTORS * Vector<T>::n) throw std::runtime_error("a row is too long");
          },
          [](const T *x, T *y, int rows, int columns) {
            softmax_in_registers<T, WARPS, VECTORS><<<rows, WARPS * 32>>>(x, y, columns);
          }};
}
template <class T, int WARPS, int VECTORS>
SoftmaxKernel<T> warp_kernel() {
  return {[](int columns) {
            if (columns > 32 * VECTORS * Vector<T>::n) throw std::runtime_error("a row is too long");
          },
          [](const T *x, T *y, int rows, int columns) {
            softmax_in_warp<T, WARPS, VECTORS><<<(rows + WARPS - 1) / WARPS, WARPS * 32>>>(x, y, rows, columns);
          }};
}
template <class T, int WARPS, bool IN_SHARED>
SoftmaxKernel<T> online_kernel() {
  return {[](int columns) {
            if (IN_SHARED) allow_shared(softmax_online_rows<T, WARPS, IN_SHARED>, columns * (int)sizeof(T));
          },
          [](const T *x, T *y, int rows, int columns) {
            softmax_online_rows<T, WARPS, IN_SHARED>
                <<<rows, WARPS * 32, IN_SHARED ? columns * sizeof(T) : 0>>>(x, y, columns);
          }};
}
template <class T, int WARPS>
SoftmaxKernel<T> three_passes_kernel() {
  return {[](int) {}, [](const T *x, T *y, int rows, int columns) {
            softmax_three_passes<T, WARPS><<<rows, WARPS * 32>>>(x, y, columns);
          }};
}

template <class T>
void add_matmul(int batch, int m, int n, int k, int warps, int stages, MatmulKernel<T> kernel, bool transpose_b) {
  Json j;
  j.text("workload", "matmul_tiled").sizes(batch, 1, 1, m, n).number("head_dim", k).text("dtype", name_of<T>());
  j.text("acc_dtype", "fp32").blocks(kernel.block_m, kernel.block_n).warps(warps, stages).text("schedule", "stages");
  j.text("copy", "cp_async").text("mma", "mma").number("launches", 1);
  cases.push_back({j, [=] { return std::unique_ptr<Problem>(new MatmulProblem<T>(batch, m, n, k, kernel, transpose_b)); }});
  std::string name = std::string("matmul ") + name_of<T>() + " " + std::to_string(kernel.block_m) + "x" +
                     std::to_string(kernel.block_n) + "x" + std::to_string(kernel.block_k) + " w" + std::to_string(warps) +
                     " s" + std::to_string(stages) + (transpose_b ? " nk" : " kn");
  for (int check_k : {64, 320})
    add_check(name + " k" + std::to_string(check_k), [=] {
      return std::unique_ptr<Problem>(new MatmulProblem<T>(2, 256, 384, check_k, kernel, transpose_b));
    });
}

template <class T>
void add_standard(int batch, int heads, int seqlen, int head_dim, int warps, int stages, MatmulKernel<T> scores,
                  SoftmaxKernel<T> softmax, MatmulKernel<T> output) {
  Json j;
  j.text("workload", "standard_attention").sizes(batch, heads, heads, seqlen, seqlen).number("head_dim", head_dim);
  j.text("dtype", name_of<T>()).flag("causal", false).blocks(scores.block_m, scores.block_n).warps(warps, stages);
  j.text("schedule", "stages").text("copy", "cp_async").text("mma", "mma").text("layout", "bhsd").number("launches", 3);
  auto make = [=](int b, int h, int n) {
    return std::unique_ptr<Problem>(new StandardProblem<T>(b, h, n, head_dim, scores, softmax, output));
  };
  cases.push_back({j, [=] { return make(batch, heads, seqlen); }});
  add_check(std::string("standard ") + name_of<T>() + " d" + std::to_string(head_dim), [=] { return make(2, 2, 512); });
}

void add_flash_decode() {
  /* Splits swept. */
  for (int splits : {4, 8, 16, 32, 64}) add_mma<H, 128, 64, 4, 2, false>({1, 32, 8, 65536, splits});
  /* block_n (with the warps it takes) and stages swept. */
  const DecodeSpec swept = {16, 32, 4, 8192, 4};
  add_mma<H, 128, 32, 2, 2, false>(swept);
  add_mma<H, 128, 32, 2, 4, false>(swept);
  add_mma<H, 128, 64, 4, 2, false>(swept);
  add_mma<H, 128, 64, 4, 3, false>(swept);
  add_mma<H, 128, 128, 4, 2, false>(swept);
  add_mma<H, 128, 128, 8, 2, false>(swept);
  /* Others. */
  add_mma<H, 128, 64, 4, 3, false>({64, 32, 32, 1024, 2});
  add_mma<H, 128, 32, 2, 4, false>({4, 16, 1, 65536, 32});
  add_mma<H, 128, 64, 4, 2, false>({8, 32, 1, 32768, 16});
  add_mma<H, 64, 64, 4, 3, false>({8, 32, 8, 16384, 4});
  add_mma<H, 64, 128, 4, 2, false>({32, 32, 4, 8192, 2, true});
  add_mma<B, 128, 64, 4, 2, false>({32, 64, 8, 4096, 2, true});
  add_mma<H, 128, 128, 8, 2, false>({24, 32, 8, 5000, 3});
  /* CUDA cores: several keys a warp. */
  add_simt<128, 1, 16, 4, 4>({8, 32, 32, 4096, 4});
  add_simt<128, 1, 16, 4, 4>({1, 32, 32, 32768, 16, true});
  add_simt<128, 1, 16, 4, 4>({8, 32, 8, 8192, 4});
  add_simt<64, 1, 8, 4, 4>({16, 16, 16, 8192, 2});
  add_simt<128, 4, 16, 4, 4>({16, 32, 8, 4096, 8});
  add_simt<64, 4, 8, 8, 4>({16, 16, 4, 16384, 8});
  /* A warp a key. */
  add_simt<128, 1, 32, 8, 4>({4, 32, 32, 4096, 8});
  add_simt<64, 1, 32, 8, 8>({2, 32, 32, 16384, 16});
}

void add_paged_decode() {
  add_mma<H, 128, 64, 4, 2, true>({32, 32, 8, 4096, 2, false, 16, true});
  add_mma<H, 128, 64, 4, 2, true>({32, 32, 8, 4096, 2, false, 16, false});
  add_mma<H, 128, 64, 4, 2, true>({32, 32, 8, 4096, 2, true, 16, true});
  add_mma<H, 128, 64, 4, 2, true>({4, 32, 8, 32768, 16, false, 64, true});
  add_mma<H, 128, 64, 4, 2, true>({64, 32, 8, 2048, 1, false, 256, false});
  add_mma<H, 128, 32, 2, 4, true>({16, 64, 8, 8192, 4, true, 64, false});
  add_mma<H, 128, 128, 8, 2, true>({16, 32, 4, 16384, 4, false, 128, true});
  add_mma<B, 128, 64, 4, 3, true>({8, 32, 32, 2048, 4, true, 64, true});
  add_mma<H, 64, 128, 4, 2, true>({32, 16, 4, 8192, 2, false, 16, true});
  add_mma<H, 64, 128, 4, 2, true>({8, 16, 1, 65536, 16, false, 256, true});
  add_mma<H, 128, 64, 4, 2, true>(
      {8, 32, 8, 16384, 8, false, 64, true, {16384, 1000, 8192, 12000, 4096, 2048, 16000, 6144}});
  add_mma<B, 128, 64, 4, 3, true>({16, 32, 8, 8192, 2, true, 16, true, {8192, 512, 1024, 7000, 6000, 300, 4096, 8000,
                                                                       2048, 5555, 3333, 8192, 100,  7777, 1500, 6400}});
}

void add_softmaxes() {
  add_softmax<H>("softmax_safe", "registers", 1, 16, 2048, 4096, 1, 4096, 4, registers_kernel<H, 4, 4>(), 4096);
  add_softmax<float>("softmax_safe", "registers", 1, 8, 1024, 8192, 1, 8192, 8, registers_kernel<float, 8, 8>(), 8192);
  add_softmax<H>("softmax_safe", "warp", 4, 16, 2048, 1024, 4, 1024, 4, warp_kernel<H, 4, 4>(), 1024);
  add_softmax<float>("softmax_safe", "passes", 1, 4, 1024, 16384, 1, 1024, 8, three_passes_kernel<float, 8>(), 4096);
  add_softmax<H>("softmax_online", "shared", 1, 8, 1024, 16384, 1, 16384, 8, online_kernel<H, 8, true>(), 8192);
  add_softmax<H>("softmax_online", "passes", 1, 4, 1024, 32768, 1, 4096, 16, online_kernel<H, 16, false>(), 8192);
  add_softmax<float>("softmax_online", "passes", 2, 8, 1024, 4096, 1, 1024, 8, online_kernel<float, 8, false>(), 4096);
}

void add_products() {
  auto four_warps = matmul_kernel<H, 128, 128, 32, 64, 64, 3, true>();
  auto eight_warps = matmul_kernel<H, 128, 128, 32, 64, 32, 4, true>();
  auto wide_k = matmul_kernel<H, 128, 128, 64, 64, 32, 2, true>();
  add_matmul<H>(1, 4096, 4096, 4096, 4, 3, four_warps, true);
  add_matmul<H>(8, 4096, 4096, 128, 8, 4, eight_warps, true);
  add_matmul<H>(16, 2048, 4096, 64, 8, 2, wide_k, true);
  add_matmul<H>(1, 2048, 8192, 8192, 8, 2, wide_k, true);
  add_matmul<H>(2, 1024, 2048, 4096, 4, 2, matmul_kernel<H, 64, 64, 64, 32, 32, 2, true>(), true);
  add_matmul<B>(1, 8192, 4096, 1024, 8, 3, matmul_kernel<B, 128, 128, 32, 64, 32, 3, false>(), false);

  add_standard<H>(2, 16, 2048, 64, 4, 3, four_warps, registers_kernel<H, 4, 4>(),
                  matmul_kernel<H, 128, 64, 32, 64, 32, 3, false>());
  add_standard<H>(1, 8, 4096, 128, 4, 3, four_warps, registers_kernel<H, 4, 4>(),
                  matmul_kernel<H, 128, 128, 32, 64, 64, 3, false>());
}

}  // namespace

int main(int argc, char **argv) {
  add_flash_decode();
  add_paged_decode();
  add_softmaxes();
  add_products();
  return Commands(cases, checks).run(argc, argv);
}
