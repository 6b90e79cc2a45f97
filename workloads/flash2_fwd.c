// FlashAttention-2, forward: each CTA keeps one tile of queries and walks the tiles of keys and values.
// Source: T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", arXiv:2307.08691,
// algorithm 1. Schedules: Triton's fused-attention tutorial (`stages`, refilled late as its software pipeliner does, or
// early) and csrc/flash_attn/src/flash_fwd_kernel.h of github.com/Dao-AILab/flash-attention (`interleaved`).
#include "base/integer.h"
#include "tile/builder.h"
#include "workloads/attention.h"
#include "workloads/block_mask.h"
#include "workloads/code_form.h"
#include "workloads/online_softmax.h"
#include "workloads/packed_batch.h"

typedef struct flash2 {
  ftl_builder *b;
  ftl_attention a;
  int32_t num_stages;
  bool q_in_registers;  // fetched once before the loop; else every iteration reads it from shared memory
  bool interleaved, persistent;
  // Each loop over keys fills its buffers, refills them after a step's products and leaves none full.
  bool refills_late;
  bool refills_behind;               // likewise, and those that the step itself has read
  bool refills_free;                 // a buffer is refilled behind the first barrier that shows it to be free
  int32_t num_k_ahead, num_v_ahead;  // tiles that are asked for ahead of the one in use
  bool compares_k, compares_v;       // before a copy, whether there is such a tile, where there always is
  bool masks_whole_tiles;            // one loop for all tiles, as FlashAttention-2's Is_local
  int32_t num_unrolled;              // tiles at the end of the keys that have code of their own each

  int32_t q, k, v, o, lse;                // tensors
  int32_t ring_q, ring_k, ring_v;         // ring_v == ring_k: K and V take turns in one buffer
  int32_t ring_p;                         // of warps side by side
  int32_t q_tile, scores, probs, output;  // values
  ftl_online_softmax softmax;
  int32_t refill_barrier;          // named: all warps have left the buffers that a late refill writes
  const ftl_packed_batch *packed;  // NULL: sequences are equally long
  ftl_attention_tile tile;
  ftl_attention_lengths lengths;
  ftl_expr origin, row_end;  // of the sequence's rows in the tensors
  ftl_key_range keys;
  ftl_tile_lists lists;  // under a block mask `keys` are positions in them
  int32_t listed;        // table: the key tiles at these positions
} flash2;

// ---- what cannot exist on any GPU ----

