/* FlashAttention-2 backward (16 instances), software-pipelined forward (8) and paged decoding whose warps copy for
 * themselves (4), with mma.sync and cp.async. */
#include "bwd.h"
#include "commands.h"
#include "forward_problem.h"
#include "forward_rows.h"
#include "fwd.h"
#include "page_table.h"
#include "paged.h"
#include "reference_gradients.h"

using namespace independent;

/* O and gradients are held to their root mean square and to the largest number of the reference. */
static bool close(std::string &report, const char *name, const Errors &e, bool is_bf16) {
  bool rms_ok = e.relative_rms < (is_bf16 ? 1.5e-2 : 2.5e-3);
  return within(report, name, e.absolute, (is_bf16 ? 4e-2 : 1e-2) * e.largest) && rms_ok;
}

static Json parameters(const char *workload, const char *pass, const Attention &a, bool is_bf16, int block_m,
                       int block_n, int num_warps, int num_stages, const char *schedule = "stages") {
  Json json;
  json.text("workload", workload).text("pass", pass).sizes(a.batch, a.heads, a.kv_heads, a.seqlen_q, a.seqlen_kv);
  json.number("head_dim", a.head_dim).text("dtype", dtype_name(is_bf16)).flag("causal", a.causal);
  json.blocks(block_m, block_n).warps(num_warps, num_stages).text("schedule", schedule).text("copy", "cp_async");
  return json.text("mma", "mma").flag("persistent", false);
}

template <typename T>
class Gradients : public Problem {
 public:
  Gradients(const Attention &a, cudaError_t (*launch)(const BwdParams &)) : a_(a), launch_(launch) {
    T *q = normal<T>(a.q_count(), 1), *k = normal<T>(a.kv_count(), 2), *v = normal<T>(a.kv_count(), 3);
    T *o = alloc<T>(a.q_count());
    float *lse = alloc<float>(a.rows());
    p_.q = q, p_.k = k, p_.v = v, p_.o = o, p_.dout = normal<T>(a.q_count(), 4), p_.lse = lse;
    p_.delta = alloc<float>(a.rows()), p_.dq_acc = alloc<float>(a.q_count());
    p_.dq = alloc<T>(a.q_count()), p_.dk = alloc<T>(a.kv_count()), p_.dv = alloc<T>(a.kv_count());
    p_.batch = a.batch, p_.heads = a.heads, p_.kv_heads = a.kv_heads;
    p_.sq = a.seqlen_q, p_.skv = a.seqlen_kv, p_.scale = a.scale();
    dim3 grid((unsigned)a.seqlen_q / 8, (unsigned)a.heads, (unsigned)a.batch);
    forward_rows<T>
        <<<grid, 256>>>(q, k, v, o, lse, a.heads, a.kv_heads, a.seqlen_q, a.seqlen_kv, a.head_dim, a.causal, a.scale());
    CUDA_CHECK(cudaGetLastError());
  }
  void prepare() override { CUDA_CHECK(cudaMemset(p_.dq_acc, 0, a_.q_count() * sizeof(float))); }
  void launch() override { CUDA_CHECK(launch_(p_)); }
  bool check(std::string &report) override {
    float *d_q = alloc<float>(a_.q_count()), *d_k = alloc<float>(a_.kv_count()), *d_v = alloc<float>(a_.kv_count());
    Backward<T> b = {(T *)p_.q, (T *)p_.k, (T *)p_.v, (T *)p_.o, (T *)p_.dout, p_.lse};
    reference_gradients(a_, b, d_q, d_k, d_v);
    bool ok = compare(report, "dQ", p_.dq, d_q, a_.q_count());
    ok = compare(report, "dK", p_.dk, d_k, a_.kv_count()) && ok;
    return compare(report, "dV", p_.dv, d_v, a_.kv_count()) && ok;
  }

 private:
  bool compare(std::string &report, const char *name, const void *gradient, const float *reference, size_t count) {
    return close(report, name, errors_of(fetch((const T *)gradient, count), fetch(reference, count)), is_bf16<T>);
  }
  Attention a_;
  cudaError_t (*launch_)(const BwdParams &);
  BwdParams p_{};
};

