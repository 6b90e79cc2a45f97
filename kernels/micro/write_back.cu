/* When L2 writes dirty lines back before they are evicted, and what stays: run under ncu (cache control all) and
 * compare dram__bytes_write.sum with the bytes written. A launch has three phases, with a barrier of all SMs between
 * them: it reads `before` bytes, so that what was dirty at its start is gone; writes `written` bytes once, each CTA 16
 * KiB pieces, and reads `hot` bytes, that all SMs share, beside them; reads `after` bytes `passes` times; and waits. */
#include "bench.h"
using namespace bench;

constexpr int num_threads = 1024;
constexpr size_t piece_bytes = 16 * num_threads, mib = 1048576;

struct Plan {
  size_t before, written, hot, after;  // bytes
  uint32_t pause_ns;                   // after each piece that a CTA writes
  uint32_t wait_ns;                    // at the end
  int passes;                          // over `after`
  int readers;                         // CTAs that read each piece of `after`
  int copied;                          // each written byte is read elsewhere first
  int tile_columns;                    // 0: a piece is contiguous; else 64 rows of 256 bytes, of as many tiles a row
  int read_back;                       // `after` is what was written: with one reader, each CTA reads its own pieces
  uint32_t read_pause_ns;              // after each piece of `after`
};

__device__ __forceinline__ uint4 load(const char *p) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

__device__ __forceinline__ void store(char *p, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ __forceinline__ void pause(uint32_t ns) {
  if (ns == 0) return;
  for (uint64_t begin = global_ns(); global_ns() < begin + ns;)
    ;
}

__device__ void all_sms(uint32_t *arrived, uint32_t phase) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*(volatile uint32_t *)arrived < phase * gridDim.x)
      ;
  }
  __syncthreads();
}

/* Piece `p` of a buffer is read by `readers` CTAs. */
__device__ uint32_t read_all(const char *from, size_t bytes, int readers, uint32_t pause_ns) {
  uint32_t sum = 0;
  size_t group = blockIdx.x / readers, groups = (gridDim.x + readers - 1) / readers;
  for (size_t at = group * piece_bytes; at < bytes; at += groups * piece_bytes) {
    sum ^= load(from + at + threadIdx.x * 16).x;
    pause(pause_ns);
  }
  return sum;
}

__device__ size_t place_of(size_t piece, int tile_columns) {
  if (tile_columns == 0) return piece * piece_bytes + threadIdx.x * 16;
  size_t row = piece / tile_columns * 64 + threadIdx.x / 16;
  return (row * tile_columns + piece % tile_columns) * 256 + threadIdx.x % 16 * 16;
}

__global__ __launch_bounds__(num_threads) void write_back(Plan plan, char *to, const char *from, uint32_t *arrived,
                                                          uint32_t *sink) {
  const char *before = from, *copied = from + 256 * mib, *hot = from + 512 * mib,
             *after = plan.read_back ? to : from + 576 * mib;
  uint32_t sum = read_all(before, plan.before, 1, 0);
  all_sms(arrived, 1);
  for (size_t piece = blockIdx.x; piece < plan.written / piece_bytes; piece += gridDim.x) {
    size_t at = place_of(piece, plan.tile_columns);
    uint4 v = plan.copied ? load(copied + at) : make_uint4(1, 2, 3, 4);
    store(to + at, v);
    for (size_t h = 0; h < plan.hot; h += piece_bytes) sum ^= load(hot + h + threadIdx.x * 16).x;
    pause(plan.pause_ns);
  }
  all_sms(arrived, 2);
  for (int pass = 0; pass < plan.passes; pass++) sum ^= read_all(after, plan.after, plan.readers, plan.read_pause_ns);
  all_sms(arrived, 3);
  pause(plan.wait_ns);
  if (sum == 0x12345678) *sink = sum;
}

struct Bench {
  char *to, *from;
  uint32_t *arrived, *sink;

  void run(const char *variant, const char *parameter, double x, Plan plan) const {
    CUDA_CHECK(cudaMemset(arrived, 0, sizeof *arrived));
    write_back<<<num_sms(), num_threads>>>(plan, to, from, arrived, sink);
    row("write_back", variant, parameter, x, "written_bytes", (double)plan.written, "bytes");
  }
};

