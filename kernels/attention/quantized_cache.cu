#include "quantized_cache.h"

#include <cuda_fp8.h>

namespace {

struct Layout {
  int64_t rows_per_head, row_groups; /* tokens, and groups of one of them */
  int group_size;
};

/* The bits of one number, and its value without the scale. */
template <KvFormat format>
__device__ uint8_t encode(float x, float *value) {
  if constexpr (format == KvFormat::fp8) {
    __nv_fp8_storage_t bits = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
    *value = __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3)));
    return bits;
  } else {
    const float most = format == KvFormat::int8 ? 127 : 7;
    *value = fminf(fmaxf(rintf(x), -most), most);
    return (uint8_t)(int)(*value + (format == KvFormat::int4 ? 8.0f : 0.0f));
  }
}

/* Nibble of element i of eight: pairs stand 16 bits apart. */
__device__ int nibble_of(int i) { return i / 2 + i % 2 * 4; }

/* A thread a group: its largest magnitude becomes the largest number of the format. */
template <KvFormat format>
__global__ void quantize(uint8_t *to, __half *scales, __half *x, int64_t num_groups, Layout l) {
  const float most = format == KvFormat::fp8 ? 448 : format == KvFormat::int8 ? 127 : 7;
  int64_t index = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (index >= num_groups) return;
  __half *group = x + index * l.group_size;
  uint8_t *bytes = to + index * l.group_size * bits_of(format) / 8;
  float top = 0;
  for (int i = 0; i < l.group_size; i++) top = fmaxf(top, fabsf(__half2float(group[i])));
  __half scale = __float2half(top > 0 ? top / most : 1.0f);
  int64_t row = index / l.row_groups, head = row / l.rows_per_head;
  scales[(head * l.row_groups + index % l.row_groups) * l.rows_per_head + row % l.rows_per_head] = scale;
  for (int i = 0; i < l.group_size; i += 8) {
    uint64_t word = 0;
    for (int e = 0; e < 8; e++) {
      float value;
      uint64_t bits = encode<format>(__half2float(group[i + e]) / __half2float(scale), &value);
      word |= bits << (format == KvFormat::int4 ? nibble_of(e) * 4 : e * 8);
      group[i + e] = __hmul(__float2half(value), scale);
    }
    for (int b = 0; b < bits_of(format); b++) bytes[i * bits_of(format) / 8 + b] = (uint8_t)(word >> b * 8);
  }
}

template <KvFormat format>
void quantize_all(Pool &bytes, Pool &scales, __half *x, int64_t count, Layout l) {
  int64_t num_groups = count / l.group_size;
  uint8_t *to = (uint8_t *)bytes.at_least((size_t)(count * bits_of(format) / 8));
  __half *scales_to = (__half *)scales.at_least((size_t)num_groups * 2);
  quantize<format><<<(unsigned)((num_groups + 127) / 128), 128>>>(to, scales_to, x, num_groups, l);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

std::string kv_format_name(const Case &c) {
  auto found = c.find("kv_dtype");
  return found == c.end() || found->second == "fp16" ? "" : found->second;
}

void QuantizedCache::fill(const Case &c, const Problem &p, __half *k, __half *v) {
  std::string format = kv_format_name(c);
  int group_size = number(c, "kv_group_size");
  Layout l = {p.seqlen_kv, p.head_dim / group_size, group_size};
  int64_t count = (int64_t)p.batch * p.kv_heads * p.seqlen_kv * p.head_dim;
  auto quantize_one = format == "int8"  ? quantize_all<KvFormat::int8>
                      : format == "fp8" ? quantize_all<KvFormat::fp8>
                                        : quantize_all<KvFormat::int4>;
  quantize_one(k_pool, k_scale_pool, k, count, l);
  quantize_one(v_pool, v_scale_pool, v, count, l);
  stored = {(const uint8_t *)k_pool.data, (const uint8_t *)v_pool.data, (const __half *)k_scale_pool.data,
            (const __half *)v_scale_pool.data};
}
