// Block matrix product C = A B: a CTA computes a block_m x block_n tile of C, walking K in steps of block_k whose tiles
// of A and B go through shared memory. Source: NVIDIA, CUTLASS, "Efficient GEMM in CUDA" (the multistage kernel, and
// the warp-specialised cooperative kernel with TMA and wgmma).
//
// A is [m][k], or [k][m] with transpose_a; B is [k][n], or [n][k] with transpose_b; C is [m][n], 16-bit, sums in fp32.
// With mma=wgmma and copy=tma a producer warpgroup copies for num_warps that multiply; else all warps do both.
// splits > 1: CTAs take a part of K each and leave fp32 sums in memory, which a second launch adds up.
#include "base/integer.h"
#include "tile/builder.h"
#include "workloads/attention.h"
#include "workloads/spec.h"

enum { PRODUCER_WARPS = 4, PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240, MAX_CONSUMER_WARPS = 8 };
enum { ADDING_WARPS = 4, ADDING_VECTOR = 4, ALIGNED_ELEMENTS = 8 };

typedef struct matmul {
  const ftl_spec *spec;
  ftl_builder *b;
  int64_t batch, m, n, k, num_splits, tiles_m, tiles_n, steps_per_split;
  int32_t block_m, block_n, block_k, num_stages;
  ftl_dtype dtype;
  bool transpose_a, transpose_b, has_producer;
  int32_t a, b_matrix, c, sums;  // tensors; sums: of each split, [batch][split][m][n]
  int32_t ring_a, ring_b;
  ftl_expr batch_idx, split, row, column, first_step, num_steps;  // of a CTA
} matmul;

// ---- what cannot exist on any GPU ----
static ftl_status check_aligned(const ftl_spec *spec, ftl_param param, ftl_error *error) {
  if (spec->value[param] % ALIGNED_ELEMENTS == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "%s=%lld: 16-byte copies need rows of a multiple of 8 elements",
                       ftl_param_get(param)->name, (long long)spec->value[param]);
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t flops = 2 * v[FTL_PARAM_batch];
  if (__builtin_mul_overflow(flops, v[FTL_PARAM_m], &flops) || __builtin_mul_overflow(flops, v[FTL_PARAM_n], &flops) ||
      __builtin_mul_overflow(flops, v[FTL_PARAM_k], &flops))
    return ftl_error_set(error, FTL_BAD_INPUT, "k=%lld: 2 * batch * m * n * k is more than 2^63 FLOPs",
                         (long long)v[FTL_PARAM_k]);
  ftl_status status = check_aligned(spec, v[FTL_PARAM_transpose_a] ? FTL_PARAM_m : FTL_PARAM_k, error);
  if (status == FTL_OK) status = check_aligned(spec, v[FTL_PARAM_transpose_b] ? FTL_PARAM_k : FTL_PARAM_n, error);
  if (status == FTL_OK) status = check_aligned(spec, FTL_PARAM_n, error);
  if (status == FTL_OK) status = ftl_attention_check_warps(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_block_k] % 16 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "block_k=%lld: tensor instructions need a multiple of 16",
                         (long long)v[FTL_PARAM_block_k]);
  if (v[FTL_PARAM_persistent] && !(v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "persistent: CTAs that walk several tiles need mma=wgmma copy=tma here");
  return FTL_OK;
}

// ---- declarations ----
static void declare_tensors(matmul *f) {
  ftl_tensor_shape a =
      f->transpose_a ? ftl_contiguous(f->batch, 1, f->k, f->m) : ftl_contiguous(f->batch, 1, f->m, f->k);
  ftl_tensor_shape b =
      f->transpose_b ? ftl_contiguous(f->batch, 1, f->n, f->k) : ftl_contiguous(f->batch, 1, f->k, f->n);
  f->a = ftl_builder_tensor(f->b, "a", f->dtype, FTL_TENSOR_INPUT, a);
  f->b_matrix = ftl_builder_tensor(f->b, "b", f->dtype, FTL_TENSOR_INPUT, b);
  f->c = ftl_builder_tensor(f->b, "c", f->dtype, FTL_TENSOR_OUTPUT, ftl_contiguous(f->batch, 1, f->m, f->n));
  if (f->num_splits > 1)
    f->sums = ftl_builder_tensor(f->b, "sums", FTL_FP32, FTL_TENSOR_TEMP,
                                 ftl_contiguous(f->batch, f->num_splits, f->m, f->n));
}

