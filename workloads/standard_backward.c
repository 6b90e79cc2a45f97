// Unfused attention, backward, from the P that the forward pass stored: every product and the gradient of the softmax
// are launches of their own. What recomputing P saves is this traffic of N x N matrices.
// Source: T. Dao et al., "FlashAttention", arXiv:2205.14135, appendix B.2, algorithm 3.
//
//   1. dV = P^T dO            a CTA keeps block_n keys and walks the queries that see them, block_m a step; with
//                             dropout P is that of which elements were dropped
//   2. dP = dO V^T            a CTA a tile of block_m x block_n; tiles that no query sees are left alone
//      With dropout: dP = 0 where P was dropped, else scaled, in place, a CTA a row
//   3. dS = P (dP - rowsum(P dP)), in place of dP, a CTA a row
//   4. dQ = scale dS K        a CTA keeps block_m queries and walks the keys that they see, block_n a step
//   5. dK = scale dS^T Q      as 1
//   6. Only with fewer key/value heads than heads: dK and dV of a key/value head are added up over its query heads.
//
// elementwise=eager_...: 2 is followed by dP = P dP, 3 is dS = dP - P rowsum(dP) of it; the products' results are
// scaled and gathered in one tensor by launches of their own; where masks were filled into a view of S
// (masked_fill_, eager_einsum), S's gradient goes through copies of it. As watched,
// kernels/measurements/eager_timeline.csv.
//
// elementwise=fused: 3 takes the gradient of dropout and scales dS. elementwise=separate: dS = scale dS, in place, a
// CTA a row. In both the products are of whole matrices. A mask has no gradient: P is 0 where it hides, in every tile
// that the forward pass has written.
#include "base/integer.h"
#include "workloads/backward.h"
#include "workloads/staged_store.h"
#include "workloads/standard_attention.h"

typedef struct unfused {
  ftl_backward f;
  int32_t p, d_p;         // tensors; dS takes the place of dP
  int32_t dropped, kept;  // with dropout; without, `dropped` is p
  // Of eager PyTorch, whose products write tensors of their own.
  int32_t gathered_d_q, slice;
  float d_q_scale, d_k_scale;  // of the products, where neither dS nor the result is scaled by a launch
} unfused;

// ---- products that walk a row or a column of tiles of an N x N matrix ----

typedef struct walk {
  int32_t matrix, other, result;    // tensors
  ftl_expr other_head;              // of the one that is walked beside the matrix
  int32_t kept_rows, step_rows;     // of the result; of a step
  int32_t columns, padded_columns;  // of the other tensor and of the result
  bool transposed;                  // the matrix's columns are kept, its rows walked
  ftl_expr first, end;              // steps
  float scale;                      // of the result
  int32_t ring_matrix, ring_other;
} walk;

static ftl_tile_ref matrix_ref(const unfused *u, const walk *w, ftl_expr position) {
  const ftl_attention *a = &u->f.a;
  ftl_expr row = w->transposed ? position : u->f.tile.row, column = w->transposed ? u->f.tile.row : position;
  ftl_tile_ref ref = ftl_attention_query_ref(&u->f.tile, w->matrix, row, a->block_m, ftl_standard_tile_columns(a));
  ref.column = column;
  return ref;
}

// The matrix's and the other tensor's tiles of step j; empty stages past the last.
static void load_step(const unfused *u, const walk *w, ftl_expr j) {
  ftl_builder *b = u->f.b;
  ftl_expr position = ftl_mul(b, j, ftl_const(b, w->step_rows));
  ftl_tile_ref of_matrix = matrix_ref(u, w, position);
  ftl_tile_ref of_other = ftl_attention_query_ref(&u->f.tile, w->other, position, w->step_rows, w->columns);
  of_other.head = w->other_head;
  of_matrix.present = of_other.present = ftl_sub(b, w->end, j);
  ftl_acquire(b, w->ring_matrix);
  ftl_acquire(b, w->ring_other);
  ftl_load(b, w->ring_matrix, of_matrix);
  ftl_load(b, w->ring_other, of_other);
  ftl_commit(b, w->ring_matrix);
  ftl_commit(b, w->ring_other);
}

