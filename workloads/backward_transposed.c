// The algorithm is T. Dao, arXiv:2307.08691, algorithm 2. A step, for block_m queries against the block_n keys of the
// CTA, of which each warp has its own:
//   S^T = K Q^T, P^T = exp(scale S^T - LSE), dP^T = V dO^T, dS^T = P^T (dP^T - delta), dV += P^T dO, dK += dS^T Q,
// P^T and dS^T as they leave the products before; dS^T goes to shared memory too, where all warps read it for
//   dQ's sum += dS K (atomics).
// Two barriers a step: all that it reads has come, dS has. So three authors who knew the paper and not each other wrote
// it (kernels/independent/{mixed_b,mixed_c}/bwd.h, backward_a/main_kernels.h). Q, dO, LSE and delta come in one group,
// num_stages - 1 steps ahead; of one stage, behind the second barrier. With kv_group=loop the queries of all heads of a
// group are walked one head after another, by one CTA.
#include "workloads/backward_transposed.h"

#include "base/integer.h"
#include "tile/dropout.h"

enum { SLAB = 16 };  // rows and columns that a warp holds are multiples of it

// Of dQ's tile as many warps as it has slabs of rows have rows of their own; those that are left share them.
static int32_t warps_per_sum_row(int32_t num_warps, int32_t block_m) {
  int32_t down = ftl_smaller32(num_warps, block_m / SLAB);
  while (down > 0 && (num_warps % down != 0 || block_m % (SLAB * down) != 0)) down--;
  return down > 0 ? num_warps / down : 0;
}

static bool divides_sum(const int64_t *v) {
  int32_t across = warps_per_sum_row((int32_t)v[FTL_PARAM_num_warps], (int32_t)v[FTL_PARAM_block_m]);
  return across > 0 && ftl_backward_padded_columns(v[FTL_PARAM_head_dim]) % (SLAB * across) == 0;
}

static bool divides_keys(const int64_t *v) { return v[FTL_PARAM_block_n] % (SLAB * v[FTL_PARAM_num_warps]) == 0; }

static bool drops_whole_calls(const int64_t *v) {
  return v[FTL_PARAM_dropout_p] == 0 || v[FTL_PARAM_block_m] % FTL_DROPOUT_COLUMNS == 0;
}

// S, dP, dK and dV in fp32 and P and dS rounded, of a lane's keys, beside addresses and operands: of six authors'
// instances those with more numbers than that walk queries in parts, or take P and dS from shared memory.
static bool fits_registers(const ftl_spec *spec) {
  enum { MOST_NUMBERS = 224 };
  const int64_t *v = spec->value;
  int64_t d_k = ftl_backward_padded_columns(v[FTL_PARAM_head_dim]);
  int64_t d_v = ftl_backward_padded_columns(ftl_spec_head_dim_v(spec));
  int64_t per_key = 3 * v[FTL_PARAM_block_m] + d_k + d_v;
  int64_t threads = v[FTL_PARAM_num_warps] * FTL_WARP_LANES;
  return v[FTL_PARAM_block_n] * per_key <= MOST_NUMBERS * threads;
}

bool ftl_backward_suits_transposed(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  return divides_keys(v) && divides_sum(v) && drops_whole_calls(v) && fits_registers(spec);
}

ftl_status ftl_backward_check_transposed(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE, "dq=atomics: its warps stand side by side, which needs mma=mma");
  if (ftl_backward_loops_heads(spec) && v[FTL_PARAM_lengths] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "kv_group=loop: lengths have a CTA for each query head");
  if (!divides_keys(v))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld num_warps=%lld: with p_operand=registers each warp has keys of its own, a "
                         "multiple of %d",
                         (long long)v[FTL_PARAM_block_n], (long long)v[FTL_PARAM_num_warps], SLAB);
  if (!divides_sum(v))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: the warps share dQ's tile of block_m x %d in parts of multiples "
                         "of %d rows and columns",
                         (long long)v[FTL_PARAM_block_m], (long long)v[FTL_PARAM_num_warps],
                         ftl_backward_padded_columns(v[FTL_PARAM_head_dim]), SLAB);
  if (drops_whole_calls(v)) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_m=%lld: with dropout_p random numbers come for %d queries at a time, a multiple of that",
                       (long long)v[FTL_PARAM_block_m], FTL_DROPOUT_COLUMNS);
}

// ---- declarations ----

enum { NUM_STREAMS = 4 };  // Q, dO, LSE, delta

