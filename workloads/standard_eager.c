// What eager PyTorch adds to unfused attention's forward pass, in the two programs that FlashAttention's benchmarks
// time: `eager_baddbmm` (benchmarks/benchmark_flash_attention.py of FlashAttention 2: torch.baddbmm, whose alpha scales
// S) and `eager_einsum` (of FlashAttention 1: torch.einsum of Q and K / sqrt(head_dim)). Their launches were watched
// (kernels/foreign/eager_attention.py, kernels/measurements/eager_timeline.csv): Q, K and V are copied for the batched
// products, heads before tokens, K transposed (the program permutes it, and reshape makes it so); a mask is a launch
// over all scores. Not here: the launches that make the mask itself, one matrix for all heads.
//
// `eager_matmul` is softmax((q @ k.transpose(-1, -2)) * scale, -1) @ v of tensors with heads before tokens, which
// torch.matmul hands to batched products as they lie (aten/src/ATen/native/LinearAlgebra.cpp: a view is enough); the
// scale is a launch over all scores, into another tensor, and so is what a mask fills in.
#include "base/integer.h"
#include "workloads/row_softmax.h"
#include "workloads/standard_forward.h"

enum { NUM_WARPS = 4, NUM_THREADS = FTL_WARP_LANES * NUM_WARPS };

static void declare_copies(ftl_standard_forward *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_tensor_shape queries = ftl_contiguous(a->batch, a->heads, a->seqlen_q, a->head_dim);
  ftl_tensor_shape keys = ftl_contiguous(a->batch, a->heads, a->seqlen_kv, a->head_dim);
  f->rows.q = ftl_builder_tensor(b, "q_rows", a->dtype, FTL_TENSOR_TEMP, queries);
  f->rows.k =
      ftl_builder_tensor(b, "k_columns", a->dtype, FTL_TENSOR_TEMP,
                         ftl_contiguous(a->batch, a->heads, a->head_dim, ftl_standard_scores_shape(a).num_columns));
  f->rows.v = ftl_builder_tensor(b, "v_rows", a->dtype, FTL_TENSOR_TEMP, keys);
  f->scaled_k = f->t.k;
  if (ftl_standard_is_einsum(f->spec))
    f->scaled_k = ftl_builder_tensor(b, "k_scaled", a->dtype, FTL_TENSOR_TEMP,
                                     ftl_attention_shape(f->spec, a->heads, a->seqlen_kv, a->head_dim));
  else
    f->product_scale = a->scale;
}

void ftl_standard_declare_eager(ftl_standard_forward *f) {
  const ftl_attention *a = &f->a;
  f->p = ftl_builder_tensor(f->b, "p", a->dtype, FTL_TENSOR_TEMP, ftl_standard_scores_shape(a));
  if (a->dropout_p == 0) f->dropped = f->p;
  if (ftl_standard_copies_tokens(f->spec))
    declare_copies(f);
  else
    f->scaled = ftl_builder_tensor(f->b, "s_scaled", a->dtype, FTL_TENSOR_TEMP, ftl_standard_scores_shape(a));
}

static void write_rows(const ftl_standard_forward *f, int32_t from, int32_t to, int64_t num_tokens) {
  ftl_standard_write_tokens(
      f->b, &f->a,
      &(ftl_standard_tokens){
          .from = {from}, .to = {to, -1}, .num_tokens = num_tokens, .scale = 1, .index_insts = FTL_EAGER_COPY_INSTS});
}

void ftl_standard_write_rows_of_q(const ftl_standard_forward *f) { write_rows(f, f->t.q, f->rows.q, f->a.seqlen_q); }
void ftl_standard_write_rows_of_k(const ftl_standard_forward *f) {
  ftl_standard_write_transposed(f->b, &f->a, f->scaled_k, f->rows.k);
}
void ftl_standard_write_rows_of_v(const ftl_standard_forward *f) { write_rows(f, f->t.v, f->rows.v, f->a.seqlen_kv); }

void ftl_standard_write_scaled_keys(const ftl_standard_forward *f) {
  ftl_standard_write_tokens(f->b, &f->a,
                            &(ftl_standard_tokens){.from = {f->t.k},
                                                   .to = {f->scaled_k, -1},
                                                   .num_tokens = f->a.seqlen_kv,
                                                   .scale = f->a.scale,
                                                   .index_insts = FTL_EAGER_SCALE_INSTS});
}

// A vectorised element-wise kernel of a flat array (aten/src/ATen/native/cuda/CUDALoops.cuh): 128 threads with 8
// adjacent numbers of 16 bits each, 1024 a CTA, wherever rows end. Short rows are several a CTA, long ones several
// CTAs.
void ftl_standard_write_scaled_scores(const ftl_standard_forward *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  int64_t columns = ftl_standard_scores_shape(a).num_columns;
  int32_t threads = NUM_THREADS;
  while (threads > 1 && threads * FTL_ROW_VECTOR_COLUMNS > columns) threads /= 2;
  int32_t rows = NUM_THREADS / threads, step = threads * FTL_ROW_VECTOR_COLUMNS;
  int64_t num_parts = ftl_divide_up(columns, step), num_tiles = ftl_divide_up(a->seqlen_q, rows);
  ftl_expr parts = ftl_const(b, num_parts), tiles = ftl_const(b, num_tiles), heads = ftl_const(b, a->heads);
  ftl_expr tile = ftl_div(b, ftl_cta(b), parts), head = ftl_div(b, tile, tiles);
  ftl_attention_tile at = {.batch = ftl_div(b, head, heads),
                           .head = ftl_mod(b, head, heads),
                           .row = ftl_mul(b, ftl_mod(b, tile, tiles), ftl_const(b, rows))};
  ftl_builder_role(b, "main", NUM_WARPS, 0);
  ftl_value_layout layout = {threads, FTL_ROW_VECTOR_COLUMNS};
  int32_t x16 = ftl_builder_tile_by_rows(b, "x", a->dtype, rows, step, layout);
  int32_t x = ftl_builder_tile_by_rows(b, "x32", FTL_FP32, rows, step, layout);
  ftl_tile_ref from = ftl_attention_query_ref(&at, f->s, at.row, rows, step);
  from.column = ftl_mul(b, ftl_mod(b, ftl_cta(b), parts), ftl_const(b, step));
  ftl_tile_ref to = from;
  to.tensor = f->scaled;
  ftl_load_tile(b, x16, from);
  ftl_convert(b, x, x16);
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_immediate(a->scale));
  ftl_convert(b, x16, x);
  ftl_store(b, to, x16, -1);
  ftl_builder_grid(b, a->batch * a->heads * num_tiles * num_parts, false, FTL_TILES_BY_STRIDE);
}
