#include "workloads/backward.h"

#include "base/integer.h"

static const float log2_e = 1.44269504088896340736f;

enum { ROWS_PER_THREAD = 4, VECTOR_BYTES = 16 };

bool ftl_backward_adds_dq(const ftl_spec *spec) {
  return ftl_spec_takes(spec, FTL_PARAM_dq) && spec->value[FTL_PARAM_dq] == FTL_DQ_ATOMICS;
}

bool ftl_backward_is_grouped(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_heads] != spec->value[FTL_PARAM_kv_heads];
}

bool ftl_backward_adds_by_fragments(const ftl_spec *spec) {
  int64_t adds = spec->value[FTL_PARAM_dq_adds];
  return adds == FTL_DQ_ADDS_PAIRS || adds == FTL_DQ_ADDS_WORDS;
}

bool ftl_backward_loops_heads(const ftl_spec *spec) {
  return ftl_backward_is_grouped(spec) && ftl_backward_adds_dq(spec) &&
         spec->value[FTL_PARAM_kv_group] == FTL_KV_GROUP_LOOP;
}

int32_t ftl_backward_padded_columns(int64_t columns) {
  return (int32_t)(ftl_divide_up(columns, FTL_WARP_LANES) * FTL_WARP_LANES);
}

static void declare_parts_of_heads(ftl_backward *f) {
  const ftl_attention *a = &f->a;
  ftl_tensor_shape keys = ftl_attention_shape(f->spec, a->heads, a->seqlen_kv, a->head_dim);
  ftl_tensor_shape values = ftl_attention_shape(f->spec, a->heads, a->seqlen_kv, a->head_dim_v);
  f->t.d_k_of_heads = ftl_builder_tensor(f->b, "dk_of_heads", a->dtype, FTL_TENSOR_TEMP, keys);
  f->t.d_v_of_heads = ftl_builder_tensor(f->b, "dv_of_heads", a->dtype, FTL_TENSOR_TEMP, values);
}

// dQ's sum has whole tiles of every sequence: within a tile the numbers lie as the lanes add them.
static int64_t num_sum_rows(const ftl_attention *a, int64_t num_sequences) {
  if (num_sequences > 0) return a->seqlen_q + num_sequences * a->block_m;
  return ftl_divide_up(a->seqlen_q, a->block_m) * a->block_m;
}

ftl_backward ftl_backward_of(ftl_builder *b, const ftl_spec *spec, int64_t num_sequences) {
  ftl_backward f = {.b = b,
                    .spec = spec,
                    .a = ftl_attention_of(spec),
                    .num_warps = (int32_t)spec->value[FTL_PARAM_num_warps],
                    .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages]};
  bool atomics = ftl_backward_adds_dq(spec);
  if (atomics) f.a.padded_head_dim = ftl_backward_padded_columns(f.a.head_dim);
  if (atomics) f.a.padded_head_dim_v = ftl_backward_padded_columns(f.a.head_dim_v);
  const ftl_attention *a = &f.a;
  ftl_tensor_shape queries = ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim);
  ftl_tensor_shape keys = ftl_attention_shape(spec, a->kv_heads, a->seqlen_kv, a->head_dim);
  ftl_tensor_shape values = ftl_attention_shape(spec, a->kv_heads, a->seqlen_kv, a->head_dim_v);
  ftl_tensor_shape outputs = ftl_attention_shape(spec, a->heads, a->seqlen_q, a->head_dim_v);
  ftl_tensor_shape rows = ftl_attention_shape_of_rows(a);
  ftl_backward_tensors *t = &f.t;
  t->q = ftl_builder_tensor(b, "q", a->dtype, FTL_TENSOR_INPUT, queries);
  t->k = ftl_builder_tensor(b, "k", a->dtype, FTL_TENSOR_INPUT, keys);
  t->v = ftl_builder_tensor(b, "v", a->dtype, FTL_TENSOR_INPUT, values);
  ftl_attention_needs_keys(b, a, t->k, t->v, ftl_attention_num_keys_seen(a));
  t->o = ftl_builder_tensor(b, "o", a->dtype, FTL_TENSOR_INPUT, outputs);
  t->d_o = ftl_builder_tensor(b, "do", a->dtype, FTL_TENSOR_INPUT, outputs);
  t->lse = ftl_builder_tensor(b, "lse", FTL_FP32, FTL_TENSOR_INPUT, rows);
  t->delta = ftl_builder_tensor(b, "delta", FTL_FP32, FTL_TENSOR_TEMP, rows);
  t->d_q = ftl_builder_tensor(b, "dq", a->dtype, FTL_TENSOR_OUTPUT, queries);
  t->d_k = t->d_k_of_heads = ftl_builder_tensor(b, "dk", a->dtype, FTL_TENSOR_OUTPUT, keys);
  t->d_v = t->d_v_of_heads = ftl_builder_tensor(b, "dv", a->dtype, FTL_TENSOR_OUTPUT, values);
  if (a->heads != a->kv_heads && !ftl_backward_loops_heads(spec)) declare_parts_of_heads(&f);
  t->d_q_sum = -1;
  if (!atomics) return f;
  f.num_sum_rows = num_sum_rows(a, num_sequences);
  t->d_q_sum = ftl_builder_tensor(b, "dq_sum", FTL_FP32, FTL_TENSOR_TEMP,
                                  ftl_contiguous(a->batch, a->heads, f.num_sum_rows, a->padded_head_dim));
  return f;
}

