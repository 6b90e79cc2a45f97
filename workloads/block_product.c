#include "workloads/block_product.h"

#include "base/integer.h"
#include "workloads/staged_store.h"

enum { FIRST_CONSUMER = 1 << 1 };  // of the roles of a kernel with a producer
enum { PRODUCER_WARPS = 4, PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240, MAX_CONSUMER_WARPS = 8 };
// A tile of C that leaves in pieces: of 32 columns (16 where these are not whole), two of which may be under way
// (kernels/products/product_wgmma.h); of fewer where shared memory, less what barriers and alignment take, does not
// hold as much beside the stages, as cuBLAS's 320 x 128 tiles.
enum { PIECE_COLUMNS = 32, PIECE_BUFFERS = 2, BESIDE_RINGS_BYTES = 2 * 1024 };

enum { FRAGMENT_ROWS = 16, FRAGMENT_COLUMNS = 16, MOST_WARPS_N = 16 };

static bool refills_late(const ftl_spec *spec, const ftl_block_product *p) {
  const int64_t *v = spec->value;
  if (p->has_producer || p->num_stages == 1) return false;
  if (v[FTL_PARAM_refill] != FTL_REFILL_AUTO) return v[FTL_PARAM_refill] == FTL_REFILL_LATE;
  return v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC;
}

static bool releases_amid(const ftl_spec *spec, const ftl_block_product *p) {
  const int64_t *v = spec->value;
  bool is_early = v[FTL_PARAM_refill] != FTL_REFILL_AUTO && v[FTL_PARAM_refill] != FTL_REFILL_WHEN_FREE;
  return p->has_producer && p->num_stages > 1 && v[FTL_PARAM_code] == FTL_CODE_LEAN && !is_early;
}

// One part for each operand of a tensor instruction, in elements as stored; their fragments take turns in two sets.
static int32_t part_of_step(const ftl_spec *spec, const ftl_block_product *p) {
  enum { OPERAND_BYTES = 32 };
  const int64_t *v = spec->value;
  int32_t part_k = OPERAND_BYTES / ftl_dtype_bytes(p->dtype);
  bool is_multistage = v[FTL_PARAM_code] == FTL_CODE_BUFFERED && v[FTL_PARAM_mma] == FTL_SPEC_MMA_MMA &&
                       v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC && p->num_stages > 1 && !p->refills_late;
  return is_multistage && p->block_k % (2 * part_k) == 0 ? part_k : 0;
}

// Warps of mma.sync as CUTLASS has them: in both directions, so that a warp's rows and columns, which it loads as
// fragments in every step, are fewest together; of equals the one with more of them side by side (128 x 128 tiles on 8
// warps: 64 x 32 each).
static int64_t warps_side_by_side(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  int64_t best = 1, fewest = INT64_MAX;
  for (int64_t n = 1; n <= v[FTL_PARAM_num_warps] && n <= MOST_WARPS_N; n *= 2) {
    int64_t m = v[FTL_PARAM_num_warps] / n;
    bool divides = v[FTL_PARAM_num_warps] % n == 0 && v[FTL_PARAM_block_m] % (FRAGMENT_ROWS * m) == 0 &&
                   v[FTL_PARAM_block_n] % (FRAGMENT_COLUMNS * n) == 0;
    int64_t loaded = v[FTL_PARAM_block_m] / m + v[FTL_PARAM_block_n] / n;
    if (!divides || loaded > fewest) continue;
    best = n;
    fewest = loaded;
  }
  return best;
}

static int64_t stage_bytes(const ftl_block_product *p) {
  return (int64_t)(p->block_m + p->num_b * p->block_n) * p->block_k * ftl_dtype_bytes(p->dtype);
}

static int64_t staged_bytes(const ftl_block_product *p) {
  int64_t tile = (int64_t)p->block_m * p->block_n * ftl_dtype_bytes(p->c_dtype);
  return ftl_staged_store_bytes(tile, p->num_stages * stage_bytes(p));
}

