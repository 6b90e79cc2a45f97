// FlashAttention-2, forward: each CTA keeps one tile of queries and walks the tiles of keys and values.
// Source: T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", arXiv:2307.08691,
// algorithm 1. Schedules: Triton's fused-attention tutorial (`stages`, refilled late as its software pipeliner does, or
// early) and csrc/flash_attn/src/flash_fwd_kernel.h of github.com/Dao-AILab/flash-attention (`interleaved`).
#include "base/integer.h"
#include "workloads/flash2.h"

// ---- declarations ----

static void declare_tile(ftl_flash2 *f, const ftl_spec *spec) {
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

// Of scores or probabilities.
static int32_t tile_of_keys(const ftl_flash2 *f, const char *name, ftl_dtype dtype) {
  int32_t tile = ftl_builder_tile(f->b, name, dtype, f->a.block_m, f->a.block_n);
  if (f->a.warps_n > 1 && f->a.repeats_scores)
    ftl_builder_repeat(f->b, f->a.warps_n);
  else if (f->a.warps_n > 1)
    ftl_builder_side_by_side(f->b, f->a.warps_n);
  return tile;
}

static int32_t tile_of_output(const ftl_flash2 *f) {
  int32_t tile = ftl_builder_tile(f->b, "o", FTL_FP32, f->a.block_m, f->a.padded_head_dim_v);
  if (f->a.warps_n > 1) ftl_builder_side_by_side(f->b, f->a.warps_n);
  return tile;
}

// One buffer for K and V: the wider of the two has it, and the other lies over that.
static void declare_single_buffer(ftl_flash2 *f, int32_t role) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  bool is_one = a->padded_head_dim == a->padded_head_dim_v, v_is_wider = a->padded_head_dim_v > a->padded_head_dim;
  if (v_is_wider) f->ring_v = ftl_builder_ring(b, "v", a->dtype, a->block_n, a->padded_head_dim_v, 1, role, 1 << role);
  f->ring_k = ftl_builder_ring(b, is_one ? "kv" : "k", a->dtype, a->block_n, a->padded_head_dim, 1, role, 1 << role);
  if (v_is_wider) {
    ftl_builder_overlay(b, f->ring_k);
    return;
  }
  f->ring_v = f->ring_k;
  if (is_one) return;
  f->ring_v = ftl_builder_ring(b, "v", a->dtype, a->block_n, a->padded_head_dim_v, 1, role, 1 << role);
  ftl_builder_overlay(b, f->ring_v);
}

static void declare_buffers(ftl_flash2 *f, int32_t role) {
  const ftl_attention *a = &f->a;
  if (f->single_buffer) {
    declare_single_buffer(f, role);
    return;
  }
  f->ring_k = ftl_builder_ring(f->b, "k", a->dtype, a->block_n, a->padded_head_dim, f->num_stages, role, 1 << role);
  f->ring_v = ftl_builder_ring(f->b, "v", a->dtype, a->block_n, a->padded_head_dim_v, f->num_stages, role, 1 << role);
  if (!f->refills_amid) return;
  ftl_builder_count_releases(f->b, f->ring_k);
  ftl_builder_count_releases(f->b, f->ring_v);
}

// O leaves through Q's rows. Where it has more columns it has a buffer of its own, over all others where these are idle
// by then and have the room, as compilers lay out what is used one after the other.
static void stage_output(ftl_flash2 *f, int32_t role) {
  const ftl_attention *a = &f->a;
  f->ring_o = f->ring_q;
  if (a->padded_head_dim_v <= a->padded_head_dim) return;
  f->ring_o = ftl_builder_ring(f->b, "o", a->dtype, a->block_m, a->padded_head_dim_v, 1, role, 1 << role);
  int64_t columns =
      f->single_buffer ? a->padded_head_dim_v : f->num_stages * (a->padded_head_dim + a->padded_head_dim_v);
  int64_t room = (int64_t)a->block_m * a->padded_head_dim + a->block_n * columns;
  f->output_lies_over = !f->persistent && room >= (int64_t)a->block_m * a->padded_head_dim_v;
  if (f->output_lies_over) ftl_builder_overlay(f->b, f->ring_o);
}

