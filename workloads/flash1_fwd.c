// FlashAttention-1, forward. Source: T. Dao et al., arXiv:2205.14135, algorithm 1, as its implementation has it
// (HazyResearch/flash-attention v1, csrc/flash_attn/src/fmha_fprop_kernel_1xN.h): a CTA a head; the outer loop walks
// blocks of keys, the inner one 16 queries a step:
//   S = scale Q K^T, m~ = rowmax(S), P = exp(S - m~), l~ = rowsum(P), O~ = P V,
//   m = max(m', m~), l = e^(m' - m) l' + e^(m~ - m) l~, O = (e^(m' - m) l' O' + e^(m~ - m) O~) / l.
// l and m are kept as their log-sum-exp, with which l' e^m' is e^LSE'. O', LSE' are read and O, LSE written each step,
// O in fp32 until the last block of keys that its queries see. Each warp has a share of the block's keys: maxima, sums
// and outputs of the warps are put together through shared memory in every step.
//
// kv_operand=registers: a warp reads its keys' fragments once a block and keeps them, as the implementation does
// (K_IN_REGS, V_IN_REGS and SHARE_SMEM_FOR_K_AND_V of fmha/kernel_traits.h). V comes first, then K into the same
// buffer, and what the warps exchange in the steps lies over it too.
#include <math.h>

#include "tile/dropout.h"
#include "workloads/flash1.h"

static const float log2_e = 1.44269504088896340736f, ln_2 = 0.693147180559945309417f;

typedef struct flash1_fwd {
  ftl_flash1 f;
  ftl_attention_tensors t;
  int32_t o_sum, lse_sum;  // O' in fp32 and LSE'; -1 where one block holds all keys
  int32_t q, k, v;         // rings
  bool keeps_keys;         // in registers
  int32_t k_held, v_held;  // fragments, of each warp's keys
  int32_t max_staging, sum_staging, output_staging;
  int32_t scores, probs, output, max, shift, sum;  // fragments, of each warp's keys
  // Row-wise, of all keys of the block: O~, m~, l~; what was before: O', LSE'; both together.
  int32_t rows_output, rows_max, rows_sum, previous_output, previous_lse, top, weight, previous_weight;
} flash1_fwd;

// ---- declarations ----

static void declare_tensors(flash1_fwd *w) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  const ftl_packed_batch *packed = w->f.packed;
  w->t = packed != NULL ? ftl_packed_batch_declare(b, w->f.spec, packed, a) : ftl_attention_declare(b, w->f.spec, a);
  w->o_sum = w->lse_sum = -1;
  if (w->f.num_key_blocks == 1) return;
  int64_t batch = packed != NULL ? 1 : a->batch, rows = packed != NULL ? packed->num_tokens : a->seqlen_q;
  w->o_sum =
      ftl_builder_tensor(b, "o_sum", FTL_FP32, FTL_TENSOR_TEMP, ftl_contiguous(batch, a->heads, rows, a->head_dim_v));
  w->lse_sum = ftl_builder_tensor(b, "lse_sum", FTL_FP32, FTL_TENSOR_TEMP, ftl_contiguous(batch, a->heads, rows, 1));
  int64_t partial_rows = ftl_flash1_num_partial_rows(&w->f);
  ftl_builder_needs(b, w->o_sum, partial_rows * a->head_dim_v);
  ftl_builder_needs(b, w->lse_sum, partial_rows);
}

static bool outputs_lie_over_keys(const flash1_fwd *w) {
  const ftl_attention *a = &w->f.a;
  int64_t output_bytes = (int64_t)w->f.num_warps * a->block_m * a->padded_head_dim_v * ftl_dtype_bytes(FTL_FP32);
  return output_bytes <= (int64_t)a->block_n * a->padded_head_dim * ftl_dtype_bytes(a->dtype);
}