static ftl_status check_unrolled(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_mask_steps] != FTL_MASK_STEPS_UNROLLED) return FTL_OK;
  if (v[FTL_PARAM_schedule] != FTL_SCHEDULE_INTERLEAVED)
    return ftl_error_set(error, FTL_INFEASIBLE, "mask_steps=unrolled: steps of schedule=interleaved");
  if (v[FTL_PARAM_mask] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "mask_steps=unrolled: keys end at a diagonal, not with mask");
  if (v[FTL_PARAM_block_m] > FTL_MOST_UNROLLED_STEPS * v[FTL_PARAM_block_n])
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: mask_steps=unrolled writes at most %d steps of block_m=%lld",
                         (long long)v[FTL_PARAM_block_n], FTL_MOST_UNROLLED_STEPS, (long long)v[FTL_PARAM_block_m]);
  return FTL_OK;
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED && v[FTL_PARAM_num_stages] != 1)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld: schedule=interleaved has one buffer of K and one of V, num_stages=1",
                         (long long)v[FTL_PARAM_num_stages]);
  if (v[FTL_PARAM_copy] == FTL_SPEC_COPY_LDG && v[FTL_PARAM_num_stages] > 2)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld: copy=ldg keeps one tile in flight, in registers, so at most 2",
                         (long long)v[FTL_PARAM_num_stages]);
  if (v[FTL_PARAM_refill] == FTL_REFILL_BEHIND && v[FTL_PARAM_schedule] != FTL_SCHEDULE_STAGES)
    return ftl_error_set(error, FTL_INFEASIBLE, "refill=behind: buffers to refill are those of schedule=stages");
  if (v[FTL_PARAM_warps_n] > 1 && v[FTL_PARAM_q_operand] == FTL_Q_OPERAND_REGISTERS)
    return ftl_error_set(error, FTL_INFEASIBLE, "warps_n=%lld: warps side by side take Q from shared memory",
                         (long long)v[FTL_PARAM_warps_n]);
  if (v[FTL_PARAM_refill] == FTL_REFILL_LATE &&
      (v[FTL_PARAM_schedule] != FTL_SCHEDULE_STAGES || v[FTL_PARAM_num_stages] == 1))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "refill=late: buffers to refill are those of schedule=stages, num_stages >= 2");
  if (v[FTL_PARAM_refill] == FTL_REFILL_WHEN_FREE && v[FTL_PARAM_copy] == FTL_SPEC_COPY_LDG)
    return ftl_error_set(
        error, FTL_INFEASIBLE,
        "refill=when_free: copy=ldg keeps one tile in flight, and no buffer that is filled as it falls free");
  if (v[FTL_PARAM_block_n] % 16 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: it is the K of the second matrix product, a multiple of 16",
                         (long long)v[FTL_PARAM_block_n]);
  ftl_status status = check_unrolled(spec, error);
  if (status == FTL_OK) status = ftl_attention_check_dropout(spec, error);
  if (status == FTL_OK) status = ftl_attention_check_warps_n(spec, ftl_attention_of(spec).padded_head_dim, error);
  return status == FTL_OK ? ftl_attention_check_warps(spec, error) : status;
}

// ---- declarations ----

static void declare_tile(flash2 *f, const ftl_spec *spec) {
  ftl_packed_tile packed = {.origin = ftl_const(f->b, 0), .row_end = FTL_TENSOR_END};
  if (f->packed) {
    packed = ftl_packed_batch_tile(f->b, spec, f->packed, &f->a);
  } else {
    packed.tile = ftl_attention_tile_of(f->b, spec, &f->a);
    packed.lengths = ftl_attention_lengths_of(f->b, &f->a);
  }
  f->tile = packed.tile;
  f->lengths = packed.lengths;
  f->origin = packed.origin;
  f->row_end = packed.row_end;
}

static int32_t tile_of(const flash2 *f, const char *name, ftl_dtype dtype, int32_t columns) {
  int32_t tile = ftl_builder_tile(f->b, name, dtype, f->a.block_m, columns);
  if (f->a.warps_n > 1) ftl_builder_side_by_side(f->b, f->a.warps_n);
  return tile;
}

static void declare(flash2 *f, const ftl_spec *spec) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_attention_tensors t =
      f->packed ? ftl_packed_batch_declare(b, spec, f->packed, a) : ftl_attention_declare(b, spec, a);
  ftl_attention_set_l2_priorities(b, spec, &t);
  f->q = t.q;
  f->k = t.k;
  f->v = t.v;
  f->o = t.o;
  f->lse = t.lse;
  int32_t role = ftl_builder_role(b, "main", (int32_t)spec->value[FTL_PARAM_num_warps], 0);
  int32_t columns = a->padded_head_dim, readers = 1 << role;
  bool shared_buffer = f->num_stages == 1 && !f->interleaved && !f->refills_behind;
  f->ring_q = ftl_builder_ring(b, "q", a->dtype, a->block_m, columns, 1, role, readers);
  f->ring_k =
      ftl_builder_ring(b, shared_buffer ? "kv" : "k", a->dtype, a->block_n, columns, f->num_stages, role, readers);
  f->ring_v =
      shared_buffer ? f->ring_k : ftl_builder_ring(b, "v", a->dtype, a->block_n, columns, f->num_stages, role, readers);

  if (a->warps_n > 1) f->ring_p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, 1, role, readers);
  if (f->q_in_registers) f->q_tile = ftl_builder_tile(b, "q", a->dtype, a->block_m, columns);
  f->scores = tile_of(f, "s", FTL_FP32, a->block_n);
  f->probs = tile_of(f, "p", a->dtype, a->block_n);
  f->output = tile_of(f, "o", FTL_FP32, columns);
  f->softmax = ftl_online_softmax_declare(b, a->block_m, a);
  if (a->warps_n > 1) ftl_online_softmax_exchange(b, &f->softmax, role, a->block_m);
  if (f->refills_late && !f->refills_behind) f->refill_barrier = ftl_builder_named_barrier(b, "refill", readers);
  f->softmax.output_scale = ftl_attention_dropout_scale(a);
  declare_tile(f, spec);
  f->keys = ftl_attention_keys_lengths(b, a, f->lengths, f->tile.row);
  if (f->lists.tiles == NULL) return;
  ftl_listed_tiles listed = ftl_tile_lists_declare(b, &f->lists, f->tile.row);
  f->keys = listed.range;
  f->listed = listed.tiles;
  ftl_attention_needs_keys(b, a, t.k, t.v, f->lists.num_keys);
}

