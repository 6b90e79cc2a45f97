/* Runs a list of attention cases: checks each against float64, times it (or, with --profile, launches it once for ncu),
 * and writes CSV. attention_bench [--check] [--profile] CASES.csv > result.csv The n-th row of a --profile run belongs
 * to the n-th profiled launch; rows whose `status` is not `ok` have no launch. Timing: CUDA events around one launch,
 * 256 MiB written before each, median. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include <cuda_profiler_api.h>

#include "attention.h"
#include "bench.h"
#include "nvml.h"
#include "reference.h"
#include "standard_mma.h"

std::vector<Instance> &instances() {
  static std::vector<Instance> all;
  return all;
}

namespace {

typedef std::map<std::string, std::string> Case;

struct Table {
  std::vector<std::string> columns;
  std::vector<Case> cases;
};

std::vector<std::string> split(const std::string &line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

Table read_cases(const char *path) {
  Table table;
  std::ifstream file(path);
  if (!file) {
    fprintf(stderr, "%s: cannot be read\n", path);
    exit(2);
  }
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    number++;
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells = split(line);
    if (table.columns.empty()) {
      table.columns = cells;
      continue;
    }
    if (cells.size() != table.columns.size()) {
      fprintf(stderr, "%s:%d: %zu cells, the header has %zu\n", path, number, cells.size(), table.columns.size());
      exit(2);
    }
    Case c;
    for (size_t i = 0; i < cells.size(); i++) c[table.columns[i]] = cells[i];
    table.cases.push_back(c);
  }
  return table;
}

int number(const Case &c, const char *key) {
  auto found = c.find(key);
  if (found == c.end()) {
    fprintf(stderr, "case without column %s\n", key);
    exit(2);
  }
  return atoi(found->second.c_str());
}

const Instance *find(const Case &c) {
  for (const Instance &i : instances()) {
    const InstanceKey &k = i.key;
    if (k.workload == c.at("workload") && k.mma == c.at("mma") && k.copy == c.at("copy") &&
        k.schedule == c.at("schedule") && k.block_m == number(c, "block_m") && k.block_n == number(c, "block_n") &&
        k.num_warps == number(c, "num_warps") && k.num_stages == number(c, "num_stages") &&
        k.head_dim == number(c, "head_dim") && k.causal == (number(c, "causal") != 0) &&
        k.persistent == (c.count("persistent") && number(c, "persistent")))
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

/* Grows and never shrinks, so that many cases share one allocation. */
struct Pool {
  void *data = nullptr;
  size_t bytes = 0;
  void *at_least(size_t wanted) {
    if (wanted > bytes) {
      CUDA_CHECK(cudaFree(data));
      CUDA_CHECK(cudaMalloc(&data, wanted));
      bytes = wanted;
    }
    return data;
  }
};

Pool score_pool;

struct Memory {
  Pool q, k, v, o, lse, rows, scratch, ref_o, ref_lse;
  void *flush = nullptr;
};

bool is_decode(const Case &c) { return c.at("workload") == "flash_decode"; }

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
  size_t q_count = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_q * (size_t)p.head_dim;
  size_t kv_count = (size_t)p.batch * (size_t)p.kv_heads * (size_t)p.seqlen_kv * (size_t)p.head_dim;
  size_t rows = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_q;
  __half *q = (__half *)m.q.at_least(q_count * 2), *k = (__half *)m.k.at_least(kv_count * 2),
         *v = (__half *)m.v.at_least(kv_count * 2);
  p.o = (__half *)m.o.at_least(q_count * 2);
  p.lse = (float *)m.lse.at_least(rows * 4);
  fill_normal<<<1024, 256>>>(q, q_count, seed);
  fill_normal<<<1024, 256>>>(k, kv_count, seed + 1);
  fill_normal<<<1024, 256>>>(v, kv_count, seed + 2);
  CUDA_CHECK(cudaMemset(p.o, 0xff, q_count * 2));
  CUDA_CHECK(cudaMemset(p.lse, 0xff, rows * 4));
  p.q = q;
  p.k = k;
  p.v = v;
  if (c.count("splits")) p.splits = number(c, "splits");
  return p;
}

struct Errors {
  double o, lse;
};

/* The larger; NaN if either is NaN. */
double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }

