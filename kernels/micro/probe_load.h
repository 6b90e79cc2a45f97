/* A single load that is timed by itself, and what empties L2 of it. */
#pragma once
#include "bench.h"

/* Cycles from before the load's issue until its value has been stored, its address being known before. */
__device__ __forceinline__ uint16_t cycles_of_load(const char *p, volatile uint32_t &sink) {
  sink = (uint32_t)(size_t)p;
  uint32_t start = bench::clock32(), value;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  sink = value;
  return (uint16_t)(bench::clock32() - start);
}

__global__ void fill(uint4 *buffer, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    buffer[i] = make_uint4(1, 2, 3, 4);
}
