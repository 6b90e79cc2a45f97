/* What every microbenchmark shares: error checks, CSV rows, SM identity and clocks.
 *
 * A row is  benchmark,variant,parameter,x,metric,value,unit : one measured value at one point x of one parameter.
 * With `--profile` a benchmark launches each configuration once, in the order of its rows and nothing else, so that the
 * n-th row joins the n-th launch in Nsight Compute's raw page. */
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(expr)                                                                          \
  do {                                                                                            \
    cudaError_t status_ = (expr);                                                                 \
    if (status_ != cudaSuccess) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, cudaGetErrorString(status_)); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

namespace bench {

inline bool has_flag(int argc, char **argv, const char *flag) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], flag)) return true;
  return false;
}

inline void row(const char *benchmark, const char *variant, const char *parameter, double x, const char *metric,
                double value, const char *unit) {
  printf("%s,%s,%s,%.10g,%s,%.6g,%s\n", benchmark, variant, parameter, x, metric, value, unit);
  fflush(stdout);
}

template <typename T>
inline T percentile(std::vector<T> values, double fraction) {
  if (values.empty()) return T();
  size_t k = (size_t)(fraction * (double)(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + (long)k, values.end());
  return values[k];
}

template <typename T>
inline T median(const std::vector<T> &values) {
  return percentile(values, 0.5);
}

/* xorshift: the same numbers on every machine. */
struct Random {
  uint64_t state = 0x9E3779B97F4A7C15ull;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  uint64_t below(uint64_t n) { return next() % n; }
};

inline int num_sms() {
  int n = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
  return n;
}

template <typename T>
inline T *device_alloc(size_t count) {
  void *p = nullptr;
  CUDA_CHECK(cudaMalloc(&p, count * sizeof(T)));
  CUDA_CHECK(cudaMemset(p, 0, count * sizeof(T)));
  return (T *)p;
}

template <typename T>
inline std::vector<T> to_host(const T *device, size_t count) {
  std::vector<T> host(count);
  CUDA_CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

inline void finish() {
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

/* In clusters of `ctas`. */
template <typename... Args>
inline void launch_clusters(void (*kernel)(Args...), int grid, int threads, int shared_bytes, int ctas, Args... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)grid);
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = (size_t)shared_bytes;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)ctas;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args...));
}

/* One CTA a SM: dynamic shared memory that fills it. */
constexpr int whole_sm_bytes = 200 * 1024;

template <typename Kernel>
inline void allow_shared(Kernel kernel, int bytes) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

class EventTimer {
 public:
  EventTimer() {
    CUDA_CHECK(cudaEventCreate(&start_));
    CUDA_CHECK(cudaEventCreate(&stop_));
  }
  void start() { CUDA_CHECK(cudaEventRecord(start_)); }
  float stop_ms() {
    float ms = 0;
    CUDA_CHECK(cudaEventRecord(stop_));
    CUDA_CHECK(cudaEventSynchronize(stop_));
    CUDA_CHECK(cudaEventElapsedTime(&ms, start_, stop_));
    return ms;
  }

 private:
  cudaEvent_t start_, stop_;
};

__device__ __forceinline__ uint32_t sm_id() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

__device__ __forceinline__ uint32_t clock32() {
  uint32_t c;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(c)::"memory");
  return c;
}

__device__ __forceinline__ uint64_t cycles64() {
  uint64_t c;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(c)::"memory");
  return c;
}

__device__ __forceinline__ uint64_t global_ns() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

}  // namespace bench
