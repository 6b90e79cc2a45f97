/* How a quantised cache stores numbers, and how eight of them become f16 in registers.
 *
 * int8: two's complement. fp8: e4m3. int4: biased by 8, eight in a word, in the order in which the conversion finds
 * them: elements 0 and 1 are nibbles 0 and 4, then 1 and 5, 2 and 6, 3 and 7.
 *
 * Conversions place the bits of whole numbers under the exponent of 1024 and subtract what that adds (CUTLASS,
 * numeric_conversion.h, after FasterTransformer's interleaved_numeric_conversion.h); fp8 has an instruction. */
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

enum class KvFormat { int8, fp8, int4 };

__host__ __device__ constexpr int bits_of(KvFormat format) { return format == KvFormat::int4 ? 4 : 8; }

/* Eight numbers as they are stored. */
template <KvFormat format>
struct Eight {
  uint32_t word[bits_of(format) / 4];
};

struct Halves {
  __half2 pair[4];
};

__device__ __forceinline__ __half2 as_halves(uint32_t bits) { return *(__half2 *)&bits; }

template <KvFormat format>
__device__ __forceinline__ Halves to_halves(Eight<format> stored) {
  Halves out;
  if constexpr (format == KvFormat::int8) {
    const __half2 bias = as_halves(0x64806480); /* 1024 + 128 */
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t flipped = stored.word[i / 2] ^ 0x80808080u;
      out.pair[i] = __hsub2(as_halves(__byte_perm(flipped, 0x64646464u, i % 2 ? 0x4342 : 0x4140)), bias);
    }
  } else if constexpr (format == KvFormat::fp8) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t pair;
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((uint16_t)(stored.word[i / 2] >> i % 2 * 16)));
      out.pair[i] = as_halves(pair);
    }
  } else {
    const __half2 bias = as_halves(0x64086408); /* 1024 + 8 */
    /* Of nibbles that stand four bits higher: 16 (64 + 8) + 16 x becomes x. */
    const __half2 sixteenth = as_halves(0x2c002c00), high_bias = as_halves(0xd480d480); /* -(64 + 8) */
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t word = stored.word[0] >> i * 8;
      out.pair[i * 2] = __hsub2(as_halves((word & 0x000f000fu) | 0x64006400u), bias);
      out.pair[i * 2 + 1] = __hfma2(as_halves((word & 0x00f000f0u) | 0x64006400u), sixteenth, high_bias);
    }
  }
  return out;
}