// The tile of a CTA: m tiles follow each other in launch order, or n tiles; then splits; then batches.
static void place_tile(matmul *f) {
  ftl_builder *b = f->b;
  bool m_first = f->spec->value[FTL_PARAM_tile_order] == FTL_ORDER_M_FIRST;
  ftl_expr cta = ftl_cta(b), tiles = ftl_const(b, f->tiles_m * f->tiles_n), in_matrix = ftl_mod(b, cta, tiles);
  ftl_expr fast = ftl_const(b, m_first ? f->tiles_m : f->tiles_n);
  ftl_expr first = ftl_mod(b, in_matrix, fast), second = ftl_div(b, in_matrix, fast);
  ftl_expr matrix = ftl_div(b, cta, tiles), splits = ftl_const(b, f->num_splits);
  f->split = ftl_mod(b, matrix, splits);
  f->batch_idx = ftl_div(b, matrix, splits);
  f->row = ftl_mul(b, m_first ? first : second, ftl_const(b, f->block_m));
  f->column = ftl_mul(b, m_first ? second : first, ftl_const(b, f->block_n));
  ftl_expr per_split = ftl_const(b, f->steps_per_split), all = ftl_const(b, ftl_divide_up(f->k, f->block_k));
  f->first_step = ftl_mul(b, f->split, per_split);
  f->num_steps = ftl_min(b, per_split, ftl_sub(b, all, f->first_step));
}

static void declare_rings(matmul *f, int32_t producer, int32_t consumers) {
  int32_t m = f->block_m, n = f->block_n, k = f->block_k;
  f->ring_a = ftl_builder_ring(f->b, "a", f->dtype, f->transpose_a ? k : m, f->transpose_a ? m : k, f->num_stages,
                               producer, consumers);
  f->ring_b = ftl_builder_ring(f->b, "b", f->dtype, f->transpose_b ? n : k, f->transpose_b ? k : n, f->num_stages,
                               producer, consumers);
}

// ---- tiles ----
static ftl_tile_ref tile_at(const matmul *f, int32_t tensor, ftl_expr row, ftl_expr column, int32_t rows,
                            int32_t columns, int64_t all_columns) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = f->batch_idx,
                        .head = ftl_const(f->b, 0),
                        .row = row,
                        .present = FTL_ALWAYS,
                        .rows = rows,
                        .columns = (int32_t)ftl_smaller(columns, all_columns),
                        .column = column};
}

// A's and B's tiles of step `step` of the CTA's part of K; empty stages unless `present` > 0.
static void load_step(const matmul *f, ftl_expr step, ftl_expr present) {
  ftl_builder *b = f->b;
  ftl_expr depth = ftl_mul(b, ftl_add(b, f->first_step, step), ftl_const(b, f->block_k));
  ftl_tile_ref a = f->transpose_a ? tile_at(f, f->a, depth, f->row, f->block_k, f->block_m, f->m)
                                  : tile_at(f, f->a, f->row, depth, f->block_m, f->block_k, f->k);
  ftl_tile_ref of_b = f->transpose_b ? tile_at(f, f->b_matrix, f->column, depth, f->block_n, f->block_k, f->k)
                                     : tile_at(f, f->b_matrix, depth, f->column, f->block_k, f->block_n, f->n);
  a.present = of_b.present = present;
  ftl_acquire(b, f->ring_a);
  ftl_acquire(b, f->ring_b);
  ftl_load(b, f->ring_a, a);
  ftl_load(b, f->ring_b, of_b);
  ftl_commit(b, f->ring_a);
  ftl_commit(b, f->ring_b);
}

static void multiply_step(const matmul *f, int32_t sum) {
  ftl_wait(f->b, f->ring_a);
  ftl_wait(f->b, f->ring_b);
  ftl_mma_shared(f->b, sum, f->ring_a, f->ring_b, f->transpose_b);
  if (f->transpose_a) ftl_transposed_a(f->b);
  ftl_release(f->b, f->ring_a);
  ftl_release(f->b, f->ring_b);
}

static void store_tile(const matmul *f, int32_t sum) {
  ftl_tile_ref to = tile_at(f, f->num_splits > 1 ? f->sums : f->c, f->row, f->column, f->block_m, f->block_n, f->n);
  to.head = f->num_splits > 1 ? f->split : to.head;
  ftl_store(f->b, to, sum, -1);
}

// ---- the product ----
static void build_multistage(matmul *f) {
  ftl_builder *b = f->b;
  int32_t role = ftl_builder_role(b, "main", (int32_t)f->spec->value[FTL_PARAM_num_warps], 0);
  declare_rings(f, role, 1 << role);
  int32_t sum = ftl_builder_tile(b, "sum", FTL_FP32, f->block_m, f->block_n);
  ftl_fill(b, sum, 0);
  for (int32_t i = 0; i < f->num_stages - 1; i++)
    load_step(f, ftl_const(b, i), ftl_sub(b, f->num_steps, ftl_const(b, i)));
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), f->num_steps));
  ftl_expr ahead = ftl_add(b, i, ftl_const(b, f->num_stages - 1));
  load_step(f, ahead, ftl_sub(b, f->num_steps, ahead));
  multiply_step(f, sum);
  ftl_end_loop(b);
  store_tile(f, sum);
}