class Forward : public ForwardProblem {
 public:
  Forward(const Attention &a, bool bf16, cudaError_t (*launch)(const FwdParams &))
      : ForwardProblem(a, bf16), launch_(launch), p_{q_,      k_,         v_,         o_,          lse_,     a.batch,
                                                     a.heads, a.kv_heads, a.seqlen_q, a.seqlen_kv, a.scale()} {}
  void launch() override { CUDA_CHECK(launch_(p_)); }
  bool check(std::string &report) override {
    ForwardErrors errors = forward_errors();
    bool ok = close(report, "O", errors.o, bf16_);
    return within(report, "LSE", errors.lse.absolute, 1e-3) && ok;
  }

 private:
  cudaError_t (*launch_)(const FwdParams &);
  FwdParams p_;
};

class Paged : public ForwardProblem {
 public:
  Paged(const Attention &a, bool bf16, int page_size, int splits, cudaError_t (*launch)(const PagedParams &))
      : ForwardProblem(a, bf16), launch_(launch) {
    std::vector<int> pages = shuffled_pages((size_t)a.batch * (a.seqlen_kv / page_size));
    int *table = alloc<int>(pages.size());
    CUDA_CHECK(cudaMemcpy(table, pages.data(), pages.size() * sizeof(int), cudaMemcpyHostToDevice));
    a_.pages = table, a_.page_shift = page_shift_of(page_size);
    p_.q = q_, p_.k = k_, p_.v = v_, p_.table = table, p_.o = o_, p_.lse = lse_;
    p_.part_o = alloc<float>(a.q_count() * splits), p_.part_lse = alloc<float>(a.rows() * splits);
    p_.batch = a.batch, p_.heads = a.heads, p_.kv_heads = a.kv_heads, p_.skv = a.seqlen_kv;
    p_.page_shift = a_.page_shift, p_.pages_per_seq = a.seqlen_kv / page_size, p_.splits = splits;
    p_.page_stride = a.kv.batch, p_.tok_stride = a.kv.row, p_.head_stride = a.kv.head, p_.scale = a.scale();
  }
  void launch() override { CUDA_CHECK(launch_(p_)); }
  bool check(std::string &report) override {
    ForwardErrors errors = forward_errors();
    bool ok = close(report, "O", errors.o, bf16_);
    return within(report, "LSE", errors.lse.absolute, 1e-3) && ok;
  }

 private:
  cudaError_t (*launch_)(const PagedParams &);
  PagedParams p_{};
};

/* A case, and small problems for its instance. */
struct ListedCase {
  Case full;
  std::vector<Case> small;
};

template <typename T, int D, int BM, int BN, int NW, int ST, bool C>
static ListedCase bwd_case(int batch, int heads, int kv_heads, int seqlen) {
  auto with = [](const Attention &a) {
    Json json = parameters("flash2_bwd", "bwd", a, is_bf16<T>, BM, BN, NW, ST, ST == 1 ? "interleaved" : "stages");
    json.text("tile_order", "m_first").flag("tile_reverse", false).text("layout", "bhsd").number("launches", 3);
    return Case{json, [a] { return std::make_unique<Gradients<T>>(a, bwd_launch<T, D, BM, BN, NW, ST, C>); }};
  };
  return {with(attention(batch, heads, kv_heads, seqlen, seqlen, D, C)),
          {with(attention(2, 4, 2, 256, 384, D, C)), with(attention(1, 2, 2, 512, 512, D, C))}};
}
template <typename T, int D, int BM, int BN, int NW, bool C>
static ListedCase fwd_case(int batch, int heads, int kv_heads, int seqlen) {
  auto with = [](const Attention &a) {
    Json json = parameters("flash2_fwd", "fwd", a, is_bf16<T>, BM, BN, NW, 2);
    json.text("tile_order", "m_first").flag("tile_reverse", C).text("layout", "bhsd").number("launches", 1);
    return Case{json, [a] { return std::make_unique<Forward>(a, is_bf16<T>, fwd_launch<T, D, BM, BN, NW, C>); }};
  };
  return {with(attention(batch, heads, kv_heads, seqlen, seqlen, D, C)),
          {with(attention(2, 4, 2, 256, 384, D, C)), with(attention(1, 2, 2, 512, 512, D, C))}};
}
template <typename T, int BN, int ST>
static ListedCase paged_case(int batch, int seqlen_kv, int page_size, int splits, bool heads_first) {
  auto with = [=](int small_batch, int small_seqlen) {
    Attention a = attention(small_batch, 32, 8, 1, small_seqlen, 128, false);
    a.kv = (heads_first ? bhsd : bshd)(8, page_size, 128);
    Json json = parameters("paged_decode", "fwd", a, is_bf16<T>, 16, BN, 4, ST);
    json.number("splits", splits).number("page_size", page_size).text("page_layout", "scattered");
    json.number("launches", splits > 1 ? 2 : 1);
    return Case{json,
                [=] { return std::make_unique<Paged>(a, is_bf16<T>, page_size, splits, paged_launch<T, BN, ST>); }};
  };
  std::vector<Case> small = {with(3, splits * BN * 4)};
  if (splits * BN * 6 % page_size == 0) small.push_back(with(2, splits * BN * 6));
  return {with(batch, seqlen_kv), small};
}

