// Unfused attention: S = scale * Q K^T, one tile of S a CTA; with padding_mask S += mask, a CTA a row; softmax of the
// rows of S in place, a CTA a row; with dropout_p P with elements dropped, and which, a CTA a row; O = P V, block_m
// rows a CTA. What FlashAttention saves is the traffic of S and P. Source: T. Dao et al., "FlashAttention",
// arXiv:2205.14135, algorithm 0. Mirrors kernels/attention/standard_mma.h: under `causal` tiles above the diagonal are
// neither computed nor read.
#include "workloads/standard_attention.h"

#include "base/integer.h"
#include "workloads/row_softmax.h"

enum { SOFTMAX_WARPS = 4 };

typedef struct standard {
  const ftl_spec *spec;
  ftl_builder *b;
  ftl_attention a;
  ftl_attention_tensors t;  // the same in every launch
  int32_t s;
  int32_t padding;        // with padding_mask
  int32_t dropped, kept;  // with dropout; without, `dropped` is s
} standard;

// ---- what the launches share ----

ftl_tensor_shape ftl_standard_scores_shape(const ftl_attention *a) {
  int64_t stride = ftl_divide_up(a->seqlen_kv, FTL_ROW_VECTOR_COLUMNS) * FTL_ROW_VECTOR_COLUMNS;
  return (ftl_tensor_shape){.num_batches = a->batch,
                            .num_heads = a->heads,
                            .num_rows = a->seqlen_q,
                            .num_columns = stride,
                            .batch_stride = a->heads * a->seqlen_q * stride,
                            .head_stride = a->seqlen_q * stride,
                            .row_stride = stride};
}

static bool has_padding(const ftl_spec *spec) { return spec->value[FTL_PARAM_padding_mask] != 0; }
static bool has_dropout(const ftl_spec *spec) { return spec->value[FTL_PARAM_dropout_p] > 0; }

// All tensors in every launch, so that they have the same addresses.
static void declare_tensors(standard *f) {
  f->t = ftl_attention_declare(f->b, f->spec, &f->a);
  ftl_tensor_shape scores = ftl_standard_scores_shape(&f->a);
  f->s = f->dropped = ftl_builder_tensor(f->b, "s", f->a.dtype, FTL_TENSOR_TEMP, scores);
  ftl_attention_needs_pairs(f->b, &f->a, f->s);
  if (has_padding(f->spec))
    f->padding = ftl_builder_tensor(f->b, "padding", f->a.dtype, FTL_TENSOR_INPUT,
                                    ftl_contiguous(f->a.batch, 1, 1, scores.num_columns));
  if (!has_dropout(f->spec)) return;
  f->dropped = ftl_builder_tensor(f->b, "dropped", f->a.dtype, FTL_TENSOR_TEMP, scores);
  f->kept = ftl_builder_tensor(f->b, "kept", FTL_INT8, FTL_TENSOR_OUTPUT, scores);
  ftl_attention_needs_pairs(f->b, &f->a, f->dropped);
  ftl_attention_needs_pairs(f->b, &f->a, f->kept);
}

int32_t ftl_standard_tile_columns(const ftl_attention *a) {
  return (int32_t)ftl_smaller(a->block_n, ftl_standard_scores_shape(a).num_columns);
}

// ---- S = scale * Q K^T ----
ftl_expr ftl_standard_is_seen(ftl_builder *b, const ftl_attention *a, const ftl_key_range *keys, ftl_expr n) {
  ftl_expr seen = ftl_min(b, ftl_const(b, 1), ftl_sub(b, keys->end, n));
  if (a->window == 0) return seen;
  return ftl_min(b, seen, ftl_add(b, ftl_sub(b, n, keys->first), ftl_const(b, 1)));
}