static void declare(ftl_flash2 *f, const ftl_spec *spec) {
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
  f->single_buffer = f->num_stages == 1 && !f->interleaved && !f->refills_behind;
  f->exchanges = a->warps_n > 1 && !a->repeats_scores;
  if (f->back_to_back) {
    ftl_flash2_declare_back_to_back(f, role);
  } else {
    f->ring_q = ftl_builder_ring(b, "q", a->dtype, a->block_m, columns, 1, role, readers);
    declare_buffers(f, role);
    stage_output(f, role);
  }
  if (f->exchanges && !f->back_to_back)
    f->ring_p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, 1, role, readers);
  if (f->q_in_registers) f->q_tile = ftl_builder_tile(b, "q", a->dtype, a->block_m, columns);
  f->scores = tile_of_keys(f, "s", FTL_FP32);
  f->probs = tile_of_keys(f, "p", a->dtype);
  f->output = tile_of_output(f);
  f->softmax = ftl_online_softmax_declare(b, a->block_m, a);
  if (f->back_to_back)
    ftl_online_softmax_keep_in_shared(b, &f->softmax, role, a->block_m);
  else if (f->exchanges)
    ftl_online_softmax_exchange(b, &f->softmax, role, a->block_m);
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

// ---- the kernel ----

// The buffers that are asked for ahead, of key tiles first .. end-1.
static void fill_ahead(const ftl_flash2 *f, ftl_expr first, ftl_expr end) {
  for (int32_t j = 0; j < f->num_k_ahead; j++) {
    ftl_expr tile = ftl_add(f->b, first, ftl_const(f->b, j)), exists = ftl_sub(f->b, end, tile);
    ftl_flash2_load_keys(f, tile, exists);
    if (j < f->num_v_ahead) ftl_flash2_load_values(f, tile, exists);
  }
}

static void load_queries(const ftl_flash2 *f) {
  ftl_fill_stage(f->b, f->ring_q, ftl_flash2_query_ref(f, f->q, f->a.head_dim));
}

static void prologue(const ftl_flash2 *f) {
  ftl_builder *b = f->b;
  if (f->back_to_back) {
    ftl_fill(b, f->output, 0.0f);
    ftl_online_softmax_start(b, &f->softmax);
    return;
  }
  load_queries(f);
  if (f->interleaved)
    ftl_flash2_load_keys(f, ftl_sub(b, f->keys.end, ftl_const(b, 1)), ftl_sub(b, f->keys.end, f->keys.first));
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
static void drain(const ftl_flash2 *f) {
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
static void loop(const ftl_flash2 *f, ftl_expr lo, ftl_expr hi, bool masked) {
  ftl_builder *b = f->b;
  if (lo == hi) return;
  if (f->interleaved) {
    ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_sub(b, hi, lo)));
    ftl_flash2_step_interleaved(f, ftl_sub(b, ftl_sub(b, hi, ftl_const(b, 1)), i), masked);
  } else {
    if (f->refills_late) fill_ahead(f, lo, hi);
    ftl_expr j = ftl_loop_value(b, ftl_loop(b, lo, hi));
    if (f->back_to_back)
      ftl_flash2_step_back_to_back(f, j, masked);
    else if (f->waits_apart)
      ftl_flash2_step_late_apart(f, j, hi, masked);
    else if (f->refills_late)
      ftl_flash2_step_late(f, j, hi, masked);
    else if (f->single_buffer)
      ftl_flash2_step_single_buffer(f, j, masked);
    else if (f->refills_free)
      ftl_flash2_step_when_free(f, j, masked);
    else if (f->refills_amid)
      ftl_flash2_step_amid(f, j, masked);
    else if (f->refills_jointly)
      ftl_flash2_step_joint(f, j, masked);
    else
      ftl_flash2_step_stages(f, j, masked);
  }
  ftl_end_loop(b);
  if (f->refills_late) drain(f);
}