static void declare_rings(flash1_fwd *w, int32_t role) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  int32_t self = 1 << role, copies = w->f.num_warps * a->block_m, d = a->padded_head_dim;
  int32_t d_v = a->padded_head_dim_v;
  w->k = ftl_builder_ring(b, "k", a->dtype, a->block_n, d, 1, role, self);
  w->v = ftl_builder_ring(b, "v", a->dtype, a->block_n, d_v, 1, role, self);
  if (w->keeps_keys && d_v <= d) ftl_builder_overlay(b, w->v);
  w->output_staging = ftl_builder_ring(b, "outputs", FTL_FP32, copies, d_v, 1, role, self);
  if (w->keeps_keys && outputs_lie_over_keys(w)) ftl_builder_overlay(b, w->output_staging);
  w->q = ftl_builder_ring(b, "q", a->dtype, a->block_m, d, w->f.num_stages, role, self);
  w->max_staging = ftl_builder_ring(b, "maxima", FTL_FP32, 1, copies, 1, role, self);
  w->sum_staging = ftl_builder_ring(b, "sums", FTL_FP32, 1, copies, 1, role, self);
}

static int32_t rows_of(const flash1_fwd *w, const char *name) {
  return ftl_builder_rows_by_rows(w->f.b, name, w->f.a.block_m, ftl_flash1_row_layout(&w->f, w->f.a.padded_head_dim_v));
}

static void declare_values(flash1_fwd *w) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  int32_t share = a->block_n / w->f.num_warps;
  ftl_value_layout layout = ftl_flash1_row_layout(&w->f, a->padded_head_dim_v);
  if (w->keeps_keys) {
    w->k_held = ftl_builder_tile(b, "k_held", a->dtype, share, a->padded_head_dim);
    w->v_held = ftl_builder_tile(b, "v_held", a->dtype, a->padded_head_dim_v, share);
  }
  w->scores = ftl_builder_tile(b, "s", FTL_FP32, a->block_m, share);
  w->probs = ftl_builder_tile(b, "p", a->dtype, a->block_m, share);
  w->output = ftl_builder_tile(b, "o", FTL_FP32, a->block_m, a->padded_head_dim_v);
  w->max = ftl_builder_rows(b, "max", a->block_m);
  w->shift = ftl_builder_rows(b, "shift", a->block_m);
  w->sum = ftl_builder_rows(b, "sum", a->block_m);
  w->rows_output = ftl_builder_tile_by_rows(b, "rows_o", FTL_FP32, a->block_m, a->padded_head_dim_v, layout);
  w->previous_output = ftl_builder_tile_by_rows(b, "previous_o", FTL_FP32, a->block_m, a->padded_head_dim_v, layout);
  w->rows_max = rows_of(w, "rows_max");
  w->rows_sum = rows_of(w, "rows_sum");
  w->previous_lse = rows_of(w, "previous_lse");
  w->top = rows_of(w, "top");
  w->weight = rows_of(w, "weight");
  w->previous_weight = rows_of(w, "previous_weight");
}

// ---- one step ----