void ftl_backward_grid(ftl_backward *f, int64_t heads, int64_t length, int32_t rows) {
  ftl_attention grid = f->a;
  grid.heads = heads;
  if (heads < grid.kv_heads) grid.kv_heads = heads;
  grid.block_m = rows;
  grid.num_m_tiles = ftl_divide_up(length, rows);
  f->tile = ftl_attention_tile_of(f->b, f->spec, &grid);
  ftl_builder_grid(f->b, grid.batch * heads * grid.num_m_tiles, false, FTL_TILES_BY_STRIDE);
}

static void set_packed_tile(ftl_backward *f) {
  ftl_packed_tile packed = ftl_packed_batch_tile(f->b, f->spec, f->packed, &f->a);
  f->tile = packed.tile;
  f->lengths = packed.lengths;
  f->sequence = packed.tile.sequence;
  f->origin = packed.origin;
  f->row_end = packed.row_end;
  ftl_builder_grid(f->b, f->a.heads * f->packed->num_tiles, false, FTL_TILES_BY_STRIDE);
}

void ftl_backward_keep_of_heads(ftl_backward *f, int64_t heads, int64_t length, int32_t rows) {
  ftl_backward_grid(f, heads, length, rows);
  f->lengths = ftl_attention_lengths_of(f->b, &f->a);
  f->sequence = f->origin = ftl_const(f->b, 0);
  f->row_end = FTL_TENSOR_END;
}

void ftl_backward_keep(ftl_backward *f, int64_t length, int32_t rows) {
  if (f->packed != NULL)
    set_packed_tile(f);
  else
    ftl_backward_keep_of_heads(f, f->a.heads, length, rows);
}

ftl_tile_ref ftl_backward_ref(const ftl_backward *f, int32_t tensor, ftl_expr head, ftl_expr row, int32_t rows,
                              int32_t columns) {
  ftl_tile_ref ref = ftl_attention_query_ref(&f->tile, tensor, row, rows, columns);
  ref.head = head;
  return ftl_packed_ref(f->b, f->origin, f->row_end, ref);
}

ftl_tile_ref ftl_backward_sum_ref(const ftl_backward *f, ftl_expr row) {
  ftl_builder *b = f->b;
  ftl_expr tiles_before = ftl_mul(b, f->sequence, ftl_const(b, f->a.block_m));
  row = ftl_add(b, ftl_add(b, f->origin, tiles_before), row);
  return ftl_attention_query_ref(&f->tile, f->t.d_q_sum, row, f->a.block_m, f->a.padded_head_dim);
}