// Triton's tutorial of matrix products (03-matrix-multiplication.py) takes its tiles in groups of GROUP_SIZE_M = 8 rows
// of them; so do both authors of kernels/independent/triton_*.
static void group_open_tiles(ftl_spec *spec) {
  enum { ROWS_OF_GROUP = 8 };
  const int64_t *v = spec->value;
  bool is_triton = v[FTL_PARAM_code] == FTL_CODE_LEAN && v[FTL_PARAM_copy] != FTL_SPEC_COPY_TMA;
  bool is_m_first = v[FTL_PARAM_tile_order] == FTL_ORDER_M_FIRST;
  if (is_triton && is_m_first && ftl_spec_takes(spec, FTL_PARAM_tile_strip))
    ftl_spec_set_default(spec, FTL_PARAM_tile_strip, ROWS_OF_GROUP);
}

void ftl_block_product_resolve(ftl_spec *spec, const ftl_arch *arch) {
  (void)arch;
  group_open_tiles(spec);
  bool is_by_warps = ftl_spec_takes(spec, FTL_PARAM_warps_n) && spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_MMA;
  if (is_by_warps) ftl_spec_set_default(spec, FTL_PARAM_warps_n, warps_side_by_side(spec));
  ftl_block_product p = ftl_block_product_of(spec);
  if (ftl_spec_takes(spec, FTL_PARAM_store) && ftl_block_product_can_stage(&p))
    ftl_stage_open_store(spec, staged_bytes(&p));
  int64_t *refill = &spec->value[FTL_PARAM_refill];
  bool is_given = (spec->given >> FTL_PARAM_refill & 1) != 0 && *refill != FTL_REFILL_AUTO;
  if (is_given) return;
  *refill = p.refills_late ? FTL_REFILL_LATE : p.releases_amid ? FTL_REFILL_WHEN_FREE : FTL_REFILL_EARLY;
}

// Numbers of two bytes give their like; of one byte they give bf16, as libraries do.
static ftl_dtype c_dtype_of(const ftl_block_product *p) {
  if (p->dtype == FTL_TF32 || ftl_dtype_is_integer(p->dtype)) return p->sum_dtype;
  if (ftl_dtype_is_fp8(p->dtype)) return p->sum_dtype == FTL_FP16 ? FTL_FP16 : FTL_BF16;
  return p->dtype;
}

ftl_block_product ftl_block_product_of(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  const int numbers = ftl_dtype_numbers(ftl_spec_dtype(spec));
  ftl_block_product p = {
      .batch = v[FTL_PARAM_batch],
      .m = v[FTL_PARAM_m],
      .n = v[FTL_PARAM_n],
      .k = ftl_divide_up(v[FTL_PARAM_k], numbers),
      .block_m = (int32_t)v[FTL_PARAM_block_m],
      .block_n = (int32_t)v[FTL_PARAM_block_n],
      .block_k = (int32_t)v[FTL_PARAM_block_k] / numbers,
      .num_stages = (int32_t)v[FTL_PARAM_num_stages],
      .num_warps = (int32_t)v[FTL_PARAM_num_warps],
      .dtype = ftl_spec_dtype(spec),
      .sum_dtype = ftl_spec_acc_dtype(spec),
      .shared_bytes_per_cta = spec->shared_bytes_per_cta,
      .transpose_a = v[FTL_PARAM_transpose_a] != 0,
      .transpose_b = v[FTL_PARAM_transpose_b] != 0,
      .groups_n = v[FTL_PARAM_groups_n] > 1 ? (int32_t)v[FTL_PARAM_groups_n] : 1,
      .warps_n = v[FTL_PARAM_warps_n] > 1 ? (int32_t)v[FTL_PARAM_warps_n] : 1,
      .tile_strip = v[FTL_PARAM_tile_strip],
      .m_first = v[FTL_PARAM_tile_order] == FTL_ORDER_M_FIRST,
      .persistent = v[FTL_PARAM_persistent] != 0,
      .handout = ftl_spec_handout(spec),
      .has_producer = v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA,
      .num_b = 1,
      .ring_c = -1,
  };
  p.refills_late = refills_late(spec, &p);
  p.releases_amid = releases_amid(spec, &p);
  p.part_k = part_of_step(spec, &p);
  p.strips_return = p.has_producer;
  p.c_dtype = c_dtype_of(&p);
  p.stages_c = v[FTL_PARAM_store] == FTL_SPEC_STORE_STAGED;
  p.tiles_m = ftl_divide_up(p.m, p.block_m);
  p.tiles_n = ftl_divide_up(p.n, p.block_n);
  p.cluster = ftl_spec_cluster(spec);
  p.tiles_m = ftl_divide_up(p.tiles_m, p.cluster.m) * p.cluster.m;
  p.tiles_n = ftl_divide_up(p.tiles_n, p.cluster.n) * p.cluster.n;
  int64_t steps = ftl_divide_up(p.k, p.block_k);
  p.num_splits = v[FTL_PARAM_splits] > 0 ? ftl_smaller(v[FTL_PARAM_splits], steps) : 1;
  p.steps_per_split = ftl_divide_up(steps, p.num_splits);
  p.num_splits = ftl_divide_up(steps, p.steps_per_split);  // none is empty
  return p;
}

