/* How many written bytes are still dirty in L2 when a kernel ends: run under ncu (cache control all) and compare
 * dram__bytes_write.sum with the bytes written. write: each line once. rewrite: three times over the same bytes.
 * read_write: as a copy, reads equal writes. */
#include "bench.h"
using namespace bench;

enum class Mode { write, rewrite, read_write };

template <Mode mode>
__global__ __launch_bounds__(512) void dirty(const uint4 *from, uint4 *to, size_t count) {
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (int pass = 0; pass < (mode == Mode::rewrite ? 3 : 1); pass++)
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step)
      to[i] = mode == Mode::read_write ? __ldcg(from + i) : make_uint4((uint32_t)i, (uint32_t)pass, 2, 3);
}

int main() {
  const size_t max_bytes = (size_t)256 << 20;
  uint4 *from = device_alloc<uint4>(max_bytes / 16), *to = device_alloc<uint4>(max_bytes / 16);
  int grid = num_sms() * 4;
  for (double mib : {1.,  2.,  4.,  8.,  12., 16., 20., 24., 28., 32.,  36.,  40.,
                     44., 48., 52., 56., 60., 64., 72., 80., 96., 128., 160., 200.}) {
    size_t bytes = (size_t)(mib * 1048576), count = bytes / 16;
    dirty<Mode::write><<<grid, 512>>>(from, to, count);
    row("dirty_residue", "write", "written_bytes", (double)bytes, "written", (double)bytes, "bytes");
    dirty<Mode::rewrite><<<grid, 512>>>(from, to, count);
    row("dirty_residue", "rewrite", "written_bytes", (double)bytes, "written", (double)bytes * 3, "bytes");
    dirty<Mode::read_write><<<grid, 512>>>(from, to, count);
    row("dirty_residue", "read_write", "written_bytes", (double)bytes, "written", (double)bytes, "bytes");
  }
  finish();
  return 0;
}