// Of dQ's sum the rows of a head's tiles with queries from `first` on; of packed sequences, without the room between.
static int64_t num_added_rows(const ftl_backward *f, int64_t first) {
  if (f->packed == NULL) return f->num_sum_rows - first / f->a.block_m * f->a.block_m;
  int64_t rows = 0;
  for (int64_t i = 0; i < f->packed->num_sequences; i++)
    rows += ftl_divide_up(f->packed->lengths[i], f->a.block_m) * f->a.block_m;
  return rows;
}

void ftl_backward_needs_queries(const ftl_backward *f) {
  const ftl_attention *a = &f->a;
  const ftl_backward_tensors *t = &f->t;
  int64_t first = ftl_attention_first_seeing_query(a), heads = a->batch * a->heads,
          rows = heads * (a->seqlen_q - first);
  ftl_builder_needs(f->b, t->q, rows * a->head_dim);
  ftl_builder_needs(f->b, t->d_o, rows * a->head_dim_v);
  ftl_builder_needs(f->b, t->lse, rows);
  ftl_builder_needs(f->b, t->delta, rows);
  if (t->d_q_sum >= 0) ftl_builder_needs(f->b, t->d_q_sum, heads * num_added_rows(f, first) * a->padded_head_dim);
}

// Whether some query of a tile that is walked may see no key at all.
static bool may_see_none(const ftl_backward *f) {
  return ftl_attention_may_see_none(&f->a) || (f->lists != NULL && ftl_attention_band_of(&f->a).has_right);
}

// Query tiles of the CTA's sequence.
static ftl_expr num_steps(const ftl_backward *f) {
  ftl_builder *b = f->b;
  if (f->packed == NULL) return ftl_const(b, f->a.num_m_tiles);
  ftl_expr up = ftl_const(b, f->a.block_m - 1);
  return ftl_div(b, ftl_add(b, f->lengths.seqlen_kv, up), ftl_const(b, f->a.block_m));
}

// Steps up to the one that holds query `query`, or (rounded down) before it; of those that there are.
static ftl_expr steps_before(const ftl_backward *f, ftl_expr query, bool rounded_up) {
  ftl_builder *b = f->b;
  ftl_expr up = ftl_const(b, rounded_up ? f->a.block_m - 1 : 0);
  ftl_expr steps = ftl_div(b, ftl_add(b, ftl_max(b, ftl_const(b, 0), query), up), ftl_const(b, f->a.block_m));
  return ftl_min(b, num_steps(f), steps);
}

// Query i sees key j from i = j - right to j - left.
ftl_query_steps ftl_backward_query_steps(const ftl_backward *f) {
  ftl_builder *b = f->b;
  ftl_attention_band band = ftl_attention_band_of(&f->a);
  ftl_expr first_key = f->tile.row, end = num_steps(f), others = ftl_const(b, f->a.block_n - 1);
  ftl_query_steps steps = {ftl_const(b, 0), ftl_const(b, 0), end, end};
  if (band.has_right) {
    ftl_expr sees_first = ftl_sub(b, first_key, ftl_const(b, band.right));
    steps.first = steps_before(f, sees_first, false);
    steps.whole = steps_before(f, ftl_add(b, sees_first, others), true);
  }
  if (band.has_left) {
    ftl_expr loses_first = ftl_sub(b, first_key, ftl_const(b, band.left - 1));
    steps.end = ftl_max(b, steps.first, steps_before(f, ftl_add(b, loses_first, others), true));
    steps.whole = ftl_min(b, steps.end, steps.whole);
    steps.unmasked = ftl_max(b, steps.whole, steps_before(f, loses_first, false));
  }
  return steps;
}

// ---- P and dS ----

static void multiply(const ftl_backward *f, int32_t value, ftl_operand by) {
  ftl_binary(f->b, FTL_ELEM_MUL, value, value, by);
}

