/* Hand-over between warpgroups and what register reallocation costs.
 *
 * named_handover: two groups of x threads wait for each other in turn, as the ping-pong schedule does: one arrives
 * (bar.arrive) where the other waits (bar.sync). Cycles from an arrive to the waiting warp's next instruction, half a
 * round trip; mbarrier_handover: the same with two mbarriers, at which one thread a warp arrives. bar_arrive: what the
 * arriving warp itself pays. back_to_back: cycles from one barrier of x threads to the next, all of them the CTA's
 * (`whole_cta`), or groups of 128 threads with a named barrier each (`named_immediate`; `named_register`, where the
 * number is in a register); `after_fma`: with 32 FMAs that depend on each other between two barriers, these included.
 * setmaxnreg: cycles of setmaxnreg.dec of a producer warpgroup, and of setmaxnreg.inc of two consumers after the
 * producer has given its registers back, or while it has not yet. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int num_steps = 256;

/* First half of the threads: group 0. */
__global__ void handover(uint64_t *span) {
  int threads = (int)blockDim.x, group = (int)threadIdx.x / (threads / 2);
  __syncthreads();
  uint64_t start = cycles64();
  if (group == 0) {
    for (int i = 0; i < num_steps; i++) {
      hopper::named_arrive(1, threads);
      hopper::named_sync(2, threads);
    }
  } else {
    for (int i = 0; i < num_steps; i++) {
      hopper::named_sync(1, threads);
      hopper::named_arrive(2, threads);
    }
  }
  if (threadIdx.x == 0) *span = cycles64() - start;
}

/* The same through two mbarriers: one thread of each warp arrives, all threads of the other group wait. (Were it one
 * thread a group, a slow warp could miss a phase and wait for ever.) */
__global__ void mbarrier_handover(uint64_t *span) {
  __shared__ __align__(8) uint64_t bars[2];
  int threads = (int)blockDim.x, group = (int)threadIdx.x / (threads / 2);
  bool elected = threadIdx.x % 32 == 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; i++) hopper::mbarrier_init(hopper::smem(&bars[i]), (uint32_t)threads / 64);
  __syncthreads();
  uint64_t start = cycles64();
  for (int i = 0; i < num_steps; i++) {
    if (group == 0 && elected) hopper::mbarrier_arrive(hopper::smem(&bars[0]));
    if (group == 1) hopper::mbarrier_wait(hopper::smem(&bars[0]), (uint32_t)i & 1);
    if (group == 1 && elected) hopper::mbarrier_arrive(hopper::smem(&bars[1]));
    if (group == 0) hopper::mbarrier_wait(hopper::smem(&bars[1]), (uint32_t)i & 1);
  }
  if (threadIdx.x == 0) *span = cycles64() - start;
}

/* What the first half pays to arrive where the second half waits. */
__global__ void arrive(uint64_t *span) {
  int threads = (int)blockDim.x;
  __syncthreads();
  if ((int)threadIdx.x < threads / 2) {
    uint64_t start = cycles64();
    hopper::named_arrive(1, threads);
    uint64_t stop = cycles64();
    if (threadIdx.x == 0) *span = stop - start;
  } else {
    hopper::named_sync(1, threads);
  }
}

/* Three warpgroups with 168 registers a thread each; cycles[0]: dec, cycles[1]: inc, cycles[2]: the time from the
 * producer's dec to the end of the consumers' inc. */