static void multiply_walk(const unfused *u, walk *w) {
  ftl_builder *b = u->f.b;
  const ftl_attention *a = &u->f.a;
  int32_t role = ftl_builder_role(b, "main", u->f.num_warps, 0), ahead = u->f.num_stages - 1;
  w->ring_matrix = ftl_builder_ring(b, "matrix", a->dtype, a->block_m, a->block_n, u->f.num_stages, role, 1 << role);
  w->ring_other =
      ftl_builder_ring(b, "other", a->dtype, w->step_rows, w->padded_columns, u->f.num_stages, role, 1 << role);
  int32_t result = ftl_builder_tile(b, "result", FTL_FP32, w->kept_rows, w->padded_columns);
  ftl_fill(b, result, 0);
  for (int32_t j = 0; j < ahead; j++) load_step(u, w, ftl_add(b, w->first, ftl_const(b, j)));
  ftl_expr j = ftl_loop_value(b, ftl_loop(b, w->first, w->end));
  load_step(u, w, ftl_add(b, j, ftl_const(b, ahead)));
  ftl_wait(b, w->ring_matrix);
  ftl_wait(b, w->ring_other);
  ftl_mma_shared(b, result, w->ring_matrix, w->ring_other, false);
  if (w->transposed) ftl_transposed_a(b);
  ftl_release(b, w->ring_matrix);
  ftl_release(b, w->ring_other);
  ftl_end_loop(b);
  if (w->scale != 1) ftl_binary(b, FTL_ELEM_MUL, result, result, ftl_immediate(w->scale));
  int64_t room = u->f.num_stages * ((int64_t)a->block_m * a->block_n + (int64_t)w->step_rows * w->padded_columns);
  ftl_tile_ref to = ftl_attention_query_ref(&u->f.tile, w->result, u->f.tile.row, w->kept_rows, w->columns);
  ftl_staged_store(b, to, result, ftl_standard_staging(u->f.spec, b, w->kept_rows, w->padded_columns, room));
}

// matrix^T other, for the keys of a CTA.
static void multiply_columns(unfused *u, walk w) {
  ftl_backward_grid(&u->f, u->f.a.heads, u->f.a.seqlen_kv, u->f.a.block_n);
  ftl_query_steps steps = ftl_backward_query_steps(&u->f);
  w.other_head = u->f.tile.head;
  w.kept_rows = u->f.a.block_n;
  w.step_rows = u->f.a.block_m;
  w.transposed = true;
  w.first = steps.first;
  w.end = steps.end;
  multiply_walk(u, &w);
}

static void write_d_v(unfused *u) {
  multiply_columns(u, (walk){.matrix = u->dropped,
                             .other = u->f.t.d_o,
                             .result = u->f.t.d_v_of_heads,
                             .columns = u->f.a.head_dim_v,
                             .padded_columns = u->f.a.padded_head_dim_v,
                             .scale = 1});
}

static void write_d_k(unfused *u) {
  multiply_columns(u, (walk){.matrix = u->d_p,
                             .other = u->f.t.q,
                             .result = u->f.t.d_k_of_heads,
                             .columns = u->f.a.head_dim,
                             .padded_columns = u->f.a.padded_head_dim,
                             .scale = u->d_k_scale});
}

static void write_d_q(unfused *u) {
  ftl_backward_grid(&u->f, u->f.a.heads, u->f.a.seqlen_q, u->f.a.block_m);
  ftl_key_range keys = ftl_attention_keys(u->f.b, &u->f.a, u->f.tile.row);
  walk w = {.matrix = u->d_p,
            .other = u->f.t.k,
            .result = u->f.t.d_q,
            .other_head = u->f.tile.kv_head,
            .kept_rows = u->f.a.block_m,
            .step_rows = u->f.a.block_n,
            .columns = u->f.a.head_dim,
            .padded_columns = u->f.a.padded_head_dim,
            .first = keys.first,
            .end = keys.end,
            .scale = u->d_q_scale};
  multiply_walk(u, &w);
}

