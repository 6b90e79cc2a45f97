/* Runs a list of attention cases: checks each against float64, times it (or, with --profile, launches it once for ncu),
 * and writes CSV. attention_bench [--check] [--profile] CASES.csv > result.csv The n-th row of a --profile run belongs
 * to the n-th profiled launch; rows whose `status` is not `ok` have no launch. Timing: CUDA events around one launch,
 * 256 MiB written before each, median. */
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <cuda_profiler_api.h>

#include "attention.h"
#include "bench.h"
#include "cases.h"
#include "gradients.h"
#include "nvml.h"
#include "paged_cache.h"
#include "pool.h"
#include "quantized_cache.h"
#include "reference.h"
#include "standard_mma.h"
#include "timing.h"
#include "tree_mask.h"

std::vector<Instance> &instances() {
  static std::vector<Instance> all;
  return all;
}

namespace {

bool is_paged(const Case &c) { return c.at("workload") == "paged_decode"; }
bool is_tree(const Case &c) { return c.at("workload") == "tree_decode"; }
bool is_decode(const Case &c) { return c.at("workload") == "flash_decode" || is_paged(c); }
bool has(const Case &c, const char *column) { return c.count(column) && atof(c.at(column).c_str()) > 0; }
bool is_backward(const Case &c) { return c.at("workload") == "flash2_bwd"; }
bool is_softmax(const Case &c) { return c.at("workload").rfind("softmax_", 0) == 0; }

/* Columns of V and O where they are not those of Q and K; else 0. */
int own_head_dim_v(const Case &c) {
  bool is_own = has(c, "head_dim_v") && number(c, "head_dim_v") != number(c, "head_dim");
  return is_own ? number(c, "head_dim_v") : 0;
}

std::string text_or_empty(const Case &c, const char *column) { return c.count(column) ? c.at(column) : ""; }

/* Some length is not a multiple of its block, and the workload has kernels for that. */
bool is_ragged(const Case &c) {
  return c.at("workload") == "flash2_fwd" && c.at("mma") == "mma" &&
         (number(c, "seqlen_q") % number(c, "block_m") || number(c, "seqlen_kv") % number(c, "block_n"));
}

/* A power of two; a whole number of tiles in a page, or of pages in a tile, a page number for each lane. */
bool fits_pages(int block_n, int page_size) {
  bool is_power = (page_size & (page_size - 1)) == 0;
  return is_power && (page_size % block_n == 0 || (block_n % page_size == 0 && block_n / page_size <= 32));
}

/* Backward kernels have whole tiles of both blocks in both lengths, and whole CTAs of delta; every query sees
 * a key, and every head has its own. */
bool fits_backward(const Instance &i, const Case &c) {
  int unit = std::lcm(std::lcm(i.key.block_m, i.key.block_n), delta_unit);
  bool has_whole_tiles = number(c, "seqlen_q") % unit == 0 && number(c, "seqlen_kv") % unit == 0;
  bool sees_some = !i.key.causal || number(c, "seqlen_q") <= number(c, "seqlen_kv");
  return has_whole_tiles && sees_some && number(c, "heads") == number(c, "kv_heads");
}

/* Whether the instance can run lengths like those. */
bool fits(const Instance &i, const Case &c) {
  if (is_backward(c)) return fits_backward(i, c);
  if (i.key.ragged) return true;
  if (is_paged(c)) return fits_pages(i.key.block_n, number(c, "page_size"));
  if (is_softmax(c))
    return number(c, "seqlen_kv") % 8 == 0 && number(c, "seqlen_q") % i.key.block_m == 0 &&
           (i.key.schedule == "reread" || number(c, "seqlen_kv") <= i.key.block_n);
  return (is_decode(c) || is_tree(c) || number(c, "seqlen_q") % i.key.block_m == 0) &&
         number(c, "seqlen_kv") % i.key.block_n == 0;
}

const Instance *find(const Case &c) {
  for (const Instance &i : instances()) {
    const InstanceKey &k = i.key;
    if (k.workload == c.at("workload") && k.mma == c.at("mma") && k.copy == c.at("copy") &&
        k.schedule == c.at("schedule") && k.block_m == number(c, "block_m") && k.block_n == number(c, "block_n") &&
        k.num_warps == number(c, "num_warps") && k.num_stages == number(c, "num_stages") &&
        k.head_dim == number(c, "head_dim") && k.head_dim_v == own_head_dim_v(c) &&
        k.causal == (number(c, "causal") != 0) && k.persistent == (c.count("persistent") && number(c, "persistent")) &&
        k.ragged == is_ragged(c) && k.windowed == has(c, "window") && k.drops == has(c, "dropout_p") &&
        k.dq == text_or_empty(c, "dq") && k.kv_format == kv_format_name(c) &&
        k.max_registers == (has(c, "max_registers") ? number(c, "max_registers") : 0) &&
        (k.kv_format.empty() || k.kv_group_size == number(c, "kv_group_size")))
      return &i;
  }
  return nullptr;
}

__device__ uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

__global__ void fill_normal(__half *to, size_t count, uint32_t seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t a = mix((uint32_t)i * 2u + seed), b = mix((uint32_t)i * 2u + 1u + seed * 7919u);
    float u = ((float)a + 1.0f) * 2.3283064e-10f, w = (float)b * 2.3283064e-10f;
    to[i] = __float2half(sqrtf(-2.0f * logf(fminf(u, 1.0f))) * cospif(2.0f * w));
  }
}