// Whether every tile is whole, and the diagonal enters and leaves at corners of tiles.
static bool has_whole_tiles(const ftl_flash2 *f) {
  const ftl_attention *a = &f->a;
  bool is_aligned = a->block_m % a->block_n == 0 || a->block_n % a->block_m == 0;
  return is_aligned && f->packed == NULL && a->seqlen_q % a->block_m == 0 && a->seqlen_kv % a->block_n == 0;
}

// FlashAttention-2's n_masking_steps (flash_fwd_kernel.h): one tile, or those that the diagonal crosses, and one more
// where lengths may be no multiples of tiles or there is a window.
static int32_t num_unrolled(const ftl_flash2 *f, const ftl_spec *spec) {
  const ftl_attention *a = &f->a;
  if (spec->value[FTL_PARAM_mask_steps] != FTL_MASK_STEPS_UNROLLED) return 0;
  if (!a->causal && a->window == 0) return 1;
  int32_t crossed = (int32_t)ftl_divide_up(a->block_m, a->block_n);
  return a->window == 0 && has_whole_tiles(f) ? crossed : crossed + 1;
}

// The last tiles have code of their own each, masked where any tile may have to be, then all others one loop.
static void unrolled_loops(const ftl_flash2 *f) {
  ftl_builder *b = f->b;
  const ftl_key_range *k = &f->keys;
  ftl_expr zero = ftl_const(b, 0), one = ftl_const(b, 1), num_tiles = ftl_sub(b, k->end, k->first);
  bool masked = f->a.causal || f->a.window > 0 || !has_whole_tiles(f);
  for (int32_t i = 0; i < f->num_unrolled; i++) {
    ftl_expr exists = ftl_min(b, one, ftl_max(b, zero, ftl_sub(b, num_tiles, ftl_const(b, i))));
    ftl_loop_once(b, zero, exists);
    ftl_flash2_step_interleaved(f, ftl_sub(b, k->end, ftl_const(b, i + 1)), masked);
    ftl_end_loop(b);
  }
  ftl_expr rest = ftl_max(b, k->first, ftl_sub(b, k->end, ftl_const(b, f->num_unrolled)));
  loop(f, k->first, rest, f->masks_whole_tiles);
}

static void main_loops(const ftl_flash2 *f) {
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

static void epilogue(const ftl_flash2 *f) {
  if (!f->q_in_registers && !f->back_to_back) ftl_release(f->b, f->ring_q);
  if (f->persistent && !f->refills_late) drain(f);
  ftl_online_softmax_finish(f->b, &f->softmax, f->output);
  if (f->output_lies_over) ftl_barrier(f->b);  // all warps have read V
  ftl_store(f->b, ftl_flash2_query_ref(f, f->o, f->a.head_dim_v), f->output, f->ring_o);
  ftl_store_rows(f->b, ftl_flash2_query_ref(f, f->lse, 1), f->softmax.max);
}

enum { WARP_ROWS = 16, MOST_BESIDE_Q = 192 };

// auto: Triton's kernel holds Q in registers with mma.sync and the CUDA kernel of FlashAttention-2 reads it from shared
// memory in every step; so does wgmma.
// CUDA by hand does as Triton where a warp has 16 rows and O and S leave room: three authors' kernels in
// kernels/independent do, up to 192 columns of both together.
static bool is_q_in_registers(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_q_operand] != FTL_Q_OPERAND_AUTO) return v[FTL_PARAM_q_operand] == FTL_Q_OPERAND_REGISTERS;
  bool may_hold = v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_mma] != FTL_SPEC_MMA_WGMMA &&
                  v[FTL_PARAM_warps_n] == 1;
  bool has_room = v[FTL_PARAM_block_m] == WARP_ROWS * v[FTL_PARAM_num_warps] &&
                  v[FTL_PARAM_head_dim] + v[FTL_PARAM_block_n] <= MOST_BESIDE_Q;
  return may_hold && (v[FTL_PARAM_code] != FTL_CODE_STEPPED || has_room);
}

