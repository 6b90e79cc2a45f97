// CUTLASS's fused attention, as PyTorch's memory-efficient backend and xFormers launch it (kernel_forward.h of either):
// in each step S = Q K^T and O += P V are block products one behind the other, each with a mainloop of its own. Warps
// have 32 rows by 32 columns of both. Q is copied again beside each K, in parts of 32 columns; P, which the second
// product takes from shared memory, and V lie where Q and K were. O stays in registers, so that a head has at most as
// many columns as a tile has keys.
#include "base/integer.h"
#include "workloads/flash2.h"

// ThreadK, WarpShape of the kernel: columns of a part of Q and K, and rows of one of V; rows and columns of a warp.
enum { PART = 32, WARP_ROWS = 32, WARP_COLUMNS = 32 };

// Queries and keys of its tiles since Ampere.
enum { QUERIES = 64, NARROW_KEYS = 64, WIDE_KEYS = 128 };

// The source makes an iterator of each of Q, K and V anew in every step, and a mainloop steps stages' addresses and
// wraps them with each part. Source: SASS of PyTorch 2.11's fmha_cutlassF_f16_aligned_64x64_rf_sm80 and 64x128, beside
// copies, fragments, products and waits: 112 instructions for Q and K, 55 for V; 14 to 20 for each part, of which a
// ring's next stage takes some already.
enum { ITERATOR_INSTS = 56, MAINLOOP_INSTS = 10 };

void ftl_flash2_set_back_to_back(ftl_spec *spec) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] != FTL_SCHEDULE_BACK_TO_BACK) return;
  // As the library chooses among its kernels: 64 queries, and 64 keys where O of a head fits them.
  bool narrow = ftl_larger(v[FTL_PARAM_head_dim], ftl_spec_head_dim_v(spec)) <= NARROW_KEYS;
  ftl_spec_set_default(spec, FTL_PARAM_block_m, QUERIES);
  ftl_spec_set_default(spec, FTL_PARAM_block_n, narrow ? NARROW_KEYS : WIDE_KEYS);
  int64_t warps_m = v[FTL_PARAM_block_m] / WARP_ROWS, warps_n = v[FTL_PARAM_block_n] / WARP_COLUMNS;
  ftl_spec_set_default(spec, FTL_PARAM_num_stages, 1);
  if (warps_m * warps_n > 0) ftl_spec_set_default(spec, FTL_PARAM_num_warps, warps_m * warps_n);
  if (warps_n > 0) ftl_spec_set_default(spec, FTL_PARAM_warps_n, warps_n);
}

// Its launch bounds ask for as many CTAs of an SM as have 16 warps (getWarpsPerSmFw; 12 before Ampere).
void ftl_flash2_resolve_back_to_back(ftl_spec *spec, const ftl_arch *arch) {
  enum { WARPS = 16, EARLIER_WARPS = 12, AMPERE = 80, ALLOCATED_TOGETHER = 8 };
  int64_t *cap = &spec->value[FTL_PARAM_max_registers];
  if (spec->value[FTL_PARAM_schedule] != FTL_SCHEDULE_BACK_TO_BACK || *cap != 0) return;
  int64_t warps = arch->chip_compute_capability >= AMPERE ? WARPS : EARLIER_WARPS;
  *cap = arch->sm_num_registers / (warps * FTL_WARP_LANES) / ALLOCATED_TOGETHER * ALLOCATED_TOGETHER;
}