// m~, l~ and O~, first of each warp's keys, then of all; m~ then in the unit of exp2.
static void attend(const flash1_fwd *w, const ftl_flash1_block *block, ftl_expr row) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  ftl_fill(b, w->scores, 0);
  ftl_mma_shared(b, w->scores, w->q, w->k, true);
  if (w->keeps_keys) ftl_fetched_b(b, w->k_held);
  ftl_release(b, w->q);
  if (ftl_flash1_is_masked(&w->f)) ftl_attention_mask_lengths(b, a, w->f.lengths, w->scores, row, block->key, 0);
  ftl_fill(b, w->max, -INFINITY);
  ftl_reduce_rows(b, FTL_ELEM_MAX, w->max, w->scores);
  ftl_reduce_lanes(b, FTL_ELEM_MAX, w->max);
  ftl_reduce_groups(b, FTL_ELEM_MAX, w->max, w->max_staging);
  if (a->causal) ftl_unary(b, FTL_ELEM_ZERO_IF_NEG_INF, w->shift, w->max);
  ftl_binary(b, FTL_ELEM_MUL, w->shift, a->causal ? w->shift : w->max, ftl_immediate(-a->scale * log2_e));
  ftl_elem(b, FTL_ELEM_FMA, w->scores, ftl_value_operand(w->scores), ftl_immediate(a->scale * log2_e),
           ftl_value_operand(w->shift));
  ftl_unary(b, FTL_ELEM_EXP2, w->scores, w->scores);
  ftl_fill(b, w->sum, 0);
  ftl_reduce_rows(b, FTL_ELEM_ADD, w->sum, w->scores);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, w->sum);
  ftl_convert(b, w->probs, w->scores);
  ftl_attention_dropout(b, a, &w->f.tile, w->probs, row, block->key);
  ftl_fill(b, w->output, 0);
  ftl_mma_value(b, w->output, w->probs, w->v, false);
  if (w->keeps_keys) ftl_fetched_b(b, w->v_held);
  ftl_gather(b, FTL_ELEM_MAX, w->rows_max, w->max, w->max_staging);
  ftl_gather(b, FTL_ELEM_ADD, w->rows_sum, w->sum, w->sum_staging);
  ftl_gather(b, FTL_ELEM_ADD, w->rows_output, w->output, w->output_staging);
  ftl_binary(b, FTL_ELEM_MUL, w->rows_max, w->rows_max, ftl_immediate(a->scale * log2_e));
}

static void load_previous(const flash1_fwd *w, ftl_expr row) {
  ftl_load_tile(w->f.b, w->previous_output, ftl_flash1_rows_ref(&w->f, w->o_sum, row, w->f.a.head_dim_v));
  ftl_load_rows(w->f.b, w->previous_lse, ftl_flash1_rows_ref(&w->f, w->lse_sum, row, 1));
}

// weight = 2^(x - m); m is 0 where it would be -inf, for rows that have seen no key.
static void weigh(const flash1_fwd *w, int32_t weight, int32_t x, int32_t m) {
  ftl_binary(w->f.b, FTL_ELEM_SUB, weight, x, ftl_value_operand(m));
  ftl_unary(w->f.b, FTL_ELEM_EXP2, weight, weight);
}

// The weight of this block's O~, of which dropout left a part.
static void scale_kept(const flash1_fwd *w) {
  if (w->f.a.dropout_p == 0) return;
  ftl_binary(w->f.b, FTL_ELEM_MUL, w->weight, w->weight, ftl_immediate(ftl_attention_dropout_scale(&w->f.a)));
}

// m~, l~ and O~ become m, l and, not yet divided by l, O.
static void add_previous(const flash1_fwd *w) {
  ftl_builder *b = w->f.b;
  int32_t shift = w->top;
  ftl_binary(b, FTL_ELEM_MUL, w->previous_lse, w->previous_lse, ftl_immediate(log2_e));
  ftl_binary(b, FTL_ELEM_MAX, w->top, w->rows_max, ftl_value_operand(w->previous_lse));
  ftl_unary(b, FTL_ELEM_ZERO_IF_NEG_INF, shift, w->top);
  weigh(w, w->weight, w->rows_max, shift);
  weigh(w, w->previous_weight, w->previous_lse, shift);
  ftl_binary(b, FTL_ELEM_MAX, w->rows_max, w->rows_max, ftl_value_operand(w->previous_lse));
  ftl_elem(b, FTL_ELEM_FMA, w->rows_sum, ftl_value_operand(w->rows_sum), ftl_value_operand(w->weight),
           ftl_value_operand(w->previous_weight));
  scale_kept(w);
  ftl_binary(b, FTL_ELEM_MUL, w->rows_output, w->rows_output, ftl_value_operand(w->weight));
  ftl_elem(b, FTL_ELEM_FMA, w->rows_output, ftl_value_operand(w->previous_output),
           ftl_value_operand(w->previous_weight), ftl_value_operand(w->rows_output));
}

