/* Which SMs share a GPC (clusters never cross one; CTAs of a cluster on different SMs are joined), and how far their
 * clock counters are apart: SMs of a GPC share a clock, so that times of CTAs there can be compared to a few cycles,
 * where the wall timer has steps of 32 ns. GPCs do not share one: under load their clocks differ by some permille. */
#pragma once

#include <cmath>
#include <numeric>

#include "bench.h"

namespace bench {

constexpr int clock_looks = 64;

struct ClockLook {
  uint64_t cycle[clock_looks];
  uint32_t sm;
};

/* One CTA an SM. The counter is read as soon as the wall timer has taken a step. */
__global__ void look_at_clocks(ClockLook *looks) {
  extern __shared__ uint32_t unused[];
  if (threadIdx.x != 0) return;
  looks[blockIdx.x].sm = sm_id();
  uint64_t begin = global_ns() / (1 << 20) * (1 << 20) + (1 << 21);
  for (int i = 0; i < clock_looks; i++) {
    uint64_t cycle;
    do cycle = cycles64();
    while (global_ns() < begin + (uint64_t)i * 4096);
    looks[blockIdx.x].cycle[i] = cycle;
  }
}

__global__ void sm_of_cta(uint32_t *sms) {
  extern __shared__ uint32_t unused[];
  if (threadIdx.x == 0) sms[blockIdx.x] = sm_id();
  uint64_t begin = cycles64();
  while (cycles64() < begin + 20000)
    ;
}

class GpcMap {
 public:
  GpcMap() : joined_((size_t)num_sms()), gpc_((size_t)num_sms()), offset_((size_t)num_sms()) {
    std::iota(joined_.begin(), joined_.end(), 0);
    for (int size : {16, 8, 7, 6, 5, 4, 3, 2})
      for (int clusters = 1; clusters <= num_sms() / size; clusters++) join_clusters(size, clusters);
    for (size_t sm = 0; sm < gpc_.size(); sm++)
      if (root((int)sm) == (int)sm)
        gpc_[sm] = num_gpcs_++;
      else
        gpc_[sm] = gpc_[(size_t)root((int)sm)];
    find_offsets();
  }

  int num_gpcs() const { return num_gpcs_; }
  int gpc_of(uint32_t sm) const { return gpc_[sm]; }
  /* Of the SM's counter to that of its GPC's first SM, in cycles. */
  double offset_of(uint32_t sm) const { return offset_[sm]; }

 private:
  /* The lowest SM that it is joined with. */
  int root(int sm) const {
    while (joined_[(size_t)sm] != sm) sm = joined_[(size_t)sm];
    return sm;
  }

  void join_clusters(int size, int clusters) {
    static uint32_t *sms = device_alloc<uint32_t>((size_t)num_sms());
    allow_shared(sm_of_cta, whole_sm_bytes);
    CUDA_CHECK(cudaFuncSetAttribute(sm_of_cta, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {(unsigned)size, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(size * clusters));
    config.blockDim = dim3(32);
    config.dynamicSmemBytes = whole_sm_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA_CHECK(cudaLaunchKernelEx(&config, sm_of_cta, sms));
    std::vector<uint32_t> of_cta = to_host(sms, (size_t)(size * clusters));
    for (size_t cta = 0; cta < of_cta.size(); cta++) {
      int a = root((int)of_cta[cta]), b = root((int)of_cta[cta / (size_t)size * (size_t)size]);
      joined_[(size_t)std::max(a, b)] = std::min(a, b);
    }
  }

  void find_offsets() {
    ClockLook *looks = device_alloc<ClockLook>(gpc_.size());
    std::vector<ClockLook> by_sm(gpc_.size());
    allow_shared(look_at_clocks, whole_sm_bytes);
    look_at_clocks<<<num_sms(), 32, whole_sm_bytes>>>(looks);
    for (const ClockLook &look : to_host(looks, gpc_.size())) by_sm[look.sm] = look;
    CUDA_CHECK(cudaFree(looks));
    for (size_t sm = 0; sm < gpc_.size(); sm++) {
      const ClockLook &own = by_sm[sm], &first = by_sm[(size_t)root((int)sm)];
      for (int i = 0; i < clock_looks; i++)
        offset_[sm] += (double)(int64_t)(own.cycle[i] - first.cycle[i]) / clock_looks;
    }
  }

  std::vector<int> joined_, gpc_;
  std::vector<double> offset_;
  int num_gpcs_ = 0;
};

inline double mean(const std::vector<double> &x) {
  return x.empty() ? 0 : std::accumulate(x.begin(), x.end(), 0.0) / (double)x.size();
}

inline double deviation(const std::vector<double> &x) {
  double squares = 0, middle = mean(x);
  for (double v : x) squares += (v - middle) * (v - middle);
  return x.size() > 1 ? sqrt(squares / (double)(x.size() - 1)) : 0;
}

/* Standard deviation inside the GPCs, and that of the GPCs' means. */
struct Spread {
  double inside, between;
};

inline Spread spread_by_gpc(const GpcMap &map, const std::vector<uint32_t> &sms, const std::vector<double> &x) {
  double squares = 0, freedom = 0;
  std::vector<double> means;
  for (int g = 0; g < map.num_gpcs(); g++) {
    std::vector<double> of_gpc;
    for (size_t i = 0; i < x.size(); i++)
      if (map.gpc_of(sms[i]) == g) of_gpc.push_back(x[i]);
    if (of_gpc.size() < 2) continue;
    means.push_back(mean(of_gpc));
    squares += deviation(of_gpc) * deviation(of_gpc) * (double)(of_gpc.size() - 1);
    freedom += (double)(of_gpc.size() - 1);
  }
  return {freedom > 0 ? sqrt(squares / freedom) : 0, deviation(means)};
}

}  // namespace bench
