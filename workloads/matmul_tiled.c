// Matrix product C = A B by tiles (block_product.h). A is [m][k], or [k][m] with transpose_a; B
// is [k][n], or [n][k] with transpose_b; C is [m][n], or [n][m] with transpose_c. What is stored [rows][columns] has a
// leading dimension (ld) from a row to the next, and a stride from a product of the batch to the next, as in BLAS
// (cublasGemmStridedBatchedEx, where column-major is the transpose of what is said here).
//
// With transpose_c the kernel computes what is stored, C^T = B^T A^T: its A is B and its B is A, each the other way
// round.
//
// Types: of two bytes C has that of A and B; C is fp32 of tf32, int32 of integers, and of fp8 bf16, or fp16 where the
// sums are. A and B of int4 are pairs in a byte along k.
//
// splits > 1: CTAs take a part of K each and leave fp32 sums in memory, which a second launch adds up.
#include "base/integer.h"
#include "workloads/block_product.h"
#include "workloads/staged_store.h"

enum { ADDING_WARPS = 4, ADDING_VECTOR = 4 };

typedef struct matmul {
  ftl_block_product product;
  int32_t c, sums;  // tensors; sums: of each split, [batch][split][rows of C as stored][columns]
} matmul;

static void swap(int64_t *a, int64_t *b) {
  int64_t held = *a;
  *a = *b;
  *b = held;
}

// The product whose result lies in memory row by row.
static ftl_block_product product_of(const ftl_spec *spec) {
  ftl_spec stored = *spec;
  int64_t *v = stored.value;
  if (v[FTL_PARAM_transpose_c]) {
    swap(&v[FTL_PARAM_m], &v[FTL_PARAM_n]);
    swap(&v[FTL_PARAM_transpose_a], &v[FTL_PARAM_transpose_b]);
    v[FTL_PARAM_transpose_a] = !v[FTL_PARAM_transpose_a];
    v[FTL_PARAM_transpose_b] = !v[FTL_PARAM_transpose_b];
  }
  return ftl_block_product_of(&stored);
}

// ---- matrices as stored ----

typedef struct matrix {
  ftl_param rows, columns;  // which give its sizes
  ftl_param ld, stride;
} matrix;
enum { A, B, C, NUM_MATRICES };

static matrix matrix_of(const ftl_spec *spec, int which) {
  static const struct {
    ftl_param rows, columns, transpose, ld, stride;
  } matrices[NUM_MATRICES] = {
      {FTL_PARAM_m, FTL_PARAM_k, FTL_PARAM_transpose_a, FTL_PARAM_lda, FTL_PARAM_stride_a},
      {FTL_PARAM_k, FTL_PARAM_n, FTL_PARAM_transpose_b, FTL_PARAM_ldb, FTL_PARAM_stride_b},
      {FTL_PARAM_m, FTL_PARAM_n, FTL_PARAM_transpose_c, FTL_PARAM_ldc, FTL_PARAM_stride_c},
  };
  bool transposed = spec->value[matrices[which].transpose] != 0;
  return (matrix){.rows = transposed ? matrices[which].columns : matrices[which].rows,
                  .columns = transposed ? matrices[which].rows : matrices[which].columns,
                  .ld = matrices[which].ld,
                  .stride = matrices[which].stride};
}

static ftl_tensor_shape shape_of(const ftl_spec *spec, int which) {
  const int64_t *v = spec->value;
  matrix x = matrix_of(spec, which);
  const int numbers = which == C ? 1 : ftl_dtype_numbers(ftl_spec_dtype(spec));  // of one element
  return (ftl_tensor_shape){.num_batches = v[FTL_PARAM_batch],
                            .num_heads = 1,
                            .num_rows = v[x.rows],
                            .num_columns = ftl_divide_up(v[x.columns], numbers),
                            .batch_stride = v[x.stride] / numbers,
                            .head_stride = v[x.rows] * v[x.ld] / numbers,
                            .row_stride = v[x.ld] / numbers};
}

