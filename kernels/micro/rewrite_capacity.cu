/* How much L2 holds of what one SM reads and writes again and again, and what of a buffer written once stays in it.
 * own_rewritten: CTA i reads its own chunk and writes it, in every pass. own_half_rewritten: it reads two chunks of
 * half the size and writes one. Under ncu, (dram read bytes / footprint - 1) / (passes - 1) is the miss rate of a warm
 * pass. written_once: 64 MiB are written while every CTA reads `footprint` bytes, that all read, after each 16 KiB of
 * its own. written_slowly: 64 MiB are written with `pause_ns` between the 16 KiB pieces of a CTA. */
#include "bench.h"
using namespace bench;

constexpr int num_threads = 1024, num_passes = 9;
constexpr size_t written_bytes = (size_t)64 << 20, piece_bytes = 16 * num_threads;

__device__ __forceinline__ uint4 load(const char *p) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

__device__ __forceinline__ void store(char *p, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/* The first `written` bytes of a CTA's chunk are written in each pass, all are read. */
__global__ __launch_bounds__(num_threads) void rewrite(char *buffer, size_t chunk_bytes, size_t written, int passes,
                                                       uint32_t *sink) {
  char *chunk = buffer + blockIdx.x * chunk_bytes;
  uint32_t sum = 0;
  for (int pass = 0; pass < passes; pass++)
    for (size_t at = threadIdx.x * 16; at < chunk_bytes; at += num_threads * 16) {
      uint4 v = load(chunk + at);
      v.x += 1;
      if (at < written)
        store(chunk + at, v);
      else
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  if (sum == 0x12345678) *sink = sum;
}

__global__ __launch_bounds__(num_threads) void write_once(char *buffer, const char *shared, size_t shared_bytes,
                                                          uint32_t pause_ns, uint32_t *sink) {
  uint32_t sum = 0;
  size_t read = 0;
  for (size_t at = blockIdx.x * piece_bytes; at < written_bytes; at += gridDim.x * piece_bytes) {
    store(buffer + at + threadIdx.x * 16, make_uint4(1, 2, 3, 4));
    for (int i = 0; i < 4 && shared_bytes > 0; i++, read = (read + piece_bytes) % shared_bytes)
      sum ^= load(shared + read + threadIdx.x * 16).x;
    for (uint64_t begin = global_ns(); pause_ns > 0 && global_ns() < begin + pause_ns;)
      ;
  }
  if (sum == 0x12345678) *sink = sum;
}

int main(int argc, char **argv) {
  (void)argc, (void)argv;
  char *buffer = device_alloc<char>((size_t)256 << 20), *shared = device_alloc<char>((size_t)64 << 20);
  uint32_t *sink = device_alloc<uint32_t>(1);
  const int sms = num_sms();
  for (double mib : {24., 28., 32., 36., 40., 44., 48., 52., 56., 60., 64., 72.})
    for (bool half : {false, true}) {
      size_t chunk = (size_t)(mib * 1024 * 1024) / (size_t)sms / 128 * 128;
      rewrite<<<sms, num_threads>>>(buffer, chunk, half ? chunk / 2 / 128 * 128 : chunk, num_passes, sink);
      row("rewrite_capacity", half ? "own_half_rewritten" : "own_rewritten", "footprint_bytes", (double)chunk * sms,
          "passes", num_passes, "1");
    }
  for (double mib : {0., .25, 1., 4., 8.}) {
    size_t bytes = (size_t)(mib * 1024 * 1024);
    write_once<<<2 * sms, num_threads>>>(buffer, shared, bytes, 0, sink);
    row("rewrite_capacity", "written_once", "footprint_bytes", (double)bytes, "passes", 1, "1");
  }
  for (uint32_t pause_ns : {500, 2000, 8000}) {
    write_once<<<2 * sms, num_threads>>>(buffer, shared, 0, pause_ns, sink);
    row("rewrite_capacity", "written_slowly", "pause_ns", pause_ns, "passes", 1, "1");
  }
  finish();
  return 0;
}