typedef struct transposed {
  ftl_backward *f;
  int32_t k, v, d_s;             // rings
  int32_t stream[NUM_STREAMS];   // rings of what is walked; -1: columns that are loaded as they are needed
  int32_t tensor[NUM_STREAMS];   // that fill them
  int32_t columns[NUM_STREAMS];  // of these tensors
  int32_t scores, products;      // S^T, then P^T; dP^T, then dS^T
  int32_t probs, d_scores;       // P^T and dS^T, rounded
  int32_t d_q, d_k, d_v, lse, delta;
  ftl_query_steps steps;           // of one head
  ftl_expr num_steps, first_head;  // of one head; of the CTA's
  int32_t num_heads;               // that it walks
  int32_t listed;                  // table: the tiles at these positions; -1: the positions are tiles
} transposed;

static void declare_streams(transposed *p, int32_t role) {
  ftl_builder *b = p->f->b;
  const ftl_attention *a = &p->f->a;
  const ftl_backward_tensors *t = &p->f->t;
  static const char *const names[NUM_STREAMS] = {"q", "do", "lse", "delta"};
  const int32_t tensors[] = {t->q, t->d_o, t->lse, t->delta}, columns[] = {a->head_dim, a->head_dim_v, 1, 1};
  const int32_t padded[] = {a->padded_head_dim, a->padded_head_dim_v, 1, 1};
  bool copies_numbers = p->f->spec->value[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC;
  for (int i = 0; i < NUM_STREAMS; i++) {
    p->tensor[i] = tensors[i];
    p->columns[i] = columns[i];
    p->stream[i] = -1;
    if (columns[i] == 1 && !copies_numbers) continue;
    p->stream[i] = ftl_builder_ring(b, names[i], columns[i] == 1 ? FTL_FP32 : a->dtype, a->block_m, padded[i],
                                    p->f->num_stages, role, 1 << role);
  }
}

static transposed declare(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  int32_t role = ftl_builder_role(b, "main", f->num_warps, 0), readers = 1 << role, d = a->padded_head_dim;
  transposed p = {.f = f, .listed = -1, .first_head = f->tile.head, .num_heads = 1};
  p.k = ftl_builder_ring(b, "k", a->dtype, a->block_n, d, 1, role, readers);
  p.v = ftl_builder_ring(b, "v", a->dtype, a->block_n, a->padded_head_dim_v, 1, role, readers);
  declare_streams(&p, role);
  p.d_s = ftl_builder_ring(b, "ds", a->dtype, a->block_n, a->block_m, 1, role, readers);
  p.scores = ftl_builder_tile(b, "s", FTL_FP32, a->block_n, a->block_m);
  p.products = ftl_builder_tile(b, "dp", FTL_FP32, a->block_n, a->block_m);
  p.probs = ftl_builder_tile(b, "p", a->dtype, a->block_n, a->block_m);
  p.d_scores = ftl_builder_tile(b, "ds", a->dtype, a->block_n, a->block_m);
  p.d_k = ftl_builder_tile(b, "dk", FTL_FP32, a->block_n, d);
  p.d_v = ftl_builder_tile(b, "dv", FTL_FP32, a->block_n, a->padded_head_dim_v);
  p.d_q = ftl_builder_tile(b, "dq", FTL_FP32, a->block_m, d);
  ftl_builder_side_by_side(b, warps_per_sum_row(f->num_warps, a->block_m));
  p.lse = ftl_builder_columns(b, "lse", a->block_m);
  p.delta = ftl_builder_columns(b, "delta", a->block_m);
  return p;
}

// ---- steps: numbered through all heads ----

typedef struct step {
  ftl_expr head, row;  // of queries
  ftl_expr present;    // whether there is one
} step;

static ftl_expr row_at(const transposed *p, ftl_expr position) {
  ftl_expr tile = p->listed < 0 ? position : ftl_lookup(p->f->b, p->listed, position);
  return ftl_mul(p->f->b, tile, ftl_const(p->f->b, p->f->a.block_m));
}

// `ahead` steps behind step `i` of head `head` of the CTA's; past its last step, of the next head.
static step step_ahead(const transposed *p, ftl_expr head, ftl_expr i, int32_t ahead) {
  ftl_builder *b = p->f->b;
  ftl_expr j = ftl_add(b, i, ftl_const(b, ahead));
  if (p->num_heads == 1)
    return (step){p->first_head, row_at(p, ftl_add(b, p->steps.first, j)), ftl_sub(b, p->num_steps, j)};
  ftl_expr zero = ftl_const(b, 0), one = ftl_const(b, 1), heads_on = zero;
  for (int32_t k = 1; k <= ahead; k++) {  // at the most: a head has a step
    ftl_expr past = ftl_sub(b, j, ftl_mul(b, ftl_const(b, k), p->num_steps));
    heads_on = ftl_add(b, heads_on, ftl_min(b, one, ftl_max(b, zero, ftl_add(b, past, one))));
  }
  ftl_expr within = ftl_sub(b, j, ftl_mul(b, heads_on, p->num_steps));
  ftl_expr left = ftl_sub(b, ftl_mul(b, ftl_const(b, p->num_heads), p->num_steps), ftl_mul(b, head, p->num_steps));
  return (step){.head = ftl_add(b, p->first_head, ftl_add(b, head, heads_on)),
                .row = row_at(p, ftl_add(b, p->steps.first, within)),
                .present = ftl_sub(b, left, j)};
}

static ftl_tile_ref ref_of(const transposed *p, int32_t tensor, step s, int32_t columns) {
  ftl_tile_ref ref = ftl_backward_ref(p->f, tensor, s.head, s.row, p->f->a.block_m, columns);
  ref.present = s.present;
  return ref;
}

static void load(const transposed *p, step s) {
  for (int i = 0; i < NUM_STREAMS; i++)
    if (p->stream[i] >= 0) ftl_fill_stage(p->f->b, p->stream[i], ref_of(p, p->tensor[i], s, p->columns[i]));
}

enum { Q, D_O, LSE, DELTA };

// Rings of a number a query leave their stage free as soon as it is in registers.
static void fetch_columns(const transposed *p, int32_t value, int i, step s) {
  ftl_builder *b = p->f->b;
  if (p->stream[i] < 0) {
    ftl_load_columns(b, value, ref_of(p, p->tensor[i], s, 1));
    return;
  }
  ftl_fetch(b, value, p->stream[i]);
  ftl_release(b, p->stream[i]);
}

static void multiply(const transposed *p, int32_t result, int32_t kept, int32_t walked) {
  ftl_fill(p->f->b, result, 0.0f);
  ftl_mma_shared(p->f->b, result, kept, walked, true);
}

static void compute_scores(const transposed *p, step s, bool masked) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  ftl_attention_tile of_head = f->tile;
  of_head.head = s.head;
  multiply(p, p->scores, p->k, p->stream[Q]);
  if (masked) ftl_attention_mask_transposed(b, &f->a, f->lengths, p->scores, f->tile.row, s.row);
  multiply(p, p->products, p->v, p->stream[D_O]);
  fetch_columns(p, p->lse, LSE, s);
  ftl_backward_prepare_lse(f, p->lse);
  ftl_backward_exponentiate(f, p->scores, p->lse);
  ftl_attention_dropout_by_sign(b, &f->a, &of_head, p->scores, s.row, f->tile.row, true);
  ftl_backward_round_probs(f, p->probs, p->scores);
  fetch_columns(p, p->delta, DELTA, s);
  ftl_backward_differentiate(f, p->products, p->scores, p->delta);
  ftl_convert(b, p->d_scores, p->products);
}