void ftl_backward_prepare_lse(const ftl_backward *f, int32_t lse) {
  if (may_see_none(f)) ftl_unary(f->b, FTL_ELEM_ZERO_IF_NEG_INF, lse, lse);
  multiply(f, lse, ftl_immediate(-log2_e));
}

void ftl_backward_exponentiate(const ftl_backward *f, int32_t scores, int32_t lse) {
  ftl_score_scaling scaling = ftl_score_scaling_of(&f->a);
  ftl_scale_scores(f->b, scaling, scores);
  ftl_elem(f->b, FTL_ELEM_FMA, scores, ftl_value_operand(scores), ftl_immediate(ftl_score_scaling_to_log2(scaling)),
           ftl_value_operand(lse));
  ftl_unary(f->b, FTL_ELEM_EXP2, scores, scores);
}

void ftl_backward_round_probs(const ftl_backward *f, int32_t rounded, int32_t probs) {
  if (f->a.dropout_p > 0)
    ftl_convert_positive(f->b, rounded, probs);
  else
    ftl_convert(f->b, rounded, probs);
}

void ftl_backward_differentiate(const ftl_backward *f, int32_t products, int32_t probs, int32_t delta) {
  ftl_binary(f->b, FTL_ELEM_SUB, products, products, ftl_value_operand(delta));
  // Where P was negated, -P delta is P (0 - delta).
  if (f->a.dropout_p > 0)
    ftl_elem(f->b, FTL_ELEM_SELECT, products, ftl_value_operand(probs), ftl_value_operand(products),
             ftl_value_operand(delta));
  multiply(f, products, ftl_value_operand(probs));
}

void ftl_backward_scale(const ftl_backward *f, int32_t sum, bool of_scores) {
  if (!of_scores && f->a.dropout_p == 0) return;
  multiply(f, sum, ftl_immediate((of_scores ? f->a.scale : 1.0F) * ftl_attention_dropout_scale(&f->a)));
}

// ---- rows ----

// Row-wise tiles of a head's columns: 16 bytes a thread at a time, as many threads a row as a head needs.
typedef struct row_tiles {
  ftl_value_layout layout;
  int32_t rows, columns;
} row_tiles;

static row_tiles row_tiles_of(const ftl_backward *f, int32_t columns) {
  int32_t vector = VECTOR_BYTES / ftl_dtype_bytes(f->a.dtype), threads = 1;
  while (threads * vector < columns && threads < FTL_WARP_LANES) threads *= 2;
  int32_t step = threads * vector;
  return (row_tiles){.layout = {threads, vector},
                     .rows = f->num_warps * FTL_WARP_LANES / threads * ROWS_PER_THREAD,
                     .columns = ftl_round_up32(columns, step)};
}

static int32_t tile_of(const ftl_backward *f, const row_tiles *tiles, const char *name, ftl_dtype dtype) {
  return ftl_builder_tile_by_rows(f->b, name, dtype, tiles->rows, tiles->columns, tiles->layout);
}

static ftl_tile_ref ref_of(const ftl_backward *f, int32_t tensor, const row_tiles *tiles, int32_t columns) {
  return ftl_attention_query_ref(&f->tile, tensor, f->tile.row, tiles->rows, columns);
}

// 16 bytes of a row a thread at a time, and as many rows at once as the CTA has threads for.
static void clear_dq_sum(ftl_backward *f, const row_tiles *tiles) {
  ftl_builder *b = f->b;
  int32_t columns = f->a.padded_head_dim, vector = VECTOR_BYTES / ftl_dtype_bytes(FTL_FP32), threads = FTL_WARP_LANES;
  while (columns % (threads * vector) != 0) threads /= 2;
  int32_t rows = f->num_warps * FTL_WARP_LANES / threads;
  if (rows > tiles->rows) rows = tiles->rows;
  int32_t zero = ftl_builder_tile_by_rows(b, "zero", FTL_FP32, rows, columns, (ftl_value_layout){threads, vector});
  ftl_fill(b, zero, 0.0f);
  for (int32_t row = 0; row < tiles->rows; row += rows)
    ftl_store(
        b, ftl_attention_query_ref(&f->tile, f->t.d_q_sum, ftl_add(b, f->tile.row, ftl_const(b, row)), rows, columns),
        zero, -1);
}

