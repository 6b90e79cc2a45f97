/* Split-KV and paged decoding (8 instances), FlashAttention-2 backward (8), products (8) and row softmax (6), with
 * mma.sync and cp.async. */
#include "bwd.h"
#include "commands.h"
#include "decode.h"
#include "forward_problem.h"
#include "gemm.h"
#include "page_table.h"
#include "reference_gradients.h"
#include "reference_product.h"
#include "reference_softmax.h"
#include "softmax.h"

using namespace independent;

template <typename T>
constexpr double tolerance = is_bf16<T> ? 2e-2 : 4e-3;

/* Relative to the largest number of the reference. */
static bool close(std::string &report, const char *name, const Errors &e, double tolerance) {
  return within(report, name, e.absolute / e.largest, tolerance);
}

static void expect(bool fits) {
  if (!fits) throw std::runtime_error("shape");
}

template <typename T, int D, int BN, int NW, int ST, bool PAGED>
class Decode : public ForwardProblem {
 public:
  Decode(const Attention &a, int splits, int page_size) : ForwardProblem(a, is_bf16<T>) {
    expect(a.seqlen_kv % BN == 0 && a.heads / a.kv_heads <= 16 && (!PAGED || a.seqlen_kv % page_size == 0));
    if (PAGED) make_pages(page_size);
    args_.q = q_, args_.k = k_, args_.v = v_, args_.o = o_, args_.lse = lse_;
    args_.opart = alloc<float>(a.q_count() * splits), args_.lsepart = alloc<float>(a.rows() * splits);
    args_.s_seq = (size_t)a.kv.batch, args_.s_head = (size_t)a.kv.head, args_.s_tok = (size_t)a.kv.row;
    args_.batch = a.batch, args_.heads = a.heads, args_.kv_heads = a.kv_heads, args_.seqlen = a.seqlen_kv;
    args_.splits = splits, args_.scale = a.scale();
    allow_shared(decode_split<T, D, BN, NW, ST, PAGED>, shared_bytes);
  }
  void launch() override {
    dim3 grid((unsigned)args_.splits, (unsigned)a_.kv_heads, (unsigned)a_.batch);
    decode_split<T, D, BN, NW, ST, PAGED><<<grid, NW * 32, shared_bytes>>>(args_);
    CUDA_CHECK(cudaGetLastError());
    if (args_.splits > 1) {
      decode_combine<T, D><<<(a_.batch * a_.heads + 3) / 4, 128>>>(args_);
      CUDA_CHECK(cudaGetLastError());
    }
  }
  bool check(std::string &report) override {
    ForwardErrors errors = forward_errors();
    bool ok = close(report, "O", errors.o, tolerance<T>);
    return close(report, "LSE", errors.lse, 1e-3) && ok;
  }

 private:
  static constexpr int shared_bytes = decode_smem<D, BN, NW, ST>();
  void make_pages(int page_size) {
    int pages_per_sequence = a_.seqlen_kv / page_size;
    std::vector<int> pages = shuffled_pages((size_t)a_.batch * pages_per_sequence);
    int *table = alloc<int>(pages.size());
    CUDA_CHECK(cudaMemcpy(table, pages.data(), pages.size() * sizeof(int), cudaMemcpyHostToDevice));
    a_.pages = args_.table = table;
    a_.page_shift = args_.page_shift = page_shift_of(page_size);
    args_.max_pages = pages_per_sequence;
  }
  DecodeArgs args_{};
};

static __global__ void fill_constant(float *to, size_t count, float value) {
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    to[i] = value;
}