// O / l and LSE = (m + log2 l) ln 2, to where they belong.
static void write_step(const flash1_fwd *w, const ftl_flash1_block *block, ftl_expr step, bool is_first) {
  ftl_builder *b = w->f.b;
  ftl_expr row = ftl_flash1_row(&w->f, block, step);
  ftl_unary(b, FTL_ELEM_RECIP, w->weight, w->rows_sum);
  if (is_first) scale_kept(w);
  ftl_binary(b, FTL_ELEM_MUL, w->rows_output, w->rows_output, ftl_value_operand(w->weight));
  ftl_unary(b, FTL_ELEM_LOG2, w->rows_sum, w->rows_sum);
  ftl_binary(b, FTL_ELEM_ADD, w->rows_max, w->rows_max, ftl_value_operand(w->rows_sum));
  ftl_binary(b, FTL_ELEM_MUL, w->rows_max, w->rows_max, ftl_immediate(ln_2));
  const int32_t outputs[2] = {w->t.o, w->o_sum}, lses[2] = {w->t.lse, w->lse_sum};
  for (int is_partial = 0; is_partial < 2; is_partial++) {
    ftl_tile_ref output = ftl_flash1_rows_ref(&w->f, outputs[is_partial], row, w->f.a.head_dim_v);
    if (!ftl_flash1_try_restrict(&w->f, block, step, !is_partial, &output)) continue;
    ftl_tile_ref lse = ftl_flash1_rows_ref(&w->f, lses[is_partial], row, 1);
    lse.present = output.present;
    ftl_store(b, output, w->rows_output, -1);
    ftl_store_rows(b, lse, w->rows_max);
  }
}

// ---- the kernel ----

static void load_q(const flash1_fwd *w, const ftl_flash1_block *block, ftl_expr step) {
  ftl_builder *b = w->f.b;
  ftl_tile_ref ref = ftl_flash1_rows_ref(&w->f, w->t.q, ftl_flash1_row(&w->f, block, step), w->f.a.head_dim);
  ref.present = ftl_sub(b, block->end, step);
  ftl_fill_stage(b, w->q, ref);
}

// Steps from .. to-1: query tiles that see no key before the block (`is_first`), or have O' and LSE' of those that they
// see.
static void walk_queries(const flash1_fwd *w, const ftl_flash1_block *block, ftl_expr from, ftl_expr to,
                         bool is_first) {
  ftl_builder *b = w->f.b;
  ftl_expr step = ftl_loop_value(b, ftl_loop(b, from, to)), row = ftl_flash1_row(&w->f, block, step);
  load_q(w, block, ftl_add(b, step, ftl_const(b, w->f.num_stages - 1)));
  if (!is_first) load_previous(w, row);
  ftl_wait(b, w->q);
  attend(w, block, row);
  if (!is_first) add_previous(w);
  write_step(w, block, step, is_first);
  ftl_end_loop(b);
}

static void hold(const flash1_fwd *w, const ftl_flash1_block *block, bool is_k) {
  ftl_builder *b = w->f.b;
  int32_t ring = is_k ? w->k : w->v;
  ftl_fill_stage(b, ring,
                 ftl_flash1_keys_ref(&w->f, block, is_k ? w->t.k : w->t.v, is_k ? w->f.a.head_dim : w->f.a.head_dim_v));
  ftl_wait(b, ring);
  ftl_fetch_b(b, is_k ? w->k_held : w->v_held, ring, is_k);
  ftl_release(b, ring);
  ftl_barrier(b);  // all warps have theirs: what comes next lies in the same place
}

// K and V of a block, where its steps find them.
static void take_keys(const flash1_fwd *w, const ftl_flash1_block *block) {
  ftl_builder *b = w->f.b;
  if (w->keeps_keys) {
    hold(w, block, false);
    hold(w, block, true);
    return;
  }
  ftl_fill_stage(b, w->k, ftl_flash1_keys_ref(&w->f, block, w->t.k, w->f.a.head_dim));
  ftl_fill_stage(b, w->v, ftl_flash1_keys_ref(&w->f, block, w->t.v, w->f.a.head_dim_v));
}

