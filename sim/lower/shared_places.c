#include "lower/shared_places.h"

#include "base/integer.h"
#include "lower/select/select.h"

enum { MBARRIER_BYTES = 8, ASYNC_ALIGNMENT_BYTES = 1024, ALIGNMENT_BYTES = 128 };

// Quad pairs pass the softmax's result through shared memory to become an operand: a slab of each warp.
static int32_t relayout_bytes(const ftl_tile_program *tile, const ftl_fragment_shape *shape) {
  int32_t most = 0;
  if (!shape->quad_pairs) return 0;
  for (int32_t i = 0; i < tile->num_ops; i++) {
    const ftl_tile_op *op = &tile->ops[i];
    if (op->kind != FTL_TILE_CONVERT) continue;
    const ftl_value *value = &tile->values[op->dst];
    if (value->layout.threads_per_row > 0) continue;
    int32_t bytes = FTL_SLAB_ROWS * ftl_value_warp_columns(value) * ftl_dtype_bytes(value->dtype) *
                    tile->roles[value->role].num_warps;
    if (bytes > most) most = bytes;
  }
  return most;
}

static int32_t warps_of(const ftl_tile_program *tile, int32_t roles_mask) {
  int32_t warps = 0;
  for (int32_t r = 0; r < tile->num_roles; r++)
    if (roles_mask >> r & 1) warps += tile->roles[r].num_warps;
  return warps;
}

// Copies of accumulators that are read back by rows.
static bool is_gathered(const ftl_tile_program *tile, int32_t ring) {
  for (int32_t i = 0; i < tile->num_ops; i++)
    if (tile->ops[i].kind == FTL_TILE_GATHER && tile->ops[i].ring == ring) return true;
  return false;
}

static void place_rings(ftl_warp_program *program, ftl_shared_layout *layouts, const ftl_lower_options *options,
                        const ftl_fragment_shape *shape) {
  const ftl_tile_program *tile = program->tile;
  bool by_tma = options->copy == FTL_COPY_TMA, async = by_tma || options->mma == FTL_MMA_WGMMA;
  bool in_blocks = async || options->buffers_fragments;  // CUTLASS's atoms are a swizzle wide
  int64_t offset = 0, bytes_of_columns = 0;              // those lie behind the tiles, which swizzles want aligned
  for (int32_t r = 0; r < tile->num_rings; r++) {
    const ftl_ring *ring = &tile->rings[r];
    ftl_shared_order order = in_blocks ? FTL_SHARED_SWIZZLED_BLOCKS : FTL_SHARED_SWIZZLED_ROWS;
    bool holds_columns = ftl_ring_holds_columns(ring);
    int32_t alignment = async && !holds_columns ? ASYNC_ALIGNMENT_BYTES : ALIGNMENT_BYTES;
    if (is_gathered(tile, r)) order = FTL_SHARED_SWIZZLED_PAIRS;
    layouts[r] = ftl_shared_layout_of(ring->rows, ring->columns, ftl_dtype_bytes(ring->dtype), order);
    int32_t stage_bytes = ftl_round_up32(layouts[r].stage_bytes, alignment);
    bool mbarrier = by_tma && (ftl_select_is_loaded(tile, r) || ftl_select_is_put_across(tile, r));
    int32_t box_bytes = by_tma ? layouts[r].block_columns * layouts[r].element_bytes : 0;
    program->rings[r] = (ftl_warp_ring){
        ring->num_stages, stage_bytes, box_bytes, warps_of(tile, ring->consumers_mask), mbarrier, ring->multicast};
    if (!ring->overlaid) *(holds_columns ? &bytes_of_columns : &offset) += (int64_t)stage_bytes * ring->num_stages;
    bool has_two = tile->num_roles > 1 || ring->counts_releases;
    if (mbarrier) offset += MBARRIER_BYTES * ring->num_stages * (has_two ? 2 : 1);
  }
  offset += bytes_of_columns;
  // Barriers of fixed size lie before the dynamic part, which the 128-byte swizzle wants at a multiple of 1024.
  if (async && options->plain_code) offset += ASYNC_ALIGNMENT_BYTES;
  offset += relayout_bytes(tile, shape);
  offset += ftl_select_reduce_bytes(tile);
  program->shared_bytes = offset > INT32_MAX ? INT32_MAX : (int32_t)offset;
}

static void place_barriers(ftl_warp_program *program) {
  const ftl_tile_program *tile = program->tile;
  if (tile->num_roles == 1 && tile->num_barriers == 0) return;
  program->barrier_warps[0] = program->num_warps;
  for (int32_t i = 0; i < tile->num_barriers; i++)
    program->barrier_warps[ftl_select_barrier_id(tile, i)] = warps_of(tile, tile->barriers[i].roles_mask);
}

ftl_status ftl_shared_places_take(ftl_warp_program *program, ftl_shared_layout *layouts, const ftl_arch *arch,
                                  const ftl_lower_options *options, const ftl_fragment_shape *shape, ftl_error *error) {
  place_rings(program, layouts, options, shape);
  place_barriers(program);
  if (program->shared_bytes <= arch->shared_max_bytes_per_cta) return FTL_OK;
  return ftl_error_set_about(error, FTL_INFEASIBLE, program->tile->name,
                             " needs %d bytes of shared memory a CTA, %s allows %lld", program->shared_bytes,
                             arch->name, (long long)arch->shared_max_bytes_per_cta);
}
