// FlashAttention-3, forward (fp16, bf16, fp8): a producer warpgroup fetches tiles by TMA, two or three consumer
// warpgroups multiply with wgmma, each its own rows of the query tile. Source: J. Shah et al., "FlashAttention-3: Fast
// and Accurate Attention with Asynchrony and Low-precision", arXiv:2407.08608, algorithm 2 and section 3.1 (ping-pong),
// and csrc's register counts (hopper/ of github.com/Dao-AILab/flash-attention). kernels/attention/flash3.h is the same
// in CUDA.
//
// Inside a consumer QK^T of a tile is issued before the softmax of the tile before has met its PV, so softmax and PV
// overlap. Between consumers, named barriers give turns: who holds the turn issues products while the others are in
// their softmax.
//
// fp8: wgmma takes operands of one byte along K only, so V [key][column] is transposed: the producer warpgroup reads
// each tile that has come, and writes V^T to another ring, from which consumers multiply (section 3.3). P is converted
// to e4m3, its exponentials shifted by 2^8 first, for e4m3 has no more than 2^-9 near 0 and goes to 448
// (hopper/softmax.h, Max_offset). Q, K and V are taken as they are (a scale of a tensor is softmax_scale's, or the
// caller's); O is bf16.
//
// HBM: Q and O once, K and V once for each row of query tiles that runs while they are not in L2. A query tile that
// sees no key (causal, more queries than keys) takes one wholly masked step.
#include "tile/builder.h"
#include "workloads/attention.h"
#include "workloads/block_mask.h"
#include "workloads/online_softmax.h"

enum { GROUP_WARPS = 4, MAX_GROUPS = 3, WGMMA_ROWS = 64, MMA_K_BYTES = 32, VECTOR_BYTES = 16, LOG2_LARGEST_P = 8 };

typedef struct flash3 {
  ftl_builder *b;
  ftl_attention a;
  ftl_attention_tensors t;
  int32_t num_groups, group_rows;
  int32_t ring_q, ring_k, ring_v;
  int32_t ring_vt;  // fp8: V^T; else ring_v
  bool is_fp8;
  int32_t turns[MAX_GROUPS];  // named barriers: group g waits at turns[g], the others arrive at it
  ftl_attention_tile tile;
  ftl_key_range keys;   // of the whole query tile: all groups walk the same key tiles; at least one
  ftl_key_lists lists;  // under a block mask `keys` are positions in them
  int32_t listed;       // table: the key tiles at these positions
} flash3;

// One consumer warpgroup.
typedef struct consumer {
  const flash3 *f;
  int32_t group;
  ftl_expr row;  // its first query
  int32_t scores, probs, output;
  int32_t ring_o;  // where O is staged, from row_o on: Q's rows, or of fp8, whose Q is too small, its own
  int32_t row_o;
  ftl_online_softmax softmax;
} consumer;

// ---- what cannot exist on any GPU ----

// The CTAs of a cluster walk the same keys in step.
static ftl_status check_cluster(const ftl_spec *spec, ftl_error *error) {
  ftl_attention a = ftl_attention_of(spec);
  int32_t cluster = ftl_spec_cluster(spec).m;
  if (cluster == 1) return FTL_OK;
  if (a.causal || a.window > 0 || spec->value[FTL_PARAM_mask] != FTL_MASK_NONE)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster=%dx1: with causal, window or mask its query tiles see different keys", cluster);
  if (a.num_m_tiles % cluster == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "cluster=%dx1: a head has %lld query tiles of block_m=%d; allowed is a "
                       "multiple of the cluster",
                       cluster, (long long)a.num_m_tiles, a.block_m);
}

