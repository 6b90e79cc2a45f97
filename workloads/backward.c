#include "workloads/backward.h"

#include "base/integer.h"

enum { ROWS_PER_THREAD = 4, VECTOR_BYTES = 16, WARP_LANES = 32 };

ftl_backward ftl_backward_of(ftl_builder *b, const ftl_spec *spec) {
  ftl_backward f = {.b = b,
                    .spec = spec,
                    .a = ftl_attention_of(spec),
                    .num_warps = (int32_t)spec->value[FTL_PARAM_num_warps],
                    .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages]};
  const ftl_attention *a = &f.a;
  ftl_tensor_shape queries = ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim);
  ftl_tensor_shape keys = ftl_attention_shape(spec, a->kv_heads, a->seqlen_kv, a->head_dim);
  ftl_tensor_shape keys_of_heads = ftl_attention_shape(spec, a->heads, a->seqlen_kv, a->head_dim);
  ftl_tensor_shape rows = {.num_batches = a->batch,
                           .num_heads = a->heads,
                           .num_rows = a->seqlen_q,
                           .num_columns = 1,
                           .batch_stride = a->heads * a->seqlen_q,
                           .head_stride = a->seqlen_q,
                           .row_stride = 1};
  ftl_backward_tensors *t = &f.t;
  t->q = ftl_builder_tensor(b, "q", a->dtype, FTL_TENSOR_INPUT, queries);
  t->k = ftl_builder_tensor(b, "k", a->dtype, FTL_TENSOR_INPUT, keys);
  t->v = ftl_builder_tensor(b, "v", a->dtype, FTL_TENSOR_INPUT, keys);
  t->o = ftl_builder_tensor(b, "o", a->dtype, FTL_TENSOR_INPUT, queries);
  t->d_o = ftl_builder_tensor(b, "do", a->dtype, FTL_TENSOR_INPUT, queries);
  t->lse = ftl_builder_tensor(b, "lse", FTL_FP32, FTL_TENSOR_INPUT, rows);
  t->delta = ftl_builder_tensor(b, "delta", FTL_FP32, FTL_TENSOR_TEMP, rows);
  t->d_q = ftl_builder_tensor(b, "dq", a->dtype, FTL_TENSOR_OUTPUT, queries);
  t->d_k = t->d_k_of_heads = ftl_builder_tensor(b, "dk", a->dtype, FTL_TENSOR_OUTPUT, keys);
  t->d_v = t->d_v_of_heads = ftl_builder_tensor(b, "dv", a->dtype, FTL_TENSOR_OUTPUT, keys);
  if (a->heads == a->kv_heads) return f;
  t->d_k_of_heads = ftl_builder_tensor(b, "dk_of_heads", a->dtype, FTL_TENSOR_TEMP, keys_of_heads);
  t->d_v_of_heads = ftl_builder_tensor(b, "dv_of_heads", a->dtype, FTL_TENSOR_TEMP, keys_of_heads);
  return f;
}

void ftl_backward_grid(ftl_backward *f, int64_t heads, int64_t length, int32_t rows) {
  ftl_attention grid = f->a;
  grid.heads = heads;
  if (heads < grid.kv_heads) grid.kv_heads = heads;
  grid.block_m = rows;
  grid.num_m_tiles = ftl_divide_up(length, rows);
  f->tile = ftl_attention_tile_of(f->b, f->spec, &grid);
  ftl_builder_grid(f->b, grid.batch * heads * grid.num_m_tiles, false, false);
}

// ---- rows ----

// Row-wise tiles of head_dim columns: 16 bytes a thread at a time, as many threads a row as a head needs.
typedef struct row_tiles {
  ftl_value_layout layout;
  int32_t rows, columns;
} row_tiles;