__global__ __launch_bounds__(384, 1) void reallocate(int delay, uint32_t *cycles, float *sink) {
  __shared__ uint32_t dec_at, inc_until;
  if (threadIdx.x == 0) inc_until = 0;
  __syncthreads();
  if (threadIdx.x < 128) {
    uint32_t begin = clock32();
    while (clock32() - begin < (uint32_t)delay)
      ;
    uint32_t start = clock32();
    hopper::registers_shrink<24>();
    uint32_t stop = clock32();
    if (threadIdx.x == 0) {
      dec_at = start;
      cycles[0] = stop - start;
    }
  } else {
    uint32_t begin = clock32();
    while (clock32() - begin < 2000u)
      ;
    uint32_t start = clock32();
    hopper::registers_grow<240>();
    uint32_t stop = clock32();
    atomicMax(&inc_until, stop);
    if (threadIdx.x == 128) cycles[1] = stop - start;
    sink[threadIdx.x] = (float)stop;
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[2] = inc_until - dec_at;
}

enum Kind { whole_cta, named_immediate, named_register, after_fma };

/* 16 barriers in a row, so that the loop costs little. */
template <Kind kind>
__global__ void back_to_back(uint64_t *span, float *sink, float scale) {
  int group = (int)threadIdx.x / 128;
  float x = (float)threadIdx.x;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < num_steps / 16; i++) {
#pragma unroll
    for (int k = 0; k < 16; k++) {
      if (kind == whole_cta || kind == after_fma) __syncthreads();
      if (kind == named_register) hopper::named_sync(1 + group, 128);
      if (kind == named_immediate) {
        if (group == 0)
          hopper::named_sync<1, 128>();
        else
          hopper::named_sync<2, 128>();
      }
      if (kind == after_fma)
#pragma unroll
        for (int j = 0; j < 32; j++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(scale));
    }
  }
  if (threadIdx.x == 0) *span = cycles64() - start;
  sink[threadIdx.x] = x;
}

template <Kind kind>
static void measure_back_to_back(const char *variant, int threads, uint64_t *span, float *sink) {
  for (int warm = 0; warm < 2; warm++) back_to_back<kind><<<1, threads>>>(span, sink, 0.5f);
  row("barriers", variant, "threads", threads, "back_to_back", (double)to_host(span, 1)[0] / num_steps, "cycles");
}

int main() {
  uint64_t *span = device_alloc<uint64_t>(1);
  uint32_t *cycles = device_alloc<uint32_t>(3);
  float *sink = device_alloc<float>(1024);
  for (int group_threads : {32, 64, 128, 256, 384}) {
    for (int warm = 0; warm < 2; warm++) handover<<<1, group_threads * 2>>>(span);
    row("barriers", "named_handover", "group_threads", group_threads, "one_way",
        (double)to_host(span, 1)[0] / num_steps / 2, "cycles");
    for (int warm = 0; warm < 2; warm++) mbarrier_handover<<<1, group_threads * 2>>>(span);
    row("barriers", "mbarrier_handover", "group_threads", group_threads, "one_way",
        (double)to_host(span, 1)[0] / num_steps / 2, "cycles");
    for (int warm = 0; warm < 2; warm++) arrive<<<1, group_threads * 2>>>(span);
    row("barriers", "bar_arrive", "group_threads", group_threads, "latency", (double)to_host(span, 1)[0], "cycles");
  }
  for (int delay : {0, 1000, 4000, 8000}) {
    for (int warm = 0; warm < 2; warm++) reallocate<<<1, 384>>>(delay, cycles, sink);
    std::vector<uint32_t> c = to_host(cycles, 3);
    row("barriers", "setmaxnreg", "producer_delay", delay, "dec", c[0], "cycles");
    row("barriers", "setmaxnreg", "producer_delay", delay, "inc", c[1], "cycles");
    row("barriers", "setmaxnreg", "producer_delay", delay, "dec_to_last_inc", (double)(int32_t)c[2], "cycles");
  }
  for (int threads : {32, 64, 128, 256, 384, 512}) {
    measure_back_to_back<whole_cta>("whole_cta", threads, span, sink);
    measure_back_to_back<after_fma>("after_fma", threads, span, sink);
  }
  for (int threads : {128, 256}) {
    measure_back_to_back<named_immediate>("named_immediate", threads, span, sink);
    measure_back_to_back<named_register>("named_register", threads, span, sink);
  }
  finish();
  return 0;
}