Pool score_pool;

struct Memory {
  Pool q, k, v, o, d_o, lse, rows, scratch, ref_o, ref_lse;
  GradientMemory gradients;
  PagedCache paged;
  QuantizedCache quantized;
  TreeMask tree;
  void *flush = nullptr;
};

Problem make_problem(const Case &c, Memory &m, uint32_t seed) {
  Problem p = {number(c, "batch"),
               number(c, "heads"),
               number(c, "kv_heads"),
               number(c, "seqlen_q"),
               number(c, "seqlen_kv"),
               number(c, "head_dim"),
               number(c, "causal") != 0,
               c.at("tile_order") == "head_first",
               number(c, "tile_reverse") != 0,
               nullptr,
               nullptr,
               nullptr,
               nullptr,
               nullptr};
  p.own_head_dim_v = own_head_dim_v(c);
  /* A softmax has a row of seqlen_kv numbers where attention has one of head_dim. */
  size_t rows = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_q,
         keys = (size_t)p.batch * (size_t)p.kv_heads * (size_t)p.seqlen_kv;
  size_t q_count = rows * (size_t)(is_softmax(c) ? p.seqlen_kv : p.head_dim),
         o_count = rows * (size_t)(is_softmax(c) ? p.seqlen_kv : p.head_dim_v());
  size_t k_count = keys * (size_t)p.head_dim, v_count = keys * (size_t)p.head_dim_v();
  __half *q = (__half *)m.q.at_least(q_count * 2), *k = (__half *)m.k.at_least(k_count * 2),
         *v = (__half *)m.v.at_least(v_count * 2);
  p.o = (__half *)m.o.at_least(o_count * 2);
  p.lse = (float *)m.lse.at_least(rows * 4);
  fill_normal<<<1024, 256>>>(q, q_count, seed);
  fill_normal<<<1024, 256>>>(k, k_count, seed + 1);
  fill_normal<<<1024, 256>>>(v, v_count, seed + 2);
  CUDA_CHECK(cudaMemset(p.o, 0xff, o_count * 2));
  CUDA_CHECK(cudaMemset(p.lse, 0xff, rows * 4));
  p.q = q;
  p.k = k;
  p.v = v;
  if (c.count("splits")) p.splits = number(c, "splits");
  if (has(c, "window")) p.window = number(c, "window");
  if (has(c, "dropout_p")) p.dropout_p = atof(c.at("dropout_p").c_str());
  if (is_paged(c)) {
    m.paged.fill(c, p, sequence_lengths(c));
    p.lengths = m.paged.lengths;
    p.pages = &m.paged.pages;
  }
  if (!kv_format_name(c).empty()) {
    m.quantized.fill(c, p, k, v);
    p.stored = &m.quantized.stored;
  }
  if (is_tree(c)) {
    m.tree.fill(numbers(c.at("parents")), p.heads / p.kv_heads, p.seqlen_kv, number(c, "block_n"));
    p.tree = m.tree.tree;
  }
  if (is_backward(c)) {
    __half *d_o = (__half *)m.d_o.at_least(o_count * 2);
    fill_normal<<<1024, 256>>>(d_o, o_count, seed + 3);
    m.gradients.fill(p, d_o);
  }
  return p;
}