int main(int argc, char **argv) {
  (void)argc, (void)argv;
  Bench bench = {device_alloc<char>(256 * mib), device_alloc<char>(768 * mib), device_alloc<uint32_t>(1),
                 device_alloc<uint32_t>(1)};
  /* What the profiler left: reads alone. */
  for (size_t read : {16, 32, 48, 64, 128})
    bench.run("read", "after_bytes", (double)(read * mib), {.after = read * mib, .passes = 1, .readers = 1});
  /* What was written goes when enough has been read after it. */
  for (uint32_t wait_ns : {0, 200000})
    for (size_t read : {16, 20, 24, 28, 32, 36, 40, 44, 48, 56})
      bench.run(wait_ns ? "written_read_waited" : "written_read", "after_bytes", (double)(read * mib),
                {.written = 16 * mib, .after = read * mib, .wait_ns = wait_ns, .passes = 1, .readers = 1});
  for (uint32_t pause_ns : {0, 2000})
    for (size_t read : {16, 20, 24, 28, 32, 36, 40, 44, 48, 56})
      bench.run(pause_ns ? "written_slowly_read_slowly" : "written_read_slowly", "after_bytes", (double)(read * mib),
                {.written = 16 * mib,
                 .after = read * mib,
                 .pause_ns = pause_ns,
                 .passes = 1,
                 .readers = 1,
                 .read_pause_ns = 2000});
  for (size_t read : {8, 12, 16, 20, 24, 28, 32})
    bench.run(
        "written_read_by_all", "after_bytes", (double)(read * mib),
        {.written = 16 * mib, .after = read * mib, .pause_ns = 2000, .passes = 1, .readers = 8, .read_pause_ns = 2000});
  /* Writes alone. */
  for (size_t written : {20, 24, 28, 32, 40, 64, 128})
    for (uint32_t pause_ns : {0, 2000})
      bench.run(pause_ns ? "written_slowly" : "written", "written_bytes", (double)(written * mib),
                {.written = written * mib, .pause_ns = pause_ns});
  for (uint32_t wait_ns : {20000, 200000})
    bench.run("written_waited", "wait_ns", wait_ns, {.written = 64 * mib, .wait_ns = wait_ns});
  /* Writes of tiles: 64 rows of 256 bytes, rows as long as the number of tiles says. */
  for (int columns : {4, 9, 16, 64})
    bench.run("written_tiles", "tiles_of_row", columns, {.written = 72 * mib, .tile_columns = columns});
  /* Writes beside reads that hit. */
  for (double hot : {.0625, .25, .5, 1., 2., 3., 4., 8., 12., 16., 18., 20., 22.})
    bench.run("written_hot", "hot_bytes", hot * mib, {.written = 36 * mib, .hot = (size_t)(hot * mib)});
  /* A copy, slower and slower. */
  for (uint32_t pause_ns : {0, 250, 500, 1000, 2000, 8000})
    bench.run("copied", "pause_ns", pause_ns, {.written = 64 * mib, .pause_ns = pause_ns, .copied = 1});
  for (size_t written : {12, 16, 20, 24, 28})
    bench.run("copied_slowly", "written_bytes", (double)(written * mib),
              {.written = written * mib, .pause_ns = 2000, .copied = 1});
  /* Does a write leave a replica on its way to the other side? The same SM reads what it wrote. */
  for (uint32_t pause_ns : {0, 2000}) {
    bench.run(pause_ns ? "not_read_back_slowly" : "not_read_back", "written_bytes", 8 * mib,
              {.written = 8 * mib, .pause_ns = pause_ns});
    for (int passes : {1, 2})
      bench.run(pause_ns ? "read_back_slowly" : "read_back", "passes", passes,
                {.written = 8 * mib,
                 .after = 8 * mib,
                 .pause_ns = pause_ns,
                 .passes = passes,
                 .readers = 1,
                 .read_back = 1,
                 .read_pause_ns = pause_ns});
  }
  finish();
  return 0;
}
