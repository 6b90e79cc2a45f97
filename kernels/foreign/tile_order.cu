/* In which order a kernel that one has no source of finishes its output tiles. Its output is filled with a sentinel;
 * one CTA (the watcher) polls an element of every tile and notes when it changes, while other CTAs that take a whole SM
 * each keep the remaining SMs busy, but for a few that are left to the kernel. On one SM, or on as many as a cluster
 * has, a persistent kernel's CTAs run one after another, each through all of its tiles, so that the order of times is
 * the order of tiles of CTA 0, then of CTA 1, ...; where tiles are handed out by a counter the first CTA takes them
 * all.
 *
 * A shared library; tile_order.py calls it. Every function gives 0 or a cudaError_t. */
#include <cstdint>
#include <cuda_runtime.h>

enum { WATCHER_THREADS = 1024, MAX_SMS = 256, MAX_TILES = 27000 };
enum { WHOLE_SM_BYTES = 227 * 1024, TIMEOUT_CYCLES_LOG2 = 32 }; /* about 2 s */

struct Watch {
  const uint64_t *elements; /* addresses, one a tile, on the device */
  uint64_t *cycles;         /* when each changed, from the start of the watch; 0: never */
  int num_tiles;
  uint16_t sentinel;
  uint8_t is_free[MAX_SMS]; /* SMs left to the kernel that is watched */
  uint32_t watcher_sm;
  volatile uint32_t *num_ready; /* host: CTAs that hold their SM */
  uint32_t *is_done;            /* device */
};

static __device__ uint32_t sm_id() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

static __device__ uint16_t read_element(uint64_t address) {
  uint16_t value;
  asm volatile("ld.relaxed.sys.global.u16 %0, [%1];" : "=h"(value) : "l"(address) : "memory");
  return value;
}

static __device__ void watch_tiles(const Watch &w, uint64_t *seen) {
  for (int i = threadIdx.x; i < w.num_tiles; i += blockDim.x) seen[i] = 0;
  uint64_t begin = clock64();
  bool is_late = false;
  int left = 1;
  while (left && !is_late) {
    left = 0;
    for (int i = threadIdx.x; i < w.num_tiles; i += blockDim.x) {
      if (seen[i]) continue;
      if (read_element(w.elements[i]) != w.sentinel)
        seen[i] = clock64() - begin;
      else
        left = 1;
    }
    left = __syncthreads_or(left);
    is_late = __syncthreads_or(clock64() - begin > 1ull << TIMEOUT_CYCLES_LOG2);
  }
  for (int i = threadIdx.x; i < w.num_tiles; i += blockDim.x) w.cycles[i] = seen[i];
}

__global__ void __launch_bounds__(WATCHER_THREADS) hold(const __grid_constant__ Watch w) {
  extern __shared__ uint64_t seen[];
  uint32_t sm = sm_id();
  if (w.is_free[sm]) {
    /* Long enough for every other CTA to have got another SM. */
    for (uint64_t begin = clock64(); clock64() - begin < 200000;)
      ;
    return;
  }
  if (threadIdx.x == 0) {
    atomicAdd_system((uint32_t *)w.num_ready, 1u);
    __threadfence_system();
  }
  if (sm == w.watcher_sm) {
    watch_tiles(w, seen);
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(w.is_done, 1u);
  } else if (threadIdx.x == 0) {
    for (uint64_t begin = clock64();
         atomicAdd(w.is_done, 0u) == 0 && clock64() - begin < 1ull << (TIMEOUT_CYCLES_LOG2 + 1);)
      __nanosleep(20000);
  }
}

__global__ void note_sms(uint32_t *sm_of_cta) {
  if (threadIdx.x == 0) sm_of_cta[blockIdx.x] = sm_id();
}

static cudaStream_t stream;
static uint64_t *elements, *cycles;
static uint32_t *is_done, *num_ready;

static cudaError_t set_up() {
  if (stream) return cudaSuccess;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (!error) error = cudaMalloc(&elements, MAX_TILES * sizeof *elements);
  if (!error) error = cudaMalloc(&cycles, MAX_TILES * sizeof *cycles);
  if (!error) error = cudaMalloc(&is_done, sizeof *is_done);
  if (!error) error = cudaHostAlloc(&num_ready, sizeof *num_ready, cudaHostAllocMapped);
  if (!error) error = cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, WHOLE_SM_BYTES);
  return error;
}

/* The SMs of a cluster of so many CTAs. */
extern "C" int tile_order_cluster_sms(int num_ctas, uint32_t *sms) {
  cudaError_t error = set_up();
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)num_ctas;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)num_ctas);
  config.blockDim = dim3(WATCHER_THREADS);
  config.dynamicSmemBytes = WHOLE_SM_BYTES;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (!error) error = cudaFuncSetAttribute(note_sms, cudaFuncAttributeMaxDynamicSharedMemorySize, WHOLE_SM_BYTES);
  if (!error) error = cudaLaunchKernelEx(&config, note_sms, (uint32_t *)cycles);
  if (!error) error = cudaMemcpyAsync(sms, cycles, (size_t)num_ctas * sizeof *sms, cudaMemcpyDeviceToHost, stream);
  return error ? error : cudaStreamSynchronize(stream);
}

/* Begins to watch; returns when every SM that is not free is held. num_free = 0: all SMs but the watcher's are free. */
extern "C" int tile_order_begin(const uint64_t *addresses, int num_tiles, int sentinel, const uint32_t *free_sms,
                                int num_free) {
  if (num_tiles > MAX_TILES) return cudaErrorInvalidValue;
  cudaError_t error = set_up();
  int num_sms = 0;
  if (!error) error = cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, 0);
  if (error) return error;
  Watch w = {elements, cycles, num_tiles, (uint16_t)sentinel, {0}, 0, num_ready, is_done};
  for (int i = 0; i < num_free; i++) w.is_free[free_sms[i]] = 1;
  while (w.is_free[w.watcher_sm]) w.watcher_sm++;
  if (num_free == 0)
    for (int i = 0; i < num_sms; i++) w.is_free[i] = (uint32_t)i != w.watcher_sm;
  uint32_t num_held = 0;
  for (int i = 0; i < num_sms; i++) num_held += !w.is_free[i];
  *(volatile uint32_t *)num_ready = 0;
  error = cudaMemcpyAsync(elements, addresses, (size_t)num_tiles * sizeof *addresses, cudaMemcpyHostToDevice, stream);
  if (!error) error = cudaMemsetAsync(is_done, 0, sizeof *is_done, stream);
  if (!error) error = cudaStreamSynchronize(stream);
  if (error) return error;
  hold<<<(unsigned)num_sms, WATCHER_THREADS, WHOLE_SM_BYTES, stream>>>(w);
  error = cudaGetLastError();
  while (!error && *(volatile uint32_t *)num_ready < num_held)
    if (cudaStreamQuery(stream) == cudaSuccess) break; /* ended before all were there: the times will say so */
  for (volatile int pause = 0; pause < 2000000; pause = pause + 1) /* the free SMs' CTAs end */
    ;
  return error;
}

/* Waits until every tile was seen, or for some seconds; then gives the times. */
extern "C" int tile_order_end(uint64_t *cycles_of_tile, int num_tiles) {
  cudaError_t error = cudaStreamSynchronize(stream);
  if (!error)
    error = cudaMemcpy(cycles_of_tile, cycles, (size_t)num_tiles * sizeof *cycles_of_tile, cudaMemcpyDeviceToHost);
  return error;
}
