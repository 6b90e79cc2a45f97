// FlashAttention-3, forward (fp16, bf16, fp8): a producer warpgroup fetches tiles by TMA, two or three consumer
// warpgroups multiply with wgmma, each its own rows of the query tile. Source: J. Shah et al., "FlashAttention-3: Fast
// and Accurate Attention with Asynchrony and Low-precision", arXiv:2407.08608, algorithm 2 and section 3.1 (ping-pong),
// and csrc's register counts (hopper/ of github.com/Dao-AILab/flash-attention). kernels/attention/flash3.h is the same
// in CUDA.
//
// Inside a consumer QK^T of a tile is issued before the softmax of the tile before has met its PV, so softmax and PV
// overlap. Between consumers, named barriers give turns: who holds the turn issues products while the others are in
// their softmax. Either can be left out, as the paper does to see what it is worth (its section 4.3): overlap=false
// waits for each product, schedule=stages has all warps copy ahead and compute, without roles and turns.
// turns=softmax is cuDNN's kernel for Hopper, read from its SASS: consumers wait for each product, whose turn it is has
// the exponentials to itself while the other multiplies, and all steps are one loop; with q_stages=2 the producer is a
// tile of queries ahead.
//
// fp8: wgmma takes operands of one byte along K only, so V [key][column] is transposed: the producer warpgroup reads
// each tile that has come, and writes V^T to another ring, from which consumers multiply (section 3.3). P is converted
// to e4m3, its exponentials shifted by 2^8 first, for e4m3 has no more than 2^-9 near 0 and goes to 448
// (hopper/softmax.h, Max_offset). Q, K and V are taken as they are (a scale of a tensor is softmax_scale's, or the
// caller's); O is bf16.
//
// HBM: Q and O once, K and V once for each row of query tiles that runs while they are not in L2. A query tile that
// sees no key (causal, more queries than keys) takes one wholly masked step.
#include "workloads/flash3.h"

#include "base/integer.h"
#include "tile/builder.h"

static void set_defaults(ftl_spec *spec) {
  ftl_spec_set_default(spec, FTL_PARAM_schedule, FTL_SCHEDULE_PINGPONG);
  ftl_spec_set_default(spec, FTL_PARAM_num_warps, 2 * FTL_FLASH3_GROUP_WARPS);
  int64_t groups = ftl_divide_up(spec->value[FTL_PARAM_num_warps], FTL_FLASH3_GROUP_WARPS);
  ftl_spec_set_default(spec, FTL_PARAM_block_m, groups * FTL_FLASH3_WGMMA_ROWS);
  bool waits = spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && spec->value[FTL_PARAM_producer] != 0;
  ftl_spec_set_default(spec, FTL_PARAM_overlap, !waits);
}

// ---- declarations ----

// setmaxnreg: what one warpgroup gives up the others get, within 65536 registers of an SM. One consumer keeps what
// the compiler gives: more would leave no room for a second CTA.
static int32_t registers_of(const ftl_flash3 *f, bool is_producer) {
  if (f->num_groups == 1) return 0;
  if (f->is_fp8 && f->num_groups == 2) return is_producer ? 40 : 232;  // it transposes
  if (f->num_groups == 2) return is_producer ? 24 : 240;
  return is_producer ? 32 : 160;
}

static void declare_tile(ftl_flash3 *f, const ftl_spec *spec) {
  ftl_builder *b = f->b;
  if (f->packed)
    f->tile = ftl_packed_batch_tile(b, spec, f->packed, &f->a);
  else
    f->tile = (ftl_packed_tile){.tile = ftl_attention_tile_of(b, spec, &f->a),
                                .lengths = ftl_attention_lengths_of(b, &f->a),
                                .origin = ftl_const(b, 0),
                                .row_end = FTL_TENSOR_END};
  f->keys = ftl_attention_keys_lengths(b, &f->a, f->tile.lengths, f->tile.tile.row);
  if (f->masks_all) f->keys.unmasked = f->keys.whole;
  if (f->lists.tiles != NULL) {
    ftl_listed_tiles listed = ftl_tile_lists_declare(b, &f->lists, f->tile.tile.row);
    f->keys = listed.range;
    f->listed = listed.tiles;
    ftl_attention_needs_keys(b, &f->a, f->t.k, f->t.v, f->lists.num_keys);
  }
  f->keys.end = ftl_max(b, f->keys.end, ftl_add(b, f->keys.first, ftl_const(b, 1)));
}