struct Errors {
  double o, lse;
};

/* At most `most` rows; all, if there are few. */
std::vector<int64_t> sample_rows(const Problem &p, int most) {
  int64_t total = (int64_t)p.batch * p.heads * p.seqlen_q;
  std::vector<int64_t> rows((size_t)std::min<int64_t>(total, most));
  bench::Random random;
  for (size_t i = 0; i < rows.size(); i++)
    rows[i] = (int64_t)rows.size() == total ? (int64_t)i : (int64_t)random.below((uint64_t)total);
  return rows;
}

/* Softmax of sampled rows in float64 on the CPU, from the definition. */
Errors check_softmax(const Problem &p) {
  double difference = 0, norm = 0, lse_error = 0;
  size_t columns = (size_t)p.seqlen_kv;
  for (int64_t row : sample_rows(p, 48)) {
    std::vector<__half> x = bench::to_host(p.q + (size_t)row * columns, columns),
                        y = bench::to_host((const __half *)p.o + (size_t)row * columns, columns);
    double sum = 0;
    for (size_t i = 0; i < columns; i++) sum += std::exp((double)__half2float(x[i]));
    for (size_t i = 0; i < columns; i++) {
      double expect = std::exp((double)__half2float(x[i])) / sum, d = (double)__half2float(y[i]) - expect;
      difference += d * d;
      norm += expect * expect;
    }
    lse_error = worse(lse_error, std::fabs((double)bench::to_host(p.lse + row, 1)[0] - std::log(sum)));
  }
  return {std::sqrt(difference / norm), lse_error};
}

/* ||o - ref|| / ||ref|| and the largest lse difference over sampled rows (all, if few). NaN stays NaN and fails. */
Errors check(const Problem &p, Memory &m) {
  std::vector<int64_t> rows = sample_rows(p, p.seqlen_kv > 4096 ? 64 : 512);
  int count = (int)rows.size(), columns = p.head_dim_v();
  int64_t *device_rows = (int64_t *)m.rows.at_least((size_t)count * 8);
  double *scratch = (double *)m.scratch.at_least((size_t)count * (size_t)p.seqlen_kv * 8);
  double *ref_o = (double *)m.ref_o.at_least((size_t)count * (size_t)columns * 8),
         *ref_lse = (double *)m.ref_lse.at_least((size_t)count * 8);
  CUDA_CHECK(cudaMemcpy(device_rows, rows.data(), (size_t)count * 8, cudaMemcpyHostToDevice));
  reference_rows(p, device_rows, count, scratch, ref_o, ref_lse);
  std::vector<double> expect = bench::to_host(ref_o, (size_t)count * (size_t)columns),
                      expect_lse = bench::to_host(ref_lse, (size_t)count);
  double difference = 0, norm = 0, lse_error = 0;
  std::vector<__half> o((size_t)columns);
  for (int i = 0; i < count; i++) {
    float lse;
    CUDA_CHECK(cudaMemcpy(o.data(), p.o + rows[(size_t)i] * columns, (size_t)columns * 2, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&lse, p.lse + rows[(size_t)i], 4, cudaMemcpyDeviceToHost));
    for (int d = 0; d < columns; d++) {
      double e = expect[(size_t)(i * columns + d)], x = (double)__half2float(o[(size_t)d]) - e;
      difference += x * x;
      norm += e * e;
    }
    lse_error = worse(lse_error, std::fabs((double)lse - expect_lse[(size_t)i]));
  }
  return {std::sqrt(difference / norm), lse_error};
}