// The first key of the tile that comes as number j of those that the query tile walks.
static ftl_expr key_of(const flash2 *f, ftl_expr j) {
  ftl_expr tile = f->lists.tiles == NULL ? j : ftl_lookup(f->b, f->listed, j);
  return ftl_mul(f->b, tile, ftl_const(f->b, f->a.block_n));
}

// FlexAttention's template steps from tile to tile by the difference of a list's entry and the next, both loaded in
// each step when its scores are known: beside the address, the load and its guard that are another load, the tile's
// number in its block, the step's, the choice between the step within a block and that to the next, and the moves
// between uniform and other registers. Source: SASS of the kernel (PyTorch 2.11, Triton 3.6), 26 to 29 instructions in
// all.
enum { LIST_STEP_INSTS = 25 };

static void look_ahead(const flash2 *f, ftl_expr j, ftl_expr present) {
  if (f->lists.by_blocks) ftl_look_up(f->b, ftl_lookup(f->b, f->listed, j), present, LIST_STEP_INSTS);
}

// ---- loads ----

// Rows are counted from the sequence's first.
static ftl_tile_ref in_sequence(const flash2 *f, ftl_tile_ref ref) {
  ref.row = ftl_add(f->b, f->origin, ref.row);
  ref.row_end = f->row_end;
  return ref;
}

static ftl_tile_ref query_ref(const flash2 *f, int32_t tensor, int32_t columns) {
  return in_sequence(f, ftl_attention_query_ref(&f->tile, tensor, f->tile.row, f->a.block_m, columns));
}

static void load_queries(const flash2 *f) { ftl_fill_stage(f->b, f->ring_q, query_ref(f, f->q, f->a.head_dim)); }

// Fills the next stage with key (or value) tile `j`; an empty stage unless `present` > 0.
static void load_keys(const flash2 *f, int32_t ring, int32_t tensor, ftl_expr j, ftl_expr present) {
  ftl_tile_ref keys =
      in_sequence(f, ftl_attention_key_ref(&f->tile, tensor, key_of(f, j), f->a.block_n, f->a.head_dim));
  keys.present = present;
  ftl_fill_stage(f->b, ring, keys);
}

// ---- one iteration ----

static void multiply_scores(const flash2 *f) {
  ftl_fill(f->b, f->scores, 0.0f);
  if (f->q_in_registers)
    ftl_mma_value(f->b, f->scores, f->q_tile, f->ring_k, true);
  else
    ftl_mma_shared(f->b, f->scores, f->ring_q, f->ring_k, true);
  ftl_release(f->b, f->ring_k);
}

static void mask_scores(const flash2 *f, ftl_expr j) {
  ftl_attention_mask_lengths(f->b, &f->a, f->lengths, f->scores, f->tile.row, key_of(f, j), 0);
}