/* ||o - ref|| / ||ref|| and the largest lse difference over sampled rows (all, if few). NaN stays NaN and fails. */
Errors check(const Problem &p, Memory &m) {
  int64_t total = (int64_t)p.batch * p.heads * p.seqlen_q;
  int count = (int)std::min<int64_t>(total, p.seqlen_kv > 4096 ? 64 : 512);
  std::vector<int64_t> rows((size_t)count);
  bench::Random random;
  for (int i = 0; i < count; i++) rows[(size_t)i] = count == total ? i : (int64_t)random.below((uint64_t)total);
  int64_t *device_rows = (int64_t *)m.rows.at_least((size_t)count * 8);
  double *scratch = (double *)m.scratch.at_least((size_t)count * (size_t)p.seqlen_kv * 8);
  double *ref_o = (double *)m.ref_o.at_least((size_t)count * (size_t)p.head_dim * 8),
         *ref_lse = (double *)m.ref_lse.at_least((size_t)count * 8);
  CUDA_CHECK(cudaMemcpy(device_rows, rows.data(), (size_t)count * 8, cudaMemcpyHostToDevice));
  reference_rows(p, device_rows, count, scratch, ref_o, ref_lse);
  std::vector<double> expect = bench::to_host(ref_o, (size_t)count * (size_t)p.head_dim),
                      expect_lse = bench::to_host(ref_lse, (size_t)count);
  double difference = 0, norm = 0, lse_error = 0;
  std::vector<__half> o((size_t)p.head_dim);
  for (int i = 0; i < count; i++) {
    float lse;
    CUDA_CHECK(
        cudaMemcpy(o.data(), p.o + rows[(size_t)i] * p.head_dim, (size_t)p.head_dim * 2, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&lse, p.lse + rows[(size_t)i], 4, cudaMemcpyDeviceToHost));
    for (int d = 0; d < p.head_dim; d++) {
      double e = expect[(size_t)(i * p.head_dim + d)], x = (double)__half2float(o[(size_t)d]) - e;
      difference += x * x;
      norm += e * e;
    }
    lse_error = worse(lse_error, std::fabs((double)lse - expect_lse[(size_t)i]));
  }
  return {std::sqrt(difference / norm), lse_error};
}