// ---- dP = dO V^T ----
static void write_d_p(unfused *u) {
  ftl_builder *b = u->f.b;
  const ftl_attention *a = &u->f.a;
  int64_t num_n_tiles = ftl_divide_up(a->seqlen_kv, a->block_n);
  ftl_expr num_n = ftl_const(b, num_n_tiles), n = ftl_mod(b, ftl_cta(b), num_n);
  ftl_attention_tile tile = ftl_attention_tile_at(b, u->f.spec, a, ftl_div(b, ftl_cta(b), num_n));
  ftl_expr key = ftl_mul(b, n, ftl_const(b, a->block_n));
  ftl_key_range keys = ftl_attention_keys(b, a, tile.row);
  int32_t role = ftl_builder_role(b, "main", u->f.num_warps, 0);
  int32_t d_o = ftl_builder_ring(b, "do", a->dtype, a->block_m, a->padded_head_dim_v, 1, role, 1 << role);
  int32_t v = ftl_builder_ring(b, "v", a->dtype, a->block_n, a->padded_head_dim_v, 1, role, 1 << role);
  int32_t products = ftl_builder_tile(b, "dp", FTL_FP32, a->block_m, a->block_n);
  bool some_unseen = ftl_attention_band_of(a).has_right;
  if (some_unseen) ftl_loop_once(b, ftl_const(b, 0), ftl_standard_is_seen(b, a, &keys, n));
  ftl_fill_stage(b, d_o, ftl_attention_query_ref(&tile, u->f.t.d_o, tile.row, a->block_m, a->head_dim_v));
  ftl_fill_stage(b, v, ftl_attention_key_ref(&tile, u->f.t.v, key, a->block_n, a->head_dim_v));
  ftl_fill(b, products, 0);
  ftl_wait(b, d_o);
  ftl_wait(b, v);
  ftl_mma_shared(b, products, d_o, v, true);
  ftl_release(b, d_o);
  ftl_release(b, v);
  int64_t room = (int64_t)(a->block_m + a->block_n) * a->padded_head_dim_v;
  ftl_tile_ref to = ftl_attention_query_ref(&tile, u->d_p, tile.row, a->block_m, ftl_standard_tile_columns(a));
  to.column = key;
  ftl_staged_store(b, to, products, ftl_standard_staging(u->f.spec, b, a->block_m, a->block_n, room));
  if (some_unseen) ftl_end_loop(b);
  ftl_builder_grid(b, a->batch * a->heads * a->num_m_tiles * num_n_tiles, false, FTL_TILES_BY_STRIDE);
}

// ---- what is done to dP and dS ----

static void write_d_s(unfused *u) {
  bool fused = ftl_standard_is_fused(u->f.spec);
  ftl_standard_gradient g = {.p = u->p,
                             .d_p = u->d_p,
                             .kept = fused && u->f.a.dropout_p > 0 ? u->kept : -1,
                             .scale = fused ? u->f.a.scale : 1};
  ftl_standard_write_d_scores(u->f.b, &u->f.a, &g);
}

static void scale_d_s(unfused *u) { ftl_standard_write_scale(u->f.b, &u->f.a, u->d_p, u->f.a.scale); }
static void drop_d_p(unfused *u) { ftl_standard_write_dropout_gradient(u->f.b, &u->f.a, u->d_p, u->kept); }
static void add_up_heads(unfused *u) { ftl_backward_add_up_heads(&u->f); }

// ---- eager PyTorch ----

static bool is_baddbmm(const ftl_spec *spec) { return ftl_standard_is_eager(spec) && !ftl_standard_is_einsum(spec); }
static bool is_not_eager(const ftl_spec *spec) { return !ftl_standard_is_eager(spec); }
static bool is_filled(const ftl_spec *spec) { return ftl_standard_is_einsum(spec) && ftl_standard_num_masks(spec) > 0; }
static int num_masks_filled(const ftl_spec *spec) { return is_filled(spec) ? ftl_standard_num_masks(spec) : 0; }
// Of each mask the gradient of a copy into a view (CopySlices): four copies; and one for the view itself.
static int num_slices(const ftl_spec *spec) { return is_filled(spec) ? 4 * num_masks_filled(spec) + 1 : 0; }

static void weigh_d_p(unfused *u) { ftl_standard_write_product(u->f.b, &u->f.a, u->d_p, u->p); }
static void write_held_d_s(unfused *u) { ftl_standard_write_held_gradient(u->f.b, &u->f.a, u->d_p, u->p); }
static void clear_slice(unfused *u) { ftl_standard_write_fill(u->f.b, &u->f.a, u->slice); }
static void copy_slice(unfused *u) {
  ftl_standard_rows rows = ftl_standard_rows_of(u->f.b, &u->f.a);
  ftl_standard_write_copy(&rows, u->d_p, u->slice);
}
// dS = 0 where it was hidden, and is 0: a pass over it.
static void fill_slice(unfused *u) {
  ftl_standard_rows rows = ftl_standard_rows_by_elements(u->f.b, &u->f.a, FTL_EAGER_FILL_INSTS);
  ftl_standard_write_copy(&rows, u->slice, u->slice);
}

