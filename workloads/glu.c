// The gated linear unit of a feed-forward layer: out = activation(x w_gate) * (x w_up), x of m rows (tokens) and k
// columns, weights of n columns. Source: N. Shazeer, "GLU variants improve transformer", arXiv:2002.05202.
//
// Fused, a CTA multiplies its rows of x by both weights in one walk over k (block_product.h with two Bs) and gates its
// sums before it stores them. Unfused, the products go to memory, 16-bit, and a third launch reads them.
#include <math.h>

#include "base/integer.h"
#include "workloads/block_product.h"

enum { GATE, UP, NUM_WEIGHTS };
enum { GATING_WARPS = 4, VECTOR_COLUMNS = 8 };

static const float log2_e = 1.44269504F;

typedef struct glu {
  ftl_block_product product;
  int64_t activation;
  int32_t x, weights[NUM_WEIGHTS], out, products[NUM_WEIGHTS];  // tensors
} glu;

static void declare_tensors(glu *g, bool is_fused) {
  static const char *const weight_names[] = {"w_gate", "w_up"}, *const product_names[] = {"gate", "up"};
  const ftl_block_product *p = &g->product;
  ftl_tensor_shape weight = p->transpose_b ? ftl_contiguous(1, 1, p->n, p->k) : ftl_contiguous(1, 1, p->k, p->n);
  g->x = ftl_builder_tensor(p->b, "x", p->dtype, FTL_TENSOR_INPUT, ftl_contiguous(1, 1, p->m, p->k));
  for (int i = 0; i < NUM_WEIGHTS; i++)
    g->weights[i] = ftl_builder_tensor(p->b, weight_names[i], p->dtype, FTL_TENSOR_INPUT, weight);
  g->out = ftl_builder_tensor(p->b, "out", p->dtype, FTL_TENSOR_OUTPUT, ftl_contiguous(1, 1, p->m, p->n));
  for (int i = 0; i < NUM_WEIGHTS && !is_fused; i++)
    g->products[i] =
        ftl_builder_tensor(p->b, product_names[i], p->dtype, FTL_TENSOR_TEMP, ftl_contiguous(1, 1, p->m, p->n));
}

// ---- the gate ----

// dst <- 1 / (1 + 2^dst)
static void reciprocal_of_one_plus_exp2(ftl_builder *b, int32_t dst) {
  ftl_unary(b, FTL_ELEM_EXP2, dst, dst);
  ftl_binary(b, FTL_ELEM_ADD, dst, dst, ftl_immediate(1));
  ftl_unary(b, FTL_ELEM_RECIP, dst, dst);
}

// sigmoid <- 1 / (1 + exp(-y)), y the gate, or for GELU, in the form 0.5 x (1 + tanh(z)) = x / (1 + exp(-2 z)),
// y = 2 z = sqrt(8 / pi) (x + 0.044715 x^3).
static void take_sigmoid(const glu *g, int32_t sigmoid, int32_t gate) {
  ftl_builder *b = g->product.b;
  if (g->activation == FTL_ACTIVATION_GELU) {
    const float slope = -sqrtf(2.54647909F) * log2_e;  // 8 / pi
    ftl_binary(b, FTL_ELEM_MUL, sigmoid, gate, ftl_value_operand(gate));
    ftl_elem(b, FTL_ELEM_FMA, sigmoid, ftl_value_operand(sigmoid), ftl_immediate(0.044715F * slope),
             ftl_immediate(slope));
    ftl_binary(b, FTL_ELEM_MUL, sigmoid, sigmoid, ftl_value_operand(gate));
  } else {
    ftl_binary(b, FTL_ELEM_MUL, sigmoid, gate, ftl_immediate(-log2_e));
  }
  reciprocal_of_one_plus_exp2(b, sigmoid);
}

// gate <- activation(gate) * up; `temp` like them.
static void multiply_by_gate(const glu *g, int32_t gate, int32_t up, int32_t temp) {
  ftl_builder *b = g->product.b;
  if (g->activation == FTL_ACTIVATION_RELU) {
    ftl_binary(b, FTL_ELEM_MAX, gate, gate, ftl_immediate(0));
  } else {
    take_sigmoid(g, temp, gate);
    if (g->activation == FTL_ACTIVATION_SIGMOID)
      ftl_unary(b, FTL_ELEM_COPY, gate, temp);
    else
      ftl_binary(b, FTL_ELEM_MUL, gate, gate, ftl_value_operand(temp));
  }
  ftl_binary(b, FTL_ELEM_MUL, gate, gate, ftl_value_operand(up));
}

// ---- fused ----

static void store_gated(const ftl_block_product *p, const int32_t *sums, const void *context) {
  const glu *g = context;
  int32_t temp = ftl_builder_tile(p->b, "sigmoid", FTL_FP32, p->block_m, p->block_n);
  multiply_by_gate(g, sums[GATE], sums[UP], temp);
  ftl_store(p->b,
            ftl_block_product_tile(p, g->out, ftl_const(p->b, 0), p->row, p->column, p->block_m, p->block_n, p->n),
            sums[GATE], -1);
}

static void build_fused(glu *g) {
  ftl_block_product *p = &g->product;
  p->num_b = NUM_WEIGHTS;
  p->a = g->x;
  for (int i = 0; i < NUM_WEIGHTS; i++) p->of_b[i] = g->weights[i];
  ftl_block_product_build(p, store_gated, g);
}

// ---- unfused: the two products, then a warp a row of a tile of 256 columns ----

static void store_product(const ftl_block_product *p, const int32_t *sums, const void *context) {
  const int32_t *to = context;
  ftl_store(p->b, ftl_block_product_tile(p, *to, ftl_const(p->b, 0), p->row, p->column, p->block_m, p->block_n, p->n),
            sums[0], -1);
}