/* The device's reference against the CPU's, once: a wrong reference would pass wrong kernels. */
bool reference_agrees(Memory &m) {
  Case c = {{"workload", "flash2_fwd"}, {"batch", "2"},       {"heads", "4"},     {"kv_heads", "2"},
            {"seqlen_q", "48"},         {"seqlen_kv", "80"},  {"head_dim", "64"}, {"causal", "1"},
            {"tile_order", "m_first"},  {"tile_reverse", "0"}};
  Problem p = make_problem(c, m, 99);
  std::vector<__half> q = bench::to_host(p.q, 2 * 4 * 48 * 64), k = bench::to_host(p.k, 2 * 2 * 80 * 64),
                      v = bench::to_host(p.v, 2 * 2 * 80 * 64);
  double worst = 0;
  for (int64_t row = 0; row < 2 * 4 * 48; row += 7) {
    int64_t *device_row = (int64_t *)m.rows.at_least(8);
    CUDA_CHECK(cudaMemcpy(device_row, &row, 8, cudaMemcpyHostToDevice));
    double *o = (double *)m.ref_o.at_least(64 * 8), *lse = (double *)m.ref_lse.at_least(8), cpu_o[64], cpu_lse;
    reference_rows(p, device_row, 1, (double *)m.scratch.at_least(80 * 8), o, lse);
    reference_row_cpu(p, q.data(), k.data(), v.data(), row, cpu_o, &cpu_lse);
    std::vector<double> gpu_o = bench::to_host(o, 64);
    for (int d = 0; d < 64; d++) worst = std::fmax(worst, std::fabs(gpu_o[(size_t)d] - cpu_o[d]));
    worst = std::fmax(worst, std::fabs(bench::to_host(lse, 1)[0] - cpu_lse));
  }
  return worst < 1e-12;
}

/* What a case's outputs are compared with, and how far they may be off: products of rounded P and dS lose more than O.
 */
Errors errors_of(const Case &c, const Problem &p, Memory &m) {
  if (is_softmax(c)) return check_softmax(p);
  if (!is_backward(c)) return check(p, m);
  GradientErrors e = check_gradients(p);
  return {e.gradients, e.lse};
}
bool are_small(const Case &c, const Errors &e) { return e.o < (is_backward(c) ? 3e-3 : 2e-3) && e.lse < 2e-3; }

/* One step, several, and a last step that not all threads have. */
Errors check_small_softmax(const Instance &instance, const Case &c, Memory &m) {
  Errors worst = {0, 0};
  int most = instance.key.schedule == "registers" ? instance.key.block_n : 1 << 20;
  for (int columns : {8, 256, 1000, 1024, 4104}) {
    Case small = c;
    small["seqlen_q"] = "64";
    small["seqlen_kv"] = std::to_string(std::min(columns, most));
    Problem p = make_problem(small, m, 7u + (uint32_t)columns);
    instance.run(p, nullptr);
    CUDA_CHECK(cudaGetLastError());
    Errors e = check_softmax(p);
    worst = {worse(worst.o, e.o), worse(worst.lse, e.lse)};
  }
  return worst;
}

/* Three sequences of its seqlen_kv and less, one of them of one key. */
void make_lengths_odd(Case &c) {
  int longest = number(c, "seqlen_kv");
  c["batch"] = "3";
  c["lengths"] = std::to_string(longest / 2 - 3) + ":" + std::to_string(longest) + ":1";
}

/* Small problems that the instance can run, to check it before any timing. */
Errors check_small(const Instance &instance, const Case &c, Memory &m) {
  Errors worst = {0, 0};
  if (is_softmax(c)) return check_small_softmax(instance, c, m);
  int unit = std::lcm(std::lcm(instance.key.block_m, instance.key.block_n), is_backward(c) ? 128 : 1),
      odd = instance.key.ragged ? 5 : 0;
  for (int shape = 0; shape < 3; shape++) {
    Case small = c;
    small["batch"] = shape == 1 ? "2" : "1";
    small["heads"] = "4";
    small["kv_heads"] = shape == 0 || is_backward(c) ? "4" : shape == 1 ? "2" : "1";
    small["seqlen_q"] = is_decode(c) ? "1"
                        : is_tree(c) ? c.at("seqlen_q")
                                     : std::to_string(unit * (shape == 2 ? 1 : 4) + odd);
    small["seqlen_kv"] = std::to_string(unit * (shape == 1 ? 4 : shape == 2 ? 3 : 4) + odd * (shape + 1));
    if (instance.key.windowed) small["window"] = shape == 2 ? "40" : "100";
    if (is_paged(c)) make_lengths_odd(small);
    Problem p = make_problem(small, m, 7u + (uint32_t)shape);
    instance.run(p, nullptr);
    CUDA_CHECK(cudaGetLastError());
    Errors e = errors_of(c, p, m);
    worst = {worse(worst.o, e.o), worse(worst.lse, e.lse)};
  }
  return worst;
}

}  // namespace

