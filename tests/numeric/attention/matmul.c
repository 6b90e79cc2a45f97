// matmul_tiled computes A B, whatever is transposed, split or ragged.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "pipeline_case.h"
#include "../../thinned.h"

enum { A, B, C };

static double element(const pipeline_case *c, int tensor, int64_t batch, int64_t row, int64_t column) {
  static const struct {
    ftl_param transpose, ld, stride;
  } of[] = {{FTL_PARAM_transpose_a, FTL_PARAM_lda, FTL_PARAM_stride_a},
            {FTL_PARAM_transpose_b, FTL_PARAM_ldb, FTL_PARAM_stride_b},
            {FTL_PARAM_transpose_c, FTL_PARAM_ldc, FTL_PARAM_stride_c}};
  const int64_t *v = c->spec.value;
  int64_t stored_row = v[of[tensor].transpose] ? column : row, stored_column = v[of[tensor].transpose] ? row : column;
  int64_t at = batch * v[of[tensor].stride] + stored_row * v[of[tensor].ld] + stored_column;
  if (ftl_spec_dtype(&c->spec) != FTL_INT4X2 || tensor == C) return (double)c->tensors[tensor][at];
  float pair = c->tensors[tensor][at / 2];
  return at % 2 == 0 ? ftl_int4x2_low(pair) : ftl_int4x2_high(pair);
}

// Half the distance of neighbouring numbers of C's type, relative; and how far sums may be from the exact ones: fp32
// sums of k products in any order and in parts, k * 2^-24 of the sum of magnitudes; fp16 sums are rounded after every
// 16 of k, each time by 2^-11 of what they are then; integers are exact.
typedef struct tolerance {
  double result, sum;
} tolerance;

static tolerance tolerance_of(const ftl_spec *spec) {
  double k = (double)spec->value[FTL_PARAM_k], sum = k * 0x1p-24;
  if (ftl_spec_acc_dtype(spec) == FTL_INT32) return (tolerance){0, 0};
  if (ftl_spec_acc_dtype(spec) == FTL_FP16) return (tolerance){0x1p-11, sum + (k / 16 + 1) * 0x1p-11};
  switch (ftl_spec_dtype(spec)) {
    case FTL_FP16:
      return (tolerance){0x1p-11, sum};
    case FTL_TF32:
      return (tolerance){0x1p-24, sum};
    default:
      return (tolerance){0x1p-8, sum};
  }
}

static void check_element(const pipeline_case *c, int64_t batch, int64_t row, int64_t column) {
  const int64_t *v = c->spec.value, k = v[FTL_PARAM_k];
  double expected = 0, sum_of_magnitudes = 0;
  for (int64_t i = 0; i < k; i++) {
    double term = element(c, A, batch, row, i) * element(c, B, batch, i, column);
    expected += term;
    sum_of_magnitudes += fabs(term);
  }
  double found = element(c, C, batch, row, column);
  tolerance t = tolerance_of(&c->spec);
  cr_assert(fabs(found - expected) <= t.sum * sum_of_magnitudes + t.result * fabs(expected) + 0x1p-25,
            "%s: C[%lld][%lld][%lld] is %.9g, not %.9g", c->text, (long long)batch, (long long)row, (long long)column,
            found, expected);
}

