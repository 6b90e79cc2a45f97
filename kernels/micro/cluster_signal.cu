/* Two warps signal each other by turns through mbarriers, and how long a round trip takes: arrive at the other's, wait
 * at one's own. `local`: warps of one CTA; `peer`: the first and the last CTA of a cluster (mapa, arrive on
 * shared::cluster), with the release that is the default, or (`release`) of what the cluster sees. `poll`: the wait
 * tests again and again; `try`: try_wait, which may put the warp to sleep. `load`: loads that depend on each other, of
 * one's own shared memory and of the other CTA's; `store`: plain stores to a word that the other reads (volatile). x
 * counts the cluster's CTAs; all in SM cycles. */
#include <cooperative_groups.h>

#include "bench.h"
#include "hopper.h"
using namespace bench;
namespace cg = cooperative_groups;

constexpr int num_trips = 4096;

__device__ __forceinline__ uint32_t address_in(uint32_t address, uint32_t cta) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(cta));
  return there;
}
__device__ __forceinline__ void arrive_at(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void arrive_and_release_at(uint32_t bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

enum class Wait { poll, try_wait };
enum class Arrive { local, peer, release };

template <Arrive arrive>
__device__ __forceinline__ void arrive_by(uint32_t bar) {
  if (arrive == Arrive::local)
    hopper::mbarrier_arrive(bar);
  else if (arrive == Arrive::peer)
    arrive_at(bar);
  else
    arrive_and_release_at(bar);
}

template <Wait wait, Arrive arrive>
__device__ void take_turns(bool first, uint32_t own, uint32_t other, uint32_t *cycles) {
  uint32_t start = clock32();
  for (int i = 0; i < num_trips; i++) {
    if (first) arrive_by<arrive>(other);
    if (wait == Wait::poll)
      hopper::mbarrier_poll(own, (uint32_t)i & 1);
    else
      hopper::mbarrier_wait(own, (uint32_t)i & 1);
    if (!first) arrive_by<arrive>(other);
  }
  if (first) *cycles = clock32() - start;
}

template <Wait wait>
__global__ void local_trips(uint32_t *cycles) {
  __shared__ __align__(8) uint64_t bars[2];
  uint32_t bar = hopper::smem(bars), warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init(bar + 8, 1);
    hopper::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) take_turns<wait, Arrive::local>(warp == 0, bar + warp * 8, bar + (warp ^ 1) * 8, cycles);
}

template <Wait wait, Arrive arrive>
__global__ void peer_trips(uint32_t *cycles) {
  __shared__ __align__(8) uint64_t storage;
  uint32_t bar = hopper::smem(&storage), rank = cg::this_cluster().block_rank(),
           last = cg::this_cluster().num_blocks() - 1;
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init_fence();
  }
  cg::this_cluster().sync();
  if (threadIdx.x == 0 && (rank == 0 || rank == last))
    take_turns<wait, arrive>(rank == 0, bar, address_in(bar, last - rank), cycles);
  cg::this_cluster().sync();
}

__global__ void store_trips(uint32_t *cycles) {
  __shared__ uint32_t word;
  uint32_t own = hopper::smem(&word), rank = cg::this_cluster().block_rank(),
           last = cg::this_cluster().num_blocks() - 1, there = address_in(own, last - rank);
  word = 0;
  cg::this_cluster().sync();
  if (threadIdx.x == 0 && (rank == 0 || rank == last)) {
    uint32_t start = clock32();
    for (uint32_t i = 1; i <= num_trips; i++) {
      if (rank == 0) asm volatile("st.volatile.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(i) : "memory");
      uint32_t seen;
      do asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(seen) : "r"(own) : "memory");
      while (seen != i);
      if (rank != 0) asm volatile("st.volatile.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(i) : "memory");
    }
    if (rank == 0) *cycles = clock32() - start;
  }
  cg::this_cluster().sync();
}

/* Words that hold their own address in the CTA that is read. */
__global__ void loads(uint32_t from_peer, uint32_t *cycles) {
  __shared__ uint32_t word;
  uint32_t last = cg::this_cluster().num_blocks() - 1, own = hopper::smem(&word);
  uint32_t there = address_in(own, cg::this_cluster().block_rank());
  if (threadIdx.x == 0) word = there;
  cg::this_cluster().sync();
  if (threadIdx.x == 0 && cg::this_cluster().block_rank() == 0) {
    uint32_t at = address_in(own, from_peer ? last : 0);
    uint32_t start = clock32();
#pragma unroll 8
    for (int i = 0; i < num_trips; i++) asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(at)::"memory");
    uint32_t stop = clock32();
    *cycles = stop - start + (at == 1);
  }
  cg::this_cluster().sync();
}

static uint32_t *cycles;

template <typename... Args>
static void measure(const char *variant, void (*kernel)(Args...), int threads, int ctas, Args... args) {
  std::vector<double> trips;
  for (int repeat = 0; repeat < 5; repeat++) {
    launch_clusters(kernel, ctas, threads, 0, ctas, args...);
    trips.push_back((double)to_host(cycles, 1)[0] / num_trips);
  }
  row("cluster_signal", variant, "ctas", ctas, "round_trip", median(trips), "cycles");
  finish();
}

int main() {
  cycles = device_alloc<uint32_t>(1);
  measure("local_poll", local_trips<Wait::poll>, 64, 1, cycles);
  measure("local_try", local_trips<Wait::try_wait>, 64, 1, cycles);
  for (int ctas : {2, 4, 8}) {
    measure("peer_poll", peer_trips<Wait::poll, Arrive::peer>, 32, ctas, cycles);
    measure("peer_try", peer_trips<Wait::try_wait, Arrive::peer>, 32, ctas, cycles);
    measure("peer_release_try", peer_trips<Wait::try_wait, Arrive::release>, 32, ctas, cycles);
    measure("peer_store", store_trips, 32, ctas, cycles);
    measure("own_load", loads, 32, ctas, 0u, cycles);
    measure("peer_load", loads, 32, ctas, 1u, cycles);
  }
  return 0;
}