/* O and LSE are those of the forward pass if the gradients are to be checked, else random and constant. */
template <typename T, int D, int BM, int BN, int NW, bool CAUSAL>
class Gradients : public Problem {
 public:
  Gradients(const Attention &a, bool to_be_checked) : a_(a) {
    expect(a.seqlen_q % BN == 0 && a.seqlen_q % BM == 0);
    size_t count = a.q_count();
    T *q = normal<T>(count, 11), *k = normal<T>(count, 12), *v = normal<T>(count, 13), *o = normal<T>(count, 14);
    float *lse = alloc<float>(a.rows());
    args_.q = q, args_.k = k, args_.v = v, args_.o = o, args_.dout = normal<T>(count, 15), args_.lse = lse;
    args_.delta = alloc<float>(a.rows()), args_.dqacc = alloc<float>(count);
    args_.dq = alloc<T>(count), args_.dk = alloc<T>(count), args_.dv = alloc<T>(count);
    args_.heads = a.heads, args_.seqlen_q = args_.seqlen_kv = a.seqlen_q, args_.scale = a.scale();
    if (to_be_checked)
      reference_attention<T>(a, q, k, v, nullptr, o, lse);
    else
      fill_constant<<<256, 256>>>(lse, a.rows(), logf((float)a.seqlen_kv) + 0.5f);
    CUDA_CHECK(cudaGetLastError());
    allow_shared(bwd_main<T, D, BM, BN, NW, CAUSAL>, shared_bytes);
  }
  void prepare() override { CUDA_CHECK(cudaMemset(args_.dqacc, 0, a_.q_count() * sizeof(float))); }
  void launch() override {
    bwd_delta<T, D><<<(unsigned)(a_.rows() * (D / 8) / 256), 256>>>(args_);
    CUDA_CHECK(cudaGetLastError());
    dim3 grid((unsigned)(a_.seqlen_kv / BN), (unsigned)a_.heads, (unsigned)a_.batch);
    bwd_main<T, D, BM, BN, NW, CAUSAL><<<grid, NW * 32, shared_bytes>>>(args_);
    CUDA_CHECK(cudaGetLastError());
    bwd_convert<T><<<(unsigned)(a_.q_count() / 8 / 256), 256>>>(args_);
    CUDA_CHECK(cudaGetLastError());
  }
  bool check(std::string &report) override {
    size_t count = a_.q_count();
    float *d_q = alloc<float>(count), *d_k = alloc<float>(count), *d_v = alloc<float>(count);
    Backward<T> b = {(T *)args_.q, (T *)args_.k, (T *)args_.v, (T *)args_.o, (T *)args_.dout, args_.lse};
    reference_gradients(a_, b, d_q, d_k, d_v);
    bool ok = compare(report, "dQ", args_.dq, d_q);
    ok = compare(report, "dK", args_.dk, d_k) && ok;
    return compare(report, "dV", args_.dv, d_v) && ok;
  }

 private:
  static constexpr int shared_bytes = bwd_smem<D, BM, BN>();
  bool compare(std::string &report, const char *name, const void *gradient, const float *reference) {
    Errors errors = errors_of(fetch((const T *)gradient, a_.q_count()), fetch(reference, a_.q_count()));
    return close(report, name, errors, 2 * tolerance<T>);
  }
  Attention a_;
  BwdArgs args_{};
};

template <typename T, int BM, int BN, int BK, int WM, int WN, int ST, bool BT>
class Product : public Problem {
 public:
  Product(int m, int n, int k) {
    expect(m % BM == 0 && n % BN == 0 && k % BK == 0);
    args_ = {normal<T>((size_t)m * k, 21), normal<T>((size_t)n * k, 22), alloc<T>((size_t)m * n), m, n, k};
    allow_shared(gemm<T, BM, BN, BK, WM, WN, ST, BT>, shared_bytes);
  }
  void launch() override {
    dim3 grid((unsigned)(args_.n / BN), (unsigned)(args_.m / BM));
    gemm<T, BM, BN, BK, WM, WN, ST, BT><<<grid, WM * WN * 32, shared_bytes>>>(args_);
    CUDA_CHECK(cudaGetLastError());
  }
  bool check(std::string &report) override {
    size_t count = (size_t)args_.m * args_.n;
    float *c = alloc<float>(count);
    reference_product((const T *)args_.a, (const T *)args_.b, c, args_.m, args_.n, args_.k, BT);
    return close(report, "C", errors_of(fetch((const T *)args_.c, count), fetch(c, count)), tolerance<T>);
  }

 private:
  static constexpr int shared_bytes = gemm_smem<BM, BN, BK, ST>();
  GemmArgs args_;
};

/* NV 0: every pass reads the row again, TPR threads a row. */
template <typename T, bool ONLINE, int TPR, int NV, int ROWS>
class Softmax : public Problem {
 public:
  Softmax(size_t rows, int columns) : rows_(rows) {
    expect(rows % ROWS == 0 && (NV ? columns == TPR * NV * 8 : columns % (TPR * 8) == 0));
    args_ = {normal<T>(rows * columns, 31), alloc<T>(rows * columns), columns};
  }
  void launch() override {
    if constexpr (NV == 0)
      softmax_reread<T, ONLINE, TPR / 32><<<(unsigned)rows_, TPR>>>(args_);
    else
      softmax_regs<T, ONLINE, TPR, NV, ROWS><<<(unsigned)(rows_ / ROWS), TPR * ROWS>>>(args_);
    CUDA_CHECK(cudaGetLastError());
  }
  bool check(std::string &report) override {
    size_t count = rows_ * args_.cols;
    float *y = alloc<float>(count);
    reference_softmax((const T *)args_.x, y, rows_, args_.cols);
    return close(report, "Y", errors_of(fetch((const T *)args_.y, count), fetch(y, count)), 1.5 * tolerance<T>);
  }

 private:
  size_t rows_;
  SoftmaxArgs args_;
};