// Role 0 copies; with a producer those after it compute.
static void declare_rings(ftl_flash3 *f) {
  ftl_builder *b = f->b;
  int32_t columns = f->a.padded_head_dim, columns_v = f->a.padded_head_dim_v, copier = 0;
  int32_t computing = f->has_producer ? ((1 << f->num_groups) - 1) << 1 : 1 << copier;
  f->ring_q = ftl_builder_ring(b, "q", f->a.dtype, f->a.block_m, columns, f->q_stages, copier, computing);
  f->ring_k = ftl_builder_ring(b, "k", f->a.dtype, f->a.block_n, columns, f->num_stages, copier, computing);
  f->ring_v = ftl_builder_ring(b, "v", f->a.dtype, f->a.block_n, columns_v, f->num_stages, copier,
                               f->is_fp8 ? 1 << copier : computing);
  f->ring_vt = f->ring_v;
  if (f->is_fp8)
    f->ring_vt = ftl_builder_ring(b, "vt", f->a.dtype, columns_v, f->a.block_n, f->num_stages, copier, computing);
  if (!f->takes_turns) return;
  static const char *const names[FTL_FLASH3_MAX_GROUPS] = {"turn 0", "turn 1", "turn 2"};
  for (int32_t g = 0; g < f->num_groups; g++) f->turns[g] = ftl_builder_named_barrier(b, names[g], computing);
  if (f->softmax_takes_turns) f->begins = ftl_builder_named_barrier(b, "tile begins", computing);
}

static void declare(ftl_flash3 *f, const ftl_spec *spec) {
  ftl_builder *b = f->b;
  f->t = f->packed ? ftl_packed_batch_declare(b, spec, f->packed, &f->a) : ftl_attention_declare(b, spec, &f->a);
  ftl_attention_set_l2_priorities(b, spec, &f->t);
  declare_tile(f, spec);
  declare_rings(f);
  int32_t cluster = ftl_spec_cluster(spec).m;  // query tiles of one head, which read the same keys and values
  ftl_builder_cluster(b, cluster);
  ftl_builder_multicast(b, f->ring_k, (ftl_multicast){cluster, 1});
  ftl_builder_multicast(b, f->ring_v, (ftl_multicast){cluster, 1});
}

static void write_roles(const ftl_flash3 *f) {
  static const char *const names[FTL_FLASH3_MAX_GROUPS] = {"consumer 0", "consumer 1", "consumer 2"};
  if (!f->has_producer) {
    ftl_builder_role(f->b, "main", f->group_warps, 0);
    ftl_flash3_consume(f, 0);
    return;
  }
  ftl_builder_role(f->b, "producer", FTL_FLASH3_GROUP_WARPS, registers_of(f, true));
  ftl_flash3_produce(f);
  for (int32_t group = 0; group < f->num_groups; group++) {
    ftl_builder_role(f->b, names[group], f->group_warps, registers_of(f, false));
    ftl_flash3_consume(f, group);
  }
}

// ---- the kernel ----

// Every query tile begins with a key tile.
static ftl_status list_keys(ftl_tile_lists *lists, const ftl_spec *spec, ftl_error *error) {
  ftl_status status = ftl_tile_lists_init(lists, spec, ftl_tile_walk_forward(spec), error);
  if (status != FTL_OK || !ftl_tile_lists_some_empty(lists)) return status;
  return ftl_error_set(error, FTL_INFEASIBLE,
                       "mask: flash3_fwd needs a key tile for every query tile, and one sees none");
}

