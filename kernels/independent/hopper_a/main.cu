/* Attention forward and products for Hopper with wgmma and TMA: attention of warps that all compute (12 instances) or
 * of a producer and consumer warpgroups (8), and products of a producer warp and two consumer warpgroups (4). */
#include "attn.h"
#include "commands.h"
#include "forward_problem.h"
#include "gemm.h"
#include "reference_product.h"
#include "tensor_map.h"

using namespace independent;

struct AttentionInstance {
  void (*kernel)(const CUtensorMap, const CUtensorMap, const CUtensorMap, const CUtensorMap, const AttnP);
  bool specialized, bf16, causal, pingpong;
  int head_dim, block_n, num_warps, num_stages, shared_bytes, threads;

  int block_m() const { return num_warps * 16; }
  const char *workload() const { return specialized ? "flash3_fwd" : "flash2_fwd"; }
};
template <class T, int HD, int BN, int NW, int ST, bool C>
static AttentionInstance inst_a() {
  return {flash_stages<T, HD, BN, NW, ST, C>, false,  !is_f16<T>, C, false, HD, BN, NW, ST,
          stages_smem<HD, BN, NW, ST>(),      NW * 32};
}
template <class T, int HD, int BN, int NW, bool C, bool PP>
static AttentionInstance inst_b() {
  return {flash_ws<T, HD, BN, NW, C, PP>, true, !is_f16<T>, C, PP, HD, BN, NW, 2, ws_smem<HD, BN, NW>(), NW * 32 + 128};
}

struct ProductInstance {
  void (*kernel)(const CUtensorMap, const CUtensorMap, const GemmP);
  bool bf16;
  int block_m, block_n, num_stages, shared_bytes;
};
template <class T, int BM, int BN, int ST>
static ProductInstance inst_c() {
  return {gemm_ws<T, BM, BN, ST>, !is_f16<T>, BM, BN, ST, gemm_smem<BM, BN, ST>()};
}
using H = __half;
using B = __nv_bfloat16;

static const AttentionInstance attention_instances[] = {
    /* head_dim, block_n, num_warps, num_stages, causal */
    inst_a<H, 64, 64, 4, 2, false>(),    /* 0 */
    inst_a<H, 64, 128, 8, 2, false>(),   /* 1 */
    inst_a<H, 64, 128, 8, 3, true>(),    /* 2 */
    inst_a<H, 128, 64, 4, 2, false>(),   /* 3 */
    inst_a<H, 128, 128, 8, 2, false>(),  /* 4 */
    inst_a<H, 128, 64, 8, 3, true>(),    /* 5 */
    inst_a<B, 128, 128, 8, 2, true>(),   /* 6 */
    inst_a<H, 128, 64, 12, 2, true>(),   /* 7 */
    inst_a<B, 128, 128, 12, 2, false>(), /* 8 */
    inst_a<B, 64, 128, 12, 3, false>(),  /* 9 */
    inst_a<H, 256, 64, 8, 2, false>(),   /* 10 */
    inst_a<H, 128, 64, 4, 3, true>(),    /* 11 */
    /* head_dim, block_n, num_warps, causal, pingpong */
    inst_b<H, 128, 176, 8, false, true>(),  /* 12 */
    inst_b<H, 128, 128, 8, true, true>(),   /* 13 */
    inst_b<B, 128, 128, 8, false, false>(), /* 14 */
    inst_b<H, 64, 128, 12, true, true>(),   /* 15 */
    inst_b<H, 64, 128, 12, false, false>(), /* 16 */
    inst_b<B, 64, 176, 8, false, true>(),   /* 17 */
    inst_b<H, 128, 80, 12, true, false>(),  /* 18 */
    inst_b<B, 128, 64, 8, true, true>(),    /* 19 */
};
static const ProductInstance product_instances[] = {
    inst_c<H, 128, 128, 4>(),
    inst_c<H, 128, 256, 3>(),
    inst_c<H, 256, 128, 4>(),
    inst_c<B, 128, 192, 4>(),
};

struct Sizes { /* of attention */
  int batch, heads, kv_heads, seqlen_q, seqlen_kv;
  bool bshd, head_first, reverse;
  int persistent; /* 0: a CTA a tile; -1: a CTA an SM; else as many CTAs */
};
struct ListedCase {
  bool is_product;
  int instance;
  Sizes sizes;
  int m, n, k;
};
static ListedCase A(int instance, int batch, int heads, int kv_heads, int seqlen_q, int seqlen_kv, bool reverse = false,
                    bool bshd = false, bool head_first = false, int persistent = 0) {
  return {false, instance, {batch, heads, kv_heads, seqlen_q, seqlen_kv, bshd, head_first, reverse, persistent},
          0,     0,        0};
}
static ListedCase G(int instance, int m, int n, int k) { return {true, instance, {}, m, n, k}; }