static void softmax(const flash2 *f, ftl_expr j, bool masked) {
  ftl_online_softmax_step(f->b, &f->softmax, f->scores, masked);
  ftl_convert(f->b, f->probs, f->scores);
  ftl_attention_dropout(f->b, &f->a, &f->tile, f->probs, f->tile.row, key_of(f, j));
  ftl_elem(f->b, FTL_ELEM_MUL, f->output, ftl_value_operand(f->output), ftl_value_operand(f->softmax.correction),
           ftl_immediate(0));
}

static void multiply_probs(const flash2 *f) {
  if (f->a.warps_n > 1)
    ftl_online_softmax_multiply_exchanged(f->b, &f->softmax, f->output, f->probs, f->ring_p, f->ring_v);
  else
    ftl_mma_value(f->b, f->output, f->probs, f->ring_v, false);
}

static void multiply_values(const flash2 *f) {
  multiply_probs(f);
  ftl_release(f->b, f->ring_v);
}

// Whether tile j of the loop at hand exists, as the source asks where the answer is always yes.
static ftl_expr exists(const flash2 *f, ftl_expr j, bool compares) {
  return compares ? ftl_sub(f->b, f->keys.end, j) : FTL_ALWAYS;
}

// One buffer for both: V follows as soon as K was read, and nothing overlaps.
static void iterate_single_buffer(const flash2 *f, ftl_expr j, bool masked) {
  load_keys(f, f->ring_k, f->k, j, exists(f, j, f->compares_k));
  ftl_wait(f->b, f->ring_k);
  multiply_scores(f);
  if (masked) mask_scores(f, j);
  load_keys(f, f->ring_v, f->v, j, exists(f, j, f->compares_v));
  ftl_wait(f->b, f->ring_v);
  softmax(f, j, masked);
  multiply_values(f);
}

// `num_stages` buffers each: the tile num_stages - 1 ahead is asked for when the oldest buffer is known to be free.
static void iterate_stages(const flash2 *f, ftl_expr j, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  ftl_expr ahead_exists = ftl_sub(f->b, f->keys.end, ahead);
  ftl_wait(f->b, f->ring_k);
  load_keys(f, f->ring_k, f->k, ahead, ahead_exists);
  multiply_scores(f);
  if (masked) mask_scores(f, j);
  softmax(f, j, masked);
  ftl_wait(f->b, f->ring_v);
  load_keys(f, f->ring_v, f->v, ahead, ahead_exists);
  multiply_values(f);
}

// The same with all K buffers full and all V buffers but one: what a step's wait shows to be free, the V tile before
// this one and then K, is asked for half a step sooner (kernels/attention/flash2_mma.h and flash2_wgmma.h, which have
// the last V tile in flight before the first step too).
static void iterate_stages_when_free(const flash2 *f, ftl_expr j, bool masked) {
  ftl_expr next_k = ftl_add(f->b, j, ftl_const(f->b, f->num_stages));
  ftl_expr next_v = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  ftl_wait_first_apart(f->b, f->ring_k);
  load_keys(f, f->ring_v, f->v, next_v, ftl_sub(f->b, f->keys.end, next_v));
  multiply_scores(f);
  if (masked) mask_scores(f, j);
  softmax(f, j, masked);
  ftl_wait(f->b, f->ring_v);
  load_keys(f, f->ring_k, f->k, next_k, ftl_sub(f->b, f->keys.end, next_k));
  multiply_values(f);
}

// The same as Triton's software pipeliner compiles it: a step waits for K and V at once, and asks for the tiles ahead
// when its second product runs. With wgmma, which still reads V then, those are of buffers that the step has not read,
// behind a barrier, since it does not tell buffers apart; with mma.sync of its own. `end`: of the loop, which asks for
// nothing of the next one.
static void iterate_stages_late(const flash2 *f, ftl_expr j, ftl_expr end, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_k_ahead)), ahead_exists = ftl_sub(f->b, end, ahead);
  ftl_wait(f->b, f->ring_k);
  ftl_wait(f->b, f->ring_v);
  multiply_scores(f);
  look_ahead(f, ahead, ahead_exists);
  if (masked) mask_scores(f, j);
  softmax(f, j, masked);
  multiply_probs(f);
  if (f->refills_behind)
    ftl_release(f->b, f->ring_v);
  else
    ftl_sync(f->b, f->refill_barrier);
  load_keys(f, f->ring_k, f->k, ahead, ahead_exists);
  load_keys(f, f->ring_v, f->v, ahead, ahead_exists);
  if (!f->refills_behind) ftl_release(f->b, f->ring_v);
}