static std::vector<Case> cases, small_cases;

template <typename T, int D, int BN, int NW, int ST, bool PAGED>
static Case decode_case(int batch, int heads, int kv_heads, int seqlen_kv, int splits, int page_size, bool is_bshd) {
  Attention a = attention(batch, heads, kv_heads, 1, seqlen_kv, D, false);
  a.kv = (is_bshd ? bshd : bhsd)(kv_heads, PAGED ? page_size : seqlen_kv, D);
  Json json;
  json.text("workload", PAGED ? "paged_decode" : "flash_decode").text("pass", "fwd");
  json.sizes(batch, heads, kv_heads, 1, seqlen_kv).number("head_dim", D).text("dtype", dtype_name(is_bf16<T>));
  json.flag("causal", false).blocks(16, BN).warps(NW, ST).text("schedule", "stages").text("copy", "cp_async");
  json.text("mma", "mma").text("layout", is_bshd ? "bshd" : "bhsd").number("splits", splits);
  if (PAGED) json.number("page_size", page_size).text("page_layout", "scattered");
  json.number("launches", splits > 1 ? 2 : 1);
  return {json, [=] { return std::make_unique<Decode<T, D, BN, NW, ST, PAGED>>(a, splits, page_size); }};
}
template <typename T, int D, int BN, int NW, int ST, bool PAGED>
static void decode(int batch, int heads, int kv_heads, int seqlen_kv, int splits, int page_size = 0,
                   bool is_bshd = false) {
  auto with = decode_case<T, D, BN, NW, ST, PAGED>;
  int group = heads / kv_heads;
  cases.push_back(with(batch, heads, kv_heads, seqlen_kv, splits, page_size, is_bshd));
  small_cases.push_back(with(2, 2 * group, 2, 5 * 128, 4, page_size, is_bshd)); /* with an empty split */
  small_cases.push_back(with(3, group, 1, 7 * 128, 1, page_size, is_bshd));
}

template <typename T, int D, int BN, int NW, bool CAUSAL>
static Case bwd_case(int batch, int heads, int seqlen, bool to_be_checked) {
  Attention a = attention(batch, heads, heads, seqlen, seqlen, D, CAUSAL);
  Json json;
  json.text("workload", "flash2_bwd").text("pass", "bwd").sizes(batch, heads, heads, seqlen, seqlen);
  json.number("head_dim", D).text("dtype", dtype_name(is_bf16<T>)).flag("causal", CAUSAL).blocks(64, BN).warps(NW, 2);
  json.text("schedule", "stages").text("copy", "cp_async").text("mma", "mma").text("layout", "bhsd");
  json.text("dq", "atomics").number("launches", 3);
  return {json, [=] { return std::make_unique<Gradients<T, D, 64, BN, NW, CAUSAL>>(a, to_be_checked); }};
}
template <typename T, int D, int BN, int NW, bool CAUSAL>
static void bwd(int batch, int heads, int seqlen) {
  cases.push_back(bwd_case<T, D, BN, NW, CAUSAL>(batch, heads, seqlen, false));
  small_cases.push_back(bwd_case<T, D, BN, NW, CAUSAL>(1, 1, 128, true));
  small_cases.push_back(bwd_case<T, D, BN, NW, CAUSAL>(2, 3, 384, true));
}

template <typename T, int BM, int BN, int BK, int WM, int WN, int ST, bool BT>
static Case matmul_case(int m, int n, int k) {
  Json json;
  json.text("workload", "matmul_tiled").number("batch", 1).number("m", m).number("n", n).number("k", k);
  json.flag("transpose_a", false).flag("transpose_b", BT).text("dtype", dtype_name(is_bf16<T>)).blocks(BM, BN);
  json.number("block_k", BK).warps(WM * WN, ST).text("schedule", "stages").text("copy", "cp_async");
  json.text("mma", "mma").number("splits", 1).number("launches", 1);
  return {json, [=] { return std::make_unique<Product<T, BM, BN, BK, WM, WN, ST, BT>>(m, n, k); }};
}
template <typename T, int BM, int BN, int BK, int WM, int WN, int ST, bool BT>
static void matmul(int m, int n, int k) {
  auto with = matmul_case<T, BM, BN, BK, WM, WN, ST, BT>;
  cases.push_back(with(m, n, k));
  small_cases.push_back(with(128, 256, 64));
  small_cases.push_back(with(256, 384, 448));
}