static void build_scores(const standard *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_expr num_n = ftl_const(b, ftl_divide_up(a->seqlen_kv, a->block_n)), n = ftl_mod(b, ftl_cta(b), num_n);
  ftl_attention_tile tile = ftl_attention_tile_at(b, f->spec, a, ftl_div(b, ftl_cta(b), num_n));
  ftl_expr column = ftl_mul(b, n, ftl_const(b, a->block_n));
  ftl_key_range keys = ftl_attention_keys(b, a, tile.row);
  int32_t role = ftl_builder_role(b, "main", (int32_t)f->spec->value[FTL_PARAM_num_warps], 0);
  int32_t ring_q = ftl_builder_ring(b, "q", a->dtype, a->block_m, a->padded_head_dim, 1, role, 1 << role);
  int32_t ring_k = ftl_builder_ring(b, "k", a->dtype, a->block_n, a->padded_head_dim, 1, role, 1 << role);
  int32_t scores = ftl_builder_tile(b, "s", FTL_FP32, a->block_m, a->block_n);
  // a CTA beyond the diagonal, or before the window, has nothing to do
  bool some_unseen = ftl_attention_band_of(a).has_right;
  if (some_unseen) ftl_loop(b, ftl_const(b, 0), ftl_standard_is_seen(b, a, &keys, n));
  ftl_fill_stage(f->b, ring_q, ftl_attention_query_ref(&tile, f->t.q, tile.row, a->block_m, a->head_dim));
  ftl_fill_stage(f->b, ring_k, ftl_attention_key_ref(&tile, f->t.k, column, a->block_n, a->head_dim));
  ftl_fill(b, scores, 0);
  ftl_wait(b, ring_q);
  ftl_wait(b, ring_k);
  ftl_mma_shared(b, scores, ring_q, ring_k, true);
  ftl_release(b, ring_q);
  ftl_release(b, ring_k);
  ftl_elem(b, FTL_ELEM_MUL, scores, ftl_value_operand(scores), ftl_immediate(a->scale), ftl_immediate(0));
  ftl_tile_ref to = ftl_attention_query_ref(&tile, f->s, tile.row, a->block_m, ftl_standard_tile_columns(&f->a));
  to.column = column;
  ftl_store(b, to, scores, -1);
  if (some_unseen) ftl_end_loop(b);
  ftl_builder_grid(b, a->batch * a->heads * a->num_m_tiles * ftl_divide_up(a->seqlen_kv, a->block_n), false, false);
  ftl_builder_flops(b, ftl_attention_forward_flops(a) / 2);
}

// ---- softmax of the rows of S, in place ----

// A row's visible columns, and the tiles that hold them: P V reads whole tiles.
static void set_visible(const standard *f, ftl_row_softmax *s) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_attention_band band = ftl_attention_band_of(a);
  ftl_expr seqlen_kv = ftl_const(b, a->seqlen_kv), zero = ftl_const(b, 0);
  s->visible = seqlen_kv;
  s->end = ftl_const(b, s->columns);
  s->may_see_none = has_padding(f->spec);
  if (!band.has_right) return;
  s->visible = ftl_min(b, seqlen_kv, ftl_max(b, zero, ftl_add(b, s->row, ftl_const(b, band.right + 1))));
  ftl_expr block_m = ftl_const(b, a->block_m), block_n = ftl_const(b, a->block_n);
  ftl_key_range keys = ftl_attention_keys(b, a, ftl_mul(b, ftl_div(b, s->row, block_m), block_m));
  s->end = ftl_min(b, s->end, ftl_mul(b, keys.end, block_n));
  s->may_see_none |= ftl_attention_may_see_none(a);
  if (!band.has_left) return;
  s->first_visible = ftl_max(b, zero, ftl_add(b, s->row, ftl_const(b, band.left)));
  s->begin = ftl_mul(b, keys.first, block_n);
}

static void build_softmax(const standard *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_expr rows = ftl_const(b, a->seqlen_q), heads = ftl_const(b, a->heads), head = ftl_div(b, ftl_cta(b), rows);
  ftl_row_softmax s = {.online = f->spec->value[FTL_PARAM_softmax] == FTL_SOFTMAX_ONLINE,
                       .dtype = a->dtype,
                       .from = f->s,
                       .to = f->s,
                       .lse = f->t.lse,
                       .batch = ftl_div(b, head, heads),
                       .head = ftl_mod(b, head, heads),
                       .row = ftl_mod(b, ftl_cta(b), rows),
                       .rows = 1,
                       .num_warps = SOFTMAX_WARPS,
                       .unroll = 1,
                       .columns = ftl_standard_scores_shape(a).num_columns};
  set_visible(f, &s);
  ftl_row_softmax_build(b, &s);
  ftl_builder_grid(b, a->batch * a->heads * a->seqlen_q, false, false);
}

// ---- O = P V ----
typedef struct outputs {
  const standard *f;
  int32_t ring_p, ring_v;
  ftl_attention_tile tile;
  ftl_key_range keys;
} outputs;

// P and V of key tile j; empty stages past the last.
static void load_tiles(const outputs *p, ftl_expr j) {
  const standard *f = p->f;
  ftl_builder *b = f->b;
  ftl_expr key = ftl_mul(b, j, ftl_const(b, f->a.block_n)), exists = ftl_sub(b, p->keys.end, j);
  ftl_tile_ref of_p =
      ftl_attention_query_ref(&p->tile, f->dropped, p->tile.row, f->a.block_m, ftl_standard_tile_columns(&f->a));
  of_p.column = key;
  of_p.present = exists;
  ftl_tile_ref of_v = ftl_attention_key_ref(&p->tile, f->t.v, key, f->a.block_n, f->a.head_dim);
  of_v.present = exists;
  ftl_acquire(b, p->ring_p);
  ftl_acquire(b, p->ring_v);
  ftl_load(b, p->ring_p, of_p);
  ftl_load(b, p->ring_v, of_v);
  ftl_commit(b, p->ring_p);
  ftl_commit(b, p->ring_v);
}

