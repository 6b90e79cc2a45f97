/* How long a warp is held when it issues x asynchronous instructions one after another without waiting for a result:
 * cycles from before the first to after the last. The slope is the issue interval; where it steepens, a queue is full.
 * LDS and STS: the MIO queue of a sub-core, by one warp, and by two warps of one sub-core or of two. wgmma: how many
 * a warpgroup may have outstanding (accumulating on one result). bulk: linear TMA
 * copies of 128 bytes by one thread; tiled: tensor copies of 1 KiB. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

template <int count, bool stores>
__global__ void shared_burst(int first_warp_mask, uint32_t *cycles, uint32_t *sink) {
  extern __shared__ uint32_t words[];
  for (uint32_t i = threadIdx.x; i < 4096; i += blockDim.x) words[i] = 0;
  uint32_t address = shared_address(words) + threadIdx.x % 32 * 4, v[count], sum = 0;
  __syncthreads();
  if (!(first_warp_mask >> (threadIdx.x / 32) & 1)) return;
  for (int repeat = 0; repeat < 3; repeat++) {
    asm volatile("bar.sync 1, %0;" ::"r"(__popc(first_warp_mask) * 32) : "memory");
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++) {
      if (stores)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(address + (uint32_t)i * 128), "r"(sum) : "memory");
      else
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[i]) : "r"(address + (uint32_t)i * 128) : "memory");
    }
    uint32_t stop = clock32();
    if (!stores)
      for (int i = 0; i < count; i++) sum += v[i];
    if (threadIdx.x == 0) *cycles = stop - start;
  }
  sink[threadIdx.x] = sum;
}

template <int n, int count>
__global__ __launch_bounds__(128) void wgmma_burst(uint32_t *cycles, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  for (uint32_t i = threadIdx.x; i < 48 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00;
  hopper::proxy_fence();
  float d[n / 2] = {};
  uint64_t a = hopper::descriptor(hopper::smem(tiles), 16, 1024),
           b = hopper::descriptor(hopper::smem(tiles) + 8192, 16, 1024);
  for (int repeat = 0; repeat < 3; repeat++) {
    __syncthreads();
    hopper::wgmma_fence();
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++) Wgmma<n>::template ss<0>(d, a, b, 1);
    uint32_t stop = clock32();
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    if (threadIdx.x == 0) *cycles = stop - start;
  }
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

template <int n, int count>
__global__ __launch_bounds__(128) void wgmma_rs_burst(uint32_t *cycles, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  for (uint32_t i = threadIdx.x; i < 48 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00;
  hopper::proxy_fence();
  float d[n / 2] = {};
  uint32_t a[4] = {0x2C002C00, 0x2C012C03, 0x2C102C08, 0x2C002C01};
  uint64_t b = hopper::descriptor(hopper::smem(tiles) + 8192, 16, 1024);
  for (int repeat = 0; repeat < 3; repeat++) {
    __syncthreads();
    hopper::wgmma_fence();
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++) Wgmma<n>::template rs<0>(d, a, b, 1);
    uint32_t stop = clock32();
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    if (threadIdx.x == 0) *cycles = stop - start;
  }
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

template <int count>
__global__ void bulk_burst(const char *from, uint32_t *cycles) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t storage;
  uint32_t bar = hopper::smem(&storage);
  hopper::mbarrier_init(bar, 1);
  hopper::mbarrier_init_fence();
  for (int repeat = 0; repeat < 3; repeat++) {
    hopper::mbarrier_expect(bar, count * 128);
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++) hopper::bulk_load(hopper::smem(tile) + (uint32_t)i * 128, from + i * 128, 128, bar);
    uint32_t stop = clock32();
    hopper::mbarrier_wait(bar, (uint32_t)repeat & 1);
    *cycles = stop - start;
  }
}

/* Tiles of 64 columns by 8 rows, 1 KiB each. */
template <int count>
__global__ void tiled_burst(const __grid_constant__ CUtensorMap map, uint32_t *cycles) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t storage;
  uint32_t bar = hopper::smem(&storage);
  hopper::mbarrier_init(bar, 1);
  hopper::mbarrier_init_fence();
  for (int repeat = 0; repeat < 3; repeat++) {
    hopper::mbarrier_expect(bar, count * 1024);
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++)
      hopper::tensor_load_3d(hopper::smem(tile) + (uint32_t)i * 1024, &map, 0, i * 8, 0, bar);
    uint32_t stop = clock32();
    hopper::mbarrier_wait(bar, (uint32_t)repeat & 1);
    *cycles = stop - start;
  }
}