static ftl_status check_operands(const ftl_spec *spec, ftl_error *error) {
  int element_bytes = ftl_dtype_bytes(ftl_spec_dtype(spec)), mma_k = MMA_K_BYTES / element_bytes;
  long long block_n = spec->value[FTL_PARAM_block_n], head_dim = spec->value[FTL_PARAM_head_dim];
  if (block_n % mma_k != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: it is the K of the second matrix product, a multiple of %d", block_n, mma_k);
  if (head_dim * element_bytes % VECTOR_BYTES != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "head_dim=%lld: 16-byte rows of fp8 are a multiple of %d", head_dim,
                         VECTOR_BYTES / element_bytes);
  if (element_bytes == 1 && spec->value[FTL_PARAM_num_stages] < 2)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld dtype=fp8_e4m3: values are transposed while the next tile comes, at least 2",
                         (long long)spec->value[FTL_PARAM_num_stages]);
  if (element_bytes == 1 && ftl_spec_cluster(spec).m > 1)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "cluster=%dx1 dtype=fp8_e4m3: values that a cluster shares are not transposed here",
                         ftl_spec_cluster(spec).m);
  return FTL_OK;
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t num_warps = v[FTL_PARAM_num_warps], groups = num_warps / GROUP_WARPS;
  ftl_status status = check_cluster(spec, error);
  if (status != FTL_OK) return status;
  if (num_warps != 2 * GROUP_WARPS && num_warps != 3 * GROUP_WARPS)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_warps=%lld: flash3_fwd has two or three consumer warpgroups, 8 or 12 warps",
                         (long long)num_warps);
  if (v[FTL_PARAM_block_m] % (groups * WGMMA_ROWS) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld num_warps=%lld: each consumer warpgroup needs a multiple of 64 rows",
                         (long long)v[FTL_PARAM_block_m], (long long)num_warps);
  status = check_operands(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_mma] != FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "flash3_fwd overlaps asynchronous products, which needs mma=wgmma (compute capability 9.0)");
  if (v[FTL_PARAM_copy] != FTL_SPEC_COPY_TMA)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "flash3_fwd has a producer warp that copies tiles, which needs copy=tma (compute capability "
                         "9.0)");
  return FTL_OK;
}

static void set_defaults(ftl_spec *spec) {
  ftl_spec_set_default(spec, FTL_PARAM_schedule, FTL_SCHEDULE_PINGPONG);
  ftl_spec_set_default(spec, FTL_PARAM_num_warps, 2 * GROUP_WARPS);
  ftl_spec_set_default(spec, FTL_PARAM_block_m, spec->value[FTL_PARAM_num_warps] / GROUP_WARPS * WGMMA_ROWS);
}

// ---- declarations ----

// setmaxnreg: what one warpgroup gives up the others get, within 65536 registers of an SM.
static int32_t registers_of(const flash3 *f, bool is_producer) {
  if (f->is_fp8 && f->num_groups == 2) return is_producer ? 40 : 232;  // it transposes
  if (f->num_groups == 2) return is_producer ? 24 : 240;
  return is_producer ? 32 : 160;
}

static void declare(flash3 *f, const ftl_spec *spec) {
  ftl_builder *b = f->b;
  f->t = ftl_attention_declare(b, spec, &f->a);
  ftl_attention_set_l2_priorities(b, spec, &f->t);
  f->tile = ftl_attention_tile_of(b, spec, &f->a);
  f->keys = ftl_attention_keys(b, &f->a, f->tile.row);
  if (f->lists.tiles != NULL) {
    ftl_listed_keys listed = ftl_key_lists_declare(b, &f->lists, &f->a, f->tile.row);
    f->keys = listed.keys;
    f->listed = listed.tiles;
  }
  f->keys.end = ftl_max(b, f->keys.end, ftl_add(b, f->keys.first, ftl_const(b, 1)));

  int32_t columns = f->a.padded_head_dim, num_stages = (int32_t)spec->value[FTL_PARAM_num_stages];
  int32_t producer = 0, consumers = ((1 << f->num_groups) - 1) << 1;
  f->ring_q = ftl_builder_ring(b, "q", f->a.dtype, f->a.block_m, columns, 1, producer, consumers);
  f->ring_k = ftl_builder_ring(b, "k", f->a.dtype, f->a.block_n, columns, num_stages, producer, consumers);
  f->ring_v = ftl_builder_ring(b, "v", f->a.dtype, f->a.block_n, columns, num_stages, producer,
                               f->is_fp8 ? 1 << producer : consumers);
  f->ring_vt = f->ring_v;
  if (f->is_fp8)
    f->ring_vt = ftl_builder_ring(b, "vt", f->a.dtype, columns, f->a.block_n, num_stages, producer, consumers);
  int32_t cluster = ftl_spec_cluster(spec).m;  // query tiles of one head, which read the same keys and values
  ftl_builder_cluster(b, cluster);
  ftl_builder_multicast(b, f->ring_k, (ftl_multicast){cluster, 1});
  ftl_builder_multicast(b, f->ring_v, (ftl_multicast){cluster, 1});
  static const char *const names[MAX_GROUPS] = {"turn 0", "turn 1", "turn 2"};
  for (int32_t g = 0; g < f->num_groups; g++) f->turns[g] = ftl_builder_named_barrier(b, names[g], consumers);
}

