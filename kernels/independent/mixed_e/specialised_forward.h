/* FlashAttention-3 forward: a producer warpgroup, of which one thread issues TMA, and two consumer warpgroups of 64
 * rows. A consumer runs the scores of a tile beside the values of the one before; with `PingPong` the two take turns to
 * issue, so that one's softmax runs beside the other's products. */
#pragma once

#include "hopper.h"

namespace mixed_e {

template <class T_, int D_, int N_, bool PingPong_, bool Causal_>
struct SpecialisedConfig {
  using T = T_;
  static constexpr int D = D_, M = 128, N = N_, Warps = 8, Stages = 2;
  static constexpr bool PingPong = PingPong_, Causal = Causal_;
  static constexpr int threads = 384;
  typedef TileLayout<D, M, N, Stages> Layout;
  static constexpr int shared_bytes = Layout::bytes;
  static_assert(D % 64 == 0 && N % 16 == 0, "");
};

template <int Registers>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/* A position in a ring of stages. */
template <int Stages>
struct Cursor {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
};

/* Two warpgroups: hardware barrier 1 + i opens the turn of warpgroup i. */
template <bool On>
struct Turns {
  int self;
  __device__ explicit Turns(int self_) : self(self_) {
    if (self == 1) pass();
  }
  __device__ void await() const {
    if constexpr (On) asm volatile("bar.sync %0, 256;" ::"r"(1 + self) : "memory");
  }
  __device__ void pass() const {
    if constexpr (On) asm volatile("bar.arrive %0, 256;" ::"r"(2 - self) : "memory");
  }
  /* Takes the last turn that was passed, so that no barrier is left half full. */
  __device__ void finish() const {
    if (self == 0) await();
  }
};

template <class C>
__device__ void produce(const Arguments &a, const TensorMaps &maps, const typename C::Layout &shared) {
  Cursor<C::Stages> at;
  int q_parity = 0;
  for (int index = blockIdx.x; index < a.works(); index += gridDim.x, q_parity ^= 1) {
    const Work work = work_of<C::M>(a, index);
    const int tiles = key_tiles<C::Causal, C::M, C::N>(a, work.first_row), kv_head = work.head / a.group;
    barrier_wait(shared.q_empty(), q_parity ^ 1);
    load_tile<C::D, C::M>(shared.q(), &maps.q, shared.q_full(), work.first_row, work.head, work.sequence);
    for (int tile = 0; tile < tiles; tile++, at.advance()) {
      barrier_wait(shared.k_empty(at.stage), at.parity ^ 1);
      load_tile<C::D, C::N>(shared.k(at.stage), &maps.k, shared.k_full(at.stage), tile * C::N, kv_head, work.sequence);
      barrier_wait(shared.v_empty(at.stage), at.parity ^ 1);
      load_tile<C::D, C::N>(shared.v(at.stage), &maps.v, shared.v_full(at.stage), tile * C::N, kv_head, work.sequence);
    }
  }
}

template <class C>
struct Consumer {
  using T = typename C::T;
  const Arguments &a;
  const typename C::Layout &shared;
  int warp_row; /* in the tile */
  uint64_t q;
  Turns<C::PingPong> turns;
  Cursor<C::Stages> k, v;

  __device__ Consumer(const Arguments &a_, const typename C::Layout &shared_, int warp)
      : a(a_),
        shared(shared_),
        warp_row(warp * 16),
        q(descriptor(shared_.q() + warp / 4 * 64 * 128, 0)),
        turns(warp / 4) {}

  __device__ void begin_scores(float (&s)[C::N / 2]) {
    start_scores<T, C::D, C::M, C::N>(s, q, descriptor(shared.k(k.stage), 0));
  }
  __device__ void end_scores(float (&s)[C::N / 2], bool last) {
    settle(s);
    warp_arrive(shared.k_empty(k.stage));
    if (last) warp_arrive(shared.q_empty());
    k.advance();
  }
  __device__ void begin_values(float (&o)[C::D / 2], const uint32_t (&p)[C::N / 16][4]) {
    start_values<T, C::N>(o, p, descriptor(shared.v(v.stage), C::N * 128));
  }
  __device__ void end_values(float (&o)[C::D / 2], uint32_t (&p)[C::N / 16][4]) {
    wgmma_wait<0>();
    settle(o);
    settle(p);
    warp_arrive(shared.v_empty(v.stage));
    v.advance();
  }

  __device__ void all_tiles(float (&o)[C::D / 2], Softmax &softmax, int first_row, int tiles) {
    const int row = first_row + warp_row + lane_id() / 4;
    const int unmasked = unmasked_tiles<C::Causal, C::N>(a, first_row + warp_row / 64 * 64);
    float s[C::N / 2], correction[2];
    uint32_t p[C::N / 16][4];
    barrier_wait(shared.k_full(k.stage), k.parity);
    turns.await();
    wgmma_fence();
    begin_scores(s);
    turns.pass();
    wgmma_wait<0>();
    end_scores(s, tiles == 1);
    if (unmasked == 0) mask<C::Causal>(s, a, row, 0);
    softmax.step(s, a.scale_log2, correction);
    pack_scores<T, C::N>(p, s);
    for (int tile = 1; tile < tiles; tile++) {
      barrier_wait(shared.k_full(k.stage), k.parity);
      turns.await();
      wgmma_fence();
      begin_scores(s);
      barrier_wait(shared.v_full(v.stage), v.parity);
      wgmma_fence();
      begin_values(o, p);
      turns.pass();
      wgmma_wait<1>();
      end_scores(s, tile + 1 == tiles);
      if (tile >= unmasked) mask<C::Causal>(s, a, row, tile * C::N);
      softmax.step(s, a.scale_log2, correction);
      end_values(o, p);
      rescale(o, correction);
      pack_scores<T, C::N>(p, s);
    }
    barrier_wait(shared.v_full(v.stage), v.parity);
    wgmma_fence();
    begin_values(o, p);
    end_values(o, p);
  }

  __device__ void run() {
    int q_parity = 0;
    for (int index = blockIdx.x; index < a.works(); index += gridDim.x, q_parity ^= 1) {
      const Work work = work_of<C::M>(a, index);
      const int tiles = key_tiles<C::Causal, C::M, C::N>(a, work.first_row);
      Softmax softmax;
      float o[C::D / 2];
#pragma unroll
      for (int i = 0; i < C::D / 2; i++) o[i] = 0.f;
      barrier_wait(shared.q_full(), q_parity);
      if (tiles > 0)
        all_tiles(o, softmax, work.first_row, tiles);
      else
        warp_arrive(shared.q_empty());
      store_rows<T>(o, softmax, a, work, work.first_row + warp_row + lane_id() / 4);
    }
    turns.finish();
  }
};

template <class C>
__global__ void __launch_bounds__(C::threads, 1)
    specialised_forward(const __grid_constant__ Arguments a, const __grid_constant__ TensorMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* not in the PTX of compute_90 that nvcc may add */
  extern __shared__ __align__(1024) unsigned char dynamic_shared[];
  const typename C::Layout shared(dynamic_shared);
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (threadIdx.x == 0) shared.init_barriers(C::Warps);
  __syncthreads();
  if (warp < 4) {
    give_registers<40>();
    if (threadIdx.x == 0) produce<C>(a, maps, shared);
  } else {
    take_registers<232>();
    Consumer<C>(a, shared, warp - 4).run();
  }
#endif
}

}  // namespace mixed_e