static void prove(const char *params) {
  static int count = 0;
  pipeline_case c;
  pipeline_case_make(&c, "matmul_tiled", params);
  if (!thinned_runs(&count)) {
    pipeline_case_fini(&c);
    return;
  }
  pipeline_case_execute(&c);
  const int64_t *v = c.spec.value;
  for (int64_t batch = 0; batch < v[FTL_PARAM_batch]; batch++)
    for (int64_t row = 0; row < v[FTL_PARAM_m]; row++)
      for (int64_t column = 0; column < v[FTL_PARAM_n]; column++) check_element(&c, batch, row, column);
  pipeline_case_fini(&c);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static const char *const kernels[] = {"mma=mma num_warps=2 num_stages=1",
                                      "mma=mma num_warps=1 num_stages=3 tile_order=n_first",
                                      "mma=wgmma num_warps=4 block_m=64 num_stages=2",
                                      "mma=mma num_warps=2 num_stages=2 refill=late",
                                      "mma=mma num_warps=2 num_stages=2 code=buffered",
                                      "mma=mma num_warps=1 num_stages=4 code=buffered",
                                      "mma=wgmma copy=cp_async num_warps=4 block_m=64 num_stages=3 refill=late",
                                      "mma=wgmma copy=cp_async num_warps=4 block_m=64 num_stages=3 refill=early",
                                      "mma=wgmma copy=tma num_warps=4 block_m=64 persistent=1"};

Test(numeric_matmul, sizes_that_no_tile_divides_give_the_product) {
  static const char *const sizes[] = {"m=32 n=32 k=32", "m=40 n=48 k=200", "m=136 n=72 k=8", "m=8 n=136 k=88"};
  char params[256];
  for (size_t i = 0; i < COUNT(kernels); i++)
    for (size_t s = 0; s < COUNT(sizes); s++)
      for (int transposed = 0; transposed < 4; transposed++) {
        snprintf(params, sizeof params, "batch=2 block_m=32 block_n=32 block_k=32 transpose_a=%d transpose_b=%d %s %s",
                 transposed & 1, transposed >> 1, sizes[s], kernels[i]);
        prove(params);
      }
}

Test(numeric_matmul, every_type_of_operands_and_sums_gives_the_product) {
  static const char *const types[] = {"dtype=tf32",
                                      "dtype=tf32 splits=3",
                                      "dtype=fp8_e4m3",
                                      "dtype=fp8_e5m2",
                                      "dtype=fp8_e4m3 acc_dtype=fp16",
                                      "dtype=int8",
                                      "dtype=int4",
                                      "dtype=fp16 acc_dtype=fp16 transpose_b=1",
                                      "dtype=int8 transpose_c=1 lda=224 stride_b=0"};
  char params[256];
  for (size_t i = 0; i < COUNT(kernels); i++)
    for (size_t t = 0; t < COUNT(types); t++) {
      snprintf(params, sizeof params, "m=48 n=80 k=192 batch=2 block_m=32 block_n=32 block_k=64 %s %s", types[t],
               kernels[i]);
      prove(params);
    }
}

// Tiles beyond the edges of C make clusters whole.
Test(numeric_matmul, clusters_that_share_tiles_give_the_product) {
  static const char *const clusters[] = {"2x1",
                                         "1x2",
                                         "2x2",
                                         "4x1",
                                         "2x4 tile_order=n_first",
                                         "4x2 splits=2",
                                         "1x2 tile_order=n_first tile_strip=4",
                                         "2x1 tile_strip=2"};
  static const char *const sizes[] = {"m=136 n=72 k=88", "m=320 n=200 k=40"};
  char params[256];
  for (size_t c = 0; c < COUNT(clusters); c++)
    for (size_t s = 0; s < COUNT(sizes); s++)
      for (int transposed = 0; transposed < 4; transposed++) {
        snprintf(params, sizeof params,
                 "batch=2 block_m=64 block_n=32 block_k=32 mma=wgmma copy=tma num_warps=4 transpose_a=%d "
                 "transpose_b=%d %s persistent=%d cluster=%s",
                 transposed & 1, transposed >> 1, sizes[s], transposed == 1, clusters[c]);
        prove(params);
      }
}

// Each of two warpgroups has all rows of a tile and half of its columns.
Test(numeric_matmul, warpgroups_side_by_side_give_the_product) {
  static const char *const more[] = {"", "persistent=1", "splits=3", "persistent=1 cluster=2x2",
                                     "persistent=1 store=staged"};
  static const char *const sizes[] = {"m=72 n=136 k=96", "m=200 n=32 k=224"};
  char params[256];
  for (size_t i = 0; i < COUNT(more); i++)
    for (size_t s = 0; s < COUNT(sizes); s++)
      for (int transposed = 0; transposed < 4; transposed++) {
        snprintf(params, sizeof params,
                 "batch=2 block_m=64 block_n=64 block_k=32 mma=wgmma copy=tma num_warps=8 groups_n=2 transpose_a=%d "
                 "transpose_b=%d %s %s",
                 transposed & 1, transposed >> 1, sizes[s], more[i]);
        prove(params);
      }
}

// Each of two or four warps (warpgroups) has the rows of its row of warps and its part of the columns.
Test(numeric_matmul, warps_side_by_side_give_the_product) {
  static const char *const warps[] = {"mma=mma num_warps=4 warps_n=2 block_m=32 block_n=64 num_stages=3",
                                      "mma=mma num_warps=4 warps_n=4 block_m=32 block_n=64 num_stages=1",
                                      "mma=mma num_warps=8 warps_n=4 block_m=64 block_n=64 code=buffered",
                                      "mma=wgmma copy=cp_async num_warps=8 warps_n=2 block_m=64 block_n=64"};
  static const char *const sizes[] = {"m=72 n=136 k=96", "m=200 n=32 k=224 splits=2"};
  char params[256];
  for (size_t i = 0; i < COUNT(warps); i++)
    for (size_t s = 0; s < COUNT(sizes); s++)
      for (int transposed = 0; transposed < 4; transposed++) {
        snprintf(params, sizeof params, "batch=2 block_k=32 transpose_a=%d transpose_b=%d %s %s", transposed & 1,
                 transposed >> 1, sizes[s], warps[i]);
        prove(params);
      }
}

// Two pieces of 32 columns, or three of 16; of the matrix with 40 columns the last is cut.
Test(numeric_matmul, pieces_of_c_give_the_product) {
  static const char *const tiles[] = {"block_n=64", "block_n=48", "block_n=64 dtype=fp8_e4m3 transpose_b=1"};
  static const char *const sizes[] = {"m=136 n=72 k=96", "m=72 n=40 k=224"};
  char params[256];
  for (size_t t = 0; t < COUNT(tiles); t++)
    for (size_t s = 0; s < COUNT(sizes); s++) {
      snprintf(params, sizeof params,
               "batch=2 block_m=64 block_k=32 mma=wgmma copy=tma num_warps=4 persistent=1 store=staged %s %s", tiles[t],
               sizes[s]);
      prove(params);
    }
}

// Whole, from warps that have rows or their part of the columns too.
Test(numeric_matmul, a_tile_of_c_through_shared_memory_gives_the_product) {
  static const char *const tiles[] = {"block_n=64 warps_n=2", "block_n=48 warps_n=1 num_stages=1",
                                      "block_n=64 warps_n=1 dtype=fp8_e4m3 transpose_b=1"};
  static const char *const sizes[] = {"m=136 n=72 k=96", "m=72 n=40 k=224"};
  char params[256];
  for (size_t t = 0; t < COUNT(tiles); t++)
    for (size_t s = 0; s < COUNT(sizes); s++) {
      snprintf(params, sizeof params, "batch=2 block_m=64 block_k=32 mma=mma num_warps=4 store=staged %s %s", tiles[t],
               sizes[s]);
      prove(params);
    }
}

Test(numeric_matmul, splits_of_k_add_up_to_the_product) {
  static const int splits[] = {1, 2, 3, 5, 100};
  char params[256];
  for (size_t i = 0; i < COUNT(kernels); i++)
    for (size_t s = 0; s < COUNT(splits); s++) {
      snprintf(params, sizeof params,
               "m=40 n=136 k=200 batch=2 dtype=bf16 block_m=32 block_n=48 block_k=16 splits=%d %s", splits[s],
               kernels[i]);
      prove(params);
    }
}

Test(numeric_matmul, row_and_column_major_results_take_either_order_of_their_factors) {
  char params[256];
  for (size_t i = 0; i < COUNT(kernels); i++)
    for (int transposed = 0; transposed < 8; transposed++) {
      snprintf(params, sizeof params,
               "m=40 n=72 k=104 batch=2 block_m=32 block_n=32 block_k=32 splits=%d transpose_a=%d transpose_b=%d "
               "transpose_c=%d %s",
               1 + transposed % 2, transposed & 1, transposed >> 1 & 1, transposed >> 2, kernels[i]);
      prove(params);
    }
}

// What lies between the rows and products of C keeps the NaN that it began with.
static void check_gaps(const pipeline_case *c, int64_t rows, int64_t columns) {
  const int64_t *v = c->spec.value;
  int64_t end = (v[FTL_PARAM_batch] - 1) * v[FTL_PARAM_stride_c] + (rows - 1) * v[FTL_PARAM_ldc] + columns;
  for (int64_t at = 0; at < end; at++) {
    int64_t row = at % v[FTL_PARAM_stride_c] / v[FTL_PARAM_ldc], column = at % v[FTL_PARAM_stride_c] % v[FTL_PARAM_ldc];
    bool is_element = row < rows && column < columns;
    cr_assert_eq(isnan(c->tensors[C][at]), !is_element, "%s: element %lld of C", c->text, (long long)at);
  }
}

Test(numeric_matmul, rows_and_products_lie_at_any_stride_and_factors_may_be_shared) {
  char params[256];
  for (size_t i = 0; i < COUNT(kernels); i++)
    for (int transposed = 0; transposed < 2; transposed++) {
      snprintf(params, sizeof params,
               "m=40 n=72 k=56 batch=3 block_m=32 block_n=32 block_k=32 lda=64 ldb=80 ldc=88 stride_a=4000 stride_b=0 "
               "stride_c=8000 splits=%d transpose_c=%d %s",
               1 + transposed, transposed, kernels[i]);
      prove(params);
      pipeline_case c;
      pipeline_case_run(&c, "matmul_tiled", params);
      check_gaps(&c, transposed ? 72 : 40, transposed ? 40 : 72);
      pipeline_case_fini(&c);
    }
}