// ---- tiles ----

typedef struct tile_place {
  ftl_expr fast, slow;
} tile_place;

// The place of number `index` of places in strips of `width` of the fast coordinate, each with all num_slow of the slow
// one.
static tile_place place_in_strips(ftl_builder *b, ftl_expr index, int64_t width, int64_t num_slow) {
  ftl_expr strip = ftl_div(b, index, ftl_const(b, width * num_slow)), columns = ftl_const(b, width);
  ftl_expr in_strip = ftl_mod(b, index, ftl_const(b, width * num_slow));
  return (tile_place){ftl_add(b, ftl_mul(b, strip, columns), ftl_mod(b, in_strip, columns)),
                      ftl_div(b, in_strip, columns)};
}

static ftl_expr choose(ftl_builder *b, ftl_expr is_second, ftl_expr first, ftl_expr second) {
  return ftl_add(b, first, ftl_mul(b, is_second, ftl_sub(b, second, first)));
}

// The same of num_fast x num_slow places, of which the last strip may be narrower; with `returns` the slow coordinate
// goes there and back.
static tile_place place_of(ftl_builder *b, ftl_expr index, int64_t num_fast, int64_t num_slow, int64_t width,
                           bool returns) {
  if (width >= num_fast)
    return (tile_place){ftl_mod(b, index, ftl_const(b, num_fast)), ftl_div(b, index, ftl_const(b, num_fast))};
  int64_t num_whole = num_fast / width, rest = num_fast % width, num_in_whole = num_whole * width * num_slow;
  tile_place place = place_in_strips(b, index, width, num_slow);
  if (rest > 0) {
    ftl_expr is_last = ftl_div(b, index, ftl_const(b, num_in_whole));
    tile_place last = place_in_strips(b, ftl_sub(b, index, ftl_const(b, num_in_whole)), rest, num_slow);
    last.fast = ftl_add(b, ftl_const(b, num_whole * width), last.fast);
    place = (tile_place){choose(b, is_last, place.fast, last.fast), choose(b, is_last, place.slow, last.slow)};
  }
  if (!returns) return place;
  ftl_expr goes_back = ftl_mod(b, ftl_div(b, place.fast, ftl_const(b, width)), ftl_const(b, 2));
  place.slow = choose(b, goes_back, place.slow, ftl_sub(b, ftl_const(b, num_slow - 1), place.slow));
  return place;
}