// ---- the walk over key tiles, the same for all roles ----

// The first key of the tile that comes as number j of those that the query tile walks.
static ftl_expr key_of(const flash3 *f, ftl_expr j) {
  ftl_expr tile = f->lists.tiles == NULL ? j : ftl_lookup(f->b, f->listed, j);
  return ftl_mul(f->b, tile, ftl_const(f->b, f->a.block_n));
}

typedef void (*step_fn)(void *role, ftl_expr j, bool masked);

static void walk_range(const flash3 *f, ftl_expr lo, ftl_expr hi, bool masked, step_fn step, void *role) {
  if (lo == hi) return;  // empty whatever the CTA
  step(role, ftl_loop_value(f->b, ftl_loop(f->b, lo, hi)), masked);
  ftl_end_loop(f->b);
}

// Every key tile but the first: those that all queries see whole, between those that need the mask.
static void walk_rest(const flash3 *f, step_fn step, void *role) {
  ftl_expr second = ftl_add(f->b, f->keys.first, ftl_const(f->b, 1));
  ftl_expr whole = ftl_max(f->b, second, f->keys.whole), unmasked = ftl_max(f->b, whole, f->keys.unmasked);
  if (whole != second) walk_range(f, second, whole, true, step, role);
  walk_range(f, whole, unmasked, false, step, role);
  walk_range(f, unmasked, f->keys.end, true, step, role);
}

// ---- producer ----

static void transpose_values(const flash3 *f) {
  ftl_wait(f->b, f->ring_v);
  ftl_acquire(f->b, f->ring_vt);
  ftl_transpose(f->b, f->ring_vt, f->ring_v);
  ftl_commit(f->b, f->ring_vt);
  ftl_release(f->b, f->ring_v);
}

static void load_keys_and_values(void *role, ftl_expr j, bool masked) {
  (void)masked;
  const flash3 *f = role;
  const ftl_attention *a = &f->a;
  ftl_expr row = key_of(f, j);
  ftl_fill_stage(f->b, f->ring_k, ftl_attention_key_ref(&f->tile, f->t.k, row, a->block_n, a->head_dim));
  ftl_fill_stage(f->b, f->ring_v, ftl_attention_key_ref(&f->tile, f->t.v, row, a->block_n, a->head_dim));
}

// While this tile is on its way, the values of the one before are transposed.
static void load_and_transpose(void *role, ftl_expr j, bool masked) {
  load_keys_and_values(role, j, masked);
  transpose_values(role);
}

static void produce(flash3 *f) {
  ftl_builder_role(f->b, "producer", GROUP_WARPS, registers_of(f, true));
  ftl_fill_stage(f->b, f->ring_q, ftl_attention_query_ref(&f->tile, f->t.q, f->tile.row, f->a.block_m, f->a.head_dim));
  load_keys_and_values(f, f->keys.first, false);
  walk_rest(f, f->is_fp8 ? load_and_transpose : load_keys_and_values, f);
  if (f->is_fp8) transpose_values(f);
}

// ---- consumers ----

// Group 0 has the first turn: the others arrive at its barrier before anything else, and at those of groups before
// them.
static void line_up(const consumer *c) {
  for (int32_t g = 0; g < c->group; g++) ftl_arrive(c->f->b, c->f->turns[g]);
}

static void take_turn(const consumer *c) { ftl_sync(c->f->b, c->f->turns[c->group]); }