void ftl_backward_write_delta(ftl_backward *f) {
  ftl_builder *b = f->b;
  ftl_builder_role(b, "main", f->num_warps, 0);
  row_tiles tiles = row_tiles_of(f, f->a.head_dim_v);
  bool clears = f->t.d_q_sum >= 0;
  ftl_backward_grid(f, f->a.heads, clears ? f->num_sum_rows : f->a.seqlen_q, tiles.rows);
  int32_t o16 = tile_of(f, &tiles, "o", f->a.dtype), o = tile_of(f, &tiles, "o32", FTL_FP32);
  int32_t do16 = tile_of(f, &tiles, "do", f->a.dtype), d_o = tile_of(f, &tiles, "do32", FTL_FP32);
  int32_t delta = ftl_builder_rows_by_rows(b, "delta", tiles.rows, tiles.layout);
  ftl_load_tile(b, o16, ref_of(f, f->t.o, &tiles, f->a.head_dim_v));
  ftl_load_tile(b, do16, ref_of(f, f->t.d_o, &tiles, f->a.head_dim_v));
  ftl_convert(b, o, o16);
  ftl_convert(b, d_o, do16);
  ftl_elem(b, FTL_ELEM_MUL, o, ftl_value_operand(o), ftl_value_operand(d_o), ftl_immediate(0));
  ftl_fill(b, delta, 0.0f);
  ftl_reduce_rows(b, FTL_ELEM_ADD, delta, o);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, delta);
  if (f->a.dropout_p > 0) ftl_binary(b, FTL_ELEM_MUL, delta, delta, ftl_immediate((float)(1 - f->a.dropout_p)));
  ftl_store_rows(b, ref_of(f, f->t.delta, &tiles, 1), delta);
  if (clears) clear_dq_sum(f, &tiles);
}

typedef struct head_sum {
  row_tiles tiles;
  int32_t part16, part, sum;
} head_sum;

static void add_up(const ftl_backward *f, const head_sum *s, int32_t from, int32_t to, int32_t columns) {
  ftl_builder *b = f->b;
  ftl_expr group = ftl_const(b, f->a.heads / f->a.kv_heads);
  ftl_fill(b, s->sum, 0.0f);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), group));
  ftl_tile_ref part = ref_of(f, from, &s->tiles, columns);
  part.head = ftl_add(b, ftl_mul(b, f->tile.head, group), i);
  ftl_load_tile(b, s->part16, part);
  ftl_convert(b, s->part, s->part16);
  ftl_elem(b, FTL_ELEM_ADD, s->sum, ftl_value_operand(s->sum), ftl_value_operand(s->part), ftl_immediate(0));
  ftl_end_loop(b);
  ftl_store(b, ref_of(f, to, &s->tiles, columns), s->sum, -1);
}

void ftl_backward_add_up_heads(ftl_backward *f) {
  ftl_builder_role(f->b, "main", f->num_warps, 0);
  int32_t columns = f->a.head_dim, columns_v = f->a.head_dim_v;
  head_sum s = {.tiles = row_tiles_of(f, columns > columns_v ? columns : columns_v)};
  ftl_backward_grid(f, f->a.kv_heads, f->a.seqlen_kv, s.tiles.rows);
  s.part16 = tile_of(f, &s.tiles, "part", f->a.dtype);
  s.part = tile_of(f, &s.tiles, "part32", FTL_FP32);
  s.sum = tile_of(f, &s.tiles, "sum", FTL_FP32);
  add_up(f, &s, f->t.d_k_of_heads, f->t.d_k, columns);
  add_up(f, &s, f->t.d_v_of_heads, f->t.d_v, columns_v);
}
