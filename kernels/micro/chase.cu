/* Pointer chase by one thread over growing footprints: L1, L2, DRAM, shared memory.
 * ld.ca goes through L1, ld.cg starts at L2. `private`: only this SM has touched the data. `shared`: every SM read all
 * of it first, so a two-sided L2 holds it twice. x is the footprint. */
#include "bench.h"
using namespace bench;

constexpr int line_bytes = 128;

enum class Path { ca, cg };

template <Path path>
__global__ void chase(const uint32_t *buffer, int num_warm, int num_timed, uint64_t *result) {
  uint32_t at = 0;
  uint64_t start = 0;
  for (int i = 0; i < num_warm + num_timed; i++) {
    if (i == num_warm) start = cycles64();
    const uint32_t *p = buffer + at;
    if (path == Path::ca)
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(p) : "memory");
    else
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(p) : "memory");
  }
  result[1] = at;
  result[0] = cycles64() - start;
}

__global__ void chase_shared(int num_words, int num_timed, uint64_t *result) {
  extern __shared__ uint32_t words[];
  for (int i = 0; i < num_words; i++) words[i] = shared_address(&words[(i + 33) % num_words]);
  uint32_t at = words[0];
  uint64_t start = cycles64();
  for (int i = 0; i < num_timed; i++) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(at) : "memory");
  result[1] = at;
  result[0] = cycles64() - start;
}

__global__ void sweep(const uint4 *buffer, size_t count, uint4 *sink) {
  uint4 sum = {};
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(buffer + i));
    sum.x ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum.x == 0xdeadbeef) *sink = sum;
}

/* One cycle through all lines in random order (Sattolo). */
static std::vector<uint32_t> random_cycle(size_t num_lines) {
  std::vector<uint32_t> order(num_lines);
  Random random;
  for (size_t i = 0; i < num_lines; i++) order[i] = (uint32_t)i;
  for (size_t i = num_lines - 1; i > 0; i--) std::swap(order[i], order[random.below(i)]);
  std::vector<uint32_t> words(num_lines * line_bytes / 4, 0);
  for (size_t i = 0; i < num_lines; i++) words[i * line_bytes / 4] = order[i] * (line_bytes / 4);
  return words;
}

int main() {
  const size_t max_bytes = (size_t)1 << 30;
  uint32_t *buffer = device_alloc<uint32_t>(max_bytes / 4);
  uint64_t *result = device_alloc<uint64_t>(2);

  allow_shared(chase_shared, 64 * 1024);
  for (int warm = 0; warm < 2; warm++) chase_shared<<<1, 1, 32 * 1024>>>(8192, 4096, result);
  row("chase", "shared_memory", "footprint_bytes", 32768, "latency", (double)to_host(result, 1)[0] / 4096, "cycles");

  std::vector<double> footprints_kib = {4, 16, 64, 128, 160, 192, 208, 224, 240, 256, 384, 512, 1024, 2048, 4096};
  for (double mib : {8,  12, 16, 20, 22, 24, 26, 28, 29, 30, 31, 32,  34,  36,  40,
                     44, 48, 52, 56, 58, 60, 62, 64, 72, 80, 96, 128, 256, 1024})
    footprints_kib.push_back(mib * 1024);
  for (double kib : footprints_kib) {
    size_t bytes = (size_t)(kib * 1024), num_lines = bytes / line_bytes;
    std::vector<uint32_t> words = random_cycle(num_lines);
    CUDA_CHECK(cudaMemcpy(buffer, words.data(), bytes, cudaMemcpyHostToDevice));
    bool past_l2 = kib > 128 * 1024;
    int num_warm = past_l2 ? 1000 : (int)num_lines, num_timed = (int)std::min<size_t>(num_lines * 4, 200000);
    num_timed = std::max(num_timed, 4096);
    if (kib <= 4096) {
      chase<Path::ca><<<1, 1>>>(buffer, num_warm, num_timed, result);
      row("chase", "ca_private", "footprint_bytes", (double)bytes, "latency", (double)to_host(result, 1)[0] / num_timed,
          "cycles");
    }
    if (kib < 512) continue;
    chase<Path::cg><<<1, 1>>>(buffer, num_warm, num_timed, result);
    row("chase", "cg_private", "footprint_bytes", (double)bytes, "latency", (double)to_host(result, 1)[0] / num_timed,
        "cycles");
    if (past_l2) continue;
    for (int pass = 0; pass < 2; pass++) sweep<<<num_sms(), 1024>>>((const uint4 *)buffer, bytes / 16, (uint4 *)result);
    chase<Path::cg><<<1, 1>>>(buffer, 0, num_timed, result);
    row("chase", "cg_shared", "footprint_bytes", (double)bytes, "latency", (double)to_host(result, 1)[0] / num_timed,
        "cycles");
  }
  finish();
  return 0;
}
