/* Instructions that streams are made of, each in place on a value in a register. */
#pragma once

__device__ __forceinline__ void fmul(float &x) { asm volatile("mul.rn.f32 %0, %0, 0f3F800001;" : "+f"(x)); }
__device__ __forceinline__ void fadd(float &x, float a) { asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(a)); }
__device__ __forceinline__ void ffma(float &x, float a, float b) {
  asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
}
__device__ __forceinline__ void fmnmx(float &x, float a) { asm volatile("max.f32 %0, %0, %1;" : "+f"(x) : "f"(a)); }
__device__ __forceinline__ void mufu(float &x) { asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); }
__device__ __forceinline__ void f2fp(float &x, float a) {
  asm volatile("{ .reg .b32 p; cvt.rn.f16x2.f32 p, %0, %1; mov.b32 %0, p; }" : "+f"(x) : "f"(a));
}