static bool refills_late(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_buffers = v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_num_stages] > 1;
  if (v[FTL_PARAM_refill] != FTL_REFILL_AUTO)
    return v[FTL_PARAM_refill] == FTL_REFILL_LATE || v[FTL_PARAM_refill] == FTL_REFILL_BEHIND;
  bool is_by_tma = v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA && v[FTL_PARAM_code] == FTL_CODE_LEAN;
  return has_buffers && v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA &&
         (is_by_tma || v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC);
}

static bool refills_free(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_buffers = v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_num_stages] > 1;
  return has_buffers && v[FTL_PARAM_refill] == FTL_REFILL_WHEN_FREE;
}

static int64_t model_flops(const ftl_flash2 *f) {
  return f->packed ? ftl_packed_batch_flops(f->packed, &f->a) : ftl_tile_lists_flops(&f->lists, &f->a);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = ftl_flash2_check(spec, error);
  if (status != FTL_OK) return status;
  ftl_flash2 f = {.a = ftl_attention_of(spec),
                  .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages],
                  .interleaved = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED,
                  .persistent = spec->value[FTL_PARAM_persistent] != 0};
  f.back_to_back = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_BACK_TO_BACK;
  f.preloads = f.back_to_back && spec->value[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC;
  f.q_in_registers = is_q_in_registers(spec);
  f.refills_late = refills_late(spec);
  f.refills_free = refills_free(spec);
  f.refills_behind = spec->value[FTL_PARAM_refill] == FTL_REFILL_BEHIND;
  f.refills_jointly = spec->value[FTL_PARAM_refill] == FTL_REFILL_JOINT;
  f.refills_amid = spec->value[FTL_PARAM_refill] == FTL_REFILL_AMID;
  f.waits_apart = f.refills_late && !f.refills_behind && spec->value[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA;
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
  ftl_builder_grid(f.b, ftl_packed_batch_num_ctas(f.packed, &f.a), f.persistent, ftl_spec_handout(spec));
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

// An answer says what was taken where a program leaves these two open.
static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  ftl_flash2_resolve_back_to_back(spec, arch);
  bool in_registers = is_q_in_registers(spec), late = refills_late(spec);
  int64_t *v = spec->value;
  if (v[FTL_PARAM_q_operand] == FTL_Q_OPERAND_AUTO)
    v[FTL_PARAM_q_operand] = in_registers ? FTL_Q_OPERAND_REGISTERS : FTL_Q_OPERAND_SHARED;
  if (v[FTL_PARAM_refill] == FTL_REFILL_AUTO) v[FTL_PARAM_refill] = late ? FTL_REFILL_LATE : FTL_REFILL_EARLY;
}

const ftl_workload ftl_workload_flash2_fwd = {
    .name = "flash2_fwd",
    .doc = "FlashAttention-2 forward: a CTA keeps a tile of queries and walks the keys with an online softmax",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES_L2_PRIORITIES | FTL_TAKES(tile_scheduler) | FTL_TAKES_MASK |
                FTL_TAKES(dropout_p) | FTL_TAKES(lengths) | FTL_TAKES_SOFTMAX_FORM | FTL_TAKES(mask_steps) |
                FTL_TAKES(refill) | FTL_TAKES(head_dim_multiple) | FTL_TAKES(warps_n) | FTL_TAKES(head_order)) &
               ~(FTL_TAKES(splits) | FTL_TAKES(softmax)),
    .packs_queries = true,
    .schedules = 1 << FTL_SCHEDULE_STAGES | 1 << FTL_SCHEDULE_INTERLEAVED | 1 << FTL_SCHEDULE_BACK_TO_BACK,
    .set_defaults = ftl_flash2_set_back_to_back,
    .resolve = resolve,
    .build = build,
};