static void build_outputs(const standard *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  int32_t num_stages = (int32_t)f->spec->value[FTL_PARAM_num_stages];
  int32_t role = ftl_builder_role(b, "main", (int32_t)f->spec->value[FTL_PARAM_num_warps], 0);
  outputs p = {.f = f, .tile = ftl_attention_tile_of(b, f->spec, a)};
  p.keys = ftl_attention_keys(b, a, p.tile.row);
  p.ring_p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, num_stages, role, 1 << role);
  p.ring_v = ftl_builder_ring(b, "v", a->dtype, a->block_n, a->padded_head_dim, num_stages, role, 1 << role);
  int32_t output = ftl_builder_tile(b, "o", FTL_FP32, a->block_m, a->padded_head_dim);
  ftl_fill(b, output, 0);
  for (int32_t j = 0; j < num_stages - 1; j++) load_tiles(&p, ftl_add(b, p.keys.first, ftl_const(b, j)));
  ftl_expr j = ftl_loop_value(b, ftl_loop(b, p.keys.first, p.keys.end));
  load_tiles(&p, ftl_add(b, j, ftl_const(b, num_stages - 1)));
  ftl_wait(b, p.ring_p);
  ftl_wait(b, p.ring_v);
  ftl_mma_shared(b, output, p.ring_p, p.ring_v, false);
  ftl_release(b, p.ring_p);
  ftl_release(b, p.ring_v);
  ftl_end_loop(b);
  ftl_store(b, ftl_attention_query_ref(&p.tile, f->t.o, p.tile.row, a->block_m, a->head_dim), output, -1);
  ftl_builder_grid(b, a->batch * a->heads * a->num_m_tiles, false, false);
  ftl_builder_flops(b, ftl_attention_forward_flops(a) / 2);
}

// ---- the workload ----
static void build_padding(const standard *f) { ftl_standard_write_padding(f->b, &f->a, f->s, f->padding); }
static void build_dropout(const standard *f) { ftl_standard_write_dropout(f->b, &f->a, f->s, f->dropped, f->kept); }
static bool always(const ftl_spec *spec) {
  (void)spec;
  return true;
}

typedef struct launch {
  const char *name;
  bool (*is_wanted)(const ftl_spec *spec);
  void (*build)(const standard *f);
} launch;

static ftl_status build_launch(const ftl_spec *spec, const launch *l, ftl_tile_program **out, ftl_error *error) {
  standard f = {.spec = spec, .a = ftl_attention_of(spec)};
  ftl_status status = ftl_builder_create(&f.b, l->name, error);
  if (status != FTL_OK) return status;
  declare_tensors(&f);
  l->build(&f);
  status = ftl_builder_finish(f.b, out, error);
  ftl_builder_destroy(f.b);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  static const launch all[] = {{"scores", always, build_scores},
                               {"add_padding", has_padding, build_padding},
                               {"softmax_rows", always, build_softmax},
                               {"dropout", has_dropout, build_dropout},
                               {"outputs", always, build_outputs}};
  if (spec->value[FTL_PARAM_pass] == FTL_PASS_BWD)
    return ftl_standard_build_backward(spec, launches, num_launches, error);
  *num_launches = 0;
  ftl_status status = ftl_attention_check_warps(spec, error);
  for (size_t i = 0; status == FTL_OK && i < sizeof all / sizeof *all; i++) {
    if (!all[i].is_wanted(spec)) continue;
    status = build_launch(spec, &all[i], &launches[*num_launches], error);
    if (status == FTL_OK) ++*num_launches;
  }
  return status;
}

const ftl_workload ftl_workload_standard_attention = {
    .name = "standard_attention",
    .doc =
        "unfused attention: scores to memory, softmax of their rows in place, products with V; backward from stored P",
    .accepts = FTL_TAKES(pass) | FTL_TAKES(batch) | FTL_TAKES(heads) | FTL_TAKES(kv_heads) | FTL_TAKES(seqlen_q) |
               FTL_TAKES(seqlen_kv) | FTL_TAKES(head_dim) | FTL_TAKES(dtype) | FTL_TAKES(causal) | FTL_TAKES(window) |
               FTL_TAKES(softmax_scale) | FTL_TAKES(padding_mask) | FTL_TAKES(dropout_p) | FTL_TAKES(block_m) |
               FTL_TAKES(block_n) | FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | FTL_TAKES(softmax) |
               FTL_TAKES(tile_order) | FTL_TAKES(tile_reverse) | FTL_TAKES(copy) | FTL_TAKES(mma) | FTL_TAKES(layout) |
               FTL_TAKES(code) | FTL_TAKES(max_registers) | FTL_TAKES(conditions) | FTL_TAKES(cache) |
               FTL_TAKES(clock_mhz) | FTL_TAKES(detail),
    .build = build,
};