// One buffer each, from the last tile to the first: V is fetched during QK^T, the next K during softmax and PV.
static void iterate_interleaved(const flash2 *f, ftl_expr j, bool masked) {
  ftl_wait(f->b, f->ring_k);
  load_keys(f, f->ring_v, f->v, j, exists(f, j, f->compares_v));
  multiply_scores(f);
  if (masked) mask_scores(f, j);
  ftl_wait(f->b, f->ring_v);
  load_keys(f, f->ring_k, f->k, ftl_sub(f->b, j, ftl_const(f->b, 1)), ftl_sub(f->b, j, f->keys.first));
  softmax(f, j, masked);
  multiply_values(f);
}

// ---- the kernel ----

// The buffers that are asked for ahead, of key tiles first .. end-1.
static void fill_ahead(const flash2 *f, ftl_expr first, ftl_expr end) {
  for (int32_t j = 0; j < f->num_k_ahead; j++) {
    ftl_expr tile = ftl_add(f->b, first, ftl_const(f->b, j)), exists = ftl_sub(f->b, end, tile);
    load_keys(f, f->ring_k, f->k, tile, exists);
    if (j < f->num_v_ahead) load_keys(f, f->ring_v, f->v, tile, exists);
  }
}

static void prologue(const flash2 *f) {
  ftl_builder *b = f->b;
  load_queries(f);
  if (f->interleaved)
    load_keys(f, f->ring_k, f->k, ftl_sub(b, f->keys.end, ftl_const(b, 1)), ftl_sub(b, f->keys.end, f->keys.first));
  else if (!f->refills_late)
    fill_ahead(f, f->keys.first, f->keys.end);
  ftl_fill(b, f->output, 0.0f);
  ftl_online_softmax_start(b, &f->softmax);
  ftl_wait(b, f->ring_q);
  if (!f->q_in_registers) return;
  ftl_fetch(b, f->q_tile, f->ring_q);
  ftl_release(b, f->ring_q);
}

// The stages that were prefetched past the last tile are empty; what comes next, the next tile of a persistent CTA or a
// loop that fills its own, must find none.
static void drain(const flash2 *f) {
  for (int32_t i = 0; i < f->num_k_ahead; i++) {
    ftl_wait(f->b, f->ring_k);
    ftl_release(f->b, f->ring_k);
  }
  for (int32_t i = 0; i < f->num_v_ahead; i++) {
    ftl_wait(f->b, f->ring_v);
    ftl_release(f->b, f->ring_v);
  }
}

// Key tiles lo .. hi-1, upwards or downwards. A range that is empty whatever the CTA gives no code.
static void loop(const flash2 *f, ftl_expr lo, ftl_expr hi, bool masked) {
  ftl_builder *b = f->b;
  if (lo == hi) return;
  if (f->interleaved) {
    ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_sub(b, hi, lo)));
    iterate_interleaved(f, ftl_sub(b, ftl_sub(b, hi, ftl_const(b, 1)), i), masked);
  } else {
    if (f->refills_late) fill_ahead(f, lo, hi);
    ftl_expr j = ftl_loop_value(b, ftl_loop(b, lo, hi));
    if (f->refills_late)
      iterate_stages_late(f, j, hi, masked);
    else if (f->ring_k == f->ring_v)
      iterate_single_buffer(f, j, masked);
    else if (f->refills_free)
      iterate_stages_when_free(f, j, masked);
    else
      iterate_stages(f, j, masked);
  }
  ftl_end_loop(b);
  if (f->refills_late) drain(f);
}