static void pass_turn(const consumer *c) {
  for (int32_t i = 1; i < c->f->num_groups; i++) ftl_arrive(c->f->b, c->f->turns[(c->group + i) % c->f->num_groups]);
}

static void issue_scores(const consumer *c) {
  ftl_fill(c->f->b, c->scores, 0.0f);
  ftl_mma_shared(c->f->b, c->scores, c->f->ring_q, c->f->ring_k, true);
  ftl_at_ring_row(c->f->b, c->group * c->f->group_rows);
}

static void issue_output(const consumer *c) {
  ftl_wait(c->f->b, c->f->ring_vt);
  ftl_mma_value(c->f->b, c->output, c->probs, c->f->ring_vt, c->f->is_fp8);
}

static void mask(const consumer *c, ftl_expr j) {
  ftl_attention_mask(c->f->b, &c->f->a, c->scores, c->row, key_of(c->f, j), 0);
}

// The first tile needs the mask if no tile is seen whole; with a window, as its left edge, always.
static void mask_first(const consumer *c) {
  ftl_builder *b = c->f->b;
  ftl_expr zero = ftl_const(b, 0), one = ftl_const(b, 1);
  const ftl_key_range *keys = &c->f->keys;
  if (keys->whole != keys->first) {
    mask(c, keys->first);
    return;
  }
  ftl_expr first_masked = ftl_min(b, one, ftl_sub(b, keys->unmasked, keys->first));
  if (first_masked == one) return;
  if (first_masked != zero) ftl_loop(b, first_masked, one);
  mask(c, keys->first);
  if (first_masked != zero) ftl_end_loop(b);
}

static void first_step(const consumer *c) {
  const flash3 *f = c->f;
  ftl_wait(f->b, f->ring_k);
  take_turn(c);
  issue_scores(c);
  pass_turn(c);
  ftl_release(f->b, f->ring_k);
  mask_first(c);
  ftl_online_softmax_step(f->b, &c->softmax, c->scores,
                          f->a.causal || f->a.window > 0 || f->a.seqlen_kv < f->a.block_n);
  ftl_convert(f->b, c->probs, c->scores);
}

// Scores of tile j and the output of tile j - 1 are issued together; the softmax of tile j then runs beside the latter.
static void next_step(void *role, ftl_expr j, bool masked) {
  const consumer *c = role;
  const flash3 *f = c->f;
  ftl_wait(f->b, f->ring_k);
  take_turn(c);
  issue_scores(c);
  issue_output(c);
  pass_turn(c);
  ftl_release(f->b, f->ring_k);
  if (masked) mask(c, j);
  ftl_online_softmax_step(f->b, &c->softmax, c->scores, masked);
  ftl_release(f->b, f->ring_vt);
  ftl_elem(f->b, FTL_ELEM_MUL, c->output, ftl_value_operand(c->output), ftl_value_operand(c->softmax.correction),
           ftl_immediate(0));
  ftl_convert(f->b, c->probs, c->scores);
}

static void last_step(const consumer *c) {
  issue_output(c);
  ftl_release(c->f->b, c->f->ring_vt);
}

// O leaves through the group's own rows of Q's buffer, which is free only then.
static void finish(const consumer *c) {
  const flash3 *f = c->f;
  ftl_online_softmax_finish(f->b, &c->softmax, c->output);
  ftl_store(f->b, ftl_attention_query_ref(&f->tile, f->t.o, c->row, f->group_rows, f->a.head_dim), c->output,
            c->ring_o);
  ftl_at_ring_row(f->b, c->row_o);
  ftl_store_rows(f->b, ftl_attention_query_ref(&f->tile, f->t.lse, c->row, f->group_rows, 1), c->softmax.max);
  ftl_release(f->b, f->ring_q);
}

static void stage_output(consumer *c) {
  static const char *const names[MAX_GROUPS] = {"o 0", "o 1", "o 2"};
  int32_t role = 1 + c->group;
  c->ring_o = ftl_builder_ring(c->f->b, names[c->group], ftl_attention_out_dtype(&c->f->a), c->f->group_rows,
                               c->f->a.padded_head_dim, 1, role, 1 << role);
  c->row_o = 0;
}

