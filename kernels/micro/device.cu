/* What the driver says of the card: sizes and limits. */
#include "bench.h"
#include "nvml.h"
using namespace bench;

static void attribute(const char *name, cudaDeviceAttr which, const char *unit) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess) row("device", name, "device", 0, "value", value, unit);
}

int main() {
  attribute("multiprocessors", cudaDevAttrMultiProcessorCount, "1");
  attribute("l2_bytes", cudaDevAttrL2CacheSize, "bytes");
  attribute("persisting_l2_bytes_max", cudaDevAttrMaxPersistingL2CacheSize, "bytes");
  attribute("shared_bytes_per_sm", cudaDevAttrMaxSharedMemoryPerMultiprocessor, "bytes");
  attribute("shared_bytes_per_block_optin", cudaDevAttrMaxSharedMemoryPerBlockOptin, "bytes");
  attribute("shared_bytes_reserved_per_block", cudaDevAttrReservedSharedMemoryPerBlock, "bytes");
  attribute("registers_per_sm", cudaDevAttrMaxRegistersPerMultiprocessor, "1");
  attribute("threads_per_sm", cudaDevAttrMaxThreadsPerMultiProcessor, "1");
  attribute("blocks_per_sm", cudaDevAttrMaxBlocksPerMultiprocessor, "1");
  attribute("sm_clock_max", cudaDevAttrClockRate, "kHz");
  attribute("memory_clock_max", cudaDevAttrMemoryClockRate, "kHz");
  attribute("memory_bus_width", cudaDevAttrGlobalMemoryBusWidth, "bit");
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  row("device", "memory_bytes", "device", 0, "value", (double)total_bytes, "bytes");
  Nvml nvml;
  row("device", "idle_sm_clock", "device", 0, "value", nvml.sm_mhz(), "MHz");
  row("device", "memory_clock", "device", 0, "value", nvml.memory_mhz(), "MHz");
  row("device", "idle_power", "device", 0, "value", nvml.watts(), "W");
  return 0;
}