template <typename T, bool ONLINE, int TPR, int NV, int ROWS>
static Case softmax_case(int batch, int heads, int seqlen_q, int columns) {
  Json json;
  json.text("workload", ONLINE ? "softmax_online" : "softmax_safe").text("pass", "fwd");
  json.number("batch", batch).number("heads", heads).number("seqlen_q", seqlen_q).number("seqlen_kv", columns);
  json.text("dtype", dtype_name(is_bf16<T>)).flag("causal", false).blocks(ROWS, NV ? columns : TPR * 8);
  json.number("num_warps", TPR * ROWS / 32).text("schedule", NV ? "registers" : "reread").text("copy", "ldg");
  json.number("launches", 1);
  size_t rows = (size_t)batch * heads * seqlen_q;
  return {json, [=] { return std::make_unique<Softmax<T, ONLINE, TPR, NV, ROWS>>(rows, columns); }};
}
template <typename T, bool ONLINE, int TPR, int NV, int ROWS>
static void softmax(int batch, int heads, int seqlen_q, int columns) {
  auto with = softmax_case<T, ONLINE, TPR, NV, ROWS>;
  cases.push_back(with(batch, heads, seqlen_q, columns));
  small_cases.push_back(with(1, 1, 24, NV ? columns : TPR * 8 * 3));
}

static void add_cases() {
  using F = __half;
  using W = __nv_bfloat16;
  /* D BN NW ST B H KH S splits */
  decode<F, 128, 64, 4, 2, false>(16, 32, 8, 8192, 3);
  decode<F, 128, 64, 4, 3, false>(1, 32, 8, 131072, 33);
  decode<F, 128, 128, 8, 2, false>(4, 64, 8, 16384, 4);
  decode<F, 64, 64, 4, 2, false>(8, 16, 16, 8192, 4);
  decode<W, 64, 128, 4, 3, false>(32, 32, 2, 8192, 4);
  decode<F, 128, 64, 4, 2, false>(8, 8, 1, 65536, 16);
  decode<F, 128, 64, 4, 3, false>(64, 32, 8, 2048, 2, 0, true);
  decode<F, 64, 64, 4, 2, false>(2, 32, 4, 65536, 64);

  decode<F, 128, 64, 4, 2, true>(16, 32, 8, 8192, 4, 16);
  decode<F, 128, 64, 4, 3, true>(32, 32, 4, 8192, 2, 32);
  decode<F, 128, 64, 4, 2, true>(64, 32, 8, 2048, 1, 64);
  decode<W, 128, 128, 8, 2, true>(8, 32, 8, 16384, 8, 128);
  decode<F, 128, 64, 4, 3, true>(128, 32, 4, 1024, 1, 16, true);
  decode<F, 128, 64, 4, 2, true>(8, 32, 4, 32768, 8, 64, true);

  /* D BN NW causal B H S */
  bwd<F, 64, 128, 8, false>(4, 8, 2048);
  bwd<F, 64, 128, 8, true>(2, 16, 4096);
  bwd<F, 64, 64, 4, true>(4, 16, 1024);
  bwd<W, 64, 128, 4, false>(2, 12, 2048);
  bwd<F, 128, 64, 4, true>(2, 16, 2048);
  bwd<F, 128, 64, 4, false>(1, 16, 4096);
  bwd<F, 128, 128, 8, false>(2, 16, 2048);
  bwd<W, 128, 128, 8, true>(1, 16, 4096);

  /* BM BN BK WM WN ST BT */
  matmul<F, 128, 128, 32, 2, 2, 4, true>(4096, 4096, 4096);
  matmul<F, 128, 128, 32, 2, 4, 3, false>(8192, 4096, 2048);
  matmul<F, 128, 64, 32, 2, 2, 4, true>(2048, 2048, 8192);
  matmul<F, 128, 64, 32, 2, 2, 3, false>(4096, 1024, 4096);
  matmul<W, 64, 64, 64, 2, 2, 3, true>(1024, 4096, 4096);
  matmul<F, 64, 64, 64, 2, 2, 4, false>(2048, 3072, 4096);
  matmul<F, 128, 128, 64, 2, 4, 3, true>(4096, 8192, 4096);
  matmul<W, 128, 128, 64, 2, 2, 3, false>(4096, 4096, 4096);

  /* online TPR NV ROWS B H SQ cols */
  softmax<F, false, 128, 0, 1>(1, 16, 2048, 4096);
  softmax<F, false, 256, 0, 1>(1, 8, 1024, 32768);
  softmax<W, false, 128, 4, 1>(2, 16, 1024, 4096);
  softmax<F, true, 256, 0, 1>(1, 8, 1024, 16384);
  softmax<F, true, 32, 8, 4>(4, 16, 1024, 2048);
  softmax<W, true, 256, 4, 1>(1, 16, 1024, 8192);
}

int main(int argc, char **argv) {
  add_cases();
  Habits habits;
  habits.warm_up_runs = 2;
  habits.us_digits = 2;
  return Commands(cases, checks_of(small_cases), habits).run(argc, argv);
}