// The tile of a CTA: clusters follow each other along m in launch order, or along n, in strips or not, and so do the
// CTAs of a cluster along m; then splits; then batches.
static void place_tile(ftl_block_product *p) {
  ftl_builder *b = p->b;
  ftl_cluster_shape shape = p->cluster;
  ftl_expr cta = ftl_cta(b), tiles = ftl_const(b, p->tiles_m * p->tiles_n), in_matrix = ftl_mod(b, cta, tiles);
  ftl_expr cluster_ctas = ftl_const(b, shape.m * shape.n), rank = ftl_mod(b, in_matrix, cluster_ctas);
  ftl_expr cluster = ftl_div(b, in_matrix, cluster_ctas);
  int64_t clusters_m = p->tiles_m / shape.m, clusters_n = p->tiles_n / shape.n;
  int64_t num_fast = p->m_first ? clusters_m : clusters_n, num_slow = p->m_first ? clusters_n : clusters_m;
  int64_t strip = p->tile_strip == 0 ? num_fast : p->tile_strip / (p->m_first ? shape.m : shape.n);
  tile_place place = place_of(b, cluster, num_fast, num_slow, strip, p->strips_return);
  ftl_expr m = ftl_const(b, shape.m), n = ftl_const(b, shape.n);
  ftl_expr tile_m = ftl_add(b, ftl_mul(b, p->m_first ? place.fast : place.slow, m), ftl_mod(b, rank, m));
  ftl_expr tile_n = ftl_add(b, ftl_mul(b, p->m_first ? place.slow : place.fast, n), ftl_div(b, rank, m));
  ftl_expr matrix = ftl_div(b, cta, tiles), splits = ftl_const(b, p->num_splits);
  p->split = ftl_mod(b, matrix, splits);
  p->batch_idx = ftl_div(b, matrix, splits);
  p->row = ftl_mul(b, tile_m, ftl_const(b, p->block_m));
  p->column = ftl_mul(b, tile_n, ftl_const(b, p->block_n));
  ftl_expr per_split = ftl_const(b, p->steps_per_split), all = ftl_const(b, ftl_divide_up(p->k, p->block_k));
  p->first_step = ftl_mul(b, p->split, per_split);
  p->num_steps = ftl_min(b, per_split, ftl_sub(b, all, p->first_step));
}

// Each of several Bs has a ring, and so has each group's part of the columns of one.
static int32_t num_rings_of_b(const ftl_block_product *p) { return p->groups_n > 1 ? p->groups_n : p->num_b; }
static int32_t columns_of_group(const ftl_block_product *p) { return p->block_n / p->groups_n; }
static ftl_expr column_of_group(const ftl_block_product *p, int32_t group) {
  return ftl_add(p->b, p->column, ftl_const(p->b, (int64_t)group * columns_of_group(p)));
}

static void declare_rings(ftl_block_product *p, int32_t producer, int32_t consumers) {
  static const char *const names[FTL_PRODUCT_MAX_B] = {"b", "b2"};
  int32_t m = p->block_m, n = columns_of_group(p), k = p->block_k;
  p->ring_a = ftl_builder_ring(p->b, "a", p->dtype, p->transpose_a ? k : m, p->transpose_a ? m : k, p->num_stages,
                               producer, consumers);
  for (int32_t i = 0; i < num_rings_of_b(p); i++)
    p->ring_b[i] = ftl_builder_ring(p->b, names[i], p->dtype, p->transpose_b ? n : k, p->transpose_b ? k : n,
                                    p->num_stages, producer, p->groups_n > 1 ? FIRST_CONSUMER << i : consumers);
  // CTAs of a cluster in one row of C read the same A, those in one column the same B.
  ftl_builder_cluster(p->b, p->cluster.m * p->cluster.n);
  ftl_builder_multicast(p->b, p->ring_a, (ftl_multicast){p->cluster.n, p->cluster.m});
  for (int32_t i = 0; i < num_rings_of_b(p); i++)
    ftl_builder_multicast(p->b, p->ring_b[i], (ftl_multicast){p->cluster.m, 1});
}