static ftl_flash3 kernel_of(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  ftl_flash3 f = {.a = ftl_attention_of(spec),
                  .has_producer = ftl_flash3_has_producer(spec),
                  .takes_turns = v[FTL_PARAM_schedule] == FTL_SCHEDULE_PINGPONG,
                  .overlaps = v[FTL_PARAM_overlap] != 0,
                  .masks_all = ftl_attention_masks_all_steps(spec),
                  .softmax_takes_turns = v[FTL_PARAM_turns] == FTL_TURNS_SOFTMAX,
                  .is_persistent = v[FTL_PARAM_persistent] != 0,
                  .num_stages = (int32_t)v[FTL_PARAM_num_stages],
                  .q_stages = (int32_t)v[FTL_PARAM_q_stages],
                  .num_groups = 1};
  if (f.has_producer) f.num_groups = (int32_t)v[FTL_PARAM_num_warps] / FTL_FLASH3_GROUP_WARPS;
  f.group_warps = (int32_t)v[FTL_PARAM_num_warps] / f.num_groups;
  f.group_rows = f.a.block_m / f.num_groups;
  f.is_fp8 = ftl_dtype_is_fp8(f.a.dtype);
  return f;
}

static int64_t model_flops(const ftl_flash3 *f) {
  return f->packed ? ftl_packed_batch_flops(f->packed, &f->a) : ftl_tile_lists_flops(&f->lists, &f->a);
}

static ftl_status write(ftl_flash3 *f, const ftl_spec *spec, ftl_tile_program **out, ftl_error *error) {
  ftl_status status = ftl_builder_create(&f->b, "flash3_fwd", error);
  if (status != FTL_OK) return status;
  declare(f, spec);
  ftl_builder_grid(f->b, ftl_packed_batch_num_ctas(f->packed, &f->a), f->is_persistent, ftl_spec_handout(spec));
  ftl_builder_flops(f->b, model_flops(f));
  write_roles(f);
  status = ftl_builder_finish(f->b, out, error);
  ftl_builder_destroy(f->b);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = ftl_flash3_check(spec, error);
  if (status != FTL_OK) return status;
  ftl_flash3 f = kernel_of(spec);
  ftl_packed_batch *packed = NULL;
  status = ftl_packed_batch_create(&packed, spec, spec->value[FTL_PARAM_block_m], error);
  if (status != FTL_OK) return status;
  f.packed = packed;
  status = list_keys(&f.lists, spec, error);
  if (status == FTL_OK) status = write(&f, spec, &launches[0], error);
  if (status == FTL_OK) *num_launches = 1;
  ftl_tile_lists_fini(&f.lists);
  ftl_packed_batch_destroy(packed);
  return status;
}

static bool needs_wgmma(const ftl_spec *spec) {
  (void)spec;
  return true;
}

const ftl_workload ftl_workload_flash3_fwd = {
    .name = "flash3_fwd",
    .doc = "FlashAttention-3 forward: a producer warpgroup copies, consumer warpgroups take turns",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES_L2_PRIORITIES | FTL_TAKES_CLUSTERS | FTL_TAKES_MASK | FTL_TAKES(overlap) |
                FTL_TAKES(turns) | FTL_TAKES(q_stages) | FTL_TAKES(producer) | FTL_TAKES_SOFTMAX_FORM |
                FTL_TAKES(lengths) | FTL_TAKES(mask_steps) | FTL_TAKES(head_dim_multiple) | FTL_TAKES(head_order)) &
               ~(FTL_TAKES(splits) | FTL_TAKES(softmax) | FTL_TAKES(q_operand)),
    .packs_queries = true,
    .schedules = 1 << FTL_SCHEDULE_PINGPONG | 1 << FTL_SCHEDULE_STAGES,
    .dtypes = 1 << FTL_SPEC_FP16 | 1 << FTL_SPEC_BF16 | 1 << FTL_SPEC_FP8_E4M3,
    .set_defaults = set_defaults,
    .needs_wgmma = needs_wgmma,
    .build = build,
};