// Whether every tile is whole, and the diagonal enters and leaves at corners of tiles.
static bool has_whole_tiles(const flash2 *f) {
  const ftl_attention *a = &f->a;
  bool is_aligned = a->block_m % a->block_n == 0 || a->block_n % a->block_m == 0;
  return is_aligned && f->packed == NULL && a->seqlen_q % a->block_m == 0 && a->seqlen_kv % a->block_n == 0;
}

// FlashAttention-2's n_masking_steps (flash_fwd_kernel.h): one tile, or those that the diagonal crosses, and one more
// where lengths may be no multiples of tiles or there is a window.
static int32_t num_unrolled(const flash2 *f, const ftl_spec *spec) {
  const ftl_attention *a = &f->a;
  if (spec->value[FTL_PARAM_mask_steps] != FTL_MASK_STEPS_UNROLLED) return 0;
  if (!a->causal && a->window == 0) return 1;
  int32_t crossed = (int32_t)ftl_divide_up(a->block_m, a->block_n);
  return a->window == 0 && has_whole_tiles(f) ? crossed : crossed + 1;
}

// The last tiles have code of their own each, masked where any tile may have to be, then all others one loop.
static void unrolled_loops(const flash2 *f) {
  ftl_builder *b = f->b;
  const ftl_key_range *k = &f->keys;
  ftl_expr zero = ftl_const(b, 0), one = ftl_const(b, 1), num_tiles = ftl_sub(b, k->end, k->first);
  bool masked = f->a.causal || f->a.window > 0 || !has_whole_tiles(f);
  for (int32_t i = 0; i < f->num_unrolled; i++) {
    ftl_expr exists = ftl_min(b, one, ftl_max(b, zero, ftl_sub(b, num_tiles, ftl_const(b, i))));
    ftl_loop(b, zero, exists);
    iterate_interleaved(f, ftl_sub(b, k->end, ftl_const(b, i + 1)), masked);
    ftl_end_loop(b);
  }
  ftl_expr rest = ftl_max(b, k->first, ftl_sub(b, k->end, ftl_const(b, f->num_unrolled)));
  loop(f, k->first, rest, f->masks_whole_tiles);
}

static void main_loops(const flash2 *f) {
  const ftl_key_range *k = &f->keys;
  if (f->num_unrolled > 0) {
    unrolled_loops(f);
    return;
  }
  if (f->masks_whole_tiles) {
    loop(f, k->first, k->end, true);
    return;
  }
  if (f->interleaved)
    loop(f, k->unmasked, k->end, true);
  else
    loop(f, k->first, k->whole, true);
  loop(f, k->whole, k->unmasked, false);
  if (f->interleaved)
    loop(f, k->first, k->whole, true);
  else
    loop(f, k->unmasked, k->end, true);
}

static void epilogue(const flash2 *f) {
  if (!f->q_in_registers) ftl_release(f->b, f->ring_q);
  if (f->persistent && !f->refills_late) drain(f);
  ftl_online_softmax_finish(f->b, &f->softmax, f->output);
  ftl_store(f->b, query_ref(f, f->o, f->a.head_dim), f->output, f->ring_q);
  ftl_store_rows(f->b, query_ref(f, f->lse, 1), f->softmax.max);
}

// auto: Triton's kernel holds Q in registers with mma.sync and the CUDA kernel of FlashAttention-2 reads it from shared
// memory in every step; so does wgmma.
static bool is_q_in_registers(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_q_operand] != FTL_Q_OPERAND_AUTO) return v[FTL_PARAM_q_operand] == FTL_Q_OPERAND_REGISTERS;
  return v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_mma] != FTL_SPEC_MMA_WGMMA &&
         v[FTL_PARAM_warps_n] == 1;
}

static bool refills_late(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_buffers = v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_num_stages] > 1;
  if (v[FTL_PARAM_refill] != FTL_REFILL_AUTO)
    return v[FTL_PARAM_refill] == FTL_REFILL_LATE || v[FTL_PARAM_refill] == FTL_REFILL_BEHIND;
  return has_buffers && v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC;
}

