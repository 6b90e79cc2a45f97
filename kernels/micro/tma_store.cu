/* How TMA stores leave a SM: one thread stores boxes of 64 rows of 64 or 128 bytes from shared memory, one behind the
 * other, `in_flight` of them not read yet (cp.async.bulk.wait_group.read), on the SMs below `writers`; each SM has its
 * own rows, which it stores to again and again. `rate`: bytes a SM cycle; with one in flight `store`: cycles of one. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int box_rows = 64, stores = 512, rows_of_sm = 1024;

template <int box_columns, int in_flight>
__global__ void run(const __grid_constant__ CUtensorMap map, int num_writers, uint64_t *span) {
  extern __shared__ uint8_t raw[];
  if ((int)sm_id() >= num_writers || threadIdx.x > 0) return;
  constexpr uint32_t bytes = box_rows * box_columns * 2;
  uint32_t from = (hopper::smem(raw) + 1023) / 1024 * 1024;
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < stores; i++) {
    hopper::tensor_store_3d(&map, 0, (int)sm_id() * rows_of_sm + i * box_rows % rows_of_sm, 0,
                            from + (uint32_t)(i % in_flight) * bytes);
    hopper::tensor_store_commit();
    hopper::tensor_store_wait<in_flight - 1>();
  }
  hopper::tensor_store_wait<0>();
  span[sm_id()] = cycles64() - start;
}

static uint16_t *c;
static uint64_t *span;

template <int box_columns, int in_flight>
static void measure() {
  constexpr int shared_bytes = 200 * 1024; /* one CTA a SM */
  CUtensorMap map = hopper::tensor_map(c, box_columns, (uint64_t)num_sms() * rows_of_sm, 1, box_rows, box_columns);
  allow_shared(run<box_columns, in_flight>, shared_bytes);
  for (int writers : {1, 8, 66, 132}) {
    for (int warm = 0; warm < 2; warm++)
      run<box_columns, in_flight><<<num_sms(), 32, shared_bytes>>>(map, writers, span);
    finish();
    double cycles = (double)median(to_host(span, (size_t)writers)), bytes = box_rows * box_columns * 2.0;
    char variant[48];
    snprintf(variant, sizeof variant, "rows_of_%d_in_flight_%d", box_columns * 2, in_flight);
    row("tma_store", variant, "writers", writers, "rate", bytes * stores / cycles, "bytes/cycle/sm");
    if (in_flight == 1) row("tma_store", variant, "writers", writers, "store", cycles / stores, "cycles");
  }
}

int main() {
  c = device_alloc<uint16_t>((size_t)num_sms() * rows_of_sm * 64);
  span = device_alloc<uint64_t>((size_t)num_sms());
  measure<32, 1>(), measure<32, 2>(), measure<32, 4>(), measure<32, 8>();
  measure<64, 1>(), measure<64, 2>(), measure<64, 4>(), measure<64, 8>();
  return 0;
}