static ftl_status check_matrix(const ftl_spec *spec, const ftl_block_product *p, int which, ftl_error *error) {
  const int64_t *v = spec->value;
  matrix x = matrix_of(spec, which);
  const ftl_param vectors[] = {x.columns, x.ld, x.stride};
  const char *ld = ftl_param_get(x.ld)->name, *stride = ftl_param_get(x.stride)->name;
  if (v[x.ld] < v[x.columns])
    return ftl_error_set(error, FTL_BAD_INPUT, "%s=%lld: a row has %s=%lld elements", ld, (long long)v[x.ld],
                         ftl_param_get(x.columns)->name, (long long)v[x.columns]);
  if (which == C && v[FTL_PARAM_batch] > 1 && v[x.stride] < v[x.rows] * v[x.ld])
    return ftl_error_set(error, FTL_BAD_INPUT, "%s=%lld: products would overwrite each other, at least %lld", stride,
                         (long long)v[x.stride], (long long)(v[x.rows] * v[x.ld]));
  ftl_status status = FTL_OK;
  for (size_t i = 0; status == FTL_OK && i < sizeof vectors / sizeof *vectors; i++)
    status = ftl_block_product_check_vectors(which == C ? p->c_dtype : p->dtype, vectors[i], v[vectors[i]], error);
  return status;
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  ftl_block_product p = product_of(spec);
  ftl_status status = FTL_OK;
  for (int which = 0; status == FTL_OK && which < NUM_MATRICES; which++) status = check_matrix(spec, &p, which, error);
  return status == FTL_OK ? ftl_block_product_check(spec, &p, error) : status;
}

static void declare_tensors(const ftl_spec *spec, matmul *f) {
  ftl_block_product *p = &f->product;
  bool transposed = spec->value[FTL_PARAM_transpose_c] != 0;
  int32_t a = ftl_builder_tensor(p->b, "a", p->dtype, FTL_TENSOR_INPUT, shape_of(spec, A));
  int32_t b = ftl_builder_tensor(p->b, "b", p->dtype, FTL_TENSOR_INPUT, shape_of(spec, B));
  p->a = transposed ? b : a;
  p->of_b[0] = transposed ? a : b;
  f->c = ftl_builder_tensor(p->b, "c", p->c_dtype, FTL_TENSOR_OUTPUT, shape_of(spec, C));
  if (p->num_splits > 1)
    f->sums = ftl_builder_tensor(p->b, "sums", FTL_FP32, FTL_TENSOR_TEMP,
                                 ftl_contiguous(p->batch, p->num_splits, p->m, p->n));
}

// ---- the product ----
static void store_sum(const ftl_block_product *p, const int32_t *sums, const void *context) {
  const matmul *f = context;
  bool is_part = p->num_splits > 1;
  ftl_tile_ref to = ftl_block_product_tile(p, is_part ? f->sums : f->c, is_part ? p->split : ftl_const(p->b, 0), p->row,
                                           p->column, p->block_m, p->block_n, p->n);
  if (p->has_producer)
    ftl_store(p->b, to, sums[0], p->ring_c);
  else
    ftl_staged_store(p->b, to, sums[0], p->ring_c);
}

static void build_product(matmul *f) { ftl_block_product_build(&f->product, store_sum, f); }

// ---- the sum of the splits: a warp a row of a tile of 128 columns ----
static void build_addition(matmul *f) {
  ftl_block_product *p = &f->product;
  ftl_builder *b = p->b;
  const ftl_value_layout layout = {FTL_WARP_LANES, ADDING_VECTOR};
  int32_t columns = layout.threads_per_row * layout.vector_columns;
  int64_t tiles_m = ftl_divide_up(p->m, ADDING_WARPS), tiles_n = ftl_divide_up(p->n, columns);
  ftl_builder_role(b, "main", ADDING_WARPS, 0);
  int32_t part = ftl_builder_tile_by_rows(b, "part", FTL_FP32, ADDING_WARPS, columns, layout);
  int32_t sum = ftl_builder_tile_by_rows(b, "sum", FTL_FP32, ADDING_WARPS, columns, layout);
  ftl_expr tiles = ftl_const(b, tiles_m * tiles_n), tile = ftl_mod(b, ftl_cta(b), tiles);
  p->batch_idx = ftl_div(b, ftl_cta(b), tiles);
  p->column = ftl_mul(b, ftl_mod(b, tile, ftl_const(b, tiles_n)), ftl_const(b, columns));
  p->row = ftl_mul(b, ftl_div(b, tile, ftl_const(b, tiles_n)), ftl_const(b, ADDING_WARPS));
  ftl_tile_ref of_sums =
      ftl_block_product_tile(p, f->sums, ftl_const(b, 0), p->row, p->column, ADDING_WARPS, columns, p->n);
  ftl_tile_ref to = of_sums;
  ftl_fill(b, sum, 0);
  of_sums.head = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_const(b, p->num_splits)));
  ftl_load_tile(b, part, of_sums);
  ftl_elem(b, FTL_ELEM_ADD, sum, ftl_value_operand(sum), ftl_value_operand(part), ftl_immediate(0));
  ftl_end_loop(b);
  to.tensor = f->c;
  ftl_store(b, to, sum, -1);
  ftl_builder_grid(b, p->batch * tiles_m * tiles_n, false, FTL_TILES_BY_STRIDE);
}