/* The device's reference against the CPU's, once: a wrong reference would pass wrong kernels. */
bool reference_agrees(Memory &m) {
  Case c = {{"batch", "2"},     {"heads", "4"},  {"kv_heads", "2"},         {"seqlen_q", "48"},   {"seqlen_kv", "80"},
            {"head_dim", "64"}, {"causal", "1"}, {"tile_order", "m_first"}, {"tile_reverse", "0"}};
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

/* Small problems that the instance can run, to check it before any timing. */
Errors check_small(const Instance &instance, const Case &c, Memory &m) {
  Errors worst = {0, 0};
  int unit = std::lcm(instance.key.block_m, instance.key.block_n);
  for (int shape = 0; shape < 3; shape++) {
    Case small = c;
    small["batch"] = shape == 1 ? "2" : "1";
    small["heads"] = "4";
    small["kv_heads"] = shape == 2 ? "1" : shape == 1 ? "2" : "4";
    small["seqlen_q"] = is_decode(c) ? "1" : std::to_string(unit * (shape == 2 ? 1 : 4));
    small["seqlen_kv"] = std::to_string(unit * (shape == 1 ? 4 : shape == 2 ? 3 : 4));
    Problem p = make_problem(small, m, 7u + (uint32_t)shape);
    instance.run(p, nullptr);
    CUDA_CHECK(cudaGetLastError());
    Errors e = check(p, m);
    worst = {worse(worst.o, e.o), worse(worst.lse, e.lse)};
  }
  return worst;
}

struct Times {
  double median_us, min_us, p10_us, p90_us;
  int repeats;
  double sm_mhz;
  int nvml_mhz;
  double watts;
};

/* SM cycles over wall time between delay_ns and delay_ns + span_ns after its start. */
__global__ void clock_probe(uint64_t delay_ns, uint64_t span_ns, double *mhz) {
  uint64_t begin = bench::global_ns() + delay_ns;
  while (bench::global_ns() < begin)
    ;
  uint64_t cycles = bench::cycles64(), ns = bench::global_ns();
  while (bench::global_ns() < ns + span_ns)
    ;
  *mhz = (double)(bench::cycles64() - cycles) * 1e3 / (double)(bench::global_ns() - ns);
}

__global__ void spin(uint64_t ns) {
  uint64_t begin = bench::global_ns();
  while (bench::global_ns() < begin + ns)
    ;
}

/* The clock that the SMs hold while the kernel runs after a fill: one warp on one SM counts beside it. That launch is
 * not timed, because the counting warp may cost the kernel a CTA. */
double probe_clock(const Instance &instance, const Problem &p, Memory &m, double kernel_us) {
  static cudaStream_t beside;
  static cudaEvent_t filled;
  static double *mhz;
  if (!mhz) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    mhz = bench::device_alloc<double>(1);
  }
  const uint64_t head_start_ns = 20000;
  CUDA_CHECK(cudaMemsetAsync(m.flush, 1, (size_t)256 << 20));
  CUDA_CHECK(cudaEventRecord(filled));
  CUDA_CHECK(cudaStreamWaitEvent(beside, filled));
  clock_probe<<<1, 1, 0, beside>>>(head_start_ns + 2000, (uint64_t)(kernel_us * 800), mhz);
  spin<<<1, 1>>>(head_start_ns);
  instance.run(p, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
  return bench::to_host(mhz, 1)[0];
}

Times time_case(const Instance &instance, const Problem &p, Memory &m, const Nvml &nvml) {
  const size_t flush_bytes = (size_t)256 << 20;
  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  float first_ms;
  for (int warm = 0; warm < 2; warm++) {
    CUDA_CHECK(cudaEventRecord(start));
    instance.run(p, nullptr);
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    CUDA_CHECK(cudaEventElapsedTime(&first_ms, start, stop));
  }
  int repeats = (int)std::min(21.0f, std::max(5.0f, 150.0f / first_ms));
  std::vector<cudaEvent_t> starts((size_t)repeats), stops((size_t)repeats);
  for (int i = 0; i < repeats; i++) {
    CUDA_CHECK(cudaEventCreate(&starts[(size_t)i]));
    CUDA_CHECK(cudaEventCreate(&stops[(size_t)i]));
  }
  for (int i = 0; i < repeats; i++) {
    CUDA_CHECK(cudaMemsetAsync(m.flush, i, flush_bytes));
    CUDA_CHECK(cudaEventRecord(starts[(size_t)i]));
    instance.run(p, nullptr);
    CUDA_CHECK(cudaEventRecord(stops[(size_t)i]));
  }
  CUDA_CHECK(cudaEventSynchronize(stops[(size_t)repeats / 2]));
  Times t;
  t.nvml_mhz = nvml.sm_mhz();
  t.watts = nvml.watts();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<double> us;
  for (int i = 0; i < repeats; i++) {
    float ms;
    CUDA_CHECK(cudaEventElapsedTime(&ms, starts[(size_t)i], stops[(size_t)i]));
    us.push_back(ms * 1e3);
    CUDA_CHECK(cudaEventDestroy(starts[(size_t)i]));
    CUDA_CHECK(cudaEventDestroy(stops[(size_t)i]));
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  t.median_us = bench::median(us);
  t.min_us = *std::min_element(us.begin(), us.end());
  t.p10_us = bench::percentile(us, 0.1);
  t.p90_us = bench::percentile(us, 0.9);
  t.repeats = repeats;
  t.sm_mhz = probe_clock(instance, p, m, t.median_us);
  return t;
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
    if (!reference_agrees(m)) {
      fprintf(stderr, "the float64 reference on the GPU disagrees with the CPU's\n");
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
    if ((!is_decode(c) && number(c, "seqlen_q") % instance->key.block_m) ||
        number(c, "seqlen_kv") % instance->key.block_n) {
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
    Errors e = check(p, m), before = checked[instance];
    e = {worse(e.o, before.o), worse(e.lse, before.lse)};
    bool right = e.o < 2e-3 && e.lse < 2e-3;
    if (!right || only_check) {
      failures += !right;
      printf("%s,%s,%.3g,%.3g,,,,,,,,\n", right ? "ok" : "wrong", shape.c_str(), e.o, e.lse);
      fflush(stdout);
      continue;
    }
    Times t = time_case(*instance, p, m, nvml);
    printf("ok,%s,%.3g,%.3g,%.3f,%.3f,%.3f,%.3f,%d,%.1f,%d,%.0f\n", shape.c_str(), e.o, e.lse, t.median_us, t.min_us,
           t.p10_us, t.p90_us, t.repeats, t.sm_mhz, t.nvml_mhz, t.watts);
    fflush(stdout);
  }
  return failures ? 1 : 0;
}
