/* Runs a list of matrix products and gated linear units: checks each against float64, times it (or, with --profile,
 * launches it once for ncu), and writes CSV. product_bench [--profile] CASES.csv > result.csv, as attention_bench. */
#include <cmath>

#include <cuda_profiler_api.h>

#include "cases.h"
#include "pool.h"
#include "product_mma.h"
#include "product_wgmma.h"
#include "timing.h"

namespace {

using product_mma::Product;

struct Kernel {
  const char *workload, *mma;
  bool transpose_b, persistent, staged;
  int block_m, block_n, block_k, num_warps, num_stages;
  const void *function;
  void (*run)(const Product &);
  unsigned (*num_ctas)(const Product &);
  int threads, shared_bytes;
};

template <int block_m, int block_n, int block_k, int num_warps, int num_stages>
Kernel matmul() {
  using S = product_mma::Shape<block_m, block_n, block_k, num_warps, num_stages, 1>;
  return {"matmul_tiled",
          "mma",
          false,
          false,
          false,
          block_m,
          block_n,
          block_k,
          num_warps,
          num_stages,
          (const void *)product_mma::matmul<S>,
          product_mma::run_matmul<S>,
          product_mma::num_ctas<S>,
          S::num_threads,
          S::shared_bytes};
}

template <int block_m, int block_n, int block_k, int num_warps, int num_stages>
Kernel gated() {
  using S = product_mma::Shape<block_m, block_n, block_k, num_warps, num_stages, 2>;
  return {"glu",
          "mma",
          false,
          false,
          false,
          block_m,
          block_n,
          block_k,
          num_warps,
          num_stages,
          (const void *)product_mma::gated<S>,
          product_mma::run_gated<S>,
          product_mma::num_ctas<S>,
          S::num_threads,
          S::shared_bytes};
}

enum Store { direct, staged };
enum Grid { one_tile, persistent };

template <int block_m, int block_n, int num_warps, int num_stages, bool transpose_b, Grid grid, Store store>
Kernel wgmma() {
  constexpr int block_k = 64;
  using S = product_wgmma::Shape<block_m, block_n, block_k, num_warps, num_stages, transpose_b, grid == persistent,
                                 store == staged>;
  return {"matmul_tiled",
          "wgmma",
          transpose_b,
          grid == persistent,
          store == staged,
          block_m,
          block_n,
          block_k,
          num_warps,
          num_stages,
          (const void *)product_wgmma::matmul<S, product_wgmma::NoMarks>,
          product_wgmma::run<S>,
          product_wgmma::num_ctas<S>,
          S::num_threads,
          S::shared_bytes};
}

const Kernel kernels[] = {matmul<128, 128, 64, 8, 3>(),
                          matmul<128, 64, 64, 4, 4>(),
                          matmul<64, 128, 64, 4, 3>(),
                          gated<128, 64, 64, 8, 3>(),
                          gated<64, 64, 64, 4, 3>(),
                          matmul<128, 128, 64, 8, 2>(),
                          matmul<64, 64, 64, 4, 3>(),
                          matmul<128, 64, 64, 4, 3>(),
                          wgmma<128, 128, 8, 4, false, one_tile, direct>(),
                          wgmma<128, 128, 8, 4, false, persistent, staged>(),
                          wgmma<128, 128, 8, 4, true, one_tile, staged>(),
                          wgmma<128, 128, 4, 3, false, one_tile, direct>(),
                          wgmma<128, 256, 8, 3, false, persistent, staged>(),
                          wgmma<128, 256, 8, 2, false, persistent, direct>(),
                          wgmma<256, 128, 8, 4, true, persistent, staged>(),
                          wgmma<256, 128, 8, 3, false, one_tile, direct>(),
                          wgmma<128, 192, 8, 4, true, persistent, staged>(),
                          wgmma<64, 128, 4, 4, false, one_tile, direct>(),
                          wgmma<64, 128, 4, 2, false, one_tile, staged>(),
                          wgmma<64, 256, 4, 3, true, persistent, staged>()};

/* Of a column that older files do not have. */
int number_or_0(const Case &c, const char *key) { return c.count(key) ? number(c, key) : 0; }
bool is_staged(const Case &c) { return c.count("store") && c.at("store") == "staged"; }

const Kernel *find(const Case &c) {
  for (const Kernel &i : kernels)
    if (c.at("workload") == i.workload && c.at("mma") == i.mma && i.transpose_b == number_or_0(c, "transpose_b") &&
        i.persistent == number_or_0(c, "persistent") && i.staged == is_staged(c) && i.block_m == number(c, "block_m") &&
        i.block_n == number(c, "block_n") && i.block_k == number(c, "block_k") &&
        i.num_warps == number(c, "num_warps") && i.num_stages == number(c, "num_stages"))
      return &i;
  return nullptr;
}

bool fits(const Kernel &i, const Case &c) {
  return number(c, "m") % i.block_m == 0 && number(c, "n") % i.block_n == 0 && number(c, "k") % i.block_k == 0 &&
         number(c, "n") % product_mma::adding_columns == 0 && !(i.staged && number(c, "splits") > 1);
}

/* Uniform between -1 and 1, times `scale`. */
__global__ void fill(__half *to, size_t count, uint32_t seed, float scale) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t x = (uint32_t)i * 0x9e3779b9u + seed;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    to[i] = __float2half(((float)(x ^ (x >> 16)) * 4.6566129e-10f - 1.0f) * scale);
  }
}

struct Memory {
  Pool a, b[2], c, sums, expected;
};