ftl_status ftl_flash2_check_back_to_back(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] != FTL_SCHEDULE_BACK_TO_BACK) return FTL_OK;
  int64_t warps_n = v[FTL_PARAM_block_n] / WARP_COLUMNS, num_warps = v[FTL_PARAM_block_m] / WARP_ROWS * warps_n;
  if (v[FTL_PARAM_block_m] % WARP_ROWS != 0 || v[FTL_PARAM_block_n] % WARP_COLUMNS != 0 ||
      v[FTL_PARAM_num_warps] != num_warps || v[FTL_PARAM_warps_n] != warps_n)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_warps=%lld warps_n=%lld: schedule=back_to_back has a warp for each %d x %d of block_m x "
                         "block_n, warps_n of them side by side",
                         (long long)v[FTL_PARAM_num_warps], (long long)v[FTL_PARAM_warps_n], WARP_ROWS, WARP_COLUMNS);
  if (ftl_larger(v[FTL_PARAM_head_dim], ftl_spec_head_dim_v(spec)) > v[FTL_PARAM_block_n])
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "head_dim=%lld: schedule=back_to_back keeps O in registers where heads have no more columns "
                         "than block_n=%lld",
                         (long long)ftl_larger(v[FTL_PARAM_head_dim], ftl_spec_head_dim_v(spec)),
                         (long long)v[FTL_PARAM_block_n]);
  if (v[FTL_PARAM_num_stages] != 1 || v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA || v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "schedule=back_to_back: one buffer (num_stages=1), mma.sync and copies by threads");
  if (v[FTL_PARAM_mask] != FTL_MASK_NONE || v[FTL_PARAM_persistent] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "schedule=back_to_back: walks all keys of one query tile");
  return FTL_OK;
}

static int32_t num_parts_k(const ftl_flash2 *f) { return ftl_divide_up32(f->a.padded_head_dim, PART); }
static int32_t num_parts_v(const ftl_flash2 *f) { return f->a.block_n / PART; }

// cp.async has all parts on their way; loads to registers are stored to one of two stages while the other is read.
static int32_t num_stages_of(const ftl_flash2 *f, int32_t num_parts) {
  enum { TAKING_TURNS = 2 };
  return f->preloads ? num_parts : (int32_t)ftl_smaller(num_parts, TAKING_TURNS);
}
static int32_t num_ahead(const ftl_flash2 *f, int32_t num_parts) { return f->preloads ? num_parts : 1; }

void ftl_flash2_declare_back_to_back(ftl_flash2 *f, int32_t role) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  int32_t readers = 1 << role, stages = num_stages_of(f, num_parts_k(f));
  f->ring_p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, 1, role, readers);
  f->ring_v =
      ftl_builder_ring(b, "v", a->dtype, PART, a->padded_head_dim_v, num_stages_of(f, num_parts_v(f)), role, readers);
  f->ring_q = ftl_builder_ring(b, "q", a->dtype, a->block_m, PART, stages, role, readers);
  ftl_builder_overlay(b, f->ring_q);
  f->ring_k = ftl_builder_ring(b, "k", a->dtype, a->block_n, PART, stages, role, readers);
  ftl_builder_overlay(b, f->ring_k);
  f->ring_o = ftl_builder_ring(b, "o", a->dtype, a->block_m, a->padded_head_dim_v, 1, role, readers);
  ftl_builder_overlay(b, f->ring_o);
  f->output_lies_over = true;
  ftl_builder_half_products(b);  // InstructionShape 16 x 8 x 8, Turing's
}

// Columns of part `part` of Q and of tile j of K.
static void load_part(const ftl_flash2 *f, ftl_expr j, int32_t part) {
  int32_t first = part * PART, columns = (int32_t)ftl_smaller(PART, f->a.head_dim - first);
  ftl_tile_ref q = ftl_flash2_query_ref(f, f->q, columns), k = ftl_flash2_key_ref(f, f->k, columns, j);
  q.column = k.column = ftl_const(f->b, first);
  q.index_insts = part == 0 ? ITERATOR_INSTS : 0;
  k.index_insts = q.index_insts + MAINLOOP_INSTS;
  ftl_acquire(f->b, f->ring_q);
  ftl_acquire(f->b, f->ring_k);
  ftl_load(f->b, f->ring_q, q);
  ftl_load(f->b, f->ring_k, k);
  ftl_commit(f->b, f->ring_q);
  ftl_commit(f->b, f->ring_k);
}