static row_tiles row_tiles_of(const ftl_backward *f) {
  int32_t vector = VECTOR_BYTES / ftl_dtype_bytes(f->a.dtype), threads = 1;
  while (threads * vector < f->a.head_dim && threads < WARP_LANES) threads *= 2;
  int32_t step = threads * vector;
  return (row_tiles){.layout = {threads, vector},
                     .rows = f->num_warps * WARP_LANES / threads * ROWS_PER_THREAD,
                     .columns = (f->a.head_dim + step - 1) / step * step};
}

static int32_t tile_of(const ftl_backward *f, const row_tiles *tiles, const char *name, ftl_dtype dtype) {
  return ftl_builder_tile_by_rows(f->b, name, dtype, tiles->rows, tiles->columns, tiles->layout);
}

static ftl_tile_ref ref_of(const ftl_backward *f, int32_t tensor, const row_tiles *tiles, int32_t columns) {
  return ftl_attention_query_ref(&f->tile, tensor, f->tile.row, tiles->rows, columns);
}

void ftl_backward_write_delta(ftl_backward *f) {
  ftl_builder *b = f->b;
  ftl_builder_role(b, "main", f->num_warps, 0);
  row_tiles tiles = row_tiles_of(f);
  ftl_backward_grid(f, f->a.heads, f->a.seqlen_q, tiles.rows);
  int32_t o16 = tile_of(f, &tiles, "o", f->a.dtype), o = tile_of(f, &tiles, "o32", FTL_FP32);
  int32_t do16 = tile_of(f, &tiles, "do", f->a.dtype), d_o = tile_of(f, &tiles, "do32", FTL_FP32);
  int32_t delta = ftl_builder_rows_by_rows(b, "delta", tiles.rows, tiles.layout);
  ftl_load_tile(b, o16, ref_of(f, f->t.o, &tiles, f->a.head_dim));
  ftl_load_tile(b, do16, ref_of(f, f->t.d_o, &tiles, f->a.head_dim));
  ftl_convert(b, o, o16);
  ftl_convert(b, d_o, do16);
  ftl_elem(b, FTL_ELEM_MUL, o, ftl_value_operand(o), ftl_value_operand(d_o), ftl_immediate(0));
  ftl_fill(b, delta, 0.0f);
  ftl_reduce_rows(b, FTL_ELEM_ADD, delta, o);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, delta);
  ftl_store_rows(b, ref_of(f, f->t.delta, &tiles, 1), delta);
}

typedef struct head_sum {
  row_tiles tiles;
  int32_t part16, part, sum;
} head_sum;

static void add_up(const ftl_backward *f, const head_sum *s, int32_t from, int32_t to) {
  ftl_builder *b = f->b;
  ftl_expr group = ftl_const(b, f->a.heads / f->a.kv_heads);
  ftl_fill(b, s->sum, 0.0f);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), group));
  ftl_tile_ref part = ref_of(f, from, &s->tiles, f->a.head_dim);
  part.head = ftl_add(b, ftl_mul(b, f->tile.head, group), i);
  ftl_load_tile(b, s->part16, part);
  ftl_convert(b, s->part, s->part16);
  ftl_elem(b, FTL_ELEM_ADD, s->sum, ftl_value_operand(s->sum), ftl_value_operand(s->part), ftl_immediate(0));
  ftl_end_loop(b);
  ftl_store(b, ref_of(f, to, &s->tiles, f->a.head_dim), s->sum, -1);
}

void ftl_backward_add_up_heads(ftl_backward *f) {
  ftl_builder_role(f->b, "main", f->num_warps, 0);
  head_sum s = {.tiles = row_tiles_of(f)};
  ftl_backward_grid(f, f->a.kv_heads, f->a.seqlen_kv, s.tiles.rows);
  s.part16 = tile_of(f, &s.tiles, "part", f->a.dtype);
  s.part = tile_of(f, &s.tiles, "part32", FTL_FP32);
  s.sum = tile_of(f, &s.tiles, "sum", FTL_FP32);
  add_up(f, &s, f->t.d_k_of_heads, f->t.d_k);
  add_up(f, &s, f->t.d_v_of_heads, f->t.d_v);
}
