/* How much DRAM is read when one sector of 32 bytes is missing: one 32-byte sector of every x bytes of 256 MiB is read
 * once. Run under ncu (caches invalidated): dram__bytes_read over the bytes asked for. _two: the other sector of each
 * pair of 64 bytes is read right after it. */
#include "bench.h"
using namespace bench;

constexpr size_t footprint_bytes = (size_t)256 << 20;

template <bool two>
__global__ __launch_bounds__(256) void passes_sparse(const char *buffer, int stride, uint32_t *sink) {
  uint32_t sum = 0;
  size_t count = footprint_bytes / (size_t)stride * 8, step = (size_t)gridDim.x * blockDim.x;
  /* Eight neighbouring threads read one sector. */
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
    const char *at = buffer + i / 8 * (size_t)stride + i % 8 * 4;
    sum ^= *(const volatile uint32_t *)at;
    if (two) sum ^= *(const volatile uint32_t *)(at + 32);
  }
  if (sum == 0x12345678) *sink = sum;
}

int main() {
  char *buffer = device_alloc<char>(footprint_bytes);
  uint32_t *sink = device_alloc<uint32_t>(1);
  for (int stride : {32, 64, 128, 256, 512, 1024, 4096}) {
    passes_sparse<false><<<num_sms() * 8, 256>>>(buffer, stride, sink);
    row("fill_granule", "one_sector", "stride_bytes", stride, "asked",
        32.0 * (double)(footprint_bytes / (size_t)stride), "bytes");
    if (stride < 64) continue;
    passes_sparse<true><<<num_sms() * 8, 256>>>(buffer, stride, sink);
    row("fill_granule", "two_sectors", "stride_bytes", stride, "asked",
        64.0 * (double)(footprint_bytes / (size_t)stride), "bytes");
  }
  finish();
  return 0;
}
