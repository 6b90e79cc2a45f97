// Matrix product C = A B by tiles (block_product.h), 16-bit, sums in fp32. A is [m][k], or [k][m] with transpose_a; B
// is [k][n], or [n][k] with transpose_b; C is [m][n].
//
// splits > 1: CTAs take a part of K each and leave fp32 sums in memory, which a second launch adds up.
#include "base/integer.h"
#include "workloads/block_product.h"

enum { ADDING_WARPS = 4, ADDING_VECTOR = 4 };

typedef struct matmul {
  ftl_block_product product;
  int32_t c, sums;  // tensors; sums: of each split, [batch][split][m][n]
} matmul;

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  ftl_block_product p = ftl_block_product_of(spec);
  ftl_status status = ftl_block_product_check_row(p.transpose_a ? "m" : "k", p.transpose_a ? p.m : p.k, error);
  if (status == FTL_OK)
    status = ftl_block_product_check_row(p.transpose_b ? "k" : "n", p.transpose_b ? p.k : p.n, error);
  if (status == FTL_OK) status = ftl_block_product_check_row("n", p.n, error);
  return status == FTL_OK ? ftl_block_product_check(spec, &p, error) : status;
}

static void declare_tensors(matmul *f) {
  ftl_block_product *p = &f->product;
  ftl_tensor_shape a =
      p->transpose_a ? ftl_contiguous(p->batch, 1, p->k, p->m) : ftl_contiguous(p->batch, 1, p->m, p->k);
  ftl_tensor_shape b =
      p->transpose_b ? ftl_contiguous(p->batch, 1, p->n, p->k) : ftl_contiguous(p->batch, 1, p->k, p->n);
  p->a = ftl_builder_tensor(p->b, "a", p->dtype, FTL_TENSOR_INPUT, a);
  p->of_b[0] = ftl_builder_tensor(p->b, "b", p->dtype, FTL_TENSOR_INPUT, b);
  f->c = ftl_builder_tensor(p->b, "c", p->dtype, FTL_TENSOR_OUTPUT, ftl_contiguous(p->batch, 1, p->m, p->n));
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
  ftl_store(p->b, to, sums[0], -1);
}

static void build_product(matmul *f) { ftl_block_product_build(&f->product, store_sum, f); }

// ---- the sum of the splits: a warp a row of a tile of 128 columns ----
static void build_addition(matmul *f) {
  ftl_block_product *p = &f->product;
  ftl_builder *b = p->b;
  const ftl_value_layout layout = {32, ADDING_VECTOR};
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
  ftl_builder_grid(b, p->batch * tiles_m * tiles_n, false, false);
}

// ---- the workload ----
static ftl_status build_launch(const ftl_spec *spec, const char *name, void (*build)(matmul *), ftl_tile_program **out,
                               ftl_error *error) {
  matmul f = {.product = ftl_block_product_of(spec)};
  ftl_builder *b;
  ftl_status status = ftl_builder_create(&b, name, error);
  if (status != FTL_OK) return status;
  f.product.b = b;
  declare_tensors(&f);
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
  if (ftl_block_product_of(spec).num_splits == 1) return FTL_OK;
  status = build_launch(spec, "matmul_add_splits", build_addition, &launches[1], error);
  if (status == FTL_OK) *num_launches = 2;
  return status;
}

static void set_defaults(ftl_spec *spec) {
  if (spec->value[FTL_PARAM_splits] == 0) spec->value[FTL_PARAM_splits] = 1;
}
const ftl_workload ftl_workload_matmul_tiled = {
    .name = "matmul_tiled",
    .doc = "matrix product C = A B by tiles, K in steps through shared memory, optionally split over CTAs",
    .accepts = FTL_TAKES(batch) | FTL_TAKES(m) | FTL_TAKES(n) | FTL_TAKES(k) | FTL_TAKES(transpose_a) |
               FTL_TAKES(transpose_b) | FTL_TAKES(dtype) | FTL_TAKES(block_m) | FTL_TAKES(block_n) |
               FTL_TAKES(block_k) | FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | FTL_TAKES(persistent) |
               FTL_TAKES(tile_order) | FTL_TAKES(copy) | FTL_TAKES(mma) | FTL_TAKES(max_registers) | FTL_TAKES(splits) |
               FTL_TAKES(conditions) | FTL_TAKES(cache) | FTL_TAKES(clock_mhz) | FTL_TAKES(detail),
    .set_defaults = set_defaults,
    .build = build,
};