static uint32_t *cycles;
static void *sink;

template <int count>
static void measure() {
  const struct {
    const char *name;
    int warps, mask;
  } places[] = {{"1_warp", 1, 1},
                {"2_warps_of_a_subcore", 5, 0x11},
                {"2_warps_of_two_subcores", 2, 3},
                {"4_warps_of_a_subcore", 13, 0x1111}};
  char variant[64];
  for (const auto &p : places) {
    shared_burst<count, false><<<1, p.warps * 32, 16384>>>(p.mask, cycles, (uint32_t *)sink);
    snprintf(variant, sizeof variant, "LDS.32_%s", p.name);
    row("issue_queues", variant, "count", count, "first_to_last_issue", to_host(cycles, 1)[0], "cycles");
    shared_burst<count, true><<<1, p.warps * 32, 16384>>>(p.mask, cycles, (uint32_t *)sink);
    snprintf(variant, sizeof variant, "STS.32_%s", p.name);
    row("issue_queues", variant, "count", count, "first_to_last_issue", to_host(cycles, 1)[0], "cycles");
  }
  finish();
}

template <int n, int count>
static void measure_wgmma() {
  char variant[64];
  allow_shared(wgmma_burst<n, count>, 48 * 1024);
  allow_shared(wgmma_rs_burst<n, count>, 48 * 1024);
  wgmma_burst<n, count><<<1, 128, 48 * 1024>>>(cycles, (float *)sink);
  snprintf(variant, sizeof variant, "wgmma_m64n%dk16_ss", n);
  row("issue_queues", variant, "count", count, "first_to_last_issue", to_host(cycles, 1)[0], "cycles");
  wgmma_rs_burst<n, count><<<1, 128, 48 * 1024>>>(cycles, (float *)sink);
  snprintf(variant, sizeof variant, "wgmma_m64n%dk16_rs", n);
  row("issue_queues", variant, "count", count, "first_to_last_issue", to_host(cycles, 1)[0], "cycles");
}

template <int count>
static void measure_async(const char *buffer) {
  measure_wgmma<8, count>();
  measure_wgmma<64, count>();
  measure_wgmma<128, count>();
  if (count <= 16) measure_wgmma<256, count>();
  bulk_burst<count><<<1, 1, 8192>>>(buffer, cycles);
  row("issue_queues", "bulk_128B", "count", count, "first_to_last_issue", to_host(cycles, 1)[0], "cycles");
  allow_shared(tiled_burst<count>, 64 * 1024);
  tiled_burst<count><<<1, 1, 64 * 1024>>>(hopper::tensor_map(buffer, 64, 512, 1, 8), cycles);
  row("issue_queues", "tiled_1KiB", "count", count, "first_to_last_issue", to_host(cycles, 1)[0], "cycles");
  finish();
}

int main() {
  cycles = device_alloc<uint32_t>(1);
  sink = device_alloc<uint64_t>(1024);
  char *buffer = device_alloc<char>(65536);
  measure<1>(), measure<2>(), measure<3>(), measure<4>(), measure<5>(), measure<6>(), measure<7>(), measure<8>();
  measure<9>(), measure<10>(), measure<12>(), measure<14>(), measure<16>(), measure<20>(), measure<24>();
  measure_async<1>(buffer), measure_async<2>(buffer), measure_async<3>(buffer), measure_async<4>(buffer);
  measure_async<5>(buffer), measure_async<6>(buffer), measure_async<7>(buffer), measure_async<8>(buffer);
  measure_async<9>(buffer), measure_async<10>(buffer), measure_async<12>(buffer), measure_async<16>(buffer);
  measure_async<24>(buffer), measure_async<32>(buffer);
  return 0;
}