static const ListedCase listed_cases[] = {
    A(0, 4, 16, 16, 2048, 2048),
    A(1, 2, 32, 8, 4096, 4096),
    A(2, 1, 16, 16, 8192, 8192),
    A(3, 16, 16, 16, 1024, 1024),
    A(4, 2, 16, 16, 4096, 4096),
    A(5, 4, 32, 8, 2048, 2048, true),
    A(6, 1, 16, 16, 8192, 8192, true),
    A(7, 1, 8, 8, 16384, 16384, true),
    A(8, 4, 16, 4, 3072, 3072),
    A(9, 8, 12, 12, 3072, 3072),
    A(10, 2, 8, 8, 4096, 4096),
    A(11, 16, 16, 16, 1024, 1024, false, true),
    A(4, 2, 32, 4, 1024, 8192),
    A(1, 8, 16, 16, 1024, 1024, false, false, true),

    A(12, 2, 16, 16, 4224, 4224),
    A(12, 2, 32, 8, 2816, 2816, false, false, false, -1),
    A(13, 2, 16, 16, 4096, 4096, true),
    A(13, 1, 8, 8, 16384, 16384, true, false, false, -1),
    A(14, 16, 8, 8, 1024, 1024),
    A(14, 1, 32, 8, 8192, 8192),
    A(15, 4, 16, 16, 3072, 3072, true),
    A(16, 8, 16, 16, 1536, 1536),
    A(16, 1, 16, 16, 12288, 12288, false, false, true),
    A(17, 4, 8, 8, 4224, 4224),
    A(18, 2, 16, 4, 3072, 3072),
    A(19, 4, 32, 4, 2048, 2048, true, true),

    G(0, 2048, 4096, 2048),
    G(1, 4096, 4096, 4096),
    G(2, 8192, 4096, 4096),
    G(3, 4096, 6144, 2048),
    G(1, 8192, 8192, 8192),
    G(0, 1024, 8192, 8192),
};

static int num_sms() {
  int device, sms;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  return sms;
}

class Forward : public ForwardProblem {
 public:
  Forward(const AttentionInstance &instance, const Sizes &s)
      : ForwardProblem(attention(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv, instance.head_dim,
                                 instance.causal, s.bshd),
                       instance.bf16),
        instance_(instance) {
    make_maps();
    params_.heads = s.heads, params_.kv_heads = s.kv_heads, params_.sq = s.seqlen_q, params_.skv = s.seqlen_kv;
    params_.m_tiles = (s.seqlen_q + instance.block_m() - 1) / instance.block_m();
    params_.bh = s.batch * s.heads;
    params_.num_tiles = params_.m_tiles * params_.bh;
    params_.head_first = s.head_first, params_.reverse = s.reverse;
    params_.scale_log2 = (float)(1.4426950408889634 / std::sqrt((double)instance.head_dim));
    params_.o = o_, params_.o_sb = a_.q.batch, params_.o_sh = a_.q.head, params_.o_ss = a_.q.row;
    params_.lse = lse_;
    ctas_ = params_.num_tiles;
    if (s.persistent) ctas_ = std::min(ctas_, s.persistent > 0 ? s.persistent : num_sms());
    allow_shared(instance.kernel, instance.shared_bytes);
  }

  void launch() override {
    instance_.kernel<<<ctas_, instance_.threads, instance_.shared_bytes>>>(q_map_, k_map_, v_map_, o_map_, params_);
    CUDA_CHECK(cudaGetLastError());
  }

  bool check(std::string &report) override {
    ForwardErrors errors = forward_errors();
    bool ok = within(report, "O", errors.o.absolute, bf16_ ? 0.03 : 0.01);
    return within(report, "LSE", errors.lse.absolute, 2e-3) && ok;
  }

 private:
  CUtensorMap map(void *tensor, int heads, int rows, const Strides &strides, int box_rows) {
    const long long sizes[4] = {a_.head_dim, rows, heads, a_.batch},
                    steps[3] = {strides.row, strides.head, strides.batch};
    return tensor_map(tensor, bf16_, 4, sizes, steps, box_rows, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  }
  void make_maps() {
    q_map_ = map(q_, a_.heads, a_.seqlen_q, a_.q, instance_.block_m());
    k_map_ = map(k_, a_.kv_heads, a_.seqlen_kv, a_.kv, instance_.block_n);
    v_map_ = map(v_, a_.kv_heads, a_.seqlen_kv, a_.kv, instance_.block_n);
    o_map_ = map(o_, a_.heads, a_.seqlen_q, a_.q, 64);
  }

  const AttentionInstance &instance_;
  CUtensorMap q_map_, k_map_, v_map_, o_map_;
  AttnP params_;
  int ctas_;
};

class Product : public Problem {
 public:
  Product(const ProductInstance &instance, int m, int n, int k)
      : instance_(instance),
        a_(normal16((size_t)m * k, instance.bf16, 5)),
        b_(normal16((size_t)k * n, instance.bf16, 6)),
        c_(alloc16((size_t)m * n)),
        params_{m, n, k, (m + instance.block_m - 1) / instance.block_m, c_} {
    a_map_ = map(a_, k, m, instance.block_m);
    b_map_ = map(b_, n, k, 64);
    allow_shared(instance.kernel, instance.shared_bytes);
  }