static void build_product(glu *g, int weight) {
  g->product.a = g->x;
  g->product.of_b[0] = g->weights[weight];
  ftl_block_product_build(&g->product, store_product, &g->products[weight]);
}

static void build_gate(glu *g) { build_product(g, GATE); }

static void build_up(glu *g) { build_product(g, UP); }

// `fp32` <- the tile of a product, by way of `raw`.
static void load_product(const ftl_block_product *p, int32_t raw, int32_t fp32, ftl_tile_ref ref, int32_t tensor) {
  ref.tensor = tensor;
  ftl_load_tile(p->b, raw, ref);
  ftl_convert(p->b, fp32, raw);
}

static void build_multiply(glu *g) {
  static const char *const raw_names[] = {"gate16", "up16"}, *const names[] = {"gate", "up"};
  ftl_block_product *p = &g->product;
  ftl_builder *b = p->b;
  const ftl_value_layout layout = {FTL_WARP_LANES, VECTOR_COLUMNS};
  int32_t rows = GATING_WARPS, columns = layout.threads_per_row * layout.vector_columns;
  int64_t tiles_n = ftl_divide_up(p->n, columns);
  int32_t raw[NUM_WEIGHTS], value[NUM_WEIGHTS];
  ftl_builder_role(b, "main", GATING_WARPS, 0);
  p->batch_idx = ftl_const(b, 0);
  ftl_expr row = ftl_mul(b, ftl_div(b, ftl_cta(b), ftl_const(b, tiles_n)), ftl_const(b, rows));
  ftl_expr column = ftl_mul(b, ftl_mod(b, ftl_cta(b), ftl_const(b, tiles_n)), ftl_const(b, columns));
  ftl_tile_ref to = ftl_block_product_tile(p, g->out, ftl_const(b, 0), row, column, rows, columns, p->n);
  for (int i = 0; i < NUM_WEIGHTS; i++) {
    raw[i] = ftl_builder_tile_by_rows(b, raw_names[i], p->dtype, rows, columns, layout);
    value[i] = ftl_builder_tile_by_rows(b, names[i], FTL_FP32, rows, columns, layout);
    load_product(p, raw[i], value[i], to, g->products[i]);
  }
  int32_t temp = ftl_builder_tile_by_rows(b, "sigmoid", FTL_FP32, rows, columns, layout);
  multiply_by_gate(g, value[GATE], value[UP], temp);
  ftl_convert(b, raw[GATE], value[GATE]);
  ftl_store(b, to, raw[GATE], -1);
  ftl_builder_grid(b, ftl_divide_up(p->m, rows) * tiles_n, false, FTL_TILES_BY_STRIDE);
}

// ---- the workload ----

typedef struct launch {
  const char *name;
  void (*build)(glu *);
} launch;

static ftl_status build_launch(const ftl_spec *spec, const launch *l, ftl_tile_program **out, ftl_error *error) {
  glu g = {.product = ftl_block_product_of(spec), .activation = spec->value[FTL_PARAM_activation]};
  ftl_builder *b;
  ftl_status status = ftl_builder_create(&b, l->name, error);
  if (status != FTL_OK) return status;
  g.product.b = b;
  declare_tensors(&g, spec->value[FTL_PARAM_fused] != 0);
  l->build(&g);
  status = ftl_builder_finish(b, out, error);
  ftl_builder_destroy(b);
  return status;
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  ftl_block_product p = ftl_block_product_of(spec);
  ftl_status status = ftl_block_product_check_vectors(p.dtype, FTL_PARAM_k, p.k, error);
  if (status == FTL_OK) status = ftl_block_product_check_vectors(p.dtype, FTL_PARAM_n, p.n, error);
  return status == FTL_OK ? ftl_block_product_check(spec, &p, error) : status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  static const launch fused[] = {{"glu", build_fused}};
  static const launch unfused[] = {{"glu_gate", build_gate}, {"glu_up", build_up}, {"glu_multiply", build_multiply}};
  bool is_fused = spec->value[FTL_PARAM_fused] != 0;
  int count = is_fused ? 1 : 3;
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  for (int i = 0; status == FTL_OK && i < count; i++) {
    status = build_launch(spec, is_fused ? &fused[i] : &unfused[i], &launches[i], error);
    if (status == FTL_OK) *num_launches = i + 1;
  }
  return status;
}

static void set_defaults(ftl_spec *spec) {
  spec->value[FTL_PARAM_batch] = 1;  // rows of all sequences share the weights
}

const ftl_workload ftl_workload_glu = {
    .name = "glu",
    .doc = "gated linear unit, activation(x w_gate) * (x w_up): one kernel with two accumulators, or three kernels",
    .accepts = FTL_TAKES(m) | FTL_TAKES(n) | FTL_TAKES(k) | FTL_TAKES(transpose_b) | FTL_TAKES(fused) |
               FTL_TAKES(activation) | FTL_TAKES(dtype) | FTL_TAKES(block_m) | FTL_TAKES(block_n) | FTL_TAKES(block_k) |
               FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | FTL_TAKES(code) | FTL_TAKES(persistent) |
               FTL_TAKES(tile_order) | FTL_TAKES(tile_strip) | FTL_TAKES(copy) | FTL_TAKES(mma) |
               FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(conditions) | FTL_TAKES(cache) | FTL_TAKES(clock_mhz) |
               FTL_TAKES(detail),
    .set_defaults = set_defaults,
    .needs_wgmma = ftl_block_product_needs_wgmma,
    .build = build,
};