static void publish(const transposed *p) {
  ftl_acquire(p->f->b, p->d_s);
  ftl_put(p->f->b, p->d_s, p->d_scores);
  ftl_commit(p->f->b, p->d_s);
}

static void add_d_q(const transposed *p, step s, ftl_add_order order) {
  ftl_builder *b = p->f->b;
  ftl_fill(b, p->d_q, 0.0f);
  ftl_mma_shared(b, p->d_q, p->d_s, p->k, false);
  ftl_transposed_a(b);
  ftl_release(b, p->d_s);
  ftl_tile_ref sum = ftl_backward_sum_ref(p->f, s.row);
  sum.head = s.head;
  sum.present = s.present;
  ftl_atomic_add(b, sum, p->d_q, order);
}

static ftl_add_order order_of(const ftl_backward *f) {
  static const ftl_add_order orders[] = {[FTL_DQ_ADDS_LINES] = FTL_ADD_IN_LINES,
                                         [FTL_DQ_ADDS_PAIRS] = FTL_ADD_IN_PAIRS,
                                         [FTL_DQ_ADDS_WORDS] = FTL_ADD_IN_WORDS};
  return orders[f->spec->value[FTL_PARAM_dq_adds]];
}

static void walk_step(const transposed *p, ftl_expr head, ftl_expr i, bool masked) {
  ftl_builder *b = p->f->b;
  int32_t num_stages = p->f->num_stages;
  step now = step_ahead(p, head, i, 0);
  for (int s = 0; s < NUM_STREAMS; s++)
    if (p->stream[s] >= 0) ftl_wait(b, p->stream[s]);
  if (num_stages > 1) load(p, step_ahead(p, head, i, num_stages - 1));
  compute_scores(p, now, masked);
  publish(p);
  ftl_mma_value(b, p->d_v, p->probs, p->stream[D_O], false);
  ftl_release(b, p->stream[D_O]);
  ftl_mma_value(b, p->d_k, p->d_scores, p->stream[Q], false);
  ftl_release(b, p->stream[Q]);
  ftl_wait(b, p->d_s);
  if (num_stages == 1) load(p, step_ahead(p, head, i, 1));
  add_d_q(p, now, order_of(p->f));
}