static void consume(const flash3 *f, int32_t group) {
  ftl_builder *b = f->b;
  static const char *const names[MAX_GROUPS] = {"consumer 0", "consumer 1", "consumer 2"};
  ftl_builder_role(b, names[group], GROUP_WARPS, registers_of(f, false));
  consumer c = {.f = f,
                .group = group,
                .row = ftl_add(b, f->tile.row, ftl_const(b, group * f->group_rows)),
                .scores = ftl_builder_tile(b, "s", FTL_FP32, f->group_rows, f->a.block_n),
                .probs = ftl_builder_tile(b, "p", f->a.dtype, f->group_rows, f->a.block_n),
                .output = ftl_builder_tile(b, "o", FTL_FP32, f->group_rows, f->a.padded_head_dim),
                .ring_o = f->ring_q,
                .row_o = group * f->group_rows,
                .softmax = ftl_online_softmax_declare(b, f->group_rows, f->a.scale)};
  if (f->is_fp8) {
    stage_output(&c);
    c.softmax.log2_largest = LOG2_LARGEST_P;
  }
  line_up(&c);
  ftl_builder_tile_begins(b);
  ftl_fill(b, c.output, 0.0f);
  ftl_online_softmax_start(b, &c.softmax);
  ftl_wait(b, f->ring_q);
  first_step(&c);
  walk_rest(f, next_step, &c);
  last_step(&c);
  finish(&c);
}

// ---- the kernel ----

// Every query tile begins with a key tile.
static ftl_status list_keys(ftl_key_lists *lists, const ftl_spec *spec, ftl_error *error) {
  ftl_status status = ftl_key_lists_init(lists, spec, error);
  if (status != FTL_OK || !ftl_key_lists_some_empty(lists)) return status;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "mask: flash3_fwd needs a key tile for every query tile, and one sees none");
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  if (status != FTL_OK) return status;
  flash3 f = {.a = ftl_attention_of(spec), .num_groups = (int32_t)spec->value[FTL_PARAM_num_warps] / GROUP_WARPS};
  f.group_rows = f.a.block_m / f.num_groups;
  f.is_fp8 = ftl_dtype_is_fp8(f.a.dtype);
  status = list_keys(&f.lists, spec, error);
  if (status == FTL_OK) status = ftl_builder_create(&f.b, "flash3_fwd", error);
  if (status != FTL_OK) goto done;
  declare(&f, spec);
  ftl_builder_grid(f.b, f.a.batch * f.a.heads * f.a.num_m_tiles, spec->value[FTL_PARAM_persistent] != 0,
                   spec->value[FTL_PARAM_tile_scheduler] == FTL_TILE_SCHEDULER_DYNAMIC);
  ftl_builder_flops(f.b, f.lists.tiles == NULL ? ftl_attention_forward_flops(&f.a)
                                               : ftl_attention_flops_of_pairs(&f.a, f.lists.num_pairs));
  produce(&f);
  for (int32_t group = 0; group < f.num_groups; group++) consume(&f, group);
  status = ftl_builder_finish(f.b, &launches[0], error);
  if (status == FTL_OK) *num_launches = 1;
  ftl_builder_destroy(f.b);
done:
  ftl_key_lists_fini(&f.lists);
  return status;
}

const ftl_workload ftl_workload_flash3_fwd = {
    .name = "flash3_fwd",
    .doc = "FlashAttention-3 forward: a producer warpgroup copies, two or three consumer warpgroups take turns",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES_L2_PRIORITIES | FTL_TAKES_CLUSTERS | FTL_TAKES_MASK) &
               ~(FTL_TAKES(splits) | FTL_TAKES(softmax) | FTL_TAKES(q_operand)),
    .schedules = 1 << FTL_SCHEDULE_PINGPONG,
    .dtypes = 1 << FTL_SPEC_FP16 | 1 << FTL_SPEC_BF16 | 1 << FTL_SPEC_FP8_E4M3,
    .set_defaults = set_defaults,
    .build = build,
};