static void scale_tokens(unfused *u, int32_t tensor, int64_t num_tokens) {
  ftl_standard_write_tokens(
      u->f.b, &u->f.a,
      &(ftl_standard_tokens){.from = {tensor}, .to = {tensor, -1}, .num_tokens = num_tokens, .scale = u->f.a.scale});
}
static void scale_d_q(unfused *u) { scale_tokens(u, u->f.t.d_q, u->f.a.seqlen_q); }
static void scale_d_k(unfused *u) { scale_tokens(u, u->f.t.d_k_of_heads, u->f.a.seqlen_kv); }

// In one launch where there are as many queries as keys, as they are views of one tensor; else dQ apart.
static void gather(unfused *u) {
  ftl_standard_tokens tokens = {.from = {u->f.t.d_k_of_heads, u->f.t.d_v_of_heads, u->f.t.d_q},
                                .to = {u->f.t.d_k, u->f.t.d_v, u->gathered_d_q},
                                .num_tokens = u->f.a.seqlen_kv,
                                .scale = 1,
                                .index_insts = FTL_EAGER_GATHER_INSTS};
  if (u->f.a.seqlen_q != u->f.a.seqlen_kv) tokens.to[2] = -1;
  ftl_standard_write_tokens(u->f.b, &u->f.a, &tokens);
}
static void gather_d_q(unfused *u) {
  ftl_standard_write_tokens(u->f.b, &u->f.a,
                            &(ftl_standard_tokens){.from = {u->f.t.d_q},
                                                   .to = {u->gathered_d_q, -1},
                                                   .num_tokens = u->f.a.seqlen_q,
                                                   .scale = 1,
                                                   .index_insts = FTL_EAGER_GATHER_INSTS});
}
static bool has_d_q_apart(const ftl_spec *spec) {
  return ftl_standard_is_eager(spec) && spec->value[FTL_PARAM_seqlen_q] != spec->value[FTL_PARAM_seqlen_kv];
}

// What the products write, heads before tokens.
static void declare_eager(unfused *u) {
  const ftl_attention *a = &u->f.a;
  ftl_builder *b = u->f.b;
  ftl_tensor_shape queries = ftl_contiguous(a->batch, a->heads, a->seqlen_q, a->head_dim);
  ftl_tensor_shape keys = ftl_contiguous(a->batch, a->heads, a->seqlen_kv, a->head_dim);
  u->gathered_d_q = u->f.t.d_q;
  u->f.t.d_q = ftl_builder_tensor(b, "dq_rows", a->dtype, FTL_TENSOR_TEMP, queries);
  u->f.t.d_k_of_heads = ftl_builder_tensor(b, "dk_rows", a->dtype, FTL_TENSOR_TEMP, keys);
  u->f.t.d_v_of_heads = ftl_builder_tensor(b, "dv_rows", a->dtype, FTL_TENSOR_TEMP, keys);
  u->slice = ftl_builder_tensor(b, "slice", a->dtype, FTL_TENSOR_TEMP, ftl_standard_scores_shape(a));
}

// ---- the launches ----

// The warps share the rows that a CTA keeps: queries in launches 2 and 4, keys in 1 and 5.
static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  int64_t block_n = spec->value[FTL_PARAM_block_n], num_warps = spec->value[FTL_PARAM_num_warps];
  ftl_status status = ftl_attention_check_warps(spec, error);
  if (status != FTL_OK || block_n % (16 * num_warps) == 0) return status;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_n=%lld num_warps=%lld: backward the warps share the keys of a tile too, each a multiple "
                       "of 16",
                       (long long)block_n, (long long)num_warps);
}

typedef struct launch {
  const char *name;
  void (*write)(unfused *u);
  int64_t num_of_keys, num_of_values;       // products of columns of Q and K, and of V
  bool (*is_wanted)(const ftl_spec *spec);  // NULL: always
  int (*times)(const ftl_spec *spec);       // so many in a row; NULL: once
} launch;

static bool has_groups(const ftl_spec *spec) { return spec->value[FTL_PARAM_heads] != spec->value[FTL_PARAM_kv_heads]; }