// ---- the workload ----
static ftl_status build_launch(const ftl_spec *spec, const char *name, void (*build)(matmul *), ftl_tile_program **out,
                               ftl_error *error) {
  matmul f = {.product = product_of(spec)};
  ftl_builder *b;
  ftl_status status = ftl_builder_create(&b, name, error);
  if (status != FTL_OK) return status;
  f.product.b = b;
  declare_tensors(spec, &f);
  build(&f);
  status = ftl_builder_finish(b, out, error);
  ftl_builder_destroy(b);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  if (status == FTL_OK) status = build_launch(spec, "matmul_tiled", build_product, &launches[0], error);
  if (status != FTL_OK) return status;
  *num_launches = 1;
  if (product_of(spec).num_splits == 1) return FTL_OK;
  status = build_launch(spec, "matmul_add_splits", build_addition, &launches[1], error);
  if (status == FTL_OK) *num_launches = 2;
  return status;
}

static void set_defaults(ftl_spec *spec) {
  ftl_dtype dtype = ftl_spec_dtype(spec);
  if (spec->value[FTL_PARAM_splits] == 0) spec->value[FTL_PARAM_splits] = 1;
  if (ftl_dtype_is_integer(dtype)) ftl_spec_set_default(spec, FTL_PARAM_acc_dtype, FTL_SPEC_ACC_INT32);
  if (ftl_dtype_bytes(dtype) != 2) ftl_spec_set_default(spec, FTL_PARAM_transpose_b, true);
  for (int which = 0; which < NUM_MATRICES; which++) {
    matrix x = matrix_of(spec, which);
    ftl_spec_set_default(spec, x.ld, spec->value[x.columns]);
    ftl_spec_set_default(spec, x.stride, spec->value[x.rows] * spec->value[x.ld]);
  }
}
const ftl_workload ftl_workload_matmul_tiled = {
    .name = "matmul_tiled",
    .doc = "matrix product C = A B by tiles, K in steps through shared memory, optionally split over CTAs",
    .accepts = FTL_TAKES(batch) | FTL_TAKES(m) | FTL_TAKES(n) | FTL_TAKES(k) | FTL_TAKES(transpose_a) |
               FTL_TAKES(transpose_b) | FTL_TAKES(transpose_c) | FTL_TAKES_STRIDES | FTL_TAKES(dtype) |
               FTL_TAKES(acc_dtype) | FTL_TAKES(warps_n) | FTL_TAKES(block_m) | FTL_TAKES(block_n) |
               FTL_TAKES(block_k) | FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | FTL_TAKES(code) |
               FTL_TAKES(persistent) | FTL_TAKES_CLUSTERS | FTL_TAKES(tile_order) | FTL_TAKES(tile_strip) |
               FTL_TAKES(groups_n) | FTL_TAKES(refill) | FTL_TAKES(store) | FTL_TAKES(copy) | FTL_TAKES(mma) |
               FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(splits) | FTL_TAKES(conditions) | FTL_TAKES(cache) |
               FTL_TAKES(clock_mhz) | FTL_TAKES(detail),
    .dtypes = 1 << FTL_SPEC_FP16 | 1 << FTL_SPEC_BF16 | 1 << FTL_SPEC_TF32 | 1 << FTL_SPEC_FP8_E4M3 |
              1 << FTL_SPEC_FP8_E5M2 | 1 << FTL_SPEC_INT8 | 1 << FTL_SPEC_INT4,
    .set_defaults = set_defaults,
    .needs_wgmma = ftl_block_product_needs_wgmma,
    .resolve = ftl_block_product_resolve,
    .build = build,
};
