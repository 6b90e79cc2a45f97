// glu computes activation(x w_gate) * (x w_up), in one kernel and in three.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "pipeline_case.h"

enum { X, W_GATE, W_UP, OUT };

// A sum of products in float64, and how far a sum of them in fp32 may be off: k roundings of 2^-24 of all magnitudes.
typedef struct sum {
  double value, error;
} sum;

static sum product_at(const pipeline_case *c, int weight, int64_t row, int64_t column) {
  const int64_t *v = c->spec.value, n = v[FTL_PARAM_n], k = v[FTL_PARAM_k];
  const float *x = c->tensors[X], *w = c->tensors[weight];
  sum s = {0};
  for (int64_t i = 0; i < k; i++) {
    double term = (double)x[row * k + i] * (double)(v[FTL_PARAM_transpose_b] ? w[column * k + i] : w[i * n + column]);
    s.value += term;
    s.error += (double)k * 0x1p-24 * fabs(term);
  }
  return s;
}

static double activation(int64_t kind, double x) {
  if (kind == FTL_ACTIVATION_RELU) return x > 0 ? x : 0;
  if (kind == FTL_ACTIVATION_SIGMOID) return 1 / (1 + exp(-x));
  if (kind == FTL_ACTIVATION_SILU) return x / (1 + exp(-x));
  return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

// Every activation here changes at most 1.13 times as fast as its argument. Unfused, both products are rounded to 16
// bits (u) before; the result is rounded to 16 bits. The exponential's argument, up to 2^8 where it matters, carries
// roundings of 2^-24: 2^-14 relative is ample for what fp32 does to the activation, and absolute in its argument's
// unit.
static void check_element(const pipeline_case *c, int64_t row, int64_t column) {
  const int64_t *v = c->spec.value;
  double u = v[FTL_PARAM_dtype] == FTL_FP16 ? 0x1p-11 : 0x1p-8, between = v[FTL_PARAM_fused] ? 0 : u;
  sum gate = product_at(c, W_GATE, row, column), up = product_at(c, W_UP, row, column);
  double gate_error = gate.error + between * fabs(gate.value), up_error = up.error + between * fabs(up.value);
  double gated = activation(v[FTL_PARAM_activation], gate.value), expected = gated * up.value;
  double gated_error = 1.13 * gate_error + 0x1p-14 * fabs(gated) + 0x1p-24;
  double allowed = gated_error * (fabs(up.value) + up_error) + fabs(gated) * up_error + u * fabs(expected) + 0x1p-23;
  double found = (double)c->tensors[OUT][row * v[FTL_PARAM_n] + column];
  cr_assert(fabs(found - expected) <= allowed, "%s: out[%lld][%lld] is %.9g, not %.9g within %.3g", c->text,
            (long long)row, (long long)column, found, expected, allowed);
}

static void prove(const char *params) {
  pipeline_case c;
  pipeline_case_run(&c, "glu", params);
  for (int64_t row = 0; row < c.spec.value[FTL_PARAM_m]; row++)
    for (int64_t column = 0; column < c.spec.value[FTL_PARAM_n]; column++) check_element(&c, row, column);
  pipeline_case_fini(&c);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static const char *const activations[] = {"silu", "gelu", "relu", "sigmoid"};

Test(numeric_glu, one_kernel_and_three_gate_with_each_activation) {
  char params[256];
  for (size_t i = 0; i < COUNT(activations); i++)
    for (int fused = 0; fused < 2; fused++) {
      snprintf(params, sizeof params,
               "m=40 n=272 k=24 block_m=32 block_n=32 block_k=16 num_warps=2 fused=%d activation=%s", fused,
               activations[i]);
      prove(params);
    }
}

Test(numeric_glu, sizes_that_no_tile_divides_give_the_unit_under_every_kernel) {
  static const char *const sizes[] = {"m=32 n=32 k=32", "m=37 n=48 k=104", "m=136 n=72 k=8 dtype=bf16",
                                      "m=8 n=136 k=88"};
  static const char *const kernels[] = {
      "mma=mma num_warps=2 num_stages=1", "mma=mma num_warps=1 num_stages=3 tile_order=n_first",
      "mma=mma num_warps=2 num_stages=3 code=buffered", "mma=wgmma num_warps=4 block_m=64 num_stages=2",
      "mma=wgmma copy=tma num_warps=4 block_m=64 persistent=1"};
  char params[256];
  for (size_t i = 0; i < COUNT(kernels); i++)
    for (size_t s = 0; s < COUNT(sizes); s++)
      for (int choice = 0; choice < 4; choice++) {
        snprintf(params, sizeof params, "block_m=32 block_n=32 block_k=32 transpose_b=%d fused=%d %s %s", choice & 1,
                 choice >> 1, sizes[s], kernels[i]);
        prove(params);
      }
}