static ftl_status build_launch(const ftl_spec *spec, const launch *l, ftl_standard_flops flops, ftl_tile_program **out,
                               ftl_error *error) {
  ftl_builder *b;
  ftl_status status = ftl_builder_create(&b, l->name, error);
  if (status != FTL_OK) return status;
  unfused u = {.f = ftl_backward_of(b, spec, 0), .d_q_scale = 1, .d_k_scale = 1};
  u.f.a = ftl_standard_walked(spec);
  ftl_backward_needs_queries(&u.f);
  if (ftl_standard_skips_unseen(spec)) u.d_k_scale = u.f.a.scale;
  if (ftl_standard_skips_unseen(spec) || ftl_standard_is_einsum(spec)) u.d_q_scale = u.f.a.scale;
  ftl_tensor_shape shape = ftl_standard_scores_shape(&u.f.a);
  u.p = ftl_builder_tensor(b, "p", u.f.a.dtype, FTL_TENSOR_INPUT, shape);
  u.d_p = ftl_builder_tensor(b, "dp", u.f.a.dtype, FTL_TENSOR_TEMP, shape);
  ftl_attention_needs_pairs(b, &u.f.a, u.p);
  ftl_attention_needs_pairs(b, &u.f.a, u.d_p);
  u.dropped = u.p;
  if (u.f.a.dropout_p > 0) {
    u.dropped = ftl_builder_tensor(b, "dropped", u.f.a.dtype, FTL_TENSOR_INPUT, shape);
    u.kept = ftl_builder_tensor(b, "kept", FTL_INT8, FTL_TENSOR_INPUT, shape);
    ftl_attention_needs_pairs(b, &u.f.a, u.dropped);
    ftl_attention_needs_pairs(b, &u.f.a, u.kept);
  }
  if (ftl_standard_is_eager(spec)) declare_eager(&u);
  l->write(&u);
  ftl_builder_flops(b, l->num_of_keys * flops.of_keys + l->num_of_values * flops.of_values);
  status = ftl_builder_finish(b, out, error);
  ftl_builder_destroy(b);
  return status;
}

ftl_status ftl_standard_build_backward(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches,
                                       ftl_error *error) {
  static const launch all[] = {{"bwd_d_values", write_d_v, 0, 1, NULL, NULL},
                               {"bwd_d_probs", write_d_p, 0, 1, NULL, NULL},
                               {"bwd_dropout", drop_d_p, 0, 0, ftl_standard_is_dropped_apart, NULL},
                               {"bwd_weigh", weigh_d_p, 0, 0, ftl_standard_is_eager, NULL},
                               {"bwd_d_scores", write_d_s, 0, 0, is_not_eager, NULL},
                               {"bwd_d_scores", write_held_d_s, 0, 0, ftl_standard_is_eager, NULL},
                               {"bwd_clear", clear_slice, 0, 0, is_filled, NULL},
                               {"bwd_copy", copy_slice, 0, 0, is_filled, num_slices},
                               {"bwd_fill", fill_slice, 0, 0, is_filled, num_masks_filled},
                               {"bwd_scale", scale_d_s, 0, 0, ftl_standard_is_separate, NULL},
                               {"bwd_d_queries", write_d_q, 1, 0, NULL, NULL},
                               {"bwd_scale_dq", scale_d_q, 0, 0, is_baddbmm, NULL},
                               {"bwd_d_keys", write_d_k, 1, 0, NULL, NULL},
                               {"bwd_scale_dk", scale_d_k, 0, 0, ftl_standard_is_eager, NULL},
                               {"bwd_gather", gather, 0, 0, ftl_standard_is_eager, NULL},
                               {"bwd_gather_dq", gather_d_q, 0, 0, has_d_q_apart, NULL},
                               {"bwd_add_heads", add_up_heads, 0, 0, has_groups, NULL}};
  *num_launches = 0;
  ftl_standard_flops flops = {0, 0};
  ftl_status status = check_feasible(spec, error);
  if (status == FTL_OK) status = ftl_standard_product_flops(spec, &flops, error);
  for (size_t i = 0; status == FTL_OK && i < sizeof all / sizeof *all; i++) {
    if (all[i].is_wanted != NULL && !all[i].is_wanted(spec)) continue;
    int times = all[i].times == NULL ? 1 : all[i].times(spec);
    for (int j = 0; status == FTL_OK && j < times; j++) {
      status = build_launch(spec, &all[i], flops, &launches[*num_launches], error);
      if (status == FTL_OK) ++*num_launches;
    }
  }
  return status;
}