Product make_product(const Case &c, Memory &m) {
  Product p = {number(c, "batch"),
               number(c, "m"),
               number(c, "n"),
               number(c, "k"),
               std::max(1, number(c, "splits")),
               c.at("tile_order") == "m_first",
               nullptr,
               {nullptr, nullptr},
               nullptr,
               nullptr};
  size_t batch = (size_t)p.batch, rows = (size_t)p.m, columns = (size_t)p.n, depth = (size_t)p.k;
  __half *a = (__half *)m.a.at_least(batch * rows * depth * 2);
  fill<<<1024, 256>>>(a, batch * rows * depth, 1, 1.0f);
  for (int i = 0; i < 2; i++) {
    __half *b = (__half *)m.b[i].at_least(batch * depth * columns * 2);
    fill<<<1024, 256>>>(b, batch * depth * columns, 11u + (uint32_t)i, 3.0f / std::sqrt((float)p.k)); /* sums about 1 */
    p.b[i] = b;
  }
  p.a = a;
  p.c = (__half *)m.c.at_least(batch * rows * columns * 2);
  CUDA_CHECK(cudaMemset(p.c, 0xff, batch * rows * columns * 2));
  p.sums = (float *)m.sums.at_least(batch * (size_t)p.splits * rows * columns * 4);
  CUDA_CHECK(cudaMemset(p.sums, 0xff, batch * (size_t)p.splits * rows * columns * 4));
  return p;
}

constexpr int sampled_rows = 48;

__device__ __host__ size_t sampled_row(const Product &p, int i) {
  return (size_t)i * 2654435761u % ((size_t)p.batch * (size_t)p.m);
}

/* A thread an element of a sampled row, from the definition. */
__global__ void reference(Product p, bool is_gated, bool transpose_b, double *out) {
  size_t row = sampled_row(p, (int)blockIdx.y), column = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (column >= (size_t)p.n) return;
  const __half *a = p.a + row * (size_t)p.k;
  size_t matrix = row / (size_t)p.m * (size_t)p.k * (size_t)p.n;
  double sums[2] = {0, 0};
  for (int i = 0; i < (is_gated ? 2 : 1); i++)
    for (int k = 0; k < p.k; k++)
      sums[i] +=
          (double)__half2float(a[k]) *
          (double)__half2float(
              p.b[i][matrix + (transpose_b ? column * (size_t)p.k + (size_t)k : (size_t)k * (size_t)p.n + column)]);
  out[blockIdx.y * (size_t)p.n + column] = is_gated ? sums[0] / (1 + exp(-sums[0])) * sums[1] : sums[0];
}

/* ||c - expected|| / ||expected|| of sampled rows; NaN stays NaN and fails. */
double error_of(const Product &p, bool is_gated, bool transpose_b, Memory &m) {
  double *expected = (double *)m.expected.at_least(sampled_rows * (size_t)p.n * 8);
  reference<<<dim3((unsigned)(p.n + 255) / 256, sampled_rows), 256>>>(p, is_gated, transpose_b, expected);
  std::vector<double> expect = bench::to_host((const double *)expected, sampled_rows * (size_t)p.n);
  double difference = 0, norm = 0;
  for (int i = 0; i < sampled_rows; i++) {
    std::vector<__half> row = bench::to_host((const __half *)p.c + sampled_row(p, i) * (size_t)p.n, (size_t)p.n);
    for (size_t j = 0; j < (size_t)p.n; j++) {
      double e = expect[(size_t)i * (size_t)p.n + j], d = (double)__half2float(row[j]) - e;
      difference += d * d;
      norm += e * e;
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace

int main(int argc, char **argv) {
  bool profile = bench::has_flag(argc, argv, "--profile");
  Table table = read_cases(argv[argc - 1]);
  Memory m;
  Nvml nvml;
  void *flush = nullptr;
  if (!profile) CUDA_CHECK(cudaMalloc(&flush, (size_t)256 << 20));
  for (const std::string &column : table.columns) printf("%s,", column.c_str());
  printf(
      "status,launches,registers,local_bytes,shared_bytes,threads,grid,o_error,time_median_us,time_min_us,time_p10_us,"
      "time_p90_us,repeats,sm_mhz,nvml_mhz,watts\n");
  int failures = 0;
  for (const Case &c : table.cases) {
    for (const std::string &column : table.columns) printf("%s,", c.at(column).c_str());
    const Kernel *kernel = find(c);
    cudaFuncAttributes attributes;
    if (!kernel || !fits(*kernel, c) || cudaFuncGetAttributes(&attributes, kernel->function) != cudaSuccess) {
      printf("not_built,,,,,,,,,,,,,,,\n");
      (void)cudaGetLastError();
      continue;
    }
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel->shared_bytes));
    Product p = make_product(c, m);
    std::string shape = std::to_string(p.splits > 1 ? 2 : 1) + "," + std::to_string(attributes.numRegs) + "," +
                        std::to_string(attributes.localSizeBytes) + "," + std::to_string(kernel->shared_bytes) + "," +
                        std::to_string(kernel->threads) + "," + std::to_string(kernel->num_ctas(p));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (profile) CUDA_CHECK(cudaProfilerStart());
    kernel->run(p);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    if (profile) {
      CUDA_CHECK(cudaProfilerStop());
      printf("ok,%s,,,,,,,,,\n", shape.c_str());
      fflush(stdout);
      continue;
    }
    double error = error_of(p, c.at("workload") == "glu", kernel->transpose_b, m);
    bool right = error < 2e-3;
    failures += !right;
    Times t = time_runs([&] { kernel->run(p); }, flush, nvml);
    printf("%s,%s,%.3g,%.3f,%.3f,%.3f,%.3f,%d,%.1f,%d,%.0f\n", right ? "ok" : "wrong", shape.c_str(), error,
           t.median_us, t.min_us, t.p10_us, t.p90_us, t.repeats, t.sm_mhz, t.nvml_mhz, t.watts);
    fflush(stdout);
  }
  return failures ? 1 : 0;
}