static std::vector<ListedCase> listed_cases() {
  return {
      /* type D BM BN NW ST causal batch heads kv_heads seqlen */
      bwd_case<half, 64, 64, 64, 4, 2, false>(2, 16, 16, 2048),
      bwd_case<half, 64, 64, 64, 4, 1, true>(4, 16, 16, 2048),
      bwd_case<half, 64, 64, 128, 4, 2, false>(4, 12, 12, 2048),
      bwd_case<half, 64, 64, 128, 8, 2, false>(4, 16, 16, 2048),
      bwd_case<half, 64, 128, 128, 8, 2, false>(8, 16, 16, 1024),
      bwd_case<half, 64, 128, 64, 8, 2, true>(2, 16, 16, 4096),
      bwd_case<half, 64, 128, 128, 8, 2, true>(1, 24, 24, 4096),
      bwd_case<bf16, 64, 64, 128, 8, 1, true>(4, 16, 16, 2048),
      bwd_case<half, 128, 64, 64, 4, 2, false>(2, 16, 16, 2048),
      bwd_case<half, 128, 64, 64, 4, 2, true>(2, 32, 32, 2048),
      bwd_case<half, 128, 64, 128, 8, 2, false>(2, 16, 16, 2048),
      bwd_case<half, 128, 64, 128, 8, 1, false>(8, 32, 32, 512),
      bwd_case<bf16, 128, 64, 128, 8, 2, true>(1, 32, 32, 4096),
      bwd_case<half, 128, 128, 64, 8, 2, false>(4, 16, 16, 1024),
      bwd_case<half, 128, 128, 128, 8, 2, false>(2, 32, 32, 1024),
      bwd_case<half, 128, 128, 64, 4, 1, true>(4, 16, 16, 2048),
      bwd_case<half, 128, 64, 128, 8, 2, false>(4, 32, 8, 1024),
      /* type D BM BN NW causal */
      fwd_case<half, 64, 64, 64, 4, false>(4, 16, 16, 2048),
      fwd_case<half, 64, 128, 64, 8, true>(4, 16, 16, 4096),
      fwd_case<half, 64, 128, 128, 8, false>(8, 16, 16, 1024),
      fwd_case<half, 64, 128, 64, 4, false>(4, 32, 32, 2048),
      fwd_case<half, 128, 64, 64, 4, true>(2, 32, 32, 2048),
      fwd_case<half, 128, 128, 64, 8, false>(2, 32, 8, 2048),
      fwd_case<half, 128, 128, 128, 8, false>(2, 16, 16, 4096),
      fwd_case<bf16, 128, 128, 64, 4, true>(1, 32, 8, 8192),
      /* BN ST batch skv page splits HND */
      paged_case<half, 64, 3>(8, 16384, 16, 4, false),
      paged_case<half, 64, 2>(64, 4096, 64, 1, false),
      paged_case<half, 64, 3>(16, 8192, 128, 4, true),
      paged_case<half, 128, 2>(32, 2048, 32, 2, false),
      paged_case<half, 128, 2>(64, 2048, 16, 1, true),
      paged_case<bf16, 64, 2>(8, 8192, 64, 8, false),
  };
}

int main(int argc, char **argv) {
  std::vector<Case> cases, small;
  for (const ListedCase &c : listed_cases()) {
    cases.push_back(c.full);
    small.insert(small.end(), c.small.begin(), c.small.end());
  }
  Habits habits;
  habits.warm_up_runs = 2;
  return Commands(cases, checks_of(small), habits).run(argc, argv);
}