__half *standard_mma::score_memory(size_t bytes) { return (__half *)score_pool.at_least(bytes); }

int main(int argc, char **argv) {
  bool only_check = bench::has_flag(argc, argv, "--check"), profile = bench::has_flag(argc, argv, "--profile");
  Table table = read_cases(argv[argc - 1]);
  Memory m;
  Nvml nvml;
  if (!profile) {
    CUDA_CHECK(cudaMalloc(&m.flush, (size_t)256 << 20));
    if (!reference_agrees(m) || !gradient_reference_agrees()) {
      fprintf(stderr, "a float64 reference on the GPU disagrees with the CPU's\n");
      return 1;
    }
  }
  for (const std::string &column : table.columns) printf("%s,", column.c_str());
  printf(
      "status,launches,registers,local_bytes,shared_bytes,ctas_per_sm,threads,grid,o_error,lse_error,time_median_us,"
      "time_min_us,time_p10_us,time_p90_us,repeats,sm_mhz,nvml_mhz,watts\n");
  std::map<const Instance *, Errors> checked;
  int failures = 0;
  for (const Case &c : table.cases) {
    for (const std::string &column : table.columns) printf("%s,", c.at(column).c_str());
    const Instance *instance = find(c);
    cudaFuncAttributes attributes;
    if (!instance || cudaFuncGetAttributes(&attributes, instance->function) != cudaSuccess) {
      printf("not_built,,,,,,,,,,,,,,,,,\n");
      (void)cudaGetLastError();
      continue;
    }
    if (!fits(*instance, c)) {
      printf("ragged,,,,,,,,,,,,,,,,,\n");
      continue;
    }
    Problem p = make_problem(c, m, 1);
    Launch launch = instance->plan(p);
    if (cudaFuncSetAttribute(instance->function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)launch.shared_bytes) != cudaSuccess) {
      printf("shared_memory,,,,%zu,,,,,,,,,,,,,\n", launch.shared_bytes);
      (void)cudaGetLastError();
      continue;
    }
    int per_sm = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, instance->function, (int)launch.block,
                                                             launch.shared_bytes));
    std::string shape = std::to_string(instance->num_launches) + "," + std::to_string(attributes.numRegs) + "," +
                        std::to_string(attributes.localSizeBytes) + "," + std::to_string(launch.shared_bytes) + "," +
                        std::to_string(per_sm) + "," + std::to_string(launch.block) + "," + std::to_string(launch.grid);
    if (profile) {
      CUDA_CHECK(cudaDeviceSynchronize());
      CUDA_CHECK(cudaProfilerStart());
      instance->run(p, nullptr);
      CUDA_CHECK(cudaGetLastError());
      CUDA_CHECK(cudaDeviceSynchronize());
      CUDA_CHECK(cudaProfilerStop());
      printf("ok,%s,,,,,,,,,,\n", shape.c_str());
      fflush(stdout);
      continue;
    }
    if (!checked.count(instance)) checked[instance] = check_small(*instance, c, m);
    p = make_problem(c, m, 1);
    instance->run(p, nullptr);
    CUDA_CHECK(cudaGetLastError());
    Errors e = errors_of(c, p, m), before = checked[instance];
    e = {worse(e.o, before.o), worse(e.lse, before.lse)};
    bool right = are_small(c, e);
    if (!right || only_check) {
      failures += !right;
      printf("%s,%s,%.3g,%.3g,,,,,,,,\n", right ? "ok" : "wrong", shape.c_str(), e.o, e.lse);
      fflush(stdout);
      continue;
    }
    Times t = time_runs([&] { instance->run(p, nullptr); }, m.flush, nvml);
    printf("ok,%s,%.3g,%.3g,%.3f,%.3f,%.3f,%.3f,%d,%.1f,%d,%.0f\n", shape.c_str(), e.o, e.lse, t.median_us, t.min_us,
           t.p10_us, t.p90_us, t.repeats, t.sm_mhz, t.nvml_mhz, t.watts);
    fflush(stdout);
  }
  return failures ? 1 : 0;
}