  void launch() override {
    int n_tiles = (params_.n + instance_.block_n - 1) / instance_.block_n;
    instance_.kernel<<<params_.m_tiles * n_tiles, 288, instance_.shared_bytes>>>(a_map_, b_map_, params_);
    CUDA_CHECK(cudaGetLastError());
  }

  bool check(std::string &report) override {
    size_t count = (size_t)params_.m * params_.n;
    float *c = alloc<float>(count);
    if (instance_.bf16)
      reference_product((const B *)a_, (const B *)b_, c, params_.m, params_.n, params_.k, false);
    else
      reference_product((const H *)a_, (const H *)b_, c, params_.m, params_.n, params_.k, false);
    Errors errors = errors_of(fetch16(c_, count, instance_.bf16), fetch(c, count));
    return within(report, "C", errors.absolute, instance_.bf16 ? 0.6 : 0.08);
  }

 private:
  CUtensorMap map(void *matrix, long long columns, long long rows, int box_rows) {
    const long long sizes[2] = {columns, rows}, steps[1] = {columns};
    return tensor_map(matrix, instance_.bf16, 2, sizes, steps, box_rows, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  }

  const ProductInstance &instance_;
  void *a_, *b_, *c_;
  CUtensorMap a_map_, b_map_;
  GemmP params_;
};

static Json parameters(const AttentionInstance &i, const Sizes &s) {
  Json json;
  json.text("workload", i.workload()).sizes(s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_kv);
  json.number("head_dim", i.head_dim).text("dtype", dtype_name(i.bf16)).flag("causal", i.causal);
  json.blocks(i.block_m(), i.block_n).warps(i.num_warps, i.num_stages);
  if (!i.specialized) json.text("schedule", "stages");
  if (i.pingpong) json.text("schedule", "pingpong");
  json.text("tile_order", s.head_first ? "head_first" : "m_first").flag("tile_reverse", s.reverse);
  json.flag("persistent", s.persistent).text("copy", "tma").text("mma", "wgmma");
  return json.text("layout", s.bshd ? "bshd" : "bhsd").number("launches", 1);
}
static Json parameters(const ProductInstance &i, int m, int n, int k) {
  Json json;
  json.text("workload", "matmul_tiled").number("m", m).number("n", n).number("k", k).text("dtype", dtype_name(i.bf16));
  json.blocks(i.block_m, i.block_n).number("block_k", 64).warps(8, i.num_stages);
  return json.text("copy", "tma").text("mma", "wgmma").text("tile_order", "m_first").number("launches", 1);
}

static Case attention_case(const AttentionInstance &i, const Sizes &s) {
  return {parameters(i, s), [&i, s] { return std::make_unique<Forward>(i, s); }};
}
static Case product_case(const ProductInstance &i, int m, int n, int k) {
  return {parameters(i, m, n, k), [&i, m, n, k] { return std::make_unique<Product>(i, m, n, k); }};
}

static std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ListedCase &c : listed_cases)
    all.push_back(c.is_product ? product_case(product_instances[c.instance], c.m, c.n, c.k)
                               : attention_case(attention_instances[c.instance], c.sizes));
  return all;
}

/* Whole tiles; partial tiles, in bshd, of few persistent CTAs; less than a tile of every length. */
static std::vector<Case> small_cases() {
  std::vector<Case> all;
  for (const AttentionInstance &i : attention_instances) {
    Sizes whole = {1, 4, 2, 2 * i.block_m(), 8 * i.block_n, false, false, false, 0};
    if (i.causal) whole.seqlen_q = whole.seqlen_kv = std::max(whole.seqlen_q, whole.seqlen_kv);
    all.push_back(attention_case(i, whole));
    all.push_back(attention_case(i, {2, 3, 3, 448, 728, true, true, true, i.specialized ? 4 : 0}));
    all.push_back(attention_case(i, {1, 2, 1, 200, 200, false, false, false, 0}));
  }
  for (const ProductInstance &i : product_instances) {
    all.push_back(product_case(i, 200, 328, 200));
    all.push_back(product_case(i, 2 * i.block_m, 2 * i.block_n, 576));
  }
  return all;
}

int main(int argc, char **argv) {
  Habits habits;
  habits.separator = ", ";
  habits.us_digits = 2;
  habits.failures_as_json = true;
  return Commands(cases(), checks_of(small_cases()), habits).run(argc, argv);
}