ftl_tile_ref ftl_block_product_tile(const ftl_block_product *p, int32_t tensor, ftl_expr head, ftl_expr row,
                                    ftl_expr column, int32_t rows, int32_t columns, int64_t all_columns) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = p->batch_idx,
                        .head = head,
                        .row = row,
                        .present = FTL_ALWAYS,
                        .rows = rows,
                        .columns = (int32_t)ftl_smaller(columns, all_columns),
                        .column = column};
}

static ftl_tile_ref tile_of_a(const ftl_block_product *p, ftl_expr depth) {
  ftl_expr zero = ftl_const(p->b, 0);
  if (p->transpose_a) return ftl_block_product_tile(p, p->a, zero, depth, p->row, p->block_k, p->block_m, p->m);
  return ftl_block_product_tile(p, p->a, zero, p->row, depth, p->block_m, p->block_k, p->k);
}

static ftl_tile_ref tile_of_b(const ftl_block_product *p, int32_t ring, ftl_expr depth) {
  ftl_expr zero = ftl_const(p->b, 0), column = p->groups_n > 1 ? column_of_group(p, ring) : p->column;
  int32_t b = p->of_b[p->groups_n > 1 ? 0 : ring], columns = columns_of_group(p);
  if (p->transpose_b) return ftl_block_product_tile(p, b, zero, column, depth, columns, p->block_k, p->k);
  return ftl_block_product_tile(p, b, zero, depth, column, p->block_k, columns, p->n);
}

static void acquire_step(const ftl_block_product *p) {
  ftl_acquire(p->b, p->ring_a);
  for (int32_t i = 0; i < num_rings_of_b(p); i++) ftl_acquire(p->b, p->ring_b[i]);
}

static void commit_step(const ftl_block_product *p) {
  ftl_commit(p->b, p->ring_a);
  for (int32_t i = 0; i < num_rings_of_b(p); i++) ftl_commit(p->b, p->ring_b[i]);
}

// A's and the Bs' tiles of step `step` of the CTA's part of K; empty stages unless `present` > 0.
static void load_step(const ftl_block_product *p, ftl_expr step, ftl_expr present) {
  ftl_builder *b = p->b;
  ftl_expr depth = ftl_mul(b, ftl_add(b, p->first_step, step), ftl_const(b, p->block_k));
  ftl_tile_ref a = tile_of_a(p, depth);
  a.present = present;
  acquire_step(p);
  ftl_load(b, p->ring_a, a);
  for (int32_t i = 0; i < num_rings_of_b(p); i++) {
    ftl_tile_ref of_b = tile_of_b(p, i, depth);
    of_b.present = present;
    ftl_load(b, p->ring_b[i], of_b);
  }
  commit_step(p);
}

// The rings of B that a group reads begin with its own number.
static void wait_for_step(const ftl_block_product *p, int32_t group) {
  ftl_wait(p->b, p->ring_a);
  for (int32_t i = 0; i < p->num_b; i++) ftl_wait(p->b, p->ring_b[group + i]);
}

static void multiply_step(const ftl_block_product *p, int32_t group, const int32_t *sums) {
  for (int32_t i = 0; i < p->num_b; i++) {
    ftl_mma_shared(p->b, sums[i], p->ring_a, p->ring_b[group + i], p->transpose_b);
    if (p->transpose_a) ftl_transposed_a(p->b);
  }
}

// Of the oldest step whose tiles are held.
static void release_step(const ftl_block_product *p, int32_t group) {
  ftl_release(p->b, p->ring_a);
  for (int32_t i = 0; i < p->num_b; i++) ftl_release(p->b, p->ring_b[group + i]);
}

static void release_step_amid(const ftl_block_product *p, int32_t group) {
  ftl_release_amid(p->b, p->ring_a);
  for (int32_t i = 0; i < p->num_b; i++) ftl_release_amid(p->b, p->ring_b[group + i]);
}