static void build_specialised(matmul *f) {
  ftl_builder *b = f->b;
  int32_t num_warps = (int32_t)f->spec->value[FTL_PARAM_num_warps];
  bool reallocates = num_warps == MAX_CONSUMER_WARPS;  // what two warpgroups gain is what one gives up
  ftl_builder_role(b, "producer", PRODUCER_WARPS, reallocates ? PRODUCER_REGISTERS : 0);
  declare_rings(f, 0, 1 << 1);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), f->num_steps));
  load_step(f, i, FTL_ALWAYS);
  ftl_end_loop(b);
  ftl_builder_role(b, "consumer", num_warps, reallocates ? CONSUMER_REGISTERS : 0);
  int32_t sum = ftl_builder_tile(b, "sum", FTL_FP32, f->block_m, f->block_n);
  ftl_fill(b, sum, 0);
  ftl_loop(b, ftl_const(b, 0), f->num_steps);
  multiply_step(f, sum);
  ftl_end_loop(b);
  store_tile(f, sum);
}

static void build_product(matmul *f) {
  place_tile(f);
  if (f->has_producer)
    build_specialised(f);
  else
    build_multistage(f);
  bool persistent = f->spec->value[FTL_PARAM_persistent] != 0;
  ftl_builder_grid(f->b, f->batch * f->num_splits * f->tiles_m * f->tiles_n, persistent, false);
  ftl_builder_flops(f->b, 2 * f->batch * f->m * f->n * f->k);
}

// ---- the sum of the splits: a warp a row of a tile of 128 columns ----
static void build_addition(matmul *f) {
  ftl_builder *b = f->b;
  const ftl_value_layout layout = {32, ADDING_VECTOR};
  int32_t columns = layout.threads_per_row * layout.vector_columns;
  int64_t tiles_m = ftl_divide_up(f->m, ADDING_WARPS), tiles_n = ftl_divide_up(f->n, columns);
  ftl_builder_role(b, "main", ADDING_WARPS, 0);
  int32_t part = ftl_builder_tile_by_rows(b, "part", FTL_FP32, ADDING_WARPS, columns, layout);
  int32_t sum = ftl_builder_tile_by_rows(b, "sum", FTL_FP32, ADDING_WARPS, columns, layout);
  ftl_expr tiles = ftl_const(b, tiles_m * tiles_n), tile = ftl_mod(b, ftl_cta(b), tiles);
  f->batch_idx = ftl_div(b, ftl_cta(b), tiles);
  f->column = ftl_mul(b, ftl_mod(b, tile, ftl_const(b, tiles_n)), ftl_const(b, columns));
  f->row = ftl_mul(b, ftl_div(b, tile, ftl_const(b, tiles_n)), ftl_const(b, ADDING_WARPS));
  ftl_fill(b, sum, 0);
  ftl_tile_ref of_sums = tile_at(f, f->sums, f->row, f->column, ADDING_WARPS, columns, f->n), to = of_sums;
  of_sums.head = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_const(b, f->num_splits)));
  ftl_load_tile(b, part, of_sums);
  ftl_elem(b, FTL_ELEM_ADD, sum, ftl_value_operand(sum), ftl_value_operand(part), ftl_immediate(0));
  ftl_end_loop(b);
  to.tensor = f->c;
  ftl_store(b, to, sum, -1);
  ftl_builder_grid(b, f->batch * tiles_m * tiles_n, false, false);
}

// ---- the workload ----
static matmul matmul_of(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  matmul f = {.spec = spec,
              .batch = v[FTL_PARAM_batch],
              .m = v[FTL_PARAM_m],
              .n = v[FTL_PARAM_n],
              .k = v[FTL_PARAM_k],
              .block_m = (int32_t)v[FTL_PARAM_block_m],
              .block_n = (int32_t)v[FTL_PARAM_block_n],
              .block_k = (int32_t)v[FTL_PARAM_block_k],
              .num_stages = (int32_t)v[FTL_PARAM_num_stages],
              .dtype = (ftl_dtype)v[FTL_PARAM_dtype],
              .transpose_a = v[FTL_PARAM_transpose_a] != 0,
              .transpose_b = v[FTL_PARAM_transpose_b] != 0,
              .has_producer = v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA};
  f.tiles_m = ftl_divide_up(f.m, f.block_m);
  f.tiles_n = ftl_divide_up(f.n, f.block_n);
  int64_t steps = ftl_divide_up(f.k, f.block_k);
  f.num_splits = v[FTL_PARAM_splits] < steps ? v[FTL_PARAM_splits] : steps;
  f.steps_per_split = ftl_divide_up(steps, f.num_splits);
  f.num_splits = ftl_divide_up(steps, f.steps_per_split);  // none is empty
  return f;
}

static ftl_status build_launch(const ftl_spec *spec, const char *name, void (*build)(matmul *), ftl_tile_program **out,
                               ftl_error *error) {
  matmul f = matmul_of(spec);
  ftl_status status = ftl_builder_create(&f.b, name, error);
  if (status != FTL_OK) return status;
  declare_tensors(&f);
  build(&f);
  status = ftl_builder_finish(f.b, out, error);
  ftl_builder_destroy(f.b);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  if (status == FTL_OK) status = build_launch(spec, "matmul_tiled", build_product, &launches[0], error);
  if (status != FTL_OK) return status;
  *num_launches = 1;
  if (matmul_of(spec).num_splits == 1) return FTL_OK;
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
