/* Attention, decoding, softmax and products with mma.sync in fp16: FlashAttention-2 by plain loads (12 instances),
 * split-KV decoding (5), row softmax (6), products (5), and attention in three launches (product, softmax, product). */
#include "commands.h"
#include "decode.h"
#include "flash2.h"
#include "forward_problem.h"
#include "gemm.h"
#include "reference_product.h"
#include "reference_softmax.h"
#include "softmax.h"

using namespace independent;

static float scale_log2(const Attention &a) { return LOG2E / sqrtf((float)a.head_dim); }

static Json parameters(const char *workload, const Attention &a) {
  Json json;
  json.text("workload", workload).sizes(a.batch, a.heads, a.kv_heads, a.seqlen_q, a.seqlen_kv);
  json.number("head_dim", a.head_dim).text("dtype", "fp16").text("acc_dtype", "fp32").flag("causal", a.causal);
  return json.text("layout", "bhsd");
}

struct Flash2Instance {
  int head_dim, block_m, block_n, num_warps, num_stages, shared_bytes;
  void (*kernel)(const half *, const half *, const half *, half *, float *, int, int, int, int, float, int, int);
};
template <int HD, int BM, int BN, int NW, int ST>
static Flash2Instance flash2_instance() {
  return {HD, BM, BN, NW, ST, Flash2Cfg<HD, BM, BN, NW, ST>::SMEM, flash2_ldg<HD, BM, BN, NW, ST>};
}
static const Flash2Instance flash2_instances[] = {
    flash2_instance<64, 64, 64, 4, 1>(),   flash2_instance<64, 64, 64, 4, 2>(),   flash2_instance<64, 128, 64, 4, 2>(),
    flash2_instance<64, 128, 64, 8, 1>(),  flash2_instance<64, 128, 32, 4, 2>(),  flash2_instance<128, 64, 64, 4, 1>(),
    flash2_instance<128, 64, 64, 4, 2>(),  flash2_instance<128, 128, 64, 8, 2>(), flash2_instance<128, 128, 64, 8, 1>(),
    flash2_instance<128, 128, 32, 4, 1>(), flash2_instance<128, 64, 32, 4, 2>(),  flash2_instance<128, 128, 64, 4, 1>(),
};