static void declare_sums(const ftl_block_product *p, int32_t *sums) {
  static const char *const names[FTL_PRODUCT_MAX_B] = {"sum", "sum2"};
  for (int32_t i = 0; i < p->num_b; i++) {
    sums[i] = ftl_builder_tile(p->b, names[i], p->sum_dtype, p->block_m, columns_of_group(p));
    if (p->warps_n > 1) ftl_builder_side_by_side(p->b, p->warps_n);
    ftl_fill(p->b, sums[i], 0);
  }
}

// ---- the two kernels ----

// As Triton's software pipeliner compiles it for wgmma: a step's products are issued before those of the step before
// are waited for, whose buffers are then filled with the tiles num_stages - 1 ahead, behind a barrier of their own.
static void multiply_late(const ftl_block_product *p, const int32_t *sums) {
  ftl_builder *b = p->b;
  ftl_expr first_ahead = ftl_const(b, p->num_stages - 1);
  wait_for_step(p, 0);
  multiply_step(p, 0, sums);
  load_step(p, first_ahead, ftl_sub(b, p->num_steps, first_ahead));
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 1), p->num_steps)), ahead = ftl_add(b, i, first_ahead);
  wait_for_step(p, 0);
  multiply_step(p, 0, sums);
  release_step(p, 0);
  load_step(p, ahead, ftl_sub(b, p->num_steps, ahead));
  ftl_end_loop(b);
  release_step(p, 0);
}

// The barrier of a step's wait also says that the stage before it was read: the tiles num_stages - 1 ahead are asked
// for behind it, and a step has one barrier (CUTLASS's multistage mainloop; kernels/products/product_mma.h). With one
// stage nothing is ahead.
static void multiply_early(const ftl_block_product *p, const int32_t *sums) {
  ftl_builder *b = p->b;
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), p->num_steps));
  ftl_expr ahead = ftl_add(b, i, ftl_const(b, p->num_stages - 1));
  if (p->num_stages > 1) wait_for_step(p, 0);
  load_step(p, ahead, ftl_sub(b, p->num_steps, ahead));
  if (p->num_stages == 1) wait_for_step(p, 0);
  multiply_step(p, 0, sums);
  release_step(p, 0);
  ftl_end_loop(b);
}

// Rows of a tile that all threads copy at once, 16 bytes each: a block of 128 bytes of a row, or what narrower one
// divides it, as its swizzle.
static int32_t rows_of_copy(const ftl_block_product *p, int32_t columns) {
  enum { VECTOR_BYTES = 16, MAX_BLOCK_BYTES = 128, MIN_BLOCK_BYTES = 64 };
  int32_t row_bytes = columns * ftl_dtype_bytes(p->dtype), block_bytes = MAX_BLOCK_BYTES;
  while (row_bytes % block_bytes != 0) block_bytes /= 2;
  if (block_bytes < MIN_BLOCK_BYTES) block_bytes = row_bytes;
  int32_t lanes = block_bytes / VECTOR_BYTES;
  return p->num_warps * (lanes < FTL_WARP_LANES ? FTL_WARP_LANES / lanes : 1);
}

// The share of a tile that is copied behind part `part` of `num_parts`: equal numbers of copies, the last what is left.
static void load_share(const ftl_block_product *p, int32_t ring, ftl_tile_ref ref, int32_t part, int32_t num_parts) {
  int32_t rows = rows_of_copy(p, ref.columns);
  rows *= (int32_t)ftl_divide_up(ftl_divide_up(ref.rows, rows), num_parts);
  int32_t first = part * rows;
  if (first >= ref.rows) return;
  ref.row = ftl_add(p->b, ref.row, ftl_const(p->b, first));
  ref.rows = ref.rows - first < rows ? ref.rows - first : rows;
  ftl_load(p->b, ring, ref);
  ftl_at_ring_row(p->b, first);
}