static void multiply_part(const ftl_flash2 *f) {
  ftl_mma_shared(f->b, f->scores, f->ring_q, f->ring_k, true);
  ftl_release(f->b, f->ring_q);
  ftl_release(f->b, f->ring_k);
}

static void multiply_scores(const ftl_flash2 *f, ftl_expr j) {
  ftl_builder *b = f->b;
  int32_t num_parts = num_parts_k(f), ahead = num_ahead(f, num_parts);
  for (int32_t part = 0; part < ahead; part++) load_part(f, j, part);
  ftl_fill(b, f->scores, 0.0F);
  for (int32_t part = 0; part < num_parts; part++) {
    ftl_wait(b, f->ring_q);
    ftl_wait(b, f->ring_k);
    if (part + ahead < num_parts) load_part(f, j, part + ahead);
    multiply_part(f);
  }
}

// Keys of part `part` of tile j of V.
static void load_part_v(const ftl_flash2 *f, ftl_expr j, int32_t part) {
  ftl_tile_ref v = ftl_flash2_key_ref(f, f->v, f->a.head_dim_v, j);
  v.row = ftl_add(f->b, v.row, ftl_const(f->b, part * PART));
  v.rows = PART;
  v.index_insts = (part == 0 ? ITERATOR_INSTS : 0) + MAINLOOP_INSTS;
  ftl_fill_stage(f->b, f->ring_v, v);
}

static void begin_values(const ftl_flash2 *f, ftl_expr j) {
  for (int32_t part = 0; part < num_ahead(f, num_parts_v(f)); part++) load_part_v(f, j, part);
}

// Columns beyond the last key are left out of the maxima, and again of the exponentials.
static void mask_end(const ftl_flash2 *f, ftl_expr j) {
  ftl_mask(f->b, f->scores, f->tile.row, ftl_flash2_key(f, j), FTL_ALWAYS, f->lengths.seqlen_kv);
}

static void softmax(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_builder *b = f->b;
  mask_end(f, j);
  ftl_online_softmax_maximum(b, &f->softmax, f->scores, masked);
  ftl_binary(b, FTL_ELEM_MUL, f->output, f->output, ftl_value_operand(f->softmax.correction));
  mask_end(f, j);
  ftl_mask_again(b);
  ftl_online_softmax_exponentials(b, &f->softmax, f->scores, masked);
  ftl_convert(b, f->probs, f->scores);
  ftl_attention_dropout(b, &f->a, &f->tile, f->probs, f->tile.row, ftl_flash2_key(f, j));
}

// P, which all warps have put, times V.
static void multiply_probs(const ftl_flash2 *f, ftl_expr j) {
  ftl_builder *b = f->b;
  int32_t num_parts = num_parts_v(f), ahead = num_ahead(f, num_parts);
  ftl_acquire(b, f->ring_p);
  ftl_put(b, f->ring_p, f->probs);
  ftl_commit(b, f->ring_p);
  ftl_wait(b, f->ring_p);
  for (int32_t part = 0; part < num_parts; part++) {
    ftl_wait(b, f->ring_v);
    if (part + ahead < num_parts) load_part_v(f, j, part + ahead);
    ftl_mma_shared(b, f->output, f->ring_p, f->ring_v, false);
    ftl_part_of_k(b, part * PART, PART);
    ftl_release(b, f->ring_v);
  }
  ftl_release(b, f->ring_p);
}

// Every step compares keys with the last one, the steps that the diagonal crosses also with the queries.
void ftl_flash2_step_back_to_back(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_builder *b = f->b;
  ftl_barrier(b);  // all warps have left P and V
  multiply_scores(f, j);
  ftl_barrier(b);  // and Q and K
  if (f->preloads) begin_values(f, j);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  if (!f->preloads) begin_values(f, j);
  multiply_probs(f, j);
}