static void loop(const transposed *p, ftl_expr head, ftl_expr lo, ftl_expr hi, bool masked) {
  if (lo == hi) return;  // empty whatever the CTA
  ftl_expr i = ftl_loop_value(p->f->b, ftl_loop(p->f->b, lo, hi));
  walk_step(p, head, i, masked);
  ftl_end_loop(p->f->b);
}

// Of one head: steps that see all keys of the CTA lie between others.
static void walk_head(const transposed *p, ftl_expr head) {
  ftl_builder *b = p->f->b;
  ftl_expr first = p->steps.first, none = ftl_const(b, 0);
  ftl_expr whole = ftl_sub(b, p->steps.whole, first), unmasked = ftl_sub(b, p->steps.unmasked, first);
  // The last keys may leave a part of their tile to be masked.
  const ftl_attention *a = &p->f->a;
  if (p->listed < 0 && (p->f->packed != NULL || a->seqlen_kv % a->block_n != 0)) {
    ftl_expr left = ftl_sub(b, p->f->lengths.seqlen_kv, p->f->tile.row);
    ftl_expr is_whole = ftl_min(b, ftl_const(b, 1), ftl_div(b, left, ftl_const(b, a->block_n)));
    unmasked = ftl_add(b, whole, ftl_mul(b, is_whole, ftl_sub(b, unmasked, whole)));
  }
  loop(p, head, none, whole, true);
  loop(p, head, whole, unmasked, false);
  loop(p, head, unmasked, p->num_steps, true);
}

static void walk(const transposed *p) {
  ftl_builder *b = p->f->b;
  if (p->num_heads == 1) {
    walk_head(p, ftl_const(b, 0));
    return;
  }
  ftl_expr head = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_const(b, p->num_heads)));
  walk_head(p, head);
  ftl_end_loop(b);
}

static void choose_steps(transposed *p) {
  ftl_builder *b = p->f->b;
  p->steps = ftl_backward_query_steps(p->f);
  if (p->f->lists != NULL) {
    ftl_listed_tiles listed = ftl_tile_lists_declare(b, p->f->lists, p->f->tile.row);
    p->listed = listed.tiles;
    p->steps = (ftl_query_steps){listed.range.first, listed.range.whole, listed.range.unmasked, listed.range.end};
  }
  p->num_steps = ftl_sub(b, p->steps.end, p->steps.first);
}

static void start(const transposed *p) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  int32_t kept[] = {f->t.k, f->t.v}, rings[] = {p->k, p->v}, columns[] = {f->a.head_dim, f->a.head_dim_v};
  for (int i = 0; i < 2; i++)
    ftl_fill_stage(b, rings[i], ftl_backward_ref(f, kept[i], f->tile.kv_head, f->tile.row, f->a.block_n, columns[i]));
  int32_t ahead = f->num_stages > 1 ? f->num_stages - 1 : 1;
  for (int32_t j = 0; j < ahead; j++) load(p, step_ahead(p, ftl_const(b, 0), ftl_const(b, 0), j));
  for (int i = 0; i < 2; i++) ftl_wait(b, rings[i]);
  ftl_fill(b, p->d_k, 0.0f);
  ftl_fill(b, p->d_v, 0.0f);
}

static void keep_keys(ftl_backward *f) {
  if (ftl_backward_loops_heads(f->spec))
    ftl_backward_keep_of_heads(f, f->a.kv_heads, f->a.seqlen_kv, f->a.block_n);
  else
    ftl_backward_keep(f, f->a.seqlen_kv, f->a.block_n);
}

void ftl_backward_write_transposed(ftl_backward *f) {
  ftl_builder *b = f->b;
  keep_keys(f);
  ftl_backward_needs_queries(f);
  transposed p = declare(f);
  if (ftl_backward_loops_heads(f->spec)) {
    p.num_heads = (int32_t)(f->a.heads / f->a.kv_heads);
    p.first_head = ftl_mul(b, f->tile.kv_head, ftl_const(b, p.num_heads));
  }
  choose_steps(&p);
  start(&p);
  walk(&p);
  ftl_release(b, p.k);
  ftl_release(b, p.v);
  ftl_backward_scale(f, p.d_k, true);
  ftl_backward_scale(f, p.d_v, false);
  const int32_t tensors[] = {f->t.d_k_of_heads, f->t.d_v_of_heads}, values[] = {p.d_k, p.d_v};
  const int32_t columns[] = {f->a.head_dim, f->a.head_dim_v}, staging[] = {p.k, p.v};
  for (int i = 0; i < 2; i++)
    ftl_store(b, ftl_backward_ref(f, tensors[i], f->tile.head, f->tile.row, f->a.block_n, columns[i]), values[i],
              staging[i]);
}