static void load_shares(const ftl_block_product *p, ftl_expr step, int32_t part, int32_t num_parts) {
  ftl_builder *b = p->b;
  ftl_expr depth = ftl_mul(b, ftl_add(b, p->first_step, step), ftl_const(b, p->block_k));
  ftl_expr present = ftl_sub(b, p->num_steps, step);
  ftl_tile_ref a = tile_of_a(p, depth);
  a.present = present;
  load_share(p, p->ring_a, a, part, num_parts);
  for (int32_t i = 0; i < num_rings_of_b(p); i++) {
    ftl_tile_ref of_b = tile_of_b(p, i, depth);
    of_b.present = present;
    load_share(p, p->ring_b[i], of_b, part, num_parts);
  }
}

static void multiply_part(const ftl_block_product *p, const int32_t *sums, int32_t part) {
  for (int32_t i = 0; i < p->num_b; i++) {
    ftl_mma_shared(p->b, sums[i], p->ring_a, p->ring_b[i], p->transpose_b);
    if (p->transpose_a) ftl_transposed_a(p->b);
    ftl_part_of_k(p->b, part * p->part_k, p->part_k);
  }
}

// The same as CUTLASS has it (MmaMultistage::mac_loop_iter, include/cutlass/gemm/threadblock/mma_multistage.h): the
// copies are spread over a step's parts, the last two shares behind the last part but one, and the next step is waited
// for there. With two sets of fragments its first ones are loaded before the last part is multiplied, so that products
// go on across the barrier; here the step's stage is given back and the next one waited for behind that part, whose
// fragments have been loaded by then.
static void multiply_in_parts(const ftl_block_product *p, const int32_t *sums) {
  ftl_builder *b = p->b;
  int32_t num_parts = p->block_k / p->part_k;
  wait_for_step(p, 0);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), p->num_steps));
  ftl_expr ahead = ftl_add(b, i, ftl_const(b, p->num_stages - 1));
  acquire_step(p);
  for (int32_t part = 0; part < num_parts - 1; part++) {
    multiply_part(p, sums, part);
    load_shares(p, ahead, part, num_parts);
  }
  load_shares(p, ahead, num_parts - 1, num_parts);
  commit_step(p);
  multiply_part(p, sums, num_parts - 1);
  release_step(p, 0);
  wait_for_step(p, 0);
  ftl_end_loop(b);
  release_step(p, 0);
}

static void build_multistage(ftl_block_product *p, ftl_block_product_finish finish, const void *context) {
  ftl_builder *b = p->b;
  int32_t sums[FTL_PRODUCT_MAX_B];
  int32_t role = ftl_builder_role(b, "main", p->num_warps, 0);
  declare_rings(p, role, 1 << role);
  declare_sums(p, sums);
  for (int32_t i = 0; i < p->num_stages - 1; i++)
    load_step(p, ftl_const(b, i), ftl_sub(b, p->num_steps, ftl_const(b, i)));
  (p->part_k > 0 ? multiply_in_parts : p->refills_late ? multiply_late : multiply_early)(p, sums);
  if (p->stages_c) {
    int64_t room = p->num_stages * stage_bytes(p);
    p->ring_c = ftl_staged_store_ring(b, "c", p->c_dtype, p->block_m, p->block_n, room, role);
  }
  finish(p, sums, context);
}

// Whether products are issued before those of the step before are waited for, whose tiles are given back then
// (CUTLASS's sm90_mma_tma_gmma_ss_warpspecialized), or behind those of the first 64 rows a warpgroup (SASS of five of
// cuBLAS's kernels, of two to five times 64 rows). With one stage there is nothing to issue from meanwhile.
static bool runs_on(const ftl_block_product *p) { return p->num_stages > 1; }