static bool refills_free(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_buffers = v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_num_stages] > 1;
  return has_buffers && v[FTL_PARAM_refill] == FTL_REFILL_WHEN_FREE;
}

static int64_t num_ctas(const flash2 *f) {
  return f->a.heads * (f->packed ? f->packed->num_tiles : f->a.batch * f->a.num_m_tiles);
}

static int64_t model_flops(const flash2 *f) {
  if (f->packed) return ftl_packed_batch_flops(f->packed, &f->a);
  return f->lists.tiles == NULL ? ftl_attention_forward_flops(&f->a)
                                : ftl_attention_flops_of_pairs(&f->a, f->lists.num_pairs);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  if (status != FTL_OK) return status;
  flash2 f = {.a = ftl_attention_of(spec),
              .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages],
              .interleaved = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED,
              .persistent = spec->value[FTL_PARAM_persistent] != 0};
  f.q_in_registers = is_q_in_registers(spec);
  f.refills_late = refills_late(spec);
  f.refills_free = refills_free(spec);
  f.refills_behind = spec->value[FTL_PARAM_refill] == FTL_REFILL_BEHIND;
  f.num_k_ahead = f.refills_behind || f.refills_free || f.interleaved ? f.num_stages : f.num_stages - 1;
  f.num_v_ahead = f.refills_behind ? f.num_stages : f.num_stages - 1;
  // flash2_mma.h bounds its loops by whole tiles and by all, and its copies by all, so that nvcc cannot tell that a
  // tile in the loop exists; flash2_wgmma.h bounds both by all, and compares before the next K alone.
  f.compares_k = spec->value[FTL_PARAM_code] == FTL_CODE_PLAIN;
  f.compares_v = f.compares_k && spec->value[FTL_PARAM_mma] != FTL_SPEC_MMA_WGMMA;
  f.masks_whole_tiles = ftl_attention_masks_all_steps(spec);
  ftl_packed_batch *packed = NULL;
  status = ftl_packed_batch_create(&packed, spec, spec->value[FTL_PARAM_block_m], error);
  if (status != FTL_OK) return status;
  f.packed = packed;
  f.num_unrolled = num_unrolled(&f, spec);
  status = ftl_tile_lists_init(&f.lists, spec, ftl_tile_walk_forward(spec), error);
  if (status == FTL_OK) status = ftl_builder_create(&f.b, "flash2_fwd", error);
  if (status != FTL_OK) goto done;
  declare(&f, spec);
  ftl_builder_grid(f.b, num_ctas(&f), f.persistent, ftl_spec_handout(spec));
  ftl_builder_flops(f.b, model_flops(&f));
  prologue(&f);
  main_loops(&f);
  epilogue(&f);
  status = ftl_builder_finish(f.b, &launches[0], error);
  if (status == FTL_OK) *num_launches = 1;
  ftl_builder_destroy(f.b);
done:
  ftl_tile_lists_fini(&f.lists);
  ftl_packed_batch_destroy(packed);
  return status;
}

const ftl_workload ftl_workload_flash2_fwd = {
    .name = "flash2_fwd",
    .doc = "FlashAttention-2 forward: a CTA keeps a tile of queries and walks the keys with an online softmax",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES_L2_PRIORITIES | FTL_TAKES(tile_scheduler) | FTL_TAKES_MASK |
                FTL_TAKES(dropout_p) | FTL_TAKES(lengths) | FTL_TAKES_SOFTMAX_FORM | FTL_TAKES(mask_steps) |
                FTL_TAKES(refill) | FTL_TAKES(head_dim_multiple) | FTL_TAKES(warps_n)) &
               ~(FTL_TAKES(splits) | FTL_TAKES(softmax)),
    .packs_queries = true,
    .schedules = 1 << FTL_SCHEDULE_STAGES | 1 << FTL_SCHEDULE_INTERLEAVED,
    .build = build,
};