static void write_block(void *context, const ftl_flash1_block *block) {
  const flash1_fwd *w = context;
  ftl_builder *b = w->f.b;
  int32_t ahead = w->f.num_stages - 1;
  take_keys(w, block);
  for (int32_t i = 0; i < ahead; i++) load_q(w, block, ftl_add(b, block->first, ftl_const(b, i)));
  if (!w->keeps_keys) {
    ftl_wait(b, w->k);
    ftl_wait(b, w->v);
  }
  if (block->listed >= 0) walk_queries(w, block, block->first, block->seen, true);
  if (block->listed < 0 || w->o_sum >= 0) walk_queries(w, block, block->seen, block->end, block->is_first);
  for (int32_t stage = 0; stage < ahead; stage++) {  // the empty ones past the last query
    ftl_wait(b, w->q);
    ftl_release(b, w->q);
  }
  if (w->keeps_keys) return;
  ftl_release(b, w->k);
  ftl_release(b, w->v);
}

// The random numbers of dropout come for 32 keys at a time.
static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  int64_t block_n = spec->value[FTL_PARAM_block_n], num_warps = spec->value[FTL_PARAM_num_warps];
  ftl_status status = ftl_flash1_check(spec, error);
  if (status != FTL_OK || spec->value[FTL_PARAM_dropout_p] == 0 || block_n % (FTL_DROPOUT_COLUMNS * num_warps) == 0)
    return status;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "block_n=%lld num_warps=%lld: with dropout_p each warp needs a multiple of %d keys",
                       (long long)block_n, (long long)num_warps, FTL_DROPOUT_COLUMNS);
}

static int64_t num_flops(const ftl_flash1 *f) {
  if (f->packed != NULL) return ftl_packed_batch_flops(f->packed, &f->a);
  return f->lists != NULL ? ftl_attention_flops_of_pairs(&f->a, f->lists->num_pairs)
                          : ftl_attention_forward_flops(&f->a);
}

static void write_kernel(ftl_builder *b, const ftl_spec *spec, const ftl_tile_lists *lists,
                         const ftl_packed_batch *packed) {
  flash1_fwd w = {.f = ftl_flash1_of(b, spec, lists, packed),
                  .keeps_keys = spec->value[FTL_PARAM_kv_operand] == FTL_KV_OPERAND_REGISTERS};
  declare_tensors(&w);
  ftl_flash1_set_tile(&w.f);
  int32_t role = ftl_builder_role(b, "main", w.f.num_warps, 0);
  ftl_builder_groups(b, w.f.num_warps);
  declare_rings(&w, role);
  declare_values(&w);
  ftl_flash1_each_block(&w.f, write_block, &w);
  ftl_flash1_grid(&w.f);
  ftl_builder_flops(b, num_flops(&w.f));
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_tile_lists lists = {0};
  ftl_packed_batch *packed;
  ftl_builder *b;
  ftl_status status = check_feasible(spec, error);
  if (status == FTL_OK) status = ftl_flash1_pack(&packed, spec, error);
  if (status != FTL_OK) return status;
  status = ftl_flash1_lists_init(&lists, spec, error);
  if (status == FTL_OK) status = ftl_builder_create(&b, "flash1_fwd", error);
  if (status == FTL_OK) {
    write_kernel(b, spec, &lists, packed);
    status = ftl_builder_finish(b, &launches[0], error);
    ftl_builder_destroy(b);
  }
  if (status == FTL_OK) *num_launches = 1;
  ftl_tile_lists_fini(&lists);
  ftl_packed_batch_destroy(packed);
  return status;
}

const ftl_workload ftl_workload_flash1_fwd = {
    .name = "flash1_fwd",
    .doc =
        "FlashAttention-1 forward: a CTA, or a few, a head, blocks of keys outside, queries inside; O and LSE through "
        "memory each "
        "step",
    .accepts = FTL_FLASH1_PARAMS | FTL_TAKES(kv_operand) | FTL_TAKES(splits),
    .keeps_spilling_tiles = true,
    .packs_queries = true,
    .set_defaults = ftl_flash1_set_defaults,
    .build = build,
};