class Flash2 : public ForwardProblem {
 public:
  Flash2(const Flash2Instance &instance, const Attention &a, bool reverse)
      : ForwardProblem(a, false), instance_(instance), reverse_(reverse) {
    allow_shared(instance.kernel, instance.shared_bytes);
  }
  void launch() override {
    dim3 grid((unsigned)(a_.seqlen_q / instance_.block_m), (unsigned)(a_.batch * a_.heads));
    instance_.kernel<<<grid, instance_.num_warps * 32, instance_.shared_bytes>>>(
        (half *)q_, (half *)k_, (half *)v_, (half *)o_, lse_, a_.heads, a_.kv_heads, a_.seqlen_q, a_.seqlen_kv,
        scale_log2(a_), a_.causal, reverse_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  const Flash2Instance &instance_;
  bool reverse_;
};

static Case flash2(int batch, int heads, int kv_heads, int seqlen, int head_dim, int causal, int block_m, int block_n,
                   int num_warps, int num_stages, int reverse = 0) {
  Attention a = attention(batch, heads, kv_heads, seqlen, seqlen, head_dim, causal);
  Json json = parameters("flash2_fwd", a);
  json.blocks(block_m, block_n).warps(num_warps, num_stages).text("schedule", "stages").text("tile_order", "m_first");
  json.flag("tile_reverse", reverse).text("copy", "ldg").text("mma", "mma").flag("persistent", false);
  json.number("launches", 1);
  for (const Flash2Instance &i : flash2_instances)
    if (i.head_dim == head_dim && i.block_m == block_m && i.block_n == block_n && i.num_warps == num_warps &&
        i.num_stages == num_stages)
      return {json, [&i, a, reverse] { return std::make_unique<Flash2>(i, a, reverse); }};
  throw std::runtime_error("no such instance: " + json.joined(","));
}

struct DecodeInstance {
  int head_dim, block_n, num_warps, shared_bytes;
  void (*kernel)(const half *, const half *, const half *, float *, float *, int, int, int, int, float);
};
template <int HD, int BN, int NW>
static DecodeInstance decode_instance() {
  return {HD, BN, NW, decode_smem<HD, BN>(), decode_split<HD, BN, NW>};
}
static const DecodeInstance decode_instances[] = {
    decode_instance<128, 64, 4>(), decode_instance<128, 32, 2>(), decode_instance<128, 128, 8>(),
    decode_instance<64, 64, 4>(),  decode_instance<64, 128, 4>(),
};

class Decode : public ForwardProblem {
 public:
  Decode(const DecodeInstance &instance, const Attention &a, int splits)
      : ForwardProblem(a, false),
        instance_(instance),
        splits_(splits),
        o_parts_(alloc<float>(a.q_count() * splits)),
        lse_parts_(alloc<float>(a.rows() * splits)) {
    allow_shared(instance.kernel, instance.shared_bytes);
  }
  void launch() override {
    dim3 grid((unsigned)splits_, (unsigned)a_.kv_heads, (unsigned)a_.batch);
    instance_.kernel<<<grid, instance_.num_warps * 32, instance_.shared_bytes>>>(
        (half *)q_, (half *)k_, (half *)v_, o_parts_, lse_parts_, a_.heads, a_.kv_heads, a_.seqlen_kv, splits_,
        scale_log2(a_));
    decode_combine<<<a_.batch * a_.heads, a_.head_dim>>>(o_parts_, lse_parts_, (half *)o_, lse_, splits_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  const DecodeInstance &instance_;
  int splits_;
  float *o_parts_, *lse_parts_;
};

static Case decode(int batch, int heads, int kv_heads, int seqlen_kv, int head_dim, int block_n, int num_warps,
                   int splits) {
  Attention a = attention(batch, heads, kv_heads, 1, seqlen_kv, head_dim, false);
  Json json = parameters("flash_decode", a);
  json.blocks(16, block_n).warps(num_warps, 2).number("splits", splits).text("schedule", "stages");
  json.text("copy", "cp_async").text("mma", "mma").number("launches", 2);
  for (const DecodeInstance &i : decode_instances)
    if (i.head_dim == head_dim && i.block_n == block_n && i.num_warps == num_warps)
      return {json, [&i, a, splits] { return std::make_unique<Decode>(i, a, splits); }};
  throw std::runtime_error("no such instance: " + json.joined(","));
}

enum Kind { SM_REREAD, SM_REGS, SM_ONLINE };

/* A CTA of num_warps has block_m rows: as many (a warp a row) or one, which its warps share. */
static void launch_softmax(Kind kind, const half *x, half *y, size_t rows, int columns, int block_m, int num_warps) {
  const unsigned ctas = (unsigned)(rows / block_m);
  const bool shared_row = block_m == 1 && num_warps == 8, warp_a_row = block_m == 4 && num_warps == 4;
  if (kind == SM_REREAD && shared_row)
    softmax_safe_reread<256><<<ctas, 256>>>(x, y, columns);
  else if (kind == SM_REGS && shared_row && columns == 4096)
    softmax_safe_regs<256, 2><<<ctas, 256>>>(x, y);
  else if (kind == SM_REGS && shared_row && columns == 2048)
    softmax_safe_regs<256, 1><<<ctas, 256>>>(x, y);
  else if (kind == SM_REGS && warp_a_row && columns == 1024)
    softmax_safe_regs<32, 4><<<ctas, 128>>>(x, y);
  else if (kind == SM_ONLINE && shared_row)
    softmax_online<256><<<ctas, 256>>>(x, y, columns);
  else if (kind == SM_ONLINE && warp_a_row)
    softmax_online<32><<<ctas, 128>>>(x, y, columns);
  else
    throw std::runtime_error("no such softmax");
  CUDA_CHECK(cudaGetLastError());
}

class Softmax : public Problem {
 public:
  Softmax(Kind kind, size_t rows, int columns, int block_m, int num_warps)
      : kind_(kind),
        rows_(rows),
        columns_(columns),
        block_m_(block_m),
        num_warps_(num_warps),
        x_(normal<half>(rows * columns, 1)),
        y_(alloc<half>(rows * columns)) {}
  void launch() override { launch_softmax(kind_, x_, y_, rows_, columns_, block_m_, num_warps_); }
  bool check(std::string &report) override {
    size_t count = rows_ * columns_;
    float *y = alloc<float>(count);
    reference_softmax(x_, y, rows_, columns_);
    return within(report, "Y", errors_of(fetch(y_, count), fetch(y, count), 1e-4).scaled, 1.5e-3);
  }

 private:
  Kind kind_;
  size_t rows_;
  int columns_, block_m_, num_warps_;
  half *x_, *y_;
};

static Case softmax(Kind kind, int batch, int heads, int seqlen_q, int columns, int block_m, int num_warps) {
  Json json;
  json.text("workload", kind == SM_ONLINE ? "softmax_online" : "softmax_safe");
  json.sizes(batch, heads, heads, seqlen_q, columns).text("dtype", "fp16");
  json.blocks(block_m, kind == SM_REGS ? columns : (block_m == 1 ? num_warps : 1) * 256).number("num_warps", num_warps);
  json.text("copy", "ldg");
  json.text("schedule", kind == SM_REGS ? "registers" : "reread").number("launches", 1);
  size_t rows = (size_t)batch * heads * seqlen_q;
  return {json, [=] { return std::make_unique<Softmax>(kind, rows, columns, block_m, num_warps); }};
}

struct ProductInstance {
  int block_m, block_n, block_k, num_warps, num_stages, shared_bytes;
  void (*kernel)(const half *, const half *, half *, int, int, int, int, size_t, size_t, size_t, int, float, int);
};
template <int BM, int BN, int BK, int WM, int WN, int ST, bool BT>
static ProductInstance product_instance() {
  return {BM, BN, BK, WM * WN, ST, gemm_smem<BM, BN, BK, ST>(), gemm_kernel<BM, BN, BK, WM, WN, ST, BT>};
}
static const ProductInstance product_instances[] = {
    product_instance<128, 128, 32, 2, 4, 4, false>(), product_instance<128, 128, 32, 2, 2, 3, false>(),
    product_instance<128, 256, 32, 2, 4, 3, false>(), product_instance<64, 64, 64, 2, 2, 3, false>(),
    product_instance<128, 64, 64, 2, 2, 4, false>(),
};
static const ProductInstance scores_instance = product_instance<128, 128, 32, 2, 4, 3, true>();

struct Operands { /* row-major; strides between the matrices of a batch */
  const half *a, *b;
  half *c;
  int m, n, k, lda, ldb, ldc, batch = 1;
  size_t a_stride = 0, b_stride = 0, c_stride = 0;
  int group = 1; /* matrices of A that share one of B */
};
static void launch_product(const ProductInstance &i, const Operands &o, float alpha, bool causal) {
  dim3 grid((unsigned)(o.m / i.block_m), (unsigned)(o.n / i.block_n), (unsigned)o.batch);
  i.kernel<<<grid, i.num_warps * 32, i.shared_bytes>>>(o.a, o.b, o.c, o.k, o.lda, o.ldb, o.ldc, o.a_stride, o.b_stride,
                                                       o.c_stride, o.group, alpha, causal);
  CUDA_CHECK(cudaGetLastError());
}

class Product : public Problem {
 public:
  Product(const ProductInstance &instance, int m, int n, int k)
      : instance_(instance), operands_{normal<half>((size_t)m * k, 1),
                                       normal<half>((size_t)k * n, 2),
                                       alloc<half>((size_t)m * n),
                                       m,
                                       n,
                                       k,
                                       k,
                                       n,
                                       n} {
    allow_shared(instance.kernel, instance.shared_bytes);
  }
  void launch() override { launch_product(instance_, operands_, 1.f, false); }
  bool check(std::string &report) override {
    const Operands &o = operands_;
    size_t count = (size_t)o.m * o.n;
    float *c = alloc<float>(count);
    reference_product(o.a, o.b, c, o.m, o.n, o.k, false);
    return within(report, "C", errors_of(fetch(o.c, count), fetch(c, count)).scaled, 2e-3);
  }

 private:
  const ProductInstance &instance_;
  Operands operands_;
};

static Case matmul(int m, int n, int k, int block_m, int block_n, int block_k, int num_warps, int num_stages) {
  Json json;
  json.text("workload", "matmul_tiled").number("m", m).number("n", n).number("k", k);
  json.text("dtype", "fp16").text("acc_dtype", "fp32").blocks(block_m, block_n).number("block_k", block_k);
  json.warps(num_warps, num_stages).text("copy", "cp_async").text("mma", "mma").number("launches", 1);
  for (const ProductInstance &i : product_instances)
    if (i.block_m == block_m && i.block_n == block_n && i.block_k == block_k && i.num_warps == num_warps &&
        i.num_stages == num_stages)
      return {json, [&i, m, n, k] { return std::make_unique<Product>(i, m, n, k); }};
  throw std::runtime_error("no such instance: " + json.joined(","));
}

/* Scores, their softmax in place, output. LSE is not written. */
class Standard : public ForwardProblem {
 public:
  explicit Standard(const Attention &a)
      : ForwardProblem(a, false),
        s_(alloc<half>(a.rows() * a.seqlen_kv)),
        values_instance_(product_instances[a.head_dim == 128 ? 0 : 4]) {
    int heads = a.batch * a.heads, group = a.heads / a.kv_heads;
    size_t q_stride = (size_t)a.q.head, kv_stride = (size_t)a.kv.head, s_stride = (size_t)a.seqlen_q * a.seqlen_kv;
    scores_ = {(half *)q_, (half *)k_,  s_,    a.seqlen_q, a.seqlen_kv, a.head_dim, a.head_dim,
               a.head_dim, a.seqlen_kv, heads, q_stride,   kv_stride,   s_stride,   group};
    values_ = {s_,         (half *)v_, (half *)o_, a.seqlen_q, a.head_dim, a.seqlen_kv, a.seqlen_kv,
               a.head_dim, a.head_dim, heads,      s_stride,   kv_stride,  q_stride,    group};
    allow_shared(scores_instance.kernel, scores_instance.shared_bytes);
    allow_shared(values_instance_.kernel, values_instance_.shared_bytes);
  }
  void launch() override {
    launch_product(scores_instance, scores_, a_.scale(), a_.causal);
    launch_softmax(SM_REGS, s_, s_, a_.rows(), a_.seqlen_kv, 1, 8);
    launch_product(values_instance_, values_, 1.f, false);
  }
  bool check(std::string &report) override { return within(report, "O", forward_errors().o.scaled, 8e-3); }

 private:
  half *s_;
  const ProductInstance &values_instance_;
  Operands scores_, values_;
};

static Case standard(int batch, int heads, int kv_heads, int seqlen, int head_dim, int causal) {
  Attention a = attention(batch, heads, kv_heads, seqlen, seqlen, head_dim, causal);
  Json json = parameters("standard_attention", a);
  json.blocks(128, 128).number("block_k", 32).warps(8, 3).text("copy", "cp_async").text("mma", "mma");
  return {json.number("launches", 3), [a] { return std::make_unique<Standard>(a); }};
}

static std::vector<Case> cases() {
  return {
      /* flash2_fwd, copy=ldg */
      flash2(2, 16, 16, 4096, 64, 0, 64, 64, 4, 1),
      flash2(2, 32, 32, 4096, 64, 0, 64, 64, 4, 2),
      flash2(4, 16, 4, 4096, 64, 1, 128, 64, 4, 2, 1),
      flash2(2, 16, 16, 4096, 64, 1, 128, 64, 8, 1),
      flash2(8, 12, 12, 2048, 64, 0, 128, 32, 4, 2),
      flash2(2, 16, 16, 2048, 128, 0, 64, 64, 4, 1),
      flash2(2, 16, 16, 4096, 128, 0, 64, 64, 4, 2),
      flash2(1, 32, 8, 4096, 128, 1, 128, 64, 8, 2),
      flash2(4, 32, 8, 2048, 128, 0, 128, 64, 8, 1),
      flash2(2, 16, 16, 4096, 128, 1, 128, 32, 4, 1),
      flash2(8, 16, 16, 1024, 128, 1, 64, 32, 4, 2),
      flash2(2, 16, 16, 2048, 128, 0, 128, 64, 4, 1),
      /* flash_decode */
      decode(32, 32, 8, 8192, 128, 64, 4, 4),
      decode(1, 32, 8, 65536, 128, 64, 4, 64),
      decode(4, 32, 32, 4096, 128, 32, 2, 8),
      decode(16, 64, 8, 16384, 128, 128, 8, 8),
      decode(16, 16, 1, 32768, 128, 128, 8, 16),
      decode(64, 32, 4, 4096, 64, 64, 4, 4),
      decode(8, 32, 8, 32768, 64, 128, 4, 16),
      decode(64, 12, 12, 4096, 64, 64, 4, 1),
      /* softmax */
      softmax(SM_REREAD, 2, 16, 1024, 4096, 1, 8),
      softmax(SM_REREAD, 1, 8, 1024, 32768, 1, 8),
      softmax(SM_REGS, 2, 16, 2048, 4096, 1, 8),
      softmax(SM_REGS, 4, 16, 2048, 2048, 1, 8),
      softmax(SM_REGS, 8, 16, 1024, 1024, 4, 4),
      softmax(SM_ONLINE, 2, 16, 1024, 4096, 1, 8),
      softmax(SM_ONLINE, 1, 16, 1024, 16384, 1, 8),
      softmax(SM_ONLINE, 8, 16, 1024, 1024, 4, 4),
      /* matmul */
      matmul(4096, 4096, 4096, 128, 128, 32, 8, 4),
      matmul(4096, 4096, 4096, 128, 256, 32, 8, 3),
      matmul(8192, 8192, 1024, 128, 128, 32, 4, 3),
      matmul(2048, 2048, 8192, 128, 128, 32, 8, 4),
      matmul(2048, 11008, 4096, 128, 256, 32, 8, 3),
      matmul(2048, 2048, 2048, 64, 64, 64, 4, 3),
      matmul(4096, 4096, 2048, 128, 64, 64, 4, 4),
      matmul(1024, 4096, 4096, 128, 64, 64, 4, 4),
      /* standard attention */
      standard(2, 16, 16, 2048, 64, 0),
      standard(1, 32, 8, 2048, 128, 1),
      standard(1, 16, 16, 4096, 128, 0),
      standard(2, 12, 12, 4096, 64, 1),
  };
}

/* Every instance at least once. */
static std::vector<Case> small_cases() {
  std::vector<Case> all;
  for (const Flash2Instance &i : flash2_instances)
    for (int causal : {0, 1})
      all.push_back(flash2(2, 4, causal ? 2 : 4, 384, i.head_dim, causal, i.block_m, i.block_n, i.num_warps,
                           i.num_stages, causal));
  for (const DecodeInstance &i : decode_instances) {
    all.push_back(decode(2, 8, 2, i.block_n * 8, i.head_dim, i.block_n, i.num_warps, 4));
    /* a whole group of 16; uneven splits and an empty one */
    all.push_back(decode(1, 32, 2, i.block_n * 7, i.head_dim, i.block_n, i.num_warps, 5));
    all.push_back(decode(3, 3, 3, i.block_n * 5, i.head_dim, i.block_n, i.num_warps, 1));
  }
  for (int columns : {4096, 9000}) all.push_back(softmax(SM_REREAD, 2, 4, 16, columns, 1, 8));
  for (int columns : {4096, 2048}) all.push_back(softmax(SM_REGS, 2, 4, 16, columns, 1, 8));
  all.push_back(softmax(SM_REGS, 2, 4, 16, 1024, 4, 4));
  for (int columns : {4096, 9000}) all.push_back(softmax(SM_ONLINE, 2, 4, 16, columns, 1, 8));
  all.push_back(softmax(SM_ONLINE, 2, 4, 16, 1000, 4, 4));
  for (const ProductInstance &i : product_instances) {
    all.push_back(matmul(256, 512, 320, i.block_m, i.block_n, i.block_k, i.num_warps, i.num_stages));
    all.push_back(matmul(384, 256, 64, i.block_m, i.block_n, i.block_k, i.num_warps, i.num_stages));
  }
  all.push_back(standard(1, 4, 4, 2048, 64, 0));
  all.push_back(standard(1, 4, 2, 2048, 128, 1));
  all.push_back(standard(1, 2, 1, 4096, 64, 1));
  return all;
}

int main(int argc, char **argv) {
  Habits habits;
  habits.warm_up_runs = 2;
  return Commands(cases(), checks_of(small_cases()), habits).run(argc, argv);
}