static void consume_steps(const ftl_block_product *p, int32_t group, const int32_t *sums) {
  ftl_builder *b = p->b;
  if (runs_on(p)) {
    wait_for_step(p, group);
    multiply_step(p, group, sums);
  }
  ftl_loop(b, ftl_const(b, runs_on(p) ? 1 : 0), p->num_steps);
  wait_for_step(p, group);
  multiply_step(p, group, sums);
  (p->releases_amid ? release_step_amid : release_step)(p, group);
  ftl_end_loop(b);
  if (runs_on(p)) release_step(p, group);
}

static bool pieces_fit(const ftl_block_product *p, int32_t columns, int32_t num_buffers) {
  if (p->shared_bytes_per_cta == 0) return true;
  int64_t of_c = (int64_t)p->block_m * columns * ftl_dtype_bytes(p->c_dtype);
  int64_t bytes = p->num_stages * stage_bytes(p) + p->groups_n * num_buffers * of_c;
  return bytes + BESIDE_RINGS_BYTES <= p->shared_bytes_per_cta;
}

// Where a group's tile of C waits to be stored.
static int32_t declare_pieces(const ftl_block_product *p, int32_t group) {
  static const char *const names[] = {"c", "c2"};
  int32_t role = 1 + group, columns = PIECE_COLUMNS, num_buffers = PIECE_BUFFERS;
  if (!pieces_fit(p, columns, num_buffers)) num_buffers = 1;
  if (!pieces_fit(p, columns, num_buffers) || columns_of_group(p) % columns != 0)
    columns = FTL_PRODUCT_SMALL_PIECE_COLUMNS;
  return ftl_builder_ring(p->b, names[group], p->c_dtype, p->block_m, columns, num_buffers, role, 1 << role);
}

// The consumers of one group: all warps, or a warpgroup of several side by side.
static void build_consumers(ftl_block_product *p, int32_t group, int32_t num_registers, ftl_block_product_finish finish,
                            const void *context) {
  static const char *const names[] = {"consumer", "consumer2"};
  int32_t sums[FTL_PRODUCT_MAX_B];
  ftl_builder *b = p->b;
  ftl_builder_role(b, names[group], p->num_warps / p->groups_n, num_registers);
  declare_sums(p, sums);
  consume_steps(p, group, sums);
  ftl_block_product of_group = *p;
  if (p->stages_c) of_group.ring_c = declare_pieces(p, group);
  if (p->groups_n > 1) {
    of_group.column = column_of_group(p, group);
    of_group.block_n = columns_of_group(p);
  }
  finish(&of_group, sums, context);
}

static void build_specialised(ftl_block_product *p, ftl_block_product_finish finish, const void *context) {
  ftl_builder *b = p->b;
  bool reallocates = p->num_warps == MAX_CONSUMER_WARPS;  // what two warpgroups gain is what one gives up
  ftl_builder_role(b, "producer", PRODUCER_WARPS, reallocates ? PRODUCER_REGISTERS : 0);
  declare_rings(p, 0, FIRST_CONSUMER * ((1 << p->groups_n) - 1));
  // Consumers that run on take the first step before their loop, and loops of all roles have as many iterations.
  ftl_expr first = ftl_const(b, runs_on(p) ? 1 : 0);
  if (runs_on(p)) load_step(p, ftl_const(b, 0), FTL_ALWAYS);
  load_step(p, ftl_loop_value(b, ftl_loop(b, first, p->num_steps)), FTL_ALWAYS);
  ftl_end_loop(b);
  for (int32_t group = 0; group < p->groups_n; group++)
    build_consumers(p, group, reallocates ? CONSUMER_REGISTERS : 0, finish, context);
}

void ftl_block_product_build(ftl_block_product *p, ftl_block_product_finish finish, const void *context) {
  place_tile(p);
  if (p->has_producer)
    build_specialised(p, finish, context);
  else
    build_multistage(p, finish, context);
  ftl_builder_grid(p->b, p->batch * p->num_splits * p->tiles_m * p->tiles_n, p->persistent, p->handout);
  ftl_builder_flops(p->b, 2 * p->num_b * p->batch * p->m * p->n * p->k * ftl_dtype_numbers(p->dtype));
}
